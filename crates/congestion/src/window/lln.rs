//! A window for low-power and lossy networks, our own: it starts at its least, grows only after several clean
//! windows, and spreads what it sends over the round trip. Why and how: docs/topics/congestion-windows.md.
//!
//! ```text
//!   start      W = min, P = 2, S = 1
//!   clean      P * W units acknowledged that filled the window, nothing lost or marked:
//!              S > 1: S = max(S / 2, 1)    else: W = W + 1 message, at most 5
//!   loss       W = max(W / 2, min); at the least window S = 5/4 S; P doubles
//!   mark       W = W - 1 message;                          S = 3/2 S; P doubles
//!   timeout    W = min;                                    S = 2 S;   P doubles
//!   pacing     gap = S * smoothed_rtt * size / W
//! ```

use alloc::boxed::Box;

use lowmesh_registry::Row;
use lowmesh_units::{Duration, Instant};

use super::flight::Flight;
use super::{Limits, Message, Window, latest};
use crate::params::{
    LLN_PATIENCE, LLN_PATIENCE_MAX, LLN_STRETCH_LOSS, LLN_STRETCH_MARK, LLN_STRETCH_MAX,
    LLN_STRETCH_ONE, LLN_STRETCH_TIMEOUT, LLN_WINDOW_MESSAGES_MAX,
};
use crate::smoothed::Smoothed;

/// The row of [`Lln`].
pub static ROW: Row<dyn Window> = Row::<dyn Window>::plain(
    "lln",
    "A window of Lowmesh for low-power networks, with pacing",
    |limits| Box::new(Lln::new(limits)),
);

/// Conservative growth and pacing.
#[derive(Clone, Copy, Debug)]
pub struct Lln {
    limits: Limits,
    window: u32,
    /// Acknowledged since the last step.
    credit: u32,
    /// P: clean windows before a step.
    patience: u32,
    /// S in parts of [`LLN_STRETCH_ONE`].
    stretch: u64,
    rtt: Smoothed,
    flight: Flight,
}

impl Lln {
    /// A window that starts at `limits.min` and ends at five messages or `limits.max`.
    pub fn new(limits: Limits) -> Self {
        let limits = limits.checked();
        let ceiling = LLN_WINDOW_MESSAGES_MAX.saturating_mul(limits.message);
        let limits = Limits { max: limits.max.min(ceiling).max(limits.min), ..limits };
        Self {
            limits,
            window: limits.min,
            credit: 0,
            patience: LLN_PATIENCE,
            stretch: LLN_STRETCH_ONE,
            rtt: Smoothed::new(),
            flight: Flight::default(),
        }
    }
    /// Gives way, at most once for what left before: to `window`, with the gap `stretch` times as long.
    fn reduce(&mut self, window: u32, stretch: (u64, u64), now: Instant) {
        self.flight.enter_recovery(now);
        self.window = self.limits.clamp(window);
        self.stretch = (self.stretch * stretch.0 / stretch.1).min(LLN_STRETCH_MAX);
        self.patience = (self.patience * 2).min(LLN_PATIENCE_MAX);
        self.credit = 0;
    }
    /// One step back towards speed: the gap first, the window when the gap is that of a round trip.
    fn step(&mut self) {
        if self.stretch > LLN_STRETCH_ONE {
            self.stretch = (self.stretch / 2).max(LLN_STRETCH_ONE);
        } else {
            self.window = self.limits.clamp(self.window.saturating_add(self.limits.message));
        }
    }
}

