//! Mode FF where nothing is lost: what passes, what is cut again, and when a forwarder reassembles after all.

use lowmesh_lowpan::{Config, FragmentMode, Input, Route};
use lowmesh_machine::{DropReason, Handle, Machine as _};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::ipv6::HOP_LIMIT_OFFSET;
use lowmesh_wire::lowpan::fragment::FragmentHeader;

use crate::line::{Line, eui, packet};

fn config(mode: FragmentMode) -> Config {
    Config { mode, ..Config::default() }
}
fn forwarded() -> Config {
    config(FragmentMode::Forwarded)
}

/// The packet as it is when it arrives over so many hops.
fn after_hops(mut packet: Vec<u8>, forwarders: u8) -> Vec<u8> {
    packet[HOP_LIMIT_OFFSET] -= forwarders;
    packet
}

/// The frames that a neighbour sends for node 3 over node 1, cut in the mode of `config`.
fn frames_of(config: Config, octets: usize, salt: u8) -> Vec<Vec<u8>> {
    let mut line = Line::new(4, config, 1);
    line.send(packet(0, 3, octets, salt), 1);
    line.run_to_rest();
    line.sent.into_iter().filter(|(from, _)| *from == 0).map(|(_, payload)| payload).collect()
}

#[test]
fn every_size_crosses_three_forwarders() {
    for octets in (0..=1232).step_by(11) {
        let mut line = Line::new(5, forwarded(), 1);
        let whole = packet(0, 4, octets, 3);
        line.send(whole.clone(), 1);
        line.run_to_rest();
        assert_eq!(line.delivered, [after_hops(whole, 3)], "{octets} octets");
        assert_eq!(line.dropped, []);
    }
}

#[test]
fn a_forwarder_holds_no_datagram() {
    let mut line = Line::new(4, forwarded(), 1);
    line.send(packet(0, 3, 1000, 3), 1);
    for step in 1..200 {
        line.run_until(Instant::from_millis(step));
        let held = line.nodes[1].packet_buffer();
        assert_eq!((held.reassembly, held.fragmentation), (0, 0));
    }
    assert_eq!(line.delivered.len(), 1);
    let forwarded = line.sent.iter().filter(|(from, _)| *from == 1).count() as u64;
    assert_eq!(line.nodes[1].counters().fragments_forwarded, forwarded);
}

#[test]
fn each_link_has_tags_of_its_own() {
    let mut line = Line::new(4, forwarded(), 1);
    line.send(packet(0, 3, 300, 3), 1);
    line.send(packet(0, 3, 300, 4), 2);
    line.run_to_rest();
    assert_eq!(line.delivered.len(), 2);
    for node in 0..3 {
        let frames = line.sent.iter().filter(|(from, _)| *from == node);
        let mut tags: Vec<u16> = frames
            .map(|(_, frame)| FragmentHeader::parse(frame).expect("a fragment").datagram_tag)
            .collect();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), 2, "node {node}");
    }
}

#[test]
fn a_first_fragment_whose_headers_grow_is_cut_in_two() {
    // A neighbour fills its first fragment; on the next link its own address is nine octets more.
    let frames = frames_of(config(FragmentMode::HopWise), 300, 3);
    let mut line = Line::new(4, forwarded(), 1);
    for frame in &frames {
        line.hear(1, eui(0), frame, 1);
    }
    line.run_to_rest();
    assert_eq!(line.delivered, [after_hops(packet(0, 3, 300, 3), 2)]);
    assert_eq!(line.nodes[1].counters().refragmented, 1);
    assert_eq!(line.nodes[2].counters().refragmented, 0);
}

#[test]
fn a_datagram_whose_first_fragment_is_late_is_reassembled() {
    let frames = frames_of(forwarded(), 300, 3);
    let mut line = Line::new(4, forwarded(), 1);
    for at in [1, 0, 2, 3, 4] {
        line.hear(1, eui(0), &frames[at], 1);
    }
    line.run_to_rest();
    assert_eq!(line.delivered, [after_hops(packet(0, 3, 300, 3), 2)]);
    assert_eq!(line.nodes[1].counters().fallbacks_order, 1);
    assert_eq!(line.nodes[1].counters().fragments_forwarded, 0);
}

#[test]
fn a_packet_that_comes_twice_under_different_tags_is_two_copies() {
    let mut line = Line::new(2, Config { mode: FragmentMode::HopWise, ..Config::default() }, 1);
    let frames = frames_of(Config { mode: FragmentMode::HopWise, ..Config::default() }, 300, 1);
    let mut others = frames.clone();
    for frame in &mut others {
        frame[3] ^= 1;
    }
    // Of the first only a part comes; both are of the packet that the simulator calls 1.
    line.hear(1, eui(0), &frames[0], 1);
    for frame in &others {
        line.hear(1, eui(0), frame, 1);
    }
    assert_eq!((line.delivered.len(), line.copies), (1, 1));
    line.run_to_rest();
}

#[test]
fn without_a_free_entry_a_datagram_is_reassembled() {
    let settings = Config { forwarded_datagrams: 1, ..forwarded() };
    let mut line = Line::new(4, settings, 1);
    let (one, mut two) = (frames_of(settings, 300, 3), frames_of(settings, 300, 4));
    for frame in &mut two {
        frame[3] ^= 1;
    }
    for (first, second) in one.iter().zip(&two) {
        line.hear(1, eui(0), first, 1);
        line.hear(1, eui(0), second, 2);
    }
    line.run_to_rest();
    line.delivered.sort_unstable();
    let mut expected = [3, 4].map(|salt| after_hops(packet(0, 3, 300, salt), 2));
    expected.sort_unstable();
    assert_eq!(line.delivered, expected);
    assert_eq!(line.nodes[1].counters().fallbacks_full, 1);
}

