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
//! | [`event`], `happening` | what happens to a mesh from outside, and the one place where it takes effect |
//! | `outage`, `power`, `lives`, `blueprint` | nodes that lose their power and memory, and start again |
//! | `moving` | nodes that move |
//! | `recovery`, `reach` | when all nodes have routes again, and which have them |
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
mod blueprint;
mod books;
pub mod builder;
pub mod capture;
pub mod clock;
mod driver;
pub mod energy;
pub mod error;
pub mod event;
mod group_book;
mod happening;
pub mod ledger;
mod lives;
pub mod mesh;
mod moving;
mod names;
mod occupancy;
mod outage;
mod params;
pub mod parts;
pub mod paths;
mod power;
mod reach;
pub mod record;
mod recovery;
mod rootless;
pub mod snapshot;
mod summary;
mod timeline;
pub mod topology;
pub mod trace;
pub mod traffic;
mod unsent;
mod world;

pub use backbone::{LineParts, QueueRecord, Wire};
pub use builder::Builder;
pub use error::Error;
pub use event::Event;
pub use mesh::{ApplyError, InjectError, Mesh, Sinks};
pub use parts::{Carrier, NodeParts, PAN, prefix_of};
pub use snapshot::{NodeSnapshot, Snapshot};
