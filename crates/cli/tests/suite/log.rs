//! `--log`: what it says about each request, and what happens when nobody reads it.

use std::io::BufRead as _;
use std::net::UdpSocket;
use std::time::Duration;

use crate::served::{Folder, Server};

/// The next line on the server's stderr.
fn line(server: &mut Server) -> String {
    let mut line = String::new();
    server.told.read_line(&mut line).expect("text");
    line
}

#[test]
fn each_request_is_a_line_on_stderr_without_anything_of_a_peer_that_is_not_printable() {
    let mut server = Server::start(&["--demo", "--log"]);
    server.get("/hello?a=1");
    let told = line(&mut server);
    let words: Vec<&str> = told.split_whitespace().collect();
    assert!(words[0].ends_with('Z') && words[0].contains('T'), "{told}");
    assert!(words[1].starts_with("127.0.0.1:"), "{told}");
    assert_eq!(words[2..8], ["coap", "GET", "/hello?a=1", "2.05", "in=0", "out=11"], "{told}");
    assert!(words[8].starts_with("ms="), "{told}");
    assert_eq!(server.ask("get", "/a%0a%1b%5b2Jb%20c", &[]).0, 4);
    let told = line(&mut server);
    assert!(told.contains(" GET /a%0A%1B%5B2Jb%20c 4.04 "), "{told}");
    let body = "long ".repeat(1000);
    assert_eq!(server.ask("put", "/large-update", &["-e", &body]).0, 0);
    assert!(
        line(&mut server).contains(" PUT /large-update 2.04 in=5000 out=0 "),
        "one for all blocks"
    );
}

#[test]
fn a_file_has_an_object_a_request_of_any_transport() {
    let folder = Folder::new("log", &[("old", b"old\n")]);
    let file = format!("--log={}/old", folder.path());
    let mut server = Server::start(&["--demo", &file, "--json"]);
    server.get("/hello");
    let tcp = server.uri("coap+tcp", "/time");
    let observed = crate::served::lowmesh(&["observe", &tcp, "--count", "1"]);
    assert_eq!(observed.status.code(), Some(0));
    server.signal("INT");
    assert_eq!(server.ends_within(Duration::from_secs(4)), 0);
    let written = std::fs::read_to_string(folder.0.join("old")).expect("text");
    let mut lines = written.lines();
    assert_eq!(lines.next(), Some("old"), "what was there stays");
    let object = |line| serde_json::from_str(line).expect("an object");
    let objects: Vec<serde_json::Value> = lines.map(object).collect();
    assert_eq!((&objects[0]["path"], &objects[0]["scheme"]), (&"/hello".into(), &"coap".into()));
    assert_eq!(
        (&objects[1]["observation"], &objects[1]["scheme"]),
        (&"observe".into(), &"coap+tcp".into())
    );
    assert_eq!(objects[2]["observation"], "deregister");
}

#[test]
fn a_proxy_logs_the_target() {
    let origin = Server::demo();
    let mut proxy = Server::start_as("proxy", &["--log", "--allow-target", "127.0.0.0/8"]);
    let target = origin.uri("coap", "/hello");
    let ended = crate::served::lowmesh(&["get", "-P", &proxy.uri("coap", ""), &target]);
    assert_eq!(ended.stdout, b"hello world");
    let told = line(&mut proxy);
    assert!(told.contains(&format!(" GET {target} 2.05 ")), "{told}");
}

#[test]
fn a_server_whose_log_nobody_reads_ends_in_order() {
    let mut server = Server::start(&["--demo", "--log"]);
    server.stop_reading();
    assert_eq!(server.get("/hello"), "hello world", "the request itself is answered");
    assert_eq!(server.ends_within(Duration::from_secs(4)), 0);
}

#[test]
fn a_reader_that_is_stuck_keeps_no_client_waiting_and_no_end() {
    let mut server = Server::start(&["--demo", "--log"]);
    let address = server.uri("coap", "").replace("coap://", "");
    let client = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    client.connect(address).expect("loopback");
    client.set_read_timeout(Some(Duration::from_secs(5))).expect("possible");
    // NON GET of a path of 200 octets that is not there: two pipes full of lines.
    for number in 0..1000_u16 {
        let id = number.to_be_bytes();
        let head = [&[0x52, 0x01], &id[..], &id[..], &[0xbd, 200 - 13]].concat();
        client.send(&[&head[..], &[b'x'; 200]].concat()).expect("loopback");
        client.recv(&mut [0; 128]).expect("an answer although nobody reads the log");
    }
    server.signal("TERM");
    assert_eq!(server.ends_within(Duration::from_secs(4)), 0);
}

#[test]
fn a_log_that_cannot_be_written_is_refused_at_the_start() {
    for (args, told) in [
        (&["serve", "--demo", "--log=/no/such/folder/log"][..], "/no/such/folder/log"),
        (&["serve", "--demo", "--json"], "--log"),
    ] {
        let ended = crate::served::lowmesh(&[args, &["-p", "0", "-a", "127.0.0.1"]].concat());
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(told), "{stderr}");
    }
}
