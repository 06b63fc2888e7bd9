//! All test vectors of RFC 8613 appendix C.

use std::collections::BTreeMap;

use super::*;
use crate::context::SecurityContext;
use crate::nonce::{Deriver, additional_data, info};
use crate::params::KEY_LEN;
use crate::replay::{Replay, Window};
use crate::{Challenge, PartialIv, Received, State, StoredWindow, nonce};

const FILE: &str = include_str!("../../../../tests/vectors/oscore/rfc8613.txt");

/// The rows of one kind: name and fields.
fn rows(kind: &str) -> BTreeMap<&'static str, Vec<&'static str>> {
    let rows = FILE.lines().filter_map(|line| line.strip_prefix(kind)?.split_once(": "));
    rows.map(|(name, fields)| (name.trim(), fields.split(' ').collect())).collect()
}

fn field(text: &str) -> Vec<u8> {
    octets(text.trim_matches('"'))
}

fn derived(name: &str) -> SecurityContext {
    let row = &rows("derive")[name];
    let id_context = (row[4] != "-").then(|| field(row[4]));
    SecurityContext::derive(&Inputs {
        master_secret: &field(row[0]),
        master_salt: &field(row[1]),
        id_context: id_context.as_deref(),
        sender_id: identity(&field(row[2])),
        recipient_id: identity(&field(row[3])),
    })
}

fn message(hex: &str) -> StreamMessage {
    unlayered(Message::parse(&octets(hex)).expect("the RFC's own"))
}

#[test]
fn keys_and_nonces_are_derived_as_in_c_1_to_c_3() {
    let rows = rows("derive");
    assert_eq!(rows.len(), 6);
    for (name, row) in rows {
        let fields: Vec<_> =
            row.iter().map(|text| text.trim_start_matches('-')).map(field).collect();
        let context = (row[4] != "-").then_some(&fields[4][..]);
        let [sender, recipient] = [identity(&fields[2]), identity(&fields[3])];
        for (id, kind, len, expected) in [
            (&fields[2][..], "Key", KEY_LEN, &fields[5]),
            (&fields[3][..], "Key", KEY_LEN, &fields[6]),
            (&[][..], "IV", 13, &fields[7]),
        ] {
            assert_eq!(&info(id, context, kind, len), expected, "{name}");
        }
        let deriver = Deriver::new(&fields[0], &fields[1], context);
        assert_eq!(deriver.key(sender)[..], fields[8], "{name}");
        assert_eq!(deriver.key(recipient)[..], fields[9], "{name}");
        let iv = deriver.common_iv();
        assert_eq!(iv[..], fields[10], "{name}");
        let zero = PartialIv::new(0).expect("below 2^40");
        assert_eq!(nonce::nonce(&iv, sender, zero)[..], fields[11], "{name}");
        assert_eq!(nonce::nonce(&iv, recipient, zero)[..], fields[12], "{name}");
    }
}

#[test]
fn requests_are_protected_and_opened_as_in_c_4_to_c_6() {
    let rows = rows("request");
    assert_eq!(rows.len(), 3);
    for (name, row) in rows {
        let mut client = derived(row[0]);
        let piv = PartialIv::read(&octets(row[2])).expect("minimal");
        client.resume(&State::reserved(piv.number()), Challenge([0; 8]));
        let mut client = ready(client);
        assert_eq!(additional_data(client.sender_id(), piv), octets(row[3]), "{name}");
        assert_eq!(client.common_iv.nonce(client.sender_id(), piv)[..], octets(row[4]), "{name}");
        let (plain, outer) = (message(row[1]), message(row[5]));
        assert_eq!(client.protect_request(&plain).expect("plain").0, outer, "{name}");
        let section = row[0].strip_suffix(".1").expect("clients are the first of a section");
        let mut server = derived(&format!("{section}.2"));
        assert_eq!(server.unprotect_request(&outer).expect("fresh").0, plain, "{name}");
    }
}

/// What the server of C.7 and C.8 keeps of the request of C.4, which is of the same context.
fn received(server: &mut SecurityContext) -> Received {
    let request = message(rows("request")["C.4"][5]);
    server.unprotect_request(&request).expect("fresh").1
}

#[test]
fn responses_are_protected_and_opened_as_in_c_7_and_c_8() {
    let rows = rows("response");
    assert_eq!(rows.len(), 2);
    for (name, row) in rows {
        let mut server = ready(derived(row[0]));
        let (plain, outer) = (message(row[1]), message(row[6]));
        let mut binding = received(&mut server);
        assert_eq!(additional_data(server.recipient_id(), binding.partial_iv()), octets(row[4]));
        if row[3] != "-" {
            // C.8 has a Partial IV of its own: the nonce of the request is spent by another answer.
            let spent = server.protect_response(&mut binding, &plain).expect("plain");
            assert_ne!(spent, outer);
        }
        let protected = server.protect_response(&mut binding, &plain).expect("plain");
        assert_eq!(protected, outer, "{name}");

        let mut client = derived("C.1.1");
        client.resume(&State::reserved(0x14), Challenge([0; 8]));
        let mut client = ready(client);
        let request = message(self::rows("request")["C.4"][1]);
        let (_, mut pending) = client.protect_request(&request).expect("plain");
        assert_eq!(client.unprotect_response(&mut pending, &outer), Ok(plain), "{name}");
    }
}

#[test]
fn a_resumed_context_knows_its_window() {
    let mut server = derived("C.1.2");
    let window = StoredWindow { end: 21, seen: 1, trusted: false };
    server.resume(&State { window: Some(window), ..State::reserved(0) }, Challenge([0; 8]));
    assert_eq!(server.replay, Replay::Known(Window::resume(21, 1, 32)));
    let request = message(rows("request")["C.4"][5]);
    assert!(server.unprotect_request(&request).is_err(), "20 has come already");
}
