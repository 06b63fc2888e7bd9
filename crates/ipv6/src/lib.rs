//! IPv6 for constrained nodes: addresses, routes, forwarding, ICMPv6, UDP.
//!
//! [`Ipv6`] is the layer of one node as a machine. Its driver lends it a [`Routing`] with each input; an input is taken
//! in `machine`, the file on the right does the work:
//!
//! | input | file and function |
//! |---|---|
//! | [`Event::Packet`], [`Event::Beginning`] | [`forward`]: `decide`, then the lent [`Routing::forward`] |
//! | ... that is for this node | `receive`: `deliver`, which asks [`reassemble`], [`udp`] and `icmpv6` |
//! | ... that is encapsulated | `receive`: `opens`, then `machine`: `on_inner` |
//! | ... that ends here | `receive`: `end`, which asks `error`: `about` |
//! | ... that is for a group further than the link | the multicast engine of the driver, then [`Event::Delivery`] |
//! | [`Event::Uplink`] | [`forward`]: `decide`, then `send`: `enclose` |
//! | [`Event::Datagram`], [`Event::Segment`] | `send`: `datagram_to`, `segment` |
//! | [`Event::Route`] | [`forward`]: as a packet that starts here |
//! | [`Event::Message`] | `send`: `message` |
//! | [`Event::Deadline`] | `receive`: `on_deadline` |
//!
//! The parts:
//!
//! - [`address`]: which addresses a node has, and which neighbour an address means.
//! - [`headers`]: what stands where in a packet, found once.
//! - [`forward`]: deliver, forward or drop; [`route`]: a bounded table of next hops with a default route; [`routing`]: what
//!   the routing protocol is asked.
//! - [`source_route`]: the step and the making of an RFC 6554 routing header.
//! - [`packet`]: making a packet, with RPL's option in it; `send`: its first hop; `name`: its name.
//! - `tunnel`: IP-in-IP encapsulation, by which the root adds its option and route to packets of others.
//! - [`fragment`] and [`reassemble`]: packets cut at the source and put together at the destination.
//! - [`udp`]: which local port a packet is for. TCP segments come out as they are, to a node that takes them.
//! - `icmpv6`: what a node answers; `error`: the errors that it sends and hears of.
//! - [`neighbour`]: the answer to a node that asks for an address, or for routers; [`cache`] and `registration`: the
//!   addresses that hosts have registered.
//! - `uplink`: packets that leave the mesh at a border router, and those that come in.
//!
//! All of it works on the packet's bytes in place. What RPL's option means is left to `rpl`, groups wider than
//! the link to `multicast`, fragments of one link to `lowpan`.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod address;
mod advertisement;
pub mod cache;
mod error;
pub mod event;
pub mod forward;
pub mod fragment;
pub mod headers;
mod icmpv6;
mod machine;
mod name;
pub mod neighbour;
pub mod packet;
pub mod params;
pub mod reassemble;
mod receive;
mod registration;
pub mod route;
pub mod routing;
mod send;
pub mod source_route;
mod tunnel;
pub mod udp;
mod uplink;

pub use address::{Addresses, Global};
pub use cache::NeighbourCache;
pub use event::{Event, Input, Output};
pub use forward::{Decision, Forwarder};
pub use headers::Headers;
pub use machine::{Config, Ipv6};
pub use route::RouteTable;
pub use routing::{ForwardContext, Role, Routing, Verdict};
