//! Probes: what the code does when it is driven, as named numbers.
//!
//! A claim about a rule is decided by what the code does, not by a constant that says the same as the claim. Each
//! probe is a word and a subject: `timer cocoa` drives the timer of that name, `setup grid-25` reads the simulator's own
//! configuration of that scenario, `mesh alice` simulates a small mesh with that scheduling function, `window reno` drives
//! that congestion window, `fragments sfr` cuts packets that way, `network lille-50` reads the configuration of a scenario
//! with given routes, `memory lille-50` adds up what its nodes set aside, `group multicast` drives the Entity Manager,
//! `connection nb-iot` opens a TCP connection of that scenario.

mod client;
mod connection;
mod fragments;
mod group;
mod memory;
mod mesh;
mod network;
mod setup;
mod timer;
mod window;

use std::collections::BTreeMap;

use lowmesh_congestion::{Timer, Window};
use lowmesh_registry::Registry;

/// What a probe found.
pub type Values = BTreeMap<String, f64>;

/// Whether there is a probe called `name`.
pub fn is_known(name: &str) -> bool {
    match name.split_once(' ') {
        Some(("timer" | "client", timer)) => Registry::<dyn Timer>::builtin().row(timer).is_ok(),
        Some(("setup" | "network" | "memory" | "connection", scenario)) => {
            crate::scenario::BUILTINS.iter().any(|builtin| builtin.name == scenario)
        }
        Some(("window", window)) => Registry::<dyn Window>::builtin().row(window).is_ok(),
        Some(("fragments", mode)) => ["hwr", "ff", "sfr", "e2e"].contains(&mode),
        Some(("group", subject)) => group::SUBJECTS.contains(&subject),
        Some(("mesh", function)) => ["alice", "b-msf", "msf"].contains(&function),
        _ => false,
    }
}

/// Runs the probe called `name`.
pub fn run(name: &str) -> Result<Values, String> {
    match name.split_once(' ') {
        Some(("timer", timer)) => timer::probe(timer),
        Some(("client", timer)) => client::probe(timer),
        Some(("setup", scenario)) => setup::probe(scenario),
        Some(("network", scenario)) => network::probe(scenario),
        Some(("memory", scenario)) => memory::probe(scenario),
        Some(("connection", scenario)) => connection::probe(scenario),
        Some(("group", subject)) => group::probe(subject),
        Some(("mesh", function)) => mesh::probe(function),
        Some(("window", window)) => window::probe(window),
        Some(("fragments", mode)) => fragments::probe(mode),
        _ => Err(format!("there is no probe `{name}`")),
    }
}

fn values<const N: usize>(pairs: [(&str, f64); N]) -> Values {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_is_known_runs_and_another_is_refused() {
        for name in
            ["timer cocoa", "client default", "setup grid-64", "window quic", "fragments ff"]
        {
            assert!(is_known(name), "{name}");
            assert!(!run(name).unwrap_or_else(|error| panic!("{name}: {error}")).is_empty());
        }
        for name in [
            "timer",
            "timer quartz",
            "setup none",
            "mesh orchestra",
            "window w",
            "fragments pigeon",
            "",
        ] {
            assert!(!is_known(name), "{name}");
        }
        assert!(run("nose").is_err());
    }
}
