//! Nodes that sense the channel: how long a request takes, who destroys whose frames, what carrier sense saves.

use lowmesh_mac::csma;
use lowmesh_sim::record::{Ending, Outcome};
use lowmesh_sim::topology::TopologySpec;
use lowmesh_sim::traffic::Application;
use lowmesh_stack::tree::Tree;
use lowmesh_stack::{LinkLayer, Routes};
use lowmesh_units::{Duration, NodeId};

use crate::worlds::{Config, line, matrix_of, quick, random, run};

/// The nodes of `parents` under carrier sense with given routes; each hears those that `matrix` says.
fn static_world(parents: &[i32], matrix: Vec<Vec<f64>>) -> Config {
    let mut config = line(parents.len());
    let parents: Vec<_> = parents.iter().map(|p| u16::try_from(*p).ok().map(NodeId)).collect();
    config.node.routes = Routes::Static(Tree::new(&parents).expect("a tree"));
    config.node.link = LinkLayer::Csma(csma::Config::default());
    config.topology = TopologySpec::Unplaced { nodes: parents.len() };
    config.medium = matrix_of(matrix);
    config.traffic.start = Duration::from_secs(1);
    config
}

/// Everybody hears everybody.
fn all_ears(nodes: usize) -> Vec<Vec<f64>> {
    (0..nodes).map(|a| (0..nodes).map(|b| f64::from(u8::from(a != b))).collect()).collect()
}

/// Everybody hears the next and the one before.
fn chain_ears(nodes: usize) -> Vec<Vec<f64>> {
    let near = |a: usize, b: usize| f64::from(u8::from(a.abs_diff(b) == 1));
    (0..nodes).map(|a| (0..nodes).map(|b| near(a, b)).collect()).collect()
}

fn acknowledged(outcome: &Outcome) -> usize {
    outcome.transactions.iter().filter(|t| t.ending == Ending::Acknowledged).count()
}

/// Median delay of the transactions of `node`.
fn median(outcome: &Outcome, node: u16) -> Duration {
    let of = outcome.transactions.iter().filter(|t| t.node == NodeId(node));
    let mut delays: Vec<Duration> =
        of.filter_map(lowmesh_sim::record::Transaction::delay).collect();
    delays.sort_unstable();
    delays[delays.len() / 2]
}

#[test]
fn at_light_load_every_hop_adds_the_same_few_milliseconds() {
    let outcome = run(static_world(&[-1, 0, 1, 2, 3], chain_ears(5)), 1);
    assert_eq!(acknowledged(&outcome), outcome.transactions.len());
    let delays: Vec<Duration> = (1..5).map(|node| median(&outcome, node)).collect();
    // Backoff 1.1 ms, CCA, turnaround, 3 ms of frame and 0.5 ms of acknowledgement, twice.
    for pair in delays.windows(2) {
        let hop = (pair[1] - pair[0]).as_millis_f64();
        assert!((6.0..12.0).contains(&hop), "{delays:?}");
    }
}

/// The root hears 1 and 2, which do not hear each other.
fn hidden_ears() -> Vec<Vec<f64>> {
    vec![vec![0.0, 1.0, 1.0], vec![1.0, 0.0, 0.0], vec![1.0, 0.0, 0.0]]
}

/// Two clients of the root, 1 and 2, that send datagrams.
fn two_senders(matrix: Vec<Vec<f64>>, retries: u8, period_ms: u64) -> Outcome {
    let mut config = static_world(&[-1, 0, 0], matrix);
    let mac = csma::Config { retries_max: retries, be_min: 5, ..csma::Config::default() };
    config.node.link = LinkLayer::Csma(mac);
    config.traffic.application = Application::Datagrams;
    config.traffic.period = Duration::from_millis(period_ms);
    config.traffic.jitter = 0.5;
    config.traffic.payload_octets = 60;
    config.duration = Duration::from_secs(100);
    run(config, 3)
}

#[test]
fn hidden_terminals_destroy_each_others_frames_and_neighbours_wait_for_each_other() {
    let hidden = two_senders(hidden_ears(), 0, 20);
    let neighbours = two_senders(all_ears(3), 0, 20);
    let share = |outcome: &Outcome| outcome.frames.collided as f64 / outcome.frames.sent as f64;
    // 3 ms frames at one in 20 ms each: unslotted ALOHA loses about 1 - exp(-2 x 3 / 20) = 26 %.
    assert!((0.1..0.4).contains(&share(&hidden)), "{}", share(&hidden));
    // Only frames that begin within the 0.32 ms between the sensing of one and the start of the other.
    assert!(share(&neighbours) < 0.05, "{}", share(&neighbours));
    assert!(neighbours.frames.received > hidden.frames.received);
}

