//! A line of nodes in virtual time: every node has a MAC that sends one frame after the other, and every frame the fate
//! that the test gives it.

use alloc::collections::{BTreeMap, VecDeque};

use lowmesh_congestion::WindowSpec;
use lowmesh_congestion::window::Limits;
use lowmesh_machine::{DropReason, Machine as _};
use lowmesh_registry::Registry;
use lowmesh_testkit::Links;
use lowmesh_units::{Duration, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::lowpan::Contexts;
use lowmesh_wire::lowpan::rfrag::{Rfrag, RfragAck};

use crate::adapt::tests::packets::{self, PREFIX};
use crate::adapt::*;
use crate::event::Input;
use crate::params::{Arq, Config, FragmentMode, Recovery};
use crate::recover::Step;

pub const HANDLE: Handle = Handle(5);
pub const AIRTIME: Duration = Duration::from_millis(4);

pub const fn node(at: usize) -> Eui64 {
    NodeId(at as u16 + 1).eui64()
}

pub fn packet(data: usize, to: usize) -> Vec<u8> {
    packets::udp(node(0), node(to), data)
}

pub fn config(window: &str, initial: u32) -> Config {
    let row = Registry::builtin().row(window).expect("a listed name");
    let window = WindowSpec::new(row, Limits::messages(initial, 32));
    let arq = Arq::fixed(Duration::from_secs(1));
    let recovery = Recovery { window, arq, mark_frames: 64, ..Recovery::default() };
    Config { mode: FragmentMode::Recovered, recovery, ..Config::default() }
}

/// What happens to a frame on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Arrives,
    Lost,
    /// It arrives, and its sender does not know.
    Unconfirmed,
    ArrivesTwice,
}

#[derive(Clone, Debug)]
pub struct OnAir {
    pub payload: Vec<u8>,
    pub destination: Eui64,
    pub handle: Handle,
}

/// Packets go from the first node of a line to the last.
pub struct Line {
    pub nodes: Vec<Adaptation>,
    pub queues: Vec<VecDeque<OnAir>>,
    /// When the frame at the head of each queue is over.
    pub over: Vec<Option<Instant>>,
    /// The clock, and the table of frames; the MACs say when frames arrive.
    pub links: Links<()>,
    pub fates: Vec<Fate>,
    /// A node whose frames are all lost.
    pub jammed: Option<usize>,
    /// Frames so far: when, from where, and what.
    pub log: Vec<(Instant, usize, Vec<u8>)>,
    pub arrived: Vec<Vec<u8>>,
    pub dropped: Vec<(usize, DropReason)>,
    /// Steps that nodes tell.
    pub steps: Vec<(usize, Step)>,
    pub copies: BTreeMap<Handle, i32>,
}

