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
//!   Server ── run ──► Attendant of each UDP address ─┐
//!          └── accept ──► Attendant of each connection ─┴─► Site: Router<Handler>, Changes
//! ```
//! Bodies in blocks, observers, entity tags, preconditions and discovery are done below, in `lowmesh-coap`. Left to
//! the application: what its resources do, and which runtime it runs in; every address and every connection is a task.

mod attendant;
mod handler;
mod limits;
mod listening;
mod log;
mod news;
mod site;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use lowmesh_coap::ConfigError;
use lowmesh_coap::resource::{Resource, Router};
use lowmesh_wire::coap::OptionNumber;
use lowmesh_wire::coap::uri::Scheme;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::clock::fresh_rng;
use crate::driver::Driver;
use crate::dtls::{Keys, Sessions};
use crate::line::{Incoming, Listener};
use crate::oscore::{Contexts, Plain, Protection, over_connections, over_datagrams};
use crate::params::ACCEPT_PAUSE;
use crate::tls::TlsServer;
use crate::udp::{BindError, Udp};
use crate::way::{Connected, Datagrams, DatagramsHost};
use attendant::Attendant;
pub use handler::{Handler, Request};
pub use limits::Limits;
pub(crate) use listening::Listening;
pub use log::{Observation, RequestLog, Served};
pub(crate) use news::News;
use news::Totals;
pub use news::{Changes, Metrics};
pub(crate) use site::Relay;
use site::Site;

/// Resources, and the ports at which they are served.
#[derive(Debug)]
pub struct Server {
    router: Router<Handler>,
    changes: Changes,
    totals: Arc<Totals>,
    limits: Limits,
    datagrams: Vec<Datagrams>,
    listeners: Vec<Listener>,
    protection: Option<Protection>,
    relay: Option<Relay>,
    listening: Listening,
    log: Option<RequestLog>,
}

impl Server {
    /// Without resources and ports.
    pub fn new(limits: Limits) -> Result<Self, ConfigError> {
        limits.datagrams.check()?;
        Ok(Self {
            router: Router::new(),
            changes: Changes::new(),
            totals: Arc::default(),
            limits,
            datagrams: Vec::new(),
            listeners: Vec::new(),
            protection: None,
            relay: None,
            listening: Listening::default(),
            log: None,
        })
    }
    /// Takes requests that are protected with one of these OSCORE contexts (RFC 8613), at every port; to be said before
    /// the first `listen`. When the server has ended, [`Contexts::close`] stores what lets the next one go on.
    pub fn protect(&mut self, contexts: Contexts, plain_requests: Plain) {
        self.protection = Some(Protection { contexts, own_requests: None, plain_requests });
    }
    /// Puts a resource at an absolute path, in place of one that was there.
    pub fn insert(&mut self, path: &str, resource: Resource<Handler>) {
        self.router.insert(path, resource);
    }
    /// By which observers get to know that a resource has changed.
    pub fn changes(&self) -> Changes {
        self.changes.clone()
    }
    /// Tells a log of each request that is answered.
    pub fn log(&mut self, log: RequestLog) {
        self.log = Some(log);
    }
    /// The numbers of the server, for monitoring, once it runs; [`Metrics::resource`] makes a resource of them.
    pub fn metrics(&self) -> Metrics {
        Metrics::new(self.changes.clone(), self.totals.clone())
    }
    /// Where it listens, now and later.
    pub(crate) fn listening(&self) -> Listening {
        self.listening.clone()
    }
    /// Gives a proxy its requests: what [`Proxy::serve`](crate::proxy::Proxy::serve) does. To be said before the first
    /// `listen`.
    pub(crate) fn relay(&mut self, relay: Relay) {
        self.limits.datagrams.proxy = relay.forwards;
        self.limits.connection.proxy = relay.forwards;
        if relay.all {
            // RFC 8613 s2: the option is safe to forward; what it protects is for whom the proxy stands for.
            self.limits.datagrams.extensions.push(OptionNumber::OSCORE);
            self.limits.connection.extensions.push(OptionNumber::OSCORE);
        }
        self.relay = Some(relay);
    }
    /// Serves `coap` at an address; `[::]` takes IPv4 too. The server joins All CoAP Nodes (RFC 7252 s12.8) at every
    /// interface; which resources answer groups, [`Resource::multicast`] says. Returns the address with its port.
    pub fn listen_udp(&mut self, address: SocketAddr) -> Result<SocketAddr, BindError> {
        let udp = Udp::bind(address)?;
        udp.join_all_coap_nodes();
        Ok(self.add(udp, Driver::new))
    }
    /// Serves `coaps` at an address, to who knows one of the keys; the hint tells a client which.
    pub fn listen_dtls(
        &mut self,
        address: SocketAddr,
        keys: Keys,
        hint: Option<&[u8]>,
    ) -> Result<SocketAddr, BindError> {
        let sessions = Sessions::server(keys, hint);
        Ok(self.add(Udp::bind(address)?, |udp, host| Driver::secure(udp, sessions, host)))
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
        self.listeners.push(listener);
        Ok(bound)
    }
    /// Serves until `stop`, or until a socket fails. At the end observers are told with 5.03, answers that are being made
    /// leave, connections are released (RFC 8323 s5.5) and sessions closed, all within [`Limits::grace`].
    pub async fn run(self, stop: impl Future<Output = ()>) -> io::Result<()> {
        let Self { router, changes, totals, limits, datagrams, listeners, .. } = self;
        let Self { protection, relay, log, .. } = self;
        let site = Arc::new(Site { router, changes, totals, relay, log });
        let (limits, (tell, stopped)) = (Arc::new(limits), watch::channel(false));
        let places = Arc::new(Semaphore::new(limits.connections_max));
        let mut tasks = JoinSet::new();
        for driver in datagrams {
            let scheme = if driver.is_secure() { Scheme::Coaps } else { Scheme::Coap };
            let attendant = Attendant::new(driver, scheme, site.clone());
            let serving = attendant.serve(stopped.clone(), limits.grace);
            tasks.spawn(async move {
                let (driver, result) = serving.await;
                driver.close();
                result
            });
        }
        for listener in listeners {
            let reception = Reception {
                site: site.clone(),
                limits: limits.clone(),
                places: places.clone(),
                protection: protection.clone(),
                stop: stopped.clone(),
            };
            tasks.spawn(reception.run(listener));
        }
        drop(stopped);
        tokio::pin!(stop);
        let mut result = tokio::select! {
            () = stop => Ok(()),
            // Only a failure ends a task before the stop, and what cannot be served any more is an end for all.
            Some(ended) = tasks.join_next() => ended.map_err(io::Error::other).flatten(),
        };
        tell.send_replace(true);
        while let Some(ended) = tasks.join_next().await {
            result = result.and(ended.map_err(io::Error::other).flatten());
        }
        result
    }

