//! Opening, closing, peers that vanish, windows that close, and segments from attackers.

use lowmesh_machine::Machine;
use lowmesh_tcp::params::TIME_WAIT;
use lowmesh_tcp::{Config, Connection, Ending, Input, Output, Profile, State, reset_for};
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::tcp::{Control, Ends, Header, Options, Segment};

use crate::pair::{Pair, fast};

const SECOND: Instant = Instant::from_secs(1);

/// Two ends after the handshake that stay open.
fn established(profile: Profile) -> Pair {
    let mut pair = Pair::new([profile; 2], fast(0.0), 1);
    pair.ends[0].closes = false;
    pair.ends[1].closes = false;
    pair.connect();
    pair.run(SECOND);
    assert_eq!(states(&pair), [State::Established; 2]);
    pair
}

fn states(pair: &Pair) -> [State; 2] {
    pair.ends.each_ref().map(|end| end.connection.state())
}

fn header_of(bytes: &[u8], from: usize) -> (Header, Vec<u8>) {
    let (client, server) = ([10, 9, 0, 2], [10, 9, 0, 1]);
    let ends = if from == 0 { Ends::V4(client, server) } else { Ends::V4(server, client) };
    let segment = Segment::parse(&ends, bytes).expect("our own octets");
    (segment.header, segment.payload.to_vec())
}

/// The last header that an end has sent.
fn last_from(pair: &Pair, from: usize) -> Header {
    let (_, _, bytes) = pair.log.iter().rfind(|(_, end, _)| *end == from).expect("it has sent");
    header_of(bytes, from).0
}

fn count_from(pair: &Pair, from: usize) -> usize {
    pair.log.iter().filter(|(_, end, _)| *end == from).count()
}

/// Hands a forged segment to the server.
fn forge(pair: &mut Pair, header: Header, payload: &[u8]) {
    pair.now += Duration::from_secs(1);
    pair.input(1, Input::Segment { header: &header, payload });
}

/// A segment as the client would send it next.
fn next_of_client(pair: &Pair) -> Header {
    let server = last_from(pair, 1);
    Header {
        source_port: 40_000,
        destination_port: 5_683,
        sequence: server.acknowledgment,
        acknowledgment: server.sequence.wrapping_add(u32::from(server.control.syn)),
        control: Control { ack: true, ..Control::default() },
        window: 1_000,
        ..Header::default()
    }
}

#[test]
fn only_the_exact_number_resets_and_others_in_the_window_are_challenged() {
    let mut pair = established(Profile::LINUX);
    let mut reset = next_of_client(&pair);
    reset.control = Control { rst: true, ..Control::default() };
    let exact = reset.sequence;
    for offset in [1, 100, 60_000] {
        let sent = count_from(&pair, 1);
        reset.sequence = exact.wrapping_add(offset);
        forge(&mut pair, reset, &[]);
        assert_eq!(pair.ends[1].connection.state(), State::Established, "{offset}");
        assert_eq!(count_from(&pair, 1), sent + 1, "a challenge ACK");
        assert_eq!(last_from(&pair, 1).acknowledgment, exact);
    }
    for offset in [0x8000_0000, 0xffff_fff0] {
        let sent = count_from(&pair, 1);
        reset.sequence = exact.wrapping_add(offset);
        forge(&mut pair, reset, &[]);
        assert_eq!(count_from(&pair, 1), sent, "outside of the window it is dropped silently");
    }
    reset.sequence = exact;
    forge(&mut pair, reset, &[]);
    assert_eq!(pair.ends[1].ending, Some(Ending::Reset));
}

#[test]
fn a_syn_in_the_window_is_challenged() {
    let mut pair = established(Profile::LINUX);
    let sent = count_from(&pair, 1);
    let mut syn = next_of_client(&pair);
    syn.control = Control { syn: true, ..Control::default() };
    forge(&mut pair, syn, &[]);
    assert_eq!(
        (pair.ends[1].connection.state(), count_from(&pair, 1)),
        (State::Established, sent + 1)
    );
}

#[test]
fn challenges_are_limited_to_two_in_a_second() {
    let mut pair = established(Profile::LINUX);
    let sent = count_from(&pair, 1);
    let mut syn = next_of_client(&pair);
    syn.control = Control { syn: true, ..Control::default() };
    for _ in 0..1_000 {
        pair.now += Duration::from_millis(1);
        pair.input(1, Input::Segment { header: &syn, payload: &[] });
    }
    assert_eq!(count_from(&pair, 1), sent + 2);
}

