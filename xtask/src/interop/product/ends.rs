//! The programs of one row: how each serves, asks and observes.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{ChildStdin, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{Program, Row, Track, Way};
use crate::interop::aiocoap::script;
use crate::interop::case::Stage;
use crate::interop::material::{IDENTITY, KEY, SALT};
use crate::interop::peer::{Peer, WEBSOCKETS_ABOVE, base, two_free_ports};
use crate::process;

/// Clients of a row that may have a security context each.
const CLIENTS: usize = 8;
/// The ID of the server.
const SERVER_ID: &str = "02";
/// Until a program that has not kept its own time is killed.
const GRACE: Duration = Duration::from_secs(5);

/// The programs of others that are there.
#[derive(Clone, Debug)]
pub(in crate::interop) struct Peers {
    pub(in crate::interop) libcoap: bool,
    /// The Python with aiocoap.
    pub(in crate::interop) python: Option<PathBuf>,
    /// It has DTLS.
    pub(in crate::interop) has_dtls: bool,
}

/// The ends of a row.
pub(super) struct Ends<'a> {
    stage: Stage<'a>,
    peers: &'a Peers,
    row: &'a Row,
    port: u16,
    web: u16,
    proxy: u16,
    proxy_web: u16,
}

/// Who asks.
pub(super) enum Asker {
    /// A process a request.
    Commands,
    /// One process for all.
    Talker(Talker),
}

/// What an observer says.
#[derive(Debug)]
pub(super) enum News {
    State(String),
    Ended(String),
}

/// A running observer.
pub(super) enum Watching {
    /// A process that writes a line a state.
    Command { _peer: Peer, lines: Receiver<String> },
    /// An observation of a talker.
    Talked { lines: Receiver<String> },
}

impl Watching {
    /// What comes next, if it comes in time.
    pub(super) fn next(&self, max: Duration) -> Option<News> {
        let (Self::Command { lines, .. } | Self::Talked { lines }) = self;
        match lines.recv_timeout(max) {
            Ok(line) => Some(match (self, line.split_once(' ')) {
                (Self::Talked { .. }, Some(("state", state))) => News::State(state.to_owned()),
                (Self::Talked { .. }, _) => News::Ended(line),
                // The client of libcoap runs on behind the end.
                (Self::Command { .. }, Some((code, _))) if is_error(code) => News::Ended(line),
                (Self::Command { .. }, _) => News::State(line.trim_end().to_owned()),
            }),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(News::Ended("the process ends".to_owned())),
        }
    }
}

/// Whether a word is the code of an error, which ends an observation (RFC 7641 s4.2).
fn is_error(word: &str) -> bool {
    word.len() == 4 && ["4.", "5."].iter().any(|class| word.starts_with(class))
}

