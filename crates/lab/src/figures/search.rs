//! A search for a timer's numbers: how candidates did on each rung, and how the best did on fresh seeds.

use super::axes::{Axis, Panel};
use super::forest::{self, Mark, Row};
use super::grid::{Grid, Legend};
use super::sheet::{Point, Sheet};
use super::{Data, Figure, style};
use crate::results::PointResult;
use crate::statistics::{Estimate, mean};
use crate::tune::{Objective, Tuned};

/// What sets are called and how they are drawn: the best, each published one, all others.
struct Sets<'t> {
    tuned: &'t Tuned,
    legend: Legend,
}

impl<'t> Sets<'t> {
    fn of(tuned: &'t Tuned) -> Self {
        let names = tuned.compared.iter().map(|one| one.candidate.published.unwrap_or("tuned"));
        let legend = names.enumerate().map(|(style, name)| (name.to_owned(), style)).collect();
        Self { tuned, legend }
    }

    /// The style of a searched point, if it has a name.
    fn style(&self, point: &PointResult) -> Option<usize> {
        let same = |other: &PointResult| other.point.settings == point.point.settings;
        self.tuned.held_out.iter().position(same)
    }

    fn name(&self, style: Option<usize>) -> String {
        let named = style.and_then(|style| self.legend.get(style));
        named.map_or_else(|| "drawn".to_owned(), |(name, _)| name.clone())
    }
}

/// The objective's label, its unit's share of the value, and the decimals it needs.
const fn unit(objective: Objective) -> (&'static str, f64) {
    match objective {
        Objective::Tdr => ("TDR", 1.0),
        Objective::DelayP95 => ("delay p95 (s)", 1e-3),
        Objective::Weighted => ("TDR - 0.1 log2(delay p95 / 1 s)", 1.0),
    }
}

/// The mean objective of every candidate on every rung that it reached.
pub fn rungs(tuned: &Tuned) -> Option<Figure> {
    let sets = Sets::of(tuned);
    let (label, factor) = unit(tuned.objective);
    let paths: Vec<Vec<f64>> = tuned.searched.iter().map(|point| path(tuned, point)).collect();
    let (low, high) = paths
        .iter()
        .flatten()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    if !low.is_finite() {
        return None;
    }
    let names: Vec<String> = tuned
        .rungs
        .iter()
        .map(|rung| format!("{} sets, {} seeds", rung.candidates, rung.seeds))
        .collect();
    let grid = Grid::new(1, &sets.legend);
    let mut sheet = grid.sheet();
    let x = Axis::named(&names, "rung of the search");
    let y = Axis::covering(low * factor, high * factor, false, label);
    let panel = Panel::draw(&mut sheet, grid.area(0), x, y, "");
    let mut data = Data::new(&["set", "rung", "seeds", "objective"]);
    let mut order: Vec<_> = tuned.searched.iter().zip(&paths).collect();
    // Those with names on top.
    order.sort_by_key(|(point, _)| sets.style(point).map(std::cmp::Reverse));
    for (point, path) in order {
        let style = sets.style(point);
        let at: Vec<Point> = path
            .iter()
            .enumerate()
            .map(|(rung, value)| panel.at(rung as f64, value * factor))
            .collect();
        let anchor = point.anchor();
        sheet.linked(&anchor, &sets.name(style), |sheet| draw_path(sheet, &at, style));
        for ((rung, value), name) in tuned.rungs.iter().zip(path).zip(&names) {
            let value = Data::number(Some(*value));
            let row = vec![sets.name(style), name.clone(), rung.seeds.to_string(), value];
            data.push(&anchor, row);
        }
    }
    grid.draw_legend(&mut sheet, &sets.legend);
    let better = if tuned.objective.falls() { "low" } else { "high" };
    Some(Figure {
        name: "search".to_owned(),
        title: "Every set on every rung".to_owned(),
        caption: format!(
            "Each dot is a set of numbers with the mean of its objective (`{}`, {better} is better) over the seeds so \
             far; a line joins the rungs that a set reached. Grey sets were drawn at random; the others have names. These \
             values favour the winner, so only the comparison counts.",
            tuned.objective.name()
        ),
        sheet,
        data,
    })
}

/// The mean objective of a candidate on each rung that it reached.
fn path(tuned: &Tuned, point: &PointResult) -> Vec<f64> {
    let tried = point.runs.len() + point.failures.len();
    let first = point.point.scenario.head.seed;
    let reached = tuned.rungs.iter().take_while(|rung| rung.seeds as usize <= tried);
    let value = |rung: &crate::tune::halving::Rung| {
        let here =
            point.runs.iter().filter(|run| run.seed.0.wrapping_sub(first) < rung.seeds.into());
        let values: Vec<f64> =
            here.map(|run| tuned.objective.of(&run.metrics, run.simulated)).collect();
        mean(&values)
    };
    reached.filter_map(value).collect()
}

fn draw_path(sheet: &mut Sheet, at: &[Point], style: Option<usize>) {
    let Some(style) = style else {
        sheet.line(at, "thin lx");
        for &at in at {
            sheet.disk(at, 3.2, "f6", "");
        }
        return;
    };
    sheet.line(at, &style::line(style));
    for &at in at {
        sheet.mark(at, style, &style::fill(style));
    }
}

/// The best set and the published ones on seeds that the search has not used.
pub fn comparison(tuned: &Tuned) -> Option<Figure> {
    let sets = Sets::of(tuned);
    let (label, factor) = unit(tuned.objective);
    // The other objectives are one of the two metrics shown anyway.
    let weighted = tuned.objective == Objective::Weighted;
    let mut data = Data::new(&["set", "metric", "mean", "ci95", "n"]);
    let mut rows = Vec::new();
    for (style, (one, point)) in tuned.compared.iter().zip(&tuned.held_out).enumerate() {
        let mut columns = vec![("tdr", one.tdr, 1.0), ("delay_p95_ms", one.delay_p95_ms, 1e-3)];
        if weighted {
            columns.insert(0, (tuned.objective.name(), one.value, factor));
        }
        let name = sets.name(Some(style));
        let anchor = point.anchor();
        for (metric, value, _) in &columns {
            let Some(Estimate { mean, ci95, n }) = *value else { continue };
            let numbers = [Data::number(Some(mean)), Data::number(ci95), n.to_string()];
            data.push(
                &anchor,
                [vec![name.clone(), (*metric).to_owned()], numbers.to_vec()].concat(),
            );
        }
        let mark = |(_, value, factor): &(&str, Option<Estimate>, f64)| {
            let Some(Estimate { mean, ci95, .. }) = *value else { return Vec::new() };
            let half = ci95.unwrap_or(0.0);
            let (anchor, tip) = (anchor.clone(), name.clone());
            vec![Mark { style, mean: mean * factor, half: half * factor, anchor, tip }]
        };
        rows.push(Row { words: name.clone(), panels: columns.iter().map(mark).collect() });
    }
    let labels: &[&str] =
        if weighted { &[label, "TDR", "delay p95 (s)"] } else { &["TDR", "delay p95 (s)"] };
    (!data.rows.is_empty()).then(|| Figure {
        name: "comparison".to_owned(),
        title: "The best set and the published ones on fresh seeds".to_owned(),
        caption: "Means over seeds that the search has not used, with 95 % confidence intervals (Student's t). The runs \
                  are paired, so the table of gains says more than these intervals."
            .to_owned(),
        sheet: forest::draw(&rows, labels, &Legend::new(), false),
        data,
    })
}
