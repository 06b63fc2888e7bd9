//! `lowmesh node ping`, and what a node shows of itself: captures, drops, counters.

use std::sync::atomic::{AtomicU32, Ordering};

use lowmesh_net::clock::Clock;
use lowmesh_units::Instant;
use serde_json::Value;

use super::captures::{Captured, read};
use super::nodes::{PEER, Peer, stderr};
use super::relay::Relay;
use crate::served::Folder;

/// The sum of some numbers of a group of counters; what is not there is 0.
fn sum(counters: &Value, group: &str, names: &[&str]) -> u64 {
    names.iter().map(|name| counters[group][name].as_u64().unwrap_or(0)).sum()
}

/// Every frame that came and every packet has come to an end that is counted.
fn add_up(object: &Value) {
    let counters = &object["counters"];
    let ended = sum(counters, "frames", &["accepted", "acknowledged", "waiting"])
        + sum(counters, "frames_lost", &["malformed", "not_for_us", "duplicate", "early_full"]);
    assert_eq!(sum(counters, "frames", &["heard"]), ended, "{counters:#}");
    let begun = sum(counters, "packets", &["born", "received"]);
    let ended = sum(counters, "packets", &["passed_on", "delivered", "dropped", "held"]);
    assert_eq!(begun, ended, "{counters:#}");
    let drops = counters["packets_dropped"].as_object().expect("a group");
    let drops: u64 = drops.values().filter_map(Value::as_u64).sum();
    assert_eq!(sum(counters, "packets", &["dropped"]), drops, "{counters:#}");
}

#[test]
fn the_largest_ping_is_answered_in_fragments_that_are_counted() {
    let peer = Peer::start(&["--json", "--counters"]);
    for way in ["hwr", "sfr"] {
        let words = ["--counters", "--fragments", way, "ping", PEER];
        let (objects, code) =
            peer.ask_json(&[&words[..], &["-c", "3", "-s", "1232", "-i", "0.01"]].concat());
        let [pings, counted] = &objects[..] else { panic!("two objects: {objects:?}") };
        assert!(pings["answered"].as_u64() >= Some(1), "{pings}");
        assert_eq!(pings["sent"], 3);
        assert_eq!(code, 0);
        add_up(counted);
        // 1280 octets in frames of 127.
        assert!(sum(&counted["counters"], "fragments", &["sent"]) >= 3 * 12, "{counted:#}");
        assert!(sum(&counted["counters"], "fragments", &["received"]) >= 12, "{counted:#}");
    }
    let (code, printed, told) = peer.interrupt();
    assert_eq!(code, 0, "{told}");
    let counted: Value = serde_json::from_str(&printed).expect("one object");
    add_up(&counted);
    assert!(sum(&counted["counters"], "packets", &["delivered"]) >= 2, "{counted:#}");
}

#[test]
fn a_ping_prints_each_answer_and_a_summary() {
    let peer = Peer::start(&[]);
    let ended = peer.ask(&["ping", PEER, "-c", "2", "-i", "0.01"]);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    let text = String::from_utf8(ended.stdout).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with(&format!("{PEER}: ping 1: ")) && lines[0].ends_with(" ms"));
    assert!(lines[2].starts_with("2 sent, 2 answered, 0 lost (0 %); min "), "{text}");
}

#[test]
fn a_lost_answer_is_counted_and_without_any_the_exit_code_is_3() {
    static LOST: AtomicU32 = AtomicU32::new(0);
    // The peer sends each frame once: its first answer is gone.
    let relay = Relay::start(|frame| frame.len() > 3 && LOST.fetch_add(1, Ordering::Relaxed) == 0);
    let [air, zero, one] = relay.ports;
    let peer = Peer::start_at((one, air), (air, zero), &["--mac-retries", "0"]);
    let words = ["ping", PEER, "-B", "0.5", "-i", "0.01", "-c"];
    let (objects, code) = peer.ask_json(&[&words[..], &["2"]].concat());
    assert_eq!((&objects[0]["sent"], &objects[0]["lost"]), (&2.into(), &1.into()), "{objects:?}");
    assert_eq!((&objects[0]["rtts_ms"][0], code), (&Value::Null, 0));
    drop(peer);
    drop(relay);

    let relay = Relay::start(|frame| frame.len() > 3);
    let [air, zero, one] = relay.ports;
    let peer = Peer::start_at((one, air), (air, zero), &[]);
    let ended = peer.ask(&[&words[..], &["1"]].concat());
    assert_eq!(ended.status.code(), Some(3), "{}", stderr(&ended));
    let told = stderr(&ended);
    assert!(told.contains("no answer within 0.5 s") && told.contains("\nhint: "), "{told}");
}

