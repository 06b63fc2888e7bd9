//! `package`: every crate that can be published can be packaged; `--verify` also builds each package by itself.

use anyhow::{Result, bail};

use crate::process;

/// Packages all crates with `publish` not false.
pub fn run(args: &[String]) -> Result<()> {
    let verify = match args {
        [] => false,
        [flag] if flag == "--verify" => true,
        other => bail!("unknown arguments {other:?}; allowed: --verify"),
    };
    let mut package =
        process::cargo(&["package", "--quiet", "--workspace", "--allow-dirty", "--locked"]);
    if !verify {
        package.arg("--no-verify");
    }
    process::execute(package)
}
