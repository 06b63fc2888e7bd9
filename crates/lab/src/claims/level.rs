//! Published levels: the values of a metric that a claim states for points of a curve.
//!
//! A test without two sides compares a metric itself with a range or a bound. A figure shows this range or bound with our
//! curve of the same metric. Differences, gains, means over points, knees and trends are not levels.

use std::collections::BTreeMap;

use super::claim::{Claim, Op, Statistic, Test};
use super::compare::Allowed;
use super::select;
use crate::results::PointResult;

/// A range or a bound of a metric that a publication states.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The claim that states it.
    pub claim: String,
    /// The sweep that it applies to.
    pub sweep: String,
    /// The metric, in the unit of the results.
    pub metric: String,
    /// Its lower end; absent if there is no lower bound.
    pub low: Option<f64>,
    /// Its upper end; absent if there is no upper bound.
    pub high: Option<f64>,
    /// The number that the publication gives, if the range surrounds one.
    pub stated: Option<f64>,
    /// Whether the ends themselves are allowed.
    closed: bool,
    at: BTreeMap<String, Vec<String>>,
}

impl Level {
    /// The levels that `claim` states.
    pub fn of(claim: &Claim) -> impl Iterator<Item = Self> {
        claim.tests.iter().filter_map(|test| Self::of_test(&claim.id, test))
    }

    fn of_test(claim: &str, test: &Test) -> Option<Self> {
        let range = matches!(test.op, Op::Between | Op::Approx | Op::Eq | Op::Similar);
        let bound = matches!(test.op, Op::Lt | Op::Le | Op::Gt | Op::Ge);
        let compared = test.left.is_some() || test.right.is_some() || test.reference.is_some();
        let derived = test.relative || test.knee_below.is_some() || !test.over.is_empty();
        // A line figure shows means of runs.
        let other = test.statistic != Statistic::Mean || test.experiment.is_some();
        // A mean over points is not the value of any single point.
        if !(range || bound)
            || compared
            || derived
            || other
            || test.on_average
            || test.metric.is_empty()
        {
            return None;
        }
        let allowed = Allowed::by(test);
        let (low, high) = allowed.ends();
        // No metric is negative, so a bound of zero states no amount.
        let tells = high.is_finite() || low > 0.0;
        if low.is_nan() || high.is_nan() || !tells {
            return None;
        }
        // The default value of a range is zero, which then is not a stated number.
        let given = matches!(test.op, Op::Eq | Op::Similar) || test.value.abs() > 0.0;
        let inside = low <= test.value && test.value <= high;
        Some(Self {
            claim: claim.to_owned(),
            sweep: test.sweep.clone(),
            metric: test.metric.clone(),
            low: Some(low).filter(|low| low.is_finite()),
            high: Some(high).filter(|high| high.is_finite()),
            stated: Some(test.value).filter(|_| range && given && inside),
            closed: allowed.is_closed(),
            at: test.at.clone(),
        })
    }

    /// Whether it applies to `point`.
    pub fn is_about(&self, point: &PointResult) -> bool {
        select::meets(point, &self.at)
    }

    /// Whether it applies only to certain values of `key`.
    pub fn names(&self, key: &str) -> bool {
        self.at.contains_key(key)
    }

    /// "tdr 0.8 to 0.9, stated 0.85" or "tdr below 0.05".
    pub fn words(&self) -> String {
        let metric = &self.metric;
        match (self.low, self.high, self.stated) {
            (Some(low), Some(high), Some(stated)) => {
                format!("{metric} {low} to {high}, stated {stated}")
            }
            (Some(low), Some(high), None) => format!("{metric} {low} to {high}"),
            (Some(low), ..) if self.closed => format!("{metric} at least {low}"),
            (Some(low), ..) => format!("{metric} above {low}"),
            (None, Some(high), _) if self.closed => format!("{metric} at most {high}"),
            (None, Some(high), _) => format!("{metric} below {high}"),
            (None, None, _) => metric.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Paper;

    fn level(test: &str) -> Option<Level> {
        let test: Test = toml::from_str(&format!("metric = \"tdr\"\n{test}")).expect("a test");
        Level::of_test("C", &test)
    }

    #[test]
    fn a_range_has_both_ends_and_the_number_it_stands_around() {
        let ends = |test: &str| level(test).map(|level| (level.low, level.high, level.stated));
        let both = |low, high, stated| Some((Some(low), Some(high), stated));
        assert_eq!(ends("op = \"between\"\nlow = 0.5\nhigh = 0.7"), both(0.5, 0.7, None));
        let around = "op = \"approx\"\nlow = 0.5\nhigh = 0.7\nvalue = 0.6";
        assert_eq!(ends(around), both(0.5, 0.7, Some(0.6)));
        assert_eq!(
            ends("op = \"similar\"\nvalue = 0.5\ntolerance = 0.25"),
            both(0.25, 0.75, Some(0.5))
        );
        assert_eq!(ends("op = \"eq\""), both(0.0, 0.0, Some(0.0)));
    }

    #[test]
    fn a_bound_has_one_end_and_says_whether_it_belongs_to_it() {
        let words = |test: &str| level(test).map(|level| level.words());
        let tdr = |words: &str| Some(format!("tdr {words}"));
        assert_eq!(words("op = \"lt\"\nvalue = 0.05"), tdr("below 0.05"));
        assert_eq!(words("op = \"le\"\nvalue = 0.5\ntolerance = 0.25"), tdr("at most 0.75"));
        assert_eq!(words("op = \"gt\"\nvalue = 0.5"), tdr("above 0.5"));
        assert_eq!(words("op = \"ge\"\nvalue = 0.5\ntolerance = 0.25"), tdr("at least 0.25"));
        let open = "op = \"between\"\nlow = 0.5\nhigh = inf";
        assert_eq!(words(open), tdr("at least 0.5"));
    }

    #[test]
    fn what_is_no_level_of_the_metric_itself_is_none() {
        for test in [
            "op = \"gt\"\nleft = { a = \"1\" }\nright = { a = \"2\" }\nvalue = 0.1",
            "op = \"similar\"\nreference = \"testbed\"\ntolerance = 0.1",
            "op = \"between\"\nlow = 0.1\nhigh = 0.2\nover = { a = \"1\" }",
            "op = \"lt\"\nvalue = 4.0\nalong = \"p\"\nknee_below = 0.9",
            "op = \"monotone_inc\"\nalong = \"p\"\nvalue = 0.8",
            "op = \"exists\"\nvalue = 0.5",
            "op = \"lt\"\nvalue = 0.5\non_average = true",
            "op = \"gt\"",
            "op = \"between\"\nlow = nan\nhigh = 0.2",
        ] {
            assert_eq!(level(test), None, "{test}");
        }
    }

    #[test]
    fn two_percent_at_two_fragments_is_a_level_of_lenders2021() {
        let paper = Paper::find("lenders2021").expect("built in");
        let claim = paper.claim("S004-27").expect("built in");
        let levels: Vec<Level> = Level::of(claim).collect();
        assert_eq!(levels.len(), 1);
        assert_eq!(levels[0].words(), "datagram_pdr 0.005 to 0.06, stated 0.02");
        assert!(levels[0].names("traffic.payload_bytes") && !levels[0].names("seed"));
    }
}
