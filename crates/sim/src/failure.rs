//! Nodes that are switched off for good: broken, or with an empty battery.
//!
//! A frame that is on the air goes out to its end. What the node holds stays with it, and counts as queued.

use lowmesh_units::{Instant, NodeId};

use crate::trace::Fact;
use crate::world::World;

impl World {
    /// When a node was switched off for good, if it was.
    pub(crate) fn failed(&self, node: NodeId) -> Option<Instant> {
        self.parts[node.index()].fails.filter(|_| self.is_off[node.index()])
    }

    /// Whether the node is off at `now`; it is switched off if its end has come.
    pub(crate) fn fails(&mut self, now: Instant, node: NodeId) -> bool {
        let ends = self.parts[node.index()].fails.is_some_and(|ends| ends <= now);
        if ends && !self.is_off[node.index()] {
            self.is_off[node.index()] = true;
            self.trace.note(now, node, Fact::Failed);
        }
        ends
    }
}
