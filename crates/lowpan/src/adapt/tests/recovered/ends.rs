//! How datagrams end: delivered, given up, refused, or without a tag.

use lowmesh_units::Duration;
use lowmesh_wire::lowpan::rfrag::{Bitmap, Part as RfragPart, Rfrag, RfragAck};

use super::line::*;
use crate::adapt::*;

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
    let ended = line.now();
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
    assert!(line.now() < Instant::from_millis(100) && line.is_empty());
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
        let input = Input::Frame {
            payload: fragment,
            source,
            destination,
            handle: HANDLE,
            is_proven: false,
        };
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
    let input =
        Input::Frame { payload: &payload, source, destination, handle: HANDLE, is_proven: false };
    line.nodes[0].handle(Instant::ZERO, input).expect("frames are never rejected");
    assert_eq!(line.nodes[0].poll_output(), None);
    assert!(line.is_empty());
}
