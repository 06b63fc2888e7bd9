//! What is refused, rejected or ignored (RFC 7252 s4.2, s4.3, s5.4), and the rules that later RFCs
//! add.

use std::string::String;

use lowmesh_wire::coap::{Code, Kind, Message, MessageId, OptionNumber, Token};

use super::super::*;
use super::*;

#[test]
fn an_unknown_critical_option_is_answered_with_4_02_when_confirmable_and_ignored_when_not() {
    let mut server = endpoint(Config::default());
    let mut get = request(Kind::Confirmable, 5);
    get.options.insert(OptionNumber(65), b"");
    let out = receive(&mut server, &get, T0);
    assert_eq!(sent(&out)[0].code, Code::BAD_OPTION);
    // RFC 7252 s5.4.1: the diagnostic payload names it.
    let text = String::from_utf8_lossy(&sent(&out)[0].payload).into_owned();
    assert!(text.contains("option ") && text.chars().any(char::is_numeric), "{text}");
    assert_eq!(discards(&out), [Discard::CriticalOption(OptionNumber(65))]);
    let mut get = request(Kind::NonConfirmable, 6);
    get.options.insert(OptionNumber(65), b"");
    assert_eq!(sent(&receive(&mut server, &get, T0)), []);
    let mut get = request(Kind::Confirmable, 7);
    get.options.insert(OptionNumber(66), b"");
    let out = receive(&mut server, &get, T0);
    assert!(matches!(out[0], Output::Request { .. }), "an elective one is ignored");
}

#[test]
fn a_request_for_a_proxy_is_answered_with_5_05() {
    let mut server = endpoint(Config::default());
    let mut get = request(Kind::Confirmable, 5);
    get.options.insert(OptionNumber::PROXY_URI, b"coap://elsewhere/");
    let out = receive(&mut server, &get, T0);
    assert_eq!(sent(&out)[0].code, Code::PROXYING_NOT_SUPPORTED);
}

#[test]
fn a_response_with_an_unknown_critical_option_is_rejected_and_fails_the_request() {
    let mut client = endpoint(Config::default());
    let get = sent(&ask(&mut client, 1, T0)).remove(0);
    let mut content = response_to(&get, Kind::Confirmable);
    content.message_id = MessageId(0x4444);
    content.options.insert(OptionNumber(65), b"");
    let out = receive(&mut client, &content, T0);
    assert_eq!(sent(&out), [Message::new(Kind::Reset, Code::EMPTY, MessageId(0x4444))]);
    assert_eq!(failures(&out), [(1, DropReason::Malformed)]);
}

/// RFC 7252 s5.10.1: no Uri-Path is `.` or `..`.
#[test]
fn a_request_with_a_dot_segment_is_refused() {
    for (segment, refused) in
        [(".", true), ("..", true), ("...", false), (".a", false), ("", false)]
    {
        let mut server = endpoint(Config::default());
        let mut get = request(Kind::Confirmable, 5);
        get.options.insert(OptionNumber::URI_PATH, b"a");
        get.options.insert(OptionNumber::URI_PATH, segment.as_bytes());
        let out = receive(&mut server, &get, T0);
        let is_refused = sent(&out).first().is_some_and(|first| first.code == Code::BAD_OPTION);
        assert_eq!(is_refused, refused, "{segment}: {out:?}");
    }
}

/// RFC 7252 s5.10.7: no Location-Path is `.` or `..`; a proxy passes none on.
#[test]
fn a_response_with_a_dot_segment_in_its_location_fails_the_request() {
    for proxy in [false, true] {
        for segment in [".", ".."] {
            let mut client = endpoint(Config { proxy, ..Config::default() });
            let post = sent(&ask(&mut client, 1, T0)).remove(0);
            let mut created = response_to(&post, Kind::Confirmable);
            created.code = Code::CREATED;
            for one in ["a", segment, "b"] {
                created.options.insert(OptionNumber::LOCATION_PATH, one.as_bytes());
            }
            let out = receive(&mut client, &created, T0);
            assert_eq!(failures(&out), [(1, DropReason::Malformed)], "{segment}");
            let is_named = |one: &Output<_>| {
                matches!(one, Output::Fault { fault: crate::Fault::DotSegment, .. })
            };
            assert!(out.iter().any(is_named), "{out:?}");
        }
    }
}

