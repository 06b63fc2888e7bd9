//! The world of a mesh: nodes, their clocks, the air between them, the application, and the books.
//!
//! What a node does it does in its machines. The world calls them when they are due and writes down what they say; a
//! [driver](crate::driver) carries the frames, and the [mesh](crate::mesh) moves time.

use std::collections::VecDeque;
use std::io;

use lowmesh_coap::{ExchangeId, RequestTemplate, ResponseTemplate};
use lowmesh_mac::account::RadioTime;
use lowmesh_machine::{
    DropReason, Dropped, Handle, Layer, Machine as _, earliest, expect_accepted,
};
use lowmesh_stack::event::{Input, Output, Packet, RadioOrder};
use lowmesh_stack::{COAP_PORT, DATAGRAM_PORT, Node};
use lowmesh_units::{Dbm, Duration, Instant, NodeId, Seed};
use lowmesh_wire::coap::Code;
use lowmesh_wire::ipv6::Address;

use crate::agenda::{Agenda, Kind};
use crate::air::{Interference, Medium, Overlap};
use crate::backbone::{Backbone, Crossing, Fate};
use crate::capture::Capture;
use crate::clock::Clock;
use crate::courses::Courses;
use crate::energy::Currents;
use crate::ledger::Ledger;
use crate::names::Names;
use crate::occupancy::Occupancy;
use crate::record::{Datagram, Ending, NodeSummary, Outcome};
use crate::trace::{Fact, Trace};
use crate::traffic::{self, Application, Client};

/// What the mesh keeps of a node beside its machines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The border router of its PAN.
    pub(crate) root: NodeId,
    /// The border router that takes its readings.
    pub(crate) collector: NodeId,
    /// Half the time for which it listens for a frame to start, in timeslots.
    pub(crate) guard: Duration,
    /// Power that it sends with.
    pub(crate) tx_power: Dbm,
    /// What its radio draws.
    pub(crate) energy: Currents,
    /// Whether it reports readings.
    pub(crate) is_client: bool,
}

/// All that a driver works on.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) seed: Seed,
    pub(crate) nodes: Vec<Node>,
    pub(crate) parts: Vec<Part>,
    pub(crate) names: Names,
    pub(crate) clocks: Vec<Clock>,
    pub(crate) medium: Box<dyn Medium>,
    pub(crate) interference: Interference,
    pub(crate) overlap: Overlap,
    pub(crate) noise_mw: f64,
    pub(crate) trace: Trace,
    pub(crate) capture: Option<Capture>,
    pub(crate) capture_error: Option<io::Error>,
    pub(crate) agenda: Agenda,
    /// What the node that was settled last orders of its radio; the driver takes it.
    pub(crate) orders: Vec<RadioOrder>,
    pub(crate) traffic: traffic::Config,
    pub(crate) clients: Vec<Client>,
    boots: Vec<Option<Instant>>,
    /// Requests that each collector works on, and when it is done.
    answers: Vec<VecDeque<(Instant, ExchangeId)>>,
    pub(crate) backbone: Backbone,
    pub(crate) ledger: Ledger,
    pub(crate) outcome: Outcome,
    pub(crate) courses: Courses,
    /// The packet buffer of each node.
    pub(crate) buffers: Vec<Occupancy>,
    /// Radio time of each node at the moment it joined.
    pub(crate) joined_radio: Vec<RadioTime>,
}

/// What a world begins with; the rest of it is empty.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) seed: Seed,
    pub(crate) nodes: Vec<Node>,
    pub(crate) parts: Vec<Part>,
    pub(crate) names: Names,
    pub(crate) clocks: Vec<Clock>,
    /// When each node is switched on.
    pub(crate) boots: Vec<Instant>,
    pub(crate) medium: Box<dyn Medium>,
    pub(crate) interference: Interference,
    pub(crate) traffic: traffic::Config,
    pub(crate) backbone: Backbone,
    pub(crate) trace: Trace,
    pub(crate) capture: Option<Capture>,
}