#[test]
fn a_lost_fragment_ends_the_rest_at_every_forwarder() {
    let frames = frames_of(forwarded(), 300, 3);
    let mut line = Line::new(4, forwarded(), 1);
    line.hear(1, eui(0), &frames[0], 1);
    line.hear(1, eui(0), &frames[1], 1);
    // Node 1's entry waits for the others until its time is over; so do node 2's, and node 3's buffer.
    line.run_to_rest();
    let reasons: Vec<_> = line.dropped.iter().map(|(node, d)| (*node, d.reason)).collect();
    let late = DropReason::ReassemblyTimeout;
    assert_eq!(reasons, [(1, late), (2, late), (3, late)]);
    assert_eq!(line.delivered, Vec::<Vec<u8>>::new());
}

#[test]
fn the_mac_s_failure_ends_the_forwarding() {
    let frames = frames_of(forwarded(), 300, 3);
    let mut line = Line::new(4, forwarded(), 1);
    line.hear(1, eui(0), &frames[0], 1);
    line.faults.loss = 1.0;
    line.hear(1, eui(0), &frames[1], 1);
    line.run_until(Instant::from_millis(10));
    assert_eq!(line.nodes[1].forwarded_datagrams(), 0);
    // What comes late opens nothing.
    line.hear(1, eui(0), &frames[2], 1);
    assert_eq!(line.nodes[1].handles().count(), 0);
    line.run_to_rest();
}

#[test]
fn without_room_in_the_packet_buffer_the_forwarding_ends() {
    let settings = Config { packet_buffer_octets: 120, ..forwarded() };
    let frames = frames_of(forwarded(), 300, 3);
    let mut line = Line::new(4, settings, 1);
    for frame in &frames {
        line.hear(1, eui(0), frame, 1);
    }
    // The copy ends when the MAC is done with the first fragment, for that may yet be taken over.
    assert_eq!(line.dropped, []);
    line.run_to_rest();
    let reasons: Vec<_> = line.dropped.iter().map(|(node, d)| (*node, d.reason)).collect();
    // The last node has no room for the datagram either.
    let (full, late) = (DropReason::BufferFull, DropReason::ReassemblyTimeout);
    assert_eq!(reasons, [(1, full), (3, full), (2, late)]);
}

#[test]
fn an_unanswered_question_keeps_its_packet_and_no_other() {
    let frames = frames_of(forwarded(), 300, 3);
    let mut line = Line::new(4, forwarded(), 1);
    let node = &mut line.nodes[1];
    let mut hear = |frame: &[u8]| {
        let input = Input::Frame {
            payload: frame,
            source: eui(0),
            destination: Some(eui(1)),
            handle: Handle(1),
            is_proven: false,
        };
        node.handle(Instant::ZERO, input).expect("a frame");
    };
    hear(&frames[0]);
    hear(&frames[1]);
    hear(&frames[0]);
    assert_eq!(node.handles().count(), 1);
    assert_eq!(node.counters().fragments_refused, 2);
    assert_eq!(node.packet_buffer().total(), 0);
}

#[test]
fn a_reply_without_a_question_is_rejected() {
    let mut line = Line::new(2, forwarded(), 1);
    let route = Route::Here;
    let input = Input::RouteReply { beginning: Vec::new(), route };
    assert!(line.nodes[1].handle(Instant::ZERO, input).is_err());
}

#[test]
fn a_forwarded_datagram_has_the_time_of_a_reassembly() {
    let settings = Config { reassembly_timeout: Duration::from_secs(3), ..forwarded() };
    let mut line = Line::new(4, settings, 1);
    let frames = frames_of(forwarded(), 300, 3);
    line.hear(1, eui(0), &frames[0], 1);
    line.run_until(Instant::from_millis(2999));
    assert_eq!(line.nodes[1].forwarded_datagrams(), 1);
    line.run_until(Instant::from_millis(3000));
    assert_eq!(line.nodes[1].forwarded_datagrams(), 0);
}

/// The frames of one packet of 150 octets over two links, one a line.
fn table_of(mode: FragmentMode) -> String {
    let mut line = Line::new(3, config(mode), 1);
    line.keep_table();
    line.send(packet(0, 2, 150, 3), 1);
    line.run_to_rest();
    line.table().to_owned()
}

#[test]
fn fragments_pass_before_the_last_one_has_come_and_else_all_wait_for_it() {
    let hop_wise = [
        "    0.000 ms  0 -> 1  93 octets: of 198, at 0",
        "    4.000 ms  0 -> 1  83 octets: of 198, at 120",
        "    8.000 ms  1 -> 2  94 octets: of 198, at 0",
        "   12.000 ms  1 -> 2  83 octets: of 198, at 120",
    ];
    assert_eq!(table_of(FragmentMode::HopWise).lines().collect::<Vec<_>>(), hop_wise);
    let forwarded = [
        "    0.000 ms  0 -> 1  21 octets: of 198, at 0",
        "    4.000 ms  0 -> 1  93 octets: of 198, at 48",
        "    4.000 ms  1 -> 2  22 octets: of 198, at 0",
        "    8.000 ms  0 -> 1  67 octets: of 198, at 136",
        "    8.000 ms  1 -> 2  93 octets: of 198, at 48",
        "   12.000 ms  1 -> 2  67 octets: of 198, at 136",
    ];
    assert_eq!(table_of(FragmentMode::Forwarded).lines().collect::<Vec<_>>(), forwarded);
}
