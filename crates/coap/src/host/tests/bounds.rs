//! What observers cost a server at most, and which of them lose what when a bound is reached.

use lowmesh_wire::coap::signaling::{Capabilities, Signal};
use lowmesh_wire::coap::stream::{Framing, StreamMessage};

use super::drive::{acknowledge, answer_all, hear, register, respond, state, wants};
use super::*;
use crate::params::{NOTIFICATION_GAP, OBSERVED_REQUEST_MAX, STATES_MAX};

const MANY: HostLimits = HostLimits { observers_max: 300, observers_per_source: 300, ..TRUSTING };

/// A server whose 64 resources have an observer each, which has just been notified: the next notification
/// has to wait.
fn observed(len: usize) -> Datagrams {
    let mut server = host(2, MANY);
    for number in 0..64 {
        let get = register(Kind::NonConfirmable, &format!("/{number}"), number);
        hear(&mut server, CLIENT, &get, T0);
    }
    answer_all(&mut server, &body(len), T0);
    server.all_changed(T0);
    let notified = answer_all(&mut server, &body(len), T0);
    assert_eq!(notified.len(), 64);
    server
}

/// Lets the resources change to a state of so many octets, and time run until every observer has been notified
/// once; returns how often the application was asked for a state, how often at a time, and how many octets of
/// states were kept at most.
fn change_all(server: &mut Datagrams, len: usize) -> (usize, usize, usize) {
    let mut now = Instant::from_millis(100);
    server.all_changed(now);
    let (mut asks, mut at_once, mut octets_max, mut told) = (0, 0, 0, BTreeMap::new());
    loop {
        let (asked, sent) = wants(server);
        asks += asked.len();
        at_once = at_once.max(asked.len());
        for (_, message) in sent {
            assert_eq!(message.payload, [9; 1024], "the newest state");
            *told.entry(message.token).or_insert(0) += 1;
        }
        for (exchange, _) in &asked {
            respond(server, *exchange, state(&vec![9; len]), now);
            octets_max = octets_max.max(server.server.notifier.registry.state_octets());
        }
        if asked.is_empty() {
            let Some(due) = server.next_deadline() else { break };
            now = due.max(now);
            server.handle(now, Input::Deadline).expect("never fails");
        }
    }
    assert!(told.len() == 64 && told.values().all(|count| *count == 1));
    assert!(now < Instant::from_secs(10), "{now:?}");
    assert_eq!(server.server.notifier.registry.state_octets(), 0);
    (asks, at_once, octets_max)
}

#[test]
fn states_that_wait_stay_within_their_bound_and_every_observer_gets_its_state() {
    // They are expected to be short, so too many are asked for, and most once more.
    let (asks, at_once, octets) = change_all(&mut observed(8), 1 << 20);
    assert_eq!((at_once, octets), (64, STATES_MAX));
    assert!(asks <= 2 * 64, "{asks}");
    // They are known to be long.
    let (asks, at_once, octets) = change_all(&mut observed(1 << 20), 1 << 20);
    assert_eq!((asks, at_once, octets), (64, 16, STATES_MAX));
}

#[test]
fn a_state_longer_than_the_bound_is_kept_alone() {
    let len = STATES_MAX + 1;
    let mut server = observed(8);
    server.all_changed(T0);
    let (asked, _) = wants(&mut server);
    for (exchange, _) in asked {
        respond(&mut server, exchange, state(&vec![9; len]), T0);
        assert_eq!(server.server.notifier.registry.state_octets(), len);
    }
    // RFC 7641 s4.5.1: its observer waits, since it has just been notified.
    let due = T0 + NOTIFICATION_GAP;
    server.handle(due, Input::Deadline).expect("never fails");
    let (asked, sent) = wants(&mut server);
    assert_eq!((asked.len(), sent.len()), (1, 1), "the next one has its turn");
}

