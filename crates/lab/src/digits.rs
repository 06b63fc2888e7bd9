//! How many digits of a mean say something: those that its interval leaves certain, and one more.

use crate::statistics::Estimate;

/// Digits after the point of numbers that are shown together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits(usize);

/// No number has more digits after the point.
const MOST: usize = 9;

impl Digits {
    /// Two significant digits of `uncertain`, the half width of an interval; of none, four of `mean`.
    pub fn of(estimate: Estimate) -> Self {
        match estimate.ci95.filter(|half| *half > 0.0) {
            Some(half) => Self::significant(half, 2),
            None => Self::significant(estimate.mean, 4),
        }
    }

    /// As many as show `count` significant digits of `value`.
    pub fn significant(value: f64, count: usize) -> Self {
        let size = value.abs();
        if size == 0.0 || !size.is_finite() {
            return Self(0);
        }
        let before_point = libm::floor(libm::log10(size)) as i32 + 1;
        let digits = i32::try_from(count).unwrap_or(i32::MAX) - before_point;
        Self(usize::try_from(digits).unwrap_or(0).min(MOST))
    }

    /// `value` with so many digits.
    pub fn show(self, value: f64) -> String {
        format!("{value:.*}", self.0)
    }

    /// `value` with so many digits and its sign.
    pub fn show_signed(self, value: f64) -> String {
        format!("{value:+.*}", self.0)
    }
}

/// A mean with its interval; the mean alone if it has none.
pub fn with_interval(estimate: Estimate) -> String {
    let digits = Digits::of(estimate);
    let half = estimate.ci95.map(|half| format!(" ± {}", digits.show(half)));
    digits.show(estimate.mean) + &half.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(mean: f64, half: Option<f64>) -> String {
        with_interval(Estimate { mean, ci95: half, n: 10 })
    }

    #[test]
    fn the_interval_says_how_many_digits_the_mean_has() {
        assert_eq!(shown(0.998_55, Some(0.000_341)), "0.99855 ± 0.00034");
        assert_eq!(shown(0.094, Some(0.46)), "0.09 ± 0.46");
        assert_eq!(shown(1234.56, Some(78.9)), "1235 ± 79");
        assert_eq!(shown(-3.0, Some(1234.0)), "-3 ± 1234");
    }

    #[test]
    fn without_a_spread_a_mean_has_four_digits() {
        assert_eq!(shown(0.998_55, None), "0.9986");
        assert_eq!(shown(24.0, Some(0.0)), "24.00 ± 0.00");
        assert_eq!(shown(0.0, Some(0.0)), "0 ± 0");
        assert_eq!(shown(123_456.7, None), "123457");
    }

    #[test]
    fn tiny_numbers_do_not_fill_the_line() {
        assert_eq!(Digits::significant(1e-30, 2).show(1e-30), "0.000000000");
    }
}
