//! A plan against a store: what is there already, what is missing, and running that.
//!
//! Each finished run is stored at once, so that an interrupted program loses only the runs in flight. Results are in the
//! order of the plan and do not show which runs were stored before.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use lowmesh_units::{Duration, Seed};

use crate::plan::{Plan, RunSpec};
use crate::probe;
use crate::results::{PointResult, Results};
use crate::runner::{Failure, Progress, Run, in_parallel, run_seed};
use crate::scenario::Scenario;
use crate::simulate::{Simulate, Sinks};
use crate::store::{Store, StoreError};

/// The runs of a plan, or of a shard of it, and which of them are stored.
#[derive(Clone, Debug)]
pub struct Batch<'p> {
    plan: &'p Plan,
    store: Option<&'p Store>,
    specs: Vec<RunSpec>,
    /// For each of `specs` its run, if it is stored.
    stored: Vec<Option<Run>>,
}

/// How missing runs are executed.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// Runs at a time (0: one a core).
    pub jobs: usize,
    /// Whether no more runs are begun after one failed.
    pub fail_fast: bool,
}

/// The result of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// The results, in the order of the plan.
    pub results: Results,
    /// Runs that failed, with their errors, in the order of the plan.
    pub failed: Vec<(RunSpec, Failure)>,
    /// Runs that were not begun, because another failed.
    pub skipped: usize,
}

impl<'p> Batch<'p> {
    /// Looks up which of `specs` are stored.
    pub fn new(plan: &'p Plan, specs: Vec<RunSpec>, store: Option<&'p Store>) -> Self {
        let stored = specs.iter().map(|spec| store.and_then(|store| store.get(spec.id))).collect();
        Self { plan, store, specs, stored }
    }

    /// Marks every run as missing, so that it is executed again even if it is stored.
    pub fn force(&mut self) {
        self.stored.fill(None);
    }

    /// Marks the first run as missing, so that it is executed again and can be recorded.
    pub fn force_first(&mut self) {
        if let Some(first) = self.stored.first_mut() {
            *first = None;
        }
    }

    /// The number of runs.
    pub fn len(&self) -> usize {
        self.specs.len()
    }

    /// Whether there are no runs.
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// Missing runs, in the order of the plan.
    pub fn missing(&self) -> Vec<RunSpec> {
        let pairs = self.specs.iter().zip(&self.stored);
        pairs.filter(|(_, run)| run.is_none()).map(|(spec, _)| *spec).collect()
    }

    /// Total simulated time of all missing runs.
    pub fn missing_time(&self) -> Duration {
        let times = self.missing().into_iter().map(|spec| self.scenario(&spec).head.duration);
        times.fold(Duration::ZERO, |sum, time| sum + time)
    }

    /// The scenario of a run.
    pub fn scenario(&self, spec: &RunSpec) -> &'p Scenario {
        &self.plan.points[spec.point].scenario
    }

    /// Makes the missing runs, `sinks` going to the first of them, and puts all together.
    ///
    /// An error means that the store could not be written; runs stored before that are kept.
    pub fn run(
        self,
        how: How,
        sinks: Sinks,
        simulate: &Simulate<'_>,
        observe: &(dyn Fn(&RunSpec, Progress<'_>) + Sync),
    ) -> Result<Ended, StoreError> {
        let missing = self.missing();
        let stop = AtomicBool::new(false);
        let sinks = Mutex::new(Some(sinks));
        let one = |index: usize, spec: &RunSpec| -> Result<Option<Made>, StoreError> {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let mut sinks = sinks.lock().unwrap_or_else(PoisonError::into_inner);
            let own = if index == 0 { sinks.take().unwrap_or_default() } else { Sinks::default() };
            drop(sinks);
            let scenario = self.scenario(spec);
            let made = run_seed(scenario, spec.seed, own, simulate, &|news| observe(spec, news));
            let kept = match (&made, self.store) {
                (Ok(run), Some(store)) => store.put(spec.id, scenario, run),
                _ => Ok(()),
            };
            if kept.is_err() || (made.is_err() && how.fail_fast) {
                stop.store(true, Ordering::Relaxed);
            }
            kept.map(|()| Some(made))
        };
        let made = in_parallel(how.jobs, &missing, one);
        let made = made.into_iter().collect::<Result<_, _>>()?;
        Ok(self.put_together(made))
    }

    /// Results in the order of the plan, of the stored runs and those just `made`.
    fn put_together(self, made: Vec<Option<Made>>) -> Ended {
        let point = |point: &crate::results::Point| PointResult {
            point: point.clone(),
            runs: Vec::new(),
            failures: Vec::new(),
        };
        let mut points: Vec<PointResult> = self.plan.points.iter().map(point).collect();
        let (mut failed, mut skipped) = (Vec::new(), 0);
        let mut made = made.into_iter();
        for (spec, stored) in self.specs.into_iter().zip(self.stored) {
            let run = stored.map(Ok).or_else(|| made.next().flatten());
            match run {
                Some(Ok(run)) => points[spec.point].runs.push(run),
                Some(Err(failure)) => {
                    points[spec.point].failures.push(failure.clone());
                    failed.push((spec, failure));
                }
                None => skipped += 1,
            }
        }
        let results = Results { name: self.plan.name.clone(), points };
        Ended { results, failed, skipped }
    }

    /// Wall time of the missing runs with `jobs` runs at a time (0: one on each core), in seconds.
    ///
    /// Points that have stored runs are estimated by these, the others by probes, which take some seconds. Absent if
    /// the probes fail.
    pub fn estimate(&self, jobs: usize, simulate: &Simulate<'_>) -> Option<f64> {
        let missing = self.missing();
        let rates = self.rates();
        let (known, unknown): (Vec<&RunSpec>, Vec<&RunSpec>) =
            missing.iter().partition(|spec| rates.contains_key(&spec.point));
        let known = known.into_iter().map(|spec| rates[&spec.point] * self.size(spec)).sum::<f64>();
        // No more runs go at a time than there are.
        let jobs = if jobs == 0 { cores() } else { jobs };
        let at_a_time = jobs.min(missing.len()).max(1);
        let scenarios: Vec<(&Scenario, Seed)> =
            unknown.iter().map(|spec| (self.scenario(spec), spec.seed)).collect();
        let unknown = if scenarios.is_empty() {
            0.0
        } else {
            probe::rate(&scenarios, at_a_time, simulate)?
                * unknown.iter().map(|spec| self.size(spec)).sum::<f64>()
        };
        Some((known + unknown) / at_a_time as f64)
    }

    /// Seconds of a wall clock for a unit of size, of each point that has stored runs.
    fn rates(&self) -> BTreeMap<usize, f64> {
        let mut sums: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for (spec, run) in self.specs.iter().zip(&self.stored) {
            if let Some(run) = run.as_ref().filter(|run| run.wall_s > 0.0) {
                let sum = sums.entry(spec.point).or_default();
                *sum = (sum.0 + run.wall_s, sum.1 + self.size(spec));
            }
        }
        sums.into_iter().map(|(point, (wall, size))| (point, wall / size)).collect()
    }

    /// What the length of a run grows with: simulated seconds of all nodes.
    fn size(&self, spec: &RunSpec) -> f64 {
        probe::size(self.scenario(spec))
    }
}

/// A run that was made, or why not.
type Made = Result<Run, Failure>;

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests;
