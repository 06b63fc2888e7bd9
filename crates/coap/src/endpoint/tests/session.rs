//! Silence ends a session that this end has opened.

use lowmesh_units::Duration;
use lowmesh_wire::coap::{Kind, OptionNumber};

use super::super::*;
use super::*;
use crate::observe::REGISTER;

/// A client over sessions with so many requests on their way at once.
fn client(nstart: u32) -> Endpoint<u16> {
    let congestion = CongestionControl::default().with_nstart(nstart);
    endpoint(Config { congestion, opens_sessions: true, ..Config::default() })
}

fn sessions_over(outputs: &[Output<u16>]) -> usize {
    outputs.iter().filter(|one| matches!(one, Output::SessionOver { peer: PEER })).count()
}

/// Lets time run until something is heard of the session, or until nothing is due any more.
fn wait_for_the_end(client: &mut Endpoint<u16>) -> (Instant, Vec<Output<u16>>) {
    let mut last = (T0, Vec::new());
    while client.next_deadline().is_some() {
        last = wake(client);
        if sessions_over(&last.1) > 0 {
            break;
        }
    }
    last
}

fn observe(client: &mut Endpoint<u16>, verified: bool) -> Message {
    let mut message = RequestTemplate::get("/t");
    message.options.insert_uint(OptionNumber::OBSERVE, REGISTER);
    let (peer, handle) = (PEER, Name::Application(Handle(1)));
    let input = if verified {
        Input::RequestVerified { peer, message, handle }
    } else {
        Input::Request { peer, message, handle }
    };
    client.handle(T0, input).expect("acceptable");
    let get = sent(&outputs(client)).remove(0);
    let mut state = response_to(&get, Kind::Acknowledgement);
    state.options.insert_uint(OptionNumber::OBSERVE, 1000);
    state.options.insert_uint(OptionNumber::MAX_AGE, 30);
    receive(client, &state, T0);
    if verified {
        client.handle(T0, Input::Accept { handle, observes: true }).expect("never fails");
    }
    get
}

#[test]
fn a_request_without_any_answer_ends_the_session_and_those_that_wait_leave_in_the_next_one() {
    let mut client = client(1);
    ask(&mut client, 1, T0);
    ask(&mut client, 2, T0);
    let (now, out) = wait_for_the_end(&mut client);
    assert!(now.since(T0) <= Lifetimes::default().transmit_wait);
    assert_eq!((sessions_over(&out), failures(&out)), (1, vec![(1, DropReason::GaveUp)]));
    // RFC 7252 s9.1.1: what leaves behind the end belongs to the next session.
    let over = out.iter().position(|one| matches!(one, Output::SessionOver { .. }));
    let leaves = out.iter().position(|one| matches!(one, Output::Send { .. }));
    assert!(over < leaves, "{out:?}");
    let next = sent(&out).remove(0);
    assert!(has_response(
        &receive(&mut client, &response_to(&next, Kind::Acknowledgement), now),
        2
    ));
}

#[test]
fn without_sessions_of_ours_a_failure_is_of_one_request_alone() {
    let mut client = endpoint(Config::default());
    ask(&mut client, 1, T0);
    let (_, out) = wait_for_the_end(&mut client);
    assert_eq!((sessions_over(&out), failures(&out)), (0, vec![(1, DropReason::GaveUp)]));
}

#[test]
fn a_session_in_which_something_came_since_the_request_left_goes_on() {
    let mut client = client(2);
    ask(&mut client, 1, T0);
    let other = sent(&ask(&mut client, 2, Instant::from_secs(1))).remove(0);
    receive(&mut client, &response_to(&other, Kind::Acknowledgement), Instant::from_secs(2));
    let (_, out) = wait_for_the_end(&mut client);
    assert_eq!((sessions_over(&out), failures(&out)), (0, vec![(1, DropReason::GaveUp)]));
}

#[test]
fn an_unconfirmed_request_without_answer_ends_the_session_too() {
    let mut client = client(1);
    let message = RequestTemplate { confirmable: false, ..RequestTemplate::get("/t") };
    let input = Input::Request { peer: PEER, message, handle: Name::Application(Handle(1)) };
    client.handle(T0, input).expect("acceptable");
    let (_, out) = wait_for_the_end(&mut client);
    assert_eq!((sessions_over(&out), failures(&out)), (1, vec![(1, DropReason::GaveUp)]));
}

