//! Whom a proxy asks: one endpoint for all origins over UDP, and a connection for each origin of the other schemes, made
//! when it is needed and released when it is idle.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use lowmesh_coap::proxy::failure;
use lowmesh_coap::{Input, Output, RequestTemplate, ResponseTemplate};
use lowmesh_machine::Handle;
use lowmesh_units::{NodeId, Purpose, Rng};
use lowmesh_wire::coap::uri::{Scheme, Uri};
use lowmesh_wire::coap::{Code, Message, OptionNumber};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::limits::{ProxyError, ProxyLimits};
use crate::clock::fresh_seed;
use crate::driver::Driver;
use crate::line::Line;
use crate::oscore::{over_connections, over_datagrams};
use crate::params::{HANDSHAKE_MAX, PROXY_IDLE, PROXY_QUEUE_MAX};
use crate::peer::Peer;
use crate::resolve::resolve;
use crate::server::{Connected, Datagrams, Way};
use crate::udp::Udp;

/// A request on its way to a task, and the way back.
struct Ask {
    address: SocketAddr,
    request: RequestTemplate,
    reply: oneshot::Sender<Result<Message, Code>>,
}

/// The way to all origins.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    datagrams: mpsc::Sender<Ask>,
    connections: Arc<Mutex<BTreeMap<String, mpsc::Sender<Ask>>>>,
    limits: Arc<ProxyLimits>,
}

impl Upstream {
    pub(super) fn open(limits: ProxyLimits) -> Result<Self, ProxyError> {
        let mut limits = limits;
        // RFC 8613 s2: the option is safe to forward, whatever it protects.
        limits.datagrams.extensions.push(OptionNumber::OSCORE);
        limits.connection.extensions.push(OptionNumber::OSCORE);
        let host = over_datagrams(limits.datagrams.clone(), limits.host.clone(), None, rng())?;
        let driver: Datagrams = Driver::new(Udp::ephemeral()?, host);
        let (datagrams, asks) = mpsc::channel(PROXY_QUEUE_MAX);
        tokio::spawn(async move {
            let peer = |way: &Datagrams, address| way.udp().peer(address);
            Conversation::new(driver, asks).run(peer).await.close();
        });
        let connections = Arc::default();
        Ok(Self { datagrams, connections, limits: Arc::new(limits) })
    }
    /// The origin's response, or the code that the client gets instead.
    pub(super) async fn ask(
        &self,
        target: &Uri,
        request: RequestTemplate,
    ) -> Result<Message, Code> {
        let trusted = !target.scheme.is_secure() || self.limits.tls.is_some();
        // RFC 7252 s5.10.2: what this proxy cannot speak is 5.05; DTLS has keys for each origin.
        if target.scheme == Scheme::Coaps || !trusted {
            return Err(Code::PROXYING_NOT_SUPPORTED);
        }
        let addresses = resolve(target).await.map_err(|_| Code::BAD_GATEWAY)?;
        let address = *addresses.first().ok_or(Code::BAD_GATEWAY)?;
        // A group's answers are many, and a client of a proxy can take one.
        if address.ip().is_multicast() {
            return Err(Code::PROXYING_NOT_SUPPORTED);
        }
        let (reply, answer) = oneshot::channel();
        let ask = Ask { address, request, reply };
        if target.scheme.is_reliable() {
            self.send_on_connection(target, ask)?;
        } else {
            self.datagrams.try_send(ask).map_err(|_| Code::SERVICE_UNAVAILABLE)?;
        }
        // Who drops the way back has lost its socket or its connection.
        answer.await.unwrap_or(Err(Code::BAD_GATEWAY))
    }
    /// Puts a request on the connection to its origin, which is made if there is none.
    fn send_on_connection(&self, target: &Uri, ask: Ask) -> Result<(), Code> {
        let origin = origin(target);
        // The table is whole between any two operations.
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = match connections.get(&origin) {
            None => ask,
            Some(open) => match open.try_send(ask) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(_)) => return Err(Code::SERVICE_UNAVAILABLE),
                Err(TrySendError::Closed(ask)) => ask,
            },
        };
        connections.retain(|_, open| !open.is_closed());
        if connections.len() >= self.limits.connections_max {
            return Err(Code::SERVICE_UNAVAILABLE);
        }
        let (open, asks) = mpsc::channel(PROXY_QUEUE_MAX);
        let _room_for_the_first = open.try_send(ask);
        connections.insert(origin, open);
        tokio::spawn(connect(target.clone(), self.limits.clone(), asks));
        Ok(())
    }
}

