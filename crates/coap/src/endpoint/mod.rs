//! The endpoint: its tables, its deadlines, and its inputs and outputs as a machine. What each input does is
//! in the modules below.

mod duplicates;
mod group;
mod incoming;
mod notification;
mod outgoing;
mod peers;
mod proof;
mod reception;
mod window;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Bound;

use hashbrown::HashMap;
use lowmesh_machine::{DropReason, Handle, Machine, Outbox, Rejected, earliest};
use lowmesh_units::{Instant, Rng};
use lowmesh_wire::coap::{Kind, MessageId, OptionNumber, Token};

use crate::event::ExchangeId;
use crate::event::{Counters, Discard, Input, Output};
use crate::exchange::{Incoming, Outgoing};
use crate::message_ids::MessageIds;
use crate::observe::NO_DEREGISTRATION;
use crate::ordered::Ordered;
use crate::params::{ADMISSION_LOOK, ADMISSION_SAMPLE, MESSAGE_IDS};
use crate::peer::Peer;
use crate::{Config, ConfigError, CongestionControl, Lifetimes, PeerAddress};
use duplicates::Remembered;
use peers::Peers;

/// Requests of one source that are not answered, and separate responses that are not acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    all: usize,
    /// Those of unproven addresses.
    unproven: usize,
}

/// Client and server of one address; `P` is the address of a peer.
#[derive(Debug)]
pub struct Endpoint<P> {
    config: Config,
    rng: Rng,
    peers: Peers<P>,
    /// Peers whose address is unproven, the first to be forgotten.
    strangers: BTreeSet<P>,
    /// Separate responses on their way to unproven addresses, the oldest first, and since when.
    unproven_answers: BTreeMap<ExchangeId, Instant>,
    /// Destinations with a congestion control of their own.
    chosen: BTreeMap<P, CongestionControl>,
    /// The widest of all destinations so far.
    lifetimes: Lifetimes,
    /// The peer that was forgotten last to make room.
    eviction_cursor: Option<P>,
    outgoing: BTreeMap<ExchangeId, Outgoing<P>>,
    /// Requests of peers that are not answered. Nothing goes through them in order.
    incoming: HashMap<ExchangeId, Incoming<P>>,
    /// What the peers of a source have of the places for requests.
    shares: BTreeMap<P, Share>,
    /// Requests to groups, by token: their answers come from other addresses than they went to.
    groups: Vec<(Token, ExchangeId)>,
    /// When an exchange wants to be looked at: one entry for each that waits for time.
    deadlines: Ordered<(Instant, ExchangeId), ()>,
    /// When the window of a peer, which paces, is to be asked again: one entry for each that something
    /// waits for.
    paced: BTreeSet<(Instant, P)>,
    /// Number of the next exchange.
    serial: u64,
    /// Own exchanges that wait for the window.
    queued: usize,
    /// Separate responses that are not over: they count as the requests that they answer.
    separate: usize,
    /// Notifications on their way to unproven addresses, the oldest first, and since when.
    unproven: BTreeMap<ExchangeId, Instant>,
    /// Messages remembered against duplicates.
    remembered: Remembered<P>,
    /// Message IDs of unconfirmed answers to peers without a place in the table, once there was one.
    stranger_ids: Option<MessageIds>,
    outbox: Outbox<Output<P>>,
    counters: Counters,
}

