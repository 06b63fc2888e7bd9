//! What is due at nodes that have not joined, and what is under way when a run ends.

use lowmesh_mac::csma;
use lowmesh_sim::Event;
use lowmesh_sim::event::Memory;
use lowmesh_sim::record::{Ending, Outcome, Reading};
use lowmesh_sim::traffic::{Application, Process};
use lowmesh_stack::LinkLayer;
use lowmesh_units::{Duration, Instant, NodeId};

use crate::worlds::{Config, line, matrix_of, quick, run};

const START: u64 = 120;

/// Nodes 0 and 1 hear each other, and so do 2 and 3; a reading every ten seconds from the second minute on.
fn split() -> Config {
    let pair = |a: usize, b: usize| f64::from(u8::from(a != b && a / 2 == b / 2));
    let row = |a: usize| (0..4).map(|b| pair(a, b)).collect();
    let mut config = quick(line(4));
    config.topology = lowmesh_sim::topology::TopologySpec::Unplaced { nodes: 4 };
    config.medium = matrix_of((0..4).map(row).collect());
    config.duration = Duration::from_secs(620);
    config
}

fn of(outcome: &Outcome, node: u16) -> Vec<Instant> {
    let own = outcome.unsent.iter().filter(|unsent| unsent.node == NodeId(node));
    own.map(|unsent| unsent.due).collect()
}

#[test]
fn nodes_without_a_path_to_the_root_do_not_send_what_is_due_at_them() {
    for application in [
        Application::Coap { confirmable: true, path: "sensor".into() },
        Application::Datagrams,
        Application::Observe { confirmable: true, path: "sensor".into() },
        Application::Fetch { confirmable: true, path: "sensor".into(), clients: None },
    ] {
        let mut config = split();
        let is_datagram =
            matches!(application, Application::Datagrams | Application::Observe { .. });
        config.traffic.application = application;
        config.traffic.jitter = 0.0;
        let outcome = run(config, 1);
        let joined = |node: usize| outcome.nodes[node].joined.is_some();
        assert_eq!([0, 1, 2, 3].map(joined), [true, true, false, false]);
        // One in ten seconds of 500.
        assert_eq!([1, 2, 3].map(|node| of(&outcome, node).len()), [0, 50, 50]);
        let reading = if is_datagram { Reading::Datagram } else { Reading::Transaction };
        assert!(outcome.unsent.iter().all(|unsent| unsent.reading == reading));
        assert!(outcome.unsent.is_sorted_by_key(|unsent| unsent.due));
    }
}

#[test]
fn random_arrivals_that_nobody_sends_are_those_that_the_node_would_have_had() {
    let of_seed = |seed| {
        let mut config = split();
        config.traffic.process = Process::Poisson;
        of(&run(config, seed), 2)
    };
    let (one, other) = (of_seed(1), of_seed(2));
    assert_eq!(one, of_seed(1));
    assert_ne!(one, other);
    // 50 on average; five standard deviations of 7.
    assert!((15..=85).contains(&one.len()) && (15..=85).contains(&other.len()));
}

#[test]
fn a_node_owes_nothing_while_it_is_off_and_all_that_is_due_until_it_joins_again() {
    let mut config = quick(line(2));
    config.duration = Duration::from_secs(900);
    config.traffic.jitter = 0.0;
    let off = Event::Off { node: NodeId(1), memory: Memory::Lost };
    config.events = vec![
        (Instant::from_secs(400), off),
        (Instant::from_secs(600), Event::On { node: NodeId(1) }),
    ];
    let outcome = run(config.clone(), 1);
    let unsent = of(&outcome, 1);
    let between = |from: u64, to: u64| {
        let within = |at: &Instant| *at >= Instant::from_secs(from) && *at < Instant::from_secs(to);
        let issued = outcome.transactions.iter().map(|one| one.issued);
        (issued.filter(within).count(), unsent.iter().filter(|at| within(at)).count())
    };
    assert_eq!(between(400, 600), (0, 0), "it is off");
    let (sent, missed) = between(600, 900);
    assert!(missed > 0, "it scans for its network");
    // The two schedules have phases of their own.
    assert!((29..=31).contains(&(sent + missed)), "{sent} {missed}");
    // A node that starts late owes nothing before; one that stays off never does.
    config.events = vec![(Instant::from_secs(600), Event::On { node: NodeId(1) })];
    let late = run(config.clone(), 1);
    assert!(of(&late, 1).iter().all(|at| *at >= Instant::from_secs(600)));
    assert_eq!(late.nodes[1].booted, Some(Instant::from_secs(600)));
}

#[test]
fn a_node_that_joins_at_once_owes_nothing() {
    let mut config = split();
    config.node.link = LinkLayer::Csma(csma::Config::default());
    config.traffic.start = Duration::from_secs(START);
    config.events = vec![];
    let outcome = run(config, 1);
    assert!(outcome.nodes[1].joined.is_some_and(|at| at < Instant::from_secs(START)));
    assert_eq!(of(&outcome, 1), []);
    assert!(outcome.transactions.iter().any(|one| one.ending == Ending::Acknowledged));
}

#[test]
fn a_datagram_that_a_node_holds_at_the_end_is_open_and_a_lost_one_is_not() {
    let mut config = quick(line(3));
    config.traffic.application = Application::Datagrams;
    config.traffic.period = Duration::from_millis(700);
    config.duration = Duration::from_secs(900);
    let mut mesh = crate::worlds::mesh(config.clone(), 4);
    mesh.run_for(config.duration);
    let held = mesh.snapshot().nodes.iter().any(|node| node.packet_buffer_octets > 0);
    let outcome = mesh.finish().expect("the books balance");
    let open: Vec<_> = outcome.datagrams.iter().filter(|one| one.is_open).collect();
    assert!(held && !open.is_empty());
    assert!(open.iter().all(|one| one.arrived.is_none()));
    assert_eq!(open.len() as u64, outcome.up.queued);
    // What is not there and not under way was dropped.
    let lost = outcome.datagrams.iter().filter(|one| one.arrived.is_none() && !one.is_open);
    assert_eq!(lost.count() as u64, outcome.up.dropped);
}
