//! What a node takes from beacons, while it joins and afterwards, and which frames set its clock.

use lowmesh_units::{Channel, PanId};
use lowmesh_wire::ie::{LinkSpec, SlotframeSpec, TschBeacon};

use super::*;
use crate::tsch::hopping::HoppingSequence;

const C: Eui64 = NodeId(2).eui64();
const D: Eui64 = NodeId(3).eui64();
const PAN: PanId = PanId(0xabcd);

/// A node that scans.
fn scanning(config: Config) -> Tsch {
    let mut mac = Tsch::new(config, B, Rng::stream(Seed(5), NodeId(1), Purpose::Mac));
    mac.handle(Instant::ZERO, Input::Start(Start::Scan)).expect("it is off");
    mac
}

fn beacon(asn: u64, join_metric: u8) -> TschBeacon {
    let link = LinkSpec { slot: 4, channel_offset: 2, options: 0x1f };
    let links = Vec::from([link, LinkSpec { slot: 13, ..link }]);
    let slotframe = SlotframeSpec { handle: 0, length: 13, links };
    let asn = Asn(asn);
    let slotframes = Vec::from([slotframe.clone(), SlotframeSpec { length: 0, ..slotframe }]);
    TschBeacon { asn, join_metric, timeslot_id: 0, hopping_id: 0, slotframes }
}

/// A beacon in the slot with its number, of a network that began at 0.
fn hear(mac: &mut Tsch, source: Eui64, beacon: &TschBeacon, rssi: Dbm) {
    let octets = frame::beacon(PAN, source, 1, beacon);
    let slot_start = Instant::ZERO + Duration::from_millis(10) * beacon.asn.0;
    let handle = Handle::NONE;
    mac.receive(slot_start, Reception { octets: &octets, rssi, late_micros: 0, handle });
}

const NEAR: Dbm = Dbm(-50.0);

#[test]
fn a_joining_node_installs_the_slotframes_and_cells_of_the_beacon() {
    let mut mac = scanning(Config::default());
    hear(&mut mac, A, &beacon(500, 0), NEAR);
    assert_eq!(mac.time_source(), Some(A));
    let schedule = mac.schedule();
    assert_eq!(schedule.slotframes().map(|s| (s.handle, s.length)).collect::<Vec<_>>(), [(0, 13)]);
    let cells: Vec<_> = schedule.cells().map(|c| (c.placement, c.options, c.peer)).collect();
    let placement = Placement::Fixed { slot: 4, channel_offset: 2 };
    assert_eq!(cells, [(placement, CellOptions::ALL, None)]);
    // It listens where the beacon says.
    let slot = mac.slot_start(Asn(13 * 40 + 4));
    assert_eq!(mac.listens(slot), Some(HoppingSequence::sixteen().channel(Asn(13 * 40 + 4), 2)));
}

#[test]
fn the_numbers_of_timeslots_and_channels_are_the_standards_or_ones_own() {
    let one = Channel::new(26).expect("of the band");
    let hopping = HoppingSequence::new(Vec::from([one])).expect("not empty");
    let config = Config { hopping: hopping.clone(), ..Config::default() };
    let joins = |hopping_id, timeslot_id| {
        let mut mac = scanning(config.clone());
        hear(&mut mac, A, &TschBeacon { hopping_id, timeslot_id, ..beacon(500, 0) }, NEAR);
        mac.is_synchronised().then(|| mac.listens(mac.slot_start(Asn(524)))).flatten()
    };
    assert_eq!(joins(0, 0), Some(HoppingSequence::sixteen().channel(Asn(524), 2)));
    assert_eq!(joins(1, 0), Some(one));
    assert_eq!((joins(2, 0), joins(0, 1)), (None, None), "nobody told it what these are");
    // Its own beacons say the same.
    let mut pair = Pair::between([A, B], &config).join();
    assert!(pair.macs[1].is_synchronised());
    pair.send(1, A, 1);
    pair.run(Duration::from_secs(1));
    assert!(pair.outputs[0].iter().any(|o| matches!(o, Output::Received { .. })));
}

