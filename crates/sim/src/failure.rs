//! Nodes that are switched off permanently, by a defect or an empty battery.
//!
//! A frame on the air is sent to its end. Packets in the node stay there and count as queued.

use lowmesh_units::{Instant, NodeId};

use crate::trace::Fact;
use crate::world::World;

impl World {
    /// When a node was switched off permanently; `None` while it is on.
    pub(crate) fn failed(&self, node: NodeId) -> Option<Instant> {
        self.parts[node.index()].fails.filter(|_| self.is_off[node.index()])
    }

    /// Switches the node off if its time has come; returns whether it is off.
    pub(crate) fn fails(&mut self, now: Instant, node: NodeId) -> bool {
        let ends = self.parts[node.index()].fails.is_some_and(|ends| ends <= now);
        if ends && !self.is_off[node.index()] {
            self.is_off[node.index()] = true;
            self.books.trace.note(now, node, Fact::Failed);
            self.rootless.switch_off(now, node);
        }
        ends
    }
}
