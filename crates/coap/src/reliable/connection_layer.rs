//! The connections, and the messages that leave on them: what all exchanges over connections stand on (RFC 8323 s3, s5.3).
//!
//! ```text
//!   Connections       octets have come: what they are; how a connection ends
//!   Requests          requests of peers, until they are answered
//!   OwnExchanges      requests and pings of this end, until they are over
//!   ConnectionLayer   connections, greetings, room for notifications, outputs
//! ```
//! Each calls those below it, which are lent to it for the call.

use alloc::collections::{BTreeMap, BTreeSet};

use lowmesh_units::{Instant, Rng};
use lowmesh_wire::coap::signaling::{Capabilities, Signal};
use lowmesh_wire::coap::stream::{Framing, StreamMessage};
use lowmesh_wire::coap::{TOKEN_LEN_MAX, Token};

use super::ConnectionLimits;
use super::connection::{Connection, State};
use crate::PeerAddress;
use crate::event::Purpose;
use crate::exchange::{ExchangeIds, Name, Output};
use crate::outputs::Outputs;
use crate::refusal::Understanding;

/// All connections.
#[derive(Debug)]
pub(super) struct ConnectionLayer<P> {
    pub(super) limits: ConnectionLimits,
    pub(super) rng: Rng,
    pub(super) ids: ExchangeIds,
    pub(super) outputs: Outputs<P>,
    pub(super) open: BTreeMap<P, Connection>,
    /// Until when the CSM of a peer may come.
    greetings: BTreeSet<(Instant, P)>,
    /// Octets that may leave before notifications have to wait; `None` without bound.
    pub(super) room: Option<usize>,
}

impl<P: PeerAddress> ConnectionLayer<P> {
    /// No connection yet.
    pub(super) const fn new(limits: ConnectionLimits, rng: Rng) -> Self {
        Self {
            limits,
            rng,
            ids: ExchangeIds::new(),
            outputs: Outputs::new(),
            open: BTreeMap::new(),
            greetings: BTreeSet::new(),
            room: None,
        }
    }
    /// What it understands of the messages of peers.
    pub(super) fn understanding(&self) -> Understanding<'_> {
        let ConnectionLimits { extensions, proxy, reverse_proxy, .. } = &self.limits;
        let (proxy, reverse_proxy, token_len_max) = (*proxy, *reverse_proxy, TOKEN_LEN_MAX);
        Understanding { extensions, proxy, reverse_proxy, token_len_max }
    }
    /// How far a connection has come.
    pub(super) fn state(&self, peer: P) -> Option<State> {
        self.open.get(&peer).map(|one| one.state)
    }
    /// Whether there is room for one more connection of this source.
    pub(super) fn takes(&self, peer: P) -> bool {
        let of_source = self.open.keys().filter(|one| one.source() == peer.source()).count();
        self.open.len() < self.limits.connections_max
            && of_source < self.limits.connections_per_source
    }
    /// A connection begins. The CSM of its peer is waited for.
    pub(super) fn add(&mut self, peer: P, framing: Framing, now: Instant) {
        let greeted_by = now + self.limits.csm_timeout;
        self.greetings.insert((greeted_by, peer));
        self.open.insert(peer, Connection::new(framing, greeted_by));
        // RFC 8323 s5.3: a CSM MUST be the first message of both ends.
        let csm = Signal::Csm(self.limits.capabilities());
        self.signal(peer, csm, Token::EMPTY);
    }
    /// A connection is over; false if there is none.
    pub(super) fn remove(&mut self, peer: P) -> bool {
        let Some(connection) = self.open.remove(&peer) else { return false };
        self.greetings.remove(&(connection.greeted_by, peer));
        true
    }
    /// The CSM of a peer has come.
    pub(super) fn on_csm(&mut self, from: P, capabilities: Capabilities) {
        let Some(connection) = self.open.get_mut(&from) else { return };
        connection.peer.apply(capabilities);
        self.greetings.remove(&(connection.greeted_by, from));
        if connection.state == State::Opening {
            connection.state = State::Open;
        }
    }
    /// A peer whose CSM has not come in time.
    pub(super) fn next_overdue(&mut self, now: Instant) -> Option<P> {
        let (due, peer) = self.greetings.first().copied().filter(|(due, _)| *due <= now)?;
        self.greetings.remove(&(due, peer));
        Some(peer)
    }
    /// Until when the CSM of a peer may come.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.greetings.first().map(|(due, _)| *due)
    }
    /// Requests of the source of a peer that the application has not answered.
    pub(super) fn incoming_of_source(&self, peer: P) -> usize {
        let of_source = self.open.iter().filter(|(one, _)| one.source() == peer.source());
        of_source.map(|(_, one)| one.incoming).sum()
    }
    /// Whether there is one connection at most.
    pub(super) fn is_alone(&self) -> bool {
        self.open.len() <= 1
    }

    /// RFC 8323 s5.3.1: a message MUST NOT be longer than the peer takes.
    pub(super) fn fits(&self, peer: P, message: &StreamMessage) -> bool {
        self.open.get(&peer).is_none_or(|one| {
            let most = usize::try_from(one.peer.max_message_size).unwrap_or(usize::MAX);
            message.encoded_len(one.framing()) <= most
        })
    }
    /// Sends a message on a connection, if that is still there.
    pub(super) fn send(&mut self, to: P, message: &StreamMessage, handle: Name, purpose: Purpose) {
        let Some(connection) = self.open.get(&to) else { return };
        let bytes = connection.bytes_of(message);
        self.room = self.room.map(|room| room.saturating_sub(bytes.len()));
        self.outputs.push(Output::Send { to, bytes, handle, copy: 0, purpose });
    }
    /// Sends a signaling message.
    pub(super) fn signal(&mut self, to: P, signal: Signal, token: Token) {
        self.send(to, &signal.into_message(token), Name::NONE, Purpose::Empty);
    }
}
