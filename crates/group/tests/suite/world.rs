//! A manager among nodes that lose messages, restart, fill up and lie, in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex};

use lowmesh_coap::RequestTemplate;
use lowmesh_group::gate::Gate;
use lowmesh_group::store::{Change, Memory, Store, StoreError};
use lowmesh_group::{Authority, Config, ExchangeId, Input, Manager, Output, RequestId};
use lowmesh_machine::{DropReason, Machine as _};
use lowmesh_registry::Registry;
use lowmesh_testkit::{Links, Next};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::uri::Host;
use lowmesh_wire::coap::{Code, ContentFormat, Kind, Message, MessageId, OptionNumber};

/// Times of the copies of a CON after the first, and of its end (RFC 7252 s4.8 without jitter).
const COPIES: [u64; 5] = [0, 2, 6, 14, 30];
const GIVE_UP: Duration = Duration::from_secs(62);
const NON_WAIT: Duration = Duration::from_secs(10);
const LATENCY: Duration = Duration::from_millis(20);

/// A store that outlives the manager, counts its commits and can fail.
#[derive(Clone, Debug, Default)]
pub struct Disk(pub Arc<Mutex<DiskState>>);

#[derive(Debug, Default)]
pub struct DiskState {
    pub memory: Memory,
    pub commits: u64,
    pub fails: bool,
}

impl Store for Disk {
    fn load(&mut self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        self.0.lock().expect("one thread").memory.load()
    }
    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let mut state = self.0.lock().expect("one thread");
        if state.fails {
            return Err(StoreError("disk full".into()));
        }
        state.commits += 1;
        state.memory.commit(changes)
    }
}

/// A node with one sensor at two paths and a table of groups.
#[derive(Clone, Debug)]
pub struct Node {
    pub value: String,
    pub groups: BTreeSet<Ipv6Addr>,
    pub table_max: usize,
    pub alive: bool,
    /// It accepts groups and forgets them at once.
    pub lies: bool,
    /// It confirms a request at once, and answers so much later (RFC 7252 s5.2.2).
    pub separate: Option<Duration>,
    /// Its sensor can be observed.
    pub observable: bool,
    /// What `ct` says in its list of resources.
    pub formats: &'static str,
    pub written: Vec<Vec<u8>>,
    /// The port of its answers to groups, and over how long they are spread.
    pub answers_from: u16,
    pub leisure: Duration,
    /// Its answers to groups come at the end of its leisure, less a few seconds.
    pub is_late: bool,
    pub requests: usize,
    seen: BTreeMap<(u64, u64), Message>,
}

impl Node {
    fn new(value: &str) -> Self {
        Self {
            value: value.into(),
            groups: BTreeSet::new(),
            table_max: 16,
            alive: true,
            lies: false,
            separate: None,
            observable: false,
            formats: "0",
            written: Vec::new(),
            answers_from: 5683,
            leisure: Duration::from_secs(5),
            is_late: false,
            requests: 0,
            seen: BTreeMap::new(),
        }
    }
    pub fn reboot(&mut self) {
        self.groups.clear();
        self.seen.clear();
    }
    fn answer(&mut self, request: &RequestTemplate) -> Message {
        self.requests += 1;
        let options = &request.options;
        let path: Vec<&[u8]> = options.iter().values(OptionNumber::URI_PATH).collect();
        let path: Vec<&str> =
            path.into_iter().map(|one| std::str::from_utf8(one).unwrap()).collect();
        match (&path[..], request.code) {
            ([".well-known", "core"], Code::GET) => {
                let list = format!("</s/t>;ct=\"{0}\",</s/u>;ct=\"{0}\",</mc>", self.formats);
                content(Code::CONTENT, Some(ContentFormat::LINK_FORMAT), list.as_bytes())
            }
            (["s", "t" | "u"], Code::GET) => {
                self.reading(options.get(OptionNumber::OBSERVE).is_some())
            }
            (["s", "t" | "u"], Code::PUT | Code::POST) => {
                self.written.push(request.payload.clone());
                content(Code::CHANGED, None, b"")
            }
            (["mc"], Code::GET) => {
                let list: Vec<u8> = self.groups.iter().flat_map(Ipv6Addr::octets).collect();
                content(Code::CONTENT, Some(ContentFormat::OCTET_STREAM), &list)
            }
            (["mc"], Code::POST) => self.change_membership(request),
            _ => content(Code::NOT_FOUND, None, b""),
        }
    }
    fn reading(&self, observed: bool) -> Message {
        let mut message = content(Code::CONTENT, None, self.value.as_bytes());
        if observed && self.observable {
            message.options.insert_uint(OptionNumber::OBSERVE, 0);
        }
        message
    }
    fn change_membership(&mut self, request: &RequestTemplate) -> Message {
        let group = <[u8; 16]>::try_from(&request.payload[..]).expect("16 octets");
        let group = Ipv6Addr::from(group);
        match request.options.get(OptionNumber::URI_QUERY) {
            Some(b"act=add") if self.lies => content(Code::CHANGED, None, b""),
            Some(b"act=add") if self.groups.len() >= self.table_max => {
                content(Code::REQUEST_ENTITY_TOO_LARGE, None, b"table full")
            }
            Some(b"act=add") => {
                self.groups.insert(group);
                content(Code::CHANGED, None, b"")
            }
            Some(b"act=del") if self.groups.remove(&group) => content(Code::CHANGED, None, b""),
            _ => content(Code::NOT_FOUND, None, b""),
        }
    }
}

