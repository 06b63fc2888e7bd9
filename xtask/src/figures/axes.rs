//! A panel with two axes: data become pixels, ticks become numbers.

use super::svg::{Anchor, GRID, INK, Stroke, Svg};

/// How values spread over an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Evenly from the first to the second.
    Linear(f64, f64),
    /// By their logarithm.
    Logarithmic(f64, f64),
}

impl Scale {
    /// Where a value lies, from 0 to 1; values outside lie on the edge.
    fn share(self, value: f64) -> f64 {
        let share = match self {
            Self::Linear(low, high) => (value - low) / (high - low),
            Self::Logarithmic(low, high) => (value / low).ln() / (high / low).ln(),
        };
        share.clamp(0.0, 1.0)
    }
}

/// One axis: its scale, the values that get a number, and its label with the unit.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Scale.
    pub scale: Scale,
    /// Values with a number and a grid line.
    pub ticks: Vec<f64>,
    /// What and in which unit.
    pub label: &'static str,
}

impl Axis {
    /// From 0 to at least `high`, with four to eight ticks at round numbers.
    pub fn from_zero(high: f64, label: &'static str) -> Self {
        let power = 10_f64.powf((high / 5.0).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
        let step = steps.into_iter().find(|step| high / step <= 8.0).unwrap_or(high);
        let count = (high / step).ceil().max(1.0) as u32;
        let ticks: Vec<f64> = (0..=count).map(|tick| f64::from(tick) * step).collect();
        Self { scale: Scale::Linear(0.0, f64::from(count) * step), ticks, label }
    }
}

/// The place of a panel's plot area and its axes.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Left, top, width, height, in pixels.
    area: (f64, f64, f64, f64),
    x: Axis,
    y: Axis,
}

impl Panel {
    /// Draws grid, numbers and labels.
    pub fn draw(svg: &mut Svg, area: (f64, f64, f64, f64), x: Axis, y: Axis) -> Self {
        let panel = Self { area, x, y };
        let (left, top, width, height) = area;
        let (right, bottom) = (left + width, top + height);
        for &tick in &panel.x.ticks {
            let at = panel.x_of(tick);
            svg.line(&[(at, top), (at, bottom)], Stroke::solid(GRID, 1.0));
            svg.small(at, bottom + 19.0, &number(tick), Anchor::Middle);
        }
        for &tick in &panel.y.ticks {
            let at = panel.y_of(tick);
            svg.line(&[(left, at), (right, at)], Stroke::solid(GRID, 1.0));
            svg.small(left - 8.0, at + 5.0, &number(tick), Anchor::End);
        }
        svg.line(&[(left, top), (left, bottom), (right, bottom)], Stroke::solid(INK, 1.2));
        svg.small(left + width / 2.0, bottom + 42.0, panel.x.label, Anchor::Middle);
        svg.upward(left - 46.0, top + height / 2.0, panel.y.label);
        panel
    }

    /// Pixels of a point.
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x_of(x), self.y_of(y))
    }

    fn x_of(&self, value: f64) -> f64 {
        self.area.0 + self.x.scale.share(value) * self.area.2
    }

    fn y_of(&self, value: f64) -> f64 {
        self.area.1 + (1.0 - self.y.scale.share(value)) * self.area.3
    }
}

/// As short as it can be without losing a tick: 0.1, 25, 100.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_ticks_cover_the_largest_value() {
        for high in [0.7, 1.0, 9.0, 49.0, 123.0, 1999.0] {
            let axis = Axis::from_zero(high, "");
            let last = *axis.ticks.last().expect("ticks");
            assert!(last >= high && last < high * 1.8, "{high}: {:?}", axis.ticks);
            assert!((4..=9).contains(&axis.ticks.len()), "{high}: {:?}", axis.ticks);
        }
    }

    #[test]
    fn a_logarithmic_axis_gives_each_decade_the_same_room() {
        let scale = Scale::Logarithmic(0.1, 10.0);
        assert!((scale.share(1.0) - 0.5).abs() < 1e-12);
        assert_eq!((scale.share(0.01), scale.share(99.0)), (0.0, 1.0));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.05, 0.2, 1.0, 25.0, 100.0].map(number), ["0.05", "0.2", "1", "25", "100"]);
    }
}
