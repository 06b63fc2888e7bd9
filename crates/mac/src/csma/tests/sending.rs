//! A frame on its way out, to the symbol.

use lowmesh_machine::{DropReason, Handle, Machine as _};
use lowmesh_units::Instant;

use super::bench::*;
use crate::csma::{Acknowledgement, Config, Input, Output};
use crate::params::{CSMA_BACKOFFS_MAX, ETX_UNIT, QUEUE_CONTROL_RESERVE};
use crate::queue::Priority;

fn drop_reason(outputs: &[Output]) -> Option<(u64, DropReason, u8)> {
    outputs.iter().find_map(|output| match output {
        Output::Dropped { dropped, transmissions, .. } => {
            Some((dropped.handle.0, dropped.reason, *transmissions))
        }
        _ => None,
    })
}

#[test]
fn an_acknowledged_frame_keeps_the_standards_timeline() {
    let mut bench = Bench::new(prompt());
    let start = bench.now;
    let asked = bench.send(Some(PEER), 1);
    assert_eq!(asked, [Output::Sense { at: start }]);
    bench.send(Some(PEER), 2);
    let asked = bench.sense(&asked, false);
    let [Output::Transmit { at, octets, destination: Some(PEER), handle: Handle(1) }] = &asked[..]
    else {
        panic!("{asked:?}")
    };
    // 8 symbols of CCA and 12 of turnaround.
    assert_eq!(at.since(start), micros(128 + 192));
    assert!(!bench.mac.listens(), "the radio is turned round");
    let number = octets[2];
    let (_, after) = bench.transmit(&asked);
    assert_eq!((after, bench.now.since(start)), (vec![], micros(320) + FRAME));
    let outputs = bench.hear_ack(number);
    assert_eq!(bench.now.since(start), micros(320) + FRAME + micros(192) + ACK);
    let sent = Output::Sent { handle: Handle(1), destination: Some(PEER), transmissions: 1 };
    assert!(outputs.contains(&sent));
    // A frame of more than 18 octets: 40 symbols pass before the node tries again.
    assert_eq!(outputs.last(), Some(&Output::Sense { at: bench.now + micros(640) }));
}

#[test]
fn after_a_short_frame_twelve_symbols_are_space_enough() {
    let mut bench = Bench::new(prompt());
    // To everyone: 15 octets of header, 1 of payload, FCS.
    let send = |handle| Input::Send {
        destination: None,
        payload: &[0x41],
        priority: Priority::Data,
        is_advice: false,
        handle: Handle(handle),
    };
    let asked = bench.tell(send(1));
    bench.tell(send(2));
    let asked = bench.sense(&asked, false);
    let (octets, outputs) = bench.transmit(&asked);
    assert_eq!(octets.len() + 2, 18);
    assert_eq!(outputs.last(), Some(&Output::Sense { at: bench.now + micros(192) }));
}

#[test]
fn a_busy_channel_means_a_longer_backoff_in_whole_periods() {
    for _ in 0..50 {
        let mut bench = Bench::new(Config::default());
        let mut asked = bench.send(Some(PEER), 1);
        for longest in [7, 15, 31, 31, 31] {
            let [Output::Sense { at }] = &asked[..] else { panic!("{asked:?}") };
            let delay = at.since(bench.now).as_micros();
            assert_eq!(delay % 320, 0);
            assert!(delay / 320 <= longest, "{delay} us in a window of {longest} periods");
            asked = bench.sense(&asked, true);
        }
        assert_eq!(drop_reason(&asked), Some((1, DropReason::ChannelAccess, 0)));
    }
}

#[test]
fn a_channel_that_is_busy_too_often_ends_the_frame_and_frees_the_way_for_the_next() {
    let mut bench = Bench::new(prompt());
    let mut asked = bench.send(Some(PEER), 1);
    bench.send(Some(PEER), 2);
    for _ in 0..CSMA_BACKOFFS_MAX {
        asked = bench.sense(&asked, true);
        assert_eq!(asked, [Output::Sense { at: bench.now }]);
    }
    asked = bench.sense(&asked, true);
    assert_eq!(drop_reason(&asked), Some((1, DropReason::ChannelAccess, 0)));
    let after = bench.deliver(&asked);
    assert!(matches!(after[..], [.., Output::Sent { handle: Handle(2), .. }]), "{after:?}");
    let counters = bench.mac.counters();
    assert_eq!((counters.sensed, counters.sensed_busy, counters.transmissions), (6, 5, 1));
    assert_eq!((counters.channel_access, counters.acknowledged, counters.no_ack), (1, 1, 0));
}

#[test]
fn without_an_acknowledgement_the_same_frame_goes_out_again_after_54_symbols() {
    let mut bench = Bench::new(prompt());
    let asked = bench.send(Some(PEER), 1);
    let asked = bench.sense(&asked, false);
    let (first, _) = bench.transmit(&asked);
    let sent = bench.now;
    let asked = bench.expire();
    assert_eq!(bench.now.since(sent), micros(54 * 16));
    let asked = bench.sense(&asked, false);
    let (second, _) = bench.transmit(&asked);
    assert_eq!(first, second);
    let outputs = bench.hear_ack(first[2]);
    let sent = Output::Sent { handle: Handle(1), destination: Some(PEER), transmissions: 2 };
    assert!(outputs.contains(&sent));
    assert_eq!(bench.mac.next_deadline(), None);
}

