//! The results of a sweep as JSON and CSV.

use std::fmt::Write as _;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::{SCHEMA, Summary, VERSION, add_columns, json};
use crate::build::Build;
use crate::compare::unequal::of_results;
use crate::identity::Identity;
use crate::metrics::Metrics;
use crate::results::{PointResult, Results};
use crate::runner::Run;

impl Results {
    /// Everything as one JSON object, with a line end. It holds no wall-clock times, so results of one attempt, of several
    /// attempts and of joined shards are the same to the byte.
    pub fn to_json(&self) -> String {
        json(self)
    }

    /// One line for each run: its name, the swept keys, its metrics, and `drop_` with each reason. The field of a key
    /// that a point lacks is empty.
    pub fn to_csv(&self) -> String {
        let keys = self.keys();
        let mut csv = "run_id".to_owned();
        for key in &keys {
            csv.extend([",", &field(key)]);
        }
        csv.push_str(",seed,trace_hash,sim_s");
        add_columns(&mut csv);
        csv.push('\n');
        for point in &self.points {
            let identity = Identity::of(&point.point.scenario);
            for run in &point.runs {
                csv.push_str(&identity.run(run.seed).to_string());
                for key in &keys {
                    csv.extend([",", &field(point.setting(key).unwrap_or_default())]);
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

/// A field of CSV, quoted where RFC 4180 s2 requires it.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

impl Serialize for Results {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut results = serializer.serialize_struct("Results", 6)?;
        results.serialize_field("schema", &SCHEMA)?;
        results.serialize_field("scenario", &self.name)?;
        results.serialize_field("version", VERSION)?;
        results.serialize_field("build", &Build::own())?;
        results.serialize_field("warnings", &of_results(self))?;
        results.serialize_field("points", &self.points)?;
        results.end()
    }
}

impl Serialize for PointResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let identity = Identity::of(&self.point.scenario);
        let runs: Vec<RunEntry<'_>> =
            self.runs.iter().map(|run| RunEntry::new(&identity, run)).collect();
        let names = Metrics::default().numbers().into_iter().map(|(name, _)| name);
        let summary: Vec<_> = names.map(|name| (name, self.estimate(name))).collect();
        let mut point = serializer.serialize_struct("PointResult", 4)?;
        point.serialize_field("settings", &Settings(&self.point.settings))?;
        point.serialize_field("runs", &runs)?;
        if !self.failures.is_empty() {
            point.serialize_field("failures", &self.failures)?;
        }
        point.serialize_field("summary", &Summary(&summary))?;
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

#[cfg(test)]
mod tests {
    use crate::figures::made_up::results;

    #[test]
    fn points_with_other_keys_have_their_values_in_the_columns_of_these_keys() {
        let mut all = results(&[("fragments.mode", &["hwr"]), ("payload", &["64"])], 1);
        let recovered: [(&str, &[&str]); 3] =
            [("fragments.mode", &["sfr"]), ("window", &["5"]), ("payload", &["64"])];
        all.points.extend(results(&recovered, 1).points);
        let csv = all.to_csv();
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows[0][1..5], ["fragments.mode", "payload", "window", "seed"]);
        assert_eq!(rows[1][1..5], ["hwr", "64", "", "1"]);
        assert_eq!(rows[2][1..5], ["sfr", "64", "5", "1"]);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    }
}
