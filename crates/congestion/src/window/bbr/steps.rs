//! What an acknowledgement does to the model, step by step, and the window that follows from it.

use lowmesh_units::rng::draw;
use lowmesh_units::{Instant, Purpose, Seed};

use super::policer::{Observation, Verdict};
use super::{Bbr, Mode, rate};
use crate::params::{
    BBR_AGGREGATION_ACKED_MAX, BBR_AGGREGATION_ROUNDS, BBR_AGGREGATION_SPAN_MAX,
    BBR_BANDWIDTH_ROUNDS, BBR_FULL_GROWTH, BBR_FULL_ROUNDS, BBR_GAIN_CYCLE,
    BBR_INITIAL_WINDOW_MESSAGES, BBR_PROBE_RTT, BBR_RTT_MIN_AGE,
};
use crate::window::{Ack, Phase, RateSample};

impl Bbr {
    /// The whole step, in the order of Linux.
    pub(super) fn step(&mut self, ack: &Ack<'_>, now: Instant) {
        self.segment_octets = ack.segment_octets;
        self.delivered += u64::from(ack.delivered);
        self.lost += u64::from(ack.newly_lost);
        if ack.delivered > 0 {
            self.delivered_at = now;
        }
        self.update_bandwidth(ack, now);
        self.update_aggregation(ack);
        self.update_cycle(ack, now);
        self.check_full_pipe(ack);
        self.check_drain(ack, now);
        self.update_rtt_min(ack, now);
        self.set_gains();
        self.set_pacing(ack);
        self.set_window(ack);
    }
    fn observation(&self, losses: u32, rate: Option<RateSample>) -> Observation {
        Observation {
            losses,
            is_application_limited: rate.is_some_and(|rate| rate.is_application_limited),
            starts_round: self.starts_round,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            segment_octets: self.segment_octets,
        }
    }
    fn update_bandwidth(&mut self, ack: &Ack<'_>, now: Instant) {
        self.starts_round = false;
        let Some(sample) = ack.rate else { return };
        if sample.delivered_before >= self.next_round_delivered {
            self.next_round_delivered = self.delivered;
            self.rounds += 1;
            self.starts_round = true;
            self.conserves_packets = false;
        }
        self.observe_policer(ack.newly_lost, ack.rate, now);
        let delivered = u64::from(sample.delivered);
        let Some(bandwidth) = rate::bandwidth(delivered, sample.interval) else { return };
        if !sample.is_application_limited || bandwidth >= self.bandwidth.get() {
            self.bandwidth.update(BBR_BANDWIDTH_ROUNDS, self.rounds, bandwidth);
        }
    }
    pub(super) fn observe_policer(&mut self, losses: u32, rate: Option<RateSample>, now: Instant) {
        let observation = self.observation(losses, rate);
        if self.policer.bandwidth().is_some() {
            let counts = self.mode == Mode::ProbeBw && self.starts_round;
            if counts && self.policer.expires() {
                self.policer.reset(&observation);
                self.enter_probe_bw(now);
            }
        } else if self.policer.observe(&observation) == Verdict::Policed {
            self.pacing_gain = rate::GAIN_ONE;
        }
    }
    pub(super) fn forget_policer(&mut self) {
        let observation = self.observation(0, None);
        self.policer.reset(&observation);
    }
    fn update_aggregation(&mut self, ack: &Ack<'_>) {
        if ack.rate.is_none() || ack.delivered == 0 {
            return;
        }
        let bandwidth = self.bandwidth();
        let aggregation = &mut self.aggregation;
        if self.starts_round {
            aggregation.rounds += 1;
            if aggregation.rounds >= BBR_AGGREGATION_ROUNDS {
                aggregation.rounds = 0;
                aggregation.index = 1 - aggregation.index;
                aggregation.extra[aggregation.index] = 0;
            }
        }
        let span = self.delivered_at.since(aggregation.epoch);
        let mut expected = rate::delivered_in(bandwidth, span);
        let acked = aggregation.epoch_acked + u64::from(ack.delivered);
        if aggregation.epoch_acked <= expected || acked >= BBR_AGGREGATION_ACKED_MAX {
            aggregation.epoch_acked = 0;
            aggregation.epoch = self.delivered_at;
            expected = 0;
        }
        aggregation.epoch_acked += u64::from(ack.delivered);
        let extra = aggregation.epoch_acked.saturating_sub(expected);
        let extra = u32::try_from(extra).unwrap_or(u32::MAX).min(self.window);
        let largest = &mut aggregation.extra[aggregation.index];
        *largest = extra.max(*largest);
    }
    /// What will be in flight when pacing lets the next message leave.
    fn in_flight_at_departure(&self, in_flight: u32, ack: &Ack<'_>, now: Instant) -> u32 {
        let gone = rate::delivered_in(self.bandwidth(), ack.paced_until.since(now));
        let burst = self.burst_messages().saturating_mul(self.message());
        let added = if self.pacing_gain > rate::GAIN_ONE { burst } else { 0 };
        u64::from(in_flight.saturating_add(added)).saturating_sub(gone) as u32
    }
    fn update_cycle(&mut self, ack: &Ack<'_>, now: Instant) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let is_old = self.rtt_min.is_some_and(|rtt| self.delivered_at.since(self.cycle_at) > rtt);
        let in_flight = self.in_flight_at_departure(ack.in_flight_before, ack, now);
        let best = self.bandwidth.get();
        let is_over = match self.pacing_gain {
            rate::GAIN_ONE => is_old,
            gain if gain > rate::GAIN_ONE => {
                is_old && (ack.newly_lost > 0 || in_flight >= self.in_flight_target(best, gain))
            }
            _ => is_old || in_flight <= self.in_flight_target(best, rate::GAIN_ONE),
        };
        if is_over {
            self.advance_cycle();
        }
    }
    fn advance_cycle(&mut self) {
        self.cycle_index = (self.cycle_index + 1) % BBR_GAIN_CYCLE.len();
        self.cycle_at = self.delivered_at;
    }
    /// Enters the cycle at a random phase that is not the one that drains.
    fn enter_probe_bw(&mut self, now: Instant) {
        self.mode = Mode::ProbeBw;
        let phases = BBR_GAIN_CYCLE.len() as u64;
        // A window has no stream of its own; a hash of the time is as good to spread senders apart.
        let random = draw(Seed(self.delivered), Purpose::Tcp, now.as_nanos(), self.rounds);
        self.cycle_index = (phases - 1 - random % (phases - 1)) as usize;
        self.advance_cycle();
    }
    fn check_full_pipe(&mut self, ack: &Ack<'_>) {
        let limited = ack.rate.is_some_and(|rate| rate.is_application_limited);
        if self.full_pipe.is_reached || !self.starts_round || limited {
            return;
        }
        let best = self.bandwidth.get();
        let (numerator, denominator) = BBR_FULL_GROWTH;
        if best >= self.full_pipe.bandwidth * numerator / denominator {
            self.full_pipe.bandwidth = best;
            self.full_pipe.rounds = 0;
            return;
        }
        self.full_pipe.rounds += 1;
        self.full_pipe.is_reached = self.full_pipe.rounds >= BBR_FULL_ROUNDS;
    }
    fn check_drain(&mut self, ack: &Ack<'_>, now: Instant) {
        if self.mode == Mode::Startup && self.full_pipe.is_reached {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain {
            let in_flight = self.in_flight_at_departure(ack.in_flight, ack, now);
            if in_flight <= self.in_flight_target(self.bandwidth.get(), rate::GAIN_ONE) {
                self.enter_probe_bw(now);
            }
        }
    }
    fn update_rtt_min(&mut self, ack: &Ack<'_>, now: Instant) {
        let is_old = self.rtt_min.is_some() && now.since(self.rtt_min_at) > BBR_RTT_MIN_AGE;
        if let Some(rtt) = ack.rtt {
            let is_less = self.rtt_min.is_none_or(|least| rtt < least);
            if is_less || (is_old && !ack.is_delayed) {
                self.rtt_min = Some(rtt);
                self.rtt_min_at = now;
            }
        }
        if is_old && !self.restarts_from_idle && self.mode != Mode::ProbeRtt {
            self.save_window();
            self.mode = Mode::ProbeRtt;
            self.probe_rtt.done_at = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(ack, now);
        }
        if ack.rate.is_some_and(|rate| rate.delivered > 0) {
            self.restarts_from_idle = false;
        }
    }
    /// Holds the least window for 200 ms and a round.
    fn probe_rtt(&mut self, ack: &Ack<'_>, now: Instant) {
        match self.probe_rtt.done_at {
            None if ack.in_flight <= self.window_min() => {
                self.probe_rtt.done_at = Some(now + BBR_PROBE_RTT);
                self.probe_rtt.is_round_done = false;
                self.next_round_delivered = self.delivered;
            }
            None => {}
            Some(_) => {
                self.probe_rtt.is_round_done |= self.starts_round;
                if self.probe_rtt.is_round_done {
                    self.check_probe_rtt_done(now);
                }
            }
        }
    }
    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.probe_rtt.done_at.is_none_or(|done_at| now <= done_at) {
            return;
        }
        self.rtt_min_at = now;
        self.window = self.window.max(self.window_before);
        if self.full_pipe.is_reached {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }
    fn aggregation_room(&self) -> u32 {
        if !self.full_pipe.is_reached {
            return 0;
        }
        let most = rate::delivered_in(self.bandwidth(), BBR_AGGREGATION_SPAN_MAX);
        let extra = self.aggregation.extra[0].max(self.aggregation.extra[1]);
        extra.min(u32::try_from(most).unwrap_or(u32::MAX))
    }
    fn set_window(&mut self, ack: &Ack<'_>) {
        if ack.delivered > 0 && !self.recover_or_restore(ack) {
            let target = self.product(self.bandwidth(), self.window_gain);
            let target = self.quantised(target.saturating_add(self.aggregation_room()));
            let larger = self.window.saturating_add(ack.delivered);
            let young = u64::from(BBR_INITIAL_WINDOW_MESSAGES) * u64::from(self.message());
            if self.full_pipe.is_reached {
                self.window = larger.min(target);
            } else if self.window < target || self.delivered < young {
                self.window = larger;
            }
            self.window = self.window.max(self.window_min());
        }
        self.window = self.limits.clamp(self.window);
        if self.mode == Mode::ProbeRtt {
            self.window = self.limits.clamp(self.window.min(self.window_min()));
        }
    }
    /// True when packet conservation decides the window.
    fn recover_or_restore(&mut self, ack: &Ack<'_>) -> bool {
        let before = core::mem::replace(&mut self.phase, ack.phase);
        if ack.newly_lost > 0 {
            self.window = self.window.saturating_sub(ack.newly_lost).max(self.message());
        }
        if ack.phase == Phase::Recovery && before != Phase::Recovery {
            self.conserves_packets = true;
            self.next_round_delivered = self.delivered;
            self.window = ack.in_flight.saturating_add(ack.delivered);
        } else if before >= Phase::Recovery && ack.phase < Phase::Recovery {
            self.window = self.window.max(self.window_before);
            self.conserves_packets = false;
        }
        if self.conserves_packets {
            self.window = self.window.max(ack.in_flight.saturating_add(ack.delivered));
        }
        self.conserves_packets
    }
}
