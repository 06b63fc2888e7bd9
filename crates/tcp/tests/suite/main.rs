//! Connections over links in virtual time, and our sender beside a kernel.

mod idle;
mod kernel;
mod pair;
mod recovery;
mod states;
mod transfers;
mod vectors;
