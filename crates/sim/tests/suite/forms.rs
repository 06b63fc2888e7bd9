//! Forms of traffic: blocks, polling, observation, OSCORE, arrival processes, periods of single nodes, failures.

use lowmesh_coap::blockwise::Exponent;
use lowmesh_sim::record::{Ending, Outcome};
use lowmesh_sim::traffic::{Application, Process};
use lowmesh_stack::Oscore;
use lowmesh_units::{Duration, NodeId};

use crate::worlds::{Config, line, quick, run};

const SEED: u64 = 4;

/// Three nodes in a line without loss.
fn world() -> Config {
    let mut config = quick(line(3));
    // All have joined long before the first request.
    config.duration = Duration::from_secs(2_100);
    config.traffic.start = Duration::from_secs(900);
    config
}

fn with_oscore(mut config: Config) -> Config {
    config.node.oscore = Some(Oscore::new(b"0123456789abcdef"));
    config
}

/// Share of the transactions of clients that are over that succeeded; there are some.
fn succeeded(outcome: &Outcome) -> f64 {
    let over = outcome.transactions.iter().filter(|one| one.ending != Ending::Open);
    let (mut all, mut good) = (0.0, 0.0);
    for one in over {
        all += 1.0;
        good += f64::from(u8::from(one.ending == Ending::Acknowledged));
    }
    assert!(all > 1.0, "no transaction is over");
    good / all
}

fn arrived(outcome: &Outcome) -> f64 {
    assert!(outcome.datagrams.len() > 20, "only {} states", outcome.datagrams.len());
    let arrived = outcome.datagrams.iter().filter(|one| one.arrived.is_some()).count();
    arrived as f64 / outcome.datagrams.len() as f64
}

fn observing() -> Config {
    let mut config = world();
    config.traffic.application =
        Application::Observe { confirmable: true, path: "sensor".to_owned() };
    config
}

#[test]
fn a_body_of_a_kilobyte_goes_up_in_blocks_and_counts_as_one_request() {
    let mut config = world();
    config.traffic.payload_octets = 1024;
    config.traffic.period = Duration::from_secs(60);
    config.node.host.exponent = Exponent::fitting(64);
    let outcome = run(config, SEED);
    assert!(succeeded(&outcome) > 0.99, "{}", succeeded(&outcome));
    let blocks = 16 * outcome.executed;
    assert!(outcome.up.sent >= blocks, "{} packets, {blocks} blocks", outcome.up.sent);
}

#[test]
fn the_root_polls_every_node() {
    let mut config = world();
    config.traffic.application = Application::Poll { confirmable: true, path: "sensor".to_owned() };
    let outcome = run(config, SEED);
    assert!(succeeded(&outcome) > 0.95, "{}", succeeded(&outcome));
    assert!(outcome.transactions.iter().all(|one| one.node == NodeId(0)));
}

#[test]
fn the_root_is_notified_of_the_states_that_it_observes() {
    let outcome = run(observing(), SEED);
    assert!(arrived(&outcome) > 0.9, "{}", arrived(&outcome));
    let nodes = [1, 2].map(NodeId);
    assert!(nodes.iter().all(|node| outcome.datagrams.iter().any(|one| one.node == *node)));
}

#[test]
fn with_oscore_as_much_arrives_in_larger_packets() {
    let (plain, protected) = (run(world(), SEED), run(with_oscore(world()), SEED));
    assert!(succeeded(&protected) > 0.99, "{}", succeeded(&protected));
    assert_eq!(plain.transactions.len(), protected.transactions.len());
    assert_ne!(plain.trace_hash, protected.trace_hash);
    let outcome = run(with_oscore(observing()), SEED);
    assert!(arrived(&outcome) > 0.9, "{}", arrived(&outcome));
}

#[test]
fn arrivals_at_random_and_in_bursts_have_the_period_as_their_mean() {
    let count = |process, periods: Vec<(NodeId, Duration)>| {
        let mut config = world();
        (config.traffic.process, config.traffic.periods) = (process, periods);
        let outcome = run(config, SEED);
        [1, 2]
            .map(|node| outcome.transactions.iter().filter(|one| one.node == NodeId(node)).count())
    };
    let expected = 120_usize;
    for count in count(Process::Poisson, Vec::new()) {
        assert!(count.abs_diff(expected) < 40, "{count}");
    }
    for count in count(Process::Bursts(3), Vec::new()) {
        assert!(count.abs_diff(3 * expected) < 30, "{count}");
    }
    let [fast, usual] = count(Process::Periodic, vec![(NodeId(1), Duration::from_secs(2))]);
    assert!(fast > 4 * usual, "{fast} and {usual}");
}

#[test]
fn a_node_that_fails_sends_nothing_more_and_draws_nothing() {
    let whole = run(world(), SEED);
    let mut config = world();
    config.failures = vec![(NodeId(2), Duration::from_secs(1_500))];
    let outcome = run(config, SEED);
    let last = |outcome: &Outcome| {
        let own = outcome.transactions.iter().filter(|one| one.node == NodeId(2));
        own.map(|one| one.issued).max().expect("it sends")
    };
    assert!(last(&outcome).as_secs_f64() < 1_500.0 && last(&whole).as_secs_f64() > 2_000.0);
    let until = run(Config { duration: Duration::from_secs(1_500), ..world() }, SEED);
    let charges = [&until, &outcome, &whole].map(|of| of.nodes[2].charge_mc);
    assert!(
        (charges[0] - charges[1]).abs() < 1.0,
        "nothing is drawn after the failure: {charges:?}"
    );
    assert!(charges[1] + 100.0 < charges[2], "{charges:?}");
    assert!(outcome.transactions.iter().any(|one| one.node == NodeId(1)));
}
