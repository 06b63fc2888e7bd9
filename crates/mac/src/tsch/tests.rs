//! Two MACs on one air, slot by slot.

use lowmesh_machine::{DropReason, Handle, Machine};
use lowmesh_units::{Asn, Dbm, Duration, Eui64, Instant, NodeId, Purpose, Rng, Seed, ShortAddr};
use lowmesh_wire::ieee802154::{Address, Frame};

use super::cell::{CellKind, CellOptions, CellSpec, Placement};
use super::{Input, Output, Reception, Start, Tsch};
use crate::config::Config;
use crate::frame::{self, Content, airtime};
use crate::params::{ACK_WAIT, RX_WAIT, TURNAROUND, TX_OFFSET};
use crate::queue::Priority;

mod gone;
mod joining;
mod negative;
mod resuming;

const A: Eui64 = NodeId(0).eui64();
const B: Eui64 = NodeId(1).eui64();

struct Pair {
    now: Instant,
    macs: [Tsch; 2],
    outputs: [Vec<Output>; 2],
    /// May frames (not acknowledgements) of each pass?
    open: [bool; 2],
}

const OPTIONS: CellOptions = CellOptions::ALL;

impl Pair {
    fn new() -> Self {
        Self::with_bursts(0)
    }
    fn with_bursts(burst_frames_max: u8) -> Self {
        Self::between([A, B], &Config { burst_frames_max, ..Config::default() })
    }
    fn between(addresses: [Eui64; 2], config: &Config) -> Self {
        let mac = |node: u16| {
            let rng = Rng::stream(Seed(5), NodeId(node), Purpose::Mac);
            // One beacon in sixteen meets the channel that a scanning node listens on.
            let config = Config { eb_period: Duration::from_secs(2), ..config.clone() };
            Tsch::new(config, addresses[usize::from(node)], rng)
        };
        let mut pair = Self {
            now: Instant::ZERO,
            macs: [mac(0), mac(1)],
            outputs: [Vec::new(), Vec::new()],
            open: [true, true],
        };
        pair.tell(0, Input::Start(Start::New));
        pair.tell(1, Input::Start(Start::Scan));
        pair.install(0);
        pair.tell(0, Input::SetBeacons(Some(0)));
        pair
    }
    fn tell(&mut self, who: usize, input: Input<'_>) {
        self.macs[who].handle(self.now, input).expect("acceptable");
        self.drain();
    }
    fn install(&mut self, who: usize) {
        let schedule = self.macs[who].schedule_mut(self.now);
        if schedule.slotframe(0).is_some() {
            // The beacon told of it.
            return;
        }
        schedule.add_slotframe(0, 11).expect("new");
        let placement = Placement::Fixed { slot: 0, channel_offset: 0 };
        let kind = CellKind::Minimal;
        let spec = CellSpec { slotframe: 0, placement, options: OPTIONS, kind, peer: None };
        schedule.add(Asn(0), spec).expect("fits");
        self.tell(who, Input::ScheduleChanged);
    }
    fn drain(&mut self) {
        for (mac, outputs) in self.macs.iter_mut().zip(&mut self.outputs) {
            outputs.extend(core::iter::from_fn(|| mac.poll_output()));
        }
    }
    fn send(&mut self, who: usize, to: Eui64, handle: u64) {
        let content = Content::Payload(&[0x41, 1, 2, 3]);
        let (priority, handle) = (Priority::Data, Handle(handle));
        self.tell(who, Input::Send { destination: Some(to), content, priority, handle });
    }
    /// Runs slot by slot, as a device would.
    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.slot();
            self.now += Duration::from_millis(10);
            for who in 0..2 {
                if self.macs[who].next_deadline().is_some_and(|due| due <= self.now) {
                    self.tell(who, Input::Deadline);
                }
            }
        }
    }
    fn slot(&mut self) {
        let sending = |mac: &Tsch| mac.next_transmission() == Some(self.now);
        let senders: Vec<usize> = (0..2).filter(|who| sending(&self.macs[*who])).collect();
        let [from] = senders[..] else {
            for who in senders {
                self.macs[who].transmit(self.now);
                self.macs[who].finish(self.now, None);
            }
            return self.drain();
        };
        let Some(frame) = self.macs[from].transmit(self.now) else { return };
        let to = 1 - from;
        let heard = self.open[from] && self.macs[to].listens(self.now) == Some(frame.channel);
        let reception =
            |octets| Reception { octets, rssi: Dbm(-70.0), late_micros: 0, handle: frame.handle };
        let ack =
            heard.then(|| self.macs[to].receive(self.now, reception(&frame.octets))).flatten();
        self.macs[from].finish(self.now, ack.as_deref().map(reception));
        self.drain();
    }
    fn joined() -> Self {
        Self::new().join()
    }
    /// Joined, without beacons, and with nothing in the queues.
    fn quiet(self) -> Self {
        let mut pair = self.join();
        pair.tell(0, Input::SetBeacons(None));
        pair.run(Duration::from_secs(1));
        pair.outputs = [Vec::new(), Vec::new()];
        pair
    }
    fn join(self) -> Self {
        let mut pair = self;
        pair.run(Duration::from_secs(120));
        assert!(pair.macs[1].is_synchronised());
        pair.install(1);
        pair.outputs = [Vec::new(), Vec::new()];
        pair
    }
}

