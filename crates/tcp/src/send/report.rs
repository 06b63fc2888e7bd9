//! What the window is told about an acknowledgement.

use lowmesh_congestion::window::{Ack, RateSample};
use lowmesh_units::{Duration, Instant};

use super::Sender;

/// The numbers of an acknowledgement that only its processing knows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    pub(super) rate: Option<RateSample>,
    pub(super) rtt: Option<Duration>,
    /// The peer may have delayed the acknowledgement.
    pub(super) is_delayed: bool,
    pub(super) delivered: u32,
    pub(super) newly_lost: u32,
    pub(super) in_flight_before: u32,
    pub(super) advances: bool,
}

impl Sender {
    pub(super) fn tell(&mut self, report: &Report, now: Instant) {
        let (acked, lost) = (core::mem::take(&mut self.acked), core::mem::take(&mut self.lost));
        let ack = Ack {
            acked: &acked,
            lost: &lost,
            advances: report.advances,
            delivered: report.delivered,
            newly_lost: report.newly_lost,
            in_flight_before: report.in_flight_before,
            in_flight: self.queue.in_flight(),
            rtt: report.rtt,
            is_delayed: report.is_delayed,
            srtt: self.estimator.srtt(),
            rate: report.rate,
            is_window_limited: self.is_window_limited(),
            phase: self.phase,
            segment_octets: self.segment_octets,
            paced_until: self.paced_until,
        };
        self.window.on_ack(&ack, now);
        if self.window.limits_rate() {
            self.sampler.limit(self.queue.in_flight());
        }
    }
    /// In slow start a window counts as used up when half of it was.
    fn is_window_limited(&self) -> bool {
        let snapshot = self.window.snapshot();
        let slow_start = snapshot.threshold.is_none_or(|threshold| snapshot.window < threshold);
        self.usage.is_limited || (slow_start && snapshot.window < 2 * self.usage.out_max)
    }
}
