//! Requests, responses, duplicates and bounds (RFC 7252 s4, s5).

use std::vec::Vec;

use lowmesh_units::Duration;
use lowmesh_wire::coap::{Code, Kind, Message, MessageId, Token};

use super::super::*;
use super::*;
use crate::event::Purpose;
use crate::params::{ACK_RANDOM_FACTOR, NON_TIMEOUT};

#[test]
fn a_piggybacked_response_ends_the_request_with_its_round_trip_time() {
    let mut client = endpoint(Config::default());
    let get = sent(&ask(&mut client, 1, T0)).remove(0);
    assert_eq!((get.kind, get.token.len()), (Kind::Confirmable, 4));
    let now = Instant::from_millis(300);
    let out = receive(&mut client, &response_to(&get, Kind::Acknowledgement), now);
    let Some(Output::Response { handle, rtt, retransmissions, .. }) = out.first() else {
        panic!("{out:?}")
    };
    assert_eq!((number(*handle), rtt.as_millis(), *retransmissions), (1, 300, 0));
    assert_eq!((client.open(), client.next_deadline()), (0, None));
}

#[test]
fn a_silent_peer_gets_five_copies_and_then_the_request_has_failed() {
    let mut client = endpoint(Config::default());
    let first = sent(&ask(&mut client, 1, T0)).remove(0);
    let (mut last, mut waits) = (T0, Vec::new());
    for copy in 1..=4 {
        let (now, out) = wake(&mut client);
        assert_eq!(sent(&out), core::slice::from_ref(&first), "copy {copy} is the same message");
        assert!(matches!(out[0], Output::Send { copy: number, .. } if number == copy));
        waits.push(now.since(last).as_nanos());
        last = now;
    }
    assert!(waits.windows(2).all(|pair| pair[1] == 2 * pair[0]), "{waits:?}");
    let (end, out) = wake(&mut client);
    assert_eq!(failures(&out), [(1, DropReason::GaveUp)]);
    assert!(end.since(T0) < crate::Lifetimes::default().transmit_wait);
    assert_eq!((client.open(), client.next_deadline()), (0, None));
}

/// A timer that starts at 20 s.
fn slow() -> Config {
    let congestion =
        CongestionControl::default().with_ack_timeout(lowmesh_units::Duration::from_secs(20));
    Config { congestion, ..Config::default() }
}

#[test]
fn a_slow_timer_sends_all_four_retransmissions_too() {
    let mut client = endpoint(slow());
    ask(&mut client, 1, T0);
    for copy in 1..=4 {
        assert_eq!(sent(&wake(&mut client).1).len(), 1, "copy {copy}");
    }
    let (end, out) = wake(&mut client);
    assert_eq!(failures(&out), [(1, DropReason::GaveUp)]);
    assert!(end.since(T0) <= crate::Lifetimes::of(slow().congestion.ack_timeout, 4).transmit_wait);
}

#[test]
fn nstart_holds_the_second_request_back_until_the_first_is_answered() {
    let mut client = endpoint(Config::default());
    let first = sent(&ask(&mut client, 1, T0)).remove(0);
    assert!(ask(&mut client, 2, T0).is_empty());
    assert_eq!((client.open(), client.queued()), (2, 1));
    let out = receive(&mut client, &response_to(&first, Kind::Acknowledgement), T0);
    assert!(has_response(&out, 1));
    let second = sent(&out).remove(0);
    assert_ne!((second.message_id, second.token), (first.message_id, first.token));
    assert_eq!(client.queued(), 0);
}

#[test]
fn other_peers_do_not_wait_for_a_silent_one() {
    let mut client = endpoint(Config::default());
    ask(&mut client, 1, T0);
    let message = RequestTemplate::get("/t");
    client
        .handle(T0, Input::Request { peer: 8, message, handle: Name::Application(Handle(2)) })
        .expect("accepted");
    assert_eq!(sent(&outputs(&mut client)).len(), 1);
}

#[test]
fn a_full_queue_fails_the_request_that_does_not_fit() {
    let mut client = endpoint(Config { queue_max: 2, ..Config::default() });
    for handle in 1..=3 {
        assert_eq!(failures(&ask(&mut client, handle, T0)), []);
    }
    assert_eq!(failures(&ask(&mut client, 4, T0)), [(4, DropReason::QueueFull)]);
    assert_eq!(client.open(), 3);
}

