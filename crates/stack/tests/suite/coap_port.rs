//! The UDP port of CoAP at a node: open where datagrams carry CoAP, closed where connections do.

use std::net::Ipv6Addr;

use lowmesh_ipv6::packet::{Flow, udp};
use lowmesh_mac::csma;
use lowmesh_machine::{Handle, Machine as _};
use lowmesh_stack::config::{Tcp, Transport};
use lowmesh_stack::event::{Input, Output};
use lowmesh_stack::{COAP_PORT, Config, Identity, LinkLayer, Node};
use lowmesh_units::{Instant, NodeId, Seed};
use lowmesh_wire::icmpv6::{Icmpv6, Unreachable};
use lowmesh_wire::ipv6::{Address, HEADER_OCTETS, Header, next_header};

const OWN: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 2);
const PEER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 1);

/// The next header and the payload of the packet with which a node answers a CoAP ping (RFC 7252 s1.2) by UDP.
fn answer(transport: Transport) -> (u8, Vec<u8>) {
    let link = LinkLayer::Csma(csma::Config::default());
    let config = Config { link, transport, uplink: true, icmpv6_errors: 10, ..Config::default() };
    let own = Address::from(OWN);
    let identity = Identity::new(NodeId(1).eui64()).with_address(own, 64).expect("a good address");
    let mut node = Node::alone(&config, identity, Seed(1)).expect("possible settings");
    node.handle(Instant::ZERO, Input::Boot).expect("it is off");
    let (source, destination_port) = (Address::from(PEER), COAP_PORT);
    let flow = Flow { source, destination: own, source_port: 50_000, destination_port };
    let packet = udp(&flow, 64, &[0x40, 0, 0, 1], |_| ());
    let input = Input::Uplink { packet, handle: Handle::NONE };
    node.handle(Instant::ZERO, input).expect("an open uplink");
    let outputs = core::iter::from_fn(|| node.poll_output());
    let packets = outputs.filter_map(|output| match output {
        Output::Uplink { packet, .. } => Some(packet),
        _ => None,
    });
    let packets: Vec<_> = packets.collect();
    let [packet] = &packets[..] else { panic!("one answer, not {packets:?}") };
    let header = Header::parse_packet(packet).expect("our own packet");
    (header.next_header, packet[HEADER_OCTETS..].to_vec())
}

#[test]
fn a_datagram_for_coap_over_udp_is_answered_by_udp() {
    assert_eq!(answer(Transport::Udp).0, next_header::UDP);
}

#[test]
fn a_datagram_for_coap_over_tcp_finds_a_closed_port() {
    let (next, message) = answer(Transport::Tcp(Tcp::default()));
    assert_eq!(next, next_header::ICMPV6);
    let message = Icmpv6::parse(&message, &OWN.octets(), &PEER.octets()).expect("our own message");
    let is_closed =
        matches!(&message, Icmpv6::DestinationUnreachable { reason: Unreachable::Port, .. });
    assert!(is_closed, "{message:?}");
}
