//! Applications of nodes: each is a machine above the CoAP host of its node
//! ([`Application`](lowmesh_stack::Application)).
//!
//! | module | holds |
//! |---|---|
//! | [`client`] | readings sent to a collector: CoAP requests or UDP datagrams |
//! | [`collector`] | takes the readings and answers requests |
//! | [`sensor`] | a resource that is read and observed |
//! | [`poller`] | reads the sensors of other nodes in turn |
//! | [`membership`] | `/mc`, by which others make the node join and leave groups |
//! | [`point`] | a number that others read and write, alone or as a group |
//! | [`entities`] | the Entity Manager |
//! | [`entity_client`] | creates entities at a manager, and queries one |
//! | [`document`] | a long body that others read and replace |
//! | [`observer`] | observes the sensors of other nodes |
//! | [`group`] | requests to a group, and the members that count them |
//! | [`clock`] | `/clock`, the seconds since the start |
//! | [`arrivals`] | when an application acts: periodic, Poisson, in bursts |
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod arrivals;
pub mod client;
pub mod clock;
pub mod collector;
pub mod document;
pub mod entities;
pub mod entity_client;
pub mod group;
pub mod membership;
pub mod observer;
pub mod params;
pub mod point;
pub mod poller;
pub mod sensor;

pub use arrivals::{Arrivals, Schedule};
pub use client::{Carrier, Client};
pub use clock::Clock;
pub use collector::Collector;
pub use document::Document;
pub use entities::Entities;
pub use entity_client::EntityClient;
pub use group::{GroupClient, Member};
pub use membership::Membership;
pub use observer::Observer;
pub use point::Point;
pub use poller::Poller;
pub use sensor::Sensor;
