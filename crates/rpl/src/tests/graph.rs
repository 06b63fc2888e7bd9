//! Random graphs: formation is fast and cheap, and at rest there is no routing loop.

use lowmesh_units::{Duration, NodeId, Purpose, Rng, Seed};

use super::network::Network;
use crate::{Config, Rpl};

const MINUTE: Duration = Duration::from_secs(60);

/// A connected graph: each node links to one before it, and to some more; ETX between 1 and 3.
fn graph(count: usize, more: usize, seed: u64) -> (Vec<(usize, usize, f64)>, Rng) {
    let mut rng = Rng::stream(Seed(seed), NodeId(1), Purpose::Topology);
    let mut links = Vec::new();
    for node in 1..count {
        links.push((rng.below(node as u32) as usize, node, rng.between(1.0, 3.0)));
        for _ in 0..more {
            let other = rng.below(count as u32) as usize;
            if other != node {
                links.push((node, other, rng.between(1.0, 3.0)));
            }
        }
    }
    (links, rng)
}

fn assert_at_rest(network: &mut Network, what: &str) {
    for node in 1..network.nodes.len() {
        assert!(
            network.path_to_root(node).is_some(),
            "{what}: node {node} does not reach the root"
        );
        let parent = network.nodes[node].preferred_parent().expect("checked above");
        let told = network.nodes[node].neighbours().find(|(address, _)| **address == parent);
        let above = told.expect("a parent is a neighbour").1;
        assert!(network.nodes[node].rank() > above, "{what}: node {node} ranks above its parent");
        let down = network.packet(0, node);
        assert_eq!(down.1, None, "{what}: packet from the root to {node} went {:?}", down.0);
    }
}

#[test]
fn no_loop_is_left_on_fifty_random_graphs_whose_links_change() {
    for seed in 0..50 {
        let (links, mut rng) = graph(15, 2, seed);
        let mut network = Network::new(15, &links, seed);
        network.run(MINUTE * 5);
        for _ in 0..40 {
            let (a, b, _) = links[rng.below(links.len() as u32) as usize];
            network.set_link(a, b, rng.between(1.0, 4.0));
            network.run(Duration::from_secs(15));
        }
        network.run(MINUTE * 120);
        assert_at_rest(&mut network, &format!("graph {seed}"));
    }
}

#[test]
fn non_storing_leaves_no_loop_either() {
    for seed in 100..115 {
        let (links, mut rng) = graph(12, 2, seed);
        let mut network = Network::with(12, &links, seed, Network::non_storing);
        network.run(MINUTE * 5);
        for _ in 0..40 {
            let (a, b, _) = links[rng.below(links.len() as u32) as usize];
            network.set_link(a, b, rng.between(1.0, 4.0));
            network.run(Duration::from_secs(15));
        }
        network.run(MINUTE * 120);
        for node in 1..12 {
            let mut up = network.path_to_root(node).expect("every node reaches the root");
            up.reverse();
            let route = network.nodes[0].source_route(&super::network::global(node));
            let down: Vec<usize> = route.iter().flatten().map(super::network::node_of).collect();
            assert_eq!(down, up[1..], "graph {seed}: the root knows the path to {node}");
        }
    }
}

#[test]
fn fifty_lossy_nodes_form_in_three_minutes() {
    let form = |seed, change: fn(Config) -> Config| {
        let (links, _) = graph(50, 3, seed);
        let mut network = Network::with(50, &links, seed, change);
        let mut minutes = 0;
        while !(network.all_joined() && network.routes_at_root() == 49) {
            network.run(MINUTE);
            minutes += 1;
            assert!(minutes < 10, "seed {seed}: {} routes", network.routes_at_root());
        }
        minutes
    };
    for seed in 0..5 {
        assert!(form(seed, |config| config) <= 3, "storing, seed {seed}");
        assert!(form(seed, Network::non_storing) <= 3, "non-storing, seed {seed}");
    }
}

#[test]
fn a_network_at_rest_is_nearly_silent() {
    let (links, _) = graph(50, 3, 9);
    let mut network = Network::new(50, &links, 9);
    network.run(MINUTE * 60);
    assert!(network.nodes.iter().all(Rpl::is_joined));
    network.sent.clear();
    network.run(MINUTE * 60);
    let total: usize = network.sent.values().sum();
    // 50 nodes in an hour: four Trickle intervals, four paths told over some three hops with answers,
    // and probes.
    assert!(total < 50 * 120, "{:?}", network.sent);
    // A DIS is a probe here, one in 90 s at most.
    assert!(network.sent.get("dis").is_none_or(|dis| *dis < 50 * 40), "{:?}", network.sent);
}
