//! A host: what an application talks to. Above the exchanges of a transport it puts bodies of any
//! length (RFC 7959), observers (RFC 7641), proof of addresses (RFC 9175), and answers that fit what
//! the client wishes (RFC 7252 s5.10).
//!
//! ```text
//!   application     whole requests and responses; `changed(path)`
//!       |
//!     Host          transfers | assemblies, representations, observers, challenges
//!       |
//!    Transport      Endpoint (datagrams) or Connections (byte streams)
//! ```
//!
//! A host takes the inputs and gives the outputs of its transport, so a driver does not care which
//! of the two it drives. It refuses only [`Input::Notify`]: an application says
//! [`Host::changed`] and is asked for the new state with [`Output::Request`]s like any other. An
//! application that cannot answer a request at once says [`Host::defer`].
//!
//! A response that carries Observe, with any value, says that the application keeps the observation
//! that its request asks for.
//!
//! ```
//! use lowmesh_coap::{Config, Host, HostLimits, Input, Output, RequestTemplate, ResponseTemplate};
//! use lowmesh_machine::{Handle, Machine};
//! use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
//! use lowmesh_wire::coap::Code;
//!
//! let host = |node| {
//!     let rng = Rng::stream(Seed(1), NodeId(node), Purpose::Coap);
//!     Host::over_datagrams(Config::default(), HostLimits::default(), rng)
//! };
//! let (mut client, mut server) = (host(1)?, host(2)?);
//! let now = Instant::ZERO;
//! let message = RequestTemplate::new(Code::PUT, "/firmware").with_payload(vec![7; 5000]);
//! client.handle(now, Input::Request { peer: "server", message, handle: Handle(1) }).unwrap();
//! // Block after block goes up; the application sees one request.
//! let code = loop {
//!     while let Some(output) = server.poll_output() {
//!         match output {
//!             Output::Send { bytes, .. } => {
//!                 client.handle(now, Input::Datagram { from: "server", bytes: &bytes }).unwrap();
//!             }
//!             Output::Request { exchange, message, .. } => {
//!                 assert_eq!(message.payload.len(), 5000);
//!                 let response = ResponseTemplate::new(Code::CHANGED);
//!                 let handle = Handle::NONE;
//!                 server.handle(now, Input::Respond { exchange, response, handle }).unwrap();
//!             }
//!             _ => {}
//!         }
//!     }
//!     match client.poll_output().expect("the exchange goes on") {
//!         Output::Send { bytes, .. } => {
//!             server.handle(now, Input::Datagram { from: "client", bytes: &bytes }).unwrap();
//!         }
//!         Output::Response { message, .. } => break message.code,
//!         _ => {}
//!     }
//! };
//! assert_eq!(code, Code::CHANGED);
//! # Ok::<(), lowmesh_coap::ConfigError>(())
//! ```

mod client;
mod limits;
mod notifications;
mod pace;
mod places;
mod refreshes;
mod server;
mod transport;

#[cfg(test)]
mod tests;

pub use limits::HostLimits;
pub use transport::Transport;

use lowmesh_machine::{Handle, Machine, Outbox, Rejected, earliest};
use lowmesh_units::{Instant, Rng};
use lowmesh_wire::coap::OptionNumber;

use crate::cache::Cache;
use crate::event::{Input, Output};
use crate::{
    Config, ConfigError, CongestionControl, ConnectionLimits, Connections, Endpoint, PeerAddress,
};
use client::Client;
use pace::Pace;
use server::Server;

/// The critical options beyond RFC 7252 that a host processes: what [`Config::extensions`] of its
/// endpoint has to name.
pub const EXTENSIONS: [OptionNumber; 2] = [OptionNumber::BLOCK1, OptionNumber::BLOCK2];

/// Client and server of one address over the transport `T`; `P` is the address of a peer.
#[derive(Debug)]
pub struct Host<P, T> {
    transport: T,
    limits: HostLimits,
    rng: Rng,
    client: Client<P>,
    server: Server<P>,
    cache: Cache<P>,
    /// The bursts of notifications.
    pace: Pace,
    outbox: Outbox<Output<P>>,
}

impl<P: PeerAddress> Host<P, Endpoint<P>> {
    /// A host over datagrams.
    pub fn over_datagrams(
        config: Config,
        limits: HostLimits,
        rng: Rng,
    ) -> Result<Self, ConfigError> {
        let mut config = config;
        config.extensions.extend(EXTENSIONS);
        config.amplification_max = limits.amplification_max;
        let mut rng = rng;
        let endpoint = Endpoint::new(config, rng.fork())?;
        Ok(Self::new(endpoint, limits, rng))
    }
}

