//! How many octets come back to an address that somebody has forged: the sum of all answers, notifications and their
//! copies to one source that sends a few datagrams and then never says a word.
//!
//! Both sides count 28 octets a datagram for IPv4 and UDP (RFC 791 s3.1, RFC 768). RFC 9175 s2.4 asks for a limit and RFC
//! 9000 s8.1 names three.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lowmesh_wire::coap::{Code, Kind, OptionNumber};
use lowmesh_wire::link_format;
use serde_json::{Value, json};

use super::forged::address;
use super::honest::{Transport, ask, connect, fetch, hello};
use super::request::Request;
use super::victim::Victim;
use crate::process::Stopwatch;

/// What `--only` calls it.
pub const NAME: &str = "amplification";
/// What it does, in a line.
pub const ABOUT: &str =
    "how many octets come back to a forged source, for each resource and method";
/// How long octets are counted, in the gate and in the long form. The last copy of a confirmable notification leaves
/// 45 s after the first (MAX_TRANSMIT_SPAN, RFC 7252 s4.8.2), and resources go on changing.
const WINDOWS: [Duration; 2] = [Duration::from_secs(25), Duration::from_secs(120)];
/// Octets around a message: IPv6 and UDP.
const OVERHEAD: usize = 28;
/// At most this many times the octets that were sent.
const FACTOR_MAX: f64 = 3.0;
/// Datagrams of a series.
const SERIES: u16 = 4;
/// Octets of an option that makes a request longer, and so the answer that it may bring: an elective option that nobody
/// knows (RFC 7252 s5.4.1).
const PADDING: &[u8] = &[0; 350];
const PADDING_OPTION: OptionNumber = OptionNumber(2048);
/// What is asked of each resource.
const METHODS: &[(&str, Code)] = &[
    (OBSERVE, Code::GET),
    (OBSERVE_CHANGED, Code::GET),
    ("GET", Code::GET),
    ("POST", Code::POST),
    ("PUT", Code::PUT),
];
const OBSERVE: &str = "GET observe";
/// The same, and afterwards somebody makes the observed state long.
const OBSERVE_CHANGED: &str = "GET observe, longer";
/// What can be made long, and what it becomes.
const CHANGEABLE: &[&str] = &["/obs", "/obs-non", "/obs-large"];
const LONG_STATE: &[u8] = &[b's'; 1000];
/// The forged sources are 127.100.0.0/16.
const NET: u8 = 100;
/// Resources that no list of links has.
const UNLISTED: &[&str] = &["/.well-known/core", "/large-create/1", "/nothing-here", "/"];
/// How often sockets are read.
const LOOK: Duration = Duration::from_millis(20);
/// Rows of the table besides those that amplify.
const SHOWN: usize = 3;

/// One forged source: what was sent in its name and what came back.
#[derive(Debug)]
pub struct Case {
    name: String,
    socket: Option<UdpSocket>,
    sent: usize,
    came: usize,
    datagrams: usize,
}

