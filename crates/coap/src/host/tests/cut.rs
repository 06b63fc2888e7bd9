//! Which options a block of a stored response has: those that answer its own request.

use super::drive::{acknowledge, answer_with, get, hear, register, state};
use super::*;

const WATCHER: u8 = 1;

fn wants_block(message: &mut Message, number: u32) {
    let block = Block { number, more: false, exponent: Exponent::fitting(64) };
    block.write(&mut message.options, OptionNumber::BLOCK2);
}

/// A server whose long state is observed in blocks of 64 octets, and its first response.
fn observed() -> (Datagrams, Message) {
    let mut server = host(2, TRUSTING);
    let mut registration = register(Kind::Confirmable, "/t", 7);
    wants_block(&mut registration, 0);
    hear(&mut server, WATCHER, &registration, T0);
    let first = answer_with(&mut server, &state(&body(300)), T0).remove(0).1;
    (server, first)
}

/// A response has Observe, the tag of a representation, a block.
fn has(message: &Message) -> [bool; 3] {
    let numbers = [OptionNumber::OBSERVE, OptionNumber::ETAG, OptionNumber::BLOCK2];
    numbers.map(|number| message.options.get(number).is_some())
}

/// Asks for block 1, without Observe.
fn second_block(server: &mut Datagrams, id: u16, now: Instant) -> Message {
    let mut later = get(Kind::Confirmable, id, "/t");
    wants_block(&mut later, 1);
    hear(server, WATCHER, &later, now);
    answer_with(server, &state(&body(300)), now).remove(0).1
}

#[test]
fn later_blocks_of_an_observed_state_are_no_notifications() {
    let (mut server, first) = observed();
    assert_eq!(has(&first), [true; 3]);
    assert_eq!(has(&second_block(&mut server, 50, T0)), [false, true, true]);
    let now = Instant::from_secs(5);
    server.changed("/t", now);
    let notification = answer_with(&mut server, &state(&body(200)), now).remove(0).1;
    assert_eq!(has(&notification), [true; 3]);
    acknowledge(&mut server, WATCHER, &notification, now);
    let later = second_block(&mut server, 51, now);
    assert_eq!((has(&later), later.payload), ([false, true, true], body(200)[64..128].to_vec()));
}

/// The Request-Tags of two long uploads of a client.
fn tags(node: u16) -> [Vec<u8>; 2] {
    let mut client = host(node, TRUSTING);
    [1, 2].map(|name| {
        let message = RequestTemplate::new(Code::PUT, "/up").with_payload(body(3000));
        let input = Input::Request { peer: name, message, handle: Handle(name.into()) };
        client.handle(T0, input).expect("acceptable");
        let (_, sent) = super::drive::wants(&mut client);
        sent[0].1.options.get(OptionNumber::REQUEST_TAG).expect("a body in blocks").to_vec()
    })
}

#[test]
fn each_body_has_its_own_tag_also_after_a_restart() {
    let mut all: Vec<_> = (1..9).flat_map(tags).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 16, "{all:?}");
}

#[test]
fn no_body_goes_on_in_the_next_session_of_its_peer() {
    for ends in [false, true] {
        let (mut server, _) = observed();
        let upload = |server: &mut Datagrams, id, number, more| {
            let mut put = Message { code: Code::PUT, ..get(Kind::Confirmable, id, "/up") };
            let exponent = Exponent::fitting(64);
            Block { number, more, exponent }.write(&mut put.options, OptionNumber::BLOCK1);
            put.payload = vec![7; 64];
            hear(server, WATCHER, &put, T0);
            answer_with(server, &ResponseTemplate::new(Code::CHANGED), T0).remove(0).1.code
        };
        assert_eq!(upload(&mut server, 60, 0, true), Code::CONTINUE);
        if ends {
            let ended = Input::SessionEnded { peer: WATCHER, reopens: false };
            server.handle(T0, ended).expect("never fails");
            assert_eq!(server.body_octets(), 0, "of both directions");
        }
        let last = if ends { Code::REQUEST_ENTITY_INCOMPLETE } else { Code::CHANGED };
        assert_eq!(upload(&mut server, 61, 1, false), last);
    }
}

#[test]
fn an_error_ends_an_observation_without_options_of_a_representation() {
    let (mut server, _) = observed();
    let now = Instant::from_secs(5);
    server.changed("/t", now);
    let gone = ResponseTemplate::new(Code::NOT_FOUND).with_payload(b"deleted".to_vec());
    let last = answer_with(&mut server, &gone, now).remove(0).1;
    assert_eq!((last.code, has(&last)), (Code::NOT_FOUND, [false; 3]));
    assert_eq!((last.payload, server.observers()), (b"deleted".to_vec(), 0));
}

#[test]
fn a_long_error_ends_an_observation_without_its_text() {
    let (mut server, _) = observed();
    let now = Instant::from_secs(5);
    server.changed("/t", now);
    let gone = ResponseTemplate::new(Code::NOT_FOUND).with_payload(body(2000));
    let last = answer_with(&mut server, &gone, now).remove(0).1;
    assert_eq!((last.code, last.payload.len(), server.observers()), (Code::NOT_FOUND, 0, 0));
}

#[test]
fn a_response_without_a_body_has_no_block_and_no_tag() {
    let mut server = host(2, TRUSTING);
    for (id, code) in [(1, Code::DELETED), (2, Code::VALID), (3, Code::NOT_FOUND)] {
        let mut request = get(Kind::Confirmable, id, "/t");
        wants_block(&mut request, 0);
        hear(&mut server, WATCHER, &request, T0);
        let answer = answer_with(&mut server, &ResponseTemplate::new(code), T0).remove(0).1;
        assert_eq!((answer.code, has(&answer)), (code, [false; 3]));
    }
}

#[test]
fn a_request_for_a_later_block_registers_no_observer() {
    let mut server = host(2, TRUSTING);
    let mut request = register(Kind::Confirmable, "/t", 7);
    wants_block(&mut request, 1);
    hear(&mut server, WATCHER, &request, T0);
    let answer = answer_with(&mut server, &state(&body(300)), T0).remove(0).1;
    assert_eq!((has(&answer), server.observers()), ([false, true, true], 0));
}

#[test]
fn a_client_has_proven_its_address_before_the_body_that_it_sends_is_whole() {
    let mut pair = pair(CAREFUL, Vec::new());
    assert!(!pair.server.is_proven(CLIENT));
    pair.ask(RequestTemplate::new(Code::PUT, "/put").with_payload(body(2000)));
    assert!(pair.asked == 1 && pair.server.is_proven(CLIENT));
    // One that knows no Echo goes on without.
    let mut server = host(2, CAREFUL);
    for (number, more, code) in [(0, true, Code::CONTINUE), (1, false, Code::CHANGED)] {
        let mut put = get(Kind::Confirmable, number as u16, "/put");
        (put.code, put.payload) = (Code::PUT, body(64));
        let block = Block { number, more, exponent: Exponent::fitting(64) };
        block.write(&mut put.options, OptionNumber::BLOCK1);
        hear(&mut server, CLIENT, &put, T0);
        let (asked, mut sent) = super::drive::wants(&mut server);
        if let Some((exchange, _)) = asked.first() {
            super::drive::respond(&mut server, *exchange, ResponseTemplate::new(code), T0);
            sent = super::drive::wants(&mut server).1;
        }
        let answer = &sent[0].1;
        assert_eq!((answer.code, answer.options.get(OptionNumber::ECHO).is_some()), (code, more));
    }
}