/// Scheme, host and port of a target: what it is for connections and for the cache.
pub(super) fn origin(target: &Uri) -> String {
    let (scheme, host) = (target.scheme, target.host.clone());
    let explicit_port = Some(target.port());
    Uri { scheme, host, explicit_port, path: Vec::new(), query: Vec::new() }.to_string()
}

fn rng() -> Rng {
    Rng::stream(fresh_seed(), NodeId(0), Purpose::Coap)
}

/// One connection, from its handshakes to its end. Who waits for one that fails loses its way back.
async fn connect(target: Uri, limits: Arc<ProxyLimits>, asks: mpsc::Receiver<Ask>) {
    let connecting = Line::connect(&target, limits.tls.as_ref());
    let Ok(Ok(line)) = tokio::time::timeout(HANDSHAKE_MAX, connecting).await else { return };
    let peer = Peer::new(line.peer, None);
    let host = over_connections(limits.connection.clone(), limits.host.clone(), None, rng());
    let conversation = Conversation::new(Connected::new(line, host), asks);
    let way = conversation.ending_when_idle().run(|_, _| Ok(peer)).await;
    // Whether the other end has still heard it makes no difference any more.
    let _heard = tokio::time::timeout(HANDSHAKE_MAX, way.close()).await;
}

/// Requests and their answers on one way.
struct Conversation<W> {
    way: W,
    asks: mpsc::Receiver<Ask>,
    /// Whether more requests may come.
    open: bool,
    ends_when_idle: bool,
    waiting: BTreeMap<Handle, oneshot::Sender<Result<Message, Code>>>,
    serial: u64,
}

impl<W: Way> Conversation<W> {
    fn new(way: W, asks: mpsc::Receiver<Ask>) -> Self {
        let (waiting, serial) = (BTreeMap::new(), 0);
        Self { way, asks, open: true, ends_when_idle: false, waiting, serial }
    }
    fn ending_when_idle(self) -> Self {
        Self { ends_when_idle: true, ..self }
    }
    /// Goes on until nobody can ask any more and all are answered, or until the way ends; gives it back.
    async fn run(mut self, peer: impl Fn(&W, SocketAddr) -> io::Result<Peer>) -> W {
        while self.open || !self.waiting.is_empty() {
            let idle = self.ends_when_idle && self.open && self.waiting.is_empty();
            let goes_on = tokio::select! {
                ask = self.asks.recv(), if self.open => {
                    match ask {
                        Some(ask) => self.begin(ask, &peer),
                        None => self.open = false,
                    }
                    true
                }
                output = self.way.next() => output.is_ok_and(|output| self.on_output(output)),
                () = tokio::time::sleep(PROXY_IDLE), if idle => {
                    // What is asked from now on makes a new connection.
                    self.asks.close();
                    true
                }
            };
            if !goes_on {
                return self.way;
            }
        }
        self.way.release();
        while self.way.poll().is_some() {}
        self.way
    }
    fn begin(&mut self, ask: Ask, peer: impl Fn(&W, SocketAddr) -> io::Result<Peer>) {
        let Ask { address, request, reply } = ask;
        let Ok(peer) = peer(&self.way, address) else {
            // Whoever asked may be gone.
            let _gone = reply.send(Err(Code::BAD_GATEWAY));
            return;
        };
        self.serial += 1;
        let handle = Handle(self.serial);
        match self.way.handle(Input::Request { peer, message: request, handle }) {
            Ok(()) => drop(self.waiting.insert(handle, reply)),
            Err(_) => drop(reply.send(Err(Code::SERVICE_UNAVAILABLE))),
        }
    }
    /// False when the way is over.
    fn on_output(&mut self, output: Output<Peer>) -> bool {
        match output {
            Output::Response { handle, message, .. } => self.answer(handle, Ok(message)),
            Output::Failed { handle, reason } => self.answer(handle, Err(failure(reason))),
            Output::Over { handle } => self.answer(handle, Err(Code::GATEWAY_TIMEOUT)),
            // Nothing is served on this side.
            Output::Request { exchange, .. } => {
                let response = ResponseTemplate::new(Code::NOT_FOUND);
                let input = Input::Respond { exchange, response, handle: Handle::NONE };
                let _expired = self.way.handle(input);
            }
            Output::Close { .. } => return false,
            _ => {}
        }
        true
    }
    fn answer(&mut self, handle: Handle, result: Result<Message, Code>) {
        if let Some(reply) = self.waiting.remove(&handle) {
            // Whoever asked may be gone.
            let _gone = reply.send(result);
        }
    }
}