#[test]
fn data_with_an_acknowledgement_out_of_range_is_not_believed() {
    let mut pair = established(Profile::LINUX);
    for offset in [1_u32, 1_000_000, 0x8000_0000, 0x4000_0000_u32.wrapping_neg()] {
        let mut data = next_of_client(&pair);
        data.acknowledgment = data.acknowledgment.wrapping_add(offset);
        forge(&mut pair, data, b"forged");
    }
    assert!(pair.ends[1].received.is_empty());
    let data = next_of_client(&pair);
    forge(&mut pair, data, b"honest");
    assert_eq!(pair.ends[1].received, b"honest");
}

#[test]
fn a_segment_with_an_old_timestamp_is_dropped_and_answered() {
    let mut pair = established(Profile::LINUX);
    let mut data = next_of_client(&pair);
    let echoed = last_from(&pair, 1).options.timestamps.expect("timestamps").echo;
    let timestamps = |value| Some(lowmesh_wire::tcp::Timestamps { value, echo: 0 });
    data.options.timestamps = timestamps(echoed.wrapping_sub(10));
    let sent = count_from(&pair, 1);
    forge(&mut pair, data, b"old");
    assert!(pair.ends[1].received.is_empty());
    assert_eq!(count_from(&pair, 1), sent + 1);
    data.options.timestamps = timestamps(echoed.wrapping_add(1_000));
    forge(&mut pair, data, b"new");
    assert_eq!(pair.ends[1].received, b"new");
}

/// A server that has answered the SYN of a client, and the header with which the client finishes the handshake.
fn half_open() -> (Pair, Header) {
    let mut pair = Pair::new([Profile::LINUX; 2], fast(0.0), 1);
    pair.ends[1].closes = false;
    // What the server sends gets lost: the client is written here.
    pair.pause = Some((Instant::ZERO, Instant::from_secs(10_000)));
    pair.input(1, Input::Listen);
    let syn = Header {
        source_port: 40_000,
        destination_port: 5_683,
        sequence: 1_000,
        control: Control { syn: true, ..Control::default() },
        window: 1_000,
        ..Header::default()
    };
    forge(&mut pair, syn, &[]);
    let next = next_of_client(&pair);
    (pair, next)
}

#[test]
fn the_last_segment_of_a_handshake_lies_in_the_window_or_opens_nothing() {
    for offset in [1_u32.wrapping_neg(), 100_u32.wrapping_neg(), 70_000, 1 << 31] {
        let (mut pair, mut last) = half_open();
        let exact = last.sequence;
        last.sequence = exact.wrapping_add(offset);
        let sent = count_from(&pair, 1);
        forge(&mut pair, last, &[]);
        assert_eq!(pair.ends[1].connection.state(), State::SynReceived, "{offset}");
        // RFC 9293 s3.10.7.4: an acknowledgement tells the peer what is expected.
        assert_eq!(count_from(&pair, 1), sent + 1);
        let challenge = last_from(&pair, 1);
        let ack = Control { ack: true, ..Control::default() };
        assert_eq!((challenge.acknowledgment, challenge.control), (exact, ack));
        assert_eq!(challenge.sequence, last.acknowledgment);
        last.sequence = exact;
        forge(&mut pair, last, &[]);
        assert_eq!(pair.ends[1].connection.state(), State::Established);
    }
    // An octet that is old in front of one that is new.
    let (mut pair, mut last) = half_open();
    last.sequence = last.sequence.wrapping_sub(1);
    forge(&mut pair, last, b"-n");
    assert_eq!(pair.ends[1].received, b"n");
}

#[test]
fn an_address_that_is_not_proven_gets_at_most_three_times_its_octets() {
    let (mut pair, _) = half_open();
    pair.run(Instant::from_secs(10));
    // A SYN without options has 20 octets; its answer has the MSS, and 24.
    let answers: Vec<u64> =
        pair.log.iter().map(|(at, ..)| at.as_secs_f64().round() as u64).collect();
    assert_eq!(answers, [1, 2], "two answers, and a third one would pass 60 octets");
    // A repeated SYN brings 20 octets, so three more answers fit: one now, and two by the timer.
    let mut syn = next_of_client(&pair);
    syn.sequence = syn.sequence.wrapping_sub(1);
    syn.control = Control { syn: true, ..Control::default() };
    forge(&mut pair, syn, &[]);
    pair.run(Instant::from_secs(600));
    let octets: usize = pair.log.iter().map(|(_, _, bytes)| bytes.len()).sum();
    assert_eq!((octets, pair.log.len()), (5 * 24, 5));
    assert_eq!(pair.ends[1].ending, Some(Ending::TimedOut), "after the time of all repeats");
}

