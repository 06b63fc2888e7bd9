//! A server of somebody else's, or ours, for as long as it is asked.

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::{self, Stopwatch};

/// How long a server may take until it listens.
const START_MAX: Duration = Duration::from_secs(10);
/// How often it is looked whether it does.
const LOOK: Duration = Duration::from_millis(20);
/// Every server is asked here.
pub const HOST: &str = "[::1]";

/// A running server; it ends with the value.
#[derive(Debug)]
pub struct Peer(Child);

impl Peer {
    /// Starts a server and waits until it takes connections at a port.
    pub fn start(command: Command, port: u16) -> Result<Self> {
        let mut command = command;
        let line = process::line(&command);
        command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
        let mut peer = Self(command.spawn().with_context(|| format!("cannot start {line}"))?);
        let clock = Stopwatch::start();
        while clock.elapsed() < START_MAX {
            if let Some(status) = peer.0.try_wait()? {
                bail!("{line} ended with {status}");
            }
            if std::net::TcpStream::connect(("::1", port)).is_ok() {
                return Ok(peer);
            }
            std::thread::sleep(LOOK);
        }
        bail!("{line} does not listen at port {port}")
    }
    /// Starts a program and waits until a line of its stderr has `sign` in it.
    pub fn start_until(command: Command, sign: &str) -> Result<Self> {
        let mut command = command;
        let line = process::line(&command);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).stdin(Stdio::null());
        let mut peer = Self(command.spawn().with_context(|| format!("cannot start {line}"))?);
        let stderr = BufReader::new(peer.0.stderr.take().context("its stderr is piped")?);
        let mut said = String::new();
        for text in stderr.lines() {
            let text = text?;
            if text.contains(sign) {
                return Ok(peer);
            }
            said.push_str(&text);
            said.push('\n');
        }
        bail!("{line} ended before it said {sign:?}:\n{said}")
    }
    /// Ends it as Ctrl-C does, and waits for that.
    pub fn interrupt(mut self) -> Result<()> {
        let pid = self.0.id().to_string();
        process::execute(process::command("kill", &["-INT", &pid]))?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A port that is free, and the one behind it too, for datagrams and connections; others may take them meanwhile.
pub fn two_free_ports() -> Result<u16> {
    for _ in 0..100 {
        let first = TcpListener::bind("[::1]:0")?;
        let port = first.local_addr()?.port();
        let Some(second) = port.checked_add(1) else { continue };
        let free = UdpSocket::bind(("::1", port)).is_ok()
            && UdpSocket::bind(("::1", second)).is_ok()
            && TcpListener::bind(("::1", second)).is_ok();
        if free {
            return Ok(port);
        }
    }
    bail!("no two free ports in a row")
}
