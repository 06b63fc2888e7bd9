//! What an attacker can do to messages: change, cut, repeat, redirect and mix them. A member of the group is an attacker too.

use proptest::prelude::*;

use super::*;
use crate::params::SIGNATURE_LEN;
use crate::{Refusal, ResponseError};

/// A request in a mode, and what answers it.
fn exchange(mode: Mode, responses: Mode) -> (Group, Group, StreamMessage, StreamMessage) {
    let algorithm = SignatureAlgorithm::EdDsa;
    let mut client = member(algorithm, 0, 3, responses);
    let mut server = member(algorithm, 1, 3, responses);
    let to = (mode == Mode::Pairwise).then(|| identity(1));
    let (request, _) = client.protect_request(to, &get("/t")).expect("plain");
    let (_, mut received) = server.unprotect_request(&request).expect("fresh");
    let response = server.protect_response(&mut received, &content(b"23")).expect("plain");
    // Of both as they were before.
    let (client, server) = (member(algorithm, 0, 3, responses), member(algorithm, 1, 3, responses));
    (client, server, request, response)
}

fn modes() -> impl Strategy<Value = (Mode, Mode)> {
    let mode = || prop_oneof![Just(Mode::Group), Just(Mode::Pairwise)];
    (mode(), mode())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever bit of option or payload is changed, no request is taken, and the right one still is.
    #[test]
    fn a_changed_request_is_refused_and_leaves_no_trace(
        (mode, responses) in modes(), place in any::<prop::sample::Index>(), bit in 0_u8..8,
    ) {
        let (_, mut server, request, _) = exchange(mode, responses);
        let value = request.options.get(OptionNumber::OSCORE).expect("protected").to_vec();
        let at = place.index(value.len() + request.payload.len());
        let changed = if at < value.len() {
            let mut value = value.clone();
            value[at] ^= 1 << bit;
            with_option(&request, &value)
        } else {
            let mut changed = request.clone();
            changed.payload[at - value.len()] ^= 1 << bit;
            changed
        };
        prop_assert!(server.unprotect_request(&changed).is_err(), "octet {at}");
        prop_assert!(server.unprotect_request(&request).is_ok());
        prop_assert_eq!(server.unprotect_request(&request).expect_err("again"), Refusal::Replay);
    }

    /// The same for responses.
    #[test]
    fn a_changed_response_is_refused_and_leaves_no_trace(
        (mode, responses) in modes(), place in any::<prop::sample::Index>(), bit in 0_u8..8,
    ) {
        let (mut client, _, request, response) = exchange(mode, responses);
        let to = (mode == Mode::Pairwise).then(|| identity(1));
        let (again, mut pending) = client.protect_request(to, &get("/t")).expect("plain");
        prop_assert_eq!(&again, &request);
        let value = response.options.get(OptionNumber::OSCORE).expect("protected").to_vec();
        let at = place.index(value.len() + response.payload.len());
        let changed = if at < value.len() {
            let mut value = value.clone();
            value[at] ^= 1 << bit;
            with_option(&response, &value)
        } else {
            let mut changed = response.clone();
            changed.payload[at - value.len()] ^= 1 << bit;
            changed
        };
        prop_assert!(client.unprotect_response(&mut pending, &changed).is_err(), "octet {at}");
        prop_assert!(client.unprotect_response(&mut pending, &response).is_ok());
    }

    /// Octets of strangers are never taken, and never make a member panic.
    #[test]
    fn octets_at_random_are_refused(
        value in prop::collection::vec(any::<u8>(), 0..24),
        payload in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        let (mut client, mut server, ..) = exchange(Mode::Group, Mode::Group);
        let mut message = StreamMessage::new(Code::POST);
        message.options.insert(OptionNumber::OSCORE, &value);
        message.payload = payload;
        prop_assert!(server.unprotect_request(&message).is_err());
        let (_, mut pending) = client.protect_request(None, &get("/t")).expect("plain");
        message.code = Code::CHANGED;
        prop_assert!(client.unprotect_response(&mut pending, &message).is_err());
    }
}