#[test]
fn a_timestamp_no_longer_protects_after_24_days_and_the_next_one_does() {
    let mut pair = established(Profile::LINUX);
    let mut data = next_of_client(&pair);
    let echoed = last_from(&pair, 1).options.timestamps.expect("timestamps").echo;
    let timestamps = |value| Some(lowmesh_wire::tcp::Timestamps { value, echo: 0 });
    let other = echoed.wrapping_sub(1_000_000);
    data.options.timestamps = timestamps(other);
    pair.now += Duration::from_secs(24 * 24 * 3_600);
    forge(&mut pair, data, b"after a month");
    assert_eq!(pair.ends[1].received, b"after a month");
    // RFC 7323 s5.5: from here on it is the one that is echoed and compared with.
    data.sequence = last_from(&pair, 1).acknowledgment;
    data.options.timestamps = timestamps(other.wrapping_sub(1));
    forge(&mut pair, data, b", old");
    assert_eq!(pair.ends[1].received, b"after a month");
    assert_eq!(last_from(&pair, 1).options.timestamps.expect("timestamps").echo, other);
}

#[test]
fn an_old_segment_does_not_close_the_window() {
    for (age, payload, closes) in [(0, "", true), (4, "news!", false)] {
        let mut pair = established(Profile { timestamps: false, ..Profile::LINUX });
        for part in ["n", "ews"] {
            let data = next_of_client(&pair);
            forge(&mut pair, data, part.as_bytes());
            pair.run(pair.now + Duration::from_secs(1));
        }
        // The older one left before the data; its last octet makes it acceptable.
        let mut closed = next_of_client(&pair);
        closed.window = 0;
        closed.sequence = closed.sequence.wrapping_sub(age);
        forge(&mut pair, closed, payload.as_bytes());
        pair.run(pair.now + Duration::from_secs(1));
        let sent = count_from(&pair, 1);
        pair.input(1, Input::Write(b"answer"));
        assert_eq!(count_from(&pair, 1) - sent, usize::from(!closes), "{age}");
    }
}

#[test]
fn both_ends_may_open_at_once() {
    let mut pair = Pair::new([Profile::LINUX; 2], fast(0.0), 1);
    pair.ends[0].closes = false;
    pair.ends[1].closes = false;
    pair.input(0, Input::Open);
    pair.input(1, Input::Open);
    pair.run(SECOND);
    assert_eq!(states(&pair), [State::Established; 2]);
    pair.ends[0].to_send = b"hello".to_vec();
    pair.input(0, Input::Deadline);
    pair.run(Instant::from_secs(2));
    assert_eq!(pair.ends[1].received, b"hello");
}

#[test]
fn both_ends_may_close_at_once_and_wait_for_a_minute() {
    let mut pair = established(Profile::LINUX);
    pair.input(0, Input::Close);
    pair.input(1, Input::Close);
    pair.run(Instant::from_secs(30));
    assert_eq!(states(&pair), [State::TimeWait; 2]);
    pair.run(Instant::from_secs(70));
    assert_eq!(pair.ends.each_ref().map(|end| end.ending), [Some(Ending::Finished); 2]);
}

/// RFC 9293 s3.10.7.4: a FIN that comes again restarts the time, since the acknowledgement of the first was lost.
#[test]
fn a_fin_that_comes_again_restarts_time_wait() {
    let mut pair = established(Profile::LINUX);
    pair.input(1, Input::Close);
    pair.run(Instant::from_secs(2));
    pair.input(0, Input::Close);
    pair.run(Instant::from_secs(3));
    assert_eq!(pair.ends[1].connection.state(), State::TimeWait);
    let is_fin = |bytes: &[u8]| header_of(bytes, 0).0.control.fin;
    let mut fins = pair.log.iter().filter(|(_, end, bytes)| *end == 0 && is_fin(bytes));
    let fin = fins.next_back().expect("the client has closed").2.clone();
    pair.run(Instant::from_secs(50));
    pair.now = Instant::from_secs(50);
    let before = count_from(&pair, 1);
    pair.arrive(1, &fin);
    assert_eq!(count_from(&pair, 1), before + 1, "it is acknowledged");
    // The client is closed here, and would answer with a reset.
    let ends = pair.ends[1].connection.next_deadline();
    assert_eq!(ends, Some(Instant::from_secs(50) + TIME_WAIT));
}