impl Line {
    pub fn new(configs: Vec<Config>, fates: Vec<Fate>) -> Self {
        let layer = |(at, config): (usize, Config)| {
            let rng = Rng::stream(Seed(1), NodeId(at as u16), Purpose::Lowpan);
            Adaptation::new(node(at), Contexts::new().with(0, PREFIX), config, rng)
        };
        let count = configs.len();
        Self {
            nodes: configs.into_iter().enumerate().map(layer).collect(),
            queues: vec![VecDeque::new(); count],
            over: vec![None; count],
            links: Links::new(1),
            fates,
            jammed: None,
            log: Vec::new(),
            arrived: Vec::new(),
            dropped: Vec::new(),
            steps: Vec::new(),
            copies: BTreeMap::new(),
        }
    }
    pub fn send(&mut self, data: usize, handle: Handle) {
        let bytes = packet(data, self.nodes.len() - 1);
        *self.copies.entry(handle).or_default() += 1;
        self.input(0, Input::Packet { bytes, destination: Some(node(1)), handle });
    }
    pub fn input(&mut self, at: usize, input: Input<'_>) {
        self.nodes[at].handle(self.links.now(), input).expect("a whole input");
        while let Some(output) = self.nodes[at].poll_output() {
            self.output(at, output);
        }
    }
    pub fn now(&self) -> Instant {
        self.links.now()
    }
    pub fn copy(&mut self, handle: Handle, change: i32) {
        let copies = self.copies.entry(handle).or_default();
        assert!(*copies > 0, "a packet lives on after its last copy");
        *copies += change;
    }
    pub fn output(&mut self, at: usize, output: Output) {
        let is_end = at == self.nodes.len() - 1;
        match output {
            Output::Frame { payload, destination, handle, .. } => {
                let destination = destination.expect("no broadcasts here");
                self.queues[at].push_back(OnAir { payload, destination, handle });
                self.over[at].get_or_insert(self.links.now() + AIRTIME);
            }
            Output::Step(step) => self.steps.push((at, step)),
            Output::Accepted { handle } => self.copy(handle, 1),
            Output::PacketDone { handle, .. } => self.copy(handle, -1),
            Output::Dropped(dropped) => {
                self.dropped.push((at, dropped.reason));
                self.copy(dropped.handle, -1);
            }
            Output::Packet { bytes, handle, .. } if is_end => {
                self.arrived.push(bytes);
                self.copy(handle, -1);
            }
            Output::Packet { mut bytes, handle, .. } => {
                bytes[7] -= 1;
                self.input(at, Input::Packet { bytes, destination: Some(node(at + 1)), handle });
            }
            Output::RouteRequest { beginning, .. } if is_end => {
                self.input(at, Input::RouteReply { beginning, route: Route::Here });
            }
            Output::RouteRequest { mut beginning, .. } => {
                beginning[7] -= 1;
                let route = Route::Via(node(at + 1));
                self.input(at, Input::RouteReply { beginning, route });
            }
        }
    }
    pub fn frame_over(&mut self, at: usize) {
        let frame = self.queues[at].pop_front().expect("a frame was on the air");
        let fate = self.fates.get(self.log.len() % self.fates.len().max(1));
        let fate = fate.copied().unwrap_or(Fate::Arrives);
        self.log.push((self.now(), at, frame.payload.clone()));
        let times = match fate {
            _ if self.jammed == Some(at) => 0,
            Fate::Lost => 0,
            Fate::Arrives | Fate::Unconfirmed => 1,
            Fate::ArrivesTwice => 2,
        };
        let to = (0..self.nodes.len()).find(|at| node(*at) == frame.destination).expect("a node");
        let OnAir { payload, handle, .. } = frame;
        for _ in 0..times {
            let (source, destination) = (node(at), Some(node(to)));
            self.input(
                to,
                Input::Frame { payload: &payload, source, destination, handle, is_proven: false },
            );
        }
        let delivered = times > 0 && fate != Fate::Unconfirmed;
        let link = lowmesh_testkit::Fate { copies: vec![Duration::ZERO; times], acked: delivered };
        self.links.record(at, to, &link, || describe(&payload));
        self.over[at] = (!self.queues[at].is_empty()).then(|| self.links.now() + AIRTIME);
        let result = delivered.then_some(()).ok_or(DropReason::NoAck);
        self.input(at, Input::FrameDone { handle, result });
    }
    /// The next thing that happens; false when nothing will.
    pub fn step(&mut self) -> bool {
        let wakes = self.nodes.iter().enumerate();
        let wake = wakes.filter_map(|(at, node)| Some((node.next_deadline()?, at))).min();
        let frame = (0..self.nodes.len()).filter_map(|at| Some((self.over[at]?, at))).min();
        let frame = frame.filter(|(over, _)| wake.is_none_or(|(due, _)| *over <= due));
        let Some((due, at)) = frame.or(wake) else { return false };
        self.links.next(None, due);
        match frame {
            Some(_) => self.frame_over(at),
            None => self.input(at, Input::Deadline),
        }
        self.check_books();
        true
    }
    /// The copies in the nodes are those in the book.
    pub fn check_books(&self) {
        let mut held: BTreeMap<Handle, i32> = BTreeMap::new();
        for handle in self.nodes.iter().flat_map(Adaptation::handles) {
            *held.entry(handle).or_default() += 1;
        }
        held.remove(&Handle::NONE);
        let booked: BTreeMap<_, _> =
            self.copies.iter().filter(|(_, n)| **n != 0).map(|(h, n)| (*h, *n)).collect();
        assert_eq!(held, booked, "at {}", self.now());
    }
    pub fn run(&mut self) {
        for _ in 0..50_000 {
            if !self.step() {
                return;
            }
        }
        panic!("the line never comes to rest");
    }
    pub fn run_until(&mut self, is_reached: impl Fn(&Self) -> bool) {
        while !is_reached(self) {
            assert!(self.step(), "it comes to rest before");
        }
    }
    /// Nothing is left in any node.
    pub fn is_empty(&self) -> bool {
        self.nodes.iter().all(|node| {
            node.packet_buffer().total() == 0
                && node.handles().count() == 0
                && node.next_deadline().is_none()
        })
    }
    /// Recoverable fragments that left `from`, with their times.
    pub fn fragments(&self, from: usize) -> Vec<(Instant, Rfrag)> {
        let mine = self.log.iter().filter(|(_, at, _)| *at == from);
        mine.filter_map(|(now, _, frame)| Some((*now, Rfrag::parse(frame).ok()?.0))).collect()
    }
}

pub fn after_hops(mut bytes: Vec<u8>, hops: u8) -> Vec<u8> {
    bytes[7] -= hops;
    bytes
}

/// A frame of RFC 8931 in words; tags are left out, for they are random.
fn describe(frame: &[u8]) -> String {
    if let Ok((header, data)) = Rfrag::parse(frame) {
        let asks = if header.ack_request { ", X" } else { "" };
        let (sequence, offset) = (header.part.sequence(), header.part.offset());
        return format!("RFRAG {sequence}, {} octets at {offset}{asks}", data.len());
    }
    RfragAck::parse(frame).map_or_else(
        |_| format!("{} octets", frame.len()),
        |ack| format!("RFRAG-ACK {:08x}", ack.bitmap.0),
    )
}
