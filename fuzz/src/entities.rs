//! The Entity Manager among clients and members that say anything, on a store that fails and with restarts.
//!
//! ```text
//!   a step:  | what (1) | length (1) | octets |
//!   request:  method, bits for Observe and Accept, path and query as text, 0xff, payload
//!   answer:   which request, code, format, payload
//! ```
//! Each request of a client gets one response, and a manager reads every state that it has written.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lowmesh_group::gate::Gate;
use lowmesh_group::store::{Change, Memory, Store, StoreError};
use lowmesh_group::{Authority, Config, ExchangeId, Input, Manager, Output, RequestId};
use lowmesh_machine::{DropReason, Machine as _};
use lowmesh_registry::Registry;
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::uri::Host;
use lowmesh_wire::coap::{Code, Kind, Message, MessageId, OptionNumber};

use crate::target::Target;

pub fn targets() -> Vec<Target> {
    vec![
        Target { name: "entities", corpus: conversations(), accepts: among_members },
        Target { name: "entities_state", corpus: records(), accepts: state },
    ]
}

const METHODS: [Code; 8] = [
    Code::GET,
    Code::POST,
    Code::PUT,
    Code::DELETE,
    Code::FETCH,
    Code::IPATCH,
    Code::GET,
    Code::POST,
];
/// More than any one input may bring about.
const OUTPUTS_MAX: usize = 8192;
/// Steps to the end of every request; the longest wait is that of a query.
const ENDS_MAX: usize = 2000;

/// A store that outlives the manager.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<(Memory, bool)>>);

impl Disk {
    fn lock(&self) -> MutexGuard<'_, (Memory, bool)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Disk {
    fn load(&mut self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.lock().0.load()
    }
    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let mut disk = self.lock();
        if disk.1 { Err(StoreError("full".into())) } else { disk.0.commit(changes) }
    }
}

/// A manager, its clock, and what has not ended.
struct Talk {
    manager: Manager,
    disk: Disk,
    gate: &'static str,
    now: Instant,
    serial: u64,
    /// Requests to members and groups.
    left: Vec<(ExchangeId, bool)>,
    unanswered: BTreeSet<RequestId>,
    succeeded: bool,
}

fn open(disk: &Disk, gate: &str, now: Instant) -> Result<Manager, StoreError> {
    let gate = Registry::<dyn Gate>::builtin().choose(gate).expect("a row");
    let own = "coap://[fd00::ff]/".parse().expect("a URI");
    let config = Config { gate, authorities: vec![Authority::of(&own)] };
    let rng = Rng::stream(Seed(1), NodeId(0), Purpose::Coap);
    Manager::open(config, Box::new(disk.clone()), rng, now)
}

fn among_members(octets: &[u8]) -> bool {
    let gates = ["fixed", "gate-aimd", "gate-climb", "gate-route", "hybrid"];
    let mut talk = Talk::new(gates[octets.len() % gates.len()]);
    talk.play(octets);
    talk.end();
    talk.succeeded
}

