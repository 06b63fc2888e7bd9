//! A network of engines in virtual time: neighbours, a tree, links that lose frames, and a ledger of all copies.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_machine::Handle;
use lowmesh_registry::Choice;
use lowmesh_units::{Duration, Eui64, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::checksum::pseudo_header_checksum;
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::{
    Address, HEADER_OCTETS, HOP_LIMIT_OFFSET, Header, Scope, next_header, upper_layer,
};
use lowmesh_wire::udp;

use crate::account::Account;
use crate::engine::{Engine, Event, NodeContext, Output, Receiver, Snapshot, make};

/// The group of all tests.
pub(super) const GROUP: Address = Address([0xff, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x89, 0, 1]);
/// How long a frame is in the air.
const AIRTIME: Duration = Duration::from_millis(4);
/// How long a request takes to the root, over all hops.
const UPWARD: Duration = Duration::from_millis(40);
/// Events after which a network that still talks is taken for a storm.
const EVENTS_MAX: u64 = 200_000;

/// The neighbours of each node, by index; node 0 is the root.
pub(super) type Graph = Vec<Vec<usize>>;

/// What surrounds a node.
#[derive(Debug)]
pub(super) struct Place {
    address: Address,
    root: Address,
    parent: Option<Eui64>,
    children: Vec<Eui64>,
    pub is_member: bool,
}

impl NodeContext for Place {
    fn address(&self) -> Address {
        self.address
    }
    fn root(&self) -> Option<Address> {
        Some(self.root)
    }
    fn parent(&self) -> Option<Eui64> {
        self.parent
    }
    fn children(&self, group: &Address) -> Vec<Eui64> {
        if *group == GROUP { self.children.clone() } else { Vec::new() }
    }
    fn is_member(&self, group: &Address) -> bool {
        *group == GROUP && self.is_member
    }
}

/// The EUI-64 of a node.
pub(super) fn eui64(node: usize) -> Eui64 {
    NodeId(node as u16).eui64()
}

/// The address of a node.
pub(super) fn address(node: usize) -> Address {
    Address::global([0xfd, 0, 0, 0, 0, 0, 0, 0], eui64(node))
}

/// A UDP datagram of `node` to the group, which carries a number.
pub(super) fn datagram(node: usize, number: u32, hop_limit: u8) -> Vec<u8> {
    let (source, payload) = (address(node), number.to_be_bytes());
    let mut datagram = [0x16, 0x33, 0x16, 0x33, 0, 12, 0, 0].to_vec();
    datagram.extend_from_slice(&payload);
    let sum = udp::checksum(&source, &GROUP, &datagram);
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    let header = Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: datagram.len() as u16,
        next_header: next_header::UDP,
        hop_limit,
        source,
        destination: GROUP,
    };
    let mut packet = header.to_bytes().to_vec();
    packet.extend_from_slice(&datagram);
    packet
}

/// The number in a datagram, if it is as its sender made it but for the hop limit.
fn number_of(packet: &[u8]) -> Option<u32> {
    let header = Header::parse_packet(packet).ok()?;
    let upper = upper_layer(packet).ok()?;
    let datagram = packet.get(HEADER_OCTETS..)?;
    let is_whole = upper.next_header == next_header::UDP
        && upper.offset == HEADER_OCTETS
        && header.destination == GROUP
        && datagram.len() == 12
        && pseudo_header_checksum(&header.source.0, &GROUP.0, next_header::UDP, datagram) == 0;
    let number = datagram.last_chunk::<4>().filter(|_| is_whole)?;
    Some(u32::from_be_bytes(*number))
}

/// A frame on its way.
#[derive(Debug)]
enum Frame {
    Link { from: usize, to: usize, packet: Vec<u8> },
    ToRoot { packet: Vec<u8> },
}

/// What became of one copy.
#[derive(Clone, Copy, Debug, Default)]
struct Copy {
    hop_limit: Option<u8>,
    delivered: u32,
    sent: u32,
    dropped: u32,
}

/// Nodes with an engine each.
#[derive(Debug)]
pub(super) struct Network {
    engines: Vec<Box<dyn Engine>>,
    pub places: Vec<Place>,
    graph: Graph,
    loss: f64,
    rng: Rng,
    now: Instant,
    frames: BTreeMap<(Instant, u64), Frame>,
    copies: Vec<Copy>,
    events: u64,
    /// How often a node delivered a datagram, by node and number.
    pub deliveries: BTreeMap<(usize, u32), u32>,
    /// Frames of packets to the group.
    pub sent: u64,
    /// The first rule that was broken.
    breach: Option<String>,
}

