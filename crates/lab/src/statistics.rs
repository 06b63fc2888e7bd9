//! Statistics over runs: means with confidence intervals, and percentiles of a sample.
//!
//! No statistic is NaN: with too few numbers it is absent.

use std::sync::LazyLock;

use serde::Serialize;

/// The confidence level of every interval: 95 %, so the quantile at 0.975 of Student's t.
pub(crate) const QUANTILE: f64 = 0.975;

/// A spread below this share of the numbers is rounding.
const ROUNDING: f64 = 1e-12;

/// A mean over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval (Student's t); absent for a single run.
    pub ci95: Option<f64>,
    /// How many runs had this number.
    pub n: usize,
}

impl Estimate {
    /// The mean of `sample`; absent when that is empty. Numbers that are not finite are left out. Numbers that differ
    /// only by rounding have no spread.
    pub fn of(sample: impl IntoIterator<Item = f64>) -> Option<Self> {
        let sample: Vec<f64> = sample.into_iter().filter(|value| value.is_finite()).collect();
        let n = sample.len();
        let mean = mean(&sample)?;
        if sample.iter().all(|value| difference(mean, *value) == 0.0) {
            return Some(Self { mean: sample[0], ci95: (n > 1).then_some(0.0), n });
        }
        let ci95 = (n > 1).then(|| {
            let squares: f64 = sample.iter().map(|value| (value - mean) * (value - mean)).sum();
            let variance = squares / (n - 1) as f64;
            student_t(n as u64 - 1) * libm::sqrt(variance / n as f64)
        });
        Some(Self { mean, ci95, n })
    }

    /// The smallest number of runs, at least two, whose interval for one comparison of a `family` has at most the half
    /// width `half`, at the spread of these runs; absent above a million, and for a single run.
    pub fn runs_within(self, half: f64, family: usize) -> Option<usize> {
        let Self { ci95: Some(now), n, .. } = self else { return None };
        let deviation = now / student_t(n as u64 - 1) * libm::sqrt(n as f64);
        let within = |runs: usize| {
            // Beyond two hundred runs the quantile changes by less than one per cent.
            let few = runs.min(200);
            let alone = student_t(few as u64 - 1) * deviation / libm::sqrt(runs as f64);
            let wide = Self { ci95: Some(alone), n: few, ..self }.together(family);
            wide.ci95.is_some_and(|wide| wide <= half)
        };
        let mut enough = 2;
        while !within(enough) {
            enough *= 2;
            if enough > 1_000_000 {
                return None;
            }
        }
        let mut few = enough / 2;
        while few + 1 < enough {
            let middle = usize::midpoint(few, enough);
            if within(middle) { enough = middle } else { few = middle }
        }
        Some(enough)
    }

    /// The two-sided p-value of a mean of zero (Student's t); absent for a single run.
    ///
    /// Equal numbers have no spread to estimate, so for them it is the p-value of the sign test: the probability that all
    /// are on the same side of zero. Below 1e-15 it may be 0.
    pub fn chance_of_nothing(self) -> Option<f64> {
        let half = self.ci95?;
        let size = self.mean.abs();
        if half <= ROUNDING * size {
            let halvings = i32::try_from(self.n - 1).unwrap_or(i32::MAX);
            return Some(if size == 0.0 { 1.0 } else { 0.5_f64.powi(halvings) });
        }
        let freedom = self.n as u64 - 1;
        let t = size / half * student_t(freedom);
        Some((1.0 - central_probability(t, freedom)).clamp(0.0, 1.0))
    }

    /// Whether the interval that [`Estimate::together`] gives for a `family` is above `bound`; false for a single run, which
    /// has no interval.
    pub fn lies_above(self, bound: f64, family: usize) -> bool {
        let Some(half) = self.ci95 else { return false };
        let off = self.mean - bound;
        if half == 0.0 || off <= 0.0 {
            return off > 0.0;
        }
        let freedom = (self.n as u64).saturating_sub(1).max(1);
        let outside = 1.0 - central_probability(off / half * student_t(freedom), freedom);
        outside < 2.0 * (1.0 - QUANTILE) / family.max(1) as f64
    }

    /// The same below `bound`.
    pub fn lies_below(self, bound: f64, family: usize) -> bool {
        Self { mean: -self.mean, ..self }.lies_above(-bound, family)
    }

    /// With an interval so wide that `all` intervals of a family hold together in 95 % of cases (Bonferroni), and the ends
    /// on one side in 97.5 %.
    pub fn together(self, all: usize) -> Self {
        let freedom = (self.n as u64).saturating_sub(1).max(1);
        let outside = 2.0 * (1.0 - QUANTILE) / all.max(1) as f64;
        let wider = quantile(freedom, 1.0 - outside) / student_t(freedom);
        Self { ci95: self.ci95.map(|half| half * wider), ..self }
    }
}

