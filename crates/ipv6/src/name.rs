//! Names of the packets that are made at one node.

use lowmesh_machine::Handle;
use lowmesh_units::NodeId;

use crate::event::Class;

/// The lowest bit of the class in a name.
const CLASS_BIT: u32 = 56;
/// The lowest bit of the losses of memory in a name.
const LOSSES_BIT: u32 = 28;

/// Names that are unique in the run, and never [`Handle::NONE`].
///
/// ```text
///   | class 4 bits, from bit 56 | node 16 bits, from bit 40 | losses of memory 12 bits, from bit 28 | number, from 1 |
/// ```
#[derive(Clone, Debug)]
pub(crate) struct Names {
    node: NodeId,
    /// Number of the last packet made here.
    last: u64,
    newest: Handle,
}

impl Names {
    /// Names of a node that has lost its memory so many times.
    pub const fn new(node: NodeId, losses: u16) -> Self {
        Self { node, last: (losses as u64) << LOSSES_BIT, newest: Handle::NONE }
    }
    /// The name of the next packet.
    pub fn next(&mut self, class: Class) -> Handle {
        self.last += 1;
        self.newest =
            Handle((class as u64) << CLASS_BIT | u64::from(self.node.0) << 40 | self.last);
        self.newest
    }
    /// The name that [`Names::next`] gave last.
    pub const fn newest(&self) -> Handle {
        self.newest
    }
    /// True for a packet of class [`Class::Group`], wherever it was made.
    pub const fn is_group(handle: Handle) -> bool {
        handle.0 >> CLASS_BIT == Class::Group as u64
    }
    /// True for a packet of class [`Class::Control`] that was made here.
    pub fn is_own_control(&self, handle: Handle) -> bool {
        handle.0 >> 40 == (Class::Control as u64) << 16 | u64::from(self.node.0)
    }
}
