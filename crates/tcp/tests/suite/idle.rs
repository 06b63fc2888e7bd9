//! Connections at rest: keep-alive, TIME-WAIT that ends early, and numbers out of a secret.

use lowmesh_tcp::{Ending, InitialNumbers, KeepAlive, Profile, State};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::tcp::{Control, Ends, Header, Options, Segment, Timestamps};

use crate::pair::{Pair, fast};

const KEEP_ALIVE: Profile = Profile { keep_alive: Some(KeepAlive::LINUX), ..Profile::LINUX };
const HOUR: u64 = 3_600;

/// Two ends after the handshake that stay open.
fn established(profile: Profile) -> Pair {
    let mut pair = Pair::new([profile; 2], fast(0.0), 1);
    pair.ends[0].closes = false;
    pair.ends[1].closes = false;
    pair.connect();
    pair.run(Instant::from_secs(1));
    pair
}

#[test]
fn a_peer_that_answers_probes_keeps_an_idle_connection() {
    let mut pair = established(KEEP_ALIVE);
    let before = pair.log.len();
    pair.run(Instant::from_secs(5 * HOUR));
    assert_eq!(pair.ends.each_ref().map(|end| end.connection.state()), [State::Established; 2]);
    // Probes of both ends at two hours and at four, each with its answer; the answer counts for the other end, too.
    let sent = pair.log.len() - before;
    assert!((4..=8).contains(&sent), "{sent}");
    // Without keep-alive nothing is sent.
    let mut silent = established(Profile::LINUX);
    let before = silent.log.len();
    silent.run(Instant::from_secs(5 * HOUR));
    assert_eq!(silent.log.len(), before);
}

#[test]
fn a_peer_that_vanished_is_given_up_after_nine_probes() {
    let mut pair = established(KEEP_ALIVE);
    pair.pause = Some((pair.now, Instant::from_secs(100 * HOUR)));
    let before = pair.log.len();
    pair.run(Instant::from_secs(4 * HOUR));
    assert_eq!(pair.ends.each_ref().map(|end| end.ending), [Some(Ending::TimedOut); 2]);
    let probes: Vec<Instant> =
        pair.log[before..].iter().filter(|(_, end, _)| *end == 0).map(|(at, ..)| *at).collect();
    // Nine probes 75 s apart from two hours of silence on, and the reset.
    assert_eq!(probes.len(), 10);
    assert_eq!(probes[1].since(probes[0]), Duration::from_secs(75));
    assert!(probes[0].since(Instant::from_secs(2 * HOUR)) < Duration::from_secs(2));
}

/// The client has closed first and waits; the last header of the server.
fn time_wait(profile: Profile) -> (Pair, Header) {
    let mut pair = Pair::new([profile; 2], fast(0.0), 1);
    pair.connect();
    pair.run(Instant::from_secs(2));
    let waits = pair.ends[0].connection.state();
    assert!(waits == State::TimeWait, "{waits:?}");
    let (_, _, bytes) = pair.log.iter().rfind(|(_, end, _)| *end == 1).expect("it has sent");
    let ends = Ends::V4([10, 9, 0, 1], [10, 9, 0, 2]);
    let header = Segment::parse(&ends, bytes).expect("our own octets").header;
    (pair, header)
}

#[test]
fn time_wait_yields_to_a_syn_that_is_certainly_newer() {
    let (pair, last) = time_wait(Profile::LINUX);
    let value = last.options.timestamps.expect("it sends timestamps").value;
    let syn = |step: i32, offset: u32| Header {
        sequence: last.sequence.wrapping_add(offset),
        control: Control { syn: true, ..Control::default() },
        options: Options {
            timestamps: Some(Timestamps { value: value.wrapping_add_signed(step), echo: 0 }),
            ..Options::default()
        },
        ..last
    };
    let yields = |header: Header| pair.ends[0].connection.yields_to(&header);
    // RFC 6191 s2: a later timestamp, or the same one and a later number.
    assert!(yields(syn(1, 0)) && yields(syn(0, 100)));
    assert!(!yields(syn(-1, 100)) && !yields(syn(0, 0)));
    let plain = |offset| Header { options: Options::default(), ..syn(1, offset) };
    assert!(yields(plain(100)) && !yields(plain(0)));
    let with_ack =
        Header { control: Control { syn: true, ack: true, ..Control::default() }, ..syn(1, 100) };
    assert!(!yields(with_ack));
}

#[test]
fn other_states_yield_to_no_syn() {
    let pair = established(Profile::LINUX);
    let control = Control { syn: true, ..Control::default() };
    let syn = Header { control, sequence: 1 << 31, ..Header::default() };
    assert!(!pair.ends[0].connection.yields_to(&syn));
}

#[test]
fn numbers_out_of_a_secret_let_time_wait_end_early() {
    let ends = Ends::V4([10, 9, 0, 1], [10, 9, 0, 2]);
    let of = |second| InitialNumbers::of(&[7; 32], &ends, (1, 2), Instant::from_secs(second));
    let (first, second) = (of(10), of(70));
    assert!(
        second.sequence.wrapping_sub(first.sequence).cast_signed() > 0,
        "later by more than was sent"
    );
}
