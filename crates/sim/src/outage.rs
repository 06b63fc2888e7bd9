//! Nodes that lose their power and get it back.
//!
//! A frame on the air from a node without power breaks off. What was in its memory is lost, unless the memory is kept:
//! packets are dropped, and requests of its applications fail.

use lowmesh_machine::{DropReason, Dropped, Layer};
use lowmesh_stack::event::{Input, Packet};
use lowmesh_units::{Instant, NodeId};

use crate::agenda::Kind;
use crate::event::Memory;
use crate::power::Dark;
use crate::world::World;

impl World {
    /// Switches a node off; returns whether it was on. The driver stops its radio afterwards.
    pub(crate) fn switch_off(&mut self, now: Instant, node: NodeId, memory: Memory) -> bool {
        let before = self.dark[node.index()];
        if before.is_none() {
            self.dark[node.index()] = Some(Dark { since: now, memory });
            self.agenda.set(node, Kind::Deadline, None);
            self.rootless.switch_off(now, node);
            self.unsent.pause(now, node);
        }
        let has_memory = before.is_none_or(|dark| dark.memory == Memory::Kept);
        if memory == Memory::Lost && has_memory {
            if let Some(dark) = &mut self.dark[node.index()] {
                dark.memory = Memory::Lost;
            }
            self.forget(now, node);
        }
        before.is_none()
    }

    /// A node loses its memory: what remains is a new one, switched off.
    fn forget(&mut self, now: Instant, id: NodeId) {
        let index = id.index();
        for handle in self.nodes[index].held() {
            let dropped = Dropped { handle, layer: Layer::Mac, reason: DropReason::PowerLost };
            self.books.note_packet(now, id, Packet::Dropped(dropped));
        }
        self.books.note_life_over(now, id, &self.nodes[index]);
        self.unsent.forget(id);
        self.blueprint.losses[index] += 1;
        let makes = "the same settings made the node before";
        let mut fresh = self.blueprint.node(id, self.is_root(id)).expect(makes);
        let planned = self.blueprint.install(id, &mut fresh, &self.parts).expect(makes);
        fresh.remember(self.nodes[index].root_memory());
        std::mem::swap(&mut self.nodes[index], &mut fresh);
        for own in fresh.into_applications(planned) {
            self.nodes[index].install(own).expect(makes);
        }
        self.boots[index] = None;
    }

    /// Switches a node on; returns what became of its state, or `None` if it was on. The driver resumes its radio
    /// afterwards.
    pub(crate) fn switch_on(&mut self, now: Instant, node: NodeId) -> Option<Memory> {
        let index = node.index();
        let Dark { since, memory } = self.dark[index].take()?;
        self.rootless.switch_on(now, node, memory);
        let joined = self.books.outcome.nodes[index].joined;
        let kept = (memory == Memory::Kept).then_some(&self.nodes[index]);
        self.books.lives[index].was_dark((since, now), joined, kept);
        match memory {
            Memory::Lost => {
                self.boots[index] = Some(now);
                self.agenda.set(node, Kind::Deadline, Some(now));
            }
            Memory::Kept => {
                self.unsent.resume(now, node);
                self.tell(now, node, Input::Resume);
            }
        }
        Some(memory)
    }
}
