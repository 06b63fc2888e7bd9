//! Packets larger than a frame over several hops, in each of the four ways.

use lowmesh_lowpan::{FragmentMode, StackProfile};
use lowmesh_mac::csma;
use lowmesh_machine::{DropReason, Layer};
use lowmesh_sim::record::Outcome;
use lowmesh_sim::topology::TopologySpec;
use lowmesh_sim::traffic::{Application, Process};
use lowmesh_stack::tree::Tree;
use lowmesh_stack::{LinkLayer, Routes};
use lowmesh_units::{Duration, NodeId};

use crate::worlds::{Config, line, matrix_of, run};

/// Four nodes in a row send datagrams of 400 octets to the root; links deliver `pdr`.
fn row(mode: FragmentMode, pdr: f64) -> Config {
    let mut config = line(5);
    let parents = [None, Some(0), Some(1), Some(2), Some(3)].map(|p| p.map(NodeId));
    config.node.routes = Routes::Static(Tree::new(&parents).expect("a tree"));
    config.node.link = LinkLayer::Csma(csma::Config::default());
    config.node.lowpan.mode = mode;
    config.topology = TopologySpec::Unplaced { nodes: 5 };
    let near = |a: usize, b: usize| if a.abs_diff(b) == 1 { pdr } else { 0.0 };
    let matrix = (0..5).map(|a| (0..5).map(|b| near(a, b)).collect()).collect();
    config.medium = matrix_of(matrix);
    config.traffic.application = Application::Datagrams;
    config.traffic.start = Duration::from_secs(1);
    config.traffic.period = Duration::from_secs(10);
    config.traffic.jitter = 0.5;
    config.traffic.payload_octets = 400;
    config.duration = Duration::from_secs(300);
    config
}

fn arrived(outcome: &Outcome) -> f64 {
    let arrived = outcome.datagrams.iter().filter(|d| d.arrived.is_some()).count();
    arrived as f64 / outcome.datagrams.len() as f64
}

#[test]
fn every_mode_carries_large_packets_over_contended_hops() {
    for mode in FragmentMode::ALL {
        let outcome = run(row(mode, 1.0), 1);
        assert!(outcome.datagrams.len() > 100);
        assert!(arrived(&outcome) > 0.7, "{}: {}", mode.name(), arrived(&outcome));
    }
}

#[test]
fn every_mode_carries_large_packets_over_timeslots() {
    for mode in FragmentMode::ALL {
        let mut config = row(mode, 1.0);
        config.node.link = LinkLayer::Tsch;
        config.traffic.start = Duration::from_secs(300);
        config.traffic.period = Duration::from_secs(30);
        config.duration = Duration::from_secs(900);
        let outcome = run(config, 1);
        assert!(arrived(&outcome) > 0.9, "{}: {}", mode.name(), arrived(&outcome));
    }
}

#[test]
fn recovery_brings_back_what_bad_links_lose() {
    let config = |mode| {
        let mut config = row(mode, 0.8);
        let mac = csma::Config { retries_max: 0, ..csma::Config::default() };
        config.node.link = LinkLayer::Csma(mac);
        config
    };
    let (forwarded, recovered) =
        (run(config(FragmentMode::Forwarded), 1), run(config(FragmentMode::Recovered), 1));
    assert!(arrived(&recovered) > arrived(&forwarded) + 0.1);
}

/// `run` holds the book of packets against what the nodes have: buffers that are taken away, entries that live on and
/// fragments that open packets again are where it would not balance.
#[test]
fn every_mode_ends_every_packet_once_when_buffers_are_short_in_the_profile_of_gnrc() {
    for mode in FragmentMode::ALL {
        let mut config = row(mode, 0.8);
        let mac =
            csma::Config { retries_max: 1, rejects_duplicates: false, ..csma::Config::default() };
        config.node.link = LinkLayer::Csma(mac);
        config.node.lowpan.profile = StackProfile::RiotGnrc;
        config.node.lowpan.reassembly_buffers = 1;
        config.node.root_reassembly_buffers = Some(2);
        config.traffic.period = Duration::from_secs(2);
        let outcome = run(config, 1);
        assert!(outcome.datagrams.len() > 500);
        assert!(arrived(&outcome) < 0.9, "{}: {}", mode.name(), arrived(&outcome));
        if mode == FragmentMode::EndToEnd {
            assert!(outcome.drops[&(Layer::Ipv6, DropReason::BufferFull)] > 10);
        }
    }
}

#[test]
fn rpl_s_option_goes_along_with_a_forwarded_packet() {
    let mut config = line(4);
    config.node.link = LinkLayer::Csma(csma::Config::default());
    config.node.lowpan.mode = FragmentMode::Forwarded;
    config.traffic.payload_octets = 300;
    let outcome = run(config, 1);
    let over = outcome.transactions.iter().filter(|t| t.ended.is_some()).count();
    let good = outcome.transactions.iter().filter(|t| t.delay().is_some()).count();
    assert!(over > 100 && good * 100 > over * 95, "{good} of {over}");
}

/// Two nodes with carrier sense on a perfect link; one sends datagrams of 1000 octets, one in `period` on average. The
/// link carries 13 or 14 a second.
fn one_sender(mode: FragmentMode, period: Duration) -> Outcome {
    let mut config = line(2);
    config.node.routes = Routes::Static(Tree::new(&[None, Some(NodeId(0))]).expect("a tree"));
    config.node.link = LinkLayer::Csma(csma::Config::default());
    config.topology = TopologySpec::Unplaced { nodes: 2 };
    config.medium = matrix_of(vec![vec![0.0, 1.0], vec![1.0, 0.0]]);
    config.node.lowpan.mode = mode;
    config.node.lowpan.frame_payload = 104;
    config.traffic.application = Application::Datagrams;
    config.traffic.process = Process::Poisson;
    config.traffic.start = Duration::from_secs(1);
    config.traffic.period = period;
    config.traffic.payload_octets = 1000;
    config.duration = Duration::from_secs(120);
    run(config, 1)
}

#[test]
fn datagrams_in_fragments_are_sent_in_an_order_that_a_receiver_of_two_can_put_together() {
    for mode in [FragmentMode::HopWise, FragmentMode::Forwarded] {
        let outcome = one_sender(mode, Duration::from_millis(200));
        let lost = outcome.datagrams.iter().filter(|d| d.arrived.is_none()).count();
        // What is on its way at the end has not arrived.
        assert!(outcome.datagrams.len() > 500 && lost <= 3, "{mode:?}: {lost}");
    }
}

#[test]
fn more_datagrams_than_a_link_carries_waste_none_of_its_time() {
    for mode in [FragmentMode::HopWise, FragmentMode::Forwarded] {
        let outcome = one_sender(mode, Duration::from_millis(20));
        let arrived = outcome.datagrams.iter().filter(|d| d.arrived.is_some()).count();
        assert!(arrived > 13 * 119, "{mode:?}: {arrived} in 119 s");
    }
}
