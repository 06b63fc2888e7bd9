//! The verbs of CoAP against a server of ours on loopback: what is printed where, and the code they end with.

use super::server::{Server, lowmesh, stderr};

#[test]
fn every_method_reaches_the_server_with_its_payload() {
    let uri = Server::start().uri("/echo");
    for (verb, told) in [
        ("get", "1"),
        ("post", "2a b"),
        ("put", "3a b"),
        ("delete", "4"),
        ("fetch", "5a b"),
        ("patch", "6a b"),
        ("ipatch", "7a b"),
    ] {
        let payload: &[&str] = if told.len() > 1 { &["-e", "a%20b"] } else { &[] };
        let ended = lowmesh(&[&[verb, &uri], payload].concat());
        assert_eq!(String::from_utf8_lossy(&ended.stdout), told, "{verb}: {}", stderr(&ended));
        assert_eq!(ended.status.code(), Some(0), "{verb}");
        assert_eq!(stderr(&ended), "", "{verb}");
    }
}

#[test]
fn a_method_by_its_letter_goes_before_the_verb() {
    let server = Server::start();
    for (letter, told) in [("put", "3x"), ("FETCH", "5x")] {
        let ended = lowmesh(&["get", &server.uri("/echo"), "-m", letter, "-e", "x"]);
        assert_eq!(String::from_utf8_lossy(&ended.stdout), told, "{}", stderr(&ended));
    }
    let observed = ["observe", &server.uri("/count"), "-m", "put", "--count", "1"];
    assert_eq!(lowmesh(&observed).status.code(), Some(2), "only GET and FETCH observe");
}

#[test]
fn a_long_body_comes_whole_in_blocks_of_any_size() {
    let uri = Server::start().uri("/large");
    for block in ["64", "1024"] {
        let ended = lowmesh(&["get", &uri, "-b", block]);
        assert_eq!(ended.stdout, [b'x'; 5000], "{}", stderr(&ended));
    }
}

#[test]
fn the_errors_of_a_server_are_exit_codes() {
    let server = Server::start();
    let missing = lowmesh(&["get", &server.uri("/none")]);
    assert_eq!(missing.status.code(), Some(4));
    assert!(stderr(&missing).starts_with("error: 4.04 Not Found"), "{}", stderr(&missing));
    assert_eq!(missing.stdout, b"");
    let broken = lowmesh(&["get", &server.uri("/broken"), "-N"]);
    assert_eq!(broken.status.code(), Some(5), "{}", stderr(&broken));
}

#[test]
fn json_is_laid_out_on_request_and_answers_are_json_on_request() {
    let uri = Server::start().uri("/json");
    assert_eq!(lowmesh(&["get", &uri]).stdout, b"{\"a\":1}");
    assert_eq!(lowmesh(&["get", &uri, "--pretty"]).stdout, b"{\n  \"a\": 1\n}\n");
    let ended = lowmesh(&["get", &uri, "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("one object");
    assert_eq!((&answer["code"], &answer["content_format"]), (&"2.05".into(), &50.into()));
    assert_eq!(answer["payload"], "{\"a\":1}");
}

#[test]
fn a_port_where_nobody_listens_ends_with_3_at_once() {
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = closed.expect("a port that was free").port();
    for scheme in ["coap", "coap+tcp", "coap+ws"] {
        let ended = lowmesh(&["get", &format!("{scheme}://127.0.0.1:{port}/")]);
        assert_eq!(ended.status.code(), Some(3), "{scheme}: {}", stderr(&ended));
        assert!(stderr(&ended).contains("\nhint: "), "{}", stderr(&ended));
    }
}

#[test]
fn where_there_is_no_way_the_end_is_3_and_says_what_is_missing() {
    // The one address that the system refuses on every machine.
    let broadcast = lowmesh(&["get", "coap://255.255.255.255/"]);
    assert_eq!(broadcast.status.code(), Some(3), "{}", stderr(&broadcast));
    assert!(stderr(&broadcast).starts_with("error: cannot send to 255.255.255.255"));
    let loopback = if cfg!(target_os = "linux") { "lo" } else { "lo0" };
    let group = format!("coap://[ff02::fd%25{loopback}]:9/none");
    for verb in ["get", "discover"] {
        let ended = lowmesh(&[verb, &group, "-B", "0.2"]);
        assert_eq!(ended.status.code(), Some(3), "{}", stderr(&ended));
        assert!(stderr(&ended).contains("%25eth0"), "{}", stderr(&ended));
        assert_eq!(stderr(&ended).lines().count(), 2, "{}", stderr(&ended));
    }
}

#[test]
fn silence_ends_with_3_when_the_time_is_over() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("bound");
    let ended = lowmesh(&["get", &format!("coap://{address}/"), "-B", "0.2"]);
    assert_eq!(ended.status.code(), Some(3));
    assert!(stderr(&ended).starts_with("error: no answer within 0.2 s\nhint: "));
}

#[test]
fn bad_input_ends_with_2_and_a_hint() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    for (args, told) in [
        (&["get", "127.0.0.1/hello"][..], "coap://"),
        (&["get", "http://127.0.0.1/"], "coap://"),
        (&["get", "coap://[::1/"], "is not a host"),
        (&["get", "coap://127.0.0.1:70000/"], "is not a port"),
        (&["get", "coap:///hello"], "is not a host"),
        (&["get", "coap://127.0.0.1/#a"], "%23"),
        (&["get", "coap://127.0.0.1/%zz"], "%25"),
        (&["get", "coap://nobody.invalid/"], "give a name that this machine can resolve"),
        (&["get", "coap+tcp://224.0.1.187/"], "which a connection cannot reach"),
        (&["get", "coaps://224.0.1.187/", "-u", "us", "-k", "secret"], "cannot reach a group"),
        (&["get", "coap://127.0.0.1/", "-O", "70000,1"], "up to 65535"),
        (&["get", "coap://127.0.0.1/", "-O", "hop-limit,many"], "takes a number"),
        (&["get", "coap://127.0.0.1/", "-t", "jsn"], "a media type"),
        (&["get", "coap://127.0.0.1/", "-A", "70000"], "a media type"),
        (&["get", "coap://127.0.0.1/", "-B", "0"], "longer than 0s"),
        (&["get", "coap://127.0.0.1/", "-m", "fetsh"], "ipatch"),
        (&["get", "coap://127.0.0.1/", "-E", "no/such/file"], "no/such/file"),
        (&["get", "coap://127.0.0.1/", "-P", "127.0.0.1"], "coap://"),
        (&["get", "coap://127.0.0.1/", "-u", "us"], "--psk"),
        (&["get", "coap://[fe80::1]/"], "%25eth0"),
        (&["get", "coaps://127.0.0.1/"], "--psk"),
        (&["get", "coaps+tcp://127.0.0.1/"], "--cafile"),
        (&["get", "coap://127.0.0.1/", "--cc", "coca"], "6cocoa"),
        (&["get", "coap://127.0.0.1/", "-b", "100"], "1024"),
        (&["get", "coap://[ff02::fd%25nolink]/"], "hint: add a network interface"),
        (&["get", "coap://127.0.0.1/", "-a", "::1"], "of different IP versions"),
        (&["get", "coap://127.0.0.1/", "-a", "192.0.2.77"], "not an address of this machine"),
        (&["get", "coaps://127.0.0.1/", "-u", "us", "-k", "@no/such/file"], "no/such/file"),
        (&["get", "coaps+tcp://127.0.0.1/", "--cafile", "Cargo.toml"], "Cargo.toml: there is no"),
        (&["get", "coap://127.0.0.1/", "-T", "0x123"], "two hexadecimal digits"),
        (&["put", "coap://127.0.0.1/", "-s", "1"], "only GET and FETCH"),
        (&["observe", "coap+tcp://224.0.1.187/"], "which a connection cannot reach"),
        (&["put", "coap://127.0.0.1/", "-e", "100%"], "%25"),
        (&["put", "coap://127.0.0.1/", "-f", "no/such/file"], "no/such/file"),
        (&["get", "coap://127.0.0.1/", "-a", "127.0.0.1", "-p", &port], "in use"),
    ] {
        let ended = lowmesh(args);
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {}", stderr(&ended));
        assert!(stderr(&ended).contains(told), "{args:?}: {}", stderr(&ended));
        assert_eq!(ended.stdout, b"", "{args:?}");
    }
}

