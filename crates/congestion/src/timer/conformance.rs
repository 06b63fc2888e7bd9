//! What every [`Timer`] must keep, as a check that its author calls in a test.
//!
//! The same check runs over all timers of this crate.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_registry::{Breach, Row};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};

use super::{Attempt, Timer, make};
use crate::params::{ACK_TIMEOUT, RTO_MAX, RTO_MIN, WAIT_MAX};
use crate::window::conformance::span;

/// Random histories that a timer goes through.
const HISTORIES: u64 = 200;
/// Events of a history.
const EVENTS: usize = 60;

/// Checks the row and the timer that it makes: declarations that fit together; over random histories waits within
/// [`RTO_MIN`] and [`WAIT_MAX`], of which at most one of a message is shorter than the one before; finite beliefs; and
/// the same waits for the same history and randomness.
///
/// ```
/// use lowmesh_congestion::timer::{conformance, fasor};
/// conformance::check(&fasor::ROW)?;
/// # Ok::<(), lowmesh_registry::Breach>(())
/// ```
pub fn check(row: &'static Row<dyn Timer>) -> Result<(), Breach> {
    let named = |what| row.breach(what);
    row.check()?;
    for number in 0..HISTORIES {
        let waits = history(row, Seed(number)).map_err(named)?;
        if history(row, Seed(number)).as_ref() != Ok(&waits) {
            return Err(row.breach("the same history gives other waits"));
        }
    }
    Ok(())
}

/// The waits of one random history.
fn history(row: &'static Row<dyn Timer>, seed: Seed) -> Result<Vec<Duration>, String> {
    let mut timer = make(&row.into(), ACK_TIMEOUT);
    let mut events = Rng::stream(seed, NodeId(0), Purpose::Swarm);
    let mut rng = Rng::stream(seed, NodeId(1), Purpose::Coap);
    let (mut now, mut waits) = (Instant::ZERO, Vec::new());
    for _ in 0..EVENTS {
        match events.below(4) {
            0 => message(timer.as_mut(), now, events.below(10) as u8, &mut rng, &mut waits)?,
            1 => timer.on_sample(span(&mut events), events.below(6) as u8, now),
            2 => timer.on_give_up(now),
            _ => now += span(&mut events),
        }
        beliefs(timer.as_ref())?;
    }
    Ok(waits)
}

/// A message with so many retransmissions.
fn message(
    timer: &mut dyn Timer,
    now: Instant,
    retransmissions: u8,
    rng: &mut Rng,
    waits: &mut Vec<Duration>,
) -> Result<(), String> {
    let initial = timer.initial(now, rng);
    let (mut previous, mut shorter) = (initial, 0);
    waits.push(initial);
    for number in 1..=retransmissions {
        let wait = timer.backoff(Attempt { initial, previous, number }, rng);
        shorter += u8::from(wait < previous);
        previous = wait;
        waits.push(wait);
    }
    if shorter > 1 {
        return Err(format!("{shorter} waits of a message are shorter than the ones before"));
    }
    match waits.iter().find(|wait| !(RTO_MIN..=WAIT_MAX).contains(wait)) {
        Some(wait) => Err(format!("it waits {wait}, not {RTO_MIN} to {WAIT_MAX}")),
        None => Ok(()),
    }
}

fn beliefs(timer: &dyn Timer) -> Result<(), String> {
    let snapshot = timer.snapshot();
    let estimators = [snapshot.strong, snapshot.weak];
    let finite = |srtt, rttvar| srtt < Duration::MAX && rttvar < Duration::MAX;
    let possible = (RTO_MIN..=RTO_MAX).contains(&snapshot.rto)
        && snapshot.srtt.is_some() == snapshot.rttvar.is_some()
        && estimators.into_iter().flatten().all(|one| finite(one.srtt, one.rttvar));
    if possible { Ok(()) } else { Err(format!("its state is impossible: {snapshot:?}")) }
}
