//! The programs at the two ends: one that the link lasts for, and one that ends with it.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command};

use lowmesh_units::{Duration, Instant};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::failure::Failure;

/// How long the peer has before the command starts.
const HEAD_START: Duration = Duration::from_millis(500);

/// The programs of one link.
pub struct Children {
    peer: Option<Command>,
    command: Option<Command>,
    running_peer: Option<Child>,
    running: Option<Child>,
    begins: Instant,
}

impl Children {
    /// A command for the namespace `a`, and a peer for the namespace with it; none has started.
    pub fn new(a: Option<&str>, peer: Option<(&str, String)>, command: Vec<String>) -> Self {
        let begins = if peer.is_some() { Instant::ZERO + HEAD_START } else { Instant::ZERO };
        let peer = peer.map(|(b, line)| {
            let mut peer = inside(b);
            // A group of its own: Ctrl-C ends the command first, and the end of the link ends all of the group.
            peer.args(["sh", "-c", &line]).process_group(0);
            peer
        });
        let command = a.filter(|_| !command.is_empty()).map(|a| {
            let mut inside = inside(a);
            inside.args(command);
            inside
        });
        Self { peer, command, running_peer: None, running: None, begins }
    }
    /// Starts what is due; the exit code of the command once it has ended.
    pub fn watch(&mut self, now: Instant) -> Result<Option<u8>, Failure> {
        if let Some(mut peer) = self.peer.take() {
            self.running_peer = Some(start(&mut peer)?);
        }
        if now >= self.begins
            && let Some(mut command) = self.command.take()
        {
            self.running = Some(start(&mut command)?);
        }
        let Some(running) = &mut self.running else { return Ok(None) };
        let Some(status) = running.try_wait().map_err(Failure::own)? else { return Ok(None) };
        // As a shell does: 128 and the number of the signal.
        let code = status.code().or(status.signal().map(|signal| signal + 128)).unwrap_or(1);
        Ok(Some(u8::try_from(code).unwrap_or(1)))
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        if let Some(peer) = &mut self.running_peer
            && let Ok(group) = i32::try_from(peer.id())
        {
            // It may have ended by itself.
            let _gone = killpg(Pid::from_raw(group), Signal::SIGTERM);
            let _ended = peer.wait();
        }
        if let Some(running) = &mut self.running {
            let _gone = running.kill();
            let _ended = running.wait();
        }
    }
}

fn inside(namespace: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]);
    command
}

fn start(command: &mut Command) -> Result<Child, Failure> {
    command.spawn().map_err(|error| Failure::own(format!("cannot start a program: {error}")))
}
