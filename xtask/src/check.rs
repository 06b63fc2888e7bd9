//! `check`: formatting and lints, without running anything.

use anyhow::{Result, bail};

use crate::process;

/// Runs both.
pub fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        bail!("check takes no argument, but got {unknown:?}");
    }
    formatting()?;
    lints()
}

/// Every file is as rustfmt would write it.
pub fn formatting() -> Result<()> {
    process::execute(process::cargo(&["fmt", "--all", "--", "--check"]))
}

/// No warning of the compiler or of clippy anywhere, tests included.
pub fn lints() -> Result<()> {
    process::execute(process::cargo(&[
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]))
}
