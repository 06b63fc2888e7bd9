//! Whom a proxy asks: one endpoint for all origins over UDP, one for all over DTLS, and a connection for each origin of the
//! other schemes, made when it is needed and released when it is idle.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use lowmesh_coap::observe::REGISTER;
use lowmesh_coap::{ConfigError, RequestTemplate};
use lowmesh_units::{NodeId, Purpose, Rng};
use lowmesh_wire::coap::uri::{Scheme, Uri};
use lowmesh_wire::coap::{Code, Message, OptionNumber};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

use super::conversation::{Conversation, Errand, Reply};
use super::limits::{ProxyError, ProxyLimits};
use super::observations::State;
use crate::clock::{Clock, fresh_seed};
use crate::driver::Driver;
use crate::dtls::Sessions;
use crate::line::Line;
use crate::metrics::Report;
use crate::oscore::{over_connections, over_datagrams};
use crate::params::{HANDSHAKE_MAX, PROXY_QUEUE_MAX};
use crate::peer::Peer;
use crate::resolve::resolve;
use crate::server::{Connected, Datagrams, DatagramsHost};
use crate::udp::Udp;

/// The way to all origins.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    datagrams: mpsc::Sender<Errand>,
    secure: Option<mpsc::Sender<Errand>>,
    connections: Arc<Mutex<BTreeMap<String, mpsc::Sender<Errand>>>>,
    limits: Arc<ProxyLimits>,
    clock: Clock,
}

impl Upstream {
    pub(super) fn open(limits: ProxyLimits, clock: Clock) -> Result<Self, ProxyError> {
        let mut limits = limits;
        // RFC 8613 s2: the option is safe to forward, whatever it protects.
        limits.datagrams.extensions.push(OptionNumber::OSCORE);
        limits.connection.extensions.push(OptionNumber::OSCORE);
        let driver = Driver::new(Udp::ephemeral()?, host(&limits)?);
        let datagrams = converse(driver, "upstream", clock);
        let connections = Arc::default();
        Ok(Self { datagrams, secure: None, connections, limits: Arc::new(limits), clock })
    }
    /// Asks over DTLS too.
    pub(super) fn secure(self, sessions: Sessions) -> Result<Self, ProxyError> {
        let driver = Driver::secure(Udp::ephemeral()?, sessions, host(&self.limits)?);
        let secure = Some(converse(driver, "upstream, DTLS", self.clock));
        Ok(Self { secure, ..self })
    }
    /// The origin's response, or the code that the client gets instead.
    pub(super) async fn ask(
        &self,
        target: &Uri,
        request: RequestTemplate,
    ) -> Result<Message, Code> {
        let (reply, answer) = oneshot::channel();
        self.send(target, request, Reply::Once(reply)).await?;
        // Who drops the way back has lost its socket or its connection.
        answer.await.unwrap_or(Err(Code::BAD_GATEWAY))
    }
    /// The origin's states, as far as they come.
    pub(super) async fn observe(
        &self,
        target: &Uri,
        request: RequestTemplate,
    ) -> Result<watch::Receiver<State>, Code> {
        let mut request = request;
        request.options.set_uint(OptionNumber::OBSERVE, REGISTER);
        let (states, coming) = watch::channel(State::Pending);
        self.send(target, request, Reply::Many(states)).await?;
        Ok(coming)
    }
    /// Has everybody tell how it stands who asks over datagrams.
    pub(super) fn inspect(&self, tell: &mpsc::UnboundedSender<Report>) {
        for way in [Some(&self.datagrams), self.secure.as_ref()].into_iter().flatten() {
            // Who has no room for one more word is not asked.
            let _busy = way.try_send(Errand::Inspect(tell.clone()));
        }
    }
    async fn send(&self, target: &Uri, request: RequestTemplate, reply: Reply) -> Result<(), Code> {
        let trusted = !target.scheme.is_secure() || self.limits.tls.is_some();
        let way = match target.scheme {
            Scheme::Coap => Some(&self.datagrams),
            Scheme::Coaps => self.secure.as_ref(),
            _ => None,
        };
        // RFC 7252 s5.10.2: what this proxy cannot speak is 5.05.
        if way.is_none() && !(target.scheme.is_reliable() && trusted) {
            return Err(Code::PROXYING_NOT_SUPPORTED);
        }
        let addresses = resolve(target).await.map_err(|_| Code::BAD_GATEWAY)?;
        let address = *addresses.first().ok_or(Code::BAD_GATEWAY)?;
        // A group's answers are many, and a client of a proxy can take one.
        if address.ip().is_multicast() {
            return Err(Code::PROXYING_NOT_SUPPORTED);
        }
        let ask = Errand::Ask { address, request, reply };
        match way {
            Some(way) => way.try_send(ask).map_err(|_| Code::SERVICE_UNAVAILABLE),
            None => self.send_on_connection(target, ask),
        }
    }
    /// Puts a request on the connection to its origin, which is made if there is none.
    fn send_on_connection(&self, target: &Uri, ask: Errand) -> Result<(), Code> {
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
        tokio::spawn(connect(target.clone(), self.limits.clone(), asks, self.clock));
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

/// What asks origins over datagrams.
fn host(limits: &ProxyLimits) -> Result<DatagramsHost, ConfigError> {
    over_datagrams(limits.datagrams.clone(), limits.host.clone(), None, rng())
}

/// A task that asks over datagrams for as long as somebody may tell it to.
fn converse(driver: Datagrams, name: &'static str, clock: Clock) -> mpsc::Sender<Errand> {
    let (way, errands) = mpsc::channel(PROXY_QUEUE_MAX);
    tokio::spawn(async move {
        let peer = |way: &Datagrams, address| way.udp().peer(address);
        Conversation::new(driver, name, errands, clock).run(peer).await.close();
    });
    way
}

/// One connection, from its handshakes to its end. Who waits for one that fails loses its way back.
async fn connect(
    target: Uri,
    limits: Arc<ProxyLimits>,
    errands: mpsc::Receiver<Errand>,
    clock: Clock,
) {
    let connecting = Line::connect(&target, limits.tls.as_ref());
    let Ok(Ok(line)) = tokio::time::timeout(HANDSHAKE_MAX, connecting).await else { return };
    let peer = Peer::new(line.peer, None);
    let host = over_connections(limits.connection.clone(), limits.host.clone(), None, rng());
    let connected = Connected::new(line, host);
    let conversation = Conversation::new(connected, "upstream", errands, clock);
    let way = conversation.ending_when_idle().run(|_, _| Ok(peer)).await;
    // Whether the other end has still heard it makes no difference any more.
    let _heard = tokio::time::timeout(HANDSHAKE_MAX, way.close()).await;
}
