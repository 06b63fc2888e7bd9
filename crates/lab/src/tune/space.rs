//! What can be tuned, between which bounds, and the candidates drawn from it: parameters of the rows that a scenario names,
//! and ACK_TIMEOUT.

use lowmesh_congestion::Timer;
use lowmesh_registry::{Algorithm, Parameter, Row, Scale, Search, Value, similar};
use lowmesh_units::{Duration, NodeId, Purpose, Rng, Seed};

use super::TuneError;
use crate::scenario::{Scenario, literal, ordered};

/// ACK_TIMEOUT, in seconds. RFC 7252 s4.8.1: less than 1 s violates RFC 5405; the longest RTO is 60 s.
pub const ACK_TIMEOUT: Search =
    Search::logarithmic(1.0, 60.0, "RFC 7252 s4.8.1 forbids less than 1 s.");
/// The key of ACK_TIMEOUT, which is a parameter of no row.
const ACK_TIMEOUT_KEY: &str = "coap.ack_timeout";
/// The name of the set that changes nothing.
const UNCHANGED: &str = "unchanged";

/// One set of values to try.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The name of a set that was not drawn: that of a published timer, or `unchanged`.
    pub published: Option<&'static str>,
    /// The timer, if one is tuned; else that of the scenario.
    timer: Option<&'static Row<dyn Timer>>,
    /// Values by dotted key.
    values: Vec<(String, Value)>,
}

impl Candidate {
    /// A timer as it was published.
    pub fn published(timer: &'static Row<dyn Timer>) -> Self {
        Self { published: Some(timer.name), timer: Some(timer), values: Vec::new() }
    }
    /// The scenario as it is.
    fn unchanged() -> Self {
        Self { published: Some(UNCHANGED), timer: None, values: Vec::new() }
    }
    /// The value that it gives a key.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.values.iter().find(|(own, _)| own == key).map(|(_, value)| value)
    }
    /// `scenario` with these values.
    pub fn scenario(&self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        if let Some(timer) = self.timer {
            scenario.coap.congestion = timer.into();
        }
        for (key, value) in &self.values {
            match value {
                Value::Time(timeout) if key == ACK_TIMEOUT_KEY => {
                    scenario.coap.ack_timeout = *timeout;
                }
                _ => scenario
                    .set_parameter(key, value.clone())
                    .expect("a space has keys of rows that the scenario names, and their bounds"),
            }
        }
        scenario
    }
    /// The dotted keys with their values as TOML.
    fn settings(&self) -> impl Iterator<Item = (&str, String)> {
        let timer = self.timer.map(|timer| ("coap.congestion", literal(&Value::Name(timer.name))));
        let values = self.values.iter().map(|(key, value)| (key.as_str(), literal(value)));
        timer.into_iter().chain(values)
    }
    /// The TOML that sets this candidate in a scenario.
    pub fn to_toml(&self) -> String {
        let (mut text, mut open) = (String::new(), "");
        for (path, value) in self.settings() {
            let (section, key) = path.rsplit_once('.').expect("a key of a section");
            if section != open {
                let gap = if open.is_empty() { "" } else { "\n" };
                text.extend([gap, "[", section, "]\n"]);
                open = section;
            }
            text.extend([key, " = ", &value, "\n"]);
        }
        text
    }
    /// The same as flags of `--set`.
    pub fn flags(&self) -> Vec<String> {
        let flag = |(key, value): (&str, String)| format!("{key}={}", value.trim_matches('"'));
        self.settings().map(flag).collect()
    }
    /// Swaps values that were drawn apart from each other and are not in order. What is still not in order, or does not go
    /// together with the rest of the scenario, has the scenario's own value.
    fn order(&mut self, dimensions: &[Dimension], scenario: &Scenario) {
        for dimension in dimensions {
            let place = |key: &String| self.values.iter().position(|(own, _)| own == key);
            let Some([low, high]) = dimension.ordered() else { continue };
            let (Some(low), Some(high)) = (place(&low), place(&high)) else { continue };
            if self.values[low].1 > self.values[high].1 {
                let value = self.values[low].1.clone();
                self.values[low].1 = std::mem::replace(&mut self.values[high].1, value);
            }
        }
        loop {
            let wrong = self.scenario(scenario).disorders();
            let before = self.values.len();
            self.values.retain(|(key, _)| !wrong.contains(key));
            if self.values.len() == before {
                break;
            }
        }
        if !self.scenario(scenario).conflicts("").is_empty() {
            self.values.clear();
        }
    }
}

