//! Compares two points run by run. Runs of one seed meet the same radio conditions, so their difference comes from the
//! protocol, and its confidence interval is narrower than those of both means.
//!
//! The difference of a metric is the mean difference between runs of equal seeds. Its interval is Student's t over these
//! differences (the paired t procedure). A seed that only one side has is left out.
//!
//! - [`family`]: the significant differences among many.
//! - [`unequal`]: other settings that differ between the sides.

pub mod family;
pub mod unequal;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::build::Build;
use crate::identity::bare;
use crate::plan::Plan;
use crate::report::SCHEMA;
use crate::results::{PointResult, Results};
use crate::runner::Run;
use crate::scenario::CHOICES;
use crate::statistics::{self, Estimate, mean};
use crate::store::{Store, StoreError};

/// The runs of one point, as far as they are compared: for each seed the value of each metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// The settings that distinguish the point in its sweep.
    pub settings: Vec<(String, String)>,
    /// Metrics by seed.
    pub runs: BTreeMap<u64, BTreeMap<String, f64>>,
    /// Every key of its scenario with its value; none if the scenario is not known.
    pub keys: Option<BTreeMap<String, String>>,
}

/// How one metric differs between two points.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Difference {
    /// The metric.
    pub metric: String,
    /// Its mean on the first side, over the seeds that both have.
    pub a: f64,
    /// Its mean on the second side.
    pub b: f64,
    /// Mean of second minus first.
    pub difference: f64,
    /// Half the width of its 95 % confidence interval; absent for a single pair.
    pub ci95: Option<f64>,
    /// Pairs.
    pub n: usize,
    /// The two-sided p-value of the difference; absent without an interval.
    pub p: Option<f64>,
    /// Whether the p-value is below 5 %, without a correction for other comparisons; absent without an interval.
    pub significant: Option<bool>,
}

impl Difference {
    /// The difference with its interval.
    pub fn estimate(&self) -> Estimate {
        Estimate { mean: self.difference, ci95: self.ci95, n: self.n }
    }
}

/// Why results cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The text is not a summary that this program writes.
    #[error("not a summary of results: {0}")]
    NotASummary(String),
}

impl Side {
    /// A point of results.
    pub fn of(point: &PointResult) -> Self {
        let runs = point.runs.iter().map(|run| (run.seed.0, numbers(run)));
        let keys = Some(point.point.scenario.keys());
        Self { settings: point.point.settings.clone(), runs: runs.collect(), keys }
    }

    /// The points of results.
    pub fn all_of(results: &Results) -> Vec<Self> {
        results.points.iter().map(Self::of).collect()
    }

    /// The points of a `summary.json`, of a sweep or of a single scenario.
    pub fn read_summary(text: &str) -> Result<Vec<Self>, CompareError> {
        let wrong = |why: &str| CompareError::NotASummary(why.to_owned());
        let json: Value = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        if !(1..=SCHEMA).any(|schema| json["schema"] == schema) {
            return Err(wrong(&format!("its schema is not one of 1 to {SCHEMA}")));
        }
        let point = |point: &Value| -> Option<Self> {
            let settings = match &point["settings"] {
                Value::Object(map) => map
                    .iter()
                    .map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                    .collect::<Option<_>>()?,
                _ => Vec::new(),
            };
            let run = |run: &Value| -> Option<(u64, BTreeMap<String, f64>)> {
                let metrics = run["metrics"].as_object()?;
                let numbers = metrics.iter();
                let numbers =
                    numbers.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
                Some((run["seed"].as_u64()?, numbers.collect()))
            };
            let runs = point["runs"].as_array()?.iter().map(run).collect::<Option<_>>()?;
            Some(Self { settings, runs, keys: None })
        };
        let points = match &json["points"] {
            Value::Array(points) => points.iter().map(point).collect::<Option<Vec<_>>>(),
            _ => point(&json).map(|point| vec![point]),
        };
        points.ok_or_else(|| wrong("its runs have no seeds or no metrics"))
    }

