//! The share of the minimal cell that a node takes for its own beacons and broadcasts.
//!
//! MSF (RFC 9033 s2) wants them kept to a part of the minimal cell, so that a node and its N neighbours leave room
//! for each other and for joining. The share is OpenWSN's, which names this section for it: at most one in
//! 3 (N + 1) of these cells for each node (`icmpv6rpl.c`).
//!
//! ```text
//!   minimal cell   0   1   2   3   4   5   6   7   8   9  10  11  12  13 ...
//!   N = 1          EB                          DIO                 EB
//!                  |<----- 4 to 8 cells ------>|<-- 4 to 8 cells -->|
//! ```
//! A node that has just sent a beacon sends a broadcast next if one waits, so neither keeps the other out.

use lowmesh_units::{Asn, Rng};

/// When a node may use the minimal cell for a broadcast again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spacing {
    /// Not before this slot.
    pub from: Asn,
    /// The last one was a beacon.
    pub after_beacon: bool,
}

impl Spacing {
    /// A beacon or a broadcast goes out in slot `asn`, in a cell that comes every `distance` slots, from a node
    /// with so many `neighbours`; `spacing` is how many cells go by in the mean for each of them and the node itself.
    ///
    /// Up to one cell for each node more or less is drawn, or two nodes that met once would always meet.
    pub(super) fn after(
        asn: Asn,
        beacon: bool,
        (distance, spacing, neighbours): (u64, u8, usize),
        rng: &mut Rng,
    ) -> Self {
        let nodes = neighbours as u64 + 1;
        let least = nodes * u64::from(spacing.saturating_sub(1)).max(1);
        let most = nodes * (u64::from(spacing) + 1);
        let cells = least + u64::from(rng.below((most - least) as u32 + 1));
        Self { from: asn + distance * cells, after_beacon: beacon }
    }
}
