//! What a host stands on: exchanges with peers, over datagrams or byte streams.

use lowmesh_machine::Machine;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::Token;

use crate::blockwise::Exponent;
use crate::exchange::{Association, ExchangeId, Input, Output};
use crate::params::MESSAGE_OVERHEAD;
use crate::{ConfigError, CongestionControl, Endpoint, Lifetimes, PeerAddress};

/// Exchanges of requests and responses with peers of address `P`.
pub trait Transport<P>: for<'a> Machine<Input<'a> = Input<'a, P>, Output = Output<P>> {
    /// The largest blocks that a message to `peer` takes, and how many octets of payload it holds.
    fn block_limits(&self, peer: P) -> (Exponent, usize);
    /// Whether `block_limits` are guesses until the peer has said what it takes. Only a connection waits for that, until the
    /// first CSM (RFC 8323 s5.3), or until it ends without one.
    fn awaits_capabilities(&self, _peer: P) -> bool {
        false
    }
    /// How many requests of this host may be open at once.
    fn requests_max(&self) -> usize {
        usize::MAX
    }
    /// Whether a message of `peer` may have the blocks of BERT, which only connections carry (RFC 8323 s6).
    fn takes_bert(&self, peer: P) -> bool {
        self.block_limits(peer).0.is_bert()
    }
    /// Gives a destination a congestion control of its own, or with `None` that of the transport again:
    /// see [`Endpoint::choose_congestion_control`].
    fn choose_congestion_control(
        &mut self,
        peer: P,
        chosen: Option<CongestionControl>,
        now: Instant,
    ) -> Result<(), ConfigError>;
    /// The lifetimes of messages (RFC 7252 s4.8.2), the widest of all destinations.
    fn lifetimes(&self) -> Lifetimes {
        Lifetimes::default()
    }
    /// Over how long the members of a group spread messages of so many octets to one client.
    fn leisure(&self, _octets: usize) -> Duration {
        Duration::ZERO
    }
    /// Whether something has shown that a peer receives at its address, as a connection always does.
    fn is_proven(&self, peer: P) -> bool;
    /// A peer has shown that it receives at its address.
    fn prove(&mut self, peer: P, now: Instant);
    /// Gives an unproven peer octets of credit that it has earned before.
    fn grant(&mut self, _peer: P, _octets: usize, _now: Instant) {}
    /// Takes what is left of an unproven peer's credit, to be granted later.
    fn set_aside(&mut self, _peer: P, _now: Instant) -> usize {
        0
    }
    /// Whether notifications to an observer can be sent by this transport.
    fn keeps_observer(&self, _peer: P, _token: &Token) -> bool {
        true
    }
    /// Whether a request of a peer can still be answered.
    fn awaits_response(&self, exchange: ExchangeId) -> bool;
    /// The name of the key that protects a request of a peer.
    fn identity(&self, _exchange: ExchangeId) -> Option<&[u8]> {
        None
    }
    /// What protects a request of a peer, before it is answered. Blocks under different associations are never of one
    /// body (RFC 9175 s3.5.1).
    fn association(&self, _exchange: ExchangeId) -> Association {
        Association::Open
    }
    /// Octets of a message that may leave to a peer now: no bound for proven addresses.
    fn credit(&self, peer: P, now: Instant) -> usize;
    /// Whether there is room for one more notification to a proven address.
    fn has_room(&self) -> bool;
    /// How many octets of messages may leave before notifications have to wait. Datagrams have a room of their own.
    fn set_room(&mut self, _octets: usize) {}
    /// When there is room for one more notification to a peer: `None` means now.
    fn room_at(&self, _peer: P, _now: Instant) -> Option<Instant> {
        None
    }
    /// The host has forgotten an observer: nothing more is sent to it.
    fn on_observer_left(&mut self, _peer: P, _token: &Token) {}
    /// Whether there is one peer only, as on a connection that has a transport of its own.
    fn is_alone(&self) -> bool;
}

impl<P: PeerAddress> Transport<P> for Endpoint<P> {
    fn block_limits(&self, _peer: P) -> (Exponent, usize) {
        let room = self.message_len_max().saturating_sub(MESSAGE_OVERHEAD);
        (Exponent::fitting(room), room)
    }
    fn choose_congestion_control(
        &mut self,
        peer: P,
        chosen: Option<CongestionControl>,
        now: Instant,
    ) -> Result<(), ConfigError> {
        Self::choose_congestion_control(self, peer, chosen, now)
    }
    fn lifetimes(&self) -> Lifetimes {
        self.widest_lifetimes()
    }
    fn leisure(&self, octets: usize) -> Duration {
        Self::leisure(self, octets)
    }
    fn is_proven(&self, peer: P) -> bool {
        Self::is_proven(self, peer)
    }
    fn prove(&mut self, peer: P, now: Instant) {
        Self::prove(self, peer, now);
    }
    fn grant(&mut self, peer: P, octets: usize, now: Instant) {
        Self::grant(self, peer, octets, now);
    }
    fn set_aside(&mut self, peer: P, now: Instant) -> usize {
        Self::set_aside(self, peer, now)
    }
    fn awaits_response(&self, exchange: ExchangeId) -> bool {
        Self::awaits_response(self, exchange)
    }
    fn credit(&self, peer: P, now: Instant) -> usize {
        Self::credit(self, peer, now)
    }
    fn has_room(&self) -> bool {
        Self::has_room(self)
    }
    fn room_at(&self, peer: P, now: Instant) -> Option<Instant> {
        Self::room_at(self, peer, now)
    }
    fn is_alone(&self) -> bool {
        false
    }
}