impl Talk {
    fn new(gate: &'static str) -> Self {
        let (disk, now) = (Disk::default(), Instant::ZERO);
        let manager = open(&disk, gate, now).expect("empty");
        let (left, unanswered) = (Vec::new(), BTreeSet::new());
        Self { manager, disk, gate, now, serial: 0, left, unanswered, succeeded: false }
    }
    fn play(&mut self, octets: &[u8]) {
        let mut rest = octets;
        while let [what, len, tail @ ..] = rest {
            let (step, tail) = tail.split_at(tail.len().min(usize::from(*len)));
            self.step(*what, step);
            rest = tail;
        }
    }
    fn step(&mut self, what: u8, octets: &[u8]) {
        match what % 10 {
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
                disk.1 = !disk.1;
            }
            _ => self.notify(octets),
        }
    }
    fn request(&mut self, octets: &[u8]) {
        let [method, bits, text @ ..] = octets else { return };
        let end = text.iter().position(|octet| *octet == 0xff).unwrap_or(text.len());
        let (text, payload) = text.split_at(end);
        let Ok(text) = std::str::from_utf8(text) else { return };
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let mut message =
            Message::new(Kind::Confirmable, METHODS[usize::from(method % 8)], MessageId(1));
        if path.split('/').chain(query.split('&')).any(|part| part.len() > 255) {
            return;
        }
        message.options.insert_path(path);
        message.options.insert_query(query);
        if bits & 1 != 0 {
            message.options.insert_uint(OptionNumber::OBSERVE, u32::from(bits >> 7));
        }
        if bits & 2 != 0 {
            message.options.insert_uint(OptionNumber::ACCEPT, u32::from(bits >> 2));
        }
        message.payload = payload.get(1..).unwrap_or_default().to_vec();
        self.serial += 1;
        let request = RequestId(self.serial);
        self.unanswered.insert(request);
        let client = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 1, u16::from(bits & 3)).into();
        self.handle(Input::Request { request, client, message });
    }
    fn pick(&self, number: Option<&u8>) -> Option<(ExchangeId, bool)> {
        let number = usize::from(number.copied().unwrap_or_default());
        self.left.get(number % self.left.len().max(1)).copied()
    }
    fn message(octets: &[u8]) -> Message {
        let (code, rest) = octets.split_first().unwrap_or((&0x45, &[]));
        let (format, payload) = rest.split_first().unwrap_or((&0, &[]));
        let mut message = Message::new(Kind::Acknowledgement, Code(*code), MessageId(1));
        if *format != 0xff {
            message.options.insert_uint(OptionNumber::CONTENT_FORMAT, u32::from(format & 0x7f));
        }
        if format & 0x80 != 0 {
            message.options.insert_uint(OptionNumber::OBSERVE, 1);
        }
        message.payload = payload.to_vec();
        message
    }
    fn answer(&mut self, octets: &[u8]) {
        let Some((exchange, is_group)) = self.pick(octets.first()) else { return };
        if is_group {
            return self.fail(exchange, true);
        }
        self.left.retain(|(one, _)| *one != exchange);
        let message = Self::message(octets.get(1..).unwrap_or_default());
        let (rtt, retransmissions) = (Duration::from_millis(20), octets.len() as u8 & 1);
        self.handle(Input::Response { exchange, message, rtt, retransmissions });
    }
    fn group_answer(&mut self, octets: &[u8]) {
        let Some((exchange, _)) = self.pick(octets.first()) else { return };
        let node = octets.get(1).map_or(1, |octet| u16::from(octet % 4));
        let host = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, node);
        let from = Authority::plain(Host::V6(host, None));
        let message = Self::message(octets.get(2..).unwrap_or_default());
        self.handle(Input::GroupResponse { exchange, from, message });
    }
    fn notify(&mut self, octets: &[u8]) {
        // Any name: the driver may be late, and the member lies.
        let exchange = ExchangeId(octets.first().copied().unwrap_or_default().into());
        let message = Self::message(octets.get(1..).unwrap_or_default());
        self.handle(Input::Notification { exchange, message });
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
        let until = self.now + span;
        for _ in 0..64 {
            match self.manager.next_deadline().filter(|due| *due <= until) {
                Some(due) => self.now = due.max(self.now),
                None => break,
            }
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
            let Some(output) = self.manager.poll_output() else {
                while self.manager.poll_change().is_some() {}
                return;
            };
            match output {
                Output::Request { exchange, .. } => {
                    self.left.retain(|(one, _)| *one != exchange);
                    self.left.push((exchange, false));
                }
                Output::Group { exchange, .. } => self.left.push((exchange, true)),
                Output::Cancel { exchange } => self.left.retain(|(one, _)| *one != exchange),
                Output::Respond { request, response } => {
                    assert!(self.unanswered.remove(&request), "{request:?} is answered twice");
                    self.succeeded |= response.code.0 >> 5 == 2;
                }
            }
        }
        panic!("one input brings about more than {OUTPUTS_MAX} outputs");
    }
    /// All members fall silent, and the disk works: every client gets its response.
    fn end(&mut self) {
        self.disk.lock().1 = false;
        for _ in 0..ENDS_MAX {
            if self.unanswered.is_empty() {
                break;
            }
            while let Some((exchange, is_group)) = self.left.first().copied() {
                self.fail(exchange, is_group);
            }
            self.wait(Duration::from_secs(10));
        }
        assert!(self.unanswered.is_empty(), "{:?} have no response", self.unanswered);
        self.restart();
    }
}

/// One record of a state, with its key.
fn state(octets: &[u8]) -> bool {
    let disk = Disk::default();
    let change = Change { key: "entity/room".into(), value: Some(octets.to_vec()) };
    disk.clone().commit(&[change]).expect("it does not fail");
    let Ok(mut manager) = open(&disk, "fixed", Instant::ZERO) else { return false };
    for second in [0, 20, 2000] {
        manager.handle(Instant::from_secs(second), Input::Deadline).expect("taken");
        while manager.poll_output().is_some() {}
    }
    let kept = disk.lock().0.clone();
    let again = Disk(Arc::new(Mutex::new((kept, false))));
    assert!(open(&again, "fixed", Instant::ZERO).is_ok(), "it does not read its own record");
    true
}

