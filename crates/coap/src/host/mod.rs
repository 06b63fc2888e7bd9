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
//! The application says [`Host::changed`] of a resource and is asked for the new state with [`Output::Request`]s like any
//! other. An application that cannot answer a request at once says [`Host::defer`].
//!
//! A response that carries Observe, with any value, says that the application keeps the observation
//! that its request asks for.
//!
//! ```
//! use lowmesh_coap::{Config, Host, HostLimits, Input, Output, RequestTemplate, ResponseTemplate};
//! use lowmesh_machine::{DropReason, Handle, Machine};
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
mod event;
mod exchange_layer;
mod limits;
mod notifier;
mod pace;
mod places;
mod refreshes;
mod server;
mod transport;

#[cfg(test)]
mod tests;

pub use event::{IncomingId, Input, Output, StateId};
pub use limits::HostLimits;
pub use transport::Transport;

use lowmesh_machine::{DropReason, Machine, Rejected, earliest};
use lowmesh_units::{Instant, Rng};
use lowmesh_wire::coap::{Message, OptionNumber};

use crate::blockwise::Block;
use crate::event::ResponseTemplate;
use crate::exchange::{self, ConnectionInput, GroupInput, Name};
use crate::{
    Config, ConfigError, CongestionControl, ConnectionLimits, Connections, Endpoint, PeerAddress,
};
use client::Client;
use exchange_layer::ExchangeLayer;
use server::Server;

/// The critical options beyond RFC 7252 that a host processes: what [`Config::extensions`] of its
/// endpoint has to name.
pub const EXTENSIONS: [OptionNumber; 2] = [OptionNumber::BLOCK1, OptionNumber::BLOCK2];

