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
//! | `errors` | ICMPv6 errors: sent at a bounded rate, and what those of others mean here |
//! | `link` | the link layer, a closed choice: `link::slotted` (TSCH and 6top) or `link::contended` (CSMA) |
//! | [`application`] | what runs on a node: machines above its CoAP host |
//! | `hosting` | the applications of one node: which input belongs to which |
//! | [`identity`] | a node by itself: its name, address and routes are given |
//! | `uplink` | packets that leave the mesh at a border router, and those that come in |
//! | [`tree`] | routes that are given instead of found |
//! | [`params`] | the ports of a node, and its patience |
//! | [`security`] | the OSCORE contexts of a planned network |
//! | `rate` | how many ICMPv6 errors may leave |
//! | `radio` | the face towards the radio driver, and what the driver may ask |
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod application;
mod ascend;
pub mod config;
mod descend;
mod end_to_end;
mod errors;
pub mod event;
mod hosting;
pub mod identity;
mod installed;
mod link;
pub mod node;
pub mod params;
pub mod peer;
mod radio;
mod rate;
pub mod security;
pub mod tree;
mod uplink;

pub use application::Application;
pub use config::{Config, ConfigError, LinkLayer, Routes, Scheduling};
pub use identity::Identity;
pub use node::Node;
pub use params::{COAP_PORT, DATAGRAM_PORT, ECHO_PORT};
pub use security::Oscore;

#[cfg(test)]
mod tests;
