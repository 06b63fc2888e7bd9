//! Cross-validation: what a model says of conditions that had no part in choosing its numbers.

use std::collections::BTreeSet;

use serde::Serialize;

use super::condition::{Condition, HopRtt};
use crate::statistics::mean;

/// The numbers of the model that have no other source than a fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// How far a node is heard beyond its links, dB.
    pub margin_db: f64,
    /// Shadowing of pairs that are no link, dB.
    pub shadowing_db: f64,
}

const fn candidate(margin_db: f64, shadowing_db: f64) -> Candidate {
    Candidate { margin_db, shadowing_db }
}

/// What is chosen from: from links that alone are heard to nodes that nearly all hear each other.
pub const CANDIDATES: [Candidate; 8] = [
    candidate(2.0, 3.0),
    candidate(4.0, 3.0),
    candidate(4.0, 6.0),
    candidate(2.0, 10.0),
    candidate(4.0, 10.0),
    candidate(8.0, 6.0),
    candidate(8.0, 10.0),
    candidate(13.0, 3.0),
];

/// Parts in which the periods are left out.
const FOLDS: usize = 4;

/// A candidate under every condition.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Its numbers.
    pub candidate: Candidate,
    /// What it comes to.
    pub conditions: Vec<Condition>,
    /// Its times of first attempts at light load.
    pub light: Vec<HopRtt>,
}

/// Periods that were left out, and what was chosen without them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fold {
    /// The periods, ms.
    pub periods_ms: Vec<u32>,
    /// What fits the others best.
    pub chosen: Candidate,
    /// How far it is off there: all figures of all conditions, as a factor.
    pub fitted: f64,
    /// How far it is off under the periods left out.
    pub held_out: f64,
}

/// Leaves out each period once, with the one half the list away, and tells every condition by what was chosen without it.
pub fn cross(tried: &[Tried]) -> (Vec<Fold>, Vec<Condition>) {
    let all = tried.iter().flat_map(|tried| &tried.conditions);
    let periods: BTreeSet<u32> = all.map(|condition| condition.period_ms).collect();
    let periods: Vec<u32> = periods.into_iter().collect();
    let (mut folds, mut told) = (Vec::new(), Vec::new());
    for fold in 0..FOLDS.min(periods.len()) {
        let out: Vec<u32> = periods.iter().copied().skip(fold).step_by(FOLDS).collect();
        let is_out = |condition: &&Condition| out.contains(&condition.period_ms);
        let fit = |tried: &Tried| error(tried.conditions.iter().filter(|one| !is_out(one)));
        let fits = tried.iter().filter_map(|tried| Some((fit(tried)?, tried)));
        let Some((fitted, best)) = fits.min_by(|(a, _), (b, _)| a.total_cmp(b)) else { continue };
        let held: Vec<Condition> = best.conditions.iter().filter(is_out).cloned().collect();
        let Some(held_out) = error(held.iter()) else { continue };
        folds.push(Fold { periods_ms: out, chosen: best.candidate, fitted, held_out });
        told.extend(held);
    }
    let key = |condition: &Condition| (condition.algorithm.clone(), condition.period_ms);
    told.sort_by_key(key);
    (folds, told)
}

/// exp of the mean of |ln(simulated / measured)| over all figures; absent without conditions.
fn error<'c>(conditions: impl Iterator<Item = &'c Condition>) -> Option<f64> {
    let mut logs = Vec::new();
    for condition in conditions {
        let pairs = condition.simulated.all().into_iter().zip(condition.measured.all());
        logs.extend(pairs.map(|((_, a), (_, b))| libm::fabs(libm::log(a / b))));
    }
    mean(&logs).map(libm::exp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::condition::Figures;

    fn condition(period_ms: u32, off: f64) -> Condition {
        let figures = |throughput_tps| Figures {
            throughput_tps,
            tdr: 1.0,
            rtt_p50_ms: 1.0,
            rtt_p95_ms: 1.0,
            link_success: 1.0,
            first_attempts: 1.0,
        };
        let (measured, simulated) = (figures(10.0), figures(10.0 * off));
        Condition { algorithm: "default".to_owned(), period_ms, measured, simulated }
    }

    fn tried(candidate: Candidate, off: [f64; 8]) -> Tried {
        let conditions = (1..).zip(off).map(|(place, off)| condition(place * 100, off)).collect();
        Tried { candidate, conditions, light: Vec::new() }
    }

    #[test]
    fn a_period_is_told_by_what_was_chosen_without_it() {
        // The second is right but for 100 ms, where it is off by far; all others would choose it.
        let one = tried(CANDIDATES[0], [1.0, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5]);
        let other = tried(CANDIDATES[1], [100.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
        let (folds, told) = cross(&[one, other]);
        assert_eq!(folds[0].periods_ms, [100, 500]);
        assert_eq!(folds[0].chosen, CANDIDATES[1]);
        assert!((told[0].simulated.throughput_tps - 1000.0).abs() < 1e-9, "{told:?}");
        // With 100 ms among those fitted to, its error of a hundred outweighs the rest.
        assert_eq!(folds[1].chosen, CANDIDATES[0]);
        assert!(folds[1].held_out > folds[0].fitted);
    }

    #[test]
    fn every_period_is_left_out_once() {
        let (folds, told) = cross(&[tried(CANDIDATES[0], [1.0; 8])]);
        assert_eq!((folds.len(), told.len()), (FOLDS, 8));
        let periods: BTreeSet<u32> = told.iter().map(|condition| condition.period_ms).collect();
        assert_eq!(periods.len(), 8);
        assert!(cross(&[]).0.is_empty());
    }
}
