//! The outcome of a test with many comparisons, at the error rate of a single one.
//!
//! A test requires that `needed` of `all` comparisons are true: all of them, a share, or one. The interval of each
//! comparison misses the truth on one side in one of forty cases, so among forty comparisons without an effect about one
//! shows an effect by chance. Comparisons depend on each other: points share seeds, and a point is part of several
//! comparisons. The rule holds under any dependence.
//!
//! Showing that `needed` of `all` are true means refuting that `all - needed + 1` are false. If that many are false, the
//! probability that any of their intervals says otherwise is at most the sum of their error probabilities. So each
//! interval is as wide as for a family of `all - needed + 1` comparisons (Bonferroni), and `needed` comparisons must hold:
//! Benjamini and Heller, "Screening for partial conjunction hypotheses", Biometrics 64 (2008), theorem 1 with the
//! Bonferroni combination. The same rule with the sides exchanged refutes the test:
//!
//! | required | shown by | refuted by |
//! |---|---|---|
//! | all of k | k that hold, each with an interval of its own | one that fails in a family of k |
//! | one of k | one that holds in a family of k | k that fail, each with an interval of its own |
//! | m of k | m that hold in a family of k - m + 1 | k - m + 1 that fail in a family of m |

use super::compare::Outcome;

/// The number of comparisons out of `all` that a `share` requires, at least one.
pub(super) fn needed(share: f64, all: usize) -> usize {
    // A product such as 0.55 * 100 exceeds a whole number by its rounding.
    let least = libm::ceil(share * all as f64 - 1e-6) as usize;
    least.clamp(1, all.max(1))
}

/// The sizes of the families whose intervals decide a test.
#[derive(Clone, Copy, Debug)]
pub(super) struct Families {
    /// The family in which comparisons must hold.
    pub holds: usize,
    /// The family in which comparisons must fail.
    pub fails: usize,
}

impl Families {
    /// The families of `all` comparisons of which `needed` must be true, in a claim of `tests` tests.
    pub fn of(all: usize, needed: usize, tests: usize) -> Self {
        Self { holds: all + 1 - needed, fails: needed * tests.max(1) }
    }
}

/// The outcome of `all` comparisons of which `needed` must be true. `count` gives the number of comparisons with an
/// outcome, each with an interval for a family of that size. Each of the `tests` of a claim can refute it, so they share
/// the error rate of a refutation.
pub(super) fn decide(
    all: usize,
    needed: usize,
    tests: usize,
    count: impl Fn(Outcome, usize) -> usize,
) -> Outcome {
    if all == 0 {
        return Outcome::Unclear;
    }
    let families = Families::of(all, needed, tests);
    if count(Outcome::Holds, families.holds) >= needed {
        Outcome::Holds
    } else if count(Outcome::Fails, families.fails) > all - needed {
        Outcome::Fails
    } else {
        Outcome::Unclear
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_asks_for_whole_comparisons_and_for_one_at_least() {
        let asked = [(1.0, 20), (0.8, 20), (0.8, 7), (0.0, 20), (0.5, 1), (1.0, 0)];
        assert_eq!(asked.map(|(share, all)| needed(share, all)), [20, 16, 6, 1, 1, 1]);
    }

    #[test]
    fn the_family_is_as_large_as_what_chance_could_choose_from() {
        // Families that were asked for: those that hold, and those that fail.
        let asked = |all, needed, tests| {
            let families = std::cell::RefCell::new(Vec::new());
            let nothing = decide(all, needed, tests, |outcome, family| {
                families.borrow_mut().push((outcome, family));
                0
            });
            assert_eq!(nothing, Outcome::Unclear);
            families.into_inner().into_iter().map(|(_, family)| family).collect::<Vec<_>>()
        };
        assert_eq!(asked(20, 20, 1), [1, 20], "all");
        assert_eq!(asked(20, 1, 1), [20, 1], "one");
        assert_eq!(asked(20, 16, 1), [5, 16], "a share");
        assert_eq!(asked(20, 20, 3), [1, 60], "one of three tests");
    }

    #[test]
    fn enough_must_hold_or_enough_must_fail() {
        let of = |holds: usize, fails: usize| {
            move |outcome, _: usize| match outcome {
                Outcome::Holds => holds,
                Outcome::Fails => fails,
                Outcome::Unclear => 0,
            }
        };
        assert_eq!(decide(10, 8, 1, of(8, 0)), Outcome::Holds);
        assert_eq!(decide(10, 8, 1, of(7, 2)), Outcome::Unclear);
        assert_eq!(decide(10, 8, 1, of(7, 3)), Outcome::Fails);
        assert_eq!(decide(0, 1, 1, of(0, 0)), Outcome::Unclear);
    }
}
