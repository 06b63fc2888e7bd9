//! A client that is new repeats a request with an Echo value (RFC 9175 s2.3); the application is asked once.

use super::drive::{asked, get, hear, respond, state, wants};
use super::*;

const STRANGER: u8 = 1;

/// The only message that leaves, without a question for the application.
fn answer(server: &mut Datagrams) -> Message {
    let (asked, mut sent) = wants(server);
    assert_eq!((asked.len(), sent.len()), (0, 1));
    sent.remove(0).1
}

/// The same request under another message ID, with the Echo value of an answer.
fn repeated(request: &Message, answer: &Message, id: u16) -> Message {
    let mut again = request.clone();
    again.message_id = MessageId(id);
    again.token = Token::from_number(id.into(), 4);
    let value = answer.options.get(OptionNumber::ECHO).expect("a challenge");
    again.options.insert(OptionNumber::ECHO, value);
    again
}

/// A careful server that a stranger has asked with `request`; its first answer.
fn asked_for(request: &Message, response: ResponseTemplate) -> (Datagrams, Message) {
    let mut server = host(2, CAREFUL);
    hear(&mut server, STRANGER, request, T0);
    let exchange = asked(&mut server);
    respond(&mut server, exchange, response, T0);
    let first = answer(&mut server);
    (server, first)
}

#[test]
fn a_long_body_for_a_new_client_is_made_once() {
    for len in [300, 1000, 5000] {
        let mut pair = pair(CAREFUL, body(len));
        let heard = pair.ask(RequestTemplate::get("/large"));
        assert_eq!((only_payload(&heard), pair.asked), (("response", body(len)), 1));
    }
}

#[test]
fn a_new_observer_of_a_long_state_asks_the_application_once() {
    let mut pair = pair(CAREFUL, body(3000));
    let heard = pair.ask(observe("/large"));
    assert_eq!((only_payload(&heard), pair.asked), (("notification", body(3000)), 1));
    pair.body = body(2000);
    pair.now += Duration::from_secs(5);
    pair.server.changed("/large", pair.now);
    assert_eq!((only_payload(&pair.settle()), pair.asked), (("notification", body(2000)), 2));
}

#[test]
fn an_answer_that_a_challenge_has_replaced_is_kept() {
    let error = ResponseTemplate::new(Code::NOT_FOUND).with_payload(body(900));
    let request = get(Kind::Confirmable, 1, "/t");
    let (mut server, first) = asked_for(&request, error);
    assert_eq!(first.code, Code::UNAUTHORIZED);
    hear(&mut server, STRANGER, &repeated(&request, &first, 2), T0);
    let second = answer(&mut server);
    assert_eq!((second.code, second.payload), (Code::NOT_FOUND, body(900)));
}

#[test]
fn a_repeated_registration_whose_state_a_challenge_has_replaced_registers() {
    let mut request = get(Kind::Confirmable, 1, "/t");
    request.options.insert_uint(OptionNumber::OBSERVE, 0);
    let wordy = state(b"short").with_option(OptionNumber::LOCATION_PATH, &[b'x'; 250]);
    let (mut server, first) = asked_for(&request, wordy);
    assert_eq!((first.code, server.observers()), (Code::UNAUTHORIZED, 0));
    hear(&mut server, STRANGER, &repeated(&request, &first, 2), T0);
    assert!(answer(&mut server).options.get(OptionNumber::OBSERVE).is_some());
    assert_eq!(server.observers(), 1);
}

