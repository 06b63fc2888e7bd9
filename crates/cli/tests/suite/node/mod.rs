//! The verbs of `lowmesh node` between two processes over ZEP on loopback.

mod captures;
mod exchanges;
mod nodes;
mod pings;
mod relay;
