//! The honest clients of one attack, each a thread: what they ask, how long it takes, and when all is well again.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Client, Transport, connect, fetch, observe, upload};
use crate::process::Stopwatch;
use crate::siege::distance::{Distance, ROUND_TRIP};
use crate::siege::forged::address;

/// Honest clients beside the victim.
const NEAR: u64 = 20;
/// Honest clients 200 ms away, two for each transport.
const FAR: u64 = 8;
const CLIENTS: u64 = NEAR + FAR;
/// Between two requests of one client: five a second.
pub const PERIOD: Duration = Duration::from_millis(200);
/// The honest clients are at 127.1.0.0/16, apart from every attacker.
const NET: u8 = 1;
/// A request that takes longer is not normal.
const SLOW: Duration = Duration::from_secs(1);
/// A new connection of a client 200 ms away and its observation: four round trips more than next to the server. Those are
/// the three of a DTLS handshake with its cookie (RFC 6347 s4.2.4) and that of the observation; over TLS and WebSockets there
/// are as many, over TCP two, and over UDP two if the server wants an Echo value (RFC 9175 s2.3).
pub const OPENING_FAR: Duration = SLOW.saturating_add(ROUND_TRIP.saturating_mul(4));
/// A resource changes once a second; after so long without a notification an observer counts as forgotten. RFC 7641
/// s4.5.1 allows 3 s between unconfirmed notifications, and a lost one is made good by the next.
const FORGOTTEN: Duration = Duration::from_secs(5);
/// Kinds of failures that are kept for people to read.
const FAILURES_MAX: usize = 16;

/// Kinds of requests that each client makes in turn.
const KINDS: u32 = 4;
/// Until each kind of request has had the time to be slow: the kinds have seven blocks, so that clients far away need
/// longer than the period.
pub const WHOLE_TURN: Duration = ROUND_TRIP.saturating_mul(7).saturating_add(SLOW);

/// What the clients ask for.
#[derive(Clone, Debug)]
pub struct Work {
    /// A short representation.
    pub short: &'static str,
    /// A representation of several blocks.
    pub long: &'static str,
    /// Octets of that.
    pub long_len: usize,
    /// Where a body of several blocks is put.
    pub update: &'static str,
    /// What changes once a second, if anything does.
    pub observed: Option<&'static str>,
}

impl Work {
    /// What `lowmesh serve --demo` has.
    pub const DEMO: Self = Self {
        short: "/hello",
        long: "/large",
        long_len: 2000,
        update: "/large-update",
        observed: Some("/time"),
    };
}

/// Where a victim takes what.
#[derive(Clone, Copy, Debug)]
pub struct Doors {
    /// coap and coap+tcp.
    pub plain: SocketAddrV4,
    /// coaps, and with certificates coaps+tcp.
    pub secure: SocketAddrV4,
    /// coap+ws, or coaps+ws with certificates.
    pub web: SocketAddrV4,
    pub certificates: bool,
}

impl Doors {
    /// How the client with this number connects: one of each transport in four, and of streams every other one over TLS.
    const fn of(self, number: u64) -> (Transport, SocketAddrV4) {
        let second = self.certificates && number / 4 % 2 == 1;
        match number % 4 {
            0 => (Transport::Udp, self.plain),
            1 if second => (Transport::Tls, self.secure),
            1 => (Transport::Tcp, self.plain),
            2 if self.certificates => (Transport::Wss, self.web),
            2 => (Transport::Ws, self.web),
            _ => (Transport::Dtls, self.secure),
        }
    }
}

/// One request and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When it was over, since the team began.
    pub at: Duration,
    pub took: Duration,
    pub succeeded: bool,
    pub work: Kind,
}

/// What a request is, as far as its latency goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Of a client 200 ms away.
    pub far: bool,
    /// A new connection with its handshakes, and an observation.
    pub opens: bool,
}

impl Kind {
    /// What takes longer is not normal.
    const fn slow(self) -> Duration {
        if self.far && self.opens { OPENING_FAR } else { SLOW }
    }
}

impl Sample {
    fn is_bad(&self) -> bool {
        !self.succeeded || self.took > self.work.slow()
    }
}

/// What all clients of a team write to.
#[derive(Debug)]
struct Shared {
    clock: Stopwatch,
    over: AtomicBool,
    samples: Mutex<Vec<Sample>>,
    failures: Mutex<BTreeMap<String, usize>>,
    /// From when on the request of each client is slow, in milliseconds; 0 without a request.
    slow_from: Vec<AtomicU64>,
}

