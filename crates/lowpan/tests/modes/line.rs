//! Adaptation layers in a row, in virtual time, over links that lose, copy and delay frames.

use std::collections::BTreeMap;

use lowmesh_lowpan::{Adaptation, Config, Input, Output, Route};
use lowmesh_machine::{Dropped, Handle, Machine};
use lowmesh_units::{Duration, Eui64, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::ipv6::{Address, HOP_LIMIT_OFFSET, Header, next_header};
use lowmesh_wire::lowpan::Contexts;
use lowmesh_wire::udp::Datagram;

/// The mesh's prefix, which is context 0.
pub const PREFIX: [u8; 8] = [0xfd, 0, 0, 0, 0, 0, 0, 0];
/// How long a frame is on the air.
const AIRTIME: Duration = Duration::from_millis(4);

/// The link-layer address of node `index`.
pub fn eui(index: usize) -> Eui64 {
    NodeId(index as u16 + 1).eui64()
}

/// A UDP packet with `octets` of data, which depend on `salt`, between ports that do not compress.
pub fn packet(from: usize, to: usize, octets: usize, salt: u8) -> Vec<u8> {
    let (source, destination) =
        (Address::global(PREFIX, eui(from)), Address::global(PREFIX, eui(to)));
    let payload: Vec<u8> = (0..octets).map(|i| (i as u8).wrapping_mul(7) ^ salt).collect();
    let mut bytes = Vec::new();
    Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: 8 + octets as u16,
        next_header: next_header::UDP,
        hop_limit: 64,
        source,
        destination,
    }
    .emit(&mut bytes);
    let datagram = Datagram { source_port: 6383, destination_port: 6383, payload: &payload };
    datagram.emit(&source, &destination, &mut bytes);
    bytes
}

/// What the links do to frames; each is a probability or a bound.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The frame does not arrive.
    pub loss: f64,
    /// It arrives, but its acknowledgement does not.
    pub ack_loss: f64,
    /// It arrives twice.
    pub copy: f64,
    /// It arrives later by up to this, so that frames overtake each other.
    pub delay_max: Duration,
}

#[derive(Debug)]
enum Event {
    Arrives { from: usize, to: usize, payload: Vec<u8>, handle: Handle },
    Done { node: usize, handle: Handle, delivered: bool },
}

/// Node 0, node 1 and so on; each hears only its neighbours.
pub struct Line {
    pub nodes: Vec<Adaptation>,
    pub faults: Faults,
    pub now: Instant,
    /// Packets that reached the last node, in order.
    pub delivered: Vec<Vec<u8>>,
    /// Packets that ended in between.
    pub dropped: Vec<(usize, Dropped)>,
    /// Every frame that was sent: by whom, and what.
    pub sent: Vec<(usize, Vec<u8>)>,
    /// Copies that nodes took over or made, less those that left or ended.
    pub copies: i64,
    packet_buffer_octets: usize,
    events: BTreeMap<(Instant, u64), Event>,
    sequence: u64,
    rng: Rng,
}

impl Line {
    /// `nodes` of them, with the same settings.
    pub fn new(nodes: usize, config: Config, seed: u64) -> Self {
        let layer = |index: usize| {
            let rng = Rng::stream(Seed(seed), NodeId(index as u16), Purpose::Lowpan);
            Adaptation::new(eui(index), Contexts::new().with(0, PREFIX), config, rng)
        };
        Self {
            nodes: (0..nodes).map(layer).collect(),
            faults: Faults::default(),
            now: Instant::ZERO,
            delivered: Vec::new(),
            dropped: Vec::new(),
            sent: Vec::new(),
            copies: 0,
            packet_buffer_octets: config.packet_buffer_octets,
            events: BTreeMap::new(),
            sequence: 0,
            rng: Rng::stream(Seed(seed), NodeId(0), Purpose::Reception),
        }
    }

    /// Node 0 sends a packet to the last node.
    pub fn send(&mut self, bytes: Vec<u8>, handle: u64) {
        self.copies += 1;
        self.pass_on(0, bytes, Handle(handle));
        self.drain(0);
    }

    /// A frame from a neighbour, which may be a stranger, comes to `to`.
    pub fn hear(&mut self, to: usize, source: Eui64, payload: &[u8], handle: u64) {
        let destination = Some(eui(to));
        let input = Input::Frame { payload, source, destination, handle: Handle(handle) };
        self.nodes[to].handle(self.now, input).expect("frames are never rejected");
        self.drain(to);
    }

