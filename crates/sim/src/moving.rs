//! Nodes that move: the medium is built again for the new positions.
//!
//! All randomness of a medium is of the seed, so a link between nodes that stay is the same as before.

use lowmesh_units::{Instant, NodeId};

use crate::air::error::BuildError;
use crate::air::{Interference, Interferer, Medium, Position};
use crate::world::World;

/// What is said where nodes cannot move.
pub(crate) const UNMOVABLE: &str = "the nodes of this medium have no positions, so that none can move; \
     choose a medium with positions, or change links with `cut`, `restore` and `link`";

/// Makes the medium for other positions.
pub(crate) struct Rebuild(pub(crate) BuildMedium);

type BuildMedium = Box<dyn Fn(&[Position]) -> Result<Box<dyn Medium>, BuildError> + Send>;

impl std::fmt::Debug for Rebuild {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rebuild")
    }
}

/// Where nodes stand, and what depends on it.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) positions: Vec<Position>,
    pub(crate) rebuild: Rebuild,
    pub(crate) interferers: Vec<Interferer>,
}

impl World {
    /// A node stands at another position from now on.
    pub(crate) fn move_node(
        &mut self,
        now: Instant,
        node: NodeId,
        position: Position,
    ) -> Result<(), BuildError> {
        let Some(site) = &mut self.site else { return Ok(()) };
        site.positions[node.index()] = position;
        self.medium = (site.rebuild.0)(&site.positions)?;
        if self.medium.next_change().is_some_and(|due| due <= now) {
            self.medium.advance(now);
        }
        self.overlay.apply(self.medium.links());
        let count = site.positions.len();
        let interference =
            Interference::new(&site.interferers, count, Some(&site.positions), self.seed)?;
        self.interference = interference.with_ambient_of(std::mem::take(&mut self.interference));
        Ok(())
    }
}
