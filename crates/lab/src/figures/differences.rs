//! The effect of another assumption on the results: paired differences with their intervals.

use super::arrangement::named;
use super::forest::{self, Mark, Row};
use super::grid::Legend;
use super::{Data, Figure};
use crate::claims::Sensitivity;
use crate::compare::{Difference, Side, difference};
use crate::results::PointResult;

/// A compared metric: name, label of the axis, and the factor from the metric's unit to the axis' unit.
type Compared = (&'static str, &'static str, f64);

const METRICS: &[Compared] =
    &[("tdr", "difference of TDR", 1.0), ("delay_p95_ms", "difference of delay p95 (s)", 1e-3)];
/// The same for transfers over a link.
const OF_TRANSFERS: &[Compared] = &[("completion_s", "difference of completion (s)", 1.0)];

/// The figure; absent if no two points have common seeds.
pub fn draw(sensitivity: &Sensitivity) -> Option<Figure> {
    let Sensitivity { points, key, taken } = sensitivity;
    let is_transfer = points.iter().any(|p| p.runs.iter().any(|run| run.detail.transfer.is_some()));
    let metrics = if is_transfer { OF_TRANSFERS } else { METRICS };
    let mut values: Vec<&str> = points.iter().filter_map(|point| point.setting(key)).collect();
    let mut seen = Vec::new();
    values.retain(|value| {
        value != taken && !seen.contains(value) && {
            seen.push(*value);
            true
        }
    });
    let keys = telling(points, key);
    let mut data = Data::new(&keys);
    let columns = [key.as_str(), "metric", "taken", "other", "difference", "ci95", "n"];
    data.columns.extend(columns.map(ToOwned::to_owned));
    let mut rows = Vec::new();
    for base in points.iter().filter(|point| point.setting(key) == Some(taken)) {
        let place: Vec<&str> =
            keys.iter().map(|key| base.setting(key).unwrap_or_default()).collect();
        let mut row = Row { words: named(&keys, &place), panels: vec![Vec::new(); metrics.len()] };
        for (style, value) in values.iter().enumerate() {
            let Some(other) = counterpart(points, base, key, value) else { continue };
            for (panel, (metric, _, factor)) in metrics.iter().enumerate() {
                let found = difference(&Side::of(base), &Side::of(other), metric);
                let Some(found) = found else { continue };
                row.panels[panel].push(mark(other, style, &found, *factor));
                data.push(&other.anchor(), fields(&place, value, &found));
            }
        }
        rows.push(row);
    }
    rows.retain(|row| row.panels.iter().any(|marks| !marks.is_empty()));
    let legend: Legend = values
        .iter()
        .enumerate()
        .map(|(style, value)| (named(&[key.as_str()], &[value]), style))
        .collect();
    let labels: Vec<&str> = metrics.iter().map(|(_, label, _)| *label).collect();
    let taken = named(&[key.as_str()], &[taken]);
    (!rows.is_empty()).then(|| Figure {
        name: "differences".to_owned(),
        title: format!("Effect of other values, compared with {taken}"),
        caption: "Mean difference from the assumed value, over the runs of equal seeds, with its 95 % confidence \
                  interval (Student's t). Each interval is computed alone: without any effect, one of twenty excludes zero by chance."
            .to_owned(),
        sheet: forest::draw(&rows, &labels, &legend, true),
        data,
    })
}

/// Keys that distinguish points, other than `key`.
fn telling<'p>(points: &'p [PointResult], key: &str) -> Vec<&'p str> {
    let own = points.first().map(|point| &point.point.settings);
    let differs = |other: &&str| {
        let first = points.first().and_then(|point| point.setting(other));
        points.iter().any(|point| point.setting(other) != first)
    };
    let keys = own.into_iter().flatten().map(|(key, _)| key.as_str());
    keys.filter(|other| *other != key).filter(differs).collect()
}

/// The point that equals `base` except for `key`, which has `value`.
fn counterpart<'p>(
    points: &'p [PointResult],
    base: &PointResult,
    key: &str,
    value: &str,
) -> Option<&'p PointResult> {
    let same = |other: &&PointResult| {
        let rest = base.point.settings.iter().filter(|(own, _)| own != key);
        rest.into_iter().all(|(own, value)| other.setting(own) == Some(value))
    };
    points.iter().filter(|other| other.setting(key) == Some(value)).find(same)
}

fn mark(other: &PointResult, style: usize, found: &Difference, factor: f64) -> Mark {
    let number = |value: f64| Data::number(Some(value));
    let half = found.ci95.unwrap_or(0.0);
    Mark {
        style,
        mean: found.difference * factor,
        half: half * factor,
        anchor: other.anchor(),
        tip: format!(
            "{}: {} differs by {} ± {}",
            other.words(),
            found.metric,
            number(found.difference),
            number(half)
        ),
    }
}

fn fields(place: &[&str], value: &str, found: &Difference) -> Vec<String> {
    let mut row: Vec<String> = place.iter().map(|&value| value.to_owned()).collect();
    row.extend([value.to_owned(), found.metric.clone()]);
    row.extend([found.a, found.b, found.difference].map(|value| Data::number(Some(value))));
    row.extend([Data::number(found.ci95), found.n.to_string()]);
    row
}
