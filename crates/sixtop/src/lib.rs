//! 6top: the 6P protocol (RFC 8480) and the scheduling functions that use it or do without.
//!
//! ```text
//!   stack ── Input ──> machine ── Event ──> functions (minimal, msf, b-msf, alice, orchestra)
//!                        │  <── Action ───┘        decide which cells should be
//!                        ├── transaction            who may ask whom, sequence numbers, timeouts
//!                        └── negotiation            which cells are offered, accepted, committed
//! ```
//!
//! The schedule itself is the MAC's plain table ([`lowmesh_mac::tsch::schedule`]); the driver lends it for
//! the length of each call. Nothing in here happens every slot.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod functions;
pub mod machine;
mod negotiation;
pub mod params;
mod transaction;

pub use functions::{Event, SchedulingFunction};
pub use machine::{Change, Input, Output, Sixtop, SixtopEvent};
pub use transaction::{Ask, Outcome};
