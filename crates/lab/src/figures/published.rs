//! Published levels in a line figure: a bracket for a range, a cap with an arrow for a bound.
//!
//! ```text
//!    --+            |
//!      x          --+--
//!      |            |
//!    --+            v
//!    range     upper bound        x: the number that the publication gives
//! ```
//! A level is drawn at each x value that its claim names, or across the panel if the claim names none. Signs have the
//! colour of text, so that they belong to no curve. Each panel has the name of the claim once, next to a sign. Signs at the
//! same x value are drawn side by side. Names avoid signs, other names and, if possible, curves.

use super::Data;
use super::arrangement::{Along, Arrangement, Facet, PANELS_MAX};
use super::axes::Panel;
use super::metric::Metric;
use super::sheet::{Anchor, Area, Point, Sheet};
use crate::claims::Level;

/// Half the width of a sign.
const HALF: f64 = 6.0;
/// Length of an arrow.
const ARROW: f64 = 14.0;
/// Distance between neighbouring signs.
const LANE: f64 = 13.0;
/// Distance between a point and its bracket.
const ASIDE: f64 = 10.0;
/// Height of a row of text.
const ROW: f64 = 13.0;
/// Width of a letter.
const LETTER: f64 = 7.0;
/// The largest distance between a sign and its name, in rows.
const ROWS_MAX: u32 = 6;
/// The share of the y axis that an arrow takes.
const ARROW_SHARE: f64 = 0.07;
/// The longest list of curve names, in letters; for a longer one the label has the number of curves.
const NAMES_MAX: usize = 20;

/// The published levels of one figure, by panel.
#[derive(Debug)]
pub struct Published<'l> {
    metric: Metric,
    panels: Vec<Vec<Mark<'l>>>,
    titles: Vec<&'l str>,
}

/// A level at one x value of a panel.
#[derive(Debug)]
struct Mark<'l> {
    level: &'l Level,
    /// The x value, as text and as a number; absent if the level spans the axis.
    place: Option<(&'l str, f64)>,
    /// The curves that the level applies to.
    series: Vec<&'l str>,
    /// The number of curves in the panel.
    curves: usize,
}

impl<'l> Published<'l> {
    /// The `levels` of `metric`, at each point of the sweep that they apply to.
    pub fn of(
        arrangement: &'l Arrangement<'l>,
        along: &Along,
        metric: Metric,
        levels: &'l [Level],
    ) -> Self {
        let own: Vec<&Level> = levels.iter().filter(|level| level.metric == metric.name).collect();
        let marks = |facet| own.iter().flat_map(|level| marks(facet, along, level)).collect();
        let panels = arrangement.facets.iter().map(marks).collect();
        let titles = arrangement.facets.iter().map(|facet| facet.title.as_str()).collect();
        Self { metric, panels, titles }
    }

    /// Whether no drawn panel has a level.
    pub fn is_empty(&self) -> bool {
        self.drawn().next().is_none()
    }

    /// The range from `low` to `high` in the axis' unit, extended by the ends of all levels and room for arrows.
    pub fn widened(&self, low: f64, high: f64) -> (f64, f64) {
        if self.is_empty() {
            return (low, high);
        }
        let factor = self.metric.factor;
        let levels = || self.drawn().map(|mark| [mark.level.low, mark.level.high]);
        let ends = levels().flatten().flatten();
        let own = (low / factor, high / factor);
        let (low, high) = ends.fold(own, |(l, h), end| (l.min(end), h.max(end)));
        let room = (high - low) * ARROW_SHARE;
        let (low, high) = levels().fold((low, high), |(l, h), ends| match ends {
            [None, Some(end)] => (l.min((end - room).max(0.0)), h),
            [Some(end), None] => (l, h.max(self.metric.at_most(end + room))),
            _ => (l, h),
        });
        (low * factor, high * factor)
    }

    /// The text of the legend's entry and its style; none without levels.
    pub fn legend(&self) -> Option<(String, usize)> {
        (!self.is_empty()).then(|| ("published".to_owned(), 0))
    }