impl World {
    /// A world in which nothing has happened yet.
    pub(crate) fn new(beginning: Beginning) -> Self {
        let Beginning { seed, nodes, parts, names, clocks, boots, .. } = beginning;
        let Beginning { medium, interference, traffic, backbone, trace, capture, .. } = beginning;
        let count = nodes.len();
        let ids = || (0..count).map(|n| NodeId(n as u16));
        let mut agenda = Agenda::new(count);
        for (id, at) in ids().zip(&boots) {
            agenda.set(id, Kind::Deadline, Some(*at));
        }
        Self {
            overlap: medium.overlap(),
            noise_mw: medium.noise().milliwatts(),
            clients: ids().map(|id| Client::new(seed, id)).collect(),
            outcome: Outcome { nodes: vec![NodeSummary::default(); count], ..Outcome::default() },
            boots: boots.into_iter().map(Some).collect(),
            answers: vec![VecDeque::new(); count],
            buffers: vec![Occupancy::default(); count],
            joined_radio: vec![RadioTime::default(); count],
            capture_error: None,
            orders: Vec::new(),
            ledger: Ledger::default(),
            courses: Courses::default(),
            seed,
            nodes,
            parts,
            names,
            clocks,
            medium,
            interference,
            trace,
            capture,
            agenda,
            traffic,
            backbone,
        }
    }

    /// Whether `node` is the border router of its PAN, the root of its DODAG and a collector.
    pub(crate) fn is_root(&self, node: NodeId) -> bool {
        self.parts[node.index()].root == node
    }

    /// Lets the air change if it is time.
    pub(crate) fn change_air(&mut self, now: Instant) {
        if self.medium.next_change().is_some_and(|due| due <= now) {
            self.medium.advance(now);
        }
    }

    /// Does what is due at a node; the driver settles it then.
    pub(crate) fn deadline(&mut self, now: Instant, node: NodeId) {
        if self.boots[node.index()].take().is_some() {
            self.trace.note(now, node, Fact::Booted(self.names.eui64(node)));
            self.tell(now, node, Input::Boot);
        }
        let due = self.nodes[node.index()].next_deadline();
        if due.is_some_and(|due| due <= now) {
            self.tell(now, node, Input::Deadline);
        }
        if self.is_root(node) {
            self.answer_due(now, node);
            self.backbone_due(now, node);
        }
        if let Some(payload) = self.clients[node.index()].take(now, &self.traffic) {
            match self.traffic.application {
                Application::Coap { confirmable, .. } => {
                    self.issue(now, node, payload, confirmable);
                }
                Application::Datagrams => self.send_datagram(now, node, payload),
            }
        }
    }

    pub(crate) fn tell(&mut self, now: Instant, node: NodeId, input: Input) {
        // A node refuses what makes no sense in its state, such as an answer to a forgotten request.
        expect_accepted(self.nodes[node.index()].handle(now, input));
    }

    /// The address to which `node` reports.
    fn collector(&self, node: NodeId) -> Address {
        self.nodes[self.parts[node.index()].collector.index()].global_address()
    }

    fn issue(&mut self, now: Instant, node: NodeId, payload: Vec<u8>, confirmable: bool) {
        let server = self.collector(node);
        let handle = Handle(self.outcome.transactions.len() as u64 + 1);
        self.clients[node.index()].began(handle);
        self.outcome.transactions.push(crate::record::Transaction {
            node,
            issued: now,
            sent: None,
            ended: None,
            ending: Ending::Open,
            retransmissions: 0,
            rto: None,
        });
        let Application::Coap { path, .. } = &self.traffic.application else { return };
        let mut request = RequestTemplate::new(Code::POST, path).with_payload(payload);
        request.confirmable = confirmable;
        self.tell(now, node, Input::Request { peer: (server, COAP_PORT), request, handle });
    }

    /// The first octets of a datagram are its place in the record, for the collector to find it again.
    fn send_datagram(&mut self, now: Instant, node: NodeId, mut payload: Vec<u8>) {
        let number = (self.outcome.datagrams.len() as u32).to_be_bytes();
        payload[..number.len()].copy_from_slice(&number);
        self.outcome.datagrams.push(Datagram { node, sent: now, arrived: None });
        let peer = (self.collector(node), DATAGRAM_PORT);
        let source_port = DATAGRAM_PORT;
        self.tell(now, node, Input::Datagram { source_port, peer, payload });
    }

