//! What forged addresses and greedy peers can and cannot take from others.

use super::drive::{
    Server, acknowledge, answer_all, answer_with, asked, get, hear, register, respond, state, wants,
};
use super::*;

/// Octets of a datagram with its headers.
fn with_headers(len: usize) -> usize {
    len + crate::params::DATAGRAM_OVERHEAD
}

fn messages<P>(sent: Vec<(P, Message)>) -> Vec<Message> {
    sent.into_iter().map(|(_, message)| message).collect()
}

/// Lets a server with a resource of `len` octets that changes every second run for 200 s after one datagram,
/// which nobody ever answers; returns what it sends.
fn after_one_datagram(get: &Message, len: usize, notifications: Notifications) -> Vec<Message> {
    let mut server = host(2, CAREFUL);
    hear(&mut server, 1, get, T0);
    let response = ResponseTemplate { notifications, ..state(&body(len)) };
    let mut sent = Vec::new();
    for second in 0..200 {
        let now = Instant::from_secs(second);
        server.changed("/t", now);
        sent.extend(messages(answer_with(&mut server, &response, now)));
        server.handle(now, Input::Deadline).expect("never fails");
    }
    sent
}

#[test]
fn a_forged_observer_gets_three_times_its_datagram_copies_and_notifications_included() {
    for (len, notifications) in [
        (8, Notifications::AsRequested),
        (900, Notifications::AsRequested),
        (8, Notifications::NonConfirmable),
        (40, Notifications::NonConfirmable),
    ] {
        for kind in [Kind::Confirmable, Kind::NonConfirmable] {
            let mut get = register(kind, "/t", 1);
            get.token = Token::EMPTY;
            let sent = after_one_datagram(&get, len, notifications);
            let octets: usize = sent.iter().map(|one| with_headers(one.encoded_len())).sum();
            let bound = 3 * with_headers(get.encoded_len());
            assert!(octets <= bound, "{octets} of {bound}: {sent:?}");
        }
    }
}

#[test]
fn an_observer_with_credit_for_it_is_notified_once_before_it_is_proven() {
    let get = register(Kind::Confirmable, "/t", 1);
    let sent = after_one_datagram(&get, 8, Notifications::AsRequested);
    let kinds: Vec<Kind> = sent.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [Kind::Acknowledgement, Kind::Confirmable]);
}

/// Takes a place for a request; without one answers, and returns the code.
fn defer(server: &mut Datagrams, exchange: IncomingId) -> Option<Code> {
    let response = server.defer(exchange).err()?;
    let code = response.code;
    respond(server, exchange, response, T0);
    let codes: Vec<_> = wants(server).1.iter().map(|(_, one)| one.code).collect();
    assert_eq!(codes, [code]);
    Some(code)
}

/// A slow request comes: the code that refuses it, if there is no place.
fn ask_slowly(server: &mut Datagrams, from: u8, id: u16) -> (IncomingId, Option<Code>) {
    hear(server, from, &get(Kind::Confirmable, id, "/slow"), T0);
    let exchange = asked(server);
    (exchange, defer(server, exchange))
}

#[test]
fn slow_requests_of_forged_addresses_leave_places_for_a_client_that_proves_its_address() {
    let mut server = host(2, HostLimits { requests_max: 8, ..CAREFUL });
    let refused: Vec<_> =
        (10..30).filter_map(|forged| ask_slowly(&mut server, forged, 1).1).collect();
    assert_eq!(
        refused,
        [Code::UNAUTHORIZED; 16],
        "half of eight are deferred, the others challenged"
    );
    // An honest client brings the Echo value, and has a place.
    hear(&mut server, CLIENT, &get(Kind::Confirmable, 1, "/slow"), T0);
    let exchange = asked(&mut server);
    let response = server.defer(exchange).expect_err("no place without a proof");
    respond(&mut server, exchange, response, T0);
    let (_, challenge) = wants(&mut server).1.remove(0);
    let mut again = get(Kind::Confirmable, 2, "/slow");
    let echo = challenge.options.get(OptionNumber::ECHO).expect("a challenge");
    again.options.insert(OptionNumber::ECHO, echo);
    hear(&mut server, CLIENT, &again, T0);
    let exchange = asked(&mut server);
    assert!(server.defer(exchange).is_ok());
}