#[test]
fn a_node_waits_for_several_neighbours_and_takes_the_time_of_the_nearest_to_the_root() {
    let config = Config { join_neighbours: 3, ..Config::default() };
    let mut mac = scanning(config);
    hear(&mut mac, A, &beacon(500, 3), NEAR);
    hear(&mut mac, C, &beacon(800, 1), Dbm(-90.0));
    hear(&mut mac, A, &beacon(900, 3), NEAR);
    assert!(!mac.is_synchronised(), "two of three");
    hear(&mut mac, NodeId(7).eui64(), &beacon(1000, 1), Dbm(-80.0));
    assert_eq!(mac.time_source(), Some(NodeId(7).eui64()), "of equal metrics the stronger one");
    assert_eq!(mac.asn(Instant::from_secs(20)), Asn(2000));
}

#[test]
fn a_node_with_one_neighbour_joins_when_it_has_waited_long_enough() {
    let mut mac = scanning(Config { join_neighbours: 2, ..Config::default() });
    for second in [10, 100, 189] {
        hear(&mut mac, A, &beacon(second * 100, 0), NEAR);
        assert!(!mac.is_synchronised());
    }
    hear(&mut mac, A, &beacon(19_000, 0), NEAR);
    assert_eq!(mac.time_source(), Some(A));
}

#[test]
fn a_beacon_of_the_time_source_with_another_slot_number_ends_the_membership() {
    let mut mac = scanning(Config::default());
    hear(&mut mac, A, &beacon(500, 0), NEAR);
    let slot = 13 * 50 + 4;
    hear(&mut mac, A, &beacon(slot, 0), NEAR);
    assert!(mac.is_synchronised());
    let late = |mac: &mut Tsch, source| {
        let octets = frame::beacon(PAN, source, 1, &beacon(77, 0));
        let (rssi, handle) = (NEAR, Handle::NONE);
        let heard = Reception { octets: &octets, rssi, late_micros: 0, handle };
        mac.receive(mac.slot_start(Asn(slot + 13)), heard);
        core::iter::from_fn(|| mac.poll_output()).any(|output| output == Output::Desynchronised)
    };
    assert!(!late(&mut mac, C), "it may be of another network");
    assert!(late(&mut mac, A));
    assert!(!mac.is_synchronised());
    assert_eq!(mac.schedule().slotframes().count(), 0);
    hear(&mut mac, A, &beacon(5000, 0), NEAR);
    assert!(mac.is_synchronised(), "it joins again");
}

#[test]
fn the_clock_follows_frames_for_this_node_in_cells_that_keep_the_time() {
    let corrected = |timekeeping: bool, to: Option<Eui64>| {
        let mut mac = scanning(Config::default());
        let options = if timekeeping { 0x0f } else { 0x07 };
        let mut told = beacon(500, 0);
        told.slotframes[0].links[0].options = options;
        hear(&mut mac, A, &told, NEAR);
        let octets = frame::data(PAN, A, to, 9, Content::Payload(&[0x41]));
        let (rssi, handle) = (NEAR, Handle::NONE);
        let heard = Reception { octets: &octets, rssi, late_micros: 100, handle };
        mac.receive(mac.slot_start(Asn(524)), heard);
        core::iter::from_fn(|| mac.poll_output()).any(|o| matches!(o, Output::AdjustClock { .. }))
    };
    assert!(corrected(true, Some(B)) && corrected(true, None));
    assert!(!corrected(true, Some(C)), "overheard");
    assert!(!corrected(false, Some(B)) && !corrected(false, None));
}

