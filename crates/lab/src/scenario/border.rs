//! `[[border_router]]` and `[backbone]`: several meshes in one run, and the wire between them.

use lowmesh_units::{Duration, PanId};

use super::section::section;
use super::topology::NODES_MAX;
use super::value::{Any, Hopping, Within};
use super::{Mac, Scenario, Topology};

section! {
    /// A border router besides node 0. Its mesh consists of the nodes from it up to the next border router.
    BorderRouter {
        /// Its number among the nodes.
        node: u16 = 0, Within(1, NODES_MAX);
        /// The identifier of its PAN; by default the one after that of the border router before it.
        pan: Option<u16> = None, Within(1, 0xfffd);
        /// Channels of its mesh in hopping order, under TSCH; by default those of `mac.hopping`.
        hopping: Option<Hopping> = None, Any;
        /// The channel of its mesh, under carrier sense; by default that of `mac.channel`.
        channel: Option<u8> = None, Within(11, 26);
    }
}

section! {
    /// The wire between border routers.
    Backbone {
        /// How long a packet takes from one border router to another.
        delay: Duration = Duration::from_micros(100), Within(Duration::ZERO, Duration::from_secs(10));
    }
}

/// One mesh of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshRange {
    /// Its first node, the border router.
    pub first: u16,
    /// Its PAN.
    pub pan: PanId,
    /// Settings that override `[mac]`; none at node 0.
    pub border_router: BorderRouter,
}

impl Scenario {
    /// The meshes in the order of their nodes; the one of node 0 comes first.
    pub fn meshes(&self) -> Vec<MeshRange> {
        let mut pan = lowmesh_sim::PAN;
        let mut meshes = vec![MeshRange { first: 0, pan, border_router: BorderRouter::default() }];
        for border_router in &self.border_routers {
            pan = PanId(border_router.pan.unwrap_or_else(|| pan.0.wrapping_add(1)));
            let border_router = border_router.clone();
            meshes.push(MeshRange { first: border_router.node, pan, border_router });
        }
        meshes
    }

    /// Whether the border routers fit the nodes, the MAC and each other.
    pub(super) fn border_router_conflicts(&self, check: &mut impl FnMut(bool, &str, String)) {
        let nodes = self.topology.nodes();
        let meshes = self.meshes();
        for (index, mesh) in meshes.iter().enumerate().skip(1) {
            let key = |name: &str| format!("border_router[{}].{name}", index - 1);
            let (first, before) = (mesh.first, meshes[index - 1].first);
            let message = format!("{first} is not above {before}, the border router before it");
            check(first <= before, &key("node"), message);
            let message = format!("{first} is no node: there are {}", nodes.unwrap_or_default());
            check(nodes.is_some_and(|nodes| u32::from(first) >= nodes), &key("node"), message);
            let same = meshes[..index].iter().find(|other| other.pan == mesh.pan);
            let other = same.map_or(0, |other| other.first);
            let message = format!("{} is the PAN of node {other} already", mesh.pan.0);
            check(same.is_some(), &key("pan"), message);
            let slotted = matches!(self.mac, Mac::Tsch(_));
            let message = "only mac.kind = \"tsch\" hops; write channel instead".to_owned();
            check(!slotted && mesh.border_router.hopping.is_some(), &key("hopping"), message);
            let message = "mac.kind = \"tsch\" hops; write hopping instead".to_owned();
            check(slotted && mesh.border_router.channel.is_some(), &key("channel"), message);
        }
        let message =
            "routes of a tree lead to node 0 only; write another topology.kind".to_owned();
        let is_tree = matches!(self.topology, Topology::Tree(_));
        check(is_tree && meshes.len() > 1, "border_router", message);
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_sim::record::Ending;
    use lowmesh_units::{NodeId, Seed};

    use super::*;
    use crate::simulate::{Sinks, simulate};

    /// Six nodes in a line, the last three in a mesh of their own.
    const TWO: &str = "name = \"two\"\nduration = \"20min\"\nwarmup = \"5min\"\n\
        [topology]\nkind = \"line\"\nnodes = 6\n[radio]\nmedium = \"unit-disk\"\n\
        [mac]\nhopping = [15, 20]\neb_period = \"2s\"\n\
        [traffic]\ncollector = \"first\"\nperiod = \"10s\"\n\
        [[border_router]]\nnode = 3\nhopping = [25, 26]\n";

    fn told(text: &str, sets: &[&str]) -> String {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let errors = Scenario::parse("two.toml", text, &sets).expect_err("it does not fit");
        errors.to_string()
    }

    #[test]
    fn border_routers_are_read_and_written_and_have_pans_in_a_row() {
        let scenario = Scenario::parse("two", TWO, &[]).expect("a good scenario");
        let meshes = scenario.meshes();
        let pans: Vec<(u16, u16)> = meshes.iter().map(|mesh| (mesh.first, mesh.pan.0)).collect();
        assert_eq!(pans, [(0, 0xabcd), (3, 0xabce)]);
        assert_eq!(Scenario::parse("two", &scenario.to_toml(), &[]), Ok(scenario));
    }

    #[test]
    fn a_reading_crosses_from_one_mesh_to_the_other() {
        let scenario = Scenario::parse("two", TWO, &[]).expect("a good scenario");
        let run = || simulate(&scenario, Seed(1), Sinks::default(), &|_| ()).expect("it balances");
        let outcome = run();
        assert_eq!(outcome.trace_hash, run().trace_hash);
        let hops: Vec<Option<u32>> = outcome.nodes.iter().map(|node| node.hops).collect();
        assert_eq!(hops, [0, 1, 2, 0, 1, 2].map(Some));
        for node in [1, 2, 4, 5] {
            let own = outcome.transactions.iter().filter(|t| t.node == NodeId(node));
            let good = own.filter(|t| t.ending == Ending::Acknowledged).count();
            assert!(good > 40, "node {node}: {good}");
        }
    }

    #[test]
    fn border_routers_that_do_not_fit_are_told_by_their_keys() {
        for (sets, expected) in [
            (&["topology.nodes=3"][..], "border_router[0].node: 3 is no node: there are 3"),
            (&["border_router=[{node=3, pan=43981}]"], "43981 is the PAN of node 0 already"),
            (&["border_router=[{node=3}, {node=2}]"], "border_router[1].node: 2 is not above 3"),
            (&["border_router=[{node=3, channel=11}]"], "hops; write hopping instead"),
            (&["mac.kind=csma"], "border_router[0].hopping: only mac.kind = \"tsch\" hops"),
            (&["border_router=[{}]"], "border_router[0].node"),
        ] {
            let told = told(TWO, sets);
            assert!(told.contains(expected), "{sets:?}: {told}");
        }
    }
}