fn step(what: u8, octets: &[u8]) -> Vec<u8> {
    [&[what, octets.len() as u8][..], octets].concat()
}

fn ask(method: u8, bits: u8, target: &str, payload: &str) -> Vec<u8> {
    let text = [target.as_bytes(), b"\xff", payload.as_bytes()].concat();
    step(0, &[&[method, bits][..], &text].concat())
}

/// The answer of the member that was asked first.
fn says(code: u8, format: u8, payload: &[u8]) -> Vec<u8> {
    step(2, &[&[0, code, format][..], payload].concat())
}

const GROUP: [u8; 16] = [0xff, 0x1e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x89, 0, 1];

/// Conversations that create, query, write, observe, nest, change and delete, by unicast and by multicast.
fn conversations() -> Vec<Vec<u8>> {
    let room = "{\"name\":\"room\",\"er\":[\"coap://[fd00::1]/t\",\"coap://[fd00::2]/t\"]}";
    let lamps = room.replace("room", "lamps").replace("]}", "],\"ect\":\"multicast\"}");
    let valid = says(0x45, 40, b"</t>;ct=\"0 110\"");
    let created = [ask(1, 0, "e", room), valid.clone(), valid.clone()].concat();
    let joined = [says(0x44, 0xff, b""), says(0x44, 0xff, b""), says(0x45, 42, &GROUP)].concat();
    let joined = [joined, says(0x45, 42, &GROUP)].concat();
    let group = [ask(1, 0, "e", &lamps), valid.clone(), valid, joined].concat();
    let senml = br#"[{"bn":"a","n":"b","v":2.5,"u":"Cel"},{"n":"c","vs":"on"}]"#;
    let query = |target: &str| {
        let answers = [says(0x45, 0, b"22.5 C"), says(0x45, 110, senml)];
        [ask(0, 0, target, ""), answers.concat()].concat()
    };
    let heard = |node: u8, payload: &[u8]| step(4, &[&[0, node, 0x45, 0][..], payload].concat());
    vec![
        [created.clone(), query("e/room"), query("e/room?eo=avg&enr=1"), step(6, &[10])].concat(),
        [created.clone(), ask(2, 0, "e/room", "on"), says(0x44, 0xff, b""), step(5, &[0])].concat(),
        [
            created.clone(),
            ask(0, 1, "e/room?eo=max&c.st=1", ""),
            says(0x45, 0x80, b"1"),
            step(7, b""),
        ]
        .concat(),
        [created.clone(), ask(0, 1, "e/room", ""), says(0x45, 0x80, b"1"), says(0x45, 0x80, b"2")]
            .into_iter()
            .chain([step(9, b"\x03\x45\x80\x33"), step(6, &[15]), ask(3, 0, "e/room", "")])
            .collect::<Vec<_>>()
            .concat(),
        [created.clone(), ask(1, 0, "e", "{\"name\":\"floor\",\"er\":[\"/e/room?eo=min\"]}")]
            .concat(),
        [created.clone(), ask(5, 0, "e/room/profile", "{\"er\":[\"coap://[fd00::3]/t\"]}")]
            .concat(),
        [created, ask(0, 0xaa, "e/room/profile", ""), ask(0, 0, "e/room/members", "")].concat(),
        [group.clone(), ask(0, 0, "e/lamps", ""), heard(1, b"1"), heard(2, b"2")].concat(),
        [group.clone(), ask(0, 0, "e/lamps", ""), heard(1, b"1"), step(5, &[0])].concat(),
        [group.clone(), step(8, b""), ask(3, 0, "e/lamps", ""), step(6, &[11]), step(8, b"")]
            .concat(),
        [group, step(7, b""), step(6, &[16]), says(0x45, 42, b""), says(0x44, 0xff, b"")].concat(),
        [ask(1, 0, "e", "</x>,<coap://a/t>"), ask(4, 2, "e/room", "{\"er\":[]}")].concat(),
    ]
}

/// Records of entities with and without a group.
fn records() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for octets in conversations() {
        let mut talk = Talk::new("fixed");
        talk.play(&octets);
        let state = talk.disk.load().expect("it does not fail");
        all.extend(
            state.into_iter().filter(|(key, _)| key.starts_with("entity/")).map(|one| one.1),
        );
    }
    all
}
