//! CoAP over connections: TCP, TLS, WebSockets (RFC 8323).
//!
//! [`Connections`] is to byte streams what [`Endpoint`](crate::Endpoint) is to datagrams, with the
//! same inputs and outputs: there are no message IDs, acknowledgements or retransmissions, requests
//! and responses match by token alone, and signaling messages say what the ends can do and how the
//! connection ends.
//!
//! ```text
//!              Connected            CSM of the peer        Release of either
//!   (driver) ------------> Opening ----------------> Open -------------------> Releasing
//!                             |                        |      nothing open any more |
//!                             +--- first message no CSM, none in time, -------------+--> Close
//!                                  format error, Abort
//! ```
//!
//! The driver connects, passes octets on as they come, and closes the connection on [`Output::Close`].

mod connection;
mod exchange;
mod limits;
mod reception;

#[cfg(test)]
mod tests;

pub use limits::ConnectionLimits;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Machine, Outbox, Rejected, earliest};
use lowmesh_units::{Instant, Rng};
use lowmesh_wire::coap::signaling::Signal;
use lowmesh_wire::coap::stream::{Framing, StreamMessage};
use lowmesh_wire::coap::{OptionNumber, Token};

use crate::blockwise::Exponent;
use crate::event::{Counters, Discard, ExchangeId, Input, Output, Purpose};
use crate::observe::NO_DEREGISTRATION;
use crate::params::MESSAGE_OVERHEAD;
use crate::{ConfigError, CongestionControl, PeerAddress, Transport};
use connection::{Connection, State};
use exchange::{Asked, Waiting};

/// Client and server over connections; `P` names a connection.
#[derive(Debug)]
pub struct Connections<P> {
    limits: ConnectionLimits,
    rng: Rng,
    open: BTreeMap<P, Connection>,
    /// Own requests and pings that wait for an answer.
    waiting: BTreeMap<ExchangeId, Waiting<P>>,
    by_token: BTreeMap<(P, Token), ExchangeId>,
    /// Requests of peers that the application has not answered.
    asked: BTreeMap<ExchangeId, Asked<P>>,
    deadlines: BTreeSet<(Instant, ExchangeId)>,
    /// Until when the CSM of a peer may come.
    greetings: BTreeSet<(Instant, P)>,
    serial: u64,
    /// Octets that may leave before notifications have to wait; `None` without bound.
    room: Option<usize>,
    outbox: Outbox<Output<P>>,
    counters: Counters,
}