    fn add(&mut self, udp: Udp, drive: impl FnOnce(Udp, DatagramsHost) -> Datagrams) -> SocketAddr {
        let address = udp.local_addr();
        self.listening.add(address, false);
        let (config, limits) = (self.limits.datagrams.clone(), self.limits.host.clone());
        let host = over_datagrams(config, limits, self.protection.clone(), fresh_rng());
        let host = host.expect("`new` has checked it");
        self.datagrams.push(drive(udp, host));
        address
    }
}

/// Takes the connections of one port.
struct Reception {
    site: Arc<Site>,
    limits: Arc<Limits>,
    places: Arc<Semaphore>,
    protection: Option<Protection>,
    stop: watch::Receiver<bool>,
}

impl Reception {
    async fn run(self, listener: Listener) -> io::Result<()> {
        let mut open = JoinSet::new();
        let mut stop = self.stop.clone();
        loop {
            let incoming = tokio::select! {
                incoming = listener.accept() => incoming,
                Some(_) = open.join_next() => continue,
                _ = stop.wait_for(|stop| *stop) => break,
            };
            let Ok(incoming) = incoming else {
                // Who connected has gone again, or the system has no room for more.
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            // Without a free place the connection is dropped, which closes it.
            if let Ok(place) = self.places.clone().try_acquire_owned() {
                let serving = self.serve(incoming);
                open.spawn(async move {
                    // The errors of a connection are its peer's.
                    let _of_the_peer = serving.await;
                    drop(place);
                });
            }
        }
        drop(listener);
        while open.join_next().await.is_some() {}
        Ok(())
    }
    /// One connection, from its handshakes to its end.
    fn serve(&self, incoming: Incoming) -> impl Future<Output = io::Result<()>> + use<> {
        let (site, limits, mut stop) = (self.site.clone(), self.limits.clone(), self.stop.clone());
        let (protection, scheme) = (self.protection.clone(), incoming.scheme());
        async move {
            let opening = tokio::time::timeout(limits.handshake_max, incoming.open());
            let line = tokio::select! {
                line = opening => line?.map_err(io::Error::other)?,
                _ = stop.wait_for(|stop| *stop) => return Ok(()),
            };
            let (connection, kept) = (limits.connection.clone(), limits.of_connection());
            let host = over_connections(connection, kept, protection, fresh_rng());
            let connected = Connected::new(line, host).release_after(limits.idle_max);
            let attendant = Attendant::new(connected, scheme, site);
            let (way, result) = attendant.serve(stop, limits.grace).await;
            tokio::time::timeout(limits.grace, way.close()).await??;
            result
        }
    }
}

#[cfg(test)]
mod tests;
