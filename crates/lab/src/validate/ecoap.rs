//! The model of the ECOAP testbed in Pisa, run under the conditions that were measured there (Vallati, Righetti,
//! Tanganelli, Mingozzi, Anastasi, Ad Hoc Networks 109, 2020).
//!
//! One model for all conditions. What of it is known from the testbed's description, what is derived from
//! sums over its runs and what is chosen stands in `docs/topics/csma-validation.md`.

use std::path::Path;

use lowmesh_sim::record::{Ending, Outcome, Transaction};
use lowmesh_units::{Duration, Instant, Seed};
use serde::Serialize;

pub use super::condition::{Condition, Figures, HopRtt};
use super::cross::{CANDIDATES, Tried, cross};
pub use super::cross::{Candidate, Fold};
pub use super::measured::DataError;
use super::measured::Measured;
use crate::runner::in_parallel;
use crate::scenario::{ConfigErrors, Scenario};
use crate::simulate::{RunError, Simulate, Sinks};
use crate::statistics::{mean, percentile};

/// The model but for the tree, the period and the timer.
const MODEL: &str = include_str!("ecoap.toml");

/// The effect that the testbed is known for: what CoCoA changes at a period of 250 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Effect {
    /// Throughput under CoCoA by that under the default timer.
    pub throughput_ratio: f64,
    /// The same of the 95th percentile of the time to the acknowledgement.
    pub rtt_p95_ratio: f64,
}

/// The mean over all conditions of how far the model is off, as a factor: twice as much and half as much are equally
/// wrong, since the figures go over two orders of magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FigureError {
    /// The figure's name.
    pub figure: &'static str,
    /// exp of the mean of |ln(simulated / measured)|; 1 is right.
    pub factor: f64,
}

/// The model next to the measurements.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Validation {
    /// Every condition, by algorithm and period.
    pub conditions: Vec<Condition>,
    /// At light load, by hops.
    pub light_rtt: Vec<HopRtt>,
    /// What CoCoA did on the testbed, if both timers were measured at 250 ms.
    pub measured_effect: Option<Effect>,
    /// What it does in the model.
    pub simulated_effect: Option<Effect>,
    /// How far the model is off.
    pub errors: Vec<FigureError>,
    /// What was chosen without which periods; empty when nothing was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folds: Vec<Fold>,
}

/// Why the comparison failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder of measurements cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The model is wrong with the folder's tree.
    #[error(transparent)]
    Model(#[from] ConfigErrors),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// How the model is run.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Runs of each condition.
    pub seeds: u32,
    /// Length of a run.
    pub duration: Duration,
    /// Runs at a time; 0 is one a core.
    pub jobs: usize,
}

/// Runs the model under every condition in `folder`.
pub fn validate(folder: &Path, how: How, simulate: &Simulate<'_>) -> Result<Validation, Error> {
    let measured = Measured::read(folder)?;
    let (conditions, light) = conditions(&measured, how, None, simulate)?;
    Ok(summed_up(conditions, light_rtt(&measured, &light), Vec::new()))
}

/// Fits the model to some periods and holds it against the others, each in its turn: every condition told is one
/// that had no part in choosing the numbers that it was run with.
pub fn cross_validate(
    folder: &Path,
    how: How,
    simulate: &Simulate<'_>,
) -> Result<Validation, Error> {
    let measured = Measured::read(folder)?;
    let mut tried = Vec::new();
    for candidate in CANDIDATES {
        let (conditions, light) = conditions(&measured, how, Some(candidate), simulate)?;
        tried.push(Tried { candidate, conditions, light: light_rtt(&measured, &light) });
    }
    let (folds, told) = cross(&tried);
    // The longest periods, which are the light load, are in the last fold.
    let last = folds.last().map(|fold| fold.chosen);
    let light = tried.into_iter().find(|tried| Some(tried.candidate) == last);
    Ok(summed_up(told, light.map(|tried| tried.light).unwrap_or_default(), folds))
}

fn summed_up(conditions: Vec<Condition>, light_rtt: Vec<HopRtt>, folds: Vec<Fold>) -> Validation {
    Validation {
        light_rtt,
        measured_effect: effect(&conditions, |condition| condition.measured),
        simulated_effect: effect(&conditions, |condition| condition.simulated),
        errors: errors(&conditions),
        conditions,
        folds,
    }
}

/// Every condition, and hops and time of first attempts at light load.
type Outcomes = (Vec<Condition>, Vec<(u32, f64)>);

