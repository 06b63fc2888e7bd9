//! A host that observes, and what it hears of each change.

use super::*;

#[test]
fn an_observer_is_told_each_change_whole() {
    let mut pair = pair(TRUSTING, body(3000));
    assert_eq!(only_payload(&pair.ask(observe("/large"))), ("notification", body(3000)));
    for len in [2000, 5] {
        pair.body = body(len);
        pair.now += Duration::from_secs(5);
        pair.server.changed("/large", pair.now);
        assert_eq!(only_payload(&pair.settle()), ("notification", body(len)));
    }
    assert_eq!(pair.server.observers(), 1);
}

#[test]
fn observers_are_told_by_what_they_have_asked_or_all_at_once() {
    let mut pair = pair(TRUSTING, body(3));
    pair.ask(observe("/large"));
    let mut asked = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
    asked.options.insert_path("/large");
    let mut other = asked.clone();
    other.options.insert_query("a");
    for (len, request, told) in [(4, Some(&other), 0), (5, Some(&asked), 1), (6, None, 1)] {
        pair.body = body(len);
        pair.now += Duration::from_secs(5);
        match request {
            Some(request) => pair.server.request_changed(request, pair.now),
            None => pair.server.all_changed(pair.now),
        }
        assert_eq!(pair.settle().len(), told, "{len}");
    }
}

#[test]
fn a_cancelled_observation_ends_at_the_next_notification() {
    let mut pair = pair(TRUSTING, body(3));
    pair.ask(observe("/large"));
    pair.client.handle(T0, Input::Cancel { handle: Handle(7) }).expect("never fails");
    pair.server.changed("/large", pair.now);
    let heard = pair.settle();
    assert!(matches!(heard[..], [Output::Discarded { .. }]), "{heard:?}");
    assert_eq!(pair.server.observers(), 0);
}

#[test]
fn a_state_whose_rest_does_not_come_is_told_and_asked_for_afresh() {
    let mut pair = pair(TRUSTING, body(3));
    // Nothing else brings a state soon: the client would register again after Max-Age (RFC 7641 s3.3.1).
    pair.max_age_s = Some(3600);
    pair.ask(observe("/large"));
    pair.body = body(3000);
    pair.now += Duration::from_secs(5);
    pair.server.changed("/large", pair.now);
    // The first block arrives, and nothing of the others.
    let mut outputs = Vec::new();
    while let Some(output) = pair.server.poll_output() {
        match output {
            Output::Request { exchange, message, .. } => pair.serve(exchange, &message),
            Output::Send { bytes, .. } => outputs.push(bytes),
            _ => {}
        }
    }
    let [first] = &outputs[..] else { panic!("{outputs:?}") };
    let input = Input::Datagram { from: SERVER, bytes: first };
    pair.client.handle(pair.now, input).expect("never fails");
    let missed = loop {
        match pair.client.poll_output() {
            Some(Output::Missed { handle, from, reason, .. }) => break (handle, from, reason),
            Some(_) => {}
            None => {
                pair.now = pair.client.next_deadline().expect("a retransmission");
                pair.client.handle(pair.now, Input::Deadline).expect("never fails");
            }
        }
    };
    assert_eq!(missed, (Handle(7), SERVER, DropReason::GaveUp));
    // The network is back before the server has anything new to tell.
    let (since, mut heard) = (pair.now, pair.settle());
    while heard.is_empty() {
        pair.now = pair.client.next_deadline().expect("a request");
        pair.client.handle(pair.now, Input::Deadline).expect("never fails");
        heard = pair.settle();
    }
    assert_eq!(only_payload(&heard), ("notification", body(3000)));
    assert!(
        pair.now.since(since) < Duration::from_secs(5),
        "{}",
        pair.now.since(since).as_millis()
    );
}

#[test]
fn an_observation_is_deregistered_at_once_with_its_own_token() {
    for len in [3, 3000] {
        let mut pair = pair(TRUSTING, body(len));
        pair.ask(observe("/large"));
        assert_eq!(pair.server.observers(), 1);
        pair.client.handle(T0, Input::Deregister { handle: Handle(7) }).expect("acceptable");
        let heard = pair.settle();
        let [Output::Response { handle: Handle(7), message, .. }] = &heard[..] else {
            panic!("{heard:?}")
        };
        assert_eq!(message.options.get(OptionNumber::OBSERVE), None);
        assert_eq!(pair.server.observers(), 0);
        pair.server.changed("/large", pair.now);
        assert_eq!(pair.settle(), []);
    }
}

#[test]
fn where_nothing_is_observed_there_is_nothing_to_deregister() {
    let mut pair = pair(TRUSTING, body(3));
    let message = observe("/large");
    let input = Input::Request { peer: SERVER, message, handle: Handle(7) };
    pair.client.handle(T0, input).expect("acceptable");
    pair.client.handle(T0, Input::Deregister { handle: Handle(7) }).expect("acceptable");
    let heard: Vec<_> = core::iter::from_fn(|| pair.client.poll_output()).collect();
    assert_eq!(heard.last(), Some(&Output::Over { handle: Handle(7) }));
}

#[test]
fn a_request_that_deregisters_ends_the_observation() {
    let mut server = host(2, TRUSTING);
    for (observe, observers) in [(0, 1), (1, 0)] {
        let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(observe as u16));
        get.token = Token::from_number(9, 2);
        get.options.insert_path("/t");
        get.options.insert_uint(OptionNumber::OBSERVE, observe);
        let bytes = get.to_vec();
        server.handle(T0, Input::Datagram { from: 1, bytes: &bytes }).expect("never fails");
        let Some(Output::Request { exchange, .. }) = server.poll_output() else { panic!("asked") };
        let mut response = ResponseTemplate::new(Code::CONTENT);
        response.options.insert_uint(OptionNumber::OBSERVE, 0);
        let input = Input::Respond { exchange, response, handle: Handle::NONE };
        server.handle(T0, input).expect("acceptable");
        let Some(Output::Send { bytes, .. }) = server.poll_output() else { panic!("answered") };
        let answer = Message::parse(&bytes).expect("own bytes");
        assert_eq!(answer.options.get(OptionNumber::OBSERVE).is_some(), observers == 1);
        assert_eq!(server.observers(), observers);
    }
}
