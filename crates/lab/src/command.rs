//! Command lines that reproduce points and runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lowmesh_units::Seed;
use xxhash_rust::xxh3::xxh3_64;

use crate::identity::Identity;
use crate::plan::Plan;
use crate::results::{Point, PointResult};
use crate::runner::Run;
use crate::scenario::{BUILTINS, CHOICES, Head, Scenario};

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
        Line::of(self, point).words(&point.scenario.head)
    }

    /// The command that sweeps `key` over the values that `points` have of it; none if the sweep would not give these very
    /// points, as of a label that is no key, or of points that differ in more.
    pub fn swept(&self, points: &[&Point], key: &str) -> Option<String> {
        let first = points.first()?;
        let mut common = Line::of(self, first);
        let mut values = Vec::new();
        for point in points {
            values.push(setting(point, key).filter(|_| has(&point.scenario.keys(), key))?);
            common.join(Line::of(self, point))?;
        }
        common.sets.retain(|(other, _)| other != key);
        common.sets.push((format!("sweep.{key}"), listed(&values)));
        let wanted = points.iter().map(|point| &point.scenario);
        let leads = common.leads_to(&first.scenario.head, wanted);
        leads.then(|| common.words(&first.scenario.head))
    }

    /// The commands that run two points which differ in `key`, the base first, and compare `metric`; none if no sweep of
    /// `key` gives these points.
    pub fn sides(&self, [base, other]: [&Point; 2], key: &str, metric: &str) -> Option<String> {
        let run = self.swept(&[base, other], key)?;
        let (base, other) = (setting(base, key)?, setting(other, key)?);
        // Another comparison of the same metric and values has another folder.
        let hash = xxh3_64(run.as_bytes()) & 0xffff;
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.=".contains(c) { c } else { '-' };
        let folder = format!("{metric}-{base}-{other}-{hash:04x}");
        let folder: String = folder.chars().map(plain).collect();
        let (key, base) = (quoted(key), quoted(base));
        Some(format!(
            "{run} --out {folder} && lowmesh compare {folder} --by {key} --baseline={base} --metrics {metric}"
        ))
    }

    /// The command that repeats one run of a point: by its name if it is stored, otherwise by its scenario.
    pub fn run(&self, point: &Point, seed: Seed) -> String {
        let Some(kept) = &self.store else {
            return Line::of(self, point).with_seeds(1, seed.0);
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
}

/// `lowmesh run` with its scenario and what is set, without seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    scenario: String,
    sets: Vec<(String, String)>,
}

impl Line {
    /// The line that runs the scenario of a point.
    fn of(from: &Provenance, point: &Point) -> Self {
        let name = setting(point, "scenario").unwrap_or(&from.scenario);
        // Settings that are not keys of the scenario are labels. A later value of a key replaces an earlier one.
        let keys = point.scenario.keys();
        let settings = point.settings.iter().filter(|(key, _)| has(&keys, key));
        let settings = settings.map(|(key, value)| (key.as_str(), value.as_str()));
        let given = from.overrides.iter().filter_map(|set| set.split_once('='));
        let given = given.map(|(key, value)| (key.trim(), value.trim()));
        // Swept keys are settings of the point, and the caller adds the seeds.
        let elsewhere = |key: &str| key.starts_with("sweep.") || matches!(key, "seeds" | "seed");
        // A flag that applies only to other values of a swept choice.
        let unused = |key: &str, value: &str| {
            let section = |key: &str| key.split_once('.').map(|(section, _)| section.to_owned());
            let decides =
                |choice: &str| setting(point, choice).is_some() && section(choice) == section(key);
            !has(&keys, key) && value != "[]" && CHOICES.into_iter().any(decides)
        };
        let given = given.filter(|(key, value)| !elsewhere(key) && !unused(key, value));
        let mut sets: Vec<(String, String)> = Vec::new();
        for (key, value) in given.chain(settings) {
            sets.retain(|(other, _)| other != key);
            sets.push((key.to_owned(), value.to_owned()));
        }
        let mut line = Self { scenario: name.to_owned(), sets };
        line.complete(point);
        line
    }

