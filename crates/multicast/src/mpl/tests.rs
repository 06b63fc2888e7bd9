//! Scripts with times for MPL.

use alloc::vec::Vec;

use lowmesh_units::{Eui64, NodeId, Purpose, Seed};
use lowmesh_wire::ipv6::HEADER_OCTETS;

use super::*;
use crate::example::{PACKET, Root};
use crate::params::{CONTROL_IMIN, DATA_IMIN};

const NEIGHBOUR: Address = Address([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
const SEED: SeedId = SeedId::Short(9);

fn engine(keys: &[(&str, u64)], flags: &[(&str, bool)]) -> Mpl {
    let mut choice = Choice::from(&ROW);
    for (key, value) in keys {
        choice.set(key, *value).expect("within bounds");
    }
    for (key, value) in flags {
        choice.set(key, *value).expect("a flag");
    }
    Mpl::new(&choice, Rng::stream(Seed(1), NodeId(0), Purpose::Multicast))
}

/// A data message of the neighbour's seed with a hop limit.
fn data(seed: SeedId, sequence: u8, is_largest: bool, hop_limit: u8) -> Vec<u8> {
    let mut octets = Vec::new();
    DataOption { seed, is_largest, sequence }.emit(&mut octets);
    let mut packet = PACKET;
    packet[24..40].copy_from_slice(&Address::ALL_MPL_FORWARDERS.0);
    packet[8..24].copy_from_slice(&NEIGHBOUR.0);
    packet[HOP_LIMIT_OFFSET] = hop_limit;
    with_hop_by_hop_option(&packet, &octets).expect("a whole packet")
}

fn drain(engine: &mut Mpl) -> Vec<Output> {
    core::iter::from_fn(|| engine.poll_output()).collect()
}

fn receive(engine: &mut Mpl, now: Instant, packet: &[u8], handle: u64) -> Vec<Output> {
    let event = Event::Received { packet, from: Eui64([9; 8]), handle: Handle(handle) };
    engine.handle(now, event, &Root).expect("any packet is taken");
    drain(engine)
}

fn message(engine: &mut Mpl, now: Instant, sequence: u8, handle: u64) -> Vec<Output> {
    receive(engine, now, &data(SEED, sequence, true, 8), handle)
}

fn hear(engine: &mut Mpl, now: Instant, control: Control) {
    let header = Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: 0,
        next_header: 58,
        hop_limit: 255,
        source: NEIGHBOUR,
        destination: Address::ALL_LINK_MPL_FORWARDERS,
    };
    let message = Icmpv6::Mpl(control);
    let event = Event::Control { header: &header, message: &message, handle: Handle::NONE };
    engine.handle(now, event, &Root).expect("a control message is taken");
    assert_eq!(drain(engine), []);
}

/// What was sent, and when.
type Sent<T> = Vec<(Instant, T)>;

/// What the engine does until `end`: the data messages that it sends, its control messages, and what else.
fn run(engine: &mut Mpl, end: Instant) -> (Sent<Vec<u8>>, Sent<Control>, Vec<Output>) {
    let (mut sent, mut controls, mut others) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(now) = engine.next_deadline().filter(|due| *due <= end) {
        engine.handle(now, Event::Deadline, &Root).expect("a deadline is taken");
        for output in drain(engine) {
            match output {
                Output::Send { packet, handle: Handle::NONE, .. } => {
                    let header = Header::parse_packet(&packet).expect("a whole packet");
                    assert_eq!(header.destination, Address::ALL_LINK_MPL_FORWARDERS);
                    assert_eq!(header.hop_limit, 255);
                    let body = &packet[HEADER_OCTETS..];
                    let parsed = Icmpv6::parse(body, &header.source.0, &header.destination.0);
                    let Ok(Icmpv6::Mpl(control)) = parsed else { panic!("{parsed:?}") };
                    controls.push((now, control));
                }
                Output::Send { packet, .. } => sent.push((now, packet)),
                other => others.push(other),
            }
        }
    }
    (sent, controls, others)
}

const MINUTE: Instant = Instant::from_secs(60);

fn holding(sequences: &[u8]) -> Control {
    let mut info = SeedInfo::new(SEED, sequences[0]);
    for sequence in sequences {
        info.insert(*sequence);
    }
    Control { seeds: [info].to_vec() }
}

#[test]
fn a_new_message_is_sent_three_times_with_a_lower_hop_limit() {
    let mut engine = engine(&[("control_expirations", 0)], &[]);
    assert_eq!(message(&mut engine, Instant::ZERO, 5, 1), []);
    let (sent, controls, others) = run(&mut engine, MINUTE);
    assert_eq!((sent.len(), controls.len(), others.len()), (3, 0, 0));
    assert!(sent.iter().all(|(_, packet)| *packet == data(SEED, 5, true, 7)));
    assert!(
        sent[0].0 >= Instant::ZERO + DATA_IMIN / 2 && sent[2].0 <= Instant::ZERO + DATA_IMIN * 3
    );
}

#[test]
fn a_copy_of_a_neighbour_suppresses_and_is_dropped() {
    let mut engine = engine(&[("control_expirations", 0), ("data_expirations", 1)], &[]);
    message(&mut engine, Instant::ZERO, 5, 1);
    let duplicate = [dropped(Handle(2), DropReason::Duplicate)];
    assert_eq!(message(&mut engine, Instant::ZERO, 5, 2), duplicate);
    assert_eq!(message(&mut engine, Instant::ZERO, 4, 2), duplicate);
    let (sent, _, others) = run(&mut engine, Instant::from_secs(3600));
    assert!(sent.is_empty());
    assert_eq!(others, [dropped(Handle(1), DropReason::Suppressed)]);
}

#[test]
fn only_the_largest_message_is_sent_with_m() {
    let mut engine = engine(&[("control_expirations", 0), ("data_k", 0)], &[]);
    message(&mut engine, Instant::ZERO, 5, 1);
    message(&mut engine, Instant::ZERO, 6, 2);
    let (sent, ..) = run(&mut engine, MINUTE);
    assert_eq!(sent.len(), 6);
    for (_, packet) in sent {
        let is_last = packet == data(SEED, 6, true, 7);
        assert!(is_last || packet == data(SEED, 5, false, 7));
    }
}

#[test]
fn an_older_message_with_m_starts_the_timer_of_a_newer_one_over() {
    let mut engine = engine(&[("control_expirations", 0), ("data_k", 0)], &[]);
    message(&mut engine, Instant::ZERO, 5, 1);
    message(&mut engine, Instant::ZERO, 6, 2);
    let halfway = Instant::ZERO + DATA_IMIN * 2;
    run(&mut engine, halfway);
    // The neighbour believes that 5 is the largest: 6 gets three more moments.
    receive(&mut engine, halfway, &data(SEED, 5, true, 8), 3);
    let (sent, ..) = run(&mut engine, MINUTE);
    let newer = sent.iter().filter(|(_, packet)| *packet == data(SEED, 6, true, 7)).count();
    assert_eq!((newer, sent.len()), (3, 4));
}

#[test]
fn a_node_that_only_reacts_sends_when_a_control_message_lacks_its_message() {
    let mut engine = engine(&[("data_expirations", 1)], &[("proactive", false)]);
    message(&mut engine, Instant::ZERO, 5, 1);
    let (sent, controls, _) = run(&mut engine, MINUTE);
    assert!(sent.is_empty());
    assert_eq!(controls[0].1, holding(&[5]));
    hear(&mut engine, MINUTE, Control::default());
    let (sent, ..) = run(&mut engine, Instant::from_secs(70));
    assert_eq!(sent.len(), 1);
    // A neighbour that holds it, and one that no longer accepts it, ask for nothing.
    hear(&mut engine, Instant::from_secs(70), holding(&[5]));
    let above = Control { seeds: [SeedInfo::new(SEED, 6)].to_vec() };
    hear(&mut engine, Instant::from_secs(70), above);
    assert!(run(&mut engine, Instant::from_secs(100)).0.is_empty());
}

#[test]
fn control_messages_come_ten_times_and_start_over_when_a_neighbour_has_more() {
    let mut engine = engine(&[("data_expirations", 1)], &[]);
    message(&mut engine, Instant::ZERO, 5, 1);
    let end = Instant::from_secs(800);
    let (_, controls, _) = run(&mut engine, end);
    assert_eq!(controls.len(), 10);
    hear(&mut engine, end, holding(&[5]));
    assert!(run(&mut engine, Instant::from_secs(810)).1.is_empty(), "consistent");
    hear(&mut engine, Instant::from_secs(810), holding(&[5, 7]));
    let (_, controls, _) = run(&mut engine, Instant::from_secs(812));
    assert!(!controls.is_empty(), "the neighbour has 7");
}

#[test]
fn a_consistent_control_message_suppresses_the_next_one() {
    let mut engine = engine(&[], &[]);
    message(&mut engine, Instant::ZERO, 5, 1);
    hear(&mut engine, Instant::ZERO, holding(&[5]));
    let (_, controls, _) = run(&mut engine, Instant::ZERO + CONTROL_IMIN);
    assert!(controls.is_empty());
}

#[test]
fn other_control_messages_are_refused() {
    let mut engine = engine(&[], &[]);
    let right = Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: 0,
        next_header: 58,
        hop_limit: 255,
        source: NEIGHBOUR,
        destination: Address::ALL_LINK_MPL_FORWARDERS,
    };
    let mpl = Icmpv6::Mpl(holding(&[1]));
    let other = Icmpv6::Other { kind: 200, code: 0, body: Vec::new() };
    let forwarded = Header { hop_limit: 254, ..right };
    let elsewhere = Header { destination: Address::ALL_MPL_FORWARDERS, ..right };
    for (header, message) in [(&forwarded, &mpl), (&elsewhere, &mpl), (&right, &other)] {
        let event = Event::Control { header, message, handle: Handle(1) };
        engine.handle(Instant::ZERO, event, &Root).expect("any message is taken");
        assert_eq!(drain(&mut engine), [dropped(Handle(1), DropReason::Malformed)]);
    }
    assert_eq!(engine.snapshot().controls_refused, 3);
    assert_eq!(engine.next_deadline(), None);
}

