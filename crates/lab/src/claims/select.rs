//! Selects the runs of a test and pairs them by seed.
//!
//! Runs of two points with equal seeds meet the same radio conditions, so the mean of their differences has a narrower
//! interval than the difference of their means. Only seeds that both points have are used.

use std::collections::{BTreeMap, BTreeSet};

use super::claim::{Extreme, Settings, Test};
use super::value::Value;
pub(super) use super::value::{BySeed, Side};
use crate::medians::{Medians, Sample};
use crate::results::PointResult;
use crate::statistics;

/// One comparison of a test: two points, or one point alone.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison<'r> {
    /// The point on the left, or the only one.
    pub point: &'r PointResult,
    /// The point on the right, if there is one.
    pub other: Option<&'r PointResult>,
    /// The left side.
    pub left: Side,
    /// The right side; empty without one.
    pub right: Side,
    /// The difference, or the left side if there is no right side.
    pub effect: Side,
}

impl Side {
    /// The side with these values.
    pub fn of(runs: BySeed) -> Self {
        let medians = Sample::of(runs.values().copied()).map(Medians::Of);
        Self { runs, medians }
    }

    /// This side minus `right`: by seed for seeds that both have, and as a difference of medians. If `relative`, divided
    /// by `right`.
    pub fn minus(&self, right: &Self, relative: bool) -> Self {
        let medians = self.medians.clone().zip(right.medians.clone());
        let medians = medians.map(|(left, right)| Medians::Difference {
            left: Box::new(left),
            right: Box::new(right),
            relative,
        });
        Self { runs: difference(&self.runs, &right.runs, relative), medians }
    }
}

impl Comparison<'_> {
    /// The effect by the statistic of `test`.
    pub fn value(&self, test: &Test) -> Option<Value> {
        Value::of(&self.effect, test.statistic)
    }
}

/// The value of a setting of `point`.
pub(super) fn setting<'p>(point: &'p PointResult, key: &str) -> Option<&'p str> {
    point.setting(key)
}

/// Whether `point` has `settings`.
pub(super) fn has(point: &PointResult, settings: &Settings) -> bool {
    settings.iter().all(|(key, value)| setting(point, key) == Some(value))
}

/// Whether `point` has one of the values of each setting of `at`.
pub(super) fn meets(point: &PointResult, at: &BTreeMap<String, Vec<String>>) -> bool {
    at.iter().all(|(key, allowed)| {
        setting(point, key).is_some_and(|value| allowed.iter().any(|one| one == value))
    })
}

/// The point of `points` that equals `like` except for `changes`.
fn with<'r>(
    points: &'r [PointResult],
    like: &PointResult,
    changes: &Settings,
) -> Option<&'r PointResult> {
    points.iter().find(|other| {
        // Only keys that both have: the length of a slotframe, for example, has a key for each scheduling function.
        let same = |(key, value): &(String, String)| {
            changes.contains_key(key) || setting(other, key).is_none_or(|there| there == value)
        };
        has(other, changes) && like.point.settings.iter().all(same)
    })
}

/// A metric by seed.
pub(super) fn by_seed(point: &PointResult, metric: &str) -> BySeed {
    let value = |run: &crate::runner::Run| {
        let found = run.metrics.numbers().into_iter().find(|(name, _)| *name == metric);
        found.and_then(|(_, value)| value).map(|value| (run.seed.0, value))
    };
    point.runs.iter().filter_map(value).collect()
}

/// `left` minus `right` for seeds that both have, divided by `right` if `relative`.
pub(super) fn difference(left: &BySeed, right: &BySeed, relative: bool) -> BySeed {
    let one = |(seed, left): (&u64, &f64)| {
        let right = right.get(seed)?;
        let difference = statistics::difference(*right, *left);
        let effect = if relative { difference / right } else { difference };
        effect.is_finite().then_some((*seed, effect))
    };
    left.iter().filter_map(one).collect()
}

/// All comparisons of `test` among `points`, in the order of the points.
pub(super) fn comparisons<'r>(test: &Test, points: &'r [PointResult]) -> Vec<Comparison<'r>> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let [of_left, of_right] =
        [test.experiment.map(|one| one.left), test.experiment.and_then(|one| one.right)];
    for point in points.iter().filter(|point| meets(point, &test.at)) {
        if test.left.as_ref().is_some_and(|left| !has(point, left)) {
            continue;
        }
        // A knee is one number of a whole axis.
        if test.knee_below.is_some() && !seen.insert(without(point, test.along.as_deref())) {
            continue;
        }
        let left = side(test, of_left, points, point);
        let Some(changes) = &test.right else {
            let (effect, right) = (left.clone(), Side::default());
            found.push(Comparison { point, other: None, left, right, effect });
            continue;
        };
        let other = with(points, point, changes);
        let right = other.map(|other| side(test, of_right, points, other)).unwrap_or_default();
        let effect = left.minus(&right, test.relative && test.over.is_empty());
        found.push(Comparison { point, other, left, right, effect });
    }
    found
}

