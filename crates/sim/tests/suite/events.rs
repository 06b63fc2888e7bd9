//! Events: nodes without power, links that are cut, and what the record says of them.

use lowmesh_mac::csma;
use lowmesh_machine::DropReason;
use lowmesh_rpl::Mode;
use lowmesh_sim::air::Position;
use lowmesh_sim::event::{Event, Memory, Quality};
use lowmesh_sim::record::{Ending, Outcome, Transaction};
use lowmesh_sim::topology::TopologySpec;
use lowmesh_sim::traffic::Application;
use lowmesh_stack::tree::Tree;
use lowmesh_stack::{LinkLayer, Routes};
use lowmesh_units::{Channel, Dbm, Duration, Instant, NodeId};

use crate::worlds::{Config, line, matrix_of, mesh, quick, run};

/// A square: the root, two nodes beside it, and a fourth that hears both of them.
fn square() -> Config {
    let mut config = quick(line(4));
    config.topology = TopologySpec::Unplaced { nodes: 4 };
    config.medium = matrix_of(vec![
        vec![0.0, 1.0, 1.0, 0.0],
        vec![1.0, 0.0, 0.0, 1.0],
        vec![1.0, 0.0, 0.0, 1.0],
        vec![0.0, 1.0, 1.0, 0.0],
    ]);
    config.duration = Duration::from_secs(3600);
    config
}

fn contended(mut config: Config) -> Config {
    config.node.link = LinkLayer::Csma(csma::Config::default());
    config
}

fn at(s: u64) -> Instant {
    Instant::from_secs(s)
}

/// Transactions of a node issued within a time, and those of them that were acknowledged.
fn answered(outcome: &Outcome, node: u16, span: core::ops::Range<u64>) -> (usize, usize) {
    let within = |issued: Instant| (at(span.start)..at(span.end)).contains(&issued);
    let own = outcome.transactions.iter().filter(|t| t.node == NodeId(node) && within(t.issued));
    let (mut all, mut good) = (0, 0);
    for one in own {
        all += 1;
        good += usize::from(one.ending == Ending::Acknowledged);
    }
    (all, good)
}

fn off(node: u16) -> Event {
    Event::Off { node: NodeId(node), memory: Memory::Lost }
}
fn on(node: u16) -> Event {
    Event::On { node: NodeId(node) }
}

#[test]
fn a_node_that_comes_back_joins_again_and_its_child_has_another_parent_meanwhile() {
    for config in [square(), contended(square())] {
        let mut before = mesh(config.clone(), 1);
        before.run_for(Duration::from_secs(1200));
        let parent = before.snapshot().nodes[3].parent.expect("it has joined").0;
        let mut config = config;
        config.events = vec![(at(1200), off(parent)), (at(1800), on(parent))];
        let outcome = run(config, 1);
        let (all, good) = answered(&outcome, 3, 1320..3500);
        assert!(all > 200 && good * 100 >= all * 97, "{good} of {all}");
        assert_eq!(answered(&outcome, parent, 1200..1800).0, 0, "it is off");
        let (all, good) = answered(&outcome, parent, 2400..3500);
        assert!(all > 100 && good * 100 >= all * 97, "{good} of {all}");
        let [gone, back] = &outcome.events[..] else { panic!("{:?}", outcome.events) };
        assert_eq!((gone.cut_off, back.cut_off), (1, 1));
        for event in [gone, back] {
            let span = event.recovered.expect("the square has two ways").since(event.at);
            assert!((1..600).contains(&span.as_secs()), "{event:?}");
        }
    }
}

#[test]
fn packets_in_a_node_are_lost_with_its_memory() {
    let mut config = square();
    config.traffic.application = Application::Datagrams;
    config.traffic.period = Duration::from_millis(100);
    // Its neighbours are gone first, so that its packets wait for a cell.
    let cut = |peer| Event::Cut { node: NodeId(3), peer: NodeId(peer) };
    config.events = vec![(at(1200), cut(1)), (at(1200), cut(2)), (at(1203), off(3))];
    let drops = run(config, 1).drops;
    assert!(drops.keys().any(|(_, reason)| *reason == DropReason::PowerLost), "{drops:?}");
}

#[test]
fn requests_of_a_node_fail_with_its_memory() {
    for config in [square(), contended(square())] {
        let mut config = config;
        // The node's neighbours are gone first, so that its requests stay open.
        config.traffic.period = Duration::from_millis(100);
        let cut = |peer| Event::Cut { node: NodeId(3), peer: NodeId(peer) };
        config.events = vec![(at(1200), cut(1)), (at(1200), cut(2)), (at(1203), off(3))];
        let outcome = run(config, 1);
        let failed = Ending::Failed(DropReason::PowerLost);
        let own = outcome.transactions.iter().filter(|t| t.node == NodeId(3));
        let endings: Vec<Ending> = own.map(|t| t.ending).collect();
        assert!(endings.contains(&failed) && !endings.contains(&Ending::Open));
    }
}

