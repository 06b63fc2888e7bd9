//! Neighbours that fail: those that acknowledge nothing, and those that are silent.

use super::*;
use crate::params::{GONE_SILENCE, SILENT_BEACONS};

fn count(pair: &Pair, who: usize, event: &Output) -> usize {
    pair.outputs[who].iter().filter(|output| *output == event).count()
}

#[test]
fn a_time_source_that_answers_nothing_is_gone_and_back_when_it_is_heard() {
    let mut pair = Pair::new().quiet();
    pair.open = [false, false];
    pair.run(GONE_SILENCE - Duration::from_secs(2));
    assert_eq!(count(&pair, 1, &Output::NeighbourGone(A)), 0, "it may be bad luck");
    pair.run(Duration::from_secs(30));
    assert_eq!(count(&pair, 1, &Output::NeighbourGone(A)), 1);
    assert_eq!(count(&pair, 1, &Output::NeighbourBack(A)), 0);
    pair.open = [true, true];
    pair.run(Duration::from_secs(30));
    assert_eq!(count(&pair, 1, &Output::NeighbourBack(A)), 1);
    // It may go again.
    pair.open = [false, false];
    pair.run(Duration::from_secs(60));
    assert_eq!(count(&pair, 1, &Output::NeighbourGone(A)), 2);
}

#[test]
fn a_neighbour_that_acknowledges_nothing_and_is_heard_is_not_gone() {
    let mut pair = Pair::joined();
    pair.open = [true, false];
    for handle in 0..10 {
        pair.send(1, A, handle);
        pair.run(Duration::from_secs(10));
    }
    assert_eq!(count(&pair, 1, &Output::NeighbourGone(A)), 0);
}

#[test]
fn a_neighbour_without_beacons_is_silent_until_it_is_heard() {
    let mut pair = Pair::joined();
    pair.tell(1, Input::SetBeacons(Some(1)));
    pair.run(Duration::from_secs(20));
    assert_eq!(count(&pair, 0, &Output::NeighbourSilent(B)), 0);
    pair.tell(1, Input::SetBeacons(None));
    // Two seconds are the period of beacons here.
    pair.run(Duration::from_secs(2) * SILENT_BEACONS - Duration::from_secs(2));
    assert_eq!(count(&pair, 0, &Output::NeighbourSilent(B)), 0);
    pair.run(Duration::from_secs(20));
    assert_eq!(count(&pair, 0, &Output::NeighbourSilent(B)), 1, "once");
    pair.send(1, A, 1);
    pair.run(Duration::from_secs(1));
    assert_eq!(count(&pair, 0, &Output::NeighbourBack(B)), 1);
}
