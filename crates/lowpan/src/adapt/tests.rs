//! Two adaptation layers over a link that the test holds in its hands.

use lowmesh_units::{Duration, NodeId, Purpose, Seed};
use lowmesh_wire::ipv6::next_header;

use super::*;
use packets::PREFIX;

mod packets;
mod recovered;

const HERE: Eui64 = NodeId(1).eui64();
const THERE: Eui64 = NodeId(2).eui64();

fn layer(address: Eui64, config: Config) -> Adaptation {
    let rng = Rng::stream(Seed(1), NodeId(1), Purpose::Lowpan);
    Adaptation::new(address, Contexts::new().with(0, PREFIX), config, rng)
}

fn packet(data: usize) -> Vec<u8> {
    packets::udp(HERE, THERE, data)
}

/// All outputs but those that only keep the books, which have tests of their own.
fn outputs(layer: &mut Adaptation) -> Vec<Output> {
    let all = core::iter::from_fn(|| layer.poll_output());
    all.filter(|output| !matches!(output, Output::Accepted { .. })).collect()
}

/// How often packets were taken over and how often they left or ended.
fn books(layer: &mut Adaptation) -> (usize, usize) {
    let all: Vec<Output> = core::iter::from_fn(|| layer.poll_output()).collect();
    let accepted = |o: &&Output| matches!(o, Output::Accepted { .. });
    let over = |o: &&Output| matches!(o, Output::Packet { .. } | Output::Dropped(_));
    (all.iter().filter(accepted).count(), all.iter().filter(over).count())
}

fn take(layer: &mut Adaptation, at: u64, frame: &[u8], handle: u64) {
    let (source, destination) = (HERE, Some(THERE));
    let input = Input::Frame {
        payload: frame,
        source,
        destination,
        handle: Handle(handle),
        is_proven: false,
    };
    layer.handle(Instant::from_millis(at), input).expect("frames are never rejected");
}

#[test]
fn every_packet_that_is_taken_over_leaves_or_ends_or_waits() {
    let config = Config { reassembly_buffers: 2, ..Config::default() };
    let mut receiver = layer(THERE, config);
    let mut sender = layer(HERE, Config::default());
    let (mut taken, mut over) = (0, 0);
    for handle in 1..=5 {
        let size = if handle == 1 { 20 } else { 300 };
        let frames = frames_from(&mut sender, packet(size), handle);
        // The last fragment of every other datagram is lost; all first ones come twice.
        let kept = frames.len() - usize::from(handle % 2 == 0 && frames.len() > 1);
        let twice = (frames.len() > 1).then(|| &frames[0]);
        for frame in frames[..kept].iter().chain(twice) {
            take(&mut receiver, handle, frame, handle);
            let (accepted, ended) = books(&mut receiver);
            (taken, over) = (taken + accepted, over + ended);
            assert_eq!(taken - over, receiver.handles().count());
        }
    }
    receiver.handle(Instant::from_secs(100), Input::Deadline).expect("a deadline");
    let (_, ended) = books(&mut receiver);
    assert_eq!((taken, receiver.handles().count()), (over + ended, 0));
}

fn send(layer: &mut Adaptation, bytes: Vec<u8>, handle: u64) {
    let input = Input::Packet { bytes, destination: Some(THERE), handle: Handle(handle) };
    layer.handle(Instant::from_millis(0), input).expect("a whole packet");
}

/// Sends a packet and confirms every frame as delivered; returns the frames.
fn frames_of(bytes: Vec<u8>, handle: u64) -> Vec<Vec<u8>> {
    frames_from(&mut layer(HERE, Config::default()), bytes, handle)
}

/// The same from a layer that goes on, so that each datagram has a tag of its own.
fn frames_from(sender: &mut Adaptation, bytes: Vec<u8>, handle: u64) -> Vec<Vec<u8>> {
    send(sender, bytes, handle);
    let mut frames = Vec::new();
    while let Some(output) = sender.poll_output() {
        if let Output::Frame { payload, handle, .. } = output {
            frames.push(payload);
            let input = Input::FrameDone { handle, result: Ok(()) };
            sender.handle(Instant::from_millis(0), input).expect("a confirmation");
        }
    }
    frames
}

