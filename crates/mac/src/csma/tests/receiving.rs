//! Frames that come in at an open radio.

use lowmesh_machine::Handle;
use lowmesh_units::{Instant, NodeId, PanId, Purpose, Rng, Seed, ShortAddr};
use lowmesh_wire::ieee802154::{Address, Frame};

use super::bench::*;
use crate::csma::{Acknowledgement, Config, Csma, Input, Output};
use crate::frame;

#[test]
fn a_frame_is_delivered_and_acknowledged_after_a_turnaround() {
    let mut bench = Bench::new(prompt());
    let outputs = bench.hear(&frame_from(PEER, Some(ME), 9));
    let received = Output::Received {
        source: PEER,
        broadcast: false,
        payload: vec![1, 2, 3],
        handle: Handle(77),
    };
    let (octets, destination) = (frame::immediate_ack(9).to_vec(), PEER);
    let acknowledge = Output::Acknowledge { at: bench.now + micros(192), octets, destination };
    assert_eq!(outputs, [received, acknowledge]);
    assert!(!bench.mac.listens());
    bench.wait(micros(192) + ACK);
    assert_eq!(bench.tell(Input::Sent), []);
    assert!(bench.mac.listens());
}

#[test]
fn a_repeated_frame_is_acknowledged_again_but_not_delivered_again() {
    let mut bench = Bench::new(prompt());
    let mut hear = |sequence| {
        let outputs = bench.hear(&frame_from(PEER, Some(ME), sequence));
        bench.wait(micros(192) + ACK);
        bench.tell(Input::Sent);
        (outputs.iter().any(is_received), outputs.iter().any(is_acknowledge))
    };
    assert_eq!(hear(9), (true, true));
    assert_eq!(hear(9), (false, true));
    assert_eq!(hear(10), (true, true));
    assert_eq!(bench.mac.counters().duplicates, 1);
}

#[test]
fn every_frame_that_comes_is_counted_once() {
    let mut bench = Bench::new(prompt());
    let other = NodeId(9).eui64();
    let frames = [
        frame_from(PEER, Some(ME), 1),
        frame_from(PEER, Some(ME), 1),
        frame_from(PEER, None, 2),
        frame_from(PEER, Some(other), 3),
        frame::immediate_ack(4).to_vec(),
        vec![0xff; 5],
    ];
    for octets in &frames {
        bench.hear(octets);
        bench.wait(micros(192) + ACK);
        // Only frames to this node alone have an acknowledgement on its way.
        let _refused = bench.try_tell(Input::Sent);
    }
    let counters = bench.mac.counters();
    assert_eq!((counters.accepted, counters.duplicates), (2, 1));
    // An acknowledgement that nobody waits for means nothing.
    assert_eq!((counters.filtered, counters.acknowledged), (2, 0));
    assert_eq!(counters.malformed, 1);
}

#[test]
fn a_repeated_frame_is_delivered_again_where_duplicates_pass() {
    let mut bench = Bench::new(Config { rejects_duplicates: false, ..prompt() });
    for duplicates in 0..2 {
        let outputs = bench.hear(&frame_from(PEER, Some(ME), 9));
        assert!(outputs.iter().any(is_received) && outputs.iter().any(is_acknowledge));
        assert_eq!(bench.mac.counters().duplicates, duplicates);
        bench.wait(micros(192) + ACK);
        bench.tell(Input::Sent);
    }
}

#[test]
fn the_same_number_is_news_when_it_comes_half_a_second_later() {
    let mut bench = Bench::new(Config::null());
    assert!(bench.hear(&frame_from(PEER, Some(ME), 9)).iter().any(is_received));
    bench.wait(micros(500_000));
    assert!(bench.hear(&frame_from(PEER, Some(ME), 9)).iter().any(is_received));
}

#[test]
fn the_same_number_from_two_neighbours_is_two_frames() {
    let mut bench = Bench::new(Config::null());
    assert!(bench.hear(&frame_from(PEER, Some(ME), 9)).iter().any(is_received));
    assert!(bench.hear(&frame_from(OTHER, Some(ME), 9)).iter().any(is_received));
}

#[test]
fn frames_to_everyone_are_delivered_without_acknowledgement() {
    let mut bench = Bench::new(prompt());
    let outputs = bench.hear(&frame_from(PEER, None, 9));
    assert!(matches!(outputs[..], [Output::Received { broadcast: true, .. }]), "{outputs:?}");
}

