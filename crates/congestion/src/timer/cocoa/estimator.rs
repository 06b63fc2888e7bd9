//! One RTT estimator: a smoothed round-trip time and its mean deviation (RFC 6298 s2, as CoCoA
//! changes it).

use lowmesh_units::Duration;

use super::parameters::UpdateOrder;
use crate::params::RTO_MAX;
use crate::timer::EstimatorSnapshot;

/// RTT and RTTVAR in seconds, once there is a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimator {
    k: f64,
    estimate: Option<Estimate>,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    rtt: f64,
    rttvar: f64,
}

impl Estimator {
    pub(super) const fn new(k: f64) -> Self {
        Self { k, estimate: None }
    }
    /// Takes `r` seconds as the first sample: RTT = R, RTTVAR = R / 2.
    pub(super) const fn initialise(&mut self, r: f64) {
        self.estimate = Some(Estimate { rtt: r, rttvar: r / 2.0 });
    }
    /// Takes a sample of `r` seconds and returns RTT + K * RTTVAR in seconds, at most [`RTO_MAX`].
    pub(super) fn update(&mut self, r: f64, alpha: f64, beta: f64, order: UpdateOrder) -> f64 {
        let Some(Estimate { rtt: old, rttvar }) = self.estimate else {
            self.initialise(r);
            return self.rto(r, r / 2.0);
        };
        let rtt = (1.0 - alpha) * old + alpha * r;
        let deviation = match order {
            UpdateOrder::RttFirst => libm::fabs(rtt - r),
            UpdateOrder::VarianceFirst => libm::fabs(old - r),
        };
        let rttvar = (1.0 - beta) * rttvar + beta * deviation;
        self.estimate = Some(Estimate { rtt, rttvar });
        self.rto(rtt, rttvar)
    }
    fn rto(&self, rtt: f64, rttvar: f64) -> f64 {
        (rtt + self.k * rttvar).min(RTO_MAX.as_secs_f64())
    }
    pub(super) fn snapshot(&self) -> Option<EstimatorSnapshot> {
        self.estimate.map(|Estimate { rtt, rttvar }| EstimatorSnapshot {
            srtt: Duration::from_secs_f64(rtt),
            rttvar: Duration::from_secs_f64(rttvar),
            rto: Duration::from_secs_f64(self.rto(rtt, rttvar)),
        })
    }
}
