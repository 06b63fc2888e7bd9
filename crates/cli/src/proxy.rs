//! `lowmesh proxy`: a forward proxy, and with `--to` a reverse one, between all transports of CoAP.

use std::path::PathBuf;

use lowmesh_coap::{Config, CongestionControl};
use lowmesh_net::proxy::{Proxy, ProxyError, ProxyLimits};
use lowmesh_net::server::{Limits, Server};
use lowmesh_net::tls::TlsClient;

use crate::channel::{trusted, uri, wait};
use crate::failure::Failure;
use crate::ports;

/// Pass requests on: a forward proxy, or a reverse one with --to
#[derive(Debug, clap::Args)]
#[command(after_help = "\
    A client names the target with Proxy-Uri, as in `lowmesh get -P coap://PROXY coap+tcp://TARGET/hello`. Targets are \
    coap, coap+tcp and coap+ws, with --cafile also coaps+tcp and coaps+ws.\n\n\
    Exit codes: 0 ended with Ctrl-C, 1 a socket failed, 2 the command line is wrong or a port cannot be had.")]
pub struct Args {
    /// Server that requests without a target of their own are for; its path is put before theirs
    #[arg(long, value_name = "URI")]
    to: Option<String>,
    /// Octets of answers to keep; 0 keeps none
    #[arg(long, value_name = "OCTETS", default_value_t = ProxyLimits::default().cache_max)]
    cache: usize,
    /// Certificates (PEM) of the authorities to trust, for targets over TLS
    #[arg(long, value_name = "FILE")]
    cafile: Option<PathBuf>,
    /// Retransmission timer towards targets: default, rfc6298, cocoa, 6cocoa and their relatives, fasor
    #[arg(long, value_name = "NAME", default_value = "default")]
    cc: String,
    /// Congestion window towards each target: fixed, lln, reno, abe, quic, appendix-c
    #[arg(long, value_name = "NAME", default_value = "fixed")]
    window: String,
    /// Requests on their way to one target, where the window starts
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    nstart: u32,
    #[command(flatten)]
    ports: ports::Args,
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
    let mut server = Server::new(Limits::default()).map_err(Failure::own)?;
    proxy.serve(&mut server);
    ports::run(&args.ports, server).await
}

fn limits(args: &Args) -> Result<ProxyLimits, Failure> {
    let congestion = CongestionControl::new(args.cc.as_str())
        .with_window(&args.window, args.nstart)
        .and_then(|congestion| congestion.check().map(|()| congestion))
        .map_err(|error| Failure::usage(error, "see --cc, --window and --nstart"))?;
    let tls: Option<TlsClient> = args.cafile.as_deref().map(trusted).transpose()?;
    let datagrams = Config { congestion, ..Config::default() };
    Ok(ProxyLimits { datagrams, cache_max: args.cache, tls, ..ProxyLimits::default() })
}

impl From<ProxyError> for Failure {
    fn from(error: ProxyError) -> Self {
        match error {
            ProxyError::Bind(error) => error.into(),
            ProxyError::Config(error) => Self::usage(error, "see --cc, --window and --nstart"),
        }
    }
}
