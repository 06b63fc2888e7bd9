//! `traces`: the traces of the built-in scenarios, and of the quick runs of the reproductions, are the recorded ones.
//!
//! A refactoring keeps them all. A change of behaviour records new ones with `--write`, in a commit of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::{process, product};

/// The recorded traces, one line a command.
const TABLE: &str = "xtask/traces.txt";
/// What stands above them.
const HEAD: &str = "\
# Digest of the trace hashes of all runs of a command, with the number of the runs; `cargo xtask traces` compares,
# `cargo xtask traces --write` records. Only a commit that changes what is simulated changes this file.
";

/// How the command of a reproduction begins.
const REPRODUCE: &str = "reproduce ";

/// A command of the product: its arguments, and the digest of its runs.
type Table = BTreeMap<String, Digest>;

/// What all runs of one command come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digest {
    runs: usize,
    hash: u64,
}

impl Digest {
    /// The digest does not depend on the order of the runs, nor on their names: these depend on the sources.
    fn of(mut runs: Vec<(u64, String)>) -> Self {
        runs.sort();
        let lines: Vec<String> =
            runs.iter().map(|(seed, trace)| format!("{seed} {trace}")).collect();
        let text = lines.join("\n");
        Self { runs: runs.len(), hash: xxh3_64(text.as_bytes()) }
    }
}

/// Compares the traces with the table, or writes it.
pub fn run(args: &[String]) -> Result<()> {
    let (write, part) = match args {
        [] => (false, None),
        [flag] if flag == "--write" => (true, None),
        [flag] if flag == "--scenarios" => (false, Some("run ")),
        [flag] if flag == "--reproductions" => (false, Some(REPRODUCE)),
        other => {
            bail!("unknown arguments {other:?}; allowed: --write, --scenarios, --reproductions")
        }
    };
    let is_asked = |command: &String| part.is_none_or(|part| command.starts_with(part));
    let binary = product::build()?;
    let mut found = Table::new();
    for command in commands(&binary)?.into_iter().filter(is_asked) {
        // The quick reproductions are minutes of processor time: a release and its build take less than they do in the
        // gate's own profile, and the same traces come out of both.
        let binary = if command.starts_with(REPRODUCE) { &product::optimised()? } else { &binary };
        let digest = digest(binary, &command)?;
        println!("{command}: {} runs, {:016x}", digest.runs, digest.hash);
        found.insert(command, digest);
    }
    if write {
        return fs::write(TABLE, text(&found)).with_context(|| format!("cannot write {TABLE}"));
    }
    let recorded = fs::read_to_string(TABLE).with_context(|| format!("cannot read {TABLE}"))?;
    let mut recorded = parse(&recorded)?;
    recorded.retain(|command, _| is_asked(command));
    compare(&recorded, &found)
}

/// One seed of each built-in scenario, and each reproduction as `--quick` runs it.
fn commands(binary: &PathBuf) -> Result<Vec<String>> {
    let names = |args: &[&str], list: &str, key: &str| -> Result<Vec<String>> {
        let report = product::report(process::command(binary, args))?;
        let entries =
            report[list].as_array().with_context(|| format!("there is no list `{list}`"))?;
        let name = |entry: &Value| entry[key].as_str().map(str::to_owned);
        entries
            .iter()
            .map(|entry| {
                name(entry).with_context(|| format!("an entry of `{list}` has no `{key}`"))
            })
            .collect()
    };
    let scenarios = names(&["scenarios", "--json"], "scenarios", "name")?;
    let papers = names(&["reproduce", "--json"], "papers", "paper")?;
    let run = scenarios.iter().map(|name| format!("run {name} --seeds 1"));
    Ok(run.chain(papers.iter().map(|name| format!("reproduce {name} --quick"))).collect())
}

/// Runs `command` with an empty store, and reads what it stores.
fn digest(binary: &PathBuf, command: &str) -> Result<Digest> {
    let store = product::target()?.join("traces").join(command.replace(' ', "-"));
    if store.exists() {
        fs::remove_dir_all(&store).with_context(|| format!("cannot empty {}", store.display()))?;
    }
    let mut process = process::command(binary, &command.split(' ').collect::<Vec<_>>());
    process.args(["--quiet", "--json", "--store"]).arg(&store);
    process::read(process)?;
    let mut runs = Vec::new();
    collect(&store, &mut runs)?;
    ensure!(!runs.is_empty(), "{command} stored no run");
    Ok(Digest::of(runs))
}

