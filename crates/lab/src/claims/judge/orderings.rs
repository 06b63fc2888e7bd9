//! Whether claims have the same verdicts with other settings.

use super::{Evidence, Finding, judge};
use crate::claims::answer::{Measured, Verdict};
use crate::claims::chance;
use crate::claims::claim::{Claim, Test};
use crate::claims::compare::Outcome;
use crate::claims::paper::Paper;

/// Judges whether claims have the same verdicts at other values of the axis.
pub(super) fn orderings(paper: &Paper, test: &Test, evidence: &Evidence) -> Finding {
    let axis = test.along.as_deref().unwrap_or_default();
    let Some(points) = evidence.sweeps.get(&test.sweep) else {
        return Finding::unclear(format!("sweep `{}` was not run", test.sweep));
    };
    let mut values: Vec<&str> = points.iter().filter_map(|point| point.setting(axis)).collect();
    values.sort_unstable();
    values.dedup();
    let claims: Vec<&Claim> = test.claims.iter().filter_map(|id| paper.claim(id)).collect();
    let mut outcomes = Vec::new();
    let mut differing = Vec::new();
    for value in values {
        let same = claims.iter().map(|claim| {
            let mut moved = (*claim).clone();
            for one in &mut moved.tests {
                one.sweep.clone_from(&test.sweep);
                one.at.insert(axis.to_owned(), vec![value.to_owned()]);
            }
            let here = judge(paper, &moved, evidence).verdict;
            match (judge(paper, claim, evidence).verdict, here) {
                (Verdict::Undecided, _) | (_, Verdict::Undecided) => Outcome::Unclear,
                (there, here) if there == here => Outcome::Holds,
                _ => Outcome::Fails,
            }
        });
        for (claim, outcome) in claims.iter().zip(same) {
            if outcome != Outcome::Holds {
                differing.push(format!("{} at {value}", claim.id));
            }
            outcomes.push(outcome);
        }
    }
    let all = outcomes.len();
    let needed = chance::needed(test.share, all);
    // The verdicts have error rates of their own; their comparison adds no interval.
    let count = |wanted, _| outcomes.iter().filter(|one| **one == wanted).count();
    let outcome = chance::decide(all, needed, 1, count);
    let held = count(Outcome::Holds, 1);
    let others = if differing.is_empty() {
        String::new()
    } else {
        format!("; different or undecided: {}", differing.join(", "))
    };
    Finding {
        outcome,
        measured: Measured::Number(held as f64 / all.max(1) as f64),
        ci95: None,
        interval: None,
        n: all,
        power: None,
        why: format!("the same answer in {held} of {all} cases{others}"),
        command: None,
    }
}
