//! Multicast (RFC 7252 s8).

use lowmesh_units::Duration;
use lowmesh_wire::coap::{Code, Kind, Message, MessageId, OptionNumber, Token};

use super::super::*;
use super::*;

const GROUP: u16 = 0xff02;

fn receive_by_group(endpoint: &mut Endpoint<u16>, message: &Message) -> Vec<Output<u16>> {
    let bytes = message.to_vec();
    let input = Input::Group(GroupInput::Datagram { from: PEER, bytes: &bytes });
    endpoint.handle(T0, input).expect("never fails");
    outputs(endpoint)
}

fn ask_group(endpoint: &mut Endpoint<u16>) -> Message {
    let message = RequestTemplate::get("/t");
    let wait = Duration::from_secs(10);
    let input = Input::Group(GroupInput::Request {
        group: GROUP,
        message,
        wait,
        handle: Name::Application(Handle(1)),
    });
    endpoint.handle(T0, input).expect("acceptable");
    sent(&outputs(endpoint)).remove(0)
}

fn answer_of(endpoint: &mut Endpoint<u16>, member: u16, answer: &Message) -> Vec<Output<u16>> {
    let bytes = answer.to_vec();
    endpoint.handle(T0, Input::Datagram { from: member, bytes: &bytes }).expect("never fails");
    outputs(endpoint)
}

#[test]
fn every_member_of_a_group_may_answer_once_until_the_wait_is_over() {
    let mut client = endpoint(Config::default());
    let get = ask_group(&mut client);
    assert_eq!(get.kind, Kind::NonConfirmable);
    for member in [1, 2, 3] {
        let answer = response_to(&get, Kind::NonConfirmable);
        let out = answer_of(&mut client, member, &answer);
        let Some(Output::GroupResponse { handle: Name::Application(Handle(1)), from, .. }) =
            out.first()
        else {
            panic!("{out:?}")
        };
        assert_eq!(*from, member);
        let again = answer_of(&mut client, member, &answer);
        assert_eq!(discards(&again), [Discard::Duplicate]);
    }
    let (now, out) = wake(&mut client);
    assert_eq!(
        (now, &out[..]),
        (Instant::from_secs(10), &[Output::Over { handle: Name::Application(Handle(1)) }][..])
    );
    let late = response_to(&get, Kind::NonConfirmable);
    let out = answer_of(&mut client, 4, &late);
    assert_eq!((discards(&out), sent(&out).len()), (vec![Discard::Unmatched], 0));
    assert_eq!(client.own.groups.by_token(&get.token), None);
}

#[test]
fn a_confirmable_answer_of_a_member_is_acknowledged() {
    let mut client = endpoint(Config::default());
    let get = ask_group(&mut client);
    let out = answer_of(&mut client, 1, &response_to(&get, Kind::Confirmable));
    assert_eq!(sent(&out)[0].kind, Kind::Acknowledgement);
    assert!(out.iter().any(|one| matches!(one, Output::GroupResponse { from: 1, .. })));
}

#[test]
fn a_member_with_an_unknown_critical_option_does_not_end_the_request_for_the_others() {
    let mut client = endpoint(Config::default());
    let get = ask_group(&mut client);
    let mut odd = response_to(&get, Kind::NonConfirmable);
    odd.options.insert(OptionNumber(65), b"");
    let out = answer_of(&mut client, 1, &odd);
    assert_eq!(discards(&out), [Discard::CriticalOption(OptionNumber(65))]);
    let out = answer_of(&mut client, 2, &response_to(&get, Kind::NonConfirmable));
    assert!(matches!(out[0], Output::GroupResponse { from: 2, .. }), "{out:?}");
}

#[test]
fn an_answer_to_a_multicast_request_leaves_within_the_leisure() {
    let mut waits = Vec::new();
    let mut server = endpoint(Config::default());
    for id in 0..20 {
        let asked = receive_by_group(&mut server, &request(Kind::NonConfirmable, id));
        assert!(matches!(asked[0], Output::Request { multicast: true, .. }));
        assert_eq!(respond(&mut server, &asked, T0), [], "not at once");
        let (now, out) = wake(&mut server);
        let answer = sent(&out).remove(0);
        assert_eq!((answer.kind, answer.code), (Kind::NonConfirmable, Code::CONTENT));
        waits.push(now.since(T0));
    }
    assert!(waits.iter().all(|wait| *wait < crate::params::DEFAULT_LEISURE), "{waits:?}");
    waits.sort_unstable();
    assert!(waits[19] - waits[0] > Duration::from_secs(2), "spread: {waits:?}");
}

