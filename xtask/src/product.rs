//! The product's own command as the other commands call it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// The file of the built command.
pub const NAME: &str = if cfg!(windows) { "lowmesh.exe" } else { "lowmesh" };

/// The profile of the gate: one build for tests and for the command that the stages run.
pub const PROFILE: &str = "ci";

/// The variable in which the gate passes the command that it has built.
pub const BUILT: &str = "LOWMESH_BUILT";

/// The command with the profile of the gate; built unless the gate has built it.
pub fn build() -> Result<PathBuf> {
    if let Some(built) = std::env::var_os(BUILT) {
        return Ok(PathBuf::from(built));
    }
    process::execute(process::cargo(&[
        "build",
        "--quiet",
        "--profile",
        PROFILE,
        "--package",
        "lowmesh",
    ]))?;
    path()
}

/// Where the command with the profile of the gate is.
pub fn path() -> Result<PathBuf> {
    Ok(target()?.join(PROFILE).join(NAME))
}

/// Builds the command as `cargo install` does: for what measures speed.
pub fn optimised() -> Result<PathBuf> {
    process::execute(process::cargo(&["build", "--quiet", "--release", "--package", "lowmesh"]))?;
    Ok(target()?.join("release").join(NAME))
}

/// The folder of everything that cargo builds.
pub fn target() -> Result<PathBuf> {
    let metadata = process::read(process::cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
    let target =
        metadata["target_directory"].as_str().context("cargo metadata has no target_directory")?;
    Ok(PathBuf::from(target))
}

/// `lowmesh run ARGS --json --quiet`.
pub fn run(binary: &PathBuf, args: &[&str]) -> Command {
    let mut command = process::command(binary, &["run"]);
    command.args(args).args(["--json", "--quiet"]);
    command
}

/// Runs it and reads its JSON.
pub fn report(command: Command) -> Result<Value> {
    let line = process::line(&command);
    let text = process::read(command)?;
    serde_json::from_str(&text).with_context(|| format!("{line} did not write JSON"))
}

/// Seed and trace hash of each run of a report, in its order.
pub fn trace_hashes(report: &Value) -> Result<Vec<(u64, String)>> {
    let runs = report["runs"].as_array().context("the report has no list `runs`")?;
    runs.iter()
        .map(|run| {
            let seed = run["seed"].as_u64().context("a run has no `seed`")?;
            let hash = run["trace_hash"].as_str().context("a run has no `trace_hash`")?;
            Ok((seed, hash.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read_with_their_seeds() {
        let report = serde_json::json!({"runs": [{"seed": 7, "trace_hash": "ab"}]});
        assert_eq!(trace_hashes(&report).expect("well formed"), [(7, "ab".to_owned())]);
        assert!(trace_hashes(&serde_json::json!({"runs": [{"seed": 7}]})).is_err());
    }
}