/// A key that is tuned.
#[derive(Clone, Debug, PartialEq)]
struct Dimension {
    /// Its section.
    section: &'static str,
    /// The parameter of a row; `None` for ACK_TIMEOUT.
    parameter: Option<&'static Parameter>,
    search: Search,
}

impl Dimension {
    const ACK_TIMEOUT: Self = Self { section: "coap", parameter: None, search: ACK_TIMEOUT };

    fn key(&self) -> String {
        let name = self.parameter.map(|parameter| format!("{}.{}", self.section, parameter.key));
        name.unwrap_or_else(|| ACK_TIMEOUT_KEY.to_owned())
    }
    /// The value of this size, within the bounds.
    fn value(&self, size: f64) -> Value {
        let size = size.clamp(self.search.low, self.search.high);
        let value = self.parameter.map(|parameter| parameter.value_at(size));
        let value = value.unwrap_or_else(|| Some(Value::Time(Duration::from_secs_f64(size))));
        value.expect("what has a range of search has a size")
    }
    /// Its key and that of the parameter that it may not exceed.
    fn ordered(&self) -> Option<[String; 2]> {
        ordered(self.section, self.parameter?)
    }
}

/// What is tuned, and the sets that a result is compared with, which are candidates too.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    timer: Option<&'static Row<dyn Timer>>,
    dimensions: Vec<Dimension>,
    published: Vec<Candidate>,
}

/// The timers that every tuned timer is compared with.
const PUBLISHED: [&str; 3] = ["default", "cocoa", "6cocoa"];

impl Space {
    /// The parameters of a timer with a range of search, or ACK_TIMEOUT if it has none; compared with the published sets:
    /// default, CoCoA and 6CoCoA, and the timer itself if it is another.
    pub fn of_timer(timer: &'static Row<dyn Timer>) -> Self {
        let is_published = |row: &&'static Row<dyn Timer>| PUBLISHED.contains(&row.name);
        let builtin = <dyn Timer>::BUILTIN.iter().copied();
        let mut timers: Vec<_> = builtin.filter(is_published).collect();
        if !timers.contains(&timer) {
            timers.push(timer);
        }
        let searched = |parameter: &'static Parameter| {
            let (section, search) = (timer.section, parameter.search?);
            Some(Dimension { section, parameter: Some(parameter), search })
        };
        let mut dimensions: Vec<_> = timer.parameters.iter().filter_map(searched).collect();
        if dimensions.is_empty() {
            dimensions.push(Dimension::ACK_TIMEOUT);
        }
        let published = timers.into_iter().map(Candidate::published).collect();
        Self { timer: Some(timer), dimensions, published }
    }

    /// Parameters of the rows that `scenario` names, compared with the scenario as it is. A key that names a row, such as
    /// `schedule.function`, is short for its parameters with a range of search, or for all of them if none has one.
    pub fn of_keys(scenario: &Scenario, keys: &[String]) -> Result<Self, TuneError> {
        let mut dimensions: Vec<Dimension> = Vec::new();
        for key in keys {
            let found = dimensions_at(scenario, key);
            if found.is_empty() {
                let known: Vec<String> = everything(scenario).iter().map(Dimension::key).collect();
                let similar = similar(key, known.iter().map(String::as_str));
                return Err(TuneError::Key { key: key.clone(), similar, known });
            }
            for dimension in found {
                if !dimensions.contains(&dimension) {
                    dimensions.push(dimension);
                }
            }
        }
        Ok(Self { timer: None, dimensions, published: vec![Candidate::unchanged()] })
    }

    /// The sets that a result is compared with.
    pub fn published(&self) -> &[Candidate] {
        &self.published
    }

    /// The keys that are tuned.
    pub fn keys(&self) -> impl Iterator<Item = String> {
        self.dimensions.iter().map(Dimension::key)
    }

    /// `count` candidates as a Latin hypercube: each dimension is cut into `count` equal parts and each part has one
    /// candidate, so that even few of them cover the whole of every dimension.
    pub fn draw(&self, scenario: &Scenario, count: u32, seed: Seed) -> Vec<Candidate> {
        let mut rng = Rng::stream(seed, NodeId(0), Purpose::Swarm);
        let drawn = Candidate { published: None, timer: self.timer, values: Vec::new() };
        let mut candidates: Vec<Candidate> = (0..count).map(|_| drawn.clone()).collect();
        for dimension in &self.dimensions {
            for (candidate, part) in candidates.iter_mut().zip(shuffled(count, &mut rng)) {
                let place = (f64::from(part) + rng.unit()) / f64::from(count);
                let value = dimension.value(at(dimension.search, place));
                candidate.values.push((dimension.key(), value));
            }
        }
        for candidate in &mut candidates {
            candidate.order(&self.dimensions, scenario);
        }
        candidates
    }
}