impl<P: PeerAddress> Endpoint<P> {
    /// An endpoint that knows nobody yet. All its random numbers come from `rng`.
    pub fn new(config: Config, rng: Rng) -> Result<Self, ConfigError> {
        config.check()?;
        let remembered = Remembered::new(config.dedup_total / config.peers_max);
        let lifetimes = config.lifetimes(&config.congestion);
        Ok(Self {
            config,
            lifetimes,
            rng,
            remembered,
            peers: Peers::new(),
            strangers: BTreeSet::new(),
            unproven_answers: BTreeMap::new(),
            chosen: BTreeMap::new(),
            eviction_cursor: None,
            outgoing: BTreeMap::new(),
            incoming: HashMap::new(),
            shares: BTreeMap::new(),
            groups: Vec::new(),
            deadlines: Ordered::new(),
            paced: BTreeSet::new(),
            serial: 0,
            queued: 0,
            separate: 0,
            unproven: BTreeMap::new(),
            stranger_ids: None,
            outbox: Outbox::new(),
            counters: Counters::default(),
        })
    }
    /// Own exchanges that are not over: waiting, on their way, or acknowledged. Separate responses
    /// are not counted.
    pub fn open(&self) -> usize {
        self.outgoing.len() - self.separate
    }
    /// True when nothing waits for a peer: no own exchange, no separate response.
    pub fn is_idle(&self) -> bool {
        self.outgoing.is_empty()
    }
    /// Whether a request of a peer can still be answered.
    pub fn awaits_response(&self, exchange: ExchangeId) -> bool {
        self.incoming.contains_key(&exchange)
    }
    /// Message IDs towards a peer that are free: a message that finds none is rejected (RFC 7252 s4.4).
    pub fn message_ids_left(&self, peer: P, now: Instant) -> u32 {
        self.peers.get(&peer).map_or(MESSAGE_IDS, |peer| peer.ids.left(now))
    }
    /// Own exchanges that wait for the window.
    pub const fn queued(&self) -> usize {
        self.queued
    }
    /// The longest message that it sends, octets.
    pub const fn message_len_max(&self) -> usize {
        self.config.message_len_max
    }
    /// How often datagrams came to nothing.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether a critical option beyond RFC 7252 is processed above.
    fn knows(&self, number: OptionNumber) -> bool {
        self.config.extensions.contains(&number)
    }
    const fn next_id(&mut self) -> ExchangeId {
        self.serial += 1;
        ExchangeId(self.serial)
    }
    fn fail(&mut self, handle: Handle, reason: DropReason) {
        self.outbox.push(Output::Failed { handle, reason });
    }
    fn discard(&mut self, from: P, cause: Discard) {
        self.counters.count(cause);
        self.outbox.push(Output::Discarded { from, cause });
    }
    /// Makes a peer known. A full table forgets an idle peer for a newcomer, and a source with its share one of its own;
    /// false if no peer is idle. The address may be forged, so the table never grows past its bound.
    fn admit(&mut self, peer: P, now: Instant) -> bool {
        self.admit_with(peer, 0, now)
    }
    /// The same for a peer that has earned so many octets.
    fn admit_with(&mut self, peer: P, earned: usize, now: Instant) -> bool {
        if let Some(known) = self.peers.get_mut(&peer) {
            known.last_used = now;
            known.returned = true;
            known.credit.earn(earned, now);
            return true;
        }
        let own_share = self.peers.of_source(peer.source()) >= self.config.peers_per_source;
        if own_share || self.peers.len() >= self.config.peers_max {
            let crowd = own_share.then(|| peer.source());
            let Some(oldest) = self.idle_peer(crowd) else { return false };
            self.forget_expired(oldest, now);
            self.strangers.remove(&oldest);
            if let Some(gone) = self.peers.remove(&oldest) {
                if let Some(then) = gone.paced {
                    self.paced.remove(&(then, oldest));
                }
                let count = gone.seen.len();
                self.remembered.change(oldest, count, 0);
                self.counters.forgotten_early += count as u64;
            }
            self.eviction_cursor = Some(oldest);
        }
        let chosen = self.chosen.get(&peer).unwrap_or(&self.config.congestion);
        let lifetimes = self.config.lifetimes(chosen);
        let mut newcomer = Peer::new(chosen, lifetimes, now, &mut self.rng);
        newcomer.credit.earn(earned, now);
        self.peers.insert(peer, newcomer);
        self.strangers.insert(peer);
        true
    }
    /// The idle peer to forget, of one source or of all: the least worth keeping among the next few whose address is
    /// unproven, else among the next few of all. In a flood of forged addresses, to look at all of them for each
    /// datagram would be the heavier load.
    fn idle_peer(&self, source: Option<P>) -> Option<P> {
        // The addresses of a source lie side by side, behind `source`.
        let is_in = |peer: &P| source.is_none_or(|source| peer.source() == source);
        let eviction_cursor = self.eviction_cursor.filter(is_in);
        let after = eviction_cursor
            .map_or(source.map_or(Bound::Unbounded, Bound::Included), Bound::Excluded);
        let first = source.map_or(Bound::Unbounded, Bound::Included);
        let before = eviction_cursor.map_or(Bound::Unbounded, Bound::Included);
        let turn = [(after, Bound::Unbounded), (first, before)];
        let strangers = turn
            .into_iter()
            .flat_map(|part| self.strangers.range(part).take_while(|peer| is_in(peer)));
        let known = strangers.filter_map(|peer| Some((peer, self.peers.get(peer)?)));
        least(known.take(ADMISSION_LOOK)).or_else(|| {
            let all = turn
                .into_iter()
                .flat_map(|part| self.peers.range(part).take_while(|(peer, _)| is_in(peer)));
            least(all)
        })
    }
    fn on_deadline(&mut self, now: Instant) {
        while let Some(((due, id), ())) = self.deadlines.first().copied() {
            if due > now {
                break;
            }
            self.deadlines.pop_first();
            if self.outgoing.contains_key(&id) {
                self.on_outgoing_due(id, now);
            } else {
                self.on_incoming_due(id, now);
            }
        }
        self.on_paced(now);
    }
}

