//! Two hosts with one context between them, and what is on the wire.

mod observers;
mod renewal;
mod states;

use std::fs;
use std::path::PathBuf;

use lowmesh_coap::exchange::ConnectionInput;
use lowmesh_coap::{
    Config, ConnectionLimits, Endpoint, Host, HostLimits, IncomingId, Input, Output,
    RequestTemplate, ResponseTemplate,
};
use lowmesh_machine::{DropReason, Handle, Machine as _};
use lowmesh_oscore::transport::SecurityContexts as _;
use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::stream::{Framing, StreamMessage};
use lowmesh_wire::coap::{Code, Kind, Message, OptionNumber, Options, Token};

use super::*;

type Peer = &'static str;
type Protection = super::Protection<Peer>;
type Side = Host<Peer, Protected<Peer, Endpoint<Peer>>>;

const CLIENT: Peer = "client";
const SERVER: Peer = "server";
const SECRET: &[u8] = b"what nobody else may read";

/// A folder that goes with the test.
struct Folder(PathBuf);
impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("lowmesh-protected-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a place for files");
        Self(folder)
    }
    /// The contexts of one end.
    fn open(&self, end: Peer) -> Contexts {
        let (ours, theirs) = if end == CLIENT { ("c", "s") } else { ("s", "c") };
        self.open_as(end, "0123456789abcdef", ours, theirs)
    }
    fn open_as(&self, end: Peer, secret: &str, ours: &str, theirs: &str) -> Contexts {
        self.open_with(end, secret, ours, theirs, "")
    }
    fn open_with(&self, end: Peer, secret: &str, ours: &str, theirs: &str, more: &str) -> Contexts {
        let text = format!(
            "master_secret,ascii,{secret}\nsender_id,ascii,{ours}\nrecipient_id,ascii,{theirs}\n\
             ssn_freq,integer,100\n{more}"
        );
        let file = self.0.join(end);
        fs::write(&file, text).expect("a disk");
        Contexts::open(&file).expect("our own")
    }
}
impl Drop for Folder {
    fn drop(&mut self) {
        let _left_behind = fs::remove_dir_all(&self.0);
    }
}

fn protection<P>(contexts: Contexts, end: Peer, plain_requests: Plain) -> super::Protection<P> {
    let own_requests = if end == CLIENT { OwnRequests::Context(0) } else { OwnRequests::Plain };
    super::Protection { contexts, own_requests, plain_requests }
}

fn side(node: u16, protection: Option<Protection>) -> Side {
    let rng = Rng::stream(Seed(5), NodeId(node), Purpose::Coap);
    let limits = HostLimits { amplification_max: None, ..HostLimits::default() };
    over_datagrams(Config::default(), limits, protection, rng).expect("possible")
}

struct Pair {
    client: Side,
    server: Side,
    now: Instant,
    state: Vec<u8>,
    /// All that was on the wire, with its receiver.
    wire: Vec<(Peer, Vec<u8>)>,
    /// What the server's application was asked.
    asked: Vec<Message>,
}

