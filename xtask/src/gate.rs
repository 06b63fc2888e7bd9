//! `test` and `nightly`: everything a change must pass.
//!
//! The gate of a push leaves out a stage if the files that can change its result are those of the record. The nightly gate
//! runs all stages, some in a longer form, and writes the record.
//!
//! It runs on a machine with nothing but Rust's toolchain and Python. tshark is installed if the user is root, and
//! otherwise an error names it. CoAP peers that cannot be installed are reported and skipped.

mod reach;
mod record;
mod schedule;
mod stage;
mod table;

use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::process::{self, Stopwatch};
use crate::{metadata, tools};
use record::Record;
use stage::{SEED, STAGES, Stage, When};

pub use table::{is_current, show};

/// Which gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// What each push must pass.
    Push,
    /// All stages, in their longest form.
    Nightly,
}

/// A stage that this gate looks at.
#[derive(Debug)]
struct Planned {
    stage: &'static Stage,
    /// The digest of the files that reach it.
    digest: Option<String>,
    /// Why it does not run.
    skipped: Option<String>,
}

/// What the command line says.
#[derive(Debug, Default)]
struct Options {
    skip_external: bool,
    again: bool,
    list: bool,
    only: Vec<String>,
}

const FLAGS: &str = "--again, --list, --only STAGE, --skip-external";

fn options(args: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--skip-external" => options.skip_external = true,
            "--again" => options.again = true,
            "--list" => options.list = true,
            "--only" => {
                let name = args.next().cloned().unwrap_or_default();
                let names: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
                ensure!(
                    names.contains(&name.as_str()),
                    "--only needs a stage: {}",
                    names.join(", ")
                );
                options.only.push(name);
            }
            other => bail!("unknown argument {other:?}; allowed: {FLAGS}"),
        }
    }
    Ok(options)
}

