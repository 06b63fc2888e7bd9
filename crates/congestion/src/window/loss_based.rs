//! What the loss-based windows of TCP share: slow start, one reduction an episode, undo. Growth in congestion
//! avoidance is what differs ([`Growth`]).
//!
//! A TCP sender repairs losses itself: in recovery its proportional rate reduction (RFC 6937) sets the window with
//! [`Window::resize`] until it reaches the threshold. Callers without phases (CoAP, fragments) get the threshold at once.

use core::fmt::Debug;

use lowmesh_units::{Duration, Instant};

use super::flight::Flight;
use super::{Ack, Limits, Message, Phase, PhaseChange, Window, latest};

/// How a window grows in congestion avoidance, and how far a loss reduces it.
pub trait Growth: Debug + Send + 'static {
    /// The name in the row.
    const NAME: &'static str;
    /// The slow-start threshold after a loss at `window`, in units.
    fn threshold(&mut self, window: u32, message: u32) -> u32;
    /// What must be acknowledged for the window to grow by one message.
    fn credit_per_message(&mut self, state: Avoidance, now: Instant) -> u32;
    /// The reduction turned out to be unjustified.
    fn undo(&mut self) {}
    /// Growth starts from the beginning, after a timeout or a pause.
    fn restart(&mut self) {}
    /// A timeout: what earlier losses said counts no more.
    fn forget(&mut self) {
        self.restart();
    }
    /// An acknowledgement comes in slow start at `window`; true when the path seems full before anything is lost.
    fn ends_slow_start(
        &mut self,
        _window: u32,
        _message: u32,
        _ack: &Ack<'_>,
        _now: Instant,
    ) -> bool {
        false
    }
}

/// The state of congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub struct Avoidance {
    /// The window.
    pub window: u32,
    /// The slow-start threshold.
    pub threshold: u32,
    /// A full message.
    pub message: u32,
    /// What was acknowledged now.
    pub acked: u32,
    /// The latest sample of the round-trip time.
    pub rtt: Option<Duration>,
}

/// A window that losses reduce.
#[derive(Clone, Copy, Debug)]
pub struct LossBased<G> {
    limits: Limits,
    window: u32,
    threshold: u32,
    credit: u32,
    /// Window and threshold before the latest reduction.
    before: Option<(u32, u32)>,
    /// For callers without phases: a timeout came, and nothing was acknowledged since.
    timed_out: bool,
    rtt: Option<Duration>,
    flight: Flight,
    growth: G,
}

impl<G: Growth> LossBased<G> {
    pub(super) fn with_growth(limits: Limits, growth: G) -> Self {
        let limits = limits.checked();
        Self {
            limits,
            window: limits.initial,
            threshold: limits.max,
            credit: 0,
            before: None,
            timed_out: false,
            rtt: None,
            flight: Flight::default(),
            growth,
        }
    }
    #[cfg(test)]
    pub(super) const fn growth(&self) -> &G {
        &self.growth
    }
    /// Lowers the threshold, and remembers what it was.
    fn begin_episode(&mut self) {
        // RFC 6937 and Linux: an undo in a second episode leads back to three quarters of the window at least.
        let threshold = self.threshold.max(self.window / 2 + self.window / 4);
        self.before = Some((self.window, threshold));
        let threshold = self.growth.threshold(self.window, self.limits.message);
        self.threshold = self.limits.clamp(threshold);
        self.credit = 0;
    }
    fn grow(&mut self, acked: u32, now: Instant) {
        let mut acked = acked;
        if self.window < self.threshold {
            // RFC 5681 s3.1, with what is acknowledged in place of L = 1 * SMSS (RFC 9406 s4.2, Linux).
            let target = self.window.saturating_add(acked).min(self.threshold);
            acked -= target - self.window;
            self.window = self.limits.clamp(target);
        }
        if acked > 0 {
            self.avoid(acked, now);
        }
    }
    fn avoid(&mut self, acked: u32, now: Instant) {
        let (window, threshold, message) = (self.window, self.threshold, self.limits.message);
        let state = Avoidance { window, threshold, message, acked, rtt: self.rtt };
        let needed = self.growth.credit_per_message(state, now).max(1);
        // A credit from a time when more was needed counts for one message only.
        if self.credit >= needed {
            self.credit = 0;
            self.window = self.limits.clamp(self.window.saturating_add(message));
        }
        self.credit = self.credit.saturating_add(acked);
        if self.credit >= needed {
            let messages = self.credit / needed;
            self.credit -= messages * needed;
            let growth = messages.saturating_mul(message);
            self.window = self.limits.clamp(self.window.saturating_add(growth));
        }
    }
    fn reduce_now(&mut self, now: Instant) {
        self.flight.enter_recovery(now);
        self.begin_episode();
        self.window = self.window.min(self.threshold);
    }
}

impl<G: Growth> Window for LossBased<G> {
    fn name(&self) -> &'static str {
        G::NAME
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
    fn threshold(&self) -> Option<u32> {
        (self.threshold < self.limits.max).then_some(self.threshold)
    }
    fn on_acked(&mut self, message: Message, rtt: Option<Duration>, now: Instant) {
        self.rtt = rtt.or(self.rtt);
        self.timed_out = false;
        let grows = self.flight.was_full(message.sent) && !self.flight.is_in_recovery(message.sent);
        self.flight.remove(message.size);
        if grows {
            self.grow(message.size, now);
        }
    }
    fn on_lost(&mut self, messages: &[Message], now: Instant) {
        self.flight.remove_all(messages);
        let Some(sent) = latest(messages) else { return };
        if !self.flight.is_in_recovery(sent) {
            self.reduce_now(now);
        }
    }
    fn on_timeout(&mut self, messages: &[Message], now: Instant) {
        self.flight.remove_all(messages);
        // RFC 5681 s3.1: a second timeout of the same message holds the threshold.
        if !self.timed_out {
            self.reduce_now(now);
        }
        self.timed_out = true;
        self.window = self.limits.clamp(self.limits.message);
        self.growth.restart();
    }
    fn on_ecn(&mut self, sent: Instant, now: Instant) {
        if !self.flight.is_in_recovery(sent) {
            self.reduce_now(now);
        }
    }
    fn on_ack(&mut self, ack: &Ack<'_>, now: Instant) {
        self.rtt = ack.rtt.or(self.rtt);
        self.flight.remove_all(ack.acked);
        self.flight.remove_all(ack.lost);
        let is_slow_start = self.window < self.threshold;
        if self.growth.ends_slow_start(self.window, self.limits.message, ack, now) && is_slow_start
        {
            self.threshold = self.window;
        }
        let grows = ack.phase != Phase::Recovery && ack.advances && ack.is_window_limited;
        if grows && ack.delivered > 0 {
            self.grow(ack.delivered, now);
        }
    }
    fn on_phase(&mut self, change: &PhaseChange<'_>, _now: Instant) {
        self.flight.remove_all(change.lost);
        if change.is_new_episode {
            self.begin_episode();
        }
        if change.phase == Phase::Loss {
            self.credit = 0;
            self.growth.forget();
        }
    }
    fn on_undo(&mut self, _now: Instant) {
        if let Some((window, threshold)) = self.before.take() {
            self.window = self.window.max(window);
            self.threshold = self.threshold.max(threshold);
            self.growth.undo();
        }
    }
    fn on_restart(&mut self, _now: Instant) {
        self.growth.restart();
    }
    fn resize(&mut self, window: u32) {
        self.window = self.limits.clamp(window);
    }
    fn recovers_itself(&self) -> bool {
        false
    }
}
