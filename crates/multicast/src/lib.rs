//! Engines that forward packets to groups of nodes in a mesh.
//!
//! | row | idea | state | who can send |
//! |---|---|---|---|
//! | `none` | nobody forwards | nothing | every node, to its neighbours |
//! | `flood` | every node sends every packet once | a set of recent packets | every node |
//! | `smrf` | what comes from the preferred parent goes down to subscribed children | one waiting packet | the root |
//! | `esmrf` | as `smrf`; other nodes ask the root to send | one waiting packet | every node |
//! | `trickle` | draft-ietf-roll-trickle-mcast-01 in the form of Contiki | windows and packets | every node |
//! | `mpl` | RFC 7731: each message and the control message have a Trickle timer | seeds and messages | every node |
//!
//! An [`Engine`] is a machine without clock, socket or thread. A node calls it with an [`Event`] and with what routing and
//! membership know ([`NodeContext`]), takes its [`Output`]s, and comes back at its deadline. Packets of scope 2 and less
//! never enter an engine.
//!
//! Each copy of a packet that enters has a [`Handle`](lowmesh_machine::Handle). It leaves as [`Output::Deliver`], as
//! [`Output::Send`] or [`Output::Route`], or as [`Output::Dropped`]; a copy that was delivered and then not forwarded, though
//! it should have been, leaves as both.
//!
//! ```
//! use lowmesh_machine::Handle;
//! use lowmesh_multicast::{Engine, Event, Output, make};
//! use lowmesh_registry::Registry;
//! use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
//! # use lowmesh_multicast::example::{PACKET, Root};
//! let choice = Registry::<dyn Engine>::builtin().choose("smrf")?.with("copy", "broadcast")?;
//! let mut engine = make(&choice, Rng::stream(Seed(1), NodeId(0), Purpose::Multicast));
//! let event = Event::Originate { packet: &PACKET, handle: Handle(7) };
//! engine.handle(Instant::ZERO, event, &Root)?;
//! assert!(matches!(engine.poll_output(), Some(Output::Send { handle: Handle(7), .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod account;
pub mod conformance;
mod copies;
mod engine;
#[doc(hidden)]
pub mod example;
pub mod flood;
pub mod mpl;
pub mod none;
mod pacing;
mod packet;
pub mod params;
pub mod smrf;
pub mod trickle;

pub use account::Account;
pub use copies::Copies;
pub use engine::{Engine, Event, MakeEngine, NodeContext, Output, Reach, Receiver, Snapshot, make};
