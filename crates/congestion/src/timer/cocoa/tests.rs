//! The formulas and tables of the sources, in numbers.

use lowmesh_units::{NodeId, Purpose, Seed};

use super::parameters::{DRAFT_03, ECOAP, PAPER_TEXT, SIX_COCOA, TABLE_2};
use super::*;

fn rng() -> Rng {
    Rng::stream(Seed(5), NodeId(1), Purpose::Coap)
}

fn sample(timer: &mut Cocoa, ms: u64, retransmissions: u8) -> f64 {
    timer.on_sample(Duration::from_millis(ms), retransmissions, Instant::ZERO);
    timer.snapshot().rto.as_secs_f64()
}

fn close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-6, "{actual} is not {expected}");
}

#[test]
fn the_first_strong_sample_starts_the_estimator_and_moves_half_way() {
    // Claim S000-02: eq 3, 6, 7 with R = 1 s: 1 + 4 * 0.5 = 3 s; 0.5 * 3 + 0.5 * 2 = 2.5 s.
    let mut timer = Cocoa::new(&TABLE_2);
    close(timer.snapshot().rto.as_secs_f64(), 2.0);
    close(sample(&mut timer, 1000, 0), 2.5);
    let strong = timer.snapshot().strong.expect("a strong sample");
    assert_eq!((strong.srtt, strong.rttvar), (Duration::from_secs(1), Duration::from_millis(500)));
    assert_eq!(timer.snapshot().weak, None);
}

#[test]
fn the_first_weak_sample_moves_a_quarter() {
    // Claim S000-02: 1 + 1 * 0.5 = 1.5 s; 0.25 * 1.5 + 0.75 * 2 = 1.875 s.
    let mut timer = Cocoa::new(&TABLE_2);
    close(sample(&mut timer, 1000, 1), 1.875);
    assert_eq!(timer.snapshot().strong, None);
    assert_eq!(timer.snapshot().srtt, Some(Duration::from_secs(1)));
}

#[test]
fn the_second_sample_follows_the_gains_of_the_set() {
    // R = 1 s then 2 s. Table 2, RTTVAR from the old RTT: RTT 1.125, RTTVAR .75 * .5 + .25 * 1 = .625,
    // RTO 3.625, overall 3.0625.
    let mut table_2 = Cocoa::new(&TABLE_2);
    sample(&mut table_2, 1000, 0);
    close(sample(&mut table_2, 2000, 0), 3.0625);
    // Text, RTTVAR from the new RTT: RTT 1.25, RTTVAR .875 * .5 + .125 * .75 = .53125, RTO 3.375, overall 2.9375.
    let mut text = Cocoa::new(&PAPER_TEXT);
    sample(&mut text, 1000, 0);
    close(sample(&mut text, 2000, 0), 2.9375);
    // Draft: as table 2.
    let mut draft = Cocoa::new(&DRAFT_03);
    sample(&mut draft, 1000, 0);
    close(sample(&mut draft, 2000, 0), 3.0625);
    // 6CoCoA: first 1 + 2 * .5 = 2 s, overall 2 s; then RTT 1.9, RTTVAR .25 + .5 = .75, RTO 3.4,
    // overall 3.05.
    let mut six = Cocoa::new(&SIX_COCOA);
    close(sample(&mut six, 1000, 0), 2.0);
    close(sample(&mut six, 2000, 0), 3.05);
}

#[test]
fn the_weak_estimator_takes_as_many_retransmissions_as_the_set_says() {
    for (set, takes) in [(&TABLE_2, 1), (&PAPER_TEXT, 1), (&SIX_COCOA, 1), (&DRAFT_03, 2)] {
        let mut timer = Cocoa::new(set);
        close(sample(&mut timer, 9000, takes + 1), 2.0);
        assert!(sample(&mut timer, 9000, takes) > 2.0, "{}", set.name);
    }
    let mut testbed = Cocoa::new(&ECOAP);
    sample(&mut testbed, 9000, 3);
    assert!(sample(&mut testbed, 9000, 200) > 2.0);
}

#[test]
fn the_testbeds_first_sample_leaves_the_rto_at_2_s() {
    let mut timer = Cocoa::new(&ECOAP);
    close(sample(&mut timer, 23, 0), 2.0);
    // RTT .023 stays, RTTVAR .75 * .0115, RTO .0575, overall 1.02875.
    close(sample(&mut timer, 23, 0), 1.02875);
}

