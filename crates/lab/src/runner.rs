//! Runs the seeds of a scenario in parallel.
//!
//! A run is one thread and one seed, so its outcome does not depend on how many run at a time. A run that
//! fails is told and counted; the others go on. The wall clock is read here, around a run, never inside.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use lowmesh_units::{Duration, Instant, Seed};
use rayon::prelude::*;

use crate::detail::Detail;
use crate::metrics::Metrics;
use crate::scenario::Scenario;
use crate::simulate::{RunError, Simulate, Sinks};

/// One finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its seed.
    pub seed: Seed,
    /// Hash over everything that happened.
    pub trace_hash: u64,
    /// Simulated time.
    pub simulated: Duration,
    /// Time it took, in seconds on this machine.
    pub wall_s: f64,
    /// Its numbers.
    pub metrics: Metrics,
    /// What figures show of it.
    pub detail: Detail,
}

/// One failed run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its seed.
    pub seed: Seed,
    /// Why.
    pub error: RunError,
}

/// All runs of a scenario, each list in the order of seeds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Campaign {
    /// Those that finished.
    pub runs: Vec<Run>,
    /// Those that failed.
    pub failures: Vec<Failure>,
}

/// An observer of runs in progress, called from any thread.
#[derive(Debug)]
pub enum Progress<'p> {
    /// A run has simulated this much more.
    Advanced(Duration),
    /// A run finished.
    Finished(&'p Run),
    /// A run failed.
    Failed(&'p Failure),
}

/// Runs every seed of `scenario`, at most `jobs` at a time (0: one on each core).
///
/// `sinks` go to the run of the first seed alone.
pub fn run(
    scenario: &Scenario,
    jobs: usize,
    sinks: Sinks,
    simulate: &Simulate<'_>,
    observe: &(dyn Fn(Progress<'_>) + Sync),
) -> Campaign {
    let seeds: Vec<Seed> = scenario.seeds().collect();
    let sinks = Mutex::new(Some(sinks));
    let one = |index: usize, seed: Seed| {
        let sinks = if index == 0 {
            sinks.lock().ok().and_then(|mut sinks| sinks.take()).unwrap_or_default()
        } else {
            Sinks::default()
        };
        run_seed(scenario, seed, sinks, simulate, observe)
    };
    let results = in_parallel(jobs, &seeds, |index, seed| one(index, *seed));
    let mut campaign = Campaign::default();
    for result in results {
        match result {
            Ok(run) => campaign.runs.push(run),
            Err(failure) => campaign.failures.push(failure),
        }
    }
    campaign
}

/// Does `one` for every item, at most `jobs` at a time (0: one a core); results stand in the order of items.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    one: impl Fn(usize, &T) -> R + Sync,
) -> Vec<R> {
    let all = || -> Vec<R> {
        let indexed = items.par_iter().enumerate().with_max_len(1);
        indexed.map(|(index, item)| one(index, item)).collect()
    };
    match rayon::ThreadPoolBuilder::new().num_threads(jobs).build() {
        Ok(pool) => pool.install(all),
        // A machine that gives no more threads still has this one.
        Err(_) => items.iter().enumerate().map(|(index, item)| one(index, item)).collect(),
    }
}

/// One run, told to `observe` from its start to its end.
pub(crate) fn run_seed(
    scenario: &Scenario,
    seed: Seed,
    sinks: Sinks,
    simulate: &Simulate<'_>,
    observe: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Run, Failure> {
    let told = std::cell::Cell::new(Instant::ZERO);
    let advanced = |now: Instant| {
        observe(Progress::Advanced(now.since(told.get())));
        told.set(now.max(told.get()));
    };
    let started = wall_clock();
    // One broken run must not take the finished ones of the others with it.
    let result = catch_unwind(AssertUnwindSafe(|| simulate(scenario, seed, sinks, &advanced)))
        .unwrap_or_else(|panic| Err(RunError::Defect(panic_message(panic.as_ref()))));
    // A failed run advances the whole as much as a finished one.
    advanced(Instant::ZERO + scenario.head.duration);
    match result {
        Ok(outcome) => {
            let run = Run {
                seed,
                trace_hash: outcome.trace_hash,
                simulated: outcome.simulated,
                wall_s: started.elapsed().as_secs_f64(),
                metrics: Metrics::of(&outcome, scenario.head.warmup),
                detail: Detail::of(&outcome, scenario.head.warmup),
            };
            observe(Progress::Finished(&run));
            Ok(run)
        }
        Err(error) => {
            let failure = Failure { seed, error };
            observe(Progress::Failed(&failure));
            Err(failure)
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a run's wall time is measured around it, not inside"
)]
pub(crate) fn wall_clock() -> std::time::Instant {
    std::time::Instant::now()
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use lowmesh_sim::record::Outcome;

    use super::*;

    /// A made-up outcome that depends on the seed alone.
    fn made_up(
        scenario: &Scenario,
        seed: Seed,
        _: Sinks,
        progress: &dyn Fn(Instant),
    ) -> Result<Outcome, RunError> {
        progress(Instant::from_secs(1));
        if seed == Seed(3) {
            return Err(RunError::Scenario("no place found".to_owned()));
        }
        assert!(seed != Seed(4), "seed 4 breaks");
        let trace_hash = seed.0 * 7;
        Ok(Outcome { trace_hash, simulated: scenario.head.duration, ..Outcome::default() })
    }

    fn scenario(seeds: u32) -> Scenario {
        let text = format!("name = \"x\"\nseeds = {seeds}");
        Scenario::parse("x", &text, &[]).expect("a valid scenario")
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_jobs() {
        let run_with = |jobs| {
            let mut campaign = run(&scenario(8), jobs, Sinks::default(), &made_up, &|_| ());
            campaign.runs.iter_mut().for_each(|run| run.wall_s = 0.0);
            campaign
        };
        assert_eq!(run_with(1), run_with(4));
    }

    #[test]
    fn a_failed_run_is_counted_and_the_others_go_on() {
        let campaign = run(&scenario(5), 2, Sinks::default(), &made_up, &|_| ());
        let seeds: Vec<u64> = campaign.runs.iter().map(|run| run.seed.0).collect();
        assert_eq!(seeds, [1, 2, 5]);
        assert_eq!(campaign.failures[0].error.to_string(), "no place found");
        assert!(campaign.failures[1].error.to_string().ends_with("seed 4 breaks"));
    }

    #[test]
    fn progress_adds_up_to_the_whole_also_when_runs_fail() {
        let (advanced, ended) = (AtomicU64::new(0), AtomicU64::new(0));
        let observe = |progress: Progress<'_>| match progress {
            Progress::Advanced(span) => _ = advanced.fetch_add(span.as_nanos(), Ordering::Relaxed),
            Progress::Finished(_) | Progress::Failed(_) => {
                _ = ended.fetch_add(1, Ordering::Relaxed);
            }
        };
        run(&scenario(5), 3, Sinks::default(), &made_up, &observe);
        assert_eq!(Duration::from_nanos(advanced.into_inner()), Duration::from_secs(5 * 3600));
        assert_eq!(ended.into_inner(), 5);
    }

    #[test]
    fn sinks_go_to_the_first_seed_alone() {
        let with_sink = Mutex::new(Vec::new());
        let simulate = |_: &Scenario, seed: Seed, sinks: Sinks, _: &dyn Fn(Instant)| {
            if sinks.pcap.is_some() {
                with_sink.lock().expect("no test thread panics").push(seed);
            }
            Ok(Outcome::default())
        };
        let sinks = Sinks { pcap: Some(Box::new(Vec::new())), trace: None };
        run(&scenario(4), 4, sinks, &simulate, &|_| ());
        assert_eq!(with_sink.into_inner().expect("no test thread panics"), [Seed(1)]);
    }
}