impl<P: PeerAddress> Host<P, Connections<P>> {
    /// A host over connections.
    pub fn over_connections(connections: ConnectionLimits, limits: HostLimits, rng: Rng) -> Self {
        let mut connections = connections;
        connections.extensions.extend(EXTENSIONS);
        let mut rng = rng;
        Self::new(Connections::new(connections, rng.fork()), limits, rng)
    }
}

impl<P: PeerAddress, T: Transport<P>> Host<P, T> {
    /// A host over a transport that recognises [`EXTENSIONS`].
    pub fn new(transport: T, limits: HostLimits, rng: Rng) -> Self {
        let (client, server) = (Client::new(), Server::new(&limits, transport.lifetimes()));
        let cache = Cache::new(limits.cache_max);
        let (pace, outbox) = (Pace::new(), Outbox::new());
        Self { transport, limits, rng, client, server, cache, pace, outbox }
    }
    /// The transport, to look at.
    pub const fn transport(&self) -> &T {
        &self.transport
    }
    /// See [`Endpoint::choose_congestion_control`].
    pub fn choose_congestion_control(
        &mut self,
        peer: P,
        chosen: Option<CongestionControl>,
        now: Instant,
    ) -> Result<(), ConfigError> {
        self.transport.choose_congestion_control(peer, chosen, now)?;
        self.server.widen(self.transport.lifetimes());
        self.drain(now);
        Ok(())
    }
    /// Whether something has shown that a peer receives at its address.
    pub fn is_proven(&self, peer: P) -> bool {
        self.transport.is_proven(peer)
    }
    /// Octets of bodies that the server keeps, with what each costs beside them: of requests that are not complete, of
    /// responses whose later blocks may be asked for, and of states that wait to be sent to observers.
    pub const fn body_octets(&self) -> usize {
        self.server.body_octets()
    }
    /// Forgets these bodies. The next block of a request is answered with 4.08 (RFC 7959 s2.9.2), and a response is made
    /// again for its next block. The application is asked for a state again when its observer has its turn.
    pub fn forget_bodies(&mut self) {
        self.server.forget_bodies();
    }
    /// How many octets of messages may leave before notifications have to wait, on a connection: its driver says so when
    /// octets have left or have been queued.
    pub fn set_room(&mut self, octets: usize, now: Instant) {
        self.transport.set_room(octets);
        self.drain(now);
    }
    /// Lowers how many observers the server takes, at most as many as its limits say. Those that there are stay.
    pub fn set_observers_max(&mut self, observers_max: usize) {
        self.server.registry.set_max(observers_max.min(self.limits.observers_max));
    }
    /// How many observers the server has.
    pub fn observers(&self) -> usize {
        self.server.observers()
    }
    /// Deals with what the transport wants until it wants nothing; what it has room for then is
    /// notifications.
    fn drain(&mut self, now: Instant) {
        loop {
            while let Some(output) = self.transport.poll_output() {
                self.on_output(output, now);
            }
            if !self.notifies(now) {
                break;
            }
            self.notify_waiting(now);
        }
        while let Some(id) = self.server.registry.next_stale() {
            self.server.refreshes.changed(id);
        }
        self.ask_for_states(now);
        while let Some((peer, token)) = self.server.registry.next_left() {
            self.transport.on_observer_left(peer, &token);
        }
    }
    /// Whether an observer is to be notified now, and can be.
    pub(super) fn notifies(&self, now: Instant) -> bool {
        let due = self.server.next_deadline().is_some_and(|due| due <= now);
        let crowded = self.server.registry.first_crowded();
        let room = crowded.is_some_and(|peer| self.transport.room_at(peer, now).is_none());
        (due || room) && self.transport.has_room() && self.pace.not_before() <= now
    }

