//! Nodes on an air of their own, slot by slot, and two by themselves.
//!
//! | file | asks |
//! |---|---|
//! | `mesh` | (the air, the clock, the book of packets) |
//! | `formation` | who joins, who falls out and comes back |
//! | `delivery` | do packets arrive over several hops, whole and in fragments |
//! | `leaves` | nodes that run no RPL: do packets reach them, and what is in their frames |
//! | `alone` | two nodes without a planned network: what a stranger may ask of them |
//! | `streams` | CoAP over TCP: connections, their bounds and their ends |
//! | `endings` | what becomes of those that do not |

mod alone;
mod delivery;
mod endings;
mod formation;
mod leaves;
mod mesh;
mod streams;
