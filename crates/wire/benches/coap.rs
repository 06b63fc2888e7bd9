//! The CoAP codec beside coap-lite on the same messages: nanoseconds an operation, the best and the
//! median of fifteen rounds. `cargo xtask bench codec` runs it.
//!
//! Ours is measured as a server uses it: a borrowed view whose options are all walked, and a message
//! written to a fresh buffer.

use std::hint::black_box;
use std::time::Instant;

use coap_lite::Packet;
use lowmesh_wire::coap::{Message, MessageView};

const ROUNDS: usize = 15;
const OPERATIONS: u32 = 200_000;
/// We are to be at least this many times as fast.
const TARGET: f64 = 2.0;

/// (name, datagram): a GET of one segment; a GET of a resource directory's sort with seven options;
/// a response with four options and a block of 64 octets.
fn messages() -> [(&'static str, Vec<u8>); 3] {
    let small = b"\x44\x01\x00\x01\xde\xad\xbe\xef\xb5hello".to_vec();
    let long = b"\x48\x01\x12\x34\x01\x02\x03\x04\x05\x06\x07\x08\x3bexample.org\x87sensors\x04temp\x011\x45if=rt\x05pg=10\x21\x3c";
    let head = b"\x64\x45\x12\x34\xde\xad\xbe\xef\x44\x01\x02\x03\x04\x81\x3c\x21\x1e\x91\x0e\xff";
    let response = [&head[..], &[0x55; 64]].concat();
    [("GET, 14 octets", small), ("GET, 7 options", long.to_vec()), ("2.05, 64 octets", response)]
}

/// Nanoseconds an operation: (best, median).
#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn measure(mut operation: impl FnMut()) -> (f64, f64) {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..OPERATIONS {
                operation();
            }
            start.elapsed().as_nanos() as f64 / f64::from(OPERATIONS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    (rounds[0], rounds[ROUNDS / 2])
}

fn view(bytes: &[u8]) -> usize {
    let view = MessageView::parse(bytes).expect("valid");
    let options = view.options().map(|option| option.value.len()).sum::<usize>();
    options + view.payload().len()
}

/// Prints a row; returns how many times as fast ours is.
fn line(name: &str, what: &str, ours: (f64, f64), theirs: (f64, f64)) -> f64 {
    let factor = theirs.1 / ours.1;
    println!(
        "{name:<16} {what:<7} {:>6.0} {:>6.0} {:>9.0} {:>6.0} {factor:>9.1}",
        ours.0, ours.1, theirs.0, theirs.1
    );
    factor
}

fn main() {
    println!("{:<24} {:>13} {:>16} {:>9}", "", "lowmesh ns", "coap-lite ns", "factor");
    println!("{:<24} {:>6} {:>6} {:>9} {:>6}", "", "best", "median", "best", "median");
    let mut slowest = f64::INFINITY;
    for (name, bytes) in messages() {
        let packet = Packet::from_bytes(&bytes).expect("valid");
        let message = Message::parse(&bytes).expect("valid");
        assert_eq!(packet.to_bytes().expect("encodes"), bytes);
        assert_eq!(message.to_vec(), bytes);
        let parse = measure(|| {
            black_box(view(black_box(&bytes)));
        });
        let owned = measure(|| drop(black_box(Message::parse(black_box(&bytes)))));
        let peer = measure(|| drop(black_box(Packet::from_bytes(black_box(&bytes)))));
        slowest = slowest.min(line(name, "view", parse, peer));
        line(name, "owned", owned, peer);
        let encode = measure(|| drop(black_box(black_box(&message).to_vec())));
        let peer = measure(|| drop(black_box(black_box(&packet).to_bytes())));
        slowest = slowest.min(line(name, "encode", encode, peer));
    }
    if slowest < TARGET {
        println!("a view or an encoding misses its target of {TARGET} times coap-lite's speed");
        std::process::exit(1);
    }
}
