//! `[[border_router]]` and `[backbone]`: several meshes in one run, and the wire between them.

use lowmesh_units::{Duration, PanId};

use super::section::section;
use super::topology::NODES_MAX;
use super::value::{Any, Hopping, Within};
use super::{Mac, Scenario, Topology};

section! {
    /// A border router besides node 0. Its mesh are the nodes from it up to the next border router.
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
    /// What differs from `[mac]`; nothing at node 0.
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
