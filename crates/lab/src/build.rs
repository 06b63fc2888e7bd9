pub const X: &str = env!("LOWMESH_BUILD");
