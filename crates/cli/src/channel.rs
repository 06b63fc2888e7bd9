//! The way to one server, whatever its URI's scheme: UDP, DTLS, TCP, TLS, WebSockets. All that waits
//! is here; the host of `lowmesh-coap` does the rest, with the same inputs and outputs over all of them.

use std::future::Future;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lowmesh_coap::blockwise::Exponent;
use lowmesh_coap::{
    Config, CongestionControl, ConnectionLimits, Connections, Endpoint, Host, HostLimits,
};
use lowmesh_coap::{Input, Output};
use lowmesh_machine::{DropReason, Machine as _, Rejected};
use lowmesh_net::clock::{Clock, fresh_seed};
use lowmesh_net::driver::Driver;
use lowmesh_net::dtls::{LossCause, Sessions};
use lowmesh_net::line::Line;
use lowmesh_net::oscore::{
    Contexts, Plain, Protected, Protection, over_connections, over_datagrams,
};
use lowmesh_net::peer::Peer;
use lowmesh_net::resolve::resolve;
use lowmesh_net::tls::TlsClient;
use lowmesh_net::udp::Udp;
use lowmesh_units::{NodeId, Purpose, Rng};
use lowmesh_wire::coap::stream::{Framing, StreamMessage};
use lowmesh_wire::coap::uri::{Scheme, Uri};

use crate::failure::Failure;

/// How long one answer is waited for: what libcoap's client waits.
const WAIT_S: f64 = 90.0;
/// How long the answers of a group are waited for unless the user says otherwise: DEFAULT_LEISURE (RFC 7252 s8.2), 5 s,
/// and the way there and back.
const GROUP_WAIT_S: f64 = 8.0;
const KEY_HINT: &str = "are --identity and --psk what the server knows?";

/// How to reach the server.
#[derive(Debug, clap::Args)]
#[group(id = "channel")]
pub struct Args {
    /// Over TCP or TLS although the scheme is coap or coaps
    #[arg(short, long)]
    reliable: bool,
    /// Local port, for coap and coaps
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
    /// Local address, for coap and coaps
    #[arg(short, long, value_name = "ADDRESS")]
    address: Option<IpAddr>,
    /// Pre-shared key for coaps, or @FILE that holds it
    #[arg(short = 'k', long, value_name = "KEY", requires = "identity")]
    psk: Option<String>,
    /// Identity that goes with the key
    #[arg(short = 'u', long, value_name = "NAME", requires = "psk")]
    identity: Option<String>,
    /// Certificates (PEM) of the authorities to trust, for coaps+tcp and coaps+ws
    #[arg(long, value_name = "FILE")]
    cafile: Option<PathBuf>,
    /// Security context for OSCORE, in libcoap's file format; its state is kept beside the file
    #[arg(short = 'E', long, value_name = "FILE")]
    oscore: Option<PathBuf>,
    /// Largest block of a long body, octets
    #[arg(short, long, value_name = "OCTETS", value_parser = block)]
    block: Option<Exponent>,
    /// Retransmission timer: default, rfc6298, cocoa, 6cocoa and their relatives, fasor
    #[arg(long, value_name = "NAME", default_value = "default")]
    cc: String,
}

fn block(text: &str) -> Result<Exponent, String> {
    let size: Option<usize> = text.parse().ok();
    let fits = size.filter(|size| Exponent::fitting(*size).size() == *size);
    fits.map(Exponent::fitting)
        .ok_or_else(|| "a block has 16, 32, 64, 128, 256, 512 or 1024 octets".to_owned())
}

/// Reads a URI of any scheme.
pub fn uri(text: &str) -> Result<Uri, Failure> {
    text.parse().map_err(|error| {
        let message = format!("{text:?} is no URI for CoAP: {error}");
        Failure::usage(message, "write it as in coap://[::1]/hello")
    })
}