    /// The sentence for the caption, after a blank; empty without levels.
    pub fn caption(&self) -> &'static str {
        if self.is_empty() {
            return "";
        }
        " Brackets are ranges that a claim states, caps with an arrow are bounds, and a cross is the number in the publication."
    }

    /// Draws the entry of the legend from this point on: the kinds of sign in the figure, and a word.
    pub fn draw_entry(&self, sheet: &mut Sheet, (x, y): Point) {
        let has = |range| self.drawn().any(|mark| mark.is_range() == range);
        let (range, bound) = (has(true), has(false));
        if range {
            let middle = x + if bound { 8.0 } else { 17.0 };
            sheet.line(&bracket(middle, y - 8.0, y + 8.0, HALF), "level");
        }
        if bound {
            let middle = x + if range { 27.0 } else { 17.0 };
            for line in cap(middle, y - 7.0, ARROW, HALF) {
                sheet.line(&line, "level");
            }
        }
        sheet.text((x + 42.0, y + 5.0), "published", Anchor::Start, "small");
    }

    /// Draws the levels of the panel at `index`. If possible, names do not cover the lines of `curves`.
    pub fn draw(&self, sheet: &mut Sheet, panel: &Panel, index: usize, curves: &[Vec<Point>]) {
        let Some(marks) = self.panels.get(index) else { return };
        let mut taken: Vec<Area> = Vec::new();
        let signs: Vec<Sign> =
            marks.iter().map(|mark| self.sign(panel, mark, &mut taken)).collect();
        for (mark, sign) in marks.iter().zip(&signs) {
            sheet.linked(&mark.level.claim, &mark.tip(), |sheet| {
                for line in &sign.across {
                    sheet.line(line, "level across");
                }
                for line in &sign.lines {
                    sheet.line(line, "level");
                }
            });
        }
        let across = signs.iter().flat_map(|sign| &sign.across);
        let lines = curves.iter().chain(across);
        let lines: Vec<Area> = lines.flat_map(|line| along_line(line)).collect();
        let mut named: Vec<(&str, Option<f64>, Option<f64>)> = Vec::new();
        for (mark, sign) in marks.iter().zip(&signs) {
            let level = mark.level;
            let key = (level.claim.as_str(), level.low, level.high);
            if !named.contains(&key) {
                named.push(key);
                label(sheet, panel.area(), sign, &mark.name(), &mut taken, &lines);
            }
        }
    }

    /// Adds the columns `claim`, `low`, `high` and `stated`, and a row for each mark of each panel.
    pub fn add_to(&self, data: &mut Data) {
        if self.panels.iter().all(Vec::is_empty) {
            return;
        }
        data.columns.extend(["claim", "low", "high", "stated"].map(ToOwned::to_owned));
        for row in &mut data.rows {
            row.resize(data.columns.len(), String::new());
        }
        for (title, marks) in self.titles.iter().zip(&self.panels) {
            for Mark { level, place, series, .. } in marks {
                let place = place.map_or("", |(value, _)| value);
                let [low, high, stated] = [level.low, level.high, level.stated].map(Data::number);
                let mut row = vec![(*title).to_owned(), series.join("; "), place.to_owned()];
                row.extend([(); 3].map(|()| String::new()));
                row.extend([level.claim.clone(), low, high, stated]);
                data.push(&level.claim, row);
            }
        }
    }

    fn drawn(&self) -> impl Iterator<Item = &Mark<'l>> {
        self.panels.iter().take(PANELS_MAX).flatten()
    }

    /// The lines of a mark, next to the areas that are `taken`. The area of the mark is then taken as well.
    fn sign(&self, panel: &Panel, mark: &Mark<'_>, taken: &mut Vec<Area>) -> Sign {
        let Area { left, top, width, height } = panel.area();
        let pixel = |value: f64| panel.at(0.0, value * self.metric.factor).1;
        let (low, high) = (mark.level.low.map(pixel), mark.level.high.map(pixel));
        let x = mark.place.map_or(left + width - LANE, |(_, place)| panel.at(place, 0.0).0);
        let (upper, lower) = match (low, high) {
            (Some(low), Some(high)) => (high, low),
            (None, Some(high)) => (high, high + ARROW.min(top + height - high).max(HALF)),
            (Some(low), None) => (low - ARROW.min(low - top).max(HALF), low),
            (None, None) => (top, top),
        };
        // A bracket is drawn on the side of the point away from the panel's nearer edge and opens towards the point.
        let inwards = if x > left + width / 2.0 { -1.0 } else { 1.0 };
        let aside = if mark.is_range() && mark.place.is_some() { ASIDE } else { 0.0 };
        let covers = |lane: f64| Area {
            left: x + inwards * (aside + lane * LANE) - HALF,
            top: upper - 3.0,
            width: 2.0 * HALF,
            height: lower - upper + 6.0,
        };
        let lanes = (width / LANE).max(1.0) as u32;
        let mut free = (0..lanes).map(|lane| covers(f64::from(lane)));
        let free = free.find(|area| !taken.iter().any(|other| overlap(area, other)));
        let covered = free.unwrap_or_else(|| covers(0.0));
        taken.push(covered);
        let middle = covered.left + HALF;
        let mut lines = match (low, high) {
            (Some(low), Some(high)) => vec![bracket(middle, high, low, inwards * HALF)],
            (None, Some(high)) => cap(middle, high, lower - high, HALF),
            (Some(low), None) => cap(middle, low, upper - low, HALF),
            (None, None) => Vec::new(),
        };
        if let Some(y) = mark.level.stated.map(pixel) {
            lines.push(vec![(middle - 4.0, y - 4.0), (middle + 4.0, y + 4.0)]);
            lines.push(vec![(middle - 4.0, y + 4.0), (middle + 4.0, y - 4.0)]);
        }
        let ends = [low, high].into_iter().flatten().filter(|_| mark.place.is_none());
        let across = ends.map(|y| vec![(left, y), (left + width, y)]).collect();
        // The cap of a lower bound is at the bottom of its sign, so the name is below.
        Sign { middle, upper, lower, name_below: high.is_none(), lines, across }
    }
}