#[test]
fn requests_of_observers_are_kept_up_to_a_length_each() {
    let mut server = host(2, MANY);
    let fetch = |number: u64, len: usize| {
        let mut fetch = register(Kind::NonConfirmable, &format!("/{number:03}"), number);
        fetch.code = Code::FETCH;
        fetch.payload = vec![1; len - fetch.options.as_bytes().len()];
        fetch
    };
    for number in 0..350 {
        hear(&mut server, CLIENT, &fetch(number, OBSERVED_REQUEST_MAX), T0);
        let (_, answer) = answer_all(&mut server, b"state", T0).remove(0);
        let observes = answer.options.get(OptionNumber::OBSERVE).is_some();
        assert_eq!((answer.code, observes), (Code::CONTENT, number < 300), "{number}");
    }
    assert_eq!(server.observers(), 300);
    let octets = server.server.notifier.registry.request_octets();
    assert!((300 * 2000..=300 * OBSERVED_REQUEST_MAX).contains(&octets), "{octets}");
    // The same tokens once more, with an octet too many in the body or among the options.
    let mut long = fetch(1, OBSERVED_REQUEST_MAX);
    long.options.insert(OptionNumber(65_000), b"");
    for (id, request) in [(400, fetch(0, OBSERVED_REQUEST_MAX + 1)), (401, long)] {
        hear(&mut server, CLIENT, &Message { message_id: MessageId(id), ..request }, T0);
        let (_, answer) = answer_all(&mut server, b"state", T0).remove(0);
        let observe = answer.options.get(OptionNumber::OBSERVE);
        assert_eq!((answer.code, observe), (Code::CONTENT, None));
    }
}

/// A server with one connection.
fn connected(limits: HostLimits) -> Host<u8, Connections<u8>> {
    let rng = Rng::stream(Seed(5), NodeId(2), Purpose::Coap);
    let mut server = Host::over_connections(ConnectionLimits::default(), limits, rng);
    let framing = Framing::Stream;
    server
        .handle(T0, Input::Connection(ConnectionInput::Connected { peer: CLIENT, framing }))
        .expect("fine");
    say(&mut server, &StreamMessage::new(Code::CSM), T0);
    server
}

/// A message comes on the connection: the exchange, if it is a request for the application.
fn say(
    server: &mut Host<u8, Connections<u8>>,
    message: &StreamMessage,
    now: Instant,
) -> Option<IncomingId> {
    let mut bytes = Vec::new();
    message.emit(Framing::Stream, &mut bytes);
    server.handle(now, Input::Datagram { from: CLIENT, bytes: &bytes }).expect("fine");
    core::iter::from_fn(|| server.poll_output()).find_map(|output| match output {
        Output::Request { exchange, .. } => Some(exchange),
        _ => None,
    })
}

/// The application answers a request on the connection, and agrees that it observes.
fn agree(server: &mut Host<u8, Connections<u8>>, exchange: IncomingId, now: Instant) {
    let mut response = ResponseTemplate::new(Code::CONTENT);
    response.options.insert_uint(OptionNumber::OBSERVE, 0);
    let input = Input::Respond { exchange, response, handle: Handle::NONE };
    server.handle(now, input).expect("acceptable");
}

fn stream_register(path: &str, token: u64) -> StreamMessage {
    let mut get = StreamMessage::new(Code::GET);
    get.token = Token::from_number(token, 2);
    get.options.insert_uint(OptionNumber::OBSERVE, 0);
    get.options.insert_path(path);
    get
}

#[test]
fn a_long_request_on_a_connection_is_answered_once() {
    let mut server = connected(HostLimits::default());
    let mut get = stream_register("/t", 1);
    get.options.insert(OptionNumber(65_000), &vec![7; 60_000]);
    let exchange = say(&mut server, &get, T0).expect("a request");
    agree(&mut server, exchange, T0);
    assert_eq!((server.observers(), server.server.notifier.registry.request_octets()), (0, 0));
}

