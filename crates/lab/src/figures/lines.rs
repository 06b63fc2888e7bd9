//! A metric over a swept key: a line a series, with the 95 % confidence interval as a band.

use super::arrangement::{Along, Arrangement, Facet, PANELS_MAX, Series};
use super::axes::{Axis, Panel};
use super::grid::{self, Grid};
use super::sheet::Sheet;
use super::{Data, Figure, style};
use crate::results::PointResult;

/// A metric that is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in the results.
    pub name: &'static str,
    /// What the figure is called.
    pub title: &'static str,
    /// What stands at the y axis.
    pub label: &'static str,
    /// Whether the axis starts at zero.
    pub from_zero: bool,
    /// What the metric's values are multiplied with to get the axis' unit.
    pub factor: f64,
    /// Whether it is drawn for runs with datagrams alone.
    pub of_datagrams: bool,
}

/// The metrics that are drawn.
pub const METRICS: [Metric; 11] = [
    Metric {
        name: "tdr",
        title: "Transaction delivery ratio",
        label: "delivery ratio",
        from_zero: false,
        factor: 1.0,
        of_datagrams: false,
    },
    Metric {
        name: "delay_p95_ms",
        title: "Delay, 95th percentile",
        label: "delay p95 (s)",
        from_zero: true,
        factor: 1e-3,
        of_datagrams: false,
    },
    Metric {
        name: "delay_p50_ms",
        title: "Delay, median",
        label: "delay p50 (s)",
        from_zero: true,
        factor: 1e-3,
        of_datagrams: false,
    },
    Metric {
        name: "retransmissions_per_transaction",
        title: "Retransmissions a transaction",
        label: "retransmissions",
        from_zero: true,
        factor: 1.0,
        of_datagrams: false,
    },
    Metric {
        name: "pdr_up",
        title: "Packet delivery ratio of requests",
        label: "delivery ratio",
        from_zero: false,
        factor: 1.0,
        of_datagrams: false,
    },
    Metric {
        name: "duty_cycle",
        title: "Radio duty cycle",
        label: "duty cycle (%)",
        from_zero: true,
        factor: 100.0,
        of_datagrams: false,
    },
    Metric {
        name: "datagram_pdr",
        title: "Delivery ratio of datagrams",
        label: "delivery ratio",
        from_zero: true,
        factor: 1.0,
        of_datagrams: true,
    },
    Metric {
        name: "latency_p50_ms",
        title: "Latency of datagrams, median",
        label: "latency p50 (s)",
        from_zero: true,
        factor: 1e-3,
        of_datagrams: true,
    },
    Metric {
        name: "latency_per_hop_ms",
        title: "Latency of datagrams for each hop",
        label: "latency a hop (s)",
        from_zero: true,
        factor: 1e-3,
        of_datagrams: true,
    },
    Metric {
        name: "packet_buffer_peak_octets",
        title: "Packet buffer, most that a node used",
        label: "octets",
        from_zero: true,
        factor: 1.0,
        of_datagrams: true,
    },
    Metric {
        name: "link_retransmissions",
        title: "Retransmissions of the link layer",
        label: "copies a node",
        from_zero: true,
        factor: 1.0,
        of_datagrams: true,
    },
];

/// The figure of one metric; absent without a sweep, and when no run has the metric.
pub fn draw(arrangement: &Arrangement<'_>, metric: Metric) -> Option<Figure> {
    let along = arrangement.along.as_ref()?;
    let facets = &arrangement.facets[..arrangement.facets.len().min(PANELS_MAX)];
    let (low, high) = range(facets, metric)?;
    let legend = grid::legend_of(facets);
    let grid = Grid::new(facets.len(), &legend);
    let mut sheet = grid.sheet();
    for (index, facet) in facets.iter().enumerate() {
        let y = Axis::covering(low, high, metric.from_zero, metric.label);
        let panel = Panel::draw(&mut sheet, grid.area(index), x_axis(along), y, &facet.title);
        for series in &facet.series {
            draw_series(&mut sheet, &panel, along, series, metric);
        }
    }
    grid.draw_legend(&mut sheet, &legend);
    Some(Figure {
        name: format!("lines-{}", metric.name.replace('_', "-")),
        title: format!("{} over {}", metric.title, along.label),
        caption: "Mean over the seeds; bands are 95 % confidence intervals (Student's t)."
            .to_owned(),
        sheet,
        data: data(arrangement, along, metric.name),
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
    let (mut low, mut high) = (estimate.mean - half, estimate.mean + half);
    low = low.max(0.0);
    if matches!(metric.name, "tdr" | "pdr_up" | "duty_cycle" | "datagram_pdr") {
        high = high.min(1.0);
    }
    Some((estimate.mean * metric.factor, low * metric.factor, high * metric.factor))
}

fn range(facets: &[Facet<'_>], metric: Metric) -> Option<(f64, f64)> {
    let points = facets.iter().flat_map(|facet| &facet.series).flat_map(|series| &series.points);
    let ends = points.filter_map(|point| interval(point, metric)).map(|(_, low, high)| (low, high));
    ends.reduce(|(l, h), (low, high)| (l.min(low), h.max(high)))
}

fn draw_series(
    sheet: &mut Sheet,
    panel: &Panel,
    along: &Along,
    series: &Series<'_>,
    metric: Metric,
) {
    let of = |point: &&'_ PointResult| Some((along.place(point)?, interval(point, metric)?));
    let points: Vec<_> =
        series.points.iter().filter_map(|p| of(p).map(|(x, i)| (p, x, i))).collect();
    let (line, fill) = (style::line(series.style), style::fill(series.style));
    let mean: Vec<_> = points.iter().map(|(_, x, (mean, ..))| panel.at(*x, *mean)).collect();
    if along.numbers.is_some() {
        let lower = points.iter().map(|(_, x, (_, low, _))| panel.at(*x, *low));
        let upper = points.iter().rev().map(|(_, x, (.., high))| panel.at(*x, *high));
        let edge: Vec<_> = lower.chain(upper).collect();
        sheet.polygon(&edge, &format!("band {fill}"));
        sheet.line(&mean, &line);
    } else {
        // Names have no order, so nothing joins them.
        for (_, x, (_, low, high)) in &points {
            sheet.line(&[panel.at(*x, *low), panel.at(*x, *high)], &line);
        }
    }
    for ((point, ..), at) in points.iter().zip(mean) {
        sheet.linked(&point.anchor(), &tip(point, metric), |sheet| {
            sheet.mark(at, series.style, &fill);
        });
    }
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