#[test]
fn a_request_goes_out_with_the_token_that_is_asked_for() {
    let uri = Server::start().uri("/token");
    for (text, token) in [("0x0102", &[1, 2][..]), ("abcdefgh", b"abcdefgh")] {
        assert_eq!(lowmesh(&["get", &uri, "-T", text]).stdout, token);
    }
}

#[test]
fn a_key_or_an_identity_that_the_server_does_not_know_ends_with_6() {
    let server = Server::secure("us", "secret");
    let uri = format!("coaps://{}/echo", server.address);
    let right = lowmesh(&["get", &uri, "-u", "us", "-k", "secret"]);
    assert_eq!((right.status.code(), &right.stdout[..]), (Some(0), &b"1"[..]));
    for (identity, key) in [("us", "wrong"), ("them", "secret")] {
        let ended = lowmesh(&["get", &uri, "-u", identity, "-k", key, "-B", "2"]);
        assert_eq!(ended.status.code(), Some(6), "{}", stderr(&ended));
        assert!(
            stderr(&ended).contains("\nhint: does the server know this --identity and --psk"),
            "{}",
            stderr(&ended)
        );
    }
}

#[test]
fn a_secure_server_that_is_silent_is_no_question_of_keys() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let uri = format!("coaps://{}/", silent.local_addr().expect("bound"));
    let ended = lowmesh(&["get", &uri, "-u", "us", "-k", "secret", "-B", "0.3"]);
    assert_eq!(ended.status.code(), Some(3), "{}", stderr(&ended));
}

#[test]
fn a_payload_comes_from_a_file_as_it_is() {
    let uri = Server::start().uri("/echo");
    let file = std::env::temp_dir().join(format!("lowmesh-payload-{}", std::process::id()));
    std::fs::write(&file, "50%25 of @all").expect("the system's folder is writable");
    let text = format!("@{}", file.display());
    let ended = lowmesh(&["put", &uri, "-e", &text, "-B", "5s"]);
    _ = std::fs::remove_file(&file);
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "350%25 of @all", "{}", stderr(&ended));
    let literal = lowmesh(&["put", &uri, "-e", "%40home"]);
    assert_eq!(String::from_utf8_lossy(&literal.stdout), "3@home", "{}", stderr(&literal));
    let absent = lowmesh(&["put", &uri, "-e", "@no/such/file"]);
    assert_eq!(absent.status.code(), Some(2));
    assert!(
        stderr(&absent).starts_with("error: cannot read no/such/file: "),
        "{}",
        stderr(&absent)
    );
}
