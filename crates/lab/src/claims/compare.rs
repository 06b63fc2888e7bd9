//! One number with its interval against a claim.

use super::paper::{Op, Test};
use crate::statistics::Estimate;

/// What a number says about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It bears the claim out.
    Holds,
    /// It contradicts the claim.
    Fails,
    /// It is too uncertain for either, or not there.
    Unclear,
}

impl Outcome {
    fn of(holds: bool, fails: bool) -> Self {
        match (holds, fails) {
            (true, _) => Self::Holds,
            (false, true) => Self::Fails,
            (false, false) => Self::Unclear,
        }
    }
}

/// Holds `estimate` against the thresholds of `test`, as [`super::judge`] defines.
///
/// Where two sides are compared it is the estimate of their difference.
pub(super) fn compare(test: &Test, estimate: Option<Estimate>) -> Outcome {
    let Some(Estimate { mean, ci95, .. }) = estimate else { return Outcome::Unclear };
    // One run has no interval: what it says is certain in neither direction.
    let half = ci95.unwrap_or(f64::INFINITY);
    let (low, high, value) = (mean - half, mean + half, test.value);
    match test.op {
        Op::Gt | Op::Exists | Op::Trend => Outcome::of(low > value, high <= value),
        Op::Lt => Outcome::of(high < value, low >= value),
        Op::Ge => Outcome::of(high >= value && half.is_finite(), high < value),
        Op::Le => Outcome::of(low <= value && half.is_finite(), low > value),
        Op::Eq => {
            let near = (mean - value).abs() <= test.tolerance;
            Outcome::of(near, low > value + test.tolerance || high < value - test.tolerance)
        }
        Op::Similar => {
            let off = (mean - value).abs();
            let near = off <= test.tolerance;
            let blurred = low <= value && value <= high && off <= 2.0 * test.tolerance;
            let beyond = low > value + test.tolerance || high < value - test.tolerance;
            Outcome::of(near || blurred, beyond)
        }
        Op::Approx | Op::Between => {
            let (least, most) = (test.low.unwrap_or(value), test.high.unwrap_or(value));
            let within = (least..=most).contains(&mean);
            // A stated number has a sign, and that must be certain.
            let signed = test.op == Op::Between || low > 0.0 || high < 0.0;
            Outcome::of(within && signed, low > most || high < least)
        }
        Op::MonotoneInc | Op::SameOrderings => Outcome::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(op: &str, rest: &str) -> Test {
        toml::from_str(&format!("op = \"{op}\"\nmetric = \"tdr\"\n{rest}")).expect("a test")
    }
    fn at(mean: f64, half: f64) -> Estimate {
        Estimate { mean, ci95: Some(half), n: 10 }
    }

    #[test]
    fn higher_must_be_certain_and_lower_contradicts() {
        let gt = test("gt", "");
        assert_eq!(compare(&gt, Some(at(0.2, 0.1))), Outcome::Holds);
        assert_eq!(compare(&gt, Some(at(0.2, 0.3))), Outcome::Unclear);
        assert_eq!(compare(&gt, Some(at(-0.2, 0.1))), Outcome::Fails);
        let lt = test("lt", "value = 1.0");
        assert_eq!(compare(&lt, Some(at(0.5, 0.1))), Outcome::Holds);
        assert_eq!(compare(&lt, Some(at(1.5, 0.1))), Outcome::Fails);
    }

    #[test]
    fn not_higher_is_contradicted_only_by_a_certain_excess() {
        let le = test("le", "");
        assert_eq!(compare(&le, Some(at(0.1, 0.2))), Outcome::Holds);
        assert_eq!(compare(&le, Some(at(0.3, 0.2))), Outcome::Fails);
        let ge = test("ge", "");
        assert_eq!(compare(&ge, Some(at(-0.1, 0.2))), Outcome::Holds);
        assert_eq!(compare(&ge, Some(at(-0.3, 0.2))), Outcome::Fails);
    }

    #[test]
    fn about_the_same_is_within_the_tolerance_or_blurred_and_within_twice_of_it() {
        let similar = test("similar", "tolerance = 0.05");
        assert_eq!(compare(&similar, Some(at(0.04, 0.01))), Outcome::Holds);
        assert_eq!(compare(&similar, Some(at(0.08, 0.1))), Outcome::Holds);
        assert_eq!(compare(&similar, Some(at(0.08, 0.05))), Outcome::Unclear);
        assert_eq!(compare(&similar, Some(at(0.12, 0.2))), Outcome::Unclear);
        assert_eq!(compare(&similar, Some(at(0.2, 0.1))), Outcome::Fails);
    }

    #[test]
    fn a_stated_number_needs_its_sign_and_a_range_does_not() {
        let bounds = "low = 0.05\nhigh = 0.25";
        assert_eq!(compare(&test("approx", bounds), Some(at(0.1, 0.05))), Outcome::Holds);
        assert_eq!(compare(&test("approx", bounds), Some(at(0.1, 0.2))), Outcome::Unclear);
        assert_eq!(compare(&test("between", bounds), Some(at(0.1, 0.2))), Outcome::Holds);
        assert_eq!(compare(&test("approx", bounds), Some(at(-0.1, 0.05))), Outcome::Fails);
        assert_eq!(compare(&test("between", bounds), Some(at(0.3, 0.1))), Outcome::Unclear);
    }

    #[test]
    fn one_run_alone_decides_no_ordering() {
        let one = Some(Estimate { mean: 0.9, ci95: None, n: 1 });
        for op in ["gt", "lt", "ge", "le"] {
            assert_eq!(compare(&test(op, ""), one), Outcome::Unclear, "{op}");
        }
        assert_eq!(compare(&test("gt", ""), None), Outcome::Unclear);
    }

    #[test]
    fn equal_is_up_to_the_tolerance() {
        let eq = test("eq", "value = 1.0\ntolerance = 0.1");
        assert_eq!(compare(&eq, Some(at(1.05, 0.0))), Outcome::Holds);
        assert_eq!(compare(&eq, Some(at(1.5, 0.1))), Outcome::Fails);
    }
}
