//! Single runs over a link: what each client had received over time, and the queue below it (Pesola 2020, time-sequence and
//! queue graphs).

use super::arrangement::{Arrangement, PANELS_MAX};
use super::axes::{Axis, Panel};
use super::delay::panels;
use super::grid::{Grid, Legend};
use super::sheet::{Area, Point, Sheet};
use super::{Data, Figure, style};
use crate::detail::Transfer;
use crate::results::PointResult;

/// Height of the strip of answers, in pixels.
const ANSWERS_HEIGHT: f64 = 150.0;
/// Height of the strip of the queue.
const QUEUE_HEIGHT: f64 = 66.0;
/// Room between the two.
const BETWEEN: f64 = 14.0;

/// One run with its words.
struct Single<'r> {
    words: String,
    anchor: String,
    seed: u64,
    transfer: &'r Transfer,
}

/// The first run with a link of each series, at a few values of the x axis.
pub fn draw(arrangement: &Arrangement<'_>) -> Option<Figure> {
    let mut singles = Vec::new();
    for facet in panels(arrangement) {
        for series in &facet.series {
            singles.extend(
                series.points.iter().filter_map(|p| single(&facet.title, &series.label, p)),
            );
        }
    }
    let every = singles.len().div_ceil(PANELS_MAX).max(1);
    let singles: Vec<Single<'_>> = singles.into_iter().step_by(every).collect();
    if singles.is_empty() {
        return None;
    }
    let clients = singles.iter().map(|one| one.transfer.clients.len()).max().unwrap_or_default();
    let mut legend: Legend = (0..clients.min(style::SERIES_MAX))
        .map(|index| (format!("client {}", index + 1), index))
        .collect();
    legend.push(("queue".to_owned(), style::SERIES_MAX));
    let height = ANSWERS_HEIGHT + QUEUE_HEIGHT + BETWEEN;
    let grid = Grid::with(singles.len(), &legend, if singles.len() > 1 { 2 } else { 1 }, height);
    let mut sheet = grid.sheet();
    let mut data = Data::new(&["run", "seed", "curve", "t_s", "value"]);
    for (index, single) in singles.iter().enumerate() {
        draw_single(&mut sheet, grid.area(index), single);
        note(&mut data, single);
    }
    grid.draw_fillings(&mut sheet, &legend, |style| format!("f{style}"));
    Some(Figure {
        name: "transfers".to_owned(),
        title: "Single runs: answers that clients had, and the queue of the link".to_owned(),
        caption: "Lines: answers that each client had received, by the time since its first request; a flat line is a wait \
                  for a retransmission, a step the end of it. Grey: octets that waited for the link, in the direction \
                  with the longer queue. The first seed of each point."
            .to_owned(),
        sheet,
        data,
    })
}

fn single<'r>(facet: &str, series: &str, point: &'r PointResult) -> Option<Single<'r>> {
    let run = point.runs.iter().find(|run| run.detail.transfer.is_some())?;
    let transfer = run.detail.transfer.as_ref()?;
    let words: Vec<&str> = [facet, series].into_iter().filter(|one| !one.is_empty()).collect();
    Some(Single { words: words.join(", "), anchor: point.anchor(), seed: run.seed.0, transfer })
}

/// When the first request was issued and when the last answer came, in seconds of the run.
fn span(transfer: &Transfer) -> (f64, f64) {
    let first = transfer.clients.iter().map(|one| one.issued_s).fold(f32::INFINITY, f32::min);
    let last = transfer.clients.iter().filter_map(|one| one.steps.last()).map(|step| step.0);
    let first = if first.is_finite() { first } else { 0.0 };
    (f64::from(first), f64::from(last.fold(first + 1.0, f32::max)))
}

fn draw_single(sheet: &mut Sheet, area: Area, single: &Single<'_>) {
    let transfer = single.transfer;
    let (start, end) = span(transfer);
    let steps = || transfer.clients.iter().flat_map(|one| &one.steps);
    let most = steps().map(|step| step.1).max().unwrap_or(1);
    let longest = transfer.queue.iter().map(|step| step.1).max().unwrap_or(1);
    let upper = Area { height: ANSWERS_HEIGHT, ..area };
    let lower = Area { top: area.top + ANSWERS_HEIGHT + BETWEEN, height: QUEUE_HEIGHT, ..area };
    let y = Axis::covering(0.0, f64::from(most), true, "answers");
    let answers = Panel::draw(sheet, upper, Axis::bare(0.0, end - start), y, &single.words);
    let x = Axis::exact(0.0, end - start, "time (s)");
    let y = Axis::covering(0.0, f64::from(longest) / 1e3, true, "kB");
    let queue = Panel::draw(sheet, lower, x, y, "");
    let since = |t_s: f32| (f64::from(t_s) - start).max(0.0);
    sheet.linked(&single.anchor, "", |sheet| {
        for (index, client) in transfer.clients.iter().enumerate() {
            let first = answers.at(since(client.issued_s), 0.0);
            let steps = client.steps.iter().map(|(t, n)| answers.at(since(*t), f64::from(*n)));
            let points: Vec<Point> = std::iter::once(first).chain(steps).collect();
            sheet.line(&points, &format!("thin l{}", index % style::SERIES_MAX));
        }
        let during = transfer.queue.iter().filter(|(t, _)| (start..=end).contains(&f64::from(*t)));
        let points: Vec<Point> =
            during.map(|(t, octets)| queue.at(since(*t), f64::from(*octets) / 1e3)).collect();
        sheet.line(&points, "thin lx");
    });
}

fn note(data: &mut Data, single: &Single<'_>) {
    let mut push = |curve: String, t_s: f32, value: u32| {
        let row = vec![
            single.words.clone(),
            single.seed.to_string(),
            curve,
            t_s.to_string(),
            value.to_string(),
        ];
        data.push(&single.anchor, row);
    };
    for client in &single.transfer.clients {
        for (t_s, answers) in &client.steps {
            push(format!("node {}", client.node), *t_s, *answers);
        }
    }
    for (t_s, octets) in &single.transfer.queue {
        push("queue_octets".to_owned(), *t_s, *octets);
    }
}
