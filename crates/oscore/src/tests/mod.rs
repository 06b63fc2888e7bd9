//! Tests of whole exchanges: the RFC's vectors, what attackers do, observations, restarts, files.

mod attack;
mod configuration;
mod exchange;
mod renewal;
mod vectors;

use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::{Code, Message, OptionNumber};

use crate::params::REPLAY_WINDOW;
use crate::{Configuration, Identity, Inputs, SecurityContext};

const SECRET: &[u8] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

fn octets(hex: &str) -> Vec<u8> {
    let pair = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(pair).collect()
}

fn identity(octets: &[u8]) -> Identity {
    Identity::new(octets).expect("at most seven octets")
}

/// The context with numbers for many messages, which in a test need no disk.
fn ready(context: SecurityContext) -> SecurityContext {
    let mut context = context.with_bounds(REPLAY_WINDOW, 1 << 20);
    let reservation = context.reservation_needed().expect("none is left");
    context.confirm(reservation);
    context
}

/// A client and its server.
fn pair() -> (SecurityContext, SecurityContext) {
    let inputs = |sender: &[u8], recipient: &[u8]| Inputs {
        master_secret: SECRET,
        master_salt: &[],
        id_context: None,
        sender_id: identity(sender),
        recipient_id: identity(recipient),
    };
    (
        ready(SecurityContext::derive(&inputs(b"client", b"server"))),
        ready(SecurityContext::derive(&inputs(b"server", b"client"))),
    )
}

fn get(path: &str) -> StreamMessage {
    let mut get = StreamMessage::new(Code::GET);
    get.options.insert_path(path);
    get
}

fn content(payload: &[u8]) -> StreamMessage {
    let mut content = StreamMessage::new(Code::CONTENT);
    content.payload = payload.to_vec();
    content
}

fn observe(mut message: StreamMessage, value: u32) -> StreamMessage {
    message.options.insert_uint(OptionNumber::OBSERVE, value);
    message
}

/// The part of a datagram that OSCORE protects.
fn unlayered(message: Message) -> StreamMessage {
    let Message { code, token, options, payload, .. } = message;
    StreamMessage { code, token, options, payload }
}
