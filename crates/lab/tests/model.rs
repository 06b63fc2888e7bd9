//! The version of the model and what it stands for.

use lowmesh_lab::identity::MODEL_VERSION;
use lowmesh_lab::scenario::Scenario;
use lowmesh_lab::simulate::{Sinks, simulate};
use lowmesh_units::Seed;

/// The trace of twenty minutes of `grid-25` under each version of the model; only the last line counts.
///
/// Version 8: a destination of fragments of IPv6 in the manner of GNRC keeps them as GNRC does, which this scenario does not show.
/// Version 7: in the manner of GNRC all fragments of a packet go to the MAC at once, and the packet buffer counts what GNRC's
/// does; the thin MAC senses energy alone; `lille-50` and `grenoble-t` let repeated frames pass and are as loud as RIOT sends. This
/// scenario shows none of it.
/// Version 6: the ends of recoverable fragments in the manner of GNRC keep their window and forget datagrams as GNRC does, which
/// this scenario does not show.
/// Version 5: MSF and B-MSF pause for half a minute only after the answers for which RFC 9033 asks it, and count each direction of a
/// link by itself; routes that a No-Path took back serve on for a minute.
/// Version 4: frames that leave at once count as waiting when the next is marked; the places of `lille-50` are known;
/// link estimates grow old, and the grids choose parents as RPL Classic does.
/// Version 3: `queue_loss_share` counts packets of applications alone.
/// Version 2: CoCoA's RTTVAR is updated from the old RTT, which this scenario, under the default timer, does not show.
const TRACES: [(u32, u64); 8] = [
    (1, 0xd86a_ff8f_770f_7cf7),
    (2, 0xd86a_ff8f_770f_7cf7),
    (3, 0xd86a_ff8f_770f_7cf7),
    (4, 0xa98e_b35c_ace7_7e06),
    (5, 0x9144_3d57_9cba_7cc3),
    (6, 0x9144_3d57_9cba_7cc3),
    (7, 0x9144_3d57_9cba_7cc3),
    (8, 0x9144_3d57_9cba_7cc3),
];

/// Stored runs are found again by scenario, seed and model version. So when the same scenario and seed give
/// another trace, the version must grow: raise `MODEL_VERSION` and add the new trace above.
#[test]
fn the_model_version_grows_with_every_change_of_what_a_run_does() {
    let sets = ["duration=20min", "warmup=10min", "traffic.start=5min"].map(str::to_owned);
    let scenario = Scenario::load("grid-25", &sets).expect("a built-in with possible overrides");
    let outcome = simulate(&scenario, Seed(1), Sinks::default(), &|_| ()).expect("it runs");
    assert_eq!(
        TRACES.last(),
        Some(&(MODEL_VERSION, outcome.trace_hash)),
        "the model does something else now: raise MODEL_VERSION and note the trace {:#018x}",
        outcome.trace_hash
    );
}
