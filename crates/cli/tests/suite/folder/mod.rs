//! A folder of a test's own, a small scenario to put in it, and the built command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A scenario of three nodes with so many seeds; `more` holds further sections, such as a sweep.
pub fn line_of_three(seeds: u32, more: &str) -> String {
    format!("seeds = {seeds}\n{}\n{more}", include_str!("line-3.toml"))
}

/// Runs the built command, without the store that the environment may name.
pub fn lowmesh(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
    command.args(args).env_remove("LOWMESH_STORE");
    command.output().expect("the command was built")
}

/// What it wrote to stdout.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// What it wrote to stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// A command that must succeed: its stdout and its stderr.
pub fn succeed(args: &[&str]) -> (String, String) {
    let output = lowmesh(args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    (stdout(&output), stderr(&output))
}

/// The id of this program's build.
pub fn build_id() -> String {
    let version = stdout(&lowmesh(&["--version"]));
    version.lines().find_map(|line| line.strip_prefix("build ")).expect("an id").to_owned()
}

/// The first digits of the id: they name the build in messages, and the folder of its runs in a store.
pub fn short_build_id() -> String {
    build_id()[..12].to_owned()
}

/// The files of the runs in the folder of one build, in alphabetical order.
pub fn run_files(build: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(build).expect("the folder of a build");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let runs = paths.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    let mut runs: Vec<PathBuf> = runs.filter(|path| !path.ends_with("build.json")).collect();
    runs.sort();
    runs
}

/// A folder, empty at first, that is removed when the value is dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lowmesh-{name}-{}", std::process::id()));
        fs::create_dir(&path).expect("no test takes the same name twice");
        Self(path)
    }
    /// The whole path of `name`.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("ASCII").to_owned()
    }
    /// Writes a file and returns its whole path.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        fs::write(self.0.join(name), contents).expect("the folder is writable");
        self.path(name)
    }
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).expect("the command wrote it")
    }
    /// What is in it, in alphabetical order.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder is readable");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("readable").file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).into_string().expect("ASCII")).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}
