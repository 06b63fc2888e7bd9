//! Several border routers: separate meshes, and packets between them and to other networks.

use std::sync::{Arc, Mutex};

use lowmesh_ipv6::packet::{Flow, udp};
use lowmesh_mac::csma;
use lowmesh_mac::tsch::hopping::HoppingSequence;
use lowmesh_machine::{DropReason, Layer};
use lowmesh_rpl::Mode;
use lowmesh_sim::air::build;
use lowmesh_sim::record::{Ending, Outcome, Transaction};
use lowmesh_sim::topology::Topology;
use lowmesh_sim::traffic::{self, Collector};
use lowmesh_sim::{Builder, InjectError, LineParts, Mesh, NodeParts, PAN, Wire};
use lowmesh_stack::{ECHO_PORT, LinkLayer};
use lowmesh_units::{Channel, Duration, Instant, NodeId, PanId, Seed};
use lowmesh_wire::ipv6::{Address, HOP_LIMIT_OFFSET};
use lowmesh_wired::{Config as LinkConfig, Loss, SerialConfig};

use crate::worlds::{line, matrix_of};

const OTHER: PanId = PanId(0xabce);
/// A host outside all meshes.
const HOST: Address = Address([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);

/// A router that joins quickly.
fn router(pan: PanId) -> NodeParts {
    let mut parts = NodeParts::router(pan);
    parts.stack.mac.eb_period = Duration::from_secs(2);
    parts.stack.mac.broadcast_spacing = 0;
    parts
}

fn hop(parts: NodeParts, channels: &[u8]) -> NodeParts {
    let channels = channels.iter().filter_map(|number| Channel::new(*number)).collect();
    parts.channels(HoppingSequence::new(channels).expect("some channels"))
}

/// Six nodes in a row that hear their neighbours, 0 to 2 in one mesh and 3 to 5 in another.
fn two_meshes(seed: u64, parts: impl Fn(PanId) -> NodeParts) -> Builder {
    let near = |a: usize, b: usize| f64::from(u8::from(a.abs_diff(b) == 1));
    let pdr = (0..6).map(|a| (0..6).map(|b| near(a, b)).collect()).collect();
    let medium = build(matrix_of(pdr), &Topology::unplaced(6), Seed(seed));
    let root = |pan| NodeParts { is_border_router: true, ..parts(pan) };
    Mesh::builder(Seed(seed))
        .medium(medium.expect("a good matrix"))
        .node(NodeId(0), root(PAN))
        .nodes(1..3, |_| parts(PAN))
        .node(NodeId(3), root(OTHER))
        .nodes(4..6, |_| parts(OTHER))
        .traffic(reports(Collector::First))
}

fn reports(collector: Collector) -> traffic::Config {
    traffic::Config { collector, ..line(2).traffic }
}

/// On channels of their own: 15 and 20, 25 and 26.
fn apart(pan: PanId) -> NodeParts {
    hop(router(pan), if pan == PAN { &[15, 20] } else { &[25, 26] })
}

fn run(builder: Builder, seconds: u64) -> Outcome {
    let mut mesh = builder.build().expect("parts that fit together");
    mesh.run_for(Duration::from_secs(seconds));
    mesh.finish().expect("the books balance")
}

/// Requests of `node` that were acknowledged, and all that it issued.
fn acknowledged(outcome: &Outcome, node: u16) -> (usize, usize) {
    let own = || outcome.transactions.iter().filter(move |t| t.node == NodeId(node));
    (own().filter(|t| t.ending == Ending::Acknowledged).count(), own().count())
}

#[test]
fn readings_of_one_mesh_reach_the_collector_of_the_other_and_answers_come_back() {
    for mode in [Mode::Storing, Mode::NonStoring] {
        let parts = |pan| {
            let mut parts = apart(pan);
            parts.stack.rpl = parts.stack.rpl.with_mode(mode);
            parts
        };
        let outcome = run(two_meshes(1, parts).backbone(Wire::ethernet()), 900);
        for node in [1, 2, 4, 5] {
            let (good, all) = acknowledged(&outcome, node);
            assert!(good > 40 && good * 10 >= all * 9, "{mode:?} node {node}: {good} of {all}");
        }
        let answered: usize = [1, 2, 4, 5].map(|node| acknowledged(&outcome, node).0).iter().sum();
        assert!(outcome.executed as usize >= answered);
        assert_eq!(outcome.nodes[5].hops, Some(2), "its own border router");
    }
}

/// The link of Pesola 2020 with a loss of one in ten packets.
fn lossy(rate_bits_per_second: u64) -> LinkConfig {
    LinkConfig {
        rate_bits_per_second,
        delay: Duration::from_millis(200),
        jitter: (Duration::from_millis(10), Duration::from_millis(20)),
        queue_octets_max: 2_500,
        loss: Loss::Independent { probability: 0.1 },
        samples_max: 0,
    }
}

#[test]
fn a_line_carries_readings_at_its_rate_and_loses_its_share() {
    let parts = LineParts::Link { out: lossy(60_000), back: lossy(30_000), saved_octets: 0 };
    let world = || two_meshes(1, apart).line(NodeId(0), NodeId(3), parts.clone());
    let outcome = run(world(), 900);
    let good: Vec<f64> = [1, 2, 4, 5]
        .map(|node| acknowledged(&outcome, node))
        .map(|(good, all)| good as f64 / all as f64)
        .to_vec();
    // Four tries of a request over two directions that lose a tenth.
    assert!(good.iter().all(|share| *share > 0.9), "{good:?}");
    let fastest = |node: u16| {
        let own = outcome.transactions.iter().filter(|t| t.node == NodeId(node));
        own.filter_map(Transaction::delay).min().expect("some are answered")
    };
    assert!(fastest(2) + Duration::from_millis(400) < fastest(5), "{} {}", fastest(2), fastest(5));
    let [line] = &outcome.lines[..] else { panic!("one link") };
    for counters in line.counters {
        let share = counters.lost as f64 / counters.offered as f64;
        assert!(counters.offered > 80 && (0.03..0.2).contains(&share), "{counters:?}");
    }
    let lost = outcome.drops.get(&(Layer::Mac, DropReason::LineLoss)).copied();
    assert_eq!(lost, Some(line.counters.iter().map(|counters| counters.lost).sum()));
    assert_eq!(outcome.trace_hash, run(world(), 900).trace_hash);
}

#[test]
fn a_border_router_reads_its_serial_line_while_its_radio_is_free() {
    let parts = |pan| {
        let mut parts = router(pan).link(LinkLayer::Csma(csma::Config::contiki2014()));
        let number = if pan == PAN { 26 } else { 11 };
        parts.carrier.channel = Channel::new(number).expect("in the band");
        parts
    };
    let serial = LineParts::Serial(SerialConfig::contiki2014());
    let outcome = run(two_meshes(3, parts).line(NodeId(0), NodeId(3), serial), 900);
    let (good, all) = acknowledged(&outcome, 5);
    assert!(good > 40 && good * 10 >= all * 9, "{good} of {all}");
}

#[test]
fn a_line_has_two_ends_that_are_border_routers() {
    let error = |near, far| {
        let serial = LineParts::Serial(SerialConfig::contiki2014());
        let builder = two_meshes(3, apart).line(NodeId(near), NodeId(far), serial);
        builder.build().expect_err("no line").to_string()
    };
    assert_eq!(error(0, 4), "line 0 = 4: a line connects two border routers");
    assert!(error(3, 3).contains("another node"), "{}", error(3, 3));
}

#[test]
fn without_a_backbone_each_packet_for_the_other_mesh_ends_at_the_border() {
    let outcome = run(two_meshes(1, apart), 600);
    assert_eq!(acknowledged(&outcome, 5).0, 0);
    assert!(acknowledged(&outcome, 2).0 > 20);
    let drops =
        outcome.drops.iter().map(|((layer, reason), count)| (layer.name(), reason.name(), count));
    let (_, _, count) = drops
        .clone()
        .find(|(_, reason, _)| *reason == "no_route")
        .unwrap_or_else(|| panic!("{:?}", drops.collect::<Vec<_>>()));
    assert!(*count > 20, "{count}");
}

#[test]
fn meshes_on_the_same_channels_keep_to_their_pan() {
    let mut mesh = two_meshes(2, router).traffic(reports(Collector::Own)).build().expect("good");
    mesh.run_for(Duration::from_secs(900));
    let snapshot = mesh.snapshot();
    for node in &snapshot.nodes {
        assert!(node.is_joined, "{node:?}");
        let first = if node.node.0 < 3 { 0 } else { 3 };
        assert_eq!(node.border_router, NodeId(first));
        let expected = (node.node.0 > first).then(|| NodeId(node.node.0 - 1));
        assert_eq!(node.parent, expected, "{node:?}");
        assert_eq!(node.address.0[..8], mesh.nodes()[usize::from(first)].global_address().0[..8]);
    }
    mesh.finish().expect("the books balance");
}

#[test]
fn carrier_sense_has_a_channel_for_each_mesh() {
    let parts = |pan| {
        let mut parts = router(pan).link(LinkLayer::Csma(csma::Config::default()));
        let number = if pan == PAN { 26 } else { 11 };
        parts.carrier.channel = Channel::new(number).expect("in the band");
        parts
    };
    let outcome = run(two_meshes(3, parts).backbone(Wire { delay: Duration::from_secs(1) }), 600);
    let near = outcome.transactions.iter().filter(|t| t.node == NodeId(1));
    let far = outcome.transactions.iter().filter(|t| t.node == NodeId(4));
    let most = |of: &mut dyn Iterator<Item = &Transaction>| {
        of.filter_map(Transaction::delay).max().expect("an answer")
    };
    assert!(most(&mut near.into_iter()) < Duration::from_secs(1));
    let delays: Vec<Duration> = far.filter_map(Transaction::delay).collect();
    assert!(delays.len() > 30);
    assert!(delays.iter().all(|delay| *delay > Duration::from_secs(2)), "two times the wire");
    let crossed = |from: u16, to: u16| outcome.links.contains_key(&(NodeId(from), NodeId(to)));
    assert!(crossed(1, 0) && crossed(4, 3) && !crossed(2, 3) && !crossed(3, 2));
}

/// A datagram of the host outside for the echo port of a node.
fn question(to: Address) -> Vec<u8> {
    let flow =
        Flow { source: HOST, destination: to, source_port: 4000, destination_port: ECHO_PORT };
    udp(&flow, 64, b"are you there", |_| ())
}

#[test]
fn a_host_outside_asks_a_node_and_the_answer_leaves_by_the_uplink() {
    for mode in [Mode::Storing, Mode::NonStoring] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let parts = |pan| {
            let mut parts = apart(pan);
            parts.stack.rpl = parts.stack.rpl.with_mode(mode);
            parts
        };
        let mut mesh = two_meshes(4, parts)
            .traffic(reports(Collector::Own))
            .uplink(move |now, node, packet| {
                sink.lock().expect("one thread").push((now, node, packet.to_vec()));
            })
            .build()
            .expect("parts that fit together");
        let (asked, node) = (Instant::from_secs(700), mesh.nodes()[5].global_address());
        mesh.inject(asked, NodeId(3), &question(node)).expect("a packet, later than now");
        mesh.run_for(Duration::from_secs(60));
        let seen = seen.lock().expect("one thread").clone();
        let [(answered, border_router, packet)] = &seen[..] else { panic!("{mode:?}: {seen:?}") };
        assert!(*answered > asked && *border_router == NodeId(3));
        let answer = lowmesh_ipv6::udp::demultiplex(packet).expect("UDP without RPL's option");
        assert_eq!((answer.flow.source, answer.flow.destination), (node, HOST));
        assert_eq!(answer.payload, b"are you there");
        assert_eq!(packet[HOP_LIMIT_OFFSET], 64 - 2, "node 4 and the border router forwarded it");
        mesh.finish().expect("the books balance");
    }
}

