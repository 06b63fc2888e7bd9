//! 6LoWPAN adaptation: IPv6 packets over frames of at most 127 octets.
//!
//! - [`Adaptation`] is the machine: packets in, frames out, and the mirror.
//! - `compress` decides whether a packet goes as one frame or as fragments (RFC 6282).
//! - `fragment` sends the fragments of one hop (RFC 4944 s5.3) and sums their confirmations.
//! - `reassemble` puts them together again, within bounds of buffers, octets and time.
//!
//! Bytes are read and written by `wire::lowpan`; retries and queues of frames are left to the MAC, routes to
//! `ipv6`. Forwarding of fragments (RFC 8930) and their recovery (RFC 8931) will stand beside `fragment`.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod adapt;
mod compress;
mod fragment;
pub mod params;
mod reassemble;
pub mod recover;

pub use adapt::{Adaptation, Input, Output};
pub use params::{Arq, Config, Recovery};
