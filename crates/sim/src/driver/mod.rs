//! What carries frames between nodes: one driver for each kind of MAC, behind one trait.
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

use lowmesh_units::{Instant, NodeId};

use crate::agenda::Kind;
use crate::world::World;

pub(crate) use contended::{Contended, Tuning};
pub(crate) use slotted::Slotted;

/// Carries the frames of all nodes of a mesh.
pub(crate) trait Driver: Debug + Send {
    /// Does what is due of the radio of `node`.
    fn event(&mut self, world: &mut World, now: Instant, kind: Kind, node: NodeId);

    /// Takes what a settled node orders of its radio, and notes in the agenda when that has something to do.
    fn plan(&mut self, world: &mut World, node: NodeId);

    /// Takes what a node has to say, and notes when it and its radio want to be called again.
    fn settle(&mut self, world: &mut World, now: Instant, node: NodeId) {
        world.settle(now, node);
        self.plan(world, node);
    }
}
