//! IEEE 802.15.4 medium access: TSCH, queues, link statistics.
//!
//! The MAC takes MSDUs and 6P messages, keeps them in bounded queues and sends each in a cell of its
//! schedule. It does not decide which cells exist: the crate `sixtop` does.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod config;
pub mod frame;
pub mod link;
pub mod params;
pub mod queue;
pub mod tsch;
