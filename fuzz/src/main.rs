//! Every decoder against mutated messages, for so many seconds each: what panics, or what does not read back, is
//! a finding.
//!
//! A plain loop instead of libFuzzer: it runs on a stable toolchain and in continuous integration, and a finding is
//! three numbers, not a file. What it lacks, coverage to steer by, the corpora make up for: real frames of a
//! simulated mesh, the RFCs' own examples and whole conversations. A target is a function of octets, so libFuzzer
//! could call it as it is.

mod alone;
mod application;
mod connection;
mod conversation;
mod entities;
mod entity_steps;
mod group_security;
mod hosts;
mod link;
mod mutation;
mod security;
mod target;

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::mutation::mutated;
use crate::target::Target;

const USAGE: &str = "\
cargo xtask fuzz SECONDS [--seed S] [--target NAME]    each target for so long
cargo xtask fuzz --target NAME --seed S --case N       one case again, as a finding says it";

/// Cases between two looks at the clock.
const BATCH: u64 = 256;

/// What the last panic said, and where.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// All targets.
fn targets() -> Vec<Target> {
    let mut all = link::targets();
    all.extend(application::targets());
    all.extend(security::targets());
    all.extend(group_security::targets());
    all.extend(conversation::targets());
    all.extend(connection::targets());
    all.extend(entities::targets());
    all.extend(hosts::targets());
    all
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The arguments.
struct Options {
    seconds: u64,
    seed: u64,
    target: Option<String>,
    case: Option<u64>,
}

fn options(args: &[String]) -> Result<Options> {
    let mut options = Options { seconds: 0, seed: 1, target: None, case: None };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let number = |text: &String| -> Result<u64> {
            text.parse().with_context(|| format!("{text:?} is not a number\n\n{USAGE}"))
        };
        let mut value = || rest.next().with_context(|| format!("{arg} needs a value\n\n{USAGE}"));
        match arg.as_str() {
            "--seed" => options.seed = number(value()?)?,
            "--case" => options.case = Some(number(value()?)?),
            "--target" => options.target = Some(value()?.clone()),
            _ => options.seconds = number(arg)?,
        }
    }
    ensure!(options.seconds > 0 || options.case.is_some(), "for how many seconds?\n\n{USAGE}");
    Ok(options)
}

fn run(args: &[String]) -> Result<()> {
    let options = options(args)?;
    panic::set_hook(Box::new(|panic| {
        let mut last = LAST_PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *last = panic.to_string();
    }));
    let wanted = |target: &Target| options.target.as_ref().is_none_or(|name| *name == target.name);
    let chosen: Vec<Target> = targets().into_iter().filter(wanted).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = targets().iter().map(|target| target.name).collect();
        bail!("there is no such target; there are {}", names.join(", "));
    }
    let mut findings = 0;
    for target in &chosen {
        let outcome = match options.case {
            Some(case) => {
                examine(target, options.seed, case).map(|accepted| (1, u64::from(accepted)))
            }
            None => hunt(target, options.seed, Duration::from_secs(options.seconds)),
        };
        match outcome {
            Ok((cases, accepted)) => {
                println!("{:<22} {cases:>9} cases, {accepted:>9} of them valid", target.name);
            }
            Err(finding) => {
                findings += 1;
                println!("{:<22} FAILED at case {}: {}", target.name, finding.case, finding.panic);
                println!("  octets: {}", hex(&finding.octets));
                let (name, seed, case) = (target.name, options.seed, finding.case);
                println!("  again: cargo xtask fuzz --target {name} --seed {seed} --case {case}");
            }
        }
    }
    ensure!(findings == 0, "{findings} of {} targets failed", chosen.len());
    Ok(())
}

/// A case that panicked.
struct Finding {
    case: u64,
    panic: String,
    octets: Vec<u8>,
}

/// Cases until the time is over; how many, and how many of them were accepted.
#[allow(
    clippy::disallowed_methods,
    reason = "the budget is wall-clock time; no case depends on it"
)]
fn hunt(target: &Target, seed: u64, budget: Duration) -> Result<(u64, u64), Finding> {
    let start = Instant::now();
    let (mut cases, mut accepted) = (0, 0);
    while start.elapsed() < budget {
        for case in cases..cases + BATCH {
            accepted += u64::from(examine(target, seed, case)?);
        }
        cases += BATCH;
    }
    Ok((cases, accepted))
}

/// One case; whether it was accepted.
fn examine(target: &Target, seed: u64, case: u64) -> Result<bool, Finding> {
    let octets = mutated(&target.corpus, seed, case);
    panic::catch_unwind(AssertUnwindSafe(|| (target.accepts)(&octets))).map_err(|_| {
        let last = LAST_PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Finding { case, panic: last.replace('\n', " "), octets }
    })
}

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |text, octet| text + &format!("{octet:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_of_every_corpus_is_valid() {
        for target in targets() {
            assert!(!target.corpus.is_empty(), "{} has no corpus", target.name);
            for seed in &target.corpus {
                assert!((target.accepts)(seed), "{} refuses {}", target.name, hex(seed));
            }
        }
    }

    #[test]
    fn a_thousand_cases_of_every_target_pass() {
        for target in targets() {
            for case in 0..1000 {
                (target.accepts)(&mutated(&target.corpus, 7, case));
            }
        }
    }

    #[test]
    fn a_case_is_the_same_each_time_and_differs_from_the_next() {
        let corpus = vec![vec![0; 40]];
        assert_eq!(mutated(&corpus, 1, 2), mutated(&corpus, 1, 2));
        assert_ne!(mutated(&corpus, 1, 2), mutated(&corpus, 1, 3));
    }

    #[test]
    fn names_of_targets_differ() {
        let mut names: Vec<_> = targets().iter().map(|target| target.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
