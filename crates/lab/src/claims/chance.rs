//! How sure a test of many comparisons is.
//!
//! Each comparison has an interval of its own, which in one of twenty cases does not hold what it should; one side of it
//! in one of forty. Of many comparisons some are certain for that reason alone. So a test that one of them can decide is
//! decided only if
//!
//! - one is certain with an interval so wide that all of them hold together in 39 of 40 cases (Bonferroni), or
//! - more of them are certain, each for itself, than chance makes in one of forty cases (the binomial distribution).
//!
//! The two together are wrong in one of twenty cases at most, as one comparison alone. The second takes the
//! comparisons as independent.

use crate::statistics::QUANTILE;

/// The chance that a comparison is certain, in the wrong direction, where there is nothing.
const ALONE: f64 = 1.0 - QUANTILE;

/// Whether what is certain of `all` comparisons is more than chance: how many are, each for itself, and whether one is
/// with the interval of all together.
pub(super) fn is_beyond(certain: usize, one_together: bool, all: usize) -> bool {
    one_together || certain >= fewest_beyond(all)
}

/// The fewest certain comparisons of `all` that chance does not make in one of forty cases.
pub(super) fn fewest_beyond(all: usize) -> usize {
    // The chance of exactly `count` certain ones, and of more than that.
    let mut exactly = libm::pow(1.0 - ALONE, all as f64);
    let mut more = 1.0 - exactly;
    let mut count = 0;
    // A millionth more, for rounding: one comparison of one must be enough.
    while more > ALONE * (1.0 + 1e-6) && count < all {
        count += 1;
        exactly *= (all - count + 1) as f64 / count as f64 * ALONE / (1.0 - ALONE);
        more -= exactly;
    }
    count + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_one_is_enough_and_of_many_it_takes_several() {
        // Sums of the binomial distribution: of 20 at p = .025, P(3 or more) = .013 and P(2 or more) = .088.
        let fewest = [(1, 1), (2, 2), (10, 2), (11, 3), (20, 3), (40, 4), (72, 6)];
        for (all, expected) in fewest {
            assert_eq!(fewest_beyond(all), expected, "of {all}");
        }
    }

    #[test]
    fn one_that_stands_against_all_is_enough() {
        assert!(!is_beyond(1, false, 20));
        assert!(is_beyond(1, true, 20));
        assert!(is_beyond(3, false, 20));
    }
}
