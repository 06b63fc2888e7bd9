//! `lowmesh serve` as users run it: started, asked over its transports, and ended.

use std::io::Read as _;
use std::process::Command;
use std::time::Duration;

use crate::served::{Folder, Server, lowmesh};

/// An authority and a server that it has certified, for localhost. Made for tests only.
const TLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../net/tests/tls");

/// Has a proxy ask this machine.
const LOCAL: [&str; 2] = ["--allow-target", "127.0.0.0/8"];

#[test]
fn the_demo_greets_counts_and_lists_itself() {
    let server = Server::demo();
    assert_eq!(server.get("/hello"), "hello world");
    for count in ["1", "2"] {
        assert_eq!(server.ask("post", "/count", &[]), (0, count.to_owned()));
    }
    assert_eq!(server.get("/time").len(), "12:34:56".len());
    let all = server.get("/.well-known/core");
    for path in ["/hello", "/time", "/obs", "/large", "/separate", "/seg1/seg2/seg3"] {
        assert!(all.contains(&format!("<{path}>")), "{all}");
    }
    assert!(!all.contains("/large-create/"), "{all}");
    let of_type = server.get("/.well-known/core?rt=Type2");
    assert_eq!(of_type.matches("</link").count(), 2, "{of_type}");
}

#[test]
fn the_resources_of_the_plugtests_answer_as_their_descriptions_say() {
    let server = Server::demo();
    assert_eq!(server.ask("put", "/test", &["-e", "x"]).0, 0);
    assert_eq!(server.ask("delete", "/test", &[]).0, 0);
    assert_eq!(server.get("/seg1/seg2/seg3"), "three segments");
    assert_eq!(server.get("/query?first=1&second=2"), "first=1\nsecond=2");
    assert_eq!(server.get("/separate"), "an answer of its own");
    assert_eq!(server.ask("get", "/multi-format", &["-A", "xml"]).1, "<answer>as XML</answer>");
    assert_eq!(server.ask("get", "/multi-format", &["-A", "json"]).1, r#"{"answer":"as JSON"}"#);
    assert_eq!(server.ask("get", "/multi-format", &["-A", "cbor"]).0, 0);
    assert_eq!(server.ask("get", "/multi-format", &["-A", "senml-json"]).0, 4);
    // Californium's checker sends no query, and requests OSCORE at /oscore.
    assert_eq!(server.get("/query"), "no arguments");
    assert_eq!(server.get("/oscore"), "Hello World!");
    assert_eq!(server.ask("delete", "/oscore", &[]).0, 0);
    assert_eq!(server.ask("put", "/oscore", &["-e", "x"]).0, 0);
    assert_eq!(server.get("/large").len(), 2000);
    assert!(server.get("/path").contains("</path/sub1>"));
    // TD_COAP_CORE_20 to 23: tags and conditions.
    let tag = server.json("/validate", &[])["options"].to_string();
    assert!(tag.to_lowercase().contains("etag"), "{tag}");
    let stale = server.ask("put", "/validate", &["-e", "new", "-O", "if-match,0x01"]);
    assert!(stale.1.contains("4.12"), "{stale:?}");
    assert_eq!(server.ask("get", "/create1", &[]).0, 4);
    let create = ["-e", "here", "-O", "if-none-match"];
    assert_eq!(server.ask("put", "/create1", &create).0, 0);
    assert!(server.ask("put", "/create1", &create).1.contains("4.12"));
    assert_eq!(server.get("/create1"), "here");
}

#[test]
fn large_bodies_go_up_come_down_and_stay() {
    let server = Server::demo();
    let body = "0123456789".repeat(300);
    assert_eq!(server.ask("put", "/large-update", &["-e", &body, "-b", "64"]).0, 0);
    assert_eq!(server.get("/large-update"), body);
    assert_eq!(server.ask("post", "/large-create", &["-e", &body]).0, 0);
    assert_eq!(server.get("/large-create/1"), body);
    assert_eq!(server.ask("get", "/large-create/2", &[]).0, 4);
    let upper = server.ask("post", "/large-post", &["-e", &"ab".repeat(1000)]);
    assert_eq!(upper.1, "AB".repeat(1000));
    // TD_COAP_BLOCK_05.
    let (_, answer) = server.ask("post", "/large-post", &["-e", "ab", "--json"]);
    assert!(answer.contains("\"code\":\"2.04\""), "{answer}");
}

#[test]
fn who_asks_changes_nothing_of_what_observers_see_and_a_deleted_resource_comes_back() {
    let server = Server::demo();
    let first = server.get("/obs");
    for _ in 0..3 {
        server.get("/obs");
    }
    let uri = server.uri("coap", "/obs");
    let observing = std::thread::spawn(move || lowmesh(&["observe", &uri, "--count", "2"]));
    let seen = String::from_utf8(observing.join().expect("no panic").stdout).expect("text");
    let number = |state: &str| state.trim_start_matches("state ").trim().parse().expect("a number");
    let seen: Vec<u32> = seen.lines().map(number).collect();
    let first: u32 = number(&first);
    assert!(seen[0] <= first + 1 && seen[1] == seen[0] + 1, "{first}, {seen:?}");
    // TD_COAP_OBS_07: the observer gets 4.04.
    let uri = server.uri("coap", "/obs");
    let observing = std::thread::spawn(move || lowmesh(&["observe", &uri]));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(server.ask("delete", "/obs", &[]).0, 0);
    assert_eq!(observing.join().expect("no panic").status.code(), Some(4));
    assert_eq!(server.ask("get", "/obs", &[]).0, 4);
    // At once for a new observer, within two periods for all.
    let uri = server.uri("coap", "/obs");
    let seen = String::from_utf8(lowmesh(&["observe", &uri, "--count", "1"]).stdout).expect("text");
    assert!(seen.starts_with("state "), "{seen}");
    assert!(server.get("/obs").starts_with("state "));
    assert_eq!(server.ask("delete", "/obs", &[]).0, 0);
    std::thread::sleep(Duration::from_millis(10_500));
    assert!(server.get("/obs").starts_with("state "));
}

#[test]
fn after_a_post_to_obs_reset_observers_of_obs_hear_nothing_until_its_max_age_is_over() {
    let server = Server::demo();
    let uri = server.uri("coap", "/obs");
    let observing = std::thread::spawn(move || lowmesh(&["observe", &uri, "--count", "2"]));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(server.ask("post", "/obs-reset", &["-e", "sesame"]).0, 0);
    let seen = String::from_utf8(observing.join().expect("no panic").stdout).expect("text");
    let number = |state: &str| state.trim_start_matches("state ").trim().parse().expect("a number");
    let seen: Vec<u32> = seen.lines().map(number).collect();
    assert!(seen[1] >= seen[0] + 2, "one change is left out: {seen:?}");
}

#[test]
fn one_server_speaks_every_scheme() {
    let (cert, key) = (format!("{TLS}/server.pem"), format!("{TLS}/server.key"));
    let server = Server::start(&[
        "--demo",
        "-k",
        "secret",
        "-u",
        "me",
        "--cert",
        &cert,
        "--key",
        &key,
        "--ws-port",
        "0",
    ]);
    let trust = format!("{TLS}/ca.pem");
    for scheme in ["coap", "coap+tcp", "coaps", "coaps+tcp", "coaps+ws"] {
        // The certificate is for localhost.
        let uri = server.uri(scheme, "/hello").replace("127.0.0.1", "localhost");
        let uri =
            if scheme == "coap" || scheme == "coaps" { server.uri(scheme, "/hello") } else { uri };
        let with: &[&str] = match scheme {
            "coaps" => &["-k", "secret", "-u", "me"],
            "coaps+tcp" | "coaps+ws" => &["--cafile", &trust],
            _ => &[],
        };
        let ended = lowmesh(&[&["get", &uri], with].concat());
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.stdout, b"hello world", "{scheme}: {stderr}");
    }
}

