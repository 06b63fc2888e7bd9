//! The CSMA MAC by script and at random.

mod bench;
mod random;
mod receiving;
mod sending;
mod thin;
