//! Both ends of connections, and a peer that breaks the rules.

use std::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{Duration, NodeId, Purpose as Stream, Seed};
use lowmesh_wire::coap::signaling::{Capabilities, Signal};
use lowmesh_wire::coap::stream::{Framing, StreamMessage, StreamView};
use lowmesh_wire::coap::{Code, OptionNumber, Token};

use super::*;
use crate::event::{Discard, Fault, RequestTemplate, ResponseTemplate};
use crate::exchange::Name;
use crate::host::{self, Host, HostLimits};

const PEER: u8 = 3;
const T0: Instant = Instant::ZERO;

fn rng(node: u16) -> Rng {
    Rng::stream(Seed(8), NodeId(node), Stream::Coap)
}

fn connections() -> Connections<u8> {
    Connections::new(ConnectionLimits::default(), rng(1))
}

fn input(machine: &mut Connections<u8>, input: Input<'_, u8>) -> Vec<Output<u8>> {
    machine.handle(T0, input).expect("acceptable");
    core::iter::from_fn(|| machine.poll_output()).collect()
}

fn receive(machine: &mut Connections<u8>, message: &StreamMessage) -> Vec<Output<u8>> {
    let mut bytes = Vec::new();
    message.emit(Framing::Stream, &mut bytes);
    input(machine, Input::Datagram { from: PEER, bytes: &bytes })
}

fn sent(outputs: &[Output<u8>]) -> Vec<StreamMessage> {
    let parse = |output: &Output<u8>| match output {
        Output::Send { bytes, .. } => {
            Some(StreamMessage::parse(bytes, Framing::Stream).expect("own bytes"))
        }
        _ => None,
    };
    outputs.iter().filter_map(parse).collect()
}

fn signals(outputs: &[Output<u8>]) -> Vec<Signal> {
    let parse = |output: &Output<u8>| match output {
        Output::Send { bytes, .. } => {
            let view = StreamView::parse(bytes, Framing::Stream).expect("own bytes");
            Signal::parse(&view).ok()
        }
        _ => None,
    };
    outputs.iter().filter_map(parse).collect()
}

fn csm() -> StreamMessage {
    Signal::Csm(Capabilities::default()).into_message(Token::EMPTY)
}

/// A machine with one connection whose peer has sent its CSM.
fn open() -> Connections<u8> {
    let mut machine = connections();
    input(
        &mut machine,
        Input::Connection(ConnectionInput::Connected { peer: PEER, framing: Framing::Stream }),
    );
    assert_eq!(receive(&mut machine, &csm()), []);
    machine
}

fn ask(machine: &mut Connections<u8>, message: RequestTemplate) -> StreamMessage {
    let request = Input::Request { peer: PEER, message, handle: Name::Application(Handle(7)) };
    sent(&input(machine, request)).remove(0)
}

fn request(token: u64) -> StreamMessage {
    let mut get = StreamMessage::new(Code::GET);
    get.token = Token::from_number(token, 2);
    get.options.insert_path("/t");
    get
}

fn closed(outputs: &[Output<u8>]) -> bool {
    outputs.contains(&Output::Close { peer: PEER })
}

#[test]
fn both_ends_say_first_what_they_can_do() {
    let mut machine = connections();
    let out = input(
        &mut machine,
        Input::Connection(ConnectionInput::Connected { peer: PEER, framing: Framing::Stream }),
    );
    let [Signal::Csm(capabilities)] = &signals(&out)[..] else { panic!("{out:?}") };
    assert!(capabilities.block_wise);
    assert_eq!(capabilities.max_message_size, Some(crate::params::STREAM_MESSAGE_MAX as u32));
}

#[test]
fn a_peer_whose_first_message_is_no_csm_is_aborted() {
    let mut machine = connections();
    input(
        &mut machine,
        Input::Connection(ConnectionInput::Connected { peer: PEER, framing: Framing::Stream }),
    );
    let out = receive(&mut machine, &request(1));
    assert!(matches!(signals(&out)[..], [Signal::Abort { .. }]), "{out:?}");
    assert!(closed(&out) && machine.is_empty());
}

