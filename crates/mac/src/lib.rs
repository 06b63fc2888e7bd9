//! IEEE 802.15.4 medium access: TSCH, queues, link statistics.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod params;
pub mod tsch;
