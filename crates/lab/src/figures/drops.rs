//! Why packets ended without arriving: a bar a point, divided by layer and reason.

use super::axes::number;
use super::grid::{Grid, Legend, WIDTH};
use super::sheet::{Anchor, Area, Sheet};
use super::{Data, Figure};
use crate::results::PointResult;

/// Bars at most; the data table has all of them.
const BARS_MAX: usize = 24;
/// Causes with a colour of their own; the others share one.
const CAUSES_MAX: usize = 6;
/// Height of a bar with its room.
const PITCH: f64 = 34.0;

/// The drops of one point.
struct Bar<'p> {
    words: &'p str,
    anchor: String,
    causes: Vec<(String, f64)>,
}

/// Mean drops a run by cause, the most frequent first over all points.
pub fn draw(slice: &[(String, &PointResult)], place: &str) -> Option<Figure> {
    let bars: Vec<Bar<'_>> = slice
        .iter()
        .map(|(words, point)| Bar { words, anchor: point.anchor(), causes: causes(point) })
        .collect();
    let ranking = ranking(&bars);
    if ranking.is_empty() {
        return None;
    }
    let colour = |cause: &str| {
        ranking.iter().position(|other| other == cause).unwrap_or(CAUSES_MAX).min(CAUSES_MAX)
    };
    let mut legend: Legend =
        ranking.iter().take(CAUSES_MAX).enumerate().map(|(i, cause)| (cause.clone(), i)).collect();
    if ranking.len() > CAUSES_MAX {
        legend.push(("others".to_owned(), CAUSES_MAX));
    }
    let shown = &bars[..bars.len().min(BARS_MAX)];
    let total = |causes: &[(String, f64)]| causes.iter().map(|(_, n)| n).sum::<f64>();
    let high = shown.iter().map(|bar| total(&bar.causes)).fold(f64::MIN_POSITIVE, f64::max);
    // A grid without panels' margins has room for the legend and the bars alone.
    let grid = Grid::with(1, &legend, 1, shown.len() as f64 * PITCH);
    let mut sheet = grid.sheet();
    let longest = shown.iter().map(|bar| bar.words.chars().count()).max().unwrap_or(0);
    let left = 14.0 + longest as f64 * 8.4;
    let room = WIDTH - left - 90.0;
    for (index, Bar { words, anchor, causes }) in shown.iter().enumerate() {
        let top = grid.area(0).top + index as f64 * PITCH;
        sheet.linked(anchor, "", |sheet| {
            sheet.text((left - 8.0, top + 19.0), words, Anchor::End, "small");
        });
        let end = draw_bar(&mut sheet, causes, (left, top), room / high, colour);
        let step = if high < 10.0 { 0.1 } else { 1.0 };
        let sum = number(total(causes), step);
        sheet.text((end + 8.0, top + 19.0), &sum, Anchor::Start, "small");
    }
    let below = grid.area(0).top + shown.len() as f64 * PITCH + 24.0;
    sheet.text((left, below), "drops a run (packets)", Anchor::Start, "small");
    grid.draw_fillings(&mut sheet, &legend, |style| format!("f{style} edge"));
    Some(Figure {
        name: "drops".to_owned(),
        title: format!("Drops by layer and reason{place}"),
        caption: "Packets of all kinds that did not arrive, as mean over the seeds; the number at the end \
                  of a bar is their sum."
            .to_owned(),
        sheet,
        data: data(&bars),
    })
}

/// Draws one bar, the causes in the order of their colours; returns where it ends.
fn draw_bar(
    sheet: &mut Sheet,
    causes: &[(String, f64)],
    (left, top): (f64, f64),
    scale: f64,
    colour: impl Fn(&str) -> usize,
) -> f64 {
    let mut ordered: Vec<_> = causes.iter().map(|(cause, n)| (colour(cause), cause, *n)).collect();
    ordered.sort_by_key(|(colour, ..)| *colour);
    let mut at = left;
    for (colour, cause, n) in ordered {
        let area = Area { left: at, top: top + 2.0, width: n * scale, height: PITCH - 10.0 };
        sheet.rectangle(area, &format!("f{colour} edge"), &format!("{cause}: {n:.1} a run"));
        at += n * scale;
    }
    at
}

/// Mean drops a run by cause.
fn causes(point: &PointResult) -> Vec<(String, f64)> {
    let mut sums: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for drops in point.runs.iter().flat_map(|run| &run.detail.drops) {
        let cause = format!("{} {}", drops.layer, drops.reason.replace('_', " "));
        *sums.entry(cause).or_default() += drops.count;
    }
    let runs = point.runs.len().max(1) as f64;
    sums.into_iter().filter(|(_, n)| *n > 0).map(|(cause, n)| (cause, n as f64 / runs)).collect()
}

/// All causes, the most frequent first; by name where that does not decide.
fn ranking(bars: &[Bar<'_>]) -> Vec<String> {
    let mut sums: std::collections::BTreeMap<&str, f64> = std::collections::BTreeMap::new();
    for (cause, n) in bars.iter().flat_map(|bar| &bar.causes) {
        *sums.entry(cause).or_default() += n;
    }
    let mut ranking: Vec<_> = sums.into_iter().collect();
    ranking.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranking.into_iter().map(|(cause, _)| cause.to_owned()).collect()
}

fn data(bars: &[Bar<'_>]) -> Data {
    let mut data = Data::new(&["series", "cause", "drops_per_run"]);
    for bar in bars {
        for (cause, n) in &bar.causes {
            let row = vec![bar.words.to_owned(), cause.clone(), Data::number(Some(*n))];
            data.push(&bar.anchor, row);
        }
    }
    data
}