#[test]
fn a_request_may_leave_before_the_peers_csm_and_its_response_matches_by_token() {
    let mut machine = connections();
    input(
        &mut machine,
        Input::Connection(ConnectionInput::Connected { peer: PEER, framing: Framing::Stream }),
    );
    let get = ask(&mut machine, RequestTemplate::get("/t"));
    receive(&mut machine, &csm());
    let mut content = StreamMessage::new(Code::CONTENT);
    content.token = Token::from_number(0, 1);
    let out = receive(&mut machine, &content);
    assert!(matches!(out[..], [Output::Discarded { cause: Discard::Unmatched, .. }]));
    content.token = get.token;
    let out = receive(&mut machine, &content);
    assert!(
        matches!(out[..], [Output::Response { handle: Name::Application(Handle(7)), .. }]),
        "{out:?}"
    );
    assert_eq!(machine.next_deadline(), None);
}

#[test]
fn a_request_is_answered_with_its_token() {
    let mut machine = open();
    let out = receive(&mut machine, &request(5));
    let [Output::Request { exchange, .. }] = out[..] else { panic!("{out:?}") };
    let response = ResponseTemplate::new(Code::CONTENT);
    let out = input(&mut machine, Input::Respond { exchange, response, handle: Name::NONE });
    assert_eq!((sent(&out)[0].code, &sent(&out)[0].token), (Code::CONTENT, &request(5).token));
    let response = ResponseTemplate::new(Code::CONTENT);
    let again = Input::Respond { exchange, response, handle: Name::NONE };
    assert!(machine.handle(T0, again).is_err());
}

#[test]
fn messages_come_whole_however_the_stream_is_cut() {
    let mut machine = open();
    let mut stream = Vec::new();
    for token in 0..5 {
        request(token).emit(Framing::Stream, &mut stream);
    }
    let mut requests = 0;
    for octet in stream {
        let out = input(&mut machine, Input::Datagram { from: PEER, bytes: &[octet] });
        requests += out.iter().filter(|one| matches!(one, Output::Request { .. })).count();
    }
    assert_eq!(requests, 5);
}

#[test]
fn a_websocket_message_is_a_message() {
    let mut machine = connections();
    input(
        &mut machine,
        Input::Connection(ConnectionInput::Connected { peer: PEER, framing: Framing::WebSocket }),
    );
    for message in [csm(), request(1)] {
        let mut bytes = Vec::new();
        message.emit(Framing::WebSocket, &mut bytes);
        let out = input(&mut machine, Input::Datagram { from: PEER, bytes: &bytes });
        assert_eq!(out.len(), usize::from(message.code == Code::GET));
    }
}

#[test]
fn a_format_error_or_a_message_too_long_aborts_the_connection() {
    for octets in [&[0x0f, 0x01][..], &[0xf0, 0xff, 0xff, 0xff, 0xff, 1]] {
        let mut machine = open();
        let out = input(&mut machine, Input::Datagram { from: PEER, bytes: octets });
        assert!(matches!(signals(&out)[..], [Signal::Abort { .. }]), "{out:?}");
        assert!(closed(&out) && machine.is_empty());
    }
}

#[test]
fn an_unknown_critical_option_is_answered_with_4_02_and_in_a_csm_named_in_the_abort() {
    let mut machine = open();
    let mut get = request(1);
    get.options.insert(OptionNumber(65), b"");
    assert_eq!(sent(&receive(&mut machine, &get))[0].code, Code::BAD_OPTION);
    let mut odd = csm();
    odd.options.insert(OptionNumber(9), b"");
    let out = receive(&mut machine, &odd);
    let [Signal::Abort { bad_csm_option, .. }] = &signals(&out)[..] else { panic!("{out:?}") };
    assert_eq!(*bad_csm_option, Some(9));
}

#[test]
fn pings_and_pongs_pair_by_token() {
    let mut machine = open();
    let ping = Signal::Ping { custody: true }.into_message(Token::from_number(9, 1));
    let out = receive(&mut machine, &ping);
    assert_eq!(signals(&out), [Signal::Pong { custody: true }]);
    assert_eq!(sent(&out)[0].token, ping.token);
    let ours = sent(&input(
        &mut machine,
        Input::Ping { peer: PEER, handle: Name::Application(Handle(4)) },
    ))
    .remove(0);
    let pong = Signal::Pong { custody: false }.into_message(ours.token);
    let out = receive(&mut machine, &pong);
    let zero = Duration::ZERO;
    assert_eq!(
        out,
        [Output::Pong { handle: Name::Application(Handle(4)), rtt: zero, retransmissions: 0 }]
    );
    let out = receive(&mut machine, &pong);
    assert!(matches!(out[..], [Output::Discarded { cause: Discard::Unmatched, .. }]));
}

