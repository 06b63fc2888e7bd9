//! Two MACs on one air, slot by slot.

use lowmesh_machine::{DropReason, Handle, Machine};
use lowmesh_units::{Asn, Dbm, Duration, Eui64, Instant, NodeId, Purpose, Rng, Seed};

use super::cell::{CellKind, CellOptions, CellSpec, Placement};
use super::{Input, Output, Reception, Tsch};
use crate::config::Config;
use crate::frame::Content;
use crate::queue::Priority;

const A: Eui64 = NodeId(0).eui64();
const B: Eui64 = NodeId(1).eui64();

struct Pair {
    now: Instant,
    macs: [Tsch; 2],
    outputs: [Vec<Output>; 2],
    /// May frames (not acknowledgements) of each pass?
    open: [bool; 2],
}

impl Pair {
    fn new() -> Self {
        Self::with_bursts(0)
    }
    fn with_bursts(burst_frames_max: u8) -> Self {
        let mac = |node: u16| {
            let rng = Rng::stream(Seed(5), NodeId(node), Purpose::Mac);
            // One beacon in sixteen meets the channel that a scanning node listens on.
            let eb_period = Duration::from_secs(2);
            let config = Config { burst_frames_max, eb_period, ..Config::default() };
            Tsch::new(config, NodeId(node).eui64(), rng)
        };
        let mut pair = Self {
            now: Instant::ZERO,
            macs: [mac(0), mac(1)],
            outputs: [Vec::new(), Vec::new()],
            open: [true, true],
        };
        pair.tell(0, Input::Start { coordinator: true });
        pair.tell(1, Input::Start { coordinator: false });
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
        schedule.add_slotframe(0, 11).expect("new");
        let options = CellOptions::TX.with(CellOptions::RX).with(CellOptions::SHARED);
        let placement = Placement::Fixed { slot: 0, channel_offset: 0 };
        let kind = CellKind::Minimal;
        let spec = CellSpec { slotframe: 0, placement, options, kind, peer: None };
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
    // A name that nobody knows changes nothing.
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
