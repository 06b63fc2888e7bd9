//! Recoverable fragments along a line of nodes in virtual time: every node has a MAC that sends one frame after the
//! other, and every frame the fate that the test gives it.

use alloc::collections::{BTreeMap, VecDeque};

use lowmesh_congestion::window::Limits;
use lowmesh_congestion::{Window, WindowSpec};
use lowmesh_machine::Machine as _;
use lowmesh_registry::{Algorithm, Registry};
use lowmesh_units::{Duration, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::ipv6::{Address, Header, next_header};
use lowmesh_wire::lowpan::Contexts;
use lowmesh_wire::lowpan::rfrag::{Bitmap, Part as RfragPart, Rfrag, RfragAck};
use lowmesh_wire::udp::Datagram;
use proptest::prelude::*;

use super::*;
use crate::event::Input;
use crate::params::{Arq, Config, FragmentMode, Recovery};
use crate::recover::Step;

mod steps;

const PREFIX: [u8; 8] = [0xfd, 0, 0, 0, 0, 0, 0, 0];
const HANDLE: Handle = Handle(5);
const AIRTIME: Duration = Duration::from_millis(4);

const fn node(at: usize) -> Eui64 {
    NodeId(at as u16 + 1).eui64()
}

fn packet(data: usize, to: usize) -> Vec<u8> {
    let (source, destination) =
        (Address::global(PREFIX, node(0)), Address::global(PREFIX, node(to)));
    let payload: Vec<u8> = (0..data).map(|i| (i * 7 + i / 256) as u8).collect();
    let mut bytes = Vec::new();
    Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: 8 + data as u16,
        next_header: next_header::UDP,
        hop_limit: 64,
        source,
        destination,
    }
    .emit(&mut bytes);
    Datagram { source_port: 0xf0b1, destination_port: 0xf0b2, payload: &payload }.emit(
        &source,
        &destination,
        &mut bytes,
    );
    bytes
}

fn config(window: &str, initial: u32) -> Config {
    let row = Registry::builtin().row(window).expect("a listed name");
    let window = WindowSpec::new(row, Limits::messages(initial, 32));
    let arq = Arq::fixed(Duration::from_secs(1));
    let recovery = Recovery { window, arq, mark_frames: 64, ..Recovery::default() };
    Config { mode: FragmentMode::Recovered, recovery, ..Config::default() }
}

/// What happens to a frame on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrives,
    Lost,
    /// It arrives, and its sender does not know.
    Unconfirmed,
    ArrivesTwice,
}

#[derive(Clone, Debug)]
struct OnAir {
    payload: Vec<u8>,
    destination: Eui64,
    handle: Handle,
}

/// Packets go from the first node of a line to the last.
struct Line {
    nodes: Vec<Adaptation>,
    queues: Vec<VecDeque<OnAir>>,
    /// When the frame at the head of each queue is over.
    over: Vec<Option<Instant>>,
    fates: Vec<Fate>,
    /// A node whose frames are all lost.
    jammed: Option<usize>,
    /// Frames so far: when, from where, and what.
    log: Vec<(Instant, usize, Vec<u8>)>,
    now: Instant,
    arrived: Vec<Vec<u8>>,
    dropped: Vec<(usize, DropReason)>,
    /// Steps that nodes tell.
    steps: Vec<(usize, Step)>,
    copies: BTreeMap<Handle, i32>,
}

