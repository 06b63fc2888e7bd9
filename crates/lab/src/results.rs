//! The results of a plan: for every point of a sweep its runs, in the order of the plan.

use std::fmt::Write as _;

use lowmesh_machine::DropReason;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

use crate::identity::Identity;
use crate::metrics::Metrics;
use crate::report::{SCHEMA, VERSION};
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

/// Everything that a plan gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The scenario's name.
    pub name: String,
    /// Its points, in the order of the plan.
    pub points: Vec<PointResult>,
}

impl Results {
    /// Everything as one JSON object, with a line end. No wall clock is in it: results of one attempt, of several
    /// and of joined shards are the same to the byte.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("numbers and texts only");
        text.push('\n');
        text
    }

    /// The swept keys, in the order of the sweep.
    pub fn keys(&self) -> Vec<&str> {
        let first = self.points.first().map(|point| &point.point.settings);
        first.into_iter().flatten().map(|(key, _)| key.as_str()).collect()
    }

    /// One line a run: its name, the swept keys, its metrics, and `drop_` with each reason.
    pub fn to_csv(&self) -> String {
        let mut csv = "run_id".to_owned();
        for key in self.keys() {
            csv.extend([",", &field(key)]);
        }
        csv.push_str(",seed,trace_hash,sim_s");
        for (name, _) in Metrics::default().numbers() {
            csv.extend([",", name]);
        }
        for reason in DropReason::ALL {
            csv.extend([",drop_", reason.name()]);
        }
        csv.push('\n');
        for point in &self.points {
            let identity = Identity::of(&point.point.scenario);
            for run in &point.runs {
                csv.push_str(&identity.run(run.seed).to_string());
                for (_, value) in &point.point.settings {
                    csv.extend([",", &field(value)]);
                }
                let sim_s = run.simulated.as_secs_f64();
                // Writing to a String cannot fail.
                _ = write!(csv, ",{},{:016x},{sim_s}", run.seed.0, run.trace_hash);
                run.metrics.add_fields(&mut csv);
                csv.push('\n');
            }
        }
        csv
    }
}

/// A field of CSV, in quotes if it must be (RFC 4180 s2).
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

impl Serialize for Results {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut results = serializer.serialize_struct("Results", 4)?;
        results.serialize_field("schema", &SCHEMA)?;
        results.serialize_field("scenario", &self.name)?;
        results.serialize_field("version", VERSION)?;
        results.serialize_field("points", &self.points)?;
        results.end()
    }
}

impl Serialize for PointResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let identity = Identity::of(&self.point.scenario);
        let runs: Vec<RunEntry<'_>> =
            self.runs.iter().map(|run| RunEntry::new(&identity, run)).collect();
        let mut point = serializer.serialize_struct("PointResult", 4)?;
        point.serialize_field("settings", &Settings(&self.point.settings))?;
        point.serialize_field("runs", &runs)?;
        if !self.failures.is_empty() {
            point.serialize_field("failures", &self.failures)?;
        }
        point.serialize_field("summary", &SummaryOf(self))?;
        point.end()
    }
}

/// A run of a sweep in JSON.
#[derive(Serialize)]
struct RunEntry<'r> {
    id: String,
    seed: u64,
    /// As text: a reader that keeps numbers as doubles would round 64 bits.
    trace_hash: String,
    sim_s: f64,
    metrics: &'r Metrics,
}

impl<'r> RunEntry<'r> {
    fn new(identity: &Identity, run: &'r Run) -> Self {
        Self {
            id: identity.run(run.seed).to_string(),
            seed: run.seed.0,
            trace_hash: format!("{:016x}", run.trace_hash),
            sim_s: run.simulated.as_secs_f64(),
            metrics: &run.metrics,
        }
    }
}

/// Swept keys and values as an object, in the order of the sweep.
struct Settings<'s>(&'s [(String, String)]);

impl Serialize for Settings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// The mean of every metric; each has an entry of the same shape, also without data.
struct SummaryOf<'p>(&'p PointResult);

impl Serialize for SummaryOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Entry {
            mean: Option<f64>,
            ci95: Option<f64>,
            n: usize,
        }
        let entry = |(name, _): (&'static str, _)| {
            let estimate = self.0.estimate(name);
            let mean = estimate.map(|estimate| estimate.mean);
            let ci95 = estimate.and_then(|estimate| estimate.ci95);
            (name, Entry { mean, ci95, n: estimate.map_or(0, |estimate| estimate.n) })
        };
        serializer.collect_map(Metrics::default().numbers().into_iter().map(entry))
    }
}
