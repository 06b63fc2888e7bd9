//! A destination that gets fragments in all orders, twice, or wrong.

use super::*;
use crate::fragment::fragments;
use crate::packet::{Flow, udp};
use lowmesh_wire::ipv6::next_header;
use lowmesh_wire::ipv6::{Address, FragmentHeader};

const FROM: Address = Address([0xfd; 16]);
const TO: Address = Address([0xfc; 16]);
const BEGUN: Outcome = Outcome::Begun { displaced: None };

fn packet(octets: usize) -> Vec<u8> {
    let flow = Flow { source: FROM, destination: TO, source_port: 1, destination_port: 2 };
    let payload: Vec<u8> = (0..octets).map(|i| (i * 7) as u8).collect();
    udp(&flow, 64, &payload, |options| options.extend_from_slice(&[0x63, 4, 0, 0, 0, 1]))
}
fn parts(octets: usize, identification: u32) -> Vec<Vec<u8>> {
    fragments(&packet(octets), 130, identification).expect("a whole packet").collect()
}
fn at(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}
fn give(reassembly: &mut Reassembly, part: &[u8]) -> Outcome {
    reassembly.accept(at(1), part.to_vec(), Handle(5))
}
fn complete(packet: Vec<u8>) -> Outcome {
    Outcome::Complete { packet, kept: Some(Handle(5)) }
}
fn dropped(reason: DropReason, kept: Option<u64>) -> Outcome {
    Outcome::Dropped { reason, kept: kept.map(Handle) }
}

#[test]
fn fragments_in_any_order_make_their_packet() {
    for seed in 0..40 {
        let mut order = parts(400, 7);
        let count = order.len();
        for index in 0..count {
            order.swap(index, (index * 31 + seed) % count);
        }
        let mut reassembly = Reassembly::new(Config::default());
        let outcomes: Vec<_> = order.iter().map(|part| give(&mut reassembly, part)).collect();
        assert_eq!(outcomes[0], BEGUN);
        assert!(outcomes[1..count - 1].iter().all(|outcome| *outcome == Outcome::Merged));
        assert_eq!(outcomes[count - 1], complete(packet(400)));
        assert_eq!((reassembly.next_deadline(), reassembly.octets()), (None, 0));
    }
}

#[test]
fn a_packet_without_a_fragment_header_is_as_it_was() {
    let mut reassembly = Reassembly::new(Config::default());
    assert_eq!(give(&mut reassembly, &packet(50)), Outcome::Whole(packet(50)));
}

#[test]
fn packets_of_two_identifications_do_not_mix() {
    let mut reassembly = Reassembly::new(Config::default());
    let (one, two) = (parts(300, 1), parts(300, 2));
    let mut outcomes = Vec::new();
    for (first, second) in one.iter().zip(&two) {
        outcomes.push(give(&mut reassembly, first));
        outcomes.push(give(&mut reassembly, second));
    }
    let whole = outcomes.iter().filter(|o| **o == complete(packet(300)));
    assert_eq!(whole.count(), 2);
}

#[test]
fn a_copy_of_a_fragment_changes_nothing_and_a_late_one_opens_nothing() {
    let mut reassembly = Reassembly::new(Config::default());
    let parts = parts(300, 7);
    let mut times = 0;
    for part in parts.iter().flat_map(|part| [part, part]) {
        times += u32::from(give(&mut reassembly, part) == complete(packet(300)));
    }
    assert_eq!((times, reassembly.handles().count()), (1, 0));
}

#[test]
fn overlapping_fragments_end_their_packet_for_good() {
    let mut reassembly = Reassembly::new(Config::default());
    let parts = parts(300, 7);
    assert_eq!(give(&mut reassembly, &parts[0]), BEGUN);
    // The second fragment, eight octets earlier.
    let mut overlap = parts[1].clone();
    overlap[50..52].copy_from_slice(&[0, 0x38 | 1]);
    assert_eq!(give(&mut reassembly, &overlap), dropped(DropReason::Malformed, Some(5)));
    for part in &parts {
        assert_eq!(give(&mut reassembly, part), Outcome::Merged);
    }
    assert_eq!(reassembly.handles().count(), 0);
}

#[test]
fn an_end_that_moves_ends_the_packet() {
    let mut reassembly = Reassembly::new(Config::default());
    let parts = parts(300, 7);
    let last = parts.last().expect("fragments");
    assert_eq!(give(&mut reassembly, last), BEGUN);
    let mut end = parts[1].clone();
    end[51] &= !1;
    assert_eq!(give(&mut reassembly, &end), dropped(DropReason::Malformed, Some(5)));
}

