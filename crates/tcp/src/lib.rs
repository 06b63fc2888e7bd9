//! TCP (RFC 9293): one connection as a machine without socket or clock, made to send like Linux.
//!
//! - [`Connection`]: opening, closing, both halves, timers; resets and attacks as RFC 5961 wants.
//! - [`Profile`]: what implementations do differently, as `linux`, `pesola` and `lln`.
//! - Recovery without SACK as Linux does it (New Reno with one retransmission a round trip), with SACK by RACK-TLP (RFC 8985);
//!   F-RTO, undo, proportional rate reduction. The window is one of `lowmesh-congestion`, by its row.
//!
//! Memory of a connection is bounded: the send buffer, the receive buffer, one entry for each segment in a window of at
//! most 4,096, and 256 ranges out of order. Nothing is shared between connections, so a peer takes from none but its
//! own; a write that does not fit is rejected, and data beyond the window is cut off. Which connections exist is for the
//! driver; what belongs to none is answered with [`reset_for`].
//!
//! ```
//! use lowmesh_machine::Machine;
//! use lowmesh_tcp::{Config, Connection, Input, Output, Profile};
//! use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
//! let config = Config::new(Profile::LINUX, 49_152, 5_683);
//! let mut rng = Rng::stream(Seed(1), NodeId(1), Purpose::Tcp);
//! let mut client = Connection::new(config, &mut rng)?;
//! client.handle(Instant::ZERO, Input::Open)?;
//! let Some(Output::Segment(syn)) = client.poll_output() else { panic!("a SYN") };
//! assert!(syn.header.control.syn && syn.header.options.sack_permitted);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(test), no_std)]
#![allow(
    clippy::cast_possible_wrap,
    reason = "positions and lengths are far below 2^63, and sequence numbers are compared modulo 2^32"
)]
extern crate alloc;

pub mod params;

mod acks;
mod connection;
mod profile;
mod rate;
mod receive;
mod rto;
mod send;

pub use connection::{
    Config, Connection, Ending, InitialNumbers, Input, Output, SendSnapshot, State, Transmit,
    reset_for,
};
pub use profile::{ConfigError, KeepAlive, Profile};
pub use send::SendCounters;