#[test]
fn a_crowd_of_forged_addresses_displaces_no_echo_value() {
    let mut server = host(2, CAREFUL);
    let ask = |server: &mut Datagrams, from: u8, id: u16, echo: Option<&[u8]>| {
        let mut get = get(Kind::NonConfirmable, id, "/t");
        if let Some(echo) = echo {
            get.options.insert(OptionNumber::ECHO, echo);
        }
        hear(server, from, &get, T0);
        let exchange = asked(server);
        respond(server, exchange, ResponseTemplate::challenge(), T0);
        let (_, answer) = wants(server).1.remove(0);
        answer.options.get(OptionNumber::ECHO).expect("a challenge").to_vec()
    };
    let value = ask(&mut server, CLIENT, 1, None);
    let crowd = (0..=u8::MAX).filter(|from| *from != CLIENT);
    let others: Vec<_> = crowd.map(|from| ask(&mut server, from, 1, None)).collect();
    assert!(!others.contains(&value));
    for (id, wrong) in [(2, &others[0]), (3, &others[200])] {
        ask(&mut server, CLIENT, id, Some(wrong));
        assert!(!server.is_proven(CLIENT), "the value of another address");
    }
    ask(&mut server, CLIENT, 4, Some(&value));
    assert!(server.is_proven(CLIENT));
}

#[test]
fn one_peer_with_slow_requests_gets_5_03_beyond_its_share_and_a_place_when_one_is_answered() {
    let mut server = host(2, HostLimits { requests_max: 8, ..TRUSTING });
    let deferred: Vec<_> = (0..3).map(|id| ask_slowly(&mut server, CLIENT, id)).collect();
    let refused: Vec<Option<Code>> = deferred.iter().map(|(_, refused)| *refused).collect();
    assert_eq!(refused, [None, None, Some(Code::SERVICE_UNAVAILABLE)]);
    assert_eq!(ask_slowly(&mut server, 9, 9).1, None, "another peer");
    server.handle(T0, Input::Decline { exchange: deferred[0].0 }).expect("acceptable");
    wants(&mut server);
    assert_eq!(ask_slowly(&mut server, CLIENT, 4).1, None, "a place is free again");
}

#[test]
fn forged_registrations_leave_room_for_other_observers_and_for_separate_answers() {
    let config = Config { open_max: 16, ..Config::default() };
    let limits = HostLimits { observers_max: 300, observers_per_source: 1, ..CAREFUL };
    let rng = Rng::stream(Seed(5), NodeId(2), Purpose::Coap);
    let mut server: Server<u16> = Host::over_datagrams(config, limits, rng).expect("possible");
    // One is honest: it acknowledges its first notification; and later it waits for a separate answer.
    let honest = 200;
    for peer in [honest].into_iter().chain(1..honest) {
        let mut get = register(Kind::Confirmable, "/t", peer.into());
        get.message_id = MessageId(1);
        hear(&mut server, peer, &get, T0);
        answer_all(&mut server, b"", T0);
        if peer == honest {
            server.changed("/t", T0);
            let sent = answer_all(&mut server, b"", T0);
            for (_, one) in &sent {
                acknowledge(&mut server, honest, one, T0);
            }
        }
    }
    hear(&mut server, honest, &get(Kind::Confirmable, 2, "/slow"), T0);
    let slow = asked(&mut server);
    assert!(server.defer(slow).is_ok());
    let later = Instant::from_secs(2);
    server.handle(later, Input::Deadline).expect("never fails");
    // Notifications to forged addresses fill the open exchanges; the empty ACK has left.
    server.changed("/t", later);
    answer_all(&mut server, b"", later);
    let late = ResponseTemplate::new(Code::CONTENT).with_payload(b"late".to_vec());
    respond(&mut server, slow, late, later);
    let (mut states, mut answers) = (0, 0);
    for second in 3..20 {
        let now = Instant::from_secs(second);
        server.changed("/t", now);
        loop {
            let mut sent = answer_all(&mut server, b"", now);
            sent.retain(|(to, _)| *to == honest);
            if sent.is_empty() {
                break;
            }
            for (_, message) in sent.iter().filter(|(_, one)| one.kind == Kind::Confirmable) {
                states += usize::from(message.options.get(OptionNumber::OBSERVE).is_some());
                answers += usize::from(message.payload == b"late");
                acknowledge(&mut server, honest, message, now);
            }
        }
        server.handle(now, Input::Deadline).expect("never fails");
    }
    assert!(states >= 15 && answers == 1, "{states} of 17 states, {answers} answers");
}

#[test]
fn an_honest_observer_is_notified_however_late_the_first_change_comes() {
    for seconds in [1, 100, 600, 100_000] {
        let mut server = host(2, CAREFUL);
        hear(&mut server, CLIENT, &register(Kind::Confirmable, "/t", 1), T0);
        let mut sent = answer_all(&mut server, &body(8), T0);
        let later = Instant::from_secs(seconds);
        server.changed("/t", later);
        sent.extend(answer_all(&mut server, &body(8), later));
        assert_eq!(sent.len(), 2, "after {seconds} s");
        acknowledge(&mut server, CLIENT, &sent[1].1, later);
        server.changed("/t", later);
        let sent = answer_all(&mut server, &body(8), later);
        assert_eq!(sent.len(), 1, "now it is proven");
    }
}

