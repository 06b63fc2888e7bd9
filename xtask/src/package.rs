//! `package`: every crate that can be published can be packaged; `--verify` also builds each package by itself.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, bail};

use crate::{metadata, process, product};

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
    if verify {
        forget_unpacked(&cargo_home()?)?;
        let folder = product::target()?.join("packages");
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot empty {}", folder.display()))?;
        }
        package.arg("--target-dir").arg(folder);
    } else {
        package.arg("--no-verify");
    }
    process::execute(package)
}

/// Where cargo keeps what it has fetched.
fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = env::var_os("CARGO_HOME") {
        return Ok(PathBuf::from(home));
    }
    Ok(env::home_dir().context("this account has no home folder")?.join(".cargo"))
}

/// Deletes the sources that cargo has unpacked from packages of a folder.
///
/// To build a package, cargo takes those that it depends on from such a folder and unpacks them into its home. It finds
/// them there by name and version the next time, and would build against the sources of then. So it does with what it
/// has compiled of them, which is why the packages have a target folder of their own.
fn forget_unpacked(cargo_home: &Path) -> Result<()> {
    let folder = cargo_home.join("registry/src");
    if !folder.exists() {
        return Ok(());
    }
    let unreadable = || format!("cannot list {}", folder.display());
    for registry in fs::read_dir(&folder).with_context(unreadable)? {
        let registry = registry.with_context(unreadable)?;
        // `HOST-HASH`; a folder has no host.
        if registry.file_name().to_string_lossy().starts_with('-') {
            let path = registry.path();
            fs::remove_dir_all(&path)
                .with_context(|| format!("cannot delete {}", path.display()))?;
        }
    }
    Ok(())
}
