//! One direction of a constrained link, such as an NB-IoT bearer: a drop-tail queue in octets, a serialiser of a
//! given rate, loss, delay, and jitter that keeps the order.
//!
//! ```text
//!   Packet -> [ queue ] -> serialiser -> lost? -> delay + jitter -> Arrived
//!               full: Dropped            Lost
//! ```
//!
//! [`Serial`] is the serial line of a border router that has little memory.
//!
//! [`Link`] is a machine of virtual time and knows nothing of the packets but their length. A path has two links, one
//! a direction; each draws from a stream of its own. [`History`] records the length of the queue at every change.
//!
//! ```
//! use lowmesh_machine::Machine;
//! use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
//! use lowmesh_wired::{Config, Input, Link, Loss, Output};
//! let config = Config {
//!     rate_bits_per_second: 30_000,
//!     delay: Duration::from_millis(400),
//!     jitter: (Duration::ZERO, Duration::ZERO),
//!     queue_octets_max: 2_500,
//!     loss: Loss::None,
//!     samples_max: 0,
//! };
//! let mut link = Link::new(config, Rng::stream(Seed(1), NodeId(0), Purpose::Wired))?;
//! link.handle(Instant::ZERO, Input::Packet { packet: "hello", octets: 300 })?;
//! // 300 octets take 80 ms at 30 kbit/s.
//! assert_eq!(link.next_deadline(), Some(Instant::from_millis(80)));
//! link.handle(Instant::from_millis(480), Input::Deadline)?;
//! assert_eq!(link.poll_output(), Some(Output::Arrived("hello")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod config;
mod error;
mod history;
mod link;
mod loss;
mod serial;

pub use config::Config;
pub use error::ConfigError;
pub use history::{History, QueueSample};
pub use link::{Counters, Input, Link, Output};
pub use loss::Loss;
pub use serial::{Serial, SerialConfig, SerialInput, SerialOutput};
