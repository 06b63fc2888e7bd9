//! Judges claims. One model serves for all of them.
//!
//! A test makes one or more comparisons, each from the runs of one point or the paired runs of two. A comparison has a
//! mean or a median, and a 95 % confidence interval. The op of the test defines the allowed values, where v, t, a and b are the value,
//! tolerance and range of the test:
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
//! A comparison holds if its whole interval lies within the allowed values, fails if no part of it does, and is unclear
//! otherwise: a wide interval shows nothing. `similar` therefore amounts to two one-sided tests (TOST).
//!
//! A test requires that a share of its comparisons is true: all by default, one for `exists`. `chance`
//! defines how wide the intervals of many comparisons are. Two ops do not compare means: `monotone_inc` uses the rank
//! correlation with an axis (`trend`), and `same_orderings` the verdicts of other claims (`orderings`).
//!
//! A claim is reproduced if all its tests hold, not reproduced if one fails, and undecided otherwise.

mod orderings;
mod own;
mod probed;
mod trend;
mod words;

use std::collections::BTreeMap;

use super::answer::{Answer, Measured, Power, Verdict};
use super::chance::{self, Families};
use super::claim::{Claim, Op, Test};
use super::compare::{Allowed, Outcome, compare};
use super::paper::{Paper, Scope};
use super::reference::{self, Table};
use super::select::{self, BySeed, Comparison, Side};
use super::value::Value;
use crate::command::Provenance;
use crate::medians::Medians;
use crate::results::PointResult;
use crate::statistics::Estimate;

/// The results that claims are judged by.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Points with their runs, by the name of the sweep.
    pub sweeps: BTreeMap<String, Vec<PointResult>>,
    /// Measured tables, by the name that tests use.
    pub tables: BTreeMap<String, Table>,
    /// The extent to which the sweeps were run.
    pub scope: Scope,
}

/// The result of one test.
struct Finding {
    outcome: Outcome,
    measured: Measured,
    ci95: Option<f64>,
    interval: Option<(f64, f64)>,
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
            interval: None,
            n: 0,
            power: None,
            why,
            command: None,
        }
    }
}

/// Judges one claim of `paper`.
pub fn judge(paper: &Paper, claim: &Claim, evidence: &Evidence) -> Answer {
    // A probe is deterministic, so it takes no share of the error rate.
    let tests = claim.tests.iter().filter(|test| test.probe.is_none()).count();
    let findings: Vec<Finding> =
        claim.tests.iter().map(|test| find(paper, test, tests, evidence)).collect();
    let outcome = together(&findings);
    // The answer shows a test that decided.
    let shown = findings.iter().position(|one| one.outcome == outcome).unwrap_or_default();
    let mut answer = Answer::undecided(claim, "the claim has no test");
    let why: Vec<&str> = findings.iter().map(|one| one.why.as_str()).collect();
    answer.why = why.join("; ");
    let flags = evidence.scope.flags();
    answer.command = format!("lowmesh reproduce {}{flags} --claim {}", paper.name, claim.id);
    if let Some(finding) = findings.into_iter().nth(shown) {
        answer.verdict = Verdict::from(outcome);
        answer.by_its_own = own::holds(paper, claim, evidence);
        answer.measured = finding.measured;
        answer.ci95 = finding.ci95;
        answer.interval = finding.interval;
        answer.n = finding.n;
        answer.power = finding.power;
        answer.command = finding.command.unwrap_or(answer.command);
    }
    answer
}

/// The outcome of a claim: all its tests must hold, and one that fails refutes it.
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

/// Evaluates `test`, one of the `tests` tests of its claim.
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
        return Finding::unclear("the test selects no point of the sweep".to_owned());
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

