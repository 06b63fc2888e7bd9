//! `stale-store`: no build of the program takes its results from runs of another.
//!
//! There are three copies of the sources: the workspace, an equal copy, and a copy with a changed timer. The copies lie
//! under `target`. Only files that differ are written, so that a second call builds only what changed since the first.
//!
//! Each copy has its own target folder: in a shared one cargo mixes up packages with the same name, and would reuse the
//! unchanged timer if it is newer than the changed one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{process, product};

/// What a build of the command reads.
const SOURCES: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "crates",
    "fuzz/Cargo.toml",
    "fuzz/src",
    "xtask/Cargo.toml",
    "xtask/src",
];

/// The change: first timeouts are drawn from a narrower range.
const CHANGED: &str = "crates/congestion/src/params.rs";
const BEFORE: &str = "pub const ACK_RANDOM_FACTOR: f64 = 1.5;";
const AFTER: &str = "pub const ACK_RANDOM_FACTOR: f64 = 1.25;";

/// Three nodes in a line: two points of two runs, with losses, take a second.
const SWEEP: &[&str] = &[
    "crates/cli/tests/suite/folder/line-3.toml",
    "--seeds",
    "2",
    "--set",
    "mac.retries=0",
    "--set",
    "sweep.traffic.period=500ms,1s",
];

/// Runs of the sweep.
const RUNS: u64 = 4;

/// Builds both programs and lets them take turns at one store.
pub fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        bail!("stale-store takes no argument, but got {unknown:?}");
    }
    let target = product::target()?;
    let home = target.join("stale-store");
    let [same, changed] = ["same", "changed"].map(|name| home.join(name));
    copy(&same, |_, text| text)?;
    let edit = |place: &str, text| if place == CHANGED { change(text) } else { text };
    ensure!(copy(&changed, edit)?, "{CHANGED} does not say {BEFORE:?}");
    let ours = Program::new(product::build()?)?;
    ensure!(
        id_of_sources(&same)? == ours.id,
        "the same sources in {} have another id than {}",
        same.display(),
        ours.id
    );
    process::execute(inside(&changed, &["build", "--quiet", "--package", "lowmesh"]))?;
    let theirs = Program::new(changed.join("target").join("debug").join(product::NAME))?;
    ensure!(ours.id != theirs.id, "a changed timer leaves the id {}", ours.id);
    take_turns(&ours, &theirs, &home)?;
    println!("build {}: {RUNS} runs of build {} in its store are not used", theirs.id, ours.id);
    Ok(())
}

/// What the user of a program that is changed and built again sees.
fn take_turns(ours: &Program, theirs: &Program, home: &Path) -> Result<()> {
    let store = home.join("store");
    if store.exists() {
        fs::remove_dir_all(&store).context("cannot empty the store")?;
    }
    let before = ours.sweep(&store)?;
    ensure!(ours.stored(&store)? == RUNS, "a program does not find its own runs");
    ensure!(theirs.stored(&store)? == 0, "a changed program takes runs of another");
    let (messages, after) = (theirs.messages(&store)?, theirs.sweep(&store)?);
    let named = format!("{RUNS} stored runs are of build {}", ours.short());
    ensure!(messages.contains(&named), "{messages:?} does not say {named:?}");
    ensure!(after["build"]["id"] == theirs.id.as_str(), "the report names another build");
    for (old, new) in traces(&before)?.iter().zip(&traces(&after)?) {
        ensure!(old.0 != new.0, "two builds gave a run the name {}", old.0);
        ensure!(
            old.1 != new.1,
            "the change does not show: run {} has the trace of {}",
            new.0,
            old.0
        );
    }
    ensure!(ours.stored(&store)? == RUNS, "a program lost its runs to another");
    ensure!(ours.sweep(&store)? == before, "stored runs changed under another program");
    Ok(())
}

/// A built command.
struct Program {
    path: PathBuf,
    /// The id of its build.
    id: String,
}

impl Program {
    fn new(path: PathBuf) -> Result<Self> {
        let text = process::read(process::command(&path, &["--version"]))?;
        let id = text.lines().find_map(|line| line.strip_prefix("build "));
        let id = id.with_context(|| format!("{} has no build in {text:?}", path.display()))?;
        Ok(Self { id: id.to_owned(), path })
    }

