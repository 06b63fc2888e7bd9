//! Numbers of the Entity Manager on sockets.

/// Octets of a state of groups up to which its file is not written again while the program runs; ours.
pub const GROUPS_STATE_MIN: u64 = 1024 * 1024;

/// Silent nodes that metrics list; ours: a floor of rooms. Others count in `member_nodes_down`.
pub const STATUS_NODES_MAX: usize = 256;

/// Octets that are kept free for one more step of the state when a disk is full; ours: an entity of 256 members whose URIs
/// have 30 octets, in hexadecimal.
pub const GROUPS_SPARE: usize = 16 * 1024;