#[test]
fn an_empty_ack_stops_the_copies_and_the_separate_response_ends_the_request() {
    let mut client = endpoint(Config::default());
    let get = sent(&ask(&mut client, 1, T0)).remove(0);
    let ack = Message::new(Kind::Acknowledgement, Code::EMPTY, get.message_id);
    let out = receive(&mut client, &ack, Instant::from_millis(50));
    assert!(matches!(out[0], Output::Acknowledged { handle: Name::Application(Handle(1)), .. }));
    let mut content = response_to(&get, Kind::Confirmable);
    content.message_id = MessageId(0x4444);
    let out = receive(&mut client, &content, Instant::from_secs(5));
    assert!(has_response(&out, 1));
    let acks = [Message::new(Kind::Acknowledgement, Code::EMPTY, MessageId(0x4444))];
    assert_eq!(sent(&out), acks);
    let again = receive(&mut client, &content, Instant::from_secs(8));
    assert_eq!(sent(&again), acks, "a copy of the response is acknowledged again");
    assert!(!has_response(&again, 1));
}

#[test]
fn a_separate_response_before_the_ack_ends_the_request_without_an_rtt_sample() {
    let mut client = endpoint(with_timer("cocoa"));
    let get = sent(&ask(&mut client, 1, T0)).remove(0);
    let mut content = response_to(&get, Kind::NonConfirmable);
    content.message_id = MessageId(0x4444);
    assert!(has_response(&receive(&mut client, &content, Instant::from_secs(1)), 1));
    assert_eq!(client.congestion(PEER).expect("known").estimate.srtt, None);
    let late = Message::new(Kind::Acknowledgement, Code::EMPTY, get.message_id);
    assert_eq!(discards(&receive(&mut client, &late, T0)), [Discard::Unmatched]);
}

#[test]
fn the_round_trip_time_of_an_acknowledged_request_reaches_the_timer_of_its_peer() {
    let mut client = endpoint(with_timer("cocoa"));
    let get = sent(&ask(&mut client, 1, T0)).remove(0);
    receive(&mut client, &response_to(&get, Kind::Acknowledgement), Instant::from_secs(1));
    let snapshot = client.congestion(PEER).expect("known").estimate;
    assert_eq!(snapshot.srtt, Some(Duration::from_secs(1)));
    assert_eq!(snapshot.rto, Duration::from_millis(2500));
}

#[test]
fn a_reset_fails_the_request_at_once() {
    let mut client = endpoint(Config::default());
    let get = sent(&ask(&mut client, 1, T0)).remove(0);
    let reset = Message::new(Kind::Reset, Code::EMPTY, get.message_id);
    assert_eq!(failures(&receive(&mut client, &reset, T0)), [(1, DropReason::Reset)]);
    assert_eq!(client.open(), 0);
}

#[test]
fn a_response_with_the_right_message_id_and_a_wrong_token_is_ignored() {
    let mut client = endpoint(Config::default());
    let get = sent(&ask(&mut client, 1, T0)).remove(0);
    let mut forged = response_to(&get, Kind::Acknowledgement);
    forged.token = lowmesh_wire::coap::Token::EMPTY;
    assert_eq!(discards(&receive(&mut client, &forged, T0)), [Discard::Unmatched]);
    assert_eq!(client.open(), 1);
}

#[test]
fn a_confirmable_response_to_nothing_is_rejected_with_reset() {
    let mut client = endpoint(Config::default());
    let stray = Message::new(Kind::Confirmable, Code::CONTENT, MessageId(9));
    let out = receive(&mut client, &stray, T0);
    assert_eq!(sent(&out), [Message::new(Kind::Reset, Code::EMPTY, MessageId(9))]);
    let stray = Message::new(Kind::NonConfirmable, Code::CONTENT, MessageId(10));
    assert_eq!(sent(&receive(&mut client, &stray, T0)), []);
}

#[test]
fn an_unconfirmed_request_is_sent_once_and_fails_when_no_response_comes() {
    let mut client = endpoint(Config::default());
    let message = RequestTemplate::get("/t").non_confirmable();
    client
        .handle(T0, Input::Request { peer: PEER, message, handle: Name::Application(Handle(1)) })
        .expect("accepted");
    let get = sent(&outputs(&mut client)).remove(0);
    assert_eq!(get.kind, Kind::NonConfirmable);
    let (now, out) = wake(&mut client);
    assert!(now < T0 + NON_TIMEOUT.mul_f64(ACK_RANDOM_FACTOR));
    assert_eq!((failures(&out), sent(&out)), (vec![(1, DropReason::GaveUp)], vec![]));
}

