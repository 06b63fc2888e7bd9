//! `lowmesh proxy`: a forward proxy, and with `--to` a reverse one, between all transports of CoAP.

use std::path::PathBuf;

use lowmesh_net::proxy::{Access, Network, Networks, Proxy, ProxyError, ProxyLimits};
use lowmesh_net::server::Server;

use crate::bounds;
use crate::channel::{trusted, uri, wait};
use crate::descriptors;
use crate::failure::Failure;
use crate::key;
use crate::ports::{self, Reach};

/// Forward requests: a forward proxy, or with --to a reverse proxy
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Server for requests that name no target; its path precedes the path of a request
    #[arg(long, value_name = "URI")]
    to: Option<String>,
    /// With --to, also forward requests that name a target
    #[arg(long, requires = "to")]
    forward: bool,
    /// Serve only these clients, such as 10.0.0.0/8, fd00::/8 or ::1 (repeatable)
    #[arg(long, value_name = "NET")]
    allow_client: Vec<Network>,
    /// Refuse these clients (repeatable)
    #[arg(long, value_name = "NET")]
    deny_client: Vec<Network>,
    /// Also forward to these targets that are not public: loopback, link-local, private (repeatable); --to needs no rule
    #[arg(long, value_name = "NET")]
    allow_target: Vec<Network>,
    /// Refuse these targets (repeatable)
    #[arg(long, value_name = "NET")]
    deny_target: Vec<Network>,
    /// Octets of memory for cached responses; 0 caches none
    #[arg(long, value_name = "OCTETS", default_value_t = ProxyLimits::default().cache_max)]
    cache: usize,
    /// Maximum number of resources to observe at targets, each once for all observers; 0 observes none
    #[arg(long, value_name = "NUMBER", default_value_t = ProxyLimits::default().observations_max)]
    observations: usize,
    /// Requests in progress or waiting, of all clients; one client can use at most as many as are still free
    #[arg(long, value_name = "NUMBER", default_value_t = ProxyLimits::default().pending_max)]
    max_pending: usize,
    /// Requests in progress or waiting for one target
    #[arg(long, value_name = "NUMBER", default_value_t = ProxyLimits::default().pending_per_origin)]
    max_pending_per_target: usize,
    /// Certificates (PEM) of the authorities to trust, for targets over TLS
    #[arg(long, value_name = "FILE")]
    cafile: Option<PathBuf>,
    /// Pre-shared key for coaps targets, or @FILE that contains it
    #[arg(long, value_name = "KEY", requires = "target_identity")]
    target_psk: Option<String>,
    /// Identity that belongs to the key
    #[arg(long, value_name = "NAME", requires = "target_psk")]
    target_identity: Option<String>,
    #[command(flatten)]
    ports: ports::Args,
    #[command(flatten)]
    bounds: bounds::Args,
}

/// Forwards requests until Ctrl-C.
pub fn execute(args: &Args) -> Result<(), Failure> {
    wait(serve(args))
}

async fn serve(args: &Args) -> Result<(), Failure> {
    let mut proxy = Proxy::new(limits(args)?)?;
    if let Some(target) = &args.to {
        proxy = proxy.in_front_of(uri(target)?);
    }
    if args.forward {
        proxy = proxy.forwarding();
    }
    if let (Some(key), Some(identity)) = (&args.target_psk, &args.target_identity) {
        proxy = proxy.with_key(identity.as_bytes(), &key::secret(key)?)?;
    }
    let mut server =
        Server::new(descriptors::provide(args.bounds.limits()?)).map_err(Failure::own)?;
    proxy.serve(&mut server);
    ports::listen(&args.ports, &mut server, Reach::Loopback).await?;
    ports::run(&args.ports, server).await
}

fn limits(args: &Args) -> Result<ProxyLimits, Failure> {
    let networks = |allowed: &[Network], denied: &[Network]| Networks {
        allowed: allowed.to_vec(),
        denied: denied.to_vec(),
    };
    Ok(ProxyLimits {
        access: Access {
            clients: networks(&args.allow_client, &args.deny_client),
            targets: networks(&args.allow_target, &args.deny_target),
        },
        datagrams: args.bounds.datagrams_with(&ProxyLimits::default().datagrams.congestion)?,
        host: args.bounds.host(),
        cache_max: args.cache,
        pending_max: args.max_pending,
        pending_per_origin: args.max_pending_per_target,
        observations_max: args.observations,
        tls: args.cafile.as_deref().map(trusted).transpose()?,
        ..ProxyLimits::default()
    })
}

impl From<ProxyError> for Failure {
    fn from(error: ProxyError) -> Self {
        Self::usage(error, "see --target-psk, --cc, --window and --nstart")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use lowmesh_coap::CongestionControl;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        proxy: Args,
    }

    fn parsed(args: &[&str]) -> ProxyLimits {
        let line = Line::parse_from([&["lowmesh"][..], args].concat());
        limits(&line.proxy).expect("possible")
    }

    #[test]
    fn without_flags_the_window_to_targets_is_that_of_the_library() {
        let window = |args: &[&str]| parsed(args).datagrams.congestion.window;
        let library = ProxyLimits::default().datagrams.congestion.window;
        assert_eq!(
            (library.name(), library.limits().initial, library.limits().max),
            ("reno", 2, 2)
        );
        assert_eq!(window(&["--cc", "cocoa"]), library);
        let one = CongestionControl::default().window;
        assert_eq!([window(&["--nstart", "1"]), window(&["--window", "fixed"])], [one, one]);
    }

    #[test]
    fn nstart_is_that_of_the_endpoint_that_asks_targets() {
        let congestion = CongestionControl::default().with_nstart(4);
        assert_eq!(parsed(&["--nstart", "4"]).datagrams.congestion, congestion);
    }

    #[test]
    fn every_flag_has_its_rule_or_bound() {
        let net = |text: &str| text.parse().expect("a range");
        let args = ["--allow-client", "10.0.0.0/8", "--deny-client", "10.0.0.1"];
        let more =
            ["--allow-target", "::1", "--allow-target", "fd00::/8", "--deny-target", "fd00::1"];
        let bounds = ["--max-pending", "8", "--max-pending-per-target", "3", "--cache", "9"];
        let all = parsed(&[&args[..], &more[..], &bounds[..]].concat());
        let clients = Networks { allowed: vec![net("10.0.0.0/8")], denied: vec![net("10.0.0.1")] };
        let allowed = vec![net("::1"), net("fd00::/8")];
        let targets = Networks { allowed, denied: vec![net("fd00::1")] };
        assert_eq!(all.access, Access { clients, targets });
        assert_eq!((all.pending_max, all.pending_per_origin, all.cache_max), (8, 3, 9));
    }

    #[test]
    fn a_range_that_is_none_is_refused_with_an_example() {
        let wrong = Line::try_parse_from(["lowmesh", "--allow-target", "localhost"]);
        let text = wrong.expect_err("no range").to_string();
        assert!(text.contains("fd00::/8"), "{text}");
        assert!(Line::try_parse_from(["lowmesh", "--forward"]).is_err(), "it always forwards");
    }
}
