//! Observations (RFC 7641): a client's, and a server's notifications.

use lowmesh_units::Duration;
use lowmesh_wire::coap::{Code, Kind, Message, MessageId, OptionNumber, Token};

use super::super::*;
use super::*;
use crate::observe::REGISTER;

fn observe(client: &mut Endpoint<u16>) -> Message {
    let mut message = RequestTemplate::get("/t");
    message.options.insert_uint(OptionNumber::OBSERVE, REGISTER);
    let input = Input::Request { peer: PEER, message, handle: Name::Application(Handle(1)) };
    client.handle(T0, input).expect("acceptable");
    sent(&outputs(client)).remove(0)
}

fn state(get: &Message, kind: Kind, id: u16, sequence: u32) -> Message {
    let mut message = response_to(get, kind);
    message.message_id = MessageId(id);
    message.options.insert_uint(OptionNumber::OBSERVE, sequence);
    message.options.insert_uint(OptionNumber::MAX_AGE, 30);
    message
}

/// A client whose observation has its first notification, sequence 10.
fn observing() -> (Endpoint<u16>, Message) {
    let mut client = endpoint(Config::default());
    let get = observe(&mut client);
    let first = state(&get, Kind::Acknowledgement, get.message_id.0, 10);
    let out = receive(&mut client, &first, T0);
    assert!(
        matches!(out[0], Output::Notification { handle: Name::Application(Handle(1)), .. }),
        "{out:?}"
    );
    (client, get)
}

fn notified(outputs: &[Output<u16>]) -> bool {
    outputs.iter().any(|one| matches!(one, Output::Notification { .. }))
}

#[test]
fn a_request_that_observes_stays_open_and_takes_notifications() {
    let (mut client, get) = observing();
    let out = receive(&mut client, &state(&get, Kind::Confirmable, 0x5001, 11), T0);
    assert!(notified(&out));
    assert_eq!(sent(&out), [Message::new(Kind::Acknowledgement, Code::EMPTY, MessageId(0x5001))]);
    let out = receive(&mut client, &state(&get, Kind::NonConfirmable, 0x5002, 12), T0);
    assert!(notified(&out) && sent(&out).is_empty());
    assert_eq!(client.open(), 1);
}

#[test]
fn an_observation_leaves_the_window_to_the_next_request() {
    let (mut client, _) = observing();
    assert_eq!(sent(&ask(&mut client, 2, T0)).len(), 1);
}

#[test]
fn an_older_notification_is_acknowledged_but_not_told() {
    let (mut client, get) = observing();
    let out = receive(&mut client, &state(&get, Kind::Confirmable, 0x5001, 9), T0);
    assert_eq!(discards(&out), [Discard::Stale]);
    assert_eq!(sent(&out)[0].kind, Kind::Acknowledgement);
    assert_eq!(client.counters().stale, 1);
}

#[test]
fn a_stale_observation_is_registered_again_with_the_same_token() {
    let (mut client, get) = observing();
    let (now, out) = wake(&mut client);
    let wait = now.since(T0);
    // RFC 7641 s3.3.1: Max-Age, then 5 to 15 s.
    assert!(wait >= Duration::from_secs(35) && wait < Duration::from_secs(45), "{wait}");
    let again = sent(&out).remove(0);
    assert_eq!((&again.token, &again.options), (&get.token, &get.options));
    assert_ne!(again.message_id, get.message_id);
    let answer = state(&again, Kind::Acknowledgement, again.message_id.0, 11);
    assert!(notified(&receive(&mut client, &answer, now)));
    assert_eq!(client.open(), 1);
}

/// An observation that registers again, and the time at which it does.
fn registering_again() -> (Endpoint<u16>, Message, Instant) {
    let (mut client, _) = observing();
    let (now, out) = wake(&mut client);
    (client, sent(&out).remove(0), now)
}