#[test]
fn files_have_formats_tags_and_a_list_and_nothing_else_is_served() {
    let long = vec![b'x'; 20_000];
    let folder = Folder::new(
        "files",
        &[("a.json", b"{}"), ("sub/long.bin", &long), (".hidden", b"no"), ("c d.txt", b"blank")],
    );
    let server = Server::start(&[folder.path()]);
    let answer = server.json("/a.json", &[]);
    assert_eq!((&answer["content_format"], &answer["payload"]), (&50.into(), &"{}".into()));
    assert_eq!(server.get("/sub/long.bin").len(), long.len());
    assert_eq!(server.get("/c%20d.txt"), "blank");
    let all = server.get("/.well-known/core");
    assert_eq!(
        all,
        "</a.json>;sz=\"2\";ct=50,</c%20d.txt>;sz=\"5\";ct=0,</sub/long.bin>;sz=\"20000\";ct=42"
    );
    assert_eq!(server.get("/.well-known/core?ct=50"), "</a.json>;sz=\"2\";ct=50");
    for path in [
        "/none",
        "/.hidden",
        "/sub",
        "/..",
        "/sub/../../etc/passwd",
        "/sub%2Flong.bin",
        "/%2e%2e/x",
    ] {
        assert_eq!(server.ask("get", path, &[]).0, 4, "{path}");
    }
    let refused = server.ask("put", "/new.txt", &["-e", "x"]);
    assert!(refused.1.contains("4.05"), "{refused:?}");
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_folder_is_not_followed() {
    let outside = Folder::new("outside", &[("secret", b"secret")]);
    let folder = Folder::new("linked", &[("a", b"a")]);
    std::os::unix::fs::symlink(&outside.0, folder.0.join("way")).expect("a link");
    std::os::unix::fs::symlink(folder.0.join("a"), folder.0.join("b")).expect("a link");
    let server = Server::start(&["-w", folder.path()]);
    assert_eq!(server.get("/b"), "a", "inside");
    assert_eq!(server.ask("get", "/way/secret", &[]).0, 4);
    assert_eq!(server.ask("put", "/way/new", &["-e", "x"]).0, 4);
    assert_eq!(server.ask("delete", "/way/secret", &[]).0, 4);
    assert!(outside.0.join("secret").exists() && !outside.0.join("new").exists());
}

#[test]
fn a_writable_folder_takes_files_under_conditions() {
    let folder = Folder::new("writable", &[("old.txt", b"old")]);
    let server = Server::start(&["--writable", folder.path()]);
    let body = "long ".repeat(1000);
    assert_eq!(server.ask("put", "/new.txt", &["-e", &body]).0, 0);
    assert_eq!(server.get("/new.txt"), body);
    let condition = server.ask("put", "/old.txt", &["-e", "x", "-O", "if-none-match"]);
    assert!(condition.1.contains("4.12"), "{condition:?}");
    assert_eq!(server.get("/old.txt"), "old");
    assert_eq!(server.ask("put", "/no/such/folder", &["-e", "x"]).0, 4);
    for _ in 0..2 {
        assert_eq!(server.ask("delete", "/old.txt", &[]).0, 0, "there or not");
    }
    assert!(!folder.0.join("old.txt").exists());
    let left: Vec<_> = std::fs::read_dir(&folder.0).expect("it is there").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn what_cannot_be_served_ends_with_2_and_a_hint() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    for (args, told) in [
        (&["serve", "--demo", "-a", "127.0.0.1", "-p", &port][..], "in use"),
        (&["serve", "no/such/folder"], "no/such/folder"),
        (&["serve", "--demo", "-a", "192.0.2.1"], "not an address of this machine"),
        (&["serve", "--demo", "-p", "65535", "-a", "127.0.0.1"], "65535"),
        (&["serve", "--demo", "-p", "0", "--cert", "none.pem", "--key", "none.key"], "none.pem"),
        (&["serve"], "DIR"),
        (&["serve", "--demo", "--writable"], "--writable"),
        (&["serve", "--demo", "-E", "no/such/file"], "no/such/file"),
        (&["serve", "--demo", "--cc", "coca"], "6cocoa"),
        (&["serve", "--demo", "--window", "vegas"], "lln"),
        (&["serve", "--demo", "--max-peers", "0"], "--max-peers"),
        (&["serve", "--demo", "--max-body", "much"], "--max-body"),
        (&["proxy", "--to", "127.0.0.1"], "coap://"),
        (&["proxy", "--allow-target", "localhost"], "10.0.0.0/8"),
        (&["proxy", "--forward"], "--to"),
        (&["proxy", "--cafile", "no/such/file"], "no/such/file"),
        (&["proxy", "--target-psk", "secret"], "--target-identity"),
        (&["proxy", "--target-psk", "", "--target-identity", "me"], "1 to 64 octets"),
    ] {
        let ended = lowmesh(args);
        let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(told), "{args:?}: {stderr}");
    }
}

