//! `architecture.svg`: the crates as boxes in rows by floor, and arrows down, from `cargo metadata`.
//!
//! An arrow that others imply is left out. A thick arrow begins at a row: nearly every crate of the row uses its target.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use super::layers::{Arrow, Layers, Place, Start, uses};
use super::svg::{Anchor, Stroke, Svg};
use crate::metadata::{self, Package};
use crate::tidy;

/// Rows from above: what they are, and the floors in them, counted from the ground.
const ROWS: [(&str, &[usize]); 9] = [
    ("the command", &[9]),
    ("experiments, services", &[8]),
    ("simulation, sockets", &[7]),
    ("programs of nodes", &[6]),
    ("one node", &[5]),
    ("protocols", &[4, 3]),
    ("shared parts", &[2]),
    ("lists of algorithms", &[1]),
    ("quantities", &[0]),
];
/// Names in the figure that differ from those of packages.
const SHOWN: [(&str, &str); 1] = [("lowmesh", "cli")];
const WIDTH: f64 = 1000.0;
const TOP: f64 = 16.0;
const ROW: f64 = 72.0;
const BOX: f64 = 34.0;
const BAND: f64 = 46.0;
/// Room at the left for what a row is.
const LABELS: f64 = 152.0;
/// Room at the right.
const MARGIN: f64 = 18.0;
/// Between two boxes; less in a full row.
const GAP: f64 = 13.0;
const PASSAGE: f64 = 16.0;
const LETTER: f64 = 8.9;
const DEVICE: (&str, &str) = ("#dff1ea", "#009E73");
const HOST: (&str, &str) = ("#dcebf6", "#0072B2");
const BAND_FILL: &str = "#f5f6f7";
const THIN: Stroke = Stroke::solid("#8a9097", 1.3);
const THICK: Stroke = Stroke::solid("#5c6168", 3.0);

/// The figure of today's workspace.
pub fn made() -> Result<String> {
    draw(&metadata::packages()?)
}

fn draw(packages: &[Package]) -> Result<String> {
    let floors = tidy::floors();
    let shown = ROWS.iter().flat_map(|(_, floors)| floors.iter()).count();
    ensure!(
        shown == floors.len(),
        "{} floors, and rows for {shown}: mend ROWS in architecture.rs",
        floors.len()
    );
    let names = names(packages);
    let layers = Layers::arrange(&names, &uses(packages, &names));
    let plan = Plan::of(&layers);
    let mut svg = Svg::new(WIDTH, TOP + ROW * ROWS.len() as f64 + 24.0);
    for (number, (words, _)) in ROWS.iter().enumerate() {
        let y = band(number);
        svg.plate((8.0, y, WIDTH - 16.0, BAND), BAND_FILL, BAND_FILL);
        svg.small(22.0, y + BAND / 2.0 + 5.0, words, Anchor::Start);
    }
    for (number, arrow) in layers.arrows.iter().enumerate() {
        plan.arrow(&mut svg, &layers, number, arrow);
    }
    for (name, (x, y, width)) in &plan.boxes {
        let (fill, edge) = if tidy::is_for_devices(name) { DEVICE } else { HOST };
        svg.plate((x - width / 2.0, *y, *width, BOX), fill, edge);
        svg.text(*x, y + BOX / 2.0 + 5.5, shown_name(name), Anchor::Middle);
    }
    legend(&mut svg, TOP + ROW * ROWS.len() as f64);
    let title = "The crates of Lowmesh in layers: every arrow points down to what a crate uses";
    Ok(svg.finish(title))
}

/// The crates of each row.
fn names(packages: &[Package]) -> Vec<Vec<String>> {
    let exists = |name: &&&str| packages.iter().any(|package| package.name == **name);
    let row = |floors: &[usize]| {
        let names = floors.iter().flat_map(|floor| tidy::floors()[*floor]);
        names.filter(exists).map(|name| (*name).to_owned()).collect()
    };
    ROWS.iter().map(|(_, floors)| row(floors)).collect()
}

fn shown_name(name: &str) -> &str {
    SHOWN.iter().find(|(package, _)| *package == name).map_or(name, |(_, shown)| shown)
}

fn legend(svg: &mut Svg, y: f64) {
    let mut x = 22.0;
    for ((fill, edge), words, room) in
        [(DEVICE, "builds without std, for devices", 266.0), (HOST, "uses std", 98.0)]
    {
        svg.plate((x, y - 4.0, 24.0, 15.0), fill, edge);
        svg.small(x + 32.0, y + 8.0, words, Anchor::Start);
        x += room + 14.0;
    }
    for (stroke, words, room) in [(THIN, "uses", 76.0), (THICK, "nearly all of the row use", 0.0)] {
        svg.arrow((x + 8.0, y - 8.0), (x + 8.0, y + 14.0), stroke);
        svg.small(x + 24.0, y + 8.0, words, Anchor::Start);
        x += room;
    }
}

/// The top of a row's band.
fn band(row: usize) -> f64 {
    TOP + ROW * row as f64
}

/// Where everything is, in pixels.
struct Plan {
    /// Middle, top and width of the box of each crate.
    boxes: BTreeMap<String, (f64, f64, f64)>,
    /// The middle of each passage, by row and number of the arrow.
    passages: BTreeMap<(usize, usize), f64>,
}

