//! Which nodes need routes, and which have them; whether the mesh has recovered from what happened.

use std::collections::VecDeque;

use lowmesh_units::{Channel, Instant, NodeId};

use crate::event::Event;
use crate::params::{PATH_OCTETS, PATH_PDR};
use crate::world::World;

impl World {
    /// Writes down an event that has happened.
    pub(crate) fn note_event(&mut self, now: Instant, event: Event) {
        let needing = self.needing_routes();
        let routed = self.routed();
        let cut_off = needing.iter().filter(|node| !routed[node.index()]).count() as u32;
        self.recovery.begin(now, event, needing, cut_off);
    }

    /// Looks whether the mesh has recovered, if that can have changed.
    pub(crate) fn watch_recovery(&mut self, now: Instant) {
        if !self.recovery.is_due(now) {
            return;
        }
        let routed = self.routed();
        let dark = &self.dark;
        // A node that has lost its power meanwhile needs no route.
        self.recovery.look(now, |node| routed[node.index()] || dark[node.index()].is_some());
    }

    /// Whether each node has a route to its border router, and the border router one to the node.
    fn routed(&self) -> Vec<bool> {
        let mut routed = self.routed_up();
        for (index, is_routed) in routed.iter_mut().enumerate() {
            *is_routed = *is_routed && self.is_routed_down(NodeId(index as u16));
        }
        routed
    }

    /// Whether the preferred parents of each node lead to its border router.
    fn routed_up(&self) -> Vec<bool> {
        let count = self.nodes.len();
        // A node is looked at once: what a chain of parents finds holds for all nodes on it.
        let mut known: Vec<Option<bool>> = vec![None; count];
        for index in 0..count {
            let (mut chain, mut at) = (Vec::new(), NodeId(index as u16));
            let found = loop {
                if let Some(found) = known[at.index()] {
                    break found;
                }
                // While its chain is walked a node has no route: a loop ends here.
                known[at.index()] = Some(false);
                chain.push(at);
                if self.is_off(at) || !self.nodes[at.index()].is_joined() {
                    break false;
                }
                if self.is_root(at) {
                    break true;
                }
                match self.nodes[at.index()].parent().and_then(|parent| self.find(parent)) {
                    Some(parent) if self.best_chance(at, parent) > 0.0 => at = parent,
                    _ => break false,
                }
            };
            for node in chain {
                known[node.index()] = Some(found);
            }
        }
        known.into_iter().map(|found| found == Some(true)).collect()
    }

    /// Whether the routes to `node` lead from its border router to it.
    fn is_routed_down(&self, node: NodeId) -> bool {
        let target = self.nodes[node.index()].global_address();
        let root = self.parts[node.index()].root;
        // The root reaches a leaf through its router.
        match self.nodes[root.index()].router_of(&target).map(|router| self.find(router)) {
            Some(Some(router)) => self.leads(root, router) && self.leads(router, node),
            Some(None) => false,
            None => self.leads(root, node),
        }
    }

    /// Whether the routes to `node` lead from `start` to it.
    fn leads(&self, start: NodeId, node: NodeId) -> bool {
        let target = self.nodes[node.index()].global_address();
        let mut at = start;
        for _ in 0..self.nodes.len() {
            if at == node {
                return true;
            }
            let hops = self.nodes[at.index()].hops_down(&target);
            if hops.is_empty() {
                return false;
            }
            for hop in hops {
                match self.find(hop) {
                    Some(next) if !self.is_off(next) && self.best_chance(at, next) > 0.0 => {
                        at = next;
                    }
                    _ => return false,
                }
            }
        }
        false
    }

    /// The nodes that need a route.
    fn needing_routes(&self) -> Vec<NodeId> {
        let ids = || (0..self.nodes.len()).map(|index| NodeId(index as u16));
        let mut reached = vec![false; self.nodes.len()];
        let mut border: VecDeque<NodeId> =
            ids().filter(|id| self.is_root(*id) && !self.is_off(*id)).collect();
        for root in &border {
            reached[root.index()] = true;
        }
        while let Some(from) = border.pop_front() {
            for &to in self.links().neighbours(from) {
                let same = self.parts[from.index()].root == self.parts[to.index()].root;
                if reached[to.index()] || !same || self.is_off(to) {
                    continue;
                }
                let both = self.best_chance(from, to).min(self.best_chance(to, from));
                if both >= PATH_PDR {
                    reached[to.index()] = true;
                    // A leaf forwards nothing.
                    if !self.parts[to.index()].is_leaf {
                        border.push_back(to);
                    }
                }
            }
        }
        ids().filter(|id| reached[id.index()] && !self.is_root(*id)).collect()
    }

    /// The chance of a frame from one node to another on the best channel.
    fn best_chance(&self, tx: NodeId, rx: NodeId) -> f64 {
        let channels = (11..=26).filter_map(Channel::new);
        let links = channels.filter_map(|channel| self.links().get(tx, rx, channel));
        let chance = |link| self.medium.chance_over(link, PATH_OCTETS);
        links.map(chance).fold(0.0, f64::max)
    }
}
