//! Pairs and triples of nodes that negotiate over a lossy link in virtual time.

use lowmesh_mac::tsch::cell::{CellKind, CellOptions, Placement};
use lowmesh_machine::Handle;
use lowmesh_registry::Registry;
use lowmesh_sixtop::functions::conformance::net::{Net, eui};
use lowmesh_sixtop::functions::msf::Msf;
use lowmesh_sixtop::functions::{Children, make};
use lowmesh_sixtop::params::{MsfParams, SFID_BMSF, SFID_MSF};
use lowmesh_sixtop::{Change, Event, Outcome, SixtopEvent};
use lowmesh_units::Duration;
use lowmesh_wire::sixp::{Body, Command, Header, Message, Response, ReturnCode};
use proptest::prelude::*;

const MINUTE: Duration = Duration::from_secs(60);

/// `count` nodes with the function called `name`.
fn network(count: usize, name: &str, loss: f64, seed: u64) -> Net {
    let choice = Registry::builtin().choose(name).expect("a built-in function");
    Net::new(count, loss, seed, || make(&choice, Children::Known))
}

#[test]
fn a_node_gets_one_cell_to_its_parent_and_msf_none_back() {
    let mut net = network(2, "msf", 0.0, 1);
    net.attach(1, None, 0);
    net.run_for(MINUTE);
    assert_eq!((net.tx(1, 0).len(), net.rx(1, 0).len()), (1, 0));
    assert_eq!(net.disagreements(), []);
}

#[test]
fn b_msf_has_a_cell_in_both_directions() {
    let mut net = network(2, "b-msf", 0.0, 1);
    net.attach(1, None, 0);
    net.run_for(MINUTE * 3);
    assert_eq!((net.tx(1, 0).len(), net.tx(0, 1).len()), (1, 1));
    assert_eq!(net.disagreements(), []);
}

#[test]
fn busy_cells_get_company_and_idle_ones_lose_it_down_to_one() {
    for (function, from, to) in [("msf", 1, 0), ("b-msf", 1, 0), ("b-msf", 0, 1)] {
        let mut net = network(2, function, 0.0, 2);
        net.attach(1, None, 0);
        net.flow(from, to, 0.9);
        net.run_for(MINUTE * 10);
        let many = net.tx(from, to).len();
        assert!(many > 3, "{function} {from}->{to}: {many}");
        assert_eq!(net.disagreements(), []);
        net.flow(from, to, 0.5);
        net.run_for(MINUTE * 10);
        let steady = net.tx(from, to).len();
        net.run_for(MINUTE * 10);
        assert_eq!(net.tx(from, to).len(), steady, "{function}: half use changes nothing");
        net.flow(from, to, 0.1);
        net.run_for(MINUTE * 60);
        assert_eq!(net.tx(from, to).len(), 1, "{function} {from}->{to}");
        assert_eq!(net.disagreements(), []);
    }
}

#[test]
fn msf_asks_for_receive_cells_when_the_parent_fills_the_auto_receive_cell() {
    let mut net = network(2, "msf", 0.0, 3);
    net.attach(1, None, 0);
    let auto = net.nodes[1].schedule.cells_in(1).next().expect("the auto-receive cell").id;
    net.run_for(MINUTE);
    for _ in 0..90 {
        net.tell(1, Event::Received { from: eui(0), cell: auto });
    }
    net.run_for(MINUTE * 2);
    assert_eq!(net.rx(1, 0).len(), 1);
    assert_eq!(net.disagreements(), []);
}

#[test]
fn a_new_parent_gets_as_many_cells_and_the_old_one_keeps_none() {
    for function in ["msf", "b-msf"] {
        let mut net = network(3, function, 0.0, 4);
        net.attach(2, None, 0);
        net.flow(2, 0, 0.9);
        net.run_for(MINUTE * 8);
        let before = net.tx(2, 0).len();
        assert!(before > 2);
        net.flow(2, 0, 0.5);
        net.run_for(MINUTE * 4);
        let before = net.tx(2, 0).len();
        net.tell(0, Event::ChildRemoved(eui(2)));
        net.attach(2, Some(0), 1);
        net.flow(2, 1, 0.5);
        net.run_for(MINUTE * 10);
        assert_eq!(net.tx(2, 1).len(), before, "{function}");
        let stale = [net.tx(2, 0), net.rx(2, 0), net.tx(0, 2), net.rx(0, 2)].concat();
        assert_eq!(stale, [], "{function}");
        assert_eq!(net.disagreements(), []);
    }
}

