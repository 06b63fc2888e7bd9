//! A sender is a timer and a window: when to send again, and whether to send at all.
//!
//! - [`Timer`]: the retransmission timeout of one destination. [`timer::Rfc7252`],
//!   [`timer::Cocoa`] with its named parameter sets, [`timer::Fasor`], [`timer::Rfc6298`], [`timer::Fixed`];
//!   a [`Registry`](lowmesh_registry::Registry) finds them by their names.
//! - [`Window`]: how much may be on its way to one destination, and how far apart. [`window::Fixed`] (NSTART),
//!   [`window::AppendixC`], [`window::Reno`] with and without ABE, [`window::Quic`], [`window::Lln`],
//!   and TCP's [`window::NewReno`], [`window::Cubic`], [`window::Bbr`];
//!   [`WindowSpec`] makes one from its row and the caller's limits.
//!
//! Neither has a clock, and both belong to one destination: the caller keeps one of each per peer
//! and tells it what happened. Retransmission counts, queues and message formats stay with the
//! caller.
//!
//! ```
//! use lowmesh_congestion::{Timer, timer};
//! use lowmesh_registry::Registry;
//! use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
//! let mut rng = Rng::stream(Seed(1), NodeId(1), Purpose::Coap);
//! let choice = Registry::<dyn Timer>::builtin().choose("cocoa")?.with("lambda_weak", 0.4)?;
//! let mut timer = timer::make(&choice, Duration::from_secs(2));
//! let first = timer.initial(Instant::ZERO, &mut rng);
//! assert!(first >= Duration::from_secs(2) && first < Duration::from_secs(3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod params;
mod smoothed;
pub mod timer;
pub mod window;

pub use timer::{Attempt, EstimatorSnapshot, Timer, TimerSnapshot};
pub use window::{Message, Permit, Window, WindowSnapshot, WindowSpec};
