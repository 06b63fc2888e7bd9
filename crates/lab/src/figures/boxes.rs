//! Box plots of completion times: for each series and value of a key, the spread over runs (Pesola 2020, figures 12 to 31).

use super::arrangement::{Along, Arrangement, Facet, PANELS_MAX};
use super::axes::{Axis, Panel};
use super::grid::{self, Grid};
use super::sheet::{Area, Sheet};
use super::{Data, Figure, style};
use crate::results::PointResult;
use crate::statistics::percentile;

/// The metric of the boxes.
const METRIC: &str = "completion_s";
/// The share of the room of an x value that its boxes take together.
const FILLED: f64 = 0.82;
/// Whiskers reach to the farthest run within so many heights of the box (Tukey 1977).
const WHISKER: f64 = 1.5;

/// The five numbers of a box, and the runs beyond its whiskers.
struct Spread {
    low: f64,
    quartiles: [f64; 3],
    high: f64,
    outside: Vec<f64>,
    n: usize,
}

impl Spread {
    fn of(point: &PointResult) -> Option<Self> {
        let mut values = point.values(METRIC);
        values.sort_by(f64::total_cmp);
        let quartile = |percent| percentile(&values, percent);
        let quartiles = [quartile(25.0)?, quartile(50.0)?, quartile(75.0)?];
        let reach = WHISKER * (quartiles[2] - quartiles[0]);
        let (from, to) = (quartiles[0] - reach, quartiles[2] + reach);
        let inside = || values.iter().copied().filter(|value| (from..=to).contains(value));
        Some(Self {
            low: inside().next()?,
            high: inside().next_back()?,
            quartiles,
            outside: values.iter().copied().filter(|v| !(from..=to).contains(v)).collect(),
            n: values.len(),
        })
    }

    fn ends(&self) -> impl Iterator<Item = f64> + '_ {
        self.outside.iter().copied().chain([self.low, self.high])
    }
}

/// The boxes of every point that has completion times; absent without any.
pub fn draw(arrangement: &Arrangement<'_>) -> Option<Figure> {
    let along = arrangement.along.as_ref()?;
    let facets = &arrangement.facets[..arrangement.facets.len().min(PANELS_MAX)];
    let points = || facets.iter().flat_map(|facet| &facet.series).flat_map(|one| &one.points);
    let ends: Vec<f64> = points()
        .filter_map(|point| Spread::of(point))
        .flat_map(|s| s.ends().collect::<Vec<_>>())
        .collect();
    let low = ends.iter().copied().reduce(f64::min).filter(|low| *low > 0.0)?;
    let high = ends.iter().copied().reduce(f64::max)?;
    let legend = grid::legend_of(facets);
    let grid = Grid::new(facets.len(), &legend);
    let mut sheet = grid.sheet();
    let mut data = Data::new(&[
        "panel",
        "series",
        &along.key,
        "low",
        "quartile_1",
        "median",
        "quartile_3",
        "high",
        "n",
    ]);
    for (index, facet) in facets.iter().enumerate() {
        let x = Axis::named(&along.values, &along.label);
        let y = Axis::logarithmic(low, high, "completion (s)");
        let panel = Panel::draw(&mut sheet, grid.area(index), x, y, &facet.title);
        draw_facet(&mut sheet, &panel, along, facet, legend.len().max(1));
        note(&mut data, along, facet);
    }
    grid.draw_fillings(&mut sheet, &legend, |style| format!("{} soft", style::fill(style)));
    Some(Figure {
        name: "completion-boxes".to_owned(),
        title: format!("Completion time over {}", along.label),
        caption: "A box reaches from the first to the third quartile of the runs, with the median as a line. Whiskers \
                  reach to the farthest runs within 1.5 heights of the box; dots are runs beyond them. The time of a run \
                  is the median of its clients."
            .to_owned(),
        sheet,
        data,
    })
}

/// Draws the boxes of one panel; those of one x value are side by side.
fn draw_facet(sheet: &mut Sheet, panel: &Panel, along: &Along, facet: &Facet<'_>, lanes: usize) {
    let room = (panel.at(1.0, 1.0).0 - panel.at(0.0, 1.0).0) * FILLED;
    let width = room / lanes as f64;
    for series in &facet.series {
        for point in &series.points {
            let value = point.setting(&along.key);
            let place = along.values.iter().position(|other| Some(other.as_str()) == value);
            let (Some(place), Some(spread)) = (place, Spread::of(point)) else { continue };
            let middle = panel.at(place as f64, 1.0).0 - room / 2.0
                + width * (series.style.min(lanes - 1) as f64 + 0.5);
            sheet.linked(&point.anchor(), &tip(point, &spread), |sheet| {
                draw_box(sheet, panel, middle, width * 0.8, series.style, &spread);
            });
        }
    }
}

fn draw_box(sheet: &mut Sheet, panel: &Panel, x: f64, width: f64, series: usize, spread: &Spread) {
    let y = |value: f64| panel.at(0.0, value).1;
    let [first, median, third] = spread.quartiles.map(y);
    let (left, right) = (x - width / 2.0, x + width / 2.0);
    let line = format!("thin l{}", series % style::SERIES_MAX);
    for (from, to) in [(third, y(spread.high)), (first, y(spread.low))] {
        sheet.line(&[(x, from), (x, to)], &line);
        sheet.line(&[(x - width / 4.0, to), (x + width / 4.0, to)], &line);
    }
    let area = Area { left, top: third, width, height: (first - third).max(0.5) };
    sheet.rectangle(area, &format!("{} soft", style::fill(series)), "");
    let edge = [(left, third), (right, third), (right, first), (left, first), (left, third)];
    sheet.line(&edge, &line);
    sheet
        .line(&[(left, median), (right, median)], &format!("line l{}", series % style::SERIES_MAX));
    for value in &spread.outside {
        sheet.disk((x, y(*value)), 1.8, &style::fill(series), "");
    }
}

fn tip(point: &PointResult, spread: &Spread) -> String {
    let [first, median, third] = spread.quartiles;
    format!("{}: median {median:.1} s, quartiles {first:.1} and {third:.1} s", point.words())
}

fn note(data: &mut Data, along: &Along, facet: &Facet<'_>) {
    for series in &facet.series {
        for point in &series.points {
            let Some(spread) = Spread::of(point) else { continue };
            let [first, median, third] = spread.quartiles;
            let numbers = [spread.low, first, median, third, spread.high];
            let mut row = vec![
                facet.title.clone(),
                series.label.clone(),
                point.setting(&along.key).unwrap_or_default().to_owned(),
            ];
            row.extend(numbers.map(|number| Data::number(Some(number))));
            row.push(spread.n.to_string());
            data.push(&point.anchor(), row);
        }
    }
}
