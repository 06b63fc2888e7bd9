//! What a search came to: the winner against the published sets, on seeds that the search has not seen.

use serde::{Serialize, Serializer};

use super::halving::Rung;
use super::{Candidate, Found, Objective, Plan, Tried};
use crate::build::Build;
use crate::report::{SCHEMA, VERSION};
use crate::results::{Point, PointResult};
use crate::runner::{Failure, Run};
use crate::scenario::Scenario;
use crate::statistics::Estimate;

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The scenario's name.
    pub scenario: String,
    /// What was optimised.
    pub objective: Objective,
    /// The winner of the search.
    pub best: Candidate,
    /// Candidates of the search.
    pub candidates: u32,
    /// First and last seed of the search.
    pub search_seeds: (u64, u64),
    /// First and last seed of the comparison; none of them is a seed of the search.
    pub held_out_seeds: (u64, u64),
    /// The published sets and the winner, as the comparison's seeds show them; the winner stands last unless it is
    /// published.
    pub compared: Vec<Compared>,
    /// Runs that failed, with what they ran.
    pub failures: Vec<(Candidate, Failure)>,
    /// The rungs of the search.
    pub rungs: Vec<Rung>,
    /// The points of the search, a candidate each, with its runs on all rungs that it reached.
    pub searched: Vec<PointResult>,
    /// The points of the comparison, in the order of `compared`.
    pub held_out: Vec<PointResult>,
}

/// One set on the seeds of the comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The set.
    pub candidate: Candidate,
    /// The objective.
    pub value: Option<Estimate>,
    /// Transaction delivery ratio.
    pub tdr: Option<Estimate>,
    /// 95th percentile of the delay.
    pub delay_p95_ms: Option<Estimate>,
    /// Retransmissions of a transaction.
    pub retransmissions: Option<Estimate>,
    /// What the winner gains over it; none for the winner itself.
    pub gain: Option<Gain>,
}

/// The winner minus another set, paired by seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// In the objective, positive where the winner is better.
    pub objective: Option<Estimate>,
    /// In TDR, positive where the winner delivers more.
    pub tdr: Option<Estimate>,
    /// In the 95th percentile of the delay, in milliseconds, negative where the winner is faster.
    pub delay_p95_ms: Option<Estimate>,
}

/// The result of a paired comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is above zero.
    Better,
    /// The whole interval is below zero.
    Worse,
    /// The interval holds zero: these seeds show no difference.
    NotShown,
}

impl Gain {
    fn between(objective: Objective, ours: &[Option<Run>], theirs: &[Option<Run>]) -> Self {
        let paired = |difference: &dyn Fn(&Run, &Run) -> Option<f64>| {
            let pairs = ours.iter().zip(theirs);
            Estimate::of(pairs.filter_map(|(a, b)| difference(a.as_ref()?, b.as_ref()?)))
        };
        Self {
            objective: paired(&|a, b| {
                let of = |run: &Run| objective.of(&run.metrics, run.simulated);
                Some(objective.gain(of(a), of(b)))
            }),
            tdr: paired(&|a, b| Some(a.metrics.tdr? - b.metrics.tdr?)),
            delay_p95_ms: paired(&|a, b| Some(a.metrics.delay_p95_ms? - b.metrics.delay_p95_ms?)),
        }
    }

    /// What it says about the objective.
    pub fn verdict(&self) -> Verdict {
        let Some(Estimate { mean, ci95: Some(half), .. }) = self.objective else {
            return Verdict::NotShown;
        };
        if mean - half > 0.0 {
            Verdict::Better
        } else if mean + half < 0.0 {
            Verdict::Worse
        } else {
            Verdict::NotShown
        }
    }
}