#[test]
fn an_atomic_fragment_does_not_meet_the_others() {
    let mut reassembly = Reassembly::new(Config::default());
    assert_eq!(give(&mut reassembly, &parts(300, 7)[0]), BEGUN);
    let atomic: Vec<Vec<u8>> = fragments(&packet(50), 1280, 7).expect("a whole packet").collect();
    assert_eq!(atomic.len(), 1);
    let whole = Outcome::Complete { packet: packet(50), kept: None };
    assert_eq!(give(&mut reassembly, &atomic[0]), whole);
    assert_eq!(reassembly.handles().count(), 1);
}

#[test]
fn a_packet_with_a_hole_waits_for_its_time_only() {
    let mut reassembly = Reassembly::new(Config::default());
    let parts = parts(300, 7);
    give(&mut reassembly, &parts[0]);
    assert_eq!(reassembly.next_deadline(), Some(at(1) + REASSEMBLY_TIMEOUT));
    assert_eq!(reassembly.expire(at(2)), None);
    let over = at(1) + REASSEMBLY_TIMEOUT;
    assert_eq!(reassembly.expire(over).map(|(handle, _)| handle), Some(Handle(5)));
    // What comes late opens nothing.
    assert_eq!(reassembly.accept(over, parts[1].clone(), Handle(5)), Outcome::Merged);
    assert_eq!(reassembly.next_deadline(), None);
}

#[test]
fn without_a_buffer_a_packet_is_dropped_once() {
    let mut reassembly = Reassembly::new(Config { packets: 1, ..Config::default() });
    give(&mut reassembly, &parts(300, 7)[0]);
    let second = parts(300, 8);
    assert_eq!(give(&mut reassembly, &second[0]), dropped(DropReason::BufferFull, None));
    assert_eq!(give(&mut reassembly, &second[1]), Outcome::Merged);
}

#[test]
fn a_packet_that_would_be_too_large_is_dropped() {
    let mut reassembly = Reassembly::new(Config { octets: 300, ..Config::default() });
    let parts = parts(300, 7);
    assert_eq!(give(&mut reassembly, &parts[0]), BEGUN);
    let last = parts.last().expect("fragments");
    assert_eq!(give(&mut reassembly, last), dropped(DropReason::Malformed, Some(5)));
}

#[test]
fn a_middle_fragment_that_is_no_multiple_of_eight_is_dropped() {
    let mut reassembly = Reassembly::new(Config::default());
    let mut odd = parts(300, 7)[1].clone();
    odd.truncate(odd.len() - 3);
    let length = (odd.len() - 40) as u16;
    odd[4..6].copy_from_slice(&length.to_be_bytes());
    assert_eq!(give(&mut reassembly, &odd), dropped(DropReason::Malformed, None));
}

#[test]
fn every_prefix_of_a_fragment_is_refused() {
    let part = &parts(300, 7)[0];
    for end in 0..part.len() {
        let mut reassembly = Reassembly::new(Config::default());
        assert_eq!(give(&mut reassembly, &part[..end]), dropped(DropReason::Malformed, None));
    }
}

/// A destination with the manner of GNRC.
fn gnrc(packets: usize) -> Reassembly {
    Reassembly::new(Config { packets, profile: StackProfile::RiotGnrc, ..Config::default() })
}
/// A fragment of a packet of three that comes at a second, under its identification's name.
fn give_at(reassembly: &mut Reassembly, second: u64, identification: u32, index: usize) -> Outcome {
    let part = parts(200, identification).swap_remove(index);
    reassembly.accept(at(second), part, Handle(identification.into()))
}

#[test]
fn in_gnrc_the_newest_packet_makes_room() {
    let mut reassembly = gnrc(2);
    assert_eq!(give_at(&mut reassembly, 1, 1, 0), BEGUN);
    assert_eq!(give_at(&mut reassembly, 2, 2, 0), BEGUN);
    let displaced = Some(Handle(2));
    assert_eq!(give_at(&mut reassembly, 3, 3, 0), Outcome::Begun { displaced });
    // A packet is as new as its last fragment.
    assert_eq!(give_at(&mut reassembly, 4, 1, 1), Outcome::Merged);
    let displaced = Some(Handle(1));
    assert_eq!(give_at(&mut reassembly, 5, 4, 0), Outcome::Begun { displaced });
    assert!(reassembly.handles().eq([Handle(3), Handle(4)]));
}

