//! The verb as a process would use it; what needs TUN and root says when it is skipped.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn args(words: &[&str]) -> Result<Args, String> {
    let words = ["emulate"].iter().chain(words);
    Line::try_parse_from(words).map(|line| line.args).map_err(|error| error.to_string())
}

#[test]
fn the_line_of_the_manual_is_understood() {
    let args = args(&[
        "--rate",
        "60k,30k",
        "--delay",
        "200ms,400ms",
        "--queue",
        "14100",
        "--mtu",
        "296",
        "--loss",
        "ge:2%:50%:8s:1.5s",
        "--",
        "ping",
        "-c",
        "3",
        "10.9.0.2",
    ])
    .expect("a whole line");
    assert_eq!(args.command, ["ping", "-c", "3", "10.9.0.2"]);
    let configs = args.link.configs().expect("two links");
    assert_eq!(
        (configs[0].rate_bits_per_second, configs[1].rate_bits_per_second),
        (60_000, 30_000)
    );
}

#[test]
fn a_link_without_a_rate_and_a_jitter_backwards_are_refused() {
    assert!(args(&[]).expect_err("no rate").contains("--rate"));
    let args = args(&["--rate", "1M", "--jitter", "20ms..10ms"]).expect("a whole line");
    let Err(Failure::Usage { message, .. }) = args.link.configs() else { panic!("it is refused") };
    assert!(message.contains("jitter"), "{message}");
}

/// Runs the verb where this machine allows it.
fn emulate(words: &[&str]) -> Option<(Result<(), Failure>, String)> {
    let args = args(words).expect("a whole line");
    let mut out = Vec::new();
    let result = execute(&args, &mut out);
    if let Err(Failure::Usage { message, .. }) = &result {
        eprintln!("SKIPPED, no link is emulated here: {message}");
        return None;
    }
    Some((result, String::from_utf8(out).expect("JSON")))
}

#[test]
fn programs_at_both_ends_talk_and_the_exit_code_is_the_commands() {
    let script = "import socket,time;s=socket.create_connection(('10.9.0.2',7000));s.sendall(b'x'*1000);\
                  assert s.recv(10)==b'done'";
    let peer = "python3 -c \"import socket;l=socket.socket();l.bind(('10.9.0.2',7000));l.listen();s,_=l.accept();\
                n=0\nwhile n<1000: n+=len(s.recv(9999))\ns.sendall(b'done');s.recv(1)\"";
    let words = [
        "--rate",
        "1M",
        "--delay",
        "10ms",
        "--name",
        "lm-t1",
        "--interval",
        "0s",
        "--json",
        "--peer",
        peer,
        "--",
        "python3",
        "-c",
        script,
    ];
    let Some((result, out)) = emulate(&words) else { return };
    assert!(result.is_ok(), "{result:?}");
    let totals: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let arrived = totals["a_to_b"]["octets"].as_u64().expect("a number");
    // The data, and the headers of at least five segments.
    assert!((1_200..3_000).contains(&arrived), "{out}");
    let words = ["--rate", "1M", "--name", "lm-t2", "--interval", "0s", "--", "sh", "-c", "exit 7"];
    let Some((result, _)) = emulate(&words) else { return };
    assert!(matches!(result, Err(Failure::Ended(7))), "{result:?}");
}