impl Network {
    /// A network over `graph`, with the tree of shortest paths to node 0.
    pub fn new(
        choice: &Choice<dyn Engine>,
        graph: Graph,
        members: &[usize],
        loss: f64,
        seed: u64,
    ) -> Self {
        let engine = |node: usize| {
            let rng = Rng::stream(Seed(seed), NodeId(node as u16), Purpose::Multicast);
            make(choice, rng)
        };
        Self {
            engines: (0..graph.len()).map(engine).collect(),
            places: places(&graph, members),
            graph,
            loss,
            rng: Rng::stream(Seed(seed), NodeId(0), Purpose::Reception),
            now: Instant::ZERO,
            frames: BTreeMap::new(),
            copies: [Copy::default()].to_vec(),
            events: 0,
            deliveries: BTreeMap::new(),
            sent: 0,
            breach: None,
        }
    }

    /// Node `node` sends a datagram.
    pub fn originate(&mut self, node: usize, number: u32, hop_limit: u8) {
        let packet = datagram(node, number, hop_limit);
        let handle = self.handle(None);
        self.call(node, Event::Originate { packet: &packet, handle });
    }
    /// A packet comes to `node` from a neighbour.
    pub fn receive(&mut self, node: usize, from: Eui64, packet: &[u8]) {
        let handle = self.handle(packet.get(HOP_LIMIT_OFFSET).copied());
        self.call(node, Event::Received { packet, from, handle });
    }
    /// A packet with an ICMPv6 message comes to `node`.
    pub fn control(&mut self, node: usize, packet: &[u8], is_carried: bool) {
        let header = Header::parse_packet(packet);
        let body = packet.get(HEADER_OCTETS..).unwrap_or(&[]);
        let Ok(header) = header else { return };
        let message = Icmpv6::parse(body, &header.source.0, &header.destination.0);
        let Ok(message) = message else { return };
        let handle = if is_carried { self.handle(None) } else { Handle::NONE };
        self.call(node, Event::Control { header: &header, message: &message, handle });
    }

    fn handle(&mut self, hop_limit: Option<u8>) -> Handle {
        self.copies.push(Copy { hop_limit, ..Copy::default() });
        Handle(self.copies.len() as u64 - 1)
    }

    fn call(&mut self, node: usize, event: Event<'_>) {
        let mut account = Account::open(self.engines[node].as_ref(), &event);
        let answer = self.engines[node].handle(self.now, event, &self.places[node]);
        if let Err(error) = answer {
            self.note(format!("it rejects what it must take: {error}"));
        }
        while let Some(output) = self.engines[node].poll_output() {
            if let Output::Dropped(dropped) = &output
                && dropped.handle != Handle::NONE
                && !account.drop(dropped.handle)
            {
                self.note(String::from("it drops a copy that it does not hold"));
            }
            self.take(node, output);
        }
        for handle in account.close(self.engines[node].as_ref()) {
            let Copy { delivered, sent, .. } = self.copies[handle.0 as usize];
            if delivered + sent == 0 {
                self.note(String::from(
                    "a copy is gone that was neither delivered, sent nor dropped",
                ));
            }
        }
        let Snapshot { packets, packets_max, entries, entries_max, .. } =
            self.engines[node].snapshot();
        if packets > packets_max || entries > entries_max {
            self.note(format!(
                "it holds {packets} packets and {entries} entries, not {packets_max} and {entries_max} at most"
            ));
        }
    }

    fn note(&mut self, what: String) {
        self.breach.get_or_insert(what);
    }

    fn take(&mut self, node: usize, output: Output) {
        match output {
            Output::Send { packet, to, handle } => {
                self.count_sent(&packet, handle);
                let near = self.graph[node].clone();
                let near = near.into_iter().filter(|near| match to {
                    Receiver::Broadcast => true,
                    Receiver::Neighbour(one) => eui64(*near) == one,
                });
                for to in near.collect::<Vec<_>>() {
                    if !self.rng.chance(self.loss) {
                        let packet = packet.clone();
                        self.fly(AIRTIME, Frame::Link { from: node, to, packet });
                    }
                }
            }
            Output::Route { packet, handle } => {
                self.copies[handle.0 as usize].sent += 1;
                self.fly(UPWARD, Frame::ToRoot { packet });
            }
            Output::Deliver { packet, handle } => {
                self.copies[handle.0 as usize].delivered += 1;
                match number_of(&packet) {
                    Some(number) => *self.deliveries.entry((node, number)).or_insert(0) += 1,
                    None => self.note(format!("node {node} delivers other octets than were sent")),
                }
            }
            Output::Dropped(dropped) => {
                self.copies[dropped.handle.0 as usize].dropped += 1;
            }
        }
    }

