//! What every [`Gate`] must keep, as a check that its author calls in a test.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use lowmesh_registry::{Breach, Row};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};

use super::{Gate, Path, Permit, Sample, make};

/// Random histories that a gate goes through.
const HISTORIES: u64 = 100;
/// Events of a history.
const EVENTS: usize = 300;
/// The longest a gate may keep a request that is alone; ours.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Checks the row and the gate that it makes, over random histories: a request leaves within a minute when none is under
/// way, what is under way is counted, a permit for a later time is for a later time, and the same history gives the same
/// permits.
///
/// ```
/// use lowmesh_group::gate::{aimd, conformance};
/// conformance::check(&aimd::ROW)?;
/// # Ok::<(), lowmesh_registry::Breach>(())
/// ```
pub fn check(row: &'static Row<dyn Gate>) -> Result<(), Breach> {
    row.check()?;
    for number in 0..HISTORIES {
        let permits = history(row, Seed(number)).map_err(|what| row.breach(what))?;
        if history(row, Seed(number)).as_ref() != Ok(&permits) {
            return Err(row.breach("the same history gives other permits"));
        }
    }
    Ok(())
}

fn history(row: &'static Row<dyn Gate>, seed: Seed) -> Result<Vec<Permit>, String> {
    let mut gate = make(&row.into());
    let mut rng = Rng::stream(seed, NodeId(0), Purpose::Coap);
    let mut now = Instant::ZERO;
    let (mut under_way, mut permits) = (Vec::new(), Vec::new());
    for _ in 0..EVENTS {
        now += rng.duration(Duration::ZERO, Duration::from_millis(200));
        if rng.chance(0.5) {
            let hops = rng.below(5) as u8;
            let path = Path { hops, first_hop: u64::from(rng.below(3)) };
            let permit = gate.permits(&path, now);
            check_permit(permit, under_way.is_empty(), now)?;
            permits.push(permit);
            if permit == Permit::Now {
                gate.on_sent(&path, now);
                under_way.push((path, now));
            }
        } else if !under_way.is_empty() {
            let (path, sent) = under_way.swap_remove(rng.below(under_way.len() as u32) as usize);
            match rng.below(10) {
                0 => gate.on_lost(&path, now),
                1 => gate.on_discarded(&path, now),
                retransmissions => {
                    let retransmissions = u8::from(retransmissions == 2);
                    let sample = Sample { rtt: now.since(sent), retransmissions };
                    gate.on_answer(&path, sample, now);
                }
            }
        }
        let counted = gate.snapshot().outstanding as usize;
        if counted != under_way.len() {
            return Err(format!(
                "it counts {counted} requests, and {} are under way",
                under_way.len()
            ));
        }
    }
    Ok(permits)
}

fn check_permit(permit: Permit, alone: bool, now: Instant) -> Result<(), String> {
    match permit {
        Permit::At(at) if at <= now => Err("it permits at a time that has passed".to_string()),
        Permit::At(at) if alone && at.since(now) > WAIT_MAX => {
            Err(format!("a request that is alone waits until {at}"))
        }
        Permit::Blocked | Permit::OtherPath if alone => {
            Err("it blocks a request, and none is under way".to_string())
        }
        _ => Ok(()),
    }
}