#[test]
fn a_repetition_that_observes_registers_although_its_first_request_did_not() {
    // The state is cut, or a challenge is in its place.
    for wordy in [0, 250] {
        let request = get(Kind::Confirmable, 1, "/t");
        let long = state(&body(600)).with_option(OptionNumber::LOCATION_PATH, &vec![b'x'; wordy]);
        let (mut server, first) = asked_for(&request, long);
        let wanted = if wordy > 0 { Code::UNAUTHORIZED } else { Code::CONTENT };
        assert_eq!((first.code, server.observers()), (wanted, 0));
        let mut again = repeated(&request, &first, 2);
        again.options.insert_uint(OptionNumber::OBSERVE, 0);
        hear(&mut server, STRANGER, &again, T0);
        let second = answer(&mut server);
        assert!(second.options.get(OptionNumber::OBSERVE).is_some());
        assert_eq!((second.payload, server.observers()), (body(600), 1));
        // It hears of the next state.
        let later = T0 + Duration::from_secs(5);
        server.changed("/t", later);
        let sent = super::drive::answer_all(&mut server, b"next", later);
        assert_eq!((sent.len(), &sent[0].1.payload[..]), (1, &b"next"[..]));
        assert_eq!(sent[0].1.token, again.token);
    }
}

#[test]
fn a_new_observer_that_a_full_table_challenges_asks_the_application_once() {
    let mut server = host(2, CAREFUL);
    server.set_observers_max(1);
    let mut request = get(Kind::Confirmable, 1, "/t");
    request.options.insert_uint(OptionNumber::OBSERVE, 0);
    hear(&mut server, STRANGER + 1, &request, T0);
    let exchange = asked(&mut server);
    respond(&mut server, exchange, state(b"first"), T0);
    assert!(answer(&mut server).options.get(OptionNumber::OBSERVE).is_some());
    hear(&mut server, STRANGER, &request, T0);
    let exchange = asked(&mut server);
    respond(&mut server, exchange, state(b"second"), T0);
    let first = answer(&mut server);
    assert_eq!((first.code, server.observers()), (Code::UNAUTHORIZED, 1));
    // Its proof gives it the place of the one that has none.
    hear(&mut server, STRANGER, &repeated(&request, &first, 2), T0);
    let second = answer(&mut server);
    assert_eq!((second.code, &second.payload[..]), (Code::CONTENT, &b"second"[..]));
    assert!(second.options.get(OptionNumber::OBSERVE).is_some());
    assert_eq!(server.observers(), 1);
}

#[test]
fn a_kept_response_answers_one_repetition_of_its_own_request_while_nothing_changes() {
    let mut fetch = get(Kind::Confirmable, 1, "/t");
    fetch.code = Code::FETCH;
    fetch.payload = b"a".to_vec();
    let long = || ResponseTemplate::new(Code::CONTENT).with_payload(body(900));
    let start = || asked_for(&fetch, long());
    let is_asked = |server: &mut Datagrams, request: &Message, now| {
        hear(server, STRANGER, request, now);
        let (asked, _) = wants(server);
        asked.len() == 1
    };
    let (mut server, first) = start();
    let again = repeated(&fetch, &first, 2);
    assert!(!is_asked(&mut server, &again, T0));
    assert!(is_asked(&mut server, &repeated(&fetch, &first, 3), T0), "a request of its own");

    let (mut server, first) = start();
    let other = Message { payload: b"b".to_vec(), ..repeated(&fetch, &first, 2) };
    assert!(is_asked(&mut server, &other, T0), "another body");

    let (mut server, _) = start();
    let forged = Message { message_id: MessageId(2), ..fetch.clone() };
    assert!(is_asked(&mut server, &forged, T0), "no Echo value");

    let (mut server, first) = start();
    server.changed("/other", T0);
    assert!(is_asked(&mut server, &repeated(&fetch, &first, 2), T0), "a resource has changed");

    let (mut server, first) = start();
    let put = Message { code: Code::PUT, ..get(Kind::Confirmable, 9, "/t") };
    assert!(is_asked(&mut server, &put, T0));
    assert!(is_asked(&mut server, &repeated(&fetch, &first, 2), T0), "a request may change it");

    let (mut server, first) = start();
    let late = T0 + crate::params::REPETITION_MAX;
    assert!(is_asked(&mut server, &repeated(&fetch, &first, 2), late), "too late");
}
