//! `lowmesh node udp`, and the verbs of CoAP over a node.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::nodes::{PEER, Peer, command, stderr};
use super::relay::Relay;
use crate::served::ends_within;

fn stdout(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_datagram_comes_back_from_the_echo_port() {
    let peer = Peer::start(&[]);
    let ended = peer.ask(&["udp", PEER, "7", "hello%20you"]);
    assert_eq!((ended.status.code(), &stdout(&ended)[..]), (Some(0), "hello you\n"));
    let from = format!("from [{PEER}]:7 after ");
    assert!(stderr(&ended).starts_with(&from), "{}", stderr(&ended));
    let (objects, code) = peer.ask_json(&["udp", PEER, "7", "%ff", "--listen", "4000"]);
    assert_eq!((&objects[0]["payload_hex"], code), (&"ff".into(), 0), "{objects:?}");
    assert_eq!(objects[0]["from"], format!("[{PEER}]:7"));
}

#[test]
fn a_listener_prints_what_comes_to_its_port_and_ends_after_its_count() {
    let listener = Peer::start(&["--json", "udp", "--listen", "4000", "-c", "1"]);
    // It may not listen yet: a frame without an acknowledgement is dropped, with code 3.
    let sent = (0..50).find(|_| {
        let ended = listener.ask(&["udp", PEER, "4000", "hi", "-c", "0"]);
        assert_eq!(stdout(&ended), "", "nothing comes back");
        ended.status.code() == Some(0)
    });
    assert!(sent.is_some(), "the datagram never left");
    let (code, printed, told) = listener.interrupt();
    assert_eq!(code, 0, "{told}");
    let object: Value = serde_json::from_str(&printed).expect("one object");
    assert_eq!((&object["payload"], &object["after_ms"]), (&"hi".into(), &Value::Null));
    assert_eq!(object["from"], "[fe80::4c:4d00:0:1]:61616");
}

#[test]
fn a_port_without_a_listener_is_reported_as_the_peer_says_it() {
    let peer = Peer::start(&[]);
    let (objects, code) = peer.ask_json(&["--counters", "udp", PEER, "9", "x", "-B", "60"]);
    assert_eq!(code, 3);
    let counters = &objects[0]["counters"];
    assert_eq!(counters["icmpv6_errors_received"]["destination_unreachable"], 1, "{counters:#}");
    let told = stderr(&peer.ask(&["udp", PEER, "9", "x", "-B", "60"]));
    assert!(
        told.contains(&format!("error: {PEER} says: no program listens on the port\n")),
        "{told}"
    );
}

#[test]
fn every_method_reaches_the_peer_and_its_answer_is_shown() {
    let peer = Peer::start(&[]);
    let clock = format!("coap://[{PEER}]/clock");
    let ended = peer.ask(&["get", &clock]);
    assert_eq!((ended.status.code(), &stderr(&ended)[..]), (Some(0), ""));
    let seconds: f64 = stdout(&ended).trim().parse().expect("a number");
    assert!((0.0..600.0).contains(&seconds), "{seconds}");
    for verb in ["put", "post", "delete", "fetch", "patch", "ipatch"] {
        let ended = peer.ask(&[verb, &clock, "-e", "x", "-t", "plain"]);
        assert_eq!(ended.status.code(), Some(4), "{verb}: {}", stderr(&ended));
        let told = stderr(&ended);
        assert!(told.starts_with("error: 4.05 Method Not Allowed"), "{verb}: {told}");
    }
    let (objects, code) = peer.ask_json(&["get", &format!("coap://[{PEER}]/none")]);
    assert_eq!((&objects[0]["code"], code), (&"4.04".into(), 4), "{objects:?}");
    let core = format!("coap://[{PEER}]/.well-known/core");
    let pretty = peer.ask(&["--counters", "get", &core, "--pretty", "--block", "16", "-v"]);
    assert!(stdout(&pretty).starts_with("/clock  "), "{}", stdout(&pretty));
    let told = stderr(&pretty);
    assert!(told.contains("sent; first timeout ") && told.contains("2.05 Content from"), "{told}");
    assert!(told.contains("\n frames "), "the counters: {told}");
}

#[test]
fn a_silent_server_ends_with_3_after_the_time_or_at_ctrl_c_with_what_was_counted() {
    let relay = Relay::start(|_| true);
    let [air, zero, one] = relay.ports;
    let peer = Peer::start_at((one, air), (air, zero), &[]);
    let clock = format!("coap://[{PEER}]/clock");
    let ended = peer.ask(&["get", &clock, "-B", "0.5"]);
    assert_eq!(ended.status.code(), Some(3));
    assert!(stderr(&ended).contains("no answer within 0.5 s"), "{}", stderr(&ended));

    let mut asked = command(0, peer.other);
    asked.args(["--counters", "get", &clock, "-v"]).stderr(Stdio::piped());
    let mut asked = asked.spawn().expect("the command was built");
    let mut told = BufReader::new(asked.stderr.take().expect("piped"));
    let mut line = String::new();
    told.read_line(&mut line).expect("text");
    assert!(line.starts_with("sent; first timeout "), "{line}");
    let id = asked.id().to_string();
    let killed = std::process::Command::new("kill").args(["-INT", &id]).status();
    assert!(killed.expect("kill is there").success());
    assert_eq!(ends_within(&mut asked, Duration::from_secs(20)), 3);
    let rest = std::io::read_to_string(told).expect("text");
    assert!(rest.contains("\n frames "), "{rest}");
    assert!(rest.contains("error: interrupted before an answer arrived\n"), "{rest}");
}

#[test]
fn what_a_verb_cannot_do_is_refused_before_a_frame_leaves() {
    let peer = Peer::start(&["--json", "--counters"]);
    let clock = format!("coap://[{PEER}]/clock");
    let long = "x".repeat(1233);
    for (words, told) in [
        (&["get", "coaps://[fe80::9]/clock"][..], "speaks no coaps"),
        (&["get", "coap://node/clock"], "a node resolves no names"),
        (&["get", "coap://[2001:db8::9]/clock"], "add --route 2001:db8::9/128 via"),
        (&["get", &clock, "-o", "no/such/folder/x"], "its folder does not exist"),
        (&["get", "coap://[ff02::fd]/clock"], "sends nothing to a group"),
        (&["get", &clock, "--cc", "coca"], "--cc <NAME>"),
        (&["put", &clock, "-f", "no/such/file"], "cannot read no/such/file"),
        (&["udp", PEER, "7", &long], "DATA has 1233 octets"),
        (&["udp", PEER, "7", "%x"], "two hexadecimal digits"),
        (&["udp", PEER, "7"], "<DATA>"),
        (&["udp"], "<ADDRESS>"),
        (&["udp", "--listen", "7"], "port 7"),
    ] {
        let ended = peer.ask(words);
        assert_eq!(ended.status.code(), Some(2), "{words:?}: {}", stderr(&ended));
        assert!(stderr(&ended).contains(told), "{words:?}: {}", stderr(&ended));
    }
    let (_, printed, _) = peer.interrupt();
    let counted: Value = serde_json::from_str(&printed).expect("one object");
    assert_eq!(counted["counters"]["frames"]["heard"], 0, "{counted:#}");
}