    /// Gives each of `points` the keys of its scenario in `plan`, from which the points were made. Returns whether the plan
    /// has all points; if not, the points stay as they are.
    pub fn complete(points: &mut [Self], plan: &Plan) -> bool {
        let sorted =
            |settings: &[(String, String)]| settings.iter().cloned().collect::<BTreeMap<_, _>>();
        let planned: BTreeMap<_, _> =
            plan.points.iter().map(|point| (sorted(&point.settings), &point.scenario)).collect();
        let found: Option<Vec<_>> =
            points.iter().map(|point| planned.get(&sorted(&point.settings))).collect();
        let Some(scenarios) = found else { return false };
        for (point, scenario) in points.iter_mut().zip(scenarios) {
            point.keys = Some(scenario.keys());
        }
        true
    }

    /// Whether `metric` is zero in every run that has it.
    pub fn is_zero(&self, metric: &str) -> bool {
        self.runs.values().filter_map(|run| run.get(metric)).all(|value| *value == 0.0)
    }

    /// Whether a program made it that counted nothing of what was due at nodes that had not joined, before schema 3.
    pub fn leaves_out_unsent(&self) -> bool {
        let is_older = |run: &BTreeMap<String, f64>| {
            let delivers = |name: &str| run.get(name).is_some_and(|ratio| *ratio > 0.0);
            let lacks = |name: &str| delivers(name) && !run.contains_key(&format!("{name}_joined"));
            lacks("tdr") || lacks("datagram_pdr")
        };
        self.runs.values().any(is_older)
    }

    /// Whether the point has these settings, possibly among others.
    pub fn has(&self, settings: &[(String, String)]) -> bool {
        settings.iter().all(|setting| self.settings.contains(setting))
    }

    /// The point's settings without that of `key`.
    pub fn without(&self, key: &str) -> Vec<(String, String)> {
        self.settings.iter().filter(|(own, _)| own != key).cloned().collect()
    }
}

/// The build that made a `summary.json`; none for schema 1, which lacks it.
pub fn build_of_summary(text: &str) -> Option<Build> {
    let json: Value = serde_json::from_str(text).ok()?;
    serde_json::from_value(json["build"].clone()).ok()
}

/// The points of a store: its runs by scenario, with the keys that differ as settings. A key that differs only because it
/// belongs to a choice is not a setting, as in a sweep of the choice.
pub fn points_of_store(store: &Store) -> Result<Vec<Side>, StoreError> {
    let mut points: BTreeMap<BTreeMap<String, String>, Side> = BTreeMap::new();
    for id in store.ids()? {
        let stored = store.stored(id)?;
        let side = points.entry(bare(&stored.scenario).keys()).or_default();
        side.runs.insert(stored.run.seed.0, numbers(&stored.run));
    }
    let all: BTreeSet<&String> = points.keys().flat_map(BTreeMap::keys).collect();
    let values = |key: &String| points.keys().map(|keys| keys.get(key)).collect::<BTreeSet<_>>();
    let scenarios: Vec<_> = points.keys().collect();
    let tells = |key: &&String| values(key).len() > 1 && !follows_its_choice(key, &scenarios);
    let differing: Vec<String> = all.into_iter().filter(tells).cloned().collect();
    let side = |(keys, side): (&BTreeMap<String, String>, &Side)| {
        let setting = |key: &String| Some((key.clone(), keys.get(key)?.clone()));
        Side {
            settings: differing.iter().filter_map(setting).collect(),
            runs: side.runs.clone(),
            keys: Some(keys.clone()),
        }
    };
    Ok(points.iter().map(side).collect())
}

/// Whether the choice of its section determines the value of a key, or its absence.
fn follows_its_choice(key: &str, scenarios: &[&BTreeMap<String, String>]) -> bool {
    let section = |key: &str| key.split_once('.').map(|(section, _)| section.to_owned());
    let choice = CHOICES.into_iter().find(|choice| section(choice) == section(key));
    let Some(choice) = choice.filter(|choice| *choice != key) else { return false };
    let mut values: BTreeMap<Option<&String>, Option<&String>> = BTreeMap::new();
    scenarios.iter().all(|keys| {
        let own = keys.get(key);
        *values.entry(keys.get(choice)).or_insert(own) == own
    })
}