#[test]
fn a_parent_that_is_lost_without_another_is_cleared() {
    let mut net = network(2, "b-msf", 0.0, 5);
    net.attach(1, None, 0);
    net.run_for(MINUTE * 2);
    net.tell(1, Event::ParentChanged { old: Some(eui(0)), new: None });
    net.tell(0, Event::ChildRemoved(eui(1)));
    net.run_for(MINUTE * 8);
    assert_eq!([net.tx(1, 0), net.rx(1, 0), net.tx(0, 1), net.rx(0, 1)].concat(), []);
}

#[test]
fn a_cell_far_worse_than_the_best_is_moved() {
    let params = MsfParams { cells_used_high: 49, cells_elapsed_max: 50, ..MsfParams::MSF };
    // Deafness is another matter; here only the ratio should speak.
    let params = MsfParams { deaf_after: u32::MAX, cells_used_high: 40, ..params };
    let mut net = Net::new(2, 0.0, 6, || Box::new(Msf::new(params, Children::Known)));
    net.attach(1, None, 0);
    net.flow(1, 0, 1.0);
    net.run_for(MINUTE * 3);
    net.flow(1, 0, 0.75);
    let first = net.tx(1, 0)[0];
    let Placement::Fixed { slot, channel_offset } = first.placement else { panic!("fixed") };
    net.jammed = Some((slot, channel_offset));
    net.run_for(MINUTE * 20);
    assert!(net.tx(1, 0).len() > 1);
    assert!(net.tx(1, 0).iter().all(|c| c.placement != first.placement));
    let moved = |c: &Change| {
        matches!(c, Change::Ended { command: "RELOCATE", outcome: Outcome::Agreed(1), .. })
    };
    assert!(net.nodes[1].changes.iter().any(moved));
    assert_eq!(net.disagreements(), []);
}

#[test]
fn a_transmit_cell_that_nobody_listens_to_is_found_and_mended() {
    let mut net = network(2, "b-msf", 0.0, 7);
    net.attach(1, None, 0);
    net.flow(1, 0, 0.5);
    net.flow(0, 1, 0.5);
    net.run_for(MINUTE * 2);
    let lost = net.rx(0, 1)[0].id;
    net.nodes[0].schedule.remove(lost).expect("there");
    assert_ne!(net.disagreements(), []);
    net.run_for(MINUTE * 6);
    assert_eq!(net.disagreements(), []);
    assert_eq!((net.tx(1, 0).len(), net.tx(0, 1).len()), (1, 1));
}

#[test]
fn a_child_that_vanishes_leaves_no_cells_behind() {
    for function in ["msf", "b-msf"] {
        let mut net = network(2, function, 0.0, 8);
        net.attach(1, None, 0);
        net.run_for(MINUTE * 2);
        net.loss = 1.0;
        net.tell(0, Event::ChildRemoved(eui(1)));
        net.run_for(MINUTE * 30);
        assert_eq!([net.tx(0, 1), net.rx(0, 1)].concat(), [], "{function}");
    }
}

#[test]
fn a_guest_that_falls_silent_leaves_no_cells_behind() {
    let mut net = network(2, "msf", 0.0, 9);
    net.tell(1, Event::ParentChanged { old: None, new: Some(eui(0)) });
    net.run_for(MINUTE);
    assert_eq!(net.rx(0, 1).len(), 1);
    net.loss = 1.0;
    net.run_for(MINUTE * 30);
    assert_eq!(net.rx(0, 1), []);
}

#[test]
fn a_node_that_starts_again_gets_new_cells_and_the_old_ones_go() {
    let mut net = network(2, "b-msf", 0.0, 10);
    net.attach(1, None, 0);
    net.flow(1, 0, 0.5);
    net.run_for(MINUTE * 2);
    net.tell(1, Event::Desynchronised);
    assert_eq!(net.nodes[1].schedule.cells().count(), 0);
    net.tell(1, Event::Synchronised);
    net.attach(1, None, 0);
    net.run_for(MINUTE * 10);
    assert_eq!((net.tx(1, 0).len(), net.tx(0, 1).len()), (1, 1));
    assert_eq!(net.disagreements(), []);
}

