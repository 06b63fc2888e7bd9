//! Messages and keys that others have made: aiocoap 0.4.17, and the research version of Californium.

use super::*;
use crate::group::curve::{PrivateKey, PublicKey};
use crate::hex::unhex;
use crate::nonce::{Cipher, Deriver, nonce};
use crate::{Header, PartialIv};

const AIOCOAP: &str = include_str!("../../../../../tests/vectors/oscore/group_aiocoap.txt");
const CALIFORNIUM: &str = include_str!("../../../../../tests/vectors/oscore/group_californium.txt");

/// The rows of a file: kind, and fields.
fn rows(file: &'static str) -> impl Iterator<Item = (&'static str, Vec<Vec<u8>>)> {
    let rows = file.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|line| line.split_once(": ")).map(|(kind, fields)| {
        let field = |text: &str| unhex(if text == "-" { "" } else { text }).expect("hexadecimal");
        (kind, fields.split(' ').map(field).collect())
    })
}

fn algorithm(name: &str) -> SignatureAlgorithm {
    let found = SignatureAlgorithm::ALL.into_iter().find(|one| one.name() == name);
    found.expect("one of ours")
}

/// The client of a row `group`, or its server.
fn derived(name: &str, fields: &[Vec<u8>], server: bool, responses: Mode) -> Group {
    let [client, other] = [&fields[4..7], &fields[7..10]];
    let (own, other) = if server { (other, client) } else { (client, other) };
    let id = |octets: &[u8]| Identity::new(octets).expect("short");
    let inputs = Inputs {
        master_secret: &fields[0],
        master_salt: &fields[1],
        group_id: &fields[2],
        algorithm: algorithm(name),
        manager: Some(&fields[3]),
        sender_id: id(&own[0]),
        private_key: own[1][..].try_into().expect("32 octets"),
        credential: &own[2],
        responses,
        with_sign_protected: true,
    };
    Group::derive(&inputs, [(id(&other[0]), &other[2][..])]).expect("good keys")
}

fn plain(octets: &[u8]) -> StreamMessage {
    let octets = [&[0], octets].concat();
    StreamMessage::parse(&octets, lowmesh_wire::coap::stream::Framing::WebSocket).expect("theirs")
}

fn outer(fields: &[Vec<u8>]) -> StreamMessage {
    let mut outer = StreamMessage::new(Code::new(fields[1][0] >> 5, fields[1][0]));
    outer.options.insert(OptionNumber::OSCORE, &fields[2]);
    outer.payload.clone_from(&fields[3]);
    outer
}

/// The member with this sequence number as its next.
fn at(mut group: Group, fields: &[Vec<u8>]) -> Group {
    if let Some(piv) = Header::parse(&fields[2]).expect("theirs").partial_iv {
        let state =
            crate::group::GroupState { sequence: piv.number(), windows: group.state().windows };
        group.resume(&state, || unreachable!("all windows are known"));
        let reservation = group.reservation_needed().expect("it starts there");
        group.confirm(reservation);
    }
    group
}

#[test]
fn messages_of_aiocoap_are_opened_and_those_without_random_parts_are_made_alike() {
    let mut exchanges = 0;
    for name in ["EdDSA", "ES256"] {
        let of_group = |kind: &str| kind == format!("group {name}");
        let (_, keys) = rows(AIOCOAP).find(|(kind, _)| of_group(kind)).expect("a row");
        for modes in ["group group", "group pairwise", "pairwise pairwise"] {
            let messages = |kind: &str| {
                let kind = format!("{kind} {name} {modes}");
                rows(AIOCOAP).filter(move |(one, _)| *one == kind).map(|(_, fields)| fields)
            };
            let responses = if modes == "group group" { Mode::Group } else { Mode::Pairwise };
            let request = messages("request").next().expect("a row");
            let server = derived(name, &keys, true, responses);
            let to = modes.starts_with("pairwise").then(|| server.sender_id());
            let client = derived(name, &keys, false, responses);
            let (made, mut pending) =
                at(client, &request).protect_request(to, &plain(&request[0])).expect("plain");
            let mut server = server;
            let (opened, mut received) =
                server.unprotect_request(&outer(&request)).expect("aiocoap's");
            assert_eq!(opened, plain(&request[0]), "{name} {modes}");
            // Signatures of ES256 have a random part there.
            if name == "EdDSA" || to.is_some() {
                assert_eq!(made, outer(&request), "{name} {modes}");
            }
            let client = derived(name, &keys, false, responses);
            for response in messages("response") {
                let wanted = plain(&response[0]);
                server = at(server, &response);
                let made = server.protect_response(&mut received, &wanted).expect("plain");
                let answer = client.unprotect_response(&mut pending, &outer(&response));
                // To one member there is one response.
                if to.is_none()
                    || made.options.get(OptionNumber::OSCORE).is_none_or(<[u8]>::is_empty)
                {
                    let answer = answer.expect("aiocoap's");
                    assert_eq!((answer.from, &answer.response), (server.sender_id(), &wanted));
                }
                // aiocoap says its kid where ours is left out (RFC 10021 s3.2), and the option is authenticated.
                if to.is_none() && (name == "EdDSA" || responses == Mode::Pairwise) {
                    assert_eq!(made, outer(&response), "{name} {modes}");
                }
            }
            exchanges += 1;
        }
    }
    assert_eq!(exchanges, 6);
}

#[test]
fn without_the_field_that_rfc_9338_omits_no_signature_of_aiocoap_verifies() {
    let (_, keys) = rows(AIOCOAP).find(|(kind, _)| *kind == "group EdDSA").expect("a row");
    let (_, request) =
        rows(AIOCOAP).find(|(kind, _)| *kind == "request EdDSA group group").expect("a row");
    let mut server = derived("EdDSA", &keys, true, Mode::Group);
    server.common.with_sign_protected = false;
    assert_eq!(
        server.unprotect_request(&outer(&request)).expect_err("another signature"),
        crate::Refusal::BadSignature
    );
}

#[test]
fn keys_and_secrets_are_those_of_californium() {
    let mut count = 0;
    for (kind, fields) in rows(CALIFORNIUM) {
        count += 1;
        if let Some(name) = kind.strip_prefix("secret ") {
            let octets: &[u8; 32] = fields[0][..].try_into().expect("32 octets");
            let private = PrivateKey::read(algorithm(name), octets).expect("a key");
            let public = match algorithm(name) {
                SignatureAlgorithm::EdDsa => PublicKey::ed25519(&fields[1]),
                SignatureAlgorithm::Es256 => PublicKey::p256(&fields[1][..32], &fields[1][32..]),
            };
            let secret = private.shared_secret(&public.expect("a point")).expect("one curve");
            assert_eq!(secret[..], fields[2], "{kind}");
            continue;
        }
        let deriver = Deriver::new(&fields[0], &fields[1], Some(&fields[2]));
        let id = Identity::new(&fields[3]).expect("short");
        if kind == "keys" {
            assert_eq!(deriver.key(id)[..], fields[4]);
        } else {
            let piv = PartialIv::new(u64::from(fields[4][0])).expect("small");
            let nonce = nonce(&deriver.common_iv(), id, piv);
            let mut buffer = fields[5].clone();
            Cipher::new(&deriver.key(id)).seal(&nonce, &[], &mut buffer, 0).expect("short");
            assert!(buffer.starts_with(&fields[6]), "{buffer:02x?}");
        }
    }
    assert_eq!(count, 8);
}
