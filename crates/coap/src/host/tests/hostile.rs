//! What forged addresses and greedy peers can and cannot take from others.

use super::*;

/// Octets of a datagram with its headers.
fn with_headers(len: usize) -> usize {
    len + crate::params::DATAGRAM_OVERHEAD
}

/// Lets a server with a resource of `len` octets that changes every second run for 200 s after one datagram,
/// which nobody ever answers; returns what it sends.
fn after_one_datagram(get: &Message, len: usize, notifications: Notifications) -> Vec<Message> {
    let mut server = host(2, HostLimits { amplification_max: Some(3), ..TRUSTING });
    let bytes = get.to_vec();
    server.handle(T0, Input::Datagram { from: 1, bytes: &bytes }).expect("never fails");
    let mut sent = Vec::new();
    for second in 0..200 {
        let now = Instant::from_secs(second);
        server.changed("/t", now);
        while let Some(output) = server.poll_output() {
            match output {
                Output::Request { exchange, .. } => {
                    let mut response = ResponseTemplate::new(Code::CONTENT);
                    response.payload = body(len);
                    response.notifications = notifications;
                    response.options.insert_uint(OptionNumber::OBSERVE, 0);
                    let input = Input::Respond { exchange, response, handle: Handle::NONE };
                    server.handle(now, input).expect("acceptable");
                }
                Output::Send { bytes, .. } => {
                    sent.push(Message::parse(&bytes).expect("own bytes"));
                }
                _ => {}
            }
        }
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
            let mut get = Message::new(kind, Code::GET, MessageId(1));
            get.options.insert_path("/t");
            get.options.insert_uint(OptionNumber::OBSERVE, 0);
            let sent = after_one_datagram(&get, len, notifications);
            let octets: usize = sent.iter().map(|one| with_headers(one.encoded_len())).sum();
            let bound = 3 * with_headers(get.encoded_len());
            assert!(octets <= bound, "{octets} of {bound}: {sent:?}");
        }
    }
}

#[test]
fn an_observer_with_credit_for_it_is_notified_once_before_it_is_proven() {
    let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
    get.options.insert_path("/t");
    get.options.insert_uint(OptionNumber::OBSERVE, 0);
    get.token = Token::from_number(1, 8);
    let sent = after_one_datagram(&get, 8, Notifications::AsRequested);
    let kinds: Vec<Kind> = sent.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [Kind::Acknowledgement, Kind::Confirmable]);
}

/// A datagram of a client that asks for something.
fn datagram(kind: Kind, id: u16, path: &str) -> Vec<u8> {
    let mut get = Message::new(kind, Code::GET, MessageId(id));
    get.token = Token::from_number(u64::from(id), 4);
    get.options.insert_path(path);
    get.to_vec()
}

/// Codes of the responses that leave now, and the requests that the application gets.
fn turn(server: &mut Datagrams) -> (Vec<Code>, Vec<ExchangeId>) {
    let (mut codes, mut asked) = (Vec::new(), Vec::new());
    while let Some(output) = server.poll_output() {
        match output {
            Output::Send { bytes, .. } => codes.push(Message::parse(&bytes).expect("own").code),
            Output::Request { exchange, .. } => asked.push(exchange),
            _ => {}
        }
    }
    (codes, asked)
}

/// Takes a place for a request; without one answers, and returns the code.
fn defer(server: &mut Datagrams, exchange: ExchangeId) -> Option<Code> {
    let response = server.defer(exchange).err()?;
    let code = response.code;
    let input = Input::Respond { exchange, response, handle: Handle::NONE };
    server.handle(T0, input).expect("acceptable");
    assert_eq!(turn(server).0, [code]);
    Some(code)
}

