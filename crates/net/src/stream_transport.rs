//! One connection for CoAP, whatever its URI's scheme: TCP, TLS, WebSockets, WebSockets over TLS (RFC 8323).

use std::fmt;
use std::future::{Future as _, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::uri::{Host, Scheme, Uri};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::Sleep;

use crate::meter::{Meter, Metered};
use crate::origins::Origins;
use crate::params::{LISTEN_BACKLOG, SERVED_SEND_BUFFER};
use crate::resolve::{ResolveError, ascii_name, resolve};
use crate::stream::{Connection, StreamError};
use crate::tls::{Alpn, TlsClient, TlsError, TlsServer};
use crate::udp::BindError;
use crate::websocket::{UpgradeError, WebSocket};

/// Any stream of bytes.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

/// An open connection.
pub struct StreamTransport {
    /// The address of the peer.
    pub peer: SocketAddr,
    wire: Wire,
    /// Whether a part of a message has come.
    meter: Meter,
    /// How long a message may take.
    message_max: Option<Duration>,
    /// When the message that has begun has had its time.
    slow: Option<Pin<Box<Sleep>>>,
    flushed: bool,
}

enum Wire {
    Stream(Connection<Metered<Box<dyn ByteStream>>>),
    WebSocket(Box<WebSocket<Metered<Box<dyn ByteStream>>>>),
}

impl fmt::Debug for StreamTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamTransport").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// A connection that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The host leads nowhere.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// Nobody answers.
    #[error("cannot connect to {address}: {error}")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        error: io::Error,
    },
    /// The peer took too long.
    #[error("{origin}: no {what} within {} s", wait.as_secs_f64())]
    Late {
        /// Scheme, host and port.
        origin: String,
        /// What an open connection takes.
        what: &'static str,
        /// How long it was waited for.
        wait: Duration,
    },
    /// The handshake of TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A scheme with an `s`, and nothing to trust.
    #[error("{0} needs the certificates of trusted authorities")]
    NoTrust(&'static str),
    /// The handshake of WebSockets.
    #[error(transparent)]
    Upgrade(#[from] UpgradeError),
    /// The host is a group.
    #[error("{0} is a group, which a connection cannot reach")]
    Group(IpAddr),
    /// A scheme of datagrams.
    #[error("{0} has no connections")]
    Datagrams(&'static str),
}

impl StreamTransport {
    /// Connects to the host of a URI as its scheme says, to the first of its addresses that answers.
    pub async fn connect(uri: &Uri, tls: Option<&TlsClient>) -> Result<Self, ConnectError> {
        if !uri.scheme.is_reliable() {
            return Err(ConnectError::Datagrams(uri.scheme.name()));
        }
        if uri.scheme.is_secure() && tls.is_none() {
            return Err(ConnectError::NoTrust(uri.scheme.name()));
        }
        Self::connect_to(&resolve(uri).await?, uri, tls).await
    }
    /// The same, to the first of these addresses that answers.
    pub(crate) async fn connect_to(
        addresses: &[SocketAddr],
        uri: &Uri,
        tls: Option<&TlsClient>,
    ) -> Result<Self, ConnectError> {
        let trust = match (uri.scheme.is_secure(), tls) {
            (true, None) => return Err(ConnectError::NoTrust(uri.scheme.name())),
            (true, Some(tls)) => Some(tls),
            (false, _) => None,
        };
        // RFC 8323 s1: no multicast over connections.
        if let Some(group) = addresses.iter().find(|one| one.ip().is_multicast()) {
            return Err(ConnectError::Group(group.ip()));
        }
        let (stream, peer) = first_that_answers(addresses).await?;
        let host = match &uri.host {
            Host::Name(name) => ascii_name(name)?.into_owned(),
            Host::V4(address) => address.to_string(),
            Host::V6(address, _) => address.to_string(),
        };
        let websocket = matches!(uri.scheme, Scheme::CoapWs | Scheme::CoapsWs);
        let stream: Box<dyn ByteStream> = match trust {
            None => Box::new(stream),
            Some(tls) => {
                // RFC 8323 s8.2: at its default port a server may go without ALPN.
                let usual = uri.port() == Scheme::CoapsTcp.default_port();
                let alpn = match (websocket, usual) {
                    (true, _) => Alpn::Web,
                    (false, true) => Alpn::Optional,
                    (false, false) => Alpn::Required,
                };
                Box::new(tls.connect(&host, stream, alpn).await?)
            }
        };
        let (stream, meter) = Metered::new(stream);
        let wire = if websocket {
            let host = if host.contains(':') { format!("[{host}]") } else { host };
            let authority = match uri.explicit_port {
                Some(port) => format!("{host}:{port}"),
                None => host,
            };
            let socket = WebSocket::connect(&authority, stream).await?;
            Wire::WebSocket(Box::new(socket.metered(meter.clone())))
        } else {
            Wire::Stream(Connection::new(stream))
        };
        Ok(Self::new(peer, wire, meter))
    }
    /// Over a pipe that is open.
    #[cfg(test)]
    pub(crate) fn over(stream: impl ByteStream + 'static, peer: SocketAddr) -> Self {
        let (stream, meter) = Metered::new(Box::new(stream) as Box<dyn ByteStream>);
        Self::new(peer, Wire::Stream(Connection::new(stream)), meter)
    }
    const fn new(peer: SocketAddr, wire: Wire, meter: Meter) -> Self {
        Self { peer, wire, meter, message_max: None, slow: None, flushed: true }
    }
    /// The same line, on which a message may take so long from its first octet to its last.
    pub fn receiving_within(self, message_max: Duration) -> Self {
        Self { message_max: Some(message_max), ..self }
    }
    /// The next message. May be dropped and called again at any time: nothing is lost.
    pub async fn receive(&mut self) -> Result<StreamMessage, StreamError> {
        let Self { wire, meter, message_max, slow, .. } = self;
        let mut receiving = pin!(async {
            match wire {
                Wire::Stream(one) => one.receive().await,
                Wire::WebSocket(one) => one.receive().await,
            }
        });
        let received = poll_fn(|context| {
            if let Poll::Ready(message) = receiving.as_mut().poll(context) {
                return Poll::Ready(message);
            }
            let Some(message_max) = message_max.filter(|_| meter.is_running()) else {
                *slow = None;
                return Poll::Pending;
            };
            let slow = slow.get_or_insert_with(|| Box::pin(tokio::time::sleep(message_max)));
            slow.as_mut().poll(context).map(|()| Err(StreamError::Slow))
        });
        let received = received.await;
        meter.stop();
        *slow = None;
        received
    }
    /// Sends a message. Dropped before it is done, it goes on with the next.
    pub async fn send(&mut self, message: &StreamMessage) -> io::Result<()> {
        self.queue(message);
        self.flush().await
    }
    /// Queues a message for [`StreamTransport::flush`].
    pub fn queue(&mut self, message: &StreamMessage) {
        self.flushed = false;
        match &mut self.wire {
            Wire::Stream(one) => one.queue(message),
            Wire::WebSocket(one) => one.queue(message),
        }
    }
    /// Sends what is queued. May be dropped and called again at any time.
    pub async fn flush(&mut self) -> io::Result<()> {
        match &mut self.wire {
            Wire::Stream(one) => one.flush().await?,
            Wire::WebSocket(one) => one.flush().await?,
        }
        self.flushed = true;
        Ok(())
    }
    /// True if nothing has been queued since the last [`StreamTransport::flush`] that was completed.
    pub const fn is_flushed(&self) -> bool {
        self.flushed
    }
    /// Octets that are queued and have not been given to the system.
    pub fn waiting(&self) -> usize {
        match &self.wire {
            Wire::Stream(one) => one.waiting(),
            Wire::WebSocket(one) => one.waiting(),
        }
    }
    /// Closes the sending direction.
    pub async fn close(self) -> io::Result<()> {
        match self.wire {
            Wire::Stream(one) => one.close().await,
            Wire::WebSocket(one) => one.close().await,
        }
    }
}

async fn first_that_answers(
    addresses: &[SocketAddr],
) -> Result<(TcpStream, SocketAddr), ConnectError> {
    let mut last = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Requests are small and wait for their answers: to gather them would only delay.
                let _as_it_was = stream.set_nodelay(true);
                return Ok((stream, *address));
            }
            Err(error) => last = Some(ConnectError::Connect { address: *address, error }),
        }
    }
    Err(last.expect("a host that resolves has an address"))
}

