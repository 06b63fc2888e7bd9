//! CoCoA: a timeout out of two estimators, with a back-off factor that depends on the timeout and a
//! memory that ages (draft-ietf-core-cocoa-03 s4; Righetti et al. 2023 s II-E).
//!
//! ```text
//!   ACK after the first copy   --> strong estimator --+
//!                                                     +--> overall RTO --> dithered first timeout, x VBF, ...
//!   ACK after a retransmission --> weak estimator ----+        ^
//!                                                         ageing while no sample comes
//! ```
//!
//! The draft, the papers and the testbed's code differ in numbers and in small rules; each is a
//! named [`Parameters`] set with a [row](rows). The rate limit of the draft's s5 (non-confirmable messages) is not here.

mod ageing;
mod estimator;
pub mod parameters;
pub mod rows;

pub use parameters::{Ageing, BackoffFactor, FactorOf, FirstSample, Pair, Parameters, UpdateOrder};

use lowmesh_units::{Duration, Instant, Rng};

use self::ageing::Occasion;
use self::estimator::Estimator;
use super::{Attempt, Timer, TimerSnapshot};
use crate::params::{ACK_RANDOM_FACTOR, ACK_TIMEOUT, RTO_MAX, RTO_MIN, WAIT_MAX};

/// The CoCoA timer of one destination.
#[derive(Clone, Debug)]
pub struct Cocoa {
    parameters: Parameters,
    strong: Estimator,
    weak: Estimator,
    /// Which estimator moved the overall RTO last.
    latest: Strength,
    /// The overall RTO, before dithering.
    overall: Duration,
    /// When it last changed.
    updated: Instant,
}

/// Which estimator a sample goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strength {
    Strong,
    Weak,
}

impl Cocoa {
    /// A timer without samples: the overall RTO starts at 2 s.
    pub const fn new(parameters: &Parameters) -> Self {
        Self::starting_at(parameters, ACK_TIMEOUT)
    }
    /// A timer without samples whose overall RTO starts at `ack_timeout`.
    pub const fn starting_at(parameters: &Parameters, ack_timeout: Duration) -> Self {
        Self {
            parameters: *parameters,
            strong: Estimator::new(parameters.k.strong),
            weak: Estimator::new(parameters.k.weak),
            latest: Strength::Strong,
            overall: ack_timeout,
            updated: Instant::ZERO,
        }
    }
    /// The overall RTO as it is used at `now`, aged but not dithered.
    pub fn overall_at(&self, now: Instant) -> Duration {
        ageing::aged(self.parameters.ageing, Occasion::Use, self.overall, self.updated, now).rto
    }
    fn age(&mut self, occasion: Occasion, now: Instant) {
        let aged = ageing::aged(self.parameters.ageing, occasion, self.overall, self.updated, now);
        self.overall = aged.rto;
        self.updated = aged.updated;
    }
    fn strength(&self, retransmissions: u8) -> Option<Strength> {
        match retransmissions {
            0 => Some(Strength::Strong),
            n if n <= self.parameters.weak_retransmissions_max => Some(Strength::Weak),
            _ => None,
        }
    }
}

impl Timer for Cocoa {
    fn initial(&mut self, now: Instant, rng: &mut Rng) -> Duration {
        self.age(Occasion::Use, now);
        dithered(self.overall, rng)
    }
    fn backoff(&mut self, attempt: Attempt, rng: &mut Rng) -> Duration {
        let set = &self.parameters;
        let factor = set.backoff.of(match set.factor_of {
            FactorOf::Initial => attempt.initial,
            FactorOf::Overall => self.overall,
        });
        // The truncation never makes a retransmission wait less than the copy before it.
        let next = attempt.previous.mul_f64(factor).min(set.backoff_max).max(attempt.previous);
        let next = if set.dithers_retransmissions { dithered(next, rng) } else { next };
        next.clamp(RTO_MIN, WAIT_MAX)
    }
    fn on_sample(&mut self, rtt: Duration, retransmissions: u8, now: Instant) {
        let Some(strength) = self.strength(retransmissions) else { return };
        self.age(Occasion::Sample, now);
        let set = &self.parameters;
        self.updated = now;
        let r = rtt.as_secs_f64();
        let untouched = self.strong.snapshot().is_none() && self.weak.snapshot().is_none();
        if set.first_sample == FirstSample::InitialisesBoth && untouched {
            self.strong.initialise(r);
            self.weak.initialise(r);
            return;
        }
        let (estimator, lambda) = match strength {
            Strength::Strong => (&mut self.strong, set.lambda.strong),
            Strength::Weak => (&mut self.weak, set.lambda.weak),
        };
        let rto = estimator.update(r, set.alpha, set.beta, set.update_order);
        let overall = lambda * rto + (1.0 - lambda) * self.overall.as_secs_f64();
        self.overall = Duration::from_secs_f64(overall).clamp(RTO_MIN, RTO_MAX);
        self.latest = strength;
    }
    fn on_give_up(&mut self, _now: Instant) {}
    fn snapshot(&self) -> TimerSnapshot {
        let (strong, weak) = (self.strong.snapshot(), self.weak.snapshot());
        let latest = match self.latest {
            Strength::Strong => strong,
            Strength::Weak => weak,
        };
        TimerSnapshot {
            rto: self.overall,
            srtt: latest.map(|one| one.srtt),
            rttvar: latest.map(|one| one.rttvar),
            strong,
            weak,
        }
    }
    fn name(&self) -> &'static str {
        self.parameters.name
    }
}

/// A random wait between `rto` and `rto` * ACK_RANDOM_FACTOR.
fn dithered(rto: Duration, rng: &mut Rng) -> Duration {
    rto.mul_f64(rng.between(1.0, ACK_RANDOM_FACTOR))
}

#[cfg(test)]
mod tests;