#[test]
fn a_scanning_node_joins_from_a_beacon_and_agrees_on_the_slot() {
    let pair = Pair::joined();
    assert_eq!(pair.macs[1].time_source(), Some(A));
    assert_eq!(pair.macs[1].asn(pair.now), pair.macs[0].asn(pair.now));
}

#[test]
fn a_frame_arrives_once_and_is_confirmed() {
    let mut pair = Pair::joined();
    pair.send(1, A, 42);
    pair.run(Duration::from_secs(1));
    let received: Vec<&Output> =
        pair.outputs[0].iter().filter(|o| matches!(o, Output::Received { .. })).collect();
    assert!(matches!(received[..], [Output::Received { source: B, broadcast: false, .. }]));
    let confirmed = |o: &Output| {
        *o == Output::Sent { handle: Handle(42), destination: Some(A), transmissions: 1 }
    };
    assert!(pair.outputs[1].iter().any(confirmed));
}

#[test]
fn without_an_answer_a_frame_is_given_up_after_all_retries() {
    let mut pair = Pair::joined();
    pair.open[1] = false;
    pair.send(1, A, 7);
    pair.run(Duration::from_secs(100));
    let dropped = pair.outputs[1].iter().find_map(|o| match o {
        Output::Dropped { dropped, .. } if dropped.handle == Handle(7) => Some(dropped.reason),
        _ => None,
    });
    assert_eq!(dropped, Some(DropReason::NoAck));
    assert_eq!(pair.macs[1].schedule().cells().map(|c| c.used.acked).sum::<u32>(), 0);
}

#[test]
fn a_withdrawn_frame_is_not_sent_and_the_others_are() {
    let mut pair = Pair::new().quiet();
    pair.send(1, A, 7);
    pair.send(1, A, 8);
    pair.tell(1, Input::Withdraw(Handle(7)));
    // An unknown handle changes nothing.
    pair.tell(1, Input::Withdraw(Handle(70)));
    pair.outputs = [Vec::new(), Vec::new()];
    pair.run(Duration::from_secs(2));
    let sent = pair.outputs[1].iter().filter_map(|output| match output {
        Output::Sent { handle, .. } => Some(handle.0),
        _ => None,
    });
    assert_eq!(sent.collect::<Vec<_>>(), [8]);
    pair.send(1, A, 9);
    pair.outputs = [Vec::new(), Vec::new()];
    pair.tell(1, Input::Withdraw(Handle(9)));
    assert_eq!(pair.outputs[1], [Output::QueueEmpty(A)]);
    assert_eq!(pair.macs[1].queues().held(), 0);
}

#[test]
fn silence_of_the_time_source_ends_in_scanning_again() {
    let mut pair = Pair::joined();
    pair.open = [false, false];
    pair.run(Duration::from_secs(130));
    assert!(!pair.macs[1].is_synchronised());
    assert!(pair.outputs[1].contains(&Output::Desynchronised));
    assert_eq!(pair.macs[1].schedule().cells().count(), 0);
    pair.open = [true, true];
    pair.run(Duration::from_secs(120));
    assert!(pair.macs[1].is_synchronised());
}