/// A server with eight observers of `/t` on one connection, who have had the state at the start.
fn observed_on_a_connection() -> Host<u8, Connections<u8>> {
    let rng = Rng::stream(Seed(5), NodeId(2), Purpose::Coap);
    let mut server = Host::over_connections(ConnectionLimits::default(), MANY, rng);
    let framing = Framing::Stream;
    server
        .handle(T0, Input::Connection(ConnectionInput::Connected { peer: CLIENT, framing }))
        .expect("fine");
    let mut bytes = Vec::new();
    StreamMessage::new(Code::CSM).emit(framing, &mut bytes);
    for token in 0..8 {
        let mut get = StreamMessage::new(Code::GET);
        get.token = Token::from_number(token, 2);
        get.options.insert_uint(OptionNumber::OBSERVE, 0);
        get.options.insert_path("/t");
        get.emit(framing, &mut bytes);
    }
    server.handle(T0, Input::Datagram { from: CLIENT, bytes: &bytes }).expect("fine");
    tell(&mut server);
    assert_eq!(server.observers(), 8);
    server
}

/// The application answers with 100 octets until it is not asked any more: how often it was asked, and what left.
fn tell(server: &mut Host<u8, Connections<u8>>) -> (usize, usize) {
    let (mut asked, mut left) = (0, 0);
    while let Some(output) = server.poll_output() {
        match output {
            Output::Request { exchange, .. } => {
                asked += 1;
                let mut response = ResponseTemplate::new(Code::CONTENT).with_payload(vec![7; 100]);
                response.options.insert_uint(OptionNumber::OBSERVE, 0);
                let input = Input::Respond { exchange, response, handle: Handle::NONE };
                server.handle(T0, input).expect("acceptable");
            }
            Output::Send { .. } => left += 1,
            _ => {}
        }
    }
    (asked, left)
}

#[test]
fn notifications_on_a_connection_wait_while_there_is_no_room_for_them() {
    let mut server = observed_on_a_connection();
    server.set_room(250, T0);
    server.changed("/t", T0);
    assert_eq!(tell(&mut server), (1, 3), "the third one uses up the room");
    assert_eq!(server.body_octets(), 100, "the state waits");
    assert_eq!(server.next_deadline(), None, "time makes no room");
    server.set_room(1000, T0);
    assert_eq!(tell(&mut server), (0, 5));
    assert_eq!(server.body_octets(), 0);
}

#[test]
fn a_state_that_had_to_be_forgotten_is_asked_for_again_once_there_is_room() {
    let mut server = observed_on_a_connection();
    server.set_room(250, T0);
    server.changed("/t", T0);
    assert_eq!(tell(&mut server), (1, 3));
    server.forget_bodies();
    assert_eq!(server.body_octets(), 0);
    server.set_room(1000, T0);
    assert_eq!(tell(&mut server), (1, 5));
    assert_eq!(server.observers(), 8);
}

#[test]
fn a_slow_request_on_a_connection_keeps_its_place_and_registers_however_late_its_answer_is() {
    let mut server = connected(HostLimits { requests_max: 1, ..HostLimits::default() });
    let slow = say(&mut server, &stream_register("/slow", 1), T0).expect("a request");
    assert!(server.defer(slow).is_ok());
    // Unlike datagrams, a connection does not forget a request after EXCHANGE_LIFETIME.
    let later = Instant::from_secs(300);
    let next = say(&mut server, &stream_register("/next", 2), later).expect("a request");
    assert_eq!(server.defer(next), Err(ResponseTemplate::busy()));
    agree(&mut server, slow, later);
    assert_eq!(server.observers(), 1);
    assert!(server.defer(next).is_ok(), "the place is free");
}

#[test]
fn the_state_is_asked_for_in_the_name_of_a_proven_observer() {
    let mut server = host(2, CAREFUL);
    for peer in [3, 4, 5] {
        hear(&mut server, peer, &register(Kind::Confirmable, "/t", peer.into()), T0);
        answer_all(&mut server, b"1", T0);
    }
    // It brings an Echo value back after it has registered.
    server.layer.transport.prove(4, T0);
    server.changed("/t", T0);
    let (asked, _) = wants(&mut server);
    assert_eq!(asked.iter().map(|(_, from)| *from).collect::<Vec<_>>(), [4]);
}

