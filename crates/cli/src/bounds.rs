//! The limits of `lowmesh serve` and `lowmesh proxy`, and the congestion control of their confirmable messages.

use clap::builder::RangedU64ValueParser;
use lowmesh_coap::params::{BODY_OVERHEAD, INCOMING_SEPARATE_DIVISOR, NSTART};
use lowmesh_coap::{Config, CongestionControl, ConnectionLimits, HostLimits};
use lowmesh_net::dtls::SessionLimits;
use lowmesh_net::server::Limits;

use crate::failure::Failure;
use crate::rows;

/// The flags behind the settings that a [`Config`] may refuse.
const HINT: &str = "see --cc, --window and --nstart";

/// Limits, and congestion control.
#[derive(Debug, clap::Args)]
#[group(id = "bounds")]
pub struct Args {
    /// Retransmission timer of confirmable messages: requests of a proxy, and notifications
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = rows::timers())]
    cc: String,
    /// Congestion window towards each peer; fixed if unset. From a proxy to a target: reno, at most 2 messages, if --nstart
    /// is unset too
    #[arg(long, value_name = "NAME", value_parser = rows::windows())]
    window: Option<String>,
    /// Initial number of confirmable messages in flight to one peer; 1 if unset
    #[arg(long, value_name = "NUMBER")]
    nstart: Option<u32>,
    /// Peers that the server remembers at each UDP address, for timers and duplicate detection
    #[arg(long, value_name = "NUMBER", default_value_t = Config::default().peers_max, value_parser = number())]
    max_peers: usize,
    /// Slow requests in progress at each UDP address and on each connection; at most a quarter of them from one
    /// source, and half from all unproven addresses
    #[arg(long, value_name = "NUMBER", default_value_t = HostLimits::default().requests_max, value_parser = number())]
    max_exchanges: usize,
    /// Connections of clients; a further one replaces an idle one
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().connections_max, value_parser = number())]
    max_connections: usize,
    /// Connections from one source (an IPv4 address or an IPv6 /64); by default a quarter of all
    #[arg(long, value_name = "NUMBER", value_parser = number())]
    max_connections_per_client: Option<usize>,
    /// Connections whose handshake is not complete; at most a quarter of them from one source
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().opening_max, value_parser = number())]
    max_handshakes: usize,
    /// DTLS sessions at each port; a further one replaces the least recently used one
    #[arg(long, value_name = "NUMBER", default_value_t = SessionLimits::default().open_max, value_parser = number())]
    max_sessions: usize,
    /// DTLS sessions from one source at each port; by default a quarter of all
    #[arg(long, value_name = "NUMBER", value_parser = number())]
    max_sessions_per_client: Option<usize>,
    /// Longest body, in octets
    #[arg(long, value_name = "OCTETS", default_value_t = HostLimits::default().body_max, value_parser = number())]
    max_body: usize,
    /// Observers at each UDP address, and on all connections together
    #[arg(long, value_name = "NUMBER", default_value_t = HostLimits::default().observers_max, value_parser = number())]
    max_observers: usize,
    /// Observers from one source (an IPv4 address or an IPv6 /64); by default a quarter of all
    #[arg(long, value_name = "NUMBER", value_parser = number())]
    max_observers_per_client: Option<usize>,
}

/// At least one, and no more than 32 bits can count.
fn number() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=u64::from(u32::MAX))
}

/// The share of one source: `asked`, or else a quarter of all, and at least one.
fn share(asked: Option<usize>, all: usize) -> usize {
    asked.unwrap_or_else(|| all.div_ceil(4)).min(all)
}

