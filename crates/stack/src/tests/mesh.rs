//! Nodes joined by links that each deliver a share of the frames, and an honest book of their packets.

use std::collections::BTreeMap;

use lowmesh_coap::{RequestTemplate, ResponseTemplate};
use lowmesh_mac::tsch::{Reception, Transmission};
use lowmesh_machine::{DropReason, Handle, Machine as _};
use lowmesh_registry::Choice;
use lowmesh_rpl::Mode;
use lowmesh_sixtop::functions::msf;
use lowmesh_units::rng::draw_unit;
use lowmesh_units::{Addressing, Dbm, Duration, Instant, NodeId, Purpose, Seed};
use lowmesh_wire::coap::{Code, Message};

use crate::event::{Class, Input, Network, Output, Packet, Transaction};
use crate::routing::Routing;
use crate::{COAP_PORT, Config, Node};

const SLOT: Duration = Duration::from_millis(10);

/// A mesh whose node 0 is the root. Two frames at one listener destroy each other.
pub struct Mesh {
    pub now: Instant,
    pub nodes: Vec<Node>,
    /// Share of frames that arrive, by sender and receiver.
    links: Vec<Vec<f64>>,
    seed: Seed,
    /// Copies of each packet that the nodes' reports add up to.
    pub book: BTreeMap<Handle, i32>,
    pub births: BTreeMap<Handle, (usize, Class)>,
    pub delivered: Vec<(usize, Handle)>,
    pub drops: Vec<(usize, lowmesh_machine::Dropped)>,
    pub transactions: Vec<(usize, Transaction)>,
    pub networks: Vec<(usize, Network)>,
    /// Frames to all or to one neighbour, with their senders, while `listening`.
    pub air: Vec<(usize, Vec<u8>)>,
    pub listening: bool,
    /// Requests that came, and where; each was answered with its own payload.
    pub requests: Vec<(usize, Message)>,
    last_handle: u64,
}

/// The node's settings for quick tests: many shared cells and beacons, so that joining takes seconds.
pub fn config(mode: Mode) -> Config {
    let scheduling =
        Choice::from(&msf::BACKLOG).with("minimal_length", 11_u64).expect("within bounds");
    // The tests name nodes by their addresses.
    let addressing = Addressing::Consecutive;
    let mut config = Config { addressing, scheduling, ..Config::default() };
    config.mac.eb_period = Duration::from_secs(1);
    config.lowpan.frame_payload = lowmesh_mac::frame::PAYLOAD_OCTETS_MAX;
    config.rpl = config.rpl.with_mode(mode);
    config
}

/// The same with short slotframes, so that lossy links still carry fragments and bursts.
pub fn quick(mode: Mode) -> Config {
    let mut scheduling = Choice::from(&msf::B_MSF);
    for key in ["minimal_length", "autonomous_length", "negotiated_length"] {
        scheduling.set(key, 11_u64).expect("within bounds");
    }
    Config { scheduling, ..config(mode) }
}

impl Mesh {
    /// Nodes of which each hears the next and the one before, with the chance `pdr`.
    pub fn line(config: &Config, nodes: usize, pdr: f64) -> Self {
        let near = |a: usize, b: usize| if a.abs_diff(b) == 1 { pdr } else { 0.0 };
        Self::with_leaves(config, nodes, near, &[])
    }

    /// Nodes with the chances of frames between them, some of which run no RPL.
    pub fn with_leaves(
        config: &Config,
        nodes: usize,
        chance: impl Fn(usize, usize) -> f64,
        leaves: &[usize],
    ) -> Self {
        let links = (0..nodes).map(|a| (0..nodes).map(|b| chance(a, b)).collect()).collect();
        let seed = Seed(17);
        let node = |id: usize| {
            let config = Config { is_leaf: leaves.contains(&id), ..config.clone() };
            Node::new(&config, NodeId(id as u16), id == 0, seed).expect("possible settings")
        };
        let mut mesh = Self {
            now: Instant::ZERO,
            nodes: (0..nodes).map(node).collect(),
            links,
            seed,
            book: BTreeMap::new(),
            births: BTreeMap::new(),
            delivered: Vec::new(),
            drops: Vec::new(),
            transactions: Vec::new(),
            networks: Vec::new(),
            requests: Vec::new(),
            air: Vec::new(),
            listening: false,
            last_handle: 0,
        };
        for node in 0..nodes {
            mesh.tell(node, Input::Boot);
        }
        mesh
    }

