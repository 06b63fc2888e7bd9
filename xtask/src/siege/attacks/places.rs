//! Attacks with more sources than one: all that one network gives a machine, and a little from each.
//!
//! Every place is held by somebody who is busy, or everybody is new: what must give way then are the many, not the next
//! client. Honest newcomers are 200 ms away, over every transport.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lowmesh_wire::coap::{Code, Message, OptionNumber};

use super::proxies::{Silent, beside_healthy};
use crate::process;
use crate::siege::attack::{Findings, Probe, Scene, beside};
use crate::siege::distance::Distance;
use crate::siege::forged::{Sources, address};
use crate::siege::honest::{Transport, connect, connection, fetch, frame, hello, signal};
use crate::siege::pace::Pace;
use crate::siege::request::Request;

/// How long a newcomer 200 ms away may take for all its handshakes and one answer: up to five round trips, and the start of
/// a program.
const FAR_MAX: Duration = Duration::from_secs(3);
/// Connections that observe: more than a server takes in all by default.
const OBSERVING: u64 = 300;
/// Their sources: each has as many as one may have.
const OBSERVING_SOURCES: u64 = 4;
/// Connections a second that say nothing, and their sources.
const OPENING_RATE: u32 = 900;
const OPENING_SOURCES: u64 = 250;
/// DTLS handshakes a second that stop behind the cookie, and their sources.
const HANDSHAKE_RATE: u32 = 1500;
const HANDSHAKE_SOURCES: u64 = 700;
/// Requests a second for a slow resource, each from an address of its own.
const SLOW_RATE: u32 = 4;
/// Addresses of one network with one request each.
const NETWORK: u64 = 254;
/// How long an answer to the attacker is waited for.
const ANSWER_MAX: Duration = Duration::from_millis(20);

/// A newcomer 200 ms away.
fn far<'a>(what: &'static str, run: &'a (dyn Fn(Ipv4Addr) -> Result<()> + Sync)) -> Probe<'a> {
    Probe { what, period: Duration::from_millis(400), limit: FAR_MAX, run }
}

/// Attacks while far newcomers come over every transport. The victim has a certificate.
fn beside_far(scene: &Scene<'_>, attack: impl FnOnce() -> Result<Findings>) -> Result<Findings> {
    let hello = |transport, distance: Result<Distance>, from| -> Result<()> {
        let distance = distance?;
        // The relay has the address of the newcomer.
        let mut client = connect(transport, Ipv4Addr::LOCALHOST, distance.server, scene.seed)
            .with_context(|| format!("from {from}"))?;
        fetch(&mut *client, "/hello").map(drop)
    };
    let udp = |from| hello(Transport::Udp, Distance::datagrams(from, scene.plain), from);
    let dtls = |from| hello(Transport::Dtls, Distance::datagrams(from, scene.secure), from);
    let tcp = |from| hello(Transport::Tcp, Distance::connection(from, scene.plain), from);
    let tls = |from| {
        let distance = Distance::connection(from, scene.secure)?;
        hello_over_tls(scene.binary, "coaps+tcp", distance.server)
    };
    let web = |from| {
        let distance = Distance::connection(from, scene.web)?;
        hello_over_tls(scene.binary, "coaps+ws", distance.server)
    };
    let probes = [
        far("a new UDP client far away", &udp as &(dyn Fn(_) -> _ + Sync)),
        far("a new DTLS client far away", &dtls),
        far("a new TCP client far away", &tcp),
        far("a new TLS client far away", &tls),
        far("a new WebSocket client far away", &web),
    ];
    beside(&probes, attack)
}

/// The product's own client: nothing else here speaks TLS.
fn hello_over_tls(binary: &Path, scheme: &str, to: SocketAddrV4) -> Result<()> {
    let authority = process::root().join("crates/net/tests/tls/ca.pem");
    let uri = format!("{scheme}://localhost:{}/hello", to.port());
    let mut command = process::command(binary, &["get", &uri, "--cafile"]);
    command.arg(authority);
    let (output, in_time) = process::watch(command, Duration::from_secs(8))?;
    ensure!(in_time, "no answer within 8 s");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{}", said.trim());
    Ok(())
}