pub fn content(code: Code, format: Option<ContentFormat>, payload: &[u8]) -> Message {
    let mut message = Message::new(Kind::Acknowledgement, code, MessageId(0));
    if let Some(format) = format {
        message.options.insert_uint(OptionNumber::CONTENT_FORMAT, format.0.into());
    }
    message.payload = payload.to_vec();
    message
}

enum Event {
    Acknowledgement {
        epoch: u64,
        exchange: ExchangeId,
    },
    Copy {
        epoch: u64,
        exchange: ExchangeId,
        to: Ipv6Addr,
        message: RequestTemplate,
        copy: u8,
    },
    Answer {
        epoch: u64,
        exchange: ExchangeId,
        from: Ipv6Addr,
        message: Message,
        sent: Instant,
        /// The port of an answer to a group.
        group: Option<u16>,
    },
    Notification {
        epoch: u64,
        exchange: ExchangeId,
        message: Message,
    },
    End {
        epoch: u64,
        exchange: ExchangeId,
        over: bool,
    },
}

/// The world.
pub struct World {
    pub nodes: BTreeMap<Ipv6Addr, Node>,
    pub disk: Disk,
    pub loss: f64,
    pub responses: BTreeMap<RequestId, Message>,
    pub asked: BTreeSet<RequestId>,
    pub gate: &'static str,
    /// Requests that left, by method and last segment of the path.
    pub sent: usize,
    /// Requests that observe a node.
    pub observers: BTreeSet<(Ipv6Addr, ExchangeId)>,
    /// The request that a client observes with, and the states that it has got.
    pub observed: Option<Message>,
    pub states: Vec<(Instant, String)>,
    refreshes: BTreeSet<RequestId>,
    copies: BTreeMap<Ipv6Addr, usize>,
    links: Links<Event>,
    manager: Option<Manager>,
    open: BTreeMap<ExchangeId, Instant>,
    serial: u64,
    epoch: u64,
    seed: u64,
}

pub fn address(node: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, node)
}

pub fn uri(node: u16) -> String {
    format!("coap://[{}]/s/t", address(node))
}

