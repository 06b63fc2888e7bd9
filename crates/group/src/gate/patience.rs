//! How long a gate waits for an answer: the timeout of RFC 6298 over all members of its domain.
//!
//! ```text
//!   sent ── timeout ──> repeated ── 2 timeouts ──> repeated ── 4 ──> repeated ── the copies of CoAP ──> lost
//!                                └ 1.5: its place is free, the request goes on
//! ```
//! A repeated request has a new message ID, so each answer is a sample without ambiguity. Only idempotent requests are
//! repeated.
//!
//! One query gives a sample of each member, so that the estimate of the domain is fresh when that of a single member is
//! not. The timeout may be far below ACK_TIMEOUT (RFC 7252 s4.8.1), because the gate limits what is under way.

use lowmesh_units::Duration;

/// The share of a new sample in the mean and in its deviation: RFC 6298 s2.3, 1/8 and 1/4.
const SHARE: u64 = 8;
const DEVIATION_SHARE: u64 = 4;
/// Deviations in a timeout: RFC 6298 s2.3.
const DEVIATIONS: u64 = 4;
/// The least timeout in round trips; ours: the times of a quiet mesh hardly vary, and a retry of the MAC doubles one.
const ROUND_TRIPS_MIN: u64 = 3;
/// The largest factor of a timeout after losses in a row; ours, below the 16 copies that CoAP's own back-off reaches.
const STRETCH_MAX: u64 = 8;
/// The longest timeout: RFC 6298 s2.5 allows a bound of 60 s; ours is half of it.
const TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// The wait for an answer before there is a sample: ACK_TIMEOUT of RFC 7252 s4.8.
const FIRST: Duration = Duration::from_secs(2);
/// How often a request is repeated; ours. The last one has all copies of CoAP, so no member is given up earlier.
const TIMES_MAX: u8 = 3;

/// Round-trip times of a domain.
#[derive(Clone, Debug)]
pub(super) struct Patience {
    least: Duration,
    mean: Option<Duration>,
    deviation: Duration,
    stretch: u64,
}

impl Patience {
    /// No samples yet; no timeout is below `least`.
    pub(super) const fn new(least: Duration) -> Self {
        Self { least, mean: None, deviation: Duration::ZERO, stretch: 1 }
    }
    /// The same bound, without samples.
    pub(super) const fn renewed(&self) -> Self {
        Self::new(self.least)
    }
    /// The smoothed round-trip time.
    pub(super) fn round_trip(&self) -> Duration {
        self.mean.unwrap_or(FIRST)
    }
    /// An answer came, however late.
    pub(super) fn sample(&mut self, rtt: Duration) {
        self.stretch = 1;
        let Some(mean) = self.mean else {
            (self.mean, self.deviation) = (Some(rtt), rtt / 2);
            return;
        };
        let deviation = mean.abs_diff(rtt);
        self.deviation = (self.deviation * (DEVIATION_SHARE - 1) + deviation) / DEVIATION_SHARE;
        self.mean = Some((mean * (SHARE - 1) + rtt) / SHARE);
    }
    /// A timeout passed: the next ones are longer until an answer comes (RFC 6298 s5.5).
    pub(super) fn lose(&mut self) {
        self.stretch = (self.stretch * 2).min(STRETCH_MAX);
    }
    /// The wait before a request is repeated that was repeated so many times before. `None` leaves the rest to CoAP.
    pub(super) fn again(&self, times: u8) -> Option<Duration> {
        // The timeout itself doubles with each loss.
        self.timeout().filter(|_| times < TIMES_MAX)
    }
    /// How long a request keeps its place after it was sent or repeated: longer than the first wait, shorter than the
    /// second.
    pub(super) fn place(&self) -> Duration {
        self.timeout().map_or(FIRST, |timeout| timeout * 3 / 2)
    }
    /// The timeout, if there is a sample.
    fn timeout(&self) -> Option<Duration> {
        let mean = self.mean?;
        let timeout = (mean + self.deviation * DEVIATIONS).max(mean * ROUND_TRIPS_MIN);
        Some((timeout.max(self.least) * self.stretch).min(TIMEOUT_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_millis(50);

    #[test]
    fn the_timeout_follows_the_answers_and_is_never_below_its_bounds() {
        let mut patience = Patience::new(LEAST);
        assert_eq!(patience.timeout(), None);
        for _ in 0..100 {
            patience.sample(Duration::from_millis(10));
        }
        assert_eq!(patience.timeout(), Some(LEAST));
        for _ in 0..100 {
            patience.sample(Duration::from_millis(400));
        }
        let timeout = patience.timeout().expect("there are samples");
        assert!((1199..1250).contains(&timeout.as_millis()), "{timeout}");
    }

    #[test]
    fn losses_stretch_the_timeout_until_an_answer_comes() {
        let mut patience = Patience::new(LEAST);
        patience.sample(Duration::from_millis(10));
        let before = patience.timeout().expect("there is a sample");
        for _ in 0..9 {
            patience.lose();
        }
        assert_eq!(patience.timeout(), Some(before * STRETCH_MAX));
        patience.sample(Duration::from_millis(10));
        assert_eq!(patience.timeout(), Some(LEAST));
    }
}
