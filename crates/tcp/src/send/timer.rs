//! Setting the one timer of a sender.

use lowmesh_congestion::window::Phase;
use lowmesh_units::{Duration, Instant};

use super::{Sender, Timer};
use crate::params::{PROBE_MARGIN, PROBE_MARGIN_LONE, RTO_INITIAL, RTO_MAX, TICK};
use crate::rto::rounded;

impl Sender {
    /// After an acknowledgement that moved on: a loss probe where one is due, or the retransmission timer.
    pub(super) fn restart_timer(&mut self, now: Instant) {
        if !self.schedule_loss_probe(true, now) {
            self.rearm(now);
        }
    }
    /// RFC 6298 s5.1 to s5.3: the timer runs while something is not acknowledged.
    pub(super) fn rearm(&mut self, now: Instant) {
        let Some(head) = self.queue.segments.front() else {
            if !matches!(self.timer, Some((Timer::WindowProbe, _))) {
                self.timer = None;
            }
            return;
        };
        let rto = self.estimator.rto();
        let at = match self.timer {
            // The time since the head left counts.
            Some((Timer::LossProbe | Timer::Reordering, _)) => (head.left + rto).max(now + TICK),
            _ => now + rto,
        };
        self.timer = Some((Timer::Retransmission, at + self.pacing_delay(now)));
    }
    /// How long pacing still holds the next segment back, in whole ticks; timers count from its departure (Linux,
    /// tcp_pacing_delay).
    pub(super) fn pacing_delay(&self, now: Instant) -> Duration {
        if self.window.pacing_rate().is_none() {
            return Duration::ZERO;
        }
        TICK * (self.paced_until.since(now).as_nanos() / TICK.as_nanos())
    }
    /// RFC 8985 s7.2: two round trips after the last segment left, or a second if no round trip is known; false when no
    /// probe is due.
    pub(super) fn schedule_loss_probe(&mut self, advances: bool, now: Instant) -> bool {
        let is_quiet = matches!(self.phase, Phase::Open) && self.queue.sacked == 0;
        if !self.profile.loss_probes || !self.sack || !is_quiet || self.queue.is_empty() {
            return false;
        }
        let margin = if self.queue.len() == 1 { PROBE_MARGIN_LONE } else { PROBE_MARGIN };
        let mut delay =
            self.estimator.srtt().map_or(RTO_INITIAL, |srtt| rounded(srtt * 2 + margin));
        let rto = if advances {
            self.estimator.rto()
        } else {
            let head = self.queue.segments.front().map_or(now, |head| head.left);
            (head + self.estimator.rto()).since(now)
        };
        if !rto.is_zero() {
            delay = delay.min(rounded(rto));
        }
        self.timer = Some((Timer::LossProbe, now + delay + self.pacing_delay(now)));
        true
    }
    /// Until the next zero-window probe (RFC 9293 s3.8.6.1): the RTO, doubled for each.
    pub(super) fn probe_delay(&self) -> Duration {
        let factor = 1u64 << self.probe_backoff.min(16);
        self.estimator.rto().saturating_mul(factor).min(RTO_MAX)
    }
    /// When the sender wants to be called, if ever.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let timer = self.timer.map(|(_, at)| at);
        let pacing = self.waits_for_pacing.then_some(self.paced_until);
        lowmesh_machine::earliest(timer, pacing)
    }
}