impl World {
    pub fn new(seed: u64, nodes: u16) -> Self {
        let node = |number| (address(number), Node::new(&format!("{}", 20 + number)));
        let mut world = Self {
            nodes: (1..=nodes).map(node).collect(),
            disk: Disk::default(),
            loss: 0.0,
            responses: BTreeMap::new(),
            asked: BTreeSet::new(),
            gate: "fixed",
            sent: 0,
            observers: BTreeSet::new(),
            observed: None,
            states: Vec::new(),
            refreshes: BTreeSet::new(),
            copies: BTreeMap::new(),
            links: Links::new(seed),
            manager: None,
            open: BTreeMap::new(),
            serial: 0,
            epoch: 0,
            seed,
        };
        world.start();
        world
    }
    pub fn now(&self) -> Instant {
        self.links.now()
    }
    pub fn rng(&mut self) -> &mut Rng {
        self.links.rng()
    }
    /// Starts a manager from the disk, in place of the one before, which ends without a word.
    pub fn start(&mut self) {
        self.epoch += 1;
        self.open.clear();
        // A client whose manager ends gets no answer.
        self.asked = self.responses.keys().copied().collect();
        let gate = Registry::<dyn Gate>::builtin().choose(self.gate).expect("a row");
        let rng = Rng::stream(Seed(self.seed + self.epoch), NodeId(0), Purpose::Coap);
        let disk = Box::new(self.disk.clone());
        let config = Config { gate, ..Config::default() };
        self.manager = Some(Manager::open(config, disk, rng, self.now()).expect("our own records"));
    }
    /// A client observes a path of the manager; the first state.
    pub fn observe(&mut self, path: &str) -> (Code, String) {
        let registration = self.register(path);
        self.registered(registration)
    }
    /// Asks to observe; the response may come later.
    pub fn register(&mut self, path: &str) -> RequestId {
        let mut message = Message::new(Kind::Confirmable, Code::GET, MessageId(0));
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        message.options.insert_path(path);
        message.options.insert_query(query);
        message.options.insert_uint(OptionNumber::OBSERVE, 0);
        self.observed = Some(message.clone());
        self.send(message)
    }
    /// The response to a registration.
    pub fn registered(&mut self, request: RequestId) -> (Code, String) {
        let first = self.wait_for(request);
        if self.responses[&request].options.get(OptionNumber::OBSERVE).is_none() {
            self.observed = None;
        }
        first
    }
    /// The value of a node changes, and its observers are notified.
    pub fn change(&mut self, node: u16, value: &str) {
        let (epoch, address) = (self.epoch, address(node));
        let Some(state) = self.nodes.get_mut(&address) else { return };
        state.value = value.into();
        let message = state.reading(true);
        let observers = self.observers.iter().filter(|(node, _)| *node == address);
        for (_, exchange) in observers.copied().collect::<Vec<_>>() {
            let message = message.clone();
            self.links.after(LATENCY, Event::Notification { epoch, exchange, message });
        }
    }
    /// The states that the observer has got since it was last asked.
    pub fn take_states(&mut self) -> Vec<String> {
        std::mem::take(&mut self.states).into_iter().map(|(_, state)| state).collect()
    }
    pub fn manager(&self) -> &Manager {
        self.manager.as_ref().expect("started")
    }
    pub fn handle(&mut self, input: Input) {
        let now = self.now();
        self.manager.as_mut().expect("started").handle(now, input).expect("accepted");
        self.drain();
    }
    /// Asks the manager; the answer comes later.
    pub fn ask(&mut self, code: Code, path: &str, payload: &str) -> RequestId {
        let mut message = Message::new(Kind::Confirmable, code, MessageId(0));
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        message.options.insert_path(path);
        message.options.insert_query(query);
        message.payload = payload.as_bytes().to_vec();
        self.send(message)
    }
    pub fn send(&mut self, message: Message) -> RequestId {
        self.serial += 1;
        let request = RequestId(self.serial);
        self.asked.insert(request);
        let client = Ipv6Addr::LOCALHOST.into();
        self.handle(Input::Request { request, client, message });
        request
    }
    /// Asks the manager and waits for its answer.
    pub fn request(&mut self, code: Code, path: &str, payload: &str) -> (Code, String) {
        let request = self.ask(code, path, payload);
        self.wait_for(request)
    }
    pub fn wait_for(&mut self, request: RequestId) -> (Code, String) {
        let end = self.now() + Duration::from_secs(1000);
        while !self.responses.contains_key(&request) && self.now() < end {
            self.step(end);
        }
        let message = self.responses.get(&request).expect("an answer within 1000 s");
        (message.code, String::from_utf8_lossy(&message.payload).into_owned())
    }
    /// Copies of requests that were sent to a node, whether it has power or not.
    pub fn asked_of(&self, node: u16) -> usize {
        self.copies.get(&address(node)).copied().unwrap_or_default()
    }
    pub fn run(&mut self, span: Duration) {
        let end = self.now() + span;
        while self.now() < end {
            self.step(end);
        }
    }
    fn step(&mut self, until: Instant) {
        let deadline = self.manager().next_deadline();
        match self.links.next(deadline, until) {
            None => {}
            Some(Next::Deadline) => self.handle(Input::Deadline),
            Some(Next::Event(event)) => self.on_event(event),
        }
    }
    fn drain(&mut self) {
        self.carry_out();
        while let Some(message) = self.manager.as_mut().expect("started").poll_change() {
            // The host of a driver knows who observes, and asks with the same request.
            if self.observed.as_ref().is_some_and(|observed| observed.options == message.options) {
                self.serial += 1;
                let request = RequestId(self.serial);
                self.asked.insert(request);
                self.refreshes.insert(request);
                let (client, now) = (Ipv6Addr::LOCALHOST.into(), self.now());
                let input = Input::Request { request, client, message };
                self.manager.as_mut().expect("started").handle(now, input).expect("accepted");
                self.carry_out();
            }
        }
    }
    fn carry_out(&mut self) {
        while let Some(output) = self.manager.as_mut().expect("started").poll_output() {
            match output {
                Output::Request { exchange, to, message } => {
                    self.on_request(exchange, &to, &message);
                }
                Output::Group { exchange, to, message, wait } => {
                    self.on_group(exchange, &to, &message, wait);
                }
                Output::Cancel { exchange } => {
                    self.open.remove(&exchange);
                    self.observers.retain(|(_, one)| *one != exchange);
                }
                Output::Respond { request, response } => {
                    let mut message = content(response.code, None, &response.payload);
                    message.options = response.options;
                    if self.refreshes.remove(&request) {
                        let text = String::from_utf8_lossy(&response.payload).into_owned();
                        self.states.push((self.now(), text));
                        if message.options.get(OptionNumber::OBSERVE).is_none() {
                            self.observed = None;
                        }
                    }
                    let again = self.responses.insert(request, message);
                    assert!(again.is_none(), "{request:?} has a second answer");
                    assert!(self.asked.contains(&request), "{request:?} was not asked");
                }
            }
        }
    }
    fn on_request(&mut self, exchange: ExchangeId, to: &Authority, message: &RequestTemplate) {
        self.sent += 1;
        let Host::V6(to, _) = to.host else { panic!("not a node: {to}") };
        assert!(self.open.insert(exchange, self.now()).is_none(), "{exchange:?} left twice");
        let epoch = self.epoch;
        let copies = if message.confirmable { &COPIES[..] } else { &COPIES[..1] };
        let end = if message.confirmable { GIVE_UP } else { NON_WAIT };
        for (copy, second) in copies.iter().enumerate() {
            let (message, copy) = (message.clone(), copy as u8);
            let at = Duration::from_secs(*second) + LATENCY;
            self.links.after(at, Event::Copy { epoch, exchange, to, message, copy });
        }
        self.links.after(end, Event::End { epoch, exchange, over: false });
    }
    fn on_group(
        &mut self,
        exchange: ExchangeId,
        to: &Authority,
        message: &RequestTemplate,
        wait: Duration,
    ) {
        self.sent += 1;
        let Host::V6(group, _) = to.host else { panic!("not a group: {to}") };
        assert!(!message.confirmable, "RFC 7252 s8.1");
        self.open.insert(exchange, self.now());
        let (epoch, sent, loss) = (self.epoch, self.now(), self.loss);
        let mut answers = Vec::new();
        for (from, node) in &mut self.nodes {
            let is_member = node.alive && node.groups.contains(&group);
            if is_member && self.links.rng().unit() >= loss {
                let (port, leisure, is_late) = (node.answers_from, node.leisure, node.is_late);
                answers.push((*from, node.answer(message), port, leisure, is_late));
            }
        }
        for (from, message, port, leisure, is_late) in answers {
            let first = if is_late { leisure.mul_f64(0.8) } else { Duration::ZERO };
            let late = self.links.rng().duration(first, leisure);
            let group = Some(port);
            let event = Event::Answer { epoch, exchange, from, message, sent, group };
            self.links.after(late, event);
        }
        self.links.after(wait, Event::End { epoch, exchange, over: true });
    }
    fn on_event(&mut self, event: Event) {
        match event {
            Event::Copy { epoch, exchange, to, message, copy } => {
                // Later copies leave only while the manager that sends them runs and waits.
                let waits = epoch == self.epoch && self.open.contains_key(&exchange);
                if copy == 0 || waits {
                    *self.copies.entry(to).or_default() += 1;
                }
                let lost = self.links.rng().unit() < self.loss;
                if (copy > 0 && !waits) || lost {
                    return;
                }
                let sent = self.open.get(&exchange).copied().unwrap_or(self.now());
                let Some(node) = self.nodes.get_mut(&to).filter(|node| node.alive) else { return };
                let key = (epoch, exchange.0);
                let answer = node.seen.get(&key).cloned().unwrap_or_else(|| node.answer(&message));
                node.seen.insert(key, answer.clone());
                if answer.options.get(OptionNumber::OBSERVE).is_some() {
                    self.observers.insert((to, exchange));
                }
                let separate = node.separate;
                if separate.is_some() {
                    self.links.after(LATENCY, Event::Acknowledgement { epoch, exchange });
                }
                if self.links.rng().unit() >= self.loss {
                    let (from, message) = (to, answer);
                    let event = Event::Answer { epoch, exchange, from, message, sent, group: None };
                    self.links.after(separate.unwrap_or(LATENCY), event);
                }
            }
            Event::Answer { epoch, exchange, from, message, sent, group } => {
                if epoch != self.epoch || !self.open.contains_key(&exchange) {
                    return;
                }
                if let Some(port) = group {
                    let from = Authority { port, ..Authority::plain(Host::V6(from, None)) };
                    self.handle(Input::GroupResponse { exchange, from, message });
                } else {
                    self.open.remove(&exchange);
                    let rtt = self.now().since(sent);
                    let retransmissions = u8::from(rtt > Duration::from_secs(2));
                    self.handle(Input::Response { exchange, message, rtt, retransmissions });
                }
            }
            Event::Acknowledgement { epoch, exchange } => {
                if epoch == self.epoch && self.open.contains_key(&exchange) {
                    self.handle(Input::Acknowledged { exchange });
                }
            }
            Event::Notification { epoch, exchange, message } => {
                if epoch == self.epoch {
                    self.handle(Input::Notification { exchange, message });
                }
            }
            Event::End { epoch, exchange, over } => {
                if epoch != self.epoch || self.open.remove(&exchange).is_none() {
                    return;
                }
                let reason = DropReason::GaveUp;
                self.handle(if over {
                    Input::Over { exchange }
                } else {
                    Input::Failed { exchange, reason }
                });
            }
        }
    }
    /// All groups that nodes are in.
    pub fn memberships(&self) -> BTreeSet<(Ipv6Addr, Ipv6Addr)> {
        let groups = |(node, state): (&Ipv6Addr, &Node)| {
            let node = *node;
            state.groups.iter().map(move |group| (node, *group)).collect::<Vec<_>>()
        };
        self.nodes.iter().flat_map(groups).collect()
    }
    /// All memberships that live entities want, from their profiles.
    pub fn wanted(&mut self) -> BTreeSet<(Ipv6Addr, Ipv6Addr)> {
        let names: Vec<String> = self.manager().names().map(String::from).collect();
        let mut wanted = BTreeSet::new();
        for name in names {
            let (_, profile) = self.request(Code::GET, &format!("e/{name}/profile"), "");
            let Some(group) = group_of(&profile) else { continue };
            let members = profile.lines().find_map(|line| line.strip_prefix("er: ")).expect("er");
            for member in members.split(' ') {
                let host = member.strip_prefix("coap://[").and_then(|rest| rest.split_once(']'));
                wanted.insert((host.expect("a node").0.parse().expect("an address"), group));
            }
        }
        wanted
    }
}

/// The group of a profile.
pub fn group_of(profile: &str) -> Option<Ipv6Addr> {
    let uri = profile.lines().find_map(|line| line.strip_prefix("mcastURI: coap://["))?;
    uri.split_once(']')?.0.parse().ok()
}