/// Client and server of one address over the transport `T`; `P` is the address of a peer.
#[derive(Debug)]
pub struct Host<P, T> {
    layer: ExchangeLayer<P, T>,
    client: Client<P>,
    server: Server<P>,
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
        let client = Client::new(limits.cache_max);
        let server = Server::new(&limits, transport.lifetimes());
        Self { layer: ExchangeLayer::new(transport, limits, rng), client, server }
    }
    /// The transport, to look at.
    pub const fn transport(&self) -> &T {
        &self.layer.transport
    }
    /// See [`Endpoint::choose_congestion_control`].
    pub fn choose_congestion_control(
        &mut self,
        peer: P,
        chosen: Option<CongestionControl>,
        now: Instant,
    ) -> Result<(), ConfigError> {
        self.layer.transport.choose_congestion_control(peer, chosen, now)?;
        self.server.widen(self.layer.transport.lifetimes());
        self.drain(now);
        Ok(())
    }
    /// Whether something has shown that a peer receives at its address.
    pub fn is_proven(&self, peer: P) -> bool {
        self.layer.transport.is_proven(peer)
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
        self.layer.transport.set_room(octets);
        self.drain(now);
    }
    /// Lowers how many observers the server takes, at most as many as its limits say. Those that there are stay.
    pub fn set_observers_max(&mut self, observers_max: usize) {
        self.server.notifier.registry.set_max(observers_max.min(self.layer.limits.observers_max));
    }
    /// How many observers the server has.
    pub fn observers(&self) -> usize {
        self.server.notifier.registry.observers()
    }
    /// The last block of a request that came in blocks, until the application has answered it.
    pub fn request_block(&self, exchange: IncomingId) -> Option<Block> {
        match exchange {
            IncomingId::Peer(exchange) => self.server.request_block(exchange),
            IncomingId::State(_) => None,
        }
    }
    /// The block of the body that left with the application's latest response; `None` if the body left whole.
    pub const fn response_block(&self) -> Option<Block> {
        self.server.response_block()
    }
    /// By which key the client of a request is known, if its messages are protected: the name of the key.
    pub fn identity(&self, exchange: IncomingId) -> Option<&[u8]> {
        match exchange {
            IncomingId::Peer(exchange) => self.layer.transport.identity(exchange),
            IncomingId::State(_) => None,
        }
    }
    /// The application needs time for a request, which takes a place until it is answered. Without a
    /// place the error is the response to give at once instead: 5.03, or 4.01 with Echo where a proof of
    /// the client's address helps.
    pub fn defer(&mut self, exchange: IncomingId) -> Result<(), ResponseTemplate> {
        match exchange {
            IncomingId::Peer(exchange) => self.server.defer(&self.layer, exchange),
            // A question for a state needs no place: the host bounds them.
            IncomingId::State(_) => Ok(()),
        }
    }
    /// The state of the resource at a path has changed: its observers are notified. For each different
    /// request among theirs comes an [`Output::Request`] that asks for the new state, a few at a time.
    pub fn changed(&mut self, path: &str, now: Instant) {
        self.server.on_change();
        self.server.notifier.changed(&mut self.layer, path, now);
    }
    /// The same for the observers whose requests are like this one. A proxy knows what has changed elsewhere only by
    /// the request.
    pub fn request_changed(&mut self, request: &Message, now: Instant) {
        self.server.on_change();
        self.server.notifier.request_changed(&mut self.layer, request, now);
    }
    /// The same for all observers.
    pub fn all_changed(&mut self, now: Instant) {
        self.server.on_change();
        self.server.notifier.all_changed(&mut self.layer, now);
    }

    /// Deals with what the transport wants until it wants nothing; what it has room for then is
    /// notifications.
    fn drain(&mut self, now: Instant) {
        loop {
            while let Some(output) = self.layer.transport.poll_output() {
                self.on_output(output, now);
            }
            if self.client.send_waiting(&mut self.layer, now) {
                continue;
            }
            if !self.server.notifier.notifies(&self.layer, now) {
                break;
            }
            self.server.notify_waiting(&mut self.layer, now);
        }
        self.server.notifier.settle(&mut self.layer, now);
    }

    fn on_output(&mut self, output: exchange::Output<P>, now: Instant) {
        let Self { layer, client, server } = self;
        match output {
            exchange::Output::Request { exchange, from, message, multicast } => {
                server.on_request(layer, exchange, from, message, multicast, now);
            }
            exchange::Output::Response { handle, from, message, rtt, retransmissions } => {
                client.on_response(layer, handle, from, message, (rtt, retransmissions), now);
            }
            exchange::Output::Notification { handle, from, message } => {
                client.on_notification(layer, handle, from, message, now);
            }
            exchange::Output::GroupResponse { handle, from, message, rtt } => {
                client.on_group_response(layer, handle, from, message, rtt, now);
            }
            exchange::Output::Over { handle } => client.on_over(layer, handle),
            exchange::Output::Failed { handle, reason } => {
                if !server.notifier.on_failed(layer, handle, reason, now) {
                    client.on_failed(layer, handle, reason, now);
                }
            }
            exchange::Output::Missed { handle, from, reason, fault } => {
                let handle = client.name(handle);
                layer.outbox.push(Output::Missed { handle, from, reason, fault });
            }
            exchange::Output::Refused { from, message, code, why } => {
                layer.outbox.push(Output::Refused { from, message, code, why });
            }
            exchange::Output::Fault { handle, fault } => {
                let handle = client.name(handle);
                layer.outbox.push(Output::Fault { handle, fault });
            }
            exchange::Output::Acknowledged { handle, rtt, retransmissions } => {
                if !server.notifier.on_acknowledged(handle, now) {
                    let handle = client.name(handle);
                    layer.outbox.push(Output::Acknowledged { handle, rtt, retransmissions });
                }
            }
            exchange::Output::Pong { handle, rtt, retransmissions } => {
                let handle = client.close(handle);
                layer.outbox.push(Output::Pong { handle, rtt, retransmissions });
            }
            exchange::Output::Started { handle, rto, at } => {
                let handle = client.start(handle, at);
                layer.outbox.push(Output::Started { handle, rto, at });
            }
            exchange::Output::Send { to, bytes, handle, copy, purpose } => {
                let handle = client.name(handle);
                layer.outbox.push(Output::Send { to, bytes, handle, copy, purpose });
            }
            exchange::Output::Close { peer } => {
                // As the requests that have left: its peer has sent no CSM, or another message before it.
                client.end_waiting(layer, peer, DropReason::Malformed, now);
                server.on_session_end(layer, peer);
                layer.outbox.push(Output::Close { peer });
            }
            exchange::Output::SessionOver { peer } => {
                server.on_session_end(layer, peer);
                layer.outbox.push(Output::SessionOver { peer });
            }
            exchange::Output::Discarded { from, cause } => {
                layer.outbox.push(Output::Discarded { from, cause });
            }
        }
    }

    fn input(&mut self, now: Instant, input: Input<'_, P>) -> Result<(), Rejected> {
        let Self { layer, client, server } = self;
        match input {
            Input::Request { peer, message, handle } => {
                client.ask(layer, peer, message, handle, now)
            }
            Input::Group(GroupInput::Request { group, message, wait, handle }) => {
                client.ask_group(layer, group, message, wait, handle, now)
            }
            Input::Group(GroupInput::Repeat { handle, repetition, wait }) => {
                client.repeat_group(layer, handle, repetition, wait, now)
            }
            Input::Group(GroupInput::Datagram { from, bytes }) => {
                let input = GroupInput::Datagram { from, bytes };
                layer.transport.handle(now, exchange::Input::Group(input))
            }
            Input::Ping { peer, handle } => client.ping(layer, peer, handle, now),
            Input::Cancel { handle } => client.cancel(layer, handle, now),
            Input::Deregister { handle } => client.deregister(layer, handle, now),
            Input::Respond { exchange, response, handle } => match exchange {
                IncomingId::Peer(exchange) => {
                    server.respond(layer, exchange, response, Name::Application(handle), now)
                }
                IncomingId::State(question) => {
                    server.on_state(layer, question, response, now);
                    Ok(())
                }
            },
            Input::Decline { exchange } => match exchange {
                IncomingId::Peer(exchange) => {
                    server.forget(exchange);
                    layer.transport.handle(now, exchange::Input::Decline { exchange })
                }
                IncomingId::State(question) => {
                    server.notifier.decline_state(layer, question, now);
                    Ok(())
                }
            },
            Input::Unreachable { peer } => {
                let result = layer.transport.handle(now, exchange::Input::Unreachable { peer });
                server.on_gone(layer, peer);
                result
            }
            Input::SessionEnded { peer, reopens } => {
                let ended = exchange::Input::SessionEnded { peer, reopens };
                layer.transport.handle(now, ended).inspect(|()| server.on_session_end(layer, peer))
            }
            Input::Deadline => layer.transport.handle(now, exchange::Input::Deadline),
            Input::Datagram { from, bytes } => {
                let input = exchange::Input::Datagram { from, bytes };
                let result = layer.transport.handle(now, input);
                // Any datagram may earn an observer credit.
                server.notifier.registry.on_heard(from, now);
                result
            }
            Input::Connection(input) => self.on_connection(now, input),
        }
    }

    fn on_connection(&mut self, now: Instant, input: ConnectionInput<P>) -> Result<(), Rejected> {
        let Self { layer, client, server } = self;
        let connected = match &input {
            ConnectionInput::Connected { peer, .. } => Some(*peer),
            ConnectionInput::Release { .. } => None,
        };
        if let Some(peer) = connected {
            client.end_waiting(layer, peer, DropReason::NoRoute, now);
        }
        let result = layer.transport.handle(now, exchange::Input::Connection(input));
        // The connection that had this name before has ended.
        if let Some(peer) = connected {
            server.on_session_end(layer, peer);
        }
        result
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
        self.layer.outbox.pop()
    }
    fn next_deadline(&self) -> Option<Instant> {
        earliest(
            self.layer.transport.next_deadline(),
            self.server.notifier.next_deadline(&self.layer),
        )
    }
}
