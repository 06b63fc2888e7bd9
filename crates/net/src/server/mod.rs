//! A CoAP server: resources as functions, over UDP, DTLS, TCP, TLS and WebSockets at once.
//!
//! ```no_run
//! use lowmesh_coap::ResponseTemplate;
//! use lowmesh_coap::resource::{Methods, Resource};
//! use lowmesh_net::server::{Handler, Limits, Server};
//! use lowmesh_wire::coap::{Code, ContentFormat};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut server = Server::new(Limits::default())?;
//! let hello = Handler::new(|_| {
//!     ResponseTemplate::new(Code::CONTENT)
//!         .with_payload(b"hello world".to_vec())
//!         .with_format(ContentFormat::TEXT_PLAIN)
//! });
//! server.insert("/hello", Resource::new(Methods::GET, hello).multicast());
//! let slow = Handler::later(async |_| {
//!     tokio::time::sleep(std::time::Duration::from_secs(2)).await;
//!     ResponseTemplate::new(Code::CHANGED)
//! });
//! server.insert("/valve", Resource::new(Methods::POST, slow));
//! server.listen_udp("[::]:5683".parse()?)?;
//! server.run(std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!   Server ── run ──► TransportTask of each UDP address ─┐
//!          └── accept ──► TransportTask of each connection ─┴─► ServerState: Router<Handler>, Changes
//! ```
//! Bodies in blocks, observers, entity tags, preconditions and discovery are done below, in `lowmesh-coap`. Left to
//! the application: what its resources do, and which runtime it runs in; every address and every connection is a task.

mod budget;
mod event;
mod handler;
mod ledger;
mod limits;
mod listening;
mod log;
mod memberships;
mod places;
mod reception;
mod state;
mod transport_task;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use lowmesh_coap::resource::{Resource, Router};
use lowmesh_coap::{Config, ConfigError};
use lowmesh_wire::coap::OptionNumber;
use lowmesh_wire::coap::uri::Scheme;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock::fresh_rng;
use crate::driver::Driver;
use crate::dtls::{Keys, Sessions};
use crate::multicast::Groups;
use crate::origins::Origins;
use crate::oscore::{Contexts, OwnRequests, Plain, Protection, over_datagrams};
use crate::stream_transport::Listener;
use crate::tls::TlsServer;
use crate::transport::Datagrams;
use crate::udp::{BindError, Udp};
use budget::Budget;
pub(crate) use budget::Kept;
pub(crate) use event::ServerEvent;
use event::Totals;
pub use event::{Changes, Metrics};
pub use handler::{Handler, Request};
pub use limits::Limits;
pub(crate) use listening::Listening;
pub use log::{Observation, RequestLog, Served};
pub(crate) use places::Place;
use places::Places;
use reception::Reception;
pub(crate) use state::Relay;
use state::ServerState;
use transport_task::TransportTask;

/// An open UDP port. What answers there is made when the server runs, so that the order of settings does not matter.
#[derive(Debug)]
struct Port {
    udp: Udp,
    /// DTLS, unless the port is plain.
    sessions: Option<Sessions>,
}

/// Resources, and the ports that serve them. All settings hold for all ports, in whatever order they are given.
#[derive(Debug)]
pub struct Server {
    router: Router<Handler>,
    changes: Changes,
    totals: Arc<Totals>,
    limits: Limits,
    groups: Groups,
    ports: Vec<Port>,
    listeners: Vec<Listener>,
    protection: Option<Protection>,
    relay: Option<Relay>,
    listening: Listening,
    log: Option<RequestLog>,
    origins: Arc<Origins>,
}

