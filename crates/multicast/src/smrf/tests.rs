//! Scripts with times for SMRF and ESMRF.

use alloc::vec::Vec;

use lowmesh_units::{NodeId, Purpose, Seed};
use lowmesh_wire::ipv6::{HEADER_OCTETS, HOP_LIMIT_OFFSET, next_header};

use super::*;
use crate::example::PACKET;

const PARENT: Eui64 = Eui64([1; 8]);
const CHILDREN: [Eui64; 2] = [Eui64([2; 8]), Eui64([3; 8])];
const ROOT: Address = Address([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xaa]);
const HERE: Address = Address([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbb]);

struct Place {
    address: Address,
    children: usize,
    is_member: bool,
    is_joined: bool,
}

const ROUTER: Place = Place { address: HERE, children: 2, is_member: true, is_joined: true };

impl NodeContext for Place {
    fn address(&self) -> Address {
        self.address
    }
    fn root(&self) -> Option<Address> {
        self.is_joined.then_some(ROOT)
    }
    fn parent(&self) -> Option<Eui64> {
        (self.is_joined && self.address != ROOT).then_some(PARENT)
    }
    fn children(&self, _group: &Address) -> Vec<Eui64> {
        CHILDREN[..self.children].to_vec()
    }
    fn is_member(&self, _group: &Address) -> bool {
        self.is_member
    }
}

fn engine(row: &'static Row<dyn Engine>, keys: &[(&str, &'static str)]) -> Smrf {
    let mut choice = Choice::from(row);
    for (key, name) in keys {
        choice.set(key, *name).expect("a value of the parameter");
    }
    let rng = Rng::stream(Seed(1), NodeId(0), Purpose::Multicast);
    Smrf::new(&choice, rng, row.name == ESMRF.name)
}

fn call(engine: &mut Smrf, now: Instant, event: Event<'_>, place: &Place) -> Vec<Output> {
    engine.handle(now, event, place).expect("the event is possible");
    core::iter::from_fn(|| engine.poll_output()).collect()
}

fn received(from: Eui64, number: u64) -> Event<'static> {
    Event::Received { packet: &PACKET, from, handle: Handle(number) }
}

#[test]
fn a_packet_of_the_parent_is_delivered_and_goes_on_after_a_multiple_of_the_least_delay() {
    let mut engine = engine(&SMRF, &[]);
    let outputs = call(&mut engine, Instant::ZERO, received(PARENT, 1), &ROUTER);
    assert_eq!(outputs, [Output::Deliver { packet: PACKET.to_vec(), handle: Handle(1) }]);
    let due = engine.next_deadline().expect("a packet waits");
    let steps = due.as_nanos() / SMRF_MIN_DELAY.as_nanos();
    assert_eq!(due, Instant::ZERO + SMRF_MIN_DELAY.saturating_mul(steps));
    assert!((1..=4).contains(&steps), "{steps} steps");
    let outputs = call(&mut engine, due, Event::Deadline, &ROUTER);
    let [Output::Send { packet, to: Receiver::Broadcast, handle: Handle(1) }] = &outputs[..] else {
        panic!("one broadcast, not {outputs:?}")
    };
    assert_eq!(packet[HOP_LIMIT_OFFSET], PACKET[HOP_LIMIT_OFFSET] - 1);
    assert_eq!(engine.next_deadline(), None);
}

#[test]
fn all_four_delays_occur_with_nullrdc_and_two_with_contiki_ng() {
    for (interval, steps) in [(0, 4), (125, 2)] {
        let choice = Choice::from(&SMRF);
        let choice = choice.with("check_interval", Duration::from_millis(interval));
        let rng = Rng::stream(Seed(1), NodeId(0), Purpose::Multicast);
        let mut engine = Smrf::new(&choice.expect("within bounds"), rng, false);
        let mut waits: Vec<Duration> = (0..100).map(|_| engine.wait(None)).collect();
        waits.sort_unstable();
        waits.dedup();
        let unit = SMRF_MIN_DELAY.max(Duration::from_millis(interval));
        let expected: Vec<_> = (1..=steps).map(|step| unit.saturating_mul(step)).collect();
        assert_eq!(waits, expected);
    }
}

#[test]
fn a_wait_is_shorter_by_a_part_of_a_tick() {
    let mut engine = engine(&SMRF, &[]);
    let tick = Duration::from_micros(7_812);
    engine.tick = tick;
    let parts: Vec<u64> = (0..200)
        .map(|_| {
            let wait = engine.wait(None).as_nanos();
            wait.next_multiple_of(SMRF_MIN_DELAY.as_nanos()) - wait
        })
        .collect();
    assert!(parts.iter().all(|part| *part < tick.as_nanos()), "{parts:?}");
    let early = parts.iter().filter(|part| **part < tick.as_nanos() / 2).count();
    assert!((70..=130).contains(&early), "{early} of 200 in the first half");
}

#[test]
fn a_packet_of_another_neighbour_ends() {
    let mut smrf = engine(&SMRF, &[]);
    let outputs = call(&mut smrf, Instant::ZERO, received(CHILDREN[0], 1), &ROUTER);
    assert_eq!(outputs, [dropped(Handle(1), DropReason::NotFromParent)]);
    let alone = Place { is_joined: false, ..ROUTER };
    let outputs = call(&mut smrf, Instant::ZERO, received(PARENT, 2), &alone);
    assert_eq!(outputs, [dropped(Handle(2), DropReason::NotJoined)]);
}