#[test]
fn the_time_that_the_application_takes_passes_within_the_leisure() {
    let mut server = endpoint(Config::default());
    let mut waits = Vec::new();
    for (id, taken) in [(1, 0), (2, 4), (3, 4), (4, 4), (5, 4), (6, 20)] {
        let asked = receive_by_group(&mut server, &request(Kind::NonConfirmable, id));
        respond(&mut server, &asked, T0 + Duration::from_secs(taken));
        waits.push(wake(&mut server).0.since(T0));
    }
    let leisure = crate::params::DEFAULT_LEISURE;
    assert!(waits[..5].iter().all(|wait| *wait < leisure), "{waits:?}");
    assert!(waits[1..5].iter().all(|wait| *wait >= Duration::from_secs(4)), "{waits:?}");
    assert_eq!(waits[5], Duration::from_secs(20), "the leisure is over: at once");
}

#[test]
fn an_error_to_a_multicast_request_leaves_only_if_the_client_asks_for_it() {
    let mut server = endpoint(Config::default());
    for (id, no_response, answered) in [(1, None, false), (2, Some(0), true), (3, Some(8), false)] {
        let mut get = request(Kind::NonConfirmable, id);
        if let Some(value) = no_response {
            get.options.insert_uint(OptionNumber::NO_RESPONSE, value);
        }
        let asked = receive_by_group(&mut server, &get);
        let Some(Output::Request { exchange, .. }) = asked.first() else { panic!("{asked:?}") };
        let response = ResponseTemplate::new(Code::NOT_FOUND);
        let input = Input::Respond { exchange: *exchange, response, handle: Name::NONE };
        server.handle(T0, input).expect("acceptable");
        assert_eq!(server.next_deadline().is_some(), answered, "No-Response {no_response:?}");
        if answered {
            assert_eq!(sent(&wake(&mut server).1)[0].code, Code::NOT_FOUND);
        }
    }
}

#[test]
fn nothing_wrong_that_comes_by_multicast_is_answered() {
    let mut server = endpoint(Config::default());
    let mut critical = request(Kind::NonConfirmable, 1);
    critical.options.insert(OptionNumber(65), b"");
    let mut proxied = request(Kind::NonConfirmable, 2);
    proxied.options.insert(OptionNumber::PROXY_URI, b"coap://elsewhere/");
    let confirmable = request(Kind::Confirmable, 3);
    let ping = Message::new(Kind::Confirmable, Code::EMPTY, MessageId(4));
    let response = Message::new(Kind::NonConfirmable, Code::CONTENT, MessageId(5));
    for message in [critical, proxied, confirmable, ping, response] {
        let out = receive_by_group(&mut server, &message);
        assert_eq!(sent(&out), [], "{message:?}");
        assert!(!out.iter().any(|one| matches!(one, Output::Request { .. })), "{message:?}");
    }
    let malformed =
        Input::Group(GroupInput::Datagram { from: PEER, bytes: &[0x40, 1, 0, 9, 0xff] });
    server.handle(T0, malformed).expect("never fails");
    assert_eq!(sent(&outputs(&mut server)), []);
}

#[test]
fn a_token_of_the_application_is_for_one_group_at_a_time() {
    let mut endpoint = endpoint(Config::default());
    let mut request = |group, handle| {
        let message = RequestTemplate::get("/t").with_token(Token::from_number(5, 3));
        let wait = Duration::from_secs(5);
        let input = Input::Group(GroupInput::Request {
            group,
            message,
            wait,
            handle: Name::Application(Handle(handle)),
        });
        endpoint.handle(T0, input).map(|()| sent(&outputs(&mut endpoint)).remove(0).token)
    };
    assert_eq!(request(90, 1).ok(), Some(Token::from_number(5, 3)));
    assert!(request(91, 2).is_err(), "answers come from anyone");
}
