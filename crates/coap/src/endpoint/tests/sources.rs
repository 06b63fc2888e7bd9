//! One machine with many ports: whose requests it keeps from being taken.

use super::*;
use crate::endpoint::shares::Share;
use crate::params::{SEPARATE_GRACE, SHARES_KEPT};

/// An address and a port.
type Port = (u8, u16);

const GREEDY: u8 = 1;
const OTHER: u8 = 2;

fn server(config: Config) -> Endpoint<Port> {
    let rng = Rng::stream(Seed(3), NodeId(3), Stream::Coap);
    Endpoint::new(config, rng).expect("possible")
}

/// A request comes: the exchange, unless it is refused or known.
fn hear(server: &mut Endpoint<Port>, from: Port, id: u16) -> Option<ExchangeId> {
    hear_at(server, from, id, T0)
}

fn hear_at(server: &mut Endpoint<Port>, from: Port, id: u16, now: Instant) -> Option<ExchangeId> {
    let bytes = request(Kind::Confirmable, id).to_vec();
    server.handle(now, Input::Datagram { from, bytes: &bytes }).expect("never fails");
    let mut exchange = None;
    while let Some(output) = server.poll_output() {
        if let Output::Request { exchange: one, .. } = output {
            exchange = Some(one);
        }
    }
    exchange
}

#[test]
fn all_ports_of_a_machine_have_one_share_of_the_unanswered_requests() {
    let mut server =
        server(Config { incoming_max: 24, incoming_per_source: 6, ..Config::default() });
    let taken: Vec<_> = (1..=40).filter_map(|port| hear(&mut server, (GREEDY, port), 1)).collect();
    assert_eq!(taken.len(), 6);
    assert!(hear(&mut server, (OTHER, 1), 1).is_some());
    server.handle(T0, Input::Decline { exchange: taken[0] }).expect("acceptable");
    assert!(hear(&mut server, (GREEDY, 41), 1).is_some(), "a place is free again");
    assert!(hear(&mut server, (GREEDY, 42), 1).is_none());
    // However many are quick: each leaves its place before the next one comes.
    for port in 1..=40 {
        let exchange = hear(&mut server, (OTHER, port), 2).expect("answered at once");
        server.handle(T0, Input::Decline { exchange }).expect("acceptable");
    }
    assert_eq!(server.layer.shares.all()[&(OTHER, 0)], Share { all: 1, unproven: 0 });
}

#[test]
fn forged_ports_of_a_machine_leave_it_half_of_its_share() {
    let config = Config { incoming_per_source: 6, amplification_max: Some(3), ..Config::default() };
    let mut server = server(config);
    let forged: Vec<_> = (10..30).filter_map(|port| hear(&mut server, (OTHER, port), 1)).collect();
    assert_eq!(forged.len(), 3);
    server.prove((OTHER, 1), T0);
    let own: Vec<_> = (1..=9).filter_map(|id| hear(&mut server, (OTHER, 1), id)).collect();
    assert_eq!(own.len(), 3);
    // A proof moves what the peer has.
    server.prove((OTHER, 10), T0);
    assert_eq!(server.layer.shares.all()[&(OTHER, 0)], Share { all: 6, unproven: 2 });
    for exchange in forged.into_iter().chain(own) {
        server.handle(T0, Input::Decline { exchange }).expect("acceptable");
    }
    assert!(server.layer.shares.all().values().all(|share| *share == Share::default()));
}

/// The request of a peer is acknowledged, and answered with a separate response that nobody acknowledges.
fn leave_unacknowledged(server: &mut Endpoint<Port>, from: Port) {
    let exchange = hear(server, from, 1).expect("there is room");
    let (now, handle) = (T0 + server.layer.config.ack_delay, Name::NONE);
    server.handle(now, Input::Deadline).expect("never fails");
    let response = ResponseTemplate::new(Code::CONTENT);
    server.handle(now, Input::Respond { exchange, response, handle }).expect("acceptable");
    while server.poll_output().is_some() {}
}

