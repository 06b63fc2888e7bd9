//! BBR's model of a token-bucket policer: two intervals in a row with many losses and the same throughput mean that the
//! path has a fixed rate, and the sender keeps to it for a while (Linux, "long-term bandwidth").

use lowmesh_units::Instant;

use super::rate;
use crate::params::{
    BBR_POLICER_DIFFERENCE, BBR_POLICER_INTERVAL_ROUNDS, BBR_POLICER_LOSS_SHARE, BBR_POLICER_RATIO,
    BBR_POLICER_ROUNDS,
};

/// What the policer reads from an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    pub(super) losses: u32,
    pub(super) is_application_limited: bool,
    pub(super) starts_round: bool,
    pub(super) delivered: u64,
    pub(super) delivered_at: Instant,
    pub(super) lost: u64,
    pub(super) segment_octets: u32,
}

/// What the policer wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing new.
    Unchanged,
    /// The sender keeps to the policed rate from now on.
    Policed,
}

/// The sampling of intervals.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    is_sampling: bool,
    /// The throughput of the last interval; 0 before there is one.
    bandwidth: u64,
    is_in_use: bool,
    rounds: u32,
    started: Instant,
    delivered_before: u64,
    lost_before: u64,
}

impl Policer {
    /// The policed rate while it is in use.
    pub(super) const fn bandwidth(&self) -> Option<u64> {
        if self.is_in_use { Some(self.bandwidth) } else { None }
    }
    /// Forgets the rate, and waits for the next loss.
    pub(super) fn reset(&mut self, now: &Observation) {
        *self = Self::default();
        self.start_interval(now);
    }
    fn start_interval(&mut self, now: &Observation) {
        self.started = now.delivered_at;
        self.delivered_before = now.delivered;
        self.lost_before = now.lost;
        self.rounds = 0;
    }
    /// Counts a round with the policed rate; true when there were enough of them.
    pub(super) fn expires(&mut self) -> bool {
        self.rounds += 1;
        self.rounds >= BBR_POLICER_ROUNDS
    }
    /// Observes an acknowledgement while the policed rate is not in use.
    pub(super) fn observe(&mut self, now: &Observation) -> Verdict {
        if !self.is_sampling {
            // The first loss says that the tokens are used up.
            if now.losses == 0 {
                return Verdict::Unchanged;
            }
            self.start_interval(now);
            self.is_sampling = true;
        }
        if now.is_application_limited {
            self.reset(now);
            return Verdict::Unchanged;
        }
        if now.starts_round {
            self.rounds += 1;
        }
        let (least, most) = BBR_POLICER_INTERVAL_ROUNDS;
        if self.rounds < least {
            return Verdict::Unchanged;
        }
        if self.rounds > most {
            self.reset(now);
            return Verdict::Unchanged;
        }
        // An interval ends with a loss, when the tokens are used up again.
        if now.losses == 0 {
            return Verdict::Unchanged;
        }
        self.end_interval(now)
    }
    fn end_interval(&mut self, now: &Observation) -> Verdict {
        let delivered = now.delivered - self.delivered_before;
        let lost = now.lost - self.lost_before;
        let (numerator, denominator) = BBR_POLICER_LOSS_SHARE;
        if delivered == 0 || lost * denominator < numerator * delivered {
            return Verdict::Unchanged;
        }
        let span = now.delivered_at.since(self.started);
        let Some(bandwidth) = rate::bandwidth(delivered, span).filter(|_| span.as_millis() > 0)
        else {
            return Verdict::Unchanged;
        };
        if self.bandwidth > 0 && self.is_alike(bandwidth, now.segment_octets) {
            self.bandwidth = u64::midpoint(self.bandwidth, bandwidth);
            self.is_in_use = true;
            self.rounds = 0;
            return Verdict::Policed;
        }
        self.bandwidth = bandwidth;
        self.start_interval(now);
        Verdict::Unchanged
    }
    fn is_alike(&self, bandwidth: u64, segment_octets: u32) -> bool {
        let difference = bandwidth.abs_diff(self.bandwidth);
        let (numerator, denominator) = BBR_POLICER_RATIO;
        difference * denominator <= numerator * self.bandwidth
            || (segment_octets > 0
                && rate::octets_per_second(difference, rate::GAIN_ONE, segment_octets)
                    <= BBR_POLICER_DIFFERENCE)
    }
}
