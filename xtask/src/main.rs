//! Development commands: the same ones by hand and in continuous integration, one file a command.
//!
//! Everything a command needs is asked of `cargo` or of the tool's own binary; nothing in here knows the
//! inside of a crate.

use std::process::ExitCode;

use anyhow::{Result, bail};
use gate::Gate;

mod bench;
mod capture;
mod chance;
mod check;
mod deny;
mod determinism;
mod docs;
mod examples;
mod figures;
mod gate;
#[cfg(feature = "grenoble")]
mod grenoble;
mod group_gates;
mod interop;
mod kernel_tcp;
#[cfg(feature = "manual")]
mod manual;
mod metadata;
mod no_std;
mod notices;
mod package;
mod ports;
mod process;
mod product;
mod python;
mod scapy;
#[cfg(feature = "siege")]
mod siege;
mod stale_store;
mod swarm;
mod tidy;
mod tools;
mod traces;
mod zep;

const USAGE: &str = "\
cargo xtask COMMAND

  check         formatting and lints   [formatting, build, tests, lints, rustdoc: these only]
  tidy          direction of dependencies, sizes, names, words, circles, citations, the list of dependencies
  test          everything a push must pass   [--list] [--only STAGE] [--again: also what passed on the same files]
                [--skip-external: leave out what needs other programs]
  nightly       all stages, in their longest form   [the same]
  stages        what each stage proves, when it runs and how long it takes   [--write: into CONTRIBUTING.md]
  deny          licences and sources of dependencies, and known vulnerabilities
  notices       licences and notices of all packages in the program   [FILE]
  package       every crate can be packaged   [--verify: and builds by itself]
  no-std        the device crates build without std
  determinism   the same seed gives the same trace, whatever the number of threads
  traces        built-in scenarios and reproductions give the recorded traces   [--scenarios] [--reproductions] [--write]
  examples      every program in examples/ builds and runs   [NAME...]
  stale-store   a changed program reuses no stored runs of the program before the change
  capture       a ten-minute capture that tshark must dissect without fault
  scapy         6LoWPAN beside scapy: it reads our frames, and our tests its own; --write updates them
  zep           a conversation over ZEP that tshark must dissect without fault
  interop       CoAP with libcoap and aiocoap in both directions, read by tshark
  kernel-tcp    transfers of the kernel over an emulated link, beside simulated ones   [--runs N] [--write] [--record FILE]
  fuzz          every decoder against mutated messages   SECONDS [--seed S] [--target NAME] [--case N]
  swarm         random small scenarios   [--liveness] [--count N] [--seed S] [--only S]
  siege         attacks on serve and proxy, beside honest clients   [--long] [--only NAME] [--list] [--seed S] [--json]
  bench         the speed table          [--quick]   [codec, server, coap DIR: those of CoAP]
  docs          the commands of README.md, tutorials and how-tos print what the pages say   [--write] [PAGE...]
  group-gates   adaptive gates of groups beside every fixed delay   [--quick] [--runs N] [contiki2014, ieee, tsch]
  figures       docs/figures from real runs and manifests   [--check] [--results: the table of the built-in scenarios]
  manual        the parts of pages that rows and recorded verdicts make   [--write] [--record FILE... [--minutes N]]
  grenoble      derives the built-in Grenoble table   RAW OUT";

/// The names of the commands in [`USAGE`].
fn commands() -> std::collections::BTreeSet<&'static str> {
    let rows = USAGE.lines().filter_map(|line| line.strip_prefix("  "));
    rows.filter_map(|row| row.split(' ').next()).collect()
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

fn run(args: &[String]) -> Result<()> {
    let Some((command, rest)) = args.split_first() else { bail!("which command?\n\n{USAGE}") };
    match command.as_str() {
        "check" => check::run(rest),
        "tidy" => tidy::run(rest),
        "test" => gate::run(Gate::Push, rest),
        "nightly" => gate::run(Gate::Nightly, rest),
        "stages" => gate::show(rest),
        "deny" => deny::run(rest),
        "notices" => notices::run(rest),
        "package" => package::run(rest),
        "no-std" => no_std::run(rest),
        "determinism" => determinism::run(rest),
        "traces" => traces::run(rest),
        "examples" => examples::run(rest),
        "stale-store" => stale_store::run(rest),
        "capture" => capture::run(rest),
        "scapy" => scapy::run(rest),
        "zep" => zep::run(rest),
        "interop" => interop::run(rest),
        "kernel-tcp" => kernel_tcp::run(rest),
        "fuzz" => fuzz(rest),
        "swarm" => swarm::run(rest),
        "siege" => besiege(rest),
        "bench" => bench::run(rest),
        "group-gates" => group_gates::run(rest),
        "figures" => figures::run(rest),
        "docs" => docs::run(rest),
        "manual" => make_manual(rest),
        "grenoble" => derive_grenoble(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        other => bail!("there is no command {other:?}\n\n{USAGE}"),
    }
}

/// A program of its own, so that the gates build when a decoder does not.
fn fuzz(args: &[String]) -> Result<()> {
    let mut program = process::cargo(&[
        "run",
        "--quiet",
        "--profile",
        product::PROFILE,
        "--package",
        "lowmesh-fuzz",
        "--",
    ]);
    program.args(args);
    process::execute(program)
}

#[cfg(feature = "siege")]
fn besiege(args: &[String]) -> Result<()> {
    siege::run(args)
}

/// This program again, with the attacks in it.
#[cfg(not(feature = "siege"))]
fn besiege(args: &[String]) -> Result<()> {
    again("siege", args)
}

#[cfg(feature = "manual")]
fn make_manual(args: &[String]) -> Result<()> {
    manual::run(args)
}

/// This program again, with the lab in it.
#[cfg(not(feature = "manual"))]
fn make_manual(args: &[String]) -> Result<()> {
    again("manual", args)
}

#[cfg(feature = "grenoble")]
fn derive_grenoble(args: &[String]) -> Result<()> {
    grenoble::run(args)
}

/// This program again, with the simulator in it.
#[cfg(not(feature = "grenoble"))]
fn derive_grenoble(args: &[String]) -> Result<()> {
    again("grenoble", args)
}

/// This program again, with the feature that a command of the same name needs.
#[cfg(not(all(feature = "grenoble", feature = "manual", feature = "siege")))]
fn again(command: &str, args: &[String]) -> Result<()> {
    let mut again = process::cargo(&["run", "--quiet", "--package", "xtask"]);
    again.args(["--profile", product::PROFILE, "--features", command, "--", command]).args(args);
    process::execute(again)
}
