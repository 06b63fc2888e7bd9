//! What sources can make a member do: check forged signatures, and send to addresses that are not theirs.

use lowmesh_coap::params::DATAGRAM_OVERHEAD;
use lowmesh_wire::coap::{Kind, MessageId};

use super::*;
use crate::group::Pending;
use crate::params::GROUP_MEMBERS_MAX;

/// Another member that makes messages outside of any host.
struct Attacker {
    group: Group,
    sent: u16,
}

impl Attacker {
    fn new(group: Group) -> Self {
        Self { group, sent: 0 }
    }
    /// A request, as one datagram.
    fn request(&mut self, to: Option<Identity>, path: &str) -> (Vec<u8>, Pending) {
        if let Some(reservation) = self.group.reservation_needed() {
            self.group.confirm(reservation);
        }
        let mut get = StreamMessage::new(Code::GET);
        get.options.insert_path(path);
        let (outer, pending) = self.group.protect_request(to, &get).expect("plain");
        self.sent += 1;
        let StreamMessage { code, options, payload, .. } = outer;
        let token = Token::new(&self.sent.to_be_bytes()).expect("short");
        let (kind, message_id) = (Kind::Confirmable, MessageId(self.sent));
        let message = Message { kind, message_id, code, token, options, payload };
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        (bytes, pending)
    }
    /// A request in group mode whose tag is right and whose signature is not.
    fn forged(&mut self) -> Vec<u8> {
        let (mut bytes, _) = self.request(None, "/secret");
        *bytes.last_mut().expect("a signature") ^= 1;
        bytes
    }
}

/// Whether a request of a source reaches the application of member 1.
fn is_served(world: &mut World, from: u8, bytes: Vec<u8>) -> bool {
    let before = world.asked.len();
    world.arrive(1, &Datagram { from, to: 1, bytes });
    world.drain();
    world.asked.len() > before
}

/// The octets that were sent to an address, with headers.
fn received(world: &World, to: u8) -> usize {
    let to = world.wire.iter().filter(|one| one.to == to);
    to.map(|one| one.bytes.len() + DATAGRAM_OVERHEAD).sum()
}

fn id(number: u8) -> Option<Identity> {
    Identity::new(&[number])
}

#[test]
fn a_source_of_forged_signatures_is_no_longer_checked_and_spares_the_others() {
    // Both addresses are of one attacker, which holds the secrets of the group.
    for (forger, other) in [(50, 51), (51, 50)] {
        let mut world = World::new(3, "");
        let mut attacker = Attacker::new(member(2, 4, "secret", ""));
        for number in 0..FORGED_BURST {
            let (valid, _) = attacker.request(None, "/secret");
            assert!(is_served(&mut world, forger, valid), "{number}");
            let forged = attacker.forged();
            assert!(!is_served(&mut world, forger, forged), "{number}");
        }
        let (valid, _) = attacker.request(None, "/secret");
        assert!(!is_served(&mut world, forger, valid), "its share is used");
        let (valid, _) = attacker.request(None, "/secret");
        assert!(is_served(&mut world, other, valid), "another source has its own");
        let (pairwise, _) = attacker.request(id(1), "/secret");
        assert!(is_served(&mut world, forger, pairwise), "pairwise mode has no signature");
        world.now += Duration::from_secs(2);
        let (valid, _) = attacker.request(None, "/secret");
        assert!(is_served(&mut world, forger, valid), "its share comes back");
    }
}

#[test]
fn a_stranger_uses_no_share_of_any_source() {
    let mut world = World::new(3, "");
    let mut stranger = Attacker::new(member(2, 4, "another", ""));
    for _ in 0..10 * FORGED_BURST {
        let forged = stranger.forged();
        assert!(!is_served(&mut world, 50, forged));
    }
    // Its message IDs are not those of before.
    let mut honest = Attacker { group: member(2, 4, "secret", ""), sent: 1000 };
    let (valid, _) = honest.request(None, "/secret");
    assert!(is_served(&mut world, 50, valid));
}

