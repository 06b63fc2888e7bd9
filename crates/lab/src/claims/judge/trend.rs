//! Judges whether a metric rises along an axis, for each curve.
//!
//! Each run of a curve has a rank correlation with the axis (Spearman). Their mean and its interval are compared with the
//! claim. A significant fall from one place to the next contradicts the claim as well.

use super::words::counted;
use super::{Finding, Measured};
use crate::claims::chance::{self, Families};
use crate::claims::claim::Test;
use crate::claims::compare::{Outcome, compare};
use crate::claims::select::{self, BySeed, Comparison, by_seed};
use crate::claims::value::Value;
use crate::command::Provenance;
use crate::digits::with_interval;
use crate::results::{Point, PointResult};
use crate::statistics::Estimate;

/// The metric along the axis, with all other settings fixed.
struct Curve<'r> {
    point: &'r PointResult,
    /// Rank correlation of its runs with the axis.
    rho: Option<Estimate>,
    /// From each point to the next, paired by seed.
    steps: Vec<Estimate>,
}

impl Curve<'_> {
    /// The outcome of the curve as one of a `family`.
    fn outcome(&self, test: &Test, family: usize) -> Outcome {
        let rho = self.rho.map(Value::Mean);
        let contradicts =
            compare(test, rho.as_ref(), self.contradictions(family)) == Outcome::Fails;
        if contradicts || self.falls(test, family) > 0 {
            return Outcome::Fails;
        }
        match compare(test, rho.as_ref(), family) {
            Outcome::Holds => Outcome::Holds,
            _ => Outcome::Unclear,
        }
    }

    /// The correlation and each step can contradict, so a `family` of curves has this many possible contradictions.
    fn contradictions(&self, family: usize) -> usize {
        family * (self.steps.len() + 1)
    }

    /// The number of steps that fall significantly when the curve is one of a `family`.
    fn falls(&self, test: &Test, family: usize) -> usize {
        let each = self.contradictions(family);
        let falls = |step: &&Estimate| step.lies_below(-test.tolerance, each);
        self.steps.iter().filter(falls).count()
    }
}

/// Judges whether the metric rises along the axis on each curve, without a significant fall.
pub(super) fn trend(
    test: &Test,
    tests: usize,
    points: &[PointResult],
    comparisons: &[Comparison<'_>],
    from: &Provenance,
) -> Finding {
    let axis = test.along.as_deref().unwrap_or_default();
    let curves = curves(test, points, comparisons, axis);
    let all = curves.len();
    let needed = chance::needed(test.share, all);
    let count = |wanted: Outcome, family: usize| {
        curves.iter().filter(|curve| curve.outcome(test, family) == wanted).count()
    };
    let outcome = chance::decide(all, needed, tests, count);
    let families = Families::of(all, needed, tests);
    let held = count(Outcome::Holds, families.holds);
    let failed = count(Outcome::Fails, families.fails);
    let steps: usize = curves.iter().map(|curve| curve.steps.len()).sum();
    let falling: usize = curves.iter().map(|curve| curve.falls(test, families.fails)).sum();
    // The curve to show: one that fails before others, then the one that is least sure to rise.
    let lowest = |curve: &&Curve<'_>| {
        let low = curve.rho.map_or(-2.0, |rho| rho.mean - rho.ci95.unwrap_or(2.0));
        if curve.outcome(test, families.fails) == Outcome::Fails { low - 4.0 } else { low }
    };
    let shown = curves.iter().min_by(|a, b| lowest(a).total_cmp(&lowest(b)));
    let Curve { point, rho, .. } = shown.expect("a comparison makes a curve");
    let places = select::curve(points, point, axis);
    let places: Vec<&Point> = places.iter().map(|(_, place)| &place.point).collect();
    let place: Vec<&str> = select::without(point, Some(axis))
        .iter()
        .filter_map(|(key, _)| point.setting(key))
        .collect();
    let number = rho.map_or_else(|| "-".to_owned(), with_interval);
    Finding {
        outcome,
        measured: rho.map_or(Measured::Nothing, |rho| Measured::Number(rho.mean)),
        ci95: rho.and_then(|rho| rho.ci95),
        interval: None,
        n: rho.map_or(0, |rho| rho.n),
        power: None,
        why: format!(
            "{}, {falling} of {steps} steps fall; rank correlation with {axis} {number} at {}",
            counted(needed, all, held, failed),
            place.join(", ")
        ),
        command: from.swept(&places, axis),
    }
}