/// Runs the stages of a gate, as many at a time as the processors carry, and stops after the first that fails.
pub fn run(gate: Gate, args: &[String]) -> Result<()> {
    let options = options(args)?;
    let whole = Stopwatch::start();
    let mut record = Record::read()?;
    let plan = plan(gate, &options, &record)?;
    if options.list {
        for Planned { stage, skipped, .. } in &plan {
            println!("{:<14} {}", stage.name, skipped.as_deref().unwrap_or("runs"));
        }
        return Ok(());
    }
    if plan.iter().any(|one| one.stage.external && one.skipped.is_none()) {
        tools::tshark()?;
    }
    for Planned { stage, skipped, .. } in &plan {
        if let Some(why) = skipped {
            println!("-- {}: {why}", stage.name);
        }
    }
    let running: Vec<&Planned> = plan.iter().filter(|one| one.skipped.is_none()).collect();
    let commands: Vec<(&'static Stage, Command)> = running
        .iter()
        .map(|one| Ok((one.stage, command(one.stage, gate)?)))
        .collect::<Result<_>>()?;
    let times = schedule::run(commands, |stage, took| {
        let digest = running.iter().find(|one| one.stage.name == stage.name);
        let digest = digest.and_then(|one| one.digest.clone());
        // The short form at a push says nothing of what the long form takes.
        if gate == Gate::Nightly || digest.is_some() {
            record.note(stage.name, took, digest);
            record.keep(|name| STAGES.iter().any(|stage| stage.name == name));
            record.write()?;
            table::rewrite(&record)?;
        }
        Ok(())
    })?;
    let mut slowest = times.clone();
    slowest.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    let slowest: Vec<String> = slowest
        .iter()
        .take(3)
        .map(|(stage, took)| format!("{} {} s", stage.name, took.as_secs()))
        .collect();
    let skipped = plan.len() - times.len();
    println!(
        "\n{} stages passed in {} s, {skipped} not run; slowest: {}",
        times.len(),
        whole.elapsed().as_secs(),
        slowest.join(", ")
    );
    Ok(())
}

/// All stages, each with the reason why it does not run, if there is one.
fn plan(gate: Gate, options: &Options, record: &Record) -> Result<Vec<Planned>> {
    let packages = metadata::packages()?;
    let mut plan = Vec::new();
    for stage in STAGES {
        let digest = stage.reach().map(|reach| reach::digest(reach, stage.args[0], &packages));
        let digest = digest.transpose()?;
        let proof = record.proof(stage.name);
        let proved = digest.is_some()
            && proof.is_some_and(|proof| proof.digest == digest)
            && gate == Gate::Push
            && !options.again;
        let skipped = if !options.only.is_empty() {
            let is_asked = options.only.iter().any(|name| name == stage.name);
            (!is_asked).then(|| "not asked for".to_owned())
        } else if options.skip_external && stage.external {
            Some("needs other programs".to_owned())
        } else if stage.when == When::Nightly && gate == Gate::Push {
            Some("runs nightly".to_owned())
        } else if proved {
            let seconds = proof.map_or(0, |proof| proof.seconds);
            Some(format!("passed on the same files ({seconds} s)"))
        } else {
            None
        };
        plan.push(Planned { stage, digest, skipped });
    }
    Ok(plan)
}

/// The command of a stage.
fn command(stage: &Stage, gate: Gate) -> Result<Command> {
    let args = match (gate, stage.long) {
        (Gate::Nightly, Some(long)) => long,
        _ => stage.args,
    };
    let seed = seed().to_string();
    let args: Vec<&str> = args.iter().map(|arg| if *arg == SEED { &seed } else { *arg }).collect();
    let own = std::env::current_exe()?;
    Ok(process::command(own, &args))
}

/// A number that each commit changes, so that random cases are others for each commit, and the same when one is tested
/// again.
fn seed() -> u64 {
    let commit = process::read(process::command("git", &["rev-parse", "--short=7", "HEAD"]));
    let number = |commit: String| u64::from_str_radix(commit.trim(), 16).ok();
    commit.ok().and_then(number).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy;

    fn skipped(gate: Gate, options: &Options, record: &Record, name: &str) -> Option<String> {
        let plan = plan(gate, options, record).expect("readable");
        plan.into_iter().find(|one| one.stage.name == name).expect("a stage").skipped
    }

    #[test]
    fn a_stage_that_files_reach_runs_until_its_files_are_in_the_record() {
        let (options, mut record) = (Options::default(), Record::default());
        assert_eq!(skipped(Gate::Push, &options, &record, "siege"), None);
        let plan = plan(Gate::Push, &options, &record).expect("readable");
        let siege = plan.into_iter().find(|one| one.stage.name == "siege").expect("a stage");
        record.note("siege", std::time::Duration::from_secs(60), siege.digest);
        assert!(
            skipped(Gate::Push, &options, &record, "siege").is_some_and(|why| why.contains("60 s"))
        );
        assert_eq!(skipped(Gate::Nightly, &options, &record, "siege"), None);
        let again = Options { again: true, ..Options::default() };
        assert_eq!(skipped(Gate::Push, &again, &record, "siege"), None);
        record.note("siege", std::time::Duration::ZERO, Some("other files".to_owned()));
        assert_eq!(skipped(Gate::Push, &options, &record, "siege"), None);
    }

    #[test]
    fn a_nightly_stage_does_not_run_at_a_push_and_every_other_one_does() {
        let (options, record) = (Options::default(), Record::default());
        for one in plan(Gate::Push, &options, &record).expect("readable") {
            assert_eq!(
                one.skipped.is_none(),
                one.stage.when != When::Nightly,
                "{}",
                one.stage.name
            );
        }
        for one in plan(Gate::Nightly, &options, &record).expect("readable") {
            assert_eq!(one.skipped, None, "{}", one.stage.name);
        }
    }

    #[test]
    fn flags_choose_the_stages() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let only = options(&words("--only tidy --only siege")).expect("stages");
        assert_eq!(only.only, ["tidy", "siege"]);
        assert!(
            options(&words("--only nothing"))
                .is_err_and(|error| error.to_string().contains("tidy"))
        );
        assert!(options(&words("--fast")).is_err());
        let record = Record::default();
        assert_eq!(skipped(Gate::Push, &only, &record, "tidy"), None);
        assert!(skipped(Gate::Push, &only, &record, "tests").is_some());
        let inside = options(&words("--skip-external")).expect("a flag");
        assert!(skipped(Gate::Push, &inside, &record, "interop").is_some());
    }

    #[test]
    fn every_device_crate_reaches_the_stage_that_compiles_it_for_a_device() {
        let packages = metadata::packages().expect("a workspace");
        let stage = STAGES.iter().find(|stage| stage.name == "no-std").expect("a stage");
        let reach = stage.reach().expect("changes make it run");
        let folders = reach::closure(reach.crates, &packages).expect("crates");
        for package in packages.iter().filter(|package| tidy::is_for_devices(&package.name)) {
            assert!(folders.contains(&package.folder), "{}", package.name);
        }
    }

    #[test]
    fn names_of_stages_are_unique() {
        let names: std::collections::BTreeSet<_> = STAGES.iter().map(|stage| stage.name).collect();
        assert_eq!(names.len(), STAGES.len());
    }
}
