//! Numbers of a CoAP endpoint in the text form that Prometheus and its like collect.

use std::fmt::{Display, Write as _};

use lowmesh_coap::{CongestionSnapshot, Counters};
use lowmesh_units::Duration;
use tokio::sync::mpsc;

use crate::params::REPORT_WAIT;
use crate::peer::Peer;

/// One line a sample: name, unit, and what it means.
struct Gauge {
    name: &'static str,
    meaning: &'static str,
    value: fn(&CongestionSnapshot) -> Option<f64>,
}

const GAUGES: [Gauge; 6] = [
    Gauge {
        name: "lowmesh_coap_rto_seconds",
        meaning: "Retransmission timeout before dithering and back-off",
        value: |one| Some(one.estimate.rto.as_secs_f64()),
    },
    Gauge {
        name: "lowmesh_coap_srtt_seconds",
        meaning: "Smoothed round-trip time, once there is a sample",
        value: |one| one.estimate.srtt.map(Duration::as_secs_f64),
    },
    Gauge {
        name: "lowmesh_coap_rttvar_seconds",
        meaning: "Mean deviation of the round-trip time",
        value: |one| one.estimate.rttvar.map(Duration::as_secs_f64),
    },
    Gauge {
        name: "lowmesh_coap_window_messages",
        meaning: "Interactions that may be outstanding (NSTART)",
        value: |one| Some(one.occupancy.window.into()),
    },
    Gauge {
        name: "lowmesh_coap_outstanding_messages",
        meaning: "Interactions that are outstanding",
        value: |one| Some(one.occupancy.outstanding.into()),
    },
    Gauge {
        name: "lowmesh_coap_queued_messages",
        meaning: "Messages that wait for the window",
        value: |one| Some(one.queued as f64),
    },
];

/// The numbers of one transport: of a server, or of a proxy to its targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Observers of its resources.
    pub observers: usize,
    /// What the numbers are about.
    pub kind: Kind,
}

/// All reports that come in time.
pub(crate) async fn gathered(mut told: mpsc::UnboundedReceiver<Report>) -> Vec<Report> {
    let mut reports = Vec::new();
    let all = async {
        while let Some(report) = told.recv().await {
            reports.push(report);
        }
    };
    // If one does not answer, the others still count.
    let _in_time = tokio::time::timeout(REPORT_WAIT, all).await;
    reports
}

/// The subject of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A UDP address, with or without DTLS.
    Endpoint {
        /// Its own name among the others, as its address.
        name: String,
        /// What came to nothing.
        counters: Counters,
        /// Timer and window of each peer that is remembered.
        destinations: Vec<(Peer, CongestionSnapshot)>,
    },
    /// A connection: TCP has its own congestion control, and nothing on it is lost.
    Connection,
}

/// What a server has done since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Served {
    /// Requests, those that observers caused included.
    pub requests: u64,
    /// Answers 2.xx.
    pub success: u64,
    /// Answers 4.xx.
    pub client_errors: u64,
    /// Answers 5.xx.
    pub server_errors: u64,
}

/// All metrics of a server. What came to nothing is the sum over its UDP addresses.
pub fn text(served: Served, reports: &[Report]) -> String {
    let mut text = String::new();
    let name = "lowmesh_coap_requests_total";
    head(&mut text, name, "Requests to resources, including notifications", "counter");
    line(&mut text, &format!("{name} {}", served.requests));
    let name = "lowmesh_coap_responses_total";
    head(&mut text, name, "Answers, by the class of their code", "counter");
    for (class, count) in [2, 4, 5].into_iter().zip(served.answers()) {
        line(&mut text, &format!("{name}{{class=\"{class}\"}} {count}"));
    }
    let connections = reports.iter().filter(|one| one.kind == Kind::Connection).count();
    let observers: usize = reports.iter().map(|one| one.observers).sum();
    for (name, meaning, value) in [
        ("lowmesh_coap_connections", "Open connections of clients", connections),
        ("lowmesh_coap_observers", "Observers that are registered", observers),
    ] {
        head(&mut text, name, meaning, "gauge");
        line(&mut text, &format!("{name} {value}"));
    }
    text + &endpoints(reports)
}

/// What came to nothing at all UDP addresses together, and timer and window of each of their peers: all that a client has.
pub fn endpoints(reports: &[Report]) -> String {
    let mut sum = Counters::default();
    let mut known = Vec::new();
    for report in reports {
        if let Kind::Endpoint { name, counters, destinations } = &report.kind {
            sum = sum + *counters;
            known.push((name.as_str(), destinations.iter().copied()));
        }
    }
    discarded(&sum) + &congestion(known)
}

impl Served {
    const fn answers(self) -> [u64; 3] {
        [self.success, self.client_errors, self.server_errors]
    }
}

