//! One node: all layers composed into one machine.
//!
//! | module | holds |
//! |---|---|
//! | [`event`] | what goes into a node and what comes out |
//! | [`config`] | its settings |
//! | [`node`] | the composition, and the short list of what layers tell each other sideways |
//! | `descend` | from CoAP and RPL down to the MAC |
//! | `ascend` | from the MAC up to CoAP and RPL |
//! | `radio` | the face towards the radio driver, and what the driver may ask |
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod ascend;
pub mod config;
mod descend;
pub mod event;
pub mod node;
mod radio;

pub use config::{Config, ConfigError, Scheduling};
pub use node::Node;

/// How long a node stays synchronised without a place in a DODAG before it looks for a network again: ours,
/// longer than RPL's local repair takes. Nodes cut off together give each other the time; they would drift
/// away from the network as one and never hear it again.
const ORPHAN_MAX: lowmesh_units::Duration = lowmesh_units::Duration::from_secs(180);

/// The port of CoAP without security: RFC 7252 s6.1.
pub const COAP_PORT: u16 = 5683;

#[cfg(test)]
mod tests;
