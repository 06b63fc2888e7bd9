//! Requests and responses, observations, inner blocks, restarts.

use super::*;
use crate::params::SEQUENCE_MAX;
use crate::{
    Challenge, Contexts, Header, PartialIv, ProtectError, Refusal, ResponseError, State,
    StoredWindow,
};

fn partial_iv(message: &StreamMessage) -> Option<PartialIv> {
    let value = message.options.get(OptionNumber::OSCORE).expect("protected");
    Header::parse(value).expect("our own").partial_iv
}

#[test]
fn a_response_uses_the_nonce_of_its_request_and_a_second_one_does_not() {
    let (mut client, mut server) = pair();
    let (outer, mut pending) = client.protect_request(&get("/a")).expect("plain");
    let (_, mut received) = server.unprotect_request(&outer).expect("fresh");
    let first = server.protect_response(&mut received, &content(b"1")).expect("plain");
    let second = server.protect_response(&mut received, &content(b"2")).expect("plain");
    assert_eq!(partial_iv(&first), None);
    assert_eq!(partial_iv(&second), PartialIv::new(0));
    assert_eq!(client.unprotect_response(&mut pending, &second), Ok(content(b"2")));
    assert!(pending.is_over());
    let again = client.unprotect_response(&mut pending, &first);
    assert_eq!(again, Err(ResponseError::Replay));
}

#[test]
fn a_response_does_not_answer_another_request() {
    let (mut client, mut server) = pair();
    let (first, _) = client.protect_request(&get("/a")).expect("plain");
    let (_, mut other) = client.protect_request(&get("/a")).expect("plain");
    let (_, mut received) = server.unprotect_request(&first).expect("fresh");
    let response = server.protect_response(&mut received, &content(b"1")).expect("plain");
    let mismatched = client.unprotect_response(&mut other, &response);
    assert_eq!(mismatched, Err(ResponseError::Forged));
    assert!(!other.is_over());
}

#[test]
fn what_a_proxy_sees_says_nothing() {
    let (mut client, mut server) = pair();
    let mut put = get("/secret/door");
    put.code = Code::DELETE;
    put.payload = b"key".to_vec();
    let (outer, _) = client.protect_request(&put).expect("plain");
    assert_eq!(outer.code, Code::POST);
    let numbers: Vec<_> = outer.options.iter().map(|option| option.number).collect();
    assert_eq!(numbers, [OptionNumber::OSCORE]);
    assert_eq!(server.unprotect_request(&outer).expect("fresh").0, put);
}

#[test]
fn notifications_have_partial_ivs_and_come_out_in_order_only() {
    let (mut client, mut server) = pair();
    let (outer, mut pending) = client.protect_request(&observe(get("/t"), 0)).expect("plain");
    assert_eq!(outer.code, Code::FETCH);
    let (request, mut received) = server.unprotect_request(&outer).expect("fresh");
    assert_eq!(request, observe(get("/t"), 0));
    let mut notify = |value: u32| {
        let response = observe(content(&[value as u8]), value);
        server.protect_response(&mut received, &response).expect("plain")
    };
    let [first, second, third] = [notify(7), notify(8), notify(9)];
    assert_eq!(first.code, Code::CONTENT);
    assert!(partial_iv(&first).is_some());
    let mut take = |outer| client.unprotect_response(&mut pending, outer);
    assert_eq!(take(&first), Ok(observe(content(&[7]), 1)));
    assert_eq!(take(&third), Ok(observe(content(&[9]), 2)));
    assert_eq!(take(&second), Err(ResponseError::Replay));
    assert_eq!(take(&third), Err(ResponseError::Replay));
}

#[test]
fn an_observation_ends_with_a_response_that_does_not_observe() {
    let (mut client, mut server) = pair();
    let (outer, mut pending) = client.protect_request(&observe(get("/t"), 0)).expect("plain");
    let (_, mut received) = server.unprotect_request(&outer).expect("fresh");
    let gone = StreamMessage::new(Code::NOT_FOUND);
    let outer = server.protect_response(&mut received, &gone).expect("plain");
    assert_eq!(client.unprotect_response(&mut pending, &outer), Ok(gone));
    assert!(pending.is_over());
}

#[test]
fn a_notification_that_was_not_asked_for_is_refused() {
    let (mut client, mut server) = pair();
    let (outer, mut pending) = client.protect_request(&get("/t")).expect("plain");
    let (_, mut received) = server.unprotect_request(&outer).expect("fresh");
    let uninvited = observe(content(b"x"), 1);
    let outer = server.protect_response(&mut received, &uninvited).expect("plain");
    let refused = client.unprotect_response(&mut pending, &outer);
    assert_eq!(refused, Err(ResponseError::NoResponse));
}

