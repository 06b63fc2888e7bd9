//! The one model by which all claims are judged.
//!
//! A test makes one or more comparisons, each out of the runs of one point or the paired runs of two. Each has a mean
//! and a 95 % confidence interval, and the claim allows values: its op says from where to where, with v, t, a, b the
//! value, tolerance and range of the test.
//!
//! | op | allowed values |
//! |---|---|
//! | `gt`, `exists`, `trend` | above v |
//! | `lt` | below v |
//! | `ge` | v - t and more |
//! | `le` | v + t and less |
//! | `eq`, `similar` | v - t to v + t |
//! | `between`, `approx` | a to b |
//!
//! A comparison holds if its whole interval lies within the allowed values, fails if none of it does, and else is
//! unclear: a wide interval shows nothing. That `similar` holds is therefore two one-sided tests (TOST).
//!
//! A test asks that a share of its comparisons is true: all, unless stated; one, of `exists`. How wide the
//! intervals are with which many comparisons hold or fail says [`chance`](super::chance). Two ops look elsewhere:
//! `monotone_inc` at the rank correlation with an axis ([`trend`]), `same_orderings` at the verdicts of other claims.
//!
//! A claim is reproduced if all its tests hold, not reproduced if one fails, and else undecided.

mod orderings;
mod probed;
mod trend;
mod words;

use std::collections::BTreeMap;

use super::answer::{Answer, Measured, Power, Verdict};
use super::chance;
use super::compare::{Allowed, Outcome, compare};
use super::paper::{Claim, Op, Paper, Scope, Test};
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
    /// How much of the sweeps was run.
    pub scope: Scope,
}

/// What came of one test.
struct Finding {
    outcome: Outcome,
    measured: Measured,
    ci95: Option<f64>,
    n: usize,
    power: Option<Power>,
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
            power: None,
            why,
            command: None,
        }
    }
}

/// Judges one claim of `paper`.
pub fn judge(paper: &Paper, claim: &Claim, evidence: &Evidence) -> Answer {
    // A probe has no chance in it.
    let tests = claim.tests.iter().filter(|test| test.probe.is_none()).count();
    let findings: Vec<Finding> =
        claim.tests.iter().map(|test| find(paper, test, tests, evidence)).collect();
    let outcome = together(&findings);
    // What is shown is a test that decided.
    let shown = findings.iter().position(|one| one.outcome == outcome).unwrap_or_default();
    let mut answer = Answer::undecided(claim, "the claim has no test");
    let why: Vec<&str> = findings.iter().map(|one| one.why.as_str()).collect();
    answer.why = why.join("; ");
    let flags = evidence.scope.flags();
    answer.command = format!("lowmesh reproduce {}{flags} --claim {}", paper.name, claim.id);
    if let Some(finding) = findings.into_iter().nth(shown) {
        answer.verdict = Verdict::from(outcome);
        answer.measured = finding.measured;
        answer.ci95 = finding.ci95;
        answer.n = finding.n;
        answer.power = finding.power;
        answer.command = finding.command.unwrap_or(answer.command);
    }
    answer
}

/// What the tests of a claim come to: all must hold, and one that fails is enough.
fn together(findings: &[Finding]) -> Outcome {
    let all = |wanted: Outcome| findings.iter().all(|one| one.outcome == wanted);
    if !findings.is_empty() && all(Outcome::Holds) {
        Outcome::Holds
    } else if findings.iter().any(|one| one.outcome == Outcome::Fails) {
        Outcome::Fails
    } else {
        Outcome::Unclear
    }
}

