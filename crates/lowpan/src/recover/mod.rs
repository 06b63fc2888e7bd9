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
//!
//! Headers are `wire::lowpan::rfrag`'s; compression, the choice of the way and the forwarders' virtual reassembly
//! buffer are left to the adaptation layer.

mod receive;
mod send;

pub use receive::{Outcome, Received, Receiving, null};
pub use send::{Ending, Sending};

#[cfg(test)]
mod tests;
