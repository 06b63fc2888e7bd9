//! BBR as a [`Window`]: summaries of a TCP sender go to the model as they are; from the signals of other callers it makes
//! summaries itself.

use lowmesh_units::{Duration, Instant};

use super::{Bbr, FullPipe, Mode, Pacing, ROW, SENT_MAX, rate};
use crate::window::{Ack, Flight, Message, Phase, PhaseChange, RateSample, Window};

impl Bbr {
    /// The rate since `sent`, which is when the acknowledged message left.
    fn sample(&mut self, message: Message, now: Instant) -> Option<RateSample> {
        while self.sent.front().is_some_and(|(sent, _)| *sent < message.sent) {
            self.sent.pop_front();
        }
        let (sent, delivered_before) = *self.sent.front()?;
        let delivered = self.delivered + u64::from(message.size) - delivered_before;
        (sent == message.sent).then(|| RateSample {
            delivered: u32::try_from(delivered).unwrap_or(u32::MAX),
            interval: now.since(sent),
            delivered_before,
            is_application_limited: !self.flight.was_full(message.sent),
        })
    }
    fn lose(&mut self, messages: &[Message], now: Instant) {
        self.flight.remove_all(messages);
        let lost: u32 = messages.iter().map(|message| message.size).sum();
        self.lost += u64::from(lost);
        self.starts_round = false;
        self.observe_policer(lost, None, now);
        self.window = self.limits.clamp(self.window.saturating_sub(lost));
    }
}

impl Window for Bbr {
    fn name(&self) -> &'static str {
        ROW.name
    }
    fn flight(&self) -> &Flight {
        &self.flight
    }
    fn flight_mut(&mut self) -> &mut Flight {
        &mut self.flight
    }
    fn window(&self) -> u32 {
        self.window
    }
    fn on_sent(&mut self, size: u32, now: Instant) {
        self.flight.on_sent(size, self.window, now);
        if self.sent.back().is_none_or(|(sent, _)| *sent != now) {
            if self.sent.len() == SENT_MAX {
                self.sent.pop_front();
            }
            self.sent.push_back((now, self.delivered));
        }
    }
    fn on_acked(&mut self, message: Message, rtt: Option<Duration>, now: Instant) {
        let in_flight_before = self.flight.outstanding();
        let rate = rtt.and_then(|_| self.sample(message, now));
        self.flight.remove(message.size);
        let in_flight = self.flight.outstanding();
        let delivered = message.size;
        let ack = Ack { delivered, in_flight_before, in_flight, rtt, rate, ..Ack::default() };
        self.step(&ack, now);
    }
    fn on_lost(&mut self, messages: &[Message], now: Instant) {
        self.lose(messages, now);
    }
    fn on_timeout(&mut self, messages: &[Message], now: Instant) {
        let change = PhaseChange { phase: Phase::Loss, is_new_episode: true, lost: messages };
        self.on_phase(&change, now);
        let window = self.flight.outstanding().saturating_add(self.limits.message);
        self.resize(window.min(self.window));
    }
    /// BBR v1 does not read marks.
    fn on_ecn(&mut self, _sent: Instant, _now: Instant) {}
    fn pacing_gap(&self, size: u32) -> Option<Duration> {
        Some(rate::time_of(size, self.pacing.bandwidth, self.pacing.gain))
    }
    fn on_ack(&mut self, ack: &Ack<'_>, now: Instant) {
        self.flight.remove_all(ack.acked);
        self.flight.remove_all(ack.lost);
        self.step(ack, now);
    }
    fn on_phase(&mut self, change: &PhaseChange<'_>, now: Instant) {
        self.flight.remove_all(change.lost);
        self.lost += change.lost.iter().map(|message| u64::from(message.size)).sum::<u64>();
        if change.is_new_episode {
            self.save_window();
        }
        if change.phase == Phase::Loss {
            self.phase = Phase::Loss;
            // The path may have changed: the pipe is to be filled again, if that was not certain yet.
            self.full_pipe.bandwidth = 0;
            self.starts_round = true;
            self.observe_policer(1, None, now);
        }
    }
    fn on_undo(&mut self, _now: Instant) {
        self.full_pipe = FullPipe { is_reached: self.full_pipe.is_reached, ..FullPipe::default() };
        self.forget_policer();
    }
    fn on_restart(&mut self, now: Instant) {
        self.restarts_from_idle = true;
        self.aggregation.epoch = now;
        self.aggregation.epoch_acked = 0;
        match self.mode {
            Mode::ProbeBw => {
                self.pacing = Pacing { bandwidth: self.bandwidth(), gain: rate::GAIN_ONE };
            }
            Mode::ProbeRtt => self.check_probe_rtt_done(now),
            Mode::Startup | Mode::Drain => {}
        }
    }
    fn resize(&mut self, window: u32) {
        self.window = self.limits.clamp(window);
    }
    fn pacing_rate(&self) -> Option<u64> {
        (self.segment_octets > 0).then(|| self.octets_per_second())
    }
    fn limits_rate(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }
}
