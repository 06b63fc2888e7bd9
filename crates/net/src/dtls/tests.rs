//! Two ends in time that the test makes: handshakes, wrong keys, loss, and strangers.

use std::time::Duration;

use super::*;
use crate::params::{COOKIE_SECRET_LIFETIME, HANDSHAKE_STALL};

mod bounds;

/// Both ends, and what is on its way between them.
struct Pair {
    now: Instant,
    client: Sessions,
    server: Sessions,
    received: Vec<(bool, Vec<u8>)>,
    lost: Vec<(LossCause, String)>,
    /// Behind how many datagrams a session took the place of another.
    renewed: Vec<usize>,
}

const CLIENT: fn() -> Peer = || peer(1);
const SERVER: fn() -> Peer = || peer(2);

fn peer(port: u16) -> Peer {
    Peer::new(([127, 0, 0, 1], port).into(), None)
}

fn keys(key: &[u8]) -> Keys {
    Keys::new().with(b"device-01", key).expect("short enough")
}

impl Pair {
    #[allow(clippy::disallowed_methods, reason = "dimpl counts from a time that the system made")]
    fn new(key: &[u8]) -> Self {
        Self {
            now: Instant::now(),
            client: Sessions::client(b"device-01", key).expect("short enough"),
            server: Sessions::server(keys(b"the right key"), None),
            received: Vec::new(),
            lost: Vec::new(),
            renewed: Vec::new(),
        }
    }
    /// Lets datagrams go to and fro until none is left; `keeps` decides which arrive.
    fn run(&mut self, keeps: &mut impl FnMut() -> bool) {
        loop {
            let mut idle = true;
            for from_client in [true, false] {
                let (here, there) = if from_client {
                    (&mut self.client, &mut self.server)
                } else {
                    (&mut self.server, &mut self.client)
                };
                while let Some(event) = here.poll_event() {
                    idle = false;
                    match event {
                        Event::Transmit { bytes, .. } => {
                            let from = if from_client { CLIENT() } else { SERVER() };
                            if keeps() {
                                there.on_datagram(self.now, from, &bytes);
                            }
                        }
                        Event::Received { bytes, .. } => self.received.push((from_client, bytes)),
                        Event::Renewed { .. } => self.renewed.push(self.received.len()),
                        Event::Lost { cause, reason, .. } => self.lost.push((cause, reason)),
                    }
                }
            }
            if idle {
                return;
            }
        }
    }
    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.client.on_deadline(self.now);
        self.server.on_deadline(self.now);
    }
}

#[test]
fn what_is_sent_before_the_handshake_arrives_after_it_and_the_answer_too() {
    let mut pair = Pair::new(b"the right key");
    pair.client.send(pair.now, SERVER(), b"get");
    pair.run(&mut || true);
    assert_eq!(pair.received, [(false, b"get".to_vec())]);
    pair.server.send(pair.now, CLIENT(), b"content");
    pair.run(&mut || true);
    assert_eq!(pair.received[1], (true, b"content".to_vec()));
    assert!(pair.lost.is_empty());
}

#[test]
fn with_the_wrong_key_nothing_arrives_and_the_session_is_lost() {
    let mut pair = Pair::new(b"a wrong key");
    pair.client.send(pair.now, SERVER(), b"get");
    for _ in 0..60 {
        pair.run(&mut || true);
        pair.pass(Duration::from_secs(1));
    }
    pair.run(&mut || true);
    assert!(pair.received.is_empty());
    assert!(!pair.lost.is_empty());
    assert!(pair.client.is_empty(), "{:?}", pair.lost);
}

#[test]
fn a_handshake_that_begins_and_does_not_end_is_a_question_of_keys() {
    let mut pair = Pair::new(b"a wrong key");
    pair.client.send(pair.now, SERVER(), b"get");
    assert!(!pair.client.is_shaking_hands(SERVER()), "nobody was heard");
    pair.run(&mut || true);
    assert!(pair.client.is_shaking_hands(SERVER()));
    for _ in 0..HANDSHAKE_STALL.as_secs() {
        assert!(!pair.client.is_empty(), "{:?}", pair.lost);
        pair.pass(Duration::from_secs(1));
        pair.run(&mut || true);
    }
    assert!(pair.client.is_empty());
    let causes: Vec<LossCause> = pair.lost.iter().map(|(cause, _)| *cause).collect();
    assert!(causes.iter().all(|cause| *cause == LossCause::Handshake), "{:?}", pair.lost);
}

