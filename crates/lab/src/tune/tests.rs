//! The search over made-up networks whose best numbers are known.

use std::collections::BTreeSet;
use std::sync::Mutex;

use lowmesh_congestion::Timer;
use lowmesh_congestion::timer::cocoa::rows::{COCOA, SIX_COCOA_ROW};
use lowmesh_congestion::timer::rfc7252;
use lowmesh_registry::{Choice, Row, Value};
use lowmesh_sim::record::{Ending, Outcome, Transaction};
use lowmesh_units::rng::draw_unit;
use lowmesh_units::{Duration, Instant, NodeId, Purpose};

use super::*;
use crate::simulate::RunError;
use crate::statistics::Estimate;

fn request(objective: Objective) -> Request {
    Request { objective, budget: 200, seeds: 8, jobs: 2 }
}

/// The number of a candidate.
fn number(candidate: &Candidate, key: &str) -> f64 {
    let Some(Value::Number(number)) = candidate.value(key) else { panic!("a drawn set won") };
    *number
}

/// The number that replaces a default.
fn replaced(timer: &Choice<dyn Timer>, key: &str) -> Option<f64> {
    timer.replacement(key).map(|_| timer.number(key))
}

fn scenario() -> Scenario {
    Scenario::parse("x", "name = \"x\"\nseed = 100\nwarmup = \"0s\"", &[]).expect("valid")
}

/// A thousand transactions with this TDR and one delay for all.
fn outcome(tdr: f64, delay: Duration) -> Outcome {
    let sent = Instant::from_secs(1);
    let transaction = |i: u32| Transaction {
        node: NodeId(1),
        issued: sent,
        sent: Some(sent),
        ended: Some(sent + delay),
        ending: if f64::from(i) < tdr * 1000.0 {
            Ending::Acknowledged
        } else {
            Ending::Failed(lowmesh_machine::DropReason::GaveUp)
        },
        retransmissions: 0,
        rto: None,
    };
    let simulated = Duration::from_secs(3600);
    Outcome { transactions: (0..1000).map(transaction).collect(), simulated, ..Outcome::default() }
}

/// Luck of a seed, the same for every set: from -0.1 to 0.1.
fn luck(seed: Seed) -> f64 {
    (draw_unit(seed, Purpose::Reception, 0, 0) - 0.5) / 5.0
}

/// A network that wants a large `lambda_weak`; the published .1 and .25 are far from its best.
#[expect(clippy::unnecessary_wraps, reason = "the shape of `Simulate`")]
fn wants_weak(
    s: &Scenario,
    seed: Seed,
    _: Sinks,
    _: &dyn Fn(Instant),
) -> Result<Outcome, RunError> {
    let lambda = replaced(&s.coap.congestion, "lambda_weak").unwrap_or(0.2);
    let tdr = 0.8 - 0.5 * (lambda - 0.7) * (lambda - 0.7) + luck(seed);
    Ok(outcome(tdr, Duration::from_secs(1)))
}

/// A network to which all timers are one.
#[expect(clippy::unnecessary_wraps, reason = "the shape of `Simulate`")]
fn indifferent(
    _: &Scenario,
    seed: Seed,
    _: Sinks,
    _: &dyn Fn(Instant),
) -> Result<Outcome, RunError> {
    Ok(outcome(0.8 + luck(seed), Duration::from_secs(1)))
}

fn tune(timer: &'static Row<dyn Timer>, request: Request, simulate: &Simulate<'_>) -> Tuned {
    Plan::new(request, Space::of_timer(timer))
        .expect("a possible request")
        .execute(&scenario(), None, simulate, &|_| ())
        .expect("no store")
}