#[test]
fn each_block_that_an_endpoint_cuts_is_protected_by_itself() {
    let (mut client, mut server) = pair();
    for number in 0..3 {
        let mut block = get("/large");
        block.code = Code::PUT;
        // RFC 7959 s2.2: number, more, size 16.
        block.options.insert_uint(OptionNumber::BLOCK1, number << 4 | u32::from(number < 2) << 3);
        block.payload = vec![number as u8; 16];
        let (outer, _) = client.protect_request(&block).expect("plain");
        assert_eq!(outer.options.get(OptionNumber::BLOCK1), None);
        assert_eq!(server.unprotect_request(&outer).expect("fresh").0, block);
    }
}

#[test]
fn what_is_protected_or_no_request_is_not_protected() {
    let (mut client, _) = pair();
    let (outer, _) = client.protect_request(&get("/a")).expect("plain");
    assert_eq!(client.protect_request(&outer).err(), Some(ProtectError::Nested));
    let refused = client.protect_request(&content(b"")).err();
    assert_eq!(refused, Some(ProtectError::Code(Code::CONTENT)));
    let mut long = get("/a");
    long.payload = vec![0; 70_000];
    assert_eq!(client.protect_request(&long).err(), Some(ProtectError::TooLong));
}

#[test]
fn after_an_orderly_restart_everything_goes_on() {
    let (mut client, mut server) = pair();
    let (old, _) = client.protect_request(&get("/a")).expect("plain");
    server.unprotect_request(&old).expect("fresh");
    let (client_state, server_state) = (client.state(), server.state());
    let (mut client, mut server) = pair();
    client.resume(&client_state, Challenge([0; 8]));
    server.resume(&server_state, Challenge([1; 8]));
    let mut client = ready(client);
    assert_eq!(server.unprotect_request(&old).err(), Some(Refusal::Replay));
    let (new, _) = client.protect_request(&get("/b")).expect("plain");
    assert!(partial_iv(&new) > partial_iv(&old));
    assert!(server.unprotect_request(&new).is_ok());
}

#[test]
fn after_a_crash_a_server_challenges_and_takes_no_replay() {
    let (mut client, mut server) = pair();
    let (old, _) = client.protect_request(&get("/a")).expect("plain");
    let (_, mut received) = server.unprotect_request(&old).expect("fresh");
    let sent = observe(content(b"x"), 1);
    server.protect_response(&mut received, &sent).expect("plain");
    server.protect_response(&mut received, &sent).expect("plain");
    let stored = server.reserved();

    let (_, mut server) = pair();
    server.resume(&State::reserved(stored), Challenge(*b"boot two"));
    assert_eq!(server.unprotect_request(&old).err(), Some(Refusal::Unreserved));
    let mut server = ready(server);
    let challenge = |server: &mut SecurityContext, outer: &StreamMessage| match server
        .unprotect_request(outer)
    {
        Err(Refusal::Challenged(response)) => *response,
        other => panic!("not challenged but {other:?}"),
    };
    // The attacker's replay gets a challenge that only the client can read.
    let to_attacker = challenge(&mut server, &old);
    assert!(partial_iv(&to_attacker).is_some_and(|piv| piv.number() >= stored));

    let (outer, mut pending) = client.protect_request(&get("/b")).expect("plain");
    let response = challenge(&mut server, &outer);
    let response = client.unprotect_response(&mut pending, &response).expect("our server's");
    assert_eq!((response.code, response.payload.is_empty()), (Code::UNAUTHORIZED, true));
    let echo = response.options.get(OptionNumber::ECHO).expect("a challenge");
    let mut again = get("/b");
    again.options.insert(OptionNumber::ECHO, echo);
    let (fresh, _) = client.protect_request(&again).expect("plain");
    assert_eq!(server.unprotect_request(&fresh).expect("fresh").0, again);
    for replay in [&old, &outer, &fresh] {
        assert_eq!(server.unprotect_request(replay).err(), Some(Refusal::Replay));
    }
    let (next, _) = client.protect_request(&get("/c")).expect("plain");
    assert!(server.unprotect_request(&next).is_ok());
}

#[test]
fn after_a_loss_without_a_challenge_no_response_uses_the_nonce_of_its_request() {
    let (mut client, mut server) = pair();
    let (old, _) = client.protect_request(&get("/a")).expect("plain");
    let (_, mut received) = server.unprotect_request(&old).expect("fresh");
    let first = server.protect_response(&mut received, &content(b"1")).expect("plain");
    assert_eq!(partial_iv(&first), None, "the request's nonce is used");
    let mut state = State { window: Some(StoredWindow::TRUSTED), ..server.state() };
    // An orderly end does not make the loss good.
    for _ in 0..2 {
        let (_, mut restarted) = pair();
        restarted.resume(&state, Challenge([0; 8]));
        server = ready(restarted);
        state = server.state();
        let (_, mut received) = server.unprotect_request(&old).expect("a replay, unnoticed");
        let again = server.protect_response(&mut received, &content(b"2")).expect("plain");
        assert!(partial_iv(&again).is_some(), "the request's nonce is used twice");
    }
}

