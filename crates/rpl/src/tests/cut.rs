//! Neighbours that fail or are silent, and ranks that a node no longer trusts.

use lowmesh_units::{Duration, NodeId, Purpose, Rank, Rng, Seed};
use lowmesh_wire::rpl::{Dis, Message, RplOption, SolicitedInformation};
use proptest::prelude::*;

use super::network::{Network, link_local};
use super::script::{Script, dio, sent};
use crate::{Destination, Input, params};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_neighbour_that_was_given_up_is_asked_when_it_is_heard() {
    let mut script = Script::joined();
    script.etx(0, 1.0);
    script.hear(5, &Message::Dio(dio(128)));
    let neighbour = link_local(5);
    assert_eq!(script.give(Input::NeighbourReachable { neighbour }), [], "its rank is known");
    script.give(Input::NeighbourUnreachable { neighbour });
    let outputs = script.give(Input::NeighbourReachable { neighbour });
    let question = Message::Dis(Dis::default());
    assert_eq!(sent(&outputs), [(Destination::Unicast(neighbour), &question)]);
    let stranger = Input::NeighbourReachable { neighbour: link_local(9) };
    assert_eq!(script.give(stranger), []);
}

#[test]
fn a_rank_that_rises_makes_no_parent_of_what_was_below() {
    let mut script = Script::joined();
    script.etx(0, 2.0);
    // It may be a child: its rank is this node's and 128.
    script.hear(2, &Message::Dio(dio(512)));
    script.etx(2, 1.2);
    for etx in [6.0, 7.0] {
        script.etx(0, etx);
    }
    assert_eq!((script.node.rank(), script.parent()), (Rank(1024), Some(0)));
    script.pass(params::RANK_SETTLES);
    script.etx(2, 1.0);
    assert_eq!(script.parent(), Some(2), "a child would have told its new rank by now");
}

#[test]
fn a_parent_that_dies_leaves_no_child_for_a_parent() {
    let mut script = Script::joined();
    script.etx(0, 2.0);
    script.hear(2, &Message::Dio(dio(512)));
    script.etx(2, 1.0);
    script.etx(0, 7.0);
    script.give(Input::NeighbourUnreachable { neighbour: link_local(0) });
    assert!(!script.node.is_joined());
}

/// A root (node 0), nodes 1 to 3 around it, and `count` nodes behind those, each with a link to some of the nodes before.
fn behind_three(count: usize, seed: u64) -> Network {
    let mut rng = Rng::stream(Seed(seed), NodeId(1), Purpose::Topology);
    let mut links: Vec<(usize, usize, f64)> =
        (1..4).map(|node| (0, node, rng.between(1.0, 2.0))).collect();
    for node in 4..4 + count {
        for _ in 0..3 {
            links.push((1 + rng.below(node as u32 - 1) as usize, node, rng.between(1.0, 2.5)));
        }
    }
    Network::new(4 + count, &links, seed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Nodes 1 to 3 fail, which the link layer notes after half a minute. All nodes behind them leave the DODAG within five
    /// minutes, and within one on average. No rank exceeds the limit of RFC 6550 s8.2.2.4 meanwhile.
    #[test]
    fn a_part_behind_dead_routers_ends_in_bounded_time_and_rank(count in 3_usize..20, seed in any::<u64>()) {
        let mut network = behind_three(count, seed);
        network.patience = SECOND * 30;
        network.run(SECOND * 300);
        let mut lowest: Vec<u16> = network.nodes.iter().map(|node| node.rank().0).collect();
        for (dead, other) in (1..4).flat_map(|dead| (0..4 + count).map(move |other| (dead, other))) {
            network.fade(dead, other);
        }
        let (mut node_seconds, min_hop) = (0, params::MIN_HOP_RANK_INCREASE_MRHOF);
        for _ in 0..300 {
            network.run(SECOND);
            network.keep_alive();
            let nodes = network.nodes.iter().zip(&mut lowest).skip(4);
            for (node, lowest) in nodes.filter(|(node, _)| node.is_joined()) {
                node_seconds += 1;
                *lowest = node.rank().0.min(*lowest);
                let limit = *lowest + params::MAX_RANK_INCREASE_HOPS * min_hop;
                prop_assert!(node.rank().0 <= limit, "{:?} above {limit}", node.rank());
            }
        }
        let left = (4..4 + count).filter(|node| network.nodes[*node].is_joined());
        prop_assert_eq!(left.count(), 0);
        prop_assert!(node_seconds <= 60 * count, "{} s a node", node_seconds / count);
    }
}

#[test]
fn a_neighbour_that_is_silent_is_no_parent_until_it_is_heard() {
    let mut script = Script::joined();
    script.etx(0, 2.0);
    script.hear(5, &Message::Dio(dio(128)));
    let [parent, other] = [0, 5].map(link_local);
    script.give(Input::NeighbourSilent { neighbour: other });
    script.etx(5, 1.0);
    script.etx(0, 4.0);
    assert_eq!(script.parent(), Some(0), "else node 5 is better by three transmissions");
    script.give(Input::NeighbourSilent { neighbour: parent });
    assert_eq!(script.parent(), Some(0), "frames to a parent tell whether it is there");
    assert_eq!(script.give(Input::NeighbourReachable { neighbour: other }), []);
    script.etx(0, 4.1);
    assert_eq!(script.parent(), Some(5));
}

#[test]
fn a_neighbour_that_multicasts_a_dis_is_no_parent_until_its_next_dio() {
    let mut script = Script::joined();
    script.etx(0, 1.0);
    script.hear(5, &Message::Dio(dio(128)));
    script.etx(5, 2.0);
    let probe = &Message::Dis(Dis::default());
    script.give(Input::Message { from: link_local(0), multicast: false, message: probe });
    assert_eq!(script.parent(), Some(0), "a probe says nothing");
    let asked = SolicitedInformation { version: None, instance: Some(7), dodag_id: None };
    let options = vec![RplOption::SolicitedInformation(asked)];
    script.hear(0, &Message::Dis(Dis { options }));
    assert_eq!(script.parent(), Some(0), "it looks for another DODAG");
    script.hear(0, &Message::Dis(Dis::default()));
    assert_eq!(script.parent(), Some(5));
}