#[test]
fn frames_for_others_and_of_other_networks_are_nothing() {
    let mut bench = Bench::new(prompt());
    assert_eq!(bench.hear(&frame_from(PEER, Some(OTHER), 9)), []);
    let elsewhere = frame::data_2006(PanId(0x1111), PEER, Some(ME), 9, true, &[1]);
    assert_eq!(bench.hear(&elsewhere), []);
    assert_eq!(bench.mac.links().iter().count(), 0);
}

#[test]
fn a_neighbour_with_a_short_address_is_heard_and_answered_under_it() {
    let (short, mine) = (ShortAddr(0x1234), ShortAddr(0x0007));
    let mut bench = Bench::new(Config { short: Some(mine), ..prompt() });
    for to in [ME, mine.eui64()] {
        let outputs = bench.hear(&frame_from(short.eui64(), Some(to), to.0[7]));
        let [Output::Received { source, broadcast: false, .. }, Output::Acknowledge { .. }] =
            outputs[..]
        else {
            panic!("{outputs:?}")
        };
        assert_eq!(source, short.eui64());
        bench.wait(micros(192) + ACK);
        bench.tell(Input::Sent);
    }
    assert_eq!(bench.hear(&frame_from(short.eui64(), Some(ShortAddr(8).eui64()), 3)), []);
    let mut nameless = frame_from(short.eui64(), Some(ME), 4);
    let source = nameless.len() - 5..nameless.len() - 3;
    nameless[source].copy_from_slice(&ShortAddr::NONE.0.to_le_bytes());
    assert_eq!(bench.hear(&nameless), []);
    let frame = frame::data_2006(PanId(0xabcd), ME, Some(short.eui64()), 9, true, &[0x41]);
    let header = Frame::parse(&frame).expect("an own frame").header;
    assert_eq!(header.destination, Some(Address::Short(short)));
}

#[test]
fn a_frame_of_the_2015_edition_is_acknowledged_by_an_enhanced_acknowledgement() {
    let mut bench = Bench::new(prompt());
    let short = ShortAddr(0x1234).eui64();
    for (source, sequence) in [(PEER, 9), (short, 10)] {
        let content = frame::Content::Payload(&[0x41]);
        let octets = frame::data(PanId(0xabcd), source, Some(ME), sequence, content);
        let outputs = bench.hear(&octets);
        let [Output::Received { .. }, Output::Acknowledge { octets, .. }] = &outputs[..] else {
            panic!("{outputs:?}")
        };
        assert_eq!(*octets, frame::plain_ack(source, Some(sequence)));
        bench.wait(micros(192) + frame::airtime(octets.len()));
        bench.tell(Input::Sent);
    }
}

#[test]
fn an_enhanced_acknowledgement_for_another_node_confirms_nothing() {
    let mut bench = Bench::new(prompt());
    let asked = bench.send(Some(PEER), 1);
    let asked = bench.sense(&asked, false);
    let (octets, _) = bench.transmit(&asked);
    assert_eq!(bench.hear(&frame::plain_ack(OTHER, Some(octets[2]))), []);
    let outputs = bench.hear(&frame::plain_ack(ME, Some(octets[2])));
    assert!(outputs.iter().any(|output| matches!(output, Output::Sent { .. })), "{outputs:?}");
}

#[test]
fn a_captured_frame_between_16_bit_addresses_arrives_and_is_acknowledged() {
    // The ping of `wire::lowpan::tests::SHORT_PING`, without FCS.
    let ping = [
        0x61, 0x88, 0x13, 0xce, 0xfa, 0x00, 0x10, 0x00, 0x00, 0x7a, 0x33, 0x3a, 0x80, 0x00, 0x63,
        0x9e, 0, 0, 0, 0, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
    ];
    let (pan, mine) = (PanId(0xface), ShortAddr(0x1000));
    let mut bench = Bench::new(Config { pan, short: Some(mine), ..prompt() });
    let outputs = bench.hear(&ping);
    let [Output::Received { source, ref payload, .. }, Output::Acknowledge { .. }] = outputs[..]
    else {
        panic!("{outputs:?}")
    };
    assert_eq!((source, &payload[..]), (ShortAddr(0).eui64(), &ping[9..]));
}

