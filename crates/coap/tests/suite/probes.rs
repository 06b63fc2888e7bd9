//! What a server answers to odd datagrams, octet by octet: the probes on which CoAP servers in the
//! wild differ from the RFC, each with the section that settles it.
//!
//! The server has `/hello`, which answers GET with text and POST with the number of executions.

use lowmesh_coap::resource::{Methods, Resource, Route, Router};
use lowmesh_coap::{Config, Endpoint, Host, HostLimits, Input, Output, ResponseTemplate};
use lowmesh_machine::{Handle, Machine};
use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::{Code, ContentFormat, Kind, Message, OptionNumber};

const PEER: u8 = 9;

struct Server {
    host: Host<u8, Endpoint<u8>>,
    router: Router<()>,
    executions: u32,
    now: Instant,
}

impl Server {
    fn new() -> Self {
        let rng = Rng::stream(Seed(3), NodeId(1), Purpose::Coap);
        let mut router = Router::new();
        let hello = Resource::new(Methods::GET | Methods::POST, ());
        router.insert("/hello", hello.format(ContentFormat::TEXT_PLAIN).observable());
        let host = Host::over_datagrams(Config::default(), HostLimits::default(), rng);
        let host = host.expect("the defaults are possible");
        Self { host, router, executions: 0, now: Instant::ZERO }
    }
    fn perform(&mut self, message: &Message) -> Option<ResponseTemplate> {
        let resource = match self.router.route(message, false) {
            Route::Resource { resource, .. } => resource,
            Route::Answer(response) => return Some(response),
            Route::Ignore => return None,
        };
        let text = if message.code == Code::POST {
            self.executions += 1;
            self.executions.to_string()
        } else {
            "hello world".to_owned()
        };
        let mut response = ResponseTemplate::new(Code::CONTENT).with_payload(text.into_bytes());
        response.options.insert_uint(OptionNumber::CONTENT_FORMAT, 0);
        if resource.is_observable() && message.options.get(OptionNumber::OBSERVE).is_some() {
            response.options.insert_uint(OptionNumber::OBSERVE, 0);
        }
        Some(response)
    }
    /// The answers to a datagram, as far as they come without waiting.
    fn probe(&mut self, datagram: &[u8]) -> Vec<Message> {
        let input = Input::Datagram { from: PEER, bytes: datagram };
        self.host.handle(self.now, input).expect("datagrams never fail");
        let mut answers = Vec::new();
        while let Some(output) = self.host.poll_output() {
            match output {
                Output::Send { to, bytes, .. } => {
                    assert_eq!(to, PEER);
                    answers.push(Message::parse(&bytes).expect("own bytes"));
                }
                Output::Request { exchange, message, .. } => {
                    let input = match self.perform(&message) {
                        Some(response) => {
                            Input::Respond { exchange, response, handle: Handle::NONE }
                        }
                        None => Input::Decline { exchange },
                    };
                    self.host.handle(self.now, input).expect("acceptable");
                }
                _ => {}
            }
        }
        answers
    }
}

/// What a fresh server answers to one datagram: `"silence"`, or kind and code of the answer.
fn answer(datagram: &[u8]) -> String {
    let answers = Server::new().probe(datagram);
    match &answers[..] {
        [] => "silence".to_owned(),
        [one] => {
            if one.kind == Kind::Acknowledgement || one.kind == Kind::Reset {
                assert_eq!(one.message_id.0.to_be_bytes(), datagram[2..4], "message ID");
            }
            format!("{} {}", one.kind.name(), one.code)
        }
        more => panic!("{} answers: {more:?}", more.len()),
    }
}

/// Header of message ID 0x1234 and Uri-Path "hello".
fn hello(first: u8, code: u8, rest: &[u8]) -> Vec<u8> {
    [&[first, code, 0x12, 0x34][..], b"\xb5hello", rest].concat()
}

