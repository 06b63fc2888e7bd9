//! The endpoint: exchanges over datagrams, as a machine. Its parts are a message layer, own exchanges above it, and the
//! requests of peers on top.

mod admission;
mod duplicates;
mod ending;
mod exchange;
mod group;
mod group_members;
mod group_tokens;
mod incoming;
mod message_layer;
mod notification;
mod outgoing;
mod peers;
mod reception;
mod request;
mod session;
mod shares;
mod unproven;
mod window;

use lowmesh_machine::{DropReason, Machine, Rejected, earliest};
use lowmesh_units::{Duration, Instant, Rng};
use lowmesh_wire::coap::{Kind, MessageId};

use crate::event::Counters;
use crate::exchange::{ExchangeId, GroupInput, Input, NO_CONNECTIONS, Output};
use crate::params::MESSAGE_IDS;
use crate::peer::Peer;
use crate::{Config, ConfigError, CongestionControl, CongestionSnapshot, Lifetimes, PeerAddress};
use incoming::Requests;
use message_layer::MessageLayer;
use outgoing::OwnExchanges;

/// Client and server of one address; `P` is the address of a peer.
#[derive(Debug)]
pub struct Endpoint<P> {
    layer: MessageLayer<P>,
    own: OwnExchanges<P>,
    requests: Requests<P>,
}

impl<P: PeerAddress> Endpoint<P> {
    /// An endpoint without peers. All its random numbers come from `rng`.
    pub fn new(config: Config, rng: Rng) -> Result<Self, ConfigError> {
        config.check()?;
        let layer = MessageLayer::new(config, rng);
        let own = OwnExchanges::new(&layer.config);
        Ok(Self { layer, own, requests: Requests::new() })
    }
    /// Own exchanges that are not finished: waiting, in flight, or acknowledged. Separate responses are not counted.
    pub fn open(&self) -> usize {
        self.own.open()
    }
    /// True when nothing waits for a peer: no own exchange, no separate response.
    pub fn is_idle(&self) -> bool {
        self.own.all.is_empty()
    }
    /// Whether a request of a peer can still be answered.
    pub fn awaits_response(&self, exchange: ExchangeId) -> bool {
        self.requests.contains(exchange)
    }
    /// Number of free message IDs towards a peer: without one, a message is rejected (RFC 7252 s4.4).
    pub fn message_ids_left(&self, peer: P, now: Instant) -> u32 {
        self.layer.peers.get(&peer).map_or(MESSAGE_IDS, |peer| peer.ids.left(now))
    }
    /// Own exchanges that wait for the window.
    pub const fn queued(&self) -> usize {
        self.own.queued()
    }
    /// The longest message that the endpoint sends, in octets.
    pub const fn message_len_max(&self) -> usize {
        self.layer.config.message_len_max
    }
    /// The number of discarded datagrams, by cause.
    pub const fn counters(&self) -> Counters {
        let forgotten_early = self.layer.remembered.forgotten_early();
        Counters { forgotten_early, ..self.layer.outputs.counters }
    }

    /// Gives a destination its own congestion control, from now on, even if the destination is not known yet; `None`
    /// restores that of the endpoint. What has been learned about it so far is forgotten. As many destinations as
    /// [`Config::peers_max`](crate::Config) may have one.
    pub fn choose_congestion_control(
        &mut self,
        peer: P,
        chosen: Option<CongestionControl>,
        now: Instant,
    ) -> Result<(), ConfigError> {
        self.layer.choose_congestion_control(peer, chosen, now)?;
        self.own.start_waiting(&mut self.layer, peer, now);
        Ok(())
    }
    /// The lifetimes of messages to and from a destination (RFC 7252 s4.8.2).
    pub fn lifetimes(&self, peer: P) -> Lifetimes {
        self.layer.lifetimes(peer)
    }
    /// The widest lifetimes of all destinations so far.
    pub const fn widest_lifetimes(&self) -> Lifetimes {
        self.layer.widest_lifetimes()
    }
    /// The time over which the members of a group spread messages of this length to one client.
    pub fn leisure(&self, octets: usize) -> Duration {
        self.layer.config.leisure.of(octets)
    }
    /// The state of timer and window of a destination, if it is known.
    pub fn congestion(&self, peer: P) -> Option<CongestionSnapshot> {
        self.layer.peers.get(&peer).map(Peer::congestion)
    }
    /// The state of every known destination, at most [`Config::peers_max`](crate::Config).
    pub fn destinations(&self) -> impl Iterator<Item = (P, CongestionSnapshot)> {
        self.layer.peers.iter().map(|(peer, known)| (*peer, known.congestion()))
    }