/// The values of one side of a comparison at `point`, each a run, or the number `of` an experiment.
fn side(test: &Test, of: Option<Extreme>, points: &[PointResult], point: &PointResult) -> Side {
    if let (Some(below), Some(axis)) = (test.knee_below, &test.along) {
        return Side::of(knee(&curve(points, point, axis), &test.metric, below));
    }
    let one = |point: &PointResult| {
        let runs = by_seed(point, &test.metric);
        let size = test.experiment.map_or(1, |one| one.runs);
        Side::of(of.map_or(runs.clone(), |of| experiments(&runs, size, of)))
    };
    let own = one(point);
    if test.over.is_empty() {
        return own;
    }
    let base = with(points, point, &test.over).map(one);
    own.minus(&base.unwrap_or_default(), test.relative)
}

/// One number for each `size` consecutive runs, by the first seed of each; a rest of fewer runs is left out.
fn experiments(runs: &BySeed, size: usize, of: Extreme) -> BySeed {
    let all: Vec<(u64, f64)> = runs.iter().map(|(seed, value)| (*seed, *value)).collect();
    let number = |runs: &[(u64, f64)]| {
        let sample = Sample::of(runs.iter().map(|(_, value)| *value))?;
        let number = match of {
            Extreme::Least => sample.least(),
            Extreme::Most => sample.most(),
            Extreme::Range => sample.most() - sample.least(),
            Extreme::Tail => sample.most() / sample.median(),
        };
        Some((runs.first()?.0, number))
    };
    all.chunks_exact(size.max(1)).filter_map(number).collect()
}

/// The settings of `point` without `axis`.
pub(super) fn without(point: &PointResult, axis: Option<&str>) -> Vec<(String, String)> {
    let kept = |(key, _): &&(String, String)| Some(key.as_str()) != axis;
    point.point.settings.iter().filter(kept).cloned().collect()
}

/// The points that differ from `point` in `axis` only, by their place on it.
pub(super) fn curve<'r>(
    points: &'r [PointResult],
    point: &PointResult,
    axis: &str,
) -> Vec<(f64, &'r PointResult)> {
    let rest = without(point, Some(axis));
    let mut curve: Vec<(f64, &PointResult)> = points
        .iter()
        .filter(|other| without(other, Some(axis)) == rest)
        .filter_map(|other| Some((place(setting(other, axis)?)?, other)))
        .collect();
    curve.sort_by(|a, b| a.0.total_cmp(&b.0));
    curve
}

/// For each seed the largest place of the curve at which the metric is below `below`; zero if there is none.
fn knee(curve: &[(f64, &PointResult)], metric: &str, below: f64) -> BySeed {
    let mut knees = BySeed::new();
    for (place, point) in curve {
        for (seed, value) in by_seed(point, metric) {
            let knee = knees.entry(seed).or_insert(0.0);
            if value < below {
                *knee = *place;
            }
        }
    }
    knees
}