#[test]
fn a_node_that_leaves_the_network_forgets_its_links() {
    let mut pair = Pair::joined();
    pair.open[1] = false;
    pair.send(1, A, 1);
    pair.run(Duration::from_secs(20));
    let link = |pair: &Pair| pair.macs[1].links().get(A).copied();
    let before = link(&pair).expect("beacons were heard");
    assert!(before.samples > 0);
    pair.tell(1, Input::Leave);
    assert_eq!(link(&pair), None);
    pair.open[1] = true;
    let mut pair = pair.join();
    pair.run(Duration::from_secs(10));
    let after = link(&pair).expect("a beacon was heard");
    assert_eq!(after.samples, 0);
    assert!(after.etx < before.etx);
}

#[test]
fn keepalives_keep_a_silent_link_in_step() {
    let mut pair = Pair::joined();
    // No more beacons: only what the node asks for itself keeps it.
    pair.tell(0, Input::SetBeacons(None));
    pair.run(Duration::from_secs(600));
    assert!(pair.macs[1].is_synchronised());
    assert!(!pair.outputs[1].contains(&Output::Desynchronised));
}

#[test]
fn asking_slot_by_slot_and_asking_the_schedule_give_the_same_radio_time() {
    let mut pair = Pair::joined();
    let before = pair.macs[0].radio_time(pair.now);
    pair.tell(0, Input::SetBeacons(None));
    pair.run(Duration::from_secs(11));
    // 1,100 slots, one in eleven listened in; each listening costs the receive window.
    let spent = pair.macs[0].radio_time(pair.now).rx - before.rx;
    let idle = Duration::from_micros(2_200) * 100;
    assert!(spent.abs_diff(idle) < Duration::from_millis(12), "{spent}");
}

#[test]
fn a_frame_for_an_unsynchronised_mac_is_dropped_with_its_reason() {
    let mut pair = Pair::new();
    pair.send(1, A, 9);
    let last = pair.outputs[1].last().cloned();
    let Some(Output::Dropped { dropped, .. }) = last else { panic!("not dropped: {last:?}") };
    assert_eq!((dropped.handle, dropped.reason), (Handle(9), DropReason::NotJoined));
}

/// How many of five frames that wait for one neighbour are there after one slotframe.
fn arrived_in_one_slotframe(burst_frames_max: u8) -> usize {
    let mut pair = Pair::with_bursts(burst_frames_max).quiet();
    for handle in 1..=5 {
        pair.send(1, A, handle);
    }
    pair.run(Duration::from_millis(110));
    pair.outputs[0].iter().filter(|o| matches!(o, Output::Received { .. })).count()
}

#[test]
fn frames_for_one_neighbour_follow_each_other_up_to_the_bound_of_a_burst() {
    assert_eq!([0, 1, 2, 3, 32].map(arrived_in_one_slotframe), [1, 1, 2, 3, 5]);
}

#[test]
fn only_the_first_frame_of_a_burst_is_use_of_its_cell() {
    let mut pair = Pair::with_bursts(8).quiet();
    let before = pair.macs.each_ref().map(|mac| mac.schedule().cells().next().map(|c| c.used));
    for handle in 1..=3 {
        pair.send(1, A, handle);
    }
    pair.run(Duration::from_millis(110));
    let [at_a, at_b] = [0, 1].map(|who| {
        let used = pair.macs[who].schedule().cells().next().map(|c| c.used).expect("the cell");
        let old = before[who].expect("the cell");
        [used.sent - old.sent, used.acked - old.acked, used.received - old.received]
    });
    assert_eq!((at_a, at_b), ([0, 0, 1], [1, 1, 0]));
}

#[test]
fn a_burst_ends_with_the_frame_that_gets_no_answer() {
    let mut pair = Pair::with_bursts(8).quiet();
    pair.open[1] = false;
    pair.send(1, A, 1);
    pair.send(1, A, 2);
    let first = pair.macs[1].next_transmission().expect("there is a cell");
    pair.run(first.since(pair.now) + Duration::from_millis(10));
    let next = pair.macs[1].next_transmission().expect("it tries again");
    assert!(next > pair.now + Duration::from_millis(50), "the cell comes again, no slot before");
}