impl Mark<'_> {
    fn is_range(&self) -> bool {
        self.level.low.is_some() && self.level.high.is_some()
    }

    /// The name of the claim, with its curves unless it applies to all.
    fn name(&self) -> String {
        let Self { level, series, curves, .. } = self;
        let names = series.join("; ");
        if series.len() == *curves {
            level.claim.clone()
        } else if names.chars().count() <= NAMES_MAX {
            format!("{}: {names}", level.claim)
        } else {
            format!("{}: {} of {curves} curves", level.claim, series.len())
        }
    }

    /// "S004-27, published: datagram_pdr 0.005 to 0.06 (quic)".
    fn tip(&self) -> String {
        let names = self.series.join("; ");
        let names = if names.is_empty() { names } else { format!(" ({names})") };
        format!("{}, published: {}{names}", self.level.claim, self.level.words())
    }
}

/// The lines of a mark and where its name belongs.
struct Sign {
    middle: f64,
    upper: f64,
    lower: f64,
    name_below: bool,
    lines: Vec<Vec<Point>>,
    /// Lines across the whole panel.
    across: Vec<Vec<Point>>,
}

/// The marks of `level` in one panel: one at each x value that it names, or a single one for the whole axis.
fn marks<'l>(facet: &'l Facet<'l>, along: &Along, level: &'l Level) -> Vec<Mark<'l>> {
    let curves = facet.series.len();
    let all = |about: &[bool]| about.iter().all(|one| *one);
    let mut whole = !level.names(&along.key);
    let mut found: Vec<Mark<'l>> = Vec::new();
    for series in &facet.series {
        let label = series.label.as_str();
        let about: Vec<bool> = series.points.iter().map(|point| level.is_about(point)).collect();
        whole &= all(&about) || !about.contains(&true);
        for (point, _) in series.points.iter().zip(&about).filter(|(_, about)| **about) {
            let value = point.setting(&along.key).zip(along.place(point));
            let Some(place) = value else { continue };
            match found.iter_mut().find(|mark| mark.place == Some(place)) {
                Some(mark) if mark.series.contains(&label) => {}
                Some(mark) => mark.series.push(label),
                None => {
                    found.push(Mark { level, place: Some(place), series: vec![label], curves });
                }
            }
        }
    }
    if whole && !found.is_empty() {
        let mut series: Vec<&str> = Vec::new();
        for label in found.iter().flat_map(|mark| &mark.series) {
            if !series.contains(label) {
                series.push(label);
            }
        }
        return vec![Mark { level, place: None, series, curves }];
    }
    let place = |mark: &Mark<'l>| mark.place.map_or(0.0, |(_, place)| place);
    found.sort_by(|a, b| place(a).total_cmp(&place(b)));
    found
}