/// Timer and window of each destination of some endpoints, each with its name and what
/// [`Endpoint::destinations`](lowmesh_coap::Endpoint::destinations) tells.
///
/// ```
/// use lowmesh_coap::{Config, CongestionControl, Endpoint};
/// use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
/// let rng = Rng::stream(Seed(1), NodeId(1), Purpose::Coap);
/// let endpoint: Endpoint<&str> = Endpoint::new(Config::default(), rng)?;
/// assert_eq!(lowmesh_net::metrics::congestion([("client", endpoint.destinations())]), "");
/// # Ok::<(), lowmesh_coap::ConfigError>(())
/// ```
pub fn congestion<'a, P: Display>(
    endpoints: impl IntoIterator<Item = (&'a str, impl IntoIterator<Item = (P, CongestionSnapshot)>)>,
) -> String {
    let known: Vec<(&str, P, CongestionSnapshot)> = endpoints
        .into_iter()
        .flat_map(|(name, all)| all.into_iter().map(move |(peer, one)| (name, peer, one)))
        .collect();
    let mut text = String::new();
    for gauge in &GAUGES {
        let samples = known.iter().filter_map(|known| Some((known, (gauge.value)(&known.2)?)));
        for (place, ((endpoint, peer, one), value)) in samples.enumerate() {
            if place == 0 {
                head(&mut text, gauge.name, gauge.meaning, "gauge");
            }
            let CongestionSnapshot { timer, window, .. } = one;
            let labels = format!(
                "endpoint=\"{endpoint}\",peer=\"{peer}\",timer=\"{timer}\",window=\"{window}\""
            );
            line(&mut text, &format!("{}{{{labels}}} {value}", gauge.name));
        }
    }
    text
}

/// The number of discarded datagrams, by cause.
pub fn discarded(counters: &Counters) -> String {
    let causes = [
        ("malformed", counters.malformed),
        ("misplaced", counters.misplaced),
        ("duplicate", counters.duplicates),
        ("unmatched", counters.unmatched),
        ("critical_option", counters.critical_options),
        ("overloaded", counters.overloaded),
        ("ping", counters.pings),
        ("stale", counters.stale),
    ];
    let mut text = String::new();
    let name = "lowmesh_coap_discarded_total";
    head(&mut text, name, "Discarded datagrams", "counter");
    for (cause, count) in causes {
        line(&mut text, &format!("{name}{{cause=\"{cause}\"}} {count}"));
    }
    text
}

fn head(text: &mut String, name: &str, meaning: &str, kind: &str) {
    line(text, &format!("# HELP {name} {meaning}"));
    line(text, &format!("# TYPE {name} {kind}"));
}

fn line(text: &mut String, content: &str) {
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{content}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_coap::exchange::Input;
    use lowmesh_coap::{Config, CongestionControl, Endpoint, RequestTemplate};
    use lowmesh_machine::{Handle, Machine as _};
    use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};

    #[test]
    fn each_destination_has_a_line_for_what_is_known_of_it() {
        let rng = Rng::stream(Seed(1), NodeId(1), Purpose::Coap);
        let congestion = CongestionControl::new("cocoa").expect("a listed name").with_nstart(2);
        let config = Config { congestion, ..Config::default() };
        let mut endpoint = Endpoint::new(config, rng).expect("possible");
        for number in 0..3 {
            let (message, handle) = (RequestTemplate::get("/t"), Handle(number).into());
            let input = Input::Request { peer: "[::1]:5683", message, handle };
            endpoint.handle(Instant::ZERO, input).expect("taken");
        }
        let text = super::congestion([("client", endpoint.destinations())]);
        let labels = "{endpoint=\"client\",peer=\"[::1]:5683\",timer=\"cocoa\",window=\"fixed\"}";
        for (name, value) in [
            ("rto_seconds", "2"),
            ("window_messages", "2"),
            ("outstanding_messages", "2"),
            ("queued_messages", "1"),
        ] {
            let wanted = format!("lowmesh_coap_{name}{labels} {value}\n");
            assert!(text.contains(&wanted), "{wanted} is not in\n{text}");
        }
        assert!(!text.contains("srtt"), "there is no sample yet");
    }

    #[test]
    fn a_server_is_told_as_a_whole_with_every_name_once() {
        let endpoint = |name: &str, pings| {
            let counters = Counters { pings, ..Counters::default() };
            let kind = Kind::Endpoint { name: name.to_owned(), counters, destinations: Vec::new() };
            Report { observers: 2, kind }
        };
        let connection = Report { observers: 1, kind: Kind::Connection };
        let served = Served { requests: 9, success: 6, client_errors: 2, server_errors: 1 };
        let text = text(served, &[endpoint("a", 3), connection, endpoint("b", 4)]);
        for wanted in [
            "requests_total 9",
            "responses_total{class=\"2\"} 6",
            "responses_total{class=\"5\"} 1",
            "connections 1",
            "observers 5",
            "discarded_total{cause=\"ping\"} 7",
        ] {
            assert!(text.contains(&format!("\nlowmesh_coap_{wanted}\n")), "{wanted}:\n{text}");
        }
        let mut types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        types.dedup();
        assert_eq!(types.len(), 5);
    }

    #[test]
    fn discarded_datagrams_are_counted_by_cause() {
        let text = discarded(&Counters { pings: 3, ..Counters::default() });
        assert!(text.contains("lowmesh_coap_discarded_total{cause=\"ping\"} 3\n"), "{text}");
        assert_eq!(text.lines().count(), 2 + 8);
    }
}