#[test]
fn requests_are_answered_in_their_own_kind() {
    // RFC 7252 s5.2.1, s5.2.3, s5.3.1.
    assert_eq!(answer(&hello(0x50, 1, &[])), "NON 2.05");
    assert_eq!(answer(&hello(0x40, 1, &[])), "ACK 2.05");
}

#[test]
fn a_ping_is_answered_with_reset() {
    // RFC 7252 s4.3; with octets after the message ID it is a format error, s4.1 and s4.2.
    assert_eq!(answer(&[0x40, 0, 0x12, 0x34]), "RST 0.00");
    assert_eq!(answer(&[0x42, 0, 0x12, 0x34, 1, 2]), "RST 0.00");
}

#[test]
fn an_unknown_critical_option_is_refused_and_an_elective_one_ignored() {
    // RFC 7252 s5.4.1: option 65 (delta 54, one octet more), then 66.
    assert_eq!(answer(&hello(0x40, 1, &[0xd0, 54 - 13])), "ACK 4.02");
    assert_eq!(answer(&hello(0x50, 1, &[0xd0, 54 - 13])), "silence");
    assert_eq!(answer(&hello(0x40, 1, &[0xd0, 55 - 13])), "ACK 2.05");
}

#[test]
fn an_option_once_too_often_or_of_wrong_length_is_like_an_unknown_one() {
    // RFC 7252 s5.4.5: two Accept; s5.4.3: Uri-Host of no octets.
    assert_eq!(answer(&hello(0x40, 1, &[0x60, 0x00])), "ACK 4.02");
    let host = [&[0x40, 1, 0x12, 0x34, 0x30][..], b"\x85hello"].concat();
    assert_eq!(answer(&host), "ACK 4.02");
    // An ETag of nine octets is elective: ignored.
    let tag = [&[0x40, 1, 0x12, 0x34, 0x49][..], &[7; 9], b"\x75hello"].concat();
    assert_eq!(answer(&tag), "ACK 2.05");
}

#[test]
fn if_none_match_on_what_exists_is_not_performed() {
    // RFC 7252 s5.10.8.2.
    let get = [&[0x40, 1, 0x12, 0x34, 0x50][..], b"\x65hello"].concat();
    assert_eq!(answer(&get), "ACK 4.12");
}

#[test]
fn a_request_for_a_proxy_is_refused_with_5_05() {
    // RFC 7252 s5.10.2.
    let mut get = Message::parse(&[0x40, 1, 0x12, 0x34]).expect("valid");
    get.options.insert(OptionNumber::PROXY_URI, b"coap://elsewhere/hello");
    assert_eq!(answer(&get.to_vec()), "ACK 5.05");
}

#[test]
fn paths_and_methods_that_are_not_there_are_4_04_and_4_05() {
    // RFC 7252 s5.8.1, s5.8, s12.1.1.
    assert_eq!(answer(b"\x40\x01\x12\x34\xb4nope"), "ACK 4.04");
    assert_eq!(answer(&hello(0x40, 31, &[])), "ACK 4.05");
    assert_eq!(answer(&hello(0x40, 4, &[])), "ACK 4.05");
}

#[test]
fn reserved_code_classes_are_rejected() {
    // RFC 7252 s4.2.
    assert_eq!(answer(&hello(0x40, 0x20, &[])), "RST 0.00");
    assert_eq!(answer(&hello(0x40, 0xc0, &[])), "RST 0.00");
    assert_eq!(answer(&hello(0x50, 0x20, &[])), "silence");
}

#[test]
fn format_errors_are_rejected() {
    // RFC 7252 s4.2 and s3: TKL 15, marker without payload, delta 15, truncated option.
    assert_eq!(answer(&hello(0x4f, 1, &[0; 15])), "RST 0.00");
    assert_eq!(answer(&hello(0x40, 1, &[0xff])), "RST 0.00");
    assert_eq!(answer(&hello(0x40, 1, &[0xf0])), "RST 0.00");
    assert_eq!(answer(b"\x40\x01\x12\x34\xb5hel"), "RST 0.00");
}