#[test]
fn retries_bring_back_what_hidden_terminals_destroy() {
    let arrived = |outcome: &Outcome| {
        let datagrams = outcome.datagrams.iter();
        datagrams.filter(|d| d.arrived.is_some()).count() as f64 / outcome.datagrams.len() as f64
    };
    let (without, with) = (two_senders(hidden_ears(), 0, 100), two_senders(hidden_ears(), 3, 100));
    let (without_share, with_share) = (arrived(&without), arrived(&with));
    assert!(without_share < 0.96 && with_share > 0.98, "{without_share} {with_share}");
    let copies: u64 = with.links.values().map(|link| link.retransmissions).sum();
    assert!(copies > 0 && without.links.values().all(|link| link.retransmissions == 0));
}

#[test]
fn rpl_finds_the_way_over_carrier_sense_too() {
    for seed in 1..=3 {
        let mut config = line(4);
        config.node.link = LinkLayer::Csma(csma::Config::default());
        let outcome = run(config, seed);
        let hops: Vec<_> = outcome.nodes.iter().map(|node| node.hops).collect();
        assert_eq!(hops, [Some(0), Some(1), Some(2), Some(3)], "seed {seed}");
        let ended = outcome.transactions.iter().filter(|t| t.ended.is_some()).count();
        assert!(acknowledged(&outcome) > 200, "seed {seed}");
        assert!(acknowledged(&outcome) * 100 >= ended * 98, "seed {seed}");
    }
}

#[test]
fn static_routes_carry_requests_over_timeslots_too() {
    let mut config = quick(static_world(&[-1, 0, 1], chain_ears(3)));
    config.node.link = LinkLayer::Tsch;
    config.traffic.start = Duration::from_secs(300);
    let outcome = run(config, 1);
    assert_eq!(outcome.control.sent, 0, "nobody sends routing messages");
    assert!(acknowledged(&outcome) > 80, "{}", acknowledged(&outcome));
    assert_eq!(outcome.nodes[2].parent, Some(NodeId(1)));
}

#[test]
fn carrier_sense_is_quicker_than_timeslots_and_never_lets_the_radio_sleep() {
    let slotted = run(line(3), 1);
    let mut config = line(3);
    config.node.link = LinkLayer::Csma(csma::Config::default());
    let contended = run(config, 1);
    assert!(median(&contended, 2) * 10 < median(&slotted, 2));
    assert!(contended.nodes[2].duty_cycle > 0.999, "{}", contended.nodes[2].duty_cycle);
    assert!(slotted.nodes[2].duty_cycle < 0.1, "{}", slotted.nodes[2].duty_cycle);
}

/// A random world under carrier sense instead of timeslots.
fn random_carrier(number: u64) -> Config {
    let mut config = random(number);
    let mac = match number % 4 {
        0 => csma::Config::default(),
        1 => csma::Config::thin(),
        2 => csma::Config::null(),
        _ => csma::Config { queue_frames_max: 2, retries_max: 0, ..csma::Config::default() },
    };
    config.node.link = LinkLayer::Csma(mac);
    config
}

#[test]
fn in_random_worlds_every_packet_and_every_frame_has_one_fate() {
    let (mut delivered, mut deaf) = (0, 0);
    for number in 0..40 {
        let outcome = run(random_carrier(number), number);
        for packets in [outcome.up, outcome.down, outcome.control] {
            let ended = packets.delivered + packets.dropped + packets.queued;
            assert_eq!(packets.sent, ended, "random({number}): {packets:?}");
        }
        let frames = outcome.frames;
        let fates = frames.received + frames.collided + frames.faded + frames.deaf;
        assert!(fates <= frames.sent, "random({number}): {frames:?}");
        let copies = outcome.links.values().map(|link| link.frames + link.retransmissions);
        assert_eq!(copies.sum::<u64>(), frames.sent, "random({number})");
        for node in &outcome.nodes {
            assert!((0.0..=1.0).contains(&node.duty_cycle), "random({number}): {node:?}");
        }
        deaf += frames.deaf;
        delivered += outcome.up.delivered;
    }
    assert!(deaf > 0, "nobody sends while someone sends to it");
    assert!(delivered > 5_000, "the worlds are too quiet: {delivered}");
}

#[test]
fn the_same_seed_gives_the_same_frames_and_another_seed_others() {
    for number in 0..8 {
        let (first, second) = (run(random_carrier(number), 7), run(random_carrier(number), 7));
        assert_eq!(first, second, "random({number})");
        assert_ne!(first.trace_hash, run(random_carrier(number), 8).trace_hash);
    }
}
