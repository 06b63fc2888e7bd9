//! One node: all layers composed into one machine.
//!
//! | module | holds |
//! |---|---|
//! | [`event`] | what goes into a node and what comes out |
//! | [`config`] | its settings |
//! | [`node`] | the composition, and the short list of what layers tell each other sideways |
//! | `assembly` | a node is made of its settings and its applications |
//! | `network` | the boundary of IPv6 and of what is above it |
//! | `routing` | RPL or given routes: what they tell other layers, and what IPv6 borrows of them |
//! | `multicast` | the multicast engine and the account of its copies; `groups`: its boundary, joining and leaving |
//! | `lowpan` | the boundary of 6LoWPAN |
//! | `link` | the link layer, a closed choice: `link::slotted` (TSCH and 6top) or `link::contended` (CSMA); `link::boundary` |
//! | [`application`] | what runs on a node: machines above its CoAP host |
//! | `hosting` | the CoAP host of a node and its applications; `installed`: which input belongs to which of them |
//! | [`identity`] | a node by itself: its name, address and routes are given |
//! | [`tree`] | routes that are given instead of found |
//! | [`params`] | the ports of a node, and its patience |
//! | [`security`] | the OSCORE contexts of a planned network |
//! | [`streams`] | the TCP connections of a node; `coap_host`: CoAP over datagrams or over them |
//! | `radio` | the face towards the radio driver, and what the driver may ask |
//!
//! An input leads to:
//!
//! | input | file and function |
//! |---|---|
//! | [`event::Input::Boot`], [`event::Input::Deadline`] | [`node`]: `boot`, `deadline` |
//! | [`event::Input::Request`], [`event::Input::Respond`] | `hosting`: `request`, `respond` |
//! | [`event::Input::Join`], [`event::Input::Leave`] | `groups`: `join_group`, `leave_group` |
//! | [`event::Input::Datagram`], [`event::Input::Ping`], [`event::Input::Uplink`] | `network`: `tell_ipv6` |
//! | frames and slots | `radio`, then `link::boundary`: `on_link` |
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod application;
mod assembly;
mod coap_host;
pub mod config;
pub mod event;
mod groups;
mod hosting;
pub mod identity;
mod installed;
mod leaf;
mod link;
mod lowpan;
pub mod memory;
mod multicast;
mod network;
pub mod node;
pub mod params;
pub mod peer;
mod radio;
mod routing;
pub mod security;
pub mod streams;
pub mod tree;

pub use application::Application;
pub use coap_host::Csm;
pub use config::{Config, ConfigError, LinkLayer, Routes, Transport};
pub use identity::Identity;
pub use node::Node;
pub use params::{COAP_PORT, DATAGRAM_PORT, ECHO_PORT};
pub use security::Oscore;
pub use streams::{StreamCounters, StreamLimits};

#[cfg(test)]
mod tests;
