//! Nodes that are switched off for good: broken, or with an empty battery.
//!
//! A frame that is on the air goes out to its end. What the node holds stays with it, and counts as queued.

use lowmesh_units::{Instant, NodeId};

use crate::agenda::Kind;
use crate::trace::Fact;
use crate::world::World;

/// What becomes of one node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    /// When it fails, if it is to.
    pub ends: Option<Instant>,
    pub failed: bool,
}

impl Life {
    /// When it failed.
    pub fn failed_at(self) -> Option<Instant> {
        self.ends.filter(|_| self.failed)
    }
}

impl World {
    /// Whether the node is off at `now`, for which it is switched off if its end has come.
    pub(crate) fn fails(&mut self, now: Instant, node: NodeId) -> bool {
        let life = &mut self.lives[node.index()];
        let due = !life.failed && life.ends.is_some_and(|ends| ends <= now);
        if due {
            life.failed = true;
            self.trace.note(now, node, Fact::Failed);
            if let Some(radio) = self.radios.get_mut(node.index()) {
                radio.receiver.abandon();
                radio.sense = None;
                radio.outgoing.take_if(|frame| frame.frame.is_none());
            }
            self.silence(node);
        }
        self.lives[node.index()].failed
    }

    /// Takes a failed node out of the agenda, but for the end of its last frame.
    pub(crate) fn silence(&mut self, node: NodeId) {
        for kind in [Kind::Deadline, Kind::Sense, Kind::Slot] {
            self.agenda.set(node, kind, None);
        }
        let last = self.radios.get(node.index()).and_then(|radio| radio.next_frame_step());
        self.agenda.set(node, Kind::Frame, last);
    }
}