#[test]
fn a_released_connection_ends_when_its_open_requests_have() {
    let mut machine = open();
    let out = receive(&mut machine, &request(5));
    let [Output::Request { exchange, .. }] = out[..] else { panic!("{out:?}") };
    let out = input(&mut machine, Input::Connection(ConnectionInput::Release { peer: PEER }));
    assert!(matches!(signals(&out)[..], [Signal::Release { .. }]) && !closed(&out));
    let refused = Input::Request {
        peer: PEER,
        message: RequestTemplate::get("/t"),
        handle: Name::Application(Handle(1)),
    };
    let out = input(&mut machine, refused);
    assert_eq!(
        out,
        [Output::Failed { handle: Name::Application(Handle(1)), reason: DropReason::NoRoute }]
    );
    let response = ResponseTemplate::new(Code::CONTENT);
    let out = input(&mut machine, Input::Respond { exchange, response, handle: Name::NONE });
    assert!(sent(&out).len() == 1 && closed(&out), "{out:?}");
}

#[test]
fn an_abort_or_a_lost_connection_fails_what_is_open() {
    for aborted in [true, false] {
        let mut machine = open();
        ask(&mut machine, RequestTemplate::get("/t"));
        let abort = Signal::Abort { bad_csm_option: None, diagnostic: "why".into() };
        let out = if aborted {
            receive(&mut machine, &abort.into_message(Token::EMPTY))
        } else {
            input(&mut machine, Input::Unreachable { peer: PEER })
        };
        let reason = if aborted { DropReason::Reset } else { DropReason::NoRoute };
        let handle = Name::Application(Handle(7));
        let fault = Fault::Aborted("why".into());
        let fault = aborted.then_some(Output::Fault { handle, fault });
        let told: Vec<_> = fault.into_iter().chain([Output::Failed { handle, reason }]).collect();
        assert_eq!(out[..told.len()], told);
        assert_eq!((machine.is_empty(), machine.next_deadline()), (true, None));
    }
}

#[test]
fn a_request_that_nobody_answers_fails_in_time() {
    let mut machine = open();
    ask(&mut machine, RequestTemplate::get("/t"));
    let due = machine.next_deadline().expect("it waits");
    machine.handle(due, Input::Deadline).expect("never fails");
    let failed =
        Output::Failed { handle: Name::Application(Handle(7)), reason: DropReason::GaveUp };
    assert_eq!(machine.poll_output(), Some(failed));
    assert_eq!(machine.next_deadline(), None);
}

#[test]
fn a_cancelled_observation_is_deregistered_by_a_request() {
    let mut machine = open();
    let mut observe = RequestTemplate::get("/t");
    observe.options.insert_uint(OptionNumber::OBSERVE, 0);
    let get = ask(&mut machine, observe);
    let mut state = StreamMessage::new(Code::CONTENT);
    state.token = get.token.clone();
    state.options.insert(OptionNumber::OBSERVE, b"");
    for _ in 0..2 {
        let out = receive(&mut machine, &state);
        assert!(matches!(out[..], [Output::Notification { .. }]), "in order by itself: {out:?}");
    }
    let out = input(&mut machine, Input::Cancel { handle: Name::Application(Handle(7)) });
    let last = sent(&out).remove(0);
    assert_eq!(last.token, get.token);
    assert_eq!(last.options.get_uint(OptionNumber::OBSERVE), Some(1));
}

#[test]
fn a_request_with_the_token_of_an_observation_takes_its_place() {
    let mut machine = open();
    let mut observe = RequestTemplate::get("/t");
    observe.options.insert_uint(OptionNumber::OBSERVE, 0);
    let get = ask(&mut machine, observe.clone());
    let mut state = StreamMessage::new(Code::CONTENT);
    state.token = get.token.clone();
    state.options.insert(OptionNumber::OBSERVE, b"");
    receive(&mut machine, &state);
    observe.options.set_uint(OptionNumber::OBSERVE, 1);
    let last = ask(&mut machine, observe.with_token(get.token.clone()));
    assert_eq!(last.token, get.token);
    state.options.remove(OptionNumber::OBSERVE);
    let out = receive(&mut machine, &state);
    assert!(matches!(out[..], [Output::Response { .. }]), "{out:?}");
}