#[test]
fn a_packet_to_another_group_travels_in_a_packet_to_the_domain() {
    let mut engine = engine(&[], &[]);
    let first = engine.sequence;
    for number in 1..=2 {
        let event = Event::Originate { packet: &PACKET, handle: Handle(number) };
        engine.handle(Instant::ZERO, event, &Root).expect("a routable group");
    }
    let (sent, controls, _) = run(&mut engine, MINUTE);
    let (_, octets) = hop_by_hop_option(&sent[0].1, DataOption::TYPE)
        .expect("a whole packet")
        .expect("an MPL option");
    let option = DataOption::parse(octets).expect("a whole option");
    assert_eq!(option.seed, SeedId::Source);
    assert!([first, first.wrapping_add(1)].contains(&option.sequence));
    let plain = without_hop_by_hop_option(&sent[0].1, DataOption::TYPE).expect("a whole packet");
    assert_eq!(decapsulate(&plain).map(|(_, inner)| inner), Some(&PACKET[..]));
    // The seed of the sender itself takes no octets in its control message.
    assert_eq!(controls[0].1.seeds[0].seed, SeedId::Source);
    assert_eq!(controls[0].1.seeds[0].min_sequence, first);
}

#[test]
fn messages_of_another_domain_or_version_and_without_the_option_end() {
    let mut engine = engine(&[], &[]);
    let mut elsewhere = data(SEED, 1, true, 8);
    elsewhere[39] = 1;
    let mut version = data(SEED, 1, true, 8);
    version[HEADER_OCTETS + 4] |= 0x10;
    let ends = [
        (elsewhere, DropReason::NotForUs),
        (version, DropReason::Malformed),
        (
            without_hop_by_hop_option(&data(SEED, 1, true, 8), 0x6d).expect("whole"),
            DropReason::NotForUs,
        ),
    ];
    for (packet, reason) in ends {
        assert_eq!(receive(&mut engine, Instant::ZERO, &packet, 1), [dropped(Handle(1), reason)]);
    }
    assert_eq!(engine.snapshot().entries, 0);
}

