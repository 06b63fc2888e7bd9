//! The Entity Manager among clients and members that say anything, on a store that fails and with restarts.
//!
//! Each request of a client gets one response, also when all members fall silent. A manager reads every state that it has
//! written, and its entities are the same. What one input brings about is bounded, and the clock goes on.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use lowmesh_group::gate::{Gate, Path};
use lowmesh_group::params::{EXCHANGES_MAX, REQUESTS_MAX};
use lowmesh_group::store::{Change, Memory, Store, StoreError};
use lowmesh_group::{Authority, Config, ExchangeId, Input, Manager, Output, RequestId};
use lowmesh_machine::{DropReason, Machine as _};
use lowmesh_registry::Registry;
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::uri::Host;
use lowmesh_wire::coap::{Class, Code, Message, OptionNumber};

use crate::entity_steps::{
    FURNISHED, GATES, answer, conversations, lamps, request, request_of, room,
};
use crate::target::Target;

pub fn targets() -> Vec<Target> {
    let corpus = conversations().into_iter().map(|(octets, _)| octets).collect();
    vec![
        Target { name: "entities", corpus, accepts: among_members },
        Target { name: "entities_state", corpus: records(), accepts: state },
    ]
}

/// Bit of the first octet: observers do not ask for a state that has changed.
const DEAF: u8 = 0x80;
/// From a request to its answer.
const RTT: Duration = Duration::from_millis(20);
/// More than one input may bring about in a case of 2,048 octets.
const OUTPUTS_MAX: usize = 8192;
/// Deadlines in a row at one time; more would mean that time stands still.
const AT_ONCE_MAX: u32 = 64;
/// Deadlines that come in time during one wait; the next one comes late.
const DEADLINES_MAX: usize = 256;
/// Steps of ten seconds after which a request has its response: two of the longest queries, for a validation with a
/// delay and for its probes, and what is left of them for members that join.
const ENDS_MAX: usize = 60;

/// A store that outlives the manager.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<DiskState>>);

#[derive(Debug, Default)]
struct DiskState {
    memory: Memory,
    fails: bool,
}

impl Disk {
    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Disk {
    fn load(&mut self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.lock().memory.load()
    }
    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let mut disk = self.lock();
        if disk.fails { Err(StoreError("full".into())) } else { disk.memory.commit(changes) }
    }
}

/// A manager, its clock, and what has not ended.
struct Talk {
    manager: Manager,
    disk: Disk,
    gate: &'static str,
    is_deaf: bool,
    now: Instant,
    serial: u64,
    /// Requests to members and groups, by their age.
    left: Vec<(ExchangeId, bool)>,
    /// Requests to members that bring notifications, unless the members lie.
    observed: Vec<ExchangeId>,
    unanswered: BTreeSet<RequestId>,
    /// Code and payload of each response.
    responses: Vec<(Code, Vec<u8>)>,
}

fn open(disk: &Disk, gate: &str, now: Instant) -> Result<Manager, StoreError> {
    let gate = Registry::<dyn Gate>::builtin().choose(gate).expect("a row");
    let own = "coap://[fd00::ff]/".parse().expect("a URI");
    let config = Config { gate, authorities: vec![Authority::of(&own)], ..Config::default() };
    let rng = Rng::stream(Seed(1), NodeId(0), Purpose::Coap);
    Manager::open(config, Box::new(disk.clone()), rng, now)
}

/// True if a client got what it asked for.
fn among_members(octets: &[u8]) -> bool {
    let Some(mut talk) = Talk::of(octets) else { return false };
    talk.end();
    talk.responses.iter().any(|(code, _)| code.class() == Class::Success)
}