#[test]
fn the_autonomous_transmit_cell_is_there_only_while_it_is_needed() {
    let mut net = network(2, "msf", 0.0, 11);
    let has_auto = |net: &Net| {
        let shared = CellOptions::TX.with(CellOptions::SHARED);
        let is = |c: &lowmesh_mac::tsch::cell::Cell| {
            c.kind == CellKind::Autonomous && c.options == shared && c.peer == Some(eui(0))
        };
        net.nodes[1].schedule.cells().any(is)
    };
    net.tell(1, Event::QueueBusy(eui(0)));
    assert!(has_auto(&net));
    net.tell(1, Event::QueueEmpty(eui(0)));
    assert!(!has_auto(&net));
    net.tell(1, Event::QueueBusy(eui(0)));
    net.attach(1, None, 0);
    net.run_for(MINUTE);
    assert!(!has_auto(&net), "the negotiated cell takes over");
    net.tell(1, Event::ParentChanged { old: Some(eui(0)), new: None });
    net.run_for(MINUTE);
    assert!(has_auto(&net), "without it the autonomous one is back");
}

/// What node 0 says to a request of node 1.
fn answer(net: &mut Net, message: &Message, version: u8) -> Option<ReturnCode> {
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    bytes[0] |= version;
    net.nodes[0].changes.clear();
    net.handle(0, SixtopEvent::Message { from: eui(1), bytes: &bytes });
    net.nodes[0].changes.iter().find_map(|c| match c {
        Change::Answered { code, .. } => Some(*code),
        _ => None,
    })
}

#[test]
fn each_request_gets_the_return_code_that_the_rfc_asks_for() {
    let request = |sfid, seqnum, command| Message {
        sfid,
        seqnum,
        body: Body::Request { command, metadata: 0 },
    };
    let count = || Command::Count { options: 1 };
    let cell = lowmesh_wire::sixp::Cell { slot: 9, channel_offset: 1 };
    let absent = Command::Delete { options: 1, count: 1, cells: vec![cell] };
    let signal = Command::Signal { payload: vec![1] };
    let cases = [
        (request(0, 0, count()), 0, ReturnCode::Success),
        (request(0, 0, count()), 1, ReturnCode::Version),
        (request(9, 0, count()), 0, ReturnCode::Sfid),
        (request(0, 3, count()), 0, ReturnCode::SeqNum),
        (request(0, 3, Command::Clear), 0, ReturnCode::Success),
        (request(0, 0, absent), 0, ReturnCode::CellList),
        (request(0, 0, signal), 0, ReturnCode::Error),
    ];
    for (message, version, expected) in cases {
        let mut net = network(2, "msf", 0.0, 12);
        assert_eq!(answer(&mut net, &message, version), Some(expected), "{message:?}");
    }
    let mut net = network(2, "msf", 0.0, 12);
    assert_eq!(answer(&mut net, &request(0, 0, count()), 0), Some(ReturnCode::Success));
    assert_eq!(answer(&mut net, &request(0, 0, count()), 0), Some(ReturnCode::Busy));
}

#[test]
fn a_responder_takes_other_numbers_but_not_0_from_a_peer_that_it_knows() {
    let mut net = network(2, "msf", 0.0, 12);
    let mut ask = |seqnum| {
        let body = Body::Request { command: Command::Count { options: 1 }, metadata: 0 };
        let code = answer(&mut net, &Message { sfid: 0, seqnum, body }, 0);
        net.run_for(Duration::from_secs(10));
        code
    };
    // A request that was acknowledged and timed out counts for its sender alone: 1 is left out.
    let codes = [0, 2, 3, 0].map(&mut ask);
    let success = Some(ReturnCode::Success);
    assert_eq!(codes, [success, success, success, Some(ReturnCode::SeqNum)]);
}

/// The number of the second request of a node whose first one was `acked`, and answered with `code` if any.
fn second_number(acked: bool, code: Option<ReturnCode>) -> u8 {
    let mut net = network(2, "msf", 0.0, 24);
    net.stuck = true;
    net.tell(1, Event::ParentChanged { old: None, new: Some(eui(0)) });
    let handle = *net.nodes[1].handed.first().expect("a request is sent");
    net.handle(1, SixtopEvent::FrameDone { handle, acked });
    if let Some(code) = code {
        let body = Body::Response(Response::bare(code));
        let mut bytes = Vec::new();
        Message { sfid: 0, seqnum: 0, body }.emit(&mut bytes);
        net.handle(1, SixtopEvent::Message { from: eui(0), bytes: &bytes });
    }
    net.run_for(MINUTE * 20);
    Header::parse(&net.nodes[1].sent[1]).expect("a request").seqnum
}