#[test]
fn the_search_finds_a_known_best_value_and_shows_its_gain() {
    let tuned = tune(&COCOA, request(Objective::Tdr), &wants_weak);
    let found = number(&tuned.best, "cocoa.lambda_weak");
    assert!((found - 0.7).abs() < 0.08, "{found}");
    for one in &tuned.compared[..3] {
        let gain = one.gain.expect("a published set that did not win");
        assert_eq!(gain.verdict(), Verdict::Better);
        // 0.5 * 0.5^2, less what the winner is off; the luck of seeds cancels out.
        let Estimate { mean, ci95, n } = gain.objective.expect("eight pairs");
        assert!(
            (mean - 0.125).abs() < 0.01 && ci95.expect("eight pairs") < 0.01 && n == 8,
            "{mean}"
        );
    }
    assert_eq!(
        tuned.conclusion(),
        "the best set of the search, in tdr: better than default, cocoa, 6cocoa"
    );
}

#[test]
fn the_best_ack_timeout_of_the_default_timer_is_found_by_its_delay() {
    let simulate = |s: &Scenario, _: Seed, _: Sinks, _: &dyn Fn(Instant)| {
        let off = s.coap.ack_timeout.as_secs_f64() - 8.0;
        Ok(outcome(0.9, Duration::from_secs_f64(2.0 + off.abs())))
    };
    let tuned = tune(&rfc7252::ROW, request(Objective::DelayP95), &simulate);
    let Some(Value::Time(found)) = tuned.best.value("coap.ack_timeout") else {
        panic!("a drawn set won")
    };
    assert!((found.as_secs_f64() - 8.0).abs() < 1.0, "{found}");
    assert!(tuned.best.to_toml().contains("congestion = \"default\"\nack_timeout = \""));
}

#[test]
fn the_best_parameter_of_a_scheduling_function_is_found() {
    let scenario = Scenario::parse("x", "name = \"x\"\nwarmup = \"0s\"", &[]).expect("valid");
    let space = Space::of_keys(&scenario, &["schedule.housekeeping".to_owned()]);
    let simulate = |s: &Scenario, _: Seed, _: Sinks, _: &dyn Fn(Instant)| {
        let ratio = s.schedule.time("housekeeping").as_secs_f64() / 600.0;
        Ok(outcome(0.9, Duration::from_secs_f64(2.0 + ratio.ln().abs())))
    };
    let plan = Plan::new(request(Objective::DelayP95), space.expect("B-MSF has it"));
    let tuned = plan.expect("possible").execute(&scenario, None, &simulate, &|_| ());
    let tuned = tuned.expect("no store");
    let Some(Value::Time(found)) = tuned.best.value("schedule.housekeeping") else {
        panic!("a drawn set won")
    };
    assert!((400.0..900.0).contains(&found.as_secs_f64()), "{found}");
    assert!(tuned.best.to_toml().starts_with("[schedule]\nhousekeeping = \""));
    assert_eq!(tuned.compared[0].candidate.published, Some("unchanged"));
}

#[test]
fn where_nothing_is_to_be_gained_that_is_said() {
    let tuned = tune(&COCOA, request(Objective::Tdr), &indifferent);
    assert_eq!(tuned.best.published, Some("default"));
    assert_eq!(
        tuned.conclusion(),
        "no set did better in the search than `default`, which was not tuned"
    );
    for one in &tuned.compared[1..] {
        assert_eq!(one.gain.map(|gain| gain.verdict()), Some(Verdict::NotShown));
    }
}

#[test]
fn luck_in_the_search_is_not_reported_as_gain() {
    // Every drawn set is lucky on the seeds of the search, and no better than the published ones after.
    let chance = |s: &Scenario, seed: Seed, _: Sinks, _: &dyn Fn(Instant)| {
        let drawn = replaced(&s.coap.congestion, "alpha").map(f64::to_bits);
        let tdr = match drawn {
            None => 0.8,
            Some(_) if seed < Seed(118) => 0.9,
            Some(key) => 0.7 + 0.2 * draw_unit(seed, Purpose::Reception, 1, key),
        };
        Ok(outcome(tdr, Duration::from_secs(1)))
    };
    let request = Request { seeds: 30, ..request(Objective::Tdr) };
    let tuned = tune(&COCOA, request, &chance);
    assert_eq!(tuned.best.published, None);
    assert_eq!(
        tuned.conclusion(),
        "the best set of the search, in tdr: no gain shown over default, cocoa, 6cocoa; \
         stay with a set that was not tuned"
    );
}