#[test]
fn a_peer_that_is_not_heard_says_nothing_of_keys() {
    let mut pair = Pair::new(b"the right key");
    pair.client.send(pair.now, SERVER(), b"get");
    for _ in 0..60 {
        pair.run(&mut || false);
        pair.pass(Duration::from_secs(1));
    }
    pair.run(&mut || false);
    assert!(matches!(pair.lost[..], [(LossCause::Unheard, _)]), "{:?}", pair.lost);
}

#[test]
fn a_handshake_over_a_link_that_loses_every_third_datagram_succeeds() {
    let mut pair = Pair::new(b"the right key");
    let mut count = 0;
    let mut keeps = || {
        count += 1;
        count % 3 != 0
    };
    pair.client.send(pair.now, SERVER(), b"get");
    for _ in 0..40 {
        pair.run(&mut keeps);
        pair.pass(Duration::from_secs(1));
    }
    // The data itself is CoAP's to repeat.
    pair.client.send(pair.now, SERVER(), b"again");
    pair.client.send(pair.now, SERVER(), b"again");
    pair.run(&mut keeps);
    assert!(pair.received.contains(&(false, b"again".to_vec())), "{:?}", pair.lost);
}

#[test]
fn strangers_make_no_session_and_a_server_opens_none() {
    let mut server = Pair::new(b"the right key").server;
    let now = Pair::new(b"x").now;
    for bytes in [&b""[..], b"\x40\x01\x00\x01", &[22; 40], &[23; 40]] {
        server.on_datagram(now, CLIENT(), bytes);
    }
    assert!(server.is_empty());
    server.send(now, CLIENT(), b"notification");
    assert!(matches!(server.poll_event(), Some(Event::Lost { .. })));
}

#[test]
fn a_session_that_is_closed_is_gone_at_both_ends() {
    let mut pair = Pair::new(b"the right key");
    pair.client.send(pair.now, SERVER(), b"get");
    pair.run(&mut || true);
    assert_eq!((pair.client.len(), pair.server.len()), (1, 1));
    pair.client.close(pair.now);
    pair.run(&mut || true);
    assert!(pair.client.is_empty() && pair.server.is_empty());
}

#[test]
fn changed_records_are_dropped() {
    let mut pair = Pair::new(b"the right key");
    pair.client.send(pair.now, SERVER(), b"get");
    pair.run(&mut || true);
    pair.received.clear();
    pair.client.send(pair.now, SERVER(), b"put");
    let Some(Event::Transmit { bytes, .. }) = pair.client.poll_event() else {
        panic!("a record to send");
    };
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        pair.server.on_datagram(pair.now, CLIENT(), &changed);
    }
    pair.run(&mut || true);
    assert!(pair.received.is_empty());
}

#[test]
fn identities_and_keys_have_bounds_and_are_not_printed() {
    assert_eq!(Keys::new().with(b"a", b"").err(), Some(KeyError::Key));
    assert_eq!(Keys::new().with(b"a", &[0; 65]).err(), Some(KeyError::Key));
    assert_eq!(Keys::new().with(&[0; 129], b"k").err(), Some(KeyError::Identity));
    assert_eq!(format!("{:?}", keys(b"secret")), "Keys(1 identities)");
}

#[test]
fn a_handshake_ends_with_a_message_that_nobody_is_there_and_an_open_session_does_not() {
    let mut pair = Pair::new(b"the right key");
    pair.client.send(pair.now, SERVER(), b"get");
    pair.client.on_unreachable(SERVER());
    assert!(pair.client.is_empty());
    let events: Vec<Event> = std::iter::from_fn(|| pair.client.poll_event()).collect();
    assert!(matches!(events.last(), Some(Event::Lost { .. })), "{events:?}");
    pair.client.send(pair.now, SERVER(), b"get");
    pair.run(&mut || true);
    pair.client.on_unreachable(SERVER());
    assert_eq!(pair.client.len(), 1);
    assert_eq!(pair.received, [(false, b"get".to_vec())]);
}

#[test]
fn a_client_that_begins_again_from_the_same_port_is_accepted() {
    let mut pair = Pair::new(b"the right key");
    pair.client.send(pair.now, SERVER(), b"before");
    pair.run(&mut || true);
    // It restarts, and says nothing about it.
    pair.client = Sessions::client(b"device-01", b"the right key").expect("short enough");
    pair.client.send(pair.now, SERVER(), b"after");
    pair.run(&mut || true);
    pair.server.send(pair.now, CLIENT(), b"answer");
    pair.run(&mut || true);
    let expected =
        [(false, b"before".to_vec()), (false, b"after".to_vec()), (true, b"answer".to_vec())];
    assert_eq!(pair.received, expected);
    assert_eq!(pair.server.len(), 1);
    // RFC 7252 s9.1.1: what came before belongs to another session, and the machine above is told in between.
    assert_eq!((pair.renewed, pair.lost.len()), (vec![1], 0));
}

