//! For how long nodes had a preferred parent whose own parents led to no root: in a loop, to a node without a parent, or
//! to one that is switched off.
//!
//! A change of one parent changes only the nodes whose path to the root contains it. So most changes cost one walk along a
//! path, and only a path that is lost or found costs a walk for each node.

use lowmesh_units::{Duration, Instant, NodeId};

use crate::event::Memory;

/// The preferred parents of all nodes, and the time that each has been without a root.
#[derive(Debug)]
pub(crate) struct Rootless {
    nodes: Vec<Way>,
}

/// The path of a node to a root, one hop of it.
#[derive(Clone, Copy, Debug)]
struct Way {
    is_root: bool,
    /// Without power it leads nowhere, and counts nothing.
    is_off: bool,
    parent: Option<NodeId>,
    leads_to_root: bool,
    /// Since when it has had a parent and no root, if that is so now.
    since: Option<Instant>,
    /// The sum of such times before.
    time: Duration,
}

impl Rootless {
    /// No node has a parent yet; each item says whether the node is a root.
    pub fn new(roots: impl Iterator<Item = bool>) -> Self {
        let time = Duration::ZERO;
        let way = |is_root| {
            let (parent, leads_to_root, since) = (None, is_root, None);
            Way { is_root, is_off: false, parent, leads_to_root, since, time }
        };
        Self { nodes: roots.map(way).collect() }
    }

    /// The preferred parent of `node` is another one, or none.
    pub fn set_parent(&mut self, now: Instant, node: NodeId, parent: Option<NodeId>) {
        self.nodes[node.index()].parent = parent;
        self.update(now, node);
    }

    /// `node` is switched off.
    pub fn switch_off(&mut self, now: Instant, node: NodeId) {
        self.nodes[node.index()].is_off = true;
        self.update(now, node);
    }

    /// `node` is switched on again. If it lost its memory, it has no parent.
    pub fn switch_on(&mut self, now: Instant, node: NodeId, memory: Memory) {
        let way = &mut self.nodes[node.index()];
        way.is_off = false;
        if memory == Memory::Lost {
            way.parent = None;
        }
        self.update(now, node);
    }

    /// How long `node` has had a parent and no root, up to `end`.
    pub fn time(&self, node: NodeId, end: Instant) -> Duration {
        let way = &self.nodes[node.index()];
        way.since.map_or(way.time, |since| way.time + end.since(since))
    }

    fn update(&mut self, now: Instant, node: NodeId) {
        let leads = self.climb(node);
        if leads == self.nodes[node.index()].leads_to_root {
            return self.nodes[node.index()].note(now, leads);
        }
        for index in 0..self.nodes.len() {
            let leads = self.climb(NodeId(index as u16));
            self.nodes[index].note(now, leads);
        }
    }

    /// Whether the parents of `node` lead to a root.
    fn climb(&self, node: NodeId) -> bool {
        let mut at = node;
        for _ in 0..=self.nodes.len() {
            let way = &self.nodes[at.index()];
            if way.is_off || way.is_root {
                return !way.is_off;
            }
            let Some(parent) = way.parent else { return false };
            at = parent;
        }
        false
    }
}

impl Way {
    fn note(&mut self, now: Instant, leads_to_root: bool) {
        self.leads_to_root = leads_to_root;
        let is_rootless = !self.is_off && self.parent.is_some() && !leads_to_root;
        match self.since {
            None if is_rootless => self.since = Some(now),
            Some(since) if !is_rootless => {
                self.time += now.since(since);
                self.since = None;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Node 0 is the root; `changes` are second, node and its parent, where 99 is a switch off, 98 a switch on with the
    /// memory and 97 one without.
    fn times(changes: &[(u64, u16, Option<u16>)]) -> Vec<u64> {
        let mut nodes = Rootless::new((0..4).map(|node| node == 0));
        for (second, node, parent) in changes {
            let (now, node) = (Instant::from_secs(*second), NodeId(*node));
            match parent {
                Some(99) => nodes.switch_off(now, node),
                Some(98) => nodes.switch_on(now, node, Memory::Kept),
                Some(97) => nodes.switch_on(now, node, Memory::Lost),
                parent => nodes.set_parent(now, node, parent.map(NodeId)),
            }
        }
        let end = Instant::from_secs(100);
        (0..4).map(|node| nodes.time(NodeId(node), end).as_secs_f64() as u64).collect()
    }

    #[test]
    fn a_way_to_the_root_costs_nothing_and_neither_has_a_node_without_parent() {
        assert_eq!(times(&[(1, 1, Some(0)), (2, 2, Some(1)), (9, 2, None)]), [0, 0, 0, 0]);
    }

    #[test]
    fn those_below_a_lost_parent_are_rootless_until_it_has_a_way_again() {
        let line = [(1, 1, Some(0)), (2, 2, Some(1)), (3, 3, Some(2))];
        assert_eq!(
            times(&[&line[..], &[(10, 1, None), (40, 1, Some(0))]].concat()),
            [0, 0, 30, 30]
        );
        assert_eq!(times(&[&line[..], &[(10, 1, None), (40, 2, None)]].concat()), [0, 0, 30, 90]);
    }

    #[test]
    fn a_loop_leads_nowhere_and_all_in_it_and_below_it_count() {
        let line = [(1, 1, Some(0)), (2, 2, Some(1)), (3, 3, Some(2))];
        let circle = [(10, 1, Some(2)), (30, 2, Some(0))];
        assert_eq!(times(&[&line[..], &circle].concat()), [0, 20, 20, 20]);
    }

    #[test]
    fn a_node_that_is_switched_off_ends_the_way_of_others_and_its_own_count() {
        let line = [(1, 1, Some(0)), (2, 2, Some(1)), (3, 3, Some(2))];
        let ends = [(10, 1, Some(99)), (60, 2, Some(99)), (80, 3, None)];
        assert_eq!(times(&[&line[..], &ends].concat()), [0, 0, 50, 70]);
        assert_eq!(times(&[&line[..], &[(90, 0, Some(99))]].concat()), [0, 10, 10, 10]);
    }

    #[test]
    fn a_root_or_a_parent_that_is_back_with_its_memory_leads_to_the_root_again() {
        let line = [(1, 1, Some(0)), (2, 2, Some(1)), (3, 3, Some(2))];
        let root = [(10, 0, Some(99)), (25, 0, Some(97))];
        assert_eq!(times(&[&line[..], &root].concat()), [0, 15, 15, 15]);
        let kept = [(10, 1, Some(99)), (25, 1, Some(98))];
        assert_eq!(times(&[&line[..], &kept].concat()), [0, 0, 15, 15]);
        let lost = [(10, 1, Some(99)), (25, 1, Some(97)), (40, 1, Some(0))];
        assert_eq!(times(&[&line[..], &lost].concat()), [0, 0, 30, 30]);
    }
}
