//! Deterministic discrete-event simulation of Lowmesh nodes over a radio medium.

pub mod record;
