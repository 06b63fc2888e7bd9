//! Static routes: a tree that everybody knows, instead of a routing protocol.
//!
//! Every node sends up to its parent by default and knows the child towards each node below it, so no routing
//! message is ever on the air. Published testbed studies wire their networks so.

use alloc::sync::Arc;
use alloc::vec::Vec;

use lowmesh_ipv6::{Addresses, RouteTable};
use lowmesh_units::{Eui64, NodeId};
use lowmesh_wire::ipv6::Address;

/// The parent of each node; all nodes of a network share the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree(Arc<[Step]>);

/// A node whose path to the root is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {node}: {why}")]
pub struct TreeError {
    /// The node.
    pub node: NodeId,
    /// What is wrong with its path.
    pub why: &'static str,
}

/// One node's way up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    parent: Option<NodeId>,
    /// Hops to the root.
    hops: u16,
}

impl Tree {
    /// The tree in which node i has the parent `parents[i]`; node 0 is its root and alone has none.
    pub fn new(parents: &[Option<NodeId>]) -> Result<Self, TreeError> {
        let mut steps = Vec::with_capacity(parents.len());
        for (index, parent) in parents.iter().enumerate() {
            let wrong = |why| TreeError { node: NodeId(index as u16), why };
            match (index, parent) {
                (0, Some(_)) => return Err(wrong("it is the root and has a parent")),
                (1.., None) => return Err(wrong("it has no parent")),
                (_, Some(parent)) if parent.index() >= parents.len() => {
                    return Err(wrong("its parent is no node"));
                }
                _ => {}
            }
            let hops = climb(parents, index).ok_or(wrong("its parents lead in a circle"))?;
            steps.push(Step { parent: *parent, hops });
        }
        Ok(Self(steps.into()))
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.0.len()
    }
    /// The parent of `node`.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.0.get(node.index())?.parent
    }
    /// Hops from `node` to the root; none for a node outside of the tree.
    pub fn hops(&self, node: NodeId) -> Option<u16> {
        self.0.get(node.index()).map(|step| step.hops)
    }
    /// The children of `node`, ascending.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let ids = (0..self.0.len() as u16).map(NodeId);
        ids.filter(move |id| self.parent(*id) == Some(node))
    }

    /// The routing table of `node`.
    pub(crate) fn routes(
        &self,
        node: NodeId,
        prefix: [u8; 8],
        eui64: impl Fn(NodeId) -> Eui64,
    ) -> RouteTable {
        let mut routes = RouteTable::new(self.nodes());
        let neighbour = |id: NodeId| Address::link_local(eui64(id));
        routes.set_default(self.parent(node).map(neighbour));
        for below in (0..self.0.len() as u16).map(NodeId) {
            if let Some(child) = self.child_towards(node, below) {
                let target = Addresses::new(eui64(below), prefix).global();
                routes.insert(target, neighbour(child)).expect("it has room for every node");
            }
        }
        routes
    }

    /// The child of `node` that is `below` or above it.
    fn child_towards(&self, node: NodeId, below: NodeId) -> Option<NodeId> {
        let mut at = below;
        loop {
            let parent = self.parent(at)?;
            if parent == node {
                return Some(at);
            }
            at = parent;
        }
    }
}

/// Hops from `node` to the node without a parent; none in a circle or out of the tree.
fn climb(parents: &[Option<NodeId>], node: usize) -> Option<u16> {
    let (mut at, mut hops) = (node, 0);
    while let Some(parent) = *parents.get(at)? {
        at = parent.index();
        hops += 1;
        if usize::from(hops) > parents.len() {
            return None;
        }
    }
    Some(hops)
}

/// A node's place in a tree.
#[derive(Debug)]
pub(crate) struct Place {
    /// The root of the tree; none outside of any.
    pub(crate) root: Option<Eui64>,
    pub(crate) parent: Option<Eui64>,
    pub(crate) children: Vec<Eui64>,
    pub(crate) hops: u16,
}

impl Place {
    /// The place of a node outside of any tree.
    pub(crate) const fn alone() -> Self {
        Self { root: None, parent: None, children: Vec::new(), hops: 0 }
    }
    /// The place of `node`.
    pub(crate) fn of(
        tree: &Tree,
        node: NodeId,
        eui64: impl Fn(NodeId) -> Eui64,
    ) -> Result<Self, TreeError> {
        let outside = TreeError { node, why: "it is not in the tree" };
        Ok(Self {
            hops: tree.hops(node).ok_or(outside)?,
            root: Some(eui64(NodeId(0))),
            parent: tree.parent(node).map(&eui64),
            children: tree.children(node).map(&eui64).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn tree(parents: &[i32]) -> Result<Tree, TreeError> {
        let parents: Vec<_> = parents.iter().map(|p| u16::try_from(*p).ok().map(NodeId)).collect();
        Tree::new(&parents)
    }

    #[test]
    fn a_node_knows_its_way_up_and_the_child_towards_each_node_below() {
        // 0 <- 1 <- 2 <- 3, 1 <- 4
        let tree = tree(&[-1, 0, 1, 2, 1]).expect("a tree");
        let prefix = lowmesh_ipv6::params::PREFIX;
        let routes = tree.routes(NodeId(1), prefix, NodeId::eui64);
        let hop = |to: u16| {
            routes.lookup(&Addresses::new(NodeId(to).eui64(), prefix).global()).map(|a| a.eui64())
        };
        let expected = [0, 2, 2, 4].map(|node| Some(NodeId(node).eui64()));
        assert_eq!([0, 2, 3, 4].map(hop), expected);
        assert_eq!(tree.hops(NodeId(3)), Some(3));
        let place = Place::of(&tree, NodeId(1), NodeId::eui64).expect("in it");
        assert_eq!(place.children, [NodeId(2).eui64(), NodeId(4).eui64()]);
    }

    #[test]
    fn what_is_no_tree_is_refused_with_its_node() {
        for (parents, expected) in [
            (&[-1, 2, 1][..], "node 1: its parents lead in a circle"),
            (&[1, 0], "node 0: it is the root and has a parent"),
            (&[-1, -1], "node 1: it has no parent"),
            (&[-1, 7], "node 1: its parent is no node"),
        ] {
            assert_eq!(tree(parents).expect_err(expected).to_string(), expected);
        }
    }
}
