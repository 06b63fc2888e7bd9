//! The reassembling end.

use super::*;

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
fn half_datagrams_of_one_neighbour_give_their_places_to_another() {
    let config = Config { reassembly_octets: 600, ..config("fixed", 32) };
    let mut half = burst(&mut sending(300, &config), at(0)).remove(0);
    let mut receiving = Receiving::new(&config);
    for tag in [1, 2] {
        half[1] = tag;
        take_in(&mut receiving, at(tag.into()), &half);
    }
    half[1] = 3;
    let (header, data) = Rfrag::parse(&half).expect("a whole frame");
    let other =
        Received { header, data, source: NodeId(5).eui64(), handle: Handle(8), is_proven: false };
    assert_eq!(receiving.accept(at(3), &other, usize::MAX), (Outcome::Waiting, None));
    assert_eq!(receiving.take_evicted(), Some((Handle(7), HERE, null(1))));
    assert_eq!((receiving.take_evicted(), receiving.octets()), (None, 600));
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
fn a_tag_used_again_for_another_datagram_begins_from_scratch() {
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
