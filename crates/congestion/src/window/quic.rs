//! QUIC's window: NewReno with recovery periods, persistent congestion and pacing (RFC 9002 s5 and s7).
//!
//! ```text
//!   slow start            W < ssthresh:  W += acknowledged
//!   congestion avoidance  W >= ssthresh: W += max_datagram_size once W units are acknowledged
//!   loss, mark, timeout   ssthresh = W = W / 2, once a recovery period
//!   persistent congestion W = least window
//!   pacing                gap = size * smoothed_rtt / (5/4 W)
//! ```
//!
//! RFC 9002 probes on a timeout and reduces the window only when a loss is certain. A caller with a plain
//! retransmission timer has no probes, so a timeout counts as the loss of what it was for, as in CongURE.

use alloc::boxed::Box;

use lowmesh_registry::Row;
use lowmesh_units::{Duration, Instant};

use super::flight::Flight;
use super::{Limits, Message, Window, latest};
use crate::params::{
    QUIC_GRANULARITY, QUIC_INITIAL_RTT, QUIC_PACING, QUIC_PERSISTENT_CONGESTION_THRESHOLD,
    RFC6298_K,
};
use crate::smoothed::Smoothed;

/// The row of [`Quic`].
pub static ROW: Row<dyn Window> = Row::<dyn Window>::plain(
    "quic",
    "The congestion control of QUIC, with pacing (RFC 9002)",
    |limits| Box::new(Quic::new(limits)),
);

/// The window of one QUIC-like sender.
#[derive(Clone, Copy, Debug)]
pub struct Quic {
    limits: Limits,
    window: u32,
    threshold: u32,
    /// Acknowledged since congestion avoidance last grew the window.
    credit: u32,
    rtt: Smoothed,
    /// When the first sample came.
    sampled: Option<Instant>,
    /// When the earliest message left of those lost since the last acknowledgement.
    lost_since: Option<Instant>,
    flight: Flight,
}

impl Quic {
    /// A window that starts at `limits.initial`.
    pub fn new(limits: Limits) -> Self {
        let limits = limits.checked();
        Self {
            limits,
            window: limits.initial,
            threshold: limits.max,
            credit: 0,
            rtt: Smoothed::new(),
            sampled: None,
            lost_since: None,
            flight: Flight::default(),
        }
    }
    /// RFC 9002 s7.3.2: at most one reduction for what left before it.
    fn reduce(&mut self, sent: Instant, now: Instant) {
        if self.flight.is_in_recovery(sent) {
            return;
        }
        self.flight.enter_recovery(now);
        self.window = self.limits.clamp(self.window / 2);
        self.threshold = self.window;
        self.credit = 0;
    }
    /// RFC 9002 s7.6: everything over three timeouts was lost.
    fn note_loss(&mut self, messages: &[Message], newest: Instant) {
        // RFC 9002 s7.6.2: the period SHOULD NOT start before there is a sample.
        let Some(sampled) = self.sampled else { return };
        let earliest =
            messages.iter().map(|message| message.sent).filter(|sent| *sent > sampled).min();
        self.lost_since = match (self.lost_since, earliest) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let Some(since) = self.lost_since else { return };
        if newest.since(since) > self.persistent_congestion() {
            self.window = self.limits.min;
            self.flight.leave_recovery();
            self.lost_since = None;
        }
    }
    /// RFC 9002 s7.6.1: (smoothed_rtt + max(4 rttvar, kGranularity)) * kPersistentCongestionThreshold. No
    /// max_ack_delay: our peers do not announce one.
    fn persistent_congestion(&self) -> Duration {
        let (srtt, rttvar) = self.rtt.seconds().unwrap_or_default();
        let spread = (RFC6298_K * rttvar).max(QUIC_GRANULARITY.as_secs_f64());
        Duration::from_secs_f64(srtt + spread) * QUIC_PERSISTENT_CONGESTION_THRESHOLD
    }
}

