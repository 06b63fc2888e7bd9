//! Which node has which EUI-64.

use std::collections::BTreeMap;

use lowmesh_units::{Eui64, NodeId};

/// The addresses of a run, both ways round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    addresses: Vec<Eui64>,
    nodes: BTreeMap<Eui64, NodeId>,
}

impl Names {
    /// The names of nodes 0, 1, ...
    pub fn new(addresses: impl Iterator<Item = Eui64>) -> Self {
        let addresses: Vec<Eui64> = addresses.collect();
        let ids = (0..addresses.len()).map(|index| NodeId(index as u16));
        let nodes = addresses.iter().copied().zip(ids).collect();
        Self { addresses, nodes }
    }
    /// The address of a node of the run.
    pub fn eui64(&self, node: NodeId) -> Eui64 {
        self.addresses[node.index()]
    }
    /// The node with an address.
    pub fn node(&self, address: Eui64) -> Option<NodeId> {
        self.nodes.get(&address).copied()
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_units::{Addressing, Seed};

    use super::*;

    #[test]
    fn nodes_and_addresses_lead_to_each_other() {
        let eui64 = |node| Addressing::Random.eui64(Seed(3), NodeId(node));
        let names = Names::new((0..100).map(eui64));
        for node in 0..100 {
            assert_eq!(names.eui64(NodeId(node)), eui64(node));
            assert_eq!(names.node(eui64(node)), Some(NodeId(node)));
        }
        assert_eq!(names.node(eui64(100)), None);
    }
}