fn receive(layer: &mut Adaptation, at: u64, frame: &[u8], handle: u64) -> Vec<Output> {
    let input = Input::Frame {
        payload: frame,
        source: HERE,
        destination: Some(THERE),
        handle: Handle(handle),
        is_proven: false,
    };
    layer.handle(Instant::from_millis(at), input).expect("frames are never rejected");
    outputs(layer)
}

fn arrived(bytes: Vec<u8>, handle: u64) -> Vec<Output> {
    std::vec![Output::Packet { bytes, source: HERE, broadcast: false, handle: Handle(handle) }]
}

fn dropped(handle: u64, reason: DropReason) -> Vec<Output> {
    let handle = Handle(handle);
    std::vec![Output::Dropped(Dropped { handle, layer: Layer::Lowpan, reason })]
}

#[test]
fn a_small_packet_crosses_in_one_frame() {
    let frames = frames_of(packet(20), 5);
    // Dispatch (2), ports (2), checksum (2), data: both addresses come from the frame and the context.
    assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), [2 + 2 + 2 + 20]);
    let mut receiver = layer(THERE, Config::default());
    assert_eq!(receive(&mut receiver, 0, &frames[0], 5), arrived(packet(20), 5));
}

#[test]
fn a_large_packet_crosses_in_fragments_in_any_order() {
    let frames = frames_of(packet(400), 5);
    assert!(frames.len() > 4 && frames.iter().all(|frame| frame.len() <= 96));
    let mut receiver = layer(THERE, Config::default());
    for frame in frames[1..].iter().rev() {
        assert_eq!(receive(&mut receiver, 0, frame, 5), []);
    }
    assert_eq!(receive(&mut receiver, 0, &frames[0], 5), arrived(packet(400), 5));
    assert_eq!(receiver.next_deadline(), None);
}

#[test]
fn every_size_up_to_the_mtu_arrives_as_it_was() {
    for data in (0..=MTU - 48).step_by(7) {
        let mut receiver = layer(THERE, Config::default());
        let frames = frames_of(packet(data), 9);
        let seen: Vec<Output> =
            frames.iter().flat_map(|frame| receive(&mut receiver, 0, frame, 9)).collect();
        assert_eq!(seen, arrived(packet(data), 9), "{data} octets");
    }
}

#[test]
fn a_fragmented_packet_is_confirmed_once() {
    let mut sender = layer(HERE, Config { fragments_in_flight: 2, ..Config::default() });
    send(&mut sender, packet(400), 5);
    let (mut on_way, mut frames, mut lasts, mut done) = (0, 0, 0, Vec::new());
    loop {
        for output in outputs(&mut sender) {
            match output {
                Output::Frame { last, .. } => {
                    (on_way, frames, lasts) = (on_way + 1, frames + 1, lasts + usize::from(last));
                }
                other => done.push(other),
            }
        }
        assert!(on_way <= 2);
        if on_way == 0 {
            break;
        }
        on_way -= 1;
        let input = Input::FrameDone { handle: Handle(5), result: Ok(()) };
        sender.handle(Instant::from_millis(0), input).expect("a confirmation");
    }
    assert_eq!((frames, lasts), (frames_of(packet(400), 5).len(), 1));
    assert_eq!(done, [Output::PacketDone { handle: Handle(5), result: Ok(()) }]);
}

#[test]
fn a_failed_fragment_abandons_the_packet() {
    let mut sender = layer(HERE, Config::default());
    send(&mut sender, packet(400), 5);
    assert!(matches!(outputs(&mut sender)[..], [Output::Frame { last: false, .. }]));
    let input = Input::FrameDone { handle: Handle(5), result: Err(DropReason::NoAck) };
    sender.handle(Instant::from_millis(0), input).expect("a confirmation");
    let done = Output::PacketDone { handle: Handle(5), result: Err(DropReason::NoAck) };
    assert_eq!(outputs(&mut sender), [done]);
    assert_eq!(sender.fragmented_datagrams(), 0);
}

