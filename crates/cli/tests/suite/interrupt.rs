//! Ctrl-C during a sweep: what is kept, and that the command it names continues.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::folder::{Folder, line_of_three, short_build_id, stderr, stdout};

const SWEEP: &str = "[sweep]\n\"mac.retries\" = [3, 5, 7]\n";

#[test]
fn an_interrupted_sweep_says_what_is_kept_and_how_to_continue() {
    let folder = Folder::new("interrupt");
    let file = folder.write("line.toml", line_of_three(40, SWEEP));
    let store = folder.path("store");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
    command.args(["run", &file, "--store", &store, "--jobs", "1"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("built");
    // As soon as one run is stored, the command is interrupted.
    let build = std::path::Path::new(&store).join(short_build_id());
    for _ in 0..3000 {
        if build.is_dir() && !crate::folder::run_files(&build).is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill is there").success());
    let status = child.wait().expect("it is ours");
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert_eq!(status.code(), Some(130), "{said}");
    let line = said.lines().find(|line| line.starts_with("interrupted; ")).expect(&said);
    let kept: usize = line.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("a number");
    assert!((1..120).contains(&kept), "{line}");
    assert!(line.ends_with(&format!("of 120 runs are kept in {store}")), "{line}");
    let again = format!("to continue: lowmesh run {file} --store {store} --jobs 1");
    assert!(said.lines().any(|line| line == again), "{said}");
    // The dry run of that command counts the same runs as stored, and one that ended while the line was written.
    let words: Vec<&str> = again.split(' ').skip(3).chain(["-n"]).collect();
    let mut dry = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
    let dry = dry.args(words).output().expect("built");
    let counted = |runs: usize| stdout(&dry).contains(&format!("stored: {runs} in {store}"));
    assert!(counted(kept) || counted(kept + 1), "{line}\n{}{}", stdout(&dry), stderr(&dry));
}
