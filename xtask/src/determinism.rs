//! `determinism`: one scenario and one seed give one trace, whatever the number of threads and however
//! often it runs; another seed gives another.

use anyhow::{Result, bail, ensure};

use crate::product;

/// Small, but with every layer at work.
const SCENARIOS: &[&[&str]] = &[
    &["grenoble-50", "--set", "duration=10min", "--set", "warmup=5min"],
    &["grid-25", "--set", "duration=10min", "--set", "warmup=7min"],
];

/// Runs each scenario three times and compares the trace hashes.
pub fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        bail!("determinism takes no argument, but got {unknown:?}");
    }
    let binary = product::build()?;
    for scenario in SCENARIOS {
        let hashes = |seeds: &str, jobs: &str| {
            let more = ["--seed", "1", "--seeds", seeds, "--jobs", jobs];
            let args: Vec<&str> = scenario.iter().copied().chain(more).collect();
            product::trace_hashes(&product::report(product::run(&binary, &args))?)
        };
        let (alone, again, shared) = (hashes("2", "1")?, hashes("1", "1")?, hashes("2", "2")?);
        compare(&alone, &again, &shared).map_err(|error| error.context(scenario[0]))?;
        println!("{}: seed 1 {}, seed 2 {}", scenario[0], alone[0].1, alone[1].1);
    }
    Ok(())
}

type Hashes = [(u64, String)];

fn compare(alone: &Hashes, again: &Hashes, shared: &Hashes) -> Result<()> {
    ensure!(alone.len() == 2, "asked for 2 runs, got {}", alone.len());
    ensure!(alone == shared, "1 thread gave {alone:?}, 2 threads gave {shared:?}");
    ensure!(again == &alone[..1], "seed 1 gave {:?} and then {again:?}", alone[0]);
    ensure!(alone[0].1 != alone[1].1, "two seeds gave the same trace {}", alone[0].1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_traces_of_equal_seeds_pass() {
        let runs = |first: &str, second: &str| [(1, first.to_owned()), (2, second.to_owned())];
        let good = runs("a", "b");
        assert!(compare(&good, &good[..1], &good).is_ok());
        assert!(compare(&good, &good[..1], &runs("a", "c")).is_err());
        assert!(compare(&good, &runs("c", "b")[..1], &good).is_err());
        let same = runs("a", "a");
        assert!(compare(&same, &same[..1], &same).is_err());
    }
}
