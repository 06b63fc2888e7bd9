//! A panel with two axes: data become pixels, ticks become numbers.

use super::sheet::{Anchor, Area, Point, Sheet};

/// How values spread over an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    Linear(f64, f64),
    Logarithmic(f64, f64),
}

/// One axis: its scale, the values that get a number or a name, and its label with the unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    scale: Scale,
    ticks: Vec<(f64, String)>,
    label: String,
}

impl Axis {
    /// Round numbers that cover `low` to `high`; from zero on if `from_zero`.
    pub fn covering(low: f64, high: f64, from_zero: bool, label: &str) -> Self {
        let (low, high) = if from_zero { (low.min(0.0), high) } else { (low, high) };
        let (low, high) = usable(low, high);
        let step = round_step((high - low) / 5.0);
        let first = libm::floor(low / step + 1e-9);
        let last = libm::ceil(high / step - 1e-9).max(first + 1.0);
        let count = (last - first) as u32;
        let ticks = (0..=count).map(|tick| {
            let value = (first + f64::from(tick)) * step;
            (value, number(value, step))
        });
        let scale = Scale::Linear(first * step, last * step);
        Self { scale, ticks: ticks.collect(), label: label.to_owned() }
    }

    /// Decades that cover `low` to `high`, with ticks at 1, and at 2 and 5 where there is room.
    pub fn logarithmic(low: f64, high: f64, label: &str) -> Self {
        let low = if low.is_finite() && low > 0.0 { low } else { 1.0 };
        let high = if high.is_finite() { high.max(low * 1.1) } else { low * 10.0 };
        let first = libm::floor(libm::log10(low)) as i32;
        let last = libm::ceil(libm::log10(high)) as i32;
        let mantissas: &[f64] = if last - first <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let all: Vec<f64> = (first..=last)
            .flat_map(|power| mantissas.iter().map(move |m| m * libm::pow(10.0, power.into())))
            .collect();
        let from = all.iter().copied().rfind(|&v| v <= low).unwrap_or(low);
        let to = all.iter().copied().find(|&v| v >= high).unwrap_or(high);
        let shown = all.into_iter().filter(|&value| value >= from && value <= to);
        let ticks = shown.map(|value| (value, number(value, value))).collect();
        Self { scale: Scale::Logarithmic(from, to), ticks, label: label.to_owned() }
    }

    /// Exactly these values, for few enough of them; half a step of room on each side.
    pub fn named(names: &[String], label: &str) -> Self {
        let ticks = names.iter().enumerate().map(|(i, name)| (i as f64, name.clone())).collect();
        let scale = Scale::Linear(-0.5, names.len() as f64 - 0.5);
        Self { scale, ticks, label: label.to_owned() }
    }

    /// From `low` to `high` without more, where round ends would waste room.
    pub fn exact(low: f64, high: f64, label: &str) -> Self {
        let (low, high) = usable(low, high);
        let mut axis = Self::covering(low, high, false, label);
        axis.ticks.retain(|(value, _)| *value >= low - 1e-9 && *value <= high + 1e-9);
        axis.scale = Scale::Linear(low, high);
        axis
    }

    /// From `low` to `high` without numbers or label.
    pub const fn bare(low: f64, high: f64) -> Self {
        Self { scale: Scale::Linear(low, high), ticks: Vec::new(), label: String::new() }
    }

    /// Where a value lies, from 0 to 1; values outside lie on the edge.
    fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear(low, high) => (value - low) / (high - low),
            Scale::Logarithmic(low, high) => libm::log(value / low) / libm::log(high / low),
        };
        share.clamp(0.0, 1.0)
    }
}

/// A range that has a width and no surprises.
fn usable(low: f64, high: f64) -> (f64, f64) {
    match (low.is_finite(), high.is_finite()) {
        (true, true) if high - low > 1e-9 * high.abs().max(1e-6) => (low, high),
        (true, _) if low > 0.0 => (low * 0.9, low * 1.1),
        (true, _) => (low, low + 1.0),
        _ => (0.0, 1.0),
    }
}

/// 1, 2 or 5 times a power of ten, at least `step`.
fn round_step(step: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(step)));
    let steps = [1.0, 2.0, 5.0].map(|times| times * power);
    steps.into_iter().find(|&round| round >= step * 0.999_999).unwrap_or(10.0 * power)
}

/// A number with as many decimals as steps of `step` need.
pub fn number(value: f64, step: f64) -> String {
    let decimals =
        (-libm::floor(libm::log10(step.abs().max(1e-12)) + 1e-9)).clamp(0.0, 6.0) as usize;
    // No minus before a zero.
    let value = if value.abs() < step.abs() / 1e6 { 0.0 } else { value };
    format!("{value:.decimals$}")
}

/// The place of a panel's plot area and its axes.
#[derive(Clone, Debug)]
pub struct Panel {
    area: Area,
    x: Axis,
    y: Axis,
}

