//! What holds in every world, however its nodes are set and whatever the air does.

use std::collections::BTreeSet;

use lowmesh_mac::tsch::cell::{Cell, CellKind, CellOptions, Placement};
use lowmesh_rpl::Mode;
use lowmesh_sim::Mesh;
use lowmesh_sim::record::{Ending, Outcome, Packets};
use lowmesh_stack::Node;
use lowmesh_units::{Duration, Eui64, Instant, NodeId};

use crate::worlds::{Config, functions, line, mesh, quick, random, run};

/// Random worlds that each invariant is tried on.
const WORLDS: u64 = 60;

fn outcomes() -> impl Iterator<Item = (u64, Outcome)> {
    (0..WORLDS).map(|number| (number, run(random(number), number)))
}

fn add_up(packets: Packets) -> bool {
    packets.sent == packets.delivered + packets.dropped + packets.queued
}

#[test]
fn every_packet_and_every_transaction_has_exactly_one_ending() {
    let mut transactions = 0;
    for (number, outcome) in outcomes() {
        assert!(add_up(outcome.up), "random({number}): {:?}", outcome.up);
        assert!(add_up(outcome.down), "random({number}): {:?}", outcome.down);
        assert!(add_up(outcome.control), "random({number}): {:?}", outcome.control);
        let dropped = outcome.up.dropped + outcome.down.dropped + outcome.control.dropped;
        assert_eq!(dropped, outcome.drops.values().sum::<u64>(), "random({number})");
        for transaction in &outcome.transactions {
            let over = transaction.ending != Ending::Open;
            assert_eq!(over, transaction.ended.is_some(), "random({number}): {transaction:?}");
            let acknowledged = transaction.ending == Ending::Acknowledged;
            assert!(!acknowledged || transaction.sent.is_some(), "{transaction:?}");
            assert!(transaction.sent.is_none_or(|sent| sent >= transaction.issued));
            assert!(transaction.ended.is_none_or(|ended| ended >= transaction.issued));
            assert!(transaction.retransmissions <= lowmesh_coap::params::MAX_RETRANSMIT);
        }
        transactions += outcome.transactions.len();
    }
    assert!(transactions > 10_000, "the worlds are too quiet: {transactions}");
}

/// RFC 7252 s4.5: a server executes a request once, however many copies of it come.
#[test]
fn no_request_is_executed_twice() {
    for (number, outcome) in outcomes() {
        let sent = outcome.transactions.iter().filter(|t| t.sent.is_some()).count() as u64;
        let answered = |t: &&lowmesh_sim::record::Transaction| t.ending == Ending::Acknowledged;
        let acknowledged = outcome.transactions.iter().filter(answered).count() as u64;
        let executed = outcome.executed;
        assert!(executed <= sent, "random({number}): {executed} executed of {sent} sent");
        assert!(acknowledged <= executed, "random({number}): {acknowledged} of {executed}");
    }
}

#[test]
fn no_node_has_the_radio_on_longer_than_it_exists_nor_more_than_one_place() {
    for (number, outcome) in outcomes() {
        for (index, node) in outcome.nodes.iter().enumerate() {
            let at = format!("random({number}) node {index}: {node:?}");
            assert!((0.0..=1.0).contains(&node.duty_cycle), "{at}");
            assert!(node.frames_acked <= node.frames_sent, "{at}");
            assert!(node.hops.is_none_or(|hops| (hops == 0) == (index == 0)), "{at}");
            // 24 mA is the most that the radio draws.
            assert!(node.charge_mc <= 24.0 * outcome.simulated.as_secs_f64(), "{at}");
        }
    }
}

/// Nodes on the path from `node` to the root over preferred parents, or none if it does not lead there.
fn chain(mesh: &Mesh, node: usize) -> Option<Vec<usize>> {
    let nodes = mesh.nodes();
    let mut chain = vec![node];
    while chain.last() != Some(&0) {
        let parent = nodes[*chain.last()?].parent()?;
        let next = mesh.node_with(parent)?.index();
        if chain.contains(&next) {
            return None;
        }
        chain.push(next);
    }
    Some(chain)
}