#[test]
fn a_message_whose_hop_limit_ends_here_is_listed_and_not_sent() {
    let mut engine = engine(&[], &[]);
    let outputs = receive(&mut engine, Instant::ZERO, &data(SEED, 5, true, 1), 1);
    assert_eq!(outputs, [dropped(Handle(1), DropReason::HopLimit)]);
    hear(&mut engine, Instant::ZERO, Control::default());
    let (sent, controls, others) = run(&mut engine, Instant::from_secs(7200));
    assert!(sent.is_empty() && others.is_empty());
    assert_eq!(controls[0].1, holding(&[5]));
}

#[test]
fn the_seed_with_the_most_messages_gives_its_oldest_to_the_next_one() {
    let mut engine = engine(&[("messages", 3)], &[]);
    for sequence in 1..=3 {
        message(&mut engine, Instant::ZERO, sequence, u64::from(sequence));
    }
    let other = data(SeedId::Short(10), 0, true, 8);
    let outputs = receive(&mut engine, Instant::ZERO, &other, 4);
    assert_eq!(outputs, [dropped(Handle(1), DropReason::Suppressed)]);
    assert_eq!(engine.sets.seed(SEED).map(|seed| seed.min_sequence), Some(2));
    // Below MinSequence now.
    let old = message(&mut engine, Instant::ZERO, 1, 5);
    assert_eq!(old, [dropped(Handle(5), DropReason::Duplicate)]);
    // Two to one: a third seed takes one more, a fourth one finds one each.
    receive(&mut engine, Instant::ZERO, &data(SeedId::Short(11), 0, true, 8), 6);
    let last = receive(&mut engine, Instant::ZERO, &data(SeedId::Short(12), 0, true, 8), 7);
    assert_eq!(last, [dropped(Handle(7), DropReason::BufferFull)]);
    assert_eq!(engine.snapshot().packets, 3);
}

