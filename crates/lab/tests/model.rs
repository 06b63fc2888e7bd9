//! The trace of a small run, pinned.

use lowmesh_lab::scenario::Scenario;
use lowmesh_lab::simulate::{Sinks, simulate};
use lowmesh_units::Seed;

/// The hash over everything that happens in twenty minutes of `grid-25`.
const TRACE: u64 = 0x9144_3d57_9cba_7cc3;

/// A change that is meant to leave the model as it is, such as a refactoring, leaves this trace. One that changes it on
/// purpose notes the new trace here, and tells users in the changelog that runs give other numbers. Stored runs need no
/// care: their names depend on the sources.
#[test]
fn a_run_of_today_is_one_of_yesterday() {
    let sets = ["duration=20min", "warmup=10min", "traffic.start=5min"].map(str::to_owned);
    let scenario = Scenario::load("grid-25", &sets).expect("a built-in with possible overrides");
    let outcome = simulate(&scenario, Seed(1), Sinks::default(), &|_| ()).expect("it runs");
    assert_eq!(
        outcome.trace_hash, TRACE,
        "the model does something else now; if it is meant to, note the trace {:#018x}",
        outcome.trace_hash
    );
}
