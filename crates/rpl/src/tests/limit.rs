//! The limit of rank in a DODAG version holds after a node left the DODAG (RFC 6550 s8.2.2.4), and a part that is cut off
//! leaves it.

use lowmesh_machine::DropReason;
use lowmesh_units::{Duration, NodeId, Purpose, Rank, Rng, Seed};
use lowmesh_wire::rpl::{Dio, Dis, Message};

use super::network::{Network, global, link_local};
use super::script::{Script, dao, dio, sent};
use crate::{Destination, ForwardContext, Input, Output, Rpl, Verdict, params};

const MINUTE: Duration = Duration::from_secs(60);

/// A node that had rank 256 in version 240 and is in no DODAG now: the limit is 256 + 1024.
fn alone() -> Script {
    let mut script = Script::joined();
    script.etx(0, 1.0);
    script.give(Input::NeighbourUnreachable { neighbour: link_local(0) });
    script.pass(Duration::from_secs(20));
    assert!(!script.node.is_joined());
    script
}

fn joins_below(script: &mut Script, rank: u16) -> bool {
    script.etx(5, 1.0);
    script.hear(5, &Message::Dio(dio(rank)));
    script.node.is_joined()
}

#[test]
fn a_node_that_poisoned_keeps_the_limit_of_its_version() {
    let mut script = alone();
    assert!(!joins_below(&mut script, 1200));
    assert!(joins_below(&mut script, 1100));
    // The lowest rank is still that from before the node left.
    script.hear(5, &Message::Dio(dio(1160)));
    assert!(!script.node.is_joined());
}

#[test]
fn the_limit_ends_when_a_node_was_outside_the_dodag_for_long() {
    let mut script = alone();
    script.pass(params::LIMIT_HOLD - MINUTE);
    assert!(!joins_below(&mut script, 1200));
    script.pass(MINUTE);
    assert!(joins_below(&mut script, 1200));
}

#[test]
fn the_limit_outlasts_a_loss_of_the_link_layer() {
    for poisons in [false, true] {
        let mut script = if poisons { alone() } else { Script::joined() };
        script.etx(0, 1.0);
        script.give(Input::Stop);
        script.pass(MINUTE);
        script.give(Input::Start);
        assert!(!joins_below(&mut script, 1200));
        assert!(joins_below(&mut script, 1100));
    }
}

#[test]
fn a_newer_version_has_a_limit_of_its_own() {
    let mut script = alone();
    script.etx(5, 1.0);
    script.hear(5, &Message::Dio(Dio { version: 241, ..dio(2000) }));
    assert_eq!(script.node.rank(), Rank(2128));
}

#[test]
fn after_poison_only_dios_heard_since_then_count() {
    let mut script = Script::joined();
    script.etx(0, 1.0);
    script.etx(5, 9.0);
    script.hear(5, &Message::Dio(dio(128)));
    script.give(Input::NeighbourUnreachable { neighbour: link_local(0) });
    // The link is good now; the rank is from before.
    script.etx(5, 1.0);
    assert!(!script.node.is_joined());
    script.hear(5, &Message::Dio(dio(128)));
    assert_eq!(script.parent(), Some(5));
}

/// The poison that `outputs` have for node 7.
fn poison(outputs: &[Output]) -> usize {
    let poison = |(to, message): &(Destination, &Message)| {
        let Message::Dio(dio) = message else { return false };
        *to == Destination::Unicast(link_local(7)) && dio.rank == Rank::INFINITE
    };
    sent(outputs).into_iter().filter(poison).count()
}

#[test]
fn a_node_outside_the_dodag_poisons_those_that_still_send_to_it() {
    let mut script = alone();
    let packet = ForwardContext {
        from: Some(link_local(7)),
        target: global(0),
        source_routed: false,
        option: None,
    };
    for expected in [1, 0] {
        let verdict = script.node.check_forward(script.now, &packet);
        assert_eq!(verdict, Verdict::Drop(DropReason::NotJoined));
        assert_eq!(poison(&script.give(Input::Deadline)), expected, "one poison in a while");
    }
    script.pass(MINUTE);
    script.node.check_forward(script.now, &packet);
    assert_eq!(poison(&script.give(Input::Deadline)), 1);
    // A probe and a DAO ask the same.
    for message in [Message::Dis(Dis::default()), Message::Dao(dao(7, 240, 30))] {
        let (from, message) = (link_local(7), &message);
        script.pass(MINUTE);
        assert_eq!(poison(&script.give(Input::Message { from, multicast: false, message })), 1);
    }
}

#[test]
fn a_node_that_leaves_the_dodag_poisons_each_child() {
    let mut script = Script::joined();
    script.etx(0, 1.0);
    script.hear(7, &Message::Dao(dao(7, 240, 30)));
    let outputs = script.give(Input::NeighbourUnreachable { neighbour: link_local(0) });
    assert!(outputs.contains(&Output::Detached));
    assert_eq!(poison(&outputs), 1);
}

/// Nodes on a grid of four by four with links of ETX 1.5 to 3 to those beside and diagonally; node 0 is the root, which
/// only nodes 1 and 4 reach.
fn grid(seed: u64) -> Network {
    let mut rng = Rng::stream(Seed(seed), NodeId(1), Purpose::Topology);
    let mut links = Vec::new();
    for (a, b) in (0..16).flat_map(|a| (0..a).map(move |b| (a, b))) {
        let near = |one: usize, other: usize| one.abs_diff(other) <= 1;
        if near(a / 4, b / 4) && near(a % 4, b % 4) && (a, b) != (5, 0) {
            links.push((a, b, rng.between(1.5, 3.0)));
        }
    }
    Network::new(16, &links, seed)
}

#[test]
fn a_part_that_is_cut_off_does_not_count_to_infinity() {
    for seed in 0..30 {
        let mut network = grid(seed);
        network.run(MINUTE * 5);
        network.cut(0, 1);
        network.cut(0, 4);
        let mut rootless = Duration::ZERO;
        for _ in 0..600 {
            let joined = network.nodes[1..].iter().filter(|node| node.is_joined()).count();
            rootless += Duration::from_secs(joined as u64);
            let highest = network.nodes[1..].iter().filter(|n| n.is_joined()).map(Rpl::rank).max();
            assert!(highest.is_none_or(|rank| rank.0 < 4000), "seed {seed}: {highest:?}");
            network.run(Duration::from_secs(1));
        }
        assert!(network.nodes[1..].iter().all(|node| !node.is_joined()), "seed {seed}");
        assert!(rootless < MINUTE * 15, "seed {seed}: {rootless}");
        // The root is back in reach.
        network.set_link(0, 1, 1.5);
        network.set_link(0, 4, 1.5);
        network.run(params::LIMIT_HOLD);
        assert!(network.all_joined(), "seed {seed}");
    }
}
