//! What happened to the fragments of one datagram, with window and gap over time (Lenders et al. 2021, figure 19).
//!
//! Three strips share one time axis: a row for each kind of event, the window, the gap between fragments.

use super::arrangement::PANELS_MAX;
use super::axes::{Axis, Panel};
use super::grid::{Grid, Legend};
use super::sheet::{Area, Point, Sheet};
use super::{Data, Figure};
use crate::detail::{DatagramTimeline, Kind, Step};
use crate::results::PointResult;

/// The kinds of events with a row of their own, from the lowest row to the highest, each with its words, shape and
/// filling.
const ROWS: [(Kind, &str, usize, &str); 6] = [
    (Kind::Marked, "ECN", 4, "f4"),
    (Kind::TimedOut, "timed out", 3, "f3"),
    (Kind::Lost, "lost", 2, "f1"),
    (Kind::Acked, "acked", 1, "f2"),
    (Kind::Resent, "resent", 0, "f5"),
    (Kind::Sent, "sent", 0, "f0"),
];

/// Height of the strip of events, in pixels.
const EVENTS_HEIGHT: f64 = 132.0;
/// Height of the strips of window and gap.
const LINE_HEIGHT: f64 = 76.0;
/// Room between two strips.
const BETWEEN: f64 = 16.0;

/// One datagram and where it comes from.
struct Transmission<'r> {
    words: &'r str,
    anchor: String,
    seed: u64,
    timeline: &'r DatagramTimeline,
}

impl Transmission<'_> {
    fn title(&self) -> String {
        let colon = if self.words.is_empty() { "" } else { ": " };
        let ending = if self.timeline.delivered { "delivered" } else { "given up" };
        format!("{}{colon}node {}, {ending}", self.words, self.timeline.node)
    }
}

/// The chosen datagrams in the first run of each point that has any.
pub fn draw(slice: &[(String, &PointResult)], place: &str) -> Option<Figure> {
    let mut chosen = Vec::new();
    for (words, point) in slice {
        let run = point.runs.iter().find(|run| !run.detail.timelines.is_empty());
        chosen.extend(run.into_iter().flat_map(|run| {
            let anchor = point.anchor();
            run.detail.timelines.iter().map(move |timeline| {
                let (anchor, seed) = (anchor.clone(), run.seed.0);
                Transmission { words, anchor, seed, timeline }
            })
        }));
    }
    chosen.truncate(PANELS_MAX);
    if chosen.is_empty() {
        return None;
    }
    let steps = || chosen.iter().flat_map(|one| &one.timeline.steps);
    let window = steps().map(|step| f64::from(step.window)).fold(1.0, f64::max);
    let gap_ms = steps().map(|step| f64::from(step.gap_ms)).fold(0.0, f64::max);
    let columns = if chosen.len() > 1 { 2 } else { 1 };
    let height = EVENTS_HEIGHT + 2.0 * (BETWEEN + LINE_HEIGHT);
    let grid = Grid::with(chosen.len(), &Legend::new(), columns, height);
    let mut sheet = grid.sheet();
    let mut data = Data::new(&[
        "series",
        "seed",
        "node",
        "ended",
        "start_s",
        "t_ms",
        "event",
        "fragments",
        "window_fragments",
        "gap_ms",
    ]);
    for (index, one) in chosen.iter().enumerate() {
        sheet.linked(&one.anchor, "", |sheet| {
            draw_timeline(sheet, grid.area(index), one, window, gap_ms);
        });
        note(&mut data, one);
    }
    Some(Figure {
        name: "fragment-timeline".to_owned(),
        title: format!("Fragments of chosen datagrams over time{place}"),
        caption: "From the first fragment of a datagram to its end, as its sender saw it: fragments sent, sent again, \
                  acknowledged, reported lost, timed out, and reported congestion (ECN). Below: the window in fragments, and \
                  the gap between fragments. Each series shows one delivered and one abandoned datagram. Preferred \
                  are, in this order, up to two timeouts, a gap that changes, congestion, losses."
            .to_owned(),
        sheet,
        data,
    })
}

fn draw_timeline(sheet: &mut Sheet, area: Area, one: &Transmission<'_>, window: f64, gap_ms: f64) {
    let steps = &one.timeline.steps;
    let end = steps.last().map_or(0.0, |step| f64::from(step.t_ms) * 1e-3).max(0.01);
    let strip = |top: f64, height: f64| Area { top: area.top + top, height, ..area };
    let names = ROWS.map(|(_, words, ..)| words.to_owned());
    let time = || Axis::bare(0.0, end);
    let rows = Axis::named(&names, "");
    let events = Panel::draw(sheet, strip(0.0, EVENTS_HEIGHT), time(), rows, &one.title());
    let top = EVENTS_HEIGHT + BETWEEN;
    let axis = Axis::covering(0.0, window, true, "window");
    let windows = Panel::draw(sheet, strip(top, LINE_HEIGHT), time(), axis, "");
    let top = top + LINE_HEIGHT + BETWEEN;
    let axis = Axis::covering(0.0, gap_ms, true, "gap (ms)");
    let x = Axis::exact(0.0, end, "time since the first fragment (s)");
    let gaps = Panel::draw(sheet, strip(top, LINE_HEIGHT), x, axis, "");
    for step in steps.iter().filter(|step| step.kind == Kind::TimedOut) {
        let x = events.at(seconds(step), 0.0).0;
        sheet.line(&[(x, area.top), (x, area.top + area.height)], "thin lx d2");
    }
    sheet.line(&stairs(&windows, steps, |step| f64::from(step.window)), "line l0");
    sheet.line(&stairs(&gaps, steps, |step| f64::from(step.gap_ms)), "line l3");
    for step in steps {
        let row = ROWS.iter().position(|(kind, ..)| *kind == step.kind);
        if let Some(row) = row {
            let (.., shape, class) = ROWS[row];
            sheet.mark(events.at(seconds(step), row as f64), shape, &format!("{class} edge"));
        }
    }
}

fn seconds(step: &Step) -> f64 {
    f64::from(step.t_ms) * 1e-3
}

/// A value that stays as it is from one step to the next.
fn stairs(panel: &Panel, steps: &[Step], value: impl Fn(&Step) -> f64) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::with_capacity(2 * steps.len());
    for step in steps {
        let (x, y) = panel.at(seconds(step), value(step));
        if let Some(&(_, before)) = points.last() {
            points.push((x, before));
        }
        points.push((x, y));
    }
    points
}

fn note(data: &mut Data, one: &Transmission<'_>) {
    let Transmission { words, anchor, seed, timeline } = one;
    for step in &timeline.steps {
        let row = vec![
            (*words).to_owned(),
            seed.to_string(),
            timeline.node.to_string(),
            if timeline.delivered { "delivered" } else { "given_up" }.to_owned(),
            timeline.start_s.to_string(),
            step.t_ms.to_string(),
            step.kind.name().to_owned(),
            step.fragments.to_string(),
            step.window.to_string(),
            step.gap_ms.to_string(),
        ];
        data.push(anchor, row);
    }
}
