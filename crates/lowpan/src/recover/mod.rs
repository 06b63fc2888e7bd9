//! Recoverable fragments (RFC 8931): the compressed datagram crosses several hops in fragments, and the ends see
//! to it that all arrive.
//!
//! ```text
//!   Sending ----RFRAG(X)---> forwarders ----RFRAG(X)---> Receiving        fragments, in any order
//!     ^                                                     |
//!     +------RFRAG-ACK------ forwarders <----RFRAG-ACK------+             bitmap, backwards along the path
//! ```
//!
//! - `send`: the fragmenting end. One timer and one window of `congestion` for each datagram.
//! - `receive`: the reassembling end.
//! - `refusal`: the datagrams that were refused, so that each is refused once.
//! - `pieces`: the fragments of a datagram, and what its fragmenting end knows of each.
//! - `path`: what a forwarder changes in a fragment, and what it remembers.
//! - `step`: what happens at the fragmenting end, told one by one.
//! - `node`: all three of one node, with the gap between their frames.
//!
//! Headers are `wire::lowpan::rfrag`'s; compression, the choice of the mode and the routes are left to
//! the adaptation layer.

pub(crate) mod node;
pub(crate) mod path;
mod pieces;
mod receive;
mod refusal;
mod send;
mod step;

pub use node::Counters;
pub use receive::{Outcome, Received, Receiving, null};
pub use send::{Ending, Sending};
pub use step::{Event, Step};

#[cfg(test)]
mod tests;