    fn short(&self) -> &str {
        &self.id[..12]
    }

    /// `lowmesh run` of the sweep with `more` arguments.
    fn command(&self, store: &Path, more: &[&str]) -> Command {
        let mut command = process::command(&self.path, &["run"]);
        command.args(SWEEP).arg("--store").arg(store).args(more);
        command
    }

    /// The report of the sweep.
    fn sweep(&self, store: &Path) -> Result<Value> {
        product::report(self.command(store, &["--json", "--quiet"]))
    }

    /// How many runs of the sweep it takes from the store.
    fn stored(&self, store: &Path) -> Result<u64> {
        let dry = product::report(self.command(store, &["--json", "--dry-run"]))?;
        dry["stored"].as_u64().context("the dry run does not say how many runs are stored")
    }

    /// What it writes to stderr while it runs the sweep.
    fn messages(&self, store: &Path) -> Result<String> {
        let output = self.command(store, &["--progress", "none"]).output()?;
        ensure!(output.status.success(), "{} failed", self.path.display());
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Name and trace of each run of a sweep.
fn traces(report: &Value) -> Result<Vec<(String, String)>> {
    let points = report["points"].as_array().context("the report has no points")?;
    let runs = points.iter().flat_map(|point| point["runs"].as_array().into_iter().flatten());
    let text = |run: &Value, key: &str| Some(run[key].as_str()?.to_owned());
    let runs: Vec<_> =
        runs.filter_map(|run| Some((text(run, "id")?, text(run, "trace_hash")?))).collect();
    ensure!(runs.len() as u64 == RUNS, "the report has {} runs", runs.len());
    Ok(runs)
}

/// The id that the build script finds for the sources in `folder`; nothing but the script needs to be compiled.
fn id_of_sources(folder: &Path) -> Result<String> {
    let args = ["check", "--quiet", "--package", "lowmesh-lab", "--message-format", "json"];
    let check = inside(folder, &args);
    let messages = process::read(check)?;
    let mut messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let id = |message: Value| {
        let pairs = message["env"].as_array()?.iter();
        let mut ids = pairs.filter(|pair| pair[0] == "LOWMESH_BUILD");
        Some(ids.next()?[1].as_str()?.to_owned())
    };
    messages.find_map(id).context("the build script gave no id")
}

/// Cargo in a copy. Without optimisation and debug information it takes half the time; neither changes the id of a build.
fn inside(folder: &Path, args: &[&str]) -> Command {
    let mut cargo = process::cargo(args);
    cargo.current_dir(folder).env("CARGO_TARGET_DIR", folder.join("target"));
    cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_DEV_DEBUG", "false");
    cargo
}

fn change(text: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(text).unwrap_or_default();
    text.replace(BEFORE, AFTER).into_bytes()
}

/// Makes `to` a copy of the sources, each file edited by `edit`. Files that are right already keep their time, so that
/// cargo takes them for unchanged.
/// Returns whether `edit` changed a file.
fn copy(to: &Path, edit: impl Fn(&str, Vec<u8>) -> Vec<u8>) -> Result<bool> {
    let root = process::root();
    let mut wanted = Vec::new();
    for place in SOURCES {
        list(&root, place, &mut wanted)?;
    }
    let mut there = Vec::new();
    for place in SOURCES.iter().filter(|place| to.join(place).exists()) {
        list(to, place, &mut there)?;
    }
    for place in there.iter().filter(|place| !wanted.contains(place)) {
        fs::remove_file(to.join(place)).with_context(|| format!("cannot remove {place}"))?;
    }
    let mut changed = false;
    for place in &wanted {
        let path = to.join(place);
        let original =
            fs::read(root.join(place)).with_context(|| format!("cannot read {place}"))?;
        let text = edit(place, original.clone());
        changed |= text != original;
        if fs::read(&path).is_ok_and(|old| old == text) {
            continue;
        }
        let folder = path.parent().context("a file lies in a folder")?;
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(changed)
}

/// Every file at `place` or below, as paths from `root` with `/`.
fn list(root: &Path, place: &str, files: &mut Vec<String>) -> Result<()> {
    let path = root.join(place);
    if path.is_file() {
        files.push(place.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))?;
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        list(root, &format!("{place}/{name}"), files)?;
    }
    Ok(())
}
