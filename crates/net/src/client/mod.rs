//! A CoAP client: any number of requests at once, to any number of servers, over UDP, DTLS, TCP, TLS and WebSockets as
//! their URIs say.
//!
//! ```no_run
//! # async fn example() -> Result<(), lowmesh_net::client::Error> {
//! use lowmesh_coap::CongestionControl;
//! use lowmesh_net::client::{self, Client};
//! use lowmesh_wire::coap::ContentFormat;
//!
//! // One request.
//! println!("{}", client::get("coap://localhost/hello").await?.ok()?.text());
//!
//! // Many, with a congestion control of your choice.
//! let client = Client::builder().congestion(CongestionControl::new("cocoa")?).build()?;
//! let made = client.post("coap://localhost/count").payload("1").await?.ok()?;
//! let state = client.get("coap+tcp://localhost/state").accept(ContentFormat::CBOR).await?;
//! let mut temperature = client.get("coap://localhost/temperature").observe().await?;
//! while let Some(state) = temperature.next().await {
//!     println!("{}", state?.text());
//! }
//! client.close().await
//! # }
//! ```
//!
//! ```text
//!   Client ── begin ──► Conversation of all peers over UDP ───────► Driver
//!     │            ├──► Conversation of all peers over DTLS ──────► Driver
//!     │            └──► Conversation of each connection ──────────► StreamTransport
//!     └ Exchange ◄── what comes, by request ──┘
//! ```
//! Every transport has a task of the runtime that the client is used in. It starts with the first request. A connection ends
//! when no request has needed it for [`CLIENT_IDLE`](crate::params::CLIENT_IDLE). Blocks, freshness and congestion control
//! are done below, in `lowmesh-coap`.

mod builder;
mod command;
mod conversation;
mod error;
mod exchange;
mod mailbox;
mod observation;
mod pool;
mod request;
mod response;
mod settings;
mod sockets;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lowmesh_coap::{CongestionControl, Output};
use lowmesh_machine::Handle;
use lowmesh_wire::coap::Code;
use lowmesh_wire::coap::uri::{Scheme, Uri};
use tokio::sync::{mpsc, oneshot};

use crate::metrics::{Report, endpoints, gathered};
use crate::resolve::resolve;
pub use builder::Builder;
use command::{Command, Operation};
pub use error::Error;
pub use exchange::Exchange;
pub use mailbox::Item;
use mailbox::Mailbox;
pub use observation::{GroupObservation, Observation};
pub(crate) use pool::origin;
use pool::{ConnectionPool, PoolHandle};
pub use request::Request;
pub use response::Response;
use settings::Settings;

/// A CoAP client. A clone uses the same sockets and connections.
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: Settings,
    pool: ConnectionPool,
    /// The newest handle.
    serial: AtomicU64,
}

/// The answer to a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pong {
    /// From the first copy of the ping to now.
    pub rtt: Duration,
    /// Copies after the first.
    pub retransmissions: u8,
}

/// A type that can be converted to a URI.
pub trait IntoUri {
    /// The URI, if it is one.
    fn into_uri(self) -> Result<Uri, Error>;
}

impl IntoUri for Uri {
    fn into_uri(self) -> Result<Uri, Error> {
        Ok(self)
    }
}
impl IntoUri for &Uri {
    fn into_uri(self) -> Result<Uri, Error> {
        Ok(self.clone())
    }
}
impl IntoUri for &str {
    fn into_uri(self) -> Result<Uri, Error> {
        self.parse().map_err(|error| Error::Uri { text: self.to_owned(), error })
    }
}
impl IntoUri for String {
    fn into_uri(self) -> Result<Uri, Error> {
        self.as_str().into_uri()
    }
}
impl IntoUri for &String {
    fn into_uri(self) -> Result<Uri, Error> {
        self.as_str().into_uri()
    }
}

/// The first address of a URI's host. A multicast address is a group, which [`Request::gather`] asks.
pub async fn address(uri: impl IntoUri) -> Result<SocketAddr, Error> {
    let addresses = resolve(&uri.into_uri()?).await?;
    Ok(*addresses.first().expect("a host that resolves has an address"))
}

/// Sends a GET request.
pub async fn get(uri: impl IntoUri) -> Result<Response, Error> {
    let client = Client::builder().build()?;
    client.get(uri).await
}

/// Sends a POST request.
pub async fn post(uri: impl IntoUri, payload: impl Into<Vec<u8>>) -> Result<Response, Error> {
    let client = Client::builder().build()?;
    client.post(uri).payload(payload).await
}

/// Sends a PUT request.
pub async fn put(uri: impl IntoUri, payload: impl Into<Vec<u8>>) -> Result<Response, Error> {
    let client = Client::builder().build()?;
    client.put(uri).payload(payload).await
}