impl Pair {
    fn new(client: Option<Protection>, server: Option<Protection>) -> Self {
        let (client, server) = (side(1, client), side(2, server));
        let (state, wire, asked) = (SECRET.to_vec(), Vec::new(), Vec::new());
        Self { client, server, now: Instant::ZERO, state, wire, asked }
    }
    /// Both ends protected.
    fn protected(folder: &Folder) -> Self {
        let with = |end| Some(protection(folder.open(end), end, Plain::Refused));
        Self::new(with(CLIENT), with(SERVER))
    }
    fn ask(&mut self, message: RequestTemplate) -> Vec<Output<Peer>> {
        let input = Input::Request { peer: SERVER, message, handle: Handle(7) };
        self.client.handle(self.now, input).expect("acceptable");
        self.settle()
    }
    /// Lets all that is sent arrive; what the client's application hears.
    fn settle(&mut self) -> Vec<Output<Peer>> {
        let mut heard = Vec::new();
        loop {
            if let Some(output) = self.client.poll_output() {
                match output {
                    Output::Send { bytes, .. } => self.deliver(SERVER, bytes),
                    Output::Started { .. } | Output::Acknowledged { .. } => {}
                    other => heard.push(other),
                }
            } else if let Some(output) = self.server.poll_output() {
                match output {
                    Output::Send { bytes, .. } => self.deliver(CLIENT, bytes),
                    Output::Request { exchange, message, .. } => self.answer(exchange, message),
                    _ => {}
                }
            } else {
                return heard;
            }
        }
    }
    fn deliver(&mut self, to: Peer, bytes: Vec<u8>) {
        let (end, from) =
            if to == SERVER { (&mut self.server, CLIENT) } else { (&mut self.client, SERVER) };
        end.handle(self.now, Input::Datagram { from, bytes: &bytes }).expect("never fails");
        self.wire.push((to, bytes));
    }
    fn answer(&mut self, exchange: IncomingId, message: Message) {
        let mut response = ResponseTemplate::new(Code::CONTENT).with_payload(self.state.clone());
        response.options.insert_uint(OptionNumber::OBSERVE, 0);
        response.options.insert_uint(OptionNumber::MAX_AGE, 600);
        self.asked.push(message);
        let input = Input::Respond { exchange, response, handle: Handle::NONE };
        self.server.handle(self.now, input).expect("acceptable");
    }
    /// Time runs to the client's next deadline.
    fn wake(&mut self) -> Vec<Output<Peer>> {
        self.now = self.client.next_deadline().expect("something is due");
        self.client.handle(self.now, Input::Deadline).expect("never fails");
        self.settle()
    }
}

fn payload(heard: &[Output<Peer>]) -> &[u8] {
    match heard {
        [Output::Response { message, .. } | Output::Notification { message, .. }] => {
            &message.payload
        }
        other => panic!("{other:?}"),
    }
}

fn observe() -> RequestTemplate {
    let mut message = RequestTemplate::get("/t");
    message.options.insert_uint(OptionNumber::OBSERVE, 0);
    message
}

#[test]
fn a_protected_exchange_shows_neither_path_nor_payload_nor_method() {
    let folder = Folder::new("hidden");
    let mut pair = Pair::protected(&folder);
    let put = RequestTemplate::new(Code::PUT, "/hidden/place").with_payload(SECRET.to_vec());
    assert_eq!(payload(&pair.ask(put)), SECRET);
    assert_eq!((pair.asked[0].code, &pair.asked[0].payload[..]), (Code::PUT, SECRET));
    for (_, bytes) in &pair.wire {
        let outer = Message::parse(bytes).expect("valid");
        assert!(matches!(outer.code, Code::POST | Code::CHANGED), "{}", outer.code);
        for clear in [SECRET, b"hidden"] {
            assert!(!bytes.windows(clear.len()).any(|part| part == clear), "in the open");
        }
    }
}

#[test]
fn a_long_body_is_protected_block_by_block_both_ways() {
    let folder = Folder::new("blocks");
    let mut pair = Pair::protected(&folder);
    pair.state = (0..5000_u32).map(|n| n as u8).collect();
    let body = vec![7; 3000];
    let put = RequestTemplate::new(Code::PUT, "/t").with_payload(body.clone());
    let state = pair.state.clone();
    assert_eq!(payload(&pair.ask(put)), state);
    assert_eq!(pair.asked[0].payload, body);
    let blocks = |bytes: &Vec<u8>| {
        let options = Message::parse(bytes).expect("valid").options;
        options.get(OptionNumber::BLOCK1).or(options.get(OptionNumber::BLOCK2)).is_some()
    };
    assert!(pair.wire.len() >= 2 * (3 + 4), "{} messages", pair.wire.len());
    assert!(!pair.wire.iter().any(|(_, bytes)| blocks(bytes)), "block numbers are inside");
}

#[test]
fn notifications_are_protected_and_the_observation_ends_by_deregistration() {
    let folder = Folder::new("observe");
    let mut pair = Pair::protected(&folder);
    assert_eq!(payload(&pair.ask(observe())), SECRET);
    for state in [b"one", b"two"] {
        pair.state = state.to_vec();
        pair.server.changed("/t", pair.now);
        assert_eq!(payload(&pair.settle()), state);
    }
    pair.client.handle(pair.now, Input::Deregister { handle: Handle(7) }).expect("acceptable");
    pair.settle();
    assert_eq!(pair.server.observers(), 0);
    assert!(!pair.wire.iter().any(|(_, bytes)| bytes.windows(3).any(|part| part == b"two")));
}

