//! `package`: every crate that can be published can be packaged; `--verify` also builds each package by itself.

use anyhow::{Result, bail};

use crate::{metadata, process};

/// Packages all crates with `publish` not false.
pub fn run(args: &[String]) -> Result<()> {
    let verify = match args {
        [] => false,
        [flag] if flag == "--verify" => true,
        other => bail!("unknown arguments {other:?}; allowed: --verify"),
    };
    let mut package =
        process::cargo(&["package", "--quiet", "--workspace", "--allow-dirty", "--locked"]);
    for private in metadata::packages()?.iter().filter(|package| !package.is_public) {
        package.args(["--exclude", &private.full_name]);
    }
    if !verify {
        package.arg("--no-verify");
    }
    process::execute(package)
}
