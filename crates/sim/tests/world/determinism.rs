//! Same configuration and same seed, same run to the last bit, with any observers.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use lowmesh_sim::record::Outcome;
use lowmesh_sim::{Config, Sinks, World};
use lowmesh_units::{Duration, Seed};

use crate::worlds::{line, random, run};

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

fn watched(config: Config, seed: u64, sinks: Sinks) -> Outcome {
    let world = World::new(config, Seed(seed), sinks).expect("a possible configuration");
    world.run(&|_| ()).expect("the books balance")
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
        assert_eq!(watched(line(4), 3, sinks), alone);
        assert_eq!(capture.octets().is_empty(), !pcap);
        assert_eq!(lines.octets().is_empty(), !trace);
    }
}

#[test]
fn a_run_in_parts_is_the_same_run() {
    let whole = run(line(4), 5);
    let mut world = crate::worlds::world(line(4), 5);
    for second in [100, 101, 450] {
        world.advance(lowmesh_units::Instant::from_secs(second), &|_| ());
    }
    assert_eq!(world.run(&|_| ()).expect("the books balance"), whole);
}

#[test]
fn captures_and_traces_repeat_to_the_octet() {
    let written = || {
        let (capture, lines) = (Shared::default(), Shared::default());
        watched(line(3), 9, Sinks { pcap: Some(capture.sink()), trace: Some(lines.sink()) });
        (capture.octets(), lines.octets())
    };
    assert_eq!(written(), written());
}

#[test]
fn each_line_of_a_trace_is_a_json_object_with_time_node_and_event_in_order_of_time() {
    let lines = Shared::default();
    let outcome = watched(line(3), 2, Sinks { pcap: None, trace: Some(lines.sink()) });
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
    let full = |sinks| {
        let world = World::new(short(), Seed(1), sinks);
        let result = world.and_then(|world| world.run(&|_| ()));
        result.expect_err("the disk is full").to_string()
    };
    let trace = full(Sinks { pcap: None, trace: Some(Box::new(FullDisk)) });
    assert!(trace.starts_with("cannot write the trace: "), "{trace}");
    let capture = full(Sinks { pcap: Some(Box::new(FullDisk)), trace: None });
    assert!(capture.starts_with("cannot write the capture: "), "{capture}");
}
