//! The fragmenting end; with what all tests here need.

use lowmesh_congestion::window::Limits;
use lowmesh_congestion::{Permit, Window, WindowSpec};
use lowmesh_machine::{DropReason, Handle};
use lowmesh_registry::{Algorithm, Registry};
use lowmesh_units::{Duration, Eui64, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::lowpan::rfrag::{Bitmap, Part, Rfrag, RfragAck};

use super::*;
use crate::params::{Arq, Config, Recovery};

mod gnrc;
mod pair;
mod receiving;

const HERE: Eui64 = NodeId(1).eui64();
const THERE: Eui64 = NodeId(2).eui64();
const ROOM: usize = 90;
const TRIP: Duration = Duration::from_millis(40);

fn datagram(octets: usize) -> Vec<u8> {
    (0..octets).map(|at| (at * 31 + at / 251) as u8).collect()
}

fn rng(seed: u64) -> Rng {
    Rng::stream(Seed(seed), NodeId(1), Purpose::Lowpan)
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn config(window: &str, initial: u32) -> Config {
    let row = Registry::builtin().row(window).expect("a listed name");
    let window = WindowSpec::new(row, Limits::messages(initial, 32));
    let recovery =
        Recovery { window, arq: Arq::fixed(Duration::from_secs(1)), ..Recovery::default() };
    Config { recovery, ..Config::default() }
}

fn sending(octets: usize, config: &Config) -> Sending {
    Sending::new(Handle(7), THERE, datagram(octets), 0x55, ROOM, config).expect("it fits")
}

/// All fragments that may leave at `now`.
fn burst(sending: &mut Sending, now: Instant) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while sending.permits(now) == Permit::Now {
        let next = sending.next_fragment(now, &mut rng(1));
        frames.extend(next.map(|(header, _)| sending.frame(&header)));
    }
    frames
}

/// Sequence and X of a frame.
fn marks(frames: &[Vec<u8>]) -> Vec<(u8, bool)> {
    let header = |frame: &Vec<u8>| Rfrag::parse(frame).expect("an own frame").0;
    frames.iter().map(header).map(|one| (one.part.sequence(), one.ack_request)).collect()
}

fn ack(sequences: &[u8]) -> RfragAck {
    let mut bitmap = Bitmap::NULL;
    for sequence in sequences {
        bitmap.insert(*sequence);
    }
    RfragAck { congestion: false, datagram_tag: 0x55, bitmap }
}

fn take_in(receiving: &mut Receiving, now: Instant, frame: &[u8]) -> (Outcome, Option<RfragAck>) {
    let (header, data) = Rfrag::parse(frame).expect("a whole frame");
    let fragment = Received { header, data, source: HERE, handle: Handle(7), is_proven: false };
    receiving.accept(now, &fragment, usize::MAX)
}

#[test]
fn the_first_fragment_leaves_room_and_the_last_asks() {
    let mut sending = sending(300, &config("fixed", 32));
    let frames = burst(&mut sending, at(0));
    let octets: Vec<usize> = frames.iter().map(Vec::len).collect();
    assert_eq!(octets, [6 + 74, 6 + 90, 6 + 90, 6 + 46]);
    assert_eq!(marks(&frames), [(0, false), (1, false), (2, false), (3, true)]);
    let (first, _) = Rfrag::parse(&frames[0]).expect("an own frame");
    assert_eq!(first.part, Part::First { datagram_size: 300 });
    assert_eq!(sending.deadline(), Some(at(1000)));
}

#[test]
fn thirty_two_fragments_are_the_most() {
    let most = ROOM - 16 + 31 * ROOM;
    let config = Config::default();
    let new = |octets| Sending::new(Handle(7), THERE, datagram(octets), 1, ROOM, &config);
    assert_eq!(new(most).map(|sending| sending.fragments()), Some(32));
    assert!(new(most + 1).is_none());
}

#[test]
fn the_end_of_each_window_asks() {
    let mut sending = sending(500, &config("fixed", 2));
    assert_eq!(marks(&burst(&mut sending, at(0))), [(0, false), (1, true)]);
    assert_eq!(sending.on_ack(&ack(&[0, 1]), at(80)), None);
    assert_eq!(marks(&burst(&mut sending, at(80))), [(2, false), (3, true)]);
    assert_eq!(sending.on_ack(&ack(&[0, 1, 2, 3]), at(160)), None);
    assert_eq!(marks(&burst(&mut sending, at(160))), [(4, false), (5, true)]);
    let full = RfragAck { bitmap: Bitmap::FULL, ..ack(&[]) };
    assert_eq!(sending.on_ack(&full, at(240)), Some(Ending::Delivered));
}

#[test]
fn only_what_is_missing_is_sent_again() {
    let mut sending = sending(500, &config("fixed", 32));
    assert_eq!(burst(&mut sending, at(0)).len(), 6);
    assert_eq!(sending.on_ack(&ack(&[0, 2, 3, 5]), at(80)), None);
    assert_eq!(marks(&burst(&mut sending, at(80))), [(1, false), (4, true)]);
}

#[test]
fn after_a_timeout_the_fragment_that_asked_asks_again() {
    let mut sending = sending(500, &config("fixed", 3));
    assert_eq!(marks(&burst(&mut sending, at(0))), [(0, false), (1, false), (2, true)]);
    assert_eq!(sending.on_timeout(at(999)), None);
    assert_eq!(sending.permits(at(999)), Permit::Blocked);
    assert_eq!(sending.on_timeout(at(1000)), None);
    // The window has room again; the three whose fate is unknown are not sent again before an answer.
    assert_eq!(marks(&burst(&mut sending, at(1000))), [(2, false), (3, false), (4, true)]);
    assert_eq!(sending.on_ack(&ack(&[0, 2, 3, 4]), at(1080)), None);
    assert_eq!(marks(&burst(&mut sending, at(1080))), [(1, false), (5, true)]);
}

#[test]
fn a_fragment_without_retries_ends_the_datagram() {
    let mut config = config("fixed", 1);
    config.recovery.fragment_retries = 2;
    let mut sending = sending(200, &config);
    for second in 0..3 {
        assert_eq!(marks(&burst(&mut sending, at(second * 1000))), [(0, true)]);
        let ending = sending.on_timeout(at((second + 1) * 1000));
        assert_eq!(ending, (second == 2).then_some(Ending::GaveUp));
    }
    assert_eq!(Rfrag::parse(&sending.abort_frame()).expect("own").0.part, Part::Abort);
}

#[test]
fn negative_acknowledgements_use_up_retries_too() {
    let mut config = config("fixed", 32);
    config.recovery.fragment_retries = 1;
    let mut sending = sending(300, &config);
    burst(&mut sending, at(0));
    assert_eq!(sending.on_ack(&ack(&[0, 3]), at(80)), None);
    assert_eq!(marks(&burst(&mut sending, at(80))), [(1, false), (2, true)]);
    assert_eq!(sending.on_ack(&ack(&[0, 2, 3]), at(160)), Some(Ending::GaveUp));
}

#[test]
fn a_datagram_retry_begins_from_scratch_under_another_tag() {
    let mut config = config("appendix-c", 2);
    config.recovery.fragment_retries = 0;
    config.recovery.datagram_retries = 1;
    let mut sending = sending(300, &config);
    burst(&mut sending, at(0));
    assert_eq!(sending.on_timeout(at(1000)), Some(Ending::GaveUp));
    assert_eq!(sending.window().snapshot().window, 1);
    assert!(sending.restart(0x56));
    let frames = burst(&mut sending, at(1000));
    assert_eq!((marks(&frames), frames[0][1]), (vec![(0, false), (1, true)], 0x56));
    assert!(!sending.restart(0x57));
}

#[test]
fn an_acknowledgement_for_fragments_that_never_left_is_not_believed() {
    let mut sending = sending(500, &config("fixed", 2));
    assert_eq!(marks(&burst(&mut sending, at(0))), [(0, false), (1, true)]);
    let full = RfragAck { bitmap: Bitmap::FULL, ..ack(&[]) };
    assert_eq!(sending.on_ack(&full, at(40)), None);
    assert_eq!(sending.received(), 2);
    assert_eq!(marks(&burst(&mut sending, at(40))), [(2, false), (3, true)]);
    assert_eq!(sending.on_ack(&ack(&[0, 1, 2, 3, 4, 31]), at(80)), None);
    assert_eq!(marks(&burst(&mut sending, at(80))), [(4, false), (5, true)]);
}

#[test]
fn a_null_bitmap_ends_the_transmission() {
    let mut sending = sending(300, &config("fixed", 2));
    burst(&mut sending, at(0));
    assert_eq!(sending.on_ack(&ack(&[]), at(50)), Some(Ending::Refused));
}