#[test]
fn each_long_state_of_a_protected_observation_comes_whole() {
    let folder = Folder::new("observe-long");
    let mut pair = Pair::protected(&folder);
    let long = |first: u8| (0..3000_u32).map(|n| first.wrapping_add(n as u8)).collect::<Vec<_>>();
    pair.state = long(1);
    assert_eq!(payload(&pair.ask(observe())), long(1));
    for number in 2..6 {
        pair.state = long(number);
        pair.server.changed("/t", pair.now);
        assert_eq!(payload(&pair.settle()), long(number));
    }
}

#[test]
fn an_observation_is_registered_again_after_the_max_age_inside_with_a_new_number() {
    let folder = Folder::new("again");
    let mut pair = Pair::protected(&folder);
    pair.ask(observe());
    let until = |pair: &Pair| pair.client.next_deadline().expect("to register again");
    assert!(until(&pair) > Instant::from_secs(604), "Max-Age 600 s and 5 s");
    pair.state = b"fresh".to_vec();
    assert_eq!(payload(&pair.wake()), b"fresh", "the server took it for no replay");
    assert_eq!(pair.server.observers(), 1, "its token is the same");
    pair.state = b"later".to_vec();
    pair.server.changed("/t", pair.now);
    assert_eq!(payload(&pair.settle()), b"later");
}

#[test]
fn a_server_that_lost_its_window_challenges_and_the_client_answers_with_the_echo() {
    let folder = Folder::new("echo");
    drop(folder.open(SERVER));
    let mut pair = Pair::protected(&folder);
    assert_eq!(payload(&pair.ask(RequestTemplate::get("/t"))), SECRET);
    assert_eq!((pair.wire.len(), pair.asked.len()), (4, 1), "one challenge, then the answer");
    assert_eq!(payload(&pair.ask(RequestTemplate::get("/t"))), SECRET);
    assert_eq!(pair.wire.len(), 6, "no challenge any more");
}

#[test]
fn after_an_orderly_end_nothing_is_challenged() {
    let folder = Folder::new("orderly");
    folder.open(SERVER).close().expect("a disk");
    let mut pair = Pair::protected(&folder);
    pair.ask(RequestTemplate::get("/t"));
    assert_eq!(pair.wire.len(), 2);
}

#[test]
fn a_replay_is_answered_with_4_01_in_the_open_and_executed_once() {
    let folder = Folder::new("replay");
    let mut pair = Pair::protected(&folder);
    pair.ask(RequestTemplate::new(Code::POST, "/count"));
    let mut replayed = Message::parse(&pair.wire[0].1).expect("valid");
    replayed.message_id.0 ^= 1;
    pair.deliver(SERVER, replayed.to_vec());
    pair.settle();
    assert_eq!(pair.asked.len(), 1);
    let answer = Message::parse(&pair.wire.last().expect("answered").1).expect("valid");
    assert_eq!((answer.code, &answer.payload[..]), (Code::UNAUTHORIZED, &b"Replay detected"[..]));
    assert_eq!(answer.options.get_uint(OptionNumber::MAX_AGE), Some(0));
}

#[test]
fn plain_requests_are_served_or_refused_as_the_server_is_told() {
    for (plain, code) in [(Plain::Served, Code::CONTENT), (Plain::Refused, Code::UNAUTHORIZED)] {
        let folder = Folder::new(&format!("{plain:?}"));
        let mut pair = Pair::new(None, Some(protection(folder.open(SERVER), SERVER, plain)));
        let heard = pair.ask(RequestTemplate::get("/t"));
        let [Output::Response { message, .. }] = &heard[..] else { panic!("{heard:?}") };
        assert_eq!(message.code, code);
    }
}

