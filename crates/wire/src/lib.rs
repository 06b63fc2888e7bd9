//! Codecs of the constrained-IoT stack, from the IEEE 802.15.4 frame to the CoAP message: bytes only, no
//! state, no time.
//!
//! Every codec has the same two faces: `parse(&[u8]) -> Result<T, DecodeError>` and `emit(&self, &mut Vec<u8>)`,
//! with `parse(emit(x)) == x`. A `DecodeError` says which header, which field and at which octet.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod error;
mod reader;

pub mod checksum;
pub mod coap;
pub mod icmpv6;
pub mod ie;
pub mod ieee802154;
pub mod ipv6;
pub mod link_format;
pub mod lowpan;
pub mod mpl;
pub mod neighbour;
pub mod pcap;
pub mod problem_details;
pub mod router;
pub mod rpl;
pub mod senml;
pub mod sixp;
pub mod tcp;
pub mod trickle_multicast;
pub mod udp;

pub use error::{DecodeError, Problem};
pub use reader::Reader;