impl Talk {
    /// The conversation of a case.
    fn of(octets: &[u8]) -> Option<Self> {
        let (first, steps) = octets.split_first()?;
        let disk = if first & FURNISHED == 0 { Disk::default() } else { furnished() };
        let mut talk = Self::new(*first, disk).expect("an empty state, or its own");
        talk.play(steps);
        Some(talk)
    }
    fn new(first: u8, disk: Disk) -> Result<Self, StoreError> {
        let gate = GATES[usize::from(first & !(DEAF | FURNISHED)) % GATES.len()];
        let now = Instant::ZERO;
        let mut talk = Self {
            manager: open(&disk, gate, now)?,
            disk,
            gate,
            is_deaf: first & DEAF != 0,
            now,
            serial: 0,
            left: Vec::new(),
            observed: Vec::new(),
            unanswered: BTreeSet::new(),
            responses: Vec::new(),
        };
        talk.drain();
        Ok(talk)
    }
    fn play(&mut self, steps: &[u8]) {
        let mut rest = steps;
        while let [what, len, tail @ ..] = rest {
            let (step, tail) = tail.split_at(tail.len().min(usize::from(*len)));
            self.step(*what, step);
            rest = tail;
        }
    }
    fn step(&mut self, what: u8, octets: &[u8]) {
        match what % 12 {
            0 | 1 => self.request(octets),
            2 | 3 => self.answer(octets),
            4 => self.group_answer(octets),
            5 => {
                if let Some((exchange, is_group)) = self.pick(octets.first()) {
                    self.fail(exchange, is_group);
                }
            }
            6 => {
                let exponent = octets.first().map_or(0, |octet| u32::from(octet % 20));
                self.wait(Duration::from_millis(1 << exponent));
            }
            7 => self.restart(),
            8 => {
                let mut disk = self.disk.lock();
                disk.fails = !disk.fails;
            }
            9 => self.route(octets),
            _ => self.notify(octets),
        }
    }
    fn request(&mut self, octets: &[u8]) {
        if let Some((client, message)) = request_of(octets) {
            self.ask(client, message);
        }
    }
    fn ask(&mut self, client: u16, message: Message) {
        self.serial += 1;
        let request = RequestId(self.serial);
        self.unanswered.insert(request);
        let client = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 1, client).into();
        self.handle(Input::Request { request, client, message });
    }
    fn pick(&self, number: Option<&u8>) -> Option<(ExchangeId, bool)> {
        let number = usize::from(number.copied().unwrap_or_default());
        self.left.get(number % self.left.len().max(1)).copied()
    }
    fn answer(&mut self, octets: &[u8]) {
        let Some((exchange, is_group)) = self.pick(octets.first()) else { return };
        if is_group {
            return self.fail(exchange, true);
        }
        // A separate response comes after an empty ACK.
        if octets.len() & 2 == 2 {
            self.handle(Input::Acknowledged { exchange });
        }
        self.left.retain(|(one, _)| *one != exchange);
        self.now += RTT;
        let message = answer(octets.get(1..).unwrap_or_default());
        if message.options.get(OptionNumber::OBSERVE).is_some() {
            self.observed.push(exchange);
        }
        let retransmissions = octets.len() as u8 & 1;
        self.handle(Input::Response { exchange, message, rtt: RTT, retransmissions });
        // What a gate has let wait for the answer leaves.
        self.wait(RTT);
    }
    fn group_answer(&mut self, octets: &[u8]) {
        let Some((exchange, _)) = self.pick(octets.first()) else { return };
        let node = octets.get(1).map_or(1, |octet| u16::from(octet % 4));
        let from = Authority::plain(Host::V6(node_address(node), None));
        let message = answer(octets.get(2..).unwrap_or_default());
        self.handle(Input::GroupResponse { exchange, from, message });
    }
    fn notify(&mut self, octets: &[u8]) {
        let number = octets.first().copied().unwrap_or_default();
        // Without an observation, any name: the driver may be late.
        let place = usize::from(number) % self.observed.len().max(1);
        let exchange = self.observed.get(place).copied().unwrap_or(ExchangeId(number.into()));
        let message = answer(octets.get(1..).unwrap_or_default());
        self.handle(Input::Notification { exchange, message });
    }
    fn route(&mut self, octets: &[u8]) {
        let [node, hops, first_hop, ..] = octets else { return };
        let path = Path { hops: *hops, first_hop: u64::from(*first_hop) };
        self.handle(Input::Route { host: node_address(u16::from(node % 4)).into(), path });
    }
    fn fail(&mut self, exchange: ExchangeId, is_group: bool) {
        self.left.retain(|(one, _)| *one != exchange);
        let reason = DropReason::GaveUp;
        self.handle(if is_group {
            Input::Over { exchange }
        } else {
            Input::Failed { exchange, reason }
        });
    }
    fn wait(&mut self, span: Duration) {
        let (until, mut at_once) = (self.now + span, 0);
        for _ in 0..DEADLINES_MAX {
            let Some(due) = self.manager.next_deadline().filter(|due| *due <= until) else { break };
            at_once = if due > self.now { 0 } else { at_once + 1 };
            assert!(at_once < AT_ONCE_MAX, "the deadline stays at {due}");
            self.now = due.max(self.now);
            self.handle(Input::Deadline);
        }
        self.now = until;
        self.handle(Input::Deadline);
    }
    fn restart(&mut self) {
        // A client whose manager ends gets no response.
        self.left.clear();
        self.unanswered.clear();
        self.manager = open(&self.disk, self.gate, self.now).expect("its own records");
        self.drain();
    }
    fn handle(&mut self, input: Input) {
        self.manager.handle(self.now, input).expect("names of requests differ");
        self.drain();
    }
    fn drain(&mut self) {
        for _ in 0..OUTPUTS_MAX {
            if let Some(output) = self.manager.poll_output() {
                self.on_output(output);
                continue;
            }
            let Some(message) = self.manager.poll_change() else { return self.check_bounds() };
            if !self.is_deaf {
                // The host of a driver asks for the state that its observers get.
                self.serial += 1;
                let (request, client) = (RequestId(self.serial), node_address(0xff).into());
                self.unanswered.insert(request);
                let input = Input::Request { request, client, message };
                self.manager.handle(self.now, input).expect("names of requests differ");
            }
        }
        panic!("one input brings about more than {OUTPUTS_MAX} outputs");
    }
    fn on_output(&mut self, output: Output) {
        match output {
            Output::Request { exchange, .. } => {
                self.left.retain(|(one, _)| *one != exchange);
                self.left.push((exchange, false));
            }
            Output::Group { exchange, .. } => self.left.push((exchange, true)),
            Output::Cancel { exchange } => self.left.retain(|(one, _)| *one != exchange),
            Output::Respond { request, response } => {
                let is_open = self.unanswered.remove(&request);
                assert!(is_open, "{request:?} is answered twice, or was not asked");
                self.responses.push((response.code, response.payload));
            }
        }
    }
    /// The manager keeps within its bounds. Unless it withholds responses, because the store has refused changes and is not due
    /// again, all requests that it has ended are answered.
    fn check_bounds(&self) {
        let (requests, exchanges) = self.manager.open_requests();
        assert!(requests <= REQUESTS_MAX && exchanges <= EXCHANGES_MAX, "{requests} {exchanges}");
        if self.manager.store_fault().is_none() {
            assert_eq!(requests, self.unanswered.len(), "requests that are open");
        }
    }
    /// All members fall silent, and the disk works: every client gets its response, and a restart loses no entity.
    fn end(&mut self) {
        self.disk.lock().fails = false;
        for _ in 0..ENDS_MAX {
            while let Some((exchange, is_group)) = self.left.first().copied() {
                self.fail(exchange, is_group);
            }
            self.wait(Duration::from_secs(10));
            if self.unanswered.is_empty() {
                break;
            }
        }
        assert!(self.unanswered.is_empty(), "{:?} have no response", self.unanswered);
        let before = self.profiles();
        self.restart();
        assert_eq!(before, self.profiles(), "profiles before a restart and after it");
    }
    /// The profile of each entity, as a client reads it.
    fn profiles(&mut self) -> Vec<String> {
        let names: Vec<String> = self.manager.names().map(String::from).collect();
        let count = self.responses.len();
        for name in &names {
            self.ask(0, request(Code::GET, &format!("e/{name}/profile"), b""));
        }
        let profiles = self.responses.split_off(count).into_iter();
        let profiles: Vec<String> =
            profiles.map(|(_, text)| String::from_utf8_lossy(&text).into_owned()).collect();
        assert_eq!(profiles.len(), names.len(), "a profile needs no other request");
        profiles
    }
}