#[test]
fn staying_on_for_a_burst_costs_radio_time() {
    let mut pair = Pair::with_bursts(8).quiet();
    pair.send(1, A, 1);
    pair.send(1, A, 2);
    let first = pair.macs[1].next_transmission().expect("there is a cell");
    pair.run(first.since(pair.now) + Duration::from_millis(10));
    // The second frame does not come through: the receiver listened for it in vain.
    pair.open[1] = false;
    let before = pair.macs[0].radio_time(pair.now).rx;
    pair.run(Duration::from_millis(10));
    assert_eq!(pair.macs[0].listens(pair.now), None, "the burst is over");
    let idle = pair.macs[0].radio_time(pair.now).rx - before;
    assert!(idle < Duration::from_millis(1), "the wait was counted when the burst began: {idle}");
}

/// The acknowledgements of `tests/vectors/mac/enhanced_ack.txt`: correction in microseconds, octets.
fn acknowledgements() -> Vec<(i32, Vec<u8>)> {
    let file = include_str!("../../../../tests/vectors/mac/enhanced_ack.txt");
    let rows = file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let (micros, hex) = row.split_once(' ').expect("two columns");
        let octet = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex digits");
        (micros.parse().expect("a number"), (0..hex.len()).step_by(2).map(octet).collect())
    })
    .collect()
}

#[test]
fn another_stacks_acknowledgement_of_an_early_frame_moves_the_clock_back() {
    let [peer, me] = [1, 2].map(|last| Eui64([0xc1, 0x0c, 0, 0, 0, 0, 0, last]));
    let vectors = acknowledgements();
    assert_eq!(vectors.len(), 2);
    for (micros, octets) in vectors {
        let mut pair = Pair::between([peer, me], &Config::default()).quiet();
        pair.macs[1].sender.sequence = 0;
        pair.send(1, peer, 7);
        let slot = pair.macs[1].next_transmission().expect("there is a cell");
        let frame = pair.macs[1].transmit(slot).expect("a frame waits");
        assert_eq!((frame.octets[2], micros), (1, 214));
        let (rssi, handle) = (Dbm(-70.0), Handle::NONE);
        let ack = Reception { octets: &octets, rssi, late_micros: 0, handle };
        pair.macs[1].finish(slot, Some(ack));
        pair.drain();
        // The frame came 214 us early: this node's clock is ahead by as much.
        assert!(pair.outputs[1].contains(&Output::AdjustClock { micros: -micros }));
        let handle = Handle(7);
        let sent = Output::Sent { handle, destination: Some(peer), transmissions: 1 };
        assert!(pair.outputs[1].contains(&sent));
    }
}

#[test]
fn the_acknowledgement_of_a_late_frame_asks_its_sender_to_send_earlier() {
    let mut pair = Pair::joined();
    pair.send(1, A, 7);
    let slot = pair.macs[1].next_transmission().expect("there is a cell");
    let frame = pair.macs[1].transmit(slot).expect("a frame waits");
    let (rssi, handle) = (Dbm(-70.0), Handle::NONE);
    let late = Reception { octets: &frame.octets, rssi, late_micros: 300, handle };
    let ack = pair.macs[0].receive(slot, late).expect("it is for this node");
    let frame = Frame::parse(&ack).expect("own frame");
    assert_eq!(frame.header_ies.time_correction().map(|c| c.micros), Some(-300));
    pair.macs[1].finish(slot, Some(Reception { octets: &ack, rssi, late_micros: 0, handle }));
    pair.drain();
    // Its clock was behind.
    assert!(pair.outputs[1].contains(&Output::AdjustClock { micros: 300 }));
}

#[test]
fn success_in_a_dedicated_cell_ends_the_backoff_only_with_the_last_frame() {
    let mut pair = Pair::new().quiet();
    let cells = [
        (1, 3, CellOptions::TX, A),
        (0, 3, CellOptions::RX, B),
        // Nobody listens in the shared one.
        (1, 5, CellOptions::TX.with(CellOptions::SHARED), A),
    ];
    for (who, slot, options, peer) in cells {
        let placement = Placement::Fixed { slot, channel_offset: 0 };
        let (kind, peer) = (CellKind::Negotiated, Some(peer));
        let spec = CellSpec { slotframe: 0, placement, options, kind, peer };
        let asn = pair.macs[who].asn(pair.now);
        pair.macs[who].schedule_mut(pair.now).add(asn, spec).expect("fits");
        pair.tell(who, Input::ScheduleChanged);
    }
    pair.open[1] = false;
    (1..=3).for_each(|handle| pair.send(1, A, handle));
    pair.run(Duration::from_millis(110));
    let until = |pair: &Pair| pair.macs[1].queues().get(Some(A)).map(|q| q.backoff.until);
    let backed_off = until(&pair);
    assert!(backed_off > Some(Asn(0)), "the shared cell failed");
    pair.open[1] = true;
    let sent = |pair: &Pair, handle| {
        let is = |o: &Output| matches!(o, Output::Sent { handle: h, .. } if *h == Handle(handle));
        pair.outputs[1].iter().any(is)
    };
    while !sent(&pair, 1) {
        pair.run(Duration::from_millis(10));
    }
    assert!(until(&pair) >= backed_off, "two frames wait");
    pair.run(Duration::from_millis(220));
    assert!(sent(&pair, 3));
    assert_eq!(until(&pair), Some(Asn(0)), "nothing waits");
}

