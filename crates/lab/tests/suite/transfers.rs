//! CoAP over UDP and over TCP in simulated networks: a cellular link, and six hops of a mesh.

use lowmesh_lab::metrics::Metrics;
use lowmesh_lab::scenario::Scenario;
use lowmesh_lab::simulate::{Sinks, simulate};
use lowmesh_sim::record::Outcome;
use lowmesh_units::Seed;

fn run(scenario: &str, sets: &[&str]) -> (Outcome, Metrics) {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load(scenario, &sets).expect("a good scenario");
    let outcome = simulate(&scenario, Seed(1), Sinks::default(), &|_| ()).expect("it balances");
    let metrics = Metrics::of(&outcome, scenario.head.warmup);
    (outcome, metrics)
}

/// CoAP over TCP between the ends of the study that the scenario is from.
const TCP: [&str; 3] = ["coap.transport=tcp", "tcp.profile=pesola", "tcp.response_timeout=4h"];

fn completion(metrics: &Metrics) -> f64 {
    metrics.transfers.completion_s.expect("every request is over")
}

#[test]
fn stop_and_wait_leaves_most_of_the_link_unused_and_tcp_fills_it() {
    let (udp, by_udp) = run("nb-iot", &[]);
    let (tcp, by_tcp) =
        run("nb-iot", &[&TCP[..], &["link[0].queue_octets=1410000", "duration=10min"]].concat());
    for metrics in [&by_udp, &by_tcp] {
        assert_eq!((metrics.acknowledged, metrics.failed, metrics.open), (400, 0, 0));
    }
    // 400 exchanges of 0.7 s; the kernel takes 35.8 s by TCP, and a round trip more before the first request.
    assert!((275.0..300.0).contains(&completion(&by_udp)), "{}", completion(&by_udp));
    assert!((35.0..38.0).contains(&completion(&by_tcp)), "{}", completion(&by_tcp));
    assert_eq!((udp.executed, tcp.executed), (400, 400));
    let [line] = &tcp.lines[..] else { panic!("one link") };
    let [_, down] = &line.queues;
    assert!(down.most_octets > 2_500 && down.samples.len() > 400, "{}", down.most_octets);
    assert!(by_tcp.transfers.tcp_segments.is_some_and(|segments| segments > 400.0));
    assert_eq!(by_udp.transfers.tcp_segments, None);
}

#[test]
fn a_lossy_link_costs_tcp_copies_and_no_request() {
    let sets = ["link[0].loss=0.02", "traffic.clients=4", "duration=30min"];
    for window in ["newreno", "bbr"] {
        let window = format!("tcp.window={window}");
        let (_, metrics) = run("nb-iot", &[&TCP[..], &sets[..], &[&window]].concat());
        assert_eq!((metrics.acknowledged, metrics.failed), (1600, 0), "{window}");
        assert!(metrics.transfers.tcp_retransmissions.is_some_and(|copies| copies > 8.0));
    }
}

/// Seven nodes in a line: six hops of TSCH with connections whose buffers hold four segments.
#[test]
fn a_connection_of_four_segments_carries_requests_over_six_hops() {
    let text = "name = \"six\"\nduration = \"40min\"\nwarmup = \"10min\"\n\
        [topology]\nkind = \"line\"\nnodes = 7\n[radio]\nmedium = \"unit-disk\"\n\
        [mac]\nhopping = [15, 20]\neb_period = \"2s\"\n[coap]\ntransport = \"tcp\"\n[tcp]\nprofile = \"lln\"\n\
        [traffic]\nsilent = [1, 2, 3, 4, 5]\nstart = \"10min\"\nperiod = \"10s\"\n\
        packets = 60\npayload_bytes = 120\n";
    let scenario = Scenario::parse("six", text, &[]).expect("a good scenario");
    let run = || simulate(&scenario, Seed(1), Sinks::default(), &|_| ()).expect("it balances");
    let outcome = run();
    let metrics = Metrics::of(&outcome, scenario.head.warmup);
    assert_eq!(outcome.nodes[6].hops, Some(6));
    let streams = outcome.nodes[6].streams;
    let ended = (metrics.acknowledged, metrics.failed, metrics.open);
    assert_eq!(ended, (60, 0, 0), "{streams:?} {:?} {:?}", outcome.drops, outcome.up);
    let established = [0, 6].map(|node| outcome.nodes[node].streams.expect("TCP").established);
    assert_eq!(established, [1, 1], "one connection carries them all");
    assert_eq!(outcome.trace_hash, run().trace_hash);
}

#[test]
fn requests_to_a_group_are_refused_over_tcp() {
    let sets = ["coap.transport=tcp".to_owned()];
    let error = Scenario::load("multicast-grid", &sets).expect_err("a group has many peers");
    assert!(
        error.to_string().contains("TCP cannot reach a group; write coap.transport"),
        "{error}"
    );
}

#[test]
fn a_flag_reaches_an_entry_of_a_list_that_is_there() {
    let load = |set: &str| Scenario::load("nb-iot", &[set.to_owned()]);
    assert!((load("link[0].loss=0.02").expect("the link").links[0].loss - 0.02).abs() < 1e-12);
    let error = load("link[1].loss=0.02").expect_err("there is one link");
    assert!(error.to_string().contains("no such entry; entries count from 0"), "{error}");
    let error = load("link.loss=0.02").expect_err("a list");
    assert!(error.to_string().contains("entries of lists, as 'link[0].loss=0.02'"), "{error}");
}