#[test]
fn an_unreachable_peer_fails_what_is_on_its_way_and_what_waits() {
    let mut client = endpoint(Config::default());
    for handle in 1..=3 {
        ask(&mut client, handle, T0);
    }
    client.handle(T0, Input::Unreachable { peer: PEER }).expect("never fails");
    let out = outputs(&mut client);
    let no_route = |handle| (handle, DropReason::NoRoute);
    assert_eq!(failures(&out), [no_route(1), no_route(2), no_route(3)]);
    assert_eq!(sent(&out), []);
    assert_eq!((client.open(), client.queued(), client.next_deadline()), (0, 0, None));
}

#[test]
fn a_new_session_has_no_messages_requests_or_answers_of_the_old_one() {
    let mut server = endpoint(Config::default());
    let answered = receive(&mut server, &request(Kind::Confirmable, 5), T0);
    respond(&mut server, &answered, T0);
    receive(&mut server, &request(Kind::Confirmable, 6), T0);
    ask(&mut server, 1, T0);
    let ended = Input::SessionEnded { peer: PEER, reopens: false };
    server.handle(T0, ended).expect("never fails");
    let out = outputs(&mut server);
    assert_eq!((failures(&out), sent(&out)), (vec![(1, DropReason::NoRoute)], vec![]));
    assert_eq!((server.open(), server.next_deadline()), (0, None));
    for id in [5, 6] {
        let out = receive(&mut server, &request(Kind::Confirmable, id), T0);
        assert!(matches!(out[..], [Output::Request { .. }]), "{id}: {out:?}");
    }
}

#[test]
fn a_quick_answer_travels_in_the_ack_and_again_for_each_duplicate() {
    let mut server = endpoint(Config::default());
    let get = request(Kind::Confirmable, 5);
    let asked = receive(&mut server, &get, T0);
    let out = respond(&mut server, &asked, T0);
    let ack = sent(&out).remove(0);
    assert_eq!(
        (ack.kind, ack.message_id, &ack.token),
        (Kind::Acknowledgement, MessageId(5), &get.token)
    );
    let again = receive(&mut server, &get, Instant::from_secs(3));
    assert_eq!((sent(&again), discards(&again)), (vec![ack.clone()], vec![Discard::Duplicate]));
    let copies = |output: &Output<u16>| {
        matches!(
            output,
            Output::Send {
                copy: 1,
                handle: Name::Application(Handle(99)),
                purpose: Purpose::Response,
                ..
            }
        )
    };
    assert!(again.iter().any(copies), "{again:?}");
    assert_eq!(again.len(), 2, "the application is not asked again");
}

#[test]
fn a_slow_answer_is_preceded_by_an_empty_ack_and_confirmed_by_itself() {
    let mut server = endpoint(Config::default());
    let get = request(Kind::Confirmable, 5);
    let asked = receive(&mut server, &get, T0);
    let (now, out) = wake(&mut server);
    assert_eq!(now, T0 + Config::default().ack_delay);
    assert_eq!(sent(&out), [Message::new(Kind::Acknowledgement, Code::EMPTY, MessageId(5))]);
    let separate = sent(&respond(&mut server, &asked, now)).remove(0);
    assert_eq!((separate.kind, separate.token), (Kind::Confirmable, get.token));
    assert!(!server.is_idle());
    let ack = Message::new(Kind::Acknowledgement, Code::EMPTY, separate.message_id);
    let out = receive(&mut server, &ack, now);
    assert!(matches!(out[0], Output::Acknowledged { handle: Name::Application(Handle(99)), .. }));
    assert_eq!((server.is_idle(), server.next_deadline()), (true, None));
}

#[test]
fn a_second_answer_to_the_same_request_is_refused() {
    let mut server = endpoint(Config::default());
    let asked = receive(&mut server, &request(Kind::Confirmable, 5), T0);
    respond(&mut server, &asked, T0);
    let Some(Output::Request { exchange, .. }) = asked.first() else { panic!("{asked:?}") };
    let response = ResponseTemplate::new(Code::CONTENT);
    let input =
        Input::Respond { exchange: *exchange, response, handle: Name::Application(Handle(1)) };
    assert!(server.handle(T0, input).is_err());
    assert!(outputs(&mut server).is_empty());
}

