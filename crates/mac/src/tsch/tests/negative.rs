//! Negative acknowledgements: IEEE 802.15.4-2015 s7.4.2.7, bit 15 of the time correction.

use super::*;

/// The vector of an acknowledgement with one octet changed: bit 15 of its last field is set.
fn refusal_of_another_stack() -> Vec<u8> {
    let (_, mut octets) = acknowledgements().remove(0);
    *octets.last_mut().expect("not empty") |= 0x80;
    octets
}

/// The frame of node 1 that is next, answered with `answer`.
fn answer_next(pair: &mut Pair, answer: &[u8]) {
    let slot = pair.macs[1].next_transmission().expect("there is a cell");
    pair.now = slot;
    pair.macs[1].transmit(slot).expect("a frame waits");
    let (rssi, handle) = (Dbm(-70.0), Handle::NONE);
    pair.macs[1].finish(slot, Some(Reception { octets: answer, rssi, late_micros: 0, handle }));
    pair.drain();
}

fn etx(pair: &Pair, peer: Eui64) -> Option<u16> {
    pair.macs[1].links().get(peer).map(|link| link.etx)
}

#[test]
fn a_refused_frame_is_sent_again_and_the_clock_is_corrected() {
    let [peer, me] = [1, 2].map(|last| Eui64([0xc1, 0x0c, 0, 0, 0, 0, 0, last]));
    let mut pair = Pair::between([peer, me], &Config::default()).quiet();
    pair.macs[1].sender.sequence = 0;
    pair.send(1, peer, 7);
    pair.outputs = [Vec::new(), Vec::new()];
    let before = etx(&pair, peer);
    answer_next(&mut pair, &refusal_of_another_stack());
    assert_eq!(pair.outputs[1], [Output::AdjustClock { micros: -214 }], "not sent yet");
    let (_, accepted) = acknowledgements().remove(0);
    answer_next(&mut pair, &accepted);
    let (handle, destination) = (Handle(7), Some(peer));
    let sent = Output::Sent { handle, destination, transmissions: 2 };
    assert!(pair.outputs[1].contains(&sent));
    assert!(etx(&pair, peer) <= before, "the link carried both copies");
}