#[test]
fn the_first_timeout_is_dithered_up_to_half_as_much_again() {
    // Claim S000-03.
    let mut rng = rng();
    let mut timer = Cocoa::new(&TABLE_2);
    sample(&mut timer, 1000, 0);
    let ratios: std::vec::Vec<f64> =
        (0..10_000).map(|_| timer.initial(Instant::ZERO, &mut rng).as_secs_f64() / 2.5).collect();
    let low = ratios.iter().copied().fold(f64::MAX, f64::min);
    let high = ratios.iter().copied().fold(f64::MIN, f64::max);
    assert!((1.0..1.001).contains(&low) && (1.499..1.5).contains(&high), "{low}..{high}");
}

fn factor(set: &'static Parameters, initial_ms: u64) -> f64 {
    let initial = Duration::from_millis(initial_ms);
    let attempt = Attempt { initial, previous: Duration::from_secs(1), number: 1 };
    Cocoa::new(set).backoff(attempt, &mut rng()).as_secs_f64()
}

#[test]
fn the_papers_back_off_factor_is_3_then_2_then_1_3() {
    // Claim S000-04, eq 9.
    close(factor(&PAPER_TEXT, 999), 3.0);
    close(factor(&PAPER_TEXT, 1000), 2.0);
    close(factor(&PAPER_TEXT, 3000), 2.0);
    close(factor(&PAPER_TEXT, 3001), 1.3);
}

#[test]
fn table_2_has_the_parameters_of_cocoa_and_6cocoa() {
    // Claims S000-08 and S000-09.
    let row = |set: &Parameters| {
        (
            [set.lambda.strong, set.lambda.weak, set.k.strong, set.k.weak, set.alpha, set.beta],
            [set.backoff.lower.as_secs(), set.backoff.upper.as_secs()],
        )
    };
    assert_eq!(row(&TABLE_2), ([0.5, 0.25, 4.0, 1.0, 0.125, 0.25], [1, 3]));
    assert_eq!(row(&SIX_COCOA), ([0.75, 0.1, 2.0, 0.5, 0.9, 0.5], [20, 50]));
    for (ms, expected) in [(500, 2.5), (2000, 2.0), (4000, 1.5)] {
        close(factor(&TABLE_2, ms), expected);
    }
    for (ms, expected) in [(19_999, 2.2), (20_000, 1.5), (50_001, 1.1)] {
        close(factor(&SIX_COCOA, ms), expected);
    }
}

#[test]
fn the_testbeds_factor_follows_the_overall_rto_not_the_dithered_one() {
    let mut timer = Cocoa::new(&ECOAP);
    for _ in 0..4 {
        sample(&mut timer, 23, 0);
    }
    assert!(timer.snapshot().rto < Duration::from_secs(1));
    let initial = Duration::from_millis(1200);
    let attempt = Attempt { initial, previous: initial, number: 1 };
    assert_eq!(timer.backoff(attempt, &mut rng()), Duration::from_millis(3600));
}

#[test]
fn the_drafts_back_off_is_truncated_at_32_s_and_dithered() {
    let mut rng = rng();
    let previous = Duration::from_secs(30);
    let attempt = Attempt { initial: Duration::from_secs(2), previous, number: 4 };
    for _ in 0..1000 {
        let wait = Cocoa::new(&DRAFT_03).backoff(attempt, &mut rng);
        assert!(wait >= Duration::from_secs(32) && wait < Duration::from_secs(48), "{wait}");
    }
}

#[test]
fn the_overall_rto_stops_at_60_s() {
    let mut timer = Cocoa::new(&TABLE_2);
    for _ in 0..50 {
        sample(&mut timer, 3_600_000, 0);
    }
    close(timer.snapshot().rto.as_secs_f64(), 60.0);
}

#[test]
fn an_idle_timer_ages_before_it_is_used() {
    let mut timer = Cocoa::new(&TABLE_2);
    for _ in 0..12 {
        sample(&mut timer, 20, 0);
    }
    assert!(timer.snapshot().rto < Duration::from_millis(100));
    assert_eq!(timer.overall_at(Instant::from_secs(60)), Duration::from_secs(1));
    assert!(timer.initial(Instant::from_secs(60), &mut rng()) >= Duration::from_secs(1));
}
