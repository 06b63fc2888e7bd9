//! Runs stages at the same time, as far as the processors carry them.
//!
//! ```text
//!    waiting ── needs passed, processors free ──► running ── exit code 0 ──► passed
//!                                                    `────── other ────────► failed: nothing more starts
//! ```
//! What a stage prints goes into a file below `target/gate`; the end of it is shown when the stage ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::stage::{BUILD, Needs, Stage};
use crate::process::Stopwatch;
use crate::product;

/// Between two looks whether a stage has ended.
const LOOK: Duration = Duration::from_millis(50);
/// Between two lines that say what runs.
const HEARTBEAT: Duration = Duration::from_secs(60);
/// Lines shown of what a stage printed, if it passed and if it failed.
const LINES: [usize; 2] = [2, 400];

/// A stage that runs.
struct Running {
    stage: &'static Stage,
    child: Child,
    log: PathBuf,
    clock: Stopwatch,
}

/// Runs the commands of stages, and returns their times; `passed` sees each stage that has passed.
pub fn run(
    commands: Vec<(&'static Stage, Command)>,
    mut passed: impl FnMut(&Stage, Duration) -> Result<()>,
) -> Result<Vec<(&'static Stage, Duration)>> {
    let folder = product::target()?.join("gate");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let total = commands.len();
    let (mut waiting, mut running) = (commands, Vec::<Running>::new());
    let (mut times, mut failed) = (Vec::new(), Vec::<&str>::new());
    let mut silence = Stopwatch::start();
    while !running.is_empty() || (!waiting.is_empty() && failed.is_empty()) {
        while failed.is_empty()
            && let Some(at) = next(&waiting, &running, processors)
        {
            let (stage, command) = waiting.remove(at);
            running.push(start(stage, command, &folder)?);
        }
        thread::sleep(LOOK);
        for mut ended in take_ended(&mut running)? {
            let (took, status) = (ended.clock.elapsed(), ended.child.wait()?);
            silence = Stopwatch::start();
            let place =
                format!("[{}/{total}] {}", times.len() + failed.len() + 1, ended.stage.name);
            let verdict = if status.success() { "passed" } else { "FAILED" };
            let shown = tail(&ended.log, LINES[usize::from(!status.success())])?;
            println!("== {place}: {verdict} in {:.1} s\n{shown}", took.as_secs_f64());
            if status.success() {
                passed(ended.stage, took)?;
                times.push((ended.stage, took));
            } else {
                failed.push(ended.stage.name);
            }
        }
        if silence.elapsed() >= HEARTBEAT {
            silence = Stopwatch::start();
            let names: Vec<String> = running
                .iter()
                .map(|one| format!("{} ({} s)", one.stage.name, one.clock.elapsed().as_secs()))
                .collect();
            eprintln!("running: {}", names.join(", "));
        }
    }
    if !failed.is_empty() {
        bail!("{} failed; all output is in {}", failed.join(" and "), folder.display());
    }
    Ok(times)
}

/// The first waiting stage that can start now.
fn next(waiting: &[(&Stage, Command)], running: &[Running], processors: usize) -> Option<usize> {
    let busy: usize = running.iter().map(|one| one.stage.cores.min(processors)).sum();
    let unfinished = |needs: Needs| {
        let blocks = |stage: &Stage| match needs {
            Needs::Nothing => false,
            Needs::Quick => stage.needs == Needs::Nothing,
            Needs::Build => stage.needs == Needs::Nothing || stage.name == BUILD,
        };
        waiting.iter().any(|(stage, _)| blocks(stage))
            || running.iter().any(|one| blocks(one.stage))
    };
    let mut is_full = false;
    for (at, (stage, _)) in waiting.iter().enumerate() {
        if unfinished(stage.needs) {
            continue;
        }
        let cores = stage.cores.min(processors);
        if cores == 0 || (!is_full && busy + cores <= processors) {
            return Some(at);
        }
        // A stage that needs many processors is not overtaken by small ones for ever.
        is_full = true;
    }
    None
}

fn start(stage: &'static Stage, mut command: Command, folder: &Path) -> Result<Running> {
    let log = folder.join(format!("{}.log", stage.name));
    let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let both = file.try_clone().context("a file has two writers")?;
    command.stdin(Stdio::null()).stdout(file).stderr(both);
    if stage.needs == Needs::Build {
        command.env(product::BUILT, product::path()?);
    }
    eprintln!("-- {}: {}", stage.name, stage.proves);
    let clock = Stopwatch::start();
    let child = command.spawn().with_context(|| format!("cannot start {}", stage.name))?;
    Ok(Running { stage, child, log, clock })
}

/// Removes and returns the stages that have ended.
fn take_ended(running: &mut Vec<Running>) -> Result<Vec<Running>> {
    let (mut ended, mut at) = (Vec::new(), 0);
    while at < running.len() {
        if running[at].child.try_wait()?.is_some() {
            ended.push(running.remove(at));
        } else {
            at += 1;
        }
    }
    Ok(ended)
}

/// The last lines of a file.
fn tail(path: &Path, count: usize) -> Result<String> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    Ok(lines[lines.len().saturating_sub(count)..].join("\n"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::gate::stage::{STAGES, When};
    use crate::process;

    const fn stage(name: &'static str, cores: usize, needs: Needs) -> Stage {
        Stage {
            name,
            proves: "a test",
            args: &[],
            long: None,
            when: When::Push,
            needs,
            cores,
            external: false,
        }
    }

    static QUICK: Stage = stage("schedule-quick", 1, Needs::Nothing);
    static WIDE: Stage = stage("schedule-wide", usize::MAX, Needs::Quick);
    static WAITS: Stage = stage("schedule-waits", 0, Needs::Quick);

    fn shell(script: &str) -> Command {
        process::command("sh", &["-c", script])
    }

    #[test]
    fn a_stage_waits_for_what_it_needs_and_for_processors() {
        let commands = [(&WIDE, shell("")), (&QUICK, shell("")), (&WAITS, shell(""))];
        assert_eq!(next(&commands, &[], 2), Some(1), "the others wait for it");
        let later = [(&WIDE, shell("")), (&WAITS, shell(""))];
        assert_eq!(next(&later, &[], 2), Some(0));
        let busy = || Running {
            stage: &WIDE,
            child: shell("").spawn().expect("a shell"),
            log: PathBuf::new(),
            clock: Stopwatch::start(),
        };
        assert_eq!(next(&later, &[busy()], 2), Some(1), "a stage that waits needs no processor");
        assert_eq!(next(&later[..1], &[busy()], 2), None);
    }

    #[test]
    fn a_stage_that_fails_ends_the_gate_with_its_output() {
        let mut seen = Vec::new();
        let all = vec![(&QUICK, shell("exit 3")), (&WIDE, shell("echo late"))];
        let passed = |stage: &Stage, _| {
            seen.push(stage.name);
            Ok(())
        };
        let error = run(all, passed).expect_err("it fails");
        assert!(error.to_string().contains("schedule-quick failed"), "{error}");
        assert_eq!(seen, [""; 0]);
        let all = vec![(&WIDE, shell("echo wide")), (&QUICK, shell("echo quick"))];
        let times = run(all, |_, _| Ok(())).expect("both pass");
        let names: Vec<&str> = times.iter().map(|(stage, _)| stage.name).collect();
        assert_eq!(names, ["schedule-quick", "schedule-wide"]);
        let log = product::target().expect("a folder").join("gate/schedule-wide.log");
        assert_eq!(tail(&log, 5).expect("written"), "wide");
    }

    #[test]
    fn every_stage_can_start_when_all_before_it_have_passed() {
        for stage in STAGES {
            assert_eq!(next(&[(stage, shell(""))], &[], 1), Some(0), "{}", stage.name);
        }
    }
}
