//! RACK: a segment is lost when one that left sufficiently later has arrived (RFC 8985 s6).

use lowmesh_congestion::window::Phase;
use lowmesh_units::{Duration, Instant};

use super::queue::Sent;
use super::{Sender, Timer};
use crate::params::REORDER_MARGIN;

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
    steps_end: i64,
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
            steps_end: 0,
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
    /// RFC 8985 s6.2, step 4: a copy that was not needed widens the window, once a round trip.
    pub(super) fn widen(&mut self, una: i64, next: i64) {
        if una >= self.steps_end {
            self.steps = (self.steps + 1).min(255);
            self.steps_end = next;
        }
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
        self.rack.sets_timer = false;
        if !core::mem::take(&mut self.rack.has_advanced) {
            return;
        }
        if let Some(remaining) = self.rack_detect(now) {
            self.rack.sets_timer = true;
            self.timer = Some((Timer::Reordering, now + remaining + REORDER_MARGIN));
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
