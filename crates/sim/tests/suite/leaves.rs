//! Leaves, which run no RPL, in a grid: are they reached in both modes, and again when their router fails?

use lowmesh_mac::csma;
use lowmesh_rpl::Mode;
use lowmesh_sim::event::Memory;
use lowmesh_sim::record::{Ending, Outcome};
use lowmesh_sim::topology::TopologySpec;
use lowmesh_sim::traffic::Application;
use lowmesh_sim::{Event, Sinks};
use lowmesh_stack::LinkLayer;
use lowmesh_units::{Duration, Instant, NodeId};

use crate::worlds::{Config, functions, line, quick, run};

const MODES: [Mode; 2] = [Mode::Storing, Mode::NonStoring];

/// Twelve nodes in a grid, of which each hears those beside it and across; three run no RPL.
fn grid(mode: Mode) -> Config {
    let mut config = quick(line(1));
    config.topology = TopologySpec::Grid { rows: 3, cols: 4, spacing_m: 33.0 };
    config.node.rpl = config.node.rpl.with_mode(mode);
    config.leaves = [5, 7, 10].map(NodeId).to_vec();
    config.duration = Duration::from_secs(1_500);
    config.traffic.start = Duration::from_secs(600);
    config.traffic.period = Duration::from_secs(20);
    config
}

/// The share of the transactions of these clients that are over that succeeded.
fn succeeded(outcome: &Outcome, clients: &[NodeId]) -> f64 {
    let own = outcome.transactions.iter().filter(|one| clients.contains(&one.node));
    let over: Vec<_> = own.filter(|one| one.ending != Ending::Open).collect();
    assert!(over.len() > 20, "{} transactions", over.len());
    let good = over.iter().filter(|one| one.ending == Ending::Acknowledged).count();
    good as f64 / over.len() as f64
}

#[test]
fn requests_of_leaves_arrive_and_so_do_those_to_them() {
    for mode in MODES {
        let config = grid(mode);
        let leaves = config.leaves.clone();
        let share = succeeded(&run(config.clone(), 1), &leaves);
        assert!(share > 0.97, "{mode:?}: {share}");
        // The root asks each node: a leaf that is not reached would be one request of eleven.
        let path = "sensor".into();
        let application = Application::Poll { confirmable: true, path };
        let traffic = lowmesh_sim::traffic::Config { application, ..config.traffic.clone() };
        let share = succeeded(&run(Config { traffic, ..config }, 1), &[NodeId(0)]);
        assert!(share > 0.97, "{mode:?}: {share}");
    }
}

#[test]
fn leaves_are_served_under_every_schedule_and_with_carrier_sense() {
    for (name, function) in functions() {
        let mut config = grid(Mode::Storing);
        config.node.scheduling = function;
        config.traffic.period = Duration::from_secs(60);
        let leaves = config.leaves.clone();
        let outcome = run(config, 2);
        let share = succeeded(&outcome, &leaves);
        assert!(share > 0.9, "{name}: {share}");
    }
    for mode in MODES {
        let mut config = grid(mode);
        config.node.link = LinkLayer::Csma(csma::Config::default());
        let leaves = config.leaves.clone();
        let outcome = run(config, 2);
        let share = succeeded(&outcome, &leaves);
        assert!(share > 0.97, "{mode:?}: {share}");
    }
}

#[test]
fn a_leaf_is_reached_again_after_its_router_fails_or_it_restarts() {
    for mode in MODES {
        let mut mesh = grid(mode).mesh(3, Sinks::default()).expect("parts that fit together");
        let leaf = NodeId(5);
        let failure = Instant::from_secs(700);
        mesh.advance(failure);
        let router = |mesh: &lowmesh_sim::Mesh| mesh.snapshot().nodes[leaf.index()].parent;
        let behind = |mesh: &lowmesh_sim::Mesh| {
            let address = mesh.nodes()[leaf.index()].global_address();
            mesh.nodes()[0].router_of(&address).and_then(|router| mesh.node_with(router))
        };
        let first = router(&mesh).expect("it is registered");
        // A leaf of the root itself has no other router in between.
        let at_root = first == NodeId(0);
        assert_eq!(behind(&mesh), Some(first).filter(|_| !at_root), "{mode:?}");
        if !at_root {
            let off = Event::Off { node: first, memory: Memory::Lost };
            mesh.apply(failure, off).expect("it is on");
            mesh.advance(failure + Duration::from_secs(400));
            let second = router(&mesh).expect("it is registered again");
            assert_ne!(second, first, "{mode:?}");
            assert_eq!(behind(&mesh), Some(second).filter(|at| *at != NodeId(0)), "{mode:?}");
        }
        let restart = Instant::from_secs(1_200);
        mesh.apply(restart, Event::Reboot { node: leaf, dark: Duration::from_secs(10) })
            .expect("it is on");
        mesh.advance(restart + Duration::from_secs(250));
        let last = router(&mesh).expect("it is registered after the restart");
        assert_eq!(behind(&mesh), Some(last).filter(|at| *at != NodeId(0)), "{mode:?}");
        mesh.finish().expect("the books balance");
    }
}

#[test]
fn a_border_router_is_no_leaf() {
    let mut config = grid(Mode::Storing);
    config.node.is_leaf = true;
    let error = config.mesh(1, Sinks::default()).expect_err("the root is a leaf").to_string();
    assert!(error.contains("no border router is a leaf"), "{error}");
}