#[test]
fn a_ping_and_what_does_not_belong_in_a_confirmable_are_answered_with_reset() {
    let mut server = endpoint(Config::default());
    let reset = |id| vec![Message::new(Kind::Reset, Code::EMPTY, MessageId(id))];
    for (bytes, id) in [
        (&[0x40, 0, 0, 1][..], 1),         // ping
        (&[0x41, 0, 0, 2, 9], 2),          // Empty with a token
        (&[0x40, 0x20, 0, 3], 3),          // reserved class 1
        (&[0x40, 0xc0, 0, 4], 4),          // reserved class 6
        (&[0x40, 0xe1, 0, 5], 5),          // signalling over UDP
        (&[0x4f, 1, 0, 6], 6),             // token length 15
        (&[0x40, 1, 0, 7, 0xff], 7),       // marker without payload
        (&[0x40, 1, 0, 8, 0xf0], 8),       // option delta 15
        (&[0x40, 1, 0, 9, 0xb4, b't'], 9), // truncated option
    ] {
        assert_eq!(sent(&receive_bytes(&mut server, bytes)), reset(id), "{bytes:02x?}");
    }
}

#[test]
fn what_does_not_belong_anywhere_else_is_ignored() {
    let mut server = endpoint(Config::default());
    for bytes in [
        &[0x50, 0, 0, 1][..], // NON, Empty
        &[0x60, 1, 0, 2],     // ACK with a request
        &[0x70, 1, 0, 3],     // RST with a request
        &[0x70, 0, 0, 4],     // RST to nothing
        &[0x60, 0, 0, 5],     // ACK to nothing
        &[0x80, 1, 0, 6],     // version 2
        &[0x50, 0x20, 0, 7],  // NON, reserved class 1
        &[0x5f, 1, 0, 8],     // NON, token length 15
        &[0x40, 1, 0],        // three octets
        &[],
    ] {
        let out = receive_bytes(&mut server, bytes);
        assert_eq!((sent(&out).len(), discards(&out).len()), (0, 1), "{bytes:02x?}");
    }
}

#[test]
fn an_elective_option_of_wrong_length_is_ignored_and_a_critical_one_refused() {
    let mut server = endpoint(Config::default());
    let mut get = request(Kind::Confirmable, 1);
    get.options.insert(OptionNumber::URI_HOST, b"");
    assert_eq!(sent(&receive(&mut server, &get, T0))[0].code, Code::BAD_OPTION);
    let mut get = request(Kind::Confirmable, 2);
    get.options.insert(OptionNumber::ETAG, b"nine-long");
    let out = receive(&mut server, &get, T0);
    let Some(Output::Request { message, .. }) = out.first() else { panic!("{out:?}") };
    assert!(message.options.is_empty(), "{message:?}");
}

#[test]
fn a_second_accept_is_refused() {
    let mut server = endpoint(Config::default());
    let mut get = request(Kind::Confirmable, 1);
    get.options.insert_uint(OptionNumber::ACCEPT, 0);
    get.options.insert_uint(OptionNumber::ACCEPT, 50);
    assert_eq!(sent(&receive(&mut server, &get, T0))[0].code, Code::BAD_OPTION);
}

#[test]
fn a_critical_option_of_a_later_rfc_passes_only_where_a_layer_above_processes_it() {
    let mut get = request(Kind::Confirmable, 1);
    get.options.insert_uint(OptionNumber::BLOCK2, 6);
    let mut plain = endpoint(Config::default());
    assert_eq!(sent(&receive(&mut plain, &get, T0))[0].code, Code::BAD_OPTION);
    let extensions = vec![OptionNumber::BLOCK2];
    let mut blockwise = endpoint(Config { extensions, ..Config::default() });
    let out = receive(&mut blockwise, &get, T0);
    assert!(matches!(out[0], Output::Request { .. }), "{out:?}");
}

#[test]
fn a_hop_limit_of_zero_or_above_255_is_answered_with_4_00() {
    let mut server = endpoint(Config::default());
    for (id, value) in [(1, &[][..]), (2, &[0]), (3, &[1, 0])] {
        let mut get = request(Kind::Confirmable, id);
        get.options.insert(OptionNumber::HOP_LIMIT, value);
        assert_eq!(sent(&receive(&mut server, &get, T0))[0].code, Code::BAD_REQUEST);
    }
    let mut get = request(Kind::Confirmable, 4);
    get.options.insert_uint(OptionNumber::HOP_LIMIT, 1);
    assert!(matches!(receive(&mut server, &get, T0)[0], Output::Request { .. }));
}

#[test]
fn an_extended_token_is_echoed_and_one_above_the_bound_is_answered_with_4_00() {
    let mut server = endpoint(Config::default());
    let mut get = request(Kind::Confirmable, 1);
    get.token = Token::new(b"thirteen octs").expect("short");
    let asked = receive(&mut server, &get, T0);
    assert_eq!(sent(&respond(&mut server, &asked, T0))[0].token, get.token);
    let mut get = request(Kind::Confirmable, 2);
    get.token = Token::new(&[7; 300]).expect("at most 65,804");
    let refused = sent(&receive(&mut server, &get, T0)).remove(0);
    assert_eq!((refused.code, &refused.token), (Code::BAD_REQUEST, &get.token));
}