/// `to` minus `from`; zero for numbers that differ only by rounding.
pub(crate) fn difference(from: f64, to: f64) -> f64 {
    let difference = to - from;
    if difference.abs() <= ROUNDING * from.abs().max(to.abs()) { 0.0 } else { difference }
}

/// A part of a whole; none of nothing.
pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The arithmetic mean; absent without values.
pub fn mean(sample: &[f64]) -> Option<f64> {
    (!sample.is_empty()).then(|| sample.iter().sum::<f64>() / sample.len() as f64)
}

/// The smallest number of the ascending `sorted` that is not below at least `percent` of all numbers (nearest rank).
pub fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let rank = libm::ceil(percent / 100.0 * sorted.len() as f64) as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// How much the second of each pair grows with the first, by least squares; absent unless two of the first differ.
pub fn slope(pairs: &[(f64, f64)]) -> Option<f64> {
    let firsts: Vec<f64> = pairs.iter().map(|(first, _)| *first).collect();
    let seconds: Vec<f64> = pairs.iter().map(|(_, second)| *second).collect();
    let (x, y) = (mean(&firsts)?, mean(&seconds)?);
    let spread: f64 = firsts.iter().map(|first| (first - x) * (first - x)).sum();
    let common: f64 = pairs.iter().map(|(first, second)| (first - x) * (second - y)).sum();
    (spread > 0.0).then(|| common / spread)
}

/// The 0.975 quantile of Student's t distribution with `freedom` degrees of freedom.
///
/// Found by bisection of the closed forms for whole degrees (Abramowitz and Stegun 26.7.3 and 26.7.4).
pub fn student_t(freedom: u64) -> f64 {
    /// The quantiles of few degrees, which are used most.
    static FEW: LazyLock<[f64; 32]> =
        LazyLock::new(|| std::array::from_fn(|i| quantile(i as u64, 2.0 * QUANTILE - 1.0)));
    let few = usize::try_from(freedom).ok().and_then(|freedom| FEW.get(freedom));
    few.copied().unwrap_or_else(|| quantile(freedom, 2.0 * QUANTILE - 1.0))
}

