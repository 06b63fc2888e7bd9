//! The retransmission timeout as Linux computes it: RFC 6298 with the mean deviation of 4.4BSD, the largest deviation of
//! a window, and a least spread in place of a least timeout.

use lowmesh_units::Duration;

use crate::params::{RTO_FALLBACK, RTO_INITIAL, RTO_MAX, RTO_SPREAD_MIN, TICK};

/// The estimator of one connection. SRTT is kept in eighths and deviations in quarters of a microsecond.
#[derive(Clone, Copy, Debug)]
pub struct Estimator {
    srtt_eighths: i64,
    deviation: i64,
    deviation_max: i64,
    spread: i64,
    /// The window of `deviation_max` ends when this position is acknowledged.
    window_end: i64,
    rto: Duration,
    backoff: u32,
}

/// The least spread in microseconds.
const SPREAD_MIN: i64 = RTO_SPREAD_MIN.as_micros() as i64;

impl Estimator {
    /// An estimator without samples.
    pub const fn new() -> Self {
        Self {
            srtt_eighths: 0,
            deviation: 0,
            deviation_max: SPREAD_MIN,
            spread: SPREAD_MIN,
            window_end: 0,
            rto: RTO_INITIAL,
            backoff: 0,
        }
    }
    /// A sample came with an acknowledgement of everything up to `una`; `next` is the end of what was sent.
    pub fn sample(&mut self, rtt: Duration, una: i64, next: i64) {
        let rtt = i64::try_from(rtt.as_micros()).unwrap_or(i64::MAX / 16);
        if self.srtt_eighths == 0 {
            self.srtt_eighths = rtt * 8;
            self.deviation = rtt * 2;
            self.spread = self.deviation.max(SPREAD_MIN);
            self.deviation_max = self.spread;
            self.window_end = next;
        } else {
            self.update(rtt);
            if una > self.window_end {
                if self.deviation_max < self.spread {
                    self.spread -= (self.spread - self.deviation_max) / 4;
                }
                self.window_end = next;
                self.deviation_max = SPREAD_MIN;
            }
        }
        self.srtt_eighths = self.srtt_eighths.max(1);
        let rto = self.srtt_eighths / 8 + self.spread;
        self.rto = rounded(Duration::from_micros(rto as u64)).min(RTO_MAX);
        // RFC 6298 s5.7 and Karn: only a valid sample ends the back-off.
        self.backoff = 0;
    }
    /// The handshake is over without a sample, because its SYN was sent again (RFC 6298 s5.7).
    pub const fn fall_back(&mut self) {
        self.rto = RTO_FALLBACK;
    }
    fn update(&mut self, rtt: i64) {
        let error = rtt - self.srtt_eighths / 8;
        self.srtt_eighths += error;
        // A faster round trip raises the deviation by an eighth only, so that a queue that drains causes no long RTO.
        let mut change = error.abs() - self.deviation / 4;
        if error < 0 && change > 0 {
            change /= 8;
        }
        self.deviation += change;
        if self.deviation > self.deviation_max {
            self.deviation_max = self.deviation;
            self.spread = self.spread.max(self.deviation_max);
        }
    }
    /// A timeout doubles the RTO (RFC 6298 s5.5).
    pub fn back_off(&mut self) {
        self.backoff += 1;
        self.rto = (self.rto * 2).min(RTO_MAX);
    }
    /// The timeout with its back-off.
    pub const fn rto(&self) -> Duration {
        self.rto
    }
    /// The smoothed round-trip time, once there is a sample.
    pub fn srtt(&self) -> Option<Duration> {
        (self.srtt_eighths > 0).then(|| Duration::from_micros((self.srtt_eighths / 8) as u64))
    }
    /// Timeouts since the last sample.
    pub const fn backoff(&self) -> u32 {
        self.backoff
    }
}

/// `span` in whole ticks, rounded up.
pub fn rounded(span: Duration) -> Duration {
    TICK * span.as_nanos().div_ceil(TICK.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn the_first_timeouts_are_those_of_a_measured_kernel() {
        for (rtt, rto) in [(650_571, 1_952), (645_642, 1_940), (10_000, 212)] {
            let mut estimator = Estimator::new();
            estimator.sample(us(rtt), 1, 1);
            assert_eq!(estimator.rto(), Duration::from_millis(rto));
        }
    }

    #[test]
    fn a_steady_path_comes_to_srtt_and_the_least_spread() {
        let mut estimator = Estimator::new();
        for sample in 0..100 {
            estimator.sample(us(600_000), sample + 1, sample + 2);
        }
        assert_eq!(estimator.srtt(), Some(us(600_000)));
        // The spread comes to 200 ms from above, by quarters of whole microseconds: one tick remains.
        assert_eq!(estimator.rto(), Duration::from_millis(804));
    }

    #[test]
    fn a_timeout_doubles_up_to_two_minutes_and_a_sample_ends_it() {
        let mut estimator = Estimator::new();
        estimator.sample(us(600_000), 1, 1);
        for _ in 0..12 {
            estimator.back_off();
        }
        assert_eq!((estimator.rto(), estimator.backoff()), (RTO_MAX, 12));
        estimator.sample(us(600_000), 2, 3);
        assert_eq!(estimator.backoff(), 0);
        assert!(estimator.rto() < Duration::from_secs(2));
    }

    #[test]
    fn without_a_sample_of_the_handshake_data_waits_three_seconds() {
        let mut estimator = Estimator::new();
        estimator.fall_back();
        assert_eq!((estimator.rto(), estimator.srtt()), (RTO_FALLBACK, None));
        estimator.sample(us(10_000), 1, 1);
        assert_eq!(estimator.rto(), Duration::from_millis(212));
    }

    #[test]
    fn a_faster_round_trip_raises_the_deviation_less_than_a_slower_one() {
        let after = |rtt| {
            let mut estimator = Estimator::new();
            for sample in 0..50 {
                estimator.sample(us(1_000_000), sample + 1, sample + 2);
            }
            estimator.sample(us(rtt), 60, 61);
            estimator.rto() - estimator.srtt().expect("sampled")
        };
        assert!(after(2_000_000) > after(1) + Duration::from_millis(50));
    }
}
