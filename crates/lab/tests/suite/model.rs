//! The trace of a small run, pinned.

use lowmesh_lab::scenario::Scenario;
use lowmesh_lab::simulate::{Sinks, simulate};
use lowmesh_units::Seed;

/// The trace hash of twenty minutes of `grid-25`.
const TRACE: u64 = 0x916f_a845_548c_c948;

/// A change that must not alter the model, such as a refactoring, keeps this trace. An intended change of the model records
/// the new trace here, and the changelog says that runs give other numbers. Stored runs need no care: their names depend on
/// the sources.
#[test]
fn the_model_gives_the_recorded_trace() {
    let sets = ["duration=20min", "warmup=10min", "traffic.start=5min"].map(str::to_owned);
    let scenario = Scenario::load("grid-25", &sets).expect("a built-in with possible overrides");
    let outcome = simulate(&scenario, Seed(1), Sinks::default(), &|_| ()).expect("it runs");
    assert_eq!(
        outcome.trace_hash, TRACE,
        "the model has changed; if this is intended, record the trace {:#018x}",
        outcome.trace_hash
    );
}