#[test]
fn a_duplicate_fragment_changes_nothing() {
    let frames = frames_of(packet(200), 5);
    let mut receiver = layer(THERE, Config::default());
    let mut seen = Vec::new();
    for frame in &frames {
        seen.extend(receive(&mut receiver, 0, frame, 5));
        seen.extend(receive(&mut receiver, 1, frame, 5));
    }
    assert_eq!(seen, arrived(packet(200), 5));
    assert_eq!(receiver.next_deadline(), None);
}

#[test]
fn an_overlapping_fragment_restarts_the_reassembly() {
    let frames = frames_of(packet(200), 5);
    let mut receiver = layer(THERE, Config::default());
    assert_eq!(receive(&mut receiver, 0, &frames[0], 5), []);
    // The second fragment without its last eight octets, and then whole.
    assert_eq!(receive(&mut receiver, 0, &frames[1][..frames[1].len() - 8], 5), []);
    assert_eq!(receive(&mut receiver, 0, &frames[1], 5), []);
    assert_eq!(receive(&mut receiver, 0, &frames[2], 5), []);
    assert_eq!(receive(&mut receiver, 0, &frames[0], 5), arrived(packet(200), 5));
}

#[test]
fn a_datagram_with_a_hole_times_out() {
    let frames = frames_of(packet(200), 5);
    let mut receiver = layer(THERE, Config::default());
    receive(&mut receiver, 1000, &frames[0], 5);
    let deadline = Instant::from_millis(1000) + Config::default().reassembly_timeout;
    assert_eq!(receiver.next_deadline(), Some(deadline));
    let early = deadline - Duration::from_millis(1);
    receiver.handle(early, Input::Deadline).expect("a deadline");
    assert_eq!(outputs(&mut receiver), []);
    receiver.handle(deadline, Input::Deadline).expect("a deadline");
    assert_eq!(outputs(&mut receiver), dropped(5, DropReason::ReassemblyTimeout));
    // What comes late is not a second loss.
    assert_eq!(receive(&mut receiver, 12_000, &frames[1], 5), []);
    assert_eq!(receiver.next_deadline(), None);
}

#[test]
fn without_a_free_buffer_a_datagram_is_dropped_once() {
    let mut receiver = layer(THERE, Config { reassembly_buffers: 1, ..Config::default() });
    let first = frames_of(packet(200), 5);
    let second = frames_of(packet(208), 6);
    assert_eq!(receive(&mut receiver, 0, &first[0], 5), []);
    assert_eq!(receive(&mut receiver, 0, &second[0], 6), dropped(6, DropReason::BufferFull));
    assert_eq!(receive(&mut receiver, 0, &second[1], 6), []);
    assert_eq!(receiver.packet_buffer().reassembly, 248);
}

#[test]
fn half_datagrams_of_one_neighbour_do_not_make_a_node_deaf_to_others() {
    let mut receiver = layer(THERE, Config::default());
    let mut attacker = layer(NodeId(9).eui64(), Config::default());
    for handle in 1..=2 {
        let half = &frames_from(&mut attacker, packet(1200), handle)[0];
        let source = NodeId(9).eui64();
        let destination = Some(THERE);
        let input = Input::Frame {
            payload: half,
            source,
            destination,
            handle: Handle(handle),
            is_proven: false,
        };
        receiver.handle(Instant::from_millis(handle), input).expect("frames are never rejected");
    }
    assert_eq!(outputs(&mut receiver), []);
    let frames = frames_of(packet(1000), 5);
    assert_eq!(receive(&mut receiver, 3, &frames[0], 5), dropped(1, DropReason::BufferFull));
    for frame in &frames[1..frames.len() - 1] {
        assert_eq!(receive(&mut receiver, 4, frame, 5), []);
    }
    let whole = receive(&mut receiver, 5, &frames[frames.len() - 1], 5);
    assert!(matches!(&whole[..], [Output::Packet { handle: Handle(5), .. }]), "{whole:?}");
}

#[test]
fn a_neighbours_own_half_datagrams_give_way_after_an_eighth_of_the_timeout() {
    let mut receiver = layer(THERE, Config::default());
    let mut sender = layer(HERE, Config::default());
    for handle in 1..=2 {
        let half = &frames_from(&mut sender, packet(1200), handle)[0];
        assert_eq!(receive(&mut receiver, 0, half, handle), []);
    }
    let early = &frames_from(&mut sender, packet(1000), 3)[0];
    assert_eq!(receive(&mut receiver, 1249, early, 3), dropped(3, DropReason::BufferFull));
    let late = &frames_from(&mut sender, packet(1000), 4)[0];
    assert_eq!(receive(&mut receiver, 1250, late, 4), dropped(1, DropReason::BufferFull));
}

