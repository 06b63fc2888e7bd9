//! `examples`: every program in `examples/` builds and runs.
//!
//! The examples are packages outside of the workspace, as those of a user are. They share its target folder, and the
//! versions of its lock file, so that a dependency is built once for all of them.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::{process, product};

/// Builds and runs the examples with these names, or all.
pub fn run(names: &[String]) -> Result<()> {
    let root = process::root();
    let mut examples: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(root.join("examples")).context("cannot list examples/")? {
        let folder = entry?.path();
        let is_asked = |name: &String| folder.ends_with(name);
        if folder.join("Cargo.toml").is_file() && (names.is_empty() || names.iter().any(is_asked)) {
            examples.push(folder);
        }
    }
    examples.sort();
    ensure!(examples.len() >= names.len().max(1), "examples/ does not hold all of {names:?}");
    let target = product::target()?;
    for folder in &examples {
        println!("-- {}", folder.display());
        fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).context("no lock file")?;
        let mut program = process::cargo(&["run", "--quiet", "--manifest-path"]);
        program.arg(folder.join("Cargo.toml"));
        program.arg("--target-dir").arg(&target);
        process::execute(program)?;
    }
    println!("{} examples ran", examples.len());
    Ok(())
}