#[test]
fn answers_of_the_machine_with_most_give_way_first() {
    let config = Config { incoming_max: 12, incoming_per_source: 12, ..Config::default() };
    let mut server = server(config);
    leave_unacknowledged(&mut server, (OTHER, 1));
    (1..=5).for_each(|port| leave_unacknowledged(&mut server, (GREEDY, port)));
    (1..=2).for_each(|port| leave_unacknowledged(&mut server, (3, port)));
    let held = |server: &Endpoint<Port>| {
        [GREEDY, OTHER, 3].map(|machine| server.own.separate.of(machine.network()))
    };
    assert_eq!(held(&server), [3, 1, 2]);
    // Where requests take all places, those give way that have had their time.
    let later = T0 + server.layer.config.ack_delay + SEPARATE_GRACE;
    for id in 1..=8 {
        let exchange = hear_at(&mut server, (4, 1), id, later);
        assert!(exchange.is_some(), "request {id} of a fourth machine");
    }
    assert_eq!(held(&server), [1, 1, 2]);
}

#[test]
fn answers_that_nobody_acknowledges_give_way_to_requests_of_their_own_machine() {
    let mut server =
        server(Config { incoming_max: 24, incoming_per_source: 3, ..Config::default() });
    (1..=3).for_each(|port| leave_unacknowledged(&mut server, (GREEDY, port)));
    assert!(hear(&mut server, (GREEDY, 4), 1).is_none(), "they have their time");
    let later = T0 + server.layer.config.ack_delay + SEPARATE_GRACE;
    assert!(hear_at(&mut server, (GREEDY, 4), 2, later).is_some());
}

#[test]
fn sources_that_have_nothing_open_keep_few_entries() {
    let mut server = server(Config::default());
    for machine in 0..200 {
        let exchange = hear(&mut server, (machine, 1), 1).expect("answered at once");
        server.handle(T0, Input::Decline { exchange }).expect("acceptable");
    }
    assert_eq!(server.layer.shares.all().len(), SHARES_KEPT);
}

#[test]
fn a_machine_whose_many_ports_say_little_each_forgets_before_one_that_says_more() {
    let config =
        Config { dedup_total: 150, dedup_per_peer: 64, peers_max: 64, ..Config::default() };
    let mut server = server(config);
    let mut executed = 0;
    let mut ask = |server: &mut Endpoint<Port>, from, id| {
        if let Some(exchange) = hear(server, from, id) {
            executed += 1;
            server.handle(T0, Input::Decline { exchange }).expect("acceptable");
        }
    };
    (0..20).for_each(|id| ask(&mut server, (OTHER, 1), id));
    for port in 1..=60 {
        (0..4).for_each(|id| ask(&mut server, (GREEDY, port), id));
    }
    assert_eq!((server.layer.remembered.total(), server.counters().forgotten_early), (150, 110));
    (0..20).for_each(|id| ask(&mut server, (OTHER, 1), id));
    assert_eq!(executed, 20 + 240, "a duplicate is not executed");
    let listed = server.layer.remembered.large();
    assert_eq!(listed, [(20, (OTHER, 0)), (128, (GREEDY, 0))]);
}

#[test]
fn a_machine_past_its_share_of_the_peers_displaces_its_own() {
    let mut server = server(Config { peers_max: 16, peers_per_source: 4, ..Config::default() });
    let ask = |server: &mut Endpoint<Port>, from| {
        let exchange = hear(server, from, 1)?;
        server.handle(T0, Input::Decline { exchange }).expect("acceptable");
        Some(exchange)
    };
    for port in 1..=3 {
        assert!(ask(&mut server, (OTHER, port)).is_some());
    }
    for port in 1..=100 {
        assert!(ask(&mut server, (GREEDY, port)).is_some(), "port {port}");
        assert!(server.layer.peers.of_source((GREEDY, 0)) <= 4);
    }
    assert_eq!((server.layer.peers.len(), server.layer.admission.strangers.len()), (7, 7));
    for port in 1..=3 {
        assert!(ask(&mut server, (OTHER, port)).is_none(), "it is known as a duplicate");
    }
}

#[test]
fn a_machine_whose_peers_are_all_busy_gets_no_more_and_another_does() {
    let mut server = server(Config { peers_max: 16, peers_per_source: 4, ..Config::default() });
    let taken = (1..=10).filter(|port| hear(&mut server, (GREEDY, *port), 1).is_some()).count();
    assert_eq!((taken, server.counters().overloaded), (4, 6));
    let others = (1..=4).filter(|port| hear(&mut server, (OTHER, *port), 1).is_some()).count();
    assert_eq!(others, 4);
}
