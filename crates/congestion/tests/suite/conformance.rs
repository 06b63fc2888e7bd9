//! The conformance suite over the rows of all timers, their names and their numbers.

use lowmesh_congestion::params::ACK_TIMEOUT;
use lowmesh_congestion::{Timer, timer};
use lowmesh_registry::{Choice, Registry};
use lowmesh_units::{Duration, Instant};

#[test]
fn every_timer_keeps_the_rules() {
    assert_eq!(Registry::<dyn Timer>::builtin().breaches(), []);
}

#[test]
fn every_timer_has_the_name_of_its_row() {
    for row in Registry::builtin().rows() {
        let name = timer::make(&row.into(), ACK_TIMEOUT).name();
        assert!(name == row.name || (row.name, name) == ("cocoa/table-2", "cocoa"), "{name}");
    }
}

#[test]
fn a_number_over_the_set_changes_what_the_timer_does() {
    let overall_after_one_second = |choice: &Choice<dyn Timer>| {
        let mut timer = timer::make(choice, ACK_TIMEOUT);
        timer.on_sample(Duration::from_secs(1), 0, Instant::ZERO);
        timer.snapshot().rto.as_secs_f64()
    };
    // 1 s gives the strong estimator 1 + 4 * 0.5 = 3 s; 0.5 or 1.0 of it move the 2 s.
    let cocoa = Registry::<dyn Timer>::builtin().choose("cocoa").expect("a built-in row");
    let plain = overall_after_one_second(&cocoa);
    assert!((plain - 2.5).abs() < 1e-9, "{plain}");
    let own = overall_after_one_second(&cocoa.with("lambda_strong", 1.0).expect("in bounds"));
    assert!((own - 3.0).abs() < 1e-9, "{own}");
}

#[test]
fn names_and_keys_that_do_not_exist_are_answered_with_those_that_do() {
    let timers = Registry::<dyn Timer>::builtin();
    let text = timers.choose("cocao").expect_err("a slip of the pen").to_string();
    assert!(
        text.starts_with(
            "no congestion control is called `cocao` (did you mean `cocoa`?); there are"
        ),
        "{text}"
    );
    assert!(text.contains("cocoa/draft-03"), "{text}");
    let fixed = timers.choose("fixed").expect("a built-in row");
    let text = fixed.with("alpha", 0.5).expect_err("no CoCoA").to_string();
    assert_eq!(text, "`fixed` has no parameter `alpha`, and no other one");
}