impl Window for Lln {
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
    fn on_acked(&mut self, message: Message, rtt: Option<Duration>, _now: Instant) {
        if let Some(rtt) = rtt {
            self.rtt.update(rtt);
        }
        let counts =
            self.flight.was_full(message.sent) && !self.flight.is_in_recovery(message.sent);
        self.flight.remove(message.size);
        if counts {
            self.credit = self.credit.saturating_add(message.size);
            if self.credit >= self.patience.saturating_mul(self.window) {
                self.credit = 0;
                self.step();
            }
        }
    }
    fn on_lost(&mut self, messages: &[Message], now: Instant) {
        self.flight.remove_all(messages);
        let Some(sent) = latest(messages) else { return };
        if !self.flight.is_in_recovery(sent) {
            let at_least = self.window == self.limits.min;
            let stretch = if at_least { LLN_STRETCH_LOSS } else { (1, 1) };
            self.reduce(self.window / 2, stretch, now);
        }
    }
    fn on_timeout(&mut self, messages: &[Message], now: Instant) {
        self.flight.remove_all(messages);
        self.reduce(self.limits.min, LLN_STRETCH_TIMEOUT, now);
    }
    fn on_ecn(&mut self, sent: Instant, now: Instant) {
        if !self.flight.is_in_recovery(sent) {
            let window = self.window.saturating_sub(self.limits.message);
            self.reduce(window, LLN_STRETCH_MARK, now);
        }
    }
    fn pacing_gap(&self, size: u32) -> Option<Duration> {
        // Before the first sample the window is at its least, and acknowledgements are the clock.
        let srtt = self.rtt.srtt().unwrap_or(Duration::ZERO);
        Some(srtt * self.stretch * u64::from(size) / (LLN_STRETCH_ONE * u64::from(self.window)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Permit;
    use super::super::tests::{ack_all, acked, at, fill, window_of};
    use super::*;

    const RTT: u64 = 160;

    fn lln() -> Lln {
        Lln::new(Limits::messages(2, 32))
    }

    /// Runs `rounds` full and clean windows from `start` ms on; returns the window after each.
    fn clean(window: &mut Lln, start: u64, rounds: u64) -> Vec<u32> {
        let round = |round: u64| {
            let sent = start + round * 1000;
            ack_all(window, at(sent), at(sent + RTT));
            window_of(window)
        };
        (0..rounds).map(round).collect()
    }

    fn gap_ms(window: &Lln) -> u64 {
        window.pacing_gap(1).expect("it paces").as_millis()
    }

    #[test]
    fn it_starts_at_one_and_grows_by_one_after_two_clean_windows_up_to_five() {
        let mut window = lln();
        assert_eq!(window_of(&window), 1);
        assert_eq!(clean(&mut window, 0, 10), [1, 2, 2, 3, 3, 4, 4, 5, 5, 5]);
    }

    #[test]
    fn a_window_that_is_not_used_up_does_not_grow() {
        let mut window = lln();
        clean(&mut window, 0, 2);
        for round in 0..20 {
            let sent = at(10_000 + round * 1000);
            window.on_sent(1, sent);
            acked(&mut window, Message { size: 1, sent }, sent + Duration::from_millis(RTT));
        }
        assert_eq!(window_of(&window), 2);
    }

    #[test]
    fn one_window_is_spread_over_one_round_trip() {
        let mut window = lln();
        assert_eq!(gap_ms(&window), 0);
        clean(&mut window, 0, 2);
        assert_eq!((window_of(&window), gap_ms(&window)), (2, RTT / 2));
        window.on_sent(1, at(5000));
        assert_eq!(window.permits(1, at(5000)), Permit::At(at(5000 + RTT / 2)));
        assert_eq!(window.permits(1, at(5000 + RTT / 2)), Permit::Now);
    }

    #[test]
    fn a_loss_halves_the_window_once_and_only_at_the_least_window_widens_the_gap() {
        let mut window = lln();
        clean(&mut window, 0, 6);
        let sent = fill(&mut window, at(10_000));
        window.on_lost(&sent[..1], at(10_200));
        window.on_lost(&sent[1..2], at(10_300));
        assert_eq!((window_of(&window), gap_ms(&window)), (2, RTT / 2));
        window.on_discarded(2, at(10_400));
        let sent = fill(&mut window, at(11_000));
        window.on_lost(&sent, at(11_200));
        assert_eq!((window_of(&window), gap_ms(&window)), (1, RTT));
        let sent = fill(&mut window, at(12_000));
        window.on_lost(&sent, at(12_200));
        assert_eq!((window_of(&window), gap_ms(&window)), (1, RTT * 5 / 4));
    }

    #[test]
    fn a_mark_takes_one_message_away_and_half_as_much_gap_again() {
        let mut window = lln();
        clean(&mut window, 0, 6);
        fill(&mut window, at(10_000));
        window.on_ecn(at(10_000), at(10_200));
        window.on_ecn(at(10_000), at(10_200));
        assert_eq!((window_of(&window), gap_ms(&window)), (3, RTT / 2));
    }

    #[test]
    fn a_timeout_goes_back_to_the_start_and_doubles_the_gap_up_to_four_round_trips() {
        let mut window = lln();
        clean(&mut window, 0, 6);
        let mut gaps = Vec::new();
        for round in 0..4 {
            let sent = fill(&mut window, at(10_000 + round * 5000));
            window.on_timeout(&sent, at(12_500 + round * 5000));
            gaps.push(gap_ms(&window));
        }
        assert_eq!((window_of(&window), gaps), (1, vec![2 * RTT, 4 * RTT, 4 * RTT, 4 * RTT]));
    }

    #[test]
    fn after_giving_way_the_gap_comes_back_before_the_window_and_both_take_longer() {
        let mut window = lln();
        clean(&mut window, 0, 2);
        let sent = fill(&mut window, at(10_000));
        window.on_timeout(&sent, at(12_500));
        assert_eq!(gap_ms(&window), 2 * RTT);
        clean(&mut window, 20_000, 3);
        assert_eq!(gap_ms(&window), 2 * RTT, "four clean windows instead of two");
        clean(&mut window, 30_000, 1);
        assert_eq!((window_of(&window), gap_ms(&window)), (1, RTT));
        assert_eq!(clean(&mut window, 40_000, 4), [1, 1, 1, 2]);
    }

    #[test]
    fn the_unit_may_be_octets() {
        let limits = Limits { initial: 512, min: 256, max: 65_535, message: 256 };
        let mut window = Lln::new(limits);
        for round in 0..40 {
            let sent = at(round * 1000);
            while window.snapshot().outstanding < window_of(&window) {
                window.on_sent(128, sent);
            }
            while window.snapshot().outstanding > 0 {
                acked(&mut window, Message { size: 128, sent }, at(round * 1000 + RTT));
            }
        }
        assert_eq!(window_of(&window), 5 * 256);
    }
}