#[test]
fn a_half_that_is_closed_still_receives() {
    let mut pair = established(Profile::LINUX);
    pair.input(0, Input::Close);
    pair.run(Instant::from_secs(2));
    assert_eq!(states(&pair), [State::FinWait2, State::CloseWait]);
    pair.input(1, Input::Write(b"more"));
    pair.run(Instant::from_secs(3));
    assert_eq!(pair.ends[0].received, b"more");
    pair.input(1, Input::Close);
    pair.run(Instant::from_secs(4));
    assert_eq!(
        (pair.ends[0].connection.state(), pair.ends[1].ending),
        (State::TimeWait, Some(Ending::Finished))
    );
}

#[test]
fn a_peer_that_was_restarted_answers_with_a_reset() {
    let mut pair = established(Profile::LINUX);
    let mut rng = Rng::stream(Seed(7), NodeId(7), Purpose::Tcp);
    let config = Config::new(Profile::LINUX, 5_683, 40_000);
    pair.ends[1].connection = Connection::new(config, &mut rng).expect("valid");
    pair.input(0, Input::Write(b"are you there?"));
    pair.run(Instant::from_secs(2));
    assert_eq!(pair.ends[0].ending, Some(Ending::Reset));
}

#[test]
fn a_restarted_client_gets_through_to_a_server_that_holds_the_old_connection() {
    let mut pair = established(Profile::LINUX);
    let mut rng = Rng::stream(Seed(8), NodeId(8), Purpose::Tcp);
    let config = Config::new(Profile::LINUX, 40_000, 5_683);
    pair.ends[0].connection = Connection::new(config, &mut rng).expect("valid");
    pair.now += Duration::from_secs(1);
    pair.input(0, Input::Open);
    pair.run(Instant::from_millis(2_500));
    // RFC 9293 s3.5.1: the challenge to its SYN makes the client reset the old connection.
    assert_eq!(
        (pair.ends[1].ending, pair.ends[0].connection.state()),
        (Some(Ending::Reset), State::SynSent)
    );
    pair.ends[1].ending = None;
    let config = Config::new(Profile::LINUX, 5_683, 0);
    pair.ends[1].connection = Connection::new(config, &mut rng).expect("valid");
    pair.input(1, Input::Listen);
    pair.run(Instant::from_secs(5));
    assert_eq!(states(&pair), [State::Established; 2]);
}

#[test]
fn a_peer_that_vanished_is_given_up_after_fifteen_timeouts() {
    let mut pair = established(Profile::LINUX);
    pair.links[0] = lowmesh_wired::Link::new(
        lowmesh_wired::Config {
            loss: lowmesh_wired::Loss::Independent { probability: 1.0 },
            ..fast(0.0)[0]
        },
        Rng::stream(Seed(1), NodeId(0), Purpose::Wired),
    )
    .expect("valid");
    pair.input(0, Input::Write(b"lost"));
    pair.run(Instant::from_secs(3_600));
    assert_eq!(pair.ends[0].ending, Some(Ending::TimedOut));
}

/// Seconds at which a client repeats its SYN when nobody answers, and when it gives up.
fn unanswered_syns(profile: Profile) -> (Vec<u64>, u64) {
    let mut rng = Rng::stream(Seed(1), NodeId(1), Purpose::Tcp);
    let mut client = Connection::new(Config::new(profile, 1, 2), &mut rng).expect("valid");
    client.handle(Instant::ZERO, Input::Open).expect("closed");
    let mut sent = Vec::new();
    let mut now = Instant::ZERO;
    let ending = loop {
        match client.poll_output() {
            Some(Output::Segment(_)) => sent.push(now.as_secs_f64() as u64),
            Some(Output::Closed(ending)) => break ending,
            Some(_) => {}
            None => {
                now = client.next_deadline().expect("it waits");
                client.handle(now, Input::Deadline).expect("accepted");
            }
        }
    };
    assert_eq!(ending, Ending::TimedOut);
    (sent, now.as_secs_f64() as u64)
}