impl Window for Quic {
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
    fn threshold(&self) -> Option<u32> {
        (self.threshold < self.limits.max).then_some(self.threshold)
    }
    fn on_acked(&mut self, message: Message, rtt: Option<Duration>, now: Instant) {
        if let Some(rtt) = rtt {
            self.rtt.update(rtt);
            self.sampled.get_or_insert(now);
        }
        self.lost_since = None;
        // RFC 9002 s7.8: the window SHOULD NOT grow while it is not used up. s7.3.2: nor in recovery.
        let grows = self.flight.was_full(message.sent) && !self.flight.is_in_recovery(message.sent);
        self.flight.remove(message.size);
        if !grows {
            return;
        }
        if self.window < self.threshold {
            // RFC 9002 s7.3.1.
            self.window = self.limits.clamp(self.window.saturating_add(message.size));
            return;
        }
        // RFC 9002 s7.3.3: at most one max_datagram_size for each window that is acknowledged.
        self.credit = self.credit.saturating_add(message.size);
        if self.credit >= self.window {
            self.credit -= self.window;
            self.window = self.limits.clamp(self.window.saturating_add(self.limits.message));
        }
    }
    fn on_lost(&mut self, messages: &[Message], now: Instant) {
        self.flight.remove_all(messages);
        let Some(sent) = latest(messages) else { return };
        self.reduce(sent, now);
        self.note_loss(messages, sent);
    }
    fn on_timeout(&mut self, messages: &[Message], now: Instant) {
        self.on_lost(messages, now);
    }
    fn on_ecn(&mut self, sent: Instant, now: Instant) {
        self.reduce(sent, now);
    }
    fn pacing_gap(&self, size: u32) -> Option<Duration> {
        let srtt = self.rtt.srtt().unwrap_or(QUIC_INITIAL_RTT);
        // RFC 9002 s7.7: rate = N * congestion_window / smoothed_rtt.
        Some(srtt * u64::from(size) * QUIC_PACING.1 / (u64::from(self.window) * QUIC_PACING.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Permit;
    use super::super::tests::{ack_all, acked, at, fill, window_of};
    use super::*;

    fn quic(initial: u32) -> Quic {
        Quic::new(Limits::messages(initial, 32))
    }

    fn unit(sent: Instant) -> Message {
        Message { size: 1, sent }
    }

    #[test]
    fn slow_start_doubles_a_window_that_is_used_up() {
        let mut window = quic(2);
        ack_all(&mut window, at(0), at(100));
        assert_eq!(window_of(&window), 4);
        window.on_sent(1, at(200));
        acked(&mut window, unit(at(200)), at(300));
        assert_eq!(window_of(&window), 4, "one of four says nothing about five");
    }

    #[test]
    fn a_recovery_period_has_one_reduction() {
        let mut window = quic(16);
        let sent = fill(&mut window, at(0));
        window.on_lost(&sent[..2], at(100));
        window.on_ecn(at(0), at(110));
        window.on_timeout(&sent[2..3], at(120));
        assert_eq!((window_of(&window), window.snapshot().threshold), (8, Some(8)));
        acked(&mut window, sent[3], at(130));
        assert_eq!(window_of(&window), 8, "nor does it grow in the period");
        window.on_sent(1, at(200));
        window.on_ecn(at(200), at(300));
        assert_eq!(window_of(&window), 4, "what left after it starts another");
    }

    #[test]
    fn congestion_avoidance_adds_one_message_a_window() {
        let mut window = quic(8);
        let sent = fill(&mut window, at(0));
        window.on_lost(&sent, at(100));
        assert_eq!(window_of(&window), 4);
        ack_all(&mut window, at(200), at(300));
        assert_eq!(window_of(&window), 5);
        ack_all(&mut window, at(400), at(500));
        assert_eq!(window_of(&window), 6);
    }

    #[test]
    fn messages_are_spread_over_four_fifths_of_a_round_trip() {
        let mut window = quic(4);
        // 333 ms before there is a sample.
        assert_eq!(window.pacing_gap(1), Some(Duration::from_micros(66_600)));
        window.on_sent(1, at(0));
        acked(&mut window, unit(at(0)), at(500));
        assert_eq!(window.pacing_gap(1), Some(Duration::from_millis(100)));
        assert_eq!(window.pacing_gap(2), Some(Duration::from_millis(200)));
        window.on_sent(1, at(1000));
        assert_eq!(window.permits(1, at(1000)), Permit::At(at(1100)));
        assert_eq!(window.permits(1, at(1100)), Permit::Now);
    }

    #[test]
    fn losses_over_three_timeouts_leave_the_least_window() {
        let mut window = quic(32);
        window.on_sent(1, at(0));
        acked(&mut window, unit(at(0)), at(100));
        // 3 * (100 ms + 4 * 50 ms) = 900 ms.
        for sent in [1000, 1900] {
            window.on_sent(1, at(sent));
        }
        window.on_lost(&[unit(at(1000)), unit(at(1900))], at(2000));
        assert_eq!(window_of(&window), 16, "900 ms is not more than 900 ms");
        window.on_sent(1, at(2100));
        window.on_timeout(&[unit(at(2100))], at(3100));
        assert_eq!(window_of(&window), 1);
    }

    #[test]
    fn an_acknowledgement_ends_a_run_of_losses() {
        let mut window = quic(32);
        window.on_sent(1, at(0));
        acked(&mut window, unit(at(0)), at(100));
        for sent in [1000, 1500, 2100] {
            window.on_sent(1, at(sent));
        }
        window.on_lost(&[unit(at(1000))], at(1600));
        acked(&mut window, unit(at(1500)), at(1700));
        window.on_lost(&[unit(at(2100))], at(2200));
        assert_eq!(window_of(&window), 8, "two periods of recovery, no persistent congestion");
    }
}
