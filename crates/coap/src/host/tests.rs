//! Two hosts over a perfect link, and what a stranger can and cannot get out of one.

use std::collections::{BTreeMap, VecDeque};

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{Duration, NodeId, Purpose, Seed};
use lowmesh_wire::coap::{Code, Kind, Message, MessageId, Token};

use super::*;
use crate::blockwise::{Block, Exponent};
use crate::event::{Notifications, RequestTemplate, ResponseTemplate};

mod bounds;
mod capabilities;
mod cut;
mod drive;
mod groups;
mod hostile;
mod observing;
mod repetition;
mod sources;

const CLIENT: u8 = 1;
const SERVER: u8 = 2;
const T0: Instant = Instant::ZERO;
const TRUSTING: HostLimits = HostLimits {
    exponent: Exponent::MAX,
    negotiates: false,
    body_max: 1 << 20,
    assemblies_max: 1 << 21,
    assemblies_per_source: 1 << 21,
    representations_max: 1 << 20,
    representations_per_source: 1 << 20,
    cache_max: 0,
    requests_max: 256,
    observers_max: 16,
    observers_per_source: 4,
    amplification_max: None,
    challenge_groups: false,
    group_block: None,
};

/// The same, but without trust in addresses.
const CAREFUL: HostLimits = HostLimits { amplification_max: Some(3), ..TRUSTING };

type Datagrams = Host<u8, Endpoint<u8>>;

fn host(node: u16, limits: HostLimits) -> Datagrams {
    let rng = Rng::stream(Seed(5), NodeId(node), Purpose::Coap);
    Host::over_datagrams(Config::default(), limits, rng).expect("possible")
}

/// A client and a server that answers `/large` with its body and `/put` with the body's length.
struct Pair {
    client: Datagrams,
    server: Datagrams,
    body: Vec<u8>,
    /// Octets of every datagram, by receiver.
    sizes: BTreeMap<u8, Vec<usize>>,
    now: Instant,
    /// Requests that the server's application has had.
    asked: usize,
    /// How long its answers are fresh, seconds.
    max_age_s: Option<u32>,
}

fn pair(limits: HostLimits, body: Vec<u8>) -> Pair {
    let client = host(1, TRUSTING);
    let (server, sizes) = (host(2, limits), BTreeMap::new());
    Pair { client, server, body, sizes, now: T0, asked: 0, max_age_s: None }
}

impl Pair {
    /// Lets both sides talk until nothing is on its way; returns what the client's application
    /// hears.
    fn settle(&mut self) -> Vec<Output<u8>> {
        let mut heard = Vec::new();
        let mut link = VecDeque::new();
        loop {
            while let Some(output) = self.client.poll_output() {
                match output {
                    Output::Send { bytes, .. } => link.push_back((SERVER, bytes)),
                    Output::Started { .. } => {}
                    other => heard.push(other),
                }
            }
            while let Some(output) = self.server.poll_output() {
                match output {
                    Output::Send { bytes, .. } => link.push_back((CLIENT, bytes)),
                    Output::Request { exchange, message, .. } => self.serve(exchange, &message),
                    _ => {}
                }
            }
            let Some((to, bytes)) = link.pop_front() else { return heard };
            self.sizes.entry(to).or_default().push(bytes.len());
            let (host, from) = match to {
                CLIENT => (&mut self.client, SERVER),
                _ => (&mut self.server, CLIENT),
            };
            host.handle(self.now, Input::Datagram { from, bytes: &bytes }).expect("never fails");
        }
    }
    fn serve(&mut self, exchange: IncomingId, message: &Message) {
        self.asked += 1;
        let mut response = ResponseTemplate::new(Code::CONTENT);
        response.payload = match message.code {
            Code::GET => self.body.clone(),
            _ => message.payload.len().to_string().into_bytes(),
        };
        if message.options.get(OptionNumber::OBSERVE).is_some() {
            response.options.insert_uint(OptionNumber::OBSERVE, 0);
        }
        if let Some(seconds) = self.max_age_s {
            response.options.insert_uint(OptionNumber::MAX_AGE, seconds);
        }
        let input = Input::Respond { exchange, response, handle: Handle::NONE };
        self.server.handle(self.now, input).expect("acceptable");
    }
    fn ask(&mut self, message: RequestTemplate) -> Vec<Output<u8>> {
        let input = Input::Request { peer: SERVER, message, handle: Handle(7) };
        self.client.handle(self.now, input).expect("acceptable");
        self.settle()
    }
}

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8).collect()
}

