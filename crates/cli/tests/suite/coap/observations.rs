//! `lowmesh observe` against a server of ours on loopback: what it prints, and that it takes its leave.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use super::server::{Server, lowmesh, stderr};

/// The numbers that came, one a line.
fn numbers(stdout: &[u8]) -> Vec<u32> {
    let text = String::from_utf8(stdout.to_vec()).expect("digits");
    text.lines().map(|line| line.parse().expect("a number")).collect()
}

fn start(args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the command was built")
}

#[test]
fn each_change_is_a_line_until_there_are_enough() {
    let server = Server::start();
    let ended = lowmesh(&["observe", &server.uri("/count"), "--count", "4", "-B", "5"]);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    let numbers = numbers(&ended.stdout);
    assert!(numbers.len() == 4 && numbers.is_sorted(), "{numbers:?}");
    assert_eq!(server.observers(), 0, "the server was told");
}

#[test]
fn get_observes_for_as_long_as_it_is_told_to() {
    let server = Server::start();
    let ended = lowmesh(&["get", "-s", "0.5", &server.uri("/count")]);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    assert!(numbers(&ended.stdout).len() >= 2);
    assert_eq!(server.observers(), 0);
}

#[test]
fn every_notification_is_an_object_with_its_place_in_the_order() {
    let server = Server::start();
    let ended = lowmesh(&["observe", &server.uri("/count"), "--json", "--count", "3", "-B", "5"]);
    let lines = std::str::from_utf8(&ended.stdout).expect("JSON").lines();
    let objects: Vec<serde_json::Value> =
        lines.map(|line| serde_json::from_str(line).expect("an object")).collect();
    let places = objects.iter().map(|one| one["observe"].as_u64().expect("a number"));
    assert!(places.collect::<Vec<_>>().is_sorted() && objects.len() == 3, "{objects:?}");
}

#[test]
fn an_interruption_is_an_end_in_order() {
    let server = Server::start();
    let mut child = start(&["observe", &server.uri("/count")]);
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    lines.next().expect("a notification").expect("text");
    assert_eq!(server.observers(), 1);
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.expect("every system has it").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(server.observers(), 0);
}

#[test]
fn a_reader_that_has_enough_ends_the_observation() {
    let server = Server::start();
    let mut child = start(&["observe", &server.uri("/count")]);
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_exact(&mut [0; 1]).expect("a notification");
    drop(stdout);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(server.observers(), 0);
}

#[test]
fn a_resource_that_is_not_observable_is_shown_once() {
    let server = Server::start();
    let ended = lowmesh(&["observe", &server.uri("/echo")]);
    assert_eq!((ended.status.code(), &ended.stdout[..]), (Some(0), &b"1\n"[..]));
    assert!(stderr(&ended).contains("accepts no observation"), "{}", stderr(&ended));
    assert_eq!(lowmesh(&["observe", &server.uri("/none")]).status.code(), Some(4));
}
