//! Child processes: started from the root of the workspace, with errors that contain the command line.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Between two checks whether a program has ended.
const LOOK: Duration = Duration::from_millis(10);

/// The root of the workspace: the folder above this package.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}

/// A command that starts in the root of the workspace.
pub fn command(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    // A store of runs would let a gate read what it is there to make.
    command.args(args).current_dir(root()).env_remove("LOWMESH_STORE");
    command
}

/// The cargo that started this program.
pub fn cargo(args: &[&str]) -> Command {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), args);
    without_cargo(&mut cargo);
    cargo
}

/// Removes the variables that cargo sets for this program. Build scripts such as ring's depend on them, and would run
/// again, with everything that depends on their crates, after each change between builds by hand and from here.
pub fn without_cargo(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
}

/// Runs it with its output on the terminal; an exit code other than 0 is an error.
pub fn execute(mut command: Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", line(&command)))?;
    if !status.success() {
        bail!("{} ended with {status}", line(&command));
    }
    Ok(())
}

/// Runs it and returns what it wrote to stdout; an exit code other than 0 is an error with its stderr.
pub fn read(mut command: Command) -> Result<String> {
    let Output { status, stdout, stderr } =
        command.output().with_context(|| format!("cannot start {}", line(&command)))?;
    if !status.success() {
        let stderr = String::from_utf8_lossy(&stderr);
        bail!("{} ended with {status}\n{}", line(&command), stderr.trim_end());
    }
    String::from_utf8(stdout).with_context(|| format!("{} did not write UTF-8", line(&command)))
}

/// Runs it and returns what it wrote, with its status if it has ended within `limit`; else it is killed.
pub fn watch(mut command: Command, limit: Duration) -> Result<(Output, bool)> {
    let line = line(&command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {line}"))?;
    let (stdout, stderr) = (read_all(child.stdout.take()), read_all(child.stderr.take()));
    let clock = Stopwatch::start();
    let in_time = loop {
        if child.try_wait()?.is_some() {
            break true;
        }
        if clock.elapsed() >= limit {
            child.kill()?;
            break false;
        }
        std::thread::sleep(LOOK);
    };
    let status = child.wait()?;
    let whole = |reader: JoinHandle<Vec<u8>>| reader.join().expect("reading does not panic");
    Ok((Output { status, stdout: whole(stdout), stderr: whole(stderr) }, in_time))
}

/// Reads to the end, beside everything else.
fn read_all(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut octets = Vec::new();
        // What was read before an error is what there is.
        _ = stream.map(|mut stream| stream.read_to_end(&mut octets));
        octets
    })
}

/// True when `program` can be started at all.
pub fn installed(program: &str) -> bool {
    let probe = Command::new(program).arg("--version").output();
    !matches!(probe, Err(error) if error.kind() == ErrorKind::NotFound)
}

/// The command as one would type it.
pub fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A wall clock for stages and speeds.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[allow(clippy::disallowed_methods, reason = "this measures the tool, not a protocol")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_quoted_where_the_shell_would_split_it() {
        let command = command("lowmesh", &["run", "a b", "--set", "radio.noise_dbm=-81.6", "it's"]);
        assert_eq!(line(&command), r"lowmesh run 'a b' --set radio.noise_dbm=-81.6 'it'\''s'");
    }

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let error = execute(command("false", &["--now"])).expect_err("false fails");
        assert!(error.to_string().contains("false --now"), "{error}");
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed_and_what_it_wrote_is_there() {
        let script = ["-c", "echo begun; exec sleep 100"];
        let (output, in_time) =
            watch(command("sh", &script), Duration::from_millis(300)).expect("it starts");
        assert_eq!((&output.stdout[..], in_time), (&b"begun\n"[..], false));
        let quick = command("sh", &["-c", "echo over >&2; exit 3"]);
        let (output, in_time) = watch(quick, Duration::from_secs(60)).expect("it starts");
        assert_eq!((&output.stderr[..], output.status.code()), (&b"over\n"[..], Some(3)));
        assert!(in_time);
    }

    #[test]
    fn a_program_that_does_not_exist_is_not_installed() {
        assert!(!installed("no-such-program-anywhere"));
        assert!(installed("cargo"));
    }
}
