//! The digits of a mean: those that its interval leaves certain, and one more.

use crate::medians::Sample;
use crate::statistics::{Estimate, QUANTILE};

/// The number of digits after the point, for numbers that are shown together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits(usize);

/// The most digits after the point.
const MOST: usize = 9;

impl Digits {
    /// Two significant digits of the half width of the interval; without a spread, the digits of the mean alone.
    pub fn of(estimate: Estimate) -> Self {
        match estimate.ci95.filter(|half| *half > 0.0) {
            Some(half) => Self::significant(half, 2),
            None => Self::exact(&[estimate.mean]),
        }
    }

    /// The digits of values without a spread: none if all are whole numbers, else four significant ones of the largest.
    pub fn exact(values: &[f64]) -> Self {
        if values.iter().all(|value| value.fract() == 0.0) {
            return Self(0);
        }
        let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        Self::significant(largest, 4)
    }

    /// The digits that show `count` significant digits of `value`.
    pub fn significant(value: f64, count: usize) -> Self {
        let size = value.abs();
        if size == 0.0 || !size.is_finite() {
            return Self(0);
        }
        let before_point = libm::floor(libm::log10(size)) as i32 + 1;
        let digits = i32::try_from(count).unwrap_or(i32::MAX) - before_point;
        Self(usize::try_from(digits).unwrap_or(0).min(MOST))
    }

    /// `value` with this number of digits.
    pub fn show(self, value: f64) -> String {
        without_sign_of_zero(format!("{value:.*}", self.0))
    }

    /// `value` with this number of digits and its sign; zero has none.
    pub fn show_signed(self, value: f64) -> String {
        if value == 0.0 {
            return self.show(0.0);
        }
        without_sign_of_zero(format!("{value:+.*}", self.0))
    }
}

/// A number that rounds to zero has no sign.
fn without_sign_of_zero(shown: String) -> String {
    match shown.strip_prefix(['-', '+']) {
        Some(size) if size.chars().all(|c| matches!(c, '0' | '.')) => size.to_owned(),
        _ => shown,
    }
}

/// A mean with its interval; the mean alone if it has none.
pub fn with_interval(estimate: Estimate) -> String {
    let digits = Digits::of(estimate);
    digits.show(estimate.mean) + &interval(digits, estimate)
}

/// A median with the ends of its interval; the median alone if it has none.
pub fn with_ends(median: f64, ends: Option<(f64, f64)>) -> String {
    let Some((low, high)) = ends else { return Digits::exact(&[median]).show(median) };
    let digits = match high - low {
        width if width > 0.0 => Digits::significant(width, 2),
        _ => Digits::exact(&[median]),
    };
    format!("{} ({} to {})", digits.show(median), digits.show(low), digits.show(high))
}

/// The median of values with its interval of order statistics; `-` without values.
pub fn median_of(values: Vec<f64>) -> String {
    let shown = |sample: Sample| with_ends(sample.median(), sample.interval(1.0 - QUANTILE));
    Sample::of(values).map_or_else(|| "-".to_owned(), shown)
}

/// A mean difference with its sign and its interval.
pub fn signed_with_interval(estimate: Estimate) -> String {
    let digits = Digits::of(estimate);
    digits.show_signed(estimate.mean) + &interval(digits, estimate)
}

fn interval(digits: Digits, estimate: Estimate) -> String {
    estimate.ci95.map_or_else(String::new, |half| format!(" ± {}", digits.show(half)))
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
        assert_eq!(shown(0.5, Some(0.0)), "0.5000 ± 0.0000");
        assert_eq!(shown(123_456.7, None), "123457");
    }

    #[test]
    fn whole_numbers_without_a_spread_have_no_digits_after_the_point() {
        assert_eq!(shown(24.0, Some(0.0)), "24 ± 0");
        assert_eq!(shown(24.0, None), "24");
        assert_eq!(shown(0.0, Some(0.0)), "0 ± 0");
        assert_eq!(shown(24.0, Some(0.31)), "24.00 ± 0.31");
        assert_eq!(
            [Digits::exact(&[24.0, 3.0]), Digits::exact(&[24.0, 2.5])],
            [Digits(0), Digits(2)]
        );
    }

    #[test]
    fn a_difference_has_its_sign_and_no_difference_has_none() {
        let shown = |mean, ci95| signed_with_interval(Estimate { mean, ci95, n: 10 });
        assert_eq!(shown(0.0191, Some(0.0064)), "+0.0191 ± 0.0064");
        assert_eq!(shown(-213.0, Some(498.0)), "-213 ± 498");
        assert_eq!(shown(0.0, Some(0.0)), "0 ± 0");
        assert_eq!(shown(-0.0, None), "0");
        assert_eq!(shown(-0.3, Some(35.0)), "0 ± 35");
        assert_eq!(shown(-0.3, Some(3.5)), "-0.3 ± 3.5");
    }

    #[test]
    fn a_median_stands_before_the_ends_of_its_interval() {
        assert_eq!(with_ends(51.23, Some((48.94, 53.71))), "51.2 (48.9 to 53.7)");
        assert_eq!(with_ends(51.23, None), "51.23");
        assert_eq!(with_ends(3.0, Some((3.0, 3.0))), "3 (3 to 3)");
    }

    #[test]
    fn tiny_numbers_do_not_fill_the_line() {
        assert_eq!(Digits::significant(1e-30, 2).show(1e-30), "0.000000000");
    }
}
