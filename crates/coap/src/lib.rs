//! CoAP without IO: client, server and proxy (RFC 7252 and what came after it).
//!
//! ```text
//!   resource::Router   path -> resource; discovery, preconditions, formats
//!   Host               bodies of any length, observers, proof of addresses, cache
//!   Endpoint           exchanges over datagrams
//!   Connections        exchanges over byte streams (RFC 8323)
//! ```
//! Each stands alone. Endpoint and connections have the inputs and outputs of [`exchange`]; those of a host are [`Input`]
//! and [`Output`].
//!
//! [`Endpoint`] turns requests into datagrams and datagrams into requests and responses: message
//! and token matching, retransmission, deduplication, piggybacked and separate responses,
//! multicast, observations, and congestion control per peer out of `lowmesh-congestion`. It is
//! generic over the peer's address, so a simulated mesh and a socket drive the same code.
//!
//! ```
//! use lowmesh_coap::exchange::{Input, Name, Output};
//! use lowmesh_coap::{Config, Endpoint, RequestTemplate, ResponseTemplate};
//! use lowmesh_machine::{Handle, Machine};
//! use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
//! use lowmesh_wire::coap::Code;
//!
//! let rng = |node| Rng::stream(Seed(1), NodeId(node), Purpose::Coap);
//! let mut client = Endpoint::new(Config::default(), rng(1))?;
//! let mut server = Endpoint::new(Config::default(), rng(2))?;
//! let now = Instant::ZERO;
//!
//! // "client" and "server" stand for addresses.
//! let message = RequestTemplate::get("/temp");
//! client.handle(now, Input::Request { peer: "server", message, handle: Handle(1).into() }).unwrap();
//! while let Some(output) = client.poll_output() {
//!     if let Output::Send { bytes, .. } = output {
//!         server.handle(now, Input::Datagram { from: "client", bytes: &bytes }).unwrap();
//!     }
//! }
//! let Some(Output::Request { exchange, .. }) = server.poll_output() else { panic!() };
//! let response = ResponseTemplate::new(Code::CONTENT).with_payload(b"22.3 C".to_vec());
//! server.handle(now, Input::Respond { exchange, response, handle: Name::NONE }).unwrap();
//! let Some(Output::Send { bytes, .. }) = server.poll_output() else { panic!() };
//! client.handle(now, Input::Datagram { from: "server", bytes: &bytes }).unwrap();
//! let Some(Output::Response { message, .. }) = client.poll_output() else { panic!() };
//! assert_eq!(message.payload, b"22.3 C");
//! # Ok::<(), lowmesh_coap::ConfigError>(())
//! ```
//!
//! Left to others: what resources do (the application), sockets and names (the driver), security.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod blockwise;
pub mod cache;

mod config;
mod congestion;
mod credit;
pub mod echo;
mod endpoint;
mod error;
pub mod event;
pub mod exchange;
pub mod host;
mod leisure;
mod lifetimes;
pub mod membership;
mod message_ids;
mod no_response;
pub mod observe;
mod ordered;
mod outputs;
pub mod params;
mod peer;
mod peer_address;
pub mod proxy;
mod quota;
mod refusal;
mod rejection;
pub mod reliable;
pub mod resource;
mod seen;

pub use config::Config;
pub use congestion::{CongestionControl, CongestionSnapshot};
pub use endpoint::Endpoint;
pub use error::ConfigError;
pub use event::{
    Counters, Discard, Fault, Notifications, Purpose, RequestTemplate, ResponseTemplate,
};
pub use host::{Host, HostLimits, IncomingId, Input, Output, Transport};
pub use leisure::Leisure;
pub use lifetimes::Lifetimes;
pub use no_response::Unwanted;
pub use peer_address::PeerAddress;
pub use reliable::{ConnectionLimits, Connections};