#[test]
fn a_challenge_is_no_state_and_ends_no_observation() {
    let mut server = host(2, CAREFUL);
    for peer in [3, 4] {
        hear(&mut server, peer, &register(Kind::Confirmable, "/t", peer.into()), T0);
        answer_all(&mut server, b"1", T0);
    }
    server.layer.transport.prove(3, T0);
    server.changed("/t", T0);
    let (asked, _) = wants(&mut server);
    respond(&mut server, asked[0].0, ResponseTemplate::challenge(), T0);
    let (asked, sent) = wants(&mut server);
    assert_eq!((asked.len(), sent, server.observers()), (0, vec![], 2));
    // The next change is notified as before.
    server.changed("/t", T0);
    let sent = answer_all(&mut server, b"3", T0);
    let states: Vec<_> = sent.iter().map(|(to, one)| (*to, &one.payload[..])).collect();
    assert_eq!(states, [(3, &b"3"[..]), (4, b"3")]);
    assert!(sent.iter().all(|(_, one)| one.options.get(OptionNumber::OBSERVE).is_some()));
}

/// A server that has room for notifications to two unproven addresses at a time, and three observers.
fn crowded() -> (Datagrams, Vec<(u8, Message)>) {
    let config = Config { open_max: 4, ..Config::default() };
    let rng = Rng::stream(Seed(5), NodeId(2), Purpose::Coap);
    let mut server: Datagrams = Host::over_datagrams(config, CAREFUL, rng).expect("possible");
    for peer in [3, 4, 5] {
        hear(&mut server, peer, &register(Kind::Confirmable, "/t", peer.into()), T0);
        answer_all(&mut server, b"1", T0);
    }
    server.changed("/t", T0);
    let sent = answer_all(&mut server, b"2", T0);
    assert_eq!(sent.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [3, 4]);
    (server, sent)
}

#[test]
fn an_unproven_observer_whose_notification_gives_way_stays_and_is_notified_when_it_is_heard() {
    let (mut server, _) = crowded();
    let now = T0 + crate::params::UNPROVEN_GRACE;
    server.handle(now, Input::Deadline).expect("never fails");
    let sent = answer_all(&mut server, b"2", now);
    assert!(sent.iter().any(|(to, _)| *to == 5), "the third one's turn: {sent:?}");
    assert_eq!(server.observers(), 3, "the first one is not there to acknowledge, or is late");
    assert_eq!(server.server.notifier.registry.next_left(), None);
    // It asks for something else, and gets the state that it has missed.
    let later = now + crate::params::UNPROVEN_GRACE;
    let mut get = register(Kind::Confirmable, "/u", 30);
    get.options.remove(OptionNumber::OBSERVE);
    hear(&mut server, 3, &get, later);
    let sent = answer_all(&mut server, b"2", later);
    let missed = |(to, one): &(u8, Message)| *to == 3 && one.token == Token::from_number(3, 8);
    assert!(sent.iter().any(missed), "{sent:?}");
}

#[test]
fn a_proven_observer_that_stays_silent_is_forgotten() {
    let (mut server, sent) = crowded();
    acknowledge(&mut server, 3, &sent[0].1, T0);
    server.changed("/t", T0);
    answer_all(&mut server, b"3", T0);
    // RFC 7641 s4.5: after the last copy of a CON the client is no longer an observer.
    let mut now = T0;
    while server.observers() == 3 {
        now = server.next_deadline().expect("it waits for an acknowledgement");
        assert!(now < Instant::from_secs(300));
        server.handle(now, Input::Deadline).expect("never fails");
        answer_all(&mut server, b"3", now);
    }
    // The two that nothing has proven are still there, so they take no second place.
    for (peer, observers) in [(4, 2), (5, 2), (3, 3)] {
        let mut again = register(Kind::Confirmable, "/t", peer.into());
        again.message_id = MessageId(100);
        hear(&mut server, peer, &again, now);
        answer_all(&mut server, b"3", now);
        assert_eq!(server.observers(), observers, "after {peer}");
    }
}

