//! What `cargo metadata` says about the workspace: packages, their folders and their dependencies.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// One package of the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Package {
    /// Its name, without the house's prefix for libraries: `mac`, `lowmesh` (the command), `xtask`.
    pub name: String,
    /// Its name as its manifest has it.
    pub full_name: String,
    /// It may be published.
    pub is_public: bool,
    /// The folder of its manifest.
    pub folder: PathBuf,
    /// What it depends on, in the manifest's order.
    pub dependencies: Vec<Dependency>,
}

/// One line of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The package, named as in [`Package::name`] when it belongs to the workspace.
    pub name: String,
    /// True when it comes from the workspace, false for a package of others.
    pub ours: bool,
    /// True for a dependency of tests only.
    pub dev: bool,
}

/// All packages of the workspace, in order of name.
pub fn packages() -> Result<Vec<Package>> {
    let text = process::read(process::cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ]))?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
    let mut packages =
        array(&metadata, "packages")?.iter().map(package).collect::<Result<Vec<_>>>()?;
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}

fn package(value: &Value) -> Result<Package> {
    let mut folder = PathBuf::from(text(value, "manifest_path")?);
    folder.pop();
    let dependencies =
        array(value, "dependencies")?.iter().map(dependency).collect::<Result<Vec<_>>>()?;
    let name = text(value, "name")?;
    // An empty list of registries is `publish = false`.
    let is_public = value.get("publish").and_then(Value::as_array).is_none_or(|to| !to.is_empty());
    Ok(Package { name: short(name), full_name: name.to_owned(), is_public, folder, dependencies })
}

fn dependency(value: &Value) -> Result<Dependency> {
    let ours = value.get("path").is_some_and(Value::is_string);
    let name = text(value, "name")?;
    Ok(Dependency {
        name: if ours { short(name) } else { name.to_owned() },
        ours,
        dev: value.get("kind").and_then(Value::as_str) == Some("dev"),
    })
}

fn short(name: &str) -> String {
    name.strip_prefix("lowmesh-").unwrap_or(name).to_owned()
}

fn array<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("cargo metadata has no list {key:?}"))
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().with_context(|| format!("cargo metadata has no text {key:?}"))
}