/// Seed and trace hash of every run below `folder`.
fn collect(folder: &Path, runs: &mut Vec<(u64, String)>) -> Result<()> {
    let unreadable = || format!("cannot read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        if path.is_dir() {
            collect(&path, runs)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let run: Value = serde_json::from_str(&text)
                .with_context(|| format!("{} is not JSON", path.display()))?;
            if let (Some(seed), Some(trace)) = (run["seed"].as_u64(), run["trace_hash"].as_str()) {
                runs.push((seed, trace.to_owned()));
            }
        }
    }
    Ok(())
}

fn text(table: &Table) -> String {
    let line = |(command, digest): (&String, &Digest)| {
        format!("{:016x} {:4} {command}", digest.hash, digest.runs)
    };
    let lines: Vec<String> = table.iter().map(line).collect();
    format!("{HEAD}{}\n", lines.join("\n"))
}

fn parse(text: &str) -> Result<Table> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let wrong = || format!("{TABLE}: expected `HASH RUNS COMMAND`, found {line:?}");
            let (hash, rest) = line.split_once(' ').with_context(wrong)?;
            let (runs, command) = rest.trim_start().split_once(' ').with_context(wrong)?;
            let hash = u64::from_str_radix(hash, 16).with_context(wrong)?;
            let runs = runs.parse().with_context(wrong)?;
            Ok((command.to_owned(), Digest { runs, hash }))
        })
        .collect()
}

fn compare(recorded: &Table, found: &Table) -> Result<()> {
    let all = recorded.keys().chain(found.keys().filter(|name| !recorded.contains_key(*name)));
    let changed: Vec<String> = all
        .filter(|name| recorded.get(*name) != found.get(*name))
        .map(|name| match (recorded.get(name), found.get(name)) {
            (Some(_), Some(_)) => format!("{name} gives other traces"),
            (Some(_), None) => format!("{name} is recorded, and there is no such command"),
            _ => format!("{name} is not recorded"),
        })
        .collect();
    ensure!(
        changed.is_empty(),
        "{}\nif the change of what is simulated is intended, record it with `cargo xtask traces --write`",
        changed.join("\n")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[(&str, usize, u64)]) -> Table {
        entries
            .iter()
            .map(|(name, runs, hash)| ((*name).to_owned(), Digest { runs: *runs, hash: *hash }))
            .collect()
    }

    #[test]
    fn a_table_that_is_written_is_read_again() {
        let table = table(&[("run a --seeds 1", 1, 7), ("reproduce b --quick", 360, u64::MAX)]);
        assert_eq!(parse(&text(&table)).expect("well formed"), table);
        assert!(parse("zz 1 run a").is_err());
        assert!(parse("12 1").is_err());
    }

    #[test]
    fn another_trace_a_missing_and_a_new_command_are_each_named() {
        let recorded = table(&[("a", 1, 1), ("b", 1, 2), ("c", 1, 3)]);
        assert!(compare(&recorded, &recorded).is_ok());
        let found = table(&[("a", 1, 1), ("b", 1, 9), ("d", 1, 3)]);
        let message = compare(&recorded, &found).expect_err("three differ").to_string();
        assert!(message.contains("b gives other traces"), "{message}");
        assert!(message.contains("c is recorded, and"), "{message}");
        assert!(message.contains("d is not recorded"), "{message}");
        assert!(!message.contains("a gives"), "{message}");
    }

    #[test]
    fn a_digest_counts_every_run_and_no_order() {
        let run = |seed, trace: &str| (seed, trace.to_owned());
        let one = Digest::of(vec![run(1, "a"), run(2, "b")]);
        assert_eq!(one, Digest::of(vec![run(2, "b"), run(1, "a")]));
        assert_ne!(one, Digest::of(vec![run(1, "b"), run(2, "a")]));
        assert_ne!(one, Digest::of(vec![run(1, "a"), run(2, "b"), run(2, "b")]));
    }
}
