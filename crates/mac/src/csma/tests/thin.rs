//! The thin MAC: one radio, one buffer.

use lowmesh_machine::{Handle, Machine as _};

use super::bench::*;
use crate::csma::{Config, Input, Output};

fn thin() -> Bench {
    Bench::new(Config::thin())
}
/// A frame came and was acknowledged; the buffer is occupied.
fn occupied() -> Bench {
    let mut bench = thin();
    let outputs = bench.hear(&frame_from(PEER, Some(ME), 9));
    assert!(outputs.iter().any(is_received) && outputs.iter().any(is_acknowledge));
    bench.now += micros(192) + ACK;
    bench
}

#[test]
fn from_the_first_backoff_on_nothing_is_heard_but_acknowledgements() {
    let mut bench = thin();
    let asked = bench.send(Some(PEER), 1);
    assert!(!bench.mac.listens(), "in backoff");
    let asked = bench.sense(&asked, false);
    let (octets, _) = bench.transmit(&asked);
    assert!(bench.mac.listens(), "for the acknowledgement");
    assert_eq!(bench.hear(&frame_from(OTHER, Some(ME), 9)), [], "nothing else is taken");
    let outputs = bench.hear_ack(octets[2]);
    assert!(matches!(outputs[..], [.., Output::Sent { handle: Handle(1), .. }]), "{outputs:?}");
    assert!(bench.mac.listens());
}

#[test]
fn a_frame_occupies_the_buffer_for_up_to_four_milliseconds() {
    let mut longest = micros(0);
    let mut bench = thin();
    for sequence in 0..200 {
        let came = bench.now;
        bench.hear(&frame_from(PEER, None, sequence));
        assert!(!bench.mac.listens());
        assert_eq!(bench.expire(), []);
        assert!(bench.mac.listens());
        longest = longest.max(bench.now.since(came));
    }
    assert!((micros(3_800)..micros(4_000)).contains(&longest), "{longest}");
}

#[test]
fn a_frame_that_comes_while_the_buffer_is_occupied_is_lost_and_not_acknowledged() {
    let mut bench = thin();
    bench.hear(&frame_from(PEER, None, 9));
    assert_eq!(bench.hear(&frame_from(OTHER, Some(ME), 3)), []);
}

#[test]
fn a_frame_to_send_waits_for_the_buffer_and_goes_at_once_when_it_is_free() {
    let mut bench = occupied();
    bench.tell(Input::Sent);
    let free =
        bench.mac.next_deadline().expect("the buffer is occupied for longer, with this seed");
    assert_eq!(bench.send(Some(OTHER), 1), []);
    assert_eq!(bench.mac.queued(), 1);
    let asked = bench.expire();
    assert_eq!(bench.now, free);
    assert!(matches!(asked[..], [Output::Sense { .. }]), "{asked:?}");
}

#[test]
fn a_frame_put_back_is_tried_again_after_five_milliseconds_when_there_is_no_sign() {
    let mut bench = thin();
    bench.tell(Input::Incoming);
    let put_back = bench.now;
    assert_eq!(bench.send(Some(OTHER), 1), []);
    bench.wait(micros(2_000));
    assert_eq!(bench.tell(Input::Lost), [], "a broken frame gives no sign");
    let asked = bench.expire();
    assert_eq!(bench.now.since(put_back), micros(5_000));
    assert!(matches!(asked[..], [Output::Sense { .. }]), "{asked:?}");
}

#[test]
fn a_frame_is_put_back_as_often_as_the_radio_is_busy() {
    let mut bench = thin();
    bench.tell(Input::Incoming);
    bench.send(Some(OTHER), 1);
    let put_back = bench.now;
    assert_eq!(bench.expire(), []);
    let due = bench.mac.next_deadline().expect("put back again");
    assert_eq!(due.since(put_back), micros(10_000));
}

#[test]
fn the_end_of_a_frame_is_a_sign_for_the_next() {
    let mut bench = thin();
    let asked = bench.send(None, 1);
    bench.send(None, 2);
    let asked = bench.sense(&asked, false);
    let (_, outputs) = bench.transmit(&asked);
    assert!(
        matches!(outputs[..], [Output::Sent { handle: Handle(1), .. }, Output::Sense { .. }]),
        "{outputs:?}"
    );
}