/// RFC 9293 s3.8.3 (MUST-23): a SYN is sent again for 3 minutes at least. Linux ends sooner.
#[test]
fn a_syn_is_repeated_for_four_minutes_or_as_the_profile_says() {
    let mut times = vec![0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67, 131];
    assert_eq!(unanswered_syns(Profile::LINUX), (times.clone(), 251));
    times.pop();
    let as_linux = Profile { syn_retries: 6, ..Profile::LINUX };
    assert_eq!(unanswered_syns(as_linux), (times, 131));
    let hasty = Profile { syn_retries: 0, ..Profile::LINUX };
    assert_eq!(unanswered_syns(hasty), (vec![0, 1, 2, 3, 4], 5));
}

#[test]
fn a_closed_port_refuses() {
    let mut pair = Pair::new([Profile::LINUX; 2], fast(0.0), 1);
    pair.input(0, Input::Open);
    pair.run(SECOND);
    assert_eq!(pair.ends[0].ending, Some(Ending::Refused));
    let reset =
        Header { control: Control { rst: true, ..Control::default() }, ..Header::default() };
    assert_eq!(reset_for(&reset, &[]), None, "a reset is never answered");
}

#[test]
fn an_abort_resets_the_peer() {
    let mut pair = established(Profile::LINUX);
    pair.input(0, Input::Abort);
    pair.run(Instant::from_secs(2));
    let endings = pair.ends.each_ref().map(|end| end.ending);
    assert_eq!(endings, [Some(Ending::Aborted), Some(Ending::Reset)]);
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let mut pair = established(Profile::LLN);
    pair.ends[1].reads = false;
    pair.ends[0].to_send = (0..5_000_u32).map(|i| (i % 251) as u8).collect();
    pair.input(0, Input::Deadline);
    pair.run(Instant::from_secs(300));
    assert_eq!(pair.ends[1].connection.readable(), 1_848, "the buffer is full");
    let probes =
        pair.log.iter().filter(|(at, end, _)| *end == 0 && *at > Instant::from_secs(3)).count();
    assert!((6..=14).contains(&probes), "{probes} probes, each after twice the time");
    assert_eq!(pair.ends[0].connection.state(), State::Established);
    pair.ends[1].reads = true;
    pair.input(1, Input::Read(10));
    pair.run(Instant::from_secs(500));
    assert_eq!(pair.ends[1].received, pair.ends[0].to_send);
}

/// RFC 9293 s3.8.6 and s3.8.6.1 (MUST-34, -35, -37): the peer took its window back, and answers each copy.
#[test]
fn a_window_that_closes_over_data_in_flight_ends_no_connection_while_the_peer_answers() {
    let mut pair = established(Profile { timestamps: false, ..Profile::LINUX });
    pair.loses = (0..1_000).collect();
    let server = last_from(&pair, 1);
    pair.ends[0].to_send = vec![7; 3_000];
    pair.ends[0].write_octets = 3_000;
    pair.input(0, Input::Deadline);
    let first = first_with_data(&pair);
    let una = server.sequence.wrapping_add(u32::from(server.control.syn));
    let mut answer = Header {
        sequence: una,
        acknowledgment: first.sequence,
        control: Control { ack: true, ..Control::default() },
        window: 0,
        options: Options::default(),
        ..server
    };
    for _ in 0..40 {
        pair.input(0, Input::Segment { header: &answer, payload: &[] });
        let sent = count_from(&pair, 0);
        while count_from(&pair, 0) == sent {
            assert!(pair.step(Instant::from_secs(10_000)), "it stops asking");
        }
        assert_eq!(
            last_from(&pair, 0).sequence,
            answer.acknowledgment,
            "nothing beyond the window"
        );
    }
    assert!(pair.now > Instant::from_secs(3_600));
    pair.loses.clear();
    answer.window = 1_000;
    pair.input(0, Input::Segment { header: &answer, payload: &[] });
    pair.run(pair.now + Duration::from_secs(200));
    assert_eq!(pair.ends[1].received, pair.ends[0].to_send);
}