impl Plan {
    fn of(layers: &Layers) -> Self {
        let mut plan = Self { boxes: BTreeMap::new(), passages: BTreeMap::new() };
        for (number, row) in layers.rows.iter().enumerate() {
            let widths: Vec<f64> = row.iter().map(width).collect();
            let boxes = widths.iter().sum::<f64>();
            let gaps = widths.len().saturating_sub(1) as f64;
            let gap = GAP.min((WIDTH - MARGIN - LABELS - boxes) / gaps.max(1.0));
            let whole = boxes + gap * gaps;
            let mut x = f64::midpoint(LABELS, WIDTH - MARGIN) - whole / 2.0;
            for (place, width) in row.iter().zip(widths) {
                let middle = x + width / 2.0;
                match place {
                    Place::Crate(name) => {
                        let y = band(number) + (BAND - BOX) / 2.0;
                        plan.boxes.insert(name.clone(), (middle, y, width));
                    }
                    Place::Passage(arrow) => {
                        plan.passages.insert((number, *arrow), middle);
                    }
                }
                x += width + gap;
            }
        }
        plan
    }

    /// Draws one arrow: down through its passages, or sideways between neighbours.
    fn arrow(&self, svg: &mut Svg, layers: &Layers, number: usize, arrow: &Arrow) {
        let Some(target) = self.boxes.get(&arrow.to) else { return };
        let end = (self.port(layers, number, &arrow.to, true), target.1 - 1.0);
        let through: Vec<(usize, f64)> = self
            .passages
            .iter()
            .filter(|((_, of), _)| *of == number)
            .map(|((row, _), x)| (*row, *x))
            .collect();
        let (mut at, stroke) = match &arrow.from {
            Start::Row(row) => {
                let x = through.first().map_or(end.0, |(_, x)| *x);
                ((x, band(*row) + BAND), THICK)
            }
            Start::Crate(name) => {
                let Some(source) = self.boxes.get(name) else { return };
                if (source.1 - target.1).abs() < 1.0 {
                    let side = (target.0 - source.0).signum();
                    let (from, to) =
                        (source.0 + side * source.2 / 2.0, target.0 - side * target.2 / 2.0);
                    svg.sideways(from, to, source.1 + BOX / 2.0, THIN);
                    return;
                }
                ((self.port(layers, number, name, false), source.1 + BOX), THIN)
            }
        };
        for (row, x) in through {
            let top = band(row);
            svg.descent(at, (x, top), stroke);
            svg.line(&[(x, top), (x, top + BAND)], stroke);
            at = (x, top + BAND);
        }
        svg.arrow(at, end, stroke);
    }

    /// Where an arrow meets its crate: the arrows of one side share the width in the order of their other ends.
    fn port(&self, layers: &Layers, number: usize, name: &str, incoming: bool) -> f64 {
        let Some((middle, y, width)) = self.boxes.get(name) else { return 0.0 };
        let mut others: Vec<(f64, usize)> = Vec::new();
        for (index, arrow) in layers.arrows.iter().enumerate() {
            let other = match &arrow.from {
                Start::Crate(from) if incoming && arrow.to == name => self.boxes.get(from),
                Start::Row(_) if incoming && arrow.to == name => self.boxes.get(name),
                Start::Crate(from) if !incoming && from == name => self.boxes.get(&arrow.to),
                _ => None,
            };
            let Some((x, at, _)) = other else { continue };
            if (at - y).abs() < 1.0 && !matches!(arrow.from, Start::Row(_)) {
                continue;
            }
            let mut passages = self.passages.iter().filter(|((_, of), _)| *of == index);
            let near = if incoming { passages.next_back() } else { passages.next() };
            others.push((near.map_or(*x, |(_, x)| *x), index));
        }
        others.sort_by(|a, b| a.0.total_cmp(&b.0));
        let place = others.iter().position(|(_, index)| *index == number).unwrap_or_default();
        let room = (width - 16.0).min(16.0 * others.len() as f64);
        middle - room / 2.0 + room * (place as f64 + 0.5) / others.len().max(1) as f64
    }
}

fn width(place: &Place) -> f64 {
    match place {
        Place::Crate(name) => shown_name(name).chars().count() as f64 * LETTER + 20.0,
        Place::Passage(_) => PASSAGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_that_has_a_floor_is_in_the_figure_once() {
        let packages = metadata::packages().expect("cargo knows the workspace");
        let svg = draw(&packages).expect("all floors have a row");
        for package in &packages {
            let named = svg.matches(&format!(">{}</text>", shown_name(&package.name))).count();
            let has_floor =
                tidy::floors().iter().any(|floor| floor.contains(&package.name.as_str()));
            assert_eq!(named, usize::from(has_floor), "{}", package.name);
        }
    }

    #[test]
    fn no_box_leaves_the_sheet() {
        let packages = metadata::packages().expect("cargo knows the workspace");
        let names = names(&packages);
        let plan = Plan::of(&Layers::arrange(&names, &uses(&packages, &names)));
        for (name, (x, _, width)) in &plan.boxes {
            let (left, right) = (x - width / 2.0, x + width / 2.0);
            assert!(left >= LABELS - 0.5 && right <= WIDTH - MARGIN + 0.5, "{name} at {x}");
        }
    }
}
