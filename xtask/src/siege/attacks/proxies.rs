//! Attacks on a proxy: on its memory, on what it serves to whom, and on who waits for whom.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lowmesh_wire::coap::{Code, Message, OptionNumber};

use crate::siege::attack::{Findings, Probe, Scene, beside};
use crate::siege::forged::{Sources, address};
use crate::siege::honest::{Transport, ask, connect, fetch};
use crate::siege::pace::Pace;
use crate::siege::request::{Answer, Request};

/// FETCHes in the long form, their octets, and how many are under way at a time.
const FETCHES: u64 = 80_000;
const BODY_LEN: usize = 1000;
const WINDOW: u64 = 32;
/// How long the answers to one window are waited for.
const WINDOW_MAX: Duration = Duration::from_secs(2);
/// Requests to silent targets.
const SLOW: u64 = 300;
/// Requests a second to one silent target.
const SILENT_RATE: u32 = 20;

/// Fills a cache with requests that differ in their bodies only.
pub fn fetch_cache(scene: &Scene<'_>) -> Result<Findings> {
    let sources = Sources::open()?;
    let from = address(78, 0);
    let mut body = vec![b'k'; BODY_LEN];
    let clock = crate::process::Stopwatch::start();
    let (mut sent, mut answered) = (0, 0);
    while sent < FETCHES && clock.elapsed() < scene.span {
        let window = WINDOW.min(FETCHES - sent);
        for number in sent..sent + window {
            body[..8].copy_from_slice(&number.to_be_bytes());
            let request = Request::new(Code::FETCH, "/hello").with_payload(&body);
            let datagram = request.confirmable(number as u16, &(number as u32).to_be_bytes());
            sources.send(from, scene.plain, &datagram)?;
        }
        sent += window;
        let mut left = window;
        while left > 0 && sources.receive(WINDOW_MAX)?.is_some() {
            left -= 1;
            answered += 1;
        }
    }
    Ok(Findings::sent(format!("{sent} FETCHes, {answered} answers")))
}

/// What an answer is, told apart from that of another client.
fn told(scene: &Scene<'_>, from: Ipv4Addr, request: &Request) -> Result<Answer> {
    let mut client = connect(Transport::Udp, from, scene.plain, scene.seed)?;
    ask(&mut *client, request, false)
}

/// RFC 8768 s3: 5.08 is about one request's Hop-Limit, so that it says nothing to a client that sent another.
pub fn hop_limit(scene: &Scene<'_>) -> Result<Findings> {
    let mut found = Findings::default();
    let mut provoked = 0;
    for (number, path) in ["/test", "/link1", "/query"].into_iter().enumerate() {
        let number = number as u64;
        let request = Request::get(path).with_uint(OptionNumber::HOP_LIMIT, 1);
        let first = told(scene, address(78, 10 + number), &request)?;
        provoked += u32::from(first.code == Code::HOP_LIMIT_REACHED);
        for (what, request) in [
            ("without Hop-Limit", Request::get(path)),
            ("with Hop-Limit 16", Request::get(path).with_uint(OptionNumber::HOP_LIMIT, 16)),
        ] {
            let second = told(scene, address(78, 20 + number), &request)?;
            if second.code != Code::CONTENT {
                let code = second.code;
                found.faults.push(format!("GET {path} {what} answers {code} after another's 5.08"));
            }
        }
    }
    if provoked == 0 {
        found.faults.push("Hop-Limit 1 does not provoke 5.08".to_owned());
    }
    found.sent = format!("{provoked} x 5.08");
    std::thread::sleep(scene.span);
    Ok(found)
}

