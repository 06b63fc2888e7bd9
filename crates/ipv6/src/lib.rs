//! IPv6 for constrained nodes: addresses, routes, forwarding, UDP.
//!
//! - [`address`]: which addresses a node has, and which neighbour an address means.
//! - [`neighbour`]: the answer to a node that asks for one of them, or for routers.
//! - [`cache`]: the addresses that hosts have registered.
//! - [`route`]: a bounded table of next hops with a default route.
//! - [`forward`]: deliver, forward or drop.
//! - [`source_route`]: the step and the making of an RFC 6554 routing header.
//! - [`packet`]: making a packet, and finding RPL's option in one.
//! - [`fragment`] and [`reassemble`]: packets cut at the source and put together at the destination.
//! - [`udp`]: which local port a packet is for.
//!
//! All of it works on the packet's bytes in place. What RPL's option means is left to `rpl`, groups wider than
//! the link to `multicast`, fragments of one link to `lowpan`.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod address;
pub mod cache;
pub mod forward;
pub mod fragment;
pub mod neighbour;
pub mod packet;
pub mod params;
pub mod reassemble;
pub mod route;
pub mod source_route;
pub mod udp;

pub use address::{Addresses, Global};
pub use cache::NeighbourCache;
pub use forward::{Decision, Forwarder};
pub use route::RouteTable;
