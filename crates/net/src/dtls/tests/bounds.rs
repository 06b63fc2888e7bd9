//! The bounds of sessions and handshakes, and which session leaves past them.

use super::*;

fn from(host: u8, port: u16) -> Peer {
    Peer::new(([192, 0, 2, host], port).into(), None)
}

fn bounded(limits: SessionLimits) -> Pair {
    let mut pair = Pair::new(b"the right key");
    pair.server = Sessions::server(keys(b"the right key"), None).bounded(limits);
    pair
}

/// Has a new client at `from` shake hands; `whole` to the end, else up to the server's first flight.
fn shake_hands(pair: &mut Pair, from: Peer, whole: bool) -> Sessions {
    let mut client = Sessions::client(b"device-01", b"the right key").expect("short enough");
    client.send(pair.now, SERVER(), b"get");
    for _ in 0..4 {
        for bytes in transmitted(&mut client) {
            pair.server.on_datagram(pair.now, from, &bytes);
        }
        let events: Vec<Event> = std::iter::from_fn(|| pair.server.poll_event()).collect();
        for event in events {
            match event {
                Event::Transmit { to, bytes } if to == from => {
                    client.on_datagram(pair.now, SERVER(), &bytes);
                }
                Event::Transmit { .. } | Event::Renewed { .. } => {}
                Event::Received { bytes, .. } => pair.received.push((false, bytes)),
                Event::Lost { cause, reason, peer } => {
                    pair.lost.push((cause, format!("{peer}: {reason}")));
                }
            }
        }
        if !whole && !pair.server.is_empty() {
            break;
        }
    }
    client
}

fn is_served(pair: &mut Pair, client: &mut Sessions, from: Peer) -> bool {
    pair.received.clear();
    client.send(pair.now, SERVER(), b"again");
    for bytes in transmitted(client) {
        pair.server.on_datagram(pair.now, from, &bytes);
    }
    while let Some(event) = pair.server.poll_event() {
        if let Event::Received { bytes, .. } = event {
            pair.received.push((false, bytes));
        }
    }
    pair.received.contains(&(false, b"again".to_vec()))
}

#[test]
fn handshakes_of_one_source_take_no_place_of_sessions_and_of_other_handshakes() {
    let limits =
        SessionLimits { handshakes_max: 4, handshakes_per_source: 2, ..SessionLimits::default() };
    let mut pair = bounded(limits);
    let mut served = shake_hands(&mut pair, from(1, 1), true);
    let mut slow = Sessions::client(b"device-01", b"the right key").expect("short enough");
    slow.send(pair.now, SERVER(), b"get");
    for _ in 0..2 {
        // The cookie, and no further.
        for bytes in transmitted(&mut slow) {
            pair.server.on_datagram(pair.now, from(2, 1), &bytes);
        }
        for bytes in transmitted(&mut pair.server) {
            slow.on_datagram(pair.now, SERVER(), &bytes);
        }
    }
    for port in 1..20 {
        let _given_up = begin(&mut pair, from(3, port));
    }
    assert_eq!(
        pair.server.len(),
        1 + 1 + 2,
        "the session, the slow one, and the share of the third"
    );
    assert!(is_served(&mut pair, &mut served, from(1, 1)));
    for bytes in transmitted(&mut slow) {
        pair.server.on_datagram(pair.now, from(2, 1), &bytes);
    }
    while let Some(event) = pair.server.poll_event() {
        match event {
            Event::Transmit { to, bytes } if to == from(2, 1) => {
                slow.on_datagram(pair.now, SERVER(), &bytes);
            }
            _ => {}
        }
    }
    assert!(is_served(&mut pair, &mut slow, from(2, 1)));
}

/// Brings a cookie back, and no more.
fn begin(pair: &mut Pair, from: Peer) -> Sessions {
    let mut client = Sessions::client(b"device-01", b"the right key").expect("short enough");
    client.send(pair.now, SERVER(), b"get");
    for _ in 0..2 {
        for bytes in transmitted(&mut client) {
            pair.server.on_datagram(pair.now, from, &bytes);
        }
        for bytes in transmitted(&mut pair.server) {
            if bytes[13] == 3 {
                client.on_datagram(pair.now, SERVER(), &bytes);
            }
        }
    }
    client
}

#[test]
fn a_source_that_holds_its_share_loses_its_own_session_used_longest_ago() {
    let limits = SessionLimits { open_max: 4, open_per_source: 2, ..SessionLimits::default() };
    let mut pair = bounded(limits);
    let mut other = shake_hands(&mut pair, from(1, 1), true);
    let mut old = shake_hands(&mut pair, from(2, 1), true);
    let mut young = shake_hands(&mut pair, from(2, 2), true);
    assert!(is_served(&mut pair, &mut old, from(2, 1)), "used last");
    let mut third = shake_hands(&mut pair, from(2, 3), true);
    assert_eq!(pair.lost.len(), 1, "{:?}", pair.lost);
    assert!(pair.lost[0].1.starts_with("192.0.2.2:2: "), "{:?}", pair.lost);
    assert!(!is_served(&mut pair, &mut young, from(2, 2)));
    assert!(is_served(&mut pair, &mut old, from(2, 1)));
    assert!(is_served(&mut pair, &mut third, from(2, 3)));
    assert!(is_served(&mut pair, &mut other, from(1, 1)));
}

#[test]
fn when_all_sessions_are_taken_the_source_that_holds_most_loses_one() {
    let limits = SessionLimits { open_max: 3, open_per_source: 3, ..SessionLimits::default() };
    let mut pair = bounded(limits);
    let mut lonely = shake_hands(&mut pair, from(1, 1), true);
    let mut first = shake_hands(&mut pair, from(2, 1), true);
    let mut second = shake_hands(&mut pair, from(2, 2), true);
    let mut newcomer = shake_hands(&mut pair, from(3, 1), true);
    assert!(!is_served(&mut pair, &mut first, from(2, 1)));
    for (client, at) in [(&mut lonely, from(1, 1)), (&mut second, from(2, 2))] {
        assert!(is_served(&mut pair, client, at), "{at}");
    }
    assert!(is_served(&mut pair, &mut newcomer, from(3, 1)));
    assert_eq!(pair.server.len(), 3);
}

#[test]
fn a_handshake_that_its_client_leaves_is_over_at_its_deadline() {
    let mut pair = bounded(SessionLimits::default());
    let _left = begin(&mut pair, from(1, 1));
    assert_eq!(pair.server.len(), 1);
    let mut steps = 0;
    while let Some(due) = pair.server.next_deadline().filter(|_| !pair.server.is_empty()) {
        assert!(due > pair.now, "a deadline that is dealt with is no deadline");
        pair.now = due;
        pair.server.on_deadline(due);
        steps += 1;
        assert!(steps < 100, "it ends");
    }
    assert!(pair.server.is_empty());
    assert_eq!(pair.server.next_deadline(), None);
}
