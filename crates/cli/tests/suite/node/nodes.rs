//! Two nodes that know each other by their ports: one that runs all the time, and one for each verb.

use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::process::{self, Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use serde_json::Value;

/// The link-local addresses of the two nodes.
pub const PEER: &str = "fe80::4c:4d00:0:2";
const EUI64S: [&str; 2] = ["02:4c:4d:00:00:00:00:01", "02:4c:4d:00:00:00:00:02"];

/// Free ports of loopback, below those that the system gives to sockets that ask for any (32768 on Linux), so that no such
/// socket takes one before the node does. Each test is a process and begins at a place of its own.
pub fn ports<const N: usize>() -> [u16; N] {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let place = u16::try_from(process::id() % 1_000).expect("below 1,000");
    let free = || {
        let mut own =
            (0..20).map(|_| 10_000 + place * 20 + NEXT.fetch_add(1, Ordering::Relaxed) % 20);
        let bound = |port| UdpSocket::bind(("127.0.0.1", port)).ok().map(|socket| (socket, port));
        own.find_map(bound).expect("one of 20 ports is free")
    };
    // All are bound until the last is found, so they differ.
    [(); N].map(|()| free()).map(|(_, port)| port)
}

/// A node that runs until the end of the test, and where another one finds it.
pub struct Peer {
    child: Child,
    out: BufReader<ChildStdout>,
    /// Where the other node sends to, and from where.
    pub other: (u16, u16),
}

impl Peer {
    /// Starts it on the other end of a wire.
    pub fn start(args: &[&str]) -> Self {
        let [here, there] = ports();
        Self::start_at((here, there), (here, there), args)
    }
    /// Starts it at a port, with its frames going to another; the other node has `other`.
    pub fn start_at(own: (u16, u16), other: (u16, u16), args: &[&str]) -> Self {
        let mut command = command(1, (own.1, own.0));
        let mut child = command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command was built");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        if !args.contains(&"--json") {
            let mut line = String::new();
            while !line.contains("CoAP on port") {
                line.clear();
                let read = out.read_line(&mut line).expect("text");
                assert_ne!(read, 0, "the node has ended: {child:?}");
            }
        }
        Self { child, out, other }
    }
    /// Runs a verb of the other node, with options before it.
    pub fn ask(&self, words: &[&str]) -> Output {
        command(0, self.other).args(words).output().expect("the command was built")
    }
    /// What a verb prints with `--json`, one object a line, and its exit code.
    pub fn ask_json(&self, words: &[&str]) -> (Vec<Value>, i32) {
        let ended = self.ask(&[&["--json"], words].concat());
        let code = ended.status.code().expect("no signal");
        let text = String::from_utf8(ended.stdout).expect("text");
        let objects = text.lines().map(|line| serde_json::from_str(line).expect(line));
        (objects.collect(), code)
    }
    /// Ends it with Ctrl-C: its exit code, and what it printed on stdout since its start and on stderr.
    pub fn interrupt(mut self) -> (i32, String, String) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status();
        assert!(sent.expect("kill is there").success());
        let code = crate::served::ends_within(&mut self.child, Duration::from_secs(20));
        let mut printed = String::new();
        std::io::Read::read_to_string(&mut self.out, &mut printed).expect("text");
        let told = self.child.stderr.take().expect("piped");
        (code, printed, std::io::read_to_string(told).expect("text"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
    }
}

/// The command of node 0 or 1, which sends to the first port from the second.
pub fn command(node: usize, (to, from): (u16, u16)) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
    let (to, from) = (format!("127.0.0.1:{to}"), format!("127.0.0.1:{from}"));
    command.args(["node", "--zep", &to, "--bind", &from, "--eui64", EUI64S[node]]);
    command
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
