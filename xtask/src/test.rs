//! `test`: everything a change must pass, in the order in which a fault is cheapest to find.
//!
//! It runs on a machine with nothing but a Rust toolchain. tshark is installed if the user is root, and otherwise an error
//! names it. CoAP peers that cannot be installed are reported and skipped.

use anyhow::{Context, Result, bail};

use crate::process::{self, Stopwatch};
use crate::{
    capture, check, determinism, docs, examples, figures, interop, no_std, scapy, stale_store,
    swarm, tidy, tools, traces, zep,
};

type Stage = (&'static str, fn() -> Result<()>);

const STAGES: &[Stage] = &[
    ("tidy: directions, sizes, names, circles, dependencies", || tidy::run(&[])),
    ("formatting", check::formatting),
    ("lints", check::lints),
    ("tests of all crates", tests),
    ("device crates without std", || no_std::run(&[])),
    ("same seed, same trace", || determinism::run(&[])),
    ("recorded traces", || traces::run(&[])),
    ("examples of own algorithms", || examples::run(&[])),
    ("commands of the manual", || docs::run(&[])),
    ("figures of the manual", || figures::run(&["--check".to_owned()])),
    ("other sources, other runs", || stale_store::run(&[])),
    ("random worlds", || fresh(|seed| swarm::run(&seed(&["--count", "20"])))),
    ("mutated messages", || fresh(|seed| crate::fuzz(&seed(&["1"])))),
    ("attacks on serve and proxy", siege),
];

const EXTERNAL: &[Stage] = &[
    ("capture read by tshark", || capture::run(&[])),
    ("ZEP read by tshark", || zep::run(&[])),
    ("CoAP with libcoap and aiocoap, read by tshark", || interop::run(&[])),
    ("6LoWPAN read and built by scapy", || scapy::run(&[])),
];

/// Runs all stages and stops at the first that fails.
pub fn run(args: &[String]) -> Result<()> {
    let mut external = true;
    for arg in args {
        match arg.as_str() {
            "--skip-external" => external = false,
            other => bail!("unknown argument {other:?}; allowed: --skip-external"),
        }
    }
    let whole = Stopwatch::start();
    let mut stages: Vec<Stage> = Vec::new();
    if external {
        stages.push(("tools", tools::tshark));
    }
    stages.extend(STAGES);
    if external {
        stages.extend(EXTERNAL);
    }
    for (number, (name, stage)) in stages.iter().enumerate() {
        let place = format!("[{}/{}] {name}", number + 1, stages.len());
        println!("\n== {place}");
        let clock = Stopwatch::start();
        stage().with_context(|| format!("{place} failed"))?;
        println!("== {place}: passed in {:.1} s", clock.elapsed().as_secs_f64());
    }
    let skipped = if external { "" } else { " (without the stages that need other programs)" };
    println!(
        "\nall {} stages passed in {:.0} s{skipped}",
        stages.len(),
        whole.elapsed().as_secs_f64()
    );
    Ok(())
}

fn tests() -> Result<()> {
    let features = ["--features", "xtask/manual,xtask/siege"];
    process::execute(process::cargo(&[&["test", "--quiet", "--workspace"][..], &features].concat()))
}

/// A stage whose cases are others for each commit, and the same when a commit is tested again. `stage` gets a function
/// that adds the seed to its arguments.
fn fresh(stage: impl FnOnce(&dyn Fn(&[&str]) -> Vec<String>) -> Result<()>) -> Result<()> {
    let commit = process::read(process::command("git", &["rev-parse", "--short=7", "HEAD"]));
    let number = |commit: String| u64::from_str_radix(commit.trim(), 16).ok();
    // An archive of the sources knows no commit.
    let seed = commit.ok().and_then(number).unwrap_or(1);
    println!("seed {seed}, from the commit");
    stage(&|args| {
        let seed = ["--seed".to_owned(), seed.to_string()];
        args.iter().map(|arg| (*arg).to_owned()).chain(seed).collect()
    })
}

/// The short form, where all of 127.0.0.0/8 is this machine's.
fn siege() -> Result<()> {
    if !cfg!(target_os = "linux") {
        println!("skipped: forged sources on loopback need Linux");
        return Ok(());
    }
    crate::besiege(&["--short".to_owned()])
}
