//! Scripts with times for trickle multicast.

use alloc::vec::Vec;

use lowmesh_units::{Eui64, NodeId, Purpose};
use lowmesh_wire::ipv6::HEADER_OCTETS;

use super::*;
use crate::example::{PACKET, Root};

const SECOND: Parameters = Parameters::Second;

fn engine(keys: &[(&str, u64)]) -> Trickle {
    let mut choice = Choice::from(&ROW);
    for (key, value) in keys {
        choice.set(key, *value).expect("within bounds");
    }
    Trickle::new(&choice, Rng::stream(lowmesh_units::Seed(1), NodeId(0), Purpose::Multicast))
}

/// The address of a source.
fn source(last: u8) -> [u8; 16] {
    [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]
}

fn data(last: u8, sequence: u16, parameters: Parameters, hop_limit: u8) -> Vec<u8> {
    let mut octets = Vec::new();
    DataOption { seed: None, parameters, sequence }.emit(&mut octets);
    let mut packet = PACKET;
    packet[8..24].copy_from_slice(&source(last));
    packet[HOP_LIMIT_OFFSET] = hop_limit;
    with_hop_by_hop_option(&packet, &octets).expect("a whole packet")
}

fn drain(engine: &mut Trickle) -> Vec<Output> {
    core::iter::from_fn(|| engine.poll_output()).collect()
}

fn receive(engine: &mut Trickle, now: Instant, packet: &[u8], handle: u64) -> Vec<Output> {
    let event = Event::Received { packet, from: Eui64([9; 8]), handle: Handle(handle) };
    engine.handle(now, event, &Root).expect("any packet is taken");
    drain(engine)
}

fn list(last: u8, sequences: &[u16]) -> SequenceList {
    let seed = Seed::Address(source(last));
    SequenceList { seed, parameters: SECOND, sequences: sequences.to_vec() }
}

fn hear(engine: &mut Trickle, now: Instant, lists: &[SequenceList], hop_limit: u8) -> Vec<Output> {
    let mut body = Vec::new();
    emit_lists(lists, &mut body);
    let message = Icmpv6::Other { kind: CONTROL_TYPE, code: 0, body };
    let header = Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: 0,
        next_header: 58,
        hop_limit,
        source: Address(source(8)),
        destination: Address::ALL_ROUTERS,
    };
    let event = Event::Control { header: &header, message: &message, handle: Handle(99) };
    engine.handle(now, event, &Root).expect("any message is taken");
    drain(engine)
}

/// The data packets and the lists that the engine sends until `end`, and what else it does.
fn run(engine: &mut Trickle, end: Instant) -> (Vec<Vec<u8>>, Vec<Vec<SequenceList>>, Vec<Output>) {
    let (mut sent, mut lists, mut others) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(now) = engine.next_deadline().filter(|due| *due <= end) {
        engine.handle(now, Event::Deadline, &Root).expect("a deadline is taken");
        for output in drain(engine) {
            match output {
                Output::Send { packet, handle: Handle::NONE, .. } => {
                    let body = &packet[HEADER_OCTETS + 4..];
                    lists.push(parse_lists(body).expect("whole lists"));
                }
                Output::Send { packet, .. } => sent.push(packet),
                other => others.push(other),
            }
        }
    }
    (sent, lists, others)
}

fn secs(secs: u64) -> Instant {
    Instant::from_secs(secs)
}

#[test]
fn a_new_packet_is_sent_once_and_listed() {
    let mut engine = engine(&[]);
    assert_eq!(receive(&mut engine, Instant::ZERO, &data(9, 5, SECOND, 8), 1), []);
    let (sent, lists, _) = run(&mut engine, Instant::ZERO + SECOND_IMIN);
    assert_eq!(sent, [data(9, 5, SECOND, 7)]);
    assert_eq!(lists, [[list(9, &[5])]]);
    let (sent, ..) = run(&mut engine, secs(600));
    assert!(sent.is_empty());
}

#[test]
fn a_packet_of_this_node_leaves_at_once() {
    let mut engine = engine(&[]);
    let sequence = engine.sequence;
    let event = Event::Originate { packet: &PACKET, handle: Handle(1) };
    engine.handle(Instant::ZERO, event, &Root).expect("a routable group");
    let outputs = drain(&mut engine);
    let [Output::Send { packet, to: Receiver::Broadcast, .. }] = &outputs[..] else {
        panic!("one broadcast, not {outputs:?}")
    };
    let (_, option) = read(packet).expect("a packet with the option");
    assert_eq!(option, DataOption { seed: None, parameters: SECOND, sequence });
    // It hears its own packet from a neighbour.
    let echo = receive(&mut engine, Instant::ZERO, &packet.clone(), 2);
    assert_eq!(echo, [dropped(Handle(2), DropReason::Duplicate)]);
}

