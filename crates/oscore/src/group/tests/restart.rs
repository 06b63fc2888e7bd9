//! Restarts: no nonce comes twice with one key, and a lost window asks for an Echo in pairwise mode.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::group::{GroupState, Received};
use crate::params::CHALLENGE_LEN;
use crate::{Challenge, Header, Refusal};

const CHALLENGE: Challenge = Challenge([5; CHALLENGE_LEN]);

fn restarted(number: u8, state: &GroupState) -> Group {
    let mut group = unused(SignatureAlgorithm::EdDsa, number, 3, Mode::Pairwise);
    group = group.with_bounds(REPLAY_WINDOW, 4);
    group.resume(state, || CHALLENGE);
    group
}

#[derive(Clone, Debug)]
enum Step {
    Ask(Option<u8>),
    /// The server answers the last request that it has taken, again.
    Answer,
    Crash,
    Stop,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => prop_oneof![Just(None), Just(Some(1)), Just(Some(2))].prop_map(Step::Ask),
        6 => Just(Step::Answer),
        2 => Just(Step::Crash),
        1 => Just(Step::Stop),
    ];
    prop::collection::vec(step, 1..60)
}

/// A member and its disk.
struct Device {
    group: Group,
    disk: GroupState,
    number: u8,
    /// The nonces that it has used, with the key: of the group, or of a member.
    used: BTreeSet<(Option<u8>, Vec<u8>)>,
}

impl Device {
    fn new(number: u8) -> Self {
        let group = unused(SignatureAlgorithm::EdDsa, number, 3, Mode::Pairwise);
        let (disk, used) = (GroupState::reserved(0), BTreeSet::new());
        Self { group: group.with_bounds(REPLAY_WINDOW, 4), disk, number, used }
    }
    fn store(&mut self) {
        if let Some(reservation) = self.group.reservation_needed() {
            self.disk = GroupState::reserved(reservation.end());
            self.group.confirm(reservation);
        }
    }
    /// Notes what a message was sealed with: which key, whose number, and which.
    fn note(&mut self, key: Option<u8>, message: &StreamMessage, request: &[u8]) {
        let value = message.options.get(OptionNumber::OSCORE).expect("protected");
        let nonce = match Header::parse(value).expect("our own").partial_iv {
            Some(piv) => [&[self.number], &piv.padded()[..]].concat(),
            None => request.to_vec(),
        };
        assert!(self.used.insert((key, nonce)), "a nonce comes twice with one key");
    }
    fn restart(&mut self, orderly: bool) {
        if orderly {
            self.disk = self.group.state();
        }
        self.group = restarted(self.number, &self.disk);
        // The windows on the disk are of before; a running member stores its numbers alone.
        self.disk = GroupState::reserved(self.disk.sequence);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// A client and a server that crash, stop and go on: neither uses a nonce twice with one key.
    #[test]
    fn no_nonce_comes_twice_with_one_key(client_steps in steps(), server_steps in steps()) {
        let (mut client, mut server) = (Device::new(0), Device::new(1));
        let mut open: Option<(Received, Vec<u8>)> = None;
        let mut pairs = client_steps.into_iter().zip(server_steps);
        for (ask, answer) in pairs.by_ref() {
            match ask {
                Step::Ask(to) => {
                    client.store();
                    let member = to.map(identity);
                    let (request, pending) =
                        client.group.protect_request(member, &get("/t")).expect("plain");
                    client.note(to, &request, &[]);
                    server.store();
                    let nonce = [&[0], &pending.partial_iv().padded()[..]].concat();
                    match server.group.unprotect_request(&request) {
                        Ok((_, received)) => open = Some((received, nonce)),
                        Err(Refusal::Challenged(response)) => {
                            // Challenges are in pairwise mode here.
                            server.note(Some(0), &response, &[]);
                        }
                        Err(_) => {}
                    }
                }
                Step::Crash => client.restart(false),
                Step::Stop => client.restart(true),
                Step::Answer => {}
            }
            match (answer, &mut open) {
                (Step::Ask(_) | Step::Answer, Some((received, nonce))) => {
                    server.store();
                    let response = server.group.protect_response(received, &content(b"1"));
                    let nonce = nonce.clone();
                    server.note(Some(0), &response.expect("plain"), &nonce);
                }
                (Step::Crash, _) => (server.restart(false), open = None).1,
                (Step::Stop, _) => (server.restart(true), open = None).1,
                _ => {}
            }
        }
    }
}

#[test]
fn no_message_leaves_without_a_number_that_is_stored() {
    let mut client = unused(SignatureAlgorithm::EdDsa, 0, 2, Mode::Pairwise);
    let unreserved = client.protect_request(None, &get("/t")).expect_err("nothing is stored");
    assert_eq!(unreserved, crate::ProtectError::Unreserved);
    let mut server = restarted(1, &GroupState::reserved(8));
    let (request, _) = member(SignatureAlgorithm::EdDsa, 0, 3, Mode::Pairwise)
        .protect_request(None, &get("/t"))
        .expect("plain");
    assert_eq!(server.unprotect_request(&request).expect_err("no number"), Refusal::Unreserved);
}

#[test]
fn after_a_crash_each_member_is_challenged_and_its_echo_is_taken_in_pairwise_mode_alone() {
    let (mut client, mut servers) = group(2);
    let mut device = Device::new(1);
    device.restart(false);
    device.store();
    let (old, _) = client.protect_request(None, &get("/t")).expect("plain");
    let mut ask = |server: &mut Group, to: Option<u8>, echo: bool| {
        let mut request = get("/t");
        if echo {
            request.options.insert(OptionNumber::ECHO, &CHALLENGE.0);
        }
        let (outer, mut pending) =
            client.protect_request(to.map(identity), &request).expect("plain");
        match server.unprotect_request(&outer) {
            Ok(_) => true,
            Err(Refusal::Challenged(response)) => {
                let answer = client.unprotect_response(&mut pending, &response).expect("ours");
                assert_eq!(answer.response.code, Code::UNAUTHORIZED);
                let echo = answer.response.options.get(OptionNumber::ECHO);
                assert_eq!((answer.from, echo), (identity(1), Some(&CHALLENGE.0[..])));
                false
            }
            Err(refusal) => panic!("{refusal}"),
        }
    };
    assert!(!ask(&mut device.group, None, false), "a challenge");
    // RFC 10021 s9 and s14.9: in group mode the request could be one for another server.
    assert!(!ask(&mut device.group, None, true), "a challenge again");
    assert!(ask(&mut device.group, Some(1), true), "its number is the lower limit");
    assert!(ask(&mut device.group, None, false), "the window is known again");
    assert_eq!(device.group.unprotect_request(&old).expect_err("from before"), Refusal::Replay);
    // Another member has a window of its own.
    let (other, _) = servers[1].protect_request(None, &get("/t")).expect("plain");
    device.store();
    assert!(matches!(device.group.unprotect_request(&other), Err(Refusal::Challenged(_))));
}

#[test]
fn an_orderly_end_loses_nothing() {
    let (mut client, mut servers) = group(2);
    let (first, _) = client.protect_request(None, &get("/t")).expect("plain");
    let (second, _) = client.protect_request(None, &get("/t")).expect("plain");
    servers[0].unprotect_request(&first).expect("fresh");
    let text = servers[0].state().to_string();
    let mut server = restarted(1, &text.parse().expect("our own"));
    assert_eq!(server.unprotect_request(&first).expect_err("it came before"), Refusal::Replay);
    assert!(server.unprotect_request(&second).is_ok());
}