impl<P: PeerAddress> Connections<P> {
    /// No connection yet. All random numbers come from `rng`.
    pub const fn new(limits: ConnectionLimits, rng: Rng) -> Self {
        Self {
            limits,
            rng,
            open: BTreeMap::new(),
            waiting: BTreeMap::new(),
            by_token: BTreeMap::new(),
            asked: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            greetings: BTreeSet::new(),
            serial: 0,
            room: None,
            outbox: Outbox::new(),
            counters: Counters::new(),
        }
    }
    /// Connections that are not closed.
    pub fn len(&self) -> usize {
        self.open.len()
    }
    /// True without connections.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
    /// True once the peer's CSM has come, until the connection is released.
    pub fn is_open(&self, peer: P) -> bool {
        self.open.get(&peer).is_some_and(|one| one.state == State::Open)
    }
    /// Requests of peers that the application has not answered.
    pub fn incoming(&self) -> usize {
        self.asked.len()
    }
    /// How often messages came to nothing.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    const fn next_id(&mut self) -> ExchangeId {
        self.serial += 1;
        ExchangeId(self.serial)
    }
    fn knows(&self, number: OptionNumber) -> bool {
        self.limits.extensions.contains(&number)
    }
    fn discard(&mut self, from: P, cause: Discard) {
        self.counters.count(cause);
        self.outbox.push(Output::Discarded { from, cause });
    }
    /// Sends a message on a connection, if that is still there.
    fn send(&mut self, to: P, message: &StreamMessage, handle: Handle, purpose: Purpose) {
        let Some(connection) = self.open.get(&to) else { return };
        let bytes = connection.bytes_of(message);
        self.room = self.room.map(|room| room.saturating_sub(bytes.len()));
        self.outbox.push(Output::Send { to, bytes, handle, copy: 0, purpose });
    }
    fn signal(&mut self, to: P, signal: Signal, token: Token) {
        self.send(to, &signal.into_message(token), Handle::NONE, Purpose::Empty);
    }
    /// A driver has connected, or a peer has.
    fn on_connected(&mut self, peer: P, framing: Framing, now: Instant) {
        self.end(peer, DropReason::NoRoute);
        let of_source = self.open.keys().filter(|one| one.source() == peer.source()).count();
        let share = self.limits.connections_per_source;
        if self.open.len() >= self.limits.connections_max || of_source >= share {
            self.discard(peer, Discard::Overloaded);
            self.outbox.push(Output::Close { peer });
            return;
        }
        let greeted_by = now + self.limits.csm_timeout;
        self.greetings.insert((greeted_by, peer));
        self.open.insert(peer, Connection::new(framing, greeted_by));
        // RFC 8323 s5.3: a CSM MUST be the first message of both ends.
        let csm = Signal::Csm(self.limits.capabilities());
        self.signal(peer, csm, Token::EMPTY);
    }
    /// The connection ends at once: whatever is open on it has failed.
    fn end(&mut self, peer: P, reason: DropReason) {
        let Some(connection) = self.open.remove(&peer) else { return };
        self.greetings.remove(&(connection.greeted_by, peer));
        self.asked.retain(|_, asked| asked.peer != peer);
        let open = self.waiting.iter().filter(|(_, waiting)| waiting.peer == peer);
        let open: Vec<ExchangeId> = open.map(|(id, _)| *id).collect();
        for id in open {
            if let Some(Waiting { handle, .. }) = self.forget(id) {
                self.outbox.push(Output::Failed { handle, reason });
            }
        }
    }
    /// Ends a connection whose peer broke the rules (RFC 8323 s5.6).
    fn abort(&mut self, peer: P, bad_csm_option: Option<u16>, diagnostic: &str) {
        let diagnostic = diagnostic.into();
        self.signal(peer, Signal::Abort { bad_csm_option, diagnostic }, Token::EMPTY);
        self.end(peer, DropReason::Malformed);
        self.outbox.push(Output::Close { peer });
    }
    /// The application wants a connection to end in order (RFC 8323 s5.5).
    fn release(&mut self, peer: P) {
        let Some(connection) = self.open.get_mut(&peer) else { return };
        if connection.state == State::Releasing {
            return;
        }
        connection.state = State::Releasing;
        let release =
            Signal::Release { alternatives: Vec::new(), hold_off: None, diagnostic: String::new() };
        self.signal(peer, release, Token::EMPTY);
        self.close_if_done(peer);
    }
    /// Closes a connection that is being released once nothing is open on it.
    fn close_if_done(&mut self, peer: P) {
        if self.open.get(&peer).is_none_or(|one| one.state != State::Releasing) {
            return;
        }
        // An observation would keep the connection for ever, and a Ping as long as its peer is silent.
        let is_open = |one: &Waiting<P>| one.due.is_some() && one.purpose == Purpose::Request;
        let busy = self.asked.values().any(|asked| asked.peer == peer)
            || self.waiting.values().any(|one| one.peer == peer && is_open(one));
        if !busy {
            self.end(peer, DropReason::NoRoute);
            self.outbox.push(Output::Close { peer });
        }
    }
    fn on_deadline(&mut self, now: Instant) {
        while let Some((due, peer)) = self.greetings.first().copied()
            && due <= now
        {
            self.greetings.remove(&(due, peer));
            // RFC 8323 s5.3: a missing CSM is a connection error.
            self.abort(peer, None, "no CSM came in time");
        }
        while let Some((due, id)) = self.deadlines.first().copied()
            && due <= now
        {
            if let Some(Waiting { peer, handle, .. }) = self.forget(id) {
                self.outbox.push(Output::Failed { handle, reason: DropReason::GaveUp });
                self.close_if_done(peer);
            }
            self.deadlines.remove(&(due, id));
        }
    }
}