impl Line {
    fn new(configs: Vec<Config>, fates: Vec<Fate>) -> Self {
        let layer = |(at, config): (usize, Config)| {
            let rng = Rng::stream(Seed(1), NodeId(at as u16), Purpose::Lowpan);
            Adaptation::new(node(at), Contexts::new().with(0, PREFIX), config, rng)
        };
        let count = configs.len();
        Self {
            nodes: configs.into_iter().enumerate().map(layer).collect(),
            queues: vec![VecDeque::new(); count],
            over: vec![None; count],
            fates,
            jammed: None,
            log: Vec::new(),
            now: Instant::ZERO,
            arrived: Vec::new(),
            dropped: Vec::new(),
            steps: Vec::new(),
            copies: BTreeMap::new(),
        }
    }
    fn send(&mut self, data: usize, handle: Handle) {
        let bytes = packet(data, self.nodes.len() - 1);
        *self.copies.entry(handle).or_default() += 1;
        self.input(0, Input::Packet { bytes, destination: Some(node(1)), handle });
    }
    fn input(&mut self, at: usize, input: Input<'_>) {
        self.nodes[at].handle(self.now, input).expect("a whole input");
        while let Some(output) = self.nodes[at].poll_output() {
            self.output(at, output);
        }
    }
    fn copy(&mut self, handle: Handle, change: i32) {
        let copies = self.copies.entry(handle).or_default();
        assert!(*copies > 0, "a packet lives on after its last copy");
        *copies += change;
    }
    fn output(&mut self, at: usize, output: Output) {
        let is_end = at == self.nodes.len() - 1;
        match output {
            Output::Frame { payload, destination, handle, .. } => {
                let destination = destination.expect("no broadcasts here");
                self.queues[at].push_back(OnAir { payload, destination, handle });
                self.over[at].get_or_insert(self.now + AIRTIME);
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
    fn frame_over(&mut self, at: usize) {
        let frame = self.queues[at].pop_front().expect("a frame was on the air");
        let fate = self.fates.get(self.log.len() % self.fates.len().max(1));
        let fate = fate.copied().unwrap_or(Fate::Arrives);
        self.log.push((self.now, at, frame.payload.clone()));
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
            self.input(to, Input::Frame { payload: &payload, source, destination, handle });
        }
        let delivered = times > 0 && fate != Fate::Unconfirmed;
        self.over[at] = (!self.queues[at].is_empty()).then(|| self.now + AIRTIME);
        self.input(at, Input::FrameDone { handle, delivered });
    }
    /// The next thing that happens; false when nothing will.
    fn step(&mut self) -> bool {
        let frame = (0..self.nodes.len()).filter_map(|at| Some((self.over[at]?, at))).min();
        let wake = (0..self.nodes.len())
            .filter_map(|at| Some((self.nodes[at].next_deadline()?, at)))
            .min();
        match (frame, wake) {
            (None, None) => return false,
            (Some((over, at)), wake) if wake.is_none_or(|(due, _)| over <= due) => {
                self.now = self.now.max(over);
                self.frame_over(at);
            }
            (_, Some((due, at))) => {
                self.now = self.now.max(due);
                self.input(at, Input::Deadline);
            }
            (Some(_), None) => unreachable!("taken by the arm above"),
        }
        self.check_books();
        true
    }
    /// The copies in the nodes are those in the book.
    fn check_books(&self) {
        let mut held: BTreeMap<Handle, i32> = BTreeMap::new();
        for handle in self.nodes.iter().flat_map(Adaptation::handles) {
            *held.entry(handle).or_default() += 1;
        }
        held.remove(&Handle::NONE);
        let booked: BTreeMap<_, _> =
            self.copies.iter().filter(|(_, n)| **n != 0).map(|(h, n)| (*h, *n)).collect();
        assert_eq!(held, booked, "at {}", self.now);
    }
    fn run(&mut self) {
        for _ in 0..50_000 {
            if !self.step() {
                return;
            }
        }
        panic!("the line never comes to rest");
    }
    fn run_until(&mut self, is_reached: impl Fn(&Self) -> bool) {
        while !is_reached(self) {
            assert!(self.step(), "it comes to rest before");
        }
    }
    /// Nothing is left in any node.
    fn is_empty(&self) -> bool {
        self.nodes.iter().all(|node| {
            node.packet_buffer().total() == 0
                && node.handles().count() == 0
                && node.next_deadline().is_none()
        })
    }
    /// Recoverable fragments that left `from`, with their times.
    fn fragments(&self, from: usize) -> Vec<(Instant, Rfrag)> {
        let mine = self.log.iter().filter(|(_, at, _)| *at == from);
        mine.filter_map(|(now, _, frame)| Some((*now, Rfrag::parse(frame).ok()?.0))).collect()
    }
}

fn after_hops(mut bytes: Vec<u8>, hops: u8) -> Vec<u8> {
    bytes[7] -= hops;
    bytes
}

#[test]
fn fragments_pass_three_forwarders_without_being_put_together() {
    let mut line = Line::new(vec![config("fixed", 2); 5], vec![]);
    line.send(600, HANDLE);
    while line.step() {
        for forwarder in &line.nodes[1..4] {
            assert_eq!(forwarder.packet_buffer().reassembly, 0);
        }
    }
    assert_eq!(line.arrived, [after_hops(packet(600, 4), 3)]);
    assert_eq!(line.fragments(0).len(), line.fragments(3).len());
    assert!(line.is_empty());
}

#[test]
fn a_forwarder_moves_all_offsets_by_what_its_header_grew() {
    let mut line = Line::new(vec![config("fixed", 32); 3], vec![]);
    line.send(300, HANDLE);
    line.run();
    let size = |fragments: &[(Instant, Rfrag)]| match fragments[0].1.part {
        RfragPart::First { datagram_size } => datagram_size,
        other => panic!("{other:?} is not the first"),
    };
    let (before, after) = (line.fragments(0), line.fragments(1));
    // The hop limit of 63 and the sender's interface identifier go in line; the receiver's is elided now.
    assert_eq!(size(&after), size(&before) + 1 + 8 - 8);
    for ((_, before), (_, after)) in before.iter().zip(&after).skip(1) {
        assert_eq!(after.part.offset(), before.part.offset() + 1);
        assert_ne!((after.datagram_tag, after.fragment_size), (before.datagram_tag, 0));
    }
}

#[test]
fn every_size_up_to_the_mtu_crosses_two_links() {
    for data in (0..=1232).step_by(29) {
        let mut line = Line::new(vec![config("fixed", 4); 3], vec![]);
        line.send(data, HANDLE);
        line.run();
        // Packets of one frame are the driver's to forward.
        assert_eq!(line.arrived, [after_hops(packet(data, 2), 1)], "{data} octets");
    }
}

#[test]
fn fragments_by_payload_are_those_of_the_paper() {
    // Claim S004-05: frames of 102 octets, interface identifiers and hop limit in line.
    let limits = [80, 160, 256, 352, 448, 544, 640, 736, 832, 928, 1024];
    for payload in (16..=1024).step_by(16) {
        let config = Config { frame_payload: 102, ..config("fixed", 32) };
        let mut line = Line::new(vec![config; 4], vec![]);
        let bytes = after_hops(packet(payload, 3), 1);
        *line.copies.entry(HANDLE).or_default() += 1;
        // At the second node neither address is that of the link.
        line.input(1, Input::Packet { bytes, destination: Some(node(2)), handle: HANDLE });
        line.run();
        let frames =
            line.log.iter().filter(|(_, at, frame)| *at == 1 && RfragAck::parse(frame).is_err());
        let expected = 1 + limits.iter().filter(|limit| **limit <= payload).count();
        assert_eq!(frames.count(), expected, "{payload} octets");
    }
}

#[test]
fn without_a_free_path_a_forwarder_puts_the_datagram_together() {
    // Claim S004-08.
    let mut configs = vec![config("fixed", 2); 4];
    configs[1].forwarded_datagrams = 0;
    let mut line = Line::new(configs, vec![]);
    line.send(600, HANDLE);
    line.run();
    assert_eq!(line.arrived, [after_hops(packet(600, 3), 2)]);
    assert_eq!(line.nodes[1].recovery_counters().fallbacks, 1);
    assert_eq!(line.nodes[2].recovery_counters().fallbacks, 0);
    assert!(line.is_empty());
}

#[test]
fn a_mark_of_a_forwarder_comes_back_to_the_sender() {
    let mut configs = vec![config("fixed", 2); 4];
    configs[2].recovery.mark_frames = 0;
    let mut line = Line::new(configs, vec![]);
    line.send(600, HANDLE);
    line.run();
    let marked = line.nodes[2].recovery_counters().marked;
    let reported = line.nodes[0].recovery_counters().marks_reported;
    assert_eq!(marked, line.fragments(2).len() as u64);
    assert!(reported > 0 && reported <= marked);
    assert_eq!(line.nodes[1].recovery_counters().marked, 0);
}

#[test]
fn frames_keep_the_gap() {
    let gap = Duration::from_millis(170);
    let mut config = config("fixed", 4);
    config.recovery.inter_frame_gap = gap;
    let mut line = Line::new(vec![config; 3], vec![]);
    line.send(600, HANDLE);
    line.run();
    for from in 0..3 {
        let times: Vec<_> =
            line.log.iter().filter(|(_, at, _)| *at == from).map(|one| one.0).collect();
        assert!(times.len() > 1);
        assert!(times.windows(2).all(|two| two[1].since(two[0]) >= gap), "node {from}");
    }
}

#[test]
fn a_sender_that_gives_up_takes_down_its_path() {
    let mut line = Line::new(vec![config("fixed", 1); 4], vec![]);
    line.send(300, HANDLE);
    line.run_until(|line| line.nodes[2].forwarded_datagrams() == 1);
    // From now on nothing comes back.
    line.jammed = Some(3);
    let abort = Rfrag {
        congestion: false,
        datagram_tag: 0,
        ack_request: false,
        fragment_size: 0,
        part: RfragPart::Abort,
    };
    line.run_until(|line| line.nodes[0].fragmented_datagrams() == 0);
    let ended = line.now;
    line.run();
    assert!(line.dropped.contains(&(0, DropReason::GaveUp)));
    for at in 0..3 {
        let sent = line.fragments(at);
        let (last, header) = sent.last().expect("it sent fragments");
        assert_eq!(*header, Rfrag { datagram_tag: header.datagram_tag, ..abort }, "node {at}");
        assert!(last.since(ended) < Duration::from_millis(50));
    }
    assert!(line.is_empty());
}

#[test]
fn a_refusal_on_the_way_frees_the_path_behind_it() {
    let mut configs = vec![config("fixed", 1); 4];
    configs[3].reassembly_octets = 100;
    let mut line = Line::new(configs, vec![]);
    line.send(300, HANDLE);
    line.run();
    assert_eq!(line.arrived, Vec::<Vec<u8>>::new());
    let reset = DropReason::Reset;
    assert_eq!(line.dropped, [(3, DropReason::BufferFull), (2, reset), (1, reset), (0, reset)]);
    assert!(line.now < Instant::from_millis(100) && line.is_empty());
}

#[test]
fn a_later_fragment_without_a_path_is_refused() {
    let mut line = Line::new(vec![config("fixed", 2); 3], vec![Fate::Lost]);
    line.send(300, HANDLE);
    line.run_until(|line| line.log.len() == 1);
    line.fates.clear();
    line.run();
    assert_eq!(line.dropped, [(0, DropReason::Reset)]);
    assert!(line.is_empty());
}

#[test]
fn a_lost_last_acknowledgement_is_asked_for_again_and_delivers_once() {
    let mut line = Line::new(vec![config("fixed", 32); 3], vec![]);
    line.send(300, HANDLE);
    let full = |line: &Line| {
        let bitmap = |frame: &OnAir| RfragAck::parse(&frame.payload).map(|ack| ack.bitmap);
        line.queues[1].front().is_some_and(|frame| bitmap(frame) == Ok(Bitmap::FULL))
    };
    line.run_until(full);
    line.jammed = Some(1);
    line.run_until(|line| !full(line));
    line.jammed = None;
    line.run();
    assert_eq!(line.arrived, [after_hops(packet(300, 2), 1)]);
    assert_eq!(line.nodes[0].recovery_counters().resent, 1);
    assert_eq!(line.dropped, []);
    assert!(line.is_empty());
}

#[test]
fn a_first_fragment_that_comes_again_uses_the_path_there_is() {
    let mut line = Line::new(vec![config("fixed", 1); 3], vec![Fate::ArrivesTwice]);
    line.send(300, HANDLE);
    line.run();
    assert_eq!(line.arrived, [after_hops(packet(300, 2), 1)]);
    let tags: Vec<u8> = line.fragments(1).iter().map(|(_, header)| header.datagram_tag).collect();
    assert!(tags.windows(2).all(|two| two[0] == two[1]), "{tags:?}");
    assert!(line.is_empty());
}

/// What a forwarder says to one frame of the first node, whose packets go to `next`.
fn forwarded(forwarder: &mut Adaptation, frame: &[u8], next: Eui64) -> Vec<Output> {
    let (source, destination) = (node(0), Some(node(1)));
    let input = Input::Frame { payload: frame, source, destination, handle: HANDLE };
    forwarder.handle(Instant::ZERO, input).expect("frames are never rejected");
    let mut said = Vec::new();
    while let Some(output) = forwarder.poll_output() {
        if let Output::RouteRequest { beginning, .. } = output {
            let input = Input::RouteReply { beginning, route: Route::Via(next) };
            forwarder.handle(Instant::ZERO, input).expect("it has asked");
        } else {
            said.push(output);
        }
    }
    said
}

#[test]
fn a_first_fragment_that_comes_again_after_the_route_changed_opens_another_path() {
    let mut config = config("fixed", 1);
    config.recovery.inter_frame_gap = Duration::ZERO;
    let mut line = Line::new(vec![config; 2], vec![Fate::Lost]);
    line.send(300, HANDLE);
    line.run_until(|line| line.log.len() == 1);
    let first = line.log[0].2.clone();
    let mut forwarder = Line::new(vec![config; 2], vec![]).nodes.remove(1);
    let mode = |said: &[Output]| match said.last() {
        Some(Output::Frame { payload, destination, .. }) => (payload[1], *destination),
        other => panic!("{other:?} is no frame"),
    };
    let (tag, destination) = mode(&forwarded(&mut forwarder, &first, node(2)));
    assert_eq!(destination, Some(node(2)));
    let said = forwarded(&mut forwarder, &first, node(3));
    let (other_tag, destination) = mode(&said);
    assert_eq!(destination, Some(node(3)));
    assert_ne!(tag, other_tag);
    let lost = |output: &Output| matches!(output, Output::Dropped(one) if one.reason == DropReason::NeighbourLost);
    // The copy that went the old way waits for its frame in the MAC's queue.
    assert!(!said.iter().any(lost));
    assert_eq!((forwarder.forwarded_datagrams(), forwarder.handles().count()), (1, 2));
}

#[test]
fn a_datagram_is_refused_once_and_not_with_every_fragment() {
    let mut line = Line::new(vec![config("fixed", 32); 2], vec![Fate::Lost; 12]);
    line.send(1000, HANDLE);
    line.run_until(|line| line.log.len() == 12);
    let fragments: Vec<_> = line.log.iter().map(|(_, _, payload)| payload.clone()).collect();
    let mut receiver = Line::new(vec![config("fixed", 32); 2], vec![]).nodes.remove(1);
    let mut answers = Vec::new();
    for (ms, fragment) in fragments[1..].iter().enumerate() {
        let now = Instant::from_millis(ms as u64);
        let (source, destination) = (node(0), Some(node(1)));
        let input = Input::Frame { payload: fragment, source, destination, handle: HANDLE };
        receiver.handle(now, input).expect("frames are never rejected");
        answers.extend(core::iter::from_fn(|| receiver.poll_output()));
    }
    let refusals = |output: &&Output| {
        matches!(output, Output::Frame { payload, .. }
            if RfragAck::parse(payload).is_ok_and(|ack| ack.bitmap == Bitmap::NULL))
    };
    assert_eq!(answers.iter().filter(refusals).count(), 1, "{} fragments", fragments.len());
}

#[test]
fn with_one_unfinished_datagram_a_neighbour_the_next_waits_for_the_first() {
    let mut config = config("fixed", 2);
    config.recovery.unfinished_per_neighbour = Some(1);
    let mut line = Line::new(vec![config; 2], vec![]);
    for datagram in 0..4 {
        line.send(500, Handle(10 + datagram));
    }
    line.run();
    assert_eq!(line.arrived.len(), 4);
    let tags: Vec<u8> = line.fragments(0).iter().map(|(_, header)| header.datagram_tag).collect();
    let changes = tags.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(changes, 3, "one datagram after the other: {tags:?}");
    assert!(line.is_empty());
}

#[test]
fn the_257th_datagram_to_one_neighbour_finds_no_tag_and_is_refused() {
    let mut config = config("fixed", 1);
    config.fragmented_datagrams = 300;
    config.packet_buffer_octets = 1 << 20;
    config.recovery.unfinished_per_neighbour = Some(1);
    let mut line = Line::new(vec![config; 2], vec![Fate::Lost]);
    for datagram in 0..257 {
        line.send(500, Handle(10 + datagram));
    }
    assert_eq!(line.nodes[0].fragmented_datagrams(), 256);
}

#[test]
fn an_acknowledgement_without_a_path_leaves_no_trace() {
    let mut line = Line::new(vec![config("fixed", 1); 2], vec![]);
    let mut payload = Vec::new();
    RfragAck { congestion: false, datagram_tag: 9, bitmap: Bitmap::FULL }.emit(&mut payload);
    let (source, destination) = (node(1), Some(node(0)));
    let input = Input::Frame { payload: &payload, source, destination, handle: HANDLE };
    line.nodes[0].handle(Instant::ZERO, input).expect("frames are never rejected");
    assert_eq!(line.nodes[0].poll_output(), None);
    assert!(line.is_empty());
}

#[test]
fn all_windows_drive_several_datagrams_over_a_line_that_loses_every_seventh_frame() {
    let mut fates = vec![Fate::Arrives; 6];
    fates.push(Fate::Lost);
    for name in Registry::<dyn Window>::builtin().names() {
        let mut config = config(name, 2);
        config.recovery.datagram_retries = 2;
        let mut line = Line::new(vec![config; 3], fates.clone());
        for datagram in 0..4 {
            line.send(500, Handle(10 + datagram));
        }
        line.run();
        assert_eq!(line.arrived.len(), 4, "{name}");
        assert!(line.arrived.iter().all(|bytes| *bytes == after_hops(packet(500, 2), 1)));
        assert!(line.is_empty());
    }
}

fn any_fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        8 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        1 => Just(Fate::Unconfirmed),
        1 => Just(Fate::ArrivesTwice),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_loss_makes_a_wrong_packet_nor_leaves_anything_behind(
        fates in prop::collection::vec(any_fate(), 1..80),
        window in 0..<dyn Window>::BUILTIN.len(),
        datagrams in prop::collection::vec(150usize..1232, 1..5),
        hops in 2usize..5,
        datagram_retries in 0u8..2,
        gap_us in prop_oneof![Just(100u64), 5_000..200_000u64],
        linger_us in prop_oneof![Just(250u64), Just(5_000_000)],
    ) {
        let mut config = config(<dyn Window>::BUILTIN[window].name, 3);
        config.recovery.inter_frame_gap = Duration::from_micros(gap_us);
        config.recovery.linger = Duration::from_micros(linger_us);
        config.recovery.datagram_retries = datagram_retries;
        config.forwarded_datagrams = 2;
        let mut line = Line::new(vec![config; hops + 1], fates);
        for (number, data) in datagrams.iter().enumerate() {
            line.send(*data, Handle(10 + number as u64));
        }
        line.run();
        let hop_limit = (hops - 1) as u8;
        for bytes in &line.arrived {
            let data = bytes.len() - 48;
            prop_assert!(datagrams.contains(&data));
            prop_assert_eq!(bytes, &after_hops(packet(data, hops), hop_limit));
        }
        prop_assert!(line.is_empty());
    }

    #[test]
    fn no_frame_of_a_neighbour_makes_a_node_panic_or_hoard(
        frames in prop::collection::vec(
            (0u8..2, 0u8..4, prop::collection::vec(any::<u8>(), 0..40)), 0..40),
    ) {
        let mut line = Line::new(vec![config("fixed", 2); 3], vec![Fate::Lost]);
        line.send(400, HANDLE);
        line.run_until(|line| line.log.len() == 1);
        for (kind, tag, mut frame) in frames {
            frame.splice(0..0, [0xe8 | kind << 1, tag]);
            let source = node(2 * usize::from(tag % 2));
            let (payload, destination) = (&frame[..], Some(node(1)));
            *line.copies.entry(HANDLE).or_default() += 1;
            line.input(1, Input::Frame { payload, source, destination, handle: HANDLE });
            let buffer = line.nodes[1].packet_buffer().total();
            prop_assert!(buffer <= Config::default().packet_buffer_octets);
        }
    }
}