fn conditions(
    measured: &Measured,
    how: How,
    candidate: Option<Candidate>,
    simulate: &Simulate<'_>,
) -> Result<Outcomes, Error> {
    let mut runs = Vec::new();
    for (algorithm, period) in measured.conditions.keys() {
        let scenario = model(measured, algorithm, *period, how.duration, candidate)?;
        runs.extend((1..=how.seeds).map(|seed| (scenario.clone(), Seed(seed.into()))));
    }
    let outcomes = in_parallel(how.jobs, &runs, |_, (scenario, seed)| {
        let outcome = simulate(scenario, *seed, Sinks::default(), &|_| ())?;
        Ok((figures(&outcome, scenario), first_attempts(&outcome, scenario)))
    });
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, RunError>>()?;
    let mut conditions = Vec::new();
    let mut light: Vec<(u32, f64)> = Vec::new();
    for (((algorithm, period), figures), outcomes) in
        measured.conditions.iter().zip(outcomes.chunks(how.seeds.max(1) as usize))
    {
        let simulated = mean_figures(outcomes.iter().map(|(figures, _)| *figures));
        let (algorithm, period_ms) = (algorithm.clone(), *period);
        if algorithm == "default" && period_ms >= LIGHT_MS {
            light.extend(outcomes.iter().flat_map(|(_, attempts)| attempts.iter().copied()));
        }
        conditions.push(Condition { algorithm, period_ms, measured: *figures, simulated });
    }
    Ok((conditions, light))
}

/// First attempts at this period and above see an idle network, ms.
const LIGHT_MS: u32 = 5_000;
/// The period at which the effect is looked at, ms.
const EFFECT_MS: u32 = 250;

fn model(
    measured: &Measured,
    algorithm: &str,
    period_ms: u32,
    duration: Duration,
    candidate: Option<Candidate>,
) -> Result<Scenario, ConfigErrors> {
    let congestion = if algorithm == "cocoa" { "cocoa/ecoap" } else { "default" };
    let mut overrides = vec![
        format!("topology.parents={:?}", measured.parents),
        format!("traffic.silent={:?}", measured.silent),
        format!("traffic.period={period_ms}ms"),
        format!("coap.congestion={congestion}"),
        format!("duration={duration}"),
    ];
    if let Some(Candidate { margin_db, shadowing_db }) = candidate {
        overrides.push(format!("radio.margin_db={margin_db}"));
        overrides.push(format!("radio.shadowing_db={shadowing_db}"));
    }
    Scenario::parse("the model of the testbed", MODEL, &overrides)
}

/// The transactions that the testbed would have counted.
fn counted<'o>(
    outcome: &'o Outcome,
    scenario: &Scenario,
) -> impl Iterator<Item = &'o Transaction> + use<'o> {
    let start = Instant::ZERO + scenario.head.warmup;
    outcome.transactions.iter().filter(move |t| t.issued >= start && t.sent.is_some())
}

fn figures(outcome: &Outcome, scenario: &Scenario) -> Figures {
    let (mut delays, mut failed, mut first) = (Vec::new(), 0_u64, 0_u64);
    for transaction in counted(outcome, scenario) {
        failed += u64::from(matches!(transaction.ending, Ending::Failed(_)));
        if let Some(delay) = transaction.delay() {
            delays.push(delay.as_millis_f64());
            first += u64::from(transaction.retransmissions == 0);
        }
    }
    delays.sort_unstable_by(f64::total_cmp);
    let acknowledged = delays.len() as f64;
    let span = (outcome.simulated - scenario.head.warmup).as_secs_f64();
    let acked: u64 = outcome.nodes.iter().map(|node| node.frames_acked).sum();
    Figures {
        throughput_tps: acknowledged / span,
        tdr: acknowledged / (acknowledged + failed as f64),
        rtt_p50_ms: percentile(&delays, 50.0).unwrap_or(f64::NAN),
        rtt_p95_ms: percentile(&delays, 95.0).unwrap_or(f64::NAN),
        link_success: acked as f64 / outcome.frames.sent as f64,
        first_attempts: first as f64 / acknowledged,
    }
}

/// Hops and time of every transaction that needed one copy.
fn first_attempts(outcome: &Outcome, scenario: &Scenario) -> Vec<(u32, f64)> {
    let first = counted(outcome, scenario).filter(|t| t.retransmissions == 0);
    let one =
        |t: &Transaction| Some((outcome.nodes[t.node.index()].hops?, t.delay()?.as_millis_f64()));
    first.filter_map(one).collect()
}

