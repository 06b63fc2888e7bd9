//! Numbers of a CoAP endpoint in the text form that Prometheus and its like collect.

use std::fmt::{Display, Write as _};

use lowmesh_coap::{CongestionSnapshot, Counters};
use lowmesh_units::Duration;

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

/// Timer and window of each destination, as
/// [`Endpoint::destinations`](lowmesh_coap::Endpoint::destinations) tells them.
///
/// ```
/// use lowmesh_coap::{Config, CongestionControl, Endpoint};
/// use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
/// let rng = Rng::stream(Seed(1), NodeId(1), Purpose::Coap);
/// let endpoint: Endpoint<&str> = Endpoint::new(Config::default(), rng)?;
/// assert_eq!(lowmesh_net::metrics::congestion(endpoint.destinations()), "");
/// # Ok::<(), lowmesh_coap::ConfigError>(())
/// ```
pub fn congestion<P: Display>(
    destinations: impl IntoIterator<Item = (P, CongestionSnapshot)>,
) -> String {
    let known: Vec<(P, CongestionSnapshot)> = destinations.into_iter().collect();
    let mut text = String::new();
    for gauge in &GAUGES {
        let samples = known.iter().filter_map(|(peer, one)| Some((peer, one, (gauge.value)(one)?)));
        for (place, (peer, one, value)) in samples.enumerate() {
            if place == 0 {
                head(&mut text, gauge.name, gauge.meaning, "gauge");
            }
            let CongestionSnapshot { timer, window, .. } = one;
            let name = gauge.name;
            let labels = format!("peer=\"{peer}\",timer=\"{timer}\",window=\"{window}\"");
            line(&mut text, &format!("{name}{{{labels}}} {value}"));
        }
    }
    text
}

/// How often datagrams came to nothing, by cause.
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
    head(&mut text, name, "Datagrams that came to nothing", "counter");
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
    use lowmesh_coap::{Config, CongestionControl, Endpoint, Input, RequestTemplate};
    use lowmesh_machine::{Handle, Machine as _};
    use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};

    #[test]
    fn each_destination_has_a_line_for_what_is_known_of_it() {
        let rng = Rng::stream(Seed(1), NodeId(1), Purpose::Coap);
        let congestion = CongestionControl::new("cocoa").with_nstart(2);
        let config = Config { congestion, ..Config::default() };
        let mut endpoint = Endpoint::new(config, rng).expect("possible");
        for number in 0..3 {
            let (message, handle) = (RequestTemplate::get("/t"), Handle(number));
            let input = Input::Request { peer: "[::1]:5683", message, handle };
            endpoint.handle(Instant::ZERO, input).expect("taken");
        }
        let text = super::congestion(endpoint.destinations());
        let labels = "{peer=\"[::1]:5683\",timer=\"cocoa\",window=\"fixed\"}";
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
    fn discarded_datagrams_are_counted_by_cause() {
        let text = discarded(&Counters { pings: 3, ..Counters::default() });
        assert!(text.contains("lowmesh_coap_discarded_total{cause=\"ping\"} 3\n"), "{text}");
        assert_eq!(text.lines().count(), 2 + 8);
    }
}
