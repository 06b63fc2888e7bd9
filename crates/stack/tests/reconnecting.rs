//! A peer that opens connection after connection without closing one: each newcomer replaces an old one, in TCP and in CoAP.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use lowmesh_ipv6::packet::plain;
use lowmesh_mac::csma;
use lowmesh_machine::{Handle, Machine as _};
use lowmesh_stack::config::{Tcp, Transport};
use lowmesh_stack::event::{Input, Output};
use lowmesh_stack::{COAP_PORT, Config, Identity, LinkLayer, Node, StreamLimits};
use lowmesh_units::{Duration, Instant, NodeId, Seed};
use lowmesh_wire::ipv6::{Address, HEADER_OCTETS, Header as Ipv6, next_header};
use lowmesh_wire::tcp::{Control, Ends, Header, Segment};

const OWN: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 2);
const PEER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 1);
/// A Capabilities and Settings Message without options (RFC 8323 s5.3).
const CSM: [u8; 2] = [0x00, 0xe1];
const SYN: Control = Control { syn: true, ..NONE };
const ACK: Control = Control { ack: true, ..NONE };
const NONE: Control = Control {
    cwr: false,
    ece: false,
    urg: false,
    ack: false,
    psh: false,
    rst: false,
    syn: false,
    fin: false,
};

struct Server {
    node: Node,
    now: Instant,
}

impl Server {
    fn new() -> Self {
        let link = LinkLayer::Csma(csma::Config::default());
        let transport = Transport::Tcp(Tcp::default());
        let config = Config { link, transport, uplink: true, ..Config::default() };
        let identity = Identity::new(NodeId(1).eui64());
        let identity = identity.with_address(Address::from(OWN), 64).expect("a good address");
        let mut node = Node::alone(&config, identity, Seed(1)).expect("possible settings");
        node.handle(Instant::ZERO, Input::Boot).expect("it is off");
        Self { node, now: Instant::ZERO }
    }
    /// The peer sends a segment from `port`; headers and octets of data of what leaves, by its port.
    fn send(
        &mut self,
        port: u16,
        control: Control,
        (sequence, acknowledgment): (u32, u32),
        payload: &[u8],
    ) -> BTreeMap<u16, Vec<(Header, usize)>> {
        let (own, peer) = (Address::from(OWN), Address::from(PEER));
        let header = Header {
            source_port: port,
            destination_port: COAP_PORT,
            sequence,
            acknowledgment,
            control,
            window: 10_000,
            ..Header::default()
        };
        let mut octets = Vec::new();
        Segment { header, payload }.emit(&Ends::V6(peer, own), &mut octets);
        let packet = plain(peer, own, next_header::TCP, 64, &octets, |_| ());
        self.now += Duration::from_millis(10);
        let input = Input::Uplink { packet, handle: Handle::NONE };
        self.node.handle(self.now, input).expect("an open uplink");
        let mut answers: BTreeMap<u16, Vec<(Header, usize)>> = BTreeMap::new();
        while let Some(output) = self.node.poll_output() {
            let Output::Uplink { packet, .. } = output else { continue };
            let header = Ipv6::parse_packet(&packet).expect("our own packet");
            assert_eq!(header.next_header, next_header::TCP);
            let ends = Ends::V6(header.source, header.destination);
            let segment = Segment::parse(&ends, &packet[HEADER_OCTETS..]).expect("our own octets");
            let of_port = answers.entry(segment.header.destination_port).or_default();
            of_port.push((segment.header, segment.payload.len()));
        }
        answers
    }
}

#[test]
fn each_newcomer_is_served_and_the_longest_silent_connection_is_reset() {
    let mut server = Server::new();
    let share = StreamLimits::default().connections_per_address as u16;
    for port in 1..=3 * share {
        let answers = server.send(port, SYN, (0, 0), &[]);
        let next = answers[&port][0].0.sequence.wrapping_add(1);
        let answers = server.send(port, ACK, (1, next), &CSM);
        let newcomer = &answers[&port];
        let is_over = |(header, _): &(Header, usize)| header.control.fin || header.control.rst;
        assert!(!newcomer.iter().any(is_over), "{port}: {newcomer:?}");
        assert!(newcomer.iter().any(|(_, octets)| *octets > 0), "{port} gets a CSM");
        let silent = port.checked_sub(share).filter(|silent| *silent > 0);
        let is_reset = |port: &u16| answers.get(port).is_some_and(|sent| sent.iter().any(is_over));
        let reset: Vec<u16> = answers.keys().copied().filter(is_reset).collect();
        assert_eq!(reset, silent.into_iter().collect::<Vec<_>>());
    }
}
