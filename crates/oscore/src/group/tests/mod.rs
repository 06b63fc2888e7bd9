//! Groups: vectors of others, whole exchanges, what attackers do, restarts, files.

mod attack;
mod configuration;
mod exchange;
mod restart;
mod vectors;

use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::{Code, OptionNumber};

use super::{Group, Inputs, Mode, SignatureAlgorithm, credential_of};
use crate::Identity;
use crate::params::REPLAY_WINDOW;

const SECRET: [u8; 16] = [7; 16];

fn identity(number: u8) -> Identity {
    Identity::new(&[number]).expect("one octet")
}

/// A member of a group of so many, with numbers for many messages, which in a test need no disk.
fn member(algorithm: SignatureAlgorithm, number: u8, count: u8, responses: Mode) -> Group {
    let mut group = unused(algorithm, number, count, responses).with_bounds(REPLAY_WINDOW, 1 << 20);
    let reservation = group.reservation_needed().expect("none is used");
    group.confirm(reservation);
    group
}

/// A member that has reserved nothing.
fn unused(algorithm: SignatureAlgorithm, number: u8, count: u8, responses: Mode) -> Group {
    let key = |number: u8| [number + 1; 32];
    let credential = |number| credential_of(algorithm, &key(number)).expect("a key");
    let others: Vec<_> = (0..count)
        .filter(|one| *one != number)
        .map(|one| (identity(one), credential(one)))
        .collect();
    let inputs = Inputs {
        master_secret: &SECRET,
        master_salt: &[],
        group_id: b"group",
        algorithm,
        manager: None,
        sender_id: identity(number),
        private_key: &key(number),
        credential: &credential(number),
        responses,
        with_sign_protected: false,
    };
    Group::derive(&inputs, others.iter().map(|(id, octets)| (*id, &octets[..]))).expect("keys")
}

/// A client, number 0, and so many servers.
fn group(servers: u8) -> (Group, Vec<Group>) {
    let member = |number| member(SignatureAlgorithm::EdDsa, number, servers + 1, Mode::Pairwise);
    (member(0), (1..=servers).map(member).collect())
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

/// The message with another OSCORE option.
fn with_option(message: &StreamMessage, value: &[u8]) -> StreamMessage {
    let mut changed = message.clone();
    changed.options.remove(OptionNumber::OSCORE);
    changed.options.insert(OptionNumber::OSCORE, value);
    changed
}