    fn on_output(&mut self, output: Output<P>, now: Instant) {
        match output {
            Output::Request { exchange, from, message, multicast } => {
                self.on_request(exchange, from, message, multicast, now);
            }
            Output::Response { handle, from, message, rtt, retransmissions } => {
                self.on_response(handle, from, message, (rtt, retransmissions), now);
            }
            Output::Notification { handle, from, message } => {
                self.on_notification(handle, from, message, now);
            }
            Output::GroupResponse { handle, from, message, rtt } => {
                self.on_group_response(handle, from, message, rtt, now);
            }
            Output::Over { handle } => self.on_over(handle),
            Output::Failed { handle, reason } => self.on_failed(handle, reason, now),
            Output::Acknowledged { handle, rtt, retransmissions } => {
                if !self.on_notification_acknowledged(handle, now) {
                    let handle = self.client.name(handle);
                    self.outbox.push(Output::Acknowledged { handle, rtt, retransmissions });
                }
            }
            Output::Pong { handle, rtt, retransmissions } => {
                let handle = self.client.close(handle);
                self.outbox.push(Output::Pong { handle, rtt, retransmissions });
            }
            Output::Started { handle, rto, at } => {
                let handle = self.client.start(handle, at);
                self.outbox.push(Output::Started { handle, rto, at });
            }
            Output::Send { to, bytes, handle, copy, purpose } => {
                let handle = self.client.name(handle);
                self.outbox.push(Output::Send { to, bytes, handle, copy, purpose });
            }
            Output::Close { peer } => {
                self.on_gone(peer);
                self.outbox.push(output);
            }
            Output::Discarded { .. } => self.outbox.push(output),
        }
    }

    fn input(&mut self, now: Instant, input: Input<'_, P>) -> Result<(), Rejected> {
        match input {
            Input::Request { peer, message, handle } => self.ask(peer, message, handle, now),
            Input::RequestVerified { .. } | Input::Accept { .. } => Err(Rejected::Unsupported {
                what: "request",
                why: "what verifies responses stands below a host",
            }),
            Input::RequestGroup { group, message, wait, handle } => {
                self.ask_group(group, message, wait, handle, now)
            }
            Input::Ping { peer, handle } => {
                let inner = self.client.open_plain(peer, handle);
                let asked = self.transport.handle(now, Input::Ping { peer, handle: inner });
                self.keep_if_accepted(inner, asked)
            }
            Input::Cancel { handle } => self.cancel(handle, now),
            Input::Deregister { handle } => self.deregister(handle, now),
            Input::Notify { .. } => Err(Rejected::Unsupported {
                what: "notification",
                why: "a host notifies by itself: say which path has changed",
            }),
            Input::Respond { exchange, response, handle } => {
                self.respond(exchange, response, handle, now)
            }
            Input::Decline { exchange } => {
                if exchange.is_refresh() {
                    self.decline_state(exchange, now);
                    return Ok(());
                }
                self.server.forget(exchange);
                self.transport.handle(now, Input::Decline { exchange })
            }
            Input::Unreachable { peer } => {
                let result = self.transport.handle(now, Input::Unreachable { peer });
                self.on_gone(peer);
                result
            }
            Input::Deadline => self.transport.handle(now, Input::Deadline),
            Input::Datagram { from, .. } => {
                let result = self.transport.handle(now, input);
                // Any datagram may earn an observer credit.
                self.server.registry.on_heard(from, now);
                result
            }
            Input::Connected { peer, .. } => {
                let result = self.transport.handle(now, input);
                // The connection that had this name before has ended.
                self.on_gone(peer);
                result
            }
            Input::GroupDatagram { .. } | Input::Release { .. } => {
                self.transport.handle(now, input)
            }
        }
    }

    /// A peer cannot be reached any more, or its connection has ended.
    fn on_gone(&mut self, peer: P) {
        let transport = &self.transport;
        self.server.on_gone(peer, |id| transport.awaits_response(id));
    }

    /// A request whose transport did not take it leaves no trace.
    fn keep_if_accepted(
        &mut self,
        inner: Handle,
        asked: Result<(), Rejected>,
    ) -> Result<(), Rejected> {
        if asked.is_err() {
            self.client.close(inner);
        }
        asked
    }
}

impl<P: PeerAddress, T: Transport<P>> Machine for Host<P, T> {
    type Input<'a> = Input<'a, P>;
    type Output = Output<P>;

    fn handle(&mut self, now: Instant, input: Input<'_, P>) -> Result<(), Rejected> {
        let result = self.input(now, input);
        self.drain(now);
        result
    }
    fn poll_output(&mut self) -> Option<Output<P>> {
        self.outbox.pop()
    }
    fn next_deadline(&self) -> Option<Instant> {
        // Without room the transport has to make progress first.
        let due = self.server.next_deadline();
        let crowded = self.server.registry.first_crowded();
        let crowded = crowded.filter(|peer| self.transport.room_at(*peer, Instant::ZERO).is_none());
        let due = earliest(due, crowded.map(|_| Instant::ZERO));
        let due = due.filter(|_| self.transport.has_room());
        earliest(self.transport.next_deadline(), due.map(|due| due.max(self.pace.not_before())))
    }
}
