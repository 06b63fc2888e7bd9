//! The figures of a report, as SVG with the data behind them.
//!
//! A figure is made from results alone: the same results give the same bytes. What a sweep's figures show side
//! by side is decided in [`arrangement`]; [`sheet`], [`axes`], [`grid`] and [`style`] draw.

pub mod arrangement;
pub mod axes;
mod boxes;
mod datagram;
mod delay;
pub mod differences;
mod drops;
pub mod forest;
pub mod grid;
mod latency;
pub mod lines;
#[cfg(test)]
pub(crate) mod made_up;
pub mod metric;
mod published;
mod schedule;
pub mod search;
pub mod sheet;
pub mod style;
mod timeline;
mod topology;
mod transfer;

use std::fmt::Write as _;

use arrangement::Arrangement;
use sheet::Sheet;

use crate::claims::Level;
use crate::results::PointResult;

/// Metrics of [`main_figures`].
const MAIN_METRICS: usize = 2;

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name as a file, without an ending.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    sheet: Sheet,
    /// The data behind it.
    pub data: Data,
}

impl Figure {
    /// The figure as an SVG file.
    pub fn to_svg(&self) -> String {
        self.sheet.to_file(&self.title)
    }

    /// The figure as an element of a page that has [`style::STYLE`].
    pub fn to_inline(&self) -> String {
        self.sheet.to_inline(&self.title)
    }
}

/// A table of data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, each with as many fields as there are columns; what is absent is empty.
    pub rows: Vec<Vec<String>>,
    /// For each row the anchor of its point; empty if the rows do not belong to points.
    pub anchors: Vec<String>,
}

impl Data {
    /// A table without rows.
    pub fn new(columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Self { columns, rows: Vec::new(), anchors: Vec::new() }
    }

    /// Adds a row that belongs to the point with this anchor.
    pub fn push(&mut self, anchor: &str, row: Vec<String>) {
        self.rows.push(row);
        self.anchors.push(anchor.to_owned());
    }

    /// A number as short as it can be with six digits after the point; empty if there is none.
    pub fn number(value: Option<f64>) -> String {
        let Some(value) = value.filter(|value| value.is_finite()) else { return String::new() };
        let text = format!("{value:.6}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// The table as CSV (RFC 4180).
    pub fn to_csv(&self) -> String {
        let mut csv = String::new();
        for row in std::iter::once(&self.columns).chain(&self.rows) {
            for (index, field) in row.iter().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                // RFC 4180 s2: fields with commas, quotes or line breaks are quoted, quotes doubled.
                // Writing to a String cannot fail.
                _ = if field.contains([',', '"', '\n', '\r']) {
                    write!(csv, "{comma}\"{}\"", field.replace('"', "\"\""))
                } else {
                    write!(csv, "{comma}{field}")
                };
            }
            csv.push('\n');
        }
        csv
    }
}

/// Every figure that `points` have data for; line figures show the published `levels` as well.
pub fn figures(points: &[PointResult], levels: &[Level]) -> Vec<Figure> {
    let arrangement = Arrangement::of(points);
    let drawn = metric::METRICS.iter().filter_map(|one| lines::draw(&arrangement, *one, levels));
    let mut figures: Vec<Figure> = drawn.collect();
    figures.extend(boxes::draw(&arrangement));
    figures.extend(transfer::draw(&arrangement));
    figures.extend(delay::distribution(&arrangement));
    figures.extend(latency::by_hops(&arrangement));
    let (slice, place) = hardest(&arrangement);
    figures.extend(delay::by_hops(&slice, &place));
    figures.extend(drops::draw(&slice, &place));
    figures.extend(timeline::draw(&slice, &place));
    figures.extend(datagram::draw(&slice, &place));
    figures.extend(topology::draw(&slice));
    figures.extend(schedule::draw(&slice));
    figures
}

/// The figures of a smaller sweep on a page with several: the first metrics (those of datagrams if there are any),
/// transfers, drops, and the timeline of fragments. Line figures show the published `levels` as well.
pub fn main_figures(points: &[PointResult], levels: &[Level]) -> Vec<Figure> {
    let arrangement = Arrangement::of(points);
    let has_datagrams = |point: &PointResult| point.estimate("datagram_pdr").is_some();
    let of_datagrams = points.iter().any(has_datagrams);
    let metrics = metric::METRICS.iter().filter(|metric| metric.of_datagrams == of_datagrams);
    let drawn = metrics.filter_map(|metric| lines::draw(&arrangement, *metric, levels));
    let mut figures: Vec<Figure> = drawn.take(MAIN_METRICS).collect();
    figures.extend(boxes::draw(&arrangement));
    figures.extend(transfer::draw(&arrangement));
    let (slice, place) = hardest(&arrangement);
    figures.extend(drops::draw(&slice, &place));
    figures.extend(datagram::draw(&slice, &place));
    figures
}

/// One point of each series where transactions are lost most, and words that tell where that is; of an axis of
/// names, the points of all of them.
fn hardest<'r>(arrangement: &Arrangement<'r>) -> (Vec<(String, &'r PointResult)>, String) {
    let Some(along) = &arrangement.along else { return (arrangement.slice(None), String::new()) };
    if along.numbers.is_none() {
        let mut all = Vec::new();
        for value in &along.values {
            for (words, point) in arrangement.slice(Some(value)) {
                let comma = if words.is_empty() { "" } else { ", " };
                all.push((format!("{value}{comma}{words}"), point));
            }
        }
        return (all, String::new());
    }
    let hardest = arrangement.hardest();
    let place = hardest.map_or_else(String::new, |value| format!(" at {} = {value}", along.key));
    (arrangement.slice(hardest), place)
}

#[cfg(test)]
mod tests;
