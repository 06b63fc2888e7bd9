//! Searches the numbers of a retransmission timer, or any parameters of rows, for those that serve a scenario best.
//!
//! Two parts that share no seed: a search by successive halving ([`halving`]) over candidates drawn from a bounded
//! space ([`space`]), the published sets among them; then the winner against each published set on seeds that the
//! search has not seen, paired by seed. The search's own scores are flattered, because they made the winner win;
//! only the second part is reported as gain. `docs/topics/tuning.md` tells users how to read it.

pub mod halving;
pub mod objective;
mod outcome;
pub mod space;
#[cfg(test)]
mod tests;

use lowmesh_units::Seed;

pub use objective::Objective;
pub use outcome::{Compared, Gain, Tuned, Verdict};
pub use space::{Candidate, Space};

use crate::identity::Identity;
use crate::runner::{Failure, Progress, Run, in_parallel, run_seed};
use crate::scenario::Scenario;
use crate::simulate::{Simulate, Sinks};
use crate::store::{Store, StoreError};
use halving::Rung;

/// Candidates of a search at least, the published sets included: below this nothing would be halved.
const CANDIDATES_MIN: u32 = 9;

/// What to search for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What makes it good.
    pub objective: Objective,
    /// Runs of the search at most; the comparison comes on top.
    pub budget: u32,
    /// Seeds of the comparison.
    pub seeds: u32,
    /// Runs at a time (0: one a core).
    pub jobs: usize,
}

/// Why nothing can be tuned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TuneError {
    /// The budget does not pay for the smallest search.
    #[error("a budget of {0} runs is too small: the smallest search takes {least}", least = least_budget())]
    Budget(u32),
    /// A confidence interval needs two seeds.
    #[error("{0} seeds give no confidence interval: use two or more")]
    Seeds(u32),
    /// The key is none of a parameter of a row that the scenario names.
    #[error("{key} cannot be tuned{}; these keys can: {}", suggested(similar.as_ref()), known.join(", "))]
    Key {
        /// The key.
        key: String,
        /// A key with a similar name.
        similar: Option<String>,
        /// The keys that can be tuned.
        known: Vec<String>,
    },
}

