//! What carries the messages of RFC 8323: TCP, TLS, and WebSockets over either.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use lowmesh_wire::coap::stream::{Framing, StreamMessage, frame_len};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tungstenite::client::ClientRequestBuilder;
use tungstenite::{Message, WebSocket};

use super::PATIENCE;
use crate::process::{self, Stopwatch};

/// The longest message that is taken.
const LEN_MAX: usize = 1 << 20;
/// Whom the test certificate names.
const SERVER: &str = "localhost";

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A connection.
pub enum Carrier {
    Tcp(TcpStream, Vec<u8>),
    Tls(Box<Tls>, Vec<u8>),
    Web(Box<WebSocket<TcpStream>>),
    SecureWeb(Box<WebSocket<Tls>>),
}

/// A client's end of TLS that trusts the authority of the tests; RFC 8323 s8.2 names the protocol of ALPN.
fn secure(tcp: TcpStream, protocol: &[u8]) -> Result<Tls> {
    let authority = process::root().join("crates/net/tests/tls/ca.pem");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&authority).context("no authority")?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let connection = ClientConnection::new(Arc::new(config), SERVER.try_into()?)?;
    Ok(StreamOwned::new(connection, tcp))
}

/// The handshake of a WebSocket (RFC 8323 s4.1, s8.3).
fn upgraded<S: std::io::Read + std::io::Write>(scheme: &str, stream: S) -> Result<WebSocket<S>> {
    let address = format!("{scheme}://{SERVER}/.well-known/coap").parse()?;
    let request = ClientRequestBuilder::new(address).with_sub_protocol("coap");
    let upgraded = tungstenite::client(request, stream);
    Ok(upgraded.map_err(|error| anyhow!("no WebSocket: {error}"))?.0)
}

impl Carrier {
    /// Octets as they are.
    pub fn tcp(tcp: TcpStream) -> Result<Self> {
        prepare(&tcp)?;
        Ok(Self::Tcp(tcp, Vec::new()))
    }
    /// coaps+tcp.
    pub fn tls(tcp: TcpStream) -> Result<Self> {
        prepare(&tcp)?;
        Ok(Self::Tls(Box::new(secure(tcp, b"coap")?), Vec::new()))
    }
    /// coap+ws.
    pub fn web(tcp: TcpStream) -> Result<Self> {
        prepare(&tcp)?;
        Ok(Self::Web(Box::new(upgraded("ws", tcp)?)))
    }
    /// coaps+ws.
    pub fn secure_web(tcp: TcpStream) -> Result<Self> {
        prepare(&tcp)?;
        Ok(Self::SecureWeb(Box::new(upgraded("wss", secure(tcp, b"http/1.1")?)?)))
    }
    const fn framing(&self) -> Framing {
        match self {
            Self::Tcp(..) | Self::Tls(..) => Framing::Stream,
            Self::Web(_) | Self::SecureWeb(_) => Framing::WebSocket,
        }
    }
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Tcp(tcp, _) => tcp,
            Self::Tls(tls, _) => tls.get_ref(),
            Self::Web(web) => web.get_ref(),
            Self::SecureWeb(web) => web.get_ref().get_ref(),
        }
    }
    /// One message.
    pub fn send(&mut self, message: &StreamMessage) -> Result<()> {
        let mut bytes = Vec::new();
        message.emit(self.framing(), &mut bytes);
        match self {
            Self::Tcp(tcp, _) => tcp.write_all(&bytes)?,
            Self::Tls(tls, _) => {
                tls.write_all(&bytes)?;
                tls.flush()?;
            }
            Self::Web(web) => web.send(Message::binary(bytes))?,
            Self::SecureWeb(web) => web.send(Message::binary(bytes))?,
        }
        Ok(())
    }
    /// The next message, if it comes in time.
    pub fn receive(&mut self, wait: Duration) -> Result<Option<StreamMessage>> {
        let clock = Stopwatch::start();
        loop {
            if let Some(message) = self.whole()? {
                return Ok(Some(message));
            }
            let left = wait.saturating_sub(clock.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket().set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            if let Some(message) = self.read()? {
                return Ok(Some(message));
            }
        }
    }
    /// A message that has come whole over a stream.
    fn whole(&mut self) -> Result<Option<StreamMessage>> {
        let (Self::Tcp(_, buffer) | Self::Tls(_, buffer)) = self else { return Ok(None) };
        let Some(len) = frame_len(buffer, LEN_MAX)?.filter(|len| *len <= buffer.len()) else {
            return Ok(None);
        };
        let frame: Vec<u8> = buffer.drain(..len).collect();
        Ok(Some(StreamMessage::parse(&frame, Framing::Stream)?))
    }
    /// Reads once; a WebSocket gives a whole message.
    fn read(&mut self) -> Result<Option<StreamMessage>> {
        let mut octets = [0; 4096];
        let (came, buffer) = match self {
            Self::Tcp(tcp, buffer) => (tcp.read(&mut octets), buffer),
            Self::Tls(tls, buffer) => (tls.read(&mut octets), buffer),
            Self::Web(web) => return of_web(web.read()),
            Self::SecureWeb(web) => return of_web(web.read()),
        };
        match came {
            Ok(0) => bail!("the server has closed the connection"),
            Ok(len) => buffer.extend_from_slice(&octets[..len]),
            Err(error) if is_late(&error) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }
}

fn prepare(tcp: &TcpStream) -> Result<()> {
    tcp.set_write_timeout(Some(PATIENCE))?;
    tcp.set_read_timeout(Some(PATIENCE))?;
    Ok(())
}

fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn of_web(came: tungstenite::Result<Message>) -> Result<Option<StreamMessage>> {
    match came {
        Ok(Message::Binary(frame)) => Ok(Some(StreamMessage::parse(&frame, Framing::WebSocket)?)),
        Ok(Message::Close(_)) => bail!("the server has closed the WebSocket"),
        Ok(_) => Ok(None),
        Err(tungstenite::Error::Io(error)) if is_late(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