impl Tuned {
    pub(super) fn new(
        scenario: &Scenario,
        plan: &Plan,
        found: Found,
        failures: Vec<(Candidate, Failure)>,
    ) -> Self {
        let objective = plan.request.objective;
        let Found { searched, winner, compared: tried, held_out } = found;
        let ours = tried.iter().find(|one| one.candidate == winner);
        let ours = ours.map_or(&[][..], |one| &one.runs);
        let compared = tried.iter().map(|Tried { candidate, runs }| {
            let estimate = |value: &dyn Fn(&Run) -> Option<f64>| {
                Estimate::of(runs.iter().flatten().filter_map(value))
            };
            Compared {
                candidate: candidate.clone(),
                value: estimate(&|run| Some(objective.of(&run.metrics, run.simulated))),
                tdr: estimate(&|run| run.metrics.tdr),
                delay_p95_ms: estimate(&|run| run.metrics.delay_p95_ms),
                retransmissions: estimate(&|run| run.metrics.retransmissions_per_transaction),
                gain: (*candidate != winner).then(|| Gain::between(objective, ours, runs)),
            }
        });
        let compared = compared.collect();
        let first = scenario.head.seed;
        let point = |tried: &Tried, first: u64| {
            let mut scenario = tried.candidate.scenario(scenario);
            (scenario.head.seed, scenario.head.seeds) = (first, tried.runs.len() as u32);
            let pair = |flag: &String| {
                flag.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))
            };
            let settings = tried.candidate.flags().iter().filter_map(pair).collect();
            let of_this = failures.iter().filter(|(candidate, _)| *candidate == tried.candidate);
            let seeds = first..first.saturating_add(tried.runs.len() as u64);
            let here = of_this.filter(|(_, failure)| seeds.contains(&failure.seed.0));
            PointResult {
                point: Point { settings, scenario },
                runs: tried.runs.iter().flatten().cloned().collect(),
                failures: here.map(|(_, failure)| failure.clone()).collect(),
            }
        };
        let rungs = plan.rungs();
        let last = rungs.last().map_or(0, |rung| u64::from(rung.seeds) - 1);
        Self {
            scenario: scenario.head.name.clone(),
            objective,
            best: winner,
            candidates: rungs[0].candidates,
            search_seeds: (first, first.wrapping_add(last)),
            held_out_seeds: (held_out[0].0, held_out[held_out.len() - 1].0),
            compared,
            rungs: rungs.to_vec(),
            searched: searched.iter().map(|tried| point(tried, first)).collect(),
            held_out: tried.iter().map(|tried| point(tried, held_out[0].0)).collect(),
            failures,
        }
    }

    /// One sentence on whether the search was worth it.
    pub fn conclusion(&self) -> String {
        if let Some(name) = self.best.published {
            return format!("no set did better in the search than `{name}`, which was not tuned");
        }
        let of = |verdict| {
            let gain =
                move |one: &&Compared| one.gain.is_some_and(|gain| gain.verdict() == verdict);
            let names: Vec<&str> = self
                .compared
                .iter()
                .filter(gain)
                .filter_map(|one| one.candidate.published)
                .collect();
            names.join(", ")
        };
        let mut parts = Vec::new();
        for (verdict, words) in [
            (Verdict::Better, "better than"),
            (Verdict::NotShown, "no gain shown over"),
            (Verdict::Worse, "worse than"),
        ] {
            let names = of(verdict);
            if !names.is_empty() {
                parts.push(format!("{words} {names}"));
            }
        }
        let advice = if of(Verdict::Better).is_empty() {
            "; stay with a set that was not tuned"
        } else {
            ""
        };
        let objective = self.objective.name();
        format!("the best set of the search, in {objective}: {}{advice}", parts.join("; "))
    }

    /// The result as one JSON object, with a line end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("numbers and texts only");
        text.push('\n');
        text
    }
}

impl Serialize for Tuned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::json!({
            "schema": SCHEMA,
            "version": VERSION,
            "build": Build::own(),
            "scenario": self.scenario,
            "objective": self.objective.name(),
            "candidates": self.candidates,
            "search_seeds": [self.search_seeds.0, self.search_seeds.1],
            "held_out_seeds": [self.held_out_seeds.0, self.held_out_seeds.1],
            "conclusion": self.conclusion(),
            "best": set(&self.best),
            "compared": self.compared,
            "failures": self.failures.iter().map(|(candidate, failure)| {
                let (seed, error) = (failure.seed.0, failure.error.to_string());
                serde_json::json!({ "set": set(candidate), "seed": seed, "error": error })
            }).collect::<Vec<_>>(),
        })
        .serialize(serializer)
    }
}

impl Serialize for Compared {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::json!({
            "set": set(&self.candidate),
            "objective": self.value,
            "tdr": self.tdr,
            "delay_p95_ms": self.delay_p95_ms,
            "retransmissions_per_transaction": self.retransmissions,
            "gain": self.gain.map(|gain| serde_json::json!({
                "objective": gain.objective,
                "tdr": gain.tdr,
                "delay_p95_ms": gain.delay_p95_ms,
                "verdict": gain.verdict(),
            })),
        })
        .serialize(serializer)
    }
}

/// A candidate for programs.
fn set(candidate: &Candidate) -> serde_json::Value {
    serde_json::json!({
        "name": candidate.published.unwrap_or("tuned"),
        "toml": candidate.to_toml(),
        "set": candidate.flags(),
    })
}