#[test]
fn a_requester_counts_each_transaction_that_its_peer_began() {
    // RFC 8480 s3.4.6: "if node A receives the link-layer acknowledgment for its 6P Request".
    assert_eq!(second_number(true, None), 1, "timed out");
    assert_eq!(second_number(true, Some(ReturnCode::Error)), 1, "refused in the transaction");
    assert_eq!(second_number(false, None), 0, "never arrived");
    assert_eq!(second_number(false, Some(ReturnCode::Error)), 1, "arrived, as its response shows");
    assert_eq!(second_number(true, Some(ReturnCode::Busy)), 0, "never begun");
}

fn add_request(sfid: u8) -> Vec<u8> {
    add_request_of(sfid, 1)
}

/// `options` are as the requester sees the cell.
fn add_request_of(sfid: u8, options: u8) -> Vec<u8> {
    let cells = vec![lowmesh_wire::sixp::Cell { slot: 9, channel_offset: 1 }];
    let command = Command::Add { options, count: 1, cells };
    let message = Message { sfid, seqnum: 0, body: Body::Request { command, metadata: 0 } };
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    bytes
}

/// True when `node` took its schedule for inconsistent and sent a CLEAR.
fn cleared(net: &Net, node: usize) -> bool {
    let changes = &net.nodes[node].changes;
    changes.iter().any(|c| matches!(c, Change::Inconsistent(_)))
        && changes.iter().any(|c| matches!(c, Change::Ended { command: "CLEAR", .. }))
}

#[test]
fn a_responder_sends_in_a_new_cell_when_its_response_is_acknowledged_and_not_before() {
    let mut net = network(2, "msf", 0.0, 16);
    net.handle(0, SixtopEvent::Message { from: eui(1), bytes: &add_request_of(SFID_MSF, 2) });
    assert_eq!(net.tx(0, 1), []);
    net.run_for(Duration::from_secs(2));
    assert_eq!(net.tx(0, 1).len(), 1);
    // A cell in which both send is no exception.
    let mut net = network(2, "msf", 1.0, 16);
    let before = net.nodes[0].changes.len();
    net.handle(0, SixtopEvent::Message { from: eui(1), bytes: &add_request_of(SFID_MSF, 3) });
    let added = |change: &Change| matches!(change, Change::Added(_));
    assert!(!net.nodes[0].changes[before..].iter().any(added));
}

#[test]
fn a_responder_listens_in_a_new_cell_as_soon_as_it_responds() {
    // The requester sends there when it has the response, whether or not its acknowledgement arrives.
    let mut net = network(2, "msf", 1.0, 16);
    net.handle(0, SixtopEvent::Message { from: eui(1), bytes: &add_request(SFID_MSF) });
    assert_eq!(net.rx(0, 1).len(), 1);
    let changed = |net: &Net| {
        let of_cells = |c: &&Change| matches!(c, Change::Added(_) | Change::Removed(_));
        net.nodes[0].changes.iter().filter(of_cells).count()
    };
    assert_eq!(changed(&net), 1);
    // And no longer, if the response never arrives.
    net.run_for(MINUTE);
    assert_eq!((net.rx(0, 1), changed(&net)), (vec![], 2));
    let mut net = network(2, "msf", 0.0, 16);
    net.handle(0, SixtopEvent::Message { from: eui(1), bytes: &add_request(SFID_MSF) });
    net.run_for(Duration::from_secs(2));
    assert_eq!((net.rx(0, 1).len(), changed(&net)), (1, 1), "it stays");
}

#[test]
fn a_response_that_was_never_acknowledged_is_cleared() {
    let mut net = network(2, "msf", 1.0, 17);
    net.handle(0, SixtopEvent::Message { from: eui(1), bytes: &add_request(SFID_MSF) });
    net.run_for(MINUTE);
    assert_eq!(net.rx(0, 1), []);
    assert!(cleared(&net, 0));
}