    fn count_sent(&mut self, packet: &[u8], handle: Handle) {
        if handle == Handle::NONE {
            return;
        }
        self.sent += 1;
        let copy = &mut self.copies[handle.0 as usize];
        copy.sent += 1;
        let (before, after) = (copy.hop_limit, packet[HOP_LIMIT_OFFSET]);
        if after == 0 || before.is_some_and(|before| after >= before) {
            self.note(format!("a hop limit of {before:?} becomes {after}"));
        }
    }

    fn fly(&mut self, delay: Duration, frame: Frame) {
        self.frames.insert((self.now + delay, self.events), frame);
        self.events += 1;
    }

    /// Runs until `end`, or until nothing more happens.
    pub fn run(&mut self, end: Instant) {
        while self.events < EVENTS_MAX {
            let frame = self.frames.keys().next().map(|(at, _)| *at);
            let deadlines = self.engines.iter().enumerate();
            let due =
                deadlines.filter_map(|(node, engine)| Some((engine.next_deadline()?, node))).min();
            let next = [frame, due.map(|(at, _)| at)].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.events += 1;
            self.now = self.now.max(next);
            if frame == Some(next) {
                self.arrive();
            } else if let Some((_, node)) = due {
                self.call(node, Event::Deadline);
                if self.engines[node].next_deadline().is_some_and(|next| next <= self.now) {
                    return self
                        .note(String::from("after its deadline it asks for one that has passed"));
                }
            }
        }
        self.now = self.now.max(end);
    }

    fn arrive(&mut self) {
        match self.frames.pop_first() {
            Some((_, Frame::Link { from, to, packet })) => {
                let header = Header::parse_packet(&packet).ok();
                let scope = header.and_then(|header| header.destination.multicast_scope());
                if scope.is_some_and(|scope| scope <= Scope::LINK_LOCAL) {
                    self.control(to, &packet, false);
                } else {
                    self.receive(to, eui64(from), &packet);
                }
            }
            Some((_, Frame::ToRoot { packet })) => self.control(0, &packet, true),
            None => {}
        }
    }

    /// The first rule that was broken. Once the network is quiet, this includes copies without an end and engines that
    /// still hold something.
    pub fn verdict(&mut self, is_quiet: bool) -> Result<(), String> {
        if self.events >= EVENTS_MAX {
            self.note(format!("it does not fall silent within {EVENTS_MAX} events"));
        }
        let twice = self.deliveries.iter().find(|(_, count)| **count > 1).map(|(key, _)| *key);
        if let Some((node, number)) = twice {
            self.note(format!("node {node} delivers datagram {number} twice"));
        }
        let is_strange = |(node, _): &&(usize, u32)| !self.places[*node].is_member;
        if let Some((node, _)) = self.deliveries.keys().find(is_strange).copied() {
            self.note(format!("node {node} delivers what its applications do not listen to"));
        }
        if is_quiet {
            let mut copies = self.copies.iter().skip(1);
            if copies.clone().any(|copy| copy.delivered + copy.sent + copy.dropped == 0) {
                self.note(String::from("a copy is neither delivered, sent nor dropped"));
            } else if copies.any(|copy| copy.delivered > 1 || copy.dropped > 1) {
                self.note(String::from("a copy is delivered or dropped twice"));
            }
            if self.engines.iter().any(|engine| engine.snapshot().packets > 0) {
                self.note(String::from("it holds packets for ever"));
            }
        }
        self.breach.clone().map_or(Ok(()), Err)
    }
}

/// The tree of shortest paths to node 0, and the children with members below them.
fn places(graph: &Graph, members: &[usize]) -> Vec<Place> {
    let mut parents: Vec<Option<usize>> = alloc::vec![None; graph.len()];
    let mut order = [0].to_vec();
    let mut at = 0;
    while let Some(node) = order.get(at).copied() {
        for near in &graph[node] {
            if *near != 0 && parents[*near].is_none() {
                parents[*near] = Some(node);
                order.push(*near);
            }
        }
        at += 1;
    }
    let mut wants: Vec<bool> = (0..graph.len()).map(|node| members.contains(&node)).collect();
    for node in order.iter().rev() {
        if let Some(parent) = parents[*node].filter(|_| wants[*node]) {
            wants[parent] = true;
        }
    }
    let place = |node: usize| Place {
        address: address(node),
        root: address(0),
        parent: parents[node].map(eui64),
        children: (0..graph.len())
            .filter(|child| parents[*child] == Some(node) && wants[*child])
            .map(eui64)
            .collect(),
        is_member: members.contains(&node),
    };
    (0..graph.len()).map(place).collect()
}
