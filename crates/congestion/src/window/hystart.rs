//! HyStart of Linux (Ha and Rhee 2011, tcp_cubic.c): slow start ends when a round trip grows longer, or when a train of
//! acknowledgements is as long as half the path, and so before the queue overflows.

use lowmesh_units::{Duration, Instant};

use super::Ack;
use crate::params::{
    HYSTART_DELAY, HYSTART_SAMPLES, HYSTART_TRAIN_GAP, HYSTART_WINDOW_MESSAGES_MIN,
};

/// The search for the end of slow start.
#[derive(Clone, Copy, Debug, Default)]
pub struct HyStart {
    /// The least round-trip time of the connection.
    least: Option<Duration>,
    round: Option<Round>,
    has_found: bool,
}

/// A round trip: what leaves from its start on belongs to the next one.
#[derive(Clone, Copy, Debug)]
struct Round {
    start: Instant,
    /// The end of the train of acknowledgements so far.
    train_end: Instant,
    least: Option<Duration>,
    samples: u32,
}

impl Round {
    const fn new(now: Instant) -> Self {
        Self { start: now, train_end: now, least: None, samples: 0 }
    }
}

impl HyStart {
    /// True when slow start ends with this acknowledgement, at a window of `messages`.
    pub fn ends_slow_start(&mut self, messages: u32, ack: &Ack<'_>, now: Instant) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        if self.has_found || messages < HYSTART_WINDOW_MESSAGES_MIN {
            return false;
        }
        let is_over = |round: &Round| ack.acked.iter().any(|message| message.sent >= round.start);
        let mut round = self.round.filter(|round| !is_over(round)).unwrap_or(Round::new(now));
        if now.since(round.train_end) <= HYSTART_TRAIN_GAP {
            round.train_end = now;
            self.has_found |= now.since(round.start) > least / 2;
        }
        round.least = Some(round.least.map_or(rtt, |least| least.min(rtt)));
        if round.samples < HYSTART_SAMPLES {
            round.samples += 1;
        } else {
            let (shortest, longest) = HYSTART_DELAY;
            let margin = (least / 8).clamp(shortest, longest);
            self.has_found |= round.least.is_some_and(|rtt| rtt > least + margin);
        }
        self.round = Some(round);
        self.has_found
    }
}

#[cfg(test)]
mod tests {
    use super::super::Message;
    use super::super::tests::at;
    use super::*;

    /// An acknowledgement at `now_ms` of a message that left `rtt_ms` before.
    fn ends(hystart: &mut HyStart, messages: u32, now_ms: u64, rtt_ms: u64) -> bool {
        let message = Message { size: 1, sent: at(now_ms - rtt_ms) };
        let rtt = Some(Duration::from_millis(rtt_ms));
        let ack = Ack { acked: &[message], rtt, ..Ack::default() };
        hystart.ends_slow_start(messages, &ack, at(now_ms))
    }

    #[test]
    fn a_round_whose_least_round_trip_has_grown_ends_slow_start() {
        let mut hystart = HyStart::default();
        assert!(!ends(&mut hystart, 10, 1_000, 600));
        // Eight samples come first, and the least one of the round counts.
        for sample in 0..8 {
            assert!(!ends(&mut hystart, 16, 2_000 + sample * 80, 700));
        }
        assert!(ends(&mut hystart, 16, 2_640, 700));
    }

    #[test]
    fn a_round_trip_that_stays_and_a_small_window_end_nothing() {
        let mut hystart = HyStart::default();
        for sample in 0..50 {
            assert!(!ends(&mut hystart, 16, 1_000 + sample * 80, 600 + sample % 16));
        }
        let mut small = HyStart::default();
        for sample in 0..50 {
            assert!(!ends(&mut small, 15, 1_000 + sample * 80, 600 + sample * 10));
        }
    }

    #[test]
    fn a_train_as_long_as_half_the_round_trip_ends_slow_start() {
        let mut hystart = HyStart::default();
        let found = (0..60).position(|sample| ends(&mut hystart, 20, 1_000 + sample, 100));
        assert_eq!(found, Some(51), "51 ms are more than half of 100");
    }
}
