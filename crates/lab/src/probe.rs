//! How long runs take: pieces of some of them are made and measured, nothing of them is kept.
//!
//! A run begins slowly: nodes join, then requests start, then queues fill. So a piece must reach well into the run,
//! and what lies beyond it is taken to go on as the piece's second half. Which runs are probed follows the golden
//! ratio, so that any number of them is spread evenly over the plan.

use std::sync::Mutex;
use std::time::Duration as WallDuration;

use lowmesh_units::{Duration, Instant, Seed};

use crate::runner::{Progress, in_parallel, run_seed, wall_clock};
use crate::scenario::Scenario;
use crate::simulate::{Simulate, Sinks};

/// Probes at most.
const PROBES_MAX: usize = 24;
/// No probe begins after so long. Two dozen runs of an hour of 64 nodes take about as long on two cores.
const LONGEST: WallDuration = WallDuration::from_secs(8);
/// Share of a run that is made of each probe.
const SHARE: f64 = 0.5;
/// Share that is made of the first ones; if these take long, the others are no longer either.
const FIRST_SHARE: f64 = 0.25;
/// Wall time that one probe may take.
const PROBE_LONGEST_S: f64 = 4.0;
/// The part of a piece by which what lies beyond is estimated.
const SLOPE_FROM: f64 = 0.5;
/// The golden ratio less one.
const GOLDEN: f64 = 0.618_033_988_749_894_8;

/// What the length of a run grows with: simulated seconds of all nodes.
pub fn size(scenario: &Scenario) -> f64 {
    let nodes = scenario.topology.nodes().map_or(1.0, f64::from);
    scenario.head.duration.as_secs_f64() * nodes
}

/// Seconds of a wall clock for a unit of size, as mean over `runs`; absent if no probe succeeds.
pub fn rate(runs: &[(&Scenario, Seed)], at_a_time: usize, simulate: &Simulate<'_>) -> Option<f64> {
    let picked = spread(runs.len());
    let (mut wall, mut sizes, mut share) = (0.0, 0.0, FIRST_SHARE);
    let started = wall_clock();
    for round in picked.chunks(at_a_time.max(1)) {
        if started.elapsed() >= LONGEST {
            break;
        }
        let costs = in_parallel(at_a_time, round, |_, index| {
            let (scenario, seed) = runs[*index];
            Some((cost(scenario, seed, share, simulate)?, size(scenario)))
        });
        let slowest = costs.iter().flatten().map(|(cost, _)| *cost).fold(0.0, f64::max);
        for (cost, size) in costs.into_iter().flatten() {
            (wall, sizes) = (wall + cost, sizes + size);
        }
        share = if slowest * SHARE < PROBE_LONGEST_S { SHARE } else { FIRST_SHARE };
    }
    (sizes > 0.0).then(|| wall / sizes)
}

/// Places of the probes among `count` runs, each once.
fn spread(count: usize) -> Vec<usize> {
    let mut places = Vec::new();
    for step in 0..PROBES_MAX.min(count) {
        let turn = (step as f64 + 0.5) * GOLDEN;
        let place = ((turn - libm::floor(turn)) * count as f64) as usize;
        let free = (0..count).map(|ahead| (place + ahead) % count);
        places.extend(free.into_iter().find(|place| !places.contains(place)));
    }
    places
}

/// What the whole run would cost, from the first `share` of it.
fn cost(scenario: &Scenario, seed: Seed, share: f64, simulate: &Simulate<'_>) -> Option<f64> {
    let mut piece = scenario.clone();
    let whole = scenario.head.duration;
    let part = whole.mul_f64(share).max(Duration::from_secs(1)).min(whole);
    piece.head.duration = part;
    piece.head.warmup = Duration::ZERO;
    let half = Instant::ZERO + part.mul_f64(SLOPE_FROM);
    let started = wall_clock();
    // How much was simulated, and when the second half of it began on both clocks.
    let told = Mutex::new((Instant::ZERO, None));
    let observe = |progress: Progress<'_>| {
        let Progress::Advanced(span) = progress else { return };
        let mut told = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        told.0 += span;
        if told.0 >= half && told.1.is_none() {
            told.1 = Some((told.0, started.elapsed().as_secs_f64()));
        }
    };
    let run = run_seed(&piece, seed, Sinks::default(), simulate, &observe).ok()?;
    let (_, second) = told.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let end = Instant::ZERO + part;
    let (from, before) = second.filter(|(from, _)| *from < end).unwrap_or((Instant::ZERO, 0.0));
    let slope = (run.wall_s - before) / end.since(from).as_secs_f64();
    Some(run.wall_s + slope * whole.saturating_sub(part).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use lowmesh_sim::record::Outcome;

    use super::*;

    #[test]
    fn probes_are_spread_over_the_plan_and_none_is_made_twice() {
        assert_eq!(spread(0), [0_usize; 0]);
        assert_eq!(spread(1), [0]);
        let mut all = spread(5);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        let mut many = spread(1200);
        many.sort_unstable();
        assert_eq!(many.len(), PROBES_MAX);
        assert!(many.windows(2).all(|pair| pair[1] - pair[0] < 100), "{many:?}");
    }

    #[test]
    fn a_slow_begin_is_not_taken_for_the_whole_and_the_rest_goes_on_as_the_second_half() {
        // 10 ms for the first tenth of a piece, then 10 ms for each further fifth.
        let simulate = |scenario: &Scenario, _: Seed, _: Sinks, progress: &dyn Fn(Instant)| {
            let whole = scenario.head.duration;
            for share in [0.1, 0.3, 0.5, 0.7, 0.9] {
                std::thread::sleep(WallDuration::from_millis(10));
                progress(Instant::ZERO + whole.mul_f64(share));
            }
            Ok(Outcome::default())
        };
        let scenario = Scenario::parse("x", "name = \"x\"", &[]).expect("a valid scenario");
        let cost = cost(&scenario, Seed(1), 0.5, &simulate).expect("it runs");
        // 50 ms, and twice what the second half of it took.
        assert!((0.085..0.2).contains(&cost), "{cost}");
    }
}
