//! Whether a metric rises along an axis, curve by curve.

use super::{Finding, overall, short};
use crate::claims::answer::Measured;
use crate::claims::chance;
use crate::claims::compare::Outcome;
use crate::claims::paper::Test;
use crate::claims::select::{self, BySeed, Comparison, by_seed};
use crate::command::Provenance;
use crate::results::PointResult;
use crate::statistics::Estimate;

/// The metric along the axis, with all other settings fixed.
struct Curve<'r> {
    point: &'r PointResult,
    /// Rank correlation of its means with the axis.
    rho: Option<f64>,
    /// From each point to the next, paired by seed.
    steps: Vec<Estimate>,
}

/// Whether the metric rises along the axis on each curve, with no step that falls with certainty.
pub(super) fn trend(
    test: &Test,
    points: &[PointResult],
    comparisons: &[Comparison<'_>],
    from: &Provenance,
) -> Finding {
    let axis = test.along.as_deref().unwrap_or_default();
    let curves = curves(test, points, comparisons, axis);
    let steps = || curves.iter().flat_map(|curve| &curve.steps);
    let all = steps().count();
    let certain = steps().filter(|step| falls(test, **step)).count();
    let one = steps().any(|step| falls(test, step.together(all)));
    let is_beyond_chance = chance::is_beyond(certain, one, all);
    let judge = |curve: &Curve<'_>| {
        let Some(rho) = curve.rho else { return Outcome::Unclear };
        let falls = is_beyond_chance && curve.steps.iter().any(|step| falls(test, *step));
        match (falls, rho >= test.value) {
            (true, _) => Outcome::Fails,
            (false, true) => Outcome::Holds,
            (false, false) => Outcome::Unclear,
        }
    };
    let judged: Vec<(Outcome, &Curve<'_>)> =
        curves.iter().map(|curve| (judge(curve), curve)).collect();
    let outcomes = judged.iter().map(|(outcome, _)| *outcome);
    let held = outcomes.clone().filter(|one| *one == Outcome::Holds).count();
    let lowest = judged.iter().min_by(|a, b| {
        let rank =
            |one: &(Outcome, &Curve<'_>)| (one.0 == Outcome::Holds, one.1.rho.unwrap_or(-2.0));
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let (_, Curve { point, rho, .. }) = lowest.expect("a comparison makes a curve");
    let place: Vec<&str> = select::without(point, Some(axis))
        .iter()
        .filter_map(|(key, _)| point.setting(key))
        .collect();
    Finding {
        outcome: overall(&outcomes, test.share),
        measured: rho.map_or(Measured::Nothing, Measured::Number),
        ci95: None,
        n: point.runs.len(),
        why: format!(
            "holds on {held} of {} curves, {certain} of {all} steps fall; rank correlation with {axis} {} at {}",
            judged.len(),
            rho.map_or_else(|| "-".to_owned(), short),
            place.join(", ")
        ),
        command: Some(from.point(&point.point)),
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
    let means: Option<Vec<f64>> = values
        .iter()
        .map(|one| Estimate::of(one.values().copied()).map(|estimate| estimate.mean))
        .collect();
    let step =
        |pair: &[BySeed]| Estimate::of(select::difference(&pair[1], &pair[0], false).into_values());
    let steps = values.windows(2).filter_map(step).collect();
    Curve { point, rho: means.and_then(|means| rank_correlation(&means)), steps }
}

/// Whether a step falls with certainty.
fn falls(test: &Test, step: Estimate) -> bool {
    step.ci95.is_some_and(|half| step.mean + half < -test.tolerance)
}

/// Spearman's rank correlation of numbers with their places; of equal numbers each has the mean rank.
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
    // A level curve has no ranks; it does not fall either.
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