#[test]
fn an_unconfirmed_request_is_answered_unconfirmed_and_its_duplicate_in_silence() {
    let mut server = endpoint(Config::default());
    let get = request(Kind::NonConfirmable, 5);
    let asked = receive(&mut server, &get, T0);
    let answer = sent(&respond(&mut server, &asked, T0)).remove(0);
    assert_eq!((answer.kind, &answer.token), (Kind::NonConfirmable, &get.token));
    let again = receive(&mut server, &get, T0);
    assert_eq!((sent(&again).len(), discards(&again)), (0, vec![Discard::Duplicate]));
}

#[test]
fn the_same_message_id_is_a_new_request_after_the_exchange_lifetime() {
    let mut server = endpoint(Config::default());
    let get = request(Kind::Confirmable, 5);
    let asked = receive(&mut server, &get, T0);
    respond(&mut server, &asked, T0);
    let out = receive(&mut server, &get, T0 + crate::params::EXCHANGE_LIFETIME);
    assert!(matches!(out[0], Output::Request { .. }), "{out:?}");
}

#[test]
fn with_a_slow_timer_duplicates_are_known_for_longer() {
    let lifetime = crate::Lifetimes::of(slow().congestion.ack_timeout, 4).exchange;
    let slow_for_one = || {
        let mut server = endpoint(Config::default());
        server.choose_congestion_control(PEER, Some(slow().congestion), T0).expect("possible");
        server
    };
    for mut server in [endpoint(slow()), slow_for_one()] {
        let get = request(Kind::Confirmable, 5);
        let asked = receive(&mut server, &get, T0);
        respond(&mut server, &asked, T0);
        let late = T0 + lifetime - lowmesh_units::Duration::from_secs(1);
        assert_eq!(discards(&receive(&mut server, &get, late)), [Discard::Duplicate]);
        let out = receive(&mut server, &get, late + lifetime);
        assert!(matches!(out[0], Output::Request { .. }), "{out:?}");
    }
}

#[test]
fn a_choice_that_is_taken_back_shortens_no_lifetime() {
    let mut server = endpoint(Config::default());
    receive(&mut server, &request(Kind::NonConfirmable, 5), T0);
    let widest = crate::Lifetimes::of(slow().congestion.ack_timeout, 4);
    for chosen in [Some(slow().congestion), None] {
        server.choose_congestion_control(PEER, chosen, T0).expect("possible");
        assert_eq!(server.lifetimes(PEER), widest);
    }
    assert_eq!(server.widest_lifetimes(), widest);
}

#[test]
fn a_server_without_room_says_when_to_ask_again() {
    for config in [
        Config { incoming_max: 1, ..Config::default() },
        Config { incoming_per_source: 1, ..Config::default() },
    ] {
        let mut server = endpoint(config);
        let first = receive(&mut server, &request(Kind::Confirmable, 1), T0);
        for kind in [Kind::Confirmable, Kind::NonConfirmable] {
            let out = receive(&mut server, &request(kind, 2 + kind as u16), T0);
            let answer = sent(&out).remove(0);
            assert_eq!(answer.code, Code::SERVICE_UNAVAILABLE);
            assert_eq!(answer.options.get_uint(OptionNumber::MAX_AGE), Some(5));
            assert_eq!(discards(&out), [Discard::Overloaded]);
        }
        respond(&mut server, &first, T0);
        let out = receive(&mut server, &request(Kind::Confirmable, 9), T0);
        assert!(matches!(out[0], Output::Request { .. }));
    }
}

#[test]
fn one_peer_with_unanswered_requests_leaves_room_for_the_next() {
    let mut server = endpoint(Config { incoming_per_source: 3, ..Config::default() });
    for id in 0..10 {
        receive(&mut server, &request(Kind::Confirmable, id), T0);
    }
    let bytes = request(Kind::Confirmable, 1).to_vec();
    server.handle(T0, Input::Datagram { from: PEER + 1, bytes: &bytes }).expect("never fails");
    assert!(matches!(outputs(&mut server)[..], [Output::Request { .. }]));
}

