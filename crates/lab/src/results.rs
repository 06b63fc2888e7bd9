//! The results of a plan: for every point of a sweep its runs, in the order of the plan.

use crate::runner::{Failure, Run};
use crate::scenario::Scenario;
use crate::statistics::Estimate;

/// One point of a sweep: a scenario, and which keys were set to what to get it.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Swept keys and their values, in the order of the sweep; empty without one.
    pub settings: Vec<(String, String)>,
    /// The scenario with these settings.
    pub scenario: Scenario,
}

/// A point with what its runs gave.
#[derive(Clone, Debug, PartialEq)]
pub struct PointResult {
    /// The point.
    pub point: Point,
    /// Runs that finished, in the order of seeds.
    pub runs: Vec<Run>,
    /// Runs that failed, in the order of seeds.
    pub failures: Vec<Failure>,
}

impl PointResult {
    /// The value of a swept key.
    pub fn setting(&self, key: &str) -> Option<&str> {
        self.point.settings.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }
    /// A metric by its name, one value a run that has it, in the order of seeds.
    pub fn values(&self, metric: &str) -> Vec<f64> {
        let of = |run: &Run| {
            run.metrics.numbers().into_iter().find(|(name, _)| *name == metric).and_then(|(_, v)| v)
        };
        self.runs.iter().filter_map(of).collect()
    }
    /// Mean and confidence interval of a metric.
    pub fn estimate(&self, metric: &str) -> Option<Estimate> {
        Estimate::of(self.values(metric))
    }
}

/// Everything that a plan gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The scenario's name.
    pub name: String,
    /// Its points, in the order of the plan.
    pub points: Vec<PointResult>,
}
