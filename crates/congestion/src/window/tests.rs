//! What the tests of all windows share, and how windows count.

use super::*;

pub(super) const fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

pub(super) fn window_of(window: &dyn Window) -> u32 {
    window.snapshot().window
}

/// Sends single units at `sent` until the window is full; pacing is not asked.
pub(super) fn fill(window: &mut dyn Window, sent: Instant) -> Vec<Message> {
    let room = window.snapshot().window - window.snapshot().outstanding;
    for _ in 0..room {
        window.on_sent(1, sent);
    }
    vec![Message { size: 1, sent }; room as usize]
}

/// Acknowledges a unit, with the time it took.
pub(super) fn acked(window: &mut dyn Window, message: Message, now: Instant) {
    window.on_acked(message, Some(now.since(message.sent)), now);
}

/// One full window, all of it acknowledged.
pub(super) fn ack_all(window: &mut dyn Window, sent: Instant, now: Instant) {
    for message in fill(window, sent) {
        acked(window, message, now);
    }
}

#[test]
fn everything_that_is_sent_ends_in_one_of_four_ways() {
    for row in <dyn Window>::BUILTIN {
        let mut window = (row.make)(Limits::messages(8, 32));
        let message = Message { size: 1, sent: at(0) };
        for _ in 0..6 {
            window.on_sent(1, at(0));
        }
        acked(window.as_mut(), message, at(10));
        assert_eq!(window.snapshot().outstanding, 5, "{row:?}");
        window.on_lost(&[message, message], at(10));
        assert_eq!(window.snapshot().outstanding, 3, "{row:?}");
        window.on_discarded(1, at(10));
        window.on_ecn(at(0), at(10));
        assert_eq!(window.snapshot().outstanding, 2, "{row:?}");
        window.on_timeout(&[message, message], at(10));
        assert_eq!(window.snapshot().outstanding, 0, "{row:?}");
    }
}

#[test]
fn a_message_larger_than_the_window_goes_alone() {
    for row in <dyn Window>::BUILTIN {
        let mut window = (row.make)(Limits::messages(1, 4));
        assert_eq!(window.permits(100, at(0)), Permit::Now, "{row:?}");
        window.on_sent(100, at(0));
        assert_eq!(window.permits(1, at(10_000)), Permit::Blocked, "{row:?}");
    }
}

#[test]
fn limits_that_contradict_each_other_are_brought_in_order() {
    let limits = Limits { initial: 9, min: 0, max: 0, message: 0 }.checked();
    assert_eq!(limits, Limits { initial: 1, min: 1, max: 1, message: 1 });
}