#[test]
fn past_the_last_number_no_response_leaves_either() {
    let (mut client, mut server) = pair();
    let (outer, _) = client.protect_request(&get("/a")).expect("plain");
    let (_, mut received) = server.unprotect_request(&outer).expect("fresh");
    server.resume(&State::reserved(SEQUENCE_MAX + 1), Challenge([0; 8]));
    let refused = server.protect_response(&mut received, &content(b"1")).err();
    assert_eq!(refused, Some(ProtectError::Exhausted));
}

#[test]
fn contexts_of_one_sender_key_use_no_number_twice() {
    let text = "master_secret,ascii,x\nsender_id,ascii,s\nrecipient_id,ascii,a\n\
                recipient_id,ascii,b\nssn_freq,integer,2";
    let mut contexts = Contexts::new(Configuration::parse(text).expect("ours").contexts());
    let [first, late] = [0, 1].map(|context| contexts.reservation_needed(context));
    contexts.confirm(0, first.expect("none is stored"));
    contexts.confirm(1, late.expect("none is stored"));
    let mut used = Vec::new();
    for number in 0..12 {
        let context = number % 2;
        if let Some(reservation) = contexts.reservation_needed(context) {
            contexts.confirm(context, reservation);
        }
        let context = contexts.get_mut(context).expect("one of two");
        let (outer, _) = context.protect_request(&get("/a")).expect("plain");
        let piv = partial_iv(&outer).expect("a request");
        assert!(!used.contains(&piv), "{piv:?} twice under one Sender Key");
        used.push(piv);
    }
}

#[test]
fn a_server_finds_the_context_by_kid_and_kid_context() {
    let inputs = |context, sender: &[u8], recipient: &[u8]| Inputs {
        master_secret: SECRET,
        master_salt: b"salt",
        id_context: Some(context),
        sender_id: identity(sender),
        recipient_id: identity(recipient),
    };
    let mut contexts = Contexts::default();
    for context in [&b"one"[..], b"two"] {
        contexts.add(SecurityContext::derive(&inputs(context, b"s", b"c")));
    }
    let mut client = ready(SecurityContext::derive(&inputs(b"two", b"c", b"s")));
    let (outer, mut pending) = client.protect_request(&get("/a")).expect("plain");
    let mut opened = contexts.unprotect_request(&outer).expect("fresh");
    assert_eq!((opened.context, &opened.request), (1, &get("/a")));
    let context = contexts.get_mut(1).expect("the second");
    let response = context.protect_response(&mut opened.received, &content(b"x")).expect("plain");
    assert!(client.unprotect_response(&mut pending, &response).is_ok());

    // Without kid context all of the same kid are tried.
    let mut client = client.with_id_context_said(false);
    let (outer, _) = client.protect_request(&get("/b")).expect("plain");
    assert_eq!(contexts.unprotect_request(&outer).expect("fresh").context, 1);
    let replay = contexts.unprotect_request(&outer).map(|opened| opened.context);
    assert_eq!(replay, Err(Refusal::Replay));
    let (mut stranger, _) = pair();
    let (outer, _) = stranger.protect_request(&get("/a")).expect("plain");
    let unknown = contexts.unprotect_request(&outer).map(|opened| opened.context);
    assert_eq!(unknown, Err(Refusal::UnknownContext));
}

#[test]
fn a_refusal_says_what_to_answer_and_keeps_it_out_of_caches() {
    for (refusal, code) in [
        (Refusal::Replay, Code::UNAUTHORIZED),
        (Refusal::UnknownContext, Code::UNAUTHORIZED),
        (Refusal::Forged, Code::BAD_REQUEST),
        (Refusal::Incomplete, Code::BAD_OPTION),
    ] {
        let response = refusal.response().expect("the RFC proposes one");
        assert_eq!(response.code, code);
        assert_eq!(response.options.get(OptionNumber::MAX_AGE), Some(&[][..]));
    }
    assert_eq!(Refusal::Unprotected.response(), None);
}

#[test]
fn keys_are_never_printed() {
    let (client, _) = pair();
    let shown = format!("{client:?}");
    assert!(shown.contains("secret") && shown.contains("Identity"), "{shown}");
    let inputs = format!(
        "{:?}",
        Configuration::parse(
            "master_secret,ascii,hunter2\nsender_id,ascii,a\nrecipient_id,ascii,b",
        )
    );
    assert!(inputs.contains("sender_id") && !inputs.contains("104, 117"), "{inputs}");
}
