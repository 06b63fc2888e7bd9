//! The transports of a client: UDP, DTLS, and a connection for each origin. Each is opened when a request needs it, kept
//! while it is used, and opened again after it has ended.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use lowmesh_coap::Config;
use lowmesh_wire::coap::uri::{Scheme, Uri};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::command::Command;
use super::conversation::Conversation;
use super::error::Error;
use super::settings::Settings;
use super::sockets::Sockets;
use crate::clock::fresh_rng;
use crate::driver::Driver;
use crate::metrics::Report;
use crate::oscore::{over_connections, over_datagrams};
use crate::params::COMMANDS_MAX;
use crate::resolve::resolve;
use crate::stream_transport::{ConnectError, StreamTransport};
use crate::transport::{Connected, Datagrams, Transport};
use crate::udp::{BindError, Udp};

/// What requests go through.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Udp,
    Dtls,
    /// Scheme, host and port.
    Connection(String),
}

/// An open transport and its task.
#[derive(Debug)]
struct OpenTransport {
    commands: mpsc::Sender<Command>,
    /// The peer at the other end of a connection.
    peer: Option<SocketAddr>,
    task: JoinHandle<()>,
    /// Requests are under way.
    busy: Arc<AtomicBool>,
    /// When it was used last, as a serial number over all.
    used: u64,
}

/// The place of a transport that is open or will be. It stays locked while the transport is being opened, so that other
/// callers wait instead of opening a second one: each opening has a bound, and each caller its patience.
type Slot = Arc<tokio::sync::Mutex<Option<OpenTransport>>>;

/// All transports of a client.
#[derive(Debug, Default)]
pub(super) struct ConnectionPool {
    all: Mutex<BTreeMap<Place, Slot>>,
    serial: AtomicU64,
}

/// Where to put a request, and the address of its peer.
pub(super) struct PoolHandle {
    pub commands: mpsc::Sender<Command>,
    pub address: SocketAddr,
}

impl ConnectionPool {
    /// The open transport to the host of a URI, at one of `addresses` if they are given.
    pub async fn open(
        &self,
        settings: &Settings,
        uri: &Uri,
        addresses: Option<&[SocketAddr]>,
    ) -> Result<PoolHandle, Error> {
        let place = match (uri.scheme.is_reliable(), uri.scheme.is_secure()) {
            (true, _) => Place::Connection(origin(uri)),
            (false, true) => Place::Dtls,
            (false, false) => Place::Udp,
        };
        // A host without an address needs no transport.
        let resolved = match (&place, addresses) {
            (Place::Connection(_), _) => None,
            (Place::Udp | Place::Dtls, Some(addresses)) => addresses.first().copied(),
            (Place::Udp | Place::Dtls, None) => resolve(uri).await?.first().copied(),
        };
        let slot = self.slot(&place, settings.connections_max)?;
        let mut slot = slot.lock().await;
        let open = slot.take().filter(|transport| !transport.commands.is_closed());
        let transport = match open {
            Some(transport) => transport,
            None => begin(settings, &place, uri, addresses).await?,
        };
        let transport = slot.insert(transport);
        transport.used = 1 + self.serial.fetch_add(1, Ordering::Relaxed);
        let address = resolved.or(transport.peer).expect("one of a datagram or of a connection");
        Ok(PoolHandle { commands: transport.commands.clone(), address })
    }
    /// Ends all, once what is under way is over. What is still being opened after `wait` is left alone: its task ends
    /// when the caller that opens it is done.
    pub async fn close(&self, wait: Duration) {
        let all = std::mem::take(&mut *self.lock());
        let open = all.into_values().map(async |slot: Slot| {
            let mut slot = tokio::time::timeout(wait, slot.lock()).await.ok()?;
            slot.take()
        });
        for transport in join_all(open).await.into_iter().flatten() {
            let OpenTransport { commands, task, .. } = transport;
            drop(commands);
            // A task that has panicked has nothing under way.
            let _ended = task.await;
        }
    }