#[test]
fn after_three_retries_the_frame_is_given_up_and_the_link_is_worse() {
    let mut bench = Bench::new(prompt());
    let first = bench.send(Some(PEER), 1);
    bench.deliver(&first);
    let mut asked = bench.send(Some(PEER), 2);
    for _ in 0..4 {
        let granted = bench.sense(&asked, false);
        bench.transmit(&granted);
        asked = bench.expire();
    }
    assert_eq!(drop_reason(&asked), Some((2, DropReason::NoAck, 4)));
    assert_eq!(bench.mac.counters().no_ack, 1);
    let etx = asked.iter().find_map(|output| match output {
        Output::LinkEtx { peer: PEER, etx } => Some(*etx),
        _ => None,
    });
    // Sixteen transmissions, with a tenth of the weight.
    assert!(etx.is_some_and(|etx| etx > 5 * ETX_UNIT / 2), "{etx:?}");
}

#[test]
fn an_acknowledgement_with_another_number_is_not_ours() {
    let mut bench = Bench::new(prompt());
    let asked = bench.send(Some(PEER), 1);
    let asked = bench.sense(&asked, false);
    let (octets, _) = bench.transmit(&asked);
    assert_eq!(bench.hear_ack(octets[2].wrapping_add(1)), []);
    assert!(matches!(bench.expire()[..], [Output::Sense { .. }]), "it tries again");
}

#[test]
fn a_frame_to_everyone_or_without_acknowledgements_is_over_when_it_is_sent() {
    let null = Config { be_min: 0, be_max: 0, ..Config::null() };
    for (config, destination) in [(prompt(), None), (null, Some(PEER))] {
        let mut bench = Bench::new(config);
        let asked = bench.send(destination, 1);
        let asked = bench.sense(&asked, false);
        let (octets, outputs) = bench.transmit(&asked);
        assert_eq!(octets[0] & 0x20, 0, "no acknowledgement is requested");
        assert_eq!(outputs, [Output::Sent { handle: Handle(1), destination, transmissions: 1 }]);
        assert_eq!(bench.mac.next_deadline(), None);
    }
}

#[test]
fn a_slow_acknowledgement_is_waited_for_as_much_longer() {
    let acknowledgement = Acknowledgement::Software { delay: micros(1_000) };
    let mut bench = Bench::new(Config { acknowledgement, ..prompt() });
    let asked = bench.send(Some(PEER), 1);
    let asked = bench.sense(&asked, false);
    bench.transmit(&asked);
    let due = bench.mac.next_deadline().expect("it waits");
    assert_eq!(due.since(bench.now), micros(864 + 1_000 - 192));
}

#[test]
fn what_finds_no_room_is_dropped_and_control_has_a_reserve() {
    let mut bench = Bench::new(Config { queue_frames_max: 2, ..prompt() });
    // The first is on its way and takes no place.
    for handle in 1..=3 {
        assert_eq!(drop_reason(&bench.send(Some(PEER), handle)), None);
    }
    let refused = bench.send(Some(OTHER), 4);
    assert_eq!(drop_reason(&refused), Some((4, DropReason::QueueFull, 0)));
    let reserve = QUEUE_CONTROL_RESERVE as u64;
    for handle in 10..10 + reserve {
        assert_eq!(drop_reason(&bench.send_as(None, handle, Priority::Control)), None);
    }
    let refused = bench.send_as(None, 99, Priority::Control);
    assert_eq!(drop_reason(&refused), Some((99, DropReason::QueueFull, 0)));
    let order: Vec<u64> = bench.mac.handles().map(|handle| handle.0).collect();
    assert_eq!(order, [1, 10, 11, 12, 13, 2, 3], "control goes first, but never before the first");
}

#[test]
fn what_no_frame_can_hold_is_refused() {
    let mut bench = Bench::new(Config::thin());
    let mut send = |octets: usize| {
        let payload = &[0; 104][..octets];
        let (priority, handle) = (Priority::Data, Handle(1));
        bench.tell(Input::Send {
            destination: Some(PEER),
            payload,
            priority,
            is_advice: false,
            handle,
        })
    };
    assert_eq!(drop_reason(&send(103)), Some((1, DropReason::TooLarge, 0)));
    assert_eq!(drop_reason(&send(102)), None);
}

#[test]
fn a_driver_that_answers_what_was_not_asked_is_told_so() {
    let mut bench = Bench::new(prompt());
    for input in [Input::Start, Input::Sensed { busy: false }, Input::Sent, Input::Lost] {
        assert!(bench.try_tell(input).is_err(), "{input:?}");
    }
    let asked = bench.send(Some(PEER), 1);
    assert!(bench.try_tell(Input::Sent).is_err());
    // The refusal changed nothing.
    assert!(matches!(bench.sense(&asked, false)[..], [Output::Transmit { .. }]));
}

#[test]
fn a_neighbour_that_was_heard_and_answers_nothing_for_long_is_gone() {
    let mut bench = Bench::new(prompt());
    bench.hear(&frame_from(PEER, None, 1));
    let mut gone = Vec::new();
    for second in [0, 10, 20, 29, 31, 40] {
        bench.now = Instant::from_secs(1 + second);
        let mut asked = bench.send(Some(PEER), second);
        for _ in 0..4 {
            let granted = bench.sense(&asked, false);
            bench.transmit(&granted);
            asked = bench.expire();
            let is_gone = asked.contains(&Output::NeighbourGone(PEER));
            gone.extend(is_gone.then_some(second));
        }
    }
    assert_eq!(gone, [31]);
    assert!(bench.hear(&frame_from(PEER, None, 2)).contains(&Output::NeighbourBack(PEER)));
}
