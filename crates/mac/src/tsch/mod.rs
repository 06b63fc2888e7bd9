//! Time-slotted channel hopping, IEEE 802.15.4-2015 s6.2.6 and s6.3.6.

pub mod cell;
pub mod schedule;
