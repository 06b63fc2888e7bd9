//! The one model by which all claims are judged.
//!
//! A test makes one or more comparisons, each out of the runs of one point or the paired runs of two. A
//! comparison holds, fails, or is unclear; with m its mean, [l, h] the 95 % confidence interval and v, t, a, b the
//! claim's value, tolerance and range:
//!
//! | op | holds | fails |
//! |---|---|---|
//! | `gt`, `exists`, `trend` | l > v | h <= v |
//! | `lt` | h < v | l >= v |
//! | `ge` | h >= v | h < v |
//! | `le` | l <= v | l > v |
//! | `eq` | m within t of v | [l, h] beyond t of v |
//! | `similar` | m within t of v, or v in [l, h] and m within 2 t of v | [l, h] beyond t of v |
//! | `between` | m in [a, b] | [l, h] beside [a, b] |
//! | `approx` | m in [a, b] and 0 not in [l, h] | [l, h] beside [a, b] |
//! | `monotone_inc` | rank correlation (Spearman) of the means with the axis >= v, and no step falls with certainty | a step falls with certainty |
//! | `same_orderings` | a claim has the same answer there as with the settings it was made for | another answer |
//!
//! A test holds if its share of comparisons holds (of `exists`: any), fails if so many fail that the share cannot
//! be reached, and else is unclear. What decides a test must be more than chance makes of so many comparisons
//! ([`chance`](super::chance)): too few failures, where `le` and `ge` want none, are none, and too few of anything
//! else leave the test unclear. A claim is reproduced if all its tests hold, not reproduced if one fails.

mod trend;

use std::collections::BTreeMap;

use super::answer::{Answer, Measured, Verdict};
use super::chance;
use super::compare::{Outcome, compare};
use super::paper::{Claim, Op, Paper, Test, Wanted};
use super::probe;
use super::reference::{self, Table};
use super::select::{self, BySeed, Comparison};
use crate::command::Provenance;
use crate::results::PointResult;
use crate::statistics::Estimate;

/// All that claims can be held against.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Points with their runs, by the name of the sweep.
    pub sweeps: BTreeMap<String, Vec<PointResult>>,
    /// Measured tables, by the name that tests call them.
    pub tables: BTreeMap<String, Table>,
    /// Whether the runs are those of the quick extent.
    pub quick: bool,
}

/// What came of one test.
struct Finding {
    outcome: Outcome,
    measured: Measured,
    ci95: Option<f64>,
    n: usize,
    why: String,
    command: Option<String>,
}

impl Finding {
    fn unclear(why: String) -> Self {
        Self {
            outcome: Outcome::Unclear,
            measured: Measured::Nothing,
            ci95: None,
            n: 0,
            why,
            command: None,
        }
    }
}

/// Judges one claim of `paper`.
pub fn judge(paper: &Paper, claim: &Claim, evidence: &Evidence) -> Answer {
    let findings: Vec<Finding> =
        claim.tests.iter().map(|test| find(paper, test, evidence)).collect();
    let outcome = together(&findings, 1.0);
    // What is shown is a test that decided.
    let shown = findings.iter().position(|one| one.outcome == outcome).unwrap_or_default();
    let mut answer = Answer::undecided(claim, "the claim has no test");
    let why: Vec<&str> = findings.iter().map(|one| one.why.as_str()).collect();
    answer.why = why.join("; ");
    let quick = if evidence.quick { " --quick" } else { "" };
    answer.command = format!("lowmesh reproduce {}{quick} --claim {}", paper.name, claim.id);
    if let Some(finding) = findings.into_iter().nth(shown) {
        answer.verdict = Verdict::from(outcome);
        answer.measured = finding.measured;
        answer.ci95 = finding.ci95;
        answer.n = finding.n;
        answer.command = finding.command.unwrap_or(answer.command);
    }
    answer
}

fn together(findings: &[Finding], share: f64) -> Outcome {
    overall(&findings.iter().map(|one| one.outcome), share)
}

/// What many outcomes come to when `share` of them must hold.
fn overall(outcomes: &(impl Iterator<Item = Outcome> + Clone), share: f64) -> Outcome {
    let count = |wanted: Outcome| outcomes.clone().filter(|one| *one == wanted).count() as f64;
    let all = outcomes.clone().count() as f64;
    // A millionth of one comparison is no comparison.
    let needed = (share * all - 1e-6).max(1e-6);
    if all > 0.0 && count(Outcome::Holds) >= needed {
        Outcome::Holds
    } else if all - count(Outcome::Fails) < needed {
        Outcome::Fails
    } else {
        Outcome::Unclear
    }
}