fn numbers(run: &Run) -> BTreeMap<String, f64> {
    let numbers = run.metrics.numbers().into_iter();
    numbers.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The metric's difference between two sides, second minus first; none without a pair.
pub fn difference(a: &Side, b: &Side, metric: &str) -> Option<Difference> {
    let both = |(seed, of_a): (&u64, &BTreeMap<String, f64>)| {
        Some((*of_a.get(metric)?, *b.runs.get(seed)?.get(metric)?))
    };
    paired(metric, &a.runs.iter().filter_map(both).collect::<Vec<_>>())
}

/// The difference of pairs of values, second minus first; none without a pair.
pub fn paired(metric: &str, pairs: &[(f64, f64)]) -> Option<Difference> {
    let estimate = Estimate::of(pairs.iter().map(|(a, b)| statistics::difference(*a, *b)))?;
    let p = estimate.chance_of_nothing();
    let of = |side: fn(&(f64, f64)) -> f64| mean(&pairs.iter().map(side).collect::<Vec<_>>());
    Some(Difference {
        metric: metric.to_owned(),
        a: of(|pair| pair.0)?,
        b: of(|pair| pair.1)?,
        difference: estimate.mean,
        ci95: estimate.ci95,
        n: estimate.n,
        p,
        significant: p.map(|p| p < family::LEVEL),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(values: &[(u64, f64)]) -> Side {
        let runs =
            values.iter().map(|(seed, tdr)| (*seed, BTreeMap::from([("tdr".to_owned(), *tdr)])));
        Side { settings: Vec::new(), runs: runs.collect(), keys: None }
    }

    #[test]
    fn the_interval_is_that_of_the_paired_t_procedure() {
        // Differences 1, 2, 3, 4: mean 2.5, variance 5/3, standard error sqrt(5/12) = 0.645497, t(3) = 3.182446.
        let a = side(&[(1, 10.0), (2, 20.0), (3, 30.0), (4, 40.0)]);
        let b = side(&[(1, 11.0), (2, 22.0), (3, 33.0), (4, 44.0)]);
        let found = difference(&a, &b, "tdr").expect("four pairs");
        assert_eq!((found.a, found.b, found.difference, found.n), (25.0, 27.5, 2.5, 4));
        assert!((found.ci95.expect("four pairs") - 2.054_260).abs() < 1e-5, "{found:?}");
        assert_eq!(found.significant, Some(true));
        // Unpaired, the interval of each mean alone is ten times as wide.
        assert!(Estimate::of([10.0, 20.0, 30.0, 40.0]).and_then(|e| e.ci95).expect("four") > 20.0);
    }

    #[test]
    fn the_other_way_round_the_sign_changes_and_nothing_else() {
        let (a, b) = (side(&[(1, 1.0), (2, 5.0)]), side(&[(1, 2.0), (2, 3.0)]));
        let (there, back) = (difference(&a, &b, "tdr"), difference(&b, &a, "tdr"));
        let (there, back) = (there.expect("two pairs"), back.expect("two pairs"));
        assert_eq!((there.difference, there.ci95), (-back.difference, back.ci95));
        assert_eq!(there.significant, Some(false));
    }

    #[test]
    fn seeds_that_one_side_lacks_are_in_no_difference() {
        let a = side(&[(1, 1.0), (2, 2.0), (9, 100.0)]);
        let b = side(&[(1, 2.0), (2, 3.0), (7, -100.0)]);
        let found = difference(&a, &b, "tdr").expect("two pairs");
        assert_eq!((found.n, found.a, found.b, found.ci95), (2, 1.5, 2.5, Some(0.0)));
        assert_eq!(difference(&a, &side(&[(5, 1.0)]), "tdr"), None);
        assert_eq!(difference(&a, &b, "no_such_metric"), None);
    }

    #[test]
    fn a_difference_of_nothing_is_never_significant() {
        let (a, b) = (side(&[(1, 0.1 + 0.2), (2, 0.5)]), side(&[(1, 0.3), (2, 0.5)]));
        let found = difference(&a, &b, "tdr").expect("two pairs");
        assert_eq!(
            (found.difference, found.ci95, found.significant),
            (0.0, Some(0.0), Some(false))
        );
    }

    #[test]
    fn one_difference_in_all_pairs_is_significant_only_in_many_pairs() {
        let (few, many) =
            ([(1, 1.0), (2, 4.0)], (1..=10).map(|seed| (seed, 3.0)).collect::<Vec<_>>());
        let more = |values: &[(u64, f64)]| {
            let more: Vec<_> = values.iter().map(|(seed, value)| (*seed, value + 1.0)).collect();
            difference(&side(values), &side(&more), "tdr").expect("pairs")
        };
        assert_eq!((more(&few).p, more(&few).significant), (Some(0.5), Some(false)));
        assert_eq!((more(&many).p, more(&many).significant), (Some(1.0 / 512.0), Some(true)));
    }

    #[test]
    fn keys_that_follow_their_choice_are_no_settings() {
        let keys = |function: &str, length: (&str, &str), retries: &str| {
            let keys =
                [("schedule.function", function), (length.0, length.1), ("mac.retries", retries)];
            keys.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect()
        };
        let (negotiated, unicast) = ("schedule.negotiated_length", "schedule.unicast_length");
        let scenarios: [BTreeMap<String, String>; 4] = [
            keys("msf", (negotiated, "101"), "3"),
            keys("b-msf", (negotiated, "29"), "4"),
            keys("alice", (unicast, "29"), "3"),
            keys("alice", (unicast, "47"), "3"),
        ];
        let all: Vec<_> = scenarios.iter().collect();
        assert!(follows_its_choice(negotiated, &all));
        // Two lengths of one function, the choice itself, and another section: these were varied.
        assert!(!follows_its_choice(unicast, &all));
        assert!(!follows_its_choice("schedule.function", &all));
        assert!(!follows_its_choice("mac.retries", &all[..2]));
    }

    #[test]
    fn points_of_a_summary_get_the_keys_of_their_own_scenario() {
        let text = "name = \"x\"\n[sweep]\n\"mac.retries\" = [3, 4]\n\"coap.nstart\" = [1]";
        let plan = Plan::parse("x", text, &[]).expect("a valid sweep");
        let point = |retries: &str| Side {
            // A store has the keys in another order than a sweep.
            settings: [("coap.nstart", "1"), ("mac.retries", retries)]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .to_vec(),
            ..Side::default()
        };
        let mut points = vec![point("4")];
        assert!(Side::complete(&mut points, &plan));
        assert_eq!(points[0].keys.as_ref().expect("known")["mac.retries"], "4");
        let mut others = vec![point("4"), point("5")];
        assert!(!Side::complete(&mut others, &plan));
        assert_eq!(others, [point("4"), point("5")]);
    }

    #[test]
    fn one_pair_has_a_difference_without_interval() {
        let found = difference(&side(&[(1, 1.0)]), &side(&[(1, 4.0)]), "tdr").expect("a pair");
        assert_eq!((found.difference, found.ci95, found.significant), (3.0, None, None));
    }

    #[test]
    fn summaries_of_single_scenarios_and_of_sweeps_are_read() {
        let run = "{\"seed\": 4, \"metrics\": {\"tdr\": 0.5, \"drops\": {}, \"hops_mean\": null}}";
        let single = format!("{{\"schema\": 1, \"runs\": [{run}]}}");
        assert_eq!(Side::read_summary(&single), Ok(vec![side(&[(4, 0.5)])]));
        let swept = format!(
            "{{\"schema\": 1, \"points\": [{{\"settings\": {{\"coap.nstart\": \"2\"}}, \"runs\": [{run}]}}]}}"
        );
        let points = Side::read_summary(&swept).expect("a summary");
        assert_eq!(points[0].settings, [("coap.nstart".to_owned(), "2".to_owned())]);
        assert_eq!(points[0].runs, side(&[(4, 0.5)]).runs);
    }

    #[test]
    fn a_summary_names_its_build_from_schema_2_on() {
        let own = serde_json::to_string(&Build::own()).expect("plain data");
        let text = format!("{{\"schema\": {SCHEMA}, \"runs\": [], \"build\": {own}}}");
        assert_eq!(Side::read_summary(&text).expect("a summary")[0], Side::default());
        assert_eq!(build_of_summary(&text), Some(Build::own()));
        assert_eq!(build_of_summary("{\"schema\": 1, \"runs\": []}"), None);
    }

    #[test]
    fn what_is_no_summary_is_refused() {
        for wrong in ["", "{}", "{\"schema\": 4, \"runs\": []}", "{\"schema\": 1, \"runs\": [{}]}"]
        {
            assert!(Side::read_summary(wrong).is_err(), "{wrong}");
        }
    }
}