    /// A line in which every node has joined and the root knows all of them.
    pub fn formed(config: &Config, nodes: usize, pdr: f64) -> Self {
        let mut mesh = Self::line(config, nodes, pdr);
        let all_known = |mesh: &Self| {
            let known = |node: usize| mesh.way_from_root(node);
            mesh.nodes.iter().all(Node::is_joined) && (1..nodes).all(known)
        };
        mesh.run_until(Duration::from_secs(1_200), all_known);
        mesh
    }

    /// Does the root know a way down to `node`?
    fn way_from_root(&self, node: usize) -> bool {
        let address = self.nodes[node].global_address();
        let Routing::Rpl(rpl) = &self.nodes[0].routing else { return false };
        let next = rpl.next_hop(&address.0);
        next.is_some_and(|hop| hop.direction == lowmesh_rpl::Direction::Down)
    }

    /// Sets how many frames pass between `a` and `b`, both ways.
    pub fn set_link(&mut self, a: usize, b: usize, pdr: f64) {
        self.links[a][b] = pdr;
        self.links[b][a] = pdr;
    }

    pub fn tell(&mut self, node: usize, input: Input) {
        self.nodes[node].handle(self.now, input).expect("acceptable");
        self.drain(node);
    }

    /// A POST from `from` to `to`; the answer carries the same payload back.
    pub fn post(&mut self, from: usize, to: usize, payload: Vec<u8>) -> Handle {
        self.last_handle += 1;
        let handle = Handle(self.last_handle);
        let request = RequestTemplate::new(Code::POST, "echo").with_payload(payload);
        let peer = (self.nodes[to].global_address(), COAP_PORT);
        self.tell(from, Input::Request { peer, request, handle });
        handle
    }

