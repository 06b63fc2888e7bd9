//! The bounds of a node's connections, against peers whose segments are written by hand.

use alloc::vec::Vec;

use lowmesh_tcp::Profile;
use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::tcp::{Control, Ends, Header, Segment};

use super::{Output, StreamLimits, Streams};
use crate::event::Peer;
use crate::params::COAP_PORT;

const OWN: Address = Address::from_parts([0xfd; 8], [0; 8]);
const SYN: Control = control(true, false);
const ACK: Control = control(false, true);

const fn control(syn: bool, ack: bool) -> Control {
    Control { cwr: false, ece: false, urg: false, ack, psh: false, rst: false, syn, fin: false }
}

const fn peer(address: u8, port: u16) -> Peer {
    (Address::from_parts([0xfd; 8], [address; 8]), port)
}

struct Server {
    streams: Streams,
    now: Instant,
    gone: Vec<Peer>,
}

impl Server {
    fn new(limits: StreamLimits) -> Self {
        let rng = Rng::stream(Seed(1), NodeId(0), Purpose::Tcp);
        let streams = Streams::new(Profile::LINUX, limits, rng).expect("a valid profile");
        Self { streams, now: Instant::ZERO, gone: Vec::new() }
    }
    /// Sends a segment from a peer; the header of the last answer.
    fn segment(
        &mut self,
        from: Peer,
        control: Control,
        numbers: (u32, u32),
        payload: &[u8],
    ) -> Option<Header> {
        let header = Header {
            source_port: from.1,
            destination_port: COAP_PORT,
            sequence: numbers.0,
            acknowledgment: numbers.1,
            control,
            window: 1_000,
            ..Header::default()
        };
        let mut octets = Vec::new();
        Segment { header, payload }.emit(&Ends::V6(from.0, OWN), &mut octets);
        self.now += lowmesh_units::Duration::from_millis(1);
        self.streams.on_octets(self.now, from.0, OWN, &octets);
        self.streams.keep_bounds(self.now, from.0);
        self.drain()
    }
    fn drain(&mut self) -> Option<Header> {
        let mut last = None;
        while let Some(output) = self.streams.poll_output() {
            match output {
                Output::Segment { source, to, octets, .. } => {
                    let segment = Segment::parse(&Ends::V6(source, to), &octets);
                    last = Some(segment.expect("our own octets").header);
                }
                Output::Gone { peer, .. } => self.gone.push(peer),
                Output::Connected { .. } | Output::Octets { .. } => {}
            }
        }
        last
    }
    /// Opens a connection; the number that the peer acknowledges next.
    fn connect(&mut self, from: Peer) -> u32 {
        let answer = self.segment(from, SYN, (0, 0), &[]).expect("a SYN-ACK");
        let next = answer.sequence.wrapping_add(1);
        self.segment(from, ACK, (1, next), &[]);
        next
    }
    fn write(&mut self, to: Peer, octets: usize) {
        self.streams.write(self.now, to, &alloc::vec![7; octets]);
        self.drain();
    }
}

#[test]
fn octets_beyond_a_share_or_the_total_cost_the_largest_holder_its_connection() {
    let limits =
        StreamLimits { octets_max: 100_000, octets_per_address: 60_000, ..StreamLimits::default() };
    let mut server = Server::new(limits);
    let peers = [peer(1, 1), peer(1, 2), peer(2, 1), peer(3, 1)];
    for one in peers {
        server.connect(one);
    }
    server.write(peers[0], 30_000);
    server.write(peers[1], 25_000);
    assert_eq!((server.streams.held, &server.gone[..]), (55_000, &[][..]));
    // Beyond the share of the first address, which loses the larger of its two.
    server.write(peers[1], 10_000);
    assert_eq!((server.streams.held, &server.gone[..]), (30_000, &peers[1..2]));
    // Beyond the total: the address with the most loses its connection, and the last one writes on.
    server.write(peers[2], 40_000);
    server.write(peers[3], 35_000);
    assert_eq!((server.streams.held, &server.gone[..]), (65_000, &peers[1..3]));
}

#[test]
fn what_a_peer_sends_behind_a_hole_counts_and_no_longer_when_its_connection_ends() {
    let limits = StreamLimits { octets_per_address: 2_500, ..StreamLimits::default() };
    let mut server = Server::new(limits);
    let from = peer(1, 1);
    let next = server.connect(from);
    for (sequence, held) in [(2_001, 1_000), (4_001, 2_000)] {
        server.segment(from, ACK, (sequence, next), &[0; 1_000]);
        assert_eq!(server.streams.held, held);
    }
    server.segment(from, ACK, (6_001, next), &[0; 1_000]);
    assert_eq!((server.streams.held, &server.gone[..]), (0, &[from][..]));
}

