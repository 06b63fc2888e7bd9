//! What the next one gets where a bound over all peers is reached.

use lowmesh_units::Duration;
use lowmesh_wire::coap::{Code, Kind, Message, MessageId, OptionNumber, Token};

use super::super::*;
use super::*;
use crate::params::{DATAGRAM_OVERHEAD, EXCHANGE_LIFETIME, SEPARATE_GRACE, UNPROVEN_GRACE};

const PROVEN: u16 = 1;
const NEWCOMER: u16 = 900;

/// An endpoint that trusts no address before it is proven.
fn careful(config: Config) -> Endpoint<u16> {
    endpoint(Config { amplification_max: Some(3), ..config })
}

fn hear(
    endpoint: &mut Endpoint<u16>,
    from: u16,
    message: &Message,
    now: Instant,
) -> Vec<Output<u16>> {
    let bytes = message.to_vec();
    endpoint.handle(now, Input::Datagram { from, bytes: &bytes }).expect("never fails");
    outputs(endpoint)
}

fn exchange_of(outputs: &[Output<u16>]) -> Option<ExchangeId> {
    outputs.iter().find_map(|output| match output {
        Output::Request { exchange, .. } => Some(*exchange),
        _ => None,
    })
}

/// Whether a CON of a peer is known as a duplicate.
fn is_duplicate(server: &mut Endpoint<u16>, from: u16, id: u16, now: Instant) -> bool {
    let out = hear(server, from, &request(Kind::Confirmable, id), now);
    discards(&out) == [Discard::Duplicate]
}

/// Lets peers ask for something that takes longer than the ACK waits, and answers; returns the separate
/// responses by peer. The handle of each is its peer's address.
fn separate_responses(
    server: &mut Endpoint<u16>,
    peers: impl Iterator<Item = u16>,
) -> (Instant, Vec<(u16, Message)>) {
    let mut asked = Vec::new();
    for peer in peers {
        let out = hear(server, peer, &request(Kind::Confirmable, 1), T0);
        asked.push((peer, exchange_of(&out).expect("there is room")));
    }
    let now = T0 + server.layer.config.ack_delay;
    server.handle(now, Input::Deadline).expect("never fails");
    assert!(sent(&outputs(server)).iter().all(|one| one.kind == Kind::Acknowledgement));
    let answer = |server: &mut Endpoint<u16>, (peer, exchange): (u16, ExchangeId)| {
        let response = ResponseTemplate::new(Code::CONTENT);
        let input =
            Input::Respond { exchange, response, handle: Name::Application(Handle(peer.into())) };
        server.handle(now, input).expect("acceptable");
        let message = sent(&outputs(server)).remove(0);
        assert_eq!(message.kind, Kind::Confirmable);
        (peer, message)
    };
    let answers = asked.into_iter().map(|one| answer(server, one)).collect();
    (now, answers)
}

/// A peer asks for something slow, and is answered: how that leaves, and whose answers have given way to it.
fn answer_another(server: &mut Endpoint<u16>, peer: u16, now: Instant) -> (Kind, Vec<u64>) {
    let asked_at = now - server.layer.config.ack_delay;
    let out = hear(server, peer, &request(Kind::Confirmable, 1), asked_at);
    let exchange = exchange_of(&out).expect("there is room");
    server.handle(now, Input::Deadline).expect("never fails");
    outputs(server);
    let (response, handle) = (ResponseTemplate::new(Code::CONTENT), Name::NONE);
    server.handle(now, Input::Respond { exchange, response, handle }).expect("acceptable");
    let out = outputs(server);
    let displaced = failures(&out).into_iter().map(|(peer, reason)| {
        assert_eq!(reason, DropReason::GaveUp);
        peer
    });
    (sent(&out)[0].kind, displaced.collect())
}

fn is_delivered(outputs: &[Output<u16>], peer: u64) -> bool {
    outputs.iter().any(|one| {
        matches!(one, Output::Acknowledged { handle: Name::Application(Handle(to)), .. } if *to == peer)
    })
}