#[test]
fn the_short_addresses_of_groups_name_no_neighbour() {
    for group in [ShortAddr::BROADCAST, ShortAddr::NONE] {
        // The neighbour that a packet from `fe80::ff:fe00:ffff` claims to be: no frame to it is a broadcast.
        let frame = frame::data_2006(PanId(0xabcd), ME, Some(group.eui64()), 9, true, &[0x41]);
        let header = Frame::parse(&frame).expect("an own frame").header;
        assert_eq!(header.destination, Some(Address::Extended(group.eui64())));
    }
}

#[test]
fn no_beginning_of_a_frame_upsets_the_mac() {
    let mut bench = Bench::new(prompt());
    let whole = frame_from(PEER, Some(ME), 9);
    let header = whole.len() - 3;
    for end in 0..header {
        assert_eq!(bench.hear(&whole[..end]), [], "cut at {end}");
    }
}

#[test]
fn the_processor_acknowledges_later_than_the_radio_would() {
    let acknowledgement = Acknowledgement::Software { delay: micros(700) };
    let mut bench = Bench::new(Config { acknowledgement, ..prompt() });
    let outputs = bench.hear(&frame_from(PEER, Some(ME), 9));
    let [_, Output::Acknowledge { at, .. }] = outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(at.since(bench.now), micros(700));
}

#[test]
fn a_mac_without_acknowledgements_gives_none() {
    let mut bench = Bench::new(Config::null());
    let outputs = bench.hear(&frame_from(PEER, Some(ME), 9));
    assert!(matches!(outputs[..], [Output::Received { .. }]), "{outputs:?}");
}

#[test]
fn the_open_radio_hears_during_backoff_and_takes_its_own_part_in_traffic_for_busy() {
    let mut bench = Bench::new(prompt());
    let asked = bench.send(Some(OTHER), 1);
    assert!(bench.mac.listens());
    bench.tell(Input::Incoming);
    // In the middle of a frame, whatever was measured.
    let asked = bench.sense(&asked, false);
    assert!(matches!(asked[..], [Output::Sense { .. }]), "{asked:?}");
    let outputs = bench.hear(&frame_from(PEER, Some(ME), 9));
    assert!(outputs.iter().any(is_acknowledge));
    // And while its own acknowledgement is on its way out.
    let asked = bench.sense(&asked, false);
    let [Output::Sense { at }] = asked[..] else { panic!("{asked:?}") };
    bench.tell(Input::Sent);
    bench.now = at;
    assert!(matches!(bench.sense(&asked, false)[..], [Output::Transmit { .. }]));
}

#[test]
fn a_frame_can_come_while_an_acknowledgement_is_waited_for() {
    let mut bench = Bench::new(prompt());
    let asked = bench.send(Some(PEER), 1);
    let asked = bench.sense(&asked, false);
    let (octets, _) = bench.transmit(&asked);
    let outputs = bench.hear(&frame_from(OTHER, Some(ME), 9));
    assert!(outputs.iter().any(is_received));
    bench.wait(micros(192) + ACK);
    bench.tell(Input::Sent);
    let outputs = bench.hear(&frame::immediate_ack(octets[2]));
    assert!(matches!(outputs[..], [.., Output::Sent { handle: Handle(1), .. }]), "{outputs:?}");
}

#[test]
fn a_deaf_radio_hears_neither_the_start_nor_the_whole_of_a_frame() {
    let mut bench = Bench::new(prompt());
    let asked = bench.send(Some(OTHER), 1);
    bench.sense(&asked, false);
    assert!(bench.try_tell(Input::Incoming).is_err());
    assert_eq!(bench.hear(&frame_from(PEER, Some(ME), 9)), []);
}

#[test]
fn a_mac_that_is_off_neither_hears_nor_sends() {
    let rng = Rng::stream(Seed(7), NodeId(1), Purpose::Mac);
    let mac = Csma::new(Config::default(), ME, rng);
    let mut bench = Bench { now: Instant::ZERO, mac };
    assert!(!bench.mac.listens());
    assert_eq!(bench.hear(&frame_from(PEER, Some(ME), 9)), []);
    assert!(matches!(bench.send(Some(PEER), 1)[..], [Output::Dropped { .. }]));
}

#[test]
fn the_radio_listens_whenever_it_does_not_send() {
    let mut bench = Bench::new(prompt());
    bench.wait(micros(10_000));
    let asked = bench.send(None, 1);
    let asked = bench.sense(&asked, false);
    let (octets, _) = bench.transmit(&asked);
    let time = bench.mac.radio_time(bench.now);
    assert_eq!(time.tx, frame::airtime(octets.len()));
    assert_eq!(time.on(), bench.now.since(Instant::from_secs(1)));
}
