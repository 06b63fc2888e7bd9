//! Deterministic discrete-event simulation of Lowmesh nodes over a radio medium.
//!
//! | module | holds |
//! |---|---|
//! | [`builder`], [`parts`] | how a mesh is assembled, and what a node is made of |
//! | [`mesh`], [`snapshot`] | time, whole or step by step, and what can be seen of it |
//! | [`record`] | what a run leaves behind |
//! | `world`, `note`, `summary` | nodes and books, and the end of a run |
//! | `driver` | what carries frames: `slotted` for timeslots, `contended` for carrier sense |
//! | [`backbone`] | the wire between border routers |
//! | [`agenda`], [`clock`] | events in order, crystals that drift |
//! | [`air`], [`topology`] | who hears whom, where nodes stand |
//! | [`traffic`] | which applications run on which node |
//! | `failure` | nodes that are switched off permanently |
//! | `timeline` | datagrams in recoverable fragments, step by step |
//! | `occupancy` | how full packet buffers are |
//! | `rootless` | how long nodes have parents that lead to no root |
//! | [`ledger`] | every packet ends in exactly one way; `group_book`: packets to groups at every member |
//! | [`trace`], [`capture`] | the record stream and its hash; frames for Wireshark |
//!
//! One run is one thread and one seed. Runs go in parallel, never a run.

pub mod agenda;
pub mod air;
pub mod backbone;
mod books;
pub mod builder;
pub mod capture;
pub mod clock;
mod driver;
pub mod energy;
pub mod error;
mod failure;
mod group_book;
pub mod ledger;
pub mod mesh;
mod names;
mod occupancy;
pub mod parts;
pub mod record;
mod rootless;
pub mod snapshot;
mod summary;
mod timeline;
pub mod topology;
pub mod trace;
pub mod traffic;
mod world;

pub use backbone::{LineParts, QueueRecord, Wire};
pub use builder::Builder;
pub use error::Error;
pub use mesh::{InjectError, Mesh, Sinks};
pub use parts::{Carrier, NodeParts, PAN, prefix_of};
pub use snapshot::{NodeSnapshot, Snapshot};