#[test]
fn half_open_connections_fill_a_quarter_of_the_table_and_the_oldest_gives_way() {
    let limits = StreamLimits { connections_max: 80, ..StreamLimits::default() };
    let mut server = Server::new(limits);
    let friend = peer(200, 1);
    server.connect(friend);
    let answers: Vec<Header> = (0..25)
        .map(|one| server.segment(peer(one, 1), SYN, (0, 0), &[]).expect("a SYN-ACK"))
        .collect();
    assert!(answers.iter().all(|answer| answer.control.syn));
    let oldest = 25 - 20;
    let is_there = |server: &Server, one| server.streams.all.contains_key(&peer(one, 1));
    assert!((0..oldest).all(|one| !is_there(&server, one)));
    assert!((oldest..25).all(|one| is_there(&server, one)));
    assert_eq!(server.streams.all.len(), 21, "and the one that is open");
    // The end of the handshake makes room for one more.
    let finish = |server: &mut Server, one: u8| {
        let next = answers[usize::from(one)].sequence.wrapping_add(1);
        server.segment(peer(one, 1), ACK, (1, next), &[])
    };
    let reset = finish(&mut server, 0).expect("an answer");
    assert!(reset.control.rst);
    finish(&mut server, oldest);
    server.segment(peer(100, 1), SYN, (0, 0), &[]);
    assert!((oldest..25).all(|one| is_there(&server, one)));
    assert_eq!(server.streams.counters().established, 2);
    assert!(server.gone.is_empty());
}

#[test]
fn a_peer_that_was_restarted_replaces_the_longest_silent_connection_of_its_address() {
    let mut server = Server::new(StreamLimits::default());
    let old: Vec<Peer> = (1..=4).map(|port| peer(1, port)).collect();
    let next: Vec<u32> = old.iter().map(|one| server.connect(*one)).collect();
    server.connect(peer(2, 1));
    // The first of them speaks again, so the second one has been silent longest.
    server.segment(old[0], ACK, (1, next[0]), b"\0");
    // A SYN alone, which anybody can forge, ends nothing, and more of them replace each other.
    for port in 10..20 {
        let answer = server.segment(peer(1, port), SYN, (0, 0), &[]).expect("a SYN-ACK");
        assert!(answer.control.syn);
        assert_eq!((server.streams.all.len(), server.gone.len()), (6, 0));
    }
    server.connect(peer(1, 99));
    assert_eq!(&server.gone[..], &old[1..2]);
    assert!(server.streams.all.contains_key(&peer(1, 99)));
    assert!(server.streams.all.contains_key(&peer(2, 1)), "another address pays nothing");
    for port in 100..110 {
        server.connect(peer(1, port));
        assert_eq!(server.streams.all.len(), 5);
    }
}

#[test]
fn a_share_of_own_connections_lets_nobody_in() {
    let mut server = Server::new(StreamLimits::default());
    for port in 1..=4 {
        server.streams.open(server.now, OWN, peer(1, port));
    }
    server.drain();
    let answer = server.segment(peer(1, 9), SYN, (0, 0), &[]).expect("an answer");
    assert!(answer.control.rst);
    assert!(server.gone.is_empty());
}

#[test]
fn a_peer_that_vanished_is_asked_after_two_hours_and_then_given_up() {
    let mut server = Server::new(StreamLimits::default());
    let from = peer(1, 1);
    server.connect(from);
    let mut probes = 0;
    while server.gone.is_empty() {
        server.now = server.streams.next_deadline().expect("it watches its peer");
        server.streams.deadline(server.now);
        probes += u32::from(server.drain().is_some_and(|header| !header.control.rst));
    }
    assert_eq!((probes, &server.gone[..]), (9, &[from][..]));
    let hours = server.now.as_secs_f64() / 3_600.0;
    assert!((2.1..2.3).contains(&hours), "{hours}");
    assert!(server.streams.all.is_empty());
}

#[test]
fn a_peer_that_does_not_close_its_half_is_given_up_after_a_minute() {
    let mut server = Server::new(StreamLimits::default());
    let from = peer(1, 1);
    let next = server.connect(from);
    server.streams.close(server.now, from);
    assert!(server.drain().expect("a FIN").control.fin);
    server.segment(from, ACK, (1, next.wrapping_add(1)), &[]);
    let closed = server.now;
    // What the peer still sends buys it no more time.
    server.now += lowmesh_units::Duration::from_secs(50);
    server.segment(from, ACK, (1, next.wrapping_add(1)), b"\0");
    server.now = closed + crate::params::STREAM_FIN_WAIT;
    server.streams.deadline(server.now);
    assert!(server.drain().expect("a reset").control.rst);
    assert_eq!((&server.gone[..], server.streams.all.len()), (&[from][..], 0));
    assert_eq!(server.streams.next_deadline(), None);
}
