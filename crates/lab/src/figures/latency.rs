//! Latency of datagrams: its distribution for each number of hops.

use std::collections::{BTreeMap, BTreeSet};

use super::arrangement::{Arrangement, Facet, PANELS_MAX};
use super::axes::{Axis, Panel};
use super::grid::Grid;
use super::{Data, Figure, delay, style};
use crate::detail::LATENCY_STEP;
use crate::results::PointResult;
use crate::statistics::mean;

/// The curve of one number of hops: share of those that arrived, and latency in ms as mean over the runs.
type Curves = BTreeMap<u32, Vec<(f64, f64)>>;

/// One panel: its title, the anchor of its point, and a curve for each number of hops.
struct Plot {
    title: String,
    anchor: String,
    curves: Curves,
}

fn curves(point: &PointResult) -> Curves {
    let mut samples: BTreeMap<(u32, usize), Vec<f64>> = BTreeMap::new();
    for latencies in point.runs.iter().flat_map(|run| &run.detail.latencies) {
        for (step, ms) in latencies.ms.iter().enumerate() {
            samples.entry((latencies.hops, step)).or_default().push(f64::from(*ms));
        }
    }
    let mut curves = Curves::new();
    for ((hops, step), values) in samples {
        let share = (step * LATENCY_STEP) as f64 / 100.0;
        curves.entry(hops).or_default().extend(mean(&values).map(|ms| (share, ms)));
    }
    curves
}

/// Panels have no room for the name of the key whose value they begin with; the caption says it.
fn plots(panels: &[Facet<'_>], along: Option<&str>) -> Vec<Plot> {
    let mut plots = Vec::new();
    for facet in panels {
        for series in &facet.series {
            for point in &series.points {
                let place = along.map(|key| format!("{key} = ")).unwrap_or_default();
                let place = facet.title.strip_prefix(place.as_str()).unwrap_or(&facet.title);
                let words = [place, series.label.as_str()];
                let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
                let (title, anchor) = (words.join(", "), point.anchor());
                plots.push(Plot { title, anchor, curves: curves(point) });
            }
        }
    }
    plots.retain(|plot| !plot.curves.is_empty());
    plots
}

/// The share of arrived datagrams that took no longer, a curve for each number of hops; absent without any.
pub fn by_hops(arrangement: &Arrangement<'_>) -> Option<Figure> {
    let along = arrangement.along.as_ref().map(|along| along.key.as_str());
    let mut plots = plots(&delay::panels(arrangement), along);
    plots.truncate(PANELS_MAX);
    let all = || plots.iter().flat_map(|plot| plot.curves.values().flatten()).map(|(_, ms)| *ms);
    let low = all().filter(|ms| *ms > 0.0).reduce(f64::min)?;
    let high = all().reduce(f64::max)?;
    let hops: BTreeSet<u32> = plots.iter().flat_map(|plot| plot.curves.keys().copied()).collect();
    let legend: Vec<(String, usize)> = hops
        .iter()
        .enumerate()
        .map(|(style, hops)| (format!("{hops} hops"), style % style::SERIES_MAX))
        .collect();
    let grid = Grid::new(plots.len(), &legend);
    let mut sheet = grid.sheet();
    for (index, plot) in plots.iter().enumerate() {
        let x = Axis::logarithmic(low * 1e-3, high * 1e-3, "latency (s)");
        let y = Axis::exact(0.0, 1.0, "share of those that arrived");
        let panel = Panel::draw(&mut sheet, grid.area(index), x, y, &plot.title);
        sheet.linked(&plot.anchor, &plot.title, |sheet| {
            for (place, at) in hops.iter().enumerate() {
                let Some(curve) = plot.curves.get(at) else { continue };
                let style = legend[place].1;
                let on_axis = |&(share, ms): &(f64, f64)| panel.at(ms.max(low) * 1e-3, share);
                let curve: Vec<_> = curve.iter().map(on_axis).collect();
                sheet.line(&curve, &style::line(style));
                for &at in curve.iter().skip(5).step_by(5).take(3) {
                    sheet.mark(at, style, &style::fill(style));
                }
            }
        });
    }
    grid.draw_legend(&mut sheet, &legend);
    Some(Figure {
        name: "latency-by-hops".to_owned(),
        title: "Distribution of the latency of datagrams by hops".to_owned(),
        caption: format!(
            "Share of the delivered datagrams with at most this latency, from socket to socket, by the hops of \
             their source; each percentile is a mean over the seeds. Marks are at 25, 50 and 75 %.{}",
            along.map(|key| format!(" Titles begin with {key}.")).unwrap_or_default()
        ),
        sheet,
        data: data(&plots),
    })
}

fn data(plots: &[Plot]) -> Data {
    let mut data = Data::new(&["panel", "hops", "percent", "latency_ms"]);
    for plot in plots {
        for (hops, curve) in &plot.curves {
            for (share, ms) in curve {
                let percent = Data::number(Some(share * 100.0));
                let latency = Data::number(Some((ms * 10.0).round() / 10.0));
                let row = vec![plot.title.clone(), hops.to_string(), percent, latency];
                data.push(&plot.anchor, row);
            }
        }
    }
    data
}
