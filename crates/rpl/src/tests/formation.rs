//! How a DODAG forms, breaks and mends.

use lowmesh_units::{Duration, Rank};

use super::network::{Network, global, link_local, node_of};
use crate::{Input, Output};

const MINUTE: Duration = Duration::from_secs(60);

fn line(count: usize) -> Vec<(usize, usize, f64)> {
    (1..count).map(|node| (node - 1, node, 1.2)).collect()
}

#[test]
fn a_line_of_five_has_ranks_in_order_and_the_root_reaches_all() {
    let mut network = Network::new(5, &line(5), 1);
    network.run(MINUTE * 2);
    let ranks: Vec<Rank> = network.nodes.iter().map(crate::Rpl::rank).collect();
    assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
    assert_eq!(network.routes_at_root(), 4);
    assert_eq!(network.packet(0, 4), (vec![0, 1, 2, 3, 4], None));
    assert_eq!(network.packet(4, 2), (vec![4, 3, 2], None), "down from the common ancestor");
}

#[test]
fn the_same_line_forms_with_objective_function_zero() {
    let mut network = Network::with(5, &line(5), 1, Network::of0);
    network.run(MINUTE * 2);
    assert!(network.all_joined());
    // ETX 1.2 is 1.6 steps of 256 on top of the root's 256.
    assert!(network.nodes[1].rank().0.abs_diff(256 + 410) <= 4);
}

#[test]
fn a_non_storing_root_gives_source_routes() {
    let mut network = Network::with(5, &line(5), 1, Network::non_storing);
    network.run(MINUTE * 2);
    let route = network.nodes[0].source_route(&global(4)).expect("all DAOs reached the root");
    assert_eq!(route, [global(1), global(2), global(3), global(4)]);
    assert!(network.nodes[1..].iter().all(|node| node.routes().count() == 0));
    assert_eq!(network.nodes[0].next_hop(&global(4)).map(|next| next.address), Some(link_local(1)));
}

#[test]
fn a_lost_parent_is_replaced_and_the_routes_follow() {
    let links = [(0, 1, 1.0), (0, 2, 1.5), (1, 3, 1.0), (2, 3, 1.5), (3, 4, 1.0)];
    let mut network = Network::new(5, &links, 3);
    network.run(MINUTE * 3);
    assert_eq!(network.path_to_root(4), Some(vec![4, 3, 1, 0]));
    network.kill(1);
    network.run(MINUTE);
    assert_eq!(network.path_to_root(4), Some(vec![4, 3, 2, 0]));
    assert_eq!(network.packet(0, 4), (vec![0, 2, 3, 4], None));
}

#[test]
fn a_node_without_parent_poisons_and_its_child_leads_it_back() {
    // 1 - 2 hang together; 2 also reaches the root over 3. When 1 loses the root it must go below 2.
    let links = [(0, 1, 1.0), (1, 2, 1.0), (0, 3, 2.0), (2, 3, 2.0)];
    let mut network = Network::new(4, &links, 5);
    network.run(MINUTE * 3);
    assert_eq!(network.path_to_root(2), Some(vec![2, 1, 0]));
    network.events.clear();
    network.cut(0, 1);
    let left = |(_, node, event): &(_, usize, Output)| *node == 1 && *event == Output::Detached;
    assert!(network.events.iter().any(left));
    // A DIS that is lost costs half a minute.
    network.run(MINUTE * 2);
    assert_eq!(network.path_to_root(1), Some(vec![1, 2, 3, 0]));
    assert_eq!(network.packet(0, 1), (vec![0, 3, 2, 1], None));
}

#[test]
fn poison_runs_down_a_line_that_is_cut_off() {
    let mut network = Network::new(5, &line(5), 2);
    network.run(MINUTE * 2);
    network.cut(0, 1);
    network.run(MINUTE * 3);
    assert!(network.nodes[1..].iter().all(|node| !node.is_joined()));
}

#[test]
fn a_lost_dao_is_sent_again() {
    let mut network = Network::new(2, &line(2), 4);
    network.lose = Some(("dao", 2));
    network.run(MINUTE * 2);
    assert_eq!(network.routes_at_root(), 1);
    assert!(network.sent["dao"] >= 3);
}

#[test]
fn a_lost_dao_ack_brings_the_dao_again_but_no_second_route() {
    let mut network = Network::new(3, &line(3), 4);
    network.lose = Some(("dao_ack", 2));
    network.run(MINUTE);
    assert_eq!(network.routes_at_root(), 2);
    let added = |(_, node, event): &&(_, usize, Output)| {
        *node == 0 && matches!(event, Output::RouteAdded { .. })
    };
    assert_eq!(network.events.iter().filter(added).count(), 2);
}

#[test]
fn routes_outlive_their_lifetime_by_refresh_and_end_with_their_node() {
    let mut network = Network::with(3, &line(3), 6, |mut config| {
        (config.path_lifetime, config.lifetime_unit) = (5, 60);
        config
    });
    network.run(MINUTE * 30);
    assert_eq!(network.routes_at_root(), 2);
    network.kill(2);
    network.run(MINUTE * 6);
    assert_eq!(network.routes_at_root(), 1);
    assert_eq!(network.nodes[1].routes().count(), 0);
}

#[test]
fn a_global_repair_moves_all_to_the_new_version() {
    let mut network = Network::new(5, &line(5), 7);
    network.run(MINUTE * 10);
    let before = network.nodes[0].dodag_version();
    network.input(0, Input::GlobalRepair);
    network.run(MINUTE * 2);
    let versions: Vec<_> = network.nodes.iter().map(crate::Rpl::dodag_version).collect();
    assert_ne!(versions[0], before);
    assert!(versions.iter().all(|version| *version == versions[0]));
    assert_eq!(network.packet(0, 4).1, None);
}

#[test]
fn a_node_that_lost_its_link_layer_comes_back() {
    let mut network = Network::new(4, &line(4), 8);
    network.run(MINUTE * 2);
    network.input(2, Input::Stop);
    network.run(MINUTE);
    network.input(2, Input::Start);
    network.run(MINUTE * 2);
    assert!(network.all_joined());
    assert_eq!(network.packet(0, 3), (vec![0, 1, 2, 3], None));
}

#[test]
fn children_are_told_once_and_leave_with_their_last_route() {
    let links = [(0, 1, 1.0), (0, 2, 1.5), (1, 3, 1.0), (2, 3, 1.5), (3, 4, 1.0)];
    let mut network = Network::new(5, &links, 3);
    network.run(MINUTE * 3);
    network.set_link(1, 3, 4.0);
    network.run(MINUTE);
    let of_one: Vec<&Output> = network
        .events
        .iter()
        .filter(|(_, node, _)| *node == 1)
        .map(|(_, _, event)| event)
        .filter(|event| matches!(event, Output::ChildAdded { .. } | Output::ChildRemoved { .. }))
        .collect();
    let child = link_local(3);
    assert_eq!(of_one, [&Output::ChildAdded { child }, &Output::ChildRemoved { child }]);
    assert_eq!(network.nodes[2].children().map(node_of).collect::<Vec<_>>(), [3]);
}

#[test]
fn the_same_seed_gives_the_same_events() {
    let run = |seed| {
        let mut network = Network::new(5, &line(5), seed);
        network.run(MINUTE * 5);
        (network.events, network.sent)
    };
    assert_eq!(run(11), run(11));
    assert_ne!(run(11).0, run(12).0);
}