#[test]
fn a_token_that_an_open_request_has_is_refused() {
    let mut machine = open();
    let get = || RequestTemplate::get("/t").with_token(Token::from_number(9, 8));
    assert_eq!(ask(&mut machine, get()).token, Token::from_number(9, 8));
    let again = Input::Request { peer: PEER, message: get(), handle: Name::Application(Handle(8)) };
    let refused = machine.handle(T0, again).expect_err("in use");
    assert_eq!(refused.what(), "token");
}

/// A connection of one more peer.
fn connect(machine: &mut Connections<u8>, peer: u8) {
    input(
        machine,
        Input::Connection(ConnectionInput::Connected { peer, framing: Framing::Stream }),
    );
    ask_of(machine, peer, &csm());
}

fn ask_of(machine: &mut Connections<u8>, from: u8, message: &StreamMessage) -> Vec<Output<u8>> {
    let mut bytes = Vec::new();
    message.emit(Framing::Stream, &mut bytes);
    input(machine, Input::Datagram { from, bytes: &bytes })
}

/// True if the request was refused for want of room, with when to try again.
fn is_refused(outputs: &[Output<u8>]) -> bool {
    let [Output::Discarded { cause: Discard::Overloaded, .. }, rest @ ..] = outputs else {
        assert!(matches!(outputs[..], [Output::Request { .. }]), "{outputs:?}");
        return false;
    };
    let answer = sent(rest).remove(0);
    let max_age = answer.options.get_uint(OptionNumber::MAX_AGE);
    assert_eq!((answer.code, max_age), (Code::SERVICE_UNAVAILABLE, Some(5)));
    true
}

#[test]
fn a_server_without_room_says_when_to_ask_again() {
    let limits = ConnectionLimits { incoming_max: 2, ..ConnectionLimits::default() };
    let mut machine = Connections::new(limits, rng(1));
    connect(&mut machine, PEER);
    let first = receive(&mut machine, &request(1));
    let refused: Vec<bool> =
        (2..5).map(|token| is_refused(&receive(&mut machine, &request(token)))).collect();
    assert_eq!(refused, [false, true, true], "one connection may have all");
    let [Output::Request { exchange, .. }] = first[..] else { panic!("{first:?}") };
    input(&mut machine, Input::Decline { exchange });
    assert!(!is_refused(&receive(&mut machine, &request(6))));
}

#[test]
fn one_connection_with_unanswered_requests_leaves_room_for_the_next() {
    let limits =
        ConnectionLimits { incoming_max: 9, incoming_per_source: 3, ..ConnectionLimits::default() };
    let mut machine = Connections::new(limits, rng(1));
    connect(&mut machine, 1);
    connect(&mut machine, 2);
    connect(&mut machine, 3);
    let first = ask_of(&mut machine, 3, &request(20));
    (21..23).for_each(|token| drop(ask_of(&mut machine, 3, &request(token))));
    let refused = |machine: &mut Connections<u8>, peer: u8| {
        let asks = (0..10).map(|token| is_refused(&ask_of(machine, peer, &request(token))));
        asks.filter(|refused| *refused).count()
    };
    assert_eq!((refused(&mut machine, 1), refused(&mut machine, 2)), (7, 7));
    // A place is free once its request is answered, or the connection has ended.
    let [Output::Request { exchange, .. }] = first[..] else { panic!("{first:?}") };
    input(&mut machine, Input::Decline { exchange });
    assert!(!is_refused(&ask_of(&mut machine, 3, &request(1))));
    input(&mut machine, Input::Unreachable { peer: 1 });
    connect(&mut machine, 1);
    assert!(!is_refused(&ask_of(&mut machine, 1, &request(1))));
}

