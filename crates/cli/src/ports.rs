//! The ports of `lowmesh serve` and `lowmesh proxy`, over every transport of CoAP, and how the two end.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use lowmesh_net::dtls::Keys;
use lowmesh_net::origins::Origin;
use lowmesh_net::oscore::{Contexts, Plain};
use lowmesh_net::server::Server;
use lowmesh_net::tls::TlsServer;
use lowmesh_net::udp::BindError;
use lowmesh_wire::coap::uri::Scheme;

use crate::console::say;
use crate::failure::Failure;
use crate::key;
use crate::log;
use crate::secret_file;

/// Addresses, ports and keys of a server.
#[derive(Debug, clap::Args)]
#[group(id = "ports")]
pub struct Args {
    /// Port of coap and coap+tcp; 0 chooses free ports
    #[arg(short, long, value_name = "PORT", default_value_t = Scheme::Coap.default_port())]
    port: u16,
    /// Address to listen on (repeatable); by default all addresses of the machine; for a proxy or an Entity Manager, loopback
    #[arg(short, long, value_name = "ADDRESS")]
    address: Vec<IpAddr>,
    /// Port of coap+ws, or coaps+ws with --cert
    #[arg(long, value_name = "PORT")]
    ws_port: Option<u16>,
    /// Web pages that may open WebSockets, such as https://example.org, or * for all (repeatable); by default none
    #[arg(long, value_name = "ORIGIN")]
    ws_origin: Vec<Origin>,
    /// Pre-shared key for coaps: text, 0x and hexadecimal digits, or @FILE
    #[arg(short = 'k', long, value_name = "KEY", requires = "identity")]
    psk: Option<String>,
    /// Identity of the clients that know the key: text, or 0x and hexadecimal digits
    #[arg(short = 'u', long, value_name = "NAME", requires = "psk")]
    identity: Option<String>,
    /// More keys for coaps: a file of lines IDENTITY KEY, each as text or 0x and digits
    #[arg(long, value_name = "FILE")]
    psk_file: Option<PathBuf>,
    /// Chain of certificates (PEM) for coaps+tcp and coaps+ws
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key (PEM) that belongs to the certificates
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Security contexts for OSCORE, in libcoap's file format; their state is stored next to the file
    #[arg(short = 'E', long, value_name = "FILE")]
    oscore: Option<PathBuf>,
    /// Member of a group for Group OSCORE (repeatable); its state is stored next to the file
    #[arg(long, value_name = "FILE")]
    group_oscore: Vec<PathBuf>,
    /// Folder for the state of security contexts, where that of their files cannot be written; later commands use it too
    #[arg(long, value_name = "DIR")]
    oscore_state: Option<PathBuf>,
    /// Serve /metrics for Prometheus: counters, and the state of congestion control for each peer; it contains the
    /// addresses of peers
    #[arg(long)]
    metrics: bool,
    /// Refuse requests that are not protected with OSCORE
    #[arg(long)]
    oscore_only: bool,
    #[command(flatten)]
    log: log::Args,
}

impl Args {
    /// The folder for the state of security contexts.
    pub fn oscore_state(&self) -> Option<&Path> {
        self.oscore_state.as_deref()
    }
    /// Whether requests to groups may be protected with Group OSCORE.
    pub fn is_in_group(&self) -> bool {
        !self.group_oscore.is_empty()
    }
}

/// Where a command listens by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// At all addresses of the machine.
    Everywhere,
    /// At its loopback addresses.
    Loopback,
}

/// Refuses to serve clients without keys beyond loopback.
pub fn refuse_strangers(args: &Args) -> Result<(), Failure> {
    let beyond = args.address.iter().find(|address| !address.is_loopback());
    match beyond {
        Some(address) if !args.oscore_only => {
            let message = format!("at {address} anyone could change all entities without a key");
            let hint =
                "protect requests with --oscore-only and --oscore FILE, or allow all with --open";
            Err(Failure::usage(message, hint))
        }
        _ => Ok(()),
    }
}

/// Opens the ports.
pub async fn listen(args: &Args, server: &mut Server, reach: Reach) -> Result<(), Failure> {
    server.admit_pages(args.ws_origin.iter().cloned().collect());
    for address in addresses(args, reach) {
        listen_at(args, server, address).await?;
    }
    Ok(())
}

/// Serves at the open ports until Ctrl-C.
pub async fn run(args: &Args, server: Server) -> Result<(), Failure> {
    run_with(args, server, || std::future::ready(String::new())).await
}

/// Serves at the open ports until Ctrl-C, with more metrics.
pub async fn run_with<F: Future<Output = String> + Send + 'static>(
    args: &Args,
    server: Server,
    more: impl Fn() -> F + Send + Sync + 'static,
) -> Result<(), Failure> {
    let mut server = server;
    let contexts = contexts(args)?;
    if let Some(contexts) = &contexts {
        let plain = if args.oscore_only { Plain::Refused } else { Plain::Served };
        server.protect(contexts.clone(), plain);
    }
    if args.metrics {
        let metrics = server.metrics();
        server.insert("/metrics", metrics.resource_with(more));
    }
    let mut log = args.log.open()?;
    if let Some(log) = &log {
        server.log(log.requests());
    }
    let interrupted = interrupted().map_err(Failure::own)?;
    let unread = async {
        match &mut log {
            Some(log) => log.unread().await,
            None => std::future::pending().await,
        }
    };
    let stop = async {
        tokio::select! {
            () = interrupted => {}
            () = unread => {}
        }
    };
    say!("Ctrl-C ends the server");
    let ended = server.run(stop).await.map_err(Failure::own);
    if let Some(log) = log {
        log.close();
    }
    // Replay windows that are not stored now cost a challenge at the next start.
    let stored = contexts.map_or(Ok(()), |contexts| contexts.close()).map_err(Failure::own);
    ended.and(stored)
}

