//! The two ends over a link that loses, doubles and delays, in virtual time.

use lowmesh_testkit::{Links, Next};
use proptest::prelude::*;

use super::*;

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
    /// Frames in flight; acknowledgements are six octets.
    links: Links<Vec<u8>>,
    fates: Vec<Vec<u64>>,
    left: usize,
    arrived: Vec<Vec<u8>>,
    most_outstanding: u32,
}

impl Pair {
    fn put(&mut self, frame: &[u8]) {
        let fate = self.fates.get(self.left % self.fates.len().max(1)).cloned().unwrap_or(vec![0]);
        self.left += 1;
        for delay in fate {
            self.links.after(TRIP + Duration::from_millis(delay), frame.to_vec());
        }
    }
    fn deliver(&mut self, frame: &[u8]) -> Option<Ending> {
        if let Ok(ack) = RfragAck::parse(frame) {
            return self.sending.on_ack(&ack, self.links.now());
        }
        let (outcome, ack) = take_in(&mut self.receiving, self.links.now(), frame);
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
            match self.sending.permits(self.links.now()) {
                Permit::Now => {
                    let next = self.sending.next_fragment(self.links.now(), &mut rng(3));
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
            let ending = match self.links.next(wake, Instant::FAR_FUTURE)? {
                Next::Event(frame) => self.deliver(&frame),
                Next::Deadline => self.sending.on_timeout(self.links.now()),
            };
            if ending.is_some() {
                return ending;
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
        links: Links::new(1),
        fates,
        left: 0,
        arrived: Vec::new(),
        most_outstanding: 0,
    }
}

#[test]
fn every_window_carries_a_datagram_over_a_link_without_loss() {
    for name in Registry::<dyn Window>::builtin().names() {
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
        for name in Registry::<dyn Window>::builtin().names() {
            let mut pair = pair(octets, name, initial, fates.clone());
            let ending = pair.run();
            prop_assert!(ending.is_some(), "{} stands still", name);
            prop_assert!(pair.arrived.iter().all(|arrived| *arrived == datagram(octets)));
            if ending == Some(Ending::Delivered) {
                prop_assert_eq!(pair.arrived.len(), 1, "{}", name);
            }
            // Nothing is left behind once its time is over.
            let end = pair.links.now() + Duration::from_secs(1);
            while let Some(Next::Event(frame)) = pair.links.next(None, end) {
                pair.deliver(&frame);
            }
            while let Some(deadline) = pair.receiving.next_deadline() {
                prop_assert!(deadline <= end + Duration::from_secs(60));
                pair.receiving.expire(deadline);
            }
            prop_assert_eq!(pair.receiving.octets(), 0);
        }
    }

    #[test]
    fn no_acknowledgement_makes_a_sender_panic_or_stand_still(
        bitmaps in prop::collection::vec((any::<u32>(), any::<bool>(), any::<bool>()), 0..40),
        window in 0..<dyn Window>::BUILTIN.len(),
    ) {
        let mut sending = sending(1000, &config(<dyn Window>::BUILTIN[window].name, 4));
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
            let fragment = Received { header, data: &data, source: HERE, handle: Handle(1), is_proven: false };
            let (_, ack) = receiving.accept(now, &fragment, usize::MAX);
            prop_assert!(ack.is_some(), "each acknowledgement request is answered");
            prop_assert!(receiving.octets() <= config.reassembly_octets);
            while receiving.expire(now).is_some() {}
        }
    }
}
