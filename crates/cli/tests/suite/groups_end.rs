//! `lowmesh groups serve` ends when it is asked to, whatever it waits for.

use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::folder::{Folder, stderr, succeed};
use crate::served::{Server, lowmesh};

/// The page promises two seconds; the machine that tests may be busy.
const END_MAX: Duration = Duration::from_secs(5);

#[test]
fn a_manager_with_an_open_query_ends_within_two_seconds_of_a_signal() {
    let folder = Folder::new("groups-end");
    folder.write("t.txt", "20");
    let member = Server::start(&[&folder.path("")]);
    let mut manager = Server::start_as_words(&["groups", "serve"], &[]);
    let at = manager.uri("coap", "");
    succeed(&["groups", "create", "room", &member.uri("coap", "/t.txt"), "-m", &at]);
    // The member is gone, and another program has its port and is silent.
    let uri = member.uri("coap", "");
    drop(member);
    let _silent = UdpSocket::bind(&uri["coap://".len()..]).expect("it is free again");
    let mut query = Command::new(env!("CARGO_BIN_EXE_lowmesh"))
        .args(["groups", "query", "room", "-m", &at])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command was built");
    std::thread::sleep(Duration::from_secs(1));
    manager.signal("TERM");
    assert_eq!(manager.ends_within(END_MAX), 0);
    query.kill().expect("it is ours");
    query.wait().expect("it is ours");
}

#[test]
fn a_manager_beyond_loopback_needs_keys_or_a_word() {
    let refused = lowmesh(&["groups", "serve", "-a", "0.0.0.0", "-p", "0"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("hint: protect requests with --oscore-only"),
        "{}",
        stderr(&refused)
    );
    let manager = Server::start_as_words(&["groups", "serve"], &["-a", "0.0.0.0", "--open"]);
    assert!(manager.served.iter().any(|served| served.starts_with("coap://0.0.0.0:")));
}

#[test]
fn members_outside_of_the_allowed_addresses_are_refused_and_entities_are_in_the_list_of_the_server()
{
    let folder = Folder::new("groups-allowed");
    folder.write("t.txt", "20");
    let member = Server::start(&[&folder.path("")]);
    let uri = member.uri("coap", "/t.txt");
    let strict = Server::start_as_words(&["groups", "serve"], &["--allow-member", "127.0.0.2"]);
    let refused = lowmesh(&["groups", "create", "room", &uri, "-m", &strict.uri("coap", "")]);
    assert!(stderr(&refused).contains("4.03"), "{}", stderr(&refused));
    let right = ["--allow-member", "fd00::/8", "--allow-member", "127.0.0.0/8"];
    let manager = Server::start_as_words(&["groups", "serve"], &right);
    let at = manager.uri("coap", "");
    succeed(&["groups", "create", "room", &uri, "-m", &at]);
    let (list, _) = succeed(&["get", &manager.uri("coap", "/.well-known/core?rt=core.entity")]);
    assert!(list.contains("</e/room>"), "{list}");
    let (shown, _) = succeed(&["groups", "show", "room", "-m", &at]);
    assert!(shown.contains("member; answered "), "{shown}");
}

#[cfg(target_os = "linux")]
#[test]
fn metrics_of_a_manager_tell_of_silent_members() {
    let folder = Folder::new("groups-metrics");
    folder.write("t.txt", "20");
    let member = Server::start(&[&folder.path("")]);
    let manager = Server::start_as_words(&["groups", "serve"], &["--metrics"]);
    let at = manager.uri("coap", "");
    let uri = member.uri("coap", "/t.txt");
    succeed(&["groups", "create", "room", &uri, "-m", &at]);
    let (text, _) = succeed(&["get", &manager.uri("coap", "/metrics")]);
    for line in ["lowmesh_entities 1", "lowmesh_member_nodes 1", "lowmesh_member_nodes_down 0"] {
        assert!(text.lines().any(|one| one == line), "{line}: {text}");
    }
}