#[test]
fn a_node_that_is_not_there_is_reported_at_once_and_each_drop_has_a_line() {
    let peer = Peer::start(&[]);
    let clock = Clock::start();
    let ended = peer.ask(&["--drops", "ping", "fe80::4c:4d00:0:9", "-c", "1", "-B", "60"]);
    assert_eq!(ended.status.code(), Some(3));
    assert!(clock.now() < Instant::from_secs(30), "no waiting for 60 s");
    let told = stderr(&ended);
    assert!(told.contains(": outgoing frame, no_ack\n"), "{told}");
    assert!(told.contains(": request of this node, mac/no_ack\n"), "{told}");
    assert!(told.contains("error: no answer from fe80::4c:4d00:0:9: "), "{told}");
}

#[test]
fn what_cannot_work_is_refused_before_a_frame_leaves() {
    let peer = Peer::start(&["--json", "--counters"]);
    for (words, code, told) in [
        (&["ping", "2001:db8::2"][..], 2, "add --route 2001:db8::2/128 via fe80::"),
        (&["ping", "fe80::4c:4d00:0:1"], 2, "the address of this node"),
        (&["ping", "ff02::1"], 2, "sends nothing to a group"),
        (&["ping", PEER, "-s", "1233"], 2, "0..=1232"),
        (&["--pcap", "no/such/folder/x.pcap", "ping", PEER], 1, "cannot write no/such/folder"),
    ] {
        let ended = peer.ask(words);
        assert_eq!(ended.status.code(), Some(code), "{words:?}: {}", stderr(&ended));
        assert!(stderr(&ended).contains(told), "{words:?}: {}", stderr(&ended));
        assert_eq!(ended.stdout, b"", "{words:?}");
    }
    let (_, printed, _) = peer.interrupt();
    let counted: Value = serde_json::from_str(&printed).expect("one object");
    assert_eq!(counted["counters"]["frames"]["heard"], 0, "{counted:#}");
}

/// Pings the global address of the peer once, both with these options: the frames of the capture.
fn captured(folder: &Folder, options: &[&str]) -> Vec<Captured> {
    let route = |to: &str, via: &str| ["--route", to, "via", via].map(str::to_owned);
    let words = |own: &str, route: [String; 4]| {
        let own = ["--address", own].map(str::to_owned);
        let all = options.iter().map(|word| (*word).to_owned()).chain(own).chain(route);
        all.collect::<Vec<String>>()
    };
    let there = words("2001:db8::4c:4d00:0:2/64", route("2001:db8::/64", "fe80::4c:4d00:0:1"));
    let there: Vec<&str> = there.iter().map(String::as_str).collect();
    let peer = Peer::start(&there);
    let file = folder.0.join("ping.pcap");
    let here = words("2001:db8::4c:4d00:0:1/64", route("2001:db8::/64", PEER));
    let mut here: Vec<&str> = here.iter().map(String::as_str).collect();
    // Another address comes first, but it is farther from the destination.
    here.splice(0..0, ["--address", "fd00::7/64"]);
    let rest = ["--counters", "--pcap", file.to_str().expect("a plain path")];
    let ping = ["ping", "2001:db8::4c:4d00:0:2", "-c", "1", "-s", "8"];
    let (objects, code) = peer.ask_json(&[&here[..], &rest[..], &ping[..]].concat());
    assert_eq!(code, 0, "{objects:?}");
    let frames = read(&file);
    let counters = &objects[1]["counters"];
    let on_air = sum(counters, "frames", &["sent", "acknowledgements_sent", "heard"]);
    assert_eq!(frames.len() as u64, on_air, "the capture has each frame once");
    frames
}

#[test]
fn a_capture_holds_every_frame_and_contexts_make_them_shorter() {
    let folder = Folder::new("node-captures", &[("empty", b"")]);
    let request = |options: &[&str]| {
        let frames = captured(&folder, options);
        // 2026-01-01.
        assert!(frames[0].seconds > 1_767_225_600, "the time of day");
        let request = frames.iter().find(|frame| frame.is_data()).expect("a request");
        request.octets.clone()
    };
    let plain = request(&[]);
    // The source is the address whose prefix the destination has.
    let source = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0x4c, 0x4d, 0, 0, 0, 0, 1];
    assert!(plain.windows(16).any(|window| window == source), "{plain:02x?}");
    // Both addresses are made of EUI-64s: a context leaves nothing of them.
    let first = request(&["--context", "2001:db8::/64"]);
    assert_eq!(plain.len() - first.len(), 32, "{plain:02x?} {first:02x?}");
    // A context with a number takes one octet more (RFC 6282 s3.1.1, CID).
    let third = request(&["--context", "fd00::/64", "--context", "3=2001:db8::/64"]);
    assert_eq!(third.len() - first.len(), 1, "{third:02x?} {first:02x?}");
}