#[test]
fn the_result_does_not_depend_on_the_number_of_jobs() {
    let with = |jobs| {
        let request = Request { jobs, ..request(Objective::Weighted) };
        tune(&SIX_COCOA_ROW, request, &wants_weak)
    };
    let one = with(1);
    assert_eq!(one, with(4));
    assert_eq!(one.to_json(), with(3).to_json());
}

#[test]
fn no_seed_of_the_comparison_was_used_in_the_search_and_all_sets_share_seeds() {
    let used = Mutex::new((false, BTreeSet::new(), BTreeSet::new()));
    let simulate = |s: &Scenario, seed: Seed, sinks: Sinks, p: &dyn Fn(Instant)| {
        let mut used = used.lock().expect("no test thread panics");
        if used.0 {
            used.2.insert((seed, s.to_toml()));
        } else {
            used.1.insert(seed);
        }
        drop(used);
        wants_weak(s, seed, sinks, p)
    };
    let observe = |event: TuneEvent<'_>| {
        if matches!(event, TuneEvent::Compare(..)) {
            used.lock().expect("no test thread panics").0 = true;
        }
    };
    let plan = Plan::new(request(Objective::Tdr), Space::of_timer(&COCOA)).expect("possible");
    let tuned = plan.execute(&scenario(), None, &simulate, &observe).expect("no store");
    let (_, search, comparison) = used.into_inner().expect("no test thread panics");
    assert_eq!(search, (100..118).map(Seed).collect());
    let seeds: BTreeSet<Seed> = comparison.iter().map(|(seed, _)| *seed).collect();
    assert_eq!(seeds, (118..126).map(Seed).collect());
    assert_eq!(comparison.len(), 8 * 4, "three published sets and the winner, each on every seed");
    assert_eq!((tuned.search_seeds, tuned.held_out_seeds), ((100, 117), (118, 125)));
}

#[test]
fn as_many_runs_are_made_as_were_announced() {
    let ended = Mutex::new(0);
    let observe = |event: TuneEvent<'_>| {
        if let TuneEvent::Run(Progress::Finished(_)) = event {
            *ended.lock().expect("no test thread panics") += 1;
        }
    };
    let plan = Plan::new(request(Objective::Tdr), Space::of_timer(&COCOA)).expect("possible");
    plan.execute(&scenario(), None, &wants_weak, &observe).expect("no store");
    assert_eq!(ended.into_inner().expect("no test thread panics"), plan.runs());
}

#[test]
fn failed_runs_are_counted_and_decide_nothing() {
    let simulate = |s: &Scenario, seed: Seed, sinks: Sinks, p: &dyn Fn(Instant)| {
        if seed == Seed(101) || seed == Seed(120) {
            return Err(RunError::Scenario("no place found".to_owned()));
        }
        wants_weak(s, seed, sinks, p)
    };
    let tuned = tune(&COCOA, request(Objective::Tdr), &simulate);
    assert!((number(&tuned.best, "cocoa.lambda_weak") - 0.7).abs() < 0.08);
    assert_eq!(tuned.failures.len(), 44 + 4, "one of each candidate, then one of each contender");
    assert_eq!(tuned.compared[0].value.map(|value| value.n), Some(7));
}

#[test]
fn a_request_that_makes_no_sense_is_refused_with_the_reason() {
    let plan = |request| Plan::new(request, Space::of_timer(&COCOA));
    let refused = |request| plan(request).expect_err("impossible").to_string();
    let good = request(Objective::Tdr);
    assert!(refused(Request { budget: 29, ..good }).ends_with("the smallest search takes 30"));
    assert!(refused(Request { seeds: 1, ..good }).contains("no confidence interval"));
    assert!(plan(Request { budget: 30, seeds: 2, ..good }).is_ok());
}