#[test]
fn slow_requests_of_forged_addresses_leave_places_for_who_proves_its_address() {
    let limits = HostLimits { requests_max: 8, amplification_max: Some(3), ..TRUSTING };
    let mut server = host(2, limits);
    let mut answers = Vec::new();
    for forged in 10..30 {
        let bytes = datagram(Kind::NonConfirmable, 1, "/slow");
        server.handle(T0, Input::Datagram { from: forged, bytes: &bytes }).expect("never fails");
        let (_, asked) = turn(&mut server);
        assert_eq!(asked.len(), 1);
        answers.extend(defer(&mut server, asked[0]));
    }
    assert_eq!(
        answers,
        [Code::UNAUTHORIZED; 16],
        "half of eight are deferred, the others challenged"
    );
    // An honest client brings the Echo value, and has a place; a quick request needs none.
    let bytes = datagram(Kind::Confirmable, 1, "/slow");
    server.handle(T0, Input::Datagram { from: CLIENT, bytes: &bytes }).expect("never fails");
    let (_, asked) = turn(&mut server);
    let response = server.defer(asked[0]).expect_err("no place without a proof");
    let input = Input::Respond { exchange: asked[0], response, handle: Handle::NONE };
    server.handle(T0, input).expect("acceptable");
    let Some(Output::Send { bytes, .. }) = server.poll_output() else { panic!("the challenge") };
    let challenge = Message::parse(&bytes).expect("own bytes");
    let mut again = Message::parse(&datagram(Kind::Confirmable, 2, "/slow")).expect("own bytes");
    let echo = challenge.options.get(OptionNumber::ECHO).expect("a challenge");
    again.options.insert(OptionNumber::ECHO, echo);
    let bytes = again.to_vec();
    server.handle(T0, Input::Datagram { from: CLIENT, bytes: &bytes }).expect("never fails");
    let (_, asked) = turn(&mut server);
    assert!(server.defer(asked[0]).is_ok());
}

