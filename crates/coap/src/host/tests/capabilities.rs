//! Requests of a host before its peer has said what it takes (RFC 8323 s5.3).

use lowmesh_wire::coap::signaling::{Capabilities, Signal};
use lowmesh_wire::coap::stream::{Framing, StreamMessage};

use super::*;

const PEER: u8 = 1;

type Connected = Host<u8, Connections<u8>>;

fn connected() -> Input<'static, u8> {
    Input::Connection(ConnectionInput::Connected { peer: PEER, framing: Framing::WebSocket })
}

/// A host whose connection has begun, and a PUT of so many octets.
fn puts(len: usize) -> Connected {
    let rng = Rng::stream(Seed(5), NodeId(1), Purpose::Coap);
    let limits = ConnectionLimits { open_max: 2, ..ConnectionLimits::default() };
    let mut host: Connected = Host::over_connections(limits, HostLimits::default(), rng);
    host.handle(T0, connected()).expect("acceptable");
    let message = RequestTemplate::new(Code::PUT, "/up").with_payload(body(len));
    let handle = Handle(5);
    host.handle(T0, Input::Request { peer: PEER, message, handle }).expect("acceptable");
    host
}

/// The request among what a host sends, and the reason if it has failed.
fn heard(host: &mut Connected) -> (Option<StreamMessage>, Option<DropReason>) {
    let (mut request, mut failed) = (None, None);
    for output in core::iter::from_fn(|| host.poll_output()) {
        match output {
            Output::Send { bytes, .. } => {
                let message = StreamMessage::parse(&bytes, Framing::WebSocket).expect("whole");
                request = request.or((message.code == Code::PUT).then_some(message));
            }
            Output::Failed { handle: Handle(5), reason } => failed = Some(reason),
            _ => {}
        }
    }
    (request, failed)
}

fn greet(host: &mut Connected, capabilities: Capabilities) {
    let csm = Signal::Csm(capabilities).into_message(Token::EMPTY);
    let mut bytes = Vec::new();
    csm.emit(Framing::WebSocket, &mut bytes);
    host.handle(T0, Input::Datagram { from: PEER, bytes: &bytes }).expect("never fails");
}

#[test]
fn a_body_that_every_peer_takes_leaves_at_once() {
    let (request, failed) = heard(&mut puts(1000));
    assert_eq!((request.expect("sent").payload.len(), failed), (1000, None));
}

#[test]
fn a_longer_body_waits_for_what_the_peer_takes_and_leaves_whole_or_in_blocks_that_it_knows() {
    let large = Capabilities {
        max_message_size: Some(100_000),
        block_wise: true,
        ..Capabilities::default()
    };
    let small = Capabilities { max_message_size: Some(300), ..large };
    for (capabilities, len, first) in [(large, 5000, 5000), (small, 5000, 128)] {
        let mut host = puts(len);
        assert_eq!(heard(&mut host), (None, None));
        greet(&mut host, capabilities);
        let request = heard(&mut host).0.expect("sent");
        assert_eq!(request.payload.len(), first);
        let is_cut = request.options.get(OptionNumber::BLOCK1).is_some();
        assert_eq!(is_cut, first < len);
        assert_eq!(heard(&mut host), (None, None), "once");
    }
}

#[test]
fn a_request_that_waits_ends_with_its_connection_or_when_nobody_wants_it_any_more() {
    let mut host = puts(5000);
    host.handle(T0, Input::Unreachable { peer: PEER }).expect("never fails");
    assert_eq!(heard(&mut host), (None, Some(DropReason::NoRoute)));
    let mut host = puts(5000);
    let late = T0 + ConnectionLimits::default().csm_timeout;
    host.handle(late, Input::Deadline).expect("never fails");
    assert_eq!(heard(&mut host), (None, Some(DropReason::Malformed)), "as a short one");
    // Another connection may be to another peer.
    let mut host = puts(5000);
    host.handle(T0, connected()).expect("acceptable");
    greet(&mut host, Capabilities::default());
    assert_eq!(heard(&mut host), (None, Some(DropReason::NoRoute)));
    let mut host = puts(5000);
    host.handle(T0, Input::Cancel { handle: Handle(5) }).expect("never fails");
    greet(&mut host, Capabilities::default());
    assert_eq!(heard(&mut host), (None, None));
}

#[test]
fn a_short_body_with_long_options_waits_too() {
    let mut host = puts(0);
    heard(&mut host);
    let query = [b'q'; 200];
    let mut message = RequestTemplate::new(Code::PUT, "/up").with_payload(body(1000));
    message.options.insert(OptionNumber::URI_QUERY, &query);
    host.handle(T0, Input::Request { peer: PEER, message, handle: Handle(6) }).expect("acceptable");
    assert_eq!(heard(&mut host), (None, None));
    greet(&mut host, Capabilities { max_message_size: Some(100_000), ..Capabilities::default() });
    assert_eq!(heard(&mut host).0.expect("sent").payload.len(), 1000);
}

#[test]
fn as_many_requests_wait_as_may_be_open_and_each_keeps_its_token() {
    let mut host = puts(5000);
    let mut ask = |handle, token: Option<u64>| {
        let mut message = RequestTemplate::new(Code::PUT, "/up").with_payload(body(5000));
        message.token = token.map(|token| Token::from_number(token, 4));
        host.handle(T0, Input::Request { peer: PEER, message, handle: Handle(handle) })
    };
    ask(6, Some(1)).expect("acceptable");
    assert!(ask(7, Some(1)).is_err(), "its token is in use");
    ask(8, None).expect("acceptable");
    let failed = core::iter::from_fn(|| host.poll_output()).find_map(|output| match output {
        Output::Failed { handle, reason } => Some((handle, reason)),
        _ => None,
    });
    assert_eq!(failed, Some((Handle(8), DropReason::QueueFull)));
}