    /// Adds what the scenario of `point` differs in from the built-in scenario with the sets of the line: a setting that is
    /// a case of a publication stands for values of several keys. Where the sets alone do not go together, all differences
    /// from the built-in scenario take their place.
    fn complete(&mut self, point: &Point) {
        let name = &self.scenario;
        let own = point.scenario.head.name == *name;
        let Some(builtin) = BUILTINS.iter().find(|builtin| own && builtin.name == name) else {
            return;
        };
        let read = |sets: &[String]| Scenario::parse(name, builtin.text, sets);
        let (mut sets, there) = match read(&self.overrides()) {
            Ok(there) => (std::mem::take(&mut self.sets), there),
            Err(_) => (Vec::new(), read(&[]).expect("the built-in ones are tested")),
        };
        let more = point.scenario.keys_unlike(&there).into_iter();
        sets.extend(more.filter(|(key, _)| !matches!(key.as_str(), "seeds" | "seed")));
        self.sets = sets;
    }

    /// Adds what another line sets; none if the two disagree on a scenario.
    fn join(&mut self, other: Self) -> Option<()> {
        let known = |sets: &[(String, String)], key: &str| sets.iter().any(|(own, _)| own == key);
        let new: Vec<_> =
            other.sets.into_iter().filter(|(key, _)| !known(&self.sets, key)).collect();
        self.sets.extend(new);
        (self.scenario == other.scenario).then_some(())
    }

    fn overrides(&self) -> Vec<String> {
        self.sets.iter().map(|(key, value)| format!("{key}={value}")).collect()
    }

    /// Whether the line with the seeds of `head` gives these scenarios in this order.
    fn leads_to<'p>(&self, head: &Head, wanted: impl Iterator<Item = &'p Scenario>) -> bool {
        let mut overrides = self.overrides();
        overrides.extend([format!("seeds={}", head.seeds), format!("seed={}", head.seed)]);
        let plan = Plan::load(&self.scenario, &overrides);
        plan.is_ok_and(|plan| plan.points.iter().map(|point| &point.scenario).eq(wanted))
    }

    /// The words of the command, with the seeds of `head`.
    fn words(&self, head: &Head) -> String {
        self.with_seeds(head.seeds, head.seed)
    }

    fn with_seeds(&self, seeds: u32, seed: u64) -> String {
        let mut words = format!("lowmesh run {}", quoted(&self.scenario));
        for set in self.overrides() {
            words.extend([" --set ", &quoted(&set)]);
        }
        // Writing to a String cannot fail.
        _ = write!(words, " --seeds {seeds} --seed {seed}");
        words
    }
}

/// The value of a setting of `point`.
fn setting<'p>(point: &'p Point, key: &str) -> Option<&'p str> {
    point.settings.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
}

/// Whether `key` is among these keys, or a list of sections that is: its entries have an index.
fn has(keys: &BTreeMap<String, String>, key: &str) -> bool {
    keys.contains_key(key) || {
        let entry = format!("{key}[");
        keys.range(entry.clone()..).next().is_some_and(|(first, _)| first.starts_with(&entry))
    }
}

