//! Places that strangers share: how many there are, how many of them one source may hold, and who gives way.
//!
//! - [`Source`] is where a holder comes from: an address and its prefixes, down to what one subscriber gets.
//! - [`Bound`] declares one limit: all places, those of one source, and the time after which a holder gives way.
//! - [`Table`] keeps the holders of one limit, and decides whose place a newcomer gets.
//! - [`Turns`] decides who is next at what serves one at a time.
//! - [`Rate`] and [`SharedRate`] decide whether something may happen again.
//!
//! What the places are for, and what becomes of a holder that has lost its place, is left to the owner of the table.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod bound;
mod rate;
mod source;
mod table;
mod turns;

pub use bound::Bound;
pub use rate::{Rate, SharedRate};
pub use source::{LEVELS, Source};
pub use table::{Full, Newcomer, Table};
pub use turns::Turns;