fn suggested(similar: Option<&String>) -> String {
    similar.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// Runs that the smallest search takes.
fn least_budget() -> u32 {
    halving::cost(&halving::rungs(CANDIDATES_MIN))
}

/// What an observer is told, from any thread.
#[derive(Debug)]
pub enum TuneEvent<'n> {
    /// About one run.
    Run(Progress<'n>),
    /// A rung of the search begins.
    Rung(Rung),
    /// The search has a winner, and the comparison begins with these first and last seeds.
    Compare(Seed, Seed),
}

/// A search that is possible.
#[derive(Clone, Debug)]
pub struct Plan {
    request: Request,
    rungs: Vec<Rung>,
    space: Space,
}

impl Plan {
    /// Checks the request; `space` is what is tuned.
    pub fn new(request: Request, space: Space) -> Result<Self, TuneError> {
        if request.budget < least_budget() {
            return Err(TuneError::Budget(request.budget));
        }
        if request.seeds < 2 {
            return Err(TuneError::Seeds(request.seeds));
        }
        let rungs = halving::rungs(halving::affordable(request.budget, CANDIDATES_MIN));
        Ok(Self { request, rungs, space })
    }

    /// The rungs of the search.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// Runs of search and comparison at most; fewer when a published set wins.
    pub fn runs(&self) -> u32 {
        halving::cost(&self.rungs) + self.request.seeds * (self.space.published().len() as u32 + 1)
    }

    /// Searches and compares. Every run is kept in `store`, if there is one, as soon as it ends, and taken from
    /// there if it is there already.
    ///
    /// An error means that the store could not be written; runs stored before that are kept.
    pub fn execute(
        &self,
        scenario: &Scenario,
        store: Option<&Store>,
        simulate: &Simulate<'_>,
        observe: &(dyn Fn(TuneEvent<'_>) + Sync),
    ) -> Result<Tuned, StoreError> {
        let jobs = self.request.jobs;
        let mut bench = Bench { scenario, jobs, store, simulate, observe, failures: vec![] };
        let (searched, winner) = self.search(&mut bench)?;
        let winner = &searched[winner].candidate.clone();
        let first =
            scenario.head.seed.wrapping_add(self.rungs.last().map_or(0, |r| r.seeds.into()));
        let seeds: Vec<Seed> =
            (0..u64::from(self.request.seeds)).map(|i| Seed(first.wrapping_add(i))).collect();
        observe(TuneEvent::Compare(seeds[0], seeds[seeds.len() - 1]));
        let mut contenders = self.space.published().to_vec();
        if !contenders.contains(winner) {
            contenders.push(winner.clone());
        }
        let pairs: Vec<(&Candidate, Seed)> =
            contenders.iter().flat_map(|one| seeds.iter().map(move |seed| (one, *seed))).collect();
        let mut runs = bench.run(&pairs)?.into_iter();
        let compared: Vec<Tried> = contenders
            .into_iter()
            .map(|candidate| Tried { candidate, runs: runs.by_ref().take(seeds.len()).collect() })
            .collect();
        let found = Found { searched, winner: winner.clone(), compared, held_out: seeds };
        Ok(Tuned::new(scenario, self, found, bench.failures))
    }

    /// All candidates with their runs, and which of them won.
    fn search(&self, bench: &mut Bench<'_>) -> Result<(Vec<Tried>, usize), StoreError> {
        let count = self.rungs[0].candidates;
        let drawn = count - self.space.published().len() as u32;
        let base = Seed(bench.scenario.head.seed);
        let drawn = self.space.draw(bench.scenario, drawn, base);
        let mut tried: Vec<Tried> = self
            .space
            .published()
            .iter()
            .cloned()
            .chain(drawn)
            .map(|candidate| Tried { candidate, runs: Vec::new() })
            .collect();
        let mut left: Vec<usize> = (0..tried.len()).collect();
        for (i, rung) in self.rungs.iter().enumerate() {
            (bench.observe)(TuneEvent::Rung(*rung));
            if i > 0 {
                left = halving::best(&self.scores(&left, &tried), rung.candidates as usize);
            }
            let known = tried[left[0]].runs.len() as u64;
            let seeds = known..u64::from(rung.seeds);
            let pairs: Vec<(&Candidate, Seed)> = left
                .iter()
                .flat_map(|one| seeds.clone().map(|seed| (&tried[*one].candidate, seed)))
                .map(|(one, seed)| (one, Seed(base.0.wrapping_add(seed))))
                .collect();
            let mut runs = bench.run(&pairs)?.into_iter();
            for one in &left {
                let new = runs.by_ref().take((seeds.end - seeds.start) as usize);
                tried[*one].runs.extend(new);
            }
        }
        let winner = halving::best(&self.scores(&left, &tried), 1)[0];
        Ok((tried, winner))
    }

    /// The scores of the candidates that are left, one a seed.
    fn scores(&self, left: &[usize], tried: &[Tried]) -> Vec<(usize, Vec<Option<f64>>)> {
        let score = |run: &Option<Run>| run.as_ref().map(|run| self.score(run));
        left.iter().map(|one| (*one, tried[*one].runs.iter().map(score).collect())).collect()
    }

    /// A run's value, turned so that more is better.
    fn score(&self, run: &Run) -> f64 {
        let objective = self.request.objective;
        objective.gain(objective.of(&run.metrics, run.simulated), 0.0)
    }
}

/// A candidate with its runs, one a seed; a run that failed is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The candidate.
    pub candidate: Candidate,
    /// Its runs, in the order of seeds.
    pub runs: Vec<Option<Run>>,
}

/// What search and comparison came to.
struct Found {
    searched: Vec<Tried>,
    winner: Candidate,
    compared: Vec<Tried>,
    held_out: Vec<Seed>,
}

/// Where candidates are run.
struct Bench<'b> {
    scenario: &'b Scenario,
    jobs: usize,
    store: Option<&'b Store>,
    simulate: &'b Simulate<'b>,
    observe: &'b (dyn Fn(TuneEvent<'_>) + Sync),
    failures: Vec<(Candidate, Failure)>,
}

impl Bench<'_> {
    /// Makes the run of every pair, or takes it from the store; a failed run is noted and has no place-holder's
    /// numbers.
    fn run(&mut self, pairs: &[(&Candidate, Seed)]) -> Result<Vec<Option<Run>>, StoreError> {
        let results = in_parallel(self.jobs, pairs, |_, (candidate, seed)| {
            self.one(&candidate.scenario(self.scenario), *seed)
        });
        let mut runs = Vec::new();
        for (result, (candidate, _)) in results.into_iter().zip(pairs) {
            let run = result?.map_err(|failure| {
                self.failures.push(((*candidate).clone(), failure));
            });
            // How long a run took is no result.
            runs.push(run.ok().map(|run| Run { wall_s: 0.0, ..run }));
        }
        Ok(runs)
    }

    fn one(&self, scenario: &Scenario, seed: Seed) -> Result<Result<Run, Failure>, StoreError> {
        let observe = |progress: Progress<'_>| (self.observe)(TuneEvent::Run(progress));
        let id = Identity::of(scenario).run(seed);
        if let Some(run) = self.store.and_then(|store| store.get(id)) {
            observe(Progress::Advanced(scenario.head.duration));
            observe(Progress::Finished(&run));
            return Ok(Ok(run));
        }
        let made = run_seed(scenario, seed, Sinks::default(), self.simulate, &observe);
        if let (Ok(run), Some(store)) = (&made, self.store) {
            store.put(id, scenario, run)?;
        }
        Ok(made)
    }
}