#[test]
fn too_many_octets_are_refused_as_well() {
    let mut receiver = layer(THERE, Config { reassembly_octets: 200, ..Config::default() });
    let frames = frames_of(packet(200), 5);
    assert_eq!(receive(&mut receiver, 0, &frames[0], 5), dropped(5, DropReason::BufferFull));
}

#[test]
fn packets_that_cannot_go_are_dropped_with_the_reason() {
    let mut sender = layer(HERE, Config { fragmented_datagrams: 0, ..Config::default() });
    send(&mut sender, packet(400), 5);
    assert_eq!(outputs(&mut sender), dropped(5, DropReason::BufferFull));
    send(&mut sender, packet(MTU), 6);
    assert_eq!(outputs(&mut sender), dropped(6, DropReason::TooLarge));
    let mut narrow = layer(HERE, Config { frame_payload: 5, ..Config::default() });
    send(&mut narrow, packet(10), 7);
    assert_eq!(outputs(&mut narrow), dropped(7, DropReason::TooLarge));
}

#[test]
fn a_next_hop_that_shares_places_holds_no_more_than_are_free() {
    let shared =
        Config { fragmented_datagrams: 4, shares_fragmentation: true, ..Config::default() };
    for (config, to_one) in [(Config { shares_fragmentation: false, ..shared }, 4), (shared, 2)] {
        let mut sender = layer(HERE, config);
        for handle in 1..=4 {
            send(&mut sender, packet(400), handle);
        }
        let refused = |output: &Output| matches!(output, Output::Dropped(_));
        assert_eq!(outputs(&mut sender).iter().filter(|one| refused(one)).count(), 4 - to_one);
        assert_eq!(sender.fragmented_datagrams(), to_one);
    }
}

#[test]
fn bytes_that_are_no_ipv6_packet_are_rejected() {
    let mut sender = layer(HERE, Config::default());
    let input = Input::Packet { bytes: std::vec![0; 60], destination: None, handle: Handle::NONE };
    assert!(sender.handle(Instant::from_millis(0), input).is_err());
    assert_eq!(outputs(&mut sender), []);
}

#[test]
fn frames_that_are_not_lowpan_are_dropped() {
    let mut receiver = layer(THERE, Config::default());
    for frame in [&[][..], &[0x00, 1], &[0x80, 0], &[0x7f], &[0xc0, 0x10]] {
        assert_eq!(receive(&mut receiver, 0, frame, 4), dropped(4, DropReason::Malformed));
    }
}

proptest::proptest! {
    #[test]
    fn no_sequence_of_frames_makes_the_layer_panic_or_hoard(
        frames in proptest::collection::vec(
            (0u8..2, proptest::collection::vec(proptest::num::u8::ANY, 0..60)), 0..40),
    ) {
        let mut receiver = layer(THERE, Config::default());
        for (at, (kind, mut frame)) in frames.into_iter().enumerate() {
            // Small sizes and two tags, so that the fragments meet.
            let dispatch = [[0xc0, 0x50, 0, 1], [0xe0, 0x50, 0, 1]][usize::from(kind)];
            frame.splice(0..0, dispatch);
            receive(&mut receiver, at as u64, &frame, 1);
            assert!(receiver.packet_buffer().reassembly <= Config::default().reassembly_octets);
        }
    }
}

#[test]
fn fragments_of_another_implementation_make_its_packet() {
    let file = include_str!("../../../../tests/vectors/lowpan/fragments.txt");
    let octets = |hex: &str| -> Vec<u8> {
        let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex digits");
        (0..hex.len()).step_by(2).map(digits).collect()
    };
    let mut lines =
        file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(octets);
    let whole = lines.next().expect("the packet");
    let mut receiver = layer(THERE, Config::default());
    let seen: Vec<Output> = lines.flat_map(|frame| receive(&mut receiver, 0, &frame, 5)).collect();
    assert_eq!(seen, arrived(whole, 5));
}