/// Listens as `TcpListener::bind` does, with a longer queue of connections that nobody has accepted yet.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // On Windows it would let another program take the port.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(LISTEN_BACKLOG)
}

/// A port that accepts connections.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    websocket: bool,
    tls: Option<TlsServer>,
    origins: Arc<Origins>,
}

impl Listener {
    /// Opens a port for a scheme of connections; `tls` for those with an `s`.
    #[expect(
        clippy::unused_async,
        reason = "a port needs a runtime, as that of tokio says in this way"
    )]
    pub async fn bind(
        address: SocketAddr,
        scheme: Scheme,
        tls: Option<TlsServer>,
    ) -> Result<Self, BindError> {
        let socket = listen(address).map_err(|error| BindError::new(address, error))?;
        let websocket = matches!(scheme, Scheme::CoapWs | Scheme::CoapsWs);
        let (tls, origins) = (tls.filter(|_| scheme.is_secure()), Arc::default());
        Ok(Self { socket, websocket, tls, origins })
    }
    /// The same, where these web pages may open WebSockets too.
    pub fn admitting(self, origins: Arc<Origins>) -> Self {
        Self { origins, ..self }
    }
    /// Its own address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
    /// The next connection. Its handshakes follow with [`Incoming::open`], so that a slow peer does not make others wait.
    pub async fn accept(&self) -> io::Result<Incoming> {
        let (stream, peer) = self.socket.accept().await?;
        let _as_it_was = stream.set_nodelay(true);
        // Linux would let its buffer grow to megabytes for a peer that does not read.
        let _as_it_was = SockRef::from(&stream).set_send_buffer_size(SERVED_SEND_BUFFER);
        let (tls, origins) = (self.tls.clone(), self.origins.clone());
        Ok(Incoming { stream, peer, websocket: self.websocket, tls, origins })
    }
}

