//! FASOR: a fast timeout for losses of the link, and a slow one that lets a congested path drain
//! (draft-ietf-core-fasor-02).
//!
//! ```text
//!      +------------------------- b ------------------------+
//!      v                                                    |
//!   +- Fast --- a ---> FastSlowFast ---------- a -------> SlowFast -+
//!   b    ^                  |                                ^      a
//!   +----+-------- b -------+                                +------+
//!
//!   a: acknowledged after a retransmission: SlowRTO is measured again
//!   b: acknowledged after the first copy: a sample for FastRTO
//!
//!   Fast           F, 2 F, 4 F, ...
//!   FastSlowFast   F, max(S, 2 F), 2 F, 4 F, ...
//!   SlowFast       S, F, 2 F, 4 F, ...
//! ```
//! F is FastRTO, dithered once a message; S is SlowRTO.
//!
//! The Retransmission Count option, by which a client learns what copy was acknowledged, is not here: it
//! never got a number.

use alloc::boxed::Box;

use lowmesh_registry::Row;
use lowmesh_units::{Duration, Instant, Rng};

use super::{Attempt, EstimatorSnapshot, Timer, TimerSnapshot};
use crate::params::{
    ACK_TIMEOUT, BINARY_BACKOFF, FASOR_DITHER_MIN, FASOR_FIRST_DEVIATION, FASOR_INITIAL_SHARE,
    FASOR_SLOW_FACTOR, RFC6298_K, RTO_MAX, RTO_MIN, WAIT_MAX,
};
use crate::smoothed::Smoothed;

/// The row of [`Fasor`].
pub static ROW: Row<dyn Timer> = Row::<dyn Timer>::plain(
    "fasor",
    "Fast and slow timeouts (draft-ietf-core-fasor-02)",
    |_, ack_timeout| Box::new(Fasor::starting_at(ack_timeout)),
);

/// The FASOR timer of one destination.
#[derive(Clone, Copy, Debug)]
pub struct Fasor {
    smoothed: Smoothed,
    /// FastRTO, before dithering.
    fast: Duration,
    series: Series,
}

/// Which timeouts the next message goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Series {
    Fast,
    FastSlowFast(Slow),
    SlowFast(Slow),
}

/// From the first copy to the acknowledgement of whichever copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slow {
    elapsed: Duration,
}

impl Slow {
    /// SlowRTO (s4.2).
    fn rto(self) -> Duration {
        self.elapsed.mul_f64(FASOR_SLOW_FACTOR).clamp(RTO_MIN, WAIT_MAX)
    }
}

impl Series {
    const fn slow(self) -> Option<Slow> {
        match self {
            Self::Fast => None,
            Self::FastSlowFast(slow) | Self::SlowFast(slow) => Some(slow),
        }
    }
}

impl Fasor {
    /// A timer without samples whose FastRTO starts at `rto`.
    pub const fn starting_at(rto: Duration) -> Self {
        let smoothed = Smoothed::with_first_deviation(FASOR_FIRST_DEVIATION);
        Self { smoothed, fast: rto, series: Series::Fast }
    }
    /// FastRTO for one message: between RTO + SRTT / 4 and RTO + SRTT (s4.1).
    fn dithered(&self, rng: &mut Rng) -> Duration {
        let fast = self.fast.as_secs_f64();
        // draft-ietf-core-fasor-02 s4.1: without a sample, the round trip that RFC 6298 would have made
        // this timeout of.
        let srtt = self.smoothed.seconds().map_or(fast * FASOR_INITIAL_SHARE, |(srtt, _)| srtt);
        let wait = fast + srtt * rng.between(FASOR_DITHER_MIN, 1.0);
        Duration::from_secs_f64(wait).clamp(RTO_MIN, WAIT_MAX)
    }
}

impl Default for Fasor {
    fn default() -> Self {
        // draft-ietf-core-fasor-02 s4.1: a sender SHOULD set the initial RTO to 2 seconds.
        Self::starting_at(ACK_TIMEOUT)
    }
}