#[test]
fn frames_that_scapy_builds_make_its_packets() {
    let file = include_str!("../../../../tests/vectors/lowpan/scapy.txt");
    let octets = |hex: &str| -> Vec<u8> {
        let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex digits");
        (0..hex.len()).step_by(2).map(digits).collect()
    };
    let mut frames = 0;
    for line in file.lines() {
        let mut columns = line.split_whitespace();
        let name = columns.next().expect("a name");
        let whole = octets(columns.next().expect("a packet"));
        let mut receiver = layer(THERE, Config::default());
        let mut seen = Vec::new();
        for frame in columns {
            seen.extend(receive(&mut receiver, 0, &octets(frame), 5));
            frames += 1;
        }
        assert_eq!(seen, arrived(whole, 5), "{name}");
    }
    assert!(frames > 20, "{frames} frames");
}

#[test]
fn headers_that_outgrow_the_first_fragment_are_not_compressed() {
    // A source route of ten whole addresses between the IPv6 and the UDP header.
    let plain = packet(100);
    let mut routing = std::vec![next_header::UDP, 20, 3, 0, 0, 0, 0, 0];
    routing.extend((0..160).map(|i| i as u8));
    let mut whole = plain.clone();
    whole.splice(40..40, routing.iter().copied());
    let length = (whole.len() - 40) as u16;
    whole[4..6].copy_from_slice(&length.to_be_bytes());
    whole[6] = next_header::ROUTING;
    let frames = frames_of(whole.clone(), 5);
    // FRAG1, IPHC with an in-line next header, then the routing header as it is.
    assert_eq!(frames[0][6..15], [next_header::ROUTING, next_header::UDP, 20, 3, 0, 0, 0, 0, 0]);
    let mut receiver = layer(THERE, Config::default());
    let seen: Vec<Output> =
        frames.iter().flat_map(|frame| receive(&mut receiver, 0, frame, 5)).collect();
    assert_eq!(seen, arrived(whole, 5));
}

/// The order in which datagrams begin and end at their sender, for three packets to one neighbour, or to another each.
fn order_of_three(config: Config, neighbours: u16) -> Vec<u64> {
    let mut sender = layer(HERE, config);
    for handle in 1..=3 {
        let to = NodeId(10 + handle % neighbours).eui64();
        let bytes = packets::udp(HERE, to, 300);
        let (destination, handle) = (Some(to), Handle(handle.into()));
        sender
            .handle(Instant::ZERO, Input::Packet { bytes, destination, handle })
            .expect("a whole packet");
    }
    let (mut order, mut waiting) = (Vec::new(), VecDeque::new());
    loop {
        while let Some(output) = sender.poll_output() {
            if let Output::Frame { handle, .. } = output {
                waiting.push_back(handle);
            }
        }
        let Some(handle) = waiting.pop_front() else { return order };
        order.push(handle.0);
        let input = Input::FrameDone { handle, result: Ok(()) };
        sender.handle(Instant::ZERO, input).expect("a confirmation");
    }
}

#[test]
fn datagrams_to_one_neighbour_are_sent_one_after_the_other_and_to_others_in_turn() {
    for in_flight in 1..4 {
        let config = Config { fragments_in_flight: in_flight, ..Config::default() };
        let order = order_of_three(config, 1);
        assert!(order.len() > 9 && order.is_sorted(), "{order:?}");
        assert!(!order_of_three(config, 3).is_sorted());
    }
}

#[test]
fn a_datagram_that_fails_gives_its_turn_to_the_next() {
    let mut sender = layer(HERE, Config::default());
    send(&mut sender, packet(300), 1);
    send(&mut sender, packet(300), 2);
    let sent = |sender: &mut Adaptation| -> Vec<u64> {
        let of = |output: &Output| match output {
            Output::Frame { handle, .. } => Some(handle.0),
            _ => None,
        };
        outputs(sender).iter().filter_map(of).collect()
    };
    assert_eq!(sent(&mut sender), [1]);
    let lost = Input::FrameDone { handle: Handle(1), result: Err(DropReason::NoAck) };
    sender.handle(Instant::ZERO, lost).expect("a confirmation");
    assert_eq!(sent(&mut sender), [2]);
}