    /// Runs slot by slot, as devices would.
    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.step();
        }
    }

    /// Runs until `done`, which must be before `span` is over.
    pub fn run_until(&mut self, span: Duration, done: impl Fn(&Self) -> bool) {
        let end = self.now + span;
        while !done(self) {
            assert!(self.now < end, "not done in {span}");
            self.step();
        }
    }

    /// How the transaction `handle` ended, if it did.
    pub fn ending(&self, handle: Handle) -> Option<Result<(), DropReason>> {
        self.transactions.iter().find_map(|(_, transaction)| match *transaction {
            Transaction::Acknowledged(h, ..) if h == handle => Some(Ok(())),
            Transaction::Failed(h, reason) if h == handle => Some(Err(reason)),
            _ => None,
        })
    }

    /// The packets of `class` that `node` made and that were delivered at `at`.
    pub fn arrived(&self, class: Class, node: usize, at: usize) -> usize {
        let from = |handle: &Handle| self.births.get(handle) == Some(&(node, class));
        self.delivered.iter().filter(|(here, handle)| *here == at && from(handle)).count()
    }

    /// What the nodes say they hold is what their reports add up to.
    pub fn check_book(&self) {
        let mut held: BTreeMap<Handle, i32> = BTreeMap::new();
        for handle in self.nodes.iter().flat_map(Node::held) {
            *held.entry(handle).or_default() += 1;
        }
        let open: BTreeMap<Handle, i32> =
            self.book.iter().filter(|(_, n)| **n != 0).map(|(h, n)| (*h, *n)).collect();
        assert_eq!(held, open, "at {}", self.now);
    }

    fn step(&mut self) {
        self.slot();
        self.now += SLOT;
        for node in 0..self.nodes.len() {
            if self.nodes[node].next_deadline().is_some_and(|due| due <= self.now) {
                self.tell(node, Input::Deadline);
            }
        }
    }

    fn slot(&mut self) {
        let now = self.now;
        let mut flights: Vec<(usize, Transmission)> = Vec::new();
        for from in 0..self.nodes.len() {
            if self.nodes[from].next_transmission() == Some(now) {
                match self.nodes[from].transmit(now) {
                    Some(frame) => {
                        if self.listening {
                            self.air.push((from, frame.octets.clone()));
                        }
                        flights.push((from, frame));
                    }
                    None => self.drain(from),
                }
            }
        }
        let mut acks: Vec<Option<(usize, Vec<u8>)>> = vec![None; flights.len()];
        for to in 0..self.nodes.len() {
            if flights.iter().any(|(from, _)| *from == to) {
                continue;
            }
            let channel = self.nodes[to].listens(now);
            let in_range = |flight: &usize| {
                let (from, frame) = &flights[*flight];
                Some(frame.channel) == channel && self.links[*from][to] > 0.0
            };
            let heard: Vec<usize> = (0..flights.len()).filter(in_range).collect();
            if let [one] = heard[..] {
                let (from, frame) = &flights[one];
                if self.passes(*from, to) {
                    let ack = self.nodes[to].receive(now, reception(&frame.octets, frame.handle));
                    acks[one] = ack.map(|octets| (to, octets));
                    self.drain(to);
                }
            }
        }
        for (index, (from, _)) in flights.iter().enumerate() {
            let ack = acks[index].as_ref().filter(|(acker, _)| self.passes(*acker, *from));
            let ack = ack.map(|(_, octets)| reception(octets, Handle::NONE));
            self.nodes[*from].finish(now, ack);
            self.drain(*from);
        }
    }

    fn passes(&self, from: usize, to: usize) -> bool {
        let link = (from as u64) << 32 | to as u64;
        let draw = draw_unit(self.seed, Purpose::Reception, self.now.as_nanos(), link);
        draw < self.links[from][to]
    }

    /// Takes what `node` has to say.
    pub fn drain(&mut self, node: usize) {
        while let Some(output) = self.nodes[node].poll_output() {
            match output {
                Output::Packet(packet) => self.note(node, packet),
                Output::Transaction(transaction) => self.transactions.push((node, transaction)),
                Output::Network(network) => self.networks.push((node, network)),
                Output::Request { exchange, message, .. } => {
                    let payload = message.payload.clone();
                    self.requests.push((node, message));
                    let response = ResponseTemplate::new(Code::CHANGED).with_payload(payload);
                    self.tell(node, Input::Respond { exchange, response });
                }
                Output::Pong { .. } => {}
                Output::AdjustClock { micros } => assert_eq!(micros, 0, "clocks here are exact"),
                Output::Datagram { .. }
                | Output::Application(_)
                | Output::Radio(_)
                | Output::Fragments(_)
                | Output::Trouble { .. }
                | Output::Uplink { .. } => {
                    panic!("{output:?} in this mesh")
                }
            }
        }
    }

    fn note(&mut self, node: usize, packet: Packet) {
        let (handle, change) = match packet {
            Packet::Born(handle, class) => {
                let before = self.births.insert(handle, (node, class));
                assert_eq!(before, None, "{handle:?} was born twice");
                (handle, 1)
            }
            Packet::Addressed(..) => return,
            Packet::Accepted(handle) => (handle, 1),
            Packet::PassedOn(handle) => (handle, -1),
            Packet::Delivered(handle) => {
                self.delivered.push((node, handle));
                (handle, -1)
            }
            Packet::Dropped(dropped) => {
                self.drops.push((node, dropped));
                (dropped.handle, -1)
            }
        };
        assert!(self.births.contains_key(&handle), "{packet:?} at {node} was never born");
        let copies = self.book.entry(handle).or_default();
        *copies += change;
        assert!(*copies >= 0, "{packet:?} at {node} ends a copy that nobody had");
    }
}

fn reception(octets: &[u8], handle: Handle) -> Reception<'_> {
    Reception { octets, rssi: Dbm(-60.0), late_micros: 0, handle }
}
