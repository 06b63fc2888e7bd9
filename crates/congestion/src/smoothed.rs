//! Round-trip times smoothed as TCP and QUIC do (RFC 6298 s2.2 and s2.3, RFC 9002 s5.3). Which samples
//! count is left to the caller.

use lowmesh_units::Duration;

use crate::params::{RFC6298_ALPHA, RFC6298_BETA, RFC6298_FIRST_DEVIATION};

/// SRTT and RTTVAR, once there is a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Smoothed {
    /// (SRTT, RTTVAR), seconds.
    estimate: Option<(f64, f64)>,
    /// What part of the first sample is its RTTVAR.
    first_deviation: f64,
}

impl Smoothed {
    /// No sample yet.
    pub(crate) const fn new() -> Self {
        Self::with_first_deviation(RFC6298_FIRST_DEVIATION)
    }
    /// No sample yet; the first will have this part of itself as RTTVAR.
    pub(crate) const fn with_first_deviation(first_deviation: f64) -> Self {
        Self { estimate: None, first_deviation }
    }
    /// Takes a sample and returns (SRTT, RTTVAR) in seconds.
    pub(crate) fn update(&mut self, rtt: Duration) -> (f64, f64) {
        let r = rtt.as_secs_f64();
        let estimate = match self.estimate {
            // RFC 6298 s2.2.
            None => (r, r * self.first_deviation),
            // RFC 6298 s2.3: RTTVAR is updated with the old SRTT.
            Some((srtt, rttvar)) => (
                (1.0 - RFC6298_ALPHA) * srtt + RFC6298_ALPHA * r,
                (1.0 - RFC6298_BETA) * rttvar + RFC6298_BETA * libm::fabs(srtt - r),
            ),
        };
        self.estimate = Some(estimate);
        estimate
    }
    /// (SRTT, RTTVAR) in seconds.
    pub(crate) const fn seconds(&self) -> Option<(f64, f64)> {
        self.estimate
    }
    /// The smoothed round-trip time.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.estimate.map(|(srtt, _)| Duration::from_secs_f64(srtt))
    }
}