/// A setting as a number: durations in seconds, numbers as they are.
pub(super) fn place(value: &str) -> Option<f64> {
    let digits = value.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    let scale = match unit {
        "" | "s" => 1.0,
        "us" => 1e-6,
        "ms" => 1e-3,
        "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    number.trim().parse::<f64>().ok().map(|number| number * scale)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::LazyLock;

    use lowmesh_units::{Duration, Seed};

    use super::*;
    use crate::metrics::Metrics;
    use crate::results::Point;
    use crate::runner::Run;
    use crate::scenario::Scenario;

    static SCENARIO: LazyLock<Scenario> =
        LazyLock::new(|| Scenario::parse("x", "name = \"x\"", &[]).expect("a scenario"));

    /// A point with one run for each value of its TDR, from seed 1.
    pub fn point(settings: &[(&str, &str)], tdr: &[f64]) -> PointResult {
        let run = |(index, tdr): (usize, &f64)| Run {
            seed: Seed(index as u64 + 1),
            trace_hash: 0,
            simulated: Duration::from_secs(3600),
            wall_s: 0.0,
            metrics: Metrics { tdr: Some(*tdr), ..Metrics::default() },
            detail: crate::detail::Detail::default(),
        };
        let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        PointResult {
            point: Point { settings, scenario: SCENARIO.clone() },
            runs: tdr.iter().enumerate().map(run).collect(),
            failures: Vec::new(),
        }
    }

    fn test(rest: &str) -> Test {
        toml::from_str(&format!("op = \"gt\"\nmetric = \"tdr\"\n{rest}")).expect("a test")
    }

    #[test]
    fn sides_are_paired_by_seed_and_all_else_is_equal() {
        let points = [
            point(&[("cc", "a"), ("p", "2s")], &[0.5, 0.6]),
            point(&[("cc", "b"), ("p", "2s")], &[0.4, 0.55, 0.1]),
            point(&[("cc", "a"), ("p", "4s")], &[0.9]),
            point(&[("cc", "b"), ("p", "4s")], &[0.8]),
        ];
        let found = comparisons(&test("left = {cc = \"a\"}\nright = {cc = \"b\"}"), &points);
        let effects: Vec<Vec<f64>> = found
            .iter()
            .map(|one| one.effect.runs.values().map(|v| (v * 100.0).round()).collect())
            .collect();
        assert_eq!(effects, [vec![10.0, 5.0], vec![10.0]]);
        let only =
            "at = {p = [\"4s\"]}\nleft = {cc = \"a\"}\nright = {cc = \"b\"}\nrelative = true";
        let found = comparisons(&test(only), &points);
        assert_eq!(found.len(), 1);
        assert!((found[0].effect.runs[&1] - 0.125).abs() < 1e-9);
    }

    #[test]
    fn a_gain_is_taken_over_another_point() {
        let points = [
            point(&[("cc", "a"), ("n", "1")], &[0.5]),
            point(&[("cc", "b"), ("n", "1")], &[0.7]),
            point(&[("cc", "a"), ("n", "2")], &[0.5]),
            point(&[("cc", "b"), ("n", "2")], &[0.6]),
        ];
        let rest =
            "left = {cc = \"b\", n = \"1\"}\nright = {cc = \"b\", n = \"2\"}\nover = {cc = \"a\"}";
        let found = comparisons(&test(rest), &points);
        assert!((found[0].effect.runs[&1] - 0.1).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_knee_is_the_largest_place_at_which_the_metric_is_low() {
        let points = [
            point(&[("n", "1"), ("p", "2s")], &[0.5, 0.97]),
            point(&[("n", "1"), ("p", "12s")], &[0.9, 0.99]),
            point(&[("n", "1"), ("p", "20s")], &[0.99, 0.99]),
        ];
        let found = comparisons(&test("along = \"p\"\nknee_below = 0.95"), &points);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].effect.runs, BySeed::from([(1, 12.0), (2, 0.0)]));
    }

    #[test]
    fn medians_are_those_of_each_side_and_need_no_pairs() {
        let points = [
            point(&[("cc", "a")], &[0.9, 0.2, 0.3]),
            point(&[("cc", "b")], &[0.1, 0.3, 0.2, 0.2, 0.2]),
        ];
        let sides = "statistic = \"median\"\nleft = {cc = \"a\"}\nright = {cc = \"b\"}\n";
        let value = |rest: &str| {
            let test = test(&format!("{sides}{rest}"));
            let value = comparisons(&test, &points)[0].value(&test).expect("runs");
            (value.centre() * 1e6).round() / 1e6
        };
        assert_eq!((value(""), value("relative = true")), (0.1, 0.5));
        // With a base, each side is its relative gain, and the gains are subtracted.
        let over =
            "at = {cc = [\"a\"]}\nover = {cc = \"b\"}\nrelative = true\nstatistic = \"median\"";
        let test = test(over);
        let value = comparisons(&test, &points)[0].value(&test).expect("runs");
        assert!((value.centre() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn an_experiment_is_one_number_of_consecutive_runs() {
        let points = [
            point(&[("cc", "a")], &[0.9, 0.2, 0.4, 0.5, 0.6, 0.7, 0.3]),
            point(&[("cc", "b")], &[0.1, 0.3, 0.2, 0.8, 0.2, 0.2, 0.1]),
        ];
        let of = |left: &str, right: &str| {
            let rest = format!(
                "left = {{cc = \"a\"}}\nright = {{cc = \"b\"}}\n\
                 experiment = {{ runs = 3, left = \"{left}\", right = \"{right}\" }}"
            );
            let found = comparisons(&test(&rest), &points);
            let round = |side: &Side| -> Vec<(u64, f64)> {
                side.runs.iter().map(|(seed, v)| (*seed, (v * 1e3).round() / 1e3)).collect()
            };
            (round(&found[0].left), round(&found[0].right))
        };
        // Seeds 1 to 3 and 4 to 6; the seventh run is left out.
        assert_eq!(of("most", "least"), (vec![(1, 0.9), (4, 0.7)], vec![(1, 0.1), (4, 0.2)]));
        assert_eq!(of("range", "tail"), (vec![(1, 0.7), (4, 0.2)], vec![(1, 1.5), (4, 4.0)]));
    }

    #[test]
    fn places_are_numbers_or_durations() {
        assert_eq!(
            [place("2s"), place("250ms"), place("1min")],
            [Some(2.0), Some(0.25), Some(60.0)]
        );
        assert_eq!([place("-81.6"), place("alice")], [Some(-81.6), None]);
    }
}
