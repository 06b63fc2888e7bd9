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
mod connection_layer;
mod incoming;
mod limits;
mod message;
mod own;
mod reception;

#[cfg(test)]
mod tests;

pub use limits::ConnectionLimits;

use lowmesh_machine::{DropReason, Machine, Rejected, earliest};
use lowmesh_units::{Instant, Rng};

use crate::blockwise::Exponent;
use crate::event::Counters;
use crate::exchange::{ConnectionInput, ExchangeId, Input, NO_GROUPS, Output};
use crate::params::MESSAGE_OVERHEAD;
use crate::{ConfigError, CongestionControl, PeerAddress, Transport};
use connection::State;
use connection_layer::ConnectionLayer;
use incoming::{Requests, notify};
use own::OwnExchanges;

/// Client and server over connections; `P` names a connection.
#[derive(Debug)]
pub struct Connections<P> {
    layer: ConnectionLayer<P>,
    own: OwnExchanges<P>,
    requests: Requests<P>,
}

impl<P: PeerAddress> Connections<P> {
    /// No connection yet. All random numbers come from `rng`.
    pub const fn new(limits: ConnectionLimits, rng: Rng) -> Self {
        let layer = ConnectionLayer::new(limits, rng);
        Self { layer, own: OwnExchanges::new(), requests: Requests::new() }
    }
    /// Connections that are not closed.
    pub fn len(&self) -> usize {
        self.layer.open.len()
    }
    /// True without connections.
    pub fn is_empty(&self) -> bool {
        self.layer.open.is_empty()
    }
    /// True while there is a connection to the peer that takes requests.
    pub fn has(&self, peer: P) -> bool {
        self.layer.state(peer).is_some_and(|state| state != State::Releasing)
    }
    /// True once the peer's CSM has come, until the connection is released.
    pub fn is_open(&self, peer: P) -> bool {
        self.layer.state(peer) == Some(State::Open)
    }
    /// Own requests and pings that are not answered, and observations.
    pub fn open(&self) -> usize {
        self.own.len()
    }
    /// Requests of peers that the application has not answered.
    pub fn incoming(&self) -> usize {
        self.requests.len()
    }
    /// How often messages came to nothing.
    pub const fn counters(&self) -> Counters {
        self.layer.outputs.counters
    }
}

impl<P: PeerAddress> Machine for Connections<P> {
    type Input<'a> = Input<'a, P>;
    type Output = Output<P>;

    fn handle(&mut self, now: Instant, input: Input<'_, P>) -> Result<(), Rejected> {
        let Self { layer, own, requests } = self;
        // What an exchange that is over leaves behind: a connection that may be released.
        let ended = match input {
            Input::Connection(ConnectionInput::Connected { peer, framing }) => {
                self.on_connected(peer, framing, now);
                None
            }
            Input::Connection(ConnectionInput::Release { peer }) => {
                self.release(peer);
                None
            }
            Input::Unreachable { peer } | Input::SessionEnded { peer, .. } => {
                self.end(peer, DropReason::NoRoute);
                None
            }
            Input::Datagram { from, bytes } => {
                self.on_octets(from, bytes, now);
                None
            }
            Input::Request { peer, message, handle } => {
                own.request(layer, peer, message, false, handle, now)?;
                None
            }
            Input::RequestVerified { peer, message, handle } => {
                own.request(layer, peer, message, true, handle, now)?;
                None
            }
            Input::Accept { handle, observes } => own.accept(handle, observes),
            Input::Ping { peer, handle } => {
                own.ping(layer, peer, handle, now);
                None
            }
            Input::Cancel { handle } => own.cancel(layer, handle),
            Input::Respond { exchange, response, handle } => {
                Some(requests.respond(layer, exchange, response, handle)?)
            }
            Input::Decline { exchange } => Some(requests.decline(layer, exchange)?),
            Input::Notify { peer, token, response, confirmable, handle } => {
                notify(layer, peer, token, response, confirmable, handle)?;
                None
            }
            Input::Deadline => {
                self.on_deadline(now);
                None
            }
            Input::Group(_) => return Err(NO_GROUPS),
        };
        if let Some(peer) = ended {
            self.close_if_done(peer);
        }
        Ok(())
    }
    fn poll_output(&mut self) -> Option<Output<P>> {
        self.layer.outputs.pop()
    }
    fn next_deadline(&self) -> Option<Instant> {
        earliest(self.own.next_deadline(), self.layer.next_deadline())
    }
}

impl<P: PeerAddress> Transport<P> for Connections<P> {
    fn block_limits(&self, peer: P) -> (Exponent, usize) {
        let Some(connection) = self.layer.open.get(&peer) else { return (Exponent::MAX, 1024) };
        let message_max = usize::try_from(connection.peer.max_message_size).unwrap_or(usize::MAX);
        let room = message_max.min(self.layer.limits.message_max).saturating_sub(MESSAGE_OVERHEAD);
        // RFC 8323 s5.3.2: BERT is for peers that take it.
        let most = if connection.peer.bert() { Exponent::BERT } else { Exponent::fitting(room) };
        (most, room)
    }
    fn requests_max(&self) -> usize {
        self.layer.limits.open_max
    }
    fn awaits_capabilities(&self, peer: P) -> bool {
        self.layer.state(peer) == Some(State::Opening)
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
        self.requests.contains(exchange)
    }
    fn credit(&self, _peer: P, _now: Instant) -> usize {
        usize::MAX
    }
    fn has_room(&self) -> bool {
        self.layer.room != Some(0)
    }
    fn set_room(&mut self, octets: usize) {
        self.layer.room = Some(octets);
    }
    fn is_alone(&self) -> bool {
        self.layer.is_alone()
    }
}