/// A proxy that passes requests on to its own machine or network opens both to whoever reaches the proxy.
pub fn relay(scene: &Scene<'_>) -> Result<Findings> {
    let inner = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let inner_v6 = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).ok();
    let port = inner.local_addr()?.port();
    let mut targets = vec![
        format!("coap://127.0.0.1:{port}/"),
        format!("coap://127.99.1.2:{port}/"),
        format!("coap://localhost:{port}/"),
        format!("coap://0.0.0.0:{port}/"),
        format!("coap://[::ffff:127.0.0.1]:{port}/"),
        format!("coap://[::]:{port}/"),
        format!("coap+tcp://127.0.0.1:{port}/"),
    ];
    if let Some(inner) = &inner_v6 {
        targets.push(format!("coap://[::1]:{}/", inner.local_addr()?.port()));
    }
    for host in [
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.1.1",
        "[fe80::1]",
        "[fd00::1]",
        "224.0.1.187",
    ] {
        targets.push(format!("coap://{host}/"));
    }
    let sources = Sources::open()?;
    let mut faults = Vec::new();
    for (number, target) in targets.iter().enumerate() {
        let request = Request { options: proxy_uri(target), ..Request::get("/") };
        let from = address(78, 100 + number as u64);
        sources.send(from, scene.plain, &request.confirmable(number as u16, &[number as u8]))?;
        let answer = sources.receive(scene.span.min(Duration::from_millis(300)))?;
        let code = answer.and_then(|(_, bytes)| Message::parse(&bytes).ok()).map(|one| one.code);
        if !matches!(
            code,
            Some(
                Code::FORBIDDEN
                    | Code::BAD_REQUEST
                    | Code::PROXYING_NOT_SUPPORTED
                    | Code::BAD_OPTION
            )
        ) {
            let code = code.map_or("nothing yet".to_owned(), |code| code.to_string());
            faults.push(format!("{target}: not refused, but {code}"));
        }
    }
    for socket in [Some(&inner), inner_v6.as_ref()].into_iter().flatten() {
        socket.set_read_timeout(Some(Duration::from_millis(1)))?;
        let reached = std::iter::from_fn(|| socket.recv(&mut [0; 2048]).ok()).count();
        if reached > 0 {
            faults.push(format!("{reached} datagrams reached a target on loopback"));
        }
    }
    Ok(Findings { sent: format!("{} targets", targets.len()), faults })
}

fn proxy_uri(target: &str) -> lowmesh_wire::coap::Options {
    let mut options = lowmesh_wire::coap::Options::new();
    options.insert(OptionNumber::PROXY_URI, target.as_bytes());
    options
}

/// Targets that never answer, each its own: sockets that stay open and silent, for a closed port would say so.
pub fn slow_targets(scene: &Scene<'_>) -> Result<Findings> {
    let silent = Silent::open()?;
    let sources = Sources::open()?;
    beside_healthy(scene, || {
        let mut pace = Pace::new(10 * SLOW as u32, scene.span);
        while let Some(number) = pace.next() {
            if number < SLOW {
                let request = silent.request(number);
                let token = (number as u32).to_be_bytes();
                let datagram = request.confirmable(number as u16, &token);
                sources.send(address(61, 0), scene.plain, &datagram)?;
            }
        }
        Ok(Findings::sent(format!("{SLOW} requests to silent targets")))
    })
}

/// One target that never answers.
pub fn silent_target(scene: &Scene<'_>) -> Result<Findings> {
    let silent = Silent::open()?;
    let sources = Sources::open()?;
    beside_healthy(scene, || {
        let mut pace = Pace::new(SILENT_RATE, scene.span);
        let request = silent.request(0);
        while let Some(number) = pace.next() {
            let datagram = request.confirmable(number as u16, &(number as u32).to_be_bytes());
            sources.send(address(62, number % 20), scene.plain, &datagram)?;
        }
        Ok(Findings::sent(format!("{} requests to a silent target", pace.done())))
    })
}

/// Sockets that take datagrams and never answer.
struct Silent {
    /// Held open, so that no ICMP message answers.
    _sources: Sources,
    port: u16,
}

impl Silent {
    fn open() -> Result<Self> {
        let sources = Sources::open()?;
        let port = sources.port()?;
        Ok(Self { _sources: sources, port })
    }
    /// A request to the target with a number.
    fn request(&self, number: u64) -> Request {
        let target = format!("coap://{}:{}/hello", address(90, number), self.port);
        Request { options: proxy_uri(&target), ..Request::get("/") }
    }
}

/// A newcomer asks a healthy target by its name in the meantime.
fn beside_healthy(
    scene: &Scene<'_>,
    attack: impl FnOnce() -> Result<Findings>,
) -> Result<Findings> {
    let origin: SocketAddrV4 = scene.origin.context("there is a server behind the proxy")?;
    let target = format!("coap://{origin}/link2");
    let healthy = |from| -> Result<()> {
        let request = Request { options: proxy_uri(&target), ..Request::get("/") };
        let answer = told(scene, from, &request)?;
        ensure!(answer.code == Code::CONTENT, "{target} answers {}", answer.code);
        Ok(())
    };
    let reverse = |from| -> Result<()> {
        let mut client = connect(Transport::Udp, from, scene.plain, scene.seed)?;
        fetch(&mut *client, "/link3").map(drop)
    };
    let probe = |what, run| Probe {
        what,
        period: Duration::from_millis(300),
        limit: Duration::from_secs(2),
        run,
    };
    let probes = [
        probe("a healthy target named by Proxy-Uri", &healthy as &(dyn Fn(_) -> _ + Sync)),
        probe("the healthy server behind the proxy", &reverse),
    ];
    beside(&probes, attack)
}