#[test]
fn a_crowd_of_forged_addresses_takes_nobodys_echo_value_away() {
    let mut server = host(2, HostLimits { amplification_max: Some(3), ..TRUSTING });
    let ask = |server: &mut Datagrams, from: u8, id: u16, echo: Option<&[u8]>| {
        let mut get = Message::parse(&datagram(Kind::NonConfirmable, id, "/t")).expect("own bytes");
        if let Some(echo) = echo {
            get.options.insert(OptionNumber::ECHO, echo);
        }
        let bytes = get.to_vec();
        server.handle(T0, Input::Datagram { from, bytes: &bytes }).expect("never fails");
        let Some(Output::Request { exchange, .. }) = server.poll_output() else { panic!("asked") };
        let response = ResponseTemplate::challenge();
        let input = Input::Respond { exchange, response, handle: Handle::NONE };
        server.handle(T0, input).expect("acceptable");
        let Some(Output::Send { bytes, .. }) = server.poll_output() else { panic!("answered") };
        let answer = Message::parse(&bytes).expect("own bytes");
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
    let mut deferred = Vec::new();
    for id in 0..3 {
        let bytes = datagram(Kind::Confirmable, id, "/slow");
        server.handle(T0, Input::Datagram { from: CLIENT, bytes: &bytes }).expect("never fails");
        let (_, asked) = turn(&mut server);
        deferred.push((asked[0], defer(&mut server, asked[0])));
    }
    let refused: Vec<Option<Code>> = deferred.iter().map(|(_, refused)| *refused).collect();
    assert_eq!(refused, [None, None, Some(Code::SERVICE_UNAVAILABLE)]);
    let bytes = datagram(Kind::Confirmable, 9, "/slow");
    server.handle(T0, Input::Datagram { from: 9, bytes: &bytes }).expect("never fails");
    let (_, asked) = turn(&mut server);
    assert!(server.defer(asked[0]).is_ok(), "another peer");
    let input = Input::Decline { exchange: deferred[0].0 };
    server.handle(T0, input).expect("acceptable");
    let bytes = datagram(Kind::Confirmable, 4, "/slow");
    server.handle(T0, Input::Datagram { from: CLIENT, bytes: &bytes }).expect("never fails");
    let (_, asked) = turn(&mut server);
    assert!(server.defer(asked[0]).is_ok(), "a place is free again");
}

#[test]
fn forged_registrations_leave_room_for_other_observers_and_for_separate_answers() {
    let config = Config { open_max: 16, ..Config::default() };
    let limits = HostLimits {
        observers_max: 300,
        observers_per_source: 1,
        amplification_max: Some(3),
        ..TRUSTING
    };
    let rng = Rng::stream(Seed(5), NodeId(2), Purpose::Coap);
    let mut server: Host<u16, Endpoint<u16>> =
        Host::over_datagrams(config, limits, rng).expect("possible");
    let mut heard = std::collections::BTreeMap::<u16, Vec<Message>>::new();
    let mut work = |server: &mut Host<u16, Endpoint<u16>>, now: Instant| {
        while let Some(output) = server.poll_output() {
            match output {
                Output::Request { exchange, message, .. } => {
                    let slow = message.options.get(OptionNumber::URI_PATH) == Some(b"slow");
                    if slow {
                        assert!(server.defer(exchange).is_ok());
                        continue;
                    }
                    let mut response = ResponseTemplate::new(Code::CONTENT);
                    response.options.insert_uint(OptionNumber::OBSERVE, 0);
                    let input = Input::Respond { exchange, response, handle: Handle::NONE };
                    server.handle(now, input).expect("acceptable");
                }
                Output::Send { to, bytes, .. } => {
                    let message = Message::parse(&bytes).expect("own bytes");
                    heard.entry(to).or_default().push(message);
                }
                _ => {}
            }
        }
        std::mem::take(&mut heard)
    };
    let observe = |peer: u16| {
        let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
        get.token = Token::from_number(u64::from(peer), 8);
        get.options.insert_path("/t");
        get.options.insert_uint(OptionNumber::OBSERVE, 0);
        get.to_vec()
    };
    for peer in 1..=200 {
        let bytes = observe(peer);
        server.handle(T0, Input::Datagram { from: peer, bytes: &bytes }).expect("never fails");
        work(&mut server, T0);
    }
    // The last one is honest: it acknowledges; and it waits for a separate answer.
    let honest = 200;
    let bytes = datagram(Kind::Confirmable, 2, "/slow");
    server.handle(T0, Input::Datagram { from: honest, bytes: &bytes }).expect("never fails");
    let Some(Output::Request { exchange, .. }) = server.poll_output() else { panic!("a request") };
    assert!(server.defer(exchange).is_ok());
    let later = Instant::from_secs(2);
    server.handle(later, Input::Deadline).expect("never fails");
    // Notifications to forged addresses fill the open exchanges; the empty ACK has left.
    server.changed("/t", later);
    work(&mut server, later);
    let response = ResponseTemplate::new(Code::CONTENT).with_payload(b"late".to_vec());
    let input = Input::Respond { exchange, response, handle: Handle::NONE };
    server.handle(later, input).expect("acceptable");
    let (mut states, mut answers) = (0, 0);
    for second in 3..20 {
        let now = Instant::from_secs(second);
        server.changed("/t", now);
        let mut inbox = work(&mut server, now);
        loop {
            let mine = inbox.remove(&honest).unwrap_or_default();
            if mine.is_empty() {
                break;
            }
            for message in mine.iter().filter(|one| one.kind == Kind::Confirmable) {
                states += usize::from(message.options.get(OptionNumber::OBSERVE).is_some());
                answers += usize::from(message.payload == b"late");
                let ack = Message::empty(Kind::Acknowledgement, message.message_id).to_vec();
                let input = Input::Datagram { from: honest, bytes: &ack };
                server.handle(now, input).expect("never fails");
            }
            inbox = work(&mut server, now);
        }
        server.handle(now, Input::Deadline).expect("never fails");
    }
    assert!(states >= 15 && answers == 1, "{states} of 17 states, {answers} answers");
}

#[test]
fn an_honest_observer_is_notified_however_late_the_first_change_comes() {
    for seconds in [1, 100, 600, 100_000] {
        let mut server = host(2, HostLimits { amplification_max: Some(3), ..TRUSTING });
        let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
        get.token = Token::from_number(1, 4);
        get.options.insert_path("/t");
        get.options.insert_uint(OptionNumber::OBSERVE, 0);
        let bytes = get.to_vec();
        server.handle(T0, Input::Datagram { from: CLIENT, bytes: &bytes }).expect("never fails");
        let mut sent = answer_all(&mut server, T0);
        let later = Instant::from_secs(seconds);
        server.changed("/t", later);
        sent.extend(answer_all(&mut server, later));
        assert_eq!(sent.len(), 2, "after {seconds} s");
        let ack = Message::empty(Kind::Acknowledgement, sent[1].message_id).to_vec();
        server.handle(later, Input::Datagram { from: CLIENT, bytes: &ack }).expect("never fails");
        server.changed("/t", later);
        assert_eq!(answer_all(&mut server, later).len(), 1, "now it is proven");
    }
}

/// Answers whatever the application is asked; returns what leaves.
fn answer_all(server: &mut Datagrams, now: Instant) -> Vec<Message> {
    let mut sent = Vec::new();
    while let Some(output) = server.poll_output() {
        match output {
            Output::Request { exchange, .. } => {
                let mut response = ResponseTemplate::new(Code::CONTENT).with_payload(body(8));
                response.options.insert_uint(OptionNumber::OBSERVE, 0);
                let input = Input::Respond { exchange, response, handle: Handle::NONE };
                server.handle(now, input).expect("acceptable");
            }
            Output::Send { bytes, .. } => sent.push(Message::parse(&bytes).expect("own bytes")),
            _ => {}
        }
    }
    sent
}

#[test]
fn neither_a_reset_nor_one_guess_of_many_proves_an_address() {
    let mut server = host(2, HostLimits { amplification_max: Some(3), ..TRUSTING });
    let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
    get.token = Token::from_number(1, 8);
    get.options.insert_path("/t");
    get.options.insert_uint(OptionNumber::OBSERVE, 0);
    for (peer, kind) in [(1, Kind::Reset), (3, Kind::Acknowledgement)] {
        let bytes = get.to_vec();
        server.handle(T0, Input::Datagram { from: peer, bytes: &bytes }).expect("never fails");
        answer_all(&mut server, T0);
        server.changed("/t", T0);
        let notification = answer_all(&mut server, T0).remove(0);
        if kind == Kind::Acknowledgement {
            // What an attacker who sees nothing would send.
            for guess in 1..100 {
                let id = MessageId(notification.message_id.0.wrapping_add(guess));
                let ack = Message::empty(kind, id).to_vec();
                server.handle(T0, Input::Datagram { from: peer, bytes: &ack }).expect("fine");
            }
        }
        let reply = Message::empty(kind, notification.message_id).to_vec();
        server.handle(T0, Input::Datagram { from: peer, bytes: &reply }).expect("never fails");
        assert!(!server.is_proven(peer), "{kind:?}");
    }
}

#[test]
fn a_flood_of_forged_addresses_leaves_proven_peers_alone() {
    let config = Config { peers_max: 300, ..Config::default() };
    let limits = HostLimits { amplification_max: Some(3), ..TRUSTING };
    let rng = Rng::stream(Seed(5), NodeId(2), Purpose::Coap);
    let mut server: Host<u32, Endpoint<u32>> =
        Host::over_datagrams(config, limits, rng).expect("possible");
    let bytes = datagram(Kind::NonConfirmable, 1, "/t");
    for peer in 1000..1200 {
        server.handle(T0, Input::Datagram { from: peer, bytes: &bytes }).expect("never fails");
        server.transport.prove(peer, T0);
    }
    for forged in 0..4000 {
        let from = if forged % 2 == 0 { forged } else { 10_000 + forged };
        server.handle(T0, Input::Datagram { from, bytes: &bytes }).expect("never fails");
        while let Some(output) = server.poll_output() {
            if let Output::Request { exchange, .. } = output {
                server.handle(T0, Input::Decline { exchange }).expect("acceptable");
            }
        }
    }
    assert_eq!((1000..1200).filter(|peer| server.is_proven(*peer)).count(), 200);
}

#[test]
fn more_observers_than_have_room_at_once_learn_each_of_many_states() {
    const OBSERVERS: u8 = 200;
    let limits = HostLimits { observers_max: 256, amplification_max: Some(3), ..TRUSTING };
    let config = Config { open_max: 64, ..Config::default() };
    let rng = Rng::stream(Seed(5), NodeId(2), Purpose::Coap);
    let mut server: Datagrams = Host::over_datagrams(config, limits, rng).expect("possible");
    // What leaves, with its receiver; the application answers with the state.
    let turn = |server: &mut Datagrams, state: u8, now: Instant| {
        let mut sent = Vec::new();
        while let Some(output) = server.poll_output() {
            match output {
                Output::Request { exchange, .. } => {
                    let mut response = ResponseTemplate::new(Code::CONTENT);
                    response.payload = vec![state];
                    response.options.insert_uint(OptionNumber::OBSERVE, 0);
                    let input = Input::Respond { exchange, response, handle: Handle::NONE };
                    server.handle(now, input).expect("acceptable");
                }
                Output::Send { to, bytes, .. } => {
                    sent.push((to, Message::parse(&bytes).expect("own bytes")));
                }
                _ => {}
            }
        }
        sent
    };
    for peer in 0..OBSERVERS {
        let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
        get.options.insert_path("/t");
        get.options.insert_uint(OptionNumber::OBSERVE, 0);
        get.token = Token::from_number(1, 1);
        server
            .handle(T0, Input::Datagram { from: peer, bytes: &get.to_vec() })
            .expect("never fails");
        turn(&mut server, 0, T0);
    }
    for state in 1..10 {
        let at = Instant::from_secs(6 * u64::from(state));
        server.changed("/t", at);
        let mut knows = vec![false; usize::from(OBSERVERS)];
        for step in 0..50 {
            let now = at + Duration::from_millis(100 * step);
            for (to, message) in turn(&mut server, state, now) {
                knows[usize::from(to)] |= message.payload == [state];
                if message.kind == Kind::Confirmable {
                    let ack = Message::empty(Kind::Acknowledgement, message.message_id).to_vec();
                    server
                        .handle(now, Input::Datagram { from: to, bytes: &ack })
                        .expect("never fails");
                }
            }
            server.handle(now, Input::Deadline).expect("never fails");
        }
        let told = knows.iter().filter(|one| **one).count();
        assert_eq!(told, usize::from(OBSERVERS), "learn state {state}");
    }
}

#[test]
fn an_observer_whose_acknowledgement_is_lost_is_notified_when_anything_comes_from_it() {
    let mut server = host(2, HostLimits { amplification_max: Some(3), ..TRUSTING });
    let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
    get.options.insert_path("/t");
    get.options.insert_uint(OptionNumber::OBSERVE, 0);
    let states = |server: &mut Datagrams, now: Instant| {
        let mut states = 0;
        while let Some(output) = server.poll_output() {
            match output {
                Output::Request { exchange, .. } => {
                    let mut response = ResponseTemplate::new(Code::CONTENT);
                    response.options.insert_uint(OptionNumber::OBSERVE, 0);
                    let input = Input::Respond { exchange, response, handle: Handle::NONE };
                    server.handle(now, input).expect("acceptable");
                }
                Output::Send { bytes, .. } => {
                    states +=
                        usize::from(Message::parse(&bytes).expect("own").code == Code::CONTENT);
                }
                _ => {}
            }
        }
        states
    };
    server.handle(T0, Input::Datagram { from: 1, bytes: &get.to_vec() }).expect("never fails");
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
    let ping = Message::empty(Kind::Confirmable, MessageId(9)).to_vec();
    server.handle(now, Input::Datagram { from: 1, bytes: &ping }).expect("never fails");
    assert_eq!(states(&mut server, now), 1, "the ping has earned one");
}
