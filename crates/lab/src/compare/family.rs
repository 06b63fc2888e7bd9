//! Corrects the p-values of many differences. Without a correction, one of twenty differences without an effect is
//! significant by chance.
//!
//! The procedure is Holm's ("A simple sequentially rejective multiple test procedure", Scandinavian Journal of
//! Statistics 6, 1979): the smallest of m p-values is multiplied by m, the next by m - 1, and so on, and none becomes
//! smaller than the one before it. The probability of any false positive at 5 % is then at most 5 % for the whole family,
//! under any dependence: metrics of one run depend on each other, and so do pairs with a common side.

use crate::statistics::QUANTILE;

/// The significance level: 5 %, that of the intervals.
pub const LEVEL: f64 = 2.0 * (1.0 - QUANTILE);

/// The p-values of a family after the correction, in the same order.
pub fn holm(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|a, b| chances[*a].total_cmp(&chances[*b]));
    let mut together = vec![0.0; chances.len()];
    let mut least = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        let larger = chances[index] * (chances.len() - rank) as f64;
        least = least.max(larger.min(1.0));
        together[index] = least;
    }
    together
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_are_those_of_r() {
        // p.adjust(c(.01, .04, .03, .005, .55), "holm")
        let found = holm(&[0.01, 0.04, 0.03, 0.005, 0.55]);
        for (found, expected) in found.iter().zip([0.04, 0.09, 0.09, 0.025, 0.55]) {
            assert!((found - expected).abs() < 1e-12, "{found}");
        }
    }

    #[test]
    fn a_single_p_value_stays_and_none_exceeds_one() {
        assert_eq!(holm(&[0.03]), [0.03]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }

    #[test]
    fn of_twenty_differences_of_nothing_the_luckiest_is_not_marked() {
        // Without effects, p-values are evenly spread: the smallest is .025 and significant on its own.
        let chances: Vec<f64> = (0..20).map(|i| 0.025 + f64::from(i) * 0.05).collect();
        assert!(chances[0] < LEVEL);
        assert!(holm(&chances).iter().all(|chance| *chance >= LEVEL));
    }
}
