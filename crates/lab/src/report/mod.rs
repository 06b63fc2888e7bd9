//! The results of a campaign: a summary, JSON, CSV and the folder of results.

mod crowding;
mod error;
mod files;
mod folder;
mod never_joined;
mod sweep;

use std::fmt::Write as _;

use lowmesh_machine::DropReason;
use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};

pub use error::FolderError;
pub use folder::Folder;
pub use never_joined::never_joined;

pub use crate::build::VERSION;

use crate::build::Build;
use crate::metrics::Metrics;
use crate::runner::{Campaign, Failure, Run};
use crate::scenario::Scenario;
use crate::statistics::Estimate;

/// Version of the JSON: it increases by one when a field is removed or changes its meaning.
///
/// 2: the name of a run depends on the build of the program, which the field `build` holds.
/// 3: `tdr` and `datagram_pdr` count what was due at nodes that had not joined, and leave out datagrams under way at the end.
pub const SCHEMA: u32 = 3;

/// A scenario's runs and their summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The scenario's name.
    pub scenario: String,
    /// The runs that finished, by seed.
    pub runs: Vec<Run>,
    /// The runs that failed, by seed.
    pub failures: Vec<Failure>,
    /// Mean and confidence interval of each metric over the runs that have it.
    pub summary: Vec<(&'static str, Option<Estimate>)>,
}

impl Report {
    /// Summarises the runs of `scenario`.
    pub fn new(scenario: &Scenario, campaign: Campaign) -> Self {
        let Campaign { runs, failures } = campaign;
        let numbers: Vec<_> = runs.iter().map(|run| run.metrics.numbers()).collect();
        let names = Metrics::default().numbers();
        let estimate = |column: usize| Estimate::of(numbers.iter().filter_map(|run| run[column].1));
        let summary =
            names.iter().enumerate().map(|(column, (name, _))| (*name, estimate(column))).collect();
        Self { scenario: scenario.head.name.clone(), runs, failures, summary }
    }

    /// The estimate of one metric.
    pub fn estimate(&self, name: &str) -> Option<Estimate> {
        self.summary.iter().find(|(metric, _)| *metric == name).and_then(|(_, estimate)| *estimate)
    }

    /// Mean number of drops a run, for each reason that occurred.
    pub fn drops(&self) -> Vec<(&'static str, f64)> {
        let total = |reason: &str| -> u64 {
            self.runs.iter().filter_map(|run| run.metrics.drops.get(reason)).sum()
        };
        let occurred =
            DropReason::ALL.into_iter().map(|reason| (reason.name(), total(reason.name())));
        let runs = self.runs.len().max(1) as f64;
        occurred.filter(|(_, n)| *n > 0).map(|(name, n)| (name, n as f64 / runs)).collect()
    }

    /// The report as one JSON object, with a line end.
    pub fn to_json(&self) -> String {
        json(self)
    }

    /// One line for each run, one column for each metric; an absent metric is an empty field.
    pub fn to_csv(&self) -> String {
        let mut csv = "seed,trace_hash,sim_s,wall_s".to_owned();
        add_columns(&mut csv);
        for run in &self.runs {
            let sim_s = run.simulated.as_secs_f64();
            // Writing to a String cannot fail.
            _ = write!(csv, "\n{},{:016x},{sim_s},{:.3}", run.seed.0, run.trace_hash, run.wall_s);
            run.metrics.add_fields(&mut csv);
        }
        csv.push('\n');
        csv
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut report = serializer.serialize_struct("Report", 7)?;
        report.serialize_field("schema", &SCHEMA)?;
        report.serialize_field("scenario", &self.scenario)?;
        report.serialize_field("version", VERSION)?;
        report.serialize_field("build", &Build::own())?;
        report.serialize_field("runs", &self.runs)?;
        if !self.failures.is_empty() {
            report.serialize_field("failures", &self.failures)?;
        }
        report.serialize_field("summary", &Summary(&self.summary))?;
        report.end()
    }
}

impl Serialize for Run {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut run = serializer.serialize_struct("Run", 5)?;
        run.serialize_field("seed", &self.seed.0)?;
        // As text: a reader that keeps numbers as doubles would round 64 bits.
        run.serialize_field("trace_hash", &format!("{:016x}", self.trace_hash))?;
        run.serialize_field("sim_s", &self.simulated.as_secs_f64())?;
        run.serialize_field("wall_s", &self.wall_s)?;
        run.serialize_field("metrics", &self.metrics)?;
        run.end()
    }
}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut failure = serializer.serialize_struct("Failure", 2)?;
        failure.serialize_field("seed", &self.seed.0)?;
        failure.serialize_field("error", &self.error.to_string())?;
        failure.end()
    }
}

