//! 6LoWPAN adaptation: IPv6 packets over frames of at most 127 octets.
//!
//! - [`Adaptation`] is the machine: packets in, frames out, and the mirror.
//! - `compress` decides whether a packet goes as one frame or as fragments (RFC 6282).
//! - `fragment` cuts a packet into fragments (RFC 4944 s5.3) and sums their confirmations; `adapt::sender` holds those in work.
//! - `reassemble` puts them together again, within bounds of buffers, octets and time (`lowmesh_reassembly`).
//! - `profile` names what stacks do differently where the RFCs leave the choice.
//! - `adapt::relay` lets fragments pass without reassembly (RFC 8930): [`forward`] remembers where they go, `transit` which
//!   octets went.
//! - [`recover`] has the two ends of recoverable fragments and the forwarders between them (RFC 8931).
//! - [`memory`]: octets in use, bounded for the whole layer, and the state that a device sets aside.
//!
//! Bytes are read and written by `wire::lowpan`; retries and queues of frames are left to the MAC, routes to
//! `ipv6`, of which the layer asks by an output when a fragment is to go on.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod adapt;
mod buffer_overhead;
mod compress;
mod event;
pub mod forward;
mod fragment;
mod frames;
pub mod memory;
pub mod params;
mod profile;
mod reassemble;
pub mod recover;
mod transit;

pub use adapt::Adaptation;
pub use event::{Counters, Input, Network, Output, Route};
pub use params::{Arq, Config, FragmentMode, Recovery, StackProfile};