#[test]
fn the_answer_to_a_new_registration_is_newer_whatever_its_number() {
    // The server may have started again and count from the start, or not have counted the answer.
    for sequence in [2, 9, 10] {
        let (mut client, again, now) = registering_again();
        let answer = state(&again, Kind::Acknowledgement, again.message_id.0, sequence);
        assert!(notified(&receive(&mut client, &answer, now)), "{sequence}");
        let next = state(&again, Kind::NonConfirmable, 0x6001, sequence + 1);
        assert!(notified(&receive(&mut client, &next, now)), "the order goes on from the answer");
        let older = state(&again, Kind::NonConfirmable, 0x6002, sequence);
        assert_eq!(discards(&receive(&mut client, &older, now)), [Discard::Stale]);
    }
}

#[test]
fn a_separate_answer_to_a_new_registration_is_newer_whatever_its_number() {
    for kind in [Kind::Confirmable, Kind::NonConfirmable] {
        for acknowledged in [true, false] {
            let (mut client, again, now) = registering_again();
            if acknowledged {
                let ack = Message::new(Kind::Acknowledgement, Code::EMPTY, again.message_id);
                receive(&mut client, &ack, now);
            }
            let out = receive(&mut client, &state(&again, kind, 0x6001, 2), now);
            assert!(notified(&out), "{kind:?} {acknowledged}");
            assert!(notified(&receive(&mut client, &state(&again, kind, 0x6002, 3), now)));
        }
    }
}

#[test]
fn the_answer_in_an_ack_is_told_also_if_a_delayed_notification_came_before_it() {
    let (mut client, again, now) = registering_again();
    // It left before the one that the client has.
    let delayed = state(&again, Kind::NonConfirmable, 0x6001, 9);
    assert!(notified(&receive(&mut client, &delayed, now)));
    let answer = state(&again, Kind::Acknowledgement, again.message_id.0, 11);
    assert!(notified(&receive(&mut client, &answer, now)));
    assert_eq!(discards(&receive(&mut client, &answer, now)), [Discard::Stale], "a copy");
    let next = state(&again, Kind::NonConfirmable, 0x6002, 12);
    assert!(notified(&receive(&mut client, &next, now)));
}

#[test]
fn a_notification_that_came_after_a_new_registration_keeps_its_place() {
    let (mut client, again, now) = registering_again();
    let ack = Message::new(Kind::Acknowledgement, Code::EMPTY, again.message_id);
    receive(&mut client, &ack, now);
    let later = now + Duration::from_secs(1);
    let newest = state(&again, Kind::NonConfirmable, 0x6001, 12);
    assert!(notified(&receive(&mut client, &newest, later)));
    let overtaken = state(&again, Kind::Confirmable, 0x6002, 11);
    assert_eq!(discards(&receive(&mut client, &overtaken, later)), [Discard::Stale]);
}

#[test]
fn an_error_or_a_response_without_observe_ends_the_observation() {
    for with_option in [false, true] {
        let (mut client, get) = observing();
        let mut last = response_to(&get, Kind::NonConfirmable);
        last.message_id = MessageId(0x5001);
        if with_option {
            last.code = Code::NOT_FOUND;
            last.options.insert_uint(OptionNumber::OBSERVE, 12);
        }
        assert!(has_response(&receive(&mut client, &last, T0), 1));
        assert_eq!((client.open(), client.next_deadline()), (0, None));
    }
}

#[test]
fn a_notification_for_a_cancelled_observation_is_rejected_with_reset() {
    let (mut client, get) = observing();
    client.handle(T0, Input::Cancel { handle: Name::Application(Handle(1)) }).expect("never fails");
    assert_eq!((client.open(), client.next_deadline()), (0, None));
    for (kind, id) in [(Kind::Confirmable, 0x5001), (Kind::NonConfirmable, 0x5002)] {
        let out = receive(&mut client, &state(&get, kind, id, 11), T0);
        assert_eq!(sent(&out), [Message::new(Kind::Reset, Code::EMPTY, MessageId(id))]);
    }
}

