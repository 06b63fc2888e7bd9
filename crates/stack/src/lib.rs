//! One node: all layers composed into one machine.
//!
//! | module | holds |
//! |---|---|
//! | [`event`] | what goes into a node and what comes out |
//! | [`config`] | its settings |
//! | [`node`] | the composition, and the short list of what layers tell each other sideways |
//! | `descend` | from CoAP and RPL down to the MAC |
//! | `ascend` | from the MAC up to CoAP and RPL |
//! | `end_to_end` | packets cut and put together at the ends, where 6LoWPAN has no fragments |
//! | `link` | the link layer, a closed choice: `slotted` (TSCH and 6top) or `contended` (CSMA) |
//! | [`identity`] | a node by itself: its name, address and routes are given |
//! | [`tree`] | routes that are given instead of found |
//! | `radio` | the face towards the radio driver, and what the driver may ask |
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod ascend;
pub mod config;
mod contended;
mod descend;
mod end_to_end;
pub mod event;
pub mod identity;
mod link;
pub mod node;
mod radio;
mod slotted;
pub mod tree;

pub use config::{Config, ConfigError, LinkLayer, Routes, Scheduling};
pub use identity::Identity;
pub use node::Node;

/// How long a node stays synchronised without a place in a DODAG before it looks for a network again: ours,
/// longer than RPL's local repair takes. Nodes cut off together give each other the time; they would drift
/// away from the network as one and never hear it again.
const ORPHAN_MAX: lowmesh_units::Duration = lowmesh_units::Duration::from_secs(180);

/// The port of CoAP without security: RFC 7252 s6.1.
pub const COAP_PORT: u16 = 5683;

/// The port of the echo service: RFC 862, 7.
pub const ECHO_PORT: u16 = 7;

/// The port on which a node's application takes UDP datagrams: 61616, the first of those that RFC 6282 s4.3.3
/// compresses to four bits.
pub const DATAGRAM_PORT: u16 = 0xf0b0;

#[cfg(test)]
mod tests;
