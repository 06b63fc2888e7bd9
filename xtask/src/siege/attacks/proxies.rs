//! Attacks on a proxy: on its memory, on the separation of its clients, and on the time that they wait.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lowmesh_wire::coap::{Code, Message, OptionNumber};

use crate::process::Stopwatch;
use crate::siege::attack::{Findings, Probe, Scene, beside};
use crate::siege::forged::{Sources, address};
use crate::siege::honest::{Transport, ask, connect};
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
const SILENT_RATE: u32 = 200;
/// Connections to silent targets: more than a proxy has in all by default.
const CONNECTIONS: u64 = 100;
/// Resources that are observed through the proxy: more than it observes in all by default.
const OBSERVED: u64 = 300;

/// Fills a cache with requests that differ in their bodies only, or in their queries.
pub fn fetch_cache(scene: &Scene<'_>) -> Result<Findings> {
    let sources = Sources::open()?;
    let clock = Stopwatch::start();
    let (mut sent, mut answered) = (0, 0);
    while sent < FETCHES && clock.elapsed() < scene.span {
        let window = WINDOW.min(FETCHES - sent);
        for number in sent..sent + window {
            let datagram =
                distinct(number).confirmable(number as u16, &(number as u32).to_be_bytes());
            // No source uses a message ID twice.
            sources.send(address(78, number >> 16), scene.plain, &datagram)?;
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

/// A request whose answer nobody else can be given: two in three are FETCHes, and of the rest the answer is long too.
fn distinct(number: u64) -> Request {
    let mut body = vec![b'k'; BODY_LEN];
    body[..8].copy_from_slice(&number.to_be_bytes());
    if !number.is_multiple_of(3) {
        return Request::new(Code::FETCH, "/hello").with_payload(&body);
    }
    let query = format!("{number:0>250}");
    (0..3).fold(Request::get("/query"), |request, _| {
        request.with(OptionNumber::URI_QUERY, query.as_bytes())
    })
}

/// What a client at an address that nobody has used yet is answered.
fn answer_to(scene: &Scene<'_>, from: Ipv4Addr, request: &Request) -> Result<Answer> {
    let mut client = connect(Transport::Udp, from, scene.plain, scene.seed)?;
    ask(&mut *client, request, false)
}

/// RFC 8768 s3: 5.08 is about one request's Hop-Limit, so that it says nothing to a client that sent another. The second of
/// two proxies provokes it, and the first must not keep it for others.
pub fn hop_limit(scene: &Scene<'_>) -> Result<Findings> {
    let mut found = Findings::default();
    let mut provoked = 0;
    for (number, path) in ["/test", "/link1", "/query"].into_iter().enumerate() {
        let number = number as u64;
        let request = Request::get(path).with_uint(OptionNumber::HOP_LIMIT, 2);
        let first = answer_to(scene, address(78, 10 + number), &request)?;
        provoked += u32::from(first.code == Code::HOP_LIMIT_REACHED);
        for (what, request) in [
            ("without Hop-Limit", Request::get(path)),
            ("with Hop-Limit 16", Request::get(path).with_uint(OptionNumber::HOP_LIMIT, 16)),
        ] {
            let second = answer_to(scene, address(78, 20 + number), &request)?;
            if second.code != Code::CONTENT {
                let code = second.code;
                found.faults.push(format!("GET {path} {what} answers {code} after another's 5.08"));
            }
        }
    }
    if provoked == 0 {
        found.faults.push("Hop-Limit 2 does not provoke 5.08 behind two proxies".to_owned());
    }
    found.sent = format!("{provoked} x 5.08");
    std::thread::sleep(scene.span);
    Ok(found)
}

/// A proxy that passes requests on to its own machine or network opens both to everybody who reaches the proxy.
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
        "[fe80::1%25lo]",
        "[fd00::1]",
        "224.0.1.187",
    ] {
        targets.push(format!("coap://{host}/"));
    }
    let sources = Sources::open()?;
    let mut faults = Vec::new();
    for (number, target) in targets.iter().enumerate() {
        let request = naming(target);
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

/// GET of a target that the request names itself.
fn naming(target: &str) -> Request {
    Request::get("/").with(OptionNumber::PROXY_URI, target.as_bytes())
}

fn is_content(answer: &Answer, target: &str) -> Result<()> {
    ensure!(answer.code == Code::CONTENT, "{target} answers {}", answer.code);
    Ok(())
}

/// What newcomers ask three times a second.
fn newcomer<'a>(what: &'static str, run: &'a (dyn Fn(Ipv4Addr) -> Result<()> + Sync)) -> Probe<'a> {
    let (period, limit) = (Duration::from_millis(300), Duration::from_secs(2));
    Probe { what, period, limit, run }
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

/// Targets over TCP that take a connection and never say a word.
pub fn silent_connections(scene: &Scene<'_>) -> Result<Findings> {
    let silent = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let port = silent.local_addr()?.port();
    let sources = Sources::open()?;
    let origin = scene.origin.context("there is a server behind the proxy")?;
    let healthy = |from: Ipv4Addr| -> Result<()> {
        let target = format!("coap+tcp://{origin}/query?from={from}");
        is_content(&answer_to(scene, from, &naming(&target))?, &target)
    };
    let probe = newcomer("a healthy target over TCP", &healthy);
    beside(&[probe], || {
        let mut pace = Pace::new(10 * CONNECTIONS as u32, scene.span);
        while let Some(number) = pace.next() {
            if number < CONNECTIONS {
                let target = format!("coap+tcp://{}:{port}/hello", address(91, number));
                let token = (number as u32).to_be_bytes();
                let datagram = naming(&target).confirmable(number as u16, &token);
                sources.send(address(63, 0), scene.plain, &datagram)?;
            }
        }
        Ok(Findings::sent(format!("{CONNECTIONS} requests to silent targets over TCP")))
    })
}

/// Silent observers, each of a resource of its own.
pub fn observations(scene: &Scene<'_>) -> Result<Findings> {
    let sources = Sources::open()?;
    let watch = |from: Ipv4Addr| -> Result<()> {
        let mut client = connect(Transport::Udp, from, scene.plain, scene.seed)?;
        let query = format!("from={from}");
        let request = Request::get("/time").with(OptionNumber::URI_QUERY, query.as_bytes());
        let answer = ask(&mut *client, &request.observing(), true)?;
        is_content(&answer, "/time")?;
        ensure!(answer.options.get(OptionNumber::OBSERVE).is_some(), "/time takes no observer");
        Ok(())
    };
    let probe = newcomer("a new observer through the proxy", &watch);
    beside(&[probe], || {
        let mut pace = Pace::new(10 * OBSERVED as u32, scene.span);
        while let Some(number) = pace.next() {
            if number < OBSERVED {
                let query = format!("number={number}");
                let request = Request::get("/time").with(OptionNumber::URI_QUERY, query.as_bytes());
                let token = (number as u32).to_be_bytes();
                let datagram = request.observing().confirmable(number as u16, &token);
                sources.send(address(64, number), scene.plain, &datagram)?;
            }
        }
        Ok(Findings::sent(format!("{OBSERVED} registrations")))
    })
}

/// Sockets that take datagrams and never answer.
pub(super) struct Silent {
    /// Held open, so that no ICMP message answers.
    _sources: Sources,
    port: u16,
}

impl Silent {
    pub(super) fn open() -> Result<Self> {
        let sources = Sources::open()?;
        let port = sources.port()?;
        Ok(Self { _sources: sources, port })
    }
    /// A request to the target with a number.
    pub(super) fn request(&self, number: u64) -> Request {
        naming(&format!("coap://{}:{}/hello", address(90, number), self.port))
    }
}

/// A newcomer asks a healthy target by its name in the meantime.
pub(super) fn beside_healthy(
    scene: &Scene<'_>,
    attack: impl FnOnce() -> Result<Findings>,
) -> Result<Findings> {
    let origin: SocketAddrV4 = scene.origin.context("there is a server behind the proxy")?;
    // No answer is out of the cache.
    let healthy = |from: Ipv4Addr| -> Result<()> {
        let target = format!("coap://{origin}/query?from={from}");
        is_content(&answer_to(scene, from, &naming(&target))?, &target)
    };
    let reverse = |from: Ipv4Addr| -> Result<()> {
        let query = format!("reverse={from}");
        let request = Request::get("/query").with(OptionNumber::URI_QUERY, query.as_bytes());
        is_content(&answer_to(scene, from, &request)?, "/query")
    };
    let probes = [
        newcomer("a healthy target named by Proxy-Uri", &healthy),
        newcomer("the healthy server behind the proxy", &reverse),
    ];
    beside(&probes, attack)
}
