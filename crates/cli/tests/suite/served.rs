//! A server that is started, asked and ended, and a folder that it serves.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Runs the built command.
pub fn lowmesh(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lowmesh")).args(args).output().expect("the command was built")
}

/// A server that ends with the test.
pub struct Server {
    pub child: Child,
    /// What it serves, as `scheme://address`.
    pub served: Vec<String>,
    /// What it tells after its start.
    pub told: BufReader<Box<dyn std::io::Read>>,
}

impl Server {
    pub fn start(args: &[&str]) -> Self {
        Self::start_as("serve", args)
    }
    pub fn start_as(verb: &str, args: &[&str]) -> Self {
        Self::start_as_words(&[verb], args)
    }
    /// The same for a verb within a verb.
    pub fn start_as_words(verb: &[&str], args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
        command.args(verb).args(["--port", "0", "-a", "127.0.0.1"]).args(args);
        Self::spawn(command)
    }
    /// From a command whose stderr is the server's.
    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the command was built");
        let stderr: Box<dyn std::io::Read> = Box::new(child.stderr.take().expect("piped"));
        let mut told = BufReader::new(stderr);
        let lines = told.by_ref().lines().map_while(Result::ok);
        let lines = lines.take_while(|line| !line.contains("Ctrl-C"));
        let served = lines.filter_map(|line| Some(line.strip_prefix("serving ")?.to_owned()));
        let served = served.collect();
        Self { child, served, told }
    }
    /// Closes the pipe that its stderr is.
    pub fn stop_reading(&mut self) {
        self.told = BufReader::new(Box::new(std::io::empty()));
    }
    /// Sends it a signal, by its name.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.expect("kill is there").success());
    }
    /// Its exit code, which comes within so long.
    pub fn ends_within(&mut self, limit: Duration) -> i32 {
        ends_within(&mut self.child, limit)
    }
    pub fn demo() -> Self {
        Self::start(&["--demo"])
    }
    pub fn uri(&self, scheme: &str, path: &str) -> String {
        let start = format!("{scheme}://");
        let authority = self.served.iter().find(|served| served.starts_with(&start));
        format!("{}{path}", authority.expect("it is served"))
    }
    /// The exit code and what was printed: the payload, or the error.
    pub fn ask(&self, verb: &str, path: &str, args: &[&str]) -> (i32, String) {
        let uri = self.uri("coap", path);
        let ended = lowmesh(&[&[verb, &uri], args].concat());
        let printed = [ended.stdout, ended.stderr].concat();
        (ended.status.code().expect("no signal"), String::from_utf8_lossy(&printed).into_owned())
    }
    pub fn get(&self, path: &str) -> String {
        let (code, printed) = self.ask("get", path, &[]);
        assert_eq!(code, 0, "{path}: {printed}");
        printed
    }
    pub fn json(&self, path: &str, args: &[&str]) -> serde_json::Value {
        let (_, printed) = self.ask("get", path, &[args, &["--json"]].concat());
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }
}

/// The exit code of a command that ends within so long.
pub fn ends_within(child: &mut Child, limit: Duration) -> i32 {
    let look = Duration::from_millis(20);
    for _ in 0..limit.as_millis() / look.as_millis() {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status.code().expect("no signal");
        }
        std::thread::sleep(look);
    }
    panic!("it goes on after {limit:?}");
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
    }
}

/// A folder that goes with the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str, files: &[(&str, &[u8])]) -> Self {
        let folder = std::env::temp_dir().join(format!("lowmesh-{}-{name}", std::process::id()));
        for (file, content) in files {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().expect("inside")).expect("a place for files");
            std::fs::write(path, content).expect("a place for files");
        }
        Self(folder)
    }
    pub fn path(&self) -> &str {
        self.0.to_str().expect("a plain path")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(&self.0);
    }
}