#[cfg(unix)]
#[test]
fn a_proxy_passes_requests_on_between_transports_and_keeps_what_is_fresh() {
    let (origin, proxy) = (Server::demo(), Server::start_as("proxy", &LOCAL));
    for (way, target) in [("coap", "coap+tcp"), ("coap+tcp", "coap"), ("coap", "coap")] {
        let (through, uri) = (proxy.uri(way, ""), origin.uri(target, "/hello"));
        let ended = lowmesh(&["get", "-P", &through, &uri]);
        assert_eq!(ended.stdout, b"hello world", "{way} to {target}");
    }
    let direct = lowmesh(&["get", &proxy.uri("coap", "/hello")]);
    assert_eq!(direct.status.code(), Some(4), "it has no resources of its own");
    let unknown = lowmesh(&["get", "-P", &proxy.uri("coap", ""), "coaps://127.0.0.1/"]);
    assert_eq!(unknown.status.code(), Some(5));
}

#[test]
fn without_flags_a_proxy_listens_at_loopback_and_asks_nothing_there() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
    command.args(["proxy", "--port", "0"]);
    let proxy = Server::spawn(command);
    assert!(!proxy.served.is_empty());
    for served in &proxy.served {
        assert!(served.contains("127.0.0.1") || served.contains("[::1]"), "{served}");
    }
    let origin = Server::demo();
    let ended = lowmesh(&["get", "-P", &proxy.uri("coap", ""), &origin.uri("coap", "/hello")]);
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("4.03") && stderr.contains("--allow-target"), "{stderr}");
}

