//! A reader that goes away, as `head -1` does, ends what only shows things, and breaks nothing else.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::server::Server;

/// Waits for a command that ends within so long; its exit code.
fn ends_within(child: &mut Child, limit: Duration) -> Option<i32> {
    let look = Duration::from_millis(10);
    for _ in 0..limit.as_millis() / look.as_millis() {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status.code();
        }
        std::thread::sleep(look);
    }
    let _gone = child.kill();
    panic!("it goes on after {limit:?}");
}

/// Starts a command whose stdout and stderr are one pipe, reads one line of it, and closes the pipe: `|& head -1`.
fn head(args: &[&str]) -> Child {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
    let both: (OwnedFd, OwnedFd) = (writer.try_clone().expect("a pipe").into(), writer.into());
    let child = command.args(args).stdout(both.0).stderr(both.1).spawn().expect("it was built");
    drop(command);
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).expect("text");
    assert!(!line.is_empty(), "{args:?}");
    child
}

#[test]
fn a_reader_of_the_messages_that_has_enough_ends_what_only_asks() {
    let server = Server::start();
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let nobody = format!("coap://{}/", silent.local_addr().expect("bound"));
    for args in [
        &["get", "-v", &server.uri("/large"), "-b", "16"][..],
        &["get", "-v", &nobody],
        &["observe", "-v", &server.uri("/count")],
        &["observe", &server.uri("/count")],
        &["discover", "-v", &nobody],
        &["ping", "-v", &nobody],
        &["ping", &server.uri("/"), "-c", "100"],
    ] {
        let code = ends_within(&mut head(args), Duration::from_secs(5));
        assert_eq!(code, Some(0), "{args:?}");
    }
}

#[test]
fn an_observation_of_what_never_changes_ends_with_its_reader() {
    let server = Server::start();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
    let command = command.args(["observe", &server.uri("/still")]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it was built");
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_exact(&mut [0; 1]).expect("the first state");
    drop(stdout);
    assert_eq!(ends_within(&mut child, Duration::from_secs(5)), Some(0));
    assert_eq!(server.observers(), 0, "the server was told");
}

#[test]
fn what_nobody_reads_on_stderr_is_lost_and_the_answer_is_not() {
    let server = Server::start();
    for (verb, answer) in [("get", "1"), ("put", "3")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
        let command = command.args([verb, "-v", &server.uri("/echo")]);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("built");
        drop(child.stderr.take());
        let mut told = String::new();
        child.stdout.take().expect("piped").read_to_string(&mut told).expect("text");
        assert_eq!((ends_within(&mut child, Duration::from_secs(5)), &*told), (Some(0), answer));
    }
}

#[test]
fn a_change_that_has_begun_is_finished_although_nobody_reads_its_answer() {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let uri = format!("coap://{}/", server.local_addr().expect("bound"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
    let command = command.args(["put", &uri, "-e", "x"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it was built");
    drop(child.stdout.take());
    let mut put = [0; 64];
    let (_, from) = server.recv_from(&mut put).expect("a request");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(child.try_wait().expect("it is ours"), None, "it waits for the answer");
    // ACK 2.04 with the message ID and the token of the request.
    let token_len = usize::from(put[0] & 0x0f);
    let answer = [&[0x60 | put[0] & 0x0f, 0x44], &put[2..4 + token_len]].concat();
    server.send_to(&answer, from).expect("loopback");
    assert_eq!(ends_within(&mut child, Duration::from_secs(5)), Some(0));
}
