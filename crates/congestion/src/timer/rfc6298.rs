//! TCP's retransmission timer (RFC 6298), with Karn's algorithm (s3).

use alloc::boxed::Box;

use lowmesh_registry::Row;
use lowmesh_units::{Duration, Instant, Rng};

use super::{Attempt, EstimatorSnapshot, Timer, TimerSnapshot};
use crate::params::{BINARY_BACKOFF, RFC6298_INITIAL_RTO, RFC6298_K, RFC6298_MIN_RTO, RTO_MAX};
use crate::smoothed::Smoothed;

/// The row of [`Rfc6298`].
pub static ROW: Row<dyn Timer> =
    Row::<dyn Timer>::plain("rfc6298", "TCP's timer (RFC 6298)", |_, ack_timeout| {
        Box::new(Rfc6298::starting_at(ack_timeout))
    });

/// SRTT and RTTVAR of unambiguous samples; a backed-off timeout stays until the next such sample.
#[derive(Clone, Copy, Debug)]
pub struct Rfc6298 {
    smoothed: Smoothed,
    rto: Duration,
}

impl Rfc6298 {
    /// A timer without samples that starts at `rto`.
    pub const fn starting_at(rto: Duration) -> Self {
        Self { smoothed: Smoothed::new(), rto }
    }
}

impl Default for Rfc6298 {
    fn default() -> Self {
        // RFC 6298 s2.1: until a sample is there, the sender SHOULD set RTO to 1 s.
        Self::starting_at(RFC6298_INITIAL_RTO)
    }
}

impl Timer for Rfc6298 {
    fn initial(&mut self, _now: Instant, _rng: &mut Rng) -> Duration {
        self.rto
    }
    fn backoff(&mut self, attempt: Attempt, _rng: &mut Rng) -> Duration {
        // RFC 6298 s5.5: RTO <- RTO * 2, bounded by the maximum of s2.5.
        let doubled = attempt.previous.mul_f64(BINARY_BACKOFF).clamp(RFC6298_MIN_RTO, RTO_MAX);
        self.rto = self.rto.max(doubled);
        doubled
    }
    fn on_sample(&mut self, rtt: Duration, retransmissions: u8, _now: Instant) {
        // RFC 6298 s3: samples MUST NOT be made of segments that were retransmitted.
        if retransmissions > 0 {
            return;
        }
        let (srtt, rttvar) = self.smoothed.update(rtt);
        // RFC 6298 s2.4: less than 1 s SHOULD be rounded up to 1 s; s2.5: a maximum MAY be placed.
        self.rto =
            Duration::from_secs_f64(srtt + RFC6298_K * rttvar).clamp(RFC6298_MIN_RTO, RTO_MAX);
    }
    fn on_give_up(&mut self, _now: Instant) {}
    fn snapshot(&self) -> TimerSnapshot {
        let strong = self.smoothed.seconds().map(|(srtt, rttvar)| EstimatorSnapshot {
            srtt: Duration::from_secs_f64(srtt),
            rttvar: Duration::from_secs_f64(rttvar),
            rto: Duration::from_secs_f64(srtt + RFC6298_K * rttvar),
        });
        TimerSnapshot {
            rto: self.rto,
            srtt: strong.map(|one| one.srtt),
            rttvar: strong.map(|one| one.rttvar),
            strong,
            weak: None,
        }
    }
    fn name(&self) -> &'static str {
        ROW.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::{NodeId, Purpose, Seed};

    fn sample(timer: &mut Rfc6298, ms: u64, retransmissions: u8) {
        timer.on_sample(Duration::from_millis(ms), retransmissions, Instant::ZERO);
    }

    #[test]
    fn the_first_sample_gives_three_times_itself_and_later_ones_are_smoothed() {
        let mut timer = Rfc6298::default();
        assert_eq!(timer.snapshot().rto, Duration::from_secs(1));
        sample(&mut timer, 2000, 0);
        assert_eq!(timer.snapshot().rto, Duration::from_secs(6));
        sample(&mut timer, 1000, 0);
        // SRTT 1.875 s; RTTVAR 0.75 * 1 + 0.25 * |2 - 1| = 1 s.
        assert_eq!(timer.snapshot().rto, Duration::from_millis(5875));
    }

    #[test]
    fn short_round_trips_do_not_bring_the_timeout_under_one_second() {
        let mut timer = Rfc6298::default();
        sample(&mut timer, 20, 0);
        assert_eq!(timer.snapshot().rto, Duration::from_secs(1));
    }

    #[test]
    fn a_backed_off_timeout_stays_until_an_unambiguous_sample() {
        let mut rng = Rng::stream(Seed(1), NodeId(1), Purpose::Coap);
        let mut timer = Rfc6298::default();
        sample(&mut timer, 1000, 0);
        let initial = timer.initial(Instant::ZERO, &mut rng);
        let attempt = Attempt { initial, previous: initial, number: 1 };
        assert_eq!(timer.backoff(attempt, &mut rng), Duration::from_secs(6));
        sample(&mut timer, 4000, 1);
        assert_eq!(timer.initial(Instant::ZERO, &mut rng), Duration::from_secs(6));
        sample(&mut timer, 1000, 0);
        assert!(timer.initial(Instant::ZERO, &mut rng) < Duration::from_secs(3));
    }
}
