//! Judges a finding by the criterion of its publication, beside the stricter rules of ours.
//!
//! That criterion is the 95 % interval of a mean or of a difference, for each comparison alone: nothing is corrected for
//! the number of comparisons, and there is no third verdict. A claim of a difference holds if the difference is
//! significant. A claim of no difference (`similar`, `eq`, `le`, `ge`) holds unless a significant difference contradicts
//! it. A claim has tests of its own for this (`criterion`) where its other tests have thresholds of ours.

use super::{Evidence, averaged};
use crate::claims::chance;
use crate::claims::claim::{Basis, Claim, Op, Test};
use crate::claims::compare::{Outcome, compare};
use crate::claims::paper::Paper;
use crate::claims::select;
use crate::claims::value::Value;

/// Whether `claim` holds by the criterion of `paper`; nothing if the paper has none, or runs are missing.
pub(super) fn holds(paper: &Paper, claim: &Claim, evidence: &Evidence) -> Option<bool> {
    if paper.criterion.is_empty() || claim.basis != Basis::Finding {
        return None;
    }
    let tests = if claim.criteria.is_empty() { &claim.tests } else { &claim.criteria };
    let verdicts: Option<Vec<bool>> = tests.iter().map(|test| passes(test, evidence)).collect();
    Some(verdicts?.into_iter().all(|passed| passed))
}

fn passes(test: &Test, evidence: &Evidence) -> Option<bool> {
    if test.probe.is_some() || matches!(test.op, Op::SameOrderings | Op::MonotoneInc) {
        return None;
    }
    let points = evidence.sweeps.get(&test.sweep)?;
    let mut comparisons = select::comparisons(test, points);
    if comparisons.is_empty() {
        return None;
    }
    if test.on_average {
        comparisons = vec![averaged(&comparisons)];
    }
    let values = comparisons.iter().map(|one| one.value(test).filter(is_decisive));
    let values: Vec<Value> = values.collect::<Option<_>>()?;
    let claims_no_difference = matches!(test.op, Op::Ge | Op::Le | Op::Eq | Op::Similar);
    let passed = values.iter().filter(|value| match compare(test, Some(value), 1) {
        Outcome::Holds => true,
        Outcome::Fails => false,
        Outcome::Unclear => claims_no_difference,
    });
    Some(passed.count() >= chance::needed(test.share, values.len()))
}

/// Whether there are enough runs for an interval.
fn is_decisive(value: &Value) -> bool {
    value.interval(1).is_some()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::paper;
    use super::*;
    use crate::claims::select::tests::point;

    /// What ten runs with these differences between `a` and `b` say by the publication's own criterion.
    fn own(tests: &str, differences: &[f64]) -> Option<bool> {
        let mut paper = paper(&[tests]);
        "95 % intervals".clone_into(&mut paper.criterion);
        let left: Vec<f64> = differences.iter().map(|difference| 0.5 + difference).collect();
        let right = vec![0.5; differences.len()];
        let points = vec![point(&[("cc", "a")], &left), point(&[("cc", "b")], &right)];
        let sweeps = BTreeMap::from([("s".to_owned(), points)]);
        holds(&paper, &paper.claims[0], &Evidence { sweeps, ..Evidence::default() })
    }

    fn test(kind: &str, op: &str) -> String {
        format!(
            "[[claim.{kind}]]\nop = \"{op}\"\nmetric = \"tdr\"\nsweep = \"s\"\n\
             left = {{cc = \"a\"}}\nright = {{cc = \"b\"}}\n"
        )
    }

    #[test]
    fn a_difference_must_be_significant_and_no_difference_must_not_be_contradicted() {
        let (higher, lower) = ([0.1, 0.11, 0.12], [-0.1, -0.11, -0.12]);
        let unclear = [0.1, -0.1, 0.02];
        let all = |op: &str| [&higher, &unclear, &lower].map(|runs| own(&test("test", op), runs));
        assert_eq!(all("gt"), [Some(true), Some(false), Some(false)]);
        assert_eq!(all("lt"), [Some(false), Some(false), Some(true)]);
        assert_eq!(all("le"), [Some(false), Some(true), Some(true)]);
        assert_eq!(all("similar"), [Some(false), Some(true), Some(false)]);
    }

    #[test]
    fn tests_of_the_criterion_replace_those_of_ours() {
        let both = test("test", "gt") + &test("criterion", "lt");
        assert_eq!(own(&both, &[-0.1, -0.11, -0.12]), Some(true));
    }

    #[test]
    fn one_run_and_a_calibrated_claim_have_no_such_verdict() {
        assert_eq!(own(&test("test", "gt"), &[0.1]), None);
        let mut paper = paper(&[&test("test", "gt")]);
        assert_eq!(holds(&paper, &paper.claims[0], &Evidence::default()), None, "no criterion");
        "95 % intervals".clone_into(&mut paper.criterion);
        paper.claims[0].basis = Basis::Calibration;
        let points = vec![point(&[("cc", "a")], &[1.0, 1.1]), point(&[("cc", "b")], &[0.5, 0.5])];
        let sweeps = BTreeMap::from([("s".to_owned(), points)]);
        let evidence = Evidence { sweeps, ..Evidence::default() };
        assert_eq!(holds(&paper, &paper.claims[0], &evidence), None);
    }
}