impl Args {
    /// The limits of a server.
    pub fn limits(&self) -> Result<Limits, Failure> {
        Ok(Limits {
            datagrams: self.datagrams()?,
            connection: ConnectionLimits {
                incoming_max: self.incoming_max(),
                incoming_per_source: share(None, self.incoming_max()),
                ..ConnectionLimits::default()
            },
            host: self.host(),
            connections_max: self.max_connections,
            connections_per_source: share(self.max_connections_per_client, self.max_connections),
            opening_max: self.max_handshakes,
            opening_per_source: share(None, self.max_handshakes),
            sessions: SessionLimits {
                open_max: self.max_sessions,
                open_per_source: share(self.max_sessions_per_client, self.max_sessions),
                ..SessionLimits::default()
            },
            ..Limits::default()
        })
    }
    /// The limits of datagrams.
    pub fn datagrams(&self) -> Result<Config, Failure> {
        self.datagrams_with(&CongestionControl::default())
    }
    /// The same with the window of `otherwise` if neither flag chooses one.
    pub fn datagrams_with(&self, otherwise: &CongestionControl) -> Result<Config, Failure> {
        let chosen = |timer: CongestionControl| match (&self.window, self.nstart) {
            (None, None) => Ok(CongestionControl { window: otherwise.window, ..timer }),
            (name, nstart) => {
                timer.with_window(name.as_deref().unwrap_or("fixed"), nstart.unwrap_or(NSTART))
            }
        };
        let congestion = CongestionControl::new(&self.cc)
            .and_then(chosen)
            .map_err(|error| Failure::usage(error, HINT))?;
        let config = Config {
            congestion,
            peers_max: self.max_peers,
            peers_per_source: share(None, self.max_peers),
            incoming_max: self.incoming_max(),
            incoming_per_source: share(None, self.incoming_max()),
            ..Config::default()
        };
        config.check().map_err(|error| Failure::usage(error, HINT))?;
        Ok(config)
    }
    /// Requests that wait for their answer: a place for each slow one, beside those that separate responses take.
    fn incoming_max(&self) -> usize {
        let places = self.max_exchanges.saturating_mul(INCOMING_SEPARATE_DIVISOR).saturating_add(1);
        places.max(Config::default().incoming_max)
    }
    /// The limits of bodies and observers.
    pub fn host(&self) -> HostLimits {
        let defaults = HostLimits::default();
        HostLimits {
            body_max: self.max_body,
            // One body of the greatest length always fits.
            assemblies_max: defaults.assemblies_max.max(self.max_body + BODY_OVERHEAD),
            assemblies_per_source: defaults
                .assemblies_per_source
                .max(self.max_body + BODY_OVERHEAD),
            representations_max: defaults.representations_max.max(self.max_body + BODY_OVERHEAD),
            representations_per_source: defaults
                .representations_per_source
                .max(self.max_body + BODY_OVERHEAD),
            requests_max: self.max_exchanges,
            observers_max: self.max_observers,
            observers_per_source: share(self.max_observers_per_client, self.max_observers),
            ..defaults
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        bounds: Args,
    }

    fn limits(args: &[&str]) -> Result<Limits, Failure> {
        Line::parse_from([&["lowmesh"][..], args].concat()).bounds.limits()
    }

    #[test]
    fn without_flags_the_bounds_are_those_of_the_library() {
        let (ours, library) = (limits(&[]).expect("possible"), Limits::default());
        assert_eq!((ours.datagrams, ours.host), (library.datagrams, library.host));
        assert_eq!(ours.connections_max, library.connections_max);
        assert_eq!(ours.connections_per_source, library.connections_per_source);
        assert_eq!(ours.opening_max, library.opening_max);
        assert_eq!(ours.opening_per_source, library.opening_per_source);
        assert_eq!(ours.sessions, library.sessions);
    }

    #[test]
    fn a_source_has_a_quarter_by_default() {
        let few = limits(&["--max-connections", "3", "--max-sessions", "8"]).expect("possible");
        assert_eq!((few.connections_per_source, few.sessions.open_per_source), (1, 2));
        let args = ["--max-connections-per-client", "5", "--max-sessions-per-client", "6"];
        let more = limits(&[&args[..], &["--max-handshakes", "9"]].concat()).expect("possible");
        assert_eq!((more.connections_per_source, more.sessions.open_per_source), (5, 6));
        assert_eq!((more.opening_max, more.opening_per_source), (9, 3));
        let many = limits(&["--max-observers", "8", "--max-exchanges", "4000"]).expect("possible");
        assert_eq!((many.host.observers_per_source, many.datagrams.incoming_per_source), (2, 2001));
        let separate = many.datagrams.incoming_max / INCOMING_SEPARATE_DIVISOR;
        assert!(
            many.datagrams.incoming_max > 4000 + separate,
            "a slow request always finds a place"
        );
    }

    #[test]
    fn a_longer_body_has_room_to_be_reassembled() {
        let host = limits(&["--max-body", "9000000"]).expect("possible").host;
        assert_eq!(host.body_max, 9_000_000);
        for room in [host.assemblies_max, host.assemblies_per_source, host.representations_max] {
            assert!(room > 9_000_000);
        }
    }

    #[test]
    fn every_flag_has_its_bound() {
        let args = ["--max-peers", "2", "--max-exchanges", "3", "--max-connections", "4"];
        let more = ["--max-observers", "8", "--max-observers-per-client", "6", "--nstart", "7"];
        let all = limits(&[&args[..], &more[..]].concat()).expect("possible");
        let (datagrams, host) = (&all.datagrams, &all.host);
        assert_eq!((datagrams.peers_max, all.connections_max), (2, 4));
        assert_eq!((host.observers_max, host.observers_per_source, host.requests_max), (8, 6, 3));
        assert_eq!(datagrams.congestion, CongestionControl::default().with_nstart(7));
    }

    #[test]
    fn zero_and_names_that_nobody_knows_are_refused() {
        for wrong in [
            &["--max-peers", "0"],
            &["--max-body", "-1"],
            &["--max-observers", "many"],
            &["--cc", "coca"],
            &["--window", "vegas"],
        ] {
            assert!(
                Line::try_parse_from([&["lowmesh"][..], &wrong[..]].concat()).is_err(),
                "{wrong:?}"
            );
        }
        assert!(matches!(limits(&["--nstart", "0"]), Err(Failure::Usage { .. })));
    }
}