#[test]
fn a_member_cannot_sign_for_another() {
    let algorithm = SignatureAlgorithm::EdDsa;
    let (mut client, mut server) =
        (member(algorithm, 0, 3, Mode::Group), member(algorithm, 1, 3, Mode::Group));
    // Member 2 has the keys of group mode of all members, but its own private key.
    let mut impostor = member(algorithm, 2, 3, Mode::Group);
    let key = crate::nonce::Deriver::new(&SECRET, &[], Some(b"group")).key(identity(0));
    impostor.sender.id = identity(0);
    impostor.sender.cipher = crate::nonce::Cipher::new(&key);
    impostor.sender.credential = client.sender.credential.clone();
    let (forged, _) = impostor.protect_request(None, &get("/t")).expect("plain");
    assert_eq!(server.unprotect_request(&forged).expect_err("signed by 2"), Refusal::BadSignature);
    // A message in group mode is no message in pairwise mode, nor the other way round.
    let (request, _) = client.protect_request(None, &get("/t")).expect("plain");
    let value = request.options.get(OptionNumber::OSCORE).expect("protected");
    let pairwise = with_option(&request, &[&[value[0] & !0x20], &value[1..]].concat());
    assert_eq!(server.unprotect_request(&pairwise).expect_err("another mode"), Refusal::Forged);
    assert!(server.unprotect_request(&request).is_ok());
}

#[test]
fn a_wrong_tag_causes_no_check_of_a_signature() {
    let (mut client, mut servers) = group(1);
    let (request, _) = client.protect_request(None, &get("/t")).expect("plain");
    // The tag before the signature is wrong: without the right key for the signature, the tag alone refuses the message.
    let mut changed = request.clone();
    changed.payload[0] ^= 1;
    let right = servers[0].recipients.get(&identity(0)).expect("a member").credential.clone();
    let wrong = servers[0].sender.private_key.public();
    servers[0].recipients.get_mut(&identity(0)).expect("a member").credential.key = wrong;
    assert_eq!(servers[0].unprotect_request(&changed).expect_err("a bad tag"), Refusal::Forged);
    let refusal = servers[0].unprotect_request(&request).expect_err("a bad key");
    assert_eq!(refusal, Refusal::BadSignature);
    servers[0].recipients.get_mut(&identity(0)).expect("a member").credential = right;
    assert!(servers[0].unprotect_request(&request).is_ok());
}

#[test]
fn other_signatures_of_one_message_have_one_name() {
    let (mut client, mut servers) = group(1);
    let (request, _) = client.protect_request(None, &get("/t")).expect("plain");
    let mut seen = Vec::new();
    // The tag does not cover the signature, which a stranger can change without any key.
    for place in request.payload.len() - SIGNATURE_LEN..request.payload.len() {
        let mut changed = request.clone();
        changed.payload[place] ^= 1;
        let refusal = servers[0].unprotect_request_if(&changed, &mut |signed| {
            seen.push(signed);
            place % 2 == 0
        });
        assert_eq!(refusal.expect_err("another signature"), Refusal::BadSignature);
    }
    let mut right = Vec::new();
    let opened = servers[0].unprotect_request_if(&request, &mut |signed| {
        right.push(signed);
        true
    });
    assert!(opened.is_ok());
    assert_eq!(seen, right.repeat(SIGNATURE_LEN));
    let again = servers[0].unprotect_request_if(&request, &mut |_| panic!("a replay"));
    assert_eq!(again.expect_err("again"), Refusal::Replay);
}

#[test]
fn a_response_answers_its_own_request_alone() {
    let (mut client, mut servers) = group(2);
    let (first, _) = client.protect_request(None, &get("/t")).expect("plain");
    let (_, mut pending) = client.protect_request(None, &get("/u")).expect("plain");
    let (_, mut received) = servers[0].unprotect_request(&first).expect("fresh");
    let response = servers[0].protect_response(&mut received, &content(b"t")).expect("plain");
    assert_eq!(client.unprotect_response(&mut pending, &response), Err(ResponseError::Forged));
    // A response in pairwise mode of another member than the one that was asked.
    let (request, mut pending) =
        client.protect_request(Some(identity(1)), &get("/t")).expect("a member");
    let (_, mut received) = servers[0].unprotect_request(&request).expect("fresh");
    let response = servers[0].protect_response(&mut received, &content(b"t")).expect("plain");
    let said = with_option(&response, &[0x08, 2]);
    assert_eq!(client.unprotect_response(&mut pending, &said), Err(ResponseError::Forged));
    assert!(client.unprotect_response(&mut pending, &response).is_ok());
}