#[test]
fn a_client_that_is_not_heard_again_has_failed() {
    let (mut client, _) = observing();
    let failed = loop {
        let (_, out) = wake(&mut client);
        if !failures(&out).is_empty() {
            break failures(&out);
        }
    };
    assert_eq!(failed, [(1, DropReason::GaveUp)]);
    assert_eq!(client.open(), 0);
}

fn notify(server: &mut Endpoint<u16>, confirmable: bool) -> Message {
    let token = Token::from_number(0xabcd, 2);
    let mut response = ResponseTemplate::new(Code::CONTENT);
    response.options.insert_uint(OptionNumber::OBSERVE, 5);
    let input = Input::Notify {
        peer: PEER,
        token,
        response,
        confirmable,
        handle: Name::Application(Handle(7)),
    };
    server.handle(T0, input).expect("acceptable");
    sent(&outputs(server)).remove(0)
}

#[test]
fn a_confirmable_notification_ends_with_its_acknowledgement() {
    let mut server = endpoint(Config::default());
    let sent_one = notify(&mut server, true);
    assert_eq!((sent_one.kind, sent_one.token.as_bytes()), (Kind::Confirmable, &[0xab, 0xcd][..]));
    let ack = Message::new(Kind::Acknowledgement, Code::EMPTY, sent_one.message_id);
    let out = receive(&mut server, &ack, T0);
    assert!(matches!(out[0], Output::Acknowledged { handle: Name::Application(Handle(7)), .. }));
    assert_eq!((server.open(), server.next_deadline()), (0, None));
}

#[test]
fn a_reset_tells_that_the_observer_has_gone_for_both_kinds_of_notification() {
    for confirmable in [true, false] {
        let mut server = endpoint(Config::default());
        let sent_one = notify(&mut server, confirmable);
        let reset = Message::new(Kind::Reset, Code::EMPTY, sent_one.message_id);
        let out = receive(&mut server, &reset, T0);
        assert_eq!(failures(&out), [(7, DropReason::Reset)]);
        assert_eq!(discards(&receive(&mut server, &reset, T0)), [Discard::Unmatched]);
    }
}

#[test]
fn a_request_with_the_token_of_an_observation_takes_its_place() {
    let mut endpoint = endpoint(Config::default());
    let mut template = RequestTemplate::get("/t");
    template.options.insert_uint(OptionNumber::OBSERVE, 0);
    let request = |message, handle| Input::Request { peer: PEER, message, handle };
    endpoint
        .handle(T0, request(template.clone(), Name::Application(Handle(1))))
        .expect("acceptable");
    let registration = sent(&outputs(&mut endpoint)).remove(0);
    let mut state = response_to(&registration, Kind::Acknowledgement);
    state.options.insert_uint(OptionNumber::OBSERVE, 4);
    receive(&mut endpoint, &state, T0);
    template.options.set_uint(OptionNumber::OBSERVE, 1);
    let message = template.with_token(registration.token.clone());
    endpoint.handle(T0, request(message, Name::Application(Handle(2)))).expect("acceptable");
    let last = sent(&outputs(&mut endpoint)).remove(0);
    assert_eq!((&last.token, endpoint.open()), (&registration.token, 1));
    let heard = receive(&mut endpoint, &response_to(&last, Kind::Acknowledgement), T0);
    assert!(
        matches!(heard[..], [Output::Response { handle: Name::Application(Handle(2)), .. }]),
        "the first is over: {heard:?}"
    );
}

#[test]
fn an_observation_that_is_protected_is_not_registered_again_with_the_same_octets() {
    let config = Config { extensions: vec![OptionNumber::OSCORE], ..Config::default() };
    let mut client = endpoint(config);
    let get = observe(&mut client);
    let mut first = state(&get, Kind::Acknowledgement, get.message_id.0, 10);
    first.options.insert(OptionNumber::OSCORE, b"");
    assert!(notified(&receive(&mut client, &first, T0)));
    assert_eq!((client.open(), client.next_deadline()), (1, None));
}