fn node_address(node: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, node)
}

/// The state after a client has created a room and lamps.
fn furnished() -> Disk {
    static STATE: LazyLock<Memory> = LazyLock::new(|| {
        let octets = [&[0][..], &room(), &lamps()].concat();
        let talk = Talk::of(&octets).expect("octets");
        talk.disk.lock().memory.clone()
    });
    Disk(Arc::new(Mutex::new(DiskState { memory: STATE.clone(), fails: false })))
}

/// The record of one more entity: it is refused, or the entity can be used, and is the same after a restart.
fn state(octets: &[u8]) -> bool {
    let mut disk = furnished();
    let change = Change { key: "entity/it".into(), value: Some(octets.to_vec()) };
    disk.commit(&[change]).expect("it does not fail");
    let Ok(mut talk) = Talk::new(0, disk) else { return false };
    for method in [Code::GET, Code::PUT] {
        talk.ask(0, request(method, "e/it?deadline=9000", b"on"));
    }
    talk.ask(0, request(Code::IPATCH, "e/it/profile", br#"{"er":["coap://[fd00::3]/t"]}"#));
    talk.request(&[0, 1, b'e', b'/', b'i', b't']);
    talk.end();
    talk.ask(0, request(Code::DELETE, "e/it", b""));
    talk.end();
    true
}

/// Records of entities with and without a group.
fn records() -> Vec<Vec<u8>> {
    let mut all = BTreeSet::new();
    for (octets, _) in conversations() {
        let mut talk = Talk::of(&octets).expect("octets");
        let state = talk.disk.load().expect("it does not fail").into_iter();
        let entities = state.filter(|(key, _)| key.starts_with("entity/"));
        all.extend(entities.map(|(_, record)| record));
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_come_to_the_end_that_they_are_written_for() {
        let mut wrong = Vec::new();
        for (number, (octets, expected)) in conversations().into_iter().enumerate() {
            let talk = Talk::of(&octets).expect("octets");
            let codes: Vec<String> =
                talk.responses.iter().map(|(code, _)| code.to_string()).collect();
            if codes.join(" ") != expected {
                wrong.push((number, talk.gate, codes.join(" "), expected));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