    /// Lets everything happen that happens up to `until`.
    pub fn run_until(&mut self, until: Instant) {
        loop {
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let wake = self.nodes.iter().filter_map(Machine::next_deadline).min();
            let next = [event, wake].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            if event == Some(next) {
                let (_, event) = self.events.pop_first().expect("it was seen above");
                self.happen(event);
            } else {
                for node in 0..self.nodes.len() {
                    self.nodes[node].handle(self.now, Input::Deadline).expect("a deadline");
                    self.drain(node);
                }
            }
        }
        self.now = until;
    }

    /// Runs until nothing is left to happen, and asserts that nothing is left behind.
    pub fn run_to_rest(&mut self) {
        self.run_until(self.now + Duration::from_secs(200));
        for (index, node) in self.nodes.iter().enumerate() {
            assert_eq!(node.handles().count(), 0, "node {index} still holds a packet");
            assert_eq!(node.packet_buffer().total(), 0, "node {index} still holds octets");
            assert_eq!(node.next_deadline(), None, "node {index} still waits");
        }
        assert_eq!(self.copies, 0, "every copy leaves or ends");
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrives { from, to, payload, handle } => {
                self.hear(to, eui(from), &payload, handle.0);
            }
            Event::Done { node, handle, delivered } => {
                let input = Input::FrameDone { handle, delivered };
                self.nodes[node].handle(self.now, input).expect("a confirmation");
                self.drain(node);
            }
        }
    }

    fn drain(&mut self, node: usize) {
        while let Some(output) = self.nodes[node].poll_output() {
            match output {
                Output::Frame { payload, destination, handle, .. } => {
                    let to = (0..self.nodes.len()).find(|index| Some(eui(*index)) == destination);
                    self.transmit(node, to.expect("frames go to neighbours"), &payload, handle);
                }
                Output::RouteRequest { beginning, .. } => self.answer(node, beginning),
                Output::Packet { bytes, .. } if node + 1 == self.nodes.len() => {
                    self.copies -= 1;
                    self.delivered.push(bytes);
                }
                Output::Packet { mut bytes, handle, .. } => {
                    bytes[HOP_LIMIT_OFFSET] -= 1;
                    self.pass_on(node, bytes, handle);
                }
                Output::Accepted { .. } => self.copies += 1,
                Output::PacketDone { .. } => self.copies -= 1,
                Output::Step(step) => panic!("{step:?} without being asked"),
                Output::Dropped(dropped) => {
                    self.copies -= 1;
                    self.dropped.push((node, dropped));
                }
            }
            let octets = self.nodes[node].packet_buffer().total();
            assert!(octets <= self.packet_buffer_octets, "node {node} holds {octets} octets");
        }
    }

    fn pass_on(&mut self, node: usize, bytes: Vec<u8>, handle: Handle) {
        let input = Input::Packet { bytes, destination: Some(eui(node + 1)), handle };
        self.nodes[node].handle(self.now, input).expect("a whole packet");
    }

    fn answer(&mut self, node: usize, mut beginning: Vec<u8>) {
        let route = if node + 1 == self.nodes.len() {
            Route::Here
        } else {
            beginning[HOP_LIMIT_OFFSET] -= 1;
            Route::Via(eui(node + 1))
        };
        let input = Input::RouteReply { beginning, route };
        self.nodes[node].handle(self.now, input).expect("it was asked for");
    }

    fn transmit(&mut self, from: usize, to: usize, payload: &[u8], handle: Handle) {
        self.sent.push((from, payload.to_vec()));
        let arrives = self.rng.unit() >= self.faults.loss;
        let delivered = arrives && self.rng.unit() >= self.faults.ack_loss;
        self.schedule(AIRTIME, Event::Done { node: from, handle, delivered });
        let copies =
            usize::from(arrives) + usize::from(arrives && self.rng.unit() < self.faults.copy);
        for _ in 0..copies {
            let late =
                self.rng.below(self.faults.delay_max.as_nanos().min(u64::from(u32::MAX)) as u32);
            let arrives = Event::Arrives { from, to, payload: payload.to_vec(), handle };
            self.schedule(AIRTIME + Duration::from_nanos(late.into()), arrives);
        }
    }

    fn schedule(&mut self, after: Duration, event: Event) {
        self.sequence += 1;
        self.events.insert((self.now + after, self.sequence), event);
    }
}