/// A message that a stranger has heard, again and again with other signatures and message IDs.
fn altered(heard: &[u8], number: u16) -> Vec<u8> {
    let mut bytes = heard.to_vec();
    bytes[2..4].copy_from_slice(&(0x8000 + number).to_be_bytes());
    let place = bytes.len() - 1 - usize::from(number) % 64;
    bytes[place] ^= 1 << (number / 64 % 8);
    bytes
}

#[test]
fn a_stranger_who_alters_signatures_of_a_message_that_it_heard_silences_nobody() {
    for lost in [false, true] {
        let mut group = member(1, 4, "secret", "");
        if lost {
            // It ended without notice, and has forgotten what has come.
            group.resume(&GroupState::reserved(50), || Challenge([3; 8]));
        }
        let mut world = World::new(3, "");
        let limits = HostLimits { amplification_max: None, ..HostLimits::default() };
        world.hosts[1] = side(1, group, limits);
        let mut honest = Attacker::new(member(2, 4, "secret", ""));
        // Member 1 has not seen it: it was for another one, or is lost.
        let (heard, _) = honest.request(None, "/secret");
        for number in 0..500 {
            // With the address of a member, and with many of nobody.
            let from = if number % 2 == 0 { 50 } else { 60 + (number % 90) as u8 };
            assert!(!is_served(&mut world, from, altered(&heard, number)));
        }
        for from in [50, 51] {
            let before = received(&world, from);
            let (valid, _) = honest.request(None, "/secret");
            // After a loss the answer is a challenge.
            assert_eq!(is_served(&mut world, from, valid), !lost);
            assert!(received(&world, from) > before, "no answer for {from}, lost: {lost}");
        }
    }
}

#[test]
fn a_message_is_taken_when_it_comes_again_although_altered_copies_came_first() {
    let mut world = World::new(3, "");
    let mut honest = Attacker::new(member(2, 4, "secret", ""));
    let (heard, _) = honest.request(None, "/secret");
    for number in 0..500 {
        assert!(!is_served(&mut world, 60 + (number % 90) as u8, altered(&heard, number)));
    }
    // The message layer of its sender repeats it. At once nothing but the bound holds.
    assert!(!is_served(&mut world, 50, heard.clone()));
    world.now += Duration::from_millis(1100);
    let mut again = heard;
    again[3] ^= 0x55;
    assert!(is_served(&mut world, 50, again.clone()));
    world.now += Duration::from_secs(2);
    again[3] ^= 0x66;
    assert!(!is_served(&mut world, 50, again), "now it is a replay");
}

#[test]
fn altered_signatures_of_a_response_use_no_share_of_its_member() {
    let mut world = World::new(1, "responses,text,group\n");
    world.ask(GROUP, RequestTemplate::get("/secret"), 7);
    world.drain();
    // A stranger hears the response, and the client does not.
    world.loss = 1.0;
    world.run(world.now + Duration::from_secs(2));
    let is_response = |one: &&Datagram| one.from == 1 && one.to == CLIENT;
    let heard = world.wire.iter().rev().find(is_response).expect("an answer").bytes.clone();
    world.loss = 0.0;
    world.ask(GROUP, RequestTemplate::get("/secret"), 8);
    for number in 0..200 {
        let bytes = altered(&heard, number);
        world.arrive(CLIENT, &Datagram { from: 1, to: CLIENT, bytes });
        world.run(world.now + Duration::from_millis(10));
    }
    assert_eq!(answers(&world.heard).len(), 1, "{:?}", world.heard);
}

#[test]
fn a_response_of_a_source_whose_share_is_used_is_dropped() {
    let mut world = World::new(1, "responses,text,group\n");
    world.ask(GROUP, RequestTemplate::get("/secret"), 7);
    world.run(world.now + Duration::from_secs(2));
    assert_eq!(answers(&world.heard).len(), 1);
    let mut attacker = Attacker::new(member(1, 2, "secret", ""));
    world.ask(GROUP, RequestTemplate::get("/secret"), 8);
    world.drain();
    for _ in 0..FORGED_BURST {
        let bytes = attacker.forged();
        world.arrive(CLIENT, &Datagram { from: 1, to: CLIENT, bytes });
    }
    world.heard.clear();
    // The request takes its time to the member and back.
    world.run(world.now + Duration::from_millis(900));
    let is_response = |one: &&Datagram| one.from == 1 && one.to == CLIENT;
    let response = world.wire.iter().rev().find(is_response).expect("an answer").clone();
    assert_eq!(answers(&world.heard).len(), 0, "{:?}", world.heard);
    world.now += Duration::from_secs(2);
    let mut again = response;
    again.bytes[3] ^= 0x55;
    world.arrive(CLIENT, &again);
    world.drain();
    assert_eq!(answers(&world.heard).len(), 1, "{:?}", world.heard);
}