impl<'a> Ends<'a> {
    pub(super) fn new(stage: Stage<'a>, peers: &'a Peers, row: &'a Row) -> Result<Self> {
        let (port, web) = (two_free_ports()?, two_free_ports()?);
        let (proxy, proxy_web) = (two_free_ports()?, two_free_ports()?);
        let ends = Self { stage, peers, row, port, web, proxy, proxy_web };
        if row.oscore {
            for number in 0..ends.contexts() {
                // Each client has keys of its own, since processes share no sequence number.
                let (client, salt) = (format!("1{number}"), format!("{SALT}0{number}"));
                let material = stage.material;
                material.protect(&ends.context("client", number), &client, SERVER_ID, &salt)?;
                material.protect(&ends.context("server", number), SERVER_ID, &client, &salt)?;
            }
        }
        std::fs::create_dir_all(ends.folder())?;
        Ok(ends)
    }
    /// aiocoap's client is one process.
    fn contexts(&self) -> usize {
        if self.row.way == Way::WeAsk { CLIENTS } else { 1 }
    }
    fn context(&self, end: &str, number: usize) -> String {
        format!("product-{}-{end}-{number}", self.port)
    }
    fn folder(&self) -> String {
        self.stage.material.path(&format!("product-{}", self.port))
    }
    fn is_tls(&self) -> bool {
        self.row.scheme.starts_with("coaps+")
    }
    /// Where the server takes requests over UDP in the open.
    pub(super) fn plain(&self) -> String {
        base("coap", self.port)
    }
    /// Where clients find the server.
    fn server(&self) -> String {
        let theirs = self.row.way == Way::WeAsk && self.row.program == Program::Aiocoap;
        let port = match self.row.scheme {
            "coaps" | "coaps+tcp" => self.port + 1,
            "coap+ws" if theirs => self.port + WEBSOCKETS_ABOVE,
            "coaps+ws" if theirs => self.port + WEBSOCKETS_ABOVE + 1,
            "coap+ws" | "coaps+ws" => self.web,
            _ => self.port,
        };
        base(self.row.scheme, port)
    }
    /// Where they find the proxy, over the same transport.
    fn via(&self) -> String {
        let port = match self.row.scheme {
            "coaps" | "coaps+tcp" => self.proxy + 1,
            "coap+ws" | "coaps+ws" => self.proxy_web,
            _ => self.proxy,
        };
        base(self.row.scheme, port)
    }
    fn certificate(&self) -> [String; 2] {
        ["cert.pem", "key.pem"].map(|name| self.stage.material.path(name))
    }
    /// Starts the server.
    pub(super) fn serve(&self) -> Result<Peer> {
        let (number, [cert, key]) = (self.port.to_string(), self.certificate());
        match (self.row.way, self.row.program) {
            (Way::TheyAsk, _) => {
                let mut ours = self.ours(&["serve", &self.folder(), "-w"], self.port, self.web);
                if self.row.oscore {
                    let context = format!("{}.conf", self.context("server", 0));
                    ours.args(["-E", &self.stage.material.path(&context)]);
                }
                Peer::start(ours, self.port)
            }
            (Way::WeAsk, Program::Libcoap(build)) => {
                let args = ["-A", "::1", "-p", &number, "-d", "20"];
                let mut server = process::command(format!("coap-server-{build}"), &args);
                match self.row.scheme {
                    "coaps" => _ = server.args(["-k", KEY]),
                    "coaps+tcp" => _ = server.args(["-c", &cert, "-j", &key, "-n"]),
                    _ => {}
                }
                Peer::start(server, self.port)
            }
            (Way::WeAsk, Program::Aiocoap) => {
                let mut server = self.python(&["serve", &number])?;
                if self.is_tls() {
                    server.args(["--tls", &cert, &key]);
                }
                if self.row.oscore {
                    for number in 0..self.contexts() {
                        let folder = self.stage.material.path(&self.context("server", number));
                        server.args(["--oscore", &folder]);
                    }
                }
                Peer::start_until(server, "ready")
            }
        }
    }
    /// Starts our proxy.
    pub(super) fn proxy(&self) -> Result<Peer> {
        let args =
            ["proxy", "--allow-target", "::1", "--target-psk", KEY, "--target-identity", IDENTITY];
        let mut proxy = self.ours(&args, self.proxy, self.proxy_web);
        if self.is_tls() {
            proxy.args(["--cafile", &self.certificate()[0]]);
        }
        Peer::start(proxy, self.proxy)
    }
    /// One of our servers.
    fn ours(&self, args: &[&str], port: u16, web: u16) -> Command {
        let mut command = process::command(self.stage.binary, args);
        command.args(["--address", "::1", "--port", &port.to_string()]);
        command.args(["--ws-port", &web.to_string(), "-u", IDENTITY, "-k", KEY]);
        if self.is_tls() {
            let [cert, key] = self.certificate();
            command.args(["--cert", &cert, "--key", &key]);
        }
        command
    }
    fn python(&self, args: &[&str]) -> Result<Command> {
        let python = self.peers.python.as_ref().context("aiocoap is there")?;
        let script = script("aiocoap_product.py");
        Ok(process::command(python, &[&[&*script][..], args].concat()))
    }
    /// The client.
    pub(super) fn asker(&self) -> Result<Asker> {
        if self.row.way == Way::WeAsk || self.row.is_libcoap() {
            return Ok(Asker::Commands);
        }
        let mut client = self.python(&["ask"])?;
        match self.row.scheme {
            "coaps" => _ = client.args(["--psk", IDENTITY, KEY]),
            _ if self.is_tls() => {
                for base in [self.server(), self.via()] {
                    client.args(["--trust", &base, &self.certificate()[0]]);
                }
            }
            _ => {}
        }
        if self.row.oscore {
            let folder = self.stage.material.path(&self.context("client", 0));
            client.args(["--oscore", &self.server(), &folder]);
        }
        Ok(Asker::Talker(Talker::start(client)?))
    }
    /// A command of ours or of libcoap, for a track.
    fn command(&self, track: Track, verb: &str, path: &str, max: Duration) -> Command {
        let (uri, seconds) = (format!("{}{path}", self.server()), max.as_secs().to_string());
        let [cert, _] = self.certificate();
        let keys = ["-u", IDENTITY, "-k", KEY];
        let theirs = (self.row.way, self.row.program);
        let mut command = if let (Way::TheyAsk, Program::Libcoap(build)) = theirs {
            let verbs = match verb {
                "observe" => ["-m", "get", "-w", "-s", &seconds],
                verb => ["-m", verb, "-w", "-v", "3"],
            };
            let mut command = process::command(format!("coap-client-{build}"), &verbs);
            if self.is_tls() {
                command.args(["-C", &cert]);
            }
            command
        } else {
            let mut command = process::command(self.stage.binary, &[verb]);
            if self.is_tls() {
                command.args(["--cafile", &cert]);
            }
            if self.row.oscore {
                let context = format!("{}.conf", self.context("client", track.number));
                command.args(["-E", &self.stage.material.path(&context)]);
            }
            command
        };
        if self.row.scheme == "coaps" {
            command.args(keys);
        }
        if track.cell.proxy {
            command.args(["-P", &self.via()]);
        }
        command.args(["-B", &seconds, &uri]);
        command
    }
    fn talk(
        &self,
        talker: &Talker,
        track: Track,
        what: &str,
        path: &str,
        body: &str,
    ) -> Receiver<String> {
        let via = track.cell.proxy.then(|| self.via());
        talker.ask(what, &format!("{}{path}", self.server()), body, via.as_deref())
    }
    /// Writes a body.
    pub(super) fn put(
        &self,
        asker: &Asker,
        track: Track,
        path: &str,
        body: &str,
        max: Duration,
    ) -> Result<(), String> {
        match asker {
            Asker::Talker(talker) => {
                outcome(&self.talk(talker, track, "put", path, body), max).map(drop)
            }
            Asker::Commands => {
                let mut command = self.command(track, "put", path, max);
                command.args(["-e", body]);
                finish(command, max).map(drop)
            }
        }
    }
    /// Reads a body.
    pub(super) fn get(
        &self,
        asker: &Asker,
        track: Track,
        path: &str,
        max: Duration,
    ) -> Result<String, String> {
        match asker {
            Asker::Talker(talker) => outcome(&self.talk(talker, track, "get", path, ""), max),
            Asker::Commands => finish(self.command(track, "get", path, max), max),
        }
    }
    /// Observes a path.
    pub(super) fn watch(&self, asker: &Asker, track: Track, path: &str) -> Result<Watching> {
        const HOUR: Duration = Duration::from_secs(3600);
        match asker {
            Asker::Talker(talker) => {
                Ok(Watching::Talked { lines: self.talk(talker, track, "observe", path, "") })
            }
            Asker::Commands => {
                let (peer, lines) = Peer::listen(self.command(track, "observe", path, HOUR))?;
                Ok(Watching::Command { _peer: peer, lines })
            }
        }
    }
}