#[test]
fn long_requests_that_take_time_are_bounded_in_octets_for_each_peer_and_in_total() {
    let mut server = host(2, TRUSTING);
    let mut deferred = |peer: u8, id: u16| {
        let mut put = Message::new(Kind::Confirmable, Code::PUT, MessageId(id));
        put.options.insert_path("/slow");
        put.payload = vec![1; (1 << 20) - 100];
        hear(&mut server, peer, &put, T0);
        let (asked, _) = wants(&mut server);
        let refused = server.defer(asked[0].0).err();
        refused.is_none_or(|response| {
            assert_eq!(response, ResponseTemplate::busy());
            respond(&mut server, asked[0].0, response, T0);
            false
        })
    };
    let greedy = (0..10).filter(|id| deferred(1, *id)).count();
    let others = (0..20).filter(|peer| deferred(10 + *peer, 1)).count();
    assert_eq!((greedy, others), (4, 12), "MiB of a peer's share of four and a total of 16");
}

#[test]
fn among_forged_observers_who_take_all_places_one_that_proves_its_address_has_a_place() {
    let mut server = host(2, HostLimits { observers_max: 8, ..CAREFUL });
    for forged in 10..30 {
        hear(&mut server, forged, &register(Kind::Confirmable, "/t", 1), T0);
        answer_all(&mut server, b"0", T0);
    }
    assert_eq!(server.observers(), 8);
    let mut get = register(Kind::Confirmable, "/t", 1);
    hear(&mut server, CLIENT, &get, T0);
    let [(CLIENT, challenge)] = &answer_all(&mut server, b"0", T0)[..] else {
        panic!("one answer")
    };
    assert_eq!(challenge.code, Code::UNAUTHORIZED);
    get.message_id = MessageId(2);
    get.options
        .insert(OptionNumber::ECHO, challenge.options.get(OptionNumber::ECHO).expect("a value"));
    hear(&mut server, CLIENT, &get, T0);
    let [(CLIENT, registered)] = &answer_all(&mut server, b"0", T0)[..] else {
        panic!("one answer")
    };
    assert!(registered.options.get(OptionNumber::OBSERVE).is_some(), "{registered:?}");
    assert_eq!(server.observers(), 8);
}

#[test]
fn requests_of_a_connection_that_has_ended_leave_a_host_with_several() {
    let rng = Rng::stream(Seed(5), NodeId(2), Purpose::Coap);
    let mut host = Host::over_connections(ConnectionLimits::default(), HostLimits::default(), rng);
    let mut get = StreamMessage::new(Code::GET);
    get.options.insert_path("/slow");
    let csm = Signal::Csm(Capabilities::default()).into_message(Token::EMPTY);
    let ask = |host: &mut Host<u8, Connections<u8>>, peer: u8| {
        host.handle(
            T0,
            Input::Connection(ConnectionInput::Connected { peer, framing: Framing::Stream }),
        )
        .expect("acceptable");
        for message in [&csm, &get] {
            let mut bytes = Vec::new();
            message.emit(Framing::Stream, &mut bytes);
            host.handle(T0, Input::Datagram { from: peer, bytes: &bytes }).expect("never fails");
        }
        let request = |output| match output {
            Output::Request { exchange, .. } => Some(exchange),
            _ => None,
        };
        let outputs = core::iter::from_fn(|| host.poll_output());
        outputs.filter_map(request).last().expect("for the application")
    };
    let stays = ask(&mut host, 1);
    for _ in 0..HostLimits::default().requests_max {
        // The network says that the connection is gone, or its peer sends what is no message.
        for end in [None, Some(&[0x0f, 0x01][..])] {
            let exchange = ask(&mut host, 2);
            assert!(host.defer(exchange).is_ok(), "the places of its source are free again");
            let ended = match end {
                None => Input::Unreachable { peer: 2 },
                Some(bytes) => Input::Datagram { from: 2, bytes },
            };
            host.handle(T0, ended).expect("never fails");
            assert_eq!(host.server.asked_len(), 1);
        }
    }
    let response = ResponseTemplate::new(Code::CONTENT);
    let answer = Input::Respond { exchange: stays, response, handle: Handle::NONE };
    assert!(host.handle(T0, answer).is_ok(), "the other connection gets its answer");
}