fn mean_figures(runs: impl Iterator<Item = Figures>) -> Figures {
    let runs: Vec<Figures> = runs.collect();
    let of = |figure: fn(&Figures) -> f64| {
        mean(&runs.iter().map(figure).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    Figures {
        throughput_tps: of(|f| f.throughput_tps),
        tdr: of(|f| f.tdr),
        rtt_p50_ms: of(|f| f.rtt_p50_ms),
        rtt_p95_ms: of(|f| f.rtt_p95_ms),
        link_success: of(|f| f.link_success),
        first_attempts: of(|f| f.first_attempts),
    }
}

fn light_rtt(measured: &Measured, light: &[(u32, f64)]) -> Vec<HopRtt> {
    let one = |(hops, measured_ms): (&u32, &f64)| {
        let there = light.iter().filter(|(at, _)| at == hops);
        let mut times: Vec<f64> = there.map(|(_, time)| *time).collect();
        times.sort_unstable_by(f64::total_cmp);
        let simulated_ms = percentile(&times, 50.0)?;
        Some(HopRtt { hops: *hops, measured_ms: *measured_ms, simulated_ms })
    };
    measured.light_rtt_ms.iter().filter_map(one).collect()
}

fn effect(conditions: &[Condition], of: impl Fn(&Condition) -> Figures) -> Option<Effect> {
    let at = |algorithm: &str| {
        let here = |c: &&Condition| c.algorithm == algorithm && c.period_ms == EFFECT_MS;
        conditions.iter().find(here).map(&of)
    };
    let (default, cocoa) = (at("default")?, at("cocoa")?);
    Some(Effect {
        throughput_ratio: cocoa.throughput_tps / default.throughput_tps,
        rtt_p95_ratio: cocoa.rtt_p95_ms / default.rtt_p95_ms,
    })
}

fn errors(conditions: &[Condition]) -> Vec<FigureError> {
    let one = |(place, (figure, _)): (usize, (&'static str, f64))| {
        let off = |condition: &Condition| {
            let (_, measured) = condition.measured.all()[place];
            libm::fabs(libm::log(condition.simulated.all()[place].1 / measured))
        };
        let mean_log = mean(&conditions.iter().map(off).collect::<Vec<_>>())?;
        Some(FigureError { figure, factor: libm::exp(mean_log) })
    };
    Figures::default().all().into_iter().enumerate().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(algorithm: &str, measured: (f64, f64), simulated: (f64, f64)) -> Condition {
        let figures = |(throughput_tps, rtt_p95_ms)| Figures {
            throughput_tps,
            rtt_p95_ms,
            ..Figures {
                tdr: 1.0,
                rtt_p50_ms: 1.0,
                link_success: 1.0,
                first_attempts: 1.0,
                ..Figures::default()
            }
        };
        Condition {
            algorithm: algorithm.to_owned(),
            period_ms: EFFECT_MS,
            measured: figures(measured),
            simulated: figures(simulated),
        }
    }

    #[test]
    fn the_effect_is_cocoas_figures_by_the_defaults_and_the_error_a_mean_factor() {
        let conditions = [
            condition("default", (20.0, 2000.0), (80.0, 3000.0)),
            condition("cocoa", (30.0, 1000.0), (30.0, 900.0)),
        ];
        let measured = effect(&conditions, |c| c.measured).expect("both are there");
        assert_eq!((measured.throughput_ratio, measured.rtt_p95_ratio), (1.5, 0.5));
        assert_eq!(effect(&conditions[..1], |c| c.measured), None);
        let errors = errors(&conditions);
        // Four times as much and right: twice as much on the whole.
        assert!((errors[0].factor - 2.0).abs() < 1e-12, "{errors:?}");
        assert_eq!(errors[3].figure, "rtt_p95_ms");
        assert!((errors[1].factor - 1.0).abs() < 1e-12, "{errors:?}");
    }

    #[test]
    fn the_model_takes_the_tree_and_the_clients_of_the_folder() {
        let measured = Measured {
            parents: vec![0, 1, 1],
            silent: vec![3],
            conditions: [].into(),
            light_rtt_ms: [].into(),
        };
        let scenario =
            model(&measured, "cocoa", 500, Duration::from_secs(60), None).expect("a model");
        let outcome = crate::simulate::simulate(&scenario, Seed(1), Sinks::default(), &|_| ())
            .expect("it runs");
        let clients: std::collections::BTreeSet<u16> =
            outcome.transactions.iter().map(|t| t.node.0).collect();
        assert_eq!(clients, [1, 2].into());
        let figures = figures(&outcome, &scenario);
        assert!((3.0..4.2).contains(&figures.throughput_tps), "{figures:?}");
        assert!(figures.tdr > 0.99 && figures.link_success > 0.9, "{figures:?}");
        assert!(first_attempts(&outcome, &scenario).iter().any(|(hops, _)| *hops == 2));
    }
}