impl Case {
    fn send(name: String, number: u64, to: &Victim, datagrams: &[Vec<u8>]) -> Result<Self> {
        let socket = UdpSocket::bind((address(NET, number), 0)).context("no port for a source")?;
        socket.set_nonblocking(true)?;
        let to = if name.starts_with("coaps") { to.secure() } else { to.plain() };
        let mut sent = 0;
        for datagram in datagrams {
            socket.send_to(datagram, to)?;
            sent += OVERHEAD + datagram.len();
        }
        Ok(Self { name, socket: Some(socket), sent, came: 0, datagrams: 0 })
    }
    /// Counts what has come; nothing is ever answered.
    fn count(&mut self) -> Result<()> {
        let mut buffer = [0; 2048];
        let Some(socket) = &self.socket else { return Ok(()) };
        loop {
            match socket.recv(&mut buffer) {
                Ok(len) => {
                    self.came += OVERHEAD + len;
                    self.datagrams += 1;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
    fn factor(&self) -> f64 {
        self.came as f64 / self.sent as f64
    }
    /// Whether it stays within the bound.
    pub fn holds(&self) -> bool {
        self.factor() <= FACTOR_MAX
    }
    /// For programs.
    pub fn to_json(&self) -> Value {
        json!({
            "request": self.name,
            "octets_sent": self.sent,
            "octets_back": self.came,
            "datagrams_back": self.datagrams,
            "factor": self.factor(),
            "holds": self.holds(),
        })
    }
}

/// The cases that amplify, and the next below them.
pub fn table(cases: &[Case], long: bool) -> String {
    let mut sorted: Vec<&Case> = cases.iter().collect();
    sorted.sort_by(|a, b| b.factor().total_cmp(&a.factor()));
    let amplifying = sorted.iter().filter(|case| !case.holds()).count();
    let seconds = WINDOWS[usize::from(long)].as_secs();
    let mut table = format!(
        "\n{} forged sources, octets of {seconds} s with {OVERHEAD} a datagram for IPv4 and UDP; {amplifying} get more \
         than {FACTOR_MAX} times what bears their address\n{:<44} {:>6} {:>6} {:>9} {:>7}  verdict\n",
        cases.len(),
        "request",
        "sent",
        "back",
        "datagrams",
        "factor"
    );
    for case in sorted.iter().take(amplifying + SHOWN) {
        let verdict = if case.holds() { "holds" } else { "MISSED" };
        let Case { name, sent, came, datagrams, .. } = case;
        // Writing to a string does not fail.
        _ = writeln!(
            table,
            "{name:<44} {sent:>6} {came:>6} {datagrams:>9} {:>7.2}  {verdict}",
            case.factor()
        );
    }
    table
}

/// All cases at the same time, each method at a server of its own, so that no case takes what another would get.
pub fn measure(binary: &Path, long: bool) -> Result<Vec<Case>> {
    let (mut cases, mut victims) = (Vec::new(), Vec::new());
    for (method, code) in METHODS {
        let mut victim = Victim::start(binary, &["serve", "--demo"], false)?;
        let paths = paths(&victim).context("the list of resources")?;
        for path in paths {
            let request = Request::new(*code, &path);
            let observes = [OBSERVE, OBSERVE_CHANGED].contains(method);
            let request = if observes { request.observing() } else { request };
            if *method != OBSERVE_CHANGED || CHANGEABLE.contains(&path.as_str()) {
                send_all(&mut cases, &victim, &format!("{method} {path}"), &request)?;
            }
        }
        if *method == OBSERVE_CHANGED {
            // A client that is refused tells less than the victim's end.
            change(&victim)
                .with_context(|| victim.end().unwrap_or_else(|| "the victim runs".to_owned()))?;
        }
        victims.push(victim);
    }
    let victim = victims.last().context("there are methods")?;
    let number = cases.len() as u64;
    cases.push(Case::send("coaps ClientHello".to_owned(), number, victim, &[hello()?])?);
    let (clock, window) = (Stopwatch::start(), WINDOWS[usize::from(long)]);
    while clock.elapsed() < window {
        cases.iter_mut().try_for_each(Case::count)?;
        std::thread::sleep(LOOK);
    }
    cases.iter_mut().try_for_each(Case::count)?;
    // The sockets have stayed open and silent until here.
    drop(victims);
    for case in &mut cases {
        case.socket = None;
    }
    Ok(cases)
}

/// Puts a long state where somebody observes.
fn change(victim: &Victim) -> Result<()> {
    let mut client = connect(Transport::Udp, address(101, 1), victim.plain(), 1)?;
    for path in CHANGEABLE {
        let request = Request::new(Code::PUT, path).with_payload(LONG_STATE);
        let answer = ask(&mut *client, &request, false)?;
        ensure!(answer.code == Code::CHANGED, "PUT {path} answers {}", answer.code);
    }
    Ok(())
}

/// One request in all its forms, each from a source of its own.
fn send_all(cases: &mut Vec<Case>, victim: &Victim, what: &str, request: &Request) -> Result<()> {
    let long = request.clone().with(PADDING_OPTION, PADDING);
    for (request, length) in [(request, ""), (&long, "long ")] {
        for (kind, name) in [(Kind::Confirmable, "CON"), (Kind::NonConfirmable, "NON")] {
            for count in [1, SERIES] {
                let name = format!("{count} x {length}{name} {what}");
                let datagram = |id: u16| request.datagram(kind, id, &id.to_be_bytes()[1..]);
                let datagrams: Vec<Vec<u8>> = (1..=count).map(datagram).collect();
                cases.push(Case::send(name, cases.len() as u64, victim, &datagrams)?);
            }
        }
    }
    Ok(())
}

/// What the server lists, and what it does not.
fn paths(victim: &Victim) -> Result<BTreeSet<String>> {
    let mut client = connect(Transport::Udp, address(101, 0), victim.plain(), 1)?;
    let list = fetch(&mut *client, "/.well-known/core")?;
    let list = String::from_utf8(list).context("the list of links is not UTF-8")?;
    let mut paths: BTreeSet<String> = UNLISTED.iter().map(|path| (*path).to_owned()).collect();
    for link in link_format::links(&list) {
        let link = link.map_err(|error| anyhow::anyhow!("the list of links: {error}"))?;
        paths.insert(link.target.to_string());
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(sent: usize, came: usize) -> Case {
        Case { name: "GET /a".to_owned(), socket: None, sent, came, datagrams: 1 }
    }

    #[test]
    fn three_times_is_the_bound() {
        assert!(case(60, 180).holds());
        assert!(!case(60, 181).holds());
    }

    #[test]
    fn the_worst_comes_first() {
        let table = table(&[case(60, 60), case(60, 600), case(60, 120)], false);
        let rows: Vec<&str> = table.lines().skip(3).collect();
        assert!(rows[0].contains("10.00  MISSED") && rows[1].contains("2.00  holds"), "{table}");
        assert!(table.contains("1 get more"));
    }

    #[test]
    fn what_comes_back_is_counted_with_its_headers() {
        let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let mut one = Case { datagrams: 0, ..case(60, 0) };
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        server.send_to(&[0; 52], socket.local_addr().expect("bound")).expect("sent");
        one.socket = Some(socket);
        one.socket.as_ref().expect("there").set_nonblocking(true).expect("possible");
        let clock = Stopwatch::start();
        while one.datagrams == 0 && clock.elapsed() < Duration::from_secs(10) {
            one.count().expect("readable");
        }
        assert_eq!((one.came, one.datagrams), (52 + 28, 1));
    }
}