#[test]
fn a_plain_observation_beside_protected_ones_stays_plain() {
    let folder = Folder::new("beside");
    let server = protection(folder.open(SERVER), SERVER, Plain::Served);
    let mut pair = Pair::new(None, Some(server));
    pair.ask(observe());
    pair.state = b"news".to_vec();
    pair.server.changed("/t", pair.now);
    assert_eq!(payload(&pair.settle()), b"news");
}

#[test]
fn without_contexts_a_protected_request_is_4_02_and_its_client_has_failed() {
    let folder = Folder::new("without");
    let client = protection(folder.open(CLIENT), CLIENT, Plain::Refused);
    let contexts = client.contexts.clone();
    let mut pair = Pair::new(Some(client), None);
    let heard = pair.ask(RequestTemplate::get("/t"));
    let failed = Output::Failed { handle: Handle(7), reason: DropReason::Malformed };
    assert_eq!(heard, [failed]);
    let answer = Message::parse(&pair.wire[1].1).expect("valid");
    assert_eq!(answer.code, Code::BAD_OPTION);
    assert!(contexts.take_refusal().expect("noted").contains("not protected"));
    assert_eq!(contexts.take_refusal(), None);
}

#[test]
fn keys_that_differ_and_identities_that_are_unknown_come_to_nothing() {
    for (secret, theirs, code) in [
        ("another secret!!", "c", Code::BAD_REQUEST),
        ("0123456789abcdef", "x", Code::UNAUTHORIZED),
    ] {
        let folder = Folder::new(theirs);
        let client = protection(folder.open(CLIENT), CLIENT, Plain::Refused);
        let ours = client.contexts.clone();
        let contexts = folder.open_as(SERVER, secret, "s", theirs);
        let server = protection(contexts, SERVER, Plain::Served);
        let mut pair = Pair::new(Some(client), Some(server));
        assert!(matches!(pair.ask(RequestTemplate::get("/t"))[..], [Output::Failed { .. }]));
        assert!(pair.asked.is_empty());
        assert_eq!(Message::parse(&pair.wire[1].1).expect("valid").code, code);
        let told = ours.take_refusal().expect("noted");
        assert!(told.contains(&code.to_string()), "{told}");
    }
}

/// Changes the last octet of the payload, which is one of the tag.
fn forged(genuine: &[u8]) -> Message {
    let mut message = Message::parse(genuine).expect("valid");
    *message.payload.last_mut().expect("a tag") ^= 1;
    message
}

impl Pair {
    /// Asks, and gives the server's answer before the client has it.
    fn answer_to(&mut self, message: RequestTemplate) -> Vec<u8> {
        let input = Input::Request { peer: SERVER, message, handle: Handle(7) };
        self.client.handle(self.now, input).expect("acceptable");
        let sent = |side: &mut Side| loop {
            match side.poll_output().expect("a datagram") {
                Output::Send { bytes, .. } => return Ok(bytes),
                Output::Request { exchange, message, .. } => return Err((exchange, message)),
                _ => {}
            }
        };
        let request = sent(&mut self.client).expect("a request");
        self.deliver(SERVER, request);
        let (exchange, message) = sent(&mut self.server).expect_err("the application is asked");
        self.answer(exchange, message);
        sent(&mut self.server).expect("a response")
    }
}

#[test]
fn a_response_that_does_not_verify_is_discarded_and_the_true_one_still_counts() {
    let folder = Folder::new("discarded");
    let mut pair = Pair::protected(&folder);
    let genuine = pair.answer_to(RequestTemplate::get("/t"));
    pair.deliver(CLIENT, forged(&genuine).to_vec());
    assert_eq!(pair.settle(), [], "the request goes on");
    pair.deliver(CLIENT, genuine);
    assert_eq!(payload(&pair.settle()), SECRET);
}

#[test]
fn a_success_in_the_open_is_no_answer_to_a_protected_request() {
    let folder = Folder::new("open");
    let mut pair = Pair::protected(&folder);
    let genuine = pair.answer_to(RequestTemplate::get("/t"));
    let mut open = Message::parse(&genuine).expect("valid");
    open.code = Code::CONTENT;
    open.options.remove(OptionNumber::OSCORE);
    pair.deliver(CLIENT, open.to_vec());
    assert_eq!(pair.settle(), []);
    pair.deliver(CLIENT, genuine);
    assert_eq!(payload(&pair.settle()), SECRET);
}

