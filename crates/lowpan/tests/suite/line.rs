//! Adaptation layers in a row, in virtual time, over links that lose, copy and delay frames.

use lowmesh_lowpan::{Adaptation, Config, Input, Output, Route};
use lowmesh_machine::{DropReason, Dropped, Handle, Machine};
use lowmesh_testkit::{Links, Next};
use lowmesh_units::{Duration, Eui64, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::ipv6::{
    Address, DESTINATION_OFFSET, HEADER_OCTETS, HOP_LIMIT_OFFSET, Header, NEXT_HEADER_OFFSET,
    next_header,
};
use lowmesh_wire::lowpan::Contexts;
use lowmesh_wire::lowpan::fragment::FragmentHeader;
use lowmesh_wire::rpl::{Advance, SourceRoute};
use lowmesh_wire::udp::Datagram;

pub use lowmesh_testkit::Faults;

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

#[derive(Debug)]
enum Event {
    Arrives { from: usize, to: usize, payload: Vec<u8>, handle: Handle },
    Done { node: usize, handle: Handle, delivered: bool },
}

/// Node 0, node 1 and so on; each hears only its neighbours.
pub struct Line {
    pub nodes: Vec<Adaptation>,
    pub faults: Faults,
    /// Packets that reached the last node, in order.
    pub delivered: Vec<Vec<u8>>,
    /// Packets that ended in between.
    pub dropped: Vec<(usize, Dropped)>,
    /// Every frame that was sent: by whom, and what.
    pub sent: Vec<(usize, Vec<u8>)>,
    /// Copies that nodes took over or made, less those that left or ended.
    pub copies: i64,
    packet_buffer_octets: usize,
    links: Links<Event>,
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
            delivered: Vec::new(),
            dropped: Vec::new(),
            sent: Vec::new(),
            copies: 0,
            packet_buffer_octets: config.packet_buffer_octets,
            links: Links::new(seed),
        }
    }

    pub fn now(&self) -> Instant {
        self.links.now()
    }
    /// From now on frames are recorded.
    pub fn keep_table(&mut self) {
        self.links.keep_table();
    }
    /// The frames since then, one a line.
    pub fn table(&self) -> &str {
        self.links.table()
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
        let input =
            Input::Frame { payload, source, destination, handle: Handle(handle), is_proven: false };
        self.nodes[to].handle(self.links.now(), input).expect("frames are never rejected");
        self.drain(to);
    }

    /// Lets everything happen that happens up to `until`.
    pub fn run_until(&mut self, until: Instant) {
        loop {
            let wake = self.nodes.iter().filter_map(Machine::next_deadline).min();
            match self.links.next(wake, until) {
                Some(Next::Event(event)) => self.happen(event),
                Some(Next::Deadline) => {
                    for node in 0..self.nodes.len() {
                        self.nodes[node]
                            .handle(self.links.now(), Input::Deadline)
                            .expect("a deadline");
                        self.drain(node);
                    }
                }
                None => break,
            }
        }
    }

    /// Runs until nothing is left to happen, and asserts that nothing is left behind.
    pub fn run_to_rest(&mut self) {
        self.run_until(self.now() + Duration::from_secs(200));
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
                let result = delivered.then_some(()).ok_or(DropReason::NoAck);
                let input = Input::FrameDone { handle, result };
                self.nodes[node].handle(self.links.now(), input).expect("a confirmation");
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
                    forward(&mut bytes);
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
        self.nodes[node].handle(self.links.now(), input).expect("a whole packet");
    }

    fn answer(&mut self, node: usize, mut beginning: Vec<u8>) {
        let route = if node + 1 == self.nodes.len() {
            Route::Here
        } else {
            forward(&mut beginning);
            Route::Via(eui(node + 1))
        };
        let input = Input::RouteReply { beginning, route };
        self.nodes[node].handle(self.links.now(), input).expect("it was asked for");
    }

    fn transmit(&mut self, from: usize, to: usize, payload: &[u8], handle: Handle) {
        self.sent.push((from, payload.to_vec()));
        let fate = self.links.fate(&self.faults);
        self.links.record(from, to, &fate, || describe(payload));
        let delivered = fate.acked;
        self.links.after(AIRTIME, Event::Done { node: from, handle, delivered });
        for late in fate.copies {
            let arrives = Event::Arrives { from, to, payload: payload.to_vec(), handle };
            self.links.after(AIRTIME + late, arrives);
        }
    }
}

/// What a router does to a packet, or to the beginning of one: a hop less, and a step along its source route.
fn forward(packet: &mut [u8]) {
    const ROUTE: usize = 48;
    packet[HOP_LIMIT_OFFSET] -= 1;
    let has_route = packet[NEXT_HEADER_OFFSET] == next_header::HOP_BY_HOP
        && packet[HEADER_OCTETS] == next_header::ROUTING;
    if !has_route {
        return;
    }
    let mut destination = Header::parse(packet).expect("own packet").destination.0;
    let (mut route, behind, octets) =
        SourceRoute::parse(&packet[ROUTE..], &destination).expect("own route");
    assert_eq!(route.advance(&mut destination), Advance::Onward);
    let mut header = Vec::new();
    route.emit(behind, &destination, &mut header);
    packet[ROUTE..ROUTE + octets].copy_from_slice(&header);
    packet[DESTINATION_OFFSET..HEADER_OCTETS].copy_from_slice(&destination);
}

/// A frame in words.
fn describe(frame: &[u8]) -> String {
    let octets = frame.len();
    match FragmentHeader::parse(frame) {
        Ok(header) => {
            let FragmentHeader { datagram_size, offset, .. } = header;
            format!("{octets} octets: of {datagram_size}, at {offset}")
        }
        Err(_) => format!("{octets} octets"),
    }
}
