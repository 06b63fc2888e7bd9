//! A running server of ours or of others, ended with its value.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv6Addr, TcpStream, UdpSocket};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::ports;
use crate::process::{self, Stopwatch};

/// How long a server may take until it listens.
const START_MAX: Duration = Duration::from_secs(10);
/// Between two checks whether it listens.
const LOOK: Duration = Duration::from_millis(20);
/// How long a server that listens may take to answer.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// Where aiocoap serves WebSockets, above its other port.
pub const WEBSOCKETS_ABOVE: u16 = 3000;
/// Every server is asked here.
pub const HOST: &str = "[::1]";

/// What every URI at a port of [`HOST`] begins with.
pub fn base(scheme: &str, port: u16) -> String {
    format!("{scheme}://{HOST}:{port}")
}

/// A running server; it ends with the value.
#[derive(Debug)]
pub struct Peer(Child);

impl Peer {
    /// Starts a server and waits until it takes connections and answers datagrams at a port.
    pub fn start(command: Command, port: u16) -> Result<Self> {
        Self::start_at(command, port, port)
    }
    /// Starts a server and waits until it takes connections at one port and answers datagrams at another.
    pub fn start_at(command: Command, connections: u16, datagrams: u16) -> Result<Self> {
        let mut command = command;
        let line = process::line(&command);
        command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
        let mut peer = Self(command.spawn().with_context(|| format!("cannot start {line}"))?);
        let clock = Stopwatch::start();
        while clock.elapsed() < START_MAX {
            if let Some(status) = peer.0.try_wait()? {
                bail!("{line} ended with {status}");
            }
            if TcpStream::connect(("::1", connections)).is_ok() && answers(datagrams) {
                return Ok(peer);
            }
            std::thread::sleep(LOOK);
        }
        bail!("{line} does not listen at the ports {connections} and {datagrams}")
    }
    /// Starts a program and waits until a line that it writes has `sign` in it.
    pub fn start_until(command: Command, sign: &str) -> Result<Self> {
        let line = process::line(&command);
        let (peer, lines) = Self::listen(command)?;
        let (clock, mut said) = (Stopwatch::start(), String::new());
        loop {
            match lines.recv_timeout(START_MAX.saturating_sub(clock.elapsed())) {
                Ok(text) if text.contains(sign) => return Ok(peer),
                Ok(text) => said.extend([&text, "\n"]),
                Err(RecvTimeoutError::Timeout) => bail!("{line} does not say {sign:?}:\n{said}"),
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("{line} ended before it said {sign:?}:\n{said}");
                }
            }
        }
    }
    /// Starts a program; the lines that it writes, wherever. They are read whether somebody takes them or not.
    pub fn listen(command: Command) -> Result<(Self, Receiver<String>)> {
        Self::begin(command, Stdio::null())
    }
    fn begin(mut command: Command, stdin: Stdio) -> Result<(Self, Receiver<String>)> {
        let line = process::line(&command);
        let (reader, writer) = std::io::pipe()?;
        command.stdin(stdin).stdout(writer.try_clone()?).stderr(writer);
        let peer = Self(command.spawn().with_context(|| format!("cannot start {line}"))?);
        // It holds the other end of the pipe, which would never close.
        drop(command);
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(reader).split(b'\n').map_while(Result::ok);
            lines.for_each(|line| _ = tell.send(String::from_utf8_lossy(&line).into_owned()));
        });
        Ok((peer, told))
    }
    /// Starts a program that takes lines from its stdin; its lines on stdout and stderr.
    pub fn converse(command: Command) -> Result<(Self, ChildStdin, Receiver<String>)> {
        let (mut peer, lines) = Self::begin(command, Stdio::piped())?;
        let stdin = peer.0.stdin.take().context("it has a stdin")?;
        Ok((peer, stdin, lines))
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

/// Whether a server answers a GET; a ping would do, if libcoap sent more than one RST a second.
fn answers(port: u16) -> bool {
    const GET: [u8; 4] = [0x40, 0x01, 0x12, 0x34];
    let asked = || {
        let socket = UdpSocket::bind("[::1]:0")?;
        socket.connect(("::1", port))?;
        socket.set_read_timeout(Some(ANSWER_MAX))?;
        socket.send(&GET)?;
        socket.recv(&mut [0; 2048])
    };
    asked().is_ok()
}

/// A port that is free, and the one above it; so are both where aiocoap would serve WebSockets.
pub fn two_free_ports() -> Result<u16> {
    ports::free(Ipv6Addr::LOCALHOST, &[1, WEBSOCKETS_ABOVE, WEBSOCKETS_ABOVE + 1])
}
