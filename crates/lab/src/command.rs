//! Command lines that reproduce points and runs.

use std::fmt::Write as _;

use lowmesh_units::Seed;

use crate::identity::Identity;
use crate::results::{Point, PointResult};
use crate::runner::Run;
use crate::scenario::{BUILTINS, CHOICES, Scenario};

/// Digits of a run's name in a command: enough to be unique in any store.
const NAME_DIGITS: usize = 16;

/// The origin of results, for the commands that reproduce them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The scenario on the command line: a built-in name or a file. The setting `scenario` of a point takes precedence.
    pub scenario: String,
    /// `--set` flags that were given, without those of the sweep.
    pub overrides: Vec<String>,
    /// The store that has the runs, if they are kept.
    pub store: Option<Kept>,
}

/// Where runs are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The default folder of the program.
    AsUsual,
    /// In the folder of `--store`.
    In(String),
}

impl Provenance {
    /// The command that repeats one point with all its seeds.
    pub fn point(&self, point: &Point) -> String {
        let head = &point.scenario.head;
        format!("{} --seeds {} --seed {}", self.scenario_of(point), head.seeds, head.seed)
    }

    /// The command that sweeps `key` over `values` at a point; none if `key` is not a key of the scenario.
    pub fn swept(&self, point: &Point, key: &str, values: &[&str]) -> Option<String> {
        if !point.scenario.keys().contains_key(key) {
            return None;
        }
        let mut one = point.clone();
        one.settings.retain(|(setting, _)| setting != key);
        let swept = quoted(&format!("sweep.{key}={}", values.join(",")));
        let head = &point.scenario.head;
        let scenario = self.scenario_of(&one);
        Some(format!("{scenario} --set {swept} --seeds {} --seed {}", head.seeds, head.seed))
    }

    /// The commands that run a point with `key` at `base` and at `other`, and compare `metric`; none if `key` is not a key
    /// of the scenario.
    pub fn sides(
        &self,
        point: &Point,
        key: &str,
        [base, other]: [&str; 2],
        metric: &str,
    ) -> Option<String> {
        let folder = quoted(&format!("{metric}-{base}-{other}").replace('/', "-"));
        let run = self.swept(point, key, &[base, other])?;
        let (key, base) = (quoted(key), quoted(base));
        Some(format!(
            "{run} --out {folder} && lowmesh compare {folder} --by {key} --baseline {base} --metrics {metric}"
        ))
    }

    /// The command that repeats one run of a point: by its name if it is stored, otherwise by its scenario.
    pub fn run(&self, point: &Point, seed: Seed) -> String {
        let Some(kept) = &self.store else {
            return format!("{} --seeds 1 --seed {}", self.scenario_of(point), seed.0);
        };
        rerun(kept, &Identity::of(&point.scenario), seed)
    }

    /// The command for each run of a point, in the order of seeds; empty if runs are not stored.
    pub fn runs(&self, point: &PointResult) -> Vec<(Seed, String)> {
        let Some(kept) = &self.store else { return Vec::new() };
        let identity = Identity::of(&point.point.scenario);
        let one = |run: &Run| (run.seed, rerun(kept, &identity, run.seed));
        point.runs.iter().map(one).collect()
    }

    /// `lowmesh run` with the scenario of a point.
    fn scenario_of(&self, point: &Point) -> String {
        let named = point.settings.iter().find(|(key, _)| key == "scenario");
        let name = named.map_or(&self.scenario, |(_, name)| name);
        let mut words = format!("lowmesh run {}", quoted(name));
        // Settings that are not keys of the scenario are labels. A later value of a key replaces an earlier one.
        let keys = point.scenario.keys();
        let settings = point.settings.iter().filter(|(key, _)| keys.contains_key(key));
        let settings = settings.map(|(key, value)| (key.as_str(), value.as_str()));
        // Swept keys are settings of the point, and the caller adds the seeds.
        let elsewhere =
            |set: &str| ["sweep.", "seeds=", "seed="].iter().any(|o| set.starts_with(o));
        let given = self.overrides.iter().filter(|set| !elsewhere(set));
        let given = given.filter_map(|set| set.split_once('='));
        // A flag that applies only to other values of a swept choice.
        let unused = |key: &str, value: &str| {
            let section = |key: &str| key.split_once('.').map(|(section, _)| section.to_owned());
            let swept = |choice: &str| point.settings.iter().any(|(key, _)| key == choice);
            let decides = |choice: &str| swept(choice) && section(choice) == section(key);
            !keys.contains_key(key) && value != "[]" && CHOICES.into_iter().any(decides)
        };
        let given = given.filter(|(key, value)| !unused(key, value));
        let mut sets: Vec<(&str, &str)> = Vec::new();
        for (key, value) in given.chain(settings) {
            sets.retain(|(other, _)| *other != key);
            sets.push((key, value));
        }
        let missing = missing(point, name, &sets);
        for (key, value) in &missing {
            sets.push((key, value));
        }
        for (key, value) in sets {
            // Writing to a String cannot fail.
            _ = write!(words, " --set {}", quoted(&format!("{key}={value}")));
        }
        words
    }
}