#[test]
fn an_unproven_address_gets_at_most_three_times_what_it_sent() {
    let limits = HostLimits { amplification_max: Some(3), ..HostLimits::default() };
    for more in ["", "responses,text,group\n"] {
        for (to, lost) in [(None, false), (id(1), false), (None, true), (id(1), true)] {
            let mut group = member(1, 4, "secret", more);
            if lost {
                group.resume(&GroupState::reserved(50), || Challenge([3; 8]));
            }
            let mut world = World::new(1, more);
            world.state = vec![7; 3000];
            world.hosts[1] = side(1, group, limits.clone());
            let mut attacker = Attacker::new(member(2, 4, "secret", more));
            let mut sent = 0;
            for number in 0..20 {
                // Each third is a forgery.
                let (mut bytes, _) = attacker.request(to, "/long");
                if number % 3 == 2 {
                    *bytes.last_mut().expect("a payload") ^= 1;
                }
                sent += bytes.len() + DATAGRAM_OVERHEAD;
                world.arrive(1, &Datagram { from: 50, to: 1, bytes });
                // Nothing comes back from an address that did not ask.
                world.loss = 1.0;
                world.run(world.now + Duration::from_secs(1));
                let got = received(&world, 50);
                assert!(got <= 3 * sent, "{got} for {sent}, {more:?} {to:?} lost: {lost}");
            }
            world.run(world.now + LONG);
            let got = received(&world, 50);
            assert!(got > 0 && got <= 3 * sent, "{got} for {sent}, {more:?} {to:?} lost: {lost}");
        }
    }
}

#[test]
fn two_members_that_answer_from_one_address_are_not_remembered_there() {
    for stolen in [false, true] {
        let mut world = World::new(2, "");
        world.ask(GROUP, RequestTemplate::get("/secret"), 7);
        world.drain();
        world.loss = 1.0;
        world.run(world.now + Duration::from_secs(2));
        let is_response = |one: &&Datagram| one.to == CLIENT;
        let responses: Vec<_> = world.wire.iter().filter(is_response).cloned().collect();
        assert_eq!(responses.len(), 2);
        // A stranger on the path sends the response of one member on from the address of another.
        for response in &responses {
            let mut one = response.clone();
            one.from = if stolen { 1 } else { one.from };
            world.arrive(CLIENT, &one);
            world.drain();
        }
        let known: Vec<u8> = world.hosts[0].transport().members.keys().copied().collect();
        let honest: &[u8] = if stolen { &[] } else { &[1, 2] };
        assert_eq!(known, honest, "stolen: {stolen}");
        let is_answer = |one: &&Output<u8>| matches!(one, Output::GroupResponse { .. });
        assert_eq!(world.heard.iter().filter(is_answer).count(), 2, "{:?}", world.heard);
    }
}

#[test]
fn a_member_that_answers_from_many_addresses_keeps_the_place_of_one() {
    let rng = || Rng::stream(Seed(5), NodeId(0), Purpose::Coap);
    let endpoint = Endpoint::<u64>::new(Config::default(), rng()).expect("settings");
    let protection: Option<Protection<u64, VolatileContexts>> = None;
    let limits = HostLimits::default();
    let mut client = Protected::new(endpoint, protection, &limits, rng());
    let member = |number: u8| Identity::new(&[number]).expect("short");
    for address in 0..2 * GROUP_MEMBERS_MAX as u64 {
        client.remember(address, member(1), true);
    }
    client.remember(u64::MAX, member(2), true);
    let known: Vec<(u64, Identity)> = client.members.into_iter().collect();
    assert_eq!(known, [(2 * GROUP_MEMBERS_MAX as u64 - 1, member(1)), (u64::MAX, member(2))]);
}