#[test]
fn other_versions_and_scraps_are_ignored() {
    // RFC 7252 s3.
    assert_eq!(answer(&hello(0x80, 1, &[])), "silence");
    assert_eq!(answer(&[0x40, 1, 0x12]), "silence");
    assert_eq!(answer(&[]), "silence");
}

#[test]
fn what_answers_nothing_is_ignored() {
    // RFC 7252 s4.2: an ACK with a request, a RST to nothing; s4.3: a NON without meaning.
    assert_eq!(answer(&hello(0x60, 1, &[])), "silence");
    assert_eq!(answer(&[0x70, 0, 0x12, 0x34]), "silence");
    assert_eq!(answer(&[0x60, 0, 0x12, 0x34]), "silence");
    assert_eq!(answer(&[0x50, 0x45, 0x12, 0x34]), "silence");
}

#[test]
fn a_response_that_nobody_waits_for_is_rejected() {
    // RFC 7252 s5.3.2 and s4.2.
    assert_eq!(answer(&[0x40, 0x45, 0x12, 0x34]), "RST 0.00");
}

#[test]
fn a_hop_limit_of_zero_is_refused() {
    // RFC 8768 s3: option 16.
    assert_eq!(answer(&hello(0x40, 1, &[0x51, 0])), "ACK 4.00");
    assert_eq!(answer(&hello(0x40, 1, &[0x51, 1])), "ACK 2.05");
}

#[test]
fn a_non_that_wants_no_response_gets_none() {
    // RFC 7967 s2: option 258 (delta 247), value 26.
    assert_eq!(answer(&hello(0x50, 1, &[0xd1, 247 - 13, 26])), "silence");
    assert_eq!(answer(&hello(0x40, 1, &[0xd1, 247 - 13, 26])), "ACK 0.00");
}

#[test]
fn an_extended_token_comes_back() {
    // RFC 8974 s2.1: TKL 13, one octet of 13 + 0.
    let datagram = [&[0x4d, 1, 0x12, 0x34, 0][..], b"thirteen octs", b"\xb5hello"].concat();
    let answers = Server::new().probe(&datagram);
    assert_eq!(answers.len(), 1);
    assert_eq!(
        (answers[0].code, answers[0].token.as_bytes()),
        (Code::CONTENT, &b"thirteen octs"[..])
    );
}

#[test]
fn an_observer_is_registered() {
    // RFC 7641 s4.1: Observe 0 before Uri-Path.
    let answers = Server::new().probe(b"\x41\x01\x12\x34\x07\x60\x55hello");
    assert_eq!(answers[0].kind, Kind::Acknowledgement);
    assert!(answers[0].options.get(OptionNumber::OBSERVE).is_some());
}

#[test]
fn a_doubled_post_is_executed_once_and_answered_twice() {
    // RFC 7252 s4.5.
    let mut server = Server::new();
    let post = hello(0x40, 2, &[]);
    let first = server.probe(&post);
    assert_eq!(first[0].payload, b"1");
    assert_eq!((server.probe(&post), server.executions), (first, 1));
}

#[test]
fn after_every_probe_the_server_still_serves() {
    let mut server = Server::new();
    for first in 0..=u8::MAX {
        for code in [0, 1, 2, 4, 31, 0x20, 0x45, 0x84, 0xa0, 0xc0, 0xe1, 0xff] {
            for rest in [&[][..], &[0xff], &[0xf0], &[0xd0], &[0x60, 0, 0, 0], &[0xff, 1]] {
                server.probe(&[&[first, code, 0x55, 0x66][..], rest].concat());
            }
        }
    }
    server.now = Instant::from_secs(600);
    assert_eq!(server.probe(&hello(0x40, 1, &[]))[0].payload, b"hello world");
}
