//! The simulator's own configuration of a built-in scenario with given routes, and who sends there.

use std::collections::BTreeSet;

use lowmesh_mac::csma::Radio;
use lowmesh_stack::{LinkLayer, Routes};
use lowmesh_units::{NodeId, Seed};

use super::{Values, values};
use crate::scenario::Scenario;
use crate::settings;
use crate::simulate::{Sinks, simulate};

/// How long senders are watched: every one sends within its first period.
const WATCHED: &str = "duration=1min";

/// The network of `name`, its bounds and timers under selective fragment recovery, and its senders.
pub fn probe(name: &str) -> Result<Values, String> {
    let load = |overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(|&one| one.to_owned()).collect();
        Scenario::load(name, &overrides).map_err(|error| error.to_string())
    };
    let scenario = load(&["fragments.mode=sfr"])?;
    let (stack, traffic) = (settings::parts(&scenario).stack, settings::traffic(&scenario));
    let Routes::Static(tree) = &stack.routes else {
        return Err(format!("{name} has no static routes"));
    };
    let LinkLayer::Csma(mac) = &stack.link else {
        return Err(format!("{name} has no carrier sense"));
    };
    let nodes = (0..tree.nodes()).map(|node| NodeId(node as u16));
    let hops = nodes.filter_map(|node| tree.hops(node)).max();
    let watched = simulate(&load(&[WATCHED])?, Seed(1), Sinks::default(), &|_| ())
        .map_err(|error| error.to_string())?;
    let sources: BTreeSet<NodeId> = watched.datagrams.iter().map(|one| one.node).collect();
    let lowpan = &stack.lowpan;
    let period = traffic.period.as_secs_f64();
    let at_root = stack.root_reassembly_buffers.unwrap_or(lowpan.reassembly_buffers);
    let busy = match mac.radio {
        Radio::Thin { busy_max, .. } => busy_max.as_millis_f64(),
        Radio::Open => 0.0,
    };
    let recovery = &lowpan.recovery;
    Ok(values([
        ("nodes", tree.nodes() as f64),
        ("hops_most", hops.map_or(f64::NAN, f64::from)),
        ("root_neighbours", tree.children(NodeId(0)).count() as f64),
        ("sources", sources.len() as f64),
        ("datagrams_each", traffic.readings_max.map_or(f64::INFINITY, |most| most as f64)),
        ("interval_least_s", period * (1.0 - traffic.jitter)),
        ("interval_most_s", period * (1.0 + traffic.jitter)),
        ("busy_max_ms", busy),
        ("queue_frames", mac.queue_frames_max as f64),
        ("reassembly_timeout_s", lowpan.reassembly_timeout.as_secs_f64()),
        ("reassembly_buffers", lowpan.reassembly_buffers as f64),
        ("reassembly_buffers_sink", at_root as f64),
        ("fragmentation_buffers", lowpan.fragmented_datagrams as f64),
        ("entries", lowpan.forwarded_datagrams as f64),
        ("packet_buffer_octets", lowpan.packet_buffer_octets as f64),
        ("fragment_retries", f64::from(recovery.fragment_retries)),
        ("datagram_retries", f64::from(recovery.datagram_retries)),
        ("arq_ms", recovery.arq.timeout().as_millis_f64()),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_of_a_tree_is_told_and_another_is_refused() {
        let found = probe("grenoble-t").expect("it is a tree");
        assert!((found["nodes"] - 8.0).abs() < 0.5 && (found["sources"] - 6.0).abs() < 0.5);
        assert!(probe("grid-25").expect_err("RPL routes there").contains("no static routes"));
    }
}