/// `value` as indented JSON, with a line end.
fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("numbers and texts only");
    text.push('\n');
    text
}

/// Adds the names of the fields that [`Metrics::add_fields`] adds, each after a comma.
fn add_columns(csv: &mut String) {
    for (name, _) in Metrics::default().numbers() {
        csv.extend([",", name]);
    }
    for reason in DropReason::ALL {
        csv.extend([",drop_", reason.name()]);
    }
}

/// Every metric has an entry of the same shape, also without data.
struct Summary<'r>(&'r [(&'static str, Option<Estimate>)]);

impl Serialize for Summary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Entry {
            mean: Option<f64>,
            ci95: Option<f64>,
            n: usize,
        }
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, estimate) in self.0 {
            let entry = Entry {
                mean: estimate.map(|estimate| estimate.mean),
                ci95: estimate.and_then(|estimate| estimate.ci95),
                n: estimate.map_or(0, |estimate| estimate.n),
            };
            map.serialize_entry(name, &entry)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lowmesh_units::{Duration, Seed};

    use super::*;
    use crate::detail::Detail;
    use crate::simulate::RunError;

    fn report(failures: Vec<Failure>) -> Report {
        let run = |seed: u64, tdr: Option<f64>| Run {
            seed: Seed(seed),
            trace_hash: 0xabc,
            simulated: Duration::from_secs(60),
            wall_s: 0.5,
            metrics: Metrics {
                tdr,
                drops: BTreeMap::from([("no_ack", seed)]),
                ..Metrics::default()
            },
            detail: Detail::default(),
        };
        let scenario = Scenario::parse("x", "name = \"x\"", &[]).expect("a valid scenario");
        let runs = vec![run(1, Some(0.9)), run(2, Some(1.0)), run(3, None)];
        Report::new(&scenario, Campaign { runs, failures })
    }

    #[test]
    fn the_json_has_the_keys_that_readers_rely_on_in_their_order() {
        let text = report(Vec::new()).to_json();
        let json: serde_json::Value = serde_json::from_str(&text).expect("own output");
        let keys: Vec<_> = json.as_object().expect("an object").keys().cloned().collect();
        assert_eq!(keys, ["build", "runs", "scenario", "schema", "summary", "version"]);
        let place =
            |key: &str| text.find(&format!("\n  \"{key}\"")).unwrap_or_else(|| panic!("{key}"));
        let places = ["schema", "scenario", "version", "build", "runs", "summary"].map(place);
        assert!(places.is_sorted());
        assert_eq!(json["schema"], 3);
        assert_eq!(json["build"]["id"], Build::own().id.to_string());
        let run = json["runs"][0].as_object().expect("an object");
        let keys: Vec<_> = run.keys().cloned().collect();
        assert_eq!(keys, ["metrics", "seed", "sim_s", "trace_hash", "wall_s"]);
        assert_eq!(run["trace_hash"], "0000000000000abc");
        assert_eq!(run["metrics"]["drops"]["no_ack"], 1);
        assert_eq!(json["runs"][2]["metrics"]["tdr"], serde_json::Value::Null);
    }

    #[test]
    fn the_summary_has_an_entry_of_one_shape_for_every_metric() {
        let json = serde_json::to_value(report(Vec::new())).expect("plain data");
        let tdr = &json["summary"]["tdr"];
        assert_eq!((tdr["mean"].as_f64(), tdr["n"].as_u64()), (Some(0.95), Some(2)));
        // Two runs: t(1) = 12.706 standard errors of 0.05.
        assert!((tdr["ci95"].as_f64().expect("two runs") - 0.6353).abs() < 1e-3);
        let empty = &json["summary"]["hops_mean"];
        assert!(empty["mean"].is_null() && empty["ci95"].is_null());
        assert_eq!(empty["n"], 0);
    }

    #[test]
    fn failures_are_in_the_json_when_there_are_any() {
        let error = RunError::Scenario("no place".to_owned());
        let json = serde_json::to_value(report(vec![Failure { seed: Seed(4), error }]));
        assert_eq!(json.expect("plain data")["failures"][0]["error"], "no place");
    }

    #[test]
    fn every_line_of_the_csv_has_as_many_fields_as_its_header() {
        let csv = report(Vec::new()).to_csv();
        let fields: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(fields.len(), 4);
        assert!(fields.iter().all(|count| *count == fields[0]));
        assert!(
            csv.lines().nth(3).expect("three runs").starts_with("3,0000000000000abc,60,0.500,,")
        );
    }

    #[test]
    fn drops_are_a_mean_over_runs_of_those_that_occurred() {
        assert_eq!(report(Vec::new()).drops(), [("no_ack", 2.0)]);
    }
}
