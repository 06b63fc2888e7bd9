//! One behaviour a test, with bytes written by hand on the other side.

mod bounds;
mod exchange;
mod group;
mod group_rules;
mod observation;
mod rejection;
mod session;
mod sources;
mod verification;
mod window;

use std::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{NodeId, Purpose as Stream, Seed};
use lowmesh_wire::coap::{Code, Kind, Message, MessageId, OptionNumber};

use super::*;
use crate::event::{Discard, RequestTemplate, ResponseTemplate};
use crate::exchange::Name;

pub(super) const PEER: u16 = 7;
pub(super) const T0: Instant = Instant::ZERO;

pub(super) fn endpoint(config: Config) -> Endpoint<u16> {
    let rng = Rng::stream(Seed(11), NodeId(1), Stream::Coap);
    Endpoint::new(config, rng).expect("a possible configuration")
}

pub(super) fn with_timer(name: &str) -> Config {
    Config { congestion: CongestionControl::new(name).expect("a listed name"), ..Config::default() }
}

/// The number in a name.
pub(super) fn number(name: Name) -> u64 {
    match name {
        Name::Application(Handle(number)) | Name::Host(number) | Name::Layer(number) => number,
    }
}

/// Drains the endpoint.
pub(super) fn outputs(endpoint: &mut Endpoint<u16>) -> Vec<Output<u16>> {
    core::iter::from_fn(|| endpoint.poll_output()).collect()
}

/// The messages among the outputs.
pub(super) fn sent(outputs: &[Output<u16>]) -> Vec<Message> {
    let datagram = |output: &Output<u16>| match output {
        Output::Send { bytes, .. } => Some(Message::parse(bytes).expect("own bytes")),
        _ => None,
    };
    outputs.iter().filter_map(datagram).collect()
}

pub(super) fn ask(endpoint: &mut Endpoint<u16>, handle: u64, now: Instant) -> Vec<Output<u16>> {
    let message = RequestTemplate::get("/t");
    let input = Input::Request { peer: PEER, message, handle: Name::Application(Handle(handle)) };
    endpoint.handle(now, input).expect("acceptable");
    outputs(endpoint)
}

pub(super) fn receive(
    endpoint: &mut Endpoint<u16>,
    message: &Message,
    now: Instant,
) -> Vec<Output<u16>> {
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    endpoint.handle(now, Input::Datagram { from: PEER, bytes: &bytes }).expect("never fails");
    outputs(endpoint)
}

pub(super) fn receive_bytes(endpoint: &mut Endpoint<u16>, bytes: &[u8]) -> Vec<Output<u16>> {
    endpoint.handle(T0, Input::Datagram { from: PEER, bytes }).expect("never fails");
    outputs(endpoint)
}

/// Lets time run to the next deadline.
pub(super) fn wake(endpoint: &mut Endpoint<u16>) -> (Instant, Vec<Output<u16>>) {
    let now = endpoint.next_deadline().expect("something is due");
    endpoint.handle(now, Input::Deadline).expect("never fails");
    (now, outputs(endpoint))
}

pub(super) fn request(kind: Kind, id: u16) -> Message {
    let mut message = Message::new(kind, Code::GET, MessageId(id));
    message.token = lowmesh_wire::coap::Token::from_number(u64::from(id), 2);
    message
}

pub(super) fn response_to(request: &Message, kind: Kind) -> Message {
    let mut message = Message::new(kind, Code::CONTENT, request.message_id);
    message.token = request.token.clone();
    message
}

pub(super) fn respond(
    endpoint: &mut Endpoint<u16>,
    asked: &[Output<u16>],
    now: Instant,
) -> Vec<Output<u16>> {
    let exchange = asked
        .iter()
        .find_map(|output| match output {
            Output::Request { exchange, .. } => Some(*exchange),
            _ => None,
        })
        .expect("a request for the application");
    let response = ResponseTemplate::new(Code::CONTENT).with_payload(b"21".to_vec());
    let handle = Name::Application(Handle(99));
    endpoint.handle(now, Input::Respond { exchange, response, handle }).expect("acceptable");
    outputs(endpoint)
}

pub(super) fn failures(outputs: &[Output<u16>]) -> Vec<(u64, DropReason)> {
    let failure = |output: &Output<u16>| match output {
        Output::Failed { handle, reason } => Some((number(*handle), *reason)),
        _ => None,
    };
    outputs.iter().filter_map(failure).collect()
}

pub(super) fn discards(outputs: &[Output<u16>]) -> Vec<Discard> {
    let discard = |output: &Output<u16>| match output {
        Output::Discarded { cause, .. } => Some(*cause),
        _ => None,
    };
    outputs.iter().filter_map(discard).collect()
}

pub(super) fn has_response(outputs: &[Output<u16>], wanted: u64) -> bool {
    outputs
        .iter()
        .any(|one| matches!(one, Output::Response { handle, .. } if number(*handle) == wanted))
}
