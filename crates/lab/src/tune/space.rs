//! What can be tuned, between which bounds, and the candidates drawn from it: the parameters of a timer with a range
//! of search, or ACK_TIMEOUT where it has none.

use lowmesh_congestion::Timer;
use lowmesh_registry::{Algorithm, Choice, Order, Parameter, Row, Scale, Search};
use lowmesh_units::{Duration, NodeId, Purpose, Rng, Seed};

use crate::scenario::{Scenario, numbers_text};

/// ACK_TIMEOUT, in seconds. RFC 7252 s4.8.1: less than 1 s violates RFC 5405; the longest RTO is 60 s.
pub const ACK_TIMEOUT: Search =
    Search::logarithmic(1.0, 60.0, "RFC 7252 s4.8.1 rules less than 1 s out.");

/// One set of values to try.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The published name it goes by; none for one that was drawn.
    pub published: Option<&'static str>,
    /// The timer and its numbers.
    pub timer: Choice<dyn Timer>,
    /// ACK_TIMEOUT, where that is tuned.
    pub ack_timeout: Option<Duration>,
}

impl Candidate {
    /// A timer as it was published.
    pub fn published(timer: &'static Row<dyn Timer>) -> Self {
        Self { published: Some(timer.name), ..Self::drawn(timer) }
    }
    fn drawn(timer: &'static Row<dyn Timer>) -> Self {
        Self { published: None, timer: timer.into(), ack_timeout: None }
    }
    /// `scenario` with this timer.
    pub fn scenario(&self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        scenario.coap.congestion = self.timer.clone();
        scenario.coap.ack_timeout = self.ack_timeout.unwrap_or(scenario.coap.ack_timeout);
        scenario
    }
    /// What to write into a scenario to have it.
    pub fn to_toml(&self) -> String {
        let timeout = self.ack_timeout.map(|timeout| format!("ack_timeout = \"{timeout}\"\n"));
        let timeout = timeout.unwrap_or_default();
        let numbers = numbers_text(&self.timer);
        format!("[coap]\ncongestion = \"{}\"\n{timeout}{numbers}", self.timer.name())
    }
    /// The same as values of `--set`.
    pub fn flags(&self) -> Vec<String> {
        let mut section = "";
        let mut flags = Vec::new();
        let text = self.to_toml();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name;
            } else if let Some((key, value)) = line.split_once(" = ") {
                flags.push(format!("{section}.{key}={}", value.trim_matches('"')));
            }
        }
        flags
    }
    /// Sets a parameter, or ACK_TIMEOUT without one, to a number or to so many seconds.
    fn put(&mut self, parameter: Option<&Parameter>, number: f64) {
        let Some(parameter) = parameter else {
            self.ack_timeout = Some(Duration::from_secs_f64(number));
            return;
        };
        let value = parameter.value_at(number).expect("what has a range of search has a size");
        self.timer.set(parameter.key, value).expect("a range of search lies within the bounds");
    }
    /// Swaps values that were drawn apart from each other and do not stand in their order.
    fn order(&mut self) {
        for parameter in self.timer.row().parameters {
            let Order::NotAbove(other) = parameter.order else { continue };
            let (low, high) = (self.timer.value(parameter.key), self.timer.value(other));
            if low > high {
                let swapped = [(parameter.key, high), (other, low)];
                for (key, value) in swapped {
                    self.timer.set(key, value).expect("both have the same bounds");
                }
            }
        }
    }
}

/// What is tuned of a timer; ACK_TIMEOUT has no parameter.
fn dimensions(timer: &Row<dyn Timer>) -> Vec<(Option<&'static Parameter>, Search)> {
    let own = timer.parameters.iter().filter_map(|one| Some((Some(one), one.search?)));
    let own: Vec<_> = own.collect();
    if own.is_empty() { vec![(None, ACK_TIMEOUT)] } else { own }
}

/// The published sets that a result is held against, and that also are candidates: default, CoCoA and 6CoCoA, and
/// the tuned timer itself where it is another.
pub fn published(timer: &'static Row<dyn Timer>) -> Vec<Candidate> {
    let is_published = |row: &&'static Row<dyn Timer>| PUBLISHED.contains(&row.name);
    let mut timers: Vec<_> = <dyn Timer>::BUILTIN.iter().copied().filter(is_published).collect();
    if !timers.contains(&timer) {
        timers.push(timer);
    }
    timers.into_iter().map(Candidate::published).collect()
}

/// The timers that every result is compared with.
const PUBLISHED: [&str; 3] = ["default", "cocoa", "6cocoa"];

/// `count` candidates of `timer` as a Latin hypercube: each dimension is cut into `count` equal parts and each
/// part has one candidate, so that even few of them cover the whole of every dimension.
pub fn draw(timer: &'static Row<dyn Timer>, count: u32, seed: Seed) -> Vec<Candidate> {
    let mut rng = Rng::stream(seed, NodeId(0), Purpose::Swarm);
    let mut candidates: Vec<Candidate> = (0..count).map(|_| Candidate::drawn(timer)).collect();
    for (parameter, search) in dimensions(timer) {
        for (candidate, part) in candidates.iter_mut().zip(shuffled(count, &mut rng)) {
            let place = (f64::from(part) + rng.unit()) / f64::from(count);
            candidate.put(parameter, at(search, place));
        }
    }
    candidates.iter_mut().for_each(Candidate::order);
    candidates
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

    #[test]
    fn every_candidate_is_a_valid_scenario_that_reads_back_as_itself() {
        let scenario = Scenario::load("grid-25", &[]).expect("a built-in");
        for timer in [&rfc7252::ROW, &COCOA, &COCOA_DRAFT_03] {
            for candidate in draw(timer, 40, Seed(1)).into_iter().chain(published(timer)) {
                let made = candidate.scenario(&scenario);
                let read = Scenario::parse("x", &made.to_toml(), &[]);
                assert_eq!(read.as_ref(), Ok(&made));
                let set = Scenario::load("grid-25", &candidate.flags());
                assert_eq!(set.expect("flags of a candidate are right"), made);
                let pasted = format!("name = \"x\"\n{}", candidate.to_toml());
                let pasted = Scenario::parse("x", &pasted, &[]).expect("TOML to paste is right");
                assert_eq!(
                    (pasted.coap.ack_timeout, pasted.coap.congestion),
                    (made.coap.ack_timeout, made.coap.congestion)
                );
            }
        }
    }

    #[test]
    fn candidates_cover_every_dimension_from_end_to_end() {
        let drawn = draw(&COCOA, 20, Seed(3));
        let mut alphas: Vec<f64> = drawn.iter().map(|one| one.timer.number("alpha")).collect();
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
        let draw = |seed| draw(&COCOA, 5, Seed(seed));
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn a_timer_without_parameters_of_its_own_is_tuned_by_where_it_starts() {
        for timer in [&rfc7252::ROW, &fasor::ROW] {
            let drawn = draw(timer, 2, Seed(1));
            assert!(drawn.iter().all(|one| one.timer.is_plain() && one.ack_timeout.is_some()));
        }
        for timer in [&SIX_COCOA_ROW, &COCOA_ECOAP] {
            let drawn = draw(timer, 2, Seed(1));
            assert!(drawn.iter().all(|one| one.timer.replaced().count() == 11));
            assert!(drawn.iter().all(|one| one.ack_timeout.is_none()));
        }
    }
}