#[test]
fn a_frame_given_up_leaves_the_backoff_as_it_is() {
    let mut pair = Pair::joined();
    pair.open[1] = false;
    pair.send(1, A, 7);
    pair.run(Duration::from_secs(100));
    let given_up =
        |o: &Output| matches!(o, Output::Dropped { dropped, .. } if dropped.handle == Handle(7));
    assert!(pair.outputs[1].iter().any(given_up));
    assert!(pair.macs[1].queues().get(Some(A)).is_some_and(|q| q.backoff.until > Asn(0)));
}

/// Slots between two broadcasts of a node that has one neighbour and a minimal cell in each eleventh slot.
fn gaps_of_broadcasts(broadcast_spacing: u8) -> Vec<u64> {
    let config = Config { broadcast_spacing, queue_per_neighbour: 16, ..Config::default() };
    let mut pair = Pair::between([A, B], &config).quiet();
    for handle in 1..=12 {
        let (priority, handle) = (Priority::Data, Handle(handle));
        let content = Content::Payload(&[0x41]);
        pair.tell(1, Input::Send { destination: None, content, priority, handle });
    }
    let mut sent = Vec::new();
    for _ in 0..1200 {
        pair.outputs[1].clear();
        pair.run(Duration::from_millis(10));
        if pair.outputs[1].iter().any(|o| matches!(o, Output::Sent { destination: None, .. })) {
            sent.push(pair.macs[1].asn(pair.now).0);
        }
    }
    assert_eq!(sent.len(), 12);
    sent.windows(2).map(|two| two[1] - two[0]).collect()
}

