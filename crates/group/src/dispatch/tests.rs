//! Requests to members at their times: windows, shares, repetitions, and what their ends say of nodes.

use super::*;
use alloc::vec::Vec;

use lowmesh_registry::Registry;
use lowmesh_wire::coap::Code;

use crate::params::{UNDER_WAY_A_CLIENT_MAX, UNDER_WAY_A_NODE_MAX};

const OWNER: Owner = Owner::Group { query: 1 };

fn dispatch(gate: &str) -> Dispatch {
    let gate = Registry::<dyn Gate>::builtin().choose(gate).expect("a row");
    Dispatch::new(gate, true)
}

fn ask(dispatch: &mut Dispatch, node: u16, start: Instant) -> u64 {
    dispatch.ask(OWNER, node_of(node), RequestTemplate::get("/t"), start)
}

fn node_of(node: u16) -> Authority {
    Authority::of(&format!("coap://[fd00::{node:x}]/").parse().expect("a URI"))
}

fn sent(dispatch: &mut Dispatch, now: Instant) -> Vec<u64> {
    dispatch.advance(now);
    let number = |output| match output {
        Output::Request { exchange, .. } => exchange.0,
        other => panic!("{other:?}"),
    };
    core::iter::from_fn(|| dispatch.pop()).map(number).collect()
}

#[test]
fn a_request_leaves_at_its_time_and_not_before() {
    let mut dispatch = dispatch("fixed");
    let first = ask(&mut dispatch, 1, Instant::ZERO);
    let second = ask(&mut dispatch, 2, Instant::from_millis(100));
    assert_eq!(sent(&mut dispatch, Instant::ZERO), [first]);
    assert_eq!(dispatch.next_deadline(), Some(Instant::from_millis(100)));
    assert_eq!(sent(&mut dispatch, Instant::from_millis(100)), [second]);
}

#[test]
fn a_window_lets_the_next_request_leave_with_an_answer_or_after_its_patience() {
    let mut dispatch = dispatch("gate-aimd");
    let all: Vec<u64> = (1..=4).map(|node| ask(&mut dispatch, node, Instant::ZERO)).collect();
    assert_eq!(sent(&mut dispatch, Instant::ZERO), all[..2]);
    let sample = Sample { rtt: Duration::from_millis(10), retransmissions: 0 };
    let now = Instant::from_millis(10);
    assert_eq!(dispatch.end(all[0], End::Answer(sample), now), [(OWNER, None)]);
    assert_eq!(sent(&mut dispatch, now), all[2..3]);
    // Two requests are silent: their places are free after a while, and the last one leaves.
    let later = dispatch.next_deadline().expect("patience");
    assert_eq!(sent(&mut dispatch, later + Duration::from_secs(1)), all[3..]);
    assert_eq!(dispatch.len(), 3);
}

#[test]
fn what_is_cancelled_takes_no_place() {
    let mut dispatch = dispatch("gate-aimd");
    let all: Vec<u64> = (1..=3).map(|node| ask(&mut dispatch, node, Instant::ZERO)).collect();
    dispatch.cancel(all[0], Instant::ZERO);
    assert_eq!(sent(&mut dispatch, Instant::ZERO), all[1..]);
    dispatch.cancel(all[1], Instant::ZERO);
    assert_eq!(dispatch.pop(), Some(Output::Cancel { exchange: ExchangeId(all[1]) }));
    assert_eq!(dispatch.len(), 1);
}

