//! What one acknowledgement turned out to be, for the steps that follow.

use lowmesh_units::Duration;

use crate::rate::Newest;

/// What one acknowledgement turned out to be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Finding {
    /// What was acknowledged before.
    pub(super) una_before: i64,
    /// The cumulative acknowledgement moved.
    pub(super) advances: bool,
    /// It opened or moved the window of the peer, or came with data: no duplicate.
    pub(super) is_no_duplicate: bool,
    /// Segments that it covers.
    pub(super) covered: u32,
    /// One of them was ever retransmitted.
    pub(super) covers_copy: bool,
    /// One of them, or a block, was an original that left before recovery began.
    pub(super) proves_original: bool,
    /// A block named something new.
    pub(super) sacks: bool,
    /// A block reported data that arrived twice (RFC 2883).
    pub(super) reports_duplicate: bool,
    /// That data was a loss probe.
    pub(super) reports_probe: bool,
    /// The lowest original that arrived behind ones that blocks had named before.
    pub(super) late: Option<i64>,
    /// The times of the oldest and the newest original that was covered.
    pub(super) rtt_oldest: Option<Duration>,
    pub(super) rtt_newest: Option<Duration>,
    /// The times of the oldest and the newest original that a block named.
    pub(super) rtt_sacked: Option<(Duration, Duration)>,
    /// It covers a lone short segment, whose acknowledgement the peer may have delayed.
    pub(super) is_delayed: bool,
    pub(super) restarts_timer: bool,
    pub(super) newest: Newest,
}
