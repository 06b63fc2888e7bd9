//! `lowmesh serve`: the files of a folder, or a set of resources to try a client with, over every transport of CoAP.

mod demo;
mod folder;
mod plugtest;
mod reply;

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lowmesh_net::dtls::Keys;
use lowmesh_net::server::{Limits, Server};
use lowmesh_net::tls::TlsServer;
use lowmesh_net::udp::BindError;
use lowmesh_wire::coap::uri::Scheme;

use crate::channel::{secret, wait};
use crate::failure::Failure;

/// How long the answers that are being made, and observers who do not acknowledge, may delay the end.
const GRACE: Duration = Duration::from_secs(2);

/// Serve the files of a folder, or resources to try a client with
#[derive(Debug, clap::Args)]
#[command(after_help = "\
    Served are coap and coap+tcp at the port; with --psk also coaps, and with --cert also coaps+tcp, at the port after \
    it; with --ws-port also coap+ws or, with --cert, coaps+ws. Ctrl-C ends the server: what it has begun is finished.\n\n\
    Exit codes: 0 ended with Ctrl-C, 1 a socket failed, 2 the command line is wrong or a port cannot be had.")]
pub struct Args {
    /// Folder whose files are served
    #[arg(value_name = "DIR", required_unless_present = "demo", conflicts_with = "demo")]
    folder: Option<PathBuf>,
    /// Serve resources to try a client with: /hello, /count, /time, and those of the ETSI plugtests
    #[arg(long)]
    demo: bool,
    /// Let clients write and delete files of the folder (PUT, DELETE)
    #[arg(short, long, conflicts_with = "demo")]
    writable: bool,
    /// Port of coap and coap+tcp; 0 takes free ones
    #[arg(short, long, value_name = "PORT", default_value_t = Scheme::Coap.default_port())]
    port: u16,
    /// Address to serve at; may be given several times. Without it all of the machine's
    #[arg(short, long, value_name = "ADDRESS")]
    address: Vec<IpAddr>,
    /// Port of coap+ws, or coaps+ws with --cert
    #[arg(long, value_name = "PORT")]
    ws_port: Option<u16>,
    /// Pre-shared key for coaps, or @FILE that holds it
    #[arg(short = 'k', long, value_name = "KEY", requires = "identity")]
    psk: Option<String>,
    /// Identity of the clients that know the key
    #[arg(short = 'u', long, value_name = "NAME", requires = "psk")]
    identity: Option<String>,
    /// Chain of certificates (PEM) for coaps+tcp and coaps+ws
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key (PEM) that belongs to the certificates
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

/// Serves until Ctrl-C.
pub fn execute(args: &Args) -> Result<(), Failure> {
    wait(serve(args))
}

async fn serve(args: &Args) -> Result<(), Failure> {
    let limits = Limits { grace: GRACE, ..Limits::default() };
    let mut server = Server::new(limits).map_err(Failure::own)?;
    if let Some(folder) = &args.folder {
        folder::resources(&mut server, folder, args.writable)?;
    } else {
        demo::resources(&mut server);
        plugtest::resources(&mut server);
    }
    for address in addresses(args) {
        listen(args, &mut server, address).await?;
    }
    let stop = interrupted().map_err(Failure::own)?;
    eprintln!("Ctrl-C ends the server");
    server.run(stop).await.map_err(Failure::own)
}

fn addresses(args: &Args) -> Vec<IpAddr> {
    if !args.address.is_empty() {
        return args.address.clone();
    }
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    // A machine without IPv6 still has IPv4.
    match std::net::UdpSocket::bind(any) {
        Ok(_) => vec![Ipv6Addr::UNSPECIFIED.into()],
        Err(_) => vec![Ipv4Addr::UNSPECIFIED.into()],
    }
}

/// Opens the ports at one address.
async fn listen(args: &Args, server: &mut Server, address: IpAddr) -> Result<(), Failure> {
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
        // The hint for other ports names another option.
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

/// Says where something is served. Standard output stays free for data.
fn tell(scheme: Scheme, bound: SocketAddr) {
    eprintln!("serving {}://{bound}", scheme.name());
}

/// RFC 7252 s12.7: coaps is one above coap, here as there.
fn secure_port(port: u16) -> Result<u16, Failure> {
    match port {
        0 => Ok(0),
        port => port.checked_add(1).ok_or_else(|| {
            Failure::usage(
                "behind port 65535 there is none for coaps",
                "choose another with --port",
            )
        }),
    }
}

fn keys(args: &Args) -> Result<Option<Keys>, Failure> {
    let (Some(key), Some(identity)) = (&args.psk, &args.identity) else { return Ok(None) };
    let keys = Keys::new().with(identity.as_bytes(), &secret(key)?);
    keys.map(Some).map_err(|error| Failure::usage(error, "see --psk and --identity"))
}

fn certificates(args: &Args) -> Result<Option<TlsServer>, Failure> {
    let (Some(chain), Some(key)) = (&args.cert, &args.key) else { return Ok(None) };
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
fn interrupted() -> std::io::Result<impl Future<Output = ()>> {
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
fn interrupted() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        // Without the signal the server ends when it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    })
}
