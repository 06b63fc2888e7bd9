//! The nodes among which a medium is built: how many, and their places or their tree where these are known.

use lowmesh_units::NodeId;

use super::position::Position;

/// The nodes of a run, with their positions if there are any.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    nodes: usize,
    positions: Option<Vec<Position>>,
    tree: Option<TreeSpec>,
}

/// The tree of a deployment whose places may be unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreeSpec {
    /// The parent of node 1, 2, ...; node 0 is the root.
    pub parents: Vec<NodeId>,
    /// How far node 1, 2, ... is from its parent, m; empty if that is not known.
    pub distances_m: Vec<f64>,
    /// Where node 0, 1, ... stands, m; empty if that is not known.
    pub places_m: Vec<[f64; 3]>,
    /// The delivery ratio of the link of node 1, 2, ... to its parent; empty if that is not known.
    pub pdr: Vec<f64>,
}

impl Topology {
    /// Nodes at `positions`, the root first.
    pub fn placed(positions: Vec<Position>) -> Self {
        Self { nodes: positions.len(), positions: Some(positions), tree: None }
    }
    /// `nodes` nodes without places.
    pub const fn unplaced(nodes: usize) -> Self {
        Self { nodes, positions: None, tree: None }
    }
    /// The nodes of `tree`, without places.
    pub const fn tree_of(tree: TreeSpec) -> Self {
        Self { nodes: tree.parents.len() + 1, positions: None, tree: Some(tree) }
    }
    /// The number of nodes.
    pub const fn nodes(&self) -> usize {
        self.nodes
    }
    /// The positions by node, if there are any.
    pub fn positions(&self) -> Option<&[Position]> {
        self.positions.as_deref()
    }
    /// The tree, if there is one.
    pub const fn tree(&self) -> Option<&TreeSpec> {
        self.tree.as_ref()
    }
}
