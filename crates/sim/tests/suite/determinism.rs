//! Same configuration and same seed, same run to the last bit, with any observers.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use lowmesh_sim::Sinks;
use lowmesh_units::{Duration, Instant};

use crate::worlds::{Config, line, mesh, random, run, watched};

/// A file in memory that the test can still read when the run has closed it.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").write(octets)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn sink(&self) -> Box<dyn Write + Send> {
        Box::new(self.clone())
    }
    fn octets(&self) -> Vec<u8> {
        self.0.lock().expect("no writer panics").clone()
    }
}

/// Its writer fails as a full disk does.
struct FullDisk;

impl Write for FullDisk {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_same_seed_gives_the_same_outcome_to_the_last_number() {
    for number in 0..6 {
        let (first, second) = (run(random(number), 7), run(random(number), 7));
        assert_eq!(first, second, "random({number})");
    }
}

#[test]
fn another_seed_gives_another_run() {
    let hashes: std::collections::BTreeSet<u64> =
        (1..=8).map(|seed| run(line(3), seed).trace_hash).collect();
    assert_eq!(hashes.len(), 8);
}

#[test]
fn who_watches_does_not_change_the_run() {
    let alone = run(line(4), 3);
    for (pcap, trace) in [(true, false), (false, true), (true, true)] {
        let (capture, lines) = (Shared::default(), Shared::default());
        let sinks = Sinks {
            pcap: pcap.then(|| Some(capture.sink())).flatten(),
            trace: trace.then(|| Some(lines.sink())).flatten(),
        };
        let seen = watched(line(4), 3, sinks).expect("the books balance");
        assert_eq!(seen, alone);
        assert_eq!(capture.octets().is_empty(), !pcap);
        assert_eq!(lines.octets().is_empty(), !trace);
    }
}

#[test]
fn a_run_in_parts_is_the_same_run() {
    let whole = run(line(4), 5);
    let mut parts = mesh(line(4), 5);
    for second in [100, 101, 450, 300] {
        parts.advance(Instant::from_secs(second));
    }
    assert_eq!(parts.now(), Instant::from_secs(450));
    parts.advance(Instant::ZERO + line(4).duration);
    assert_eq!(parts.finish().expect("the books balance"), whole);
}

#[test]
fn a_run_event_by_event_is_the_same_run_and_looking_changes_nothing() {
    let mut config = line(3);
    config.duration = Duration::from_secs(200);
    let whole = run(config.clone(), 6);
    let (mut steps, mut joined) = (mesh(config.clone(), 6), 0);
    let end = Instant::ZERO + config.duration;
    while let Some(next) = steps.next_event().filter(|next| *next < end) {
        steps.advance(next + Duration::from_nanos(1));
        joined = joined.max(steps.snapshot().nodes.iter().filter(|node| node.is_joined).count());
    }
    steps.advance(end);
    let at_the_end = steps.snapshot();
    assert_eq!(at_the_end.nodes[1].border_router, lowmesh_units::NodeId(0));
    assert_eq!(joined, whole.nodes.iter().filter(|node| node.joined.is_some()).count());
    assert_eq!(steps.finish().expect("the books balance"), whole);
}

#[test]
fn captures_and_traces_repeat_to_the_octet() {
    let written = || {
        let (capture, lines) = (Shared::default(), Shared::default());
        let sinks = Sinks { pcap: Some(capture.sink()), trace: Some(lines.sink()) };
        watched(line(3), 9, sinks).expect("the books balance");
        (capture.octets(), lines.octets())
    };
    assert_eq!(written(), written());
}

#[test]
fn each_line_of_a_trace_is_a_json_object_with_time_node_and_event_in_order_of_time() {
    let lines = Shared::default();
    let sinks = Sinks { pcap: None, trace: Some(lines.sink()) };
    let outcome = watched(line(3), 2, sinks).expect("the books balance");
    let text = String::from_utf8(lines.octets()).expect("JSON is UTF-8");
    let (mut last, mut acknowledged, mut sent) = (0.0, 0, 0);
    for line in text.lines() {
        let fact: serde_json::Value = serde_json::from_str(line).expect(line);
        let time = fact["t_s"].as_f64().expect("a number of seconds");
        assert!(time >= last, "{line} after {last} s");
        last = time;
        assert!(fact["node"].as_u64().is_some_and(|node| node < 3), "{line}");
        match fact["event"].as_str().expect("a word") {
            "transaction_acknowledged" => acknowledged += 1,
            "transaction_sent" => sent += 1,
            _ => {}
        }
    }
    let transactions = outcome.transactions.iter();
    assert_eq!(sent, transactions.clone().filter(|t| t.sent.is_some()).count());
    assert_eq!(acknowledged, transactions.filter(|t| t.delay().is_some()).count());
    assert!(acknowledged > 100, "{acknowledged}");
}

#[test]
fn a_sink_that_cannot_be_written_is_an_error_that_says_which() {
    let short = || Config { duration: Duration::from_secs(60), ..line(2) };
    let full = |sinks| watched(short(), 1, sinks).expect_err("the disk is full").to_string();
    let trace = full(Sinks { pcap: None, trace: Some(Box::new(FullDisk)) });
    assert!(trace.starts_with("cannot write the trace: "), "{trace}");
    let capture = full(Sinks { pcap: Some(Box::new(FullDisk)), trace: None });
    assert!(capture.starts_with("cannot write the capture: "), "{capture}");
}