#[test]
fn the_answer_to_a_proven_peer_takes_the_place_of_one_to_an_unproven_address() {
    let mut server = careful(Config { incoming_max: 8, ..Config::default() });
    (1..=2).for_each(|peer| server.prove(peer, T0));
    let (now, answers) = separate_responses(&mut server, 1..=4);
    (11..=13).for_each(|peer| server.prove(peer, now));
    assert_eq!(answer_another(&mut server, 11, now), (Kind::Confirmable, vec![3]));
    assert_eq!(answer_another(&mut server, 12, now), (Kind::Confirmable, vec![4]));
    assert_eq!(answer_another(&mut server, 13, now), (Kind::NonConfirmable, vec![]));
    let ack = Message::new(Kind::Acknowledgement, Code::EMPTY, answers[0].1.message_id);
    assert!(is_delivered(&hear(&mut server, PROVEN, &ack, now), 1));
}

#[test]
fn an_answer_to_an_unproven_peer_leaves_others_time_to_acknowledge_theirs() {
    let mut server = careful(Config { incoming_max: 4, ..Config::default() });
    let (now, _) = separate_responses(&mut server, 2..=2);
    assert_eq!(answer_another(&mut server, 11, now), (Kind::NonConfirmable, vec![]));
    let later = now + UNPROVEN_GRACE;
    assert_eq!(answer_another(&mut server, 12, later), (Kind::Confirmable, vec![2]));
}

#[test]
fn an_answer_that_nobody_acknowledges_gives_way_to_one_of_another_peer() {
    let mut server = careful(Config { incoming_max: 6, ..Config::default() });
    (2..=4).for_each(|peer| server.prove(peer, T0));
    let (now, _) = separate_responses(&mut server, 2..=4);
    (11..=12).for_each(|peer| server.prove(peer, now));
    assert_eq!(answer_another(&mut server, 11, now), (Kind::NonConfirmable, vec![]));
    let later = now + SEPARATE_GRACE;
    assert_eq!(answer_another(&mut server, 12, later), (Kind::Confirmable, vec![2]));
}

#[test]
fn an_answer_to_a_peer_that_has_proven_its_address_meanwhile_keeps_its_place() {
    let mut server = careful(Config { incoming_max: 4, ..Config::default() });
    server.prove(3, T0);
    let (now, answers) = separate_responses(&mut server, 2..=3);
    server.prove(2, now);
    server.prove(NEWCOMER, now);
    assert_eq!(answer_another(&mut server, NEWCOMER, now), (Kind::NonConfirmable, vec![]));
    let ack = Message::new(Kind::Acknowledgement, Code::EMPTY, answers[0].1.message_id);
    assert!(is_delivered(&hear(&mut server, 2, &ack, now), 2));
}

#[test]
fn answers_that_nobody_acknowledges_leave_places_for_requests() {
    let mut server = careful(Config { incoming_max: 8, ..Config::default() });
    (1..=4).for_each(|peer| server.prove(peer, T0));
    let (now, _) = separate_responses(&mut server, 1..=4);
    // Of an unproven peer too: it can be asked for a proof.
    for id in 1..=4 {
        let out = hear(&mut server, NEWCOMER, &request(Kind::Confirmable, id), now);
        assert!(exchange_of(&out).is_some(), "request {id}");
    }
    let out = hear(&mut server, NEWCOMER, &request(Kind::Confirmable, 5), now + UNPROVEN_GRACE);
    assert_eq!((sent(&out)[0].code, failures(&out)), (Code::SERVICE_UNAVAILABLE, vec![]));
    assert_eq!(sent(&out)[0].options.get_uint(OptionNumber::MAX_AGE), Some(5));
    server.prove(NEWCOMER, now);
    let out = hear(&mut server, NEWCOMER, &request(Kind::Confirmable, 6), now + SEPARATE_GRACE);
    assert!(exchange_of(&out).is_some(), "an answer has had its time");
    assert_eq!(failures(&out), [(1, DropReason::GaveUp)]);
}

#[test]
fn a_request_by_multicast_takes_no_place_from_an_answer() {
    let mut server = careful(Config { incoming_max: 8, ..Config::default() });
    let (now, _) = separate_responses(&mut server, 2..=3);
    server.prove(NEWCOMER, now);
    let bytes = request(Kind::NonConfirmable, 1).to_vec();
    let later = now + UNPROVEN_GRACE;
    server
        .handle(later, Input::Group(GroupInput::Datagram { from: NEWCOMER, bytes: &bytes }))
        .expect("fine");
    let out = outputs(&mut server);
    assert_eq!((exchange_of(&out), failures(&out)), (None, vec![]), "a quarter is taken");
    assert_eq!(discards(&out), [Discard::Overloaded]);
}