#[test]
fn a_message_longer_than_the_peer_takes_is_refused() {
    let mut machine = open();
    let message = RequestTemplate::new(Code::PUT, "/t").with_payload(vec![0; 2000]);
    let refused = machine
        .handle(T0, Input::Request { peer: PEER, message, handle: Name::Application(Handle(1)) });
    assert!(refused.expect_err("1152 octets").why().contains("Max-Message-Size"));
}

/// Two hosts over one connection; the server answers with the length of what it got and a long
/// body.
#[test]
fn hosts_move_long_bodies_in_long_blocks() {
    let host = |node| {
        let limits = ConnectionLimits { message_max: 5000, ..Default::default() };
        Host::over_connections(limits, HostLimits::default(), rng(node))
    };
    let (mut client, mut server) = (host(1), host(2));
    for host in [&mut client, &mut server] {
        host.handle(
            T0,
            host::Input::Connection(ConnectionInput::Connected {
                peer: PEER,
                framing: Framing::Stream,
            }),
        )
        .expect("fine");
    }
    let body: Vec<u8> = (0..20_000_u32).map(|at| (at / 3) as u8).collect();
    let (mut messages, mut heard) = (0, None);
    for round in 0..40 {
        while let Some(output) = client.poll_output() {
            match output {
                host::Output::Send { bytes, .. } => {
                    server
                        .handle(T0, host::Input::Datagram { from: PEER, bytes: &bytes })
                        .expect("fine");
                }
                host::Output::Response { message, .. } => heard = Some(message),
                _ => {}
            }
        }
        while let Some(output) = server.poll_output() {
            match output {
                host::Output::Send { bytes, .. } => {
                    messages += 1;
                    client
                        .handle(T0, host::Input::Datagram { from: PEER, bytes: &bytes })
                        .expect("fine");
                }
                host::Output::Request { exchange, message, .. } => {
                    assert_eq!(message.payload, body);
                    let response = ResponseTemplate::new(Code::CONTENT).with_payload(body.clone());
                    let handle = Handle::NONE;
                    server
                        .handle(T0, host::Input::Respond { exchange, response, handle })
                        .expect("fine");
                }
                _ => {}
            }
        }
        if round == 2 {
            let message = RequestTemplate::new(Code::POST, "/t").with_payload(body.clone());
            client
                .handle(T0, host::Input::Request { peer: PEER, message, handle: Handle(1) })
                .expect("ok");
        }
    }
    assert_eq!(heard.expect("a response").payload, body);
    // 5 messages of 4096 octets each way, a CSM, and the last block's answer begins the way back.
    assert_eq!(messages, 1 + 4 + 5);
}

#[test]
fn a_pong_without_token_answers_the_oldest_ping() {
    let mut machine = open();
    for handle in [1, 2] {
        input(&mut machine, Input::Ping { peer: PEER, handle: Name::Application(Handle(handle)) });
    }
    for handle in [1, 2] {
        let pong = Signal::Pong { custody: true }.into_message(Token::EMPTY);
        let out = receive(&mut machine, &pong);
        assert!(
            matches!(out[..], [Output::Pong { handle: Name::Application(Handle(one)), .. }] if one == handle),
            "{out:?}"
        );
    }
    let pong = Signal::Pong { custody: false }.into_message(Token::EMPTY);
    assert!(matches!(receive(&mut machine, &pong)[..], [Output::Discarded { .. }]));
}

#[test]
fn a_request_that_is_verified_above_ends_with_the_response_that_is_accepted() {
    let mut machine = open();
    let (message, handle) = (RequestTemplate::get("/t"), Name::Application(Handle(7)));
    let get = sent(&input(&mut machine, Input::RequestVerified { peer: PEER, message, handle }));
    let response = StreamMessage { token: get[0].token.clone(), ..request(0) };
    let response = StreamMessage { code: Code::CONTENT, ..response };
    for _ in 0..2 {
        let heard = receive(&mut machine, &response);
        assert!(
            matches!(heard[..], [Output::Response { handle: Name::Application(Handle(7)), .. }]),
            "{heard:?}"
        );
    }
    assert_eq!(input(&mut machine, Input::Accept { handle, observes: true }), []);
    assert_eq!(machine.next_deadline(), None, "an observation waits for ever");
    assert_eq!(input(&mut machine, Input::Accept { handle, observes: false }), []);
    let late = receive(&mut machine, &response);
    assert!(matches!(late[..], [Output::Discarded { .. }]), "{late:?}");
}