#[test]
fn a_nearer_neighbour_stands_in_for_a_time_source_that_does_not_answer() {
    let mut mac = scanning(Config::default());
    hear(&mut mac, A, &beacon(500, 2), NEAR);
    let now = mac.slot_start(Asn(504));
    mac.handle(now, Input::SetBeacons(Some(3))).expect("in a network");
    // A beacon in the shared cell after so many seconds, and who gives the time then.
    let after = |mac: &mut Tsch, seconds: u64, source, join_metric| {
        let slot = 13 * (seconds * 100 / 13) + 4;
        hear(mac, source, &beacon(slot, join_metric), NEAR);
        mac.time_source()
    };
    assert_eq!(after(&mut mac, 25, C, 2), Some(A), "it may be bad luck");
    assert_eq!(after(&mut mac, 30, C, 3), Some(A), "C may take the time from this node");
    assert_eq!(after(&mut mac, 31, C, 2), Some(C));
    assert_eq!(after(&mut mac, 40, A, 2), Some(A), "it is back");
    assert_eq!(after(&mut mac, 50, C, 2), Some(A));
    assert_eq!(after(&mut mac, 70, C, 2), Some(C));
    assert_eq!(after(&mut mac, 75, C, 3), Some(A), "C is not nearer any more");
    assert_eq!(after(&mut mac, 76, C, u8::MAX), Some(A), "and has no parent itself");
    mac.handle(Instant::from_secs(77), Input::SetBeacons(Some(9))).expect("in a network");
    assert_eq!(
        after(&mut mac, 100, C, 8),
        Some(A),
        "this node was nearer once, and C may not know better"
    );
    assert_eq!(after(&mut mac, 101, C, 2), Some(C));
    mac.handle(Instant::from_secs(102), Input::SetTimeSource(D)).expect("in a network");
    assert_eq!(mac.time_source(), Some(D), "the upper layer has chosen");
}

/// A beacon of a network that began at `origin`, heard at once.
fn hear_of(mac: &mut Tsch, origin: Instant, asn: u64) -> Instant {
    let octets = frame::beacon(PAN, A, 1, &beacon(asn, 0));
    let slot_start = origin + Duration::from_millis(10) * asn;
    let (rssi, late_micros, handle) = (NEAR, 0, Handle::NONE);
    mac.receive(slot_start, Reception { octets: &octets, rssi, late_micros, handle });
    slot_start
}

#[test]
fn slot_numbers_of_a_network_that_a_node_left_mean_nothing_in_the_next() {
    let mut mac = scanning(Config::default());
    let mut now = hear_of(&mut mac, Instant::ZERO, 1_000_000);
    let send = |mac: &mut Tsch, now| {
        let content = Content::Payload(&[0x41]);
        let (destination, priority) = (Some(A), Priority::Data);
        let input = Input::Send { destination, content, priority, handle: Handle::NONE };
        mac.handle(now, input).expect("acceptable");
    };
    send(&mut mac, now);
    // Nobody answers in the shared cell, so the node backs off.
    for _ in 0..5 {
        now = mac.next_transmission().expect("a frame waits");
        mac.transmit(now).expect("it is due");
        mac.finish(now, None);
    }
    mac.handle(now, Input::Leave).expect("acceptable");
    let origin = now + Duration::from_secs(60);
    let joined = hear_of(&mut mac, origin, 500);
    assert_eq!(mac.asn(joined), Asn(500));
    send(&mut mac, joined);
    let next = mac.next_transmission().expect("a frame waits");
    assert!(next.since(joined) < Duration::from_secs(1), "{next}");
    let later = joined + Duration::from_secs(100);
    let listened = mac.radio_time(later).rx - mac.radio_time(joined).rx;
    // One cell in 13 slots.
    let slots = listened.as_nanos() / RX_WAIT.as_nanos();
    assert!((768..=770).contains(&slots), "{slots} slots");
}

#[test]
fn a_node_that_was_given_other_channels_scans_and_joins_on_them() {
    let mut mac = scanning(Config::default());
    hear(&mut mac, A, &beacon(500, 0), NEAR);
    let one = Channel::new(26).expect("of the band");
    mac.set_hopping(HoppingSequence::new(Vec::from([one])).expect("not empty"));
    let now = mac.slot_start(Asn(600));
    mac.handle(now, Input::ScheduleChanged).expect("acceptable");
    mac.handle(now, Input::Leave).expect("acceptable");
    assert_eq!(mac.listens(now), Some(one));
    hear(&mut mac, A, &TschBeacon { hopping_id: 1, ..beacon(700, 0) }, NEAR);
    assert_eq!(mac.listens(mac.slot_start(Asn(13 * 60 + 4))), Some(one));
}
