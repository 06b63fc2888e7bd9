//! What the sender does when its timer expires.

use lowmesh_congestion::window::Phase;
use lowmesh_units::{Duration, Instant};

use super::{Departure, Reduction, Sender, Timer};
use crate::params::REORDERING;

impl Sender {
    /// The time has come that [`Sender::next_deadline`] named.
    pub(crate) fn on_deadline(&mut self, now: Instant) {
        if let Some((timer, _)) = self.timer.filter(|(_, at)| *at <= now) {
            self.timer = None;
            match timer {
                Timer::Retransmission => self.on_retransmission_timeout(now),
                Timer::LossProbe => self.send_loss_probe(now),
                Timer::Reordering => self.on_reordering_timeout(now),
                Timer::WindowProbe => self.send_window_probe(now),
            }
        }
        if self.waits_for_pacing && self.paced_until <= now {
            self.transmit(now);
        }
    }
    /// RFC 6298 s5.4 to s5.7.
    fn on_retransmission_timeout(&mut self, now: Instant) {
        if self.queue.is_empty() {
            return;
        }
        if self.unanswered >= u32::from(self.profile.retries) {
            self.is_given_up = true;
            return;
        }
        self.enter_loss(now);
        self.retries += 1;
        self.unanswered += 1;
        self.retransmit(0, now);
        self.estimator.back_off();
        self.counters.backoff_max = self.counters.backoff_max.max(self.estimator.backoff());
        self.timer = Some((Timer::Retransmission, now + self.estimator.rto()));
    }
    /// Everything on its way counts as lost (Linux, tcp_enter_loss).
    fn enter_loss(&mut self, now: Instant) {
        let begins = self.phase < Phase::Recovery;
        let is_reneging = self.queue.segments.front().is_some_and(|head| head.is_sacked);
        if self.phase <= Phase::Disorder && self.queue.sacked >= REORDERING && self.sack {
            self.reordering = self.reordering.min(REORDERING);
        }
        if is_reneging {
            self.queue.clear_sacked();
        }
        if !self.sack {
            self.queue.clear_anonymous_sacks();
        }
        for index in 0..self.queue.segments.len() {
            let segment = self.queue.segments[index];
            // RFC 8985 s6.3: what left a moment ago may still arrive.
            let is_young = index > 0
                && self.sack
                && !self.rack_remaining(&segment, Duration::ZERO, now).is_zero();
            if !is_young {
                self.queue.mark_lost(index, &mut self.lost);
            }
        }
        let is_new_episode =
            begins || self.high <= self.una || (self.phase == Phase::Loss && self.retries == 0);
        if is_new_episode {
            self.reduction = Reduction { window_before: self.window_size(), delivered: 0, out: 0 };
            self.arm_undo();
        }
        self.set_phase(Phase::Loss, is_new_episode, now);
        self.window.resize(self.queue.in_flight() + 1);
        self.high = self.next;
        self.probe_end = None;
        self.is_probing_spurious = self.profile.frto && (begins || self.retries > 0);
        self.counters.timeouts += 1;
    }
    /// RFC 8985 s7.3: new data if there is some and the peer takes it, otherwise the last segment again.
    fn send_loss_probe(&mut self, now: Instant) {
        if self.probe_end.is_none() && !self.queue.is_empty() {
            // A probe does not wait for Nagle.
            let octets = self.octets_that_fit().filter(|_| self.unsent() > 0);
            let sends_new = octets.is_some();
            let is_sent = match octets {
                None => self.send_copy_of_last(now),
                Some(_) if self.is_paced(now) => false,
                Some(octets) => {
                    self.send_one(octets, now);
                    true
                }
            };
            if is_sent {
                self.probe_was_copy = !sends_new;
                self.counters.probes += 1;
                self.probe_end = Some(self.next);
                self.timer = None;
                self.rearm(now);
                return;
            }
        }
        self.timer = Some((Timer::LossProbe, now));
        self.rearm(now);
    }
    fn on_reordering_timeout(&mut self, now: Instant) {
        self.timer = Some((Timer::Reordering, now));
        let lost_before = self.queue.lost_total;
        self.rack_detect(now);
        let newly_lost = (self.queue.lost_total - lost_before) as u32;
        if newly_lost > 0 {
            if self.phase != Phase::Recovery {
                self.enter_recovery(now);
                if !self.window.recovers_itself() {
                    self.reduce(1, newly_lost, false);
                }
            }
            self.send_lost(now);
        }
        if !matches!(self.timer, Some((Timer::Retransmission, _))) {
            self.rearm(now);
        }
    }
    /// RFC 9293 s3.8.6.1: asks whether the window has opened.
    fn send_window_probe(&mut self, now: Instant) {
        if !self.queue.is_empty() || self.unsent() == 0 {
            return;
        }
        if self.window_probes >= u32::from(self.profile.retries) {
            self.is_given_up = true;
            return;
        }
        self.window_probes += 1;
        if self.window_end() > self.next {
            self.send_what_fits(now);
            return;
        }
        self.probe_backoff += 1;
        self.probe();
        self.timer = Some((Timer::WindowProbe, now + self.probe_delay()));
    }
    /// A segment without data below what is acknowledged, which the peer answers (RFC 9293 s3.8.4 and s3.8.6.1).
    pub(crate) fn probe(&mut self) {
        let start = self.una - 1;
        let data = alloc::vec![];
        self.departures.push_back(Departure { start, data, push: false, fin: false });
    }
}
