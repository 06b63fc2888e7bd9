//! TCP's window: slow start, congestion avoidance, one reduction a window (RFC 5681), with ABE as a choice
//! (RFC 8511).
//!
//! ```text
//!   slow start            W < ssthresh:  W += min(N, SMSS) per acknowledgement
//!   congestion avoidance  W >= ssthresh: W += SMSS once W units are acknowledged
//!   loss known            ssthresh = max(flight / 2, 2 SMSS);    W = ssthresh
//!   mark                  as a loss; with ABE  ssthresh = max(4/5 flight, 2 SMSS); W = ssthresh
//!   timeout               ssthresh as for a loss;                W = SMSS
//! ```
//!
//! The caller knows of losses by other means than duplicate acknowledgements, so there is nothing to inflate
//! in recovery (s3.2, steps 3 to 5), and no ACK clock to wait for.

use alloc::boxed::Box;

use lowmesh_registry::Row;
use lowmesh_units::{Duration, Instant};

use super::flight::Flight;
use super::{Limits, Message, Window, latest};
use crate::params::{
    ABE_BETA_ECN, RENO_LOSS_WINDOW_MESSAGES, RENO_THRESHOLD_MESSAGES_MIN, reno_initial_messages,
};

/// What a mark does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkReaction {
    /// The same as a loss (RFC 3168 s6.1.2).
    AsLoss,
    /// A milder step (RFC 8511 s3).
    Abe,
}

/// The row of [`Reno`].
pub static ROW: Row<dyn Window> =
    Row::<dyn Window>::plain("reno", "Slow start and congestion avoidance (RFC 5681)", |limits| {
        Box::new(Reno::new(limits))
    });

/// The row of [`Reno::abe`].
pub static ABE_ROW: Row<dyn Window> =
    Row::<dyn Window>::plain("abe", "Reno with a smaller reaction to marks (RFC 8511)", |limits| {
        Box::new(Reno::abe(limits))
    });

/// Additive increase, multiplicative decrease.
#[derive(Clone, Copy, Debug)]
pub struct Reno {
    limits: Limits,
    mark_reaction: MarkReaction,
    window: u32,
    threshold: u32,
    /// Acknowledged since congestion avoidance last grew the window.
    credit: u32,
    /// A timeout came, and nothing was acknowledged since.
    timed_out: bool,
    flight: Flight,
}

impl Reno {
    /// Reno; the window starts at the initial window of RFC 5681 s3.1 for messages of `limits.message`.
    pub fn new(limits: Limits) -> Self {
        Self::reacting(limits, MarkReaction::AsLoss)
    }
    /// Reno with Alternative Backoff with ECN.
    pub fn abe(limits: Limits) -> Self {
        Self::reacting(limits, MarkReaction::Abe)
    }
    fn reacting(limits: Limits, mark_reaction: MarkReaction) -> Self {
        let limits = limits.checked();
        let initial = reno_initial_messages(limits.message).saturating_mul(limits.message);
        Self {
            limits,
            mark_reaction,
            window: limits.clamp(initial),
            // RFC 5681 s3.1: the initial ssthresh SHOULD be arbitrarily high, such as the largest window.
            threshold: limits.max,
            credit: 0,
            timed_out: false,
            flight: Flight::default(),
        }
    }
    /// max(`share` of what is on its way, 2 SMSS) (RFC 5681 s3.1, equation 4).
    fn threshold_after(&self, share: (u32, u32)) -> u32 {
        let (numerator, denominator) = (u64::from(share.0), u64::from(share.1));
        let part = u64::from(self.flight.outstanding()) * numerator / denominator;
        let least = RENO_THRESHOLD_MESSAGES_MIN.saturating_mul(self.limits.message);
        self.limits.clamp(u32::try_from(part).unwrap_or(u32::MAX).max(least))
    }
    /// Reduces the window for something that left at `sent`, at most once a window.
    fn reduce(&mut self, share: (u32, u32), sent: Instant, now: Instant) {
        if self.flight.is_in_recovery(sent) {
            return;
        }
        self.flight.enter_recovery(now);
        self.threshold = self.threshold_after(share);
        self.window = self.threshold;
        self.credit = 0;
    }
    fn grow(&mut self, size: u32) {
        let message = self.limits.message;
        if self.window < self.threshold {
            // RFC 5681 s3.1, equation 2.
            self.window = self.limits.clamp(self.window.saturating_add(size.min(message)));
            return;
        }
        // RFC 5681 s3.1: it is RECOMMENDED to count what is acknowledged, and to add SMSS when it comes to a
        // window.
        self.credit = self.credit.saturating_add(size);
        if self.credit >= self.window {
            self.credit -= self.window;
            self.window = self.limits.clamp(self.window.saturating_add(message));
        }
    }
}