fn curves<'r>(
    test: &Test,
    points: &'r [PointResult],
    comparisons: &[Comparison<'r>],
    axis: &str,
) -> Vec<Curve<'r>> {
    let mut seen: Vec<Vec<(String, String)>> = Vec::new();
    let mut curves = Vec::new();
    for one in comparisons {
        let rest = select::without(one.point, Some(axis));
        if !seen.contains(&rest) {
            seen.push(rest);
            curves.push(curve(test, points, one.point, axis));
        }
    }
    curves
}

fn curve<'r>(
    test: &Test,
    points: &'r [PointResult],
    point: &'r PointResult,
    axis: &str,
) -> Curve<'r> {
    let along = select::curve(points, point, axis);
    let values: Vec<BySeed> = along.iter().map(|(_, point)| by_seed(point, &test.metric)).collect();
    let step =
        |pair: &[BySeed]| Estimate::of(select::difference(&pair[1], &pair[0], false).into_values());
    let steps = values.windows(2).filter_map(step).collect();
    Curve { point, rho: Estimate::of(rank_correlations(&values)), steps }
}

/// The rank correlation of each seed that all places have.
fn rank_correlations(values: &[BySeed]) -> Vec<f64> {
    let seeds = values.first().into_iter().flat_map(BySeed::keys);
    let along = |seed: &u64| -> Option<Vec<f64>> {
        values.iter().map(|place| place.get(seed).copied()).collect()
    };
    seeds.filter_map(|seed| rank_correlation(&along(seed)?)).collect()
}

/// Spearman's rank correlation of numbers with their places; equal numbers share their mean rank.
fn rank_correlation(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let rank = |value: f64| {
        let below = values.iter().filter(|other| **other < value).count() as f64;
        let equal = values.iter().filter(|other| other.total_cmp(&value).is_eq()).count() as f64;
        below + (equal - 1.0) / 2.0
    };
    let middle = (n as f64 - 1.0) / 2.0;
    let (mut product, mut squares, mut places) = (0.0, 0.0, 0.0);
    for (place, value) in values.iter().enumerate() {
        let (x, y) = (place as f64 - middle, rank(*value) - middle);
        product += x * y;
        squares += y * y;
        places += x * x;
    }
    // A level curve has no correlation. It does not fall either, so it counts as 0.
    Some(if squares > 0.0 { product / libm::sqrt(squares * places) } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_correlation_is_spearmans() {
        assert_eq!(rank_correlation(&[1.0, 2.0, 3.0]), Some(1.0));
        assert_eq!(rank_correlation(&[3.0, 2.0, 1.0]), Some(-1.0));
        assert_eq!(rank_correlation(&[1.0, 1.0]), Some(0.0));
        assert_eq!(rank_correlation(&[1.0]), None);
        // Ranks .5 .5 2 against 0 1 2: 1.5 / sqrt(2 * 1.5).
        let rho = rank_correlation(&[1.0, 1.0, 2.0]).expect("three values");
        assert!((rho - 0.866).abs() < 1e-3, "{rho}");
        // Places 0 1 2 3 against ranks 0 2 1 3: 1 - 6 * 2 / (4 * 15).
        let rho = rank_correlation(&[1.0, 3.0, 2.0, 4.0]).expect("four values");
        assert!((rho - 0.8).abs() < 1e-12, "{rho}");
    }
}