/// Compares each comparison with the claim and shows the one that speaks most against it.
fn compared(
    test: &Test,
    tests: usize,
    comparisons: &[Comparison<'_>],
    from: &Provenance,
) -> Finding {
    let values: Vec<Option<Value>> = comparisons.iter().map(|one| one.value(test)).collect();
    let all = values.len();
    let share = if test.op == Op::Exists { 0.0 } else { test.share };
    let needed = chance::needed(share, all);
    let count = |wanted: Outcome, family: usize| {
        values.iter().filter(|one| compare(test, one.as_ref(), family) == wanted).count()
    };
    let outcome = chance::decide(all, needed, tests, count);
    let telling = telling(test, outcome, &values);
    let (one, value) = (&comparisons[telling], values[telling].as_ref());
    let families = Families::of(all, needed, tests);
    let mut why = words::sentence(test, one, value);
    if all > 1 {
        let held = count(Outcome::Holds, families.holds);
        let failed = count(Outcome::Fails, families.fails);
        why = format!("{}; {why}", words::counted(needed, all, held, failed));
    }
    let alone = count(Outcome::Fails, 1);
    if all > 1 && outcome != Outcome::Fails && alone > count(Outcome::Fails, families.fails) {
        why =
            format!("{why}; {alone} fail if each is judged alone, as some of so many do by chance");
    }
    let (ci95, interval, power) = match value {
        Some(Value::Mean(estimate)) => {
            let unclear = outcome == Outcome::Unclear;
            let power = unclear.then(|| power(test, *estimate, &families)).flatten();
            (estimate.ci95, None, power)
        }
        Some(Value::Median(_)) => (None, value.and_then(|value| value.interval(1)), None),
        None => (None, None, None),
    };
    Finding {
        outcome,
        measured: value.map_or(Measured::Nothing, |value| Measured::Number(value.centre())),
        ci95,
        interval,
        n: value.map_or(0, Value::n),
        power,
        why,
        // Without a value there is nothing that the command would show.
        command: value.and_then(|_| words::command(test, one, from)),
    }
}

/// The interval and the number of runs that would decide an unclear comparison.
fn power(test: &Test, estimate: Estimate, families: &Families) -> Option<Power> {
    let allowed = Allowed::by(test);
    let point = Value::Mean(Estimate { ci95: Some(0.0), ..estimate });
    let inside = compare(test, Some(&point), 1) == Outcome::Holds;
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

/// The comparison to show: the one whose interval extends farthest beyond the allowed values. For a failed test, the one
/// that is most clearly outside; for `exists`, the one that is farthest inside.
fn telling(test: &Test, outcome: Outcome, values: &[Option<Value>]) -> usize {
    let allowed = Allowed::by(test);
    let out = |value: &Option<Value>| {
        let Some(value) = value else { return f64::INFINITY };
        let everything = (f64::NEG_INFINITY, f64::INFINITY);
        let (low, high) = value.interval(1).unwrap_or(everything);
        // An interval fails by its near end, and exceeds the allowed values by its far end.
        if outcome == Outcome::Fails {
            allowed.beyond(high, low)
        } else {
            allowed.beyond(low, high)
        }
    };
    let worst = |a: &usize, b: &usize| out(&values[*a]).total_cmp(&out(&values[*b]));
    let places = 0..values.len();
    let found = match test.op {
        Op::Exists => places.min_by(worst),
        _ => places.max_by(worst),
    };
    found.unwrap_or_default()
}

/// The mean effect over all comparisons, for each seed.
fn averaged<'r>(comparisons: &[Comparison<'r>]) -> Comparison<'r> {
    let mean_of = |pick: for<'a> fn(&'a Comparison<'r>) -> &'a Side| {
        let mut sums: BTreeMap<u64, (f64, u32)> = BTreeMap::new();
        for (seed, value) in comparisons.iter().flat_map(|one| &pick(one).runs) {
            let sum = sums.entry(*seed).or_default();
            *sum = (sum.0 + value, sum.1 + 1);
        }
        // A seed that some comparison lacks would change the weights of the comparisons.
        let whole = |count: u32| count as usize == comparisons.len();
        let mean = |(seed, (sum, count)): (u64, (f64, u32))| (seed, sum / f64::from(count));
        let runs: BySeed =
            sums.into_iter().filter(|(_, (_, count))| whole(*count)).map(mean).collect();
        let medians: Option<Vec<Medians>> =
            comparisons.iter().map(|one| pick(one).medians.clone()).collect();
        Side { runs, medians: medians.map(Medians::Mean) }
    };
    Comparison {
        point: comparisons[0].point,
        other: comparisons[0].other,
        left: mean_of(|one| &one.left),
        right: mean_of(|one| &one.right),
        effect: mean_of(|one| &one.effect),
    }
}

#[cfg(test)]
mod printed;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