impl Client {
    /// Returns a builder with the default settings.
    pub fn builder() -> Builder {
        Builder::default()
    }
    /// Sends a GET request.
    pub fn get(&self, uri: impl IntoUri) -> Request<'_> {
        self.request(Code::GET, uri)
    }
    /// Sends a POST request.
    pub fn post(&self, uri: impl IntoUri) -> Request<'_> {
        self.request(Code::POST, uri)
    }
    /// Sends a PUT request.
    pub fn put(&self, uri: impl IntoUri) -> Request<'_> {
        self.request(Code::PUT, uri)
    }
    /// Sends a DELETE request.
    pub fn delete(&self, uri: impl IntoUri) -> Request<'_> {
        self.request(Code::DELETE, uri)
    }
    /// Sends a FETCH request for a part of a resource (RFC 8132).
    pub fn fetch(&self, uri: impl IntoUri) -> Request<'_> {
        self.request(Code::FETCH, uri)
    }
    /// Sends a PATCH request, which changes a part of a resource (RFC 8132).
    pub fn patch(&self, uri: impl IntoUri) -> Request<'_> {
        self.request(Code::PATCH, uri)
    }
    /// Sends an iPATCH request, an idempotent change of a part of a resource (RFC 8132).
    pub fn ipatch(&self, uri: impl IntoUri) -> Request<'_> {
        self.request(Code::IPATCH, uri)
    }
    /// Sends a request with any method.
    pub fn request(&self, method: Code, uri: impl IntoUri) -> Request<'_> {
        Request::new(self, method, uri)
    }
    /// Checks whether the host of a URI responds (RFC 7252 s4.3, RFC 8323 s5.4), within the client's patience.
    pub async fn ping(&self, uri: impl IntoUri) -> Result<Pong, Error> {
        let (uri, patience) = (uri.into_uri()?, self.0.settings.patience);
        let mut exchange = timely(&uri, patience, self.begin(&uri, None, Operation::Ping)).await?;
        let pong = async |exchange: &mut Exchange| {
            while let Some(item) = exchange.next().await {
                if let Output::Pong { rtt, retransmissions, .. } = item? {
                    return Ok(Pong { rtt: rtt.into(), retransmissions });
                }
            }
            Err(Error::Unwanted)
        };
        exchange.within(patience, pong).await
    }
    /// The state of its sockets for UDP and DTLS, and of congestion control for each peer. Connections are reports
    /// without numbers.
    pub async fn reports(&self) -> Vec<Report> {
        let (tell, told) = mpsc::unbounded_channel();
        self.0.pool.inspect(&tell);
        drop(tell);
        gathered(told).await
    }
    /// The same state as text for Prometheus.
    pub async fn metrics(&self) -> String {
        endpoints(&self.reports().await)
    }
    /// Closes idle transports, waits for requests in progress, and stores the state of security contexts. For a
    /// connection that is being opened it waits [`HANDSHAKE_MAX`](crate::params::HANDSHAKE_MAX) at most.
    pub async fn close(self) -> Result<(), Error> {
        self.0.pool.close(self.0.settings.opening_max).await;
        if let Some(contexts) = &self.0.settings.contexts {
            contexts.close()?;
        }
        Ok(())
    }

    /// Gives the host of a URI its own congestion control, over UDP or DTLS; `None` restores that of the client. What
    /// has been learned about it so far is forgotten. Takes no longer than the client's patience.
    pub async fn choose_congestion_control(
        &self,
        uri: impl IntoUri,
        chosen: Option<CongestionControl>,
    ) -> Result<(), Error> {
        let uri = uri.into_uri()?;
        let choosing = async {
            loop {
                let PoolHandle { commands, address } =
                    self.0.pool.open(&self.0.settings, &uri, None).await?;
                let Ok(place) = commands.reserve().await else { continue };
                let (reply, choice) = oneshot::channel();
                place.send(Command::Choose { address, chosen: chosen.clone(), reply });
                // Without an answer the transport has ended, and a new one does not know the choice.
                if let Ok(choice) = choice.await {
                    return choice;
                }
            }
        };
        timely(&uri, self.0.settings.patience, choosing).await
    }

    async fn begin(
        &self,
        uri: &Uri,
        addresses: Option<Vec<SocketAddr>>,
        operation: Operation,
    ) -> Result<Exchange, Error> {
        let handle = Handle(1 + self.0.serial.fetch_add(1, Ordering::Relaxed));
        let mailbox = Arc::new(Mailbox::default());
        loop {
            let chosen = addresses.as_deref();
            let PoolHandle { commands, address } =
                self.0.pool.open(&self.0.settings, uri, chosen).await?;
            match (&operation, address.ip().is_multicast()) {
                (Operation::Group(..), false) => return Err(Error::NoGroup(address.ip())),
                (Operation::Request(_) | Operation::Ping, true) => {
                    return Err(Error::Group(address.ip()));
                }
                // RFC 10020 s3.4: this port MUST NOT be used for groups.
                (Operation::Group(..), true) if address.port() == Scheme::Coaps.default_port() => {
                    return Err(Error::SecurePort(address));
                }
                _ if uri.scheme != Scheme::Coap && address.ip().is_multicast() => {
                    return Err(Error::Group(address.ip()));
                }
                _ => {}
            }
            // Without a place the transport has ended since it was found: the next one is new.
            let Ok(place) = commands.reserve().await else { continue };
            place.send(Command::Begin { address, operation, handle, mailbox: mailbox.clone() });
            return Ok(Exchange::new(handle, mailbox, commands.clone()));
        }
    }
}

/// Bounds a future by the client's patience, with the time that a connection takes to open.
async fn timely<T>(
    uri: &Uri,
    patience: Duration,
    done: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let silence = |_| Err(Error::Silence { peer: origin(uri), wait: patience });
    tokio::time::timeout(patience, done).await.unwrap_or_else(silence)
}