#[test]
fn in_gnrc_two_fragments_wait_for_each_place() {
    let mut reassembly = gnrc(2);
    assert_eq!(parts(200, 1).len(), 3);
    give_at(&mut reassembly, 1, 1, 0);
    give_at(&mut reassembly, 1, 1, 1);
    give_at(&mut reassembly, 1, 2, 0);
    give_at(&mut reassembly, 1, 2, 1);
    assert_eq!(give_at(&mut reassembly, 1, 2, 2), dropped(DropReason::BufferFull, Some(2)));
    // What the other gave back suffices for the first.
    let whole = Outcome::Complete { packet: packet(200), kept: Some(Handle(1)) };
    assert_eq!(give_at(&mut reassembly, 1, 1, 2), whole);
    // A free place is no use without a fragment to put there.
    let mut reassembly = gnrc(3);
    for (identification, index) in [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)] {
        let part = parts(400, identification).swap_remove(index);
        reassembly.accept(at(1), part, Handle(identification.into()));
    }
    assert_eq!(reassembly.handles().count(), 2);
    assert_eq!(give_at(&mut reassembly, 1, 3, 0), dropped(DropReason::BufferFull, None));
}

#[test]
fn in_gnrc_every_fragment_sets_the_one_timer() {
    let mut reassembly = gnrc(4);
    give_at(&mut reassembly, 1, 1, 0);
    give_at(&mut reassembly, 50, 2, 0);
    let over = at(50) + REASSEMBLY_TIMEOUT;
    assert_eq!(reassembly.next_deadline(), Some(over));
    assert_eq!(reassembly.expire(at(1) + REASSEMBLY_TIMEOUT), None);
    assert_eq!(reassembly.expire(over).map(|(handle, _)| handle), Some(Handle(1)));
    assert_eq!(reassembly.expire(over).map(|(handle, _)| handle), Some(Handle(2)));
    assert_eq!(reassembly.next_deadline(), None);
}

#[test]
fn in_gnrc_a_fragment_after_the_end_begins_a_new_packet() {
    let mut reassembly = gnrc(2);
    let mut last = Outcome::Merged;
    for index in 0..3 {
        last = give_at(&mut reassembly, 1, 1, index);
    }
    assert!(matches!(last, Outcome::Complete { .. }));
    assert_eq!(give_at(&mut reassembly, 2, 1, 2), BEGUN);
}

proptest::proptest! {
    #[test]
    fn random_fragments_neither_panic_nor_hoard(
        is_gnrc in proptest::bool::ANY,
        pieces in proptest::collection::vec(
            (0u16..40, proptest::bool::ANY, 0usize..80, 0u32..3, 0u64..100), 0..60),
    ) {
        let profile = if is_gnrc { StackProfile::RiotGnrc } else { StackProfile::Native };
        let mut reassembly = Reassembly::new(Config { packets: 2, profile, ..Config::default() });
        let mut now = at(0);
        for (offset, more, octets, identification, after) in pieces {
            now += Duration::from_secs(after);
            let header = FragmentHeader {
                next_header: next_header::NONE, offset: offset * 8, more, identification,
            };
            let mut bytes = Vec::new();
            Header {
                traffic_class: 0,
                flow_label: 0,
                payload_length: 8 + octets as u16,
                next_header: next_header::FRAGMENT,
                hop_limit: 1,
                source: FROM,
                destination: TO,
            }
            .emit(&mut bytes);
            header.emit(&mut bytes);
            bytes.resize(bytes.len() + octets, 7);
            while reassembly.expire(now).is_some() {}
            if let Outcome::Complete { packet, .. } = reassembly.accept(now, bytes, Handle(1)) {
                proptest::prop_assert!(Header::parse_packet(&packet).is_ok());
                // Everything that came is a seven: no hole was filled with zeros.
                proptest::prop_assert!(packet[40..].iter().all(|octet| *octet == 7));
            }
            proptest::prop_assert!(reassembly.handles().count() <= 2);
            let waiting: usize = reassembly.table.iter().map(|one| one.datagram.fragments()).sum();
            proptest::prop_assert!(!is_gnrc || waiting <= 2 * GNRC_LIMITS);
            proptest::prop_assert!(reassembly.octets() <= 2 * REASSEMBLED_OCTETS);
        }
        while reassembly.expire(now + Duration::from_secs(100)).is_some() {}
        proptest::prop_assert_eq!(reassembly.next_deadline(), None);
    }
}

#[test]
fn a_source_holds_as_many_places_as_are_free() {
    let config = Config { packets: 4, ..Config::default() };
    let mut reassembly = Reassembly::new(config);
    let outcomes: Vec<_> = (0..4).map(|n| give(&mut reassembly, &parts(400, n)[0])).collect();
    let refused = dropped(DropReason::BufferFull, None);
    assert_eq!(outcomes, [BEGUN, BEGUN, refused.clone(), refused]);
    let mut other = parts(400, 9)[0].clone();
    other[8..24].copy_from_slice(&[0xfb; 16]);
    assert_eq!(give(&mut reassembly, &other), BEGUN);
}
