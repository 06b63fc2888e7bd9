//! Connections that are taken and not used.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lowmesh_wire::coap::Code;

use crate::chance::Chance;
use crate::process;
use crate::siege::attack::{Findings, Probe, Scene, beside};
use crate::siege::forged::address;
use crate::siege::honest::{Transport, connect, connection, fetch, frame, signal};
use crate::siege::pace::Pace;
use crate::siege::request::Request;

/// Connections of the one attacker: more than a server takes in all by default.
const CONNECTIONS: u64 = 800;
/// Where they come from.
const ATTACKER: Ipv4Addr = address(72, 0);
/// Between two octets of a slow client.
const OCTET_PERIOD: Duration = Duration::from_secs(1);
/// Requests that a client who never reads puts into a connection at a time.
const UNREAD: usize = 100;
/// How a WebSocket begins, cut off before its end (RFC 6455 s4.1).
const HALF_UPGRADE: &[u8] =
    b"GET /.well-known/coap HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n";
/// The rest of it.
const REST_OF_UPGRADE: &[u8] =
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: coap\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
/// The beginning of a PUT of 60,000 octets (RFC 8323 s3.2: 269 and what two octets say).
const LONG_MESSAGE: &[u8] = &[0xe0, 0xe9, 0x53, 3];
/// The header of a TLS handshake record with a ClientHello, and nothing behind it (RFC 8446 s5.1, s4).
const HALF_HELLO: &[u8] = &[22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];

/// What an idle connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idler {
    /// Says nothing at all.
    Mute,
    /// Sends its CSM and nothing more.
    Idle,
    /// Sends one octet a second of a request.
    Slow,
    /// Asks, and reads no answer.
    Unread,
    /// Announces a message of many octets, and stops before its end.
    CutOff,
    /// Sends random octets.
    Garbled,
    /// Begins a WebSocket.
    HalfUpgraded,
    /// Asks a WebSocket port nothing.
    MuteWeb,
}

const IDLERS: [Idler; 8] = [
    Idler::Mute,
    Idler::Idle,
    Idler::Slow,
    Idler::Unread,
    Idler::CutOff,
    Idler::Garbled,
    Idler::HalfUpgraded,
    Idler::MuteWeb,
];

/// All kinds by turns, held until the end.
pub fn idle(scene: &Scene<'_>) -> Result<Findings> {
    let tcp = |from| -> Result<()> {
        let mut client = connect(Transport::Tcp, from, scene.plain, scene.seed)?;
        fetch(&mut *client, "/hello").map(drop)
    };
    let web = |from| upgrade(from, scene.web);
    let probe = |what, run| Probe {
        what,
        period: Duration::from_millis(300),
        limit: Duration::from_secs(3),
        run,
    };
    let probes = [
        probe("a new TCP client", &tcp as &(dyn Fn(_) -> _ + Sync)),
        probe("a new WebSocket client", &web),
    ];
    beside(&probes, || {
        let mut held = Vec::new();
        let (mut opened, mut chance) = (0, Chance::new(scene.seed));
        for number in 0..CONNECTIONS {
            let idler = IDLERS[number as usize % IDLERS.len()];
            let port = if matches!(idler, Idler::HalfUpgraded | Idler::MuteWeb) {
                scene.web
            } else {
                scene.plain
            };
            // One that is refused is what the server is to do.
            let Ok(tcp) = connection(ATTACKER, port) else { continue };
            opened += 1;
            tcp.set_nonblocking(true)?;
            let mut one = Held { idler, tcp, pending: begin(idler, &mut chance) };
            one.go_on();
            held.push(one);
        }
        let mut pace = Pace::new((1.0 / OCTET_PERIOD.as_secs_f64()) as u32, scene.span);
        while pace.next().is_some() {
            held.iter_mut().for_each(Held::go_on);
        }
        Ok(Findings::sent(format!("{opened} connections")))
    })
}

/// A connection that is held.
struct Held {
    idler: Idler,
    tcp: TcpStream,
    pending: Vec<u8>,
}

/// What is to be written to it at first.
fn begin(idler: Idler, chance: &mut Chance) -> Vec<u8> {
    let get = |path| frame(&Request::get(path), 1);
    match idler {
        Idler::Mute | Idler::MuteWeb => Vec::new(),
        Idler::Idle => signal(Code::CSM),
        Idler::Slow => get("/a-path-that-takes-its-time-until-it-is-whole"),
        Idler::Unread => [signal(Code::CSM), get("/large").repeat(UNREAD)].concat(),
        Idler::CutOff => [&signal(Code::CSM)[..], LONG_MESSAGE, &vec![0xff; 59_000]].concat(),
        Idler::Garbled => chance.octets(200),
        Idler::HalfUpgraded => HALF_UPGRADE.to_vec(),
    }
}

impl Held {
    /// Writes what the connection takes of what is left, or one octet. One that the server has closed stays closed.
    fn go_on(&mut self) {
        let len = if self.idler == Idler::Slow { 1 } else { self.pending.len() };
        let len = len.min(self.pending.len());
        if let Ok(written) = self.tcp.write(&self.pending[..len]) {
            self.pending.drain(..written);
        }
        if self.pending.is_empty() && self.idler == Idler::Unread {
            self.pending = frame(&Request::get("/large"), 1).repeat(UNREAD);
        }
    }
}

/// A WebSocket's handshake.
fn upgrade(from: Ipv4Addr, to: SocketAddrV4) -> Result<()> {
    let mut tcp = connection(from, to)?;
    tcp.set_read_timeout(Some(Duration::from_secs(5)))?;
    tcp.write_all(&[HALF_UPGRADE, REST_OF_UPGRADE].concat())?;
    let mut answer = [0; 12];
    tcp.read_exact(&mut answer).context("no answer to the upgrade")?;
    ensure!(&answer == b"HTTP/1.1 101", "the upgrade is refused");
    Ok(())
}

/// Handshakes that stop after nothing, or within the first message.
pub fn tls_handshakes(scene: &Scene<'_>) -> Result<Findings> {
    let authority = process::root().join("crates/net/tests/tls/ca.pem");
    let tls = |_| hello_over_tls(scene.binary, scene.secure, &authority);
    let probe = Probe {
        what: "a new TLS client",
        period: Duration::from_millis(500),
        limit: Duration::from_secs(3),
        run: &tls,
    };
    beside(&[probe], || {
        let mut held = Vec::new();
        for number in 0..CONNECTIONS {
            let Ok(mut tcp) = connection(ATTACKER, scene.secure) else { continue };
            if number % 2 == 0 {
                match tcp.write_all(HALF_HELLO) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                    _ => {}
                }
            }
            held.push(tcp);
        }
        std::thread::sleep(scene.span);
        Ok(Findings::sent(format!("{} handshakes", held.len())))
    })
}

/// The product's own client: nothing else here speaks TLS.
fn hello_over_tls(binary: &Path, to: SocketAddrV4, authority: &Path) -> Result<()> {
    let uri = format!("coaps+tcp://localhost:{}/hello", to.port());
    let mut command = process::command(binary, &["get", &uri, "--cafile"]);
    command.arg(authority);
    let (output, in_time) = process::watch(command, Duration::from_secs(5))?;
    ensure!(in_time, "no answer within 5 s");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{}", said.trim());
    Ok(())
}
