//! Searches the numbers of a retransmission timer for those that serve a scenario best.
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
pub use space::Candidate;

use crate::runner::{Failure, Progress, Run, in_parallel, run_seed};
use crate::scenario::{Congestion, Scenario};
use crate::simulate::{Simulate, Sinks};
use halving::Rung;

/// Candidates of a search at least, the published sets included: below this nothing would be halved.
const CANDIDATES_MIN: u32 = 9;

/// What to search for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The timer.
    pub timer: Congestion,
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
    /// The timer has no free numbers.
    #[error("`{0}` has nothing to tune; there are default, cocoa and its variants, and 6cocoa")]
    NothingToTune(&'static str),
    /// The budget does not pay for the smallest search.
    #[error("a budget of {0} runs is too small: the smallest search takes {least}", least = least_budget())]
    Budget(u32),
    /// A confidence interval needs two seeds.
    #[error("{0} seeds give no confidence interval: two or more do")]
    Seeds(u32),
}

/// Runs that the smallest search takes.
fn least_budget() -> u32 {
    halving::cost(&halving::rungs(CANDIDATES_MIN))
}

/// What an observer is told, from any thread.
#[derive(Debug)]
pub enum News<'n> {
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
    published: Vec<Candidate>,
}

impl Plan {
    /// Checks the request.
    pub fn new(request: Request) -> Result<Self, TuneError> {
        if !space::can_tune(request.timer) {
            return Err(TuneError::NothingToTune(request.timer.name()));
        }
        if request.budget < least_budget() {
            return Err(TuneError::Budget(request.budget));
        }
        if request.seeds < 2 {
            return Err(TuneError::Seeds(request.seeds));
        }
        let rungs = halving::rungs(halving::affordable(request.budget, CANDIDATES_MIN));
        Ok(Self { request, rungs, published: space::published(request.timer) })
    }

    /// The rungs of the search.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// Runs of search and comparison at most; fewer when a published set wins.
    pub fn runs(&self) -> u32 {
        halving::cost(&self.rungs) + self.request.seeds * (self.published.len() as u32 + 1)
    }

    /// Searches and compares.
    pub fn execute(
        &self,
        scenario: &Scenario,
        simulate: &Simulate<'_>,
        observe: &(dyn Fn(News<'_>) + Sync),
    ) -> Tuned {
        let mut bench =
            Bench { scenario, jobs: self.request.jobs, simulate, observe, failures: vec![] };
        let (candidates, winner) = self.search(&mut bench);
        let winner = &candidates[winner];
        let first =
            scenario.head.seed.wrapping_add(self.rungs.last().map_or(0, |r| r.seeds.into()));
        let seeds: Vec<Seed> =
            (0..u64::from(self.request.seeds)).map(|i| Seed(first.wrapping_add(i))).collect();
        observe(News::Compare(seeds[0], seeds[seeds.len() - 1]));
        let mut contenders = self.published.clone();
        if !contenders.contains(winner) {
            contenders.push(winner.clone());
        }
        let pairs: Vec<(&Candidate, Seed)> =
            contenders.iter().flat_map(|one| seeds.iter().map(move |seed| (one, *seed))).collect();
        let mut runs = bench.run(&pairs).into_iter();
        let contenders: Vec<(Candidate, Vec<Option<Run>>)> = contenders
            .into_iter()
            .map(|one| (one, runs.by_ref().take(seeds.len()).collect()))
            .collect();
        Tuned::new(scenario, self, winner, &seeds, &contenders, bench.failures)
    }

    /// All candidates, and which of them won.
    fn search(&self, bench: &mut Bench<'_>) -> (Vec<Candidate>, usize) {
        let count = self.rungs[0].candidates;
        let drawn = count - self.published.len() as u32;
        let mut candidates = self.published.clone();
        let base = Seed(bench.scenario.head.seed);
        candidates.extend(space::draw(self.request.timer, drawn, base));
        let mut left: Vec<usize> = (0..candidates.len()).collect();
        let mut scores: Vec<Vec<Option<f64>>> = vec![Vec::new(); candidates.len()];
        for (i, rung) in self.rungs.iter().enumerate() {
            (bench.observe)(News::Rung(*rung));
            if i > 0 {
                left = halving::best(&rows(&left, &scores), rung.candidates as usize);
            }
            let known = scores[left[0]].len() as u64;
            let seeds = known..u64::from(rung.seeds);
            let pairs: Vec<(&Candidate, Seed)> = left
                .iter()
                .flat_map(|one| seeds.clone().map(|seed| (&candidates[*one], seed)))
                .map(|(one, seed)| (one, Seed(base.0.wrapping_add(seed))))
                .collect();
            let mut runs = bench.run(&pairs).into_iter();
            for one in &left {
                let runs = runs.by_ref().take((seeds.end - seeds.start) as usize);
                scores[*one].extend(runs.map(|run| run.map(|run| self.score(&run))));
            }
        }
        let winner = halving::best(&rows(&left, &scores), 1)[0];
        (candidates, winner)
    }

    /// A run's value, turned so that more is better.
    fn score(&self, run: &Run) -> f64 {
        let objective = self.request.objective;
        objective.gain(objective.of(&run.metrics, run.simulated), 0.0)
    }
}

/// The scores of the candidates that are left.
fn rows(left: &[usize], scores: &[Vec<Option<f64>>]) -> Vec<(usize, Vec<Option<f64>>)> {
    left.iter().map(|one| (*one, scores[*one].clone())).collect()
}

/// Where candidates are run.
struct Bench<'b> {
    scenario: &'b Scenario,
    jobs: usize,
    simulate: &'b Simulate<'b>,
    observe: &'b (dyn Fn(News<'_>) + Sync),
    failures: Vec<(Candidate, Failure)>,
}

impl Bench<'_> {
    /// Runs every pair; a failed run is noted and has no place-holder's numbers.
    fn run(&mut self, pairs: &[(&Candidate, Seed)]) -> Vec<Option<Run>> {
        let observe = |progress: Progress<'_>| (self.observe)(News::Run(progress));
        let results = in_parallel(self.jobs, pairs, |_, (candidate, seed)| {
            let scenario = candidate.scenario(self.scenario);
            run_seed(&scenario, *seed, Sinks::default(), self.simulate, &observe)
        });
        let note =
            |(result, (candidate, _)): (Result<Run, Failure>, &(&Candidate, Seed))| match result {
                Ok(run) => Some(run),
                Err(failure) => {
                    self.failures.push(((*candidate).clone(), failure));
                    None
                }
            };
        results.into_iter().zip(pairs).map(note).collect()
    }
}
