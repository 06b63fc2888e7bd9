//! IEEE 802.15.4 medium access: TSCH and CSMA, queues, link statistics.
//!
//! The TSCH MAC takes MSDUs and 6P messages, keeps them in bounded queues and sends each in a cell of its
//! schedule. It does not decide which cells exist: the crate `sixtop` does. The CSMA MAC sends when the
//! channel seems free.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod account;
pub mod config;
pub mod csma;
pub mod frame;
pub mod link;
pub mod params;
pub mod queue;
pub mod tsch;
