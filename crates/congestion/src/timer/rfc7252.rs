//! The default congestion control of CoAP: a random first timeout, doubled each time (RFC 7252
//! s4.2).

use alloc::boxed::Box;

use lowmesh_registry::Row;
use lowmesh_units::{Duration, Instant, Rng};

use super::{Attempt, Timer, TimerSnapshot};
use crate::params::{ACK_RANDOM_FACTOR, ACK_TIMEOUT, BINARY_BACKOFF, WAIT_MAX};

/// The row of [`Rfc7252`].
pub static ROW: Row<dyn Timer> = Row::<dyn Timer>::plain(
    "default",
    "Random first timeout, doubled (RFC 7252 s4.8)",
    |_, ack_timeout| Box::new(Rfc7252::new(ack_timeout)),
);

/// Learns nothing: every message starts between ACK_TIMEOUT and ACK_TIMEOUT * ACK_RANDOM_FACTOR.
#[derive(Clone, Copy, Debug)]
pub struct Rfc7252 {
    ack_timeout: Duration,
}

impl Rfc7252 {
    /// With this ACK_TIMEOUT.
    pub const fn new(ack_timeout: Duration) -> Self {
        Self { ack_timeout }
    }
}

/// RFC 7252's own ACK_TIMEOUT.
impl Default for Rfc7252 {
    fn default() -> Self {
        Self::new(ACK_TIMEOUT)
    }
}

impl Timer for Rfc7252 {
    fn initial(&mut self, _now: Instant, rng: &mut Rng) -> Duration {
        // RFC 7252 s4.2: a random duration (often not a whole number of seconds) between the two.
        self.ack_timeout.mul_f64(rng.between(1.0, ACK_RANDOM_FACTOR))
    }
    fn backoff(&mut self, attempt: Attempt, _rng: &mut Rng) -> Duration {
        // RFC 7252 s4.2: the timeout is doubled. With MAX_RETRANSMIT 4 it ends at 48 s, under the
        // bound.
        attempt.previous.mul_f64(BINARY_BACKOFF).min(WAIT_MAX)
    }
    fn on_sample(&mut self, _rtt: Duration, _retransmissions: u8, _now: Instant) {}
    fn on_give_up(&mut self, _now: Instant) {}
    fn snapshot(&self) -> TimerSnapshot {
        TimerSnapshot { rto: self.ack_timeout, srtt: None, rttvar: None, strong: None, weak: None }
    }
    fn name(&self) -> &'static str {
        ROW.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::{NodeId, Purpose, Seed};

    #[test]
    fn the_first_timeout_is_uniform_from_2_to_3_s_and_doubles_four_times() {
        // Claim S000-01.
        let mut rng = Rng::stream(Seed(1), NodeId(1), Purpose::Coap);
        let (mut low, mut high, mut sum) = (f64::MAX, f64::MIN, 0.0);
        for _ in 0..10_000 {
            let initial = Rfc7252::default().initial(Instant::ZERO, &mut rng);
            let seconds = initial.as_secs_f64();
            (low, high, sum) = (low.min(seconds), high.max(seconds), sum + seconds);
            let mut previous = initial;
            for number in 1..=4 {
                let next =
                    Rfc7252::default().backoff(Attempt { initial, previous, number }, &mut rng);
                assert_eq!(next, previous * 2);
                previous = next;
            }
            assert_eq!(previous, initial * 16);
        }
        assert!((2.0..2.01).contains(&low) && (2.99..3.0).contains(&high), "{low}..{high}");
        assert!((sum / 10_000.0 - 2.5).abs() < 0.02);
    }
}
