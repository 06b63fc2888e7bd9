//! Time, identifiers and seeded randomness: the ground floor, which depends on nothing of the house.
//!
//! - [`time`]: [`Instant`], [`Duration`] (nanoseconds) and [`Asn`], the TSCH slot counter.
//! - [`ident`]: [`NodeId`], [`Eui64`], [`ShortAddr`], [`PanId`], [`Channel`], [`Rank`], [`Dbm`].
//! - [`addressing`]: [`Addressing`], which gives the nodes of a network their EUI-64s.
//! - [`sequence`]: [`Sequence`], the lollipop counter of RPL and of address registrations.
//! - [`rng`]: streams of random numbers keyed by (seed, node, purpose).
#![no_std]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod addressing;
pub mod ident;
pub mod rng;
pub mod sequence;
pub mod time;

pub use addressing::Addressing;
pub use ident::{Channel, Dbm, Eui64, NodeId, PanId, Rank, ShortAddr};
pub use rng::{Purpose, Rng, Seed};
pub use sequence::{Order, Sequence};
pub use time::{Asn, Duration, Instant};
