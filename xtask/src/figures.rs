//! `figures`: draws `docs/figures` from real runs and from the manifests, takes the picture of a report, and with
//! `--results` rewrites the table of the built-in scenarios. Nothing in them is typed in.
//!
//! The same version gives the same figures, byte for byte, so `--check` compares them. A screenshot differs between
//! browsers, so `--check` compares a digest of the page that it shows. Only the speeds in the table differ; README has that
//! of the table.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::{process, product};

mod architecture;
mod axes;
mod delay;
mod grenoble;
mod join;
mod layers;
mod links;
mod report;
mod results;
mod svg;
mod trace;
mod tree;

const FOLDER: &str = "docs/figures";

/// Draws the figures, or compares them with `--check`, or writes the table of results with `--results`.
pub fn run(args: &[String]) -> Result<()> {
    let check = match args {
        [] => false,
        [flag] if flag == "--check" => true,
        [flag] if flag == "--results" => return results::rewrite(&product::optimised()?),
        [other, ..] => bail!("unknown argument {other:?}; allowed: --check, --results"),
    };
    let mut stale = Vec::new();
    let mut figure = |name, text: String| -> Result<()> {
        if !refreshed(name, &text, check)? {
            stale.push(name);
        }
        Ok(())
    };
    figure("architecture.svg", architecture::made()?)?;
    let binary = product::build()?;
    figure("grenoble-50.svg", grenoble::made(&binary)?)?;
    if !report::refreshed(&binary, check)? {
        stale.push(report::PICTURE);
    }
    if check && !results::is_current()? {
        bail!(
            "README.md has another speed than docs/topics/results.md; `cargo xtask figures --results` mends both"
        );
    }
    if check && !stale.is_empty() {
        bail!("{FOLDER}: `cargo xtask figures` brings up to date: {}", stale.join(", "));
    }
    println!(
        "{FOLDER}: {} changed",
        if stale.is_empty() { "nothing".into() } else { stale.join(", ") }
    );
    Ok(())
}

/// Whether a figure has this text; writes it unless this is a `check`.
fn refreshed(name: &str, text: &str, check: bool) -> Result<bool> {
    let path = path(name);
    if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
        return Ok(true);
    }
    if !check {
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(false)
}

/// The file of a figure.
fn path(name: &str) -> PathBuf {
    process::root().join(FOLDER).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_flag_is_refused_before_anything_runs() {
        let error = run(&["--fast".to_owned()]).expect_err("no such flag");
        assert!(error.to_string().contains("--fast"));
    }
}
