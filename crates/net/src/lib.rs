//! The protocol crates on real sockets. Here, and nowhere below, a clock is read, a thread is started and a
//! seed is made.
//!
//! | module | drives |
//! |---|---|
//! | [`zep`] | a whole node over IEEE 802.15.4 frames in UDP |
//! | [`service`] | what such a node answers over CoAP |
//! | [`clock`] | the time of all drivers |

pub mod clock;
pub mod service;
pub mod zep;
