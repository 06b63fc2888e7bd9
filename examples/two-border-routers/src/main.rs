//! Two meshes, each with its own border router, PAN and channels, and a wire between them. All nodes report to the
//! border router of the first mesh; readings of the second one cross the wire.

use std::collections::BTreeMap;

use lowmesh_mac::tsch::hopping::HoppingSequence;
use lowmesh_sim::air::{build, unit_disk};
use lowmesh_sim::topology::TopologySpec;
use lowmesh_sim::traffic::{self, Collector};
use lowmesh_sim::{Mesh, NodeParts, PAN, Wire};
use lowmesh_units::{Channel, Duration, NodeId, PanId, Seed};

/// The PAN of the second mesh; its prefix follows from it.
const SECOND: PanId = PanId(0xabce);
/// The first node of the second mesh.
const BORDER: u16 = 6;

/// A router of one of the meshes, on its channels.
fn router(id: NodeId) -> NodeParts {
    let (pan, channels): (_, &[u8]) =
        if id.0 < BORDER { (PAN, &[15, 20]) } else { (SECOND, &[25, 26]) };
    let channels = channels.iter().filter_map(|number| Channel::new(*number)).collect();
    let hopping = HoppingSequence::new(channels).expect("there are two");
    let mut parts = NodeParts::router(pan).channels(hopping).drift(10.0);
    // Beacons every few seconds, so that all nodes join within minutes.
    parts.stack.mac.eb_period = Duration::from_secs(4);
    parts
}

fn border_router(id: NodeId) -> NodeParts {
    NodeParts { is_border_router: true, ..router(id) }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seed = Seed(1);
    let grid = TopologySpec::Grid { rows: 4, cols: 3, spacing_m: 30.0 }.place(seed)?;
    let readings = traffic::Config {
        collector: Collector::First,
        period: Duration::from_secs(30),
        ..traffic::Config::readings()
    };
    let mut mesh = Mesh::builder(seed)
        .medium(build(&unit_disk::ROW, &grid, seed)?)
        .backbone(Wire::ethernet())
        .node(NodeId(0), border_router(NodeId(0)))
        .nodes(1..BORDER, router)
        .node(NodeId(BORDER), border_router(NodeId(BORDER)))
        .nodes(BORDER + 1..12, router)
        .traffic(readings)
        .build()?;

    mesh.run_for(Duration::from_secs(1800));
    for node in mesh.snapshot().nodes {
        let parent = node.parent.map_or("-".to_owned(), |parent| parent.to_string());
        println!("node {:>2}  border router {}  parent {parent}", node.node, node.border_router);
        assert!(node.is_joined);
    }

    // The books balance, or this is an error.
    let outcome = mesh.finish()?;
    let mut answered: BTreeMap<NodeId, (u32, u32)> = BTreeMap::new();
    for reading in &outcome.transactions {
        let (good, all) = answered.entry(reading.node).or_default();
        *good += u32::from(reading.delay().is_some());
        *all += 1;
    }
    for (node, (good, all)) in &answered {
        println!("node {node:>2}  {good} of {all} readings answered");
    }
    let far = answered.get(&NodeId(11)).ok_or("node 11 sent nothing")?;
    assert!(far.0 * 10 >= far.1 * 8, "{far:?}");
    Ok(())
}