#[test]
fn a_node_that_keeps_its_memory_goes_on_where_it_was() {
    for config in [square(), contended(square())] {
        let mut config = config;
        let kept = Event::Off { node: NodeId(3), memory: Memory::Kept };
        config.events = vec![(at(1200), kept), (at(1210), on(3))];
        let outcome = run(config, 1);
        assert_eq!(outcome.nodes[3].desynchronisations, 0);
        let (all, good) = answered(&outcome, 3, 1210..3500);
        assert!(all > 200 && good * 100 >= all * 97, "{good} of {all}");
    }
}

#[test]
fn the_root_restarts_and_has_routes_to_all_nodes_again() {
    for mode in [Mode::Storing, Mode::NonStoring] {
        for config in [square(), contended(square())] {
            let mut config = config;
            config.node.rpl.mode = mode;
            config.duration = Duration::from_secs(7200);
            let dark = Duration::from_secs(1);
            config.events = vec![(at(1800), Event::Reboot { node: NodeId(0), dark })];
            let outcome = run(config, 1);
            let [reboot, on] = &outcome.events[..] else { panic!("{:?}", outcome.events) };
            assert_eq!((reboot.event.name(), on.event.name()), ("reboot", "on"));
            assert!(on.cut_off > 0, "the routes of the root are lost: {on:?}");
            let (all, good) = answered(&outcome, 3, 5400..7100);
            assert!(all > 150 && good * 100 >= all * 97, "{mode:?}: {good} of {all}");
        }
    }
}

#[test]
fn a_cut_link_carries_nothing_and_a_restored_one_does() {
    let mut config = contended(line(3));
    config.duration = Duration::from_secs(2400);
    let (node, peer) = (NodeId(1), NodeId(2));
    config.events =
        vec![(at(900), Event::Cut { node, peer }), (at(1200), Event::Restore { node, peer })];
    let outcome = run(config, 1);
    let meanwhile =
        |t: &&Transaction| t.ended.is_some_and(|end| (at(910)..at(1200)).contains(&end));
    let own = outcome.transactions.iter().filter(|t| t.node == NodeId(2)).filter(meanwhile);
    assert!(own.clone().count() > 0);
    assert!(own.clone().all(|t| t.ending != Ending::Acknowledged));
    let (all, good) = answered(&outcome, 2, 1500..2300);
    assert!(all > 70 && good * 100 >= all * 97, "{good} of {all}");
    // Without the link node 2 needs no route: nothing can be mended.
    assert_eq!(outcome.events[0].recovered, Some(at(900)));
    let restored = &outcome.events[1];
    assert!(restored.recovered.is_some_and(|at| at > restored.at), "{restored:?}");
}

#[test]
fn a_link_has_the_quality_that_an_event_gives_it() {
    let mut config = contended(line(2));
    config.duration = Duration::from_secs(3600);
    let parents = [None, Some(NodeId(0))];
    config.node.routes = Routes::Static(Tree::new(&parents).expect("a tree"));
    config.traffic.application = Application::Datagrams;
    config.traffic.period = Duration::from_secs(1);
    let LinkLayer::Csma(mac) = &mut config.node.link else { panic!("carrier sense") };
    mac.retries_max = 0;
    let quality = Quality { pdr: Some(0.6), loss_db: 0.0 };
    config.events = vec![(at(600), Event::Link { node: NodeId(1), peer: NodeId(0), quality })];
    let outcome = run(config, 1);
    let share = |span: core::ops::Range<u64>| {
        let within = |sent: Instant| (at(span.start)..at(span.end)).contains(&sent);
        let all = outcome.datagrams.iter().filter(|one| within(one.sent));
        let all: Vec<_> = all.collect();
        all.iter().filter(|one| one.arrived.is_some()).count() as f64 / all.len() as f64
    };
    assert!(share(200..590) > 0.99);
    assert!((share(610..3590) - 0.6).abs() < 0.05, "{}", share(610..3590));
}

#[test]
fn a_node_whose_first_event_is_on_is_not_there_before() {
    let mut config = square();
    config.events = vec![(at(900), on(2))];
    let outcome = run(config, 1);
    assert!(outcome.nodes[2].joined.is_some_and(|joined| joined > at(900)));
    assert_eq!(outcome.events[0].cut_off, 1);
}

#[test]
fn the_radio_of_a_node_without_power_is_off_whether_it_keeps_its_memory_or_not() {
    let whole = run(contended(square()), 1).nodes[3].charge_mc;
    for memory in [Memory::Kept, Memory::Lost] {
        let mut config = contended(square());
        let dark = Event::Off { node: NodeId(3), memory };
        config.events = vec![(at(1200), dark), (at(2400), on(3))];
        let node = run(config, 1).nodes[3].clone();
        // A third of the hour is dark; else a radio under carrier sense is always on.
        assert!((node.duty_cycle - 1.0).abs() < 0.001, "{memory:?}: {}", node.duty_cycle);
        let share = node.charge_mc / whole;
        assert!((0.65..0.68).contains(&share), "{memory:?}: {share}");
    }
}

