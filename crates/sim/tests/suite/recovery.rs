//! Recoverable fragments in the network that Lenders et al. (IEEE Access 9, 2021, s V) studied congestion control in: eight
//! nodes that all hear each other, routes in the shape of a T, the thin MAC.

use lowmesh_congestion::window::Limits;
use lowmesh_congestion::{Window, WindowSpec};
use lowmesh_lowpan::{Arq, FragmentMode, Recovery};
use lowmesh_mac::csma;
use lowmesh_registry::Registry;
use lowmesh_sim::record::Outcome;
use lowmesh_sim::topology::TopologySpec;
use lowmesh_sim::traffic::Application;
use lowmesh_stack::tree::Tree;
use lowmesh_stack::{LinkLayer, Routes};
use lowmesh_units::{Duration, NodeId};

use crate::worlds::{Config, line, matrix_of, run};

/// Six of the nodes send `readings` datagrams of `payload_octets`, one each `period`, under the window called `window`.
fn t_of_eight(window: &str, payload_octets: usize, period: Duration, readings: u64) -> Config {
    let parents = [None, Some(0), Some(1), Some(1), Some(2), Some(4), Some(3), Some(6)];
    let parents = parents.map(|parent| parent.map(NodeId));
    let near = |a: usize, b: usize| if a == b { 0.0 } else { 0.98 };
    let matrix = (0..8).map(|a| (0..8).map(|b| near(a, b)).collect()).collect();
    let mut config = line(8);
    config.node.routes = Routes::Static(Tree::new(&parents).expect("a tree"));
    config.node.link = LinkLayer::Csma(csma::Config::thin());
    config.topology = TopologySpec::Unplaced { nodes: 8 };
    config.medium = matrix_of(matrix);
    config.duration = Duration::from_secs(30) + period * readings;
    config.traffic.application = Application::Datagrams;
    config.traffic.start = Duration::from_secs(2);
    config.traffic.period = period;
    config.traffic.jitter = 0.5;
    config.traffic.payload_octets = payload_octets;
    config.traffic.readings_max = Some(readings);
    config.traffic.hops_min = 2;
    let lowpan = &mut config.node.lowpan;
    lowpan.mode = FragmentMode::Recovered;
    lowpan.frame_payload = 102;
    lowpan.packet_buffer_octets = 40_960;
    lowpan.reassembly_buffers = 16;
    lowpan.reassembly_octets = 16 * 1280;
    lowpan.fragmented_datagrams = 4;
    lowpan.recovery = Recovery {
        window: WindowSpec::new(
            Registry::builtin().row(window).expect("a listed name"),
            Limits::messages(2, 32),
        ),
        arq: Arq::fixed(Duration::from_millis(2500)),
        linger: Duration::from_micros(250),
        ..Recovery::default()
    };
    config
}

fn arrived(outcome: &Outcome) -> f64 {
    let arrived = outcome.datagrams.iter().filter(|d| d.arrived.is_some()).count();
    arrived as f64 / outcome.datagrams.len() as f64
}

#[test]
fn the_books_balance_when_frames_wait_long_for_their_gap() {
    // More than the gap of 170 ms lets through: most datagrams end while fragments of them wait.
    for window in Registry::<dyn Window>::builtin().names() {
        let mut config = t_of_eight(window, 112, Duration::from_millis(500), 200);
        config.node.lowpan.recovery.inter_frame_gap = Duration::from_millis(170);
        for seed in 1..=2 {
            let outcome = run(config.clone(), seed);
            assert!(outcome.datagrams.len() > 1000 && arrived(&outcome) < 0.3, "{window}");
        }
    }
}

#[test]
fn a_window_that_grows_slowly_and_paces_loses_least_under_light_load() {
    let lost = |window: &str| {
        let config = t_of_eight(window, 784, Duration::from_secs(20), 30);
        (1..=2).map(|seed| 1.0 - arrived(&run(config.clone(), seed))).sum::<f64>() / 2.0
    };
    let (ours, quic, reno) = (lost("lln"), lost("quic"), lost("reno"));
    assert!(ours < 0.01, "{ours}");
    assert!(ours <= quic && quic + 0.1 < reno, "{ours} {quic} {reno}");
}
