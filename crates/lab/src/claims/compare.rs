//! Compares one estimate and its interval with the values that a claim allows.

use super::claim::{Op, Test};
use super::value::Value;

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The comparison confirms the claim.
    Holds,
    /// The comparison contradicts the claim.
    Fails,
    /// The value is too uncertain for either, or absent.
    Unclear,
}

/// The values that a claim allows: an open or a closed interval.
///
/// For two sides, the value is their difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Allowed {
    low: f64,
    high: f64,
    /// Whether the ends are values that the claim allows.
    closed: bool,
}

impl Allowed {
    /// The values that `test` allows.
    pub fn by(test: &Test) -> Self {
        let (value, tolerance) = (test.value, test.tolerance);
        let (low, high, closed) = match test.op {
            Op::Gt | Op::Exists | Op::Trend => (value, f64::INFINITY, false),
            Op::Ge => (value - tolerance, f64::INFINITY, true),
            // The tolerance of this op applies to steps.
            Op::MonotoneInc => (value, f64::INFINITY, true),
            Op::Lt => (f64::NEG_INFINITY, value, false),
            Op::Le => (f64::NEG_INFINITY, value + tolerance, true),
            Op::Eq | Op::Similar | Op::SameOrderings => {
                (value - tolerance, value + tolerance, true)
            }
            Op::Approx | Op::Between => {
                (test.low.unwrap_or(value), test.high.unwrap_or(value), true)
            }
        };
        Self { low, high, closed }
    }

    /// The outcome of a value with an interval for a `family`. The value holds if its whole interval is allowed,
    /// and fails if no part of the interval is.
    fn outcome(self, value: &Value, family: usize) -> Outcome {
        let above = |bound| value.lies_above(bound, family);
        let below = |bound| value.lies_below(bound, family);
        // An interval of zero width may lie exactly at an end.
        let exact = value.exact(family);
        let is_at = |end: f64| exact.is_some_and(|exact| exact.total_cmp(&end).is_eq());
        let at_end = |end: f64| self.closed && is_at(end);
        let beside = |end: f64| !self.closed && is_at(end);
        let within =
            (above(self.low) || at_end(self.low)) && (below(self.high) || at_end(self.high));
        let beyond = below(self.low) || above(self.high) || beside(self.low) || beside(self.high);
        match (within, beyond) {
            (true, _) => Outcome::Holds,
            (_, true) => Outcome::Fails,
            _ => Outcome::Unclear,
        }
    }

    /// The distance of `value` from the nearest end of the allowed values, inside or outside.
    pub fn distance(self, value: f64) -> f64 {
        (value - self.low).abs().min((value - self.high).abs())
    }

    /// How far the interval from `low` to `high` extends beyond the allowed values; negative if it lies inside.
    pub fn beyond(self, low: f64, high: f64) -> f64 {
        (self.low - low).max(high - self.high)
    }