#[test]
fn past_the_total_of_remembered_messages_the_peer_with_most_forgets() {
    let config =
        Config { dedup_total: 200, dedup_per_peer: 128, peers_max: 64, ..Config::default() };
    let mut server = careful(config);
    let get = |id| request(Kind::NonConfirmable, id);
    let (greedy, busy, honest) = (500, 400, 1..=50_u16);
    let mut executed = 0;
    let mut ask = |server: &mut Endpoint<u16>, peer, id| {
        let out = hear(server, peer, &get(id), T0);
        if let Some(exchange) = exchange_of(&out) {
            executed += 1;
            server.handle(T0, Input::Decline { exchange }).expect("acceptable");
        }
    };
    for id in 0..100 {
        ask(&mut server, greedy, id);
    }
    (0..10).for_each(|id| ask(&mut server, busy, id));
    for id in 0..3 {
        for peer in honest.clone() {
            ask(&mut server, peer, id);
        }
    }
    assert_eq!((server.layer.remembered.total(), server.counters().forgotten_early), (199, 61));
    // Each exchange of the others is known, and so are the newest of the greedy one.
    for peer in honest {
        (0..3).for_each(|id| ask(&mut server, peer, id));
    }
    (0..10).for_each(|id| ask(&mut server, busy, id));
    (61..100).for_each(|id| ask(&mut server, greedy, id));
    assert_eq!(executed, 100 + 10 + 3 * 50, "a duplicate is not executed");
    let listed = server.layer.remembered.large();
    assert_eq!(listed, [(10, busy), (32, greedy)], "who has more than its equal part of three");
}

#[test]
fn a_peer_past_its_share_of_remembered_messages_forgets_its_own() {
    let config = Config { dedup_total: 30, dedup_per_peer: 10, peers_max: 10, ..Config::default() };
    let mut server = careful(config);
    hear(&mut server, PROVEN, &request(Kind::Confirmable, 1), T0);
    for id in 0..100 {
        hear(&mut server, NEWCOMER, &request(Kind::NonConfirmable, id), T0);
    }
    assert_eq!((server.layer.remembered.total(), server.counters().forgotten_early), (11, 90));
    assert!(is_duplicate(&mut server, PROVEN, 1, T0));
}

#[test]
fn what_has_expired_leaves_before_anything_else_is_forgotten() {
    let config = Config { dedup_total: 40, dedup_per_peer: 30, peers_max: 64, ..Config::default() };
    let mut server = careful(config);
    for peer in 1..=20 {
        for id in 0..2 {
            hear(&mut server, peer, &request(Kind::Confirmable, id), T0);
        }
    }
    let later = T0 + EXCHANGE_LIFETIME;
    for id in 0..30 {
        hear(&mut server, NEWCOMER, &request(Kind::Confirmable, id), later);
    }
    assert_eq!(server.counters().forgotten_early, 0);
    assert!(is_duplicate(&mut server, NEWCOMER, 0, later), "its oldest");
}

#[test]
fn messages_that_have_expired_are_not_forgotten_early_with_their_peer() {
    let mut server = careful(Config { peers_max: 1, ..Config::default() });
    let later = T0 + EXCHANGE_LIFETIME;
    for (peer, now, forgotten_early) in [(1, T0, 0), (2, later, 0), (3, later, 1)] {
        let out = hear(&mut server, peer, &request(Kind::Confirmable, 1), now);
        let exchange = exchange_of(&out).expect("the other peer is idle");
        server.handle(now, Input::Decline { exchange }).expect("acceptable");
        outputs(&mut server);
        assert_eq!(server.counters().forgotten_early, forgotten_early, "peer {peer}");
    }
}

#[test]
fn every_count_of_remembered_messages_is_right_after_many_peers_have_come_and_gone() {
    let config = Config { dedup_total: 24, dedup_per_peer: 6, peers_max: 8, ..Config::default() };
    let mut server = careful(config);
    let mut rng = Rng::stream(Seed(3), NodeId(3), Stream::Coap);
    for step in 0..5000_u64 {
        let peer = rng.next_u32() as u16 % 20;
        let id = rng.next_u32() as u16 % 40;
        let now = T0 + Duration::from_millis(step * 300);
        let out = hear(&mut server, peer, &request(Kind::NonConfirmable, id), now);
        if let Some(exchange) = exchange_of(&out) {
            server.handle(now, Input::Decline { exchange }).expect("acceptable");
        }
        let counts: Vec<(usize, u16)> =
            server.layer.peers.iter().map(|(peer, one)| (one.seen.len(), *peer)).collect();
        assert_eq!(
            server.layer.remembered.total(),
            counts.iter().map(|(count, _)| *count).sum::<usize>()
        );
        assert!(server.layer.remembered.total() <= 24);
        let mut above: Vec<_> = counts.into_iter().filter(|(count, _)| *count > 3).collect();
        above.sort_unstable();
        assert_eq!(server.layer.remembered.large(), above);
    }
}