#[test]
fn neither_a_reset_nor_one_guess_of_many_proves_an_address() {
    let mut server = host(2, CAREFUL);
    for (peer, kind) in [(1, Kind::Reset), (3, Kind::Acknowledgement)] {
        hear(&mut server, peer, &register(Kind::Confirmable, "/t", 1), T0);
        answer_all(&mut server, &body(8), T0);
        server.changed("/t", T0);
        let (to, notification) = answer_all(&mut server, &body(8), T0).remove(0);
        assert_eq!(to, peer);
        if kind == Kind::Acknowledgement {
            // What an attacker who sees nothing would send.
            for guess in 1..100 {
                let id = MessageId(notification.message_id.0.wrapping_add(guess));
                hear(&mut server, peer, &Message::new(kind, Code::EMPTY, id), T0);
            }
        }
        hear(&mut server, peer, &Message::new(kind, Code::EMPTY, notification.message_id), T0);
        assert!(!server.is_proven(peer), "{kind:?}");
    }
}

#[test]
fn a_flood_of_forged_addresses_leaves_proven_peers_alone() {
    let config = Config { peers_max: 300, ..Config::default() };
    let rng = Rng::stream(Seed(5), NodeId(2), Purpose::Coap);
    let mut server: Server<u32> = Host::over_datagrams(config, CAREFUL, rng).expect("possible");
    let get = get(Kind::NonConfirmable, 1, "/t");
    for peer in 1000..1200 {
        hear(&mut server, peer, &get, T0);
        server.layer.transport.prove(peer, T0);
    }
    for forged in 0..4000 {
        let from = if forged % 2 == 0 { forged } else { 10_000 + forged };
        hear(&mut server, from, &get, T0);
        for (exchange, _) in wants(&mut server).0 {
            server.handle(T0, Input::Decline { exchange }).expect("acceptable");
        }
    }
    assert_eq!((1000..1200).filter(|peer| server.is_proven(*peer)).count(), 200);
}

#[test]
fn more_observers_than_have_room_at_once_learn_each_of_many_states() {
    const OBSERVERS: u8 = 200;
    let limits = HostLimits { observers_max: 256, ..CAREFUL };
    let config = Config { open_max: 64, ..Config::default() };
    let rng = Rng::stream(Seed(5), NodeId(2), Purpose::Coap);
    let mut server: Datagrams = Host::over_datagrams(config, limits, rng).expect("possible");
    for peer in 0..OBSERVERS {
        hear(&mut server, peer, &register(Kind::Confirmable, "/t", 1), T0);
        answer_all(&mut server, &[0], T0);
    }
    for state in 1..10 {
        let at = Instant::from_secs(6 * u64::from(state));
        server.changed("/t", at);
        let mut knows = [false; OBSERVERS as usize];
        for step in 0..50 {
            let now = at + Duration::from_millis(100 * step);
            for (to, message) in answer_all(&mut server, &[state], now) {
                knows[usize::from(to)] |= message.payload == [state];
                if message.kind == Kind::Confirmable {
                    acknowledge(&mut server, to, &message, now);
                }
            }
            server.handle(now, Input::Deadline).expect("never fails");
        }
        let learned = knows.iter().filter(|one| **one).count();
        assert_eq!(learned, usize::from(OBSERVERS), "learn state {state}");
    }
}

#[test]
fn an_observer_whose_acknowledgement_is_lost_is_notified_when_anything_comes_from_it() {
    let mut server = host(2, CAREFUL);
    let states = |server: &mut Datagrams, now: Instant| {
        let sent = answer_all(server, b"", now);
        sent.iter().filter(|(_, one)| one.code == Code::CONTENT).count()
    };
    let mut get = register(Kind::Confirmable, "/t", 1);
    get.token = Token::EMPTY;
    hear(&mut server, 1, &get, T0);
    assert_eq!(states(&mut server, T0), 1, "registered");
    let mut now = T0;
    for second in 1..100 {
        now = Instant::from_secs(second);
        server.changed("/t", now);
        states(&mut server, now);
        server.handle(now, Input::Deadline).expect("never fails");
    }
    server.changed("/t", now);
    assert_eq!(states(&mut server, now), 0, "nothing more leaves to an address without credit");
    hear(&mut server, 1, &Message::new(Kind::Confirmable, Code::EMPTY, MessageId(9)), now);
    assert_eq!(states(&mut server, now), 1, "the ping has earned one");
}