/// The first header of the client with data.
fn first_with_data(pair: &Pair) -> Header {
    let of_client = pair.log.iter().filter(|(_, end, _)| *end == 0);
    let mut segments = of_client.map(|(_, _, bytes)| header_of(bytes, 0));
    segments.find(|(_, payload)| !payload.is_empty()).expect("it has sent data").0
}

/// RFC 9293 s3.8.6.2.1, rule 3: a peer whose window is never as large as a segment gets one window a round trip, and does
/// not wait for a probe each time.
#[test]
fn a_window_below_the_segment_is_used_each_round_trip() {
    const WINDOW: u16 = 256;
    let mut pair = Pair::new([Profile::LINUX; 2], fast(0.0), 1);
    pair.ends[0].closes = false;
    pair.input(0, Input::Open);
    let syn = last_from(&pair, 0);
    // The peer is not ours: it announces neither a segment size nor an option.
    let answer = Header {
        source_port: 5_683,
        destination_port: 40_000,
        sequence: 7_000,
        acknowledgment: syn.sequence.wrapping_add(1),
        control: Control { syn: true, ack: true, ..Control::default() },
        window: WINDOW,
        ..Header::default()
    };
    pair.input(0, Input::Segment { header: &answer, payload: &[] });
    pair.ends[0].to_send = vec![7; 20 * usize::from(WINDOW)];
    let mut expected = syn.sequence.wrapping_add(1);
    for _ in 0..20 {
        let seen = pair.log.len();
        pair.now += Duration::from_millis(20);
        let control = Control { ack: true, ..Control::default() };
        let header = Header { sequence: 7_001, acknowledgment: expected, control, ..answer };
        pair.input(0, Input::Segment { header: &header, payload: &[] });
        for (_, _, bytes) in &pair.log[seen..] {
            let (header, payload) = header_of(bytes, 0);
            expected = header.sequence.wrapping_add(payload.len() as u32);
        }
    }
    let sent = expected.wrapping_sub(syn.sequence.wrapping_add(1));
    assert!(sent >= 19 * u32::from(WINDOW), "{sent} octets in 20 round trips");
}

#[test]
fn what_does_not_fit_the_state_is_rejected_and_changes_nothing() {
    let mut pair = established(Profile::LLN);
    let now = pair.now;
    let connection = &mut pair.ends[0].connection;
    assert!(connection.handle(now, Input::Open).is_err());
    assert!(connection.handle(now, Input::Listen).is_err());
    let long = vec![0; connection.room() + 1];
    assert!(connection.handle(now, Input::Write(&long)).is_err());
    assert_eq!((connection.room(), connection.state()), (1_848, State::Established));
    connection.handle(now, Input::Close).expect("it is open");
    assert!(connection.handle(now, Input::Close).is_err());
    assert!(connection.handle(now, Input::Write(b"late")).is_err());
}

#[test]
fn nagle_holds_a_second_short_segment_back_and_its_absence_does_not() {
    for (nagle, wanted) in [(true, 1), (false, 3)] {
        let mut pair = established(Profile { nagle, ..Profile::LINUX });
        let sent = count_from(&pair, 0);
        for _ in 0..3 {
            pair.input(0, Input::Write(b"short"));
        }
        assert_eq!(count_from(&pair, 0) - sent, wanted, "nagle {nagle}");
        pair.run(Instant::from_secs(2));
        assert_eq!(pair.ends[1].received, b"shortshortshort");
    }
}

#[test]
fn segments_at_random_neither_panic_nor_get_anything_in() {
    let mut rng = Rng::stream(Seed(3), NodeId(3), Purpose::Tcp);
    let mut pair = established(Profile::LINUX);
    let honest = next_of_client(&pair);
    for _ in 0..20_000 {
        let bits = rng.next_u32();
        let control = Control {
            ack: bits & 1 != 0,
            syn: bits & 0xe == 2,
            fin: bits & 0xe == 4,
            rst: bits & 0xe == 6,
            ..Control::default()
        };
        let header = Header {
            sequence: honest.sequence.wrapping_add(rng.next_u32()),
            acknowledgment: rng.next_u32(),
            control,
            window: rng.next_u32() as u16,
            ..honest
        };
        pair.now += Duration::from_millis(1);
        pair.input(1, Input::Segment { header: &header, payload: b"noise" });
    }
    assert_eq!((pair.ends[1].ending, pair.ends[1].received.len()), (None, 0));
}
