//! Means with their intervals as strokes, a row each, in panels side by side that share the rows.

use super::axes::{Axis, Panel};
use super::grid::{Grid, LETTER, Legend, WIDTH};
use super::sheet::{Anchor, Area, Sheet};
use super::style;

/// A row: its label, and its marks in each panel.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The label.
    pub words: String,
    /// The marks in each panel.
    pub panels: Vec<Vec<Mark>>,
}

/// A mean with its interval.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Colour and shape.
    pub style: usize,
    /// The mean.
    pub mean: f64,
    /// Half the interval.
    pub half: f64,
    /// The anchor of its point.
    pub anchor: String,
    /// The text under the pointer.
    pub tip: String,
}

/// Height of one mark with its room.
const PITCH: f64 = 17.0;
/// Room between rows.
const GAP: f64 = 10.0;
/// Room between panels.
const BETWEEN: f64 = 30.0;

/// Draws `rows` with a panel for each of `labels`, and a line at zero if `zero` is set.
pub fn draw(rows: &[Row], labels: &[&str], legend: &Legend, zero: bool) -> Sheet {
    let pitch = |row: &Row| {
        let marks = row.panels.iter().map(Vec::len).max().unwrap_or(0).max(1);
        marks as f64 * PITCH + GAP
    };
    let height: f64 = rows.iter().map(pitch).sum();
    // A grid of one panel has room for the legend and the rows.
    let grid = Grid::with(1, legend, 1, height);
    let mut sheet = grid.sheet();
    let longest = rows.iter().map(|row| row.words.chars().count()).max().unwrap_or(0);
    let left = 20.0 + longest as f64 * LETTER;
    let width = (WIDTH - left - 20.0) / labels.len().max(1) as f64 - BETWEEN;
    let top = grid.area(0).top;
    for (index, label) in labels.iter().enumerate() {
        let area = Area { left: left + index as f64 * (width + BETWEEN), top, width, height };
        let axis = axis(rows, index, label, zero);
        let panel = Panel::draw(&mut sheet, area, axis, Axis::bare(0.0, height), "");
        if zero {
            sheet.line(&[panel.at(0.0, 0.0), panel.at(0.0, height)], "axis");
        }
        let mut at = height;
        for row in rows {
            if let Some(marks) = row.panels.get(index) {
                draw_row(&mut sheet, &panel, marks, at - GAP / 2.0);
            }
            at -= pitch(row);
        }
    }
    let mut y = top;
    for row in rows {
        let middle = (left - 12.0, y + pitch(row) / 2.0 + 5.0);
        sheet.text(middle, &row.words, Anchor::End, "small");
        y += pitch(row);
    }
    grid.draw_legend(&mut sheet, legend);
    sheet
}

/// An axis that holds all intervals of a panel.
fn axis(rows: &[Row], panel: usize, label: &str, zero: bool) -> Axis {
    let marks = rows.iter().filter_map(|row| row.panels.get(panel)).flatten();
    let ends = marks.map(|mark| (mark.mean - mark.half, mark.mean + mark.half));
    let (low, high) = ends
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), (low, high)| (l.min(low), h.max(high)));
    let (low, high) = if zero { (low.min(0.0), high.max(0.0)) } else { (low, high) };
    Axis::covering(low, high, false, label)
}

fn draw_row(sheet: &mut Sheet, panel: &Panel, marks: &[Mark], from: f64) {
    for (index, mark) in marks.iter().enumerate() {
        let y = from - (index as f64 + 0.5) * PITCH;
        let ends = [panel.at(mark.mean - mark.half, y), panel.at(mark.mean + mark.half, y)];
        sheet.linked(&mark.anchor, &mark.tip, |sheet| {
            sheet.line(&ends, &style::line(mark.style));
            sheet.mark(panel.at(mark.mean, y), mark.style, &style::fill(mark.style));
        });
    }
}