/// Room left of a plot area, for numbers and the label.
pub const MARGIN_LEFT: f64 = 78.0;
/// Room below a plot area, for numbers and the label.
pub const MARGIN_BELOW: f64 = 52.0;
/// Room above a plot area, for its title.
pub const MARGIN_ABOVE: f64 = 30.0;
/// Room right of a plot area, for half a number.
pub const MARGIN_RIGHT: f64 = 22.0;
/// Room between two ticks that numbers of the x axis need.
const TICK_ROOM: f64 = 8.5;

impl Panel {
    /// Draws grid, numbers, labels and title around `area`.
    pub fn draw(sheet: &mut Sheet, area: Area, x: Axis, y: Axis, title: &str) -> Self {
        let panel = Self { area, x, y };
        let Area { left, top, width, height } = area;
        let (right, bottom) = (left + width, top + height);
        let letters = panel.x.ticks.iter().map(|(_, name)| name.chars().count()).max().unwrap_or(1);
        let room = (letters as f64 + 1.0) * TICK_ROOM * panel.x.ticks.len() as f64;
        let every = libm::ceil(room / width.max(1.0)).max(1.0) as usize;
        for (index, (value, name)) in panel.x.ticks.iter().enumerate() {
            let at = panel.x_of(*value);
            sheet.line(&[(at, top), (at, bottom)], "grid");
            if index % every == 0 {
                sheet.text((at, bottom + 19.0), name, Anchor::Middle, "small");
            }
        }
        for (value, name) in &panel.y.ticks {
            let at = panel.y_of(*value);
            sheet.line(&[(left, at), (right, at)], "grid");
            sheet.text((left - 8.0, at + 5.0), name, Anchor::End, "small");
        }
        sheet.line(&[(left, top), (left, bottom), (right, bottom)], "axis");
        let below = (left + width / 2.0, bottom + 42.0);
        let beside = (left - 60.0, top + height / 2.0);
        sheet.text(below, &panel.x.label, Anchor::Middle, "small");
        if !panel.y.label.is_empty() {
            sheet.upward(beside, &panel.y.label, "small");
        }
        if !title.is_empty() {
            sheet.text((left, top - 11.0), title, Anchor::Start, "bold");
        }
        panel
    }

    /// Pixels of a point.
    pub fn at(&self, x: f64, y: f64) -> Point {
        (self.x_of(x), self.y_of(y))
    }

    /// The plot area.
    pub const fn area(&self) -> Area {
        self.area
    }

    fn x_of(&self, value: f64) -> f64 {
        self.area.left + self.x.share(value) * self.area.width
    }

    fn y_of(&self, value: f64) -> f64 {
        self.area.top + (1.0 - self.y.share(value)) * self.area.height
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn round_ticks_cover_the_range_and_have_no_more_decimals_than_they_need() {
        assert_eq!(names(&Axis::covering(0.0, 9.3, true, "")), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(
            names(&Axis::covering(0.8711, 0.9992, false, "")),
            ["0.85", "0.90", "0.95", "1.00"]
        );
        assert_eq!(names(&Axis::covering(2.0, 20.0, false, "")), ["0", "5", "10", "15", "20"]);
    }

    #[test]
    fn a_range_without_width_or_of_no_numbers_still_has_two_ticks() {
        for (low, high) in [(1.0, 1.0), (0.0, 0.0), (f64::NAN, 1.0), (3.0, f64::INFINITY)] {
            let axis = Axis::covering(low, high, false, "");
            assert!(axis.ticks.len() >= 2, "{low} {high}: {axis:?}");
            assert!(axis.ticks.iter().all(|(value, _)| value.is_finite()));
        }
    }

    #[test]
    fn a_logarithmic_axis_gives_each_decade_the_same_room() {
        let axis = Axis::logarithmic(0.1, 10.0, "");
        assert!((axis.share(1.0) - 0.5).abs() < 1e-12);
        assert_eq!(names(&axis), ["0.1", "0.2", "0.5", "1", "2", "5", "10"]);
        let axis = Axis::logarithmic(30.0, 40_000.0, "");
        assert_eq!(axis.ticks.first().map(|t| t.1.as_str()), Some("10"));
        assert_eq!(axis.ticks.last().map(|t| t.1.as_str()), Some("100000"));
    }

    #[test]
    fn crowded_names_are_left_out_evenly() {
        let mut sheet = Sheet::new(200.0, 100.0);
        let area = Area { left: 10.0, top: 10.0, width: 100.0, height: 50.0 };
        let names: Vec<String> = (0..20).map(|i| format!("{i}00")).collect();
        Panel::draw(&mut sheet, area, Axis::named(&names, ""), Axis::exact(0.0, 1.0, ""), "");
        let text = sheet.to_inline("");
        assert!(text.contains(">000<") && !text.contains(">100<"), "{text}");
    }
}
