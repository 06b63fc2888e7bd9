//! A coordinator that lost its memory.

use lowmesh_units::PanId;
use lowmesh_wire::ie::TschBeacon;

use super::*;

const SLOT: Duration = Duration::from_millis(10);

/// The coordinator of a network that began at time zero, with a minimal cell in one of eleven slots.
fn coordinator() -> Pair {
    Pair::new()
}

/// A coordinator that lost its memory at `now`, and looks for this network.
fn restarted(now: Instant, config: Config) -> Tsch {
    let former = coordinator().macs[0].network().expect("it coordinates");
    let mut mac = Tsch::new(config, A, Rng::stream(Seed(6), NodeId(0), Purpose::Mac));
    mac.handle(now, Input::Start(Start::Resume(former))).expect("it is off");
    mac
}

/// A beacon of a node in no DODAG: its join metric keeps others from joining.
fn hear(mac: &mut Tsch, slot_start: Instant, asn: u64) {
    let asn = Asn(asn);
    let slotframes = Vec::new();
    let beacon =
        TschBeacon { asn, join_metric: u8::MAX, timeslot_id: 0, hopping_id: 0, slotframes };
    let octets = frame::beacon(PanId(0xabcd), B, 1, &beacon);
    let (rssi, late_micros, handle) = (Dbm(-50.0), 0, Handle::NONE);
    mac.receive(slot_start, Reception { octets: &octets, rssi, late_micros, handle });
}

#[test]
fn a_coordinator_that_lost_its_memory_continues_its_network() {
    let boot = Instant::from_secs(1000);
    let mut mac = restarted(boot, Config::default());
    assert!(!mac.is_synchronised());
    // A beacon of a network that began at another time.
    hear(&mut mac, boot + SLOT * 10, 99_000);
    assert!(!mac.is_synchronised());
    // The clocks of the other nodes are 300 ms behind.
    hear(&mut mac, boot + SLOT * 20, 99_990);
    assert!(mac.is_synchronised());
    assert_eq!((mac.time_source(), mac.asn(boot + SLOT * 20)), (None, Asn(99_990)));
    let outputs: Vec<_> = core::iter::from_fn(|| mac.poll_output()).collect();
    assert!(outputs.contains(&Output::Synchronised { time_source: None }), "{outputs:?}");
}

#[test]
fn a_coordinator_that_hears_nothing_of_its_network_begins_a_new_one() {
    let boot = Instant::from_secs(1000);
    let mut mac = restarted(boot, Config::default());
    let due = mac.next_deadline().expect("it waits");
    assert_eq!(due, boot + Config::default().resume);
    mac.handle(due, Input::Deadline).expect("acceptable");
    assert!(mac.is_synchronised());
    assert_eq!((mac.time_source(), mac.asn(due)), (None, Asn(0)));
    let at_once = restarted(boot, Config { resume: Duration::ZERO, ..Config::default() });
    assert!(at_once.is_synchronised());
    assert_eq!(at_once.asn(boot), Asn(0));
}

#[test]
fn it_listens_on_the_channel_of_the_nearest_minimal_cell() {
    let config = Config::default();
    // Slot 0 of eleven: the nearest repetition to slot 1000 is slot 1001, and to slot 1007 slot 1012.
    for (asn, nearest) in [(1000, 1001), (1003, 1001), (1007, 1012)] {
        let now = Instant::ZERO + SLOT * asn;
        let mac = restarted(now, config.clone());
        assert_eq!(mac.listens(now), Some(config.hopping.channel(Asn(nearest), 0)), "{asn}");
    }
    assert!(coordinator().macs[1].network().is_none(), "others keep nothing");
}