/// Connections that observe, so that none of them is idle.
pub fn observing(scene: &Scene<'_>) -> Result<Findings> {
    beside_far(scene, || {
        let mut held: Vec<TcpStream> = Vec::new();
        let mut pace = Pace::new(OBSERVING as u32, scene.span);
        while let Some(number) = pace.next() {
            // One that is refused, or displaced, comes again.
            let from = address(73, number % OBSERVING_SOURCES);
            let Ok(mut tcp) = connection(from, scene.plain) else { continue };
            let register = frame(&Request::get("/time").observing(), 1);
            _ = tcp.write_all(&[signal(Code::CSM), register].concat());
            held.push(tcp);
            if held.len() > 2 * OBSERVING as usize {
                held.remove(0);
            }
        }
        Ok(Findings::sent(format!("{} connections that observe", pace.done())))
    })
}

/// Connections that say nothing, of many addresses.
pub fn opening(scene: &Scene<'_>) -> Result<Findings> {
    beside_far(scene, || {
        let mut held = std::collections::VecDeque::new();
        let mut pace = Pace::new(OPENING_RATE, scene.span);
        while let Some(number) = pace.next() {
            let port = [scene.plain, scene.secure, scene.web][number as usize % 3];
            held.extend(connection(address(74, number % OPENING_SOURCES), port));
            if held.len() > OPENING_RATE as usize {
                held.pop_front();
            }
        }
        Ok(Findings::sent(format!("{} silent connections", pace.done())))
    })
}

/// DTLS handshakes of many addresses that stop behind the cookie.
pub fn dtls_handshakes(scene: &Scene<'_>) -> Result<Findings> {
    let (sources, template) = (Sources::open()?, hello()?);
    beside_far(scene, || {
        let (mut begun, mut pace) = (0, Pace::new(HANDSHAKE_RATE, scene.span));
        let mut hellos = std::collections::BTreeMap::new();
        while let Some(number) = pace.next() {
            let from = address(75, number % HANDSHAKE_SOURCES);
            let first = drawn(&template, number);
            sources.send(from, scene.secure, &first)?;
            hellos.insert(from, first);
            while let Some((to, answer)) = sources.receive(Duration::ZERO)? {
                if let (Some(cookie), Some(first)) = (cookie(&answer), hellos.remove(&to)) {
                    sources.send(to, scene.secure, &with_cookie(&first, cookie))?;
                    begun += 1;
                }
            }
        }
        Ok(Findings::sent(format!("{begun} handshakes behind the cookie")))
    })
}

/// Headers of a record and of a handshake message, the version and the random of a hello (RFC 6347 s4.1, s4.2.2).
const RECORD: usize = 13;
const MESSAGE: usize = 12;
const VERSION: usize = 2;
const RANDOM: usize = 32;

/// The same ClientHello with another random.
fn drawn(hello: &[u8], number: u64) -> Vec<u8> {
    let mut hello = hello.to_vec();
    let random = RECORD + MESSAGE + VERSION;
    hello[random..random + 8].copy_from_slice(&number.to_be_bytes());
    hello
}

/// The cookie of a HelloVerifyRequest.
fn cookie(answer: &[u8]) -> Option<&[u8]> {
    const HELLO_VERIFY_REQUEST: u8 = 3;
    let (kind, body) = (answer.get(RECORD)?, answer.get(RECORD + MESSAGE + VERSION..)?);
    let (len, cookie) = body.split_first()?;
    (*kind == HELLO_VERIFY_REQUEST).then_some(cookie.get(..usize::from(*len))?)
}

/// The second ClientHello of an exchange, with the numbers of a second message (RFC 6347 s4.2.1).
fn with_cookie(hello: &[u8], cookie: &[u8]) -> Vec<u8> {
    let session = RECORD + MESSAGE + VERSION + RANDOM;
    let at = session + 1 + usize::from(hello[session]);
    let mut second = [&hello[..at], &[cookie.len() as u8], cookie, &hello[at + 1..]].concat();
    let body = (second.len() - RECORD - MESSAGE) as u32;
    second[10] = 1;
    second[11..13].copy_from_slice(&((body as usize + MESSAGE) as u16).to_be_bytes());
    second[RECORD + 1..RECORD + 4].copy_from_slice(&body.to_be_bytes()[1..]);
    second[RECORD + 5] = 1;
    second[RECORD + 9..RECORD + 12].copy_from_slice(&body.to_be_bytes()[1..]);
    second
}

