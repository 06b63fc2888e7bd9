//! Contexts that are derived many times (RFC 8613 appendix B.2).

use core::convert::Infallible;

use super::*;
use crate::class::{Direction, split};
use crate::client::{open, seal};
use crate::header::{unwrapped, wrapped};
use crate::nonce::{Deriver, additional_data};
use crate::params::{RENEWAL_NONCE_LEN, RENEWAL_TAG_LEN};
use crate::{
    Header, PartialIv, Pending, ProtectError, Refusal, Renewal, RenewalKey, RenewalNonce, Renewed,
    ResponseError,
};

const SALT: &[u8] = &[0x9e, 0x7c, 0xa9, 0x22, 0x23, 0x78, 0x63, 0x40];
const FILE: &str = include_str!("../../../../tests/vectors/oscore/appendix_b_2.txt");

fn key(octet: u8) -> RenewalKey {
    RenewalKey::new([octet; 32])
}

fn renewal(sender: &[u8], recipient: &[u8]) -> Renewal {
    let inputs = Inputs {
        master_secret: SECRET,
        master_salt: SALT,
        id_context: None,
        sender_id: identity(sender),
        recipient_id: identity(recipient),
    };
    Renewal::new(&inputs, REPLAY_WINDOW, 1, key(1))
}

fn nonce(octet: u8) -> RenewalNonce {
    RenewalNonce([octet; RENEWAL_NONCE_LEN])
}

/// The server's verdict on a request.
fn take(server: &Renewal, request: &StreamMessage, s2: u8) -> Result<Renewed, Refusal> {
    let drawn = || Ok::<_, Infallible>(nonce(s2));
    server.unprotect_request(request, drawn).unwrap_or_else(|never| match never {})
}

/// The third context, if the client accepts response #1.
fn third(
    client: &Renewal,
    pending: &Pending,
    response: &StreamMessage,
) -> Result<SecurityContext, ResponseError> {
    let drawn = || Ok::<_, Infallible>(nonce(3));
    client.third(pending, response, drawn).unwrap_or_else(|never| match never {})
}

fn kid_context(message: &StreamMessage) -> Option<Vec<u8>> {
    let value = message.options.get(OptionNumber::OSCORE).expect("protected");
    Header::parse(value).expect("our own").kid_context.map(<[u8]>::to_vec)
}

/// Both ends of a run.
struct Run {
    client: Renewal,
    server: Renewal,
}

impl Run {
    fn new() -> Self {
        Self { client: renewal(b"client", b"server"), server: renewal(b"server", b"client") }
    }
    /// Response #1 to a request.
    fn first_response(&self, request: &StreamMessage, s2: u8) -> StreamMessage {
        match take(&self.server, request, s2) {
            Err(Refusal::Renewing(response)) => *response,
            other => panic!("no response #1 but {other:?}"),
        }
    }
    /// Steps 1 to 3: request #2, and what the client expects.
    fn second_request(&self) -> (SecurityContext, StreamMessage, Pending) {
        let (request, pending) =
            self.client.first(nonce(1)).protect_request(&get("/a")).expect("plain");
        let response = self.first_response(&request, 2);
        let third = third(&self.client, &pending, &response).expect("its own");
        let mut third = ready(third);
        let (request, pending) = third.protect_request(&get("/a")).expect("plain");
        (third, request, pending)
    }
}

#[test]
fn the_keys_of_each_step_are_those_of_aiocoap() {
    let rows: Vec<Vec<&str>> = FILE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(' ').collect())
        .collect();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let id = octets(row[1]);
        let deriver = Deriver::new(SECRET, SALT, Some(&id));
        assert_eq!(deriver.key(identity(b"client"))[..], octets(row[2]), "{}", row[0]);
        assert_eq!(deriver.key(identity(b"server"))[..], octets(row[3]), "{}", row[0]);
        assert_eq!(deriver.common_iv()[..], octets(row[4]), "{}", row[0]);
    }
}