impl<P: PeerAddress> Machine for Connections<P> {
    type Input<'a> = Input<'a, P>;
    type Output = Output<P>;

    fn handle(&mut self, now: Instant, input: Input<'_, P>) -> Result<(), Rejected> {
        match input {
            Input::Connected { peer, framing } => {
                self.on_connected(peer, framing, now);
            }
            Input::Release { peer } => self.release(peer),
            Input::Unreachable { peer } => self.end(peer, DropReason::NoRoute),
            Input::Datagram { from, bytes } => self.on_octets(from, bytes, now),
            Input::Request { peer, message, handle } => {
                self.request(peer, message, false, handle, now)?;
            }
            Input::RequestVerified { peer, message, handle } => {
                self.request(peer, message, true, handle, now)?;
            }
            Input::Accept { handle, observes } => self.accept(handle, observes),
            Input::Ping { peer, handle } => self.ping(peer, handle, now),
            Input::Cancel { handle } => self.cancel(handle),
            Input::Respond { exchange, response, handle } => {
                self.respond(exchange, response, handle)?;
            }
            Input::Decline { exchange } => self.decline(exchange)?,
            Input::Notify { peer, token, response, confirmable, handle } => {
                self.notify(peer, token, response, confirmable, handle)?;
            }
            Input::Deadline => self.on_deadline(now),
            Input::Deregister { .. } => return Err(NO_DEREGISTRATION),
            Input::RequestGroup { .. } | Input::GroupDatagram { .. } => {
                return Err(Rejected::Unsupported {
                    what: "multicast",
                    why: "a connection has one peer: use an endpoint over datagrams",
                });
            }
        }
        Ok(())
    }
    fn poll_output(&mut self) -> Option<Output<P>> {
        self.outbox.pop()
    }
    fn next_deadline(&self) -> Option<Instant> {
        let answer = self.deadlines.first().map(|(due, _)| *due);
        earliest(answer, self.greetings.first().map(|(due, _)| *due))
    }
}

impl<P: PeerAddress> Transport<P> for Connections<P> {
    fn block_limits(&self, peer: P) -> (Exponent, usize) {
        let Some(connection) = self.open.get(&peer) else { return (Exponent::MAX, 1024) };
        let message_max = usize::try_from(connection.peer.max_message_size).unwrap_or(usize::MAX);
        let room = message_max.min(self.limits.message_max).saturating_sub(MESSAGE_OVERHEAD);
        // RFC 8323 s5.3.2: BERT is for peers that take it.
        let most = if connection.peer.bert() { Exponent::BERT } else { Exponent::fitting(room) };
        (most, room)
    }
    fn choose_congestion_control(
        &mut self,
        _peer: P,
        _chosen: Option<CongestionControl>,
        _now: Instant,
    ) -> Result<(), ConfigError> {
        Err(ConfigError::NoCongestionControl)
    }
    fn is_proven(&self, _peer: P) -> bool {
        true
    }
    fn prove(&mut self, _peer: P, _now: Instant) {}
    fn awaits_response(&self, exchange: ExchangeId) -> bool {
        self.asked.contains_key(&exchange)
    }
    fn credit(&self, _peer: P, _now: Instant) -> usize {
        usize::MAX
    }
    fn has_room(&self) -> bool {
        self.room != Some(0)
    }
    fn set_room(&mut self, octets: usize) {
        self.room = Some(octets);
    }
    fn is_alone(&self) -> bool {
        self.open.len() <= 1
    }
}
