//! What can be tuned, between which bounds, and the candidates drawn from it.
//!
//! The bounds contain every published value with a margin, and exclude values that are known not to work. A comment at
//! each bound gives the reason.

use lowmesh_units::{Duration, NodeId, Purpose, Rng, Seed};

use crate::scenario::{Cocoa, Congestion, Scenario, section_text};

/// How a dimension is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    /// Evenly, a plain number with three decimals.
    Linear,
    /// Evenly in the logarithm, seconds with two decimals: from 1 s to 2 s is as far as from 20 s to 40 s.
    Seconds,
}

/// One number to tune.
#[derive(Clone, Copy, Debug)]
struct Dimension {
    low: f64,
    high: f64,
    scale: Scale,
    put: fn(&mut Candidate, f64),
}

/// A dimension of plain numbers.
const fn number(low: f64, high: f64, put: fn(&mut Candidate, f64)) -> Dimension {
    Dimension { low, high, scale: Scale::Linear, put }
}

/// A dimension of durations, its bounds in seconds.
const fn seconds(low: f64, high: f64, put: fn(&mut Candidate, f64)) -> Dimension {
    Dimension { low, high, scale: Scale::Seconds, put }
}

/// CoCoA. Published values in brackets.
const COCOA: [Dimension; 11] = [
    // [.125 to .9] At 0 nothing is learnt; at 1 the last sample is all that is known.
    number(0.05, 0.95, |c, v| c.cocoa.alpha = Some(v)),
    // [.125 to .5] As alpha.
    number(0.05, 0.95, |c, v| c.cocoa.beta = Some(v)),
    // [2 to 4] Below 0.5 the RTO is the mean, which half of all answers exceed; 8 is twice TCP's.
    number(0.5, 8.0, |c, v| c.cocoa.k_strong = Some(v)),
    // [.5 to 1] A weak sample is too long already, so little is to be added.
    number(0.1, 4.0, |c, v| c.cocoa.k_weak = Some(v)),
    // [.5 to .75] At 0 the estimator is not heard; at 1 the other one is forgotten.
    number(0.05, 0.95, |c, v| c.cocoa.lambda_strong = Some(v)),
    // [.1 to .25] As lambda_strong.
    number(0.02, 0.95, |c, v| c.cocoa.lambda_weak = Some(v)),
    // [1 s to 20 s] From the shortest round trips of a mesh up to the largest RTO.
    seconds(0.5, 60.0, |c, v| c.cocoa.vbf_lower = Some(Duration::from_secs_f64(v))),
    // [1 s to 50 s] As the lower threshold.
    seconds(0.5, 60.0, |c, v| c.cocoa.vbf_upper = Some(Duration::from_secs_f64(v))),
    // [2.2 to 3] More than 4 leaves the fourth retransmission of 1 s past the longest wait.
    number(1.2, 4.0, |c, v| c.cocoa.vbf_below = Some(v)),
    // [1.5 to 2]
    number(1.1, 3.0, |c, v| c.cocoa.vbf_between = Some(v)),
    // [1.1 to 1.5] 1 is no back-off at all.
    number(1.0, 2.0, |c, v| c.cocoa.vbf_above = Some(v)),
];

/// The default timer. RFC 7252 s4.8.1: less than 1 s violates RFC 5405; the longest RTO is 60 s.
const DEFAULT: [Dimension; 1] =
    [seconds(1.0, 60.0, |c, v| c.ack_timeout = Some(Duration::from_secs_f64(v)))];

/// One set of values to try.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The published name it goes by; none for one that was drawn.
    pub published: Option<&'static str>,
    /// The timer.
    pub congestion: Congestion,
    /// Numbers over the timer's set.
    pub cocoa: Cocoa,
    /// ACK_TIMEOUT, where that is tuned.
    pub ack_timeout: Option<Duration>,
}

impl Candidate {
    /// A timer as it was published.
    pub fn published(congestion: Congestion) -> Self {
        let published = Some(congestion.name());
        Self { published, ..Self::drawn(congestion) }
    }
    fn drawn(congestion: Congestion) -> Self {
        Self { published: None, congestion, cocoa: Cocoa::default(), ack_timeout: None }
    }
    /// `scenario` with this timer.
    pub fn scenario(&self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        scenario.coap.congestion = self.congestion;
        scenario.cocoa = self.cocoa.clone();
        scenario.coap.ack_timeout = self.ack_timeout.unwrap_or(scenario.coap.ack_timeout);
        scenario
    }
    /// What to write into a scenario to have it.
    pub fn to_toml(&self) -> String {
        let timeout = self.ack_timeout.map(|timeout| format!("ack_timeout = \"{timeout}\"\n"));
        let timeout = timeout.unwrap_or_default();
        let mut text = format!("[coap]\ncongestion = \"{}\"\n{timeout}", self.congestion.name());
        if !self.cocoa.is_empty() {
            text.push_str("\n[cocoa]\n");
            text.push_str(&section_text(&self.cocoa));
        }
        text
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
}

/// Whether this timer has something to tune.
pub fn can_tune(timer: Congestion) -> bool {
    dimensions(timer).is_some()
}

fn dimensions(timer: Congestion) -> Option<&'static [Dimension]> {
    if timer == Congestion::Default {
        return Some(&DEFAULT);
    }
    lowmesh_congestion::cocoa_set(timer.name()).map(|_| &COCOA[..])
}

