//! Successive halving: many candidates on few seeds, the best third of them on three times as many, and so on.
//!
//! After Karnin, Koren, Somekh 2013 and Jamieson, Talwalkar 2016, with eta 3. Seeds of a rung contain those of the
//! rung before, so that only new ones are run; all candidates of a rung see the same seeds (common random
//! numbers), so that luck of the radio is no difference between them.

/// One candidate in this many goes on to the next rung, on this many times as many seeds. Jamieson and Talwalkar
/// take 3 or 4; 3 throws fewer good ones away on a noisy first rung.
pub const ETA: u32 = 3;
/// Seeds of the first rung. One run of a mesh says little: one parent change moves its TDR by points.
pub const FIRST_SEEDS: u32 = 2;

/// How many candidates run on how many seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Candidates.
    pub candidates: u32,
    /// Seeds of each, those of earlier rungs included.
    pub seeds: u32,
}

/// The rungs for `candidates`; the last has fewer than would leave two after another cut.
pub fn rungs(candidates: u32) -> Vec<Rung> {
    let mut rungs = vec![Rung { candidates, seeds: FIRST_SEEDS }];
    let mut rung = rungs[0];
    while rung.candidates / ETA >= ETA {
        rung = Rung { candidates: rung.candidates / ETA, seeds: rung.seeds * ETA };
        rungs.push(rung);
    }
    rungs
}

/// Runs that these rungs take.
pub fn cost(rungs: &[Rung]) -> u32 {
    let mut before = 0;
    let mut runs = 0;
    for rung in rungs {
        runs += rung.candidates * (rung.seeds - before);
        before = rung.seeds;
    }
    runs
}

/// The most candidates whose rungs take no more than `budget` runs, but at least `least`.
pub fn affordable(budget: u32, least: u32) -> u32 {
    let most = (budget / FIRST_SEEDS).max(least);
    (least..=most).rev().find(|candidates| cost(&rungs(*candidates)) <= budget).unwrap_or(least)
}

/// Candidates by falling score, equal ones in their own order, the first `keep` of them.
///
/// `scores` holds for each candidate its score on each seed. A seed on which one of them has none (its run
/// failed) counts for none of them: a candidate must not win by luck of the seeds it was spared.
pub fn best(scores: &[(usize, Vec<Option<f64>>)], keep: usize) -> Vec<usize> {
    let seeds = scores.iter().map(|(_, scores)| scores.len()).min().unwrap_or_default();
    let whole: Vec<usize> = (0..seeds)
        .filter(|seed| scores.iter().all(|(_, scores)| scores[*seed].is_some()))
        .collect();
    let total =
        |scores: &[Option<f64>]| -> f64 { whole.iter().filter_map(|seed| scores[*seed]).sum() };
    let mut ranked: Vec<(usize, f64)> =
        scores.iter().map(|(candidate, scores)| (*candidate, total(scores))).collect();
    // The sort is stable, so candidates with equal scores stay in the order they came in.
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.into_iter().take(keep).map(|(candidate, _)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rung_has_a_third_of_the_candidates_and_three_times_the_seeds() {
        let found: Vec<_> = rungs(44).iter().map(|rung| (rung.candidates, rung.seeds)).collect();
        assert_eq!(found, [(44, 2), (14, 6), (4, 18)]);
        // 44 * 2 + 14 * 4 + 4 * 12: what a candidate has run already is not run again.
        assert_eq!(cost(&rungs(44)), 88 + 56 + 48);
    }

    #[test]
    fn the_search_stays_within_its_budget_and_uses_most_of_it() {
        for budget in [30, 60, 100, 200, 500, 1000, 5000] {
            let runs = cost(&rungs(affordable(budget, 4)));
            assert!(runs <= budget && runs * 10 >= budget * 8, "{runs} of {budget}");
        }
        assert_eq!(affordable(1, 4), 4);
    }

    #[test]
    fn the_best_are_kept_and_equal_ones_stay_in_order() {
        let scores = [(7, 0.2), (1, 0.9), (4, 0.2), (2, 0.5)].map(|(i, s)| (i, vec![Some(s)]));
        assert_eq!(best(&scores, 4), [1, 2, 7, 4]);
        assert_eq!(best(&scores, 1), [1]);
        assert_eq!(best(&[], 3), [0_usize; 0]);
    }

    #[test]
    fn a_seed_that_failed_for_one_counts_for_none() {
        let spared = (0, vec![Some(0.6), None]);
        let other = (1, vec![Some(0.7), Some(0.1)]);
        assert_eq!(best(&[spared, other], 1), [1]);
    }
}