#[test]
fn a_frame_refused_to_the_end_finds_a_full_queue_and_its_neighbour_is_there() {
    let [peer, me] = [1, 2].map(|last| Eui64([0xc1, 0x0c, 0, 0, 0, 0, 0, last]));
    let config = Config { retries_max: 2, ..Config::default() };
    let mut pair = Pair::between([peer, me], &config).quiet();
    pair.macs[1].sender.sequence = 0;
    pair.send(1, peer, 7);
    let acked = |pair: &Pair| pair.macs[1].schedule().cells().map(|c| c.used.acked).sum::<u32>();
    let before = (etx(&pair, peer), acked(&pair));
    for _ in 0..3 {
        answer_next(&mut pair, &refusal_of_another_stack());
    }
    let ends: Vec<(Handle, DropReason)> = pair.outputs[1]
        .iter()
        .filter_map(|output| match output {
            Output::Dropped { dropped, .. } => Some((dropped.handle, dropped.reason)),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [(Handle(7), DropReason::QueueFull)]);
    assert!(etx(&pair, peer) <= before.0);
    assert_eq!(acked(&pair), before.1 + 3);
}

const C: Eui64 = NodeId(2).eui64();

/// Two nodes that are in step; `holder` holds one data frame, which waits for a third node and fills its queue.
fn full(nack_full: bool, holder: usize) -> Pair {
    let config = Config { nack_full, queue_frames_max: 1, ..Config::default() };
    let mut pair = Pair::between([A, B], &config).quiet();
    hold(&mut pair, holder);
    pair
}

/// A data frame waits at `holder` for a cell that does not come in these tests.
fn hold(pair: &mut Pair, holder: usize) {
    let placement = Placement::Fixed { slot: 65_000, channel_offset: 0 };
    let (options, kind, peer) = (CellOptions::TX, CellKind::Negotiated, Some(C));
    let now = pair.now;
    let asn = pair.macs[holder].asn(now);
    let schedule = pair.macs[holder].schedule_mut(now);
    schedule.add_slotframe(1, 65_535).expect("new");
    let spec = CellSpec { slotframe: 1, placement, options, kind, peer };
    schedule.add(asn, spec).expect("fits");
    pair.tell(holder, Input::ScheduleChanged);
    pair.send(holder, C, 1);
}

fn received(pair: &Pair, who: usize) -> usize {
    let came = |o: &&Output| matches!(o, Output::Received { .. } | Output::Sixtop { .. });
    pair.outputs[who].iter().filter(came).count()
}

fn sent(pair: &Pair, who: usize) -> Vec<(Handle, u8)> {
    let sent = |o: &Output| match o {
        Output::Sent { handle, transmissions, .. } => Some((*handle, *transmissions)),
        _ => None,
    };
    pair.outputs[who].iter().filter_map(sent).collect()
}

#[test]
fn a_node_with_a_full_queue_refuses_data_until_there_is_room() {
    let mut pair = full(true, 1);
    pair.send(0, B, 7);
    let is_refused = |pair: &Pair| {
        let queue = pair.macs[0].queues().get(Some(B));
        queue.and_then(|queue| queue.front()).is_some_and(|frame| frame.refusals > 0)
    };
    for _ in 0..100 {
        if !is_refused(&pair) {
            pair.run(Duration::from_millis(10));
        }
    }
    assert!(is_refused(&pair));
    assert_eq!((received(&pair, 1), sent(&pair, 0)), (0, vec![]));
    pair.tell(1, Input::Flush(C));
    pair.run(Duration::from_secs(20));
    // The copy that was refused is not taken for the first of two equal ones.
    assert_eq!(received(&pair, 1), 1);
    assert!(matches!(sent(&pair, 0)[..], [(Handle(7), 2..)]));
}

#[test]
fn a_copy_of_a_frame_that_was_taken_is_never_refused() {
    let config = Config { nack_full: true, queue_frames_max: 1, ..Config::default() };
    let mut pair = Pair::between([A, B], &config).quiet();
    pair.send(0, B, 7);
    let slot = pair.macs[0].next_transmission().expect("there is a cell");
    let frame = pair.macs[0].transmit(slot).expect("a frame waits");
    let (rssi, handle) = (Dbm(-70.0), Handle::NONE);
    let heard = Reception { octets: &frame.octets, rssi, late_micros: 0, handle };
    assert!(!is_refusal(pair.macs[1].receive(slot, heard)));
    hold(&mut pair, 1);
    let later = slot + Duration::from_millis(110);
    assert!(!is_refusal(pair.macs[1].receive(later, heard)));
}

fn is_refusal(ack: Option<Vec<u8>>) -> bool {
    let ack = ack.expect("the frame is for this node");
    let ack = Frame::parse(&ack).expect("own frame");
    ack.header_ies.time_correction().is_some_and(|correction| correction.nack)
}

#[test]
fn a_node_with_a_full_queue_takes_what_it_does_not_pass_on() {
    let mut pair = full(true, 1);
    let (destination, priority, handle) = (Some(B), Priority::Control, Handle(7));
    for content in [Content::Sixtop(&[0, 7, 0, 0, 0, 0]), Content::Payload(&[])] {
        pair.outputs = [Vec::new(), Vec::new()];
        pair.tell(0, Input::Send { destination, content, priority, handle });
        pair.run(Duration::from_secs(5));
        assert_eq!(sent(&pair, 0), [(Handle(7), 1)], "{content:?}");
    }
}

#[test]
fn a_coordinator_and_a_node_without_the_option_take_each_frame() {
    for (nack_full, holder, sender, to) in [(true, 0, 1, A), (false, 1, 0, B)] {
        let mut pair = full(nack_full, holder);
        pair.send(sender, to, 7);
        pair.run(Duration::from_secs(5));
        assert_eq!((received(&pair, holder), sent(&pair, sender)), (1, vec![(Handle(7), 1)]));
    }
}

#[test]
fn a_node_whose_queue_to_its_time_source_is_full_refuses_what_comes_from_elsewhere() {
    let mut config = Config { nack_full: true, queue_frames_max: 4, ..Config::default() };
    config.queue_per_neighbour = 1;
    let mut pair = Pair::between([A, B], &config).quiet();
    pair.open[1] = false;
    // Three quarters of four, see `params::QUEUE_TIME_SOURCE_QUARTERS`.
    (1..=3).for_each(|handle| pair.send(1, A, handle));
    let octets_from = |source: Eui64, destination: Eui64| {
        let pan = Config::default().pan;
        frame::data(pan, source, Some(destination), 9, Content::Payload(&[0x41, 1]))
    };
    let slot = pair.now + Duration::from_millis(110);
    let refuses = |pair: &mut Pair, from: Eui64| {
        let octets = octets_from(from, B);
        let (rssi, handle) = (Dbm(-70.0), Handle::NONE);
        let heard = Reception { octets: &octets, rssi, late_micros: 0, handle };
        is_refusal(pair.macs[1].receive(slot, heard))
    };
    assert!(refuses(&mut pair, C));
    assert!(!refuses(&mut pair, A), "one place is left for what goes down");
}