/// The published sets that a result is held against, and that also are candidates: default, CoCoA and 6CoCoA, and
/// the tuned timer itself where it is another.
pub fn published(timer: Congestion) -> Vec<Candidate> {
    let mut timers = vec![Congestion::Default, Congestion::Cocoa, Congestion::SixCocoa];
    if !timers.contains(&timer) {
        timers.push(timer);
    }
    timers.into_iter().map(Candidate::published).collect()
}

/// `count` candidates of `timer` as a Latin hypercube: each dimension is cut into `count` equal parts and each
/// part has one candidate, so that even few of them cover the whole of every dimension.
pub fn draw(timer: Congestion, count: u32, seed: Seed) -> Vec<Candidate> {
    let mut rng = Rng::stream(seed, NodeId(0), Purpose::Swarm);
    let mut candidates: Vec<Candidate> = (0..count).map(|_| Candidate::drawn(timer)).collect();
    for dimension in dimensions(timer).unwrap_or_default() {
        for (candidate, part) in candidates.iter_mut().zip(shuffled(count, &mut rng)) {
            let place = (f64::from(part) + rng.unit()) / f64::from(count);
            (dimension.put)(candidate, dimension.at(place));
        }
    }
    for Candidate { cocoa, .. } in &mut candidates {
        // Drawn apart from each other; a set needs them in order.
        if cocoa.vbf_lower > cocoa.vbf_upper {
            std::mem::swap(&mut cocoa.vbf_lower, &mut cocoa.vbf_upper);
        }
    }
    candidates
}

impl Dimension {
    /// The value at `place` from 0 to 1, rounded as it will be written: what is printed is what was run.
    fn at(&self, place: f64) -> f64 {
        let Self { low, high, scale, .. } = *self;
        match scale {
            Scale::Linear => libm::round((low + (high - low) * place) * 1e3) / 1e3,
            Scale::Seconds => libm::round(low * libm::pow(high / low, place) * 1e2) / 1e2,
        }
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
    use super::*;

    #[test]
    fn every_candidate_is_a_valid_scenario_that_reads_back_as_itself() {
        let scenario = Scenario::load("grid-25", &[]).expect("a built-in");
        for timer in [Congestion::Default, Congestion::Cocoa, Congestion::CocoaDraft03] {
            for candidate in draw(timer, 40, Seed(1)).into_iter().chain(published(timer)) {
                let made = candidate.scenario(&scenario);
                let read = Scenario::parse("x", &made.to_toml(), &[]);
                assert_eq!(read.as_ref(), Ok(&made));
                let set = Scenario::load("grid-25", &candidate.flags());
                assert_eq!(set.expect("flags of a candidate are right"), made);
                let pasted = format!("name = \"x\"\n{}", candidate.to_toml());
                let pasted = Scenario::parse("x", &pasted, &[]).expect("TOML to paste is right");
                assert_eq!(
                    (pasted.coap.ack_timeout, pasted.cocoa),
                    (made.coap.ack_timeout, made.cocoa)
                );
            }
        }
    }

    #[test]
    fn candidates_cover_every_dimension_from_end_to_end() {
        let drawn = draw(Congestion::Cocoa, 20, Seed(3));
        let mut alphas: Vec<f64> = drawn.iter().filter_map(|one| one.cocoa.alpha).collect();
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
        let draw = |seed| draw(Congestion::Cocoa, 5, Seed(seed));
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn only_timers_with_free_numbers_can_be_tuned() {
        for timer in [Congestion::Default, Congestion::SixCocoa, Congestion::CocoaEcoap] {
            assert!(can_tune(timer), "{}", timer.name());
            assert!(draw(timer, 2, Seed(1)).iter().all(|one| one.to_toml().lines().count() > 2));
        }
        assert!(
            !can_tune(Congestion::Fasor)
                && !can_tune(Congestion::Rfc6298)
                && !can_tune(Congestion::Fixed)
        );
    }
}
