//! Properties: whatever an attacker changes is noticed, and nothing is taken twice.

use proptest::prelude::*;

use super::*;
use crate::{Challenge, Refusal, State};

/// All octets of a message that an attacker can change with effect: option value and payload.
fn tampered(message: &StreamMessage, at: usize, mask: u8) -> StreamMessage {
    let value = message.options.get(OptionNumber::OSCORE).expect("protected");
    let mut changed = message.clone();
    if at < value.len() {
        let mut value = value.to_vec();
        value[at] ^= mask;
        changed.options = lowmesh_wire::coap::Options::new();
        changed.options.insert(OptionNumber::OSCORE, &value);
    } else {
        changed.payload[at - value.len()] ^= mask;
    }
    changed
}

fn size(message: &StreamMessage) -> usize {
    message.payload.len() + message.options.get(OptionNumber::OSCORE).map_or(0, <[u8]>::len)
}

#[test]
fn any_bit_that_is_changed_makes_a_request_invalid() {
    let (mut client, mut server) = pair();
    let (outer, _) = client.protect_request(&get("/door")).expect("plain");
    for at in 0..size(&outer) {
        for bit in 0..8 {
            let changed = tampered(&outer, at, 1 << bit);
            assert!(server.unprotect_request(&changed).is_err(), "octet {at} bit {bit}");
        }
    }
    assert!(server.unprotect_request(&outer).is_ok());
}

#[test]
fn any_bit_that_is_changed_makes_a_response_invalid() {
    let (mut client, mut server) = pair();
    let (outer, mut pending) = client.protect_request(&observe(get("/t"), 0)).expect("plain");
    let (_, mut received) = server.unprotect_request(&outer).expect("fresh");
    let response = observe(content(b"22.3 C"), 5);
    let outer = server.protect_response(&mut received, &response).expect("plain");
    for at in 0..size(&outer) {
        for bit in 0..8 {
            let changed = tampered(&outer, at, 1 << bit);
            let refused = client.unprotect_response(&mut pending, &changed);
            assert!(refused.is_err(), "octet {at} bit {bit}");
        }
    }
    assert!(client.unprotect_response(&mut pending, &outer).is_ok());
}

#[test]
fn a_message_cut_anywhere_is_invalid() {
    let (mut client, mut server) = pair();
    let (outer, _) = client.protect_request(&get("/door")).expect("plain");
    for end in 0..outer.payload.len() {
        let mut cut = outer.clone();
        cut.payload.truncate(end);
        assert_eq!(server.unprotect_request(&cut).err(), Some(Refusal::Forged));
    }
}

#[test]
fn a_request_cannot_be_sent_back_to_its_client() {
    let (mut client, _) = pair();
    let (outer, _) = client.protect_request(&get("/door")).expect("plain");
    assert_eq!(client.unprotect_request(&outer).err(), Some(Refusal::UnknownContext));
}

#[test]
fn replays_after_a_crash_cost_a_number_once_each_and_keep_no_client_out() {
    let (mut client, mut server) = pair();
    let recorded: Vec<_> =
        (0..100).map(|_| client.protect_request(&get("/a")).expect("plain").0).collect();
    server.resume(&State::reserved(server.reserved()), Challenge([9; 8]));
    let mut server = ready(server);
    let first = server.state().sequence;
    let mut refusals = Vec::new();
    for _ in 0..50 {
        refusals.extend(recorded.iter().map(|one| server.unprotect_request(one).err()));
        // The newest and the oldest of them, once more.
        refusals.push(server.unprotect_request(&recorded[99]).err());
        refusals.push(server.unprotect_request(&recorded[0]).err());
    }
    let challenged = |one: &&Option<Refusal>| matches!(one, Some(Refusal::Challenged(_)));
    assert_eq!(refusals.iter().filter(challenged).count(), 100);
    assert_eq!(server.state().sequence, first + 100, "numbers that were used");
    assert!(refusals[100..].iter().all(|one| *one == Some(Refusal::Replay)));
    // Two requests of the client, of which the second overtakes the first.
    let [(early, _), (late, mut pending)] =
        [(); 2].map(|()| client.protect_request(&get("/a")).expect("plain"));
    let Err(Refusal::Challenged(answer)) = server.unprotect_request(&late) else {
        panic!("not challenged")
    };
    assert!(matches!(server.unprotect_request(&early), Err(Refusal::Challenged(_))));
    let answer = client.unprotect_response(&mut pending, &answer).expect("genuine");
    let mut again = get("/a");
    let echo = answer.options.get(OptionNumber::ECHO).expect("a challenge");
    again.options.insert(OptionNumber::ECHO, echo);
    let (outer, _) = client.protect_request(&again).expect("plain");
    assert!(server.unprotect_request(&outer).is_ok());
}

proptest! {
    #[test]
    fn in_any_order_and_number_of_copies_each_request_is_taken_once_at_most(
        arrivals in prop::collection::vec(0_usize..40, 1..120),
        crash_at in prop::option::of(0_usize..120),
    ) {
        let (mut client, mut server) = pair();
        let sent: Vec<_> = (0..40)
            .map(|_| client.protect_request(&get("/a")).expect("plain").0)
            .collect();
        let mut taken = vec![false; sent.len()];
        for (place, arrival) in arrivals.into_iter().enumerate() {
            if crash_at == Some(place) {
                server.resume(&State::reserved(server.reserved()), Challenge([9; 8]));
                server = ready(server);
            }
            if server.unprotect_request(&sent[arrival]).is_ok() {
                prop_assert!(!taken[arrival], "request {} twice", arrival);
                taken[arrival] = true;
            }
        }
    }

    #[test]
    fn any_octets_in_option_and_payload_are_refused_without_panic(
        value in prop::collection::vec(any::<u8>(), 0..24),
        payload in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let (mut client, mut server) = pair();
        let (_, mut pending) = client.protect_request(&get("/a")).expect("plain");
        let mut outer = StreamMessage::new(Code::POST);
        outer.options.insert(OptionNumber::OSCORE, &value);
        outer.payload = payload;
        prop_assert!(server.unprotect_request(&outer).is_err());
        prop_assert!(client.unprotect_response(&mut pending, &outer).is_err());
    }

    #[test]
    fn any_request_comes_out_as_it_went_in(
        code in 1_u8..8,
        options in prop::collection::vec((any::<u16>(), prop::collection::vec(any::<u8>(), 0..20)), 0..6),
        payload in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut request = StreamMessage::new(Code(code));
        for (number, value) in options {
            // A Proxy-Uri is split on purpose, and an OSCORE option is refused.
            if ![9, 35].contains(&number) {
                request.options.insert(OptionNumber(number), &value);
            }
        }
        request.payload = payload;
        let (mut client, mut server) = pair();
        let (outer, _) = client.protect_request(&request).expect("plain");
        prop_assert_eq!(server.unprotect_request(&outer).expect("fresh").0, request);
    }
}