#[test]
fn both_ends_come_to_one_context_in_two_round_trips() {
    let run = Run::new();
    let (request, pending) = run.client.first(nonce(1)).protect_request(&get("/a")).expect("plain");
    assert_eq!(kid_context(&request), Some(wrapped(&[1; 8])), "R1 in a byte string");
    let response = run.first_response(&request, 2);
    let said = kid_context(&response).expect("response #1 says R2");
    let r2 = unwrapped(&said).expect("a byte string");
    assert_eq!(r2[..8], [2; 8]);
    assert_eq!(r2.len(), RENEWAL_NONCE_LEN + RENEWAL_TAG_LEN);
    // RFC 8613 s8.3: the nonce of the request is used, so there is no Partial IV. libcoap 4.3.4 and Californium 3.13
    // accept only this nonce.
    let value = response.options.get(OptionNumber::OSCORE).expect("protected");
    assert_eq!(Header::parse(value).expect("our own").partial_iv, None);
    let second = run.client.context(&[r2, &[1; 8]].concat());
    let of_request = run.client.context(&[1; 8]).common_iv;
    let sealed_with = of_request.nonce(identity(b"client"), pending.partial_iv());
    let aad = additional_data(identity(b"client"), pending.partial_iv());
    assert!(open(&second.recipient, &sealed_with, &aad, &response).is_ok());

    let mut third = ready(third(&run.client, &pending, &response).expect("its own"));
    let id = [r2, &[3; 8]].concat();
    assert_eq!(third.id_context(), Some(&id[..]));
    let (request, mut pending) = third.protect_request(&get("/a")).expect("plain");
    assert_eq!(kid_context(&request), Some(wrapped(&id)), "R2 || R3 in a byte string");

    let renewed = take(&run.server, &request, 4).expect("R2 is the server's own");
    let Renewed { context: mut server, request, mut received } = renewed;
    assert_eq!((&request, server.id_context()), (&get("/a"), Some(&id[..])));
    let response = server.protect_response(&mut received, &content(b"x")).expect("plain");
    assert_eq!(third.unprotect_response(&mut pending, &response), Ok(content(b"x")));

    let (next, _) = third.protect_request(&get("/b")).expect("plain");
    assert_eq!(kid_context(&next), Some(id), "as it is, once the server has the context");
    assert!(server.unprotect_request(&next).is_ok());
}

#[test]
fn response_1_with_the_nonce_of_request_1_is_understood_however_it_is_computed() {
    let run = Run::new();
    let mut first = run.client.first(nonce(1));
    let (request, pending) = first.protect_request(&get("/a")).expect("plain");
    let (_, received) = run.server.context(&[1; 8]).unprotect_request(&request).expect("fresh");
    let second = run.server.context(&[[2; 8], [1; 8]].concat());
    // The request's nonce is made with the first context's Common IV, as here and in libcoap 4.3.4. Californium 3.13 adds
    // a Partial IV if the request observes.
    let said = PartialIv::new(0);
    for (common_iv, partial_iv) in
        [(&second.common_iv, None), (&first.common_iv, None), (&first.common_iv, said)]
    {
        let unauthorized = StreamMessage::new(Code::UNAUTHORIZED);
        let parts = split(&unauthorized, Direction::Response).expect("a response");
        let sealing = common_iv.nonce(identity(b"client"), received.partial_iv());
        let aad = additional_data(identity(b"client"), received.partial_iv());
        let r2 = wrapped(&[2; 8]);
        let header = Header { partial_iv, kid_context: Some(&r2), ..Header::default() };
        let response = seal(&second.sender, &sealing, &aad, &unauthorized, parts, &header);
        let third = third(&run.client, &pending, &response.expect("short"));
        let id = [[2; 8], [3; 8]].concat();
        assert_eq!(third.expect("its own").id_context(), Some(&id[..]));
    }
}

#[test]
fn a_server_that_lost_a_context_begins_with_response_1() {
    let run = Run::new();
    let mut before = ready(run.client.context(b"an ID Context of before"));
    let (request, pending) = before.protect_request(&get("/a")).expect("plain");
    let response = run.first_response(&request, 2);
    assert!(third(&run.client, &pending, &response).is_ok());
}

#[test]
fn request_2_is_taken_once_and_void_with_all_others_of_its_key_when_a_run_is_over() {
    let mut run = Run::new();
    let (_, second, _) = run.second_request();
    let (_, other, _) = run.second_request();
    let mut renewed = take(&run.server, &second, 4).expect("fresh");
    run.server.complete(key(2));
    let replay = renewed.context.unprotect_request(&second).err();
    assert_eq!(replay, Some(Refusal::Replay), "the new context has its number");
    for late in [&second, &other] {
        let refusal = take(&run.server, late, 5).err();
        assert!(matches!(refusal, Some(Refusal::Renewing(_))), "{refusal:?}");
    }
}

#[test]
fn many_requests_1_leave_nothing_behind_and_do_not_hinder_the_run_of_another() {
    let run = Run::new();
    let (request, pending) = run.client.first(nonce(1)).protect_request(&get("/a")).expect("plain");
    let response = run.first_response(&request, 0);
    // Replays of request #1: each response has an R2, and so a key, of its own.
    let mut seen = vec![kid_context(&response)];
    for replay in 1..=200 {
        let other = kid_context(&run.first_response(&request, replay));
        assert!(!seen.contains(&other));
        seen.push(other);
    }
    let third = third(&run.client, &pending, &response).expect("its own");
    let (request, _) = ready(third).protect_request(&get("/a")).expect("plain");
    assert!(take(&run.server, &request, 9).is_ok());
}