impl Timer for Fasor {
    fn initial(&mut self, _now: Instant, rng: &mut Rng) -> Duration {
        match self.series {
            Series::Fast | Series::FastSlowFast(_) => self.dithered(rng),
            Series::SlowFast(slow) => slow.rto(),
        }
    }
    fn backoff(&mut self, attempt: Attempt, rng: &mut Rng) -> Duration {
        let Attempt { initial, previous, number } = attempt;
        let wait = match (self.series, number) {
            (Series::FastSlowFast(slow), 1) => slow.rto().max(initial.mul_f64(BINARY_BACKOFF)),
            // The series goes on where it was before the slow step.
            (Series::FastSlowFast(_), 2) => initial.mul_f64(BINARY_BACKOFF),
            (Series::SlowFast(_), 1) => self.dithered(rng),
            _ => previous.mul_f64(BINARY_BACKOFF),
        };
        wait.clamp(RTO_MIN, WAIT_MAX)
    }
    fn on_sample(&mut self, rtt: Duration, retransmissions: u8, _now: Instant) {
        if retransmissions == 0 {
            let (srtt, rttvar) = self.smoothed.update(rtt);
            // draft-ietf-core-fasor-02 s4.1: no lower bound of 1 s (SHOULD NOT), since here the timeout is
            // the only way to find a loss.
            self.fast = Duration::from_secs_f64(srtt + RFC6298_K * rttvar).clamp(RTO_MIN, RTO_MAX);
            self.series = Series::Fast;
            return;
        }
        // draft-ietf-core-fasor-02 s4.2: not smoothed, and an ambiguous time is no sample for FastRTO.
        let slow = Slow { elapsed: rtt };
        self.series = match self.series {
            Series::Fast => Series::FastSlowFast(slow),
            Series::FastSlowFast(_) | Series::SlowFast(_) => Series::SlowFast(slow),
        };
    }
    fn on_give_up(&mut self, _now: Instant) {
        // draft-ietf-core-fasor-02 s4.3.1: the state changes when an acknowledgement arrives.
    }
    fn snapshot(&self) -> TimerSnapshot {
        let strong = self.smoothed.seconds().map(|(srtt, rttvar)| EstimatorSnapshot {
            srtt: Duration::from_secs_f64(srtt),
            rttvar: Duration::from_secs_f64(rttvar),
            rto: self.fast,
        });
        let weak = self.series.slow().map(|slow| EstimatorSnapshot {
            srtt: slow.elapsed,
            rttvar: Duration::ZERO,
            rto: slow.rto(),
        });
        TimerSnapshot {
            rto: self.fast,
            srtt: strong.map(|one| one.srtt),
            rttvar: strong.map(|one| one.rttvar),
            strong,
            weak,
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

    fn rng() -> Rng {
        Rng::stream(Seed(3), NodeId(1), Purpose::Coap)
    }

    fn sample(timer: &mut Fasor, ms: u64, retransmissions: u8) {
        timer.on_sample(Duration::from_millis(ms), retransmissions, Instant::ZERO);
    }

    /// The waits of one message that is never acknowledged.
    fn waits(timer: &mut Fasor, rng: &mut Rng) -> [Duration; 5] {
        let initial = timer.initial(Instant::ZERO, rng);
        let mut waits = [initial; 5];
        for number in 1..5 {
            let previous = waits[number - 1];
            let attempt = Attempt { initial, previous, number: number as u8 };
            waits[number] = timer.backoff(attempt, rng);
        }
        waits
    }

    fn fast(timer: &Fasor) -> Duration {
        timer.snapshot().rto
    }

    #[test]
    fn without_a_sample_the_first_timeout_lies_between_13_and_16_sixths_of_a_second() {
        // 2 s + a quarter to the whole of 2/3 s.
        let mut rng = rng();
        for _ in 0..1000 {
            let wait = Fasor::default().initial(Instant::ZERO, &mut rng).as_secs_f64();
            assert!((2.0 + 1.0 / 6.0..2.0 + 2.0 / 3.0).contains(&wait), "{wait}");
        }
    }

    #[test]
    fn a_timeout_is_dithered_by_a_quarter_to_the_whole_of_the_round_trip() {
        let (mut rng, mut timer) = (rng(), Fasor::default());
        sample(&mut timer, 400, 0);
        let (mut low, mut high) = (f64::MAX, f64::MIN);
        for _ in 0..10_000 {
            let wait = timer.initial(Instant::ZERO, &mut rng).as_secs_f64();
            (low, high) = (low.min(wait), high.max(wait));
        }
        // RTO 0.6 s: from 0.7 to 1.0 s.
        assert!((0.7..0.701).contains(&low) && (0.999..1.0).contains(&high), "{low}..{high}");
    }

    #[test]
    fn the_first_sample_starts_with_an_eighth_of_itself_as_deviation() {
        let mut timer = Fasor::default();
        sample(&mut timer, 1000, 0);
        // R + K R / 2K.
        assert_eq!(fast(&timer), Duration::from_millis(1500));
        sample(&mut timer, 1000, 0);
        // RTTVAR 3/4 of 1/8 s.
        assert_eq!(fast(&timer), Duration::from_millis(1375));
    }

    #[test]
    fn a_short_round_trip_makes_a_timeout_below_one_second() {
        let mut timer = Fasor::default();
        sample(&mut timer, 20, 0);
        assert_eq!(fast(&timer), Duration::from_millis(30));
    }

    #[test]
    fn after_an_exchange_without_retransmission_the_timeout_doubles_each_time() {
        let (mut rng, mut timer) = (rng(), Fasor::default());
        sample(&mut timer, 100, 0);
        let waits = waits(&mut timer, &mut rng);
        assert!(waits.windows(2).all(|pair| pair[1] == pair[0] * 2), "{waits:?}");
    }

    #[test]
    fn the_slow_timeout_is_half_again_the_time_from_the_first_copy_to_the_acknowledgement() {
        let mut timer = Fasor::default();
        sample(&mut timer, 100, 0);
        sample(&mut timer, 4000, 3);
        let slow = timer.snapshot().weak.expect("measured");
        assert_eq!((slow.srtt, slow.rto), (Duration::from_secs(4), Duration::from_secs(6)));
        assert_eq!(fast(&timer), Duration::from_millis(150), "FastRTO takes no ambiguous sample");
        sample(&mut timer, 1000, 1);
        let slow = timer.snapshot().weak.expect("measured").rto;
        assert_eq!(slow, Duration::from_millis(1500), "it is measured again and not smoothed");
    }

    #[test]
    fn after_one_ambiguous_exchange_the_slow_timeout_comes_second() {
        let (mut rng, mut timer) = (rng(), Fasor::default());
        sample(&mut timer, 100, 0);
        sample(&mut timer, 2000, 2);
        let [first, second, third, fourth, fifth] = waits(&mut timer, &mut rng);
        assert!(first < Duration::from_millis(250), "the probe is fast: {first}");
        assert_eq!(second, Duration::from_secs(3));
        assert_eq!([third, fourth, fifth], [first * 2, first * 4, first * 8]);
    }

    #[test]
    fn a_slow_timeout_shorter_than_two_fast_ones_does_not_come_second() {
        let (mut rng, mut timer) = (rng(), Fasor::default());
        sample(&mut timer, 1000, 0);
        sample(&mut timer, 1200, 1);
        let [first, second, third, ..] = waits(&mut timer, &mut rng);
        assert_eq!([second, third], [first * 2, first * 2]);
    }

    #[test]
    fn after_two_ambiguous_exchanges_the_slow_timeout_comes_first() {
        let (mut rng, mut timer) = (rng(), Fasor::default());
        sample(&mut timer, 100, 0);
        for _ in 0..3 {
            sample(&mut timer, 2000, 1);
        }
        let [first, second, third, fourth, _] = waits(&mut timer, &mut rng);
        assert_eq!(first, Duration::from_secs(3));
        assert!(second < Duration::from_millis(250), "then the fast series begins: {second}");
        assert_eq!([third, fourth], [second * 2, second * 4]);
    }

    #[test]
    fn an_acknowledgement_of_the_first_copy_leads_back_to_fast_from_everywhere() {
        for ambiguous in 1..4 {
            let (mut rng, mut timer) = (rng(), Fasor::default());
            for _ in 0..ambiguous {
                sample(&mut timer, 5000, 1);
            }
            sample(&mut timer, 100, 0);
            assert_eq!(timer.snapshot().weak, None);
            let waits = waits(&mut timer, &mut rng);
            assert!(waits.windows(2).all(|pair| pair[1] == pair[0] * 2), "{waits:?}");
        }
    }

    #[test]
    fn giving_up_changes_nothing() {
        let mut timer = Fasor::default();
        sample(&mut timer, 2000, 1);
        let before = timer.snapshot();
        timer.on_give_up(Instant::ZERO);
        assert_eq!(timer.snapshot(), before);
    }
}