/// A line of four in which nothing is lost except to collisions, for each function and mode, with DAO-ACKs
/// and without.
fn calm_worlds() -> impl Iterator<Item = (String, Config)> {
    let choices = [
        (Mode::Storing, true),
        (Mode::Storing, false),
        (Mode::NonStoring, true),
        (Mode::NonStoring, false),
    ];
    choices.into_iter().flat_map(|(mode, dao_ack)| {
        functions().into_iter().map(move |(name, scheduling)| {
            let mut config = line(4);
            config.node.scheduling = scheduling;
            config.node.rpl = config.node.rpl.with_mode(mode);
            config.node.rpl.dao_ack = dao_ack;
            if name == "minimal" {
                // One cell a second carries no requests over three hops before they are sent again.
                let set = config.node.scheduling.set("slotframe_length", 11_u64);
                set.expect("within bounds");
            }
            // A scanning node listens on one of sixteen channels.
            config.node.mac.eb_period = Duration::from_secs(2);
            config.traffic.period = Duration::from_secs(30);
            config.duration = Duration::from_secs(1_800);
            (format!("{name} {mode:?} dao_ack {dao_ack}"), config)
        })
    })
}

#[test]
fn at_rest_every_node_has_a_way_to_the_root_on_which_the_rank_falls() {
    for (name, config) in calm_worlds() {
        for seed in 1..=3 {
            let mut mesh = mesh(config.clone(), seed);
            mesh.advance(Instant::from_secs(1_800));
            for node in 1..4 {
                let chain = chain(&mesh, node);
                let chain = chain.unwrap_or_else(|| panic!("{name} seed {seed}: node {node}"));
                // In a line the only way is along the line.
                assert_eq!(chain.len(), node + 1, "{name} seed {seed}");
                let ranks: Vec<u16> = chain
                    .iter()
                    .map(|n| mesh.nodes()[*n].rank().map_or(0, |rank| rank.0))
                    .collect();
                assert!(ranks.windows(2).all(|r| r[0] > r[1]), "{name} seed {seed}: {ranks:?}");
            }
        }
    }
}

#[test]
fn with_every_function_and_mode_a_calm_line_delivers_nearly_everything() {
    for (name, config) in calm_worlds() {
        for seed in 1..=3 {
            let outcome = run(config.clone(), seed);
            let with = |ending: fn(Ending) -> bool| {
                outcome.transactions.iter().filter(|t| ending(t.ending)).count()
            };
            let acknowledged = with(|ending| ending == Ending::Acknowledged);
            let failed = with(|ending| matches!(ending, Ending::Failed(_)));
            assert!(acknowledged > 100, "{name} seed {seed}: {acknowledged} acknowledged");
            assert!(failed * 20 <= acknowledged, "{name} seed {seed}: {failed} failed");
        }
    }
}

/// Slot and channel offset of the negotiated cells of `node` with `peer` that may do `option`.
fn negotiated(node: &Node, peer: Eui64, option: CellOptions) -> BTreeSet<(u16, u16)> {
    let ours = |cell: &&Cell| {
        cell.kind == CellKind::Negotiated && cell.peer == Some(peer) && cell.options.has(option)
    };
    let place = |cell: &Cell| match cell.placement {
        Placement::Fixed { slot, channel_offset } => (slot, channel_offset),
        Placement::Hashed { .. } => panic!("6P negotiates fixed cells"),
    };
    node.schedule().expect("a TSCH node").cells().filter(ours).map(place).collect()
}