#[test]
fn without_the_keys_nobody_takes_a_step() {
    let (run, stranger) = (Run::new(), {
        let inputs = Inputs {
            master_secret: b"another secret",
            master_salt: SALT,
            id_context: None,
            sender_id: identity(b"client"),
            recipient_id: identity(b"server"),
        };
        Renewal::new(&inputs, REPLAY_WINDOW, 1, key(1))
    });
    let (forged, _) = stranger.first(nonce(1)).protect_request(&get("/a")).expect("plain");
    assert_eq!(take(&run.server, &forged, 2).err(), Some(Refusal::Forged));

    let (request, pending) = run.client.first(nonce(1)).protect_request(&get("/a")).expect("plain");
    let response = run.first_response(&request, 2);
    let (_, other) = run.client.first(nonce(7)).protect_request(&get("/a")).expect("plain");
    let refused = third(&run.client, &other, &response).err();
    assert_eq!(refused, Some(ResponseError::Forged), "it answers another request");
    for at in 0..response.payload.len() {
        let mut changed = response.clone();
        changed.payload[at] ^= 1;
        let refused = third(&run.client, &pending, &changed).err();
        assert_eq!(refused, Some(ResponseError::Forged));
    }
}

#[test]
fn a_request_2_needs_an_r2_that_the_server_made() {
    let run = Run::new();
    let mut invented = ready(run.client.context(&[9; 24]).with_id_context_wrapped());
    let (request, _) = invented.protect_request(&get("/a")).expect("plain");
    let refusal = take(&run.server, &request, 2).err();
    assert!(matches!(refusal, Some(Refusal::Renewing(_))), "it starts over: {refusal:?}");
}

#[test]
fn a_context_that_replaced_another_answers_none_of_its_requests() {
    let run = Run::new();
    let (mut client, mut before) =
        (ready(run.client.context(b"before")), ready(run.server.context(b"before")));
    let (outer, mut pending) = client.protect_request(&get("/slow")).expect("plain");
    let (_, mut received) = before.unprotect_request(&outer).expect("fresh");
    let mut after = ready(run.server.context(b"after"));
    let refused = after.protect_response(&mut received, &content(b"x")).err();
    assert_eq!(refused, Some(ProtectError::Replaced), "its number comes again under the new key");
    let response = before.protect_response(&mut received, &content(b"x")).expect("plain");
    let refused = ready(run.client.context(b"after")).unprotect_response(&mut pending, &response);
    assert_eq!(refused, Err(ResponseError::Forged));
}

#[test]
fn a_kid_context_that_is_not_one_byte_string_is_taken_as_it_is() {
    for octets in [&b""[..], b"\x41", b"\x41ab", b"\x01", b"\x5f\x41a\xff"] {
        assert_eq!(unwrapped(octets), None, "{octets:02x?}");
    }
    for len in [0, 23, 24, 253] {
        let octets = vec![7; len];
        assert_eq!(unwrapped(&wrapped(&octets)), Some(&octets[..]));
    }
}

#[test]
fn a_server_draws_for_a_first_request_that_verifies_and_for_no_other() {
    let run = Run::new();
    let draws = |server: &Renewal, request: &StreamMessage| {
        let mut draws = 0;
        let drawn = || {
            draws += 1;
            Ok::<_, Infallible>(nonce(2))
        };
        let _taken = server.unprotect_request(request, drawn);
        draws
    };
    let (request, _) = run.client.first(nonce(1)).protect_request(&get("/a")).expect("plain");
    assert_eq!(draws(&run.server, &request), 1);
    assert_eq!(draws(&renewal(b"server", b"another"), &request), 0, "a kid that it does not know");
    let mut forged = request.clone();
    forged.payload[0] ^= 1;
    assert_eq!(draws(&run.server, &forged), 0, "no key");
    let (_, second, _) = run.second_request();
    assert_eq!(draws(&run.server, &second), 0, "it has its context already");
    let fails = run.server.unprotect_request(&request, || Err("no randomness"));
    assert_eq!(fails.err(), Some("no randomness"));
}

#[test]
fn a_client_draws_randomness_for_a_response_1_that_verifies_and_for_no_other() {
    let run = Run::new();
    let (request, pending) = run.client.first(nonce(1)).protect_request(&get("/a")).expect("plain");
    let genuine = run.first_response(&request, 2);
    let mut forged = genuine.clone();
    *forged.payload.last_mut().expect("a tag") ^= 1;
    let third = |response| run.client.third(&pending, response, || Err("drawn"));
    assert_eq!(third(&forged).map(Result::err), Ok(Some(ResponseError::Forged)));
    assert_eq!(third(&genuine).err(), Some("drawn"));
}