#[test]
fn an_acknowledged_request_keeps_its_place_until_its_answer_is_acknowledged() {
    let config = Config { incoming_max: 1, open_max: 1, queue_max: 0, ..Config::default() };
    let mut server = endpoint(config);
    // An own request takes the only open exchange, and the window.
    ask(&mut server, 1, T0);
    let asked = receive(&mut server, &request(Kind::Confirmable, 5), T0);
    let (now, _) = wake(&mut server);
    assert!(
        !respond(&mut server, &asked, now).iter().any(|one| matches!(one, Output::Failed { .. }))
    );
    let refused = receive(&mut server, &request(Kind::Confirmable, 6), now);
    assert_eq!(sent(&refused)[0].code, Code::SERVICE_UNAVAILABLE);
    let out = {
        let input = Input::Cancel { handle: Name::Application(Handle(1)) };
        server.handle(now, input).expect("acceptable");
        outputs(&mut server)
    };
    let separate = sent(&out).remove(0);
    assert_eq!((separate.kind, separate.code), (Kind::Confirmable, Code::CONTENT));
    let ack = Message::new(Kind::Acknowledgement, Code::EMPTY, separate.message_id);
    receive(&mut server, &ack, now);
    let out = receive(&mut server, &request(Kind::Confirmable, 7), now);
    assert!(matches!(out[0], Output::Request { .. }));
}

#[test]
fn a_destination_that_is_silent_leaves_the_queues_of_the_others_alone() {
    let config = Config { queue_max: 2, ..Config::default() };
    let mut client = endpoint(config);
    let mut put = |peer: u16, name: u64| {
        let message = RequestTemplate::get("/t");
        let input = Input::Request { peer, message, handle: Name::Application(Handle(name)) };
        client.handle(T0, input).expect("acceptable");
        outputs(&mut client)
    };
    let failed = |out: &[Output<u16>]| out.iter().any(|one| matches!(one, Output::Failed { .. }));
    assert!((0..3).all(|name| !failed(&put(1, name))));
    assert!(failed(&put(1, 3)), "one on its way and two that wait");
    assert!(!failed(&put(2, 4)));
}

#[test]
fn memory_for_duplicates_stays_in_its_bounds_and_says_what_it_forgot() {
    let config = Config { dedup_per_peer: 3, dedup_total: 4, ..Config::default() };
    let mut server = endpoint(config);
    for id in 0..10 {
        let asked = receive(&mut server, &request(Kind::Confirmable, id), T0);
        respond(&mut server, &asked, T0);
    }
    assert_eq!((server.layer.remembered.total(), server.counters().forgotten_early), (3, 7));
    let newest = receive(&mut server, &request(Kind::Confirmable, 9), T0);
    assert_eq!(discards(&newest), [Discard::Duplicate]);
}

#[test]
fn a_full_table_of_peers_forgets_the_one_idle_longest_and_never_a_busy_one() {
    let mut client = endpoint(Config { peers_max: 2, ..Config::default() });
    ask(&mut client, 1, T0);
    for peer in 20..30 {
        let mut bytes = Vec::new();
        request(Kind::NonConfirmable, peer).emit(&mut bytes);
        client.handle(T0, Input::Datagram { from: peer, bytes: &bytes }).expect("never fails");
        let asked = outputs(&mut client);
        respond(&mut client, &asked, T0);
    }
    assert_eq!(client.layer.peers.iter().map(|(peer, _)| *peer).collect::<Vec<_>>(), [PEER, 29]);
    assert_eq!(client.layer.remembered.total(), 1);
}

#[test]
fn a_flood_of_strangers_never_pushes_out_a_busy_peer_nor_grows_the_table() {
    let mut client = endpoint(Config { peers_max: 50, incoming_max: 5000, ..Config::default() });
    ask(&mut client, 1, T0);
    let ping = request(Kind::NonConfirmable, 1).to_vec();
    for stranger in 0..5000_u16 {
        let from = 100 + stranger.wrapping_mul(7919) % 60_000;
        client.handle(T0, Input::Datagram { from, bytes: &ping }).expect("never fails");
        outputs(&mut client);
    }
    assert!(client.layer.peers.get(&PEER).is_some());
    assert_eq!((client.layer.peers.len(), client.layer.remembered.total()), (50, 49));
}

