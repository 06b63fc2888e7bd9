//! The error rates of the model, by simulation with runs drawn from a known truth.

use lowmesh_units::{NodeId, Purpose, Rng, Seed};

use super::tests::{paper, verdict_of};
use super::*;
use crate::claims::select::tests::point;

/// Trials for each truth. With this number, a rate of 2.5 % exceeds 4.6 % in 0.15 % of cases.
const TRIALS: u64 = 600;
/// The largest accepted error rate: 2.5 % for one side of a 95 % interval, and the sampling error of [`TRIALS`].
const WRONG_MAX: f64 = 0.046;
/// The same for an interval that can miss a narrow range on either side.
const WRONG_ON_BOTH_SIDES_MAX: f64 = 0.078;

/// Normally distributed numbers.
struct Normal(Rng);

impl Normal {
    fn new(trial: u64) -> Self {
        Self(Rng::stream(Seed(trial), NodeId(0), Purpose::Traffic))
    }
    fn sample(&mut self, n: usize, mean: f64, deviation: f64) -> Vec<f64> {
        (0..n).map(|_| mean + deviation * self.0.normal()).collect()
    }
}

fn test(op: &str, rest: &str) -> String {
    format!("[[claim.test]]\nop = \"{op}\"\nmetric = \"tdr\"\nsweep = \"s\"\n{rest}\n")
}

/// The share of trials in which `points` give the verdict `wrong` on `tests`.
fn rate(tests: &str, wrong: Verdict, points: impl Fn(&mut Normal) -> Vec<PointResult>) -> f64 {
    let paper = paper(&[tests]);
    let is_wrong = |trial: &u64| verdict_of(&paper, points(&mut Normal::new(*trial))) == wrong;
    (0..TRIALS).filter(is_wrong).count() as f64 / TRIALS as f64
}

#[test]
fn what_is_not_equivalent_is_called_so_in_one_case_of_twenty_at_most() {
    let similar = test("similar", "tolerance = 0.05");
    let between = test("between", "low = -0.05\nhigh = 0.05");
    for tests in [&similar, &between] {
        for n in [3, 5, 10, 20] {
            // At the edge of the allowed values, which is the worst case, and beyond it; with little and much noise.
            for (truth, deviation) in [(0.05, 0.01), (0.05, 0.05), (-0.05, 0.5), (0.08, 0.05)] {
                let points =
                    |normal: &mut Normal| vec![point(&[], &normal.sample(n, truth, deviation))];
                let wrong = rate(tests, Verdict::Reproduced, points);
                assert!(wrong <= WRONG_MAX, "{wrong} with n {n}, {truth} +- {deviation}");
            }
        }
    }
}

#[test]
fn what_is_equivalent_is_found_with_runs_enough_and_left_open_with_few() {
    let similar = test("similar", "tolerance = 0.05");
    let found = |n, verdict| {
        rate(&similar, verdict, |normal| vec![point(&[], &normal.sample(n, 0.0, 0.05))])
    };
    assert!(found(20, Verdict::Reproduced) > 0.9);
    assert!(found(3, Verdict::Undecided) > 0.5, "three runs show little");
    assert!(found(3, Verdict::NotReproduced) <= WRONG_MAX);
}

/// Forty points with common seeds. `shared` is the correlation of a run with the common noise of its seed.
fn family(
    normal: &mut Normal,
    n: usize,
    shared: f64,
    truth: impl Fn(usize) -> f64,
) -> Vec<PointResult> {
    let of_seeds = normal.sample(n, 0.0, 1.0);
    let own = libm::sqrt(1.0 - shared * shared);
    let place = |number: usize| {
        let values: Vec<f64> = of_seeds
            .iter()
            .map(|common| truth(number) + 0.1 * (shared * common + own * normal.0.normal()))
            .collect();
        point(&[("p", &number.to_string())], &values)
    };
    (0..40).map(place).collect()
}