impl Server {
    /// A server without resources and ports.
    pub fn new(limits: Limits) -> Result<Self, ConfigError> {
        limits.datagrams.check()?;
        Ok(Self {
            router: Router::new(),
            changes: Changes::new(),
            totals: Arc::default(),
            limits,
            groups: Groups::default(),
            ports: Vec::new(),
            listeners: Vec::new(),
            protection: None,
            relay: None,
            listening: Listening::default(),
            log: None,
            origins: Arc::default(),
        })
    }
    /// Lets these web pages open WebSockets at the ports that are opened from now on; by default none may (RFC 6455 s10.2).
    pub fn admit_pages(&mut self, origins: Origins) {
        self.origins = Arc::new(origins);
    }
    /// Accepts requests that one of these OSCORE contexts protects (RFC 8613), at every port. When the server has
    /// ended, [`Contexts::close`] stores what lets the next one go on.
    pub fn protect(&mut self, contexts: Contexts, plain_requests: Plain) {
        self.protection =
            Some(Protection { contexts, own_requests: OwnRequests::Plain, plain_requests });
    }
    /// Inserts a resource at an absolute path, and replaces an existing one.
    pub fn insert(&mut self, path: &str, resource: Resource<Handler>) {
        self.router.insert(path, resource);
    }
    /// A handle that notifies observers of changes.
    pub fn changes(&self) -> Changes {
        self.changes.clone()
    }
    /// Sets a log, which gets each answered request.
    pub fn log(&mut self, log: RequestLog) {
        self.log = Some(log);
    }
    /// The metrics of the running server; [`Metrics::resource`] makes a resource of them.
    pub fn metrics(&self) -> Metrics {
        Metrics::new(self.changes.clone(), self.totals.clone())
    }
    /// The addresses at which the server listens so far.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        [false, true].into_iter().flat_map(|reliable| self.listening.all(reliable)).collect()
    }
    /// After so long it acknowledges a request that came in a datagram.
    pub(crate) const fn ack_delay(&self) -> lowmesh_units::Duration {
        self.limits.datagrams.ack_delay
    }
    /// Where it listens, now and later.
    pub(crate) fn listening(&self) -> Listening {
        self.listening.clone()
    }
    /// Gives a proxy its requests: what [`Proxy::serve`](crate::proxy::Proxy::serve) does.
    pub(crate) fn relay(&mut self, relay: Relay) {
        self.limits.datagrams.proxy = relay.forwards;
        self.limits.connection.proxy = relay.forwards;
        self.limits.datagrams.reverse_proxy = relay.all;
        self.limits.connection.reverse_proxy = relay.all;
        // The proxy decides who gives way, so that its places have to be the fewer ones.
        self.limits.host.requests_max = self.limits.host.requests_max.max(relay.places);
        if relay.all {
            // RFC 8613 s2: the option is safe to forward; the protected part is for the server behind the proxy.
            self.limits.datagrams.extensions.push(OptionNumber::OSCORE);
            self.limits.connection.extensions.push(OptionNumber::OSCORE);
        }
        self.relay = Some(relay);
    }
    /// Serves `coap` at an address; `[::]` accepts IPv4 too. The server joins All CoAP Nodes (RFC 7252 s12.8) at every
    /// interface; which resources answer groups, [`Resource::multicast`] says. Returns the address with its port.
    pub fn listen_udp(&mut self, address: SocketAddr) -> Result<SocketAddr, BindError> {
        let udp = Udp::bind(address)?.serving();
        udp.join_all_coap_nodes();
        self.groups.add(&udp).map_err(|error| BindError::new(address, error))?;
        Ok(self.add(udp, None))
    }
    /// Joins and leaves groups with the addresses of [`Server::listen_udp`], also while the server runs; which resources
    /// answer groups, [`Resource::multicast`] says. [`Groups::resource`] lets clients do that.
    pub fn groups(&self) -> Groups {
        self.groups.clone()
    }
    /// Serves `coaps` at an address to clients with one of the keys. The hint tells a client which key to use.
    pub fn listen_dtls(
        &mut self,
        address: SocketAddr,
        keys: Keys,
        hint: Option<&[u8]>,
    ) -> Result<SocketAddr, BindError> {
        let sessions =
            Sessions::server(keys, hint).bounded(self.limits.sessions).by_lot(fresh_rng());
        Ok(self.add(Udp::bind(address)?.serving(), Some(sessions)))
    }
    /// Serves a scheme of connections at an address; `tls` for those with an `s`, which `Listener::bind` asks for.
    pub async fn listen_connections(
        &mut self,
        address: SocketAddr,
        scheme: Scheme,
        tls: Option<TlsServer>,
    ) -> Result<SocketAddr, BindError> {
        let listener = Listener::bind(address, scheme, tls).await?;
        let bound = listener.local_addr().map_err(|error| BindError::new(address, error))?;
        self.listening.add(bound, true);
        self.listeners.push(listener.admitting(self.origins.clone()));
        Ok(bound)
    }
    /// Serves until `stop`, or until a socket fails. At the end observers are told with 5.03, answers that are being made
    /// leave, connections are released (RFC 8323 s5.5) and sessions closed, all within [`Limits::grace`]; what is not
    /// done by then is given up. A function that blocks its thread cannot be given up.
    pub async fn run(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let grace = self.limits.grace;
        let (tell, stopped) = watch::channel(false);
        let mut tasks = self.start(&stopped);
        drop(stopped);
        tokio::pin!(stop);
        let result = tokio::select! {
            () = stop => Ok(()),
            // Only a failure ends a task before the stop, and what cannot be served any more is an end for all.
            Some(ended) = tasks.join_next() => ended.map_err(io::Error::other).flatten(),
        };
        tell.send_replace(true);
        let rest = async {
            let mut rest = Ok(());
            while let Some(ended) = tasks.join_next().await {
                rest = rest.and(ended.map_err(io::Error::other).flatten());
            }
            rest
        };
        if let Ok(rest) = tokio::time::timeout(grace, rest).await {
            return result.and(rest);
        }
        tasks.shutdown().await;
        result
    }

    /// Starts a task for each port.
    fn start(self, stopped: &watch::Receiver<bool>) -> JoinSet<io::Result<()>> {
        let Self { router, changes, totals, limits, ports, listeners, .. } = self;
        let Self { protection, relay, log, .. } = self;
        let server = Arc::new(ServerState { router, changes, totals, relay, log });
        let (places, budget) = (Places::new(&limits, fresh_rng()), Budget::new(&limits));
        let limits = Arc::new(limits);
        let mut tasks = JoinSet::new();
        for port in ports {
            let driver = port.open(&limits, protection.clone());
            let scheme = if driver.is_secure() { Scheme::Coaps } else { Scheme::Coap };
            let transport_task = TransportTask::new(driver, scheme, server.clone());
            let serving = transport_task.serve(stopped.clone(), limits.answers_within());
            tasks.spawn(async move {
                let (driver, result) = serving.await;
                driver.close();
                result
            });
        }
        for listener in listeners {
            let reception = Reception {
                server: server.clone(),
                limits: limits.clone(),
                places: places.clone(),
                budget: budget.clone(),
                protection: protection.clone(),
                stop: stopped.clone(),
            };
            tasks.spawn(reception.run(listener));
        }
        tasks
    }
    fn add(&mut self, udp: Udp, sessions: Option<Sessions>) -> SocketAddr {
        let address = udp.local_addr();
        self.listening.add(address, false);
        self.ports.push(Port { udp, sessions });
        address
    }
}

impl Port {
    fn open(self, limits: &Limits, protection: Option<Protection>) -> Datagrams {
        let Self { udp, sessions } = self;
        // RFC 6347 s4.2.1: with sessions the cookie exchange has proven the address of every peer.
        let config = Config { proven: sessions.is_some(), ..limits.datagrams.clone() };
        let host = over_datagrams(config, limits.host.clone(), protection, fresh_rng());
        let host = host.expect("`Server::new` has checked it");
        match sessions {
            Some(sessions) => Driver::secure(udp, sessions, host),
            None => Driver::new(udp, host),
        }
    }
}

/// The place and the account of the first connection of a server.
#[cfg(test)]
pub(crate) fn first_connection(limits: &Limits, from: SocketAddr) -> (Place, Kept) {
    let place = Places::new(limits, fresh_rng()).admit(from).expect("there is room");
    (place, Budget::new(limits).open(from))
}

#[cfg(test)]
mod tests;
