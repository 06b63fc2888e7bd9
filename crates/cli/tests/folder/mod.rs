//! A folder of a test's own, and the built command.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Runs the built command, without the store that whoever runs the tests may have named.
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

/// An empty folder that goes with the value.
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