#[test]
fn a_silent_member_of_a_query_is_asked_again_under_the_same_name_but_never_by_post() {
    let mut dispatch = dispatch("gate-climb");
    let owner = Owner::Query { query: 1, slot: 0 };
    let to = |node: u16| {
        let uri = format!("coap://[fd00::{node:x}]/").parse().expect("a URI");
        Authority::of(&uri)
    };
    let first = dispatch.ask(owner, to(1), RequestTemplate::get("/t"), Instant::ZERO);
    assert_eq!(sent(&mut dispatch, Instant::ZERO), [first]);
    let sample = Sample { rtt: Duration::from_millis(10), retransmissions: 0 };
    let now = Instant::from_millis(10);
    dispatch.end(first, End::Answer(sample), now);
    let second = dispatch.ask(owner, to(3), RequestTemplate::get("/t"), now);
    assert_eq!(sent(&mut dispatch, now), [second]);
    let mut events = Vec::new();
    let mut now = now;
    while let Some(next) = dispatch.next_deadline() {
        now = next.max(now);
        dispatch.advance(now);
        events.extend(core::iter::from_fn(|| dispatch.pop()).map(|output| match output {
            Output::Cancel { exchange } => (exchange.0, "cancel"),
            Output::Request { exchange, .. } => (exchange.0, "request"),
            other => panic!("{other:?}"),
        }));
    }
    let pair = [(second, "cancel"), (second, "request")];
    assert_eq!(events, [pair, pair, pair].concat());
    assert_eq!(dispatch.end(second, End::Answer(sample), now), [(owner, None)]);
    let posted = dispatch.ask(owner, to(2), RequestTemplate::new(Code::POST, "/t"), now);
    assert_eq!(sent(&mut dispatch, now), [posted]);
    while let Some(next) = dispatch.next_deadline() {
        assert!(sent(&mut dispatch, next.max(now)).is_empty());
    }
}

#[test]
fn what_is_cancelled_or_gives_way_says_nothing_of_a_node_that_has_confirmed_it() {
    let second = Duration::from_secs(1);
    for (gives_way, confirms) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut dispatch = dispatch("fixed");
        let node = node_of(1);
        let mut now = Instant::ZERO;
        for _ in 0..10 {
            let number = ask(&mut dispatch, 1, now);
            assert_eq!(sent(&mut dispatch, now), [number]);
            if confirms {
                dispatch.on_sign(number, now + second);
            }
            now += second * 4;
            if gives_way {
                dispatch.give_up(number, now);
            } else {
                dispatch.cancel(number, now);
            }
            while dispatch.pop().is_some() {}
        }
        assert_eq!(dispatch.standing(&node).is_down, !confirms, "{gives_way}");
        assert_eq!(dispatch.len(), 0);
    }
}

#[test]
fn a_node_and_a_client_have_their_shares_and_clients_take_turns() {
    let mut dispatch = dispatch("fixed");
    let client = |last| Some(IpAddr::from([192, 0, 2, last]));
    dispatch.set_client(client(1));
    let one: Vec<u64> =
        (0..=UNDER_WAY_A_NODE_MAX).map(|_| ask(&mut dispatch, 1, Instant::ZERO)).collect();
    assert_eq!(sent(&mut dispatch, Instant::ZERO), one[..UNDER_WAY_A_NODE_MAX]);
    let free = UNDER_WAY_A_CLIENT_MAX - UNDER_WAY_A_NODE_MAX;
    let more: Vec<u64> = (2..1000).map(|node| ask(&mut dispatch, node, Instant::ZERO)).collect();
    assert_eq!(sent(&mut dispatch, Instant::ZERO), more[..free]);
    dispatch.set_client(client(2));
    let other = ask(&mut dispatch, 7, Instant::ZERO);
    assert_eq!(sent(&mut dispatch, Instant::ZERO), [other]);
    // The end of one lets the next one leave.
    dispatch.end(one[0], End::Over, Instant::ZERO);
    assert_eq!(sent(&mut dispatch, Instant::ZERO), one[UNDER_WAY_A_NODE_MAX..]);
    // With a window, the request of another client does not wait for all of the first.
    let mut dispatch = self::dispatch("gate-aimd");
    dispatch.set_client(client(1));
    let many: Vec<u64> = (1..1000).map(|node| ask(&mut dispatch, node, Instant::ZERO)).collect();
    assert_eq!(sent(&mut dispatch, Instant::ZERO), many[..2]);
    dispatch.set_client(client(2));
    let other = ask(&mut dispatch, 2000, Instant::ZERO);
    dispatch.advance(Instant::ZERO);
    let sample = Sample { rtt: Duration::from_millis(10), retransmissions: 0 };
    let (mut left, mut now) = (many[..2].to_vec(), Instant::ZERO);
    for _ in 0..2 {
        now += Duration::from_millis(10);
        dispatch.end(left.remove(0), End::Answer(sample), now);
        left.extend(sent(&mut dispatch, now));
    }
    assert!(left.contains(&other), "{left:?}");
}
