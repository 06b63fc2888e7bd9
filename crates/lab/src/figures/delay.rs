//! Delay of acknowledged transactions: its distribution, and how it grows with the hops.

use super::arrangement::{Arrangement, Facet, PANELS_MAX};
use super::axes::{Axis, Panel};
use super::grid::{self, Grid};
use super::sheet::{Area, Sheet};
use super::{Data, Figure, style};
use crate::results::PointResult;
use crate::statistics::mean;

/// Panels of the distribution at most: values of the x axis, evenly picked, times the arrangement's panels.
const DISTRIBUTIONS_MAX: usize = 8;

/// A percentile of the delay as mean over the runs, in ms.
fn percentile_of(point: &PointResult, percent: usize) -> Option<f64> {
    let of = |run: &crate::runner::Run| run.detail.delays_ms.get(percent).copied().map(f64::from);
    let values: Vec<f64> = point.runs.iter().filter_map(of).filter(|v| v.is_finite()).collect();
    mean(&values)
}

/// The share of transactions that took no longer; absent without any.
pub fn distribution(arrangement: &Arrangement<'_>) -> Option<Figure> {
    let panels = panels(arrangement);
    let all = || panels.iter().flat_map(|facet| &facet.series).flat_map(|series| &series.points);
    let ends = |percent: usize| all().filter_map(move |point| percentile_of(point, percent));
    let low = ends(1).filter(|v| *v > 0.0).reduce(f64::min)?;
    let high = ends(100).reduce(f64::max)?;
    let legend = grid::legend_of(&panels);
    let grid = Grid::new(panels.len(), &legend);
    let mut sheet = grid.sheet();
    for (index, facet) in panels.iter().enumerate() {
        let x = Axis::logarithmic(low * 1e-3, high * 1e-3, "delay (s)");
        let y = Axis::exact(0.0, 1.0, "share of transactions");
        let panel = Panel::draw(&mut sheet, grid.area(index), x, y, &facet.title);
        for series in &facet.series {
            for point in &series.points {
                let at =
                    |p: usize| Some(panel.at(percentile_of(point, p)? * 1e-3, p as f64 / 100.0));
                let curve: Vec<_> = (0..=100).filter_map(at).collect();
                sheet.linked(&point.anchor(), &point.words(), |sheet| {
                    sheet.line(&curve, &style::line(series.style));
                    for &at in curve.iter().skip(25).step_by(25).take(3) {
                        sheet.mark(at, series.style, &style::fill(series.style));
                    }
                });
            }
        }
    }
    grid.draw_legend(&mut sheet, &legend);
    Some(Figure {
        name: "delay-distribution".to_owned(),
        title: "Distribution of the delay".to_owned(),
        caption: "Share of acknowledged transactions with at most this delay, from first copy to acknowledgement; \
                  each percentile is a mean over the seeds. Marks are at 25, 50 and 75 %."
            .to_owned(),
        sheet,
        data: distribution_data(&panels),
    })
}

/// One panel for each of a few values of the x axis and each panel of the arrangement.
pub fn panels<'r>(arrangement: &Arrangement<'r>) -> Vec<Facet<'r>> {
    let Some(along) = &arrangement.along else { return arrangement.facets.clone() };
    let facets = &arrangement.facets[..arrangement.facets.len().min(DISTRIBUTIONS_MAX)];
    let wanted = (DISTRIBUTIONS_MAX / facets.len().max(1)).clamp(1, along.values.len());
    let mut panels = Vec::new();
    for pick in 0..wanted {
        // The first, the last, and evenly between.
        let place = if wanted == 1 { 0 } else { pick * (along.values.len() - 1) / (wanted - 1) };
        let value = &along.values[place];
        for facet in facets {
            let mut facet = facet.clone();
            for series in &mut facet.series {
                series.points.retain(|point| point.setting(&along.key) == Some(value.as_str()));
            }
            let here = format!("{} = {value}", along.key);
            if facet.series.iter().all(|series| series.points.is_empty()) {
                continue;
            }
            facet.title =
                if facet.title.is_empty() { here } else { format!("{here}, {}", facet.title) };
            panels.push(facet);
        }
    }
    panels
}

