//! RPL, the routing protocol of low-power and lossy networks (RFC 6550): one DODAG, storing (MOP 2) or
//! non-storing (MOP 1), as a machine without clock or socket.
//!
//! | file | what | RFC 6550 |
//! |---|---|---|
//! | `node`, `machine` | the parts; inputs and timers to parts | |
//! | `membership`, `dodag`, `neighbour` | this node's rank and parent, its neighbours, and DIOs out | s3, s8.2, s8.3 |
//! | `choice`, `parent` | parent choice, detaching, poisoning, repair | s8.2.2 |
//! | `advertise` | DIS and DIO in | s8.3 |
//! | `dao` | DAO out, and what waits for it | s9 |
//! | `downward`, `route` | DAO in, routes down | s9 |
//! | `external` | leaves that run no RPL | RFC 9010 |
//! | `forward` | checks on data packets | s11.2 |
//! | `objective` | OF0 (RFC 6552), MRHOF (RFC 6719) | s14 |
//!
//! A neighbour is named by one address only, its link-local one: in every input and in every output that
//! names a next hop. Targets of routes are global addresses. Both share the interface identifier.
//!
//! Left to others: bytes (`lowmesh-wire`), addresses of packets and neighbour discovery (`lowmesh-ipv6`),
//! ETX measurement (`lowmesh-mac`). Left out of RPL: see `docs/conformance/rfc6550.md`.
//!
//! ```
//! use lowmesh_machine::Machine;
//! use lowmesh_rpl::{Config, Input, Output, Rpl};
//! use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
//! let mut link_local = [0; 16];
//! link_local[..2].copy_from_slice(&[0xfe, 0x80]);
//! let mut address = link_local;
//! address[0] = 0xfd;
//! let rng = Rng::stream(Seed(1), NodeId(0), Purpose::Rpl);
//! let mut root = Rpl::new(Config::root(link_local, address), rng);
//! root.handle(Instant::ZERO, Input::Start).expect("not started yet");
//! assert!(matches!(root.poll_output(), Some(Output::Joined { .. })));
//! assert!(root.is_joined() && root.next_deadline().is_some());
//! ```
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod advertise;
mod base;
mod choice;
mod config;
mod dao;
mod dodag;
mod downward;
mod event;
mod external;
mod forward;
mod group;
mod machine;
mod membership;
mod neighbour;
mod node;
pub mod objective;
pub mod params;
mod parent;
mod route;
mod timer;

pub use config::{Config, ConfigError, Probe, Role};
pub use event::{Destination, Input, Output};
pub use forward::{Direction, ForwardContext, NextHop, Verdict};
pub use lowmesh_units::{Order, Sequence};
pub use lowmesh_wire::rpl::{Address, Mode};
pub use neighbour::Etx;
pub use node::{Advertised, Rpl};
pub use objective::ObjectiveFunction;
pub use route::Route;

#[cfg(test)]
mod tests;