    /// Whether a peer has proven its address.
    pub fn is_proven(&self, peer: P) -> bool {
        self.layer.is_proven(peer)
    }
    /// Marks the address of a peer as proven, for example by an Echo value.
    pub fn prove(&mut self, peer: P, now: Instant) {
        self.own.prove(&mut self.layer, peer, now);
    }
    /// Octets that may be sent to a peer now; unlimited for proven addresses.
    pub fn credit(&self, peer: P, now: Instant) -> usize {
        self.layer.credit(peer, now)
    }
    /// Gives an unproven peer octets of credit that it has earned before.
    pub fn grant(&mut self, peer: P, octets: usize, now: Instant) {
        self.layer.admit_with(peer, octets, now);
    }
    /// Takes what is left of an unproven peer's credit, octets with headers, to be granted later.
    pub fn set_aside(&mut self, peer: P, now: Instant) -> usize {
        self.layer.set_aside(peer, now)
    }
    /// Whether there is room for one more notification to a proven address.
    pub fn has_room(&self) -> bool {
        self.own.has_room(&self.layer)
    }
    /// When there is room for one more notification to a peer: `None` means now.
    pub fn room_at(&self, peer: P, now: Instant) -> Option<Instant> {
        self.own.room_at(&self.layer, peer, now)
    }

    fn on_deadline(&mut self, now: Instant) {
        while let Some(((due, id), ())) = self.layer.deadlines.first().copied() {
            if due > now {
                break;
            }
            let Self { layer, own, requests } = self;
            layer.deadlines.pop_first();
            if own.is_of_group(id) {
                own.on_group_wait_over(layer, id, now);
            } else if own.all.contains_key(&id) {
                if let Some(silent) = own.on_due(layer, id, now) {
                    self.end_silent_session(silent, now);
                }
            } else {
                requests.on_due(layer, id, now);
            }
        }
        self.own.on_paced(&mut self.layer, now);
    }
}

impl<P: PeerAddress> Machine for Endpoint<P> {
    type Input<'a> = Input<'a, P>;
    type Output = Output<P>;

    fn handle(&mut self, now: Instant, input: Input<'_, P>) -> Result<(), Rejected> {
        let Self { layer, own, requests } = self;
        match input {
            Input::Request { peer, message, handle } => {
                self.leave_silent_session(peer, now);
                self.own.request(&mut self.layer, peer, message, false, handle, now)?;
            }
            Input::RequestVerified { peer, message, handle } => {
                self.leave_silent_session(peer, now);
                self.own.request(&mut self.layer, peer, message, true, handle, now)?;
            }
            Input::Accept { handle, observes } => own.accept(layer, handle, observes, now),
            Input::Respond { exchange, response, handle } => {
                requests.respond(own, layer, exchange, response, handle, now)?;
            }
            Input::Group(GroupInput::Request { group, message, wait, handle }) => {
                own.request_group(layer, group, message, wait, handle, now)?;
            }
            Input::Group(GroupInput::Repeat { handle, repetition, wait }) => {
                own.repeat_group(layer, handle, repetition, wait, now)?;
            }
            Input::Ping { peer, handle } => {
                self.leave_silent_session(peer, now);
                self.own.ping(&mut self.layer, peer, handle, now)?;
            }
            Input::Cancel { handle } => own.cancel(layer, handle, now),
            Input::Notify { peer, token, response, confirmable, handle } => {
                let kind = if confirmable { Kind::Confirmable } else { Kind::NonConfirmable };
                let message = response.into_message(kind, MessageId(0), token);
                own.notify(layer, peer, message, handle, now)?;
            }
            Input::Decline { exchange } => requests.decline(layer, exchange, now)?,
            Input::Datagram { from, bytes } => self.on_datagram(from, bytes, now),
            Input::Group(GroupInput::Datagram { from, bytes }) => {
                self.on_group_datagram(from, bytes, now);
            }
            Input::Unreachable { peer } => own.on_unreachable(layer, peer, now),
            Input::SessionEnded { peer, reopens } => {
                self.end_session(peer, DropReason::NoRoute, reopens, now);
            }
            Input::Deadline => self.on_deadline(now),
            Input::Connection(_) => return Err(NO_CONNECTIONS),
        }
        Ok(())
    }
    fn poll_output(&mut self) -> Option<Output<P>> {
        self.layer.outputs.pop()
    }
    fn next_deadline(&self) -> Option<Instant> {
        let exchange = self.layer.deadlines.first().map(|((due, _), ())| *due);
        earliest(exchange, self.layer.paced.first().map(|(then, _)| *then))
    }
}

#[cfg(test)]
mod tests;