fn observe(path: &str) -> RequestTemplate {
    let mut message = RequestTemplate::get(path);
    message.options.insert_uint(OptionNumber::OBSERVE, 0);
    message
}

/// The payload of the only thing that the application hears.
fn only_payload(heard: &[Output<u8>]) -> (&'static str, Vec<u8>) {
    match heard {
        [Output::Response { message, handle: Handle(7), .. }] => {
            ("response", message.payload.clone())
        }
        [Output::Notification { message, handle: Handle(7), .. }] => {
            ("notification", message.payload.clone())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_long_body_comes_down_whole() {
    let mut pair = pair(TRUSTING, body(5000));
    let heard = pair.ask(RequestTemplate::get("/large"));
    assert_eq!(only_payload(&heard), ("response", body(5000)));
    assert_eq!(pair.sizes[&CLIENT].len(), 5);
}

#[test]
fn a_long_body_goes_up_whole_and_is_performed_once() {
    let mut pair = pair(TRUSTING, Vec::new());
    let request = RequestTemplate::new(Code::PUT, "/put").with_payload(body(5000));
    assert_eq!(only_payload(&pair.ask(request)), ("response", b"5000".to_vec()));
}

#[test]
fn a_server_that_prefers_small_blocks_gets_and_gives_them() {
    let limits = HostLimits { exponent: Exponent::fitting(64), ..TRUSTING };
    let mut pair = pair(limits, body(300));
    let heard = pair.ask(RequestTemplate::get("/large"));
    assert_eq!(only_payload(&heard), ("response", body(300)));
    assert_eq!(pair.sizes[&CLIENT].len(), 5, "300 octets in blocks of 64");
    let request = RequestTemplate::new(Code::PUT, "/put").with_payload(body(1500));
    assert_eq!(only_payload(&pair.ask(request)), ("response", b"1500".to_vec()));
    let largest = pair.sizes[&SERVER].iter().rev().take(7).max();
    assert!(*largest.expect("some") < 120, "after the first block: {:?}", pair.sizes);
}

#[test]
fn a_body_longer_than_the_server_takes_is_answered_with_4_13_and_the_limit() {
    let mut pair = pair(HostLimits { body_max: 2000, ..TRUSTING }, Vec::new());
    let heard = pair.ask(RequestTemplate::new(Code::PUT, "/put").with_payload(body(5000)));
    let [Output::Response { message, .. }] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!(message.code, Code::REQUEST_ENTITY_TOO_LARGE);
    assert_eq!(message.options.get_uint(OptionNumber::SIZE1), Some(2000));
}

#[test]
fn a_body_in_one_message_has_the_same_bound() {
    let mut pair = pair(HostLimits { body_max: 500, ..TRUSTING }, Vec::new());
    for (len, code) in [(500, Code::CONTENT), (501, Code::REQUEST_ENTITY_TOO_LARGE)] {
        let put = RequestTemplate::new(Code::PUT, "/put").with_payload(body(len));
        let heard = pair.ask(put);
        let [Output::Response { message, .. }] = &heard[..] else { panic!("{heard:?}") };
        assert_eq!(message.code, code, "{len}");
    }
}

#[test]
fn a_token_of_the_application_is_that_of_every_block_that_goes_up() {
    let mut client = host(1, TRUSTING);
    let token = Token::from_number(0x1234, 2);
    let message = RequestTemplate::new(Code::PUT, "/put").with_payload(body(1500));
    let message = message.with_token(token.clone());
    let input = Input::Request { peer: SERVER, message, handle: Handle(7) };
    client.handle(T0, input).expect("acceptable");
    for block in 0..2 {
        let sent = core::iter::from_fn(|| client.poll_output()).find_map(|output| match output {
            Output::Send { bytes, .. } => Some(Message::parse(&bytes).expect("own bytes")),
            _ => None,
        });
        let sent = sent.expect("a block");
        assert_eq!(sent.token, token);
        let mut ack = Message::new(Kind::Acknowledgement, Code::CONTINUE, sent.message_id);
        ack.token = sent.token;
        Block { number: block, more: true, exponent: Exponent::MAX }
            .write(&mut ack.options, OptionNumber::BLOCK1);
        let bytes = ack.to_vec();
        client.handle(T0, Input::Datagram { from: SERVER, bytes: &bytes }).expect("never fails");
    }
}

#[test]
fn an_address_that_is_not_proven_gets_little_until_it_brings_the_echo_value() {
    let limits = HostLimits { amplification_max: Some(3), ..TRUSTING };
    let mut pair = pair(limits, body(5000));
    let heard = pair.ask(RequestTemplate::get("/large"));
    assert_eq!(only_payload(&heard), ("response", body(5000)));
    let (asked, answered) = (pair.sizes[&SERVER][0], pair.sizes[&CLIENT][0]);
    let overhead = crate::params::DATAGRAM_OVERHEAD;
    assert!(answered + overhead <= 3 * (asked + overhead), "{asked} then {answered}");
    // One small block with the value, then five large ones.
    assert_eq!(pair.sizes[&CLIENT].len(), 6);
    assert!(pair.sizes[&CLIENT][1] > 1024, "the second answer trusts the address");
}

#[test]
fn a_client_that_knows_no_echo_gets_the_whole_in_small_blocks() {
    let mut server = host(2, HostLimits { amplification_max: Some(3), ..TRUSTING });
    let mut whole = Vec::new();
    for number in 0.. {
        let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(number as u16));
        get.options.insert_path("/large");
        if number > 0 {
            let block = Block { number, more: false, exponent: Exponent::fitting(64) };
            block.write(&mut get.options, OptionNumber::BLOCK2);
        }
        let bytes = get.to_vec();
        server.handle(T0, Input::Datagram { from: 1, bytes: &bytes }).expect("never fails");
        let mut output = server.poll_output();
        if let Some(Output::Request { exchange, .. }) = output {
            let response = ResponseTemplate::new(Code::CONTENT).with_payload(body(500));
            let input = Input::Respond { exchange, response, handle: Handle::NONE };
            server.handle(T0, input).expect("acceptable");
            output = server.poll_output();
        }
        let Some(Output::Send { bytes: answer, .. }) = output else { panic!("{output:?}") };
        let overhead = crate::params::DATAGRAM_OVERHEAD;
        assert!(answer.len() + overhead <= 3 * (bytes.len() + overhead));
        let answer = Message::parse(&answer).expect("own bytes");
        whole.extend_from_slice(&answer.payload);
        let block = Block::read(answer.options.iter(), OptionNumber::BLOCK2).expect("fine");
        if !block.expect("block-wise").more {
            break;
        }
    }
    assert_eq!(whole, body(500));
}

#[test]
fn a_long_error_to_an_address_that_is_not_proven_becomes_a_challenge() {
    let mut server = host(2, HostLimits { amplification_max: Some(3), ..TRUSTING });
    let get = Message::new(Kind::NonConfirmable, Code::GET, MessageId(1)).to_vec();
    server.handle(T0, Input::Datagram { from: 1, bytes: &get }).expect("never fails");
    let Some(Output::Request { exchange, .. }) = server.poll_output() else { panic!("asked") };
    let response = ResponseTemplate::new(Code::NOT_FOUND).with_payload(body(900));
    let input = Input::Respond { exchange, response, handle: Handle::NONE };
    server.handle(T0, input).expect("acceptable");
    let Some(Output::Send { bytes, .. }) = server.poll_output() else { panic!("answered") };
    let answer = Message::parse(&bytes).expect("own bytes");
    assert_eq!((answer.code, answer.payload.len()), (Code::UNAUTHORIZED, 0));
    assert!(answer.options.get(OptionNumber::ECHO).is_some());
}

#[test]
fn a_later_block_of_nothing_is_answered_with_4_08_unless_it_can_be_made_again() {
    let mut server = host(2, TRUSTING);
    for (id, code) in [(1, Code::POST), (2, Code::GET)] {
        let mut request = Message::new(Kind::Confirmable, code, MessageId(id));
        let block = Block { number: 3, more: false, exponent: Exponent::MAX };
        block.write(&mut request.options, OptionNumber::BLOCK2);
        let bytes = request.to_vec();
        server.handle(T0, Input::Datagram { from: 1, bytes: &bytes }).expect("never fails");
        match server.poll_output() {
            Some(Output::Send { bytes, .. }) if code == Code::POST => {
                let answer = Message::parse(&bytes).expect("own bytes");
                assert_eq!(answer.code, Code::REQUEST_ENTITY_INCOMPLETE);
            }
            Some(Output::Request { .. }) => assert_eq!(code, Code::GET),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_reserved_block_size_is_answered_with_4_00_on_datagrams() {
    let mut server = host(2, TRUSTING);
    let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
    get.options.insert_uint(OptionNumber::BLOCK2, 7);
    let bytes = get.to_vec();
    server.handle(T0, Input::Datagram { from: 1, bytes: &bytes }).expect("never fails");
    let Some(Output::Send { bytes, .. }) = server.poll_output() else { panic!("answered") };
    assert_eq!(Message::parse(&bytes).expect("own bytes").code, Code::BAD_REQUEST);
}

#[test]
fn a_client_with_a_cache_asks_once_while_the_answer_is_fresh_and_then_validates_it() {
    let mut pair = pair(TRUSTING, body(2000));
    pair.client = host(1, HostLimits { cache_max: 10_000, ..TRUSTING });
    for _ in 0..3 {
        let heard = pair.ask(RequestTemplate::get("/large"));
        assert_eq!(only_payload(&heard), ("response", body(2000)));
    }
    assert_eq!(pair.sizes[&SERVER].len(), 2, "two blocks, once");
    pair.now += Duration::from_secs(61);
    let heard = pair.ask(RequestTemplate::get("/large"));
    assert_eq!(only_payload(&heard), ("response", body(2000)));
    assert_eq!(pair.sizes[&SERVER].len(), 3, "one validation");
}

/// What a host answers with a request for, or hears at last.
fn answer_of(client: &mut Datagrams) -> (Vec<Message>, Vec<Output<u8>>) {
    let (mut sent, mut heard) = (Vec::new(), Vec::new());
    while let Some(output) = client.poll_output() {
        match output {
            Output::Send { bytes, .. } => sent.push(Message::parse(&bytes).expect("own bytes")),
            Output::Response { .. } => heard.push(output),
            _ => {}
        }
    }
    (sent, heard)
}

#[test]
fn a_validation_of_a_tag_that_nobody_has_asked_about_is_followed_by_the_request_alone() {
    let mut client = host(1, HostLimits { cache_max: 10_000, ..TRUSTING });
    // The first answer is stale after a second; then the server confirms another tag.
    let answers = [(Code::CONTENT, &b"v1"[..]), (Code::VALID, b"v2"), (Code::CONTENT, b"v2")];
    let (mut now, mut tags, mut payloads) = (T0, Vec::new(), Vec::new());
    let mut answers = answers.into_iter();
    for _ in 0..2 {
        let message = RequestTemplate::get("/t");
        let input = Input::Request { peer: SERVER, message, handle: Handle(7) };
        client.handle(now, input).expect("acceptable");
        loop {
            let (sent, heard) = answer_of(&mut client);
            if let [Output::Response { message, .. }] = &heard[..] {
                payloads.push((message.code, message.payload.clone()));
                break;
            }
            let request = &sent[0];
            tags.push(request.options.get(OptionNumber::ETAG).map(<[u8]>::to_vec));
            let (code, tag) = answers.next().expect("three requests");
            let mut answer = Message::new(Kind::Acknowledgement, code, request.message_id);
            answer.token = request.token.clone();
            answer.options.insert(OptionNumber::ETAG, tag);
            answer.options.insert_uint(OptionNumber::MAX_AGE, 1);
            if code == Code::CONTENT {
                answer.payload = tag.to_vec();
            }
            let bytes = answer.to_vec();
            client.handle(now, Input::Datagram { from: SERVER, bytes: &bytes }).expect("fine");
        }
        now += Duration::from_secs(2);
    }
    assert_eq!(tags, [None, Some(b"v1".to_vec()), None]);
    assert_eq!(payloads, [(Code::CONTENT, b"v1".to_vec()), (Code::CONTENT, b"v2".to_vec())]);
}

#[test]
fn members_of_a_group_are_asked_for_the_rest_by_unicast() {
    let mut client = host(1, TRUSTING);
    let mut server = host(2, TRUSTING);
    let message = RequestTemplate::get("/large");
    let wait = Duration::from_secs(20);
    let input = Input::Group(GroupInput::Request { group: 99, message, wait, handle: Handle(7) });
    client.handle(T0, input).expect("acceptable");
    let (mut now, mut heard) = (T0, Vec::new());
    for _ in 0..40 {
        let mut idle = true;
        while let Some(output) = client.poll_output() {
            idle = false;
            match output {
                Output::Send { to, bytes, .. } => {
                    let input = match to {
                        99 => Input::Group(GroupInput::Datagram { from: CLIENT, bytes: &bytes }),
                        _ => Input::Datagram { from: CLIENT, bytes: &bytes },
                    };
                    server.handle(now, input).expect("never fails");
                }
                Output::Started { .. } => {}
                other => heard.push(other),
            }
        }
        while let Some(output) = server.poll_output() {
            idle = false;
            match output {
                Output::Send { bytes, .. } => {
                    let input = Input::Datagram { from: SERVER, bytes: &bytes };
                    client.handle(now, input).expect("never fails");
                }
                Output::Request { exchange, .. } => {
                    let response = ResponseTemplate::new(Code::CONTENT).with_payload(body(3000));
                    let input = Input::Respond { exchange, response, handle: Handle::NONE };
                    server.handle(now, input).expect("acceptable");
                }
                _ => {}
            }
        }
        let due = earliest(client.next_deadline(), server.next_deadline());
        if let (true, Some(due)) = (idle, due) {
            now = now.max(due);
            server.handle(now, Input::Deadline).expect("never fails");
            client.handle(now, Input::Deadline).expect("never fails");
        }
    }
    let [Output::GroupResponse { from: SERVER, message, .. }, Output::Over { handle }] = &heard[..]
    else {
        panic!("{heard:?}")
    };
    assert_eq!((&message.payload, *handle), (&body(3000), Handle(7)));
}

#[test]
fn a_lost_peer_fails_a_transfer_and_ends_its_observations() {
    let mut pair = pair(TRUSTING, body(3));
    pair.ask(observe("/large"));
    pair.server.handle(T0, Input::Unreachable { peer: CLIENT }).expect("never fails");
    assert_eq!(pair.server.observers(), 0);
    let message = RequestTemplate::new(Code::PUT, "/put").with_payload(body(3000));
    let input = Input::Request { peer: SERVER, message, handle: Handle(8) };
    pair.client.handle(T0, input).expect("acceptable");
    pair.client.handle(T0, Input::Unreachable { peer: SERVER }).expect("never fails");
    let failed = core::iter::from_fn(|| pair.client.poll_output())
        .filter(|output| matches!(output, Output::Failed { reason: DropReason::NoRoute, .. }))
        .count();
    assert_eq!(failed, 2, "the upload and the observation");
}

#[test]
fn an_application_that_never_answers_fills_no_table() {
    let mut server = host(2, TRUSTING);
    for id in 0..2000_u16 {
        let get = Message::new(Kind::NonConfirmable, Code::GET, MessageId(id)).to_vec();
        server.handle(T0, Input::Datagram { from: 1, bytes: &get }).expect("never fails");
        while server.poll_output().is_some() {}
    }
    assert!(server.server.asked_len() <= crate::params::INCOMING_MAX);
}

#[test]
fn congestion_control_is_chosen_through_a_host_where_its_transport_has_any() {
    let mut client = host(1, TRUSTING);
    let chosen = || Some(CongestionControl::default().with_nstart(3));
    client.choose_congestion_control(SERVER, chosen(), T0).expect("possible");
    for handle in 1..=4 {
        let message = RequestTemplate::get("/t");
        let input = Input::Request { peer: SERVER, message, handle: Handle(handle) };
        client.handle(T0, input).expect("acceptable");
    }
    assert_eq!(client.transport().queued(), 1, "three of four have left");
    let rng = Rng::stream(Seed(5), NodeId(1), Purpose::Coap);
    let mut connected: Host<u8, _> =
        Host::over_connections(ConnectionLimits::default(), TRUSTING, rng);
    let refused = connected.choose_congestion_control(SERVER, chosen(), T0);
    assert_eq!(refused, Err(ConfigError::NoCongestionControl));
}
