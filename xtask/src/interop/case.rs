//! One question to a program, and what must come of it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};

use super::material::Material;
use crate::process;

/// What has to come.
#[derive(Debug)]
pub enum Wants<'a> {
    /// Exit code 0, and this somewhere in what is written.
    Says(&'a str),
    /// Exit code 0, and exactly these octets.
    Octets(&'a [u8]),
    /// Exit code 0, and so many lines.
    Lines(usize),
    /// This exit code, and this somewhere in what is written to stderr.
    Ends(i32, &'a str),
    /// Whatever exit code, and this somewhere in what is written to stderr.
    Warns(&'a str),
}

/// The longest that a case may take.
const CASE_MAX: Duration = Duration::from_secs(30);

/// What every group of cases is given.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// Our program.
    pub binary: &'a Path,
    /// Keys and bodies.
    pub material: &'a Material,
    /// Where verdicts go.
    pub tally: &'a Tally,
}

/// What came of all cases, of groups that run at the same time.
#[derive(Debug, Default)]
pub struct Tally(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    passed: usize,
    failed: Vec<String>,
    skipped: Vec<String>,
}

impl Tally {
    /// Runs a program and looks at what comes.
    pub fn ask(
        &self,
        title: &str,
        program: impl AsRef<OsStr>,
        args: &[&str],
        wants: &Wants<'_>,
    ) -> Result<()> {
        self.run(title, process::command(program, args), wants)
    }
    /// Runs a program and looks at what comes.
    pub fn run(&self, title: &str, command: Command, wants: &Wants<'_>) -> Result<()> {
        let line = process::line(&command);
        let (output, in_time) = process::watch(command, CASE_MAX)?;
        let verdict = if in_time { judge(&output, wants) } else { Err(late(&output)) };
        self.note(title, verdict.map_err(|why| format!("{why}\n    {line}")));
        Ok(())
    }
    /// Counts a verdict.
    pub fn note(&self, title: &str, verdict: Result<(), String>) {
        let mut counts = self.counts();
        match verdict {
            Ok(()) => counts.passed += 1,
            Err(why) => counts.failed.push(format!("{title}: {why}")),
        }
    }
    /// Something cannot be tried here.
    pub fn skip(&self, what: &str, why: &str) {
        println!("skipped: {what}: {why}");
        self.counts().skipped.push(what.to_owned());
    }
    /// Says it all; an error if something failed.
    pub fn report(&self) -> Result<()> {
        let counts = self.counts();
        let skipped = match &counts.skipped[..] {
            [] => String::new(),
            skipped => format!("; skipped: {}", skipped.join(", ")),
        };
        println!("interop: {} passed, {} failed{skipped}", counts.passed, counts.failed.len());
        ensure!(counts.failed.is_empty(), "\n{}", counts.failed.join("\n"));
        Ok(())
    }
    fn counts(&self) -> MutexGuard<'_, Counts> {
        // Nothing that changes it panics half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn late(output: &Output) -> String {
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|octets| String::from_utf8_lossy(octets));
    format!("not over within {} s; it said {stdout:?} {stderr:?}", CASE_MAX.as_secs())
}

fn judge(output: &Output, wants: &Wants<'_>) -> Result<(), String> {
    let (stdout, stderr) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(stdout);
    let wanted_code = match wants {
        Wants::Ends(code, _) => Some(*code),
        Wants::Warns(_) => output.status.code(),
        _ => Some(0),
    };
    if output.status.code() != wanted_code {
        let wanted_code = wanted_code.unwrap_or_default();
        return Err(format!("{} instead of exit code {wanted_code}: {stderr}", output.status));
    }
    let (fits, found) = match wants {
        Wants::Says(what) => (text.contains(what), format!("{what:?} is not in {text:?}")),
        Wants::Octets(octets) => (
            stdout == octets,
            format!("other octets, {} instead of {}", stdout.len(), octets.len()),
        ),
        Wants::Lines(count) => {
            let lines = text.lines().count();
            (lines == *count, format!("{lines} lines instead of {count}: {text:?}"))
        }
        Wants::Ends(_, what) | Wants::Warns(what) => {
            (stderr.contains(what), format!("{what:?} is not in {stderr:?}"))
        }
    };
    if fits { Ok(()) } else { Err(found) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn output(code: i32, stdout: &str, stderr: &str) -> Output {
        let status = ExitStatus::from_raw(code << 8);
        Output { status, stdout: stdout.into(), stderr: stderr.into() }
    }

    #[test]
    fn what_is_wanted_passes_and_anything_else_does_not() {
        for (wants, good, bad) in [
            (Wants::Says("b"), output(0, "abc", ""), output(0, "a", "")),
            (Wants::Says("b"), output(0, "abc", ""), output(1, "abc", "")),
            (Wants::Octets(b"ab"), output(0, "ab", ""), output(0, "ab\n", "")),
            (Wants::Lines(2), output(0, "a\nb\n", ""), output(0, "a\n", "")),
            (Wants::Ends(6, "key"), output(6, "", "a key"), output(3, "", "a key")),
            (Wants::Ends(6, "key"), output(6, "", "a key"), output(6, "key", "")),
            (Wants::Warns("4.04"), output(1, "", "4.04"), output(0, "", "4.05")),
        ] {
            assert_eq!(judge(&good, &wants), Ok(()), "{wants:?}");
            assert!(judge(&bad, &wants).is_err(), "{wants:?}");
        }
    }

    #[test]
    fn one_failure_fails_all_and_is_named() {
        let tally = Tally::default();
        tally.note("first", Ok(()));
        assert!(tally.report().is_ok());
        tally.note("second", Err("broken".to_owned()));
        let error = tally.report().expect_err("one failed");
        assert!(error.to_string().contains("second: broken"), "{error}");
    }
}