#[test]
fn a_reverse_proxy_forwards_with_the_flag_for_it_only() {
    let (origin, other) = (Server::demo(), Server::demo());
    let to = origin.uri("coap", "");
    let closed = Server::start_as("proxy", &[&LOCAL[..], &["--to", &to]].concat());
    let open = Server::start_as("proxy", &[&LOCAL[..], &["--to", &to, "--forward"]].concat());
    let through = |proxy: &Server| {
        lowmesh(&["get", "-P", &proxy.uri("coap", ""), &other.uri("coap", "/hello")])
    };
    assert_eq!(through(&closed).status.code(), Some(5), "5.05");
    assert_eq!(through(&open).stdout, b"hello world");
}

#[test]
fn a_proxy_asks_a_secure_target_with_the_key_that_it_is_given() {
    let origin = Server::start(&["--demo", "-k", "secret", "-u", "me"]);
    let proxy = Server::start_as(
        "proxy",
        &[&LOCAL[..], &["--target-psk", "secret", "--target-identity", "me"]].concat(),
    );
    let target = origin.uri("coaps", "/hello");
    let ended = lowmesh(&["get", "-P", &proxy.uri("coap", ""), &target]);
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.stdout, b"hello world", "{stderr}");
}

#[test]
fn an_observation_through_a_proxy_brings_each_new_state() {
    let (origin, proxy) = (Server::demo(), Server::start_as("proxy", &LOCAL));
    let through = proxy.uri("coap+tcp", "");
    let observe = ["observe", &origin.uri("coap", "/time"), "-P", &through, "--count", "3"];
    let ended = lowmesh(&[&observe[..], &["--json", "-B", "20"]].concat());
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&ended.stdout).lines().count(), 3, "{stderr}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_member_of_a_group_is_found_on_loopback_and_named() {
    // A socket at one address hears no group.
    let server = Server::start(&["--demo", "-a", "0.0.0.0"]);
    let served = server.served.iter().find_map(|served| served.strip_prefix("coap://0.0.0.0:"));
    let port = served.expect("it is served");
    let group = format!("coap://224.0.1.187:{port}");
    // The answer comes at some time of the leisure, 5 s.
    let ended = lowmesh(&["discover", &group, "href=/hello", "-a", "127.0.0.1", "-B", "6"]);
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{stderr}");
    let printed = String::from_utf8_lossy(&ended.stdout).into_owned();
    let words: Vec<&str> = printed.lines().nth(1).expect("a row").split_whitespace().collect();
    assert_eq!(words[..2], [&format!("127.0.0.1:{port}"), "/hello"], "{printed}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_answers_a_group_that_a_flag_names_within_its_leisure() {
    let group = ["--group", "224.0.1.200%lo", "--leisure", "0.2"];
    let server = Server::start(&[&["--demo", "-a", "0.0.0.0"][..], &group].concat());
    let served = server.served.iter().find_map(|served| served.strip_prefix("coap://0.0.0.0:"));
    let port = served.expect("it is served");
    let uri = format!("coap://224.0.1.200:{port}/gp/lights/demo");
    let ask = |args: &[&str]| lowmesh(&[&["get", &uri, "--interface", "lo"], args].concat());
    let ended = ask(&["-B", "2"]);
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!((&ended.stdout[..], ended.status.code()), (&b"off\n"[..], Some(0)), "{stderr}");
    let ended = lowmesh(&["serve", "--demo", "-a", "::1", "--port", "0", "--group", "ff02::77"]);
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("no UDP socket receives datagrams to ff02::77"), "{stderr}");
}