impl Shared {
    fn new() -> Self {
        Self {
            clock: Stopwatch::start(),
            over: AtomicBool::new(false),
            samples: Mutex::new(Vec::new()),
            failures: Mutex::new(BTreeMap::new()),
            slow_from: (0..CLIENTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
    fn samples(&self) -> MutexGuard<'_, Vec<Sample>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn note(&self, began: Duration, work: Kind, result: &Result<()>, what: &str) {
        let at = self.clock.elapsed();
        let succeeded = result.is_ok();
        self.samples().push(Sample { at, took: at.saturating_sub(began), succeeded, work });
        if let Err(error) = result {
            let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
            let text = format!("{what}: {error:#}");
            if failures.len() < FAILURES_MAX || failures.contains_key(&text) {
                *failures.entry(text).or_default() += 1;
            }
        }
    }
}

/// Honest clients at work; they end with the value.
#[derive(Debug)]
pub struct Team {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

impl Team {
    /// Sends them to work, near and far: over UDP, TCP, DTLS and WebSockets by turns, and over TLS where the victim has it.
    pub fn start(doors: Doors, work: &Work, seed: u64) -> Self {
        let shared = Arc::new(Shared::new());
        let start = |number: u64| {
            let (shared, work) = (shared.clone(), work.clone());
            let far = number >= NEAR;
            let (transport, to) = doors.of(number);
            let worker = Worker { number, far, transport, to, seed: seed ^ number, work, shared };
            std::thread::spawn(move || worker.run())
        };
        let clients = (0..CLIENTS).map(start).collect();
        Self { shared, clients }
    }
    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.shared.clock.elapsed()
    }
    /// All requests that are over.
    pub fn samples(&self) -> Vec<Sample> {
        self.shared.samples().clone()
    }
    /// When the last request that failed or was slow was over, if there was one after `since`; now, if one has been under
    /// way for too long.
    pub fn last_trouble(&self, since: Duration) -> Option<Duration> {
        let now = self.elapsed();
        let hangs = self.shared.slow_from.iter().any(|from| {
            let from = from.load(Ordering::Relaxed);
            from > 0 && now > Duration::from_millis(from)
        });
        if hangs {
            return Some(now);
        }
        let samples = self.shared.samples();
        let bad = samples.iter().filter(|one| one.is_bad());
        bad.map(|one| one.at).filter(|at| *at >= since).max()
    }
    /// What failed, and how often.
    pub fn failures(&self) -> Vec<String> {
        let failures = self.shared.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.iter().map(|(text, count)| format!("{count} x {text}")).collect()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            // A client that panicked has said so already.
            _ = client.join();
        }
    }
}

/// One client.
struct Worker {
    number: u64,
    /// 200 ms away.
    far: bool,
    transport: Transport,
    to: SocketAddrV4,
    seed: u64,
    work: Work,
    shared: Arc<Shared>,
}

/// What a client has done so far on its connection.
struct Standing {
    client: Box<dyn Client>,
    /// What keeps its messages for a while; it ends after the client.
    _distance: Option<Distance>,
    /// Notifications that were counted last, and when there was one more.
    notified: u64,
    heard: Option<Duration>,
}

impl Worker {
    fn run(self) {
        // Not all at the same moment.
        std::thread::sleep(PERIOD / CLIENTS as u32 * self.number as u32);
        let mut standing = None;
        for step in self.number.. {
            let began = self.shared.clock.elapsed();
            if self.shared.over.load(Ordering::Relaxed) {
                return;
            }
            let kind = Kind { far: self.far, opens: standing.is_none() };
            self.say((began + kind.slow()).as_millis() as u64);
            let (what, result) = self.step(&mut standing, step);
            self.say(0);
            self.shared.note(began, kind, &result, &self.name(what));
            if result.is_err() {
                // What has failed may have broken the connection: the next request makes another.
                standing = None;
            }
            self.rest(&mut standing, began + PERIOD);
        }
    }
    fn name(&self, what: &str) -> String {
        format!("{:?}{} {what}", self.transport, if self.far { " far away" } else { "" })
    }
    fn say(&self, slow_from: u64) {
        self.shared.slow_from[self.number as usize].store(slow_from, Ordering::Relaxed);
    }
    /// One request; what it was.
    fn step(&self, standing: &mut Option<Standing>, step: u64) -> (&'static str, Result<()>) {
        let Some(here) = standing else {
            let opened = self.open();
            return ("a connection and an observation", opened.map(|new| *standing = Some(new)));
        };
        let (work, client) = (&self.work, &mut *here.client);
        match step % u64::from(KINDS) {
            0 => ("an upload", upload(client, work.update, &[b'u'; 1500])),
            1 => ("a long GET", Self::get_long(client, work)),
            2 if here
                .heard
                .is_some_and(|heard| heard + FORGOTTEN < self.shared.clock.elapsed()) =>
            {
                let seconds = FORGOTTEN.as_secs();
                ("an observation", Err(anyhow::anyhow!("no notification for {seconds} s")))
            }
            _ => ("a GET", fetch(client, work.short).map(drop)),
        }
    }
    fn get_long(client: &mut dyn Client, work: &Work) -> Result<()> {
        let body = fetch(client, work.long)?;
        ensure!(body.len() == work.long_len, "{} octets of {}", body.len(), work.long_len);
        Ok(())
    }
    fn open(&self) -> Result<Standing> {
        let own = address(NET, self.number);
        let distance = match (self.far, self.transport) {
            (false, _) => None,
            (true, Transport::Udp | Transport::Dtls) => Some(Distance::datagrams(own, self.to)?),
            (true, _) => Some(Distance::connection(own, self.to)?),
        };
        // A relay has the address of its client.
        let (from, to) = distance
            .as_ref()
            .map_or((own, self.to), |distance| (Ipv4Addr::LOCALHOST, distance.server));
        let mut client = connect(self.transport, from, to, self.seed)?;
        let mut heard = None;
        if let Some(path) = self.work.observed {
            observe(&mut *client, path)?;
            heard = Some(self.shared.clock.elapsed());
        }
        Ok(Standing { client, _distance: distance, notified: 0, heard })
    }
    /// Takes what comes until the next request is due.
    fn rest(&self, standing: &mut Option<Standing>, until: Duration) {
        let left = until.saturating_sub(self.shared.clock.elapsed());
        let Some(here) = standing else {
            std::thread::sleep(left);
            return;
        };
        let result = here.client.wait(left);
        let notified = here.client.notified();
        if notified > here.notified && here.heard.is_some() {
            (here.notified, here.heard) = (notified, Some(self.shared.clock.elapsed()));
        }
        if result.is_err() {
            let kind = Kind { far: self.far, opens: false };
            self.shared.note(until, kind, &result, &self.name("between requests"));
            *standing = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR_BY: Kind = Kind { far: false, opens: false };

    #[test]
    fn trouble_is_a_failure_or_a_slow_request_after_the_beginning_of_the_attack() {
        let team = Team { shared: Arc::new(Shared::new()), clients: Vec::new() };
        let sample = |at, took, succeeded| Sample {
            at: Duration::from_secs(at),
            took: Duration::from_millis(took),
            succeeded,
            work: NEAR_BY,
        };
        let samples = [sample(1, 10, false), sample(5, 1500, true), sample(9, 10, true)];
        team.shared.samples().extend(samples);
        assert_eq!(team.last_trouble(Duration::from_secs(2)), Some(Duration::from_secs(5)));
        assert_eq!(team.last_trouble(Duration::from_secs(6)), None);
    }

    #[test]
    fn a_connection_from_far_away_may_take_its_round_trips_more_and_a_request_may_not() {
        let is_bad = |far, opens, took| {
            let (took, work) = (Duration::from_millis(took), Kind { far, opens });
            Sample { at: took, took, succeeded: true, work }.is_bad()
        };
        for (far, opens, max) in
            [(false, false, 1000), (false, true, 1000), (true, false, 1000), (true, true, 1800)]
        {
            assert!(!is_bad(far, opens, max) && is_bad(far, opens, max + 1), "{far} {opens}");
        }
    }

    #[test]
    fn equal_failures_are_counted_and_not_listed() {
        let shared = Shared::new();
        for number in 0..20 {
            shared.note(Duration::ZERO, NEAR_BY, &Err(anyhow::anyhow!("no answer")), "a GET");
            shared.note(Duration::ZERO, NEAR_BY, &Err(anyhow::anyhow!("error {number}")), "a GET");
        }
        let team = Team { shared: Arc::new(shared), clients: Vec::new() };
        let failures = team.failures();
        assert_eq!((failures.len(), team.samples().len()), (FAILURES_MAX, 40));
        assert!(failures.contains(&"20 x a GET: no answer".to_owned()), "{failures:?}");
    }

    #[test]
    fn all_transports_are_at_work_and_a_server_that_is_gone_fails_them() {
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let std::net::SocketAddr::V4(to) = nobody.local_addr().expect("bound") else {
            panic!("bound to IPv4")
        };
        drop(nobody);
        let doors = Doors { plain: to, secure: to, web: to, certificates: true };
        let mut team = Team::start(doors, &Work::DEMO, 1);
        std::thread::sleep(Duration::from_millis(600));
        let failures = team.failures().join("\n");
        let transports =
            ["Udp a", "Tcp a", "Tls a", "Wss a", "Dtls a", "Tcp far away", "Wss far away"];
        for one in transports {
            assert!(failures.contains(one), "{one}: {failures}");
        }
        // No relay tells a client far away that its datagrams are refused: it waits.
        let at_work = |number: u64| team.shared.slow_from[number as usize].load(Ordering::Relaxed);
        let waits = |number: &u64| matches!(doors.of(*number).0, Transport::Udp | Transport::Dtls);
        assert!((NEAR..CLIENTS).filter(waits).all(|number| at_work(number) > 0));
        team.shared.over.store(true, Ordering::Relaxed);
        team.clients.clear();
    }
}