#[test]
fn a_peer_whose_csm_does_not_come_in_time_is_aborted() {
    let timeout = ConnectionLimits::default().csm_timeout;
    for (framing, greets) in [(Framing::Stream, false), (Framing::Stream, true)] {
        let mut machine = connections();
        input(&mut machine, Input::Connection(ConnectionInput::Connected { peer: PEER, framing }));
        assert_eq!(machine.next_deadline(), Some(T0 + timeout));
        if greets {
            receive(&mut machine, &csm());
            assert_eq!(machine.next_deadline(), None);
        }
        machine.handle(T0 + timeout, Input::Deadline).expect("always taken");
        let said: Vec<_> = core::iter::from_fn(|| machine.poll_output()).collect();
        if greets {
            assert_eq!(said, []);
            assert!(machine.is_open(PEER));
        } else {
            assert!(matches!(signals(&said)[..], [Signal::Abort { .. }]), "{said:?}");
            assert!(matches!(said.last(), Some(Output::Close { peer: PEER })), "{said:?}");
            assert!(machine.is_empty() && machine.next_deadline().is_none());
        }
    }
}

#[test]
fn a_connection_that_ends_before_its_csm_leaves_no_deadline() {
    let mut machine = connections();
    input(
        &mut machine,
        Input::Connection(ConnectionInput::Connected { peer: PEER, framing: Framing::Stream }),
    );
    input(&mut machine, Input::Unreachable { peer: PEER });
    assert_eq!(machine.next_deadline(), None);
}

#[test]
fn a_ping_that_is_not_answered_does_not_keep_a_connection_that_is_released() {
    let mut machine = open();
    input(&mut machine, Input::Ping { peer: PEER, handle: Name::Application(Handle(5)) });
    let said = input(&mut machine, Input::Connection(ConnectionInput::Release { peer: PEER }));
    assert!(said.contains(&Output::Failed {
        handle: Name::Application(Handle(5)),
        reason: DropReason::NoRoute
    }));
    assert!(matches!(said.last(), Some(Output::Close { peer: PEER })), "{said:?}");
}

#[test]
fn all_connections_of_a_machine_have_one_share_of_the_unanswered_requests() {
    let limits =
        ConnectionLimits { incoming_max: 9, incoming_per_source: 3, ..ConnectionLimits::default() };
    let mut machine = Connections::<(u8, u16)>::new(limits, rng(1));
    let mut taken = |from: (u8, u16)| {
        let (peer, framing) = (from, Framing::Stream);
        machine
            .handle(Instant::ZERO, Input::Connection(ConnectionInput::Connected { peer, framing }))
            .expect("acceptable");
        for message in [csm(), request(1), request(2)] {
            let mut bytes = Vec::new();
            message.emit(Framing::Stream, &mut bytes);
            let input = Input::Datagram { from, bytes: &bytes };
            machine.handle(Instant::ZERO, input).expect("never fails");
        }
        let outputs = core::iter::from_fn(|| machine.poll_output());
        outputs.filter(|output| matches!(output, Output::Request { .. })).count()
    };
    let counts: Vec<usize> = (1..=5).map(|port| taken((1, port))).collect();
    assert_eq!(counts, [2, 1, 0, 0, 0]);
    assert_eq!(taken((2, 1)), 2, "another machine");
}

#[test]
fn one_machine_has_a_share_of_the_connections() {
    let limits = ConnectionLimits { connections_per_source: 2, ..ConnectionLimits::default() };
    let mut machine = Connections::<(u8, u16)>::new(limits, rng(1));
    let mut connect = |peer: (u8, u16)| {
        machine
            .handle(
                T0,
                Input::Connection(ConnectionInput::Connected { peer, framing: Framing::Stream }),
            )
            .expect("acceptable");
        let closed = core::iter::from_fn(|| machine.poll_output());
        closed.filter(|output| *output == Output::Close { peer }).count() == 0
    };
    assert_eq!([1, 2, 3].map(|port| connect((1, port))), [true, true, false]);
    assert!(connect((2, 1)), "another machine");
    assert!(connect((1, 2)), "the same connection again");
}