fn find(paper: &Paper, test: &Test, evidence: &Evidence) -> Finding {
    if let Some(name) = &test.probe {
        return probed(test, name);
    }
    if test.op == Op::SameOrderings {
        return orderings(paper, test, evidence);
    }
    let Some(points) = evidence.sweeps.get(&test.sweep) else {
        return Finding::unclear(format!("sweep `{}` was not run", test.sweep));
    };
    let mut comparisons = select::comparisons(test, points);
    if let Some(name) = &test.reference {
        let Some(table) = evidence.tables.get(name) else {
            return Finding::unclear(format!("there is no table `{name}`"));
        };
        reference::hold_against(test, table, &mut comparisons);
    }
    if comparisons.is_empty() {
        return Finding::unclear("no point of the sweep is meant".to_owned());
    }
    let provenance = paper.provenance(&test.sweep, evidence.quick);
    if test.op == Op::MonotoneInc {
        return trend::trend(test, points, &comparisons, &provenance);
    }
    if test.on_average {
        comparisons = vec![averaged(&comparisons)];
    }
    compared(test, &comparisons, &provenance)
}

/// Holds each comparison against the claim and tells of the one that says most against it.
fn compared(test: &Test, comparisons: &[Comparison<'_>], from: &Provenance) -> Finding {
    let judged: Vec<(Outcome, Option<Estimate>)> = comparisons
        .iter()
        .map(Comparison::estimate)
        .map(|estimate| (compare(test, estimate), estimate))
        .collect();
    let outcome = weigh(test, &judged);
    let telling = telling(test, outcome, &judged);
    let (one, estimate) = (&comparisons[telling], judged[telling].1);
    let count = |wanted: Outcome| judged.iter().filter(|(one, _)| *one == wanted).count();
    let mut why = sentence(test, one, estimate);
    if judged.len() > 1 {
        why = format!("holds at {} of {} points; {why}", count(Outcome::Holds), judged.len());
    }
    if outcome == Outcome::Holds && test.share >= 1.0 && count(Outcome::Fails) > 0 {
        why = format!("{why}; no more than chance makes of so many");
    }
    Finding {
        outcome,
        measured: estimate.map_or(Measured::Nothing, |e| Measured::Number(e.mean)),
        ci95: estimate.and_then(|e| e.ci95),
        n: estimate.map_or(0, |e| e.n),
        why,
        command: Some(from.point(&one.point.point)),
    }
}

/// What the comparisons come to, if it is more than chance.
fn weigh(test: &Test, judged: &[(Outcome, Option<Estimate>)]) -> Outcome {
    let (decisive, share) = match test.op {
        Op::Exists => (Outcome::Holds, f64::MIN_POSITIVE),
        _ => (Outcome::Fails, test.share),
    };
    let outcome = overall(&judged.iter().map(|(outcome, _)| *outcome), share);
    if outcome != decisive {
        return outcome;
    }
    let all = judged.len();
    let together = |estimate: &Estimate| compare(test, Some(estimate.together(all))) == decisive;
    let certain = judged.iter().filter(|(one, _)| *one == decisive).count();
    let one = judged.iter().filter_map(|(_, estimate)| estimate.as_ref()).any(together);
    let open = judged.iter().any(|(one, _)| *one == Outcome::Unclear);
    match test.op {
        _ if chance::is_beyond(certain, one, all) => outcome,
        Op::Le | Op::Ge if !open => Outcome::Holds,
        _ => Outcome::Unclear,
    }
}

/// The comparison to show: of those with the deciding outcome (else the worst one), the one that is nearest to the
/// other side, or farthest on the wrong one.
fn telling(test: &Test, outcome: Outcome, judged: &[(Outcome, Option<Estimate>)]) -> usize {
    let badness = |estimate: Option<Estimate>| {
        let off = estimate.map_or(f64::INFINITY, |e| e.mean - test.value);
        match test.op {
            Op::Gt | Op::Ge | Op::Exists | Op::Trend => -off,
            Op::Lt | Op::Le => off,
            _ => off.abs(),
        }
    };
    let wanted = if test.op == Op::Exists { Outcome::Holds } else { Outcome::Fails };
    let any = judged.iter().any(|(one, _)| *one == wanted);
    let eligible = |one: Outcome| !any || one == wanted || outcome == Outcome::Holds;
    let candidates = (0..judged.len()).filter(|i| eligible(judged[*i].0));
    let worst = candidates.max_by(|a, b| badness(judged[*a].1).total_cmp(&badness(judged[*b].1)));
    worst.unwrap_or_default()
}

/// One comparison in words.
fn sentence(test: &Test, one: &Comparison<'_>, estimate: Option<Estimate>) -> String {
    let place: Vec<String> = one
        .point
        .point
        .settings
        .iter()
        .filter(|(key, _)| test.left.as_ref().is_none_or(|left| !left.contains_key(key)))
        .map(|(key, value)| {
            let key = key.rsplit('.').next().unwrap_or(key);
            if key == "scenario" { value.clone() } else { format!("{key} {value}") }
        })
        .collect();
    let place = if test.on_average { "mean over all points".to_owned() } else { place.join(", ") };
    let Some(estimate) = estimate else { return format!("{place}: {} has no value", test.metric) };
    let interval = estimate.ci95.map_or_else(String::new, |half| format!(" ± {}", short(half)));
    let mean = short(estimate.mean);
    let (Some(left), Some(right)) = (&test.left, &test.right) else {
        return format!("{place}: {} {mean}{interval}", test.metric);
    };
    let name = |side: &super::Settings| side.values().cloned().collect::<Vec<_>>().join(" ");
    let side = |values: &BySeed| Estimate::of(values.values().copied()).map(|e| short(e.mean));
    let value = |values: &BySeed| side(values).unwrap_or_else(|| "-".to_owned());
    let of = if test.relative { " of it" } else { "" };
    format!(
        "{place}: {} {} {}, {} {}, difference {mean}{interval}{of}",
        test.metric,
        name(left),
        value(&one.left),
        name(right),
        value(&one.right),
    )
}

/// Three significant digits of small numbers, none after the point of large ones.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// The mean effect of all comparisons, by seed.
fn averaged<'r>(comparisons: &[Comparison<'r>]) -> Comparison<'r> {
    let mean_of = |pick: for<'a> fn(&'a Comparison<'r>) -> &'a BySeed| {
        let mut sums: BTreeMap<u64, (f64, u32)> = BTreeMap::new();
        for (seed, value) in comparisons.iter().flat_map(pick) {
            let sum = sums.entry(*seed).or_default();
            *sum = (sum.0 + value, sum.1 + 1);
        }
        // A seed that is not in all comparisons would weigh them differently.
        let whole = |count: u32| count as usize == comparisons.len();
        let mean = |(seed, (sum, count)): (u64, (f64, u32))| (seed, sum / f64::from(count));
        sums.into_iter().filter(|(_, (_, count))| whole(*count)).map(mean).collect()
    };
    Comparison {
        point: comparisons[0].point,
        left: mean_of(|one| &one.left),
        right: mean_of(|one| &one.right),
        effect: mean_of(|one| &one.effect),
    }
}

