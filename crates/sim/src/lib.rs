//! Deterministic discrete-event simulation of Lowmesh nodes over a radio medium.

pub mod air;
pub mod record;
pub mod topology;
