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

/// A client of CoAP over TCP in namespace a: octets that are no CoAP, a connection that is reset in the middle of a request,
/// datagrams, and then a PUT and a GET as they should be.
const CLIENT: &str = r"
import socket, struct
node = ('fd00:6c6d:0:1::2', 5683)
CSM = bytes([0x00, 0xe1])
def connect():
    s = socket.create_connection(node, timeout=5)
    s.sendall(CSM)
    return s
def message(s):
    def read(n):
        data = b''
        while len(data) < n:
            part = s.recv(n - len(data))
            assert part, 'the node has closed the connection'
            data += part
        return data
    first = read(1)[0]
    length = first >> 4
    if length == 13: length = read(1)[0] + 13
    assert length < 14, length
    code = read(1)[0]
    return code, read((first & 15) + length)
def answer(s, request):
    s.sendall(request)
    while True:
        code, rest = message(s)
        if code < 0xe0: return code, rest
garbage = connect()
garbage.sendall(b'\xff' * 3000)
garbage.settimeout(5)
try:
    while garbage.recv(4096): pass
except ConnectionResetError: pass
half = connect()
half.sendall(bytes([0xd0, 200, 0x03]) + b'x' * 50)
half.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
half.close()
datagram = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
datagram.connect(node)
datagram.send(bytes([0x40, 0x01, 0, 1]))
datagram.settimeout(5)
try: assert not datagram.recv(100)
except ConnectionRefusedError: pass
s = connect()
PATH = b'\xb4body'
code, _ = answer(s, bytes([(len(PATH) + 6) << 4, 0x03]) + PATH + b'\xffhello')
assert code == 0x44, code
code, rest = answer(s, bytes([len(PATH) << 4, 0x01]) + PATH)
assert (code, rest) == (0x45, b'\xffhello'), (code, rest)
";

#[test]
fn a_node_outlives_garbage_resets_and_datagrams_and_serves_the_next_client() {
    let words = [
        "--rate",
        "5M",
        "--delay",
        "5ms",
        "--name",
        "lm-t3",
        "--interval",
        "0s",
        "--node",
        "--",
        "python3",
        "-c",
        CLIENT,
    ];
    let Some((result, _)) = emulate(&words) else { return };
    assert!(result.is_ok(), "{result:?}");
}

#[test]
fn a_node_has_no_peer_program_and_needs_the_mtu_of_ipv6() {
    let both = args(&["--rate", "1M", "--node", "--peer", "true"]);
    assert!(both.expect_err("two things at one end").contains("--peer"));
    let alone = args(&["--rate", "1M", "--window", "bbr"]);
    assert!(alone.expect_err("no node").contains("--node"));
    let args = args(&["--rate", "1M", "--node", "--mtu", "296"]).expect("a whole line");
    let Err(Failure::Usage { message, .. }) = args.node.config(args.mtu) else {
        panic!("it is refused")
    };
    assert!(message.contains("--mtu 296") && message.contains("1280"), "{message}");
}
