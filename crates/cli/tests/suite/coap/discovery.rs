//! `lowmesh discover` and `lowmesh ping` against a server of ours on loopback.

use std::net::UdpSocket;

use super::server::{Server, lowmesh, stderr};

fn lines(args: &[&str]) -> Vec<String> {
    let ended = lowmesh(args);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    String::from_utf8(ended.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn the_resources_of_a_server_are_a_table_and_filters_narrow_it() {
    let host = Server::start().address.to_string();
    let all = lines(&["discover", &host]);
    assert!(all[0].trim().starts_with("resource"), "{all:?}");
    let resources = |lines: &[String]| -> Vec<String> {
        lines[1..]
            .iter()
            .filter_map(|line| line.split_whitespace().next())
            .map(Into::into)
            .collect()
    };
    assert_eq!(
        resources(&all),
        ["/broken", "/count", "/echo", "/json", "/large", "/still", "/token"]
    );
    let some = lines(&["discover", &format!("coap://{host}"), "href=/l*"]);
    assert_eq!(resources(&some), ["/large"]);
}

#[test]
fn a_program_gets_one_object_a_server() {
    let host = Server::start().address.to_string();
    let [line] = &lines(&["discover", &host, "--json"])[..] else { panic!("one server") };
    let object: serde_json::Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(object["from"], host);
    assert_eq!(object["links"][0]["href"], "/broken");
}

#[test]
fn a_ping_is_answered_with_reset_and_timed() {
    let host = Server::start().address.to_string();
    let lines = lines(&["ping", &host, "-c", "3", "-i", "0.01"]);
    assert!(lines[0].starts_with(&format!("{host}: ping 1: ")), "{lines:?}");
    assert!(lines[3].starts_with("3 sent, 3 answered, 0 lost (0 %); min "), "{lines:?}");
}

#[test]
fn pings_that_nobody_answers_end_with_3_after_their_sum() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let host = silent.local_addr().expect("bound").to_string();
    let ended = lowmesh(&["ping", &host, "-c", "2", "-i", "0.01", "-B", "0.1", "--json"]);
    assert_eq!(ended.status.code(), Some(3), "{}", stderr(&ended));
    let object: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    assert_eq!((&object["sent"], &object["answered"]), (&2.into(), &0.into()));
    assert!(object["rtt_min_ms"].is_null());
}

#[test]
fn what_cannot_be_discovered_or_pinged_is_told() {
    for (args, code, told) in [
        (&["discover", "127.0.0.1", "rt"][..], 2, "rt=temperature"),
        (&["discover", "http://127.0.0.1"], 2, "coap://"),
        (&["discover", "ff02::fd%no-such-link"], 2, "no network interface"),
        (&["discover", "fe80::1"], 2, "%25eth0"),
        (&["ping", "224.0.1.187"], 2, "discover"),
        (&["ping", "127.0.0.1", "-c", "0"], 2, "--count"),
    ] {
        let ended = lowmesh(args);
        assert_eq!(ended.status.code(), Some(code), "{args:?}: {}", stderr(&ended));
        assert!(stderr(&ended).contains(told), "{args:?}: {}", stderr(&ended));
    }
}

#[test]
fn a_server_that_sends_no_links_is_told_apart_from_one_that_has_none() {
    let server = Server::start();
    let ended = lowmesh(&["discover", &server.uri("/json")]);
    assert_eq!(ended.status.code(), Some(4), "it has JSON only: {}", stderr(&ended));
    let ended = lowmesh(&["discover", &server.uri("/echo")]);
    assert_eq!(ended.status.code(), Some(1), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("not a list of links"), "{}", stderr(&ended));
}
