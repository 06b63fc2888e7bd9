//! What makes one run better than another.

use lowmesh_units::Duration;

use crate::metrics::Metrics;

/// What a halving of the 95th percentile of the delay is worth in the weighted objective, in TDR: ten points.
///
/// Righetti et al. 2023 found 6CoCoA 15 % better in TDR and 25 % in delay; at this rate those 25 % weigh four
/// points, so delivery comes first and a timer cannot buy speed by giving up.
pub const HALVING_WORTH: f64 = 0.1;

/// What to optimise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// Transaction delivery ratio, to be high.
    Tdr,
    /// 95th percentile of the delay in milliseconds, to be low.
    DelayP95,
    /// `tdr - 0.1 * log2(delay_p95 / 1 s)`, to be high.
    Weighted,
}

impl Objective {
    /// Every name, as written on the command line.
    pub const NAMES: &'static [&'static str] = &["tdr", "delay_p95", "weighted"];

    /// The objective of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::Tdr, Self::DelayP95, Self::Weighted].into_iter().find(|one| one.name() == name)
    }
    /// Its name, as written on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tdr => "tdr",
            Self::DelayP95 => "delay_p95",
            Self::Weighted => "weighted",
        }
    }
    /// Whether a lower value is better.
    pub const fn falls(self) -> bool {
        matches!(self, Self::DelayP95)
    }
    /// The value of a run of length `simulated`.
    ///
    /// A run in which nothing was acknowledged is as bad as can be: it has delivered nothing, and its delay is
    /// its whole length.
    pub fn of(self, metrics: &Metrics, simulated: Duration) -> f64 {
        let tdr = metrics.tdr.unwrap_or(0.0);
        let delay_ms = metrics.delay_p95_ms.unwrap_or(simulated.as_millis_f64());
        match self {
            Self::Tdr => tdr,
            Self::DelayP95 => delay_ms,
            // A delay under a millisecond would make any TDR irrelevant; there is none on a radio.
            Self::Weighted => tdr - HALVING_WORTH * libm::log2(delay_ms.max(1.0) / 1000.0),
        }
    }
    /// How much better `ours` is than `theirs`; positive means better for every objective.
    pub fn gain(self, ours: f64, theirs: f64) -> f64 {
        if self.falls() { theirs - ours } else { ours - theirs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(tdr: f64, delay_p95_ms: f64) -> Metrics {
        Metrics { tdr: Some(tdr), delay_p95_ms: Some(delay_p95_ms), ..Metrics::default() }
    }

    #[test]
    fn half_the_delay_is_worth_ten_points_of_delivery() {
        let value = |tdr, delay| Objective::Weighted.of(&metrics(tdr, delay), Duration::ZERO);
        assert!((value(0.9, 1000.0) - 0.9).abs() < 1e-12);
        assert!((value(0.8, 4000.0) - value(0.9, 8000.0)).abs() < 1e-12);
    }

    #[test]
    fn a_run_that_delivered_nothing_is_worse_than_any_that_did() {
        let hour = Duration::from_secs(3600);
        for name in Objective::NAMES {
            let objective = Objective::by_name(name).expect("a listed name");
            assert_eq!(objective.name(), *name);
            let (none, poor) = (Metrics::default(), metrics(0.01, 90_000.0));
            assert!(objective.gain(objective.of(&poor, hour), objective.of(&none, hour)) > 0.0);
        }
        assert_eq!(Objective::by_name("speed"), None);
    }

    #[test]
    fn a_gain_is_positive_when_delivery_rises_or_delay_falls() {
        assert!(Objective::Tdr.gain(0.9, 0.8) > 0.0);
        assert!(Objective::DelayP95.gain(900.0, 800.0) < 0.0);
        assert!(Objective::Weighted.gain(0.9, 0.8) > 0.0);
    }
}