/// The security contexts of all files; `None` if requests are not protected.
fn contexts(args: &Args) -> Result<Option<Contexts>, Failure> {
    if args.oscore.is_none() && args.group_oscore.is_empty() {
        if args.oscore_only {
            let message = "--oscore-only refuses all requests without security contexts";
            return Err(Failure::usage(message, "give --oscore FILE or --group-oscore FILE too"));
        }
        return Ok(None);
    }
    args.oscore.iter().chain(&args.group_oscore).for_each(|file| secret_file::look_at(file));
    let state = args.oscore_state.as_deref();
    let open = |file| Contexts::open_in(file, state);
    let contexts = args.oscore.as_deref().map(open).transpose()?.unwrap_or_default();
    for file in &args.group_oscore {
        contexts.add_group_in(file, state)?;
    }
    Ok(Some(contexts))
}

fn addresses(args: &Args, reach: Reach) -> Vec<IpAddr> {
    if !args.address.is_empty() {
        return args.address.clone();
    }
    // A machine without IPv6 still has IPv4.
    let is_here = |address: Ipv6Addr| std::net::UdpSocket::bind((address, 0)).is_ok();
    match reach {
        Reach::Everywhere if is_here(Ipv6Addr::UNSPECIFIED) => vec![Ipv6Addr::UNSPECIFIED.into()],
        Reach::Everywhere => vec![Ipv4Addr::UNSPECIFIED.into()],
        Reach::Loopback if is_here(Ipv6Addr::LOCALHOST) => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        Reach::Loopback => vec![Ipv4Addr::LOCALHOST.into()],
    }
}

/// Opens the ports at one address.
async fn listen_at(args: &Args, server: &mut Server, address: IpAddr) -> Result<(), Failure> {
    let plain = SocketAddr::new(address, args.port);
    tell(Scheme::Coap, server.listen_udp(plain)?);
    tell(Scheme::CoapTcp, server.listen_connections(plain, Scheme::CoapTcp, None).await?);
    let secure = SocketAddr::new(address, secure_port(args.port)?);
    if let Some(keys) = keys(args)? {
        tell(Scheme::Coaps, server.listen_dtls(secure, keys, None)?);
    }
    let tls = certificates(args)?;
    if let Some(tls) = &tls {
        let bound = server.listen_connections(secure, Scheme::CoapsTcp, Some(tls.clone())).await?;
        tell(Scheme::CoapsTcp, bound);
    }
    if let Some(port) = args.ws_port {
        let scheme = if tls.is_some() { Scheme::CoapsWs } else { Scheme::CoapWs };
        let bound = server.listen_connections(SocketAddr::new(address, port), scheme, tls).await;
        // This port has another option than the one in the usual hint.
        let bound = bound.map_err(|error| match error {
            BindError::InUse(_) | BindError::Denied(_) => {
                Failure::usage(error, "choose another with --ws-port")
            }
            error => error.into(),
        })?;
        tell(scheme, bound);
    }
    Ok(())
}

/// Prints where something is served; stdout stays free for data.
fn tell(scheme: Scheme, bound: SocketAddr) {
    say!("serving {}://{bound}", scheme.name());
}

/// RFC 7252 s12.7: the default port of coaps is one above that of coap; so is ours.
fn secure_port(port: u16) -> Result<u16, Failure> {
    match port {
        0 => Ok(0),
        port => port.checked_add(1).ok_or_else(|| {
            Failure::usage("there is no port above 65535 for coaps", "choose another with --port")
        }),
    }
}

fn keys(args: &Args) -> Result<Option<Keys>, Failure> {
    let mut keys = Keys::new();
    if let (Some(key), Some(identity)) = (&args.psk, &args.identity) {
        let added = keys.with(&key::identity(identity)?, &key::secret(key)?);
        keys = added.map_err(|error| Failure::usage(error, "see --psk and --identity"))?;
    }
    if let Some(file) = &args.psk_file {
        keys = key::add_file(keys, file)?;
    }
    Ok(Some(keys).filter(|keys| !keys.is_empty()))
}

fn certificates(args: &Args) -> Result<Option<TlsServer>, Failure> {
    let (Some(chain), Some(key)) = (&args.cert, &args.key) else { return Ok(None) };
    secret_file::look_at(key);
    let tls = TlsServer::new(&pem(chain)?, &pem(key)?);
    tls.map(Some).map_err(|error| {
        Failure::usage(error, "--cert takes a chain of certificates and --key its key, both PEM")
    })
}

fn pem(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| {
        let message = format!("cannot read {}: {error}", file.display());
        Failure::usage(message, "--cert and --key take PEM files")
    })
}

/// Ctrl-C, or the SIGTERM of a service manager.
#[cfg(unix)]
pub fn interrupted() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Ctrl-C.
#[cfg(not(unix))]
pub fn interrupted() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        // Without the signal the server ends when it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    })
}
