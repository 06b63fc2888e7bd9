//! The simulator's own configuration of a built-in scenario, and what its clients do with it.

use lowmesh_rpl::Mode;
use lowmesh_rpl::objective::OF0;
use lowmesh_sixtop::params::MsfParams;
use lowmesh_units::{Duration, Instant, Seed};

use super::{Values, values};
use crate::air;
use crate::scenario::{RplMode, Scenario};
use crate::settings;
use crate::simulate::{Sinks, simulate};

/// How long clients are watched: until the last nodes have joined.
const WATCHED: &str = "duration=25min";

/// The configuration of `name`, and when and from where its first requests come.
pub fn probe(name: &str) -> Result<Values, String> {
    let load =
        |overrides: &[String]| Scenario::load(name, overrides).map_err(|error| error.to_string());
    let scenario = load(&[])?;
    let stack = settings::parts(&scenario).stack;
    let topology = air::topology(&scenario).place(Seed(1)).map_err(|error| error.to_string())?;
    let places = topology.positions().ok_or("a scenario without places")?;
    let spacing = places.iter().skip(1).map(|place| places[0].distance_m(*place));
    let minutes = |span: Duration| span.as_secs_f64() / 60.0;
    let watched = ["warmup=1min".to_owned(), WATCHED.to_owned(), "traffic.period=20s".to_owned()];
    let outcome = simulate(&load(&watched)?, Seed(1), Sinks::default(), &|_| ())
        .map_err(|error| error.to_string())?;
    let mut clients: Vec<u16> = outcome.transactions.iter().map(|one| one.node.0).collect();
    clients.sort_unstable();
    clients.dedup();
    let first = outcome.transactions.first().map(|one| one.issued.since(Instant::ZERO));
    let mut found = values([
        ("duration_min", minutes(scenario.head.duration)),
        ("warmup_min", minutes(scenario.head.warmup)),
        ("seeds", f64::from(scenario.head.seeds)),
        ("nodes", topology.nodes() as f64),
        ("spacing_m", spacing.fold(f64::INFINITY, f64::min)),
        ("clients", clients.len() as f64),
        ("root_is_client", f64::from(u8::from(clients.contains(&0)))),
        ("first_request_min", first.map_or(f64::NAN, minutes)),
        ("application_buffer", stack.coap.queue_max as f64),
        ("network_buffer", stack.mac.queue_frames_max as f64),
        ("storing", f64::from(u8::from(scenario.rpl.mode == RplMode::Storing))),
        ("rpl_storing", f64::from(u8::from(stack.rpl.mode == Mode::Storing))),
        ("mrhof", f64::from(u8::from(stack.rpl.objective.name() != OF0.name))),
    ]);
    if let Some(msf) = MsfParams::of(&stack.scheduling) {
        found.extend(values([
            ("l0", f64::from(msf.minimal_length)),
            ("l1", f64::from(msf.autonomous_length)),
            ("l2", f64::from(msf.negotiated_length)),
            ("max_nec", msf.cells_elapsed_max as f64),
            ("lim_high", msf.cells_used_high as f64),
            ("lim_low", msf.cells_used_low as f64),
            ("downward", f64::from(u8::from(msf.downward))),
        ]));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_but_the_root_asks_from_the_sixth_minute_on() {
        let found = probe("grid-25").expect("it is built in");
        assert!((found["clients"] - 24.0).abs() < 0.5 && found["root_is_client"] < 0.5);
        assert!((6.0..6.5).contains(&found["first_request_min"]), "{found:?}");
        assert!((found["spacing_m"] - 33.0).abs() < 1e-9);
    }
}
