//! The value of a comparison with its uncertainty: a mean with Student's t, or medians with order statistics.

use std::collections::BTreeMap;

use super::claim::Statistic;
use crate::digits::{with_ends, with_interval};
use crate::medians::Medians;
use crate::statistics::{Estimate, QUANTILE};

/// Numbers by seed.
pub(super) type BySeed = BTreeMap<u64, f64>;

/// The values of one side of a comparison, or of their difference.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Side {
    /// By seed; of an experiment, by its first seed.
    pub runs: BySeed,
    /// The medians of the same runs; absent without runs.
    pub medians: Option<Medians>,
}

/// A value that is compared with a claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A mean over runs.
    Mean(Estimate),
    /// Medians over runs.
    Median(Medians),
}

impl Value {
    /// The value of `side` by the `statistic` of a test; absent without runs.
    pub fn of(side: &Side, statistic: Statistic) -> Option<Self> {
        match statistic {
            Statistic::Mean => Estimate::of(side.runs.values().copied()).map(Self::Mean),
            Statistic::Median => side.medians.clone().map(Self::Median),
        }
    }

    /// The mean or the median itself.
    pub fn centre(&self) -> f64 {
        match self {
            Self::Mean(estimate) => estimate.mean,
            Self::Median(medians) => medians.centre(),
        }
    }

    /// The number of runs or pairs of runs behind it.
    pub fn n(&self) -> usize {
        match self {
            Self::Mean(estimate) => estimate.n,
            Self::Median(medians) => medians.n(),
        }
    }

    /// Its interval as one of a `family`; absent if there are too few runs.
    pub fn interval(&self, family: usize) -> Option<(f64, f64)> {
        match self {
            Self::Mean(estimate) => {
                let half = estimate.together(family).ci95?;
                Some((estimate.mean - half, estimate.mean + half))
            }
            Self::Median(medians) => medians.interval((1.0 - QUANTILE) / family.max(1) as f64),
        }
    }

    /// The value, if its interval has no width.
    pub fn exact(&self, family: usize) -> Option<f64> {
        let level = match self {
            Self::Mean(estimate) => estimate.ci95 == Some(0.0),
            Self::Median(_) => {
                self.interval(family).is_some_and(|(low, high)| low.total_cmp(&high).is_eq())
            }
        };
        level.then(|| self.centre())
    }

    /// Whether the whole interval is above `bound`; false if there is none.
    pub fn lies_above(&self, bound: f64, family: usize) -> bool {
        match self {
            Self::Mean(estimate) => estimate.lies_above(bound, family),
            Self::Median(_) => self.interval(family).is_some_and(|(low, _)| low > bound),
        }
    }

    /// The same below `bound`.
    pub fn lies_below(&self, bound: f64, family: usize) -> bool {
        match self {
            Self::Mean(estimate) => estimate.lies_below(bound, family),
            Self::Median(_) => self.interval(family).is_some_and(|(_, high)| high < bound),
        }
    }

    /// The mean with its interval as "2.0 ± 0.3", the median as "2.0 (1.6 to 2.7)".
    pub fn words(&self) -> String {
        match self {
            Self::Mean(estimate) => with_interval(*estimate),
            Self::Median(medians) => with_ends(medians.centre(), self.interval(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medians::Sample;

    fn of(values: &[f64]) -> Value {
        Value::Median(Medians::Of(Sample::of(values.iter().copied()).expect("numbers")))
    }

    #[test]
    fn a_median_is_above_what_its_low_end_is_above() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let median = of(&values);
        assert_eq!(
            (median.centre(), median.n(), median.interval(1)),
            (10.5, 20, Some((6.0, 15.0)))
        );
        assert!(median.lies_above(5.9, 1) && !median.lies_above(6.0, 1));
        assert!(!median.lies_above(5.9, 40), "a family has wider intervals");
        assert!(median.lies_below(15.1, 1) && !median.lies_below(15.0, 1));
        assert!(!of(&values[..4]).lies_above(-9.0, 1), "four runs decide nothing");
    }

    #[test]
    fn equal_values_have_no_width() {
        assert_eq!(of(&[3.0; 20]).exact(1), Some(3.0));
        assert_eq!(of(&[3.0; 2]).exact(1), None, "two runs have no interval");
        assert_eq!(of(&[3.0; 20]).words(), "3 (3 to 3)");
        assert_eq!(of(&[1.0, 2.0]).words(), "1.500");
    }
}
