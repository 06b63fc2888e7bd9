//! RTT and RTO of one node over time (Righetti et al. 2023, figure 7).

use super::arrangement::PANELS_MAX;
use super::axes::{Axis, Panel};
use super::grid::{Grid, Legend};
use super::sheet::{Anchor, Point, Sheet};
use super::{Data, Figure};
use crate::detail::Series;
use crate::metrics::{EventMetrics, Metrics};
use crate::results::PointResult;

/// Panels that stand in one column; more of them stand in two.
const COLUMN_MAX: usize = 4;

/// One node's life.
struct Life {
    words: String,
    title: String,
    anchor: String,
    series: Series,
    minutes: f64,
    /// What happened to the network: minutes, and in words.
    events: Vec<(f64, String)>,
}

/// The life of the farthest node in the first run of each point that has one.
pub fn draw(slice: &[(String, &PointResult)], place: &str) -> Option<Figure> {
    let of = |(words, point): &(String, &PointResult)| {
        let run = point.runs.iter().find(|run| run.detail.series.is_some())?;
        let series = run.detail.series.clone().filter(|series| !series.samples.is_empty())?;
        let title = format!("{words}{}node {}, seed {}", separator(words), series.node, run.seed.0);
        let minutes = run.simulated.as_secs_f64() / 60.0;
        let words = words.clone();
        let events = events(&run.metrics);
        Some(Life { words, title, anchor: point.anchor(), series, minutes, events })
    };
    let panels: Vec<_> = slice.iter().filter_map(of).take(PANELS_MAX).collect();
    if panels.is_empty() {
        return None;
    }
    let has_events = panels.iter().any(|life| !life.events.is_empty());
    let end = panels.iter().map(|life| life.minutes).fold(1.0, f64::max);
    let samples = || panels.iter().flat_map(|life| &life.series.samples);
    let times = || samples().flat_map(|s| [s.rtt_ms, s.rto_ms]).flatten();
    let usable = |time: &f32| time.is_finite() && *time > 0.0;
    let low = f64::from(times().filter(usable).reduce(f32::min).unwrap_or(1e3)) * 1e-3;
    let high = f64::from(times().filter(usable).reduce(f32::max).unwrap_or(1e3)) * 1e-3;
    let legend: Legend =
        vec![("RTO".to_owned(), 0), ("RTT".to_owned(), 1), ("given up".to_owned(), 3)];
    let (columns, height) = if panels.len() > COLUMN_MAX { (2, 170.0) } else { (1, 210.0) };
    let grid = Grid::with(panels.len(), &legend, columns, height);
    let mut sheet = grid.sheet();
    let mut data = Data::new(&["series", "node", "t_s", "rtt_ms", "rto_ms", "retransmissions"]);
    for (index, Life { words, title, anchor, series, events, .. }) in panels.iter().enumerate() {
        let x = Axis::covering(0.0, end, true, "time (min)");
        let y = Axis::logarithmic(low, high, "RTT, RTO (s)");
        let panel = Panel::draw(&mut sheet, grid.area(index), x, y, title);
        draw_events(&mut sheet, &panel, events);
        sheet.linked(anchor, "", |sheet| draw_series(sheet, &panel, series));
        note(&mut data, words, anchor, series);
    }
    grid.draw_fillings(&mut sheet, &legend, |style| format!("f{style}"));
    Some(Figure {
        name: "rtt-rto".to_owned(),
        title: format!("RTT and RTO of one node over time{place}"),
        caption: "Blue line: the retransmission timeout chosen for each transaction. Orange dots: from its first \
                  copy to its acknowledgement, so a dot above the line was retransmitted. Vermillion strokes \
                  at the top: transactions that were given up."
            .to_owned()
            + if has_events { " Dashed verticals: events." } else { "" },
        sheet,
        data,
    })
}

fn separator(words: &str) -> &'static str {
    if words.is_empty() { "" } else { ": " }
}

fn draw_series(sheet: &mut Sheet, panel: &Panel, series: &Series) {
    let at = |t_s: f32, ms: Option<f32>| -> Option<Point> {
        Some(panel.at(f64::from(t_s) / 60.0, f64::from(ms?) * 1e-3))
    };
    let rto: Vec<_> = series.samples.iter().filter_map(|s| at(s.t_s, s.rto_ms)).collect();
    sheet.line(&rto, "thin l0");
    for sample in &series.samples {
        if let Some(at) = at(sample.t_s, sample.rtt_ms) {
            sheet.disk(at, 2.0, "f1", "");
        } else {
            let (x, y) = (panel.at(f64::from(sample.t_s) / 60.0, 1.0).0, panel.area().top);
            sheet.line(&[(x, y), (x, y + 9.0)], "line l3");
        }
    }
}

/// Events that a panel marks; of more, the words would cover each other.
const EVENTS_MAX: usize = 12;

/// The events of a run, in minutes and in words.
fn events(metrics: &Metrics) -> Vec<(f64, String)> {
    let words = |one: &EventMetrics| {
        let nodes: Vec<String> = one.node.iter().chain(&one.peer).map(u16::to_string).collect();
        (one.at_s / 60.0, format!("{} {}", one.event, nodes.join("-")).trim_end().to_owned())
    };
    metrics.event_list.iter().take(EVENTS_MAX).map(words).collect()
}

/// Marks events on the axis of time, their words one below the other so that none covers its neighbour.
fn draw_events(sheet: &mut Sheet, panel: &Panel, events: &[(f64, String)]) {
    let area = panel.area();
    for (index, (minutes, words)) in events.iter().enumerate() {
        let x = panel.at(*minutes, 1.0).0;
        sheet.line(&[(x, area.top), (x, area.top + area.height)], "level across thin");
        let y = area.top + 10.0 + (index % 4) as f64 * 11.0;
        sheet.text((x + 3.0, y), words, Anchor::Start, "tiny");
    }
}

fn note(data: &mut Data, words: &str, anchor: &str, series: &Series) {
    let number = |value: Option<f32>| value.map_or_else(String::new, |value| value.to_string());
    for sample in &series.samples {
        let row = vec![
            words.to_owned(),
            series.node.to_string(),
            sample.t_s.to_string(),
            number(sample.rtt_ms),
            number(sample.rto_ms),
            sample.retransmissions.to_string(),
        ];
        data.push(anchor, row);
    }
}