/// The keys in which the scenario of `point` differs from the built-in scenario called `name` with `sets`. A setting that is
/// a case of a publication stands for values of several keys.
fn missing(point: &Point, name: &str, sets: &[(&str, &str)]) -> Vec<(String, String)> {
    let sets: Vec<String> = sets.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let own = point.scenario.head.name == name;
    let builtin = BUILTINS.iter().find(|builtin| own && builtin.name == name);
    let parsed = builtin.map(|one| Scenario::parse(name, one.text, &sets));
    let Some(Ok(scenario)) = parsed else { return Vec::new() };
    let there = scenario.keys();
    let differs = |(key, value): &(String, String)| {
        !matches!(key.as_str(), "seeds" | "seed") && there.get(key) != Some(value)
    };
    point.scenario.keys().into_iter().filter(differs).collect()
}

fn rerun(kept: &Kept, identity: &Identity, seed: Seed) -> String {
    let name = identity.run(seed).to_string();
    let store = match kept {
        Kept::AsUsual => String::new(),
        Kept::In(folder) => format!(" --store {}", quoted(folder)),
    };
    format!("lowmesh rerun {}{store}", &name[..NAME_DIGITS])
}

/// One word of a command line, quoted if a shell would interpret it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::made_up::results;
    use crate::plan::Plan;

    #[test]
    fn a_word_reaches_the_program_through_a_shell_as_it_is() {
        assert_eq!(quoted("traffic.period=2s"), "traffic.period=2s");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted("mac.hopping=[15,25]"), "'mac.hopping=[15,25]'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_flag_for_another_choice_is_not_part_of_the_command() {
        let overrides = ["schedule.negotiated_length=29", "schedule.unicast_length=31"];
        let overrides = overrides.map(str::to_owned).to_vec();
        let sweep = "sweep.schedule.function=msf,alice".to_owned();
        let all: Vec<String> = overrides.iter().cloned().chain([sweep]).collect();
        let plan = Plan::load("grid-25", &all).expect("each flag is of use at one point");
        let provenance = Provenance { scenario: "grid-25".to_owned(), overrides, store: None };
        let commands = plan.points.iter().map(|point| provenance.run(point, Seed(1)));
        assert_eq!(
            commands.collect::<Vec<_>>(),
            [
                "lowmesh run grid-25 --set schedule.negotiated_length=29 --set schedule.function=msf --seeds 1 --seed 1",
                "lowmesh run grid-25 --set schedule.unicast_length=31 --set schedule.function=alice --seeds 1 --seed 1",
            ]
        );
    }

    #[test]
    fn a_point_is_made_again_with_the_settings_that_are_keys_of_its_scenario() {
        let mut results = results(&[("scenario", &["grid-64"]), ("mac.retries", &["3"])], 2);
        let point = &mut results.points[0];
        point.point.settings.push(("note".to_owned(), "as in table 1".to_owned()));
        let overrides = ["mac.retries=7", "duration=30min", "seeds=4"].map(str::to_owned).to_vec();
        let mut provenance = Provenance { overrides, ..Provenance::default() };
        let run = "lowmesh run grid-64 --set duration=30min --set mac.retries=3";
        assert_eq!(provenance.point(&point.point), format!("{run} --seeds 10 --seed 1"));
        assert_eq!(provenance.run(&point.point, Seed(2)), format!("{run} --seeds 1 --seed 2"));
        assert!(provenance.runs(point).is_empty());
        provenance.store = Some(Kept::In("my runs".to_owned()));
        let rerun = provenance.run(&point.point, Seed(2));
        assert!(rerun.starts_with("lowmesh rerun ") && rerun.ends_with(" --store 'my runs'"));
        assert_eq!(provenance.runs(point)[1], (Seed(2), rerun));
    }

    #[test]
    fn both_sides_of_a_difference_are_one_sweep() {
        let results = results(&[("scenario", &["grid-64"]), ("coap.congestion", &["cocoa"])], 2);
        let (from, point) = (Provenance::default(), &results.points[0].point);
        let sides = |key| from.sides(point, key, ["cocoa", "cocoa/draft-03"], "tdr");
        let run = "lowmesh run grid-64 --set sweep.coap.congestion=cocoa,cocoa/draft-03 --seeds 10 --seed 1";
        let folder = "tdr-cocoa-cocoa-draft-03";
        let compare =
            format!("lowmesh compare {folder} --by coap.congestion --baseline cocoa --metrics tdr");
        assert_eq!(sides("coap.congestion"), Some(format!("{run} --out {folder} && {compare}")));
        assert_eq!(sides("scenario"), None, "no sweep holds it");
    }

    #[test]
    fn a_command_leads_to_the_very_runs_of_its_point() {
        let overrides = ["traffic.period=2s".to_owned()];
        let text = "coap.congestion=default,6cocoa";
        let swept = [&overrides[..], &[format!("sweep.{text}")]].concat();
        let plan = Plan::load("grid-25", &swept).expect("a sweep");
        let provenance =
            Provenance { scenario: "grid-25".to_owned(), overrides: swept.clone(), store: None };
        for (point, spec) in plan.points.iter().zip(plan.runs().chunks(10)) {
            let command = provenance.point(point);
            assert!(!command.contains("sweep."), "{command}");
            let sets = command.split(" --set ").skip(1);
            let sets: Vec<String> =
                sets.map(|set| set.split(' ').next().unwrap_or_default().to_owned()).collect();
            let again = Plan::load("grid-25", &sets).expect("the command is right");
            assert_eq!(again.runs()[0].id, spec[0].id);
        }
    }
}
