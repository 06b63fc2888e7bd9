//! Small multiples: equal panels side by side, with one legend above them.

use super::arrangement::Facet;
use super::axes::{MARGIN_ABOVE, MARGIN_BELOW, MARGIN_LEFT, MARGIN_RIGHT};
use super::sheet::{Anchor, Area, Point, Sheet};
use super::style;

/// Width of every figure, in pixels.
pub const WIDTH: f64 = 860.0;
/// Height of a row of the legend.
const ROW: f64 = 24.0;
/// Width of a letter, on average.
pub const LETTER: f64 = 8.6;

/// What the legend tells: words and the style they stand for.
pub type Legend = Vec<(String, usize)>;

/// The places of panels and legend on a sheet.
#[derive(Clone, Debug)]
pub struct Grid {
    columns: usize,
    rows: usize,
    legend_rows: usize,
    legend_columns: usize,
    plot: (f64, f64),
}

/// The series of all panels, each once.
pub fn legend_of(facets: &[Facet<'_>]) -> Legend {
    let mut legend: Legend = Vec::new();
    for series in facets.iter().flat_map(|facet| &facet.series) {
        if !series.label.is_empty() && !legend.iter().any(|(label, _)| *label == series.label) {
            legend.push((series.label.clone(), series.style));
        }
    }
    legend.sort_by_key(|(_, style)| *style);
    legend
}

impl Grid {
    /// Room for `panels` and the legend.
    pub fn new(panels: usize, legend: &Legend) -> Self {
        let columns = if panels > 1 { 2 } else { 1 };
        Self::with(panels, legend, columns, if columns == 1 { 340.0 } else { 230.0 })
    }

    /// The same with so many columns, and plot areas of that height.
    pub fn with(panels: usize, legend: &Legend, columns: usize, height: f64) -> Self {
        let rows = panels.div_ceil(columns).max(1);
        let longest = legend.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
        let room = 52.0 + longest as f64 * LETTER;
        let fit = libm::floor((WIDTH - 20.0) / room).max(1.0) as usize;
        let legend_columns = fit.min(legend.len().max(1));
        let legend_rows = legend.len().div_ceil(legend_columns);
        let width = WIDTH / columns as f64 - MARGIN_LEFT - MARGIN_RIGHT;
        Self { columns, rows, legend_rows, legend_columns, plot: (width, height) }
    }

    /// A sheet that all of it fits on.
    pub fn sheet(&self) -> Sheet {
        Sheet::new(WIDTH, self.head() + self.rows as f64 * self.panel_height() + 6.0)
    }

    fn head(&self) -> f64 {
        self.legend_rows as f64 * ROW + 12.0
    }

    fn panel_height(&self) -> f64 {
        self.plot.1 + MARGIN_ABOVE + MARGIN_BELOW
    }

    /// The plot area of a panel.
    pub fn area(&self, index: usize) -> Area {
        let (column, row) = (index % self.columns, index / self.columns);
        let (width, height) = self.plot;
        Area {
            left: column as f64 * (WIDTH / self.columns as f64) + MARGIN_LEFT,
            top: self.head() + row as f64 * self.panel_height() + MARGIN_ABOVE,
            width,
            height,
        }
    }

    /// Draws the legend of lines above the panels.
    pub fn draw_legend(&self, sheet: &mut Sheet, legend: &Legend) {
        self.each(legend, |(x, y), label, style| {
            sheet.line(&[(x, y), (x + 34.0, y)], &style::line(style));
            sheet.mark((x + 17.0, y), style, &style::fill(style));
            sheet.text((x + 42.0, y + 5.0), label, Anchor::Start, "small");
        });
    }

    /// Draws the legend of fillings above the panels; `class` gives the filling of a style.
    pub fn draw_fillings(
        &self,
        sheet: &mut Sheet,
        legend: &Legend,
        class: impl Fn(usize) -> String,
    ) {
        self.each(legend, |(x, y), label, style| {
            let swatch = Area { left: x + 14.0, top: y - 8.0, width: 20.0, height: 15.0 };
            sheet.rectangle(swatch, &class(style), "");
            sheet.text((x + 42.0, y + 5.0), label, Anchor::Start, "small");
        });
    }

    /// The start of an entry of the legend; its sign is 34 pixels wide, and its words begin at 42 pixels.
    pub fn entry(&self, index: usize) -> Point {
        let pitch = (WIDTH - 20.0) / self.legend_columns as f64;
        let (column, row) = (index % self.legend_columns, index / self.legend_columns);
        (12.0 + column as f64 * pitch, 20.0 + row as f64 * ROW)
    }

    fn each(&self, legend: &Legend, mut draw: impl FnMut(Point, &str, usize)) {
        for (index, (label, style)) in legend.iter().enumerate() {
            draw(self.entry(index), label, *style);
        }
    }
}
