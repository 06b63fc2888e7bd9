//! What forwarders do: paths, offsets, marks and the gap.

use lowmesh_units::Duration;
use lowmesh_wire::lowpan::rfrag::{Part as RfragPart, Rfrag, RfragAck};

use super::line::*;
use crate::adapt::*;

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
    let input =
        Input::Frame { payload: frame, source, destination, handle: HANDLE, is_proven: false };
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
fn a_window_of_two_crosses_two_links_and_its_acknowledgements_come_back() {
    let mut line = Line::new(vec![config("fixed", 2); 3], vec![]);
    line.links.keep_table();
    line.send(300, HANDLE);
    line.run();
    let table = [
        "    4.000 ms  0 -> 1  RFRAG 0, 74 octets at 0",
        "    8.000 ms  0 -> 1  RFRAG 1, 90 octets at 74, X",
        "    8.000 ms  1 -> 2  RFRAG 0, 75 octets at 0",
        "   12.000 ms  1 -> 2  RFRAG 1, 90 octets at 75, X",
        "   16.000 ms  2 -> 1  RFRAG-ACK c0000000",
        "   20.000 ms  1 -> 0  RFRAG-ACK c0000000",
        "   24.000 ms  0 -> 1  RFRAG 2, 90 octets at 164",
        "   28.000 ms  0 -> 1  RFRAG 3, 60 octets at 254, X",
        "   28.000 ms  1 -> 2  RFRAG 2, 90 octets at 165",
        "   32.000 ms  1 -> 2  RFRAG 3, 60 octets at 255, X",
        "   36.000 ms  2 -> 1  RFRAG-ACK ffffffff",
        "   40.000 ms  1 -> 0  RFRAG-ACK ffffffff",
    ];
    assert_eq!(line.links.table().lines().collect::<Vec<_>>(), table);
}
