//! The CSMA MAC by script and at random.

mod bench;
mod contiki;
mod random;
mod receiving;
mod sending;
mod thin;
