//! One question to a program, and what must come of it.

use std::ffi::OsStr;
use std::process::Output;

use anyhow::{Result, ensure};

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
}

/// What came of all cases.
#[derive(Debug, Default)]
pub struct Tally {
    passed: usize,
    failed: Vec<String>,
    skipped: Vec<String>,
}

impl Tally {
    /// Runs a program and looks at what comes.
    pub fn ask(
        &mut self,
        title: &str,
        program: impl AsRef<OsStr>,
        args: &[&str],
        wants: &Wants<'_>,
    ) -> Result<()> {
        let mut command = process::command(program, args);
        let line = process::line(&command);
        let output = command.output()?;
        let verdict = judge(&output, wants);
        self.note(title, verdict.map_err(|why| format!("{why}\n    {line}")));
        Ok(())
    }
    /// Counts a verdict.
    pub fn note(&mut self, title: &str, verdict: Result<(), String>) {
        match verdict {
            Ok(()) => self.passed += 1,
            Err(why) => self.failed.push(format!("{title}: {why}")),
        }
    }
    /// Something cannot be tried here.
    pub fn skip(&mut self, what: &str, why: &str) {
        println!("skipped: {what}: {why}");
        self.skipped.push(what.to_owned());
    }
    /// Says it all; an error if something failed.
    pub fn report(&self) -> Result<()> {
        let skipped = match &self.skipped[..] {
            [] => String::new(),
            skipped => format!("; skipped: {}", skipped.join(", ")),
        };
        println!("interop: {} passed, {} failed{skipped}", self.passed, self.failed.len());
        ensure!(self.failed.is_empty(), "\n{}", self.failed.join("\n"));
        Ok(())
    }
}

fn judge(output: &Output, wants: &Wants<'_>) -> Result<(), String> {
    let (stdout, stderr) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(stdout);
    let wanted_code = if let Wants::Ends(code, _) = wants { *code } else { 0 };
    if output.status.code() != Some(wanted_code) {
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
        Wants::Ends(_, what) => (stderr.contains(what), format!("{what:?} is not in {stderr:?}")),
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
        ] {
            assert_eq!(judge(&good, &wants), Ok(()), "{wants:?}");
            assert!(judge(&bad, &wants).is_err(), "{wants:?}");
        }
    }

    #[test]
    fn one_failure_fails_all_and_is_named() {
        let mut tally = Tally::default();
        tally.note("first", Ok(()));
        assert!(tally.report().is_ok());
        tally.note("second", Err("broken".to_owned()));
        let error = tally.report().expect_err("one failed");
        assert!(error.to_string().contains("second: broken"), "{error}");
    }
}
