//! Drivers carry frames between nodes: one for each kind of MAC, behind one trait.
//!
//! | driver | for | an event is |
//! |---|---|---|
//! | `slotted` | TSCH | a slot in which somebody sends |
//! | `contended` | carrier sense | the channel sensed, a frame begun or over |

mod contended;
mod flight;
mod radio;
mod slotted;

use core::fmt::Debug;

use lowmesh_units::{Channel, Instant, NodeId};

use crate::agenda::Kind;
use crate::world::World;

pub(crate) use contended::{Contended, Tuning};
pub(crate) use slotted::Slotted;

/// Carries the frames of all nodes of a mesh.
pub(crate) trait Driver: Debug + Send {
    /// Processes the event of the radio of `node`.
    fn event(&mut self, world: &mut World, now: Instant, kind: Kind, node: NodeId);

    /// Executes the radio orders of a node, and schedules the next radio event in the agenda.
    fn plan(&mut self, world: &mut World, node: NodeId);

    /// The node has lost its power, and with `is_kept` not its memory.
    fn stop(&mut self, world: &mut World, now: Instant, node: NodeId, is_kept: bool);

    /// The node has its power back, and its memory.
    fn resume(&mut self, world: &mut World, now: Instant, node: NodeId);

    /// A node with carrier sense uses another channel.
    fn tune(&mut self, node: NodeId, channel: Channel);

    /// Links or channels have changed.
    fn change_links(&mut self, world: &mut World, now: Instant);

    /// Processes the outputs of a node, and schedules the next events of the node and its radio.
    fn settle(&mut self, world: &mut World, now: Instant, node: NodeId) {
        world.settle(now, node);
        self.plan(world, node);
    }
}
