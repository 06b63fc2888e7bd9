//! Numbers of the MAC, each with its source.

/// Most cells in a schedule: a bound of ours, above RFC 9033's 100 negotiated cells a neighbour (MAX_NUM_CELLS).
pub const CELLS_MAX: usize = 512;
