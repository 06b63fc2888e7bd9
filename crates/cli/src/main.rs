//! The lowmesh command.
fn main() {}