/// The values of a swept key as a flag holds them: words with commas, or a TOML list where a word would be read as several.
fn listed(values: &[&str]) -> String {
    let several = |value: &&str| value.contains([',', '[', '"']) || value.contains("..");
    if !values.iter().any(several) {
        return values.join(",");
    }
    let literal = |value: &&str| {
        let plain = value.starts_with('[') || value.parse::<f64>().is_ok_and(f64::is_finite);
        if plain || matches!(*value, "true" | "false") {
            return (*value).to_owned();
        }
        toml::Value::String((*value).to_owned()).to_string()
    };
    format!("[{}]", values.iter().map(literal).collect::<Vec<_>>().join(","))
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
pub(crate) mod tests {
    use super::*;
    use crate::figures::made_up::results;

    /// The words of a printed command, as a shell passes them on.
    pub fn words(command: &str) -> Vec<String> {
        let (mut words, mut word, mut quotes) = (Vec::new(), None::<String>, false);
        let mut letters = command.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\'' => {
                    quotes = !quotes;
                    word.get_or_insert_default();
                }
                '\\' if !quotes => word.get_or_insert_default().extend(letters.next()),
                ' ' if !quotes => words.extend(word.take()),
                other => word.get_or_insert_default().push(other),
            }
        }
        words.into_iter().chain(word).collect()
    }

    /// The overrides of a printed `lowmesh run`, seeds included.
    pub fn sets(command: &str) -> Vec<String> {
        let words = words(command);
        let flag = |pair: &[String]| match pair[0].as_str() {
            "--set" => Some(pair[1].clone()),
            "--seeds" | "--seed" => Some(format!("{}={}", &pair[0][2..], pair[1])),
            _ => None,
        };
        words.windows(2).filter_map(flag).collect()
    }

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

    /// The points of a sweep of `grid-64` as a publication has them.
    fn points(sets: &[&str]) -> Vec<Point> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let mut plan = Plan::load("grid-64", &sets).unwrap_or_else(|error| panic!("{error}"));
        for point in &mut plan.points {
            point.settings.insert(0, ("scenario".to_owned(), "grid-64".to_owned()));
        }
        plan.points
    }

    #[test]
    fn both_sides_of_a_difference_are_one_sweep() {
        let points = points(&["sweep.coap.congestion=cocoa,cocoa/draft-03"]);
        let sides = |key| Provenance::default().sides([&points[0], &points[1]], key, "tdr");
        let run = "lowmesh run grid-64 --set sweep.coap.congestion=cocoa,cocoa/draft-03 --seeds 10 --seed 1";
        let found = sides("coap.congestion").expect("a sweep holds both");
        let rest = found.strip_prefix(run).expect(&found);
        let (out, compare) = rest.split_once(" && ").expect(&found);
        let folder = out.strip_prefix(" --out ").expect(&found);
        assert!(folder.starts_with("tdr-cocoa-cocoa-draft-03-"), "{found}");
        assert_eq!(
            compare,
            format!("lowmesh compare {folder} --by coap.congestion --baseline=cocoa --metrics tdr")
        );
        assert_eq!(sides("scenario"), None, "no sweep holds it");
        assert_eq!(sides("mac.retries"), None, "it is not what they differ in");
    }

    #[test]
    fn values_that_are_lists_are_swept_as_lists() {
        let points = points(&["sweep.mac.hopping=[[15,25],[11,26]]"]);
        let both = [&points[0], &points[1]];
        let run = Provenance::default().swept(&both, "mac.hopping").expect("a sweep holds both");
        assert!(run.contains(" --set 'sweep.mac.hopping=[[15, 25],[11, 26]]' "), "{run}");
        let one = &points[1..];
        let run = Provenance::default().swept(&[&one[0]], "mac.hopping").expect("a sweep");
        assert!(run.contains(" --set 'sweep.mac.hopping=[[11, 26]]' "), "{run}");
    }

    #[test]
    fn a_list_of_sections_that_was_set_is_part_of_the_command() {
        let list = "radio.wifi=[{channel=1,load_mbps=2.0}]";
        let swept = "sweep.radio.medium=unit-disk,log-distance";
        let overrides: Vec<String> = [list, swept].map(str::to_owned).to_vec();
        let plan = Plan::load("grid-25", &overrides).unwrap_or_else(|error| panic!("{error}"));
        let from = Provenance { scenario: "grid-25".to_owned(), overrides, store: None };
        for point in &plan.points {
            let command = from.point(point);
            let again = Plan::load("grid-25", &sets(&command)).expect(&command);
            assert_eq!(again.points[0].scenario, point.scenario, "{command}");
        }
    }

    #[test]
    fn a_case_of_several_keys_that_go_together_only_is_set_as_a_whole() {
        // Without its entities the scenario needs another application, and neither is a setting of the point.
        let case = ["traffic.application=group", "traffic.members=[3,4]", "entity=[]"];
        let scenario = Scenario::load("wilab-40", &case.map(str::to_owned)).expect("a case");
        let settings = [("scenario", "wilab-40"), ("traffic.application", "group")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let point = Point { settings, scenario };
        let command = Provenance::default().point(&point);
        let again = Scenario::load("wilab-40", &sets(&command)).expect(&command);
        assert_eq!(again, point.scenario, "{command}");
    }

    #[test]
    fn no_sweep_stands_for_points_that_differ_in_more() {
        let (one, other) = (
            points(&["sweep.mac.retries=3,5"]),
            points(&["sweep.mac.retries=5,7", "duration=30min"]),
        );
        let swept = |points: &[&Point]| Provenance::default().swept(points, "mac.retries");
        assert!(swept(&[&one[0], &one[1]]).is_some());
        assert_eq!(swept(&[&one[0], &other[1]]), None);
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
            let again = Plan::load("grid-25", &sets(&command)).expect("the command is right");
            assert_eq!(again.runs()[0].id, spec[0].id);
        }
    }
}