/// Whether claims have the same answers with other settings of the axis.
fn orderings(paper: &Paper, test: &Test, evidence: &Evidence) -> Finding {
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
    let held = outcomes.iter().filter(|one| **one == Outcome::Holds).count();
    let others = if differing.is_empty() {
        String::new()
    } else {
        format!("; not the same or open: {}", differing.join(", "))
    };
    Finding {
        outcome: overall(&outcomes.iter().copied(), test.share),
        measured: Measured::Number(held as f64 / outcomes.len().max(1) as f64),
        ci95: None,
        n: outcomes.len(),
        why: format!("the same answer in {held} of {} cases{others}", outcomes.len()),
        command: None,
    }
}

/// Holds the values of a probe against what is expected of them.
fn probed(test: &Test, name: &str) -> Finding {
    let values = match probe::run(name) {
        Ok(values) => values,
        Err(why) => return Finding::unclear(why),
    };
    let mut wrong = Vec::new();
    for (key, wanted) in &test.expect {
        let found = values.get(key).copied();
        let right = found.is_some_and(|found| match *wanted {
            Wanted::Number(number) => (found - number).abs() <= test.tolerance,
            Wanted::Range(low, high) => (low..=high).contains(&found),
        });
        if !right {
            let shown = found.map_or_else(|| "no value".to_owned(), short);
            wrong.push(format!("{key} is {shown}"));
        }
    }
    let outcome = if wrong.is_empty() { Outcome::Holds } else { Outcome::Fails };
    let why = if wrong.is_empty() {
        format!("the code does so ({name}: {} values)", test.expect.len())
    } else {
        format!("{name}: {}", wrong.join(", "))
    };
    let asked = values.into_iter().filter(|(key, _)| test.expect.contains_key(key)).collect();
    Finding { outcome, measured: Measured::Values(asked), ci95: None, n: 1, why, command: None }
}

#[cfg(test)]
mod tests;
