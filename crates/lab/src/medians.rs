//! Medians over runs, with intervals from order statistics.
//!
//! Of n independent values, the number below the true median is binomial with a probability of one half. So the k-th
//! smallest value lies above the true median with a probability that depends on k and n alone, not on the distribution
//! (David and Nagaraja, "Order Statistics", 3rd edition, section 7.1). The interval has two values of the sample as ends.
//!
//! The interval of a difference, a ratio or a mean of medians combines the ends of all its medians. Each median has an
//! equal share of the error probability (Bonferroni), so the result is valid under any dependence between samples.

/// Values of one point, ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// The finite numbers of `values`; absent if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        (!sorted.is_empty()).then_some(Self(sorted))
    }

    /// The number of values.
    pub const fn n(&self) -> usize {
        self.0.len()
    }

    /// The median: of an even number of values, the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let (half, last) = (self.0.len() / 2, self.0.len() - 1);
        f64::midpoint(self.0[last / 2], self.0[half])
    }

    /// The smallest value.
    pub fn least(&self) -> f64 {
        self.0[0]
    }

    /// The largest value.
    pub fn most(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// Two values of the sample. The true median lies beyond each with a probability of at most `error`; absent if the
    /// sample is too small for that.
    pub fn interval(&self, error: f64) -> Option<(f64, f64)> {
        let skipped = skipped(self.n(), error)?;
        Some((self.0[skipped], self.0[self.n() - 1 - skipped]))
    }
}

/// The largest k with P(Binomial(n, 1/2) <= k) <= `error`.
fn skipped(n: usize, error: f64) -> Option<usize> {
    let mut logarithm = -(n as f64) * std::f64::consts::LN_2;
    let mut sum = 0.0;
    for k in 0..=n {
        sum += libm::exp(logarithm);
        if sum > error {
            return k.checked_sub(1);
        }
        logarithm += libm::log((n - k) as f64 / (k + 1) as f64);
    }
    None
}

/// A value that is made of medians.
#[derive(Clone, Debug, PartialEq)]
pub enum Medians {
    /// The median of one sample.
    Of(Sample),
    /// The left value minus the right one, divided by the right one if `relative`.
    Difference {
        /// The left value.
        left: Box<Self>,
        /// The right value.
        right: Box<Self>,
        /// Whether the difference is divided by the right value.
        relative: bool,
    },
    /// The mean of several values.
    Mean(Vec<Self>),
}

impl Medians {
    /// The value of the samples themselves.
    pub fn centre(&self) -> f64 {
        match self {
            Self::Of(sample) => sample.median(),
            Self::Difference { left, right, relative } => {
                let (left, right) = (left.centre(), right.centre());
                let difference = crate::statistics::difference(right, left);
                if *relative { difference / right } else { difference }
            }
            Self::Mean(values) => {
                values.iter().map(Self::centre).sum::<f64>() / values.len() as f64
            }
        }
    }

    /// The number of values in the smallest sample.
    pub fn n(&self) -> usize {
        match self {
            Self::Of(sample) => sample.n(),
            Self::Difference { left, right, .. } => left.n().min(right.n()),
            Self::Mean(values) => values.iter().map(Self::n).min().unwrap_or_default(),
        }
    }

    fn samples(&self) -> usize {
        match self {
            Self::Of(_) => 1,
            Self::Difference { left, right, .. } => left.samples() + right.samples(),
            Self::Mean(values) => values.iter().map(Self::samples).sum(),
        }
    }

    /// Ends that the true value lies beyond with a probability of at most `error` each; absent if a sample is too small,
    /// or if the divisor of a ratio may be zero.
    pub fn interval(&self, error: f64) -> Option<(f64, f64)> {
        self.ends(error / self.samples() as f64)
    }

    fn ends(&self, each: f64) -> Option<(f64, f64)> {
        match self {
            Self::Of(sample) => sample.interval(each),
            Self::Difference { left, right, relative } => {
                let (left, right) = (left.ends(each)?, right.ends(each)?);
                if *relative { relative_ends(left, right) } else { Some(ends(left, right)) }
            }
            Self::Mean(values) => {
                let count = values.len() as f64;
                let mut sums = (0.0, 0.0);
                for value in values {
                    let (low, high) = value.ends(each)?;
                    sums = (sums.0 + low / count, sums.1 + high / count);
                }
                Some(sums)
            }
        }
    }
}