#[test]
fn a_response_that_comes_after_the_request_was_given_up_is_cleared() {
    let mut net = network(2, "msf", 1.0, 18);
    net.tell(1, Event::ParentChanged { old: None, new: Some(eui(0)) });
    net.run_for(Duration::from_secs(6));
    assert!(!cleared(&net, 1));
    let cell = lowmesh_wire::sixp::Cell { slot: 9, channel_offset: 1 };
    let response = Response::with_cells(ReturnCode::Success, &[cell]);
    let message = Message { sfid: 0, seqnum: 0, body: Body::Response(response) };
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    net.handle(1, SixtopEvent::Message { from: eui(0), bytes: &bytes });
    net.run_for(MINUTE);
    assert_eq!(net.tx(1, 0), []);
    assert!(cleared(&net, 1));
}

#[test]
fn a_request_is_not_sent_after_its_timeout() {
    let mut net = network(2, "msf", 0.0, 24);
    net.stuck = true;
    net.tell(1, Event::ParentChanged { old: None, new: Some(eui(0)) });
    // RFC 9033 s9 with 3 retries and a largest exponent of 5: 93.93 s.
    net.run_for(Duration::from_secs(93));
    assert_eq!(net.nodes[1].handed.len(), 1);
    net.run_for(Duration::from_secs(1));
    let timed_out = |c: &Change| matches!(c, Change::Ended { outcome: Outcome::TimedOut, .. });
    assert!(net.nodes[1].changes.iter().any(timed_out));
    assert!(net.nodes[1].handed.is_empty());
}

#[test]
fn a_request_is_not_sent_after_the_peer_cleared_nor_is_a_response() {
    let clear = Message {
        sfid: 0,
        seqnum: 0,
        body: Body::Request { command: Command::Clear, metadata: 0 },
    };
    let mut bytes = Vec::new();
    clear.emit(&mut bytes);
    let mut net = network(2, "msf", 0.0, 25);
    net.stuck = true;
    net.tell(1, Event::ParentChanged { old: None, new: Some(eui(0)) });
    net.handle(0, SixtopEvent::Message { from: eui(1), bytes: &add_request(SFID_MSF) });
    for (node, peer) in [(0, 1), (1, 0)] {
        let before = net.nodes[node].handed.clone();
        net.handle(node, SixtopEvent::Message { from: eui(peer), bytes: &bytes });
        assert_eq!(before.len(), 1);
        // What is left is the answer to the CLEAR.
        assert!(net.nodes[node].handed.is_disjoint(&before) && net.nodes[node].handed.len() == 1);
    }
}

#[test]
fn a_parent_without_room_is_not_asked_again_and_again() {
    let params = MsfParams { negotiated_length: 4, ..MsfParams::BMSF };
    let mut net = Net::new(2, 0.0, 19, || Box::new(Msf::new(params, Children::Known)));
    net.attach(1, None, 0);
    net.flow(1, 0, 1.0);
    net.flow(0, 1, 1.0);
    net.run_for(MINUTE * 30);
    assert_eq!(net.tx(1, 0).len() + net.tx(0, 1).len(), 3);
    let ended = |c: &&Change| matches!(c, Change::Ended { .. });
    // Once a window of 48 cells at most, and a wait of half a minute at least after each refusal.
    assert!(net.nodes[1].changes.iter().filter(ended).count() < 70);
    assert_eq!(net.disagreements(), []);
}

#[test]
fn an_error_is_followed_by_quarantine_busy_by_a_wait_and_no_free_cell_by_a_breath() {
    // RFC 9033 s12, table 1; an empty list is a success.
    for (code, quiet) in [
        (ReturnCode::Error, 299),
        (ReturnCode::Busy, 29),
        (ReturnCode::Locked, 29),
        (ReturnCode::Success, 4),
    ] {
        let mut net = network(2, "msf", 1.0, 14);
        net.tell(1, Event::ParentChanged { old: None, new: Some(eui(0)) });
        let response = Message { sfid: 0, seqnum: 0, body: Body::Response(Response::bare(code)) };
        let mut bytes = Vec::new();
        response.emit(&mut bytes);
        net.handle(1, SixtopEvent::Message { from: eui(0), bytes: &bytes });
        let ended = |net: &Net| {
            net.nodes[1].changes.iter().filter(|c| matches!(c, Change::Ended { .. })).count()
        };
        assert_eq!(ended(&net), 1);
        net.run_for(Duration::from_secs(quiet));
        assert_eq!(ended(&net), 1, "{code:?}");
        // Twice the shortest wait at most, and four seconds for a request that nobody hears.
        net.run_for(Duration::from_secs(quiet + 6));
        assert!(ended(&net) > 1, "{code:?}");
    }
}