/// A test, the wrong verdict, and the truth of each comparison, at which this verdict is most likely.
type Case<'a> = (&'a str, Verdict, &'a dyn Fn(usize) -> f64);

#[test]
fn forty_comparisons_keep_the_level_however_they_depend_on_each_other() {
    let everywhere = test("gt", "");
    let nowhere = test("le", "");
    let most = test("gt", "share = 0.8");
    let some = test("exists", "");
    let zero = |_: usize| 0.0;
    let slightly = |_: usize| 1e-9;
    let one_lacks = |number: usize| if number == 0 { 0.0 } else { 1.0 };
    let too_few = |number: usize| if number < 9 { 0.0 } else { 1.0 };
    let cases: [Case<'_>; 6] = [
        (&everywhere, Verdict::NotReproduced, &slightly),
        (&everywhere, Verdict::Reproduced, &one_lacks),
        (&nowhere, Verdict::NotReproduced, &zero),
        (&most, Verdict::Reproduced, &too_few),
        (&some, Verdict::Reproduced, &zero),
        (&some, Verdict::NotReproduced, &slightly),
    ];
    for (tests, wrong, truth) in cases {
        for shared in [0.0, 0.7, 0.99] {
            let points = |normal: &mut Normal| family(normal, 10, shared, truth);
            let rate = rate(tests, wrong, points);
            assert!(rate <= WRONG_MAX, "{rate} {wrong:?} with {shared} shared: {tests}");
        }
    }
}

#[test]
fn a_range_narrower_than_the_noise_is_wrongly_refuted_in_one_case_of_twenty_at_most() {
    let similar = test("similar", "tolerance = 0.01");
    let centred = |normal: &mut Normal| vec![point(&[], &normal.sample(10, 0.0, 0.5))];
    let wrong = rate(&similar, Verdict::NotReproduced, centred);
    assert!(wrong <= WRONG_ON_BOTH_SIDES_MAX, "{wrong}");
    assert!(rate(&similar, Verdict::Reproduced, centred) == 0.0, "the noise hides it");
}

#[test]
fn a_claim_with_the_wrong_sign_never_holds() {
    // The truth contradicts the claim by three standard deviations, so it holds in no trial.
    let lower = |normal: &mut Normal| vec![point(&[], &normal.sample(5, -0.3, 0.1))];
    let higher = |normal: &mut Normal| vec![point(&[], &normal.sample(5, 0.3, 0.1))];
    for op in ["gt", "ge", "exists"] {
        assert!(rate(&test(op, ""), Verdict::Reproduced, lower) == 0.0, "{op}");
    }
    for op in ["lt", "le"] {
        assert!(rate(&test(op, ""), Verdict::Reproduced, higher) == 0.0, "{op}");
    }
    let approx = test("approx", "low = 0.05\nhigh = 0.5");
    assert!(rate(&approx, Verdict::Reproduced, lower) == 0.0);
    let falling = |normal: &mut Normal| {
        let at = |number: usize| -0.3 * number as f64;
        (0..5).map(|p| point(&[("p", &p.to_string())], &normal.sample(5, at(p), 0.1))).collect()
    };
    let rises = test("monotone_inc", "along = \"p\"");
    assert!(rate(&rises, Verdict::Reproduced, falling) == 0.0);
    assert!(rate(&rises, Verdict::NotReproduced, falling) > 0.99);
}

#[test]
fn a_level_curve_neither_rises_nor_falls_more_often_than_chance() {
    let rises = test("monotone_inc", "along = \"p\"");
    let level = |normal: &mut Normal| {
        (0..10).map(|p| point(&[("p", &p.to_string())], &normal.sample(10, 0.5, 0.1))).collect()
    };
    for wrong in [Verdict::Reproduced, Verdict::NotReproduced] {
        let rate = rate(&rises, wrong, level);
        assert!(rate <= WRONG_MAX, "{rate} {wrong:?}");
    }
}
