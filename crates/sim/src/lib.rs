//! Deterministic discrete-event simulation of Lowmesh nodes over a radio medium.
//!
//! | module | holds |
//! |---|---|
//! | [`config`], [`record`] | what goes into a run and what it leaves behind |
//! | [`world`], `note`, `summary` | the loop, the books, the end of a run |
//! | `timeslot` | one slot on the air: who sends, who listens, who gets what |
//! | `carrier`, `radio` | frames in continuous time under carrier sense, one node's radio |
//! | `failure` | nodes that are switched off for good |
//! | `flight` | frames on the air and those who hear them |
//! | [`agenda`], [`clock`] | events in order, crystals that drift |
//! | [`air`], [`topology`] | who hears whom, where nodes stand |
//! | [`traffic`] | which applications run on which node |
//! | `courses` | datagrams in recoverable fragments, step by step |
//! | `occupancy` | how full packet buffers are |
//! | [`ledger`] | every packet ends in exactly one way |
//! | [`trace`], [`capture`] | the record stream and its hash; frames for Wireshark |
//!
//! One run is one thread and one seed. Runs go in parallel, never a run.

pub mod agenda;
pub mod air;
pub mod capture;
mod carrier;
pub mod clock;
pub mod config;
mod courses;
pub mod energy;
pub mod error;
mod failure;
mod flight;
pub mod ledger;
mod names;
mod note;
mod occupancy;
mod radio;
pub mod record;
mod summary;
mod timeslot;
pub mod topology;
pub mod trace;
pub mod traffic;
pub mod world;

pub use config::Config;
pub use error::Error;
pub use world::{Sinks, World};