#[test]
fn what_cannot_be_injected_is_told_with_what_can() {
    let mut mesh = two_meshes(5, apart).build().expect("parts that fit together");
    mesh.run_for(Duration::from_secs(10));
    let packet = question(HOST);
    let mut told = |seconds, node, packet: &[u8]| {
        let error = mesh.inject(Instant::from_secs(seconds), NodeId(node), packet);
        error.expect_err("it cannot be").to_string()
    };
    assert_eq!(
        told(10, 6, &packet),
        "node 6 does not exist; nodes are numbered from 0, and there are 6"
    );
    assert!(told(9, 0, &packet).contains("so inject at"));
    assert!(told(10, 0, &packet[..50]).starts_with("the octets are not an IPv6 packet: "));
    let past = mesh.inject(Instant::ZERO, NodeId(0), &packet);
    assert!(matches!(past, Err(InjectError::Past { .. })));
}

#[test]
fn parts_that_do_not_fit_together_are_one_error_that_names_the_node() {
    let told = |builder: Builder| builder.build().expect_err("it does not fit").to_string();
    let matrix = || two_meshes(1, apart);
    assert!(told(Mesh::builder(Seed(1))).starts_with("medium = none: "));
    let twice = matrix().node(NodeId(3), apart(OTHER));
    assert_eq!(told(twice), "node 3 = given twice: a node is given once");
    let gap = matrix().node(NodeId(9), apart(OTHER));
    assert!(told(gap).starts_with("node 6 = missing: "));
    let seventh = matrix().node(NodeId(6), apart(OTHER));
    assert_eq!(told(seventh), "nodes = 7: the medium has 6; the numbers must be the same");
    let lost = |id: u16, parts: NodeParts| {
        let medium = matrix_of(vec![vec![0.0, 1.0], vec![1.0, 0.0]]);
        let medium = build(medium, &Topology::unplaced(2), Seed(1)).expect("good");
        let root = NodeParts::border_router(PAN);
        told(Mesh::builder(Seed(1)).medium(medium).node(NodeId(0), root).node(NodeId(id), parts))
    };
    assert!(lost(1, router(OTHER)).starts_with("node 1: pan = 0xabce: "));
    let second = NodeParts::border_router(PAN);
    assert!(lost(1, second).contains("node 0 is the border router of this PAN"));
    let csma = router(PAN).link(LinkLayer::Csma(csma::Config::default()));
    assert!(lost(1, csma).starts_with("node 1: link = another MAC: "));
    let mut slow = router(PAN);
    slow.stack.mac.slot = Duration::from_millis(15);
    assert_eq!(lost(1, slow), "node 1: slot = 15ms: the timeslot of node 0, 10ms");
    let mut other = router(PAN);
    other.stack.rpl = other.stack.rpl.with_mode(Mode::NonStoring);
    assert!(lost(1, other).starts_with("node 1: routes = NonStoring: "));
    assert!(lost(1, router(PAN).drift(f64::NAN)).starts_with("node 1: drift = NaN: "));
}

#[test]
fn two_meshes_repeat_to_the_last_number() {
    let outcome = || run(two_meshes(7, apart).backbone(Wire::ethernet()), 400);
    assert_eq!(outcome(), outcome());
}