/// Forged requests for a resource that a healthy target takes a second to acknowledge.
pub fn slow_resource(scene: &Scene<'_>) -> Result<Findings> {
    let (sources, origin) = (Sources::open()?, scene.origin.context("there is an origin")?);
    beside_healthy(scene, || {
        let mut pace = Pace::new(SLOW_RATE, scene.span);
        while let Some(number) = pace.next() {
            let target = format!("coap://{origin}/separate?{number}");
            let request = Request::get("/").with(OptionNumber::PROXY_URI, target.as_bytes());
            let datagram = request.confirmable(number as u16, &(number as u32).to_be_bytes());
            // Each in a /24 of its own.
            sources.send(address(66, 254 * number), scene.plain, &datagram)?;
        }
        Ok(Findings::sent(format!("{} requests for a slow resource", pace.done())))
    })
}

/// One request of each address of one network, proven where the proxy asks for it, to targets that are silent.
pub fn one_network(scene: &Scene<'_>) -> Result<Findings> {
    let (silent, sources) = (Silent::open()?, Sources::open()?);
    beside_healthy(scene, || {
        let (mut proven, mut pace) = (0, Pace::new(2 * NETWORK as u32, scene.span));
        while let Some(number) = pace.next() {
            let from = address(67, number % NETWORK);
            let request = silent.request(number);
            let token = (number as u32).to_be_bytes();
            sources.send(from, scene.plain, &request.confirmable(number as u16, &token))?;
            let Some((to, answer)) = sources.receive(ANSWER_MAX)? else { continue };
            let echo = Message::parse(&answer)
                .ok()
                .and_then(|answer| answer.options.get(OptionNumber::ECHO).map(<[u8]>::to_vec));
            if let Some(echo) = echo {
                let again = request.with(OptionNumber::ECHO, &echo);
                let id = number.wrapping_add(1 << 15) as u16;
                sources.send(to, scene.plain, &again.confirmable(id, &token))?;
                proven += 1;
            }
        }
        Ok(Findings::sent(format!("{} requests, {proven} of proven addresses", pace.done())))
    })
}

/// A page in the browser of the operator opens WebSockets: none may.
pub fn web_page(scene: &Scene<'_>) -> Result<Findings> {
    let mut found = Findings::default();
    for origin in ["https://evil.example", "null", "http://localhost", "http://127.0.0.1"] {
        let mut tcp = connection(address(68, 0), scene.web)?;
        tcp.set_read_timeout(Some(Duration::from_secs(5)))?;
        let handshake = format!(
            "GET /.well-known/coap HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\n\
             Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Protocol: coap\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        tcp.write_all(handshake.as_bytes())?;
        let mut answer = [0; 12];
        tcp.read_exact(&mut answer).context("no answer to the handshake")?;
        if &answer != b"HTTP/1.1 403" {
            let answer = String::from_utf8_lossy(&answer).into_owned();
            found.faults.push(format!("a page of {origin} gets {answer}"));
        }
    }
    "4 handshakes of web pages".clone_into(&mut found.sent);
    std::thread::sleep(scene.span);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_hello_has_the_cookie_and_the_lengths_of_both_headers() {
        let first = drawn(&hello().expect("it begins"), 7);
        let second = with_cookie(&first, &[9; 32]);
        assert_eq!(second.len(), first.len() + 32);
        let length = |bytes: &[u8]| usize::from(u16::from_be_bytes([bytes[11], bytes[12]]));
        assert_eq!((length(&first), length(&second)), (first.len() - 13, second.len() - 13));
        let verify = [&[22, 254, 255][..], &[0; 10], &[3], &[0; 11], &[254, 255, 2, 8, 8]].concat();
        assert_eq!(cookie(&verify), Some(&[8, 8][..]));
        assert_eq!(cookie(&second), None);
    }
}