#[test]
fn metrics_are_served_to_who_asks_for_the_flag() {
    let (plain, metered) = (Server::demo(), Server::start(&["--demo", "--metrics"]));
    assert_eq!(plain.ask("get", "/metrics", &[]).0, 4);
    assert_eq!(metered.ask("get", "/none", &[]).0, 4);
    let text = metered.get("/metrics");
    assert!(text.contains("\nlowmesh_coap_responses_total{class=\"4\"} 1\n"), "{text}");
}

#[test]
fn a_body_past_the_bound_that_is_given_is_refused_with_the_bound() {
    let server = Server::start(&["--demo", "--max-body", "1000"]);
    let put = |len: usize| server.ask("put", "/large-update", &["-e", &"x".repeat(len)]);
    assert_eq!(put(1000).0, 0);
    let refused = put(1001);
    assert!(refused.1.contains("4.13"), "{refused:?}");
}

#[test]
fn a_reverse_proxy_stands_for_its_server_also_under_oscore() {
    let keys = |ours: &str, theirs: &str| {
        format!(
            "master_secret,ascii,0123456789abcdef\nsender_id,ascii,{ours}\n\
             recipient_id,ascii,{theirs}\n"
        )
    };
    let files = [("s", keys("s", "c")), ("c", keys("c", "s"))];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_bytes()));
    let folder = Folder::new("reverse", &files);
    let file = |name: &str| format!("{}/{name}", folder.path());
    #[cfg(unix)]
    for name in ["s", "c"] {
        use std::os::unix::fs::PermissionsExt as _;
        // A key that others can read causes a warning.
        let owner = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(file(name), owner).expect("a file of ours");
    }
    // The secret is the origin's and the client's; the proxy between them has none.
    let origin = Server::start(&["--demo", "-E", &file("s"), "--oscore-only"]);
    let proxy = Server::start_as("proxy", &["--to", &origin.uri("coap", "")]);
    let plain = proxy.ask("get", "/hello", &[]);
    assert_eq!(plain.0, 4, "{}", plain.1);
    let secret = proxy.ask("get", "/hello", &["-E", &file("c")]);
    assert_eq!(secret, (0, "hello world".to_owned()));
    let forward = Server::start_as("proxy", &LOCAL);
    let through = forward.uri("coap", "");
    let ended = lowmesh(&["get", "-E", &file("c"), "-P", &through, &origin.uri("coap", "/hello")]);
    assert_eq!(ended.stdout, b"hello world", "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn ctrl_c_ends_it_with_0_and_after_what_it_has_begun() {
    let mut server = Server::demo();
    let uri = server.uri("coap+tcp", "/separate");
    let asking = std::thread::spawn(move || lowmesh(&["get", &uri]));
    std::thread::sleep(std::time::Duration::from_millis(500));
    let id = server.child.id().to_string();
    let interrupted = Command::new("kill").args(["-INT", &id]).status().expect("kill is there");
    assert!(interrupted.success());
    assert_eq!(asking.join().expect("no panic").stdout, b"an answer of its own");
    assert_eq!(server.child.wait().expect("it ran").code(), Some(0));
    let mut rest = String::new();
    server.told.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, "");
}