#[test]
fn a_list_without_a_packet_makes_the_node_send_it_again() {
    let mut engine = engine(&[]);
    receive(&mut engine, Instant::ZERO, &data(9, 5, SECOND, 8), 1);
    receive(&mut engine, Instant::ZERO, &data(9, 6, SECOND, 8), 2);
    run(&mut engine, secs(100));
    assert_eq!(hear(&mut engine, secs(100), &[list(9, &[5])], 255), []);
    let (sent, ..) = run(&mut engine, secs(101));
    assert_eq!(sent, [data(9, 6, SECOND, 7)]);
    assert_eq!(hear(&mut engine, secs(101), &[], 255), []);
    let (sent, ..) = run(&mut engine, secs(102));
    assert_eq!(sent.len(), 2, "the neighbour does not know the seed");
}

#[test]
fn a_list_with_more_starts_the_timer_over_and_an_equal_one_keeps_silent() {
    let mut engine = engine(&[]);
    receive(&mut engine, Instant::ZERO, &data(9, 5, SECOND, 8), 1);
    hear(&mut engine, Instant::ZERO, &[list(9, &[5])], 255);
    let (_, lists, _) = run(&mut engine, Instant::ZERO + SECOND_IMIN);
    assert!(lists.is_empty(), "one list was heard, and k is 1");
    run(&mut engine, secs(100));
    hear(&mut engine, secs(100), &[list(9, &[5, 6])], 255);
    let (sent, lists, _) = run(&mut engine, secs(100) + SECOND_IMIN);
    assert_eq!((sent.len(), lists.len()), (0, 1));
}

#[test]
fn old_packets_and_copies_end() {
    let mut engine = engine(&[("buffers", 2)]);
    for sequence in [5, 6] {
        receive(&mut engine, Instant::ZERO, &data(9, sequence, SECOND, 8), 1);
    }
    let duplicate = [dropped(Handle(2), DropReason::Duplicate)];
    assert_eq!(receive(&mut engine, Instant::ZERO, &data(9, 4, SECOND, 8), 2), duplicate);
    assert_eq!(receive(&mut engine, Instant::ZERO, &data(9, 6, SECOND, 8), 2), duplicate);
    // The next one takes the place of the oldest, which was not sent yet.
    let evicted = [dropped(Handle(1), DropReason::Suppressed)];
    assert_eq!(receive(&mut engine, Instant::ZERO, &data(9, 7, SECOND, 8), 3), evicted);
    assert_eq!(receive(&mut engine, Instant::ZERO, &data(9, 5, SECOND, 8), 2), duplicate);
}

#[test]
fn a_third_seed_finds_no_window() {
    let mut engine = engine(&[]);
    for last in [7, 9] {
        assert_eq!(receive(&mut engine, Instant::ZERO, &data(last, 5, SECOND, 8), 1), []);
    }
    let full = [dropped(Handle(2), DropReason::BufferFull)];
    assert_eq!(receive(&mut engine, Instant::ZERO, &data(10, 5, SECOND, 8), 2), full);
    let lists = [list(7, &[5]), list(9, &[5]), list(10, &[5])];
    hear(&mut engine, Instant::ZERO, &lists, 255);
    let (_, lists, _) = run(&mut engine, Instant::ZERO + SECOND_IMIN);
    assert!(lists.is_empty(), "what finds no window is no news");
}

#[test]
fn packets_of_the_first_set_are_repeated_while_they_are_active() {
    let mut engine = engine(&[]);
    receive(&mut engine, Instant::ZERO, &data(9, 5, Parameters::First, 8), 1);
    let (sent, lists, _) = run(&mut engine, secs(60));
    // Intervals of 250, 500 and 500 ms in Tactive, 1.5 s; the last moment is after it, or just before.
    assert!((3..=4).contains(&sent.len()), "{} packets", sent.len());
    assert!(lists.is_empty());
    assert_eq!(engine.snapshot().entries, 0, "all is over after twice Tdwell");
}

#[test]
fn a_message_that_was_forwarded_is_refused() {
    let mut engine = engine(&[]);
    let refused = [dropped(Handle(99), DropReason::Malformed)];
    assert_eq!(hear(&mut engine, Instant::ZERO, &[list(9, &[5])], 254), refused);
    assert_eq!(engine.snapshot().controls_refused, 1);
    assert_eq!(hear(&mut engine, Instant::ZERO, &[list(9, &[5])], 255), []);
}

#[test]
fn a_packet_whose_hop_limit_ends_here_is_listed_and_not_sent() {
    let mut engine = engine(&[]);
    let outputs = receive(&mut engine, Instant::ZERO, &data(9, 5, SECOND, 1), 1);
    assert_eq!(outputs, [dropped(Handle(1), DropReason::HopLimit)]);
    hear(&mut engine, Instant::ZERO, &[], 255);
    let (sent, lists, others) = run(&mut engine, secs(20_000));
    assert!(sent.is_empty() && others.is_empty());
    assert_eq!(lists[0], [list(9, &[5])]);
}

#[test]
fn sequence_numbers_of_15_bits_compare_around_the_end() {
    assert!(is_after(1, 0) && is_after(0, 0x7fff) && is_after(0x3fff, 0));
    assert!(!is_after(0, 0) && !is_after(0x7fff, 0) && !is_after(0x4000, 0));
}