#[test]
fn a_request_that_only_forged_responses_come_to_has_failed_after_its_time() {
    let folder = Folder::new("only");
    let mut pair = Pair::protected(&folder);
    let genuine = pair.answer_to(RequestTemplate::get("/t"));
    pair.deliver(CLIENT, forged(&genuine).to_vec());
    assert_eq!(pair.settle(), []);
    let failed = Output::Failed { handle: Handle(7), reason: DropReason::GaveUp };
    assert_eq!(pair.wake(), [failed]);
}

#[test]
fn what_looks_like_the_end_of_an_observation_and_does_not_verify_does_not_end_it() {
    let folder = Folder::new("end");
    let mut pair = Pair::protected(&folder);
    pair.ask(observe());
    let first = pair.wire[1].1.clone();
    for code in [Code::CONTENT, Code::NOT_FOUND] {
        let mut end = forged(&first);
        (end.kind, end.code) = (Kind::NonConfirmable, code);
        end.message_id.0 ^= 0x4000 + u16::from(code.0);
        end.options.remove(OptionNumber::OBSERVE);
        pair.deliver(CLIENT, end.to_vec());
        assert_eq!(pair.settle(), [], "{code}");
    }
    pair.state = b"still".to_vec();
    pair.server.changed("/t", pair.now);
    assert_eq!(payload(&pair.settle()), b"still");
}

#[test]
fn a_forged_notification_is_discarded_and_hides_none_behind_it() {
    let folder = Folder::new("number");
    let mut pair = Pair::protected(&folder);
    pair.ask(observe());
    let mut high = forged(&pair.wire[1].1.clone());
    high.kind = Kind::NonConfirmable;
    high.message_id.0 ^= 0x4000;
    high.options.set_uint(OptionNumber::OBSERVE, 900);
    pair.deliver(CLIENT, high.to_vec());
    assert_eq!(pair.settle(), []);
    pair.state = b"true".to_vec();
    pair.server.changed("/t", pair.now);
    assert_eq!(payload(&pair.settle()), b"true");
}

#[test]
fn requests_are_protected_over_connections_too() {
    let folder = Folder::new("connections");
    let rng = |node| Rng::stream(Seed(5), NodeId(node), Purpose::Coap);
    let end = |node, peer| {
        let protection = protection(folder.open(peer), peer, Plain::Refused);
        let (connections, limits) = (ConnectionLimits::default(), HostLimits::default());
        over_connections(connections, limits, Some(protection), rng(node))
    };
    let (mut client, mut server) = (end(1, CLIENT), end(2, SERVER));
    let now = Instant::ZERO;
    let framing = Framing::WebSocket;
    client
        .handle(now, Input::Connection(ConnectionInput::Connected { peer: SERVER, framing }))
        .expect("taken");
    server
        .handle(now, Input::Connection(ConnectionInput::Connected { peer: CLIENT, framing }))
        .expect("taken");
    let message = RequestTemplate::get("/t");
    client.handle(now, Input::Request { peer: SERVER, message, handle: Handle(1) }).expect("taken");
    let heard = loop {
        while let Some(output) = server.poll_output() {
            match output {
                Output::Send { bytes, .. } => {
                    let input = Input::Datagram { from: SERVER, bytes: &bytes };
                    client.handle(now, input).expect("never fails");
                }
                Output::Request { exchange, .. } => {
                    let content = ResponseTemplate::new(Code::CONTENT);
                    let response = content.with_payload(SECRET.to_vec());
                    let input = Input::Respond { exchange, response, handle: Handle::NONE };
                    server.handle(now, input).expect("acceptable");
                }
                _ => {}
            }
        }
        match client.poll_output().expect("it goes on") {
            Output::Send { bytes, .. } => {
                let input = Input::Datagram { from: CLIENT, bytes: &bytes };
                server.handle(now, input).expect("never fails");
            }
            Output::Response { message, .. } => break message,
            _ => {}
        }
    };
    assert_eq!(heard.payload, SECRET);
}
