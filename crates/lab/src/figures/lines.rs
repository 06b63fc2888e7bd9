//! A metric over a swept key: a line a series, with the 95 % confidence interval as a band.

use super::arrangement::{Along, Arrangement, Facet, PANELS_MAX, Series};
use super::axes::{Axis, Panel};
use super::grid::{self, Grid};
use super::metric::Metric;
use super::published::Published;
use super::sheet::{Point, Sheet};
use super::{Data, Figure, style};
use crate::claims::Level;
use crate::results::PointResult;

const CAPTION: &str = "Mean over the seeds; bands are 95 % confidence intervals (Student's t).";

/// The figure of one metric with the `levels` of this metric; absent without a sweep, or if no run has the metric.
pub fn draw(arrangement: &Arrangement<'_>, metric: Metric, levels: &[Level]) -> Option<Figure> {
    let along = arrangement.along.as_ref()?;
    let facets = &arrangement.facets[..arrangement.facets.len().min(PANELS_MAX)];
    let (low, high) = range(facets, metric)?;
    let published = Published::of(arrangement, along, metric, levels);
    let (low, high) = published.widened(low, high);
    let legend = grid::legend_of(facets);
    let mut entries = legend.clone();
    entries.extend(published.legend());
    let grid = Grid::new(facets.len(), &entries);
    let mut sheet = grid.sheet();
    for (index, facet) in facets.iter().enumerate() {
        let y = Axis::covering(low, high, metric.from_zero, metric.label);
        let panel = Panel::draw(&mut sheet, grid.area(index), x_axis(along), y, &facet.title);
        let drawn = facet.series.iter();
        let drawn = drawn.flat_map(|series| draw_series(&mut sheet, &panel, along, series, metric));
        let curves: Vec<Vec<Point>> = drawn.collect();
        published.draw(&mut sheet, &panel, index, &curves);
    }
    grid.draw_legend(&mut sheet, &legend);
    if !published.is_empty() {
        published.draw_entry(&mut sheet, grid.entry(legend.len()));
    }
    let mut data = data(arrangement, along, metric.name);
    published.add_to(&mut data);
    Some(Figure {
        name: format!("lines-{}", metric.name.replace('_', "-")),
        title: format!("{} over {}", metric.title, along.label),
        caption: format!("{CAPTION}{}", published.caption()),
        sheet,
        data,
    })
}

fn x_axis(along: &Along) -> Axis {
    match &along.numbers {
        Some(numbers) => {
            let (low, high) = numbers
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), n| (l.min(*n), h.max(*n)));
            Axis::exact(low, high, &along.label)
        }
        None => Axis::named(&along.values, &along.label),
    }
}

/// Mean with lower and upper end of its interval, in the axis' unit; a ratio's interval ends at 0 and 1.
fn interval(point: &PointResult, metric: Metric) -> Option<(f64, f64, f64)> {
    if metric.of_datagrams && point.estimate("datagram_pdr").is_none() {
        return None;
    }
    let estimate = point.estimate(metric.name)?;
    let half = estimate.ci95.unwrap_or(0.0);
    let (low, high) = ((estimate.mean - half).max(0.0), metric.at_most(estimate.mean + half));
    Some((estimate.mean * metric.factor, low * metric.factor, high * metric.factor))
}

fn range(facets: &[Facet<'_>], metric: Metric) -> Option<(f64, f64)> {
    let points = facets.iter().flat_map(|facet| &facet.series).flat_map(|series| &series.points);
    let ends = points.filter_map(|point| interval(point, metric)).map(|(_, low, high)| (low, high));
    ends.reduce(|(l, h), (low, high)| (l.min(low), h.max(high)))
}

/// Draws a series and returns its lines in pixels.
fn draw_series(
    sheet: &mut Sheet,
    panel: &Panel,
    along: &Along,
    series: &Series<'_>,
    metric: Metric,
) -> Vec<Vec<Point>> {
    let of = |point: &&'_ PointResult| Some((along.place(point)?, interval(point, metric)?));
    let points: Vec<_> =
        series.points.iter().filter_map(|p| of(p).map(|(x, i)| (p, x, i))).collect();
    let (line, fill) = (style::line(series.style), style::fill(series.style));
    let mean: Vec<_> = points.iter().map(|(_, x, (mean, ..))| panel.at(*x, *mean)).collect();
    let lines = if along.numbers.is_some() {
        let lower = points.iter().map(|(_, x, (_, low, _))| panel.at(*x, *low));
        let upper = points.iter().rev().map(|(_, x, (.., high))| panel.at(*x, *high));
        let edge: Vec<_> = lower.chain(upper).collect();
        sheet.polygon(&edge, &format!("band {fill}"));
        vec![mean.clone()]
    } else {
        // Names have no order, so no line connects them.
        let ends =
            points.iter().map(|(_, x, (_, low, high))| [*low, *high].map(|y| panel.at(*x, y)));
        ends.map(|ends| ends.to_vec()).collect()
    };
    for points in &lines {
        sheet.line(points, &line);
    }
    for ((point, ..), at) in points.iter().zip(&mean) {
        sheet.linked(&point.anchor(), &tip(point, metric), |sheet| {
            sheet.mark(*at, series.style, &fill);
        });
    }
    lines
}

/// "mac.retries = 3: tdr 0.91 ± 0.02".
fn tip(point: &PointResult, metric: Metric) -> String {
    let value = point.estimate(metric.name).map_or_else(String::new, |estimate| {
        let half = estimate.ci95.map(|half| format!(" ± {}", Data::number(Some(half))));
        Data::number(Some(estimate.mean)) + &half.unwrap_or_default()
    });
    format!("{}: {} {value}", point.words(), metric.name)
}

fn data(arrangement: &Arrangement<'_>, along: &Along, metric: &str) -> Data {
    let mut data = Data::new(&["panel", "series", &along.key, "mean", "ci95", "n"]);
    for facet in &arrangement.facets {
        for series in &facet.series {
            for point in &series.points {
                let Some(estimate) = point.estimate(metric) else { continue };
                let row = vec![
                    facet.title.clone(),
                    series.label.clone(),
                    point.setting(&along.key).unwrap_or_default().to_owned(),
                    Data::number(Some(estimate.mean)),
                    Data::number(estimate.ci95),
                    estimate.n.to_string(),
                ];
                data.push(&point.anchor(), row);
            }
        }
    }
    data
}