/// Finds out about `test`, one of `tests` of its claim.
fn find(paper: &Paper, test: &Test, tests: usize, evidence: &Evidence) -> Finding {
    if let Some(name) = &test.probe {
        return probed::probed(test, name);
    }
    if test.op == Op::SameOrderings {
        return orderings::orderings(paper, test, evidence);
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
    let provenance = paper.provenance(&test.sweep, evidence.scope);
    if test.op == Op::MonotoneInc {
        return trend::trend(test, tests, points, &comparisons, &provenance);
    }
    if test.on_average {
        comparisons = vec![averaged(&comparisons)];
    }
    compared(test, tests, &comparisons, &provenance)
}

/// Holds each comparison against the claim and shows the one that says most against it.
fn compared(
    test: &Test,
    tests: usize,
    comparisons: &[Comparison<'_>],
    from: &Provenance,
) -> Finding {
    let estimates: Vec<Option<Estimate>> = comparisons.iter().map(Comparison::estimate).collect();
    let all = estimates.len();
    let share = if test.op == Op::Exists { 0.0 } else { test.share };
    let needed = chance::needed(share, all);
    let count = |wanted: Outcome, family: usize| {
        estimates.iter().filter(|one| compare(test, **one, family) == wanted).count()
    };
    let outcome = chance::decide(all, needed, tests, count);
    let telling = telling(test, outcome, &estimates);
    let (one, estimate) = (&comparisons[telling], estimates[telling]);
    let families = Families { holds: all - needed + 1, fails: needed * tests };
    let power = estimate
        .filter(|_| outcome == Outcome::Unclear)
        .and_then(|estimate| power(test, estimate, &families));
    let mut why = words::sentence(test, one, estimate);
    if all > 1 {
        let held = count(Outcome::Holds, families.holds);
        let failed = count(Outcome::Fails, families.fails);
        why = format!("{}; {why}", words::counted(needed, all, held, failed));
    }
    let alone = count(Outcome::Fails, 1);
    if all > 1 && outcome != Outcome::Fails && alone > count(Outcome::Fails, families.fails) {
        why = format!(
            "{why}; {alone} fail when looked at alone, which chance does to some of so many"
        );
    }
    Finding {
        outcome,
        measured: estimate.map_or(Measured::Nothing, |e| Measured::Number(e.mean)),
        ci95: estimate.and_then(|e| e.ci95),
        n: estimate.map_or(0, |e| e.n),
        power,
        why,
        command: words::command(test, one, from),
    }
}

/// How many comparisons an interval is one of, for each outcome.
struct Families {
    holds: usize,
    fails: usize,
}

/// What it would take to decide an unclear comparison.
fn power(test: &Test, estimate: Estimate, families: &Families) -> Option<Power> {
    let allowed = Allowed::by(test);
    let point = Estimate { ci95: Some(0.0), ..estimate };
    let inside = compare(test, Some(point), 1) == Outcome::Holds;
    let family = if inside { families.holds } else { families.fails };
    let half = estimate.together(family).ci95?;
    let wanted = allowed.distance(estimate.mean);
    Some(Power {
        half,
        wanted,
        runs: estimate.runs_within(wanted, family),
        can_hold: estimate.together(families.holds).ci95? <= allowed.half_width(),
    })
}

/// The comparison to show: the one whose interval is farthest out of the allowed values, and of a test that failed
/// the one that is surest to be out. Where one is enough, the one that is farthest in.
fn telling(test: &Test, outcome: Outcome, estimates: &[Option<Estimate>]) -> usize {
    let allowed = Allowed::by(test);
    let out = |estimate: Option<Estimate>| {
        let Some(Estimate { mean, ci95, .. }) = estimate else { return f64::INFINITY };
        let half = ci95.unwrap_or(f64::INFINITY);
        // Of an interval that must fail altogether the near end counts, else the far one.
        let half = if outcome == Outcome::Fails { -half } else { half };
        allowed.beyond(mean - half, mean + half)
    };
    let worst = |a: &usize, b: &usize| out(estimates[*a]).total_cmp(&out(estimates[*b]));
    let places = 0..estimates.len();
    let found = match test.op {
        Op::Exists => places.min_by(worst),
        _ => places.max_by(worst),
    };
    found.unwrap_or_default()
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

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