#[test]
fn a_peer_without_a_place_in_the_table_is_told_when_to_ask_again() {
    let mut server = careful(Config { peers_max: 1, ..Config::default() });
    hear(&mut server, PROVEN, &request(Kind::Confirmable, 1), T0);
    let mut refusals = Vec::new();
    for (kind, id) in [(Kind::Confirmable, 5), (Kind::NonConfirmable, 6), (Kind::NonConfirmable, 7)]
    {
        let get = request(kind, id);
        let out = hear(&mut server, NEWCOMER, &get, T0);
        assert_eq!(discards(&out), [Discard::Overloaded]);
        let refusal = sent(&out).remove(0);
        assert_eq!((refusal.code, &refusal.token), (Code::SERVICE_UNAVAILABLE, &get.token));
        assert_eq!(refusal.options.get_uint(OptionNumber::MAX_AGE), Some(5));
        let octets = refusal.encoded_len() + DATAGRAM_OVERHEAD;
        assert!(octets <= 3 * (get.encoded_len() + DATAGRAM_OVERHEAD));
        refusals.push((refusal.kind, refusal.message_id));
    }
    assert_eq!(refusals[0], (Kind::Acknowledgement, MessageId(5)));
    assert_eq!((refusals[1].0, refusals[2].0), (Kind::NonConfirmable, Kind::NonConfirmable));
    // RFC 7252 s4.4: an ID does not come again.
    assert_ne!(refusals[1].1, refusals[2].1);
    assert!(server.layer.peers.get(&NEWCOMER).is_none(), "nothing is kept of it");
}

#[test]
fn a_refusal_without_a_place_stays_within_what_its_request_has_earned() {
    let config = Config { peers_max: 1, amplification_max: Some(1), ..Config::default() };
    let mut server = endpoint(config);
    hear(&mut server, PROVEN, &request(Kind::Confirmable, 1), T0);
    let mut get = request(Kind::Confirmable, 5);
    assert_eq!(sent(&hear(&mut server, NEWCOMER, &get, T0)), [], "the refusal is longer");
    assert_eq!(server.counters().withheld, 1);
    get.options.insert_path("/as-long-as-the-refusal");
    get.token = Token::from_number(1, 2);
    assert_eq!(sent(&hear(&mut server, NEWCOMER, &get, T0)).len(), 1);
}

/// A peer asks for something slow; the separate response to it.
fn separate_response(server: &mut Endpoint<u16>, id: u16, now: Instant) -> (Instant, Message) {
    let out = hear(server, NEWCOMER, &request(Kind::Confirmable, id), now);
    let exchange = exchange_of(&out).expect("there is room");
    let now = now + server.layer.config.ack_delay;
    server.handle(now, Input::Deadline).expect("never fails");
    outputs(server);
    let response = ResponseTemplate::new(Code::CONTENT);
    let input = Input::Respond { exchange, response, handle: Name::Application(Handle(1)) };
    server.handle(now, input).expect("acceptable");
    (now, sent(&outputs(server)).remove(0))
}

/// A peer registers; the next notification for it.
fn notification(server: &mut Endpoint<u16>, id: u16, now: Instant) -> Message {
    let get = request(Kind::Confirmable, id);
    let out = hear(server, NEWCOMER, &get, now);
    let exchange = exchange_of(&out).expect("there is room");
    let (response, handle) = (ResponseTemplate::new(Code::CONTENT), Name::Application(Handle(1)));
    let input = Input::Respond { exchange, response: response.clone(), handle };
    server.handle(now, input).expect("acceptable");
    outputs(server);
    let (peer, token, confirmable) = (NEWCOMER, get.token, true);
    let input = Input::Notify { peer, token, response, confirmable, handle };
    server.handle(now, input).expect("acceptable");
    sent(&outputs(server)).remove(0)
}

fn acknowledge(server: &mut Endpoint<u16>, id: MessageId, now: Instant) {
    let ack = Message::new(Kind::Acknowledgement, Code::EMPTY, id);
    hear(server, NEWCOMER, &ack, now);
}