/// Reads a URI, or the host of one: a name, an address, with or without a port.
pub fn host_or_uri(text: &str) -> Result<Uri, Failure> {
    let address = text.split_once('%').map_or(text, |(address, _zone)| address);
    if text.contains("://") {
        uri(text)
    } else if address.parse::<Ipv6Addr>().is_ok() {
        uri(&format!("coap://[{text}]"))
    } else {
        uri(&format!("coap://{text}"))
    }
}

/// Runs the asynchronous part of a verb.
pub fn wait<T>(task: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::own)?.block_on(task)
}

/// An open way to a server, or to a group of them.
pub struct Channel {
    /// Whom requests are for.
    pub peer: Peer,
    way: Way,
    contexts: Option<Contexts>,
}

/// A host whose messages may be protected.
type ProtectedHost<T> = Host<Peer, Protected<Peer, T>>;

enum Way {
    Datagrams(Box<Driver<ProtectedHost<Endpoint<Peer>>>>),
    Line(Box<Connected>),
}

struct Connected {
    line: Line,
    host: ProtectedHost<Connections<Peer>>,
    clock: Clock,
}

impl Channel {
    /// Opens the way to the host of a URI, within `limit`.
    pub async fn open(args: &Args, uri: &Uri, limit: Duration) -> Result<Self, Failure> {
        let opening = tokio::time::timeout(limit, Self::open_at_last(args, uri)).await;
        opening.unwrap_or_else(|_| Err(silence(limit)))
    }
    async fn open_at_last(args: &Args, uri: &Uri) -> Result<Self, Failure> {
        let mut uri = uri.clone();
        if args.reliable {
            uri.scheme = match uri.scheme {
                Scheme::Coap => Scheme::CoapTcp,
                Scheme::Coaps => Scheme::CoapsTcp,
                reliable => reliable,
            };
        }
        let contexts = args.oscore.as_deref().map(Contexts::open).transpose()?;
        let (peer, way) = if uri.scheme.is_reliable() {
            connect(args, &uri, contexts.clone()).await
        } else {
            bind(args, &uri, contexts.clone()).await
        }?;
        Ok(Self { peer, way, contexts })
    }
    /// Asks for something.
    pub fn handle(&mut self, input: Input<'_, Peer>) -> Result<(), Rejected> {
        match &mut self.way {
            Way::Datagrams(driver) => driver.handle(input),
            Way::Line(one) => one.host.handle(one.clock.now(), input),
        }
    }
    /// The next thing that happens.
    pub async fn next(&mut self) -> Result<Output<Peer>, Failure> {
        match &mut self.way {
            Way::Datagrams(driver) => driver.next().await.map_err(Failure::own),
            Way::Line(one) => one.next().await,
        }
    }
    /// What it means that nothing has come within `limit`.
    pub fn silence(&self, limit: Duration) -> Failure {
        match &self.way {
            Way::Datagrams(driver) if driver.is_shaking_hands(self.peer) => {
                let message =
                    format!("the handshake was not over within {} s", limit.as_secs_f64());
                Failure::Security { message, hint: KEY_HINT }
            }
            _ => self.unverified().unwrap_or_else(|| silence(limit)),
        }
    }
    /// What has come instead of an answer that OSCORE verifies, if anything.
    fn unverified(&self) -> Option<Failure> {
        let refusal = self.contexts.as_ref().and_then(Contexts::take_refusal)?;
        let message = format!("no protected answer from {}: {refusal}", self.peer.address);
        let hint = "has the server this security context, sender and recipient exchanged?";
        Some(Failure::Security { message, hint })
    }
    /// What it means that a request has failed.
    pub fn failure(&mut self, reason: DropReason) -> Failure {
        let address = self.peer.address;
        if let Way::Datagrams(driver) = &mut self.way
            && let Some(loss) = driver.take_session_loss()
        {
            let hint = "is a DTLS server running there, at this port?";
            return match loss.cause {
                LossCause::Handshake => Failure::Security { message: loss.reason, hint: KEY_HINT },
                LossCause::Unheard => {
                    Failure::no_answer(format!("{address}: {}", loss.reason), hint)
                }
                LossCause::Closed => Failure::no_answer(
                    format!("the session with {address} is over: {}", loss.reason),
                    "ask again",
                ),
            };
        }
        if let Some(failure) = self.unverified() {
            return failure;
        }
        match reason {
            DropReason::NoRoute if self.peer.is_group() => {
                let hint = "say by which interface that has multicast, as in [ff02::fd%25eth0]";
                Failure::no_answer(format!("there is no way to the group {}", address.ip()), hint)
            }
            DropReason::NoRoute => {
                let hint = "is a server running there, at this port? is there a route?";
                Failure::no_answer(format!("{address} cannot be reached"), hint)
            }
            DropReason::Reset => Failure::no_answer(
                format!("{address} rejected the message"),
                "is it a CoAP server?",
            ),
            reason => {
                let message = format!("no answer from {address}: {}", reason.name());
                let hint = "is the server there? `lowmesh get -v` shows the timers";
                Failure::no_answer(message, hint)
            }
        }
    }
    /// Takes leave.
    pub async fn close(self) {
        if let Some(contexts) = self.contexts {
            // What is not stored now costs the next request numbers, or a challenge.
            let _stored = contexts.close();
        }
        match self.way {
            Way::Datagrams(driver) => driver.close(),
            // What was asked for is here already.
            Way::Line(one) => _ = one.line.close().await,
        }
    }
}

