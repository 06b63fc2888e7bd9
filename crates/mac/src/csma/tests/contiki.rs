//! CSMA over NullRDC of Contiki in 2014: queues of neighbours, bursts and its back-off.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};

use super::bench::*;
use crate::csma::{Config, Output};
use crate::params::CONTIKI_BACKOFF_UNIT;

fn bench() -> Bench {
    Bench::new(Config::contiki2014())
}
fn asks_at_once(bench: &Bench, outputs: &[Output]) -> bool {
    matches!(outputs.last(), Some(Output::Sense { at }) if at.since(bench.now) <= micros(640))
}
fn is_dropped(outputs: &[Output], handle: u64, reason: DropReason) -> bool {
    outputs.iter().any(|output| {
        matches!(output, Output::Dropped { dropped, .. }
            if dropped.handle == Handle(handle) && dropped.reason == reason)
    })
}
/// Sends the frame that was asked for and lets its acknowledgement time out.
fn fail(bench: &mut Bench, asked: &[Output]) -> Vec<Output> {
    let asked = bench.sense(asked, false);
    bench.transmit(&asked);
    bench.expire()
}

#[test]
fn the_first_copy_leaves_without_a_backoff() {
    let mut bench = bench();
    assert_eq!(bench.send(Some(PEER), 1), [Output::Sense { at: bench.now }]);
}

#[test]
fn a_third_neighbour_finds_no_queue_while_two_wait_for_another_try() {
    let mut bench = bench();
    let asked = bench.send(Some(PEER), 1);
    assert_eq!(fail(&mut bench, &asked), []);
    let asked = bench.send(Some(OTHER), 2);
    assert_eq!(fail(&mut bench, &asked), []);
    let refused = bench.send(None, 3);
    assert!(is_dropped(&refused, 3, DropReason::QueueFull), "{refused:?}");
    assert_eq!(bench.send(Some(PEER), 4), [], "a queue of this neighbour exists");
}

#[test]
fn a_frame_that_comes_while_the_processor_sends_looks_for_a_queue_afterwards() {
    let mut bench = bench();
    let asked = bench.send(Some(PEER), 1);
    for handle in [2, 3] {
        assert_eq!(bench.send((handle == 2).then_some(OTHER), handle), []);
    }
    // The first is gone, so two queues are free.
    let asked = bench.deliver(&asked);
    let asked = bench.deliver(&asked);
    let asked = bench.sense(&asked, false);
    bench.transmit(&asked);
    assert_eq!(bench.mac.handles().count(), 0, "all three left");
    // Two of three fail; the third finds both queues taken.
    let asked = bench.send(Some(PEER), 4);
    bench.send(Some(OTHER), 5);
    bench.send(None, 6);
    let second = fail(&mut bench, &asked);
    assert!(is_dropped(&second, 6, DropReason::QueueFull), "{second:?}");
    assert_eq!(bench.mac.handles().count(), 2);
}

#[test]
fn eight_frames_fill_the_buffers_of_a_node() {
    let mut bench = bench();
    bench.send(Some(PEER), 1);
    assert!((2..=8).all(|handle| bench.send(Some(PEER), handle).is_empty()));
    assert!(is_dropped(&bench.send(Some(PEER), 9), 9, DropReason::QueueFull));
    assert_eq!(bench.mac.handles().count(), 8);
}

#[test]
fn what_waits_for_a_neighbour_leaves_in_one_burst() {
    let mut bench = bench();
    // The first frame fails once, and two more queue up behind it.
    let asked = bench.send(Some(PEER), 1);
    assert_eq!(fail(&mut bench, &asked), []);
    bench.send(Some(PEER), 2);
    let mut asked = bench.expire();
    bench.send(Some(OTHER), 3);
    let mut left = Vec::new();
    while asks_at_once(&bench, &asked) {
        asked = bench.deliver(&asked);
        left.extend(asked.iter().filter_map(|output| match output {
            Output::Sent { handle, .. } => Some(handle.0),
            _ => None,
        }));
    }
    assert_eq!(left, [1, 2, 3], "nothing comes between the frames of a burst");
}

#[test]
fn three_copies_are_the_last_and_the_delays_grow() {
    let (mut bench, mut longest) = (bench(), [0; 2]);
    for handle in 0..400 {
        let mut asked = bench.send(Some(PEER), handle);
        for longest in &mut longest {
            assert_eq!(fail(&mut bench, &asked), []);
            let failed = bench.now;
            asked = bench.expire();
            let delay = bench.now.since(failed);
            assert!(delay >= CONTIKI_BACKOFF_UNIT, "{delay}");
            *longest = delay.as_millis().max(*longest);
        }
        assert!(is_dropped(&fail(&mut bench, &asked), handle, DropReason::NoAck));
    }
    // One unit and less than two more, one unit and less than four more; the last tick is 7.8 ms short of it.
    assert_eq!(longest, [367, 617]);
}

#[test]
fn a_busy_channel_costs_no_copy() {
    let mut bench = bench();
    let mut asked = bench.send(Some(PEER), 1);
    for _ in 0..50 {
        assert_eq!(bench.sense(&asked, true), []);
        let sensed = bench.now;
        asked = bench.expire();
        let delay = bench.now.since(sensed).as_millis();
        assert!((125..250).contains(&delay), "{delay} ms");
    }
    let sent = bench.deliver(&asked);
    assert!(sent.iter().any(|o| matches!(o, Output::Sent { transmissions: 1, .. })), "{sent:?}");
}
