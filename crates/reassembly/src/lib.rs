//! Datagrams put together from fragments, for every layer that cuts them: RFC 4944 s5.3, RFC 8931 s6, RFC 8200 s4.5.
//!
//! - [`Table`] holds the datagrams that are incomplete, bounded in number, octets and time. A [`Policy`] names what the
//!   RFCs leave open: who has a place, what a new fragment does to the timeout, whether the end of a datagram is remembered.
//! - [`PartialDatagram`] holds the octets of one datagram, and knows which of them have arrived.
//! - `eviction` chooses the datagrams that lose their places to a new one.
//!
//! Headers, what a fragment that overlaps another means, and the packet's handle are left to the layers.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod ended;
mod eviction;
mod partial;
mod table;

pub use partial::{Arrival, Fit, PartialDatagram};
pub use table::{Admission, Datagram, Entry, Limits, Name, Newcomer, Policy, Renewal, Table};
