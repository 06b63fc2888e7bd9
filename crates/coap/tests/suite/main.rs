//! The endpoint and the host from outside: two of them over bad links, and single probes.
//!
//! `cache_memory` is a program of its own, because it measures the memory of its whole process.

mod hosts;
mod pair;
mod probes;