/// Every key of a scenario that can be tuned.
fn everything(scenario: &Scenario) -> Vec<Dimension> {
    let mut dimensions = vec![Dimension::ACK_TIMEOUT];
    for row in scenario.clone().chosen().map(|row| row.declaration()) {
        dimensions.extend(row.parameters.iter().filter_map(|parameter| {
            let search = parameter.range()?;
            Some(Dimension { section: row.section, parameter: Some(parameter), search })
        }));
    }
    dimensions
}

/// What `key` stands for; nothing if it cannot be tuned.
fn dimensions_at(scenario: &Scenario, key: &str) -> Vec<Dimension> {
    let all = everything(scenario);
    let mut rows = scenario.clone();
    let named = rows.chosen().into_iter().find(|row| row.key() == key);
    let Some(row) = named.map(|row| row.declaration()) else {
        return all.into_iter().filter(|dimension| dimension.key() == key).collect();
    };
    let of_row =
        all.into_iter().filter(|one| one.parameter.is_some() && one.section == row.section);
    let of_row: Vec<_> = of_row.collect();
    let has_search = |one: &Dimension| one.parameter.is_some_and(|it| it.search.is_some());
    if of_row.iter().any(has_search) {
        of_row.into_iter().filter(has_search).collect()
    } else {
        of_row
    }
}

/// The value at `place` from 0 to 1 of a range, rounded as it will be written: what is printed is what was run.
fn at(search: Search, place: f64) -> f64 {
    let Search { low, high, scale, .. } = search;
    match scale {
        Scale::Linear => libm::round((low + (high - low) * place) * 1e3) / 1e3,
        Scale::Logarithmic => libm::round(low * libm::pow(high / low, place) * 1e2) / 1e2,
    }
}

