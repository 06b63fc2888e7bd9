//! Power of nodes.

use lowmesh_units::Instant;

use crate::event::Memory;

/// A node without power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dark {
    /// Since when.
    pub(crate) since: Instant,
    /// What became of its state.
    pub(crate) memory: Memory,
}