    fn slot(&self, place: &Place, connections_max: usize) -> Result<Slot, Error> {
        let mut all = self.lock();
        if let Some(known) = all.get(place) {
            return Ok(known.clone());
        }
        let connections = |all: &BTreeMap<Place, Slot>| {
            all.keys().filter(|place| matches!(place, Place::Connection(_))).count()
        };
        if matches!(place, Place::Connection(_)) && connections(&all) >= connections_max {
            // A slot that somebody holds is being opened. A free slot whose transport has ended is forgotten.
            all.retain(|_, slot| {
                let ended = |transport: &Option<OpenTransport>| {
                    transport.as_ref().is_none_or(|transport| transport.commands.is_closed())
                };
                Arc::strong_count(slot) > 1
                    || !slot.try_lock().is_ok_and(|transport| ended(&transport))
            });
            if connections(&all) >= connections_max && !close_idle(&mut all) {
                return Err(Error::Crowded(connections_max));
            }
        }
        Ok(all.entry(place.clone()).or_default().clone())
    }
    /// Asks all transports for their reports.
    pub fn inspect(&self, tell: &mpsc::UnboundedSender<Report>) {
        for slot in self.lock().values() {
            // A transport that is being opened, or whose queue is full, is not asked.
            if let Ok(slot) = slot.try_lock()
                && let Some(transport) = &*slot
            {
                let _busy = transport.commands.try_send(Command::Inspect(tell.clone()));
            }
        }
    }
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Place, Slot>> {
        // The table is whole between any two operations.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the connection without requests that was used least recently; false if there is none.
fn close_idle(all: &mut BTreeMap<Place, Slot>) -> bool {
    let idle = all.iter().filter_map(|(place, slot)| {
        let slot = slot.try_lock().ok()?;
        let transport = slot.as_ref()?;
        let idle = matches!(place, Place::Connection(_)) && !transport.busy.load(Ordering::Relaxed);
        idle.then(|| (transport.used, place.clone()))
    });
    // A request that has been put into its queue is still served: the task ends when all senders are gone.
    let oldest = idle.min();
    oldest.is_some_and(|(_, place)| all.remove(&place).is_some())
}

/// Opens a transport. The future has no type of its own: it and the transport's task are compiled once, here, and not
/// again in each crate that awaits a request.
fn begin<'a>(
    settings: &'a Settings,
    place: &'a Place,
    uri: &'a Uri,
    addresses: Option<&'a [SocketAddr]>,
) -> BoxFuture<'a, Result<OpenTransport, Error>> {
    Box::pin(async move {
        match place {
            Place::Udp => datagrams(settings, false),
            Place::Dtls => datagrams(settings, true),
            Place::Connection(_) => connection(settings, uri, addresses).await,
        }
    })
}

async fn connection(
    settings: &Settings,
    uri: &Uri,
    addresses: Option<&[SocketAddr]>,
) -> Result<OpenTransport, Error> {
    let (limits, protection) = (settings.host.clone(), settings.protection());
    let (trust, wait) = (settings.trust.as_ref(), settings.opening_max);
    let opening = async {
        match addresses {
            Some(addresses) => StreamTransport::connect_to(addresses, uri, trust).await,
            None => StreamTransport::connect(uri, trust).await,
        }
    };
    let (origin, what) = (origin(uri), handshakes(uri.scheme));
    let late = |_| Err(ConnectError::Late { origin, what, wait });
    let line = tokio::time::timeout(wait, opening).await.unwrap_or_else(late)?;
    let peer = Some(line.peer);
    let host = over_connections(settings.connection.clone(), limits, protection, fresh_rng());
    let connected = Connected::new(line, host).tapped(settings.tap.clone());
    Ok(converse(connected, settings, peer, Conversation::ending_when_idle))
}

/// What it takes to open a connection (RFC 8323 s3, s4, s5).
const fn handshakes(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::CoapsTcp => "TCP connection and TLS handshake",
        Scheme::CoapWs => "TCP connection and WebSocket handshake",
        Scheme::CoapsWs => "TCP connection and TLS and WebSocket handshakes",
        _ => "TCP connection",
    }
}

fn datagrams(settings: &Settings, secure: bool) -> Result<OpenTransport, Error> {
    let again = settings.clone();
    // A port of the user's choice is one socket's.
    let chosen = settings.local.is_some_and(|local| local.port() != 0);
    let more = move || (!chosen).then(|| socket(&again, secure));
    let sockets = Sockets::new(socket(settings, secure)?, more);
    let name = if secure { "coaps" } else { "coap" };
    Ok(converse(sockets, settings, None, |conversation| conversation.named(name)))
}

/// One socket for all peers over UDP or DTLS.
fn socket(settings: &Settings, secure: bool) -> Result<Datagrams, Error> {
    let (limits, protection) = (settings.host.clone(), settings.protection());
    let sessions = secure.then(|| settings.sessions()).transpose()?;
    // The handshake of DTLS proves the address of a peer.
    let datagrams = Config { proven: secure, opens_sessions: secure, ..settings.datagrams.clone() };
    let host = over_datagrams(datagrams, limits, protection, fresh_rng())?;
    let udp = settings.local.map_or_else(Udp::ephemeral, Udp::bind)?;
    if let Some((interface, hops)) = settings.groups {
        let error = |error| BindError::Other { address: udp.local_addr(), error };
        udp.send_groups_by(interface, hops).map_err(error)?;
    }
    let driver: Datagrams = match sessions {
        Some(sessions) => Driver::secure(udp, sessions, host),
        None => Driver::new(udp, host),
    };
    Ok(driver.tapped(settings.tap.clone()))
}

fn converse<W: Transport + 'static>(
    transport: W,
    settings: &Settings,
    peer: Option<SocketAddr>,
    ending: impl FnOnce(Conversation<W>) -> Conversation<W>,
) -> OpenTransport {
    let (commands, given) = mpsc::channel(COMMANDS_MAX);
    let (contexts, watcher) = (settings.contexts.clone(), settings.watcher.clone());
    let busy = Arc::new(AtomicBool::new(true));
    let conversation = ending(Conversation::new(transport, given, busy.clone(), contexts, watcher));
    OpenTransport { commands, peer, task: tokio::spawn(conversation.run()), busy, used: 0 }
}

/// Scheme, host and port of a URI: what it is for connections, for caches and for people.
pub(crate) fn origin(uri: &Uri) -> String {
    let (scheme, host, explicit_port) = (uri.scheme, uri.host.clone(), Some(uri.port()));
    Uri { scheme, host, explicit_port, path: Vec::new(), query: Vec::new() }.to_string()
}

#[cfg(test)]
mod tests;
