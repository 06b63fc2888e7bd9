//! OSCORE: security of CoAP requests and responses from end to end, through proxies (RFC 8613).
//!
//! ```text
//!   request   protect_request  ──►  OSCORE message  ──►  unprotect_request   request
//!   response  unprotect_response ◄──  OSCORE message  ◄──  protect_response  response
//!               Pending keeps what ties          Received keeps what ties
//!               the response to its request      the response to its request
//! ```
//!
//! A [`SecurityContext`] is two keys, a nonce's seed, a sequence number for what is sent and a
//! window against replays of what came. [`Configuration`] reads it from the file format of libcoap,
//! and [`Contexts`] holds those of a server.
//!
//! No message leaves with a sequence number that is not stored as used: the caller stores what
//! [`SecurityContext::reservation_needed`] asks for and [confirms](SecurityContext::confirm) it.
//! After a crash the context resumes there and no nonce is used twice (appendix B.1.1). A context
//! that has lost its window asks the first client for an Echo (appendix B.1.2).
//!
//! ```
//! use lowmesh_oscore::Configuration;
//! use lowmesh_wire::coap::{Code, stream::StreamMessage};
//!
//! let ours = "master_secret,hex,\"0102030405060708090a0b0c0d0e0f10\"\n\
//!             sender_id,ascii,\"client\"\nrecipient_id,ascii,\"server\"\n";
//! let theirs = "master_secret,hex,\"0102030405060708090a0b0c0d0e0f10\"\n\
//!               sender_id,ascii,\"server\"\nrecipient_id,ascii,\"client\"\n";
//! let mut client = Configuration::parse(ours)?.contexts().remove(0);
//! let mut server = Configuration::parse(theirs)?.contexts().remove(0);
//!
//! let mut get = StreamMessage::new(Code::GET);
//! get.options.insert_path("/temp");
//! if let Some(reservation) = client.reservation_needed() {
//!     // Here `State::reserved(reservation.end())` is stored.
//!     client.confirm(reservation);
//! }
//! let (outer, mut pending) = client.protect_request(&get)?;
//! assert_eq!(outer.code, Code::POST);
//!
//! let (request, mut received) = server.unprotect_request(&outer)?;
//! assert_eq!(request, get);
//! let mut content = StreamMessage::new(Code::CONTENT);
//! content.payload = b"22.3 C".to_vec();
//! let outer = server.protect_response(&mut received, &content)?;
//! assert_eq!(client.unprotect_response(&mut pending, &outer)?, content);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With [`Renewal`] both ends derive contexts many times from one Master Secret, so that one which
//! has lost its state gets a new context (appendix B.2).
//!
//! [`transport`] is a transport for the CoAP host that protects what passes through it.
//!
//! [`group`] is the security of messages between many (RFC 10021).
//!
//! Left to others: key exchange, files and randomness, and which resources want protection.
//! Block-wise transfer protects each block when it cuts the body before this crate sees it (inner
//! blocks, s4.1.3.4.1); blocks that a proxy made are put together before (s4.1.3.4.2).
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod class;
mod client;
mod configuration;
mod context;
mod contexts;
mod error;
pub mod group;
mod header;
mod hex;
mod identity;
mod nonce;
pub mod params;
mod renewal;
mod replay;
mod sequence;
mod server;
mod state;
pub mod transport;

pub use client::Pending;
pub use configuration::{Configuration, ConfigurationError, Mistake};
pub use context::{Inputs, SecurityContext};
pub use contexts::{Contexts, Opened};
pub use error::{ProtectError, Refusal, ResponseError};
pub use header::Header;
pub use identity::{Identity, PartialIv};
pub use renewal::{Renewal, RenewalKey, RenewalNonce, Renewed};
pub use replay::Challenge;
pub use sequence::Reservation;
pub use server::Received;
pub use state::{State, StateError, StoredWindow};

#[cfg(test)]
mod tests;