#[test]
fn events_at_run_time_give_the_trace_of_planned_ones() {
    let mut planned = square();
    planned.events = vec![(at(700), off(1)), (at(900), on(1))];
    let expected = run(planned, 3).trace_hash;
    let mut live = mesh(square(), 3);
    live.apply(at(700), off(1)).expect("possible");
    live.advance(at(800));
    live.apply(at(900), on(1)).expect("possible");
    live.advance(at(3600));
    assert_eq!(live.finish().expect("the books balance").trace_hash, expected);
}

#[test]
fn an_event_that_cannot_happen_is_refused_with_a_remedy() {
    let mut live = mesh(square(), 1);
    live.run_for(Duration::from_secs(10));
    let past = live.apply(at(3), off(1)).expect_err("it is over").to_string();
    assert!(past.contains("apply the event at 10.000000 or later"), "{past}");
    let missing = live.apply(at(20), off(9)).expect_err("four nodes").to_string();
    assert!(missing.contains("node = 9: there is no such node; write a node from 0 to 3"));
    let mut config = square();
    config.events = vec![(at(5), off(4))];
    let error = config.mesh(1, lowmesh_sim::Sinks::default()).expect_err("four nodes").to_string();
    assert!(error.starts_with("event `off` at 5.000000 s: node = 4"), "{error}");
}

#[test]
fn load_channels_and_noise_change_when_an_event_says_so() {
    for config in [square(), contended(square())] {
        let mut config = config;
        let period = Duration::from_secs(2);
        let channels = [11, 24].map(|number| Channel::new(number).expect("of the band")).to_vec();
        let noise = |power| Event::Noise { node: None, channels: Vec::new(), power };
        config.events = vec![
            (at(1000), Event::Load { node: Some(NodeId(1)), period }),
            (at(2000), Event::Channels { node: None, channels: channels.clone() }),
            (at(3000), noise(Some(Dbm(-20.0)))),
            (at(3010), noise(None)),
        ];
        let mut live = config.clone().mesh(1, lowmesh_sim::Sinks::default()).expect("fits");
        live.advance(at(3600));
        let outcome = live.finish().expect("the books balance");
        assert!((40..60).contains(&answered(&outcome, 1, 500..1000).0));
        assert!((470..530).contains(&answered(&outcome, 1, 1000..2000).0));
        let (all, good) = answered(&outcome, 1, 2010..2990);
        assert!(good * 100 >= all * 97, "{good} of {all} on other channels");
        let ended = |t: &&Transaction| t.ended.is_some_and(|t| (at(3001)..at(3010)).contains(&t));
        let drowned = outcome.transactions.iter().filter(ended);
        assert!(drowned.clone().all(|t| t.ending != Ending::Acknowledged));
    }
}

#[test]
fn a_node_that_moves_leaves_one_parent_for_another() {
    let mut config = contended(line(4));
    config.duration = Duration::from_secs(2400);
    // From the end of the line to the other side of the root.
    let position = Position::new(-40.0, 0.0);
    config.events = vec![(at(900), Event::Move { node: NodeId(3), position })];
    let outcome = run(config, 1);
    assert_eq!((outcome.nodes[3].parent, outcome.nodes[3].hops), (Some(NodeId(0)), Some(1)));
    let moved = &outcome.events[0];
    assert!(moved.cut_off == 1 && moved.recovered.is_some(), "{moved:?}");
    let mut table = square();
    table.events = vec![(at(900), Event::Move { node: NodeId(3), position })];
    let error = table.mesh(1, lowmesh_sim::Sinks::default()).expect_err("a table").to_string();
    assert!(error.contains("choose a medium with positions"), "{error}");
}

/// A grid of nine nodes, in which each hears its neighbours beside it and across.
fn nine() -> Config {
    let mut config = quick(line(9));
    config.topology = TopologySpec::Unplaced { nodes: 9 };
    let hears = |a: i32, b: i32| a != b && (a / 3 - b / 3).abs() <= 1 && (a % 3 - b % 3).abs() <= 1;
    let row = |a| (0..9).map(|b| if hears(a, b) { 1.0 } else { 0.0 }).collect();
    config.medium = matrix_of((0..9).map(row).collect());
    config
}

#[test]
fn a_network_is_whole_again_within_five_minutes_of_a_restart_of_its_root() {
    for (mode, dark, seed) in [Mode::Storing, Mode::NonStoring]
        .into_iter()
        .flat_map(|mode| [5, 20].map(|dark| (mode, dark)))
        .flat_map(|(mode, dark)| (1..=3).map(move |seed| (mode, dark, seed)))
    {
        let mut config = nine();
        config.node.rpl.mode = mode;
        config.duration = Duration::from_secs(1560);
        let dark = Duration::from_secs(dark);
        config.events = vec![(at(1200), Event::Reboot { node: NodeId(0), dark })];
        let outcome = run(config, seed);
        let on = &outcome.events[1];
        assert!(on.cut_off > 0, "the routes of the root are lost: {on:?}");
        let span = on.recovered.map(|recovered| recovered.since(on.at).as_secs());
        assert!(span.is_some_and(|span| span < 300), "{mode:?}, {dark}, seed {seed}: {span:?}");
    }
}