fn distribution_data(panels: &[Facet<'_>]) -> Data {
    let mut data = Data::new(&["panel", "series", "percent", "delay_ms"]);
    for facet in panels {
        for series in &facet.series {
            for point in &series.points {
                let anchor = point.anchor();
                for percent in 0..=100 {
                    let Some(delay) = percentile_of(point, percent) else { continue };
                    let delay = Data::number(Some((delay * 10.0).round() / 10.0));
                    let (panel, label) = (facet.title.clone(), series.label.clone());
                    data.push(&anchor, vec![panel, label, percent.to_string(), delay]);
                }
            }
        }
    }
    data
}

/// One number of hops of one point, as means over the runs.
struct Hop {
    hops: u32,
    n: u64,
    /// Percentiles 5, 25, 50, 75 and 95, in ms.
    delays_ms: [f64; 5],
}

fn hops_of(point: &PointResult) -> Vec<Hop> {
    let all = || point.runs.iter().flat_map(|run| &run.detail.hops);
    let farthest = all().map(|hop| hop.hops).max().unwrap_or(0);
    let of = |hops: u32| {
        let here: Vec<_> = all().filter(|hop| hop.hops == hops).collect();
        let n = here.iter().map(|hop| hop.n).sum();
        let at = |p: usize| here.iter().map(|hop| f64::from(hop.delays_ms[p])).sum::<f64>();
        let delays_ms = std::array::from_fn(|p| at(p) / here.len() as f64);
        (!here.is_empty()).then_some(Hop { hops, n, delays_ms })
    };
    (1..=farthest).filter_map(of).collect()
}

/// Boxes from the 25th to the 75th percentile with whiskers from the 5th to the 95th.
pub fn by_hops(slice: &[(String, &PointResult)], place: &str) -> Option<Figure> {
    let panels: Vec<_> =
        slice.iter().map(|(words, point)| (words, point.anchor(), hops_of(point))).collect();
    let panels: Vec<_> =
        panels.into_iter().filter(|(.., hops)| !hops.is_empty()).take(PANELS_MAX).collect();
    let farthest = panels.iter().flat_map(|(.., hops)| hops).map(|hop| hop.hops).max()?;
    let ends =
        |p: usize| panels.iter().flat_map(|(.., hops)| hops).map(move |hop| hop.delays_ms[p]);
    let low = ends(0).filter(|delay| *delay > 0.0).reduce(f64::min)? * 1e-3;
    let high = ends(4).reduce(f64::max)? * 1e-3;
    let grid = Grid::new(panels.len(), &Vec::new());
    let mut sheet = grid.sheet();
    let mut data =
        Data::new(&["series", "hops", "n", "p5_ms", "p25_ms", "p50_ms", "p75_ms", "p95_ms"]);
    for (index, (words, anchor, hops)) in panels.iter().enumerate() {
        let names: Vec<String> = (1..=farthest).map(|hop| hop.to_string()).collect();
        let x = Axis::named(&names, "hops to the root");
        let y = Axis::logarithmic(low, high, "delay (s)");
        let panel = Panel::draw(&mut sheet, grid.area(index), x, y, words);
        let width = (panel.area().width / f64::from(farthest) * 0.5).min(30.0);
        for hop in hops {
            sheet.linked(anchor, "", |sheet| draw_box(sheet, &panel, hop, width));
            let mut row = vec![(*words).clone(), hop.hops.to_string(), hop.n.to_string()];
            row.extend(
                hop.delays_ms.map(|delay| Data::number(Some((delay * 10.0).round() / 10.0))),
            );
            data.push(anchor, row);
        }
    }
    Some(Figure {
        name: "delay-by-hops".to_owned(),
        title: format!("Delay by hops to the root{place}"),
        caption: "Median, box from the 25th to the 75th percentile, whiskers from the 5th to the 95th; means over \
                  the seeds. Hops are those at the end of the run."
            .to_owned(),
        sheet,
        data,
    })
}

fn draw_box(sheet: &mut Sheet, panel: &Panel, hop: &Hop, width: f64) {
    let at = |p: usize| panel.at(f64::from(hop.hops) - 1.0, hop.delays_ms[p] * 1e-3);
    let [low, first, median, third, high] = std::array::from_fn(at);
    sheet.line(&[low, high], "thin l0");
    let (left, right) = (low.0 - width / 2.0, low.0 + width / 2.0);
    let area = Area { left, top: third.1, width, height: first.1 - third.1 };
    sheet.rectangle(area, "f5", &format!("{} transactions", hop.n));
    sheet.line(&[(left, median.1), (right, median.1)], "line l0");
}
