//! The results of a plan: for every point of a sweep its runs, in the order of the plan.

use xxhash_rust::xxh3::xxh3_64;

use crate::runner::{Failure, Run};
use crate::scenario::Scenario;
use crate::statistics::Estimate;

/// One point of a sweep: a scenario, and the keys that were set.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Swept keys and their values, in the order of the sweep; empty without one.
    pub settings: Vec<(String, String)>,
    /// The scenario with these settings.
    pub scenario: Scenario,
}

/// A point with the results of its runs.
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
    /// A short name of the point, the same wherever it is shown, and another for other settings or values.
    pub fn anchor(&self) -> String {
        let settings = format!("{:?}", self.point.settings);
        let hash = xxh3_64((settings + &self.point.scenario.to_toml()).as_bytes());
        format!("p-{:010x}", hash & 0xff_ffff_ffff)
    }
    /// The settings in words, as `mac.retries = 3`.
    pub fn words(&self) -> String {
        let words = self.point.settings.iter().map(|(key, value)| format!("{key} = {value}"));
        words.collect::<Vec<_>>().join(", ")
    }
    /// Mean and confidence interval of a metric.
    pub fn estimate(&self, metric: &str) -> Option<Estimate> {
        Estimate::of(self.values(metric))
    }
}

/// The results of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The scenario's name.
    pub name: String,
    /// Its points, in the order of the plan.
    pub points: Vec<PointResult>,
}

impl Results {
    /// The swept keys, in the order in which points first have them. Points of a publication's sweep may have
    /// different keys.
    pub fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = Vec::new();
        for (key, _) in self.points.iter().flat_map(|point| &point.point.settings) {
            if !keys.contains(&key.as_str()) {
                keys.push(key);
            }
        }
        keys
    }
}
