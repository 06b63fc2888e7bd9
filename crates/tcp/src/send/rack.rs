//! RACK: a segment is lost when one that left sufficiently later has arrived (RFC 8985 s6).

use lowmesh_congestion::window::Phase;
use lowmesh_units::{Duration, Instant};

use super::queue::Sent;
use super::{Sender, Timer};
use crate::params::{REORDER_MARGIN, REORDER_RECOVERIES, REORDER_STEPS_MAX};
use crate::rto::rounded;

/// The newest segment that is known to have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    sent: Instant,
    end: i64,
    rtt: Duration,
    has_advanced: bool,
    sets_timer: bool,
    /// The reordering window in quarters of the least round-trip time.
    steps: u64,
    /// A duplicate was reported, and the window was not widened for it yet.
    has_duplicate: bool,
    /// What was delivered when the window was last widened.
    widened_at: u64,
    /// Recoveries until the window is narrow again.
    recoveries_left: u32,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            sent: Instant::ZERO,
            end: 0,
            rtt: Duration::ZERO,
            has_advanced: false,
            sets_timer: false,
            steps: 1,
            has_duplicate: false,
            widened_at: 0,
            recoveries_left: 0,
        }
    }
}

impl Rack {
    /// An undo asks for another look.
    pub(super) fn allow(&mut self) {
        self.has_advanced = true;
    }
    /// True when the last look set the reordering timer.
    pub(super) const fn sets_timer(&self) -> bool {
        self.sets_timer
    }
    /// An acknowledgement comes.
    pub(super) const fn begin(&mut self) {
        self.sets_timer = false;
    }
    /// A copy was not needed.
    pub(super) const fn on_duplicate(&mut self) {
        self.has_duplicate = true;
    }
    /// RFC 8985 s6.2, step 4: duplicates widen the window, at most once a round trip, and for 16 recoveries.
    pub(super) fn adapt(&mut self, delivered_before: u64, delivered: u64) {
        if delivered_before == 0 {
            return;
        }
        if delivered_before < self.widened_at {
            self.has_duplicate = false;
        }
        if core::mem::take(&mut self.has_duplicate) {
            self.steps = (self.steps + 1).min(REORDER_STEPS_MAX);
            self.widened_at = delivered;
            self.recoveries_left = REORDER_RECOVERIES;
        } else if self.recoveries_left == 0 {
            self.steps = 1;
        }
    }
    /// A recovery ended without an undo.
    pub(super) const fn on_recovery_over(&mut self) {
        self.recoveries_left = self.recoveries_left.saturating_sub(1);
    }
    /// A reduction was undone because of duplicates.
    pub(super) fn on_undo_by_duplicates(&mut self) {
        self.recoveries_left = (self.recoveries_left + 1).min(REORDER_RECOVERIES);
    }
}

impl Sender {
    /// RFC 8985 s6.2, step 2: `segment` has arrived.
    pub(super) fn rack_advance(&mut self, segment: &Sent, now: Instant) {
        let rtt = now.since(segment.left);
        let is_ambiguous =
            segment.was_retransmitted && self.rtt_min.is_some_and(|(least, _)| rtt < least);
        if is_ambiguous {
            return;
        }
        self.rack.has_advanced = true;
        self.rack.rtt = rtt;
        if (segment.left, segment.end) > (self.rack.sent, self.rack.end) {
            self.rack.sent = segment.left;
            self.rack.end = segment.end;
        }
    }
    /// Marks what is lost, and sets the reordering timer for what may be.
    pub(super) fn rack_mark_lost(&mut self, now: Instant) {
        if !core::mem::take(&mut self.rack.has_advanced) {
            return;
        }
        if let Some(remaining) = self.rack_detect(now) {
            self.rack.sets_timer = true;
            let delay = rounded(remaining + REORDER_MARGIN).min(self.estimator.rto());
            self.timer = Some((Timer::Reordering, now + delay));
        }
    }
    /// RFC 8985 s6.2, step 5; the longest time that one of the segments still has.
    pub(super) fn rack_detect(&mut self, now: Instant) -> Option<Duration> {
        let window = self.reordering_window();
        let mut longest = None;
        for index in 0..self.queue.segments.len() {
            let segment = self.queue.segments[index];
            let is_settled = segment.is_sacked || (segment.is_lost && !segment.is_retransmitted);
            let is_later = (self.rack.sent, self.rack.end) <= (segment.left, segment.end);
            if is_settled || is_later {
                continue;
            }
            let remaining = self.rack_remaining(&segment, window, now);
            if remaining.is_zero() {
                self.queue.mark_lost(index, &mut self.lost);
            } else {
                longest = longest.max(Some(remaining));
            }
        }
        longest
    }
    /// How long `segment` may still take.
    pub(super) fn rack_remaining(
        &self,
        segment: &Sent,
        window: Duration,
        now: Instant,
    ) -> Duration {
        (self.rack.rtt + window).saturating_sub(now.since(segment.left))
    }
    fn reordering_window(&self) -> Duration {
        if !self.reordering_seen
            && (self.phase >= Phase::Recovery || self.queue.sacked >= self.reordering)
        {
            return Duration::ZERO;
        }
        let least = self.rtt_min.map_or(Duration::ZERO, |(rtt, _)| rtt);
        let most = self.estimator.srtt().unwrap_or(Duration::ZERO);
        (least / 4 * self.rack.steps).min(most)
    }
}