    fn take_datagram(&mut self, now: Instant, payload: &[u8]) {
        let number = payload.first_chunk().map(|octets| u32::from_be_bytes(*octets));
        let record = number.and_then(|number| self.outcome.datagrams.get_mut(number as usize));
        if let Some(record) = record {
            record.arrived.get_or_insert(now);
        }
    }

    /// Takes what a node has to say, and notes when its machines want to be called again; what its radio does next is
    /// the driver's business.
    pub(crate) fn settle(&mut self, now: Instant, node: NodeId) {
        while let Some(output) = self.nodes[node.index()].poll_output() {
            match output {
                Output::Packet(packet) => self.note_packet(now, node, packet),
                Output::Transaction(transaction) => self.note_transaction(now, node, transaction),
                Output::Fragments(step) => self.courses.note(now, node, step),
                Output::Network(network) => self.note_network(now, node, &network),
                Output::AdjustClock { micros } => {
                    self.clocks[node.index()].adjust(now, micros);
                }
                Output::Request { exchange, .. } => self.serve(now, node, exchange),
                Output::Datagram { payload, .. } => self.take_datagram(now, &payload),
                Output::Radio(order) => self.orders.push(order),
                Output::Uplink { packet, handle } => self.leave(now, node, packet, handle),
                // No application of a simulation pings, and no node sends errors.
                Output::Pong { .. } | Output::Trouble { .. } => {}
            }
        }
        let octets = self.nodes[node.index()].packet_buffer_octets();
        self.buffers[node.index()].set(now, octets);
        self.plan_deadline(now, node);
    }

    /// Notes when a node wants to be called again.
    fn plan_deadline(&mut self, now: Instant, node: NodeId) {
        let index = node.index();
        let boot = self.boots[index];
        let mut machines = earliest(self.nodes[index].next_deadline(), self.clients[index].next());
        if let Some((due, _)) = self.answers[index].front() {
            machines = earliest(machines, Some(*due));
        }
        machines = earliest(machines, self.backbone.next(node));
        // Nothing happens at a node before it is switched on.
        let deadline = boot.or(machines.map(|due| due.max(now)));
        self.agenda.set(node, Kind::Deadline, deadline);
    }

    /// A packet leaves the mesh at the border router `node`.
    fn leave(&mut self, now: Instant, node: NodeId, packet: Vec<u8>, handle: Handle) {
        self.trace.note(now, node, Fact::Left { handle, octets: packet.len() });
        match self.backbone.take(now, node, packet, handle) {
            Fate::Crosses(to) => self.plan_deadline(now, to),
            Fate::Gone => self.note_packet(now, node, Packet::Delivered(handle)),
            Fate::NoRoute => {
                let (layer, reason) = (Layer::Ipv6, DropReason::NoRoute);
                self.note_packet(now, node, Packet::Dropped(Dropped { handle, layer, reason }));
            }
        }
    }

    /// Gives a border router what has come over the backbone.
    fn backbone_due(&mut self, now: Instant, node: NodeId) {
        while let Some(Crossing { packet, handle, .. }) = self.backbone.arrived(now, node) {
            self.trace.note(now, node, Fact::Entered { handle, octets: packet.len() });
            self.tell(now, node, Input::Uplink { packet, handle });
        }
    }

    /// The collector takes every reading (RFC 7252 s5.9.1.4: 2.04 Changed), and answers when it is done with it.
    fn serve(&mut self, now: Instant, node: NodeId, exchange: ExchangeId) {
        self.outcome.executed += 1;
        if self.traffic.service.is_zero() || !self.is_root(node) {
            self.answer(now, node, exchange);
        } else {
            self.answers[node.index()].push_back((now + self.traffic.service, exchange));
        }
    }

    /// Answers what a collector is done with.
    fn answer_due(&mut self, now: Instant, node: NodeId) {
        let index = node.index();
        while let Some(&(_, exchange)) = self.answers[index].front().filter(|(due, _)| *due <= now)
        {
            self.answers[index].pop_front();
            self.answer(now, node, exchange);
        }
    }

    fn answer(&mut self, now: Instant, node: NodeId, exchange: ExchangeId) {
        let response = ResponseTemplate::new(Code::CHANGED);
        self.tell(now, node, Input::Respond { exchange, response });
    }
}