#[test]
fn a_stranger_who_begins_in_the_name_of_a_client_does_not_end_its_session() {
    let mut pair = Pair::new(b"the right key");
    pair.client.send(pair.now, SERVER(), b"get");
    pair.run(&mut || true);
    let mut stranger = Sessions::client(b"device-01", b"a wrong key").expect("short enough");
    stranger.send(pair.now, SERVER(), b"put");
    for _ in 0..60 {
        while let Some(event) = stranger.poll_event() {
            if let Event::Transmit { bytes, .. } = event {
                pair.server.on_datagram(pair.now, CLIENT(), &bytes);
            }
        }
        // What the server answers goes to the address, where the stranger may listen.
        while let Some(event) = pair.server.poll_event() {
            match event {
                Event::Transmit { bytes, .. } => stranger.on_datagram(pair.now, SERVER(), &bytes),
                other => panic!("{other:?}"),
            }
        }
        pair.pass(Duration::from_secs(1));
        stranger.on_deadline(pair.now);
    }
    pair.client.send(pair.now, SERVER(), b"still here");
    pair.run(&mut || true);
    assert_eq!(pair.received.last(), Some(&(false, b"still here".to_vec())));
    assert_eq!(pair.server.len(), 1);
}

/// What a client sends first, and again after a time.
fn hellos(pair: &mut Pair, count: usize) -> Vec<Vec<u8>> {
    pair.client.send(pair.now, SERVER(), b"get");
    let mut hellos = Vec::new();
    while hellos.len() < count {
        hellos.extend(transmitted(&mut pair.client));
        pair.pass(Duration::from_secs(1));
    }
    hellos
}

fn transmitted(sessions: &mut Sessions) -> Vec<Vec<u8>> {
    let bytes = |event| match event {
        Event::Transmit { bytes, .. } => Some(bytes),
        _ => None,
    };
    std::iter::from_fn(|| sessions.poll_event()).filter_map(bytes).collect()
}

#[test]
fn each_hello_without_cookie_is_answered_once_and_nothing_is_kept_of_it() {
    let mut pair = Pair::new(b"the right key");
    let hellos = hellos(&mut pair, 3);
    for (address, hello) in (1_u16..).zip(hellos.iter().cycle().take(3000)) {
        pair.server.on_datagram(pair.now, peer(address), hello);
        let answers = transmitted(&mut pair.server);
        assert_eq!(answers.len(), 1, "RFC 6347 s4.2.1: each one is answered");
        assert!(answers[0].len() <= hello.len(), "no amplification");
        // RFC 6347 s4.2.1: the sequence number is that of the ClientHello.
        assert_eq!(answers[0][5..11], hello[5..11]);
    }
    assert!(pair.server.is_empty());
    // RFC 6347 s4.2.4: no timer sends it again.
    assert_eq!(pair.server.next_deadline(), None);
    pair.pass(Duration::from_secs(60));
    assert_eq!(transmitted(&mut pair.server), Vec::<Vec<u8>>::new());
}

#[test]
fn a_cookie_is_good_for_its_address_and_its_hello_alone() {
    let mut pair = Pair::new(b"the right key");
    let hello = hellos(&mut pair, 1).remove(0);
    pair.server.on_datagram(pair.now, CLIENT(), &hello);
    let request = transmitted(&mut pair.server).remove(0);
    pair.client.on_datagram(pair.now, SERVER(), &request);
    let with_cookie = transmitted(&mut pair.client).pop().expect("a hello with the cookie");
    pair.server.on_datagram(pair.now, peer(7), &with_cookie);
    assert!(pair.server.is_empty(), "another address");
    let mut other_hello = with_cookie.clone();
    other_hello[13 + 12 + 2] ^= 1;
    pair.server.on_datagram(pair.now, CLIENT(), &other_hello);
    assert!(pair.server.is_empty(), "another random");
    for len in 0..with_cookie.len() {
        pair.server.on_datagram(pair.now, CLIENT(), &with_cookie[..len]);
        assert!(pair.server.is_empty(), "cut at {len}");
    }
    pair.server.on_datagram(pair.now, CLIENT(), &with_cookie);
    assert_eq!(pair.server.len(), 1);
}

