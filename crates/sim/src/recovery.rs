//! How the mesh recovers from what happens to it.
//!
//! A node *needs* routes after an event if it is on, and a path of usable links leads over nodes that are on to the border
//! router of its mesh. It *has* them while its preferred parents lead to the border router, and the routes of the border
//! router and of the nodes between lead to it. The mesh has recovered when all nodes that needed routes have them at the
//! same time.

use std::collections::VecDeque;

use lowmesh_units::{Channel, Instant, NodeId};

use crate::event::Event;
use crate::params::{PATH_OCTETS, PATH_PDR, RECOVERY_LOOK};
use crate::record::EventRecord;
use crate::world::World;

/// The events of a run, and those whose recovery is not over.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    records: Vec<EventRecord>,
    /// Indices of records with the nodes that needed a route.
    open: Vec<(usize, Vec<NodeId>)>,
    /// A node has changed its place in the network since the last look.
    has_changed: bool,
    /// When that was.
    looked: Instant,
}

impl Recovery {
    /// A node has changed its place in the network.
    pub(crate) const fn note_change(&mut self) {
        self.has_changed = true;
    }

    /// The records at the end of the run.
    pub(crate) fn finish(self) -> Vec<EventRecord> {
        self.records
    }
}

impl World {
    /// Writes down an event that has happened.
    pub(crate) fn note_event(&mut self, now: Instant, event: Event) {
        let needing = self.needing_routes();
        let routed = self.routed();
        let lacks = |node: &&NodeId| !routed[node.index()];
        let cut_off = needing.iter().filter(lacks).count() as u32;
        let recovered = (cut_off == 0).then_some(now);
        let recovery = &mut self.recovery;
        if recovered.is_none() {
            recovery.open.push((recovery.records.len(), needing));
        }
        recovery.records.push(EventRecord { at: now, event, cut_off, recovered });
    }

    /// Looks whether the mesh has recovered, if that can have changed.
    pub(crate) fn watch_recovery(&mut self, now: Instant) {
        let recovery = &mut self.recovery;
        // Routes downwards come without a sign of it.
        if recovery.open.is_empty()
            || !recovery.has_changed && now < recovery.looked + RECOVERY_LOOK
        {
            return;
        }
        (recovery.has_changed, recovery.looked) = (false, now);
        let routed = self.routed();
        let dark: Vec<bool> = self.dark.iter().map(Option::is_some).collect();
        let Recovery { records, open, .. } = &mut self.recovery;
        open.retain(|(place, needing)| {
            // A node that has lost its power meanwhile needs no route.
            let has = |node: &NodeId| routed[node.index()] || dark[node.index()];
            let is_over = needing.iter().all(has);
            if is_over {
                records[*place].recovered = Some(now);
            }
            !is_over
        });
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
        let mut at = self.parts[node.index()].root;
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
                    border.push_back(to);
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