#[test]
fn requests_that_are_cancelled_early_do_not_keep_a_dead_session() {
    let mut client = client(1);
    let wait = Lifetimes::default().transmit_wait;
    let mut over = None;
    for number in 1..20 {
        let now = Instant::from_secs(10 * number);
        let out = ask(&mut client, number, now);
        assert_eq!(sent(&out).len(), 1, "each one leaves");
        if sessions_over(&out) > 0 {
            assert!(matches!(out[0], Output::SessionOver { .. }), "first: {out:?}");
            over = Some(now);
            break;
        }
        let handle = Name::Application(Handle(number));
        client.handle(now + Duration::from_secs(8), Input::Cancel { handle }).expect("never fails");
    }
    let over = over.expect("the session ends").since(Instant::from_secs(10));
    assert!(over > wait && over <= wait + Duration::from_secs(10), "{over}");
}

#[test]
fn an_observation_is_registered_again_in_the_next_session_and_its_order_begins_there() {
    let mut client = client(1);
    let get = observe(&mut client, false);
    // The server has restarted: nobody answers when the observation is registered again.
    let (now, out) = wait_for_the_end(&mut client);
    assert_eq!((sessions_over(&out), failures(&out)), (1, vec![]));
    // It has waited long enough.
    let again = sent(&out).remove(0);
    assert_eq!((&again.token, &again.options), (&get.token, &get.options));
    let mut state = response_to(&again, Kind::Acknowledgement);
    state.options.insert_uint(OptionNumber::OBSERVE, 1);
    let out = receive(&mut client, &state, now);
    assert!(out.iter().any(|one| matches!(one, Output::Notification { .. })), "{out:?}");
}

#[test]
fn an_observation_that_no_later_session_answers_ends() {
    let mut client = client(1);
    observe(&mut client, false);
    let (_, out) = wait_for_the_end(&mut client);
    assert_eq!(failures(&out), []);
    let (_, out) = wait_for_the_end(&mut client);
    assert_eq!(failures(&out), [(1, DropReason::GaveUp)]);
    assert_eq!((client.open(), client.next_deadline()), (0, None));
}

#[test]
fn a_session_that_its_peer_has_closed_takes_no_observation_and_no_waiting_request_with_it() {
    for verified in [false, true] {
        let mut client = client(1);
        let get = observe(&mut client, verified);
        ask(&mut client, 2, T0);
        ask(&mut client, 3, T0);
        let ended = Input::SessionEnded { peer: PEER, reopens: true };
        client.handle(T0, ended).expect("never fails");
        let out = outputs(&mut client);
        assert_eq!(failures(&out), [(2, DropReason::NoRoute)], "it has left");
        let third = sent(&out).remove(0);
        receive(&mut client, &response_to(&third, Kind::Acknowledgement), T0);
        if verified {
            // The layer that verifies registers again, with the token of the observation.
            assert_eq!((client.open(), client.next_deadline()), (1, None));
            let mut message = RequestTemplate::get("/t");
            message.options.insert_uint(OptionNumber::OBSERVE, REGISTER);
            message.token = Some(get.token.clone());
            let handle = Name::Application(Handle(1));
            let input = Input::RequestVerified { peer: PEER, message, handle };
            client.handle(T0, input).expect("the token is free");
            assert_eq!((sent(&outputs(&mut client)).len(), client.open()), (1, 1));
        } else {
            assert_eq!(sent(&wake(&mut client).1)[0].token, get.token);
        }
    }
}

#[test]
fn a_response_of_the_old_session_does_not_leave_in_the_next_one() {
    let mut client = client(1);
    // The peer asks through the session; the answer is separate and waits behind a request.
    let asked = receive(&mut client, &request(Kind::Confirmable, 5), T0);
    let (now, _) = wake(&mut client);
    ask(&mut client, 1, now);
    respond(&mut client, &asked, now);
    let ended = Input::SessionEnded { peer: PEER, reopens: true };
    client.handle(now, ended).expect("never fails");
    let out = outputs(&mut client);
    assert_eq!(sent(&out), []);
    assert_eq!(client.next_deadline(), None);
}