#[test]
fn a_cookie_lasts_over_one_change_of_the_secret_and_a_later_one_is_made_good() {
    for (wait, exchanges) in [(COOKIE_SECRET_LIFETIME, 1), (3 * COOKIE_SECRET_LIFETIME, 2)] {
        let mut pair = Pair::new(b"the right key");
        let hello = hellos(&mut pair, 1).remove(0);
        pair.server.on_datagram(pair.now, CLIENT(), &hello);
        let request = transmitted(&mut pair.server).remove(0);
        pair.client.on_datagram(pair.now, SERVER(), &request);
        let with_cookie = transmitted(&mut pair.client).pop().expect("a hello with the cookie");
        // The network keeps it for a while; the client's timers do not run.
        pair.now += wait;
        pair.server.on_datagram(pair.now, CLIENT(), &with_cookie);
        assert_eq!(pair.server.len(), 2 - exchanges, "after {wait:?}");
    }
}

#[test]
fn the_first_answer_of_a_handshake_has_the_sequence_number_of_the_hello() {
    let mut pair = Pair::new(b"the right key");
    let hellos = hellos(&mut pair, 3);
    pair.server.on_datagram(pair.now, CLIENT(), &hellos[2]);
    let request = transmitted(&mut pair.server).remove(0);
    pair.client.on_datagram(pair.now, SERVER(), &request);
    let with_cookie = transmitted(&mut pair.client).pop().expect("a hello with the cookie");
    assert!(with_cookie[10] > 1, "a sequence number behind those of the repeated hellos");
    pair.server.on_datagram(pair.now, CLIENT(), &with_cookie);
    let server_hello = transmitted(&mut pair.server).remove(0);
    assert_eq!(server_hello[5..11], with_cookie[5..11]);
    pair.client.on_datagram(pair.now, SERVER(), &server_hello);
    pair.run(&mut || true);
    assert_eq!(pair.received, [(false, b"get".to_vec())]);
}

#[test]
fn records_in_the_clear_do_nothing_to_an_open_session() {
    let mut pair = Pair::new(b"the right key");
    pair.client.send(pair.now, SERVER(), b"get");
    pair.run(&mut || true);
    pair.received.clear();
    // Anybody can send these in the name of the client: alerts, data, ends of handshakes, and types that there are not.
    for content_type in 18..=30_u8 {
        for (sequence, payload) in (0..40_u8).flat_map(|sequence| {
            let alerts: [&[u8]; 5] =
                [&[2, 40], &[1, 0], &[1], b"data that nobody sealed", &[0; 60]];
            alerts.map(|payload| (sequence, payload))
        }) {
            let mut record = vec![content_type, 254, 253, 0, 0, 0, 0, 0, 0, 0, sequence, 0];
            record.push(payload.len() as u8);
            record.extend_from_slice(payload);
            pair.server.on_datagram(pair.now, CLIENT(), &record);
            pair.client.on_datagram(pair.now, SERVER(), &record);
        }
    }
    pair.run(&mut || true);
    assert!(pair.received.is_empty() && pair.lost.is_empty(), "{:?}", pair.lost);
    pair.client.send(pair.now, SERVER(), b"still here");
    pair.server.send(pair.now, CLIENT(), b"so am I");
    pair.run(&mut || true);
    pair.received.sort();
    assert_eq!(pair.received, [(false, b"still here".to_vec()), (true, b"so am I".to_vec())]);
}

#[test]
fn after_the_end_of_a_session_the_next_datagram_opens_another_one() {
    let mut pair = Pair::new(b"the right key");
    pair.client.send(pair.now, SERVER(), b"before");
    pair.run(&mut || true);
    // The server restarts, and says nothing about it.
    pair.server = Sessions::server(keys(b"the right key"), None);
    pair.client.send(pair.now, SERVER(), b"lost");
    pair.run(&mut || true);
    assert_eq!(pair.received.len(), 1);
    pair.client.end(pair.now, SERVER());
    pair.client.send(pair.now, SERVER(), b"after");
    pair.run(&mut || true);
    assert_eq!(pair.received[1..], [(false, b"after".to_vec())]);
    assert!(pair.lost.is_empty(), "the endpoint knows already: {:?}", pair.lost);
    // A server that was there after all gets to know.
    pair.client.end(pair.now, SERVER());
    pair.run(&mut || true);
    assert!(pair.server.is_empty() && pair.client.is_empty());
}

#[test]
fn a_handshake_in_progress_is_not_ended_from_above() {
    let mut pair = Pair::new(b"the right key");
    pair.client.send(pair.now, SERVER(), b"get");
    pair.client.end(pair.now, SERVER());
    pair.run(&mut || true);
    assert_eq!(pair.received, [(false, b"get".to_vec())]);
}
