//! The two ends over a link that loses, doubles and delays, in virtual time.

use lowmesh_congestion::window::Limits;
use lowmesh_congestion::{Permit, WINDOW_NAMES, WindowSpec};
use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{Duration, Eui64, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::lowpan::rfrag::{Bitmap, Part, Rfrag, RfragAck};
use proptest::prelude::*;

use super::*;
use crate::params::{Arq, Config, Recovery};

mod gnrc;

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
    let window = WindowSpec::new(window, Limits::messages(initial, 32)).expect("a listed name");
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
    let fragment = Received { header, data, source: HERE, handle: Handle(7) };
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
    // The window has room again; the three that nothing is known of are not sent anew before an answer.
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
fn a_null_bitmap_ends_the_transmission() {
    let mut sending = sending(300, &config("fixed", 2));
    burst(&mut sending, at(0));
    assert_eq!(sending.on_ack(&ack(&[]), at(50)), Some(Ending::Refused));
}

#[test]
fn a_mark_reaches_the_window_after_the_acknowledgements() {
    let mut sending = sending(500, &config("abe", 2));
    assert_eq!(burst(&mut sending, at(0)).len(), 4);
    let marked = RfragAck { congestion: true, ..ack(&[0, 1, 2, 3]) };
    assert_eq!(sending.on_ack(&marked, at(80)), None);
    // Slow start to 8, then four fifths of a flight of none, which is two at least.
    assert_eq!(sending.window().snapshot().window, 2);
}

#[test]
fn the_end_acknowledges_when_asked_and_tells_what_it_has() {
    let config = config("fixed", 32);
    let frames = burst(&mut sending(300, &config), at(0));
    let mut receiving = Receiving::new(&config);
    assert_eq!(take_in(&mut receiving, at(1), &frames[0]), (Outcome::Waiting, None));
    let (outcome, answer) = take_in(&mut receiving, at(2), &frames[3]);
    assert_eq!((outcome, answer), (Outcome::Waiting, Some(ack(&[0, 3]))));
    take_in(&mut receiving, at(3), &frames[1]);
    let (outcome, answer) = take_in(&mut receiving, at(4), &frames[2]);
    assert_eq!(outcome, Outcome::Complete { datagram: datagram(300), handle: Handle(7) });
    assert_eq!(answer, None, "nobody asked");
    let (outcome, answer) = take_in(&mut receiving, at(5), &frames[3]);
    assert_eq!(outcome, Outcome::Waiting, "a copy is not a second datagram");
    assert_eq!(answer.map(|ack| ack.bitmap), Some(Bitmap::FULL));
}

#[test]
fn congestion_is_echoed_once() {
    let config = config("fixed", 32);
    let mut frames = burst(&mut sending(300, &config), at(0));
    frames[0][0] |= 1;
    let mut receiving = Receiving::new(&config);
    take_in(&mut receiving, at(1), &frames[0]);
    let echo = |receiving: &mut Receiving| take_in(receiving, at(2), &frames[3]).1;
    assert_eq!(echo(&mut receiving).map(|ack| ack.congestion), Some(true));
    assert_eq!(echo(&mut receiving).map(|ack| ack.congestion), Some(false));
}

#[test]
fn a_later_fragment_of_an_unknown_datagram_is_answered_with_null() {
    let config = config("fixed", 32);
    let frames = burst(&mut sending(300, &config), at(0));
    let mut receiving = Receiving::new(&config);
    let answer = take_in(&mut receiving, at(1), &frames[1]);
    assert_eq!(answer, (Outcome::Unknown, Some(null(0x55))));
    assert_eq!(receiving.next_deadline(), None);
}

#[test]
fn an_abort_frees_the_buffer() {
    let config = config("fixed", 32);
    let mut sending = sending(300, &config);
    let frames = burst(&mut sending, at(0));
    let mut receiving = Receiving::new(&config);
    take_in(&mut receiving, at(1), &frames[0]);
    assert_eq!(receiving.octets(), 300);
    let (outcome, answer) = take_in(&mut receiving, at(2), &sending.abort_frame());
    let reason = DropReason::GaveUp;
    assert_eq!((outcome, answer), (Outcome::Dropped { handle: Handle(7), reason }, None));
    assert_eq!((receiving.octets(), receiving.next_deadline()), (0, None));
}

#[test]
fn a_datagram_without_news_is_given_up_and_its_path_told() {
    let config = config("fixed", 32);
    let frames = burst(&mut sending(300, &config), at(0));
    let mut receiving = Receiving::new(&config);
    take_in(&mut receiving, at(0), &frames[0]);
    take_in(&mut receiving, at(4000), &frames[1]);
    take_in(&mut receiving, at(9000), &frames[1]);
    assert_eq!(receiving.next_deadline(), Some(at(14_000)), "a copy is no news");
    assert_eq!(receiving.expire(at(13_999)), None);
    assert_eq!(receiving.expire(at(14_000)), Some((Handle(7), HERE, null(0x55))));
    assert_eq!((receiving.octets(), receiving.next_deadline()), (0, None));
}

#[test]
fn without_a_free_buffer_the_sender_is_told_at_once() {
    let config = Config { reassembly_octets: 299, ..config("fixed", 32) };
    let frames = burst(&mut sending(300, &config), at(0));
    let mut receiving = Receiving::new(&config);
    let (outcome, answer) = take_in(&mut receiving, at(0), &frames[0]);
    let reason = DropReason::BufferFull;
    assert_eq!(
        (outcome, answer),
        (Outcome::Dropped { handle: Handle(7), reason }, Some(null(0x55)))
    );
}

#[test]
fn octets_that_contradict_those_that_came_end_the_datagram() {
    // The fragment duplication attack (Hummen et al. 2013): other octets for a place that is taken. Whose are true
    // cannot be told, so neither becomes a datagram, and the buffer is free again.
    let config = config("fixed", 32);
    let frames = burst(&mut sending(300, &config), at(0));
    let mut forged = frames[1].clone();
    forged[10] ^= 0xff;
    let mut receiving = Receiving::new(&config);
    take_in(&mut receiving, at(0), &frames[0]);
    take_in(&mut receiving, at(1), &forged);
    let (outcome, answer) = take_in(&mut receiving, at(2), &frames[1]);
    let reason = DropReason::Malformed;
    assert_eq!(
        (outcome, answer),
        (Outcome::Dropped { handle: Handle(7), reason }, Some(null(0x55)))
    );
    assert_eq!(receiving.octets(), 0);
}

#[test]
fn first_fragments_alone_hold_no_more_than_the_bound_and_no_longer_than_the_timeout() {
    // The buffer reservation attack (Hummen et al. 2013): first fragments of datagrams that never end.
    let config = config("fixed", 32);
    let mut first = burst(&mut sending(300, &config), at(0)).remove(0);
    let mut receiving = Receiving::new(&config);
    for tag in 0..=255 {
        first[1] = tag;
        take_in(&mut receiving, at(tag.into()), &first);
        assert!(receiving.octets() <= config.reassembly_octets);
        assert!(receiving.handles().count() <= config.reassembly_buffers);
    }
    while receiving.expire(at(11_000)).is_some() {}
    assert_eq!((receiving.octets(), receiving.next_deadline()), (0, None));
}

#[test]
fn a_tag_used_again_for_another_datagram_begins_anew() {
    let config = config("fixed", 32);
    let mut receiving = Receiving::new(&config);
    for frame in burst(&mut sending(300, &config), at(0)) {
        take_in(&mut receiving, at(1), &frame);
    }
    let mut arrived = Vec::new();
    for frame in burst(&mut sending(280, &config), at(10)) {
        if let (Outcome::Complete { datagram, .. }, _) = take_in(&mut receiving, at(11), &frame) {
            arrived.push(datagram);
        }
    }
    assert_eq!(arrived, [datagram(280)]);
}

/// What a link does with one frame: the delays of its copies.
fn any_fate() -> impl Strategy<Value = Vec<u64>> {
    prop_oneof![
        6 => Just(vec![0]),
        2 => Just(vec![]),
        1 => (0..300u64).prop_map(|delay| vec![delay]),
        1 => (0..300u64).prop_map(|delay| vec![0, delay]),
    ]
}

/// Two ends and what is on its way between them.
struct Pair {
    sending: Sending,
    receiving: Receiving,
    /// When it arrives, in which order it left, and what it is; acknowledgements are six octets.
    on_way: Vec<(Instant, usize, Vec<u8>)>,
    fates: Vec<Vec<u64>>,
    left: usize,
    now: Instant,
    arrived: Vec<Vec<u8>>,
    most_outstanding: u32,
}

impl Pair {
    fn put(&mut self, frame: &[u8]) {
        let fate = self.fates.get(self.left % self.fates.len().max(1)).cloned().unwrap_or(vec![0]);
        self.left += 1;
        for delay in fate {
            let arrival = self.now + TRIP + Duration::from_millis(delay);
            self.on_way.push((arrival, self.left, frame.to_vec()));
        }
        self.on_way.sort_by_key(|(arrival, order, _)| (*arrival, *order));
    }
    fn deliver(&mut self, frame: &[u8]) -> Option<Ending> {
        if let Ok(ack) = RfragAck::parse(frame) {
            return self.sending.on_ack(&ack, self.now);
        }
        let (outcome, ack) = take_in(&mut self.receiving, self.now, frame);
        if let Outcome::Complete { datagram, .. } = outcome {
            self.arrived.push(datagram);
        }
        if let Some(ack) = ack {
            let mut frame = Vec::new();
            ack.emit(&mut frame);
            self.put(&frame);
        }
        None
    }
    /// Runs to the end of the datagram; `None` when nothing would ever happen again.
    fn run(&mut self) -> Option<Ending> {
        for _ in 0..20_000 {
            let mut wake = self.sending.deadline();
            match self.sending.permits(self.now) {
                Permit::Now => {
                    let next = self.sending.next_fragment(self.now, &mut rng(3));
                    let (header, _) = next.expect("it is permitted");
                    let frame = self.sending.frame(&header);
                    let snapshot = self.sending.window().snapshot();
                    self.most_outstanding = self.most_outstanding.max(snapshot.outstanding);
                    self.put(&frame);
                    continue;
                }
                Permit::At(later) => wake = Some(wake.map_or(later, |wake| wake.min(later))),
                Permit::Blocked => {}
            }
            let next = self.on_way.first().map(|(arrival, ..)| *arrival);
            if next.is_some_and(|next| wake.is_none_or(|wake| next <= wake)) {
                let (arrival, _, frame) = self.on_way.remove(0);
                self.now = self.now.max(arrival);
                if let Some(ending) = self.deliver(&frame) {
                    return Some(ending);
                }
            } else {
                self.now = self.now.max(wake?);
                if let Some(ending) = self.sending.on_timeout(self.now) {
                    return Some(ending);
                }
            }
        }
        None
    }
}

fn pair(octets: usize, window: &str, initial: u32, fates: Vec<Vec<u64>>) -> Pair {
    let config = config(window, initial);
    Pair {
        sending: sending(octets, &config),
        receiving: Receiving::new(&config),
        on_way: Vec::new(),
        fates,
        left: 0,
        now: Instant::ZERO,
        arrived: Vec::new(),
        most_outstanding: 0,
    }
}

#[test]
fn every_window_carries_a_datagram_over_a_link_without_loss() {
    for name in WINDOW_NAMES {
        let mut pair = pair(1280, name, 2, vec![vec![0]]);
        assert_eq!(pair.run(), Some(Ending::Delivered), "{name}");
        assert_eq!(pair.arrived, [datagram(1280)], "{name}");
    }
}

#[test]
fn the_most_that_is_on_its_way_is_what_the_window_says() {
    let most = |name| {
        let mut pair = pair(1280, name, 2, vec![vec![0]]);
        pair.run();
        pair.most_outstanding
    };
    // 15 fragments: Reno starts at four, QUIC at two, and both double; ours starts at one.
    assert_eq!([most("fixed"), most("appendix-c")], [2, 2]);
    assert_eq!([most("reno"), most("quic"), most("lln")], [8, 8, 3]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn loss_copies_and_reordering_never_make_another_datagram_nor_a_standstill(
        octets in 100usize..1280,
        initial in 1u32..8,
        fates in prop::collection::vec(any_fate(), 1..60),
    ) {
        for name in WINDOW_NAMES {
            let mut pair = pair(octets, name, initial, fates.clone());
            let ending = pair.run();
            prop_assert!(ending.is_some(), "{} stands still", name);
            prop_assert!(pair.arrived.iter().all(|arrived| *arrived == datagram(octets)));
            if ending == Some(Ending::Delivered) {
                prop_assert_eq!(pair.arrived.len(), 1, "{}", name);
            }
            // Nothing is left behind once its time is over.
            for (_, _, frame) in core::mem::take(&mut pair.on_way) {
                pair.deliver(&frame);
            }
            while let Some(deadline) = pair.receiving.next_deadline() {
                prop_assert!(deadline <= pair.now + Duration::from_secs(60));
                pair.now = deadline;
                pair.receiving.expire(deadline);
            }
            prop_assert_eq!(pair.receiving.octets(), 0);
        }
    }

    #[test]
    fn no_acknowledgement_makes_a_sender_panic_or_stand_still(
        bitmaps in prop::collection::vec((any::<u32>(), any::<bool>(), any::<bool>()), 0..40),
        window in 0..WINDOW_NAMES.len(),
    ) {
        let mut sending = sending(1000, &config(WINDOW_NAMES[window], 4));
        let mut now = Instant::ZERO;
        for (bitmap, congestion, timeout) in bitmaps {
            while sending.permits(now) == Permit::Now {
                prop_assert!(sending.next_fragment(now, &mut rng(1)).is_some());
            }
            now += Duration::from_millis(1300);
            let bitmap = Bitmap(bitmap);
            let ack = RfragAck { congestion, datagram_tag: 0x55, bitmap };
            let ending = if timeout { sending.on_timeout(now) } else { sending.on_ack(&ack, now) };
            if ending.is_some() {
                break;
            }
            let waits = sending.deadline().is_some();
            prop_assert!(waits || sending.permits(now) != Permit::Blocked);
        }
    }

    #[test]
    fn no_fragment_makes_the_end_panic_or_hoard(
        fragments in prop::collection::vec(
            (0u8..4, 0u8..4, 1u16..200, prop::collection::vec(any::<u8>(), 1..60)), 0..60),
    ) {
        let config = config("fixed", 32);
        let mut receiving = Receiving::new(&config);
        for (at_second, (datagram_tag, sequence, offset, data)) in fragments.into_iter().enumerate() {
            let part = match sequence {
                0 => Part::First { datagram_size: offset.max(data.len() as u16) },
                _ => Part::Next { sequence, offset },
            };
            let fragment_size = data.len() as u16;
            let header =
                Rfrag { congestion: false, datagram_tag, ack_request: true, fragment_size, part };
            let now = Instant::from_secs(at_second as u64);
            let fragment = Received { header, data: &data, source: HERE, handle: Handle(1) };
            let (_, ack) = receiving.accept(now, &fragment, usize::MAX);
            prop_assert!(ack.is_some(), "whoever asks is answered");
            prop_assert!(receiving.octets() <= config.reassembly_octets);
            while receiving.expire(now).is_some() {}
        }
    }
}