fn ends(left: (f64, f64), right: (f64, f64)) -> (f64, f64) {
    let difference = crate::statistics::difference;
    (difference(right.1, left.0), difference(right.0, left.1))
}

/// The ends of a ratio less one; the divisor is positive.
fn relative_ends(left: (f64, f64), right: (f64, f64)) -> Option<(f64, f64)> {
    if right.0 <= 0.0 {
        return None;
    }
    let ratio = |left: f64, near: f64, far: f64| left / if left < 0.0 { near } else { far };
    let low = ratio(left.0, right.0, right.1);
    let high = ratio(left.1, right.1, right.0);
    Some((low - 1.0, high - 1.0))
}

#[cfg(test)]
mod tests {
    use lowmesh_units::{NodeId, Purpose, Rng, Seed};

    use super::*;

    fn numbers(count: u32) -> Medians {
        Medians::Of(Sample::of((1..=count).map(f64::from)).expect("numbers"))
    }

    #[test]
    fn the_ranks_are_those_of_the_binomial_distribution() {
        // P(Bin(6, 1/2) = 0) is 0.0156, P(Bin(20, 1/2) <= 5) is 0.0207, P(Bin(20, 1/2) <= 4) is 0.0059.
        for (n, error, ranks) in [
            (6, 0.025, Some((1.0, 6.0))),
            (5, 0.025, None),
            (20, 0.025, Some((6.0, 15.0))),
            (20, 0.0125, Some((5.0, 16.0))),
            (20, 0.025 / 40.0, Some((3.0, 18.0))),
            (100, 0.025, Some((40.0, 61.0))),
            (3_000, 0.025, Some((1_446.0, 1_555.0))),
        ] {
            assert_eq!(numbers(n).interval(error), ranks, "{n} {error}");
        }
    }

    #[test]
    fn a_median_of_an_even_count_lies_between_the_two_in_the_middle() {
        let of = |values: &[f64]| Sample::of(values.iter().copied()).map(|s| s.median());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[f64::NAN]), None);
        assert_eq!(of(&[9.0, 1.0, 4.0]), Some(4.0));
        assert_eq!(of(&[4.0, 1.0]), Some(2.5));
    }

    #[test]
    fn a_difference_takes_the_far_ends_of_both_sides_and_a_ratio_too() {
        let scaled = |by: f64| {
            Medians::Of(Sample::of((1..=20).map(|v| by * f64::from(v))).expect("numbers"))
        };
        let of = |relative| Medians::Difference {
            left: Box::new(scaled(4.0)),
            right: Box::new(scaled(1.0)),
            relative,
        };
        // Each side from the 5th to the 16th of 20.
        assert_eq!(of(false).interval(0.025), Some((4.0 * 5.0 - 16.0, 4.0 * 16.0 - 5.0)));
        assert_eq!(of(true).interval(0.025), Some((20.0 / 16.0 - 1.0, 64.0 / 5.0 - 1.0)));
        assert_eq!((of(false).centre(), of(true).centre(), of(true).n()), (31.5, 3.0, 20));
        let zero = Medians::Difference {
            left: Box::new(scaled(1.0)),
            right: Box::new(scaled(0.0)),
            relative: true,
        };
        assert_eq!(zero.interval(0.025), None);
        let mean = Medians::Mean(vec![scaled(1.0), scaled(3.0)]);
        assert_eq!((mean.centre(), mean.interval(0.025)), (21.0, Some((10.0, 32.0))));
    }

    #[test]
    fn an_interval_misses_the_median_of_a_skewed_distribution_no_more_often_than_stated() {
        // Exponential with mean 1: the median is ln 2.
        let (mut low, mut high) = (0, 0);
        for trial in 0..2_000 {
            let mut rng = Rng::stream(Seed(trial), NodeId(0), Purpose::Traffic);
            let sample = Sample::of((0..20).map(|_| rng.exponential())).expect("numbers");
            let ends = sample.interval(0.025).expect("twenty values");
            low += u32::from(ends.0 > std::f64::consts::LN_2);
            high += u32::from(ends.1 < std::f64::consts::LN_2);
        }
        // The exact rate is 2.07 %; three standard deviations of 2,000 trials are 1 %.
        for missed in [low, high] {
            assert!((20..=62).contains(&missed), "{missed} of 2000");
        }
    }
}