#[test]
fn a_node_sends_broadcasts_in_one_of_three_minimal_cells_for_each_neighbour_and_itself() {
    let gaps = gaps_of_broadcasts(3);
    assert!(gaps.iter().all(|gap| (4 * 11..=8 * 11).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().any(|gap| *gap != gaps[0]), "drawn for each");
    assert!(gaps_of_broadcasts(0).iter().all(|gap| *gap == 11));
}

#[test]
fn a_lost_frame_keeps_the_radio_on_as_long_as_a_received_one() {
    let receiving = |lost: bool| {
        let mut pair = Pair::new().quiet();
        pair.send(1, A, 1);
        let slot = pair.macs[1].next_transmission().expect("there is a cell");
        let frame = pair.macs[1].transmit(slot).expect("a frame waits");
        let before = pair.macs[0].radio_time(slot);
        if lost {
            pair.macs[0].lose(frame.octets.len());
        } else {
            let (octets, rssi, handle) = (&frame.octets, Dbm(-70.0), Handle::NONE);
            pair.macs[0].receive(slot, Reception { octets, rssi, late_micros: 0, handle });
        }
        let after = pair.macs[0].radio_time(slot + Duration::from_millis(10));
        (after.rx - before.rx, after.tx - before.tx, airtime(frame.octets.len()))
    };
    let (lost, nothing, frame) = receiving(true);
    assert_eq!((lost, nothing), (RX_WAIT / 2 + frame, Duration::ZERO));
    // An answer takes a turn of the radio and its own time.
    let (received, answer, _) = receiving(false);
    assert_eq!(received, lost + TURNAROUND);
    assert_eq!(answer, airtime(frame::ack(B, Some(1), 0, false).len()));
}

#[test]
fn a_lost_acknowledgement_keeps_the_radio_on_to_its_end() {
    let waiting = |lost: Option<usize>| {
        let mut pair = Pair::new().quiet();
        pair.send(1, A, 1);
        let slot = pair.macs[1].next_transmission().expect("there is a cell");
        let before = pair.macs[1].radio_time(slot).rx;
        pair.macs[1].transmit(slot).expect("a frame waits");
        if let Some(octets) = lost {
            pair.macs[1].lose(octets);
        }
        pair.macs[1].finish(slot, None);
        pair.macs[1].radio_time(slot + Duration::from_millis(10)).rx - before
    };
    assert_eq!(waiting(None), TURNAROUND + ACK_WAIT);
    assert_eq!(waiting(Some(17)), TURNAROUND + ACK_WAIT / 2 + airtime(17));
}

#[test]
fn a_scan_counts_the_radio_time_of_what_it_hears_once() {
    let mut pair = Pair::new();
    let start = pair.now;
    while !pair.macs[1].is_synchronised() {
        pair.run(Duration::from_millis(10));
    }
    let slot = pair.now - Duration::from_millis(10);
    let beacon = pair.macs[1].radio_time(slot).rx - slot.since(start);
    // The one that it joined from, which began in that slot.
    assert!(beacon > TX_OFFSET && beacon < Duration::from_millis(7), "{beacon}");
}

#[test]
fn nodes_with_short_addresses_join_and_exchange_frames_that_are_acknowledged() {
    let addresses = [1, 2].map(|node| ShortAddr(node).eui64());
    let mut pair = Pair::between(addresses, &Config::default()).quiet();
    assert_eq!(pair.macs[1].time_source(), Some(addresses[0]));
    for (who, to) in [(1, 0), (0, 1)] {
        pair.send(who, addresses[to], 42);
        pair.run(Duration::from_secs(2));
        let destination = Some(addresses[to]);
        let sent = Output::Sent { handle: Handle(42), destination, transmissions: 1 };
        assert!(pair.outputs[who].contains(&sent), "{:?}", pair.outputs[who]);
        let from =
            |o: &Output| matches!(o, Output::Received { source, .. } if *source == addresses[who]);
        assert!(pair.outputs[to].iter().any(from));
    }
}

#[test]
fn a_node_is_reached_under_its_short_address_beside_its_eui_64() {
    let mine = ShortAddr(7);
    let config = Config { short: Some(mine), ..Config::default() };
    let mut pair = Pair::between([A, B], &config).quiet();
    let slot = pair.macs[1].next_transmission();
    assert_eq!(slot, None, "nothing waits");
    let content = Content::Payload(&[0x41]);
    for (from, to) in [(ShortAddr(9).eui64(), mine.eui64()), (ShortAddr(9).eui64(), B)] {
        let octets = frame::data(config.pan, from, Some(to), to.0[7], content);
        let (rssi, handle) = (Dbm(-70.0), Handle::NONE);
        let heard = Reception { octets: &octets, rssi, late_micros: 0, handle };
        let ack = pair.macs[1].receive(pair.now, heard).expect("it is for this node");
        let header = Frame::parse(&ack).expect("own frame").header;
        assert_eq!(header.destination, Some(Address::Short(ShortAddr(9))));
        pair.run(Duration::from_millis(10));
    }
    let elsewhere = frame::data(config.pan, A, Some(ShortAddr(8).eui64()), 3, content);
    let (rssi, handle) = (Dbm(-70.0), Handle::NONE);
    let heard = Reception { octets: &elsewhere, rssi, late_micros: 0, handle };
    assert_eq!(pair.macs[1].receive(pair.now, heard), None);
}

#[test]
fn a_frame_without_a_sequence_number_is_delivered_and_acknowledged_without_one() {
    let mut pair = Pair::new().quiet();
    let with = frame::data(Config::default().pan, A, Some(B), 9, Content::Payload(&[0x41]));
    // Bit 8 of the frame control field says that the number is not there.
    let mut octets = vec![with[0], with[1] | 1];
    octets.extend_from_slice(&with[3..]);
    let (rssi, handle) = (Dbm(-70.0), Handle::NONE);
    let heard = Reception { octets: &octets, rssi, late_micros: 0, handle };
    let ack = pair.macs[1].receive(pair.now, heard).expect("it is for this node");
    let header = Frame::parse(&ack).expect("own frame").header;
    assert_eq!((header.sequence, header.destination), (None, Some(Address::Extended(A))));
    pair.drain();
    assert!(pair.outputs[1].iter().any(|o| matches!(o, Output::Received { source: A, .. })));
}