#[test]
fn a_newer_packet_takes_the_place_of_the_one_that_waits() {
    let mut engine = engine(&SMRF, &[]);
    let router = Place { is_member: false, ..ROUTER };
    assert_eq!(call(&mut engine, Instant::ZERO, received(PARENT, 1), &router), []);
    let outputs = call(&mut engine, Instant::ZERO, received(PARENT, 2), &router);
    assert_eq!(outputs, [dropped(Handle(1), DropReason::Superseded)]);
    assert_eq!(engine.snapshot().packets, 1);
}

#[test]
fn a_node_without_children_forwards_nothing_and_the_last_hop_limit_ends_here() {
    let mut engine = engine(&SMRF, &[]);
    let leaf = Place { children: 0, is_member: false, ..ROUTER };
    let outputs = call(&mut engine, Instant::ZERO, received(PARENT, 1), &leaf);
    assert_eq!(outputs, [dropped(Handle(1), DropReason::NotForUs)]);
    let mut packet = PACKET;
    packet[HOP_LIMIT_OFFSET] = 1;
    let event = Event::Received { packet: &packet, from: PARENT, handle: Handle(2) };
    let outputs = call(&mut engine, Instant::ZERO, event, &ROUTER);
    let delivered = Output::Deliver { packet: packet.to_vec(), handle: Handle(2) };
    assert_eq!(outputs, [delivered, dropped(Handle(2), DropReason::HopLimit)]);
}

#[test]
fn unicast_copies_go_to_each_registered_child() {
    for (copy, each) in [("unicast", true), ("auto", true), ("broadcast", false)] {
        let mut engine = engine(&SMRF, &[("copy", copy)]);
        let root = Place { address: ROOT, ..ROUTER };
        let event = Event::Originate { packet: &PACKET, handle: Handle(1) };
        let outputs = call(&mut engine, Instant::ZERO, event, &root);
        let receivers: Vec<_> = outputs
            .iter()
            .map(|output| match output {
                Output::Send { to, .. } => *to,
                other => panic!("{other:?}"),
            })
            .collect();
        let expected: Vec<_> = if each {
            CHILDREN.map(Receiver::Neighbour).to_vec()
        } else {
            [Receiver::Broadcast].to_vec()
        };
        assert_eq!(receivers, expected, "{copy}");
    }
}

/// A UDP datagram from port 7 to port 9 with two octets.
fn datagram() -> Vec<u8> {
    let mut packet = PACKET.to_vec();
    (packet[5], packet[6]) = (10, next_header::UDP);
    packet[8..24].copy_from_slice(&HERE.0);
    packet.extend_from_slice(&[0, 7, 0, 9, 0, 10, 0, 0, 0xca, 0xfe]);
    packet
}

#[test]
fn a_node_asks_the_root_which_sends_in_its_name() {
    let mut engines = [engine(&ESMRF, &[]), engine(&ESMRF, &[])];
    let packet = datagram();
    let event = Event::Originate { packet: &packet, handle: Handle(1) };
    let outputs = call(&mut engines[0], Instant::ZERO, event, &ROUTER);
    let [Output::Route { packet: request, handle: Handle(1) }] = &outputs[..] else {
        panic!("one request, not {outputs:?}")
    };
    let header = Header::parse_packet(request).expect("a whole packet");
    assert_eq!((header.source, header.destination, header.hop_limit), (HERE, ROOT, 255));
    let message = Icmpv6::parse(&request[HEADER_OCTETS..], &HERE.0, &ROOT.0).expect("a message");
    let root = Place { address: ROOT, ..ROUTER };
    let event = Event::Control { header: &header, message: &message, handle: Handle(2) };
    let outputs = call(&mut engines[1], Instant::ZERO, event, &root);
    let [Output::Deliver { packet: delivered, .. }, Output::Send { packet: sent, .. }] =
        &outputs[..]
    else {
        panic!("a delivery and a broadcast, not {outputs:?}")
    };
    assert_eq!(delivered, sent);
    let made = Header::parse_packet(sent).expect("a whole packet");
    assert_eq!((made.source, made.destination.0[1]), (HERE, 5));
    // The source port is the destination port, and the checksum is there.
    assert_eq!(sent[HEADER_OCTETS..HEADER_OCTETS + 6], [0, 9, 0, 9, 0, 10]);
    assert_ne!(sent[HEADER_OCTETS + 6..HEADER_OCTETS + 8], [0, 0]);
    // It comes back to the node that asked, which forwards it and does not deliver it.
    let event = Event::Received { packet: sent, from: PARENT, handle: Handle(3) };
    assert_eq!(call(&mut engines[0], Instant::ZERO, event, &ROUTER), []);
    assert_eq!(engines[0].snapshot().packets, 1);
}

#[test]
fn what_is_no_udp_and_what_is_no_request_end() {
    let mut esmrf = engine(&ESMRF, &[]);
    let event = Event::Originate { packet: &PACKET, handle: Handle(1) };
    let outputs = call(&mut esmrf, Instant::ZERO, event, &ROUTER);
    assert_eq!(outputs, [dropped(Handle(1), DropReason::NoRoute)]);
    let header = Header::parse_packet(&PACKET).expect("a whole packet");
    let root = Place { address: ROOT, ..ROUTER };
    for body in [[0; 17].to_vec(), [0; 18].to_vec()] {
        let message = Icmpv6::Other { kind: ESMRF_TYPE, code: 0, body };
        let event = Event::Control { header: &header, message: &message, handle: Handle(2) };
        let outputs = call(&mut esmrf, Instant::ZERO, event, &root);
        assert_eq!(outputs, [dropped(Handle(2), DropReason::Malformed)]);
    }
    assert_eq!(esmrf.snapshot().controls_refused, 2);
}
