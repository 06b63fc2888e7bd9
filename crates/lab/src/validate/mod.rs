//! The simulator held against measurements of real networks, which are read from a folder and never come along.

mod condition;
mod cross;
pub mod ecoap;
mod measured;
