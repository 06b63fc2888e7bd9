//! `lowmesh proxy`: a forward proxy, and with `--to` a reverse one, between all transports of CoAP.

use std::path::PathBuf;

use lowmesh_net::proxy::{Proxy, ProxyError, ProxyLimits};
use lowmesh_net::server::Server;
use lowmesh_net::tls::TlsClient;

use crate::bounds;
use crate::channel::{secret, trusted, uri, wait};
use crate::failure::Failure;
use crate::ports;

/// Pass requests on: a forward proxy, or a reverse one with --to
#[derive(Debug, clap::Args)]
#[command(after_help = "\
    A client names the target with Proxy-Uri, as in `lowmesh get -P coap://PROXY coap+tcp://TARGET/hello`. Targets are \
    coap, coap+tcp and coap+ws, with --target-psk also coaps, with --cafile also coaps+tcp and coaps+ws.\n\n\
    Exit codes: 0 ended with Ctrl-C, 1 a socket failed, 2 the command line is wrong or a port cannot be had.")]
pub struct Args {
    /// Server that requests without a target of their own are for; its path is put before theirs
    #[arg(long, value_name = "URI")]
    to: Option<String>,
    /// Octets of answers to keep; 0 keeps none
    #[arg(long, value_name = "OCTETS", default_value_t = ProxyLimits::default().cache_max)]
    cache: usize,
    /// Resources to observe at targets, each once for all clients that observe it; 0 observes none
    #[arg(long, value_name = "NUMBER", default_value_t = ProxyLimits::default().observations_max)]
    observations: usize,
    /// Certificates (PEM) of the authorities to trust, for targets over TLS
    #[arg(long, value_name = "FILE")]
    cafile: Option<PathBuf>,
    /// Pre-shared key for coaps targets, or @FILE that holds it
    #[arg(long, value_name = "KEY", requires = "target_identity")]
    target_psk: Option<String>,
    /// Identity that goes with the key
    #[arg(long, value_name = "NAME", requires = "target_psk")]
    target_identity: Option<String>,
    #[command(flatten)]
    ports: ports::Args,
    #[command(flatten)]
    bounds: bounds::Args,
}

/// Passes on until Ctrl-C.
pub fn execute(args: &Args) -> Result<(), Failure> {
    wait(serve(args))
}

async fn serve(args: &Args) -> Result<(), Failure> {
    let mut proxy = Proxy::new(limits(args)?)?;
    if let Some(target) = &args.to {
        proxy = proxy.in_front_of(uri(target)?);
    }
    if let (Some(key), Some(identity)) = (&args.target_psk, &args.target_identity) {
        proxy = proxy.with_key(identity.as_bytes(), &secret(key)?)?;
    }
    let mut server = Server::new(args.bounds.limits()?).map_err(Failure::own)?;
    proxy.serve(&mut server);
    ports::run(&args.ports, server).await
}

fn limits(args: &Args) -> Result<ProxyLimits, Failure> {
    let tls: Option<TlsClient> = args.cafile.as_deref().map(trusted).transpose()?;
    let (datagrams, host) = (args.bounds.datagrams()?, args.bounds.host());
    let (cache_max, observations_max) = (args.cache, args.observations);
    let defaults = ProxyLimits::default();
    Ok(ProxyLimits { datagrams, host, cache_max, observations_max, tls, ..defaults })
}

impl From<ProxyError> for Failure {
    fn from(error: ProxyError) -> Self {
        Self::usage(error, "see --target-psk, --cc, --window and --nstart")
    }
}