/// The number within plus and minus which a t-distributed number lies with the chance `central`, below 1.
fn quantile(freedom: u64, central: f64) -> f64 {
    // Past a thousand degrees the quantile moves by under 0.001 of itself.
    let freedom = freedom.clamp(1, 1_000);
    let (mut low, mut high) = (0.0, 13.0);
    while central_probability(high, freedom) < central {
        high *= 2.0;
    }
    // Half a billionth of the range is well under what a table prints.
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if central_probability(middle, freedom) < central {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The chance that a t-distributed number lies within plus and minus `t`.
fn central_probability(t: f64, freedom: u64) -> f64 {
    let angle = libm::atan(t / libm::sqrt(freedom as f64));
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let odd = freedom % 2 == 1;
    if freedom == 1 {
        return angle * std::f64::consts::FRAC_2_PI;
    }
    // Odd:  2/pi (angle + sin (cos + 2/3 cos^3 + 2*4/(3*5) cos^5 + ... up to cos^(freedom-2)))
    // Even: sin (1 + 1/2 cos^2 + 1*3/(2*4) cos^4 + ... up to cos^(freedom-2))
    let mut term = if odd { cosine } else { 1.0 };
    let mut sum = term;
    let first = if odd { 2 } else { 1 };
    for k in (first..freedom - 1).step_by(2) {
        term *= k as f64 / (k + 1) as f64 * cosine * cosine;
        sum += term;
    }
    if odd { std::f64::consts::FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_quantiles_are_those_of_the_tables() {
        let table = [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (9, 2.262),
            (10, 2.228),
            (29, 2.045),
            (30, 2.042),
            (100, 1.984),
            (1000, 1.962),
        ];
        for (freedom, quantile) in table {
            let found = student_t(freedom);
            assert!((found - quantile).abs() < 0.000_6, "{freedom}: {found}");
        }
    }

    #[test]
    fn a_known_sample_has_its_known_interval() {
        // Mean 3, variance 2.5, standard error sqrt(0.5), t(4) = 2.7764.
        let estimate = Estimate::of([1.0, 2.0, 3.0, 4.0, 5.0]).expect("five numbers");
        assert_eq!((estimate.mean, estimate.n), (3.0, 5));
        assert!((estimate.ci95.expect("five numbers") - 1.9632).abs() < 1e-4);
    }

    #[test]
    fn the_chance_of_nothing_is_that_of_the_tables() {
        // By integration of the density: [1, 2, 3, 4] has t = 3.8730, p = 0.030466; [1, 2, 3, 4, 5] has t = 4.2426,
        // p = 0.013236.
        let chance = |sample: &[f64]| {
            let estimate = Estimate::of(sample.iter().copied()).expect("numbers");
            estimate.chance_of_nothing()
        };
        for (sample, p) in
            [(&[1.0, 2.0, 3.0, 4.0][..], 0.030_466), (&[1., 2., 3., 4., 5.], 0.013_236)]
        {
            let found = chance(sample).expect("some runs");
            assert!((found - p).abs() < 2e-6, "{found}");
            let turned: Vec<f64> = sample.iter().map(|value| -value).collect();
            assert_eq!(chance(&turned), Some(found));
        }
        // With zero at the end of the interval, p is 5 %.
        let end = Estimate { mean: 2.0, ci95: Some(2.0), n: 10 }.chance_of_nothing();
        assert!((end.expect("ten runs") - 0.05).abs() < 1e-6, "{end:?}");
        assert_eq!(chance(&[3.0]), None);
    }

    #[test]
    fn equal_numbers_are_asked_for_their_sign_alone() {
        let chance = |mean, n| Estimate { mean, ci95: Some(0.0), n }.chance_of_nothing();
        assert_eq!((chance(0.0, 10), chance(1.0, 2)), (Some(1.0), Some(0.5)));
        assert_eq!(chance(-4.0, 10), Some(1.0 / 512.0));
        // A spread that comes only from rounding counts as none.
        let rounded = Estimate { mean: 0.1, ci95: Some(1e-17), n: 3 };
        assert_eq!(rounded.chance_of_nothing(), Some(0.25));
    }

    #[test]
    fn intervals_of_many_are_wider_and_hold_together() {
        let one = Estimate { mean: 1.0, ci95: Some(2.262), n: 10 };
        assert_eq!(one.together(1), one);
        // t(9) at 1 - .05/40, by integration of its density.
        let wide = one.together(40).ci95.expect("ten runs");
        assert!((wide - 4.622).abs() < 0.002, "{wide}");
        // t(1) at 1 - .05/72: tan of the angle, 916.7.
        let two = Estimate { mean: 0.0, ci95: Some(12.706), n: 2 }.together(72);
        assert!((two.ci95.expect("two runs") - 916.7).abs() < 1.0, "{two:?}");
    }

    #[test]
    fn an_interval_lies_above_what_its_low_end_is_above() {
        for (n, family) in [(2, 1), (3, 7), (10, 1), (10, 40), (20, 400)] {
            let one = Estimate { mean: 1.0, ci95: Some(0.3), n };
            let low = 1.0 - one.together(family).ci95.expect("several runs");
            assert!(one.lies_above(low - 1e-6, family), "{n} {family}");
            assert!(!one.lies_above(low + 1e-6, family), "{n} {family}");
            assert!(!one.lies_below(1.0, family));
        }
        let level = Estimate { mean: 1.0, ci95: Some(0.0), n: 3 };
        assert!(level.lies_above(0.9, 40) && !level.lies_above(1.0, 1) && level.lies_below(1.1, 9));
        assert!(!Estimate { ci95: None, ..level }.lies_above(0.0, 1));
    }

    #[test]
    fn one_run_has_a_mean_without_interval_and_none_has_nothing() {
        assert_eq!(Estimate::of([2.0]), Some(Estimate { mean: 2.0, ci95: None, n: 1 }));
        assert_eq!(Estimate::of([]), None);
        assert_eq!(Estimate::of([f64::NAN, f64::INFINITY]), None);
    }

    #[test]
    fn equal_numbers_have_their_value_as_the_mean_and_no_spread() {
        // The sum of ten times 0.1 is not 1.
        let level = |mean, n| Some(Estimate { mean, ci95: Some(0.0), n });
        assert_eq!(Estimate::of([0.1; 10]), level(0.1, 10));
        assert_eq!(Estimate::of([0.9 - 0.8, 0.9 - 0.8, 0.1]), level(0.9 - 0.8, 3));
        assert!(Estimate::of([1.0, 1.0 + 1e-9]).and_then(|e| e.ci95).expect("two runs") > 0.0);
    }

    #[test]
    fn percentiles_are_numbers_of_the_sample() {
        let sorted = [10.0, 20.0, 30.0, 40.0];
        assert_eq!(percentile(&sorted, 50.0), Some(20.0));
        assert_eq!(percentile(&sorted, 51.0), Some(30.0));
        assert_eq!(percentile(&sorted, 95.0), Some(40.0));
        assert_eq!(percentile(&sorted, 0.0), Some(10.0));
        assert_eq!(percentile(&sorted, 100.0), Some(40.0));
        assert_eq!(percentile(&[], 50.0), None);
    }
}