#[test]
fn a_seed_is_kept_for_its_lifetime_and_the_next_one_waits() {
    let mut engine = engine(&[("seeds", 1)], &[]);
    message(&mut engine, Instant::ZERO, 5, 1);
    let other = data(SeedId::Short(10), 0, true, 8);
    let refused = [dropped(Handle(2), DropReason::BufferFull)];
    assert_eq!(receive(&mut engine, Instant::ZERO, &other, 2), refused);
    run(&mut engine, Instant::from_secs(901));
    // Half of the lifetime later the message is gone, and its sequence number is not.
    assert_eq!((engine.snapshot().packets, engine.snapshot().entries), (0, 1));
    let old = message(&mut engine, Instant::from_secs(901), 5, 3);
    assert_eq!(old, [dropped(Handle(3), DropReason::Duplicate)]);
    run(&mut engine, Instant::from_secs(1800));
    assert_eq!(engine.snapshot().entries, 0);
    assert_eq!(receive(&mut engine, Instant::from_secs(1800), &other, 4), []);
}

#[test]
fn sequence_numbers_compare_around_the_end() {
    assert!(is_after(1, 0) && is_after(0, 255) && is_after(127, 0) && is_after(3, 250));
    assert!(!is_after(0, 0) && !is_after(255, 0) && !is_after(128, 0) && !is_after(250, 3));
}

#[test]
fn a_node_that_restarted_goes_on_above_what_it_sent_before() {
    let mut engine = engine(&[], &[]);
    let before = engine.sequence.wrapping_add(20);
    let mut packet = data(SeedId::Source, before, true, 8);
    packet[8..24].copy_from_slice(&Root.address().0);
    assert_eq!(receive(&mut engine, Instant::ZERO, &packet, 1), []);
    assert_eq!(engine.sequence, before.wrapping_add(1));
}
