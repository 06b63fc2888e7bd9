//! The shell of one page: its blocks run one after the other, and its servers end with it.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::output;
use super::page::Commands;
use crate::process::{self, Stopwatch};

/// How long the commands of one block may take.
pub const COMMANDS_MAX: Duration = Duration::from_secs(600);
/// How long a server may take until it is ready.
const READY_MAX: Duration = Duration::from_secs(120);
/// How long servers may take to end.
const END_MAX: Duration = Duration::from_secs(5);
/// Between two looks whether something has happened.
const LOOK: Duration = Duration::from_millis(20);

/// The folders of one page.
#[derive(Debug)]
pub struct Places {
    /// The reader's home, without stored runs.
    home: PathBuf,
    /// Where the reader works.
    work: PathBuf,
    /// Scripts, outputs and exit codes of blocks.
    steps: PathBuf,
    /// The folder of the built command.
    binaries: PathBuf,
}

impl Places {
    /// Empty folders for a page below `scratch`, and the folder of `binary`.
    pub fn fresh(scratch: &Path, page: &str, binary: &Path) -> Result<Self> {
        let name = page.rsplit('/').next().unwrap_or(page).trim_end_matches(".md");
        let base = scratch.join(name);
        if base.exists() {
            fs::remove_dir_all(&base)
                .with_context(|| format!("cannot empty {}", base.display()))?;
        }
        let [home, work, steps] = ["home", "home/mesh", "steps"].map(|part| base.join(part));
        for folder in [&work, &steps] {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let binaries = binary.parent().context("a program lies in a folder")?.to_owned();
        Ok(Self { home, work, steps, binaries })
    }
}

/// How a block ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; `None` while it runs.
    pub code: Option<i32>,
    /// What it printed on stdout and stderr, in order.
    pub output: Vec<String>,
}

/// A running shell; it ends with the value, and its children with it.
#[derive(Debug)]
pub struct Session {
    shell: Child,
    places: Places,
    blocks: usize,
}

impl Session {
    /// Starts the shell of a page.
    pub fn start(places: Places) -> Result<Self> {
        let mut bash = shell();
        process::without_cargo(&mut bash);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(places.binaries.clone()).chain(std::env::split_paths(&path));
        bash.env("PATH", std::env::join_paths(folders).context("a folder of PATH has a bad name")?);
        // Cargo and rustup keep their state in the home of the user, which is another one here.
        if let Some(user) = std::env::home_dir() {
            for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
                if std::env::var_os(name).is_none() {
                    bash.env(name, user.join(folder));
                }
            }
        }
        for name in ["XDG_DATA_HOME", "BASH_ENV", "ENV", "CDPATH", "NO_COLOR"] {
            bash.env_remove(name);
        }
        bash.env("HOME", &places.home).env("STEPS", &places.steps).env("PROJECT", process::root());
        bash.current_dir(&places.work).stdin(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut bash, 0);
        let shell = bash.spawn().context("cannot start bash")?;
        Ok(Self { shell, places, blocks: 0 })
    }

    /// Writes a file of the page.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.places.work.join(name), text).with_context(|| format!("cannot write {name}"))
    }

    /// Runs a block until it has ended, or is ready in the background, or has no time left.
    pub fn run(&mut self, commands: &Commands) -> Result<Ended> {
        self.blocks += 1;
        let step = |part: &str| self.places.steps.join(format!("{}.{part}", self.blocks));
        let (script, printed, code) = (step("sh"), step("out"), step("code"));
        fs::write(&script, &commands.script).context("cannot write the script of a block")?;
        File::create(&printed).context("cannot create the output of a block")?;
        let at = format!("\"$STEPS\"/{}", self.blocks);
        let redirected = format!("</dev/null >>{at}.out 2>&1");
        let script = if commands.project {
            format!("(cd \"$PROJECT\" && . {at}.sh)")
        } else {
            format!(". {at}.sh")
        };
        let line = format!("{script} {redirected}; echo $? >{at}.new; mv {at}.new {at}.code");
        let line = if commands.background { format!("({line}) &") } else { line };
        let stdin = self.shell.stdin.as_mut().context("the shell has an input")?;
        writeln!(stdin, "{line}").context("the shell of the page has ended")?;
        self.wait(commands, &printed, &code)
    }

    fn wait(&self, commands: &Commands, printed: &Path, code: &Path) -> Result<Ended> {
        let limit = if commands.background { READY_MAX } else { COMMANDS_MAX };
        let clock = Stopwatch::start();
        loop {
            let code = fs::read_to_string(code).ok().and_then(|code| code.trim().parse().ok());
            let output = self.output(printed)?;
            let ready = commands.background
                && commands
                    .expected
                    .as_ref()
                    .is_some_and(|expected| output::agree(&expected.text, &output, expected.loose));
            if code.is_some() || ready || clock.elapsed() >= limit {
                return Ok(Ended { code, output });
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The lines of an output, with the home of the reader under the name that pages use.
    fn output(&self, printed: &Path) -> Result<Vec<String>> {
        let text = fs::read(printed).context("cannot read the output of a block")?;
        let home = self.places.home.to_string_lossy().into_owned();
        let text = String::from_utf8_lossy(&text).replace(&home, "~");
        // A reader builds a commit; the sources here may have changed since.
        let text = text.replace("-dirty)", ")");
        let lines = text.lines().filter(|line| !output::is_progress(line));
        let mut lines: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        Ok(lines)
    }

    /// Sends a signal to the shell and all its children; false if there are none.
    fn signal(&self, name: &str) -> bool {
        let group = format!("-{}", self.shell.id());
        let mut kill = process::command("bash", &["-c", "kill \"$@\"", "kill", name, "--", &group]);
        kill.stdout(Stdio::null()).stderr(Stdio::null());
        kill.status().is_ok_and(|status| status.success())
    }
}

/// The shell, with a network of its own where the system allows it, so that the ports of pages are free.
fn shell() -> Command {
    let alone = |script: &str| {
        process::command("unshare", &["--map-root-user", "--net", "bash", "-c", script])
    };
    let mut probe = alone("ip link set lo up");
    probe.stdout(Stdio::null()).stderr(Stdio::null());
    if probe.status().is_ok_and(|status| status.success()) {
        return alone("ip link set lo up; exec bash --noprofile --norc");
    }
    process::command("bash", &["--noprofile", "--norc"])
}

impl Drop for Session {
    fn drop(&mut self) {
        self.signal("-TERM");
        drop(self.shell.stdin.take());
        let clock = Stopwatch::start();
        while clock.elapsed() < END_MAX {
            // The shell's own entry stays until its end is read.
            let ended = matches!(self.shell.try_wait(), Ok(Some(_)));
            if ended && !self.signal("-0") {
                return;
            }
            std::thread::sleep(LOOK);
        }
        self.signal("-KILL");
        _ = self.shell.wait();
    }
}
