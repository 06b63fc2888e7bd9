//! Numbers of the Entity Manager on sockets.

/// Octets of a state of groups up to which its file is not written again while the program runs; ours.
pub const GROUPS_STATE_MIN: u64 = 1024 * 1024;