/// The least worth keeping among the first few idle ones of some peers.
fn least<'a, P: Copy + 'a>(peers: impl Iterator<Item = (&'a P, &'a Peer)>) -> Option<P> {
    let idle = peers.filter(|(_, one)| one.is_idle()).take(ADMISSION_SAMPLE);
    idle.min_by_key(|(_, one)| one.worth()).map(|(peer, _)| *peer)
}

impl<P: PeerAddress> Machine for Endpoint<P> {
    type Input<'a> = Input<'a, P>;
    type Output = Output<P>;

    fn handle(&mut self, now: Instant, input: Input<'_, P>) -> Result<(), Rejected> {
        match input {
            Input::Request { peer, message, handle } => {
                self.request(peer, message, false, handle, now)?;
            }
            Input::RequestVerified { peer, message, handle } => {
                self.request(peer, message, true, handle, now)?;
            }
            Input::Accept { handle, observes } => self.accept(handle, observes, now),
            Input::Respond { exchange, response, handle } => {
                self.respond(exchange, response, handle, now)?;
            }
            Input::RequestGroup { group, message, wait, handle } => {
                self.request_group(group, message, wait, handle, now)?;
            }
            Input::Ping { peer, handle } => self.ping(peer, handle, now)?,
            Input::Cancel { handle } => self.cancel(handle, now),
            Input::Notify { peer, token, response, confirmable, handle } => {
                let kind = if confirmable { Kind::Confirmable } else { Kind::NonConfirmable };
                let message = response.into_message(kind, MessageId(0), token);
                self.notify(peer, message, handle, now)?;
            }
            Input::Decline { exchange } => self.decline(exchange, now)?,
            Input::Datagram { from, bytes } => self.on_datagram(from, bytes, now),
            Input::GroupDatagram { from, bytes } => self.on_group_datagram(from, bytes, now),
            Input::Unreachable { peer } => self.on_unreachable(peer, now),
            Input::Deadline => self.on_deadline(now),
            Input::Deregister { .. } => return Err(NO_DEREGISTRATION),
            Input::Connected { .. } | Input::Release { .. } => {
                return Err(Rejected::Unsupported {
                    what: "connection",
                    why: "an endpoint over datagrams has none",
                });
            }
        }
        Ok(())
    }
    fn poll_output(&mut self) -> Option<Output<P>> {
        self.outbox.pop()
    }
    fn next_deadline(&self) -> Option<Instant> {
        let exchange = self.deadlines.first().map(|((due, _), ())| *due);
        earliest(exchange, self.paced.first().map(|(then, _)| *then))
    }
}

#[cfg(test)]
mod tests;
