//! A small mesh in the simulator, some minutes after it formed: which cells its links have, and what they cost.

use lowmesh_mac::tsch::cell::CellOptions;
use lowmesh_mac::tsch::schedule::Schedule;
use lowmesh_sim::Sinks;
use lowmesh_units::{Instant, NodeId, Seed};

use super::{Values, values};
use crate::scenario::Scenario;
use crate::settings;

/// When the cells are looked at.
const LOOKED_AT: Instant = Instant::from_secs(1200);

/// Cells between neighbours of a five by five grid whose nodes use `function`.
pub fn probe(function: &str) -> Result<Values, String> {
    let overrides = [
        format!("schedule.function={function}"),
        "duration=20min".to_owned(),
        "traffic.period=10s".to_owned(),
    ];
    let scenario = Scenario::load("grid-25", &overrides).map_err(|error| error.to_string())?;
    let mesh = settings::mesh(&scenario, Seed(1), Sinks::default());
    let mut mesh = mesh.map_err(|error| error.to_string())?;
    mesh.advance(LOOKED_AT);
    let (mut links, mut least, mut most) = (0_u32, u32::MAX, 0);
    for (index, node) in mesh.nodes().iter().enumerate() {
        let Some(parent) = node.parent().and_then(|parent| mesh.node_with(parent)) else {
            continue;
        };
        let me = mesh.eui64(NodeId(index as u16));
        let up = sending_cells(node, mesh.eui64(parent));
        let down = sending_cells(&mesh.nodes()[parent.index()], me);
        links += 1;
        least = least.min(up).min(down);
        most = most.max(up).max(down);
    }
    let outcome = mesh.finish().map_err(|error| error.to_string())?;
    Ok(values([
        ("links", f64::from(links)),
        ("cells_min", f64::from(if links > 0 { least } else { 0 })),
        ("cells_max", f64::from(most)),
        ("sixp_frames", outcome.frames.sixtop as f64),
        ("unicast_frames", outcome.frames.sent as f64),
    ]))
}

/// Cells in which `node` may send to `peer` and to nobody else. Those of ALICE are shared: other links may hash to them.
fn sending_cells(node: &lowmesh_stack::Node, peer: lowmesh_units::Eui64) -> u32 {
    let own = |cell: &&lowmesh_mac::tsch::cell::Cell| {
        cell.peer == Some(peer) && cell.options.has(CellOptions::TX)
    };
    node.schedule().into_iter().flat_map(Schedule::cells).filter(own).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alice_costs_no_message_and_b_msf_does() {
        let [alice, msf] = ["alice", "b-msf"].map(|name| probe(name).expect("it runs"));
        let told = ["cells_min", "cells_max", "sixp_frames"].map(|value| alice[value] as u32);
        assert_eq!(told, [1, 1, 0]);
        assert!(msf["sixp_frames"] > 10.0);
    }
}
