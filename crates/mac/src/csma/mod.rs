//! Unslotted CSMA/CA, IEEE 802.15.4-2015 s6.2.5.1, with acknowledgements and retries (s6.7.4).
//!
//! | file       | holds                                                           |
//! |------------|-----------------------------------------------------------------|
//! | `config`   | settings, the open radio and the thin one                       |
//! | `event`    | the face: inputs and outputs, and who times what                |
//! | `access`   | backoff before each copy                                        |
//! | `machine`  | whose turn it is                                                |
//! | `waiting`  | frames that wait: one queue, or one for each neighbour          |
//! | `send`     | the transmitter: one frame from its first backoff to its end    |
//! | `receive`  | the receiver: one frame that comes in                           |
//! | `shared`   | what these have in common                                       |
//!
//! ```
//! use lowmesh_mac::csma::{Config, Csma, Input, Output};
//! use lowmesh_mac::queue::Priority;
//! use lowmesh_machine::{Handle, Machine};
//! use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
//!
//! let me = NodeId(1);
//! let mut mac = Csma::new(Config::null(), me.eui64(), Rng::stream(Seed(1), me, Purpose::Mac));
//! let payload = &[0x41, 0x60][..];
//! mac.handle(Instant::ZERO, Input::Start)?;
//! let send =
//!     Input::Send { destination: None, payload, priority: Priority::Data, is_advice: false, handle: Handle(1) };
//! mac.handle(Instant::ZERO, send)?;
//! // The driver does what the MAC asks for, and says how it went.
//! let Some(Output::Sense { at }) = mac.poll_output() else { panic!("it listens first") };
//! mac.handle(at + lowmesh_mac::params::CCA, Input::Sensed { busy: false })?;
//! let Some(Output::Transmit { at, octets, .. }) = mac.poll_output() else { panic!("it is idle") };
//! mac.handle(at + lowmesh_mac::frame::airtime(octets.len()), Input::Sent)?;
//! assert!(matches!(mac.poll_output(), Some(Output::Sent { handle: Handle(1), .. })));
//! # Ok::<(), lowmesh_machine::Rejected>(())
//! ```

mod access;
pub mod config;
pub mod event;
pub mod machine;
mod receive;
mod send;
mod shared;
mod turns;
mod waiting;

pub use config::{Access, Acknowledgement, Config, ConfigError, Radio};
pub use event::{Input, Output};
pub use machine::Csma;
pub use shared::Counters;

#[cfg(test)]
mod tests;