/// Pairs whose sender sends in cells in which the receiver does not listen, or the other way round.
fn disagreements(mesh: &Mesh) -> BTreeSet<(u16, u16)> {
    let ids = (0..mesh.nodes().len() as u16).map(NodeId);
    let pairs = ids.clone().flat_map(|a| ids.clone().map(move |b| (a, b)));
    pairs
        .filter(|(a, b)| {
            let (from, to) = (&mesh.nodes()[a.index()], &mesh.nodes()[b.index()]);
            let sending = negotiated(from, mesh.eui64(*b), CellOptions::TX);
            sending != negotiated(to, mesh.eui64(*a), CellOptions::RX)
        })
        .map(|(a, b)| (a.0, b.0))
        .collect()
}

/// A 6P transaction under way changes one side before the other, and a lost acknowledgement of its last
/// message leaves the two apart until the next one; but RFC 8480 s3.4.6 lets no such state last.
#[test]
fn both_ends_of_a_link_agree_on_its_negotiated_cells() {
    let functions = functions();
    for (name, scheduling) in functions.iter().filter(|(name, _)| name.contains("msf")) {
        for seed in 1..=5 {
            let mut config = quick(line(4));
            config.node.scheduling = scheduling.clone();
            let mut mesh = mesh(config, seed);
            let (mut agreed, mut cells) = (0, 0);
            for second in (600..900).step_by(5) {
                mesh.advance(Instant::from_secs(second));
                agreed += usize::from(disagreements(&mesh).is_empty());
                cells = mesh.nodes().iter().map(Node::negotiated_cells).sum();
            }
            assert!(cells >= 6, "{name} seed {seed}: {cells} negotiated cells");
            assert!(agreed >= 54, "{name} seed {seed}: both ends agreed in {agreed} of 60 looks");
        }
    }
}

#[test]
fn clocks_of_40_ppm_stay_in_step_and_a_guard_time_too_short_for_them_does_not() {
    let desynchronised = |guard_micros| {
        let mut config = Config { drift_max_ppm: 40.0, ..quick(line(3)) };
        config.node.mac.guard = Duration::from_micros(guard_micros);
        let outcome = run(config, 4);
        let joined = outcome.nodes.iter().filter(|node| node.joined.is_some()).count();
        (joined, outcome.nodes.iter().map(|node| node.desynchronisations).sum::<u32>())
    };
    assert_eq!(desynchronised(1_100), (3, 0));
    let (_, lost) = desynchronised(20);
    assert!(lost > 0, "a guard time of 20 us is no guard");
}

#[test]
fn a_node_out_of_range_never_joins_and_the_others_do() {
    use lowmesh_sim::air::Position;
    use lowmesh_sim::topology::TopologySpec;
    let place = |x_m| Position::new(x_m, 0.0);
    let positions = vec![place(0.0), place(40.0), place(10_000.0)];
    let outcome = run(Config { topology: TopologySpec::Explicit(positions), ..line(3) }, 1);
    let joined: Vec<bool> = outcome.nodes.iter().map(|node| node.joined.is_some()).collect();
    assert_eq!(joined, [true, true, false]);
    assert!(outcome.transactions.iter().all(|t| t.node == NodeId(1)));
    assert_eq!((outcome.nodes[2].hops, outcome.nodes[2].frames_sent), (None, 0));
}

#[test]
fn every_unicast_frame_is_received_collided_faded_deaf_or_missed() {
    let perfect = run(line(3), 1).frames;
    // Three nodes in a line with perfect links: only what two send at once in a shared cell is lost.
    assert!(perfect.sent > 100 && perfect.sixtop > 0, "{perfect:?}");
    assert_eq!(perfect.faded, 0, "{perfect:?}");
    for number in 0..8 {
        let outcome = run(random(number), number);
        let frames = outcome.frames;
        let accounted = frames.received + frames.collided + frames.faded + frames.deaf;
        assert!(accounted <= frames.sent, "world {number}: {frames:?}");
        let full: u64 = outcome
            .drops
            .iter()
            .filter(|((_, reason), _)| *reason == lowmesh_machine::DropReason::QueueFull)
            .map(|(_, count)| count)
            .sum();
        // A copy that found a queue full may have arrived by another one.
        assert!(outcome.overflows.len() as u64 >= full, "world {number}");
    }
}