#[test]
fn more_messages_than_there_are_ids_are_refused_and_nothing_changes() {
    let mut client = endpoint(Config::default());
    let peer = |client: &mut Endpoint<u16>| {
        let get = sent(&ask(client, 1, T0)).remove(0);
        receive(client, &response_to(&get, Kind::Acknowledgement), T0)
    };
    for _ in 0..crate::params::MESSAGE_IDS {
        assert!(has_response(&peer(&mut client), 1));
    }
    let message = RequestTemplate::get("/t");
    let refused = client
        .handle(T0, Input::Request { peer: PEER, message, handle: Name::Application(Handle(2)) })
        .expect_err("all IDs are in use");
    assert!(refused.why().contains("65536"));
    assert_eq!((client.open(), outputs(&mut client).len()), (0, 0));
}

#[test]
fn a_request_without_a_method_is_refused() {
    let mut client = endpoint(Config::default());
    let message = RequestTemplate::new(Code::CONTENT, "/t");
    let input = Input::Request { peer: PEER, message, handle: Name::Application(Handle(1)) };
    assert!(client.handle(T0, input).is_err());
}

#[test]
fn a_token_of_the_application_is_its_own_from_the_queue_to_the_answer() {
    let mut endpoint = endpoint(Config::default());
    ask(&mut endpoint, 1, T0);
    let message = || RequestTemplate::get("/t").with_token(Token::from_number(0, 4));
    let request = |handle| Input::Request { peer: PEER, message: message(), handle };
    // NSTART 1: it waits behind the first.
    endpoint.handle(T0, request(Name::Application(Handle(2)))).expect("acceptable");
    let refused = endpoint.handle(T0, request(Name::Application(Handle(3)))).expect_err("in use");
    assert_eq!(refused.what(), "token");
    endpoint
        .handle(T0, Input::Cancel { handle: Name::Application(Handle(1)) })
        .expect("never fails");
    let sent = sent(&outputs(&mut endpoint)).remove(0);
    assert_eq!(sent.token, Token::from_number(0, 4));
    receive(&mut endpoint, &response_to(&sent, Kind::Acknowledgement), T0);
    endpoint.handle(T0, request(Name::Application(Handle(4)))).expect("free again");
}

#[test]
fn a_token_of_more_than_eight_octets_is_refused() {
    let mut endpoint = endpoint(Config::default());
    let token = Token::new(&[1; 9]).expect("an extended token");
    let message = RequestTemplate::get("/t").with_token(token);
    let input = Input::Request { peer: PEER, message, handle: Name::Application(Handle(1)) };
    assert!(endpoint.handle(T0, input).is_err());
    assert_eq!(endpoint.open(), 0);
}

/// How long a NON request waits in vain: from `now`, when it leaves, to its failure, whose time `now` becomes.
fn waits(client: &mut Endpoint<u16>, now: &mut Instant) -> Duration {
    let message = RequestTemplate::get("/t").non_confirmable();
    let handle = Name::Application(Handle(1));
    client.handle(*now, Input::Request { peer: PEER, message, handle }).expect("accepted");
    assert_eq!(sent(&outputs(client)).len(), 1);
    let (later, out) = wake(client);
    assert_eq!(failures(&out), [(1, DropReason::GaveUp)]);
    let left = core::mem::replace(now, later);
    later.since(left)
}

/// RFC 7252 s4.7 leaves open when a client stops to expect the response to a NON, and bounds what it sends to a peer that
/// does not answer.
#[test]
fn a_lost_non_request_holds_its_sender_for_seconds_and_a_silent_peer_for_longer() {
    let (mut client, mut now) = (endpoint(Config::default()), T0);
    let usual = NON_TIMEOUT..=NON_TIMEOUT.mul_f64(ACK_RANDOM_FACTOR);
    let first: Vec<Duration> = (0..5).map(|_| waits(&mut client, &mut now)).collect();
    assert!(first.iter().all(|wait| usual.contains(wait)), "{first:?}");
    assert!(first.windows(2).all(|two| two[0] != two[1]), "the factor is random: {first:?}");
    // 4 octets of header, 4 of token, 2 of path, at one octet a second.
    assert_eq!(waits(&mut client, &mut now), Duration::from_secs(10));
    let message = RequestTemplate::get("/t").non_confirmable();
    let handle = Name::Application(Handle(2));
    client.handle(now, Input::Request { peer: PEER, message, handle }).expect("accepted");
    let get = sent(&outputs(&mut client)).remove(0);
    receive(&mut client, &response_to(&get, Kind::NonConfirmable), now);
    assert!(usual.contains(&waits(&mut client, &mut now)), "the response shows that it is there");
}