#[test]
fn a_node_that_is_answering_asks_as_soon_as_it_is_done() {
    let mut net = network(2, "b-msf", 0.0, 20);
    net.handle(0, SixtopEvent::Message { from: eui(1), bytes: &add_request(SFID_BMSF) });
    net.tell(0, Event::ChildAdded(eui(1)));
    let engaged = |c: &Change| matches!(c, Change::Ended { outcome: Outcome::Engaged, .. });
    assert!(net.nodes[0].changes.iter().any(engaged));
    net.run_for(Duration::from_secs(13));
    assert_eq!(net.tx(0, 1).len(), 1);
}

#[test]
fn each_direction_of_a_link_counts_by_itself() {
    let mut net = network(2, "b-msf", 0.0, 21);
    net.attach(1, None, 0);
    net.run_for(MINUTE);
    // The cells of the child come faster and faster; the counters of the parent must not restart with each.
    net.flow(1, 0, 1.0);
    net.flow(0, 1, 1.0);
    net.run_for(MINUTE);
    assert!(net.tx(1, 0).len() >= 3, "{}", net.tx(1, 0).len());
    assert!(net.tx(0, 1).len() >= 3, "{}", net.tx(0, 1).len());
}

#[test]
fn bytes_that_are_not_6p_are_an_event_and_no_more() {
    let mut net = network(2, "msf", 0.0, 15);
    for bytes in [&[][..], &[0x30, 0, 0, 0], &[0, 1, 0], &[0x10, 0, 0, 0, 1]] {
        net.handle(0, SixtopEvent::Message { from: eui(1), bytes });
    }
    net.handle(0, SixtopEvent::FrameDone { handle: Handle(3), acked: true });
    let malformed = net.nodes[0].changes.iter().filter(|c| matches!(c, Change::Malformed(..)));
    assert_eq!(malformed.count(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn both_ends_agree_at_rest(seed in any::<u64>(), loss in 0.0..0.6f64, bidirectional: bool) {
        let function = if bidirectional { "b-msf" } else { "msf" };
        let mut net = network(3, function, loss, seed);
        net.attach(1, None, 0);
        net.attach(2, None, 1);
        for (from, to) in [(1, 0), (2, 1), (0, 1), (1, 2)] {
            net.flow(from, to, 0.85);
        }
        net.run_for(MINUTE * 20);
        net.tell(1, Event::ChildRemoved(eui(2)));
        net.attach(2, Some(1), 0);
        net.flow(2, 0, 0.85);
        net.flow(0, 2, 0.2);
        net.run_for(MINUTE * 20);
        // At rest: medium use, so that nothing is asked for any more, and time for the mending.
        for (from, to) in [(1, 0), (0, 1), (2, 0), (0, 2)] {
            net.flow(from, to, 0.5);
        }
        net.loss = 0.0;
        net.run_for(MINUTE * 60);
        prop_assert_eq!(net.disagreements(), vec![]);
        prop_assert!(!net.tx(1, 0).is_empty() && !net.tx(2, 0).is_empty());
        prop_assert!(net.tx(2, 1).is_empty() && net.rx(2, 1).is_empty());
    }

    #[test]
    fn any_bytes_at_any_time_do_no_harm(
        seed in any::<u64>(),
        messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..40),
    ) {
        let mut net = network(2, "b-msf", 0.1, seed);
        net.attach(1, None, 0);
        for mut bytes in messages {
            if let Some(first) = bytes.first_mut() {
                *first &= 0x30;
            }
            net.handle(0, SixtopEvent::Message { from: eui(1), bytes: &bytes });
            net.run_for(Duration::from_secs(3));
        }
        for cell in net.nodes[0].schedule.cells() {
            let length = net.nodes[0].schedule.slotframe(cell.slotframe).expect("its own").length;
            prop_assert!(cell.placement.at(0, length).0 < length);
        }
    }
}