impl Connected {
    async fn next(&mut self) -> Result<Output<Peer>, Failure> {
        let gone = |error| Failure::no_answer(error, "is it a CoAP server that listens there?");
        loop {
            while let Some(output) = self.host.poll_output() {
                match output {
                    Output::Send { bytes, .. } => {
                        let message = StreamMessage::parse(&bytes, Framing::WebSocket)
                            .expect("a host sends whole messages");
                        self.line.send(&message).await.map_err(|error| gone(error.to_string()))?;
                    }
                    Output::Close { .. } => {
                        return Err(gone("the connection was ended by its server".to_owned()));
                    }
                    other => return Ok(other),
                }
            }
            let due = self.host.next_deadline().map(|due| self.clock.until(due));
            let sleep = async {
                match due {
                    Some(due) => tokio::time::sleep(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                message = self.line.receive() => {
                    let message = message.map_err(|error| gone(error.to_string()))?;
                    let mut bytes = Vec::new();
                    message.emit(Framing::WebSocket, &mut bytes);
                    let from = Peer::new(self.line.peer, None);
                    let datagram = Input::Datagram { from, bytes: &bytes };
                    let _always_taken = self.host.handle(self.clock.now(), datagram);
                }
                () = sleep => {
                    let _always_taken = self.host.handle(self.clock.now(), Input::Deadline);
                }
            }
        }
    }
}

/// How long an answer is waited for.
pub fn patience(timeout: Option<f64>) -> Duration {
    Duration::from_secs_f64(timeout.unwrap_or(WAIT_S))
}

/// How long the answers of a group are waited for.
pub fn group_patience(timeout: Option<f64>) -> lowmesh_units::Duration {
    lowmesh_units::Duration::from_secs_f64(timeout.unwrap_or(GROUP_WAIT_S))
}

/// What it means that a request was not taken.
pub fn refused(error: Rejected) -> Failure {
    Failure::usage(error, "the server was not asked")
}

fn silence(limit: Duration) -> Failure {
    let message = format!("no answer within {} s", limit.as_secs_f64());
    Failure::no_answer(message, "is the server there? `--timeout` waits longer")
}

fn limits(args: &Args) -> HostLimits {
    let defaults = HostLimits::default();
    HostLimits { exponent: args.block.unwrap_or(defaults.exponent), ..defaults }
}

fn rng() -> Rng {
    Rng::stream(fresh_seed(), NodeId(0), Purpose::Coap)
}

fn protection(contexts: Option<Contexts>) -> Option<Protection> {
    let plain_requests = Plain::Refused;
    contexts.map(|contexts| Protection { contexts, own_requests: Some(0), plain_requests })
}

async fn bind(args: &Args, uri: &Uri, contexts: Option<Contexts>) -> Result<(Peer, Way), Failure> {
    let config =
        Config { congestion: CongestionControl::new(args.cc.as_str()), ..Config::default() };
    let host = over_datagrams(config, limits(args), protection(contexts), rng())
        .map_err(|error| Failure::usage(error, "--cc chooses the retransmission timer"))?;
    let udp = if args.address.is_none() && args.port.is_none() {
        Udp::ephemeral()
    } else {
        let address = args.address.unwrap_or(Ipv6Addr::UNSPECIFIED.into());
        Udp::bind(SocketAddr::new(address, args.port.unwrap_or(0)))
    }?;
    let sessions = match (&args.psk, &args.identity) {
        (Some(key), Some(identity)) if uri.scheme.is_secure() => {
            let key = secret(key)?;
            let sessions = Sessions::client(identity.as_bytes(), &key);
            Some(sessions.map_err(|error| Failure::usage(error, "see --psk and --identity"))?)
        }
        _ if uri.scheme.is_secure() => {
            return Err(Failure::usage("coaps needs a key", "give --psk KEY --identity NAME"));
        }
        _ => None,
    };
    let address = *resolve(uri).await?.first().expect("a host that resolves has an address");
    if let Some(local) = args.address
        && !local.is_unspecified()
        && local.is_ipv4() != address.is_ipv4()
    {
        let message = format!("{local} and {} are not of one kind", address.ip());
        return Err(Failure::usage(
            message,
            "give --address one of the server's kind, or leave it out",
        ));
    }
    let driver = match sessions {
        Some(sessions) => Driver::secure(udp, sessions, host),
        None => Driver::new(udp, host),
    };
    let peer = driver.udp().peer(address).map_err(|error| {
        let message = format!("there is no way to {}: {error}", address.ip());
        Failure::no_answer(message, "is the network up, and is it one with this kind of address?")
    })?;
    if peer.is_group() && uri.scheme.is_secure() {
        return Err(Failure::usage("DTLS reaches no groups", "ask them with coap://"));
    }
    Ok((peer, Way::Datagrams(Box::new(driver))))
}

/// The authorities of `--cafile`.
pub fn trusted(file: &Path) -> Result<TlsClient, Failure> {
    let pem = std::fs::read(file).map_err(|error| {
        let message = format!("cannot read {}: {error}", file.display());
        Failure::usage(message, "--cafile takes a PEM file")
    })?;
    TlsClient::trusting(&pem).map_err(|error| {
        let message = format!("{}: {error}", file.display());
        Failure::usage(message, "--cafile takes the certificates of authorities, as PEM")
    })
}

async fn connect(
    args: &Args,
    uri: &Uri,
    contexts: Option<Contexts>,
) -> Result<(Peer, Way), Failure> {
    if args.port.is_some() || args.address.is_some() {
        let message = format!("{} chooses its own local address", uri.scheme.name());
        return Err(Failure::usage(message, "--port and --address are for coap and coaps"));
    }
    let trust = args.cafile.as_deref().map(trusted).transpose()?;
    let line = Line::connect(uri, trust.as_ref()).await?;
    let peer = Peer::new(line.peer, None);
    let connections = ConnectionLimits::default();
    let host = over_connections(connections, limits(args), protection(contexts), rng());
    let mut connected = Connected { line, host, clock: Clock::start() };
    // A line has whole messages, as WebSockets have, whatever it is made of.
    let greeting = Input::Connected { peer, framing: Framing::WebSocket };
    connected.host.handle(connected.clock.now(), greeting).map_err(Failure::own)?;
    Ok((peer, Way::Line(Box::new(connected))))
}

/// A secret as given, or the first line of `@FILE`.
pub fn secret(text: &str) -> Result<Vec<u8>, Failure> {
    let Some(file) = text.strip_prefix('@') else { return Ok(text.as_bytes().to_vec()) };
    let read = std::fs::read_to_string(file).map_err(|error| {
        Failure::usage(
            format!("cannot read {file}: {error}"),
            "--psk @FILE takes a file's first line",
        )
    })?;
    Ok(read.lines().next().unwrap_or_default().as_bytes().to_vec())
}
