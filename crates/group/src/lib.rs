//! The Entity Manager of Ishaq et al. 2016 ("S002" in this crate): groups of CoAP resources behind one URI.
//!
//! A client makes an entity of resources of several nodes, and uses it like any other resource. The manager asks all members,
//! by unicast or by multicast, and makes one answer of theirs. It also lets members join and leave the group address of the
//! entity, until all memberships are as the entities want them.
//!
//! ```text
//!   POST /e                           create, after every member was asked
//!   GET  /e   /.well-known/core       links of all entities
//!   GET FETCH PUT POST DELETE /e/NAME query all, query some, write to all, delete
//!   GET PUT iPATCH /e/NAME/profile    how it behaves          GET /e/NAME/members  where each member stands
//! ```
//! ```text
//!   Manager ─┬─ Clients       which requests are open           Store   what outlives the manager
//!            ├─ Checks        validation of members
//!            ├─ Memberships   joining, leaving, reconciliation
//!            ├─ Queries       trees of questions, collector
//!            ├─ Watches       observations: the result when it changes
//!            └─ Dispatch      one Gate for each radio domain
//! ```
//! The manager has no IO: its driver carries requests to members, and has a CoAP host below. The same manager runs on a node
//! of the simulator and in front of real devices.
//!
//! ```
//! use lowmesh_group::store::Memory;
//! use lowmesh_group::{Config, Input, Manager, Output, RequestId};
//! use lowmesh_machine::Machine as _;
//! use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
//! use lowmesh_wire::coap::{Code, Kind, Message, MessageId};
//!
//! let rng = Rng::stream(Seed(1), NodeId(0), Purpose::Coap);
//! let store = Box::new(Memory::default());
//! let mut manager = Manager::open(Config::default(), store, rng, Instant::ZERO)?;
//!
//! let mut message = Message::new(Kind::Confirmable, Code::POST, MessageId(1));
//! message.options.insert_path("e");
//! message.payload = br#"{"name": "room", "er": ["coap://[fd00::1]/t", "coap://[fd00::2]/t"]}"#.to_vec();
//! let client = core::net::Ipv6Addr::LOCALHOST.into();
//! manager.handle(Instant::ZERO, Input::Request { request: RequestId(1), client, message })?;
//! // Before the entity exists, each member is asked whether it has the resource.
//! let Some(Output::Request { to, .. }) = manager.poll_output() else { panic!() };
//! assert_eq!(to.to_string(), "coap://[fd00::1]");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | bound | total | share of one | the next one gets |
//! |---|---|---|---|
//! | open requests of clients | 256 | 64 a client | 5.03 with Max-Age |
//! | requests to members | 65,536 | 16,384 a client, 4,096 a query | 5.03 with Max-Age |
//! | requests under way to members | 1,024, and 256 more for nodes that answer | 256 and 64 a client, 32 a node | waits; in each domain clients take turns; the oldest silent one gives way |
//! | nodes whose health is known | 65,536 | | those that answer are forgotten |
//! | observed requests | 256 | 64 a client | 5.03 |
//! | members observed for them | 16,384 | 4,096 a client | 5.03 |
//! | entities | 4,096 | 1,024 a client | 4.03 |
//! | members | | 256 an entity | 4.00 |
//! | group addresses | 65,535 | one an entity | 4.03 |
//! | octets of an answer | | 2,048 a member, 8,192 with base names | counts as failed |
//! | octets that a client writes | | 2,048 | 4.13 |
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod address;
mod check;
mod clients;
pub mod collector;
mod condition;
mod dispatch;
mod entity;
pub mod gate;
mod health;
mod hops;
mod input;
mod lane;
mod manager;
pub mod membership;
mod memberships;
mod name;
pub mod outcome;
mod output;
pub mod params;
mod places;
mod prefix;
pub mod profile;
mod proposal;
mod query;
mod refusal;
mod reply;
mod route;
pub mod store;
mod target;
mod turns;
mod watch;

pub use health::Standing;
pub use input::Input;
pub use manager::{Config, Manager};
pub use output::{ExchangeId, Output, RequestId};
pub use prefix::Prefix;
pub use refusal::Refusal;
pub use target::{Authority, Choice, Entry, Target};
