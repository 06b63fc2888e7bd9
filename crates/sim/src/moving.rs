//! Nodes that move: the medium is built again for the new positions.
//!
//! All randomness of a medium is of the seed, so a link between nodes that stay is the same as before.

use crate::air::error::BuildError;
use crate::air::{Interferer, Medium, Position};

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

/// The positions of nodes, and what depends on them.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) positions: Vec<Position>,
    pub(crate) rebuild: Rebuild,
    pub(crate) interferers: Vec<Interferer>,
}