/// A connection before its handshakes.
#[derive(Debug)]
pub struct Incoming {
    stream: TcpStream,
    /// The address of the peer.
    pub peer: SocketAddr,
    websocket: bool,
    tls: Option<TlsServer>,
    origins: Arc<Origins>,
}

impl Incoming {
    /// The scheme of its port.
    pub const fn scheme(&self) -> Scheme {
        match (self.websocket, self.tls.is_some()) {
            (false, false) => Scheme::CoapTcp,
            (false, true) => Scheme::CoapsTcp,
            (true, false) => Scheme::CoapWs,
            (true, true) => Scheme::CoapsWs,
        }
    }
    /// Performs the handshakes. The caller gives up after a while.
    pub async fn open(self) -> Result<StreamTransport, ConnectError> {
        let stream: Box<dyn ByteStream> = match &self.tls {
            None => Box::new(self.stream),
            Some(tls) => Box::new(tls.accept(self.stream, self.websocket).await?),
        };
        let (stream, meter) = Metered::new(stream);
        let wire = if self.websocket {
            let socket = WebSocket::accept(stream, &self.origins).await?;
            Wire::WebSocket(Box::new(socket.metered(meter.clone())))
        } else {
            Wire::Stream(Connection::new(stream))
        };
        Ok(StreamTransport::new(self.peer, wire, meter))
    }
}
