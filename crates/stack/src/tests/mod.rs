//! Nodes on an air of their own, slot by slot.
//!
//! | file | asks |
//! |---|---|
//! | `mesh` | (the air, the clock, the book of packets) |
//! | `formation` | who joins, who falls out and comes back |
//! | `delivery` | do packets arrive over several hops, whole and in fragments |
//! | `endings` | what becomes of those that do not |

mod delivery;
mod endings;
mod formation;
mod mesh;