impl Window for Reno {
    fn name(&self) -> &'static str {
        match self.mark_reaction {
            MarkReaction::AsLoss => ROW.name,
            MarkReaction::Abe => ABE_ROW.name,
        }
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
    fn on_acked(&mut self, message: Message, _rtt: Option<Duration>, _now: Instant) {
        self.flight.remove(message.size);
        self.timed_out = false;
        if !self.flight.is_in_recovery(message.sent) {
            self.grow(message.size);
        }
    }
    fn on_lost(&mut self, messages: &[Message], now: Instant) {
        if let Some(sent) = latest(messages) {
            self.reduce((1, 2), sent, now);
        }
        self.flight.remove_all(messages);
    }
    fn on_timeout(&mut self, messages: &[Message], now: Instant) {
        // RFC 5681 s3.1: ssthresh is held when the timer runs out again for a retransmission.
        if !self.timed_out {
            self.threshold = self.threshold_after((1, 2));
        }
        self.timed_out = true;
        self.flight.remove_all(messages);
        self.flight.enter_recovery(now);
        self.credit = 0;
        // RFC 5681 s3.1: cwnd MUST be set to no more than the loss window, one full-sized segment.
        let loss_window = RENO_LOSS_WINDOW_MESSAGES.saturating_mul(self.limits.message);
        self.window = self.limits.clamp(loss_window.min(self.window));
    }
    fn on_ecn(&mut self, sent: Instant, now: Instant) {
        let share = match self.mark_reaction {
            MarkReaction::AsLoss => (1, 2),
            // RFC 8511 s3: a beta_ecn of 0.8.
            MarkReaction::Abe => ABE_BETA_ECN,
        };
        self.reduce(share, sent, now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ack_all, acked, at, fill, window_of};
    use super::*;

    fn reno() -> Reno {
        Reno::new(Limits::messages(2, 32))
    }

    /// A window of 16 in slow start.
    fn opened(mut window: Reno) -> Reno {
        for round in 0..2 {
            ack_all(&mut window, at(round * 100), at(round * 100 + 50));
        }
        assert_eq!(window_of(&window), 16);
        window
    }

    #[test]
    fn the_initial_window_depends_on_the_message_and_not_on_the_caller() {
        let of =
            |message| window_of(&Reno::new(Limits { initial: 2, min: 1, max: 65_535, message }));
        assert_eq!([of(1), of(1095), of(1096), of(2190), of(2191)], [4, 4380, 3288, 6570, 4382]);
    }

    #[test]
    fn slow_start_doubles_the_window_each_round_trip() {
        let mut window = reno();
        let mut seen = Vec::new();
        for round in 0..4 {
            ack_all(&mut window, at(round * 100), at(round * 100 + 50));
            seen.push(window_of(&window));
        }
        assert_eq!(seen, [8, 16, 32, 32]);
    }

    #[test]
    fn a_known_loss_halves_what_is_on_its_way_once_a_window() {
        let mut window = opened(reno());
        let sent = fill(&mut window, at(500));
        window.on_lost(&sent[..1], at(550));
        assert_eq!(window_of(&window), 8);
        window.on_lost(&sent[1..4], at(560));
        window.on_ecn(at(500), at(560));
        assert_eq!((window_of(&window), window.snapshot().outstanding), (8, 12));
    }

    #[test]
    fn congestion_avoidance_adds_one_message_a_round_trip() {
        let mut window = opened(reno());
        let sent = fill(&mut window, at(500));
        window.on_lost(&sent[..1], at(550));
        for message in &sent[1..] {
            acked(&mut window, *message, at(560));
        }
        assert_eq!(window_of(&window), 8, "what left before the reduction does not grow it");
        for round in 0..3 {
            assert_eq!(window_of(&window), 8 + round);
            ack_all(
                &mut window,
                at(600 + u64::from(round) * 100),
                at(650 + u64::from(round) * 100),
            );
        }
    }

    #[test]
    fn a_timeout_leaves_one_message_and_half_the_flight_as_threshold() {
        let mut window = opened(reno());
        let sent = fill(&mut window, at(500));
        window.on_timeout(&sent, at(3000));
        assert_eq!((window_of(&window), window.snapshot().threshold), (1, Some(8)));
        window.on_sent(1, at(3000));
        window.on_timeout(&[Message { size: 1, sent: at(3000) }], at(6000));
        assert_eq!(window.snapshot().threshold, Some(8), "the second timeout holds the threshold");
    }

    #[test]
    fn the_threshold_is_never_below_two_messages() {
        let mut window = reno();
        window.on_sent(1, at(0));
        window.on_timeout(&[Message { size: 1, sent: at(0) }], at(3000));
        assert_eq!(window.snapshot().threshold, Some(2));
    }

    #[test]
    fn abe_gives_way_less_to_a_mark_than_to_a_loss() {
        let (mut reno, mut abe) = (opened(reno()), opened(Reno::abe(Limits::messages(2, 32))));
        for window in [&mut reno, &mut abe] {
            fill(window, at(500));
            window.on_ecn(at(500), at(550));
        }
        assert_eq!((window_of(&reno), window_of(&abe)), (8, 12));
        abe.on_discarded(16, at(560));
        let sent = fill(&mut abe, at(600));
        abe.on_lost(&sent[..1], at(650));
        assert_eq!(window_of(&abe), 6, "a loss of 1 in 12 halves it");
    }
}
