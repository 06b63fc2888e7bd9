//! What a sender tells of its datagrams, step by step.

use super::line::*;
use crate::adapt::*;
use crate::recover::{Ending, Event, Step};

/// The events of one datagram of 300 octets to the neighbour, in a window of four.
fn told(fates: Vec<Fate>, jammed: Option<usize>) -> Vec<Event> {
    let mut configs = vec![config("fixed", 4); 2];
    configs[0].tell_steps = true;
    let mut line = Line::new(configs, fates);
    line.jammed = jammed;
    line.send(300, HANDLE);
    line.run();
    let own = |(at, step): &(usize, Step)| *at == 0 && step.handle == HANDLE && step.window == 4;
    assert!(line.steps.iter().all(own), "{:?}", line.steps);
    line.steps.into_iter().map(|(_, step)| step.event).collect()
}

#[test]
fn steps_tell_what_left_what_arrived_and_the_end() {
    let end = Event::Ended(Ending::Delivered);
    let sent = [Event::Sent; 4];
    assert_eq!(told(vec![], None), [&sent[..], &[Event::Acked(4), end]].concat());
}

#[test]
fn steps_tell_what_was_lost_and_sent_again() {
    let mut fates = vec![Fate::Arrives; 100];
    fates[1] = Fate::Lost;
    let rest = [Event::Acked(3), Event::Lost(1), Event::Resent, Event::Acked(1)];
    let end = [Event::Ended(Ending::Delivered)];
    assert_eq!(told(fates, None), [&[Event::Sent; 4][..], &rest, &end].concat());
}

#[test]
fn steps_tell_timeouts_up_to_the_one_that_ends_it() {
    let events = told(vec![], Some(1));
    let [.., Event::TimedOut, Event::Ended(Ending::GaveUp)] = events[..] else {
        panic!("{events:?}")
    };
    let timeouts = events.iter().filter(|event| **event == Event::TimedOut).count();
    let resent = events.iter().filter(|event| **event == Event::Resent).count();
    assert_eq!(timeouts, resent + 1);
}

#[test]
fn nobody_tells_steps_who_was_not_asked_to() {
    let mut line = Line::new(vec![config("fixed", 4); 3], vec![]);
    line.send(300, HANDLE);
    line.run();
    assert_eq!((line.arrived.len(), line.steps.len()), (1, 0));
}