#[test]
fn a_response_that_no_response_keeps_away_does_not_leave() {
    let mut server = endpoint(Config::default());
    let mut get = request(Kind::NonConfirmable, 1);
    get.options.insert_uint(OptionNumber::NO_RESPONSE, 26);
    let asked = receive(&mut server, &get, T0);
    assert_eq!(respond(&mut server, &asked, T0), []);
    let mut get = request(Kind::Confirmable, 2);
    get.options.insert_uint(OptionNumber::NO_RESPONSE, 2);
    let asked = receive(&mut server, &get, T0);
    let ack = Message::new(Kind::Acknowledgement, Code::EMPTY, MessageId(2));
    assert_eq!(sent(&respond(&mut server, &asked, T0)), core::slice::from_ref(&ack));
    assert_eq!(sent(&receive(&mut server, &get, T0)), [ack], "and so is its duplicate");
    let mut get = request(Kind::NonConfirmable, 3);
    get.options.insert_uint(OptionNumber::NO_RESPONSE, 8);
    let asked = receive(&mut server, &get, T0);
    assert_eq!(sent(&respond(&mut server, &asked, T0))[0].code, Code::CONTENT);
}

#[test]
fn a_request_that_wants_no_response_is_over_when_it_has_arrived() {
    let mut client = endpoint(Config::default());
    let mut message = RequestTemplate::new(Code::PUT, "/t");
    message.options.insert_uint(OptionNumber::NO_RESPONSE, 26);
    let confirmed = Input::Request {
        peer: PEER,
        message: message.clone(),
        handle: Name::Application(Handle(1)),
    };
    client.handle(T0, confirmed).expect("acceptable");
    let put = sent(&outputs(&mut client)).remove(0);
    let ack = Message::new(Kind::Acknowledgement, Code::EMPTY, put.message_id);
    let out = receive(&mut client, &ack, T0);
    assert!(out.contains(&Output::Over { handle: Name::Application(Handle(1)) }), "{out:?}");
    let message = message.non_confirmable();
    client
        .handle(T0, Input::Request { peer: PEER, message, handle: Name::Application(Handle(2)) })
        .expect("fine");
    let octets = sent(&outputs(&mut client)).remove(0).encoded_len() as u64;
    let (now, out) = wake(&mut client);
    assert_eq!(out, [Output::Over { handle: Name::Application(Handle(2)) }]);
    // RFC 7252 s4.7: one octet a second to a peer that does not answer.
    assert_eq!(now.since(T0).as_secs(), octets);
    assert_eq!(client.open(), 0);
}

#[test]
fn a_ping_ends_with_the_reset_that_it_asks_for() {
    let mut client = endpoint(Config::default());
    client
        .handle(T0, Input::Ping { peer: PEER, handle: Name::Application(Handle(3)) })
        .expect("acceptable");
    let ping = sent(&outputs(&mut client)).remove(0);
    assert_eq!((ping.kind, ping.code, ping.encoded_len()), (Kind::Confirmable, Code::EMPTY, 4));
    let reset = Message::new(Kind::Reset, Code::EMPTY, ping.message_id);
    let out = receive(&mut client, &reset, Instant::from_millis(20));
    let rtt = lowmesh_units::Duration::from_millis(20);
    assert_eq!(
        out,
        [Output::Pong { handle: Name::Application(Handle(3)), rtt, retransmissions: 0 }]
    );
    assert_eq!((client.open(), client.next_deadline()), (0, None));
}

#[test]
fn a_message_too_long_for_every_path_is_refused_before_it_leaves() {
    let mut client = endpoint(Config::default());
    let message = RequestTemplate::new(Code::PUT, "/t").with_payload(vec![0; 1200]);
    let input = Input::Request { peer: PEER, message, handle: Name::Application(Handle(1)) };
    let refused = client.handle(T0, input).expect_err("too long");
    assert!(refused.why().contains("block-wise"));
    assert_eq!((client.open(), outputs(&mut client).len()), (0, 0));
}

#[test]
fn a_cancelled_request_ends_without_a_word() {
    let mut client = endpoint(Config::default());
    ask(&mut client, 1, T0);
    ask(&mut client, 2, T0);
    client.handle(T0, Input::Cancel { handle: Name::Application(Handle(1)) }).expect("never fails");
    let out = outputs(&mut client);
    assert_eq!((failures(&out).len(), sent(&out).len()), (0, 1), "the next one starts");
    assert_eq!(client.open(), 1);
}