/// Writes `words` as near to a sign as possible, outside `taken` areas and, if possible, off the `lines`.
fn label(
    sheet: &mut Sheet,
    area: Area,
    sign: &Sign,
    words: &str,
    taken: &mut Vec<Area>,
    lines: &[Area],
) {
    let width = words.chars().count() as f64 * LETTER;
    let above = |row: f64| sign.upper - 5.0 - row * ROW;
    let below = |row: f64| sign.lower + ROW + row * ROW;
    let rows = (0..ROWS_MAX).map(f64::from);
    let bases = rows.flat_map(|row| {
        let both = [above(row), below(row)];
        if sign.name_below { [both[1], both[0]] } else { both }
    });
    let right = sign.middle > area.left + area.width / 2.0;
    let sides = if right { [true, false] } else { [false, true] };
    let places: Vec<(f64, f64)> = bases
        .flat_map(|base| {
            sides.map(|right| {
                (if right { sign.middle + HALF - width } else { sign.middle - HALF }, base)
            })
        })
        .collect();
    let covers =
        |(left, base): (f64, f64)| Area { left, top: base - 10.0, width, height: ROW - 1.0 };
    let inside = |own: &Area| {
        own.top >= area.top
            && own.top + own.height <= area.top + area.height
            && own.left >= area.left - HALF
            && own.left + own.width <= area.left + area.width + HALF
    };
    let free = |own: &Area, from: &[Area]| !from.iter().any(|other| overlap(own, other));
    let fits = |strict: bool| {
        places.iter().copied().find(|place| {
            let own = covers(*place);
            inside(&own) && free(&own, taken) && (!strict || free(&own, lines))
        })
    };
    let place = fits(true).or_else(|| fits(false)).unwrap_or((sign.middle + HALF, above(0.0)));
    taken.push(covers(place));
    sheet.text(place, words, Anchor::Start, "tiny halo");
}

/// Small areas along a line.
fn along_line(line: &[Point]) -> Vec<Area> {
    let around = |(x, y): Point| Area { left: x - 3.0, top: y - 3.0, width: 6.0, height: 6.0 };
    let between = |ends: &[Point]| {
        let ((x, y), (dx, dy)) = (ends[0], (ends[1].0 - ends[0].0, ends[1].1 - ends[0].1));
        let steps = (dx.abs().max(dy.abs()) / 6.0).clamp(1.0, 400.0) as u32;
        let share = move |step: u32| f64::from(step) / f64::from(steps);
        (0..=steps).map(move |step| around((x + dx * share(step), y + dy * share(step))))
    };
    line.windows(2).flat_map(between).collect()
}

/// A vertical line whose ends turn to the left by `depth`.
fn bracket(x: f64, upper: f64, lower: f64, depth: f64) -> Vec<Point> {
    vec![(x - depth, upper), (x, upper), (x, lower), (x - depth, lower)]
}

/// A cap with an arrow; a `length` below zero points up.
fn cap(x: f64, y: f64, length: f64, half: f64) -> Vec<Vec<Point>> {
    let (tip, back) = (y + length, y + length - length.signum() * 4.5);
    vec![
        vec![(x - half, y), (x + half, y)],
        vec![(x, y), (x, tip)],
        vec![(x - 3.5, back), (x, tip), (x + 3.5, back)],
    ]
}

fn overlap(a: &Area, b: &Area) -> bool {
    a.left < b.left + b.width
        && b.left < a.left + a.width
        && a.top < b.top + b.height
        && b.top < a.top + a.height
}