/// What a command writes to stdout, without the end of its line.
fn finish(command: Command, max: Duration) -> Result<String, String> {
    let line = process::line(&command);
    let watched = process::watch(command, max + GRACE);
    let (output, in_time) = watched.map_err(|error| format!("{error:#}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !in_time || !output.status.success() {
        let line: String = line.chars().take(300).collect();
        return Err(format!("{}: {}\n    {line}", output.status, stderr.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// What a talker says to the end of a request.
fn outcome(lines: &Receiver<String>, max: Duration) -> Result<String, String> {
    let line = lines.recv_timeout(max).map_err(|_| "no answer".to_owned())?;
    match line.split_once(' ') {
        Some(("ok", body)) => Ok(body.to_owned()),
        _ => Err(line),
    }
}

/// A process of aiocoap that carries out commands, all with one context.
pub(super) struct Talker {
    stdin: Mutex<ChildStdin>,
    told: Arc<Mutex<BTreeMap<String, Sender<String>>>>,
    next: AtomicUsize,
    _peer: Peer,
}

impl Talker {
    fn start(command: Command) -> Result<Self> {
        let (peer, stdin, lines) = Peer::converse(command)?;
        let told: Arc<Mutex<BTreeMap<String, Sender<String>>>> = Arc::default();
        let tell = told.clone();
        std::thread::spawn(move || {
            for line in lines {
                let Some((id, rest)) = line.split_once(' ') else { continue };
                let told = tell.lock().unwrap_or_else(PoisonError::into_inner);
                // Nobody may listen any more.
                _ = told.get(id).map(|one| one.send(rest.to_owned()));
            }
            // Who waits learns that nothing comes.
            tell.lock().unwrap_or_else(PoisonError::into_inner).clear();
        });
        let (stdin, next) = (Mutex::new(stdin), AtomicUsize::new(0));
        Ok(Self { stdin, told, next, _peer: peer })
    }
    /// Sends a command; its lines.
    fn ask(&self, what: &str, uri: &str, body: &str, via: Option<&str>) -> Receiver<String> {
        let id = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let (tell, told) = mpsc::channel();
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), tell);
        let command =
            serde_json::json!({ "id": id, "do": what, "uri": uri, "body": body, "via": via });
        let mut stdin = self.stdin.lock().unwrap_or_else(PoisonError::into_inner);
        // A process that has ended answers nothing, which is found out then.
        _ = writeln!(stdin, "{command}").and_then(|()| stdin.flush());
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_response_is_the_end_of_an_observation() {
        for (word, is) in [("5.02", true), ("4.04", true), ("2.05", false), ("fourth", false)] {
            assert_eq!(is_error(word), is, "{word}");
        }
    }

    #[test]
    fn an_observer_tells_states_and_its_end() {
        let (tell, told) = mpsc::channel();
        for line in ["state first", "error TimeoutError()"] {
            tell.send(line.to_owned()).expect("it listens");
        }
        drop(tell);
        let watching = Watching::Talked { lines: told };
        let next = || watching.next(Duration::from_secs(1));
        assert!(matches!(next(), Some(News::State(state)) if state == "first"));
        assert!(matches!(next(), Some(News::Ended(why)) if why.contains("Timeout")));
        assert!(matches!(next(), Some(News::Ended(_))));
    }
}