/// The numbers below `count` in random order (Fisher and Yates).
fn shuffled(count: u32, rng: &mut Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last as usize, rng.below(last + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use lowmesh_congestion::timer::cocoa::rows::{
        COCOA, COCOA_DRAFT_03, COCOA_ECOAP, SIX_COCOA_ROW,
    };
    use lowmesh_congestion::timer::{fasor, rfc7252};

    use super::*;
    use crate::scenario::Rows;

    fn scenario(flags: &[&str]) -> Scenario {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Scenario::load("grid-25", &flags).expect("a built-in")
    }

    fn number(candidate: &Candidate, key: &str) -> f64 {
        let Some(Value::Number(number)) = candidate.value(key) else { panic!("no {key}") };
        *number
    }

    /// Every candidate of `space` is a scenario, which its flags and its TOML lead to.
    fn check(space: &Space, base: &[&str]) {
        let scenario = scenario(base);
        let drawn = space.draw(&scenario, 40, Seed(1));
        for candidate in drawn.iter().chain(space.published()) {
            let made = candidate.scenario(&scenario);
            let read = Scenario::parse("x", &made.to_toml(), &[]);
            assert_eq!(read.as_ref(), Ok(&made));
            let flags = candidate.flags();
            let flags: Vec<&str> =
                base.iter().copied().chain(flags.iter().map(String::as_str)).collect();
            assert_eq!(self::scenario(&flags), made);
            let pasted = format!("name = \"x\"\n{}", candidate.to_toml());
            assert!(!base.is_empty() || Scenario::parse("x", &pasted, &[]).is_ok(), "{pasted}");
        }
    }

    #[test]
    fn every_candidate_is_a_valid_scenario_that_reads_back_as_itself() {
        for timer in [&rfc7252::ROW, &COCOA, &COCOA_DRAFT_03] {
            check(&Space::of_timer(timer), &[]);
        }
    }

    #[test]
    fn the_parameters_of_every_row_can_be_tuned() {
        for kind in Rows::default().kinds() {
            for row in kind.rows.iter().filter(|row| !row.parameters.is_empty()) {
                let chosen = format!("{}={}", kind.key, row.name);
                // Rows that need a file or another topology than a grid.
                let read = Scenario::load("grid-25", std::slice::from_ref(&chosen));
                let Ok(base) = read else { continue };
                let space =
                    Space::of_keys(&base, &[kind.key.to_owned()]).expect("it has parameters");
                assert!(space.keys().count() > 0, "{chosen}");
                check(&space, &[&chosen]);
            }
        }
    }

    #[test]
    fn keys_are_tuned_alone_or_with_others() {
        let base = scenario(&["schedule.function=msf"]);
        let keys = ["schedule.lim_high", "coap.ack_timeout", "schedule.lim_high"];
        let space = Space::of_keys(&base, &keys.map(str::to_owned)).expect("both can be tuned");
        assert_eq!(space.keys().collect::<Vec<_>>(), ["schedule.lim_high", "coap.ack_timeout"]);
        let drawn = space.draw(&base, 50, Seed(1));
        // Below the scenario's lim_low of 25, a value is left out.
        let high = |one: &Candidate| one.value("schedule.lim_high").cloned();
        assert!(drawn.iter().filter_map(high).all(|value| value > Value::Whole(25)));
        assert!(drawn.iter().filter(|one| high(one).is_none()).count() > 5);
        assert!(drawn.iter().all(|one| one.value("coap.ack_timeout").is_some()));
    }

    #[test]
    fn a_key_that_cannot_be_tuned_is_refused_with_the_one_that_was_meant() {
        let base = scenario(&["schedule.function=msf"]);
        let refused = |key: &str| {
            Space::of_keys(&base, &[key.to_owned()]).expect_err("no such parameter").to_string()
        };
        let text = refused("schedule.lim_hihg");
        assert!(text.contains("did you mean `schedule.lim_high`?"), "{text}");
        assert!(refused("traffic.period").contains("coap.ack_timeout"));
        assert!(refused("cocoa.alpha").contains("cannot be tuned"), "the timer is another one");
    }

    #[test]
    fn candidates_cover_every_dimension_from_end_to_end() {
        let drawn = Space::of_timer(&COCOA).draw(&scenario(&[]), 20, Seed(3));
        let mut alphas: Vec<f64> = drawn.iter().map(|one| number(one, "cocoa.alpha")).collect();
        alphas.sort_by(f64::total_cmp);
        for (part, alpha) in alphas.iter().enumerate() {
            // The bounds of the part, and half of the last digit written.
            let low = 0.05 + 0.9 * part as f64 / 20.0 - 0.0005;
            assert!((low..=low + 0.9 / 20.0 + 0.001).contains(alpha), "{alpha} in part {part}");
        }
        assert_eq!(alphas.len(), 20);
    }

    #[test]
    fn the_same_seed_draws_the_same_candidates_and_another_others() {
        let draw = |seed| Space::of_timer(&COCOA).draw(&scenario(&[]), 5, Seed(seed));
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn a_timer_without_parameters_of_its_own_is_tuned_by_where_it_starts() {
        for timer in [&rfc7252::ROW, &fasor::ROW] {
            let keys: Vec<String> = Space::of_timer(timer).keys().collect();
            assert_eq!(keys, ["coap.ack_timeout"]);
        }
        for timer in [&SIX_COCOA_ROW, &COCOA_ECOAP] {
            let space = Space::of_timer(timer);
            assert!(space.keys().count() == 11 && space.keys().all(|key| key != ACK_TIMEOUT_KEY));
        }
    }
}
