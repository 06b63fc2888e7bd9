//! Batches with made-up outcomes: what is run, what is taken from the store, and what a failure stops.

use std::fs;
use std::path::PathBuf;

use lowmesh_sim::record::Outcome;
use lowmesh_units::Instant;

use super::*;
use crate::plan::Shard;
use crate::simulate::RunError;

/// A store of the test's own, removed with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> (Self, Store) {
        let path =
            std::env::temp_dir().join(format!("lowmesh-batch-{test}-{}", std::process::id()));
        let store =
            Store::open(&path).expect("the system's folder for temporary files is writable");
        (Self(path), store)
    }
}
impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Depends on seed and scenario; seed 3 fails at 4 retries.
fn made_up(
    scenario: &Scenario,
    seed: Seed,
    _: Sinks,
    _: &dyn Fn(Instant),
) -> Result<Outcome, RunError> {
    if (seed, scenario.mac.retries()) == (Seed(3), 4) {
        return Err(RunError::Scenario("no luck".to_owned()));
    }
    let trace_hash = seed.0 * 1000 + u64::from(scenario.mac.retries());
    Ok(Outcome { trace_hash, simulated: scenario.head.duration, ..Outcome::default() })
}

/// Two points of `seeds` seeds.
fn plan(seeds: u32) -> Plan {
    let text = format!("name = \"x\"\nseeds = {seeds}\n[sweep]\n\"mac.retries\" = [4, 5]");
    Plan::parse("x", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn run(batch: Batch<'_>, how: How) -> Ended {
    batch.run(how, Sinks::default(), &made_up, &|_, _| ()).expect("the store is writable")
}

fn hashes(ended: &Ended) -> Vec<Vec<u64>> {
    let of = |point: &PointResult| point.runs.iter().map(|run| run.trace_hash).collect();
    ended.results.points.iter().map(of).collect()
}

#[test]
fn results_stand_in_the_order_of_points_and_seeds() {
    let plan = plan(2);
    let ended = run(Batch::new(&plan, plan.runs(), None), How { jobs: 3, fail_fast: false });
    assert_eq!(hashes(&ended), [[1004, 2004], [1005, 2005]]);
    assert_eq!((ended.skipped, ended.failed.len()), (0, 0));
}

#[test]
fn a_second_batch_runs_only_what_is_missing_and_gives_the_same_bytes() {
    let (_scratch, store) = Scratch::new("resume");
    let plan = plan(2);
    let first = run(Batch::new(&plan, plan.runs(), Some(&store)), How::default());
    let lost = plan.runs()[2];
    let build = store.folder().join(crate::build::BuildId::own().short());
    fs::remove_file(build.join(format!("{}.json", lost.id))).expect("stored");
    let batch = Batch::new(&plan, plan.runs(), Some(&store));
    assert_eq!(batch.missing(), [lost]);
    let second = run(batch, How::default());
    assert_eq!(second.results.to_json(), first.results.to_json());
    assert_eq!(second.results.to_csv(), first.results.to_csv());
    assert!(Batch::new(&plan, plan.runs(), Some(&store)).missing().is_empty());
}

#[test]
fn force_runs_what_is_stored_too() {
    let (_scratch, store) = Scratch::new("force");
    let plan = plan(2);
    run(Batch::new(&plan, plan.runs(), Some(&store)), How::default());
    let mut batch = Batch::new(&plan, plan.runs(), Some(&store));
    batch.force_first();
    assert_eq!(batch.missing(), plan.runs()[..1]);
    batch.force();
    assert_eq!(batch.missing(), plan.runs());
}

#[test]
fn a_failed_run_is_counted_and_not_stored_and_the_others_go_on() {
    let (_scratch, store) = Scratch::new("keep-going");
    let plan = plan(4);
    let ended = run(Batch::new(&plan, plan.runs(), Some(&store)), How::default());
    assert_eq!(hashes(&ended), [vec![1004, 2004, 4004], vec![1005, 2005, 3005, 4005]]);
    let (spec, failure) = &ended.failed[0];
    assert_eq!((spec.point, spec.seed, ended.failed.len()), (0, Seed(3), 1));
    assert_eq!(ended.results.points[0].failures, std::slice::from_ref(failure));
    assert_eq!(Batch::new(&plan, plan.runs(), Some(&store)).missing(), [*spec]);
}

#[test]
fn after_a_failure_fail_fast_begins_no_more_runs() {
    let (_scratch, store) = Scratch::new("fail-fast");
    let plan = plan(4);
    let batch = Batch::new(&plan, plan.runs(), Some(&store));
    let ended = run(batch, How { jobs: 1, fail_fast: true });
    assert_eq!((ended.failed.len(), ended.skipped), (1, 5));
    // What was finished before is kept.
    assert_eq!(hashes(&ended), [vec![1004, 2004], vec![]]);
    assert_eq!(store.ids().expect("readable").len(), 2);
}

#[test]
fn shards_in_one_store_make_the_whole() {
    let (_scratch, store) = Scratch::new("shards");
    let plan = plan(2);
    let whole = run(Batch::new(&plan, plan.runs(), None), How::default());
    for shard in ["1/2", "2/2"] {
        let part = shard.parse::<Shard>().expect("a shard").of(plan.runs());
        let ended = run(Batch::new(&plan, part, Some(&store)), How::default());
        assert_eq!(hashes(&ended).concat().len(), 2);
    }
    let batch = Batch::new(&plan, plan.runs(), Some(&store));
    assert!(batch.missing().is_empty());
    assert_eq!(run(batch, How::default()).results.to_json(), whole.results.to_json());
}

#[test]
fn a_store_that_cannot_be_written_ends_the_batch() {
    let (scratch, store) = Scratch::new("unwritable");
    fs::remove_dir(&scratch.0).expect("empty");
    let plan = plan(2);
    let batch = Batch::new(&plan, plan.runs(), Some(&store));
    let result = batch.run(How::default(), Sinks::default(), &made_up, &|_, _| ());
    assert!(matches!(result, Err(StoreError::Io { .. })), "{result:?}");
}

#[test]
fn the_time_of_missing_runs_follows_from_stored_ones_of_their_points_and_from_probes_of_others() {
    let (_scratch, store) = Scratch::new("cost");
    let plan = plan(2);
    let ended = run(Batch::new(&plan, plan.runs(), None), How::default());
    let store_run = |index: usize, wall_s: f64| {
        let spec = plan.runs()[index];
        let first = Run { wall_s, ..ended.results.points[spec.point].runs[0].clone() };
        store.put(spec.id, &plan.points[spec.point].scenario, &first).expect("writable");
    };
    let estimate = |jobs| {
        let batch = Batch::new(&plan, plan.runs(), Some(&store));
        batch.estimate(jobs, &made_up).expect("made-up runs succeed")
    };
    store_run(0, 2.0);
    // One more run of the first point; those of the other are probed, and take nearly no time.
    assert!((2.0..2.5).contains(&estimate(1)), "{}", estimate(1));
    store_run(2, 4.0);
    assert!((estimate(1) - 6.0).abs() < 1e-9);
    assert!((estimate(8) - 3.0).abs() < 1e-9, "two runs are missing, so two go at a time");
}