    /// Both ends; infinite where there is no bound.
    pub const fn ends(self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Whether the ends themselves are allowed.
    pub const fn is_closed(self) -> bool {
        self.closed
    }

    /// Half the width of the allowed values; infinite unless both ends are finite.
    pub fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// Compares `value` with the values that `test` allows, with an interval widened for a `family` of comparisons.
///
/// Without an interval, as that of a single run, nothing is decided.
pub(super) fn compare(test: &Test, value: Option<&Value>, family: usize) -> Outcome {
    let some = value.filter(|value| value.interval(family).is_some());
    some.map_or(Outcome::Unclear, |value| Allowed::by(test).outcome(value, family))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Estimate;

    fn test(op: &str, rest: &str) -> Test {
        toml::from_str(&format!("op = \"{op}\"\nmetric = \"tdr\"\n{rest}")).expect("a test")
    }
    /// What ten runs with this mean and half width say.
    fn outcome(op: &str, rest: &str, mean: f64, half: f64) -> Outcome {
        let estimate = Estimate { mean, ci95: Some(half), n: 10 };
        compare(&test(op, rest), Some(&Value::Mean(estimate)), 1)
    }

    #[test]
    fn the_whole_interval_must_be_higher_and_none_of_it_contradicts() {
        assert_eq!(outcome("gt", "", 0.2, 0.1), Outcome::Holds);
        assert_eq!(outcome("gt", "", 0.2, 0.3), Outcome::Unclear);
        assert_eq!(outcome("gt", "", -0.2, 0.1), Outcome::Fails);
        assert_eq!(outcome("gt", "", 0.0, 0.0), Outcome::Fails, "equal is not higher");
        assert_eq!(outcome("lt", "value = 1.0", 0.5, 0.1), Outcome::Holds);
        assert_eq!(outcome("lt", "value = 1.0", 1.5, 0.1), Outcome::Fails);
    }

    #[test]
    fn not_higher_is_shown_by_the_whole_interval() {
        assert_eq!(outcome("le", "", -0.1, 0.05), Outcome::Holds);
        assert_eq!(outcome("le", "", -0.1, 0.2), Outcome::Unclear, "the mean alone shows nothing");
        assert_eq!(outcome("le", "", 0.1, 0.2), Outcome::Unclear);
        assert_eq!(outcome("le", "", 0.3, 0.2), Outcome::Fails);
        assert_eq!(outcome("le", "", 0.0, 0.0), Outcome::Holds, "equal is not higher");
        assert_eq!(outcome("le", "tolerance = 0.1", 0.05, 0.04), Outcome::Holds);
        assert_eq!(outcome("ge", "", 0.1, 0.05), Outcome::Holds);
        assert_eq!(outcome("ge", "", 0.1, 0.2), Outcome::Unclear);
        assert_eq!(outcome("ge", "", -0.3, 0.2), Outcome::Fails);
    }

    #[test]
    fn about_the_same_is_shown_by_an_interval_within_the_tolerance() {
        for op in ["similar", "eq"] {
            let tolerance = "tolerance = 0.05";
            assert_eq!(outcome(op, tolerance, 0.03, 0.02), Outcome::Holds, "{op}");
            assert_eq!(outcome(op, tolerance, 0.03, 0.03), Outcome::Unclear, "{op}");
            // What S000-20 measured: within .05 "reproduced" by .094 +- .46.
            assert_eq!(outcome(op, tolerance, 0.094, 0.46), Outcome::Unclear, "{op}");
            assert_eq!(outcome(op, tolerance, 0.2, 0.1), Outcome::Fails, "{op}");
        }
    }

    #[test]
    fn a_range_holds_the_whole_interval() {
        for op in ["approx", "between"] {
            let bounds = "low = 0.05\nhigh = 0.25";
            assert_eq!(outcome(op, bounds, 0.15, 0.09), Outcome::Holds, "{op}");
            assert_eq!(outcome(op, bounds, 0.1, 0.2), Outcome::Unclear, "{op}");
            assert_eq!(outcome(op, bounds, -0.1, 0.05), Outcome::Fails, "{op}");
        }
    }

    #[test]
    fn one_run_alone_decides_nothing() {
        let one = Value::Mean(Estimate { mean: 0.9, ci95: None, n: 1 });
        let one = Some(&one);
        for op in ["gt", "lt", "ge", "le", "eq", "similar", "exists", "trend"] {
            assert_eq!(compare(&test(op, "value = 0.9"), one, 1), Outcome::Unclear, "{op}");
        }
        assert_eq!(compare(&test("between", "low = 0.0\nhigh = 1.0"), one, 1), Outcome::Unclear);
        assert_eq!(compare(&test("gt", ""), None, 1), Outcome::Unclear);
    }

    #[test]
    fn more_comparisons_ask_for_more() {
        let one = Value::Mean(Estimate { mean: 0.2, ci95: Some(0.15), n: 10 });
        let one = Some(&one);
        assert_eq!(compare(&test("gt", ""), one, 1), Outcome::Holds);
        assert_eq!(compare(&test("gt", ""), one, 20), Outcome::Unclear);
    }
}