#[test]
fn acknowledgements_forged_before_a_message_leaves_forbid_no_proof_by_its_own() {
    let mut server = careful(Config::default());
    hear(&mut server, NEWCOMER, &request(Kind::Confirmable, 1), T0);
    (0..100).for_each(|id| acknowledge(&mut server, MessageId(id), T0));
    let answer = notification(&mut server, 2, T0);
    acknowledge(&mut server, answer.message_id, T0);
    assert!(server.is_proven(NEWCOMER));
}

#[test]
fn an_acknowledgement_of_a_separate_response_proves_nothing() {
    let mut server = careful(Config::default());
    let (now, answer) = separate_response(&mut server, 1, T0);
    acknowledge(&mut server, answer.message_id, now);
    assert!(!server.is_proven(NEWCOMER));
}

#[test]
fn a_proof_ages_and_each_notification_that_is_acknowledged_renews_it() {
    let mut server = careful(Config::default());
    let hours = |hours: u64| Instant::from_secs(hours * 3600);
    for time in [0, 24, 60] {
        let answer = notification(&mut server, time as u16, hours(time));
        acknowledge(&mut server, answer.message_id, hours(time));
        assert!(server.is_proven(NEWCOMER), "after {time} h");
    }
    hear(&mut server, NEWCOMER, &request(Kind::NonConfirmable, 100), hours(107));
    assert!(server.is_proven(NEWCOMER));
    let mut server = careful(Config::default());
    let answer = notification(&mut server, 1, hours(0));
    acknowledge(&mut server, answer.message_id, hours(0));
    hear(&mut server, NEWCOMER, &request(Kind::NonConfirmable, 2), hours(48));
    assert!(!server.is_proven(NEWCOMER));
}

#[test]
fn one_wrong_acknowledgement_is_too_many() {
    let mut server = careful(Config::default());
    let answer = notification(&mut server, 1, T0);
    acknowledge(&mut server, MessageId(answer.message_id.0.wrapping_add(1)), T0);
    acknowledge(&mut server, answer.message_id, T0);
    assert!(!server.is_proven(NEWCOMER));
}

#[test]
fn among_many_guesses_the_right_one_proves_nothing_and_does_not_give_the_next_away() {
    let mut server = careful(Config::default());
    let (now, answer) = (T0, notification(&mut server, 1, T0));
    for guess in 1..100 {
        acknowledge(&mut server, MessageId(answer.message_id.0.wrapping_sub(guess)), now);
    }
    acknowledge(&mut server, answer.message_id, now);
    assert!(!server.is_proven(NEWCOMER), "it may have been guessed");
    let next = notification(&mut server, 2, now);
    assert_ne!(next.message_id.0, answer.message_id.0.wrapping_add(1), "it follows from nothing");
    acknowledge(&mut server, next.message_id, now);
    assert!(server.is_proven(NEWCOMER), "its peer has read it");
}

#[test]
fn message_ids_skipped_after_a_guess_are_not_used_again_within_their_lifetime() {
    let mut server = careful(Config::default());
    let now = T0;
    let mut ids = std::collections::BTreeSet::new();
    for round in 1..=100 {
        let answer = notification(&mut server, round, now);
        assert!(ids.insert(answer.message_id), "in round {round}");
        (1..100).for_each(|guess| {
            acknowledge(&mut server, MessageId(answer.message_id.0.wrapping_sub(guess)), now);
        });
        acknowledge(&mut server, answer.message_id, now);
    }
    assert!(!server.is_proven(NEWCOMER));
    assert!(server.message_ids_left(NEWCOMER, now) > 0, "the peer is still answered");
}

#[test]
fn a_request_that_cannot_be_answered_for_want_of_a_message_id_leaves_its_place() {
    let mut server = careful(Config { incoming_max: 4, ..Config::default() });
    for id in 0..=crate::params::MESSAGE_IDS + 8 {
        let out = hear(&mut server, NEWCOMER, &request(Kind::NonConfirmable, id as u16), T0);
        if let Some(exchange) = exchange_of(&out) {
            let (response, handle) = (ResponseTemplate::new(Code::CONTENT), Name::NONE);
            let _full = server.handle(T0, Input::Respond { exchange, response, handle });
            outputs(&mut server);
        }
    }
    assert_eq!(server.message_ids_left(NEWCOMER, T0), 0);
    let out = hear(&mut server, PROVEN, &request(Kind::Confirmable, 1), T0);
    assert!(exchange_of(&out).is_some(), "another peer is served");
}
