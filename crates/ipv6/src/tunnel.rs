//! IP-in-IP encapsulation (RFC 2473): how a node adds headers to a packet that another node made.
//!
//! RFC 8200 s4: a node on the path neither adds headers to a packet nor removes them. So the root encapsulates a packet that
//! needs RPL's option and a source route, and the last node of the route decapsulates it (RFC 6550 s9.7, RFC 6554 s4.1,
//! RFC 9008 s7 and s8).
//!
//! ```text
//!   IPv6 from the root to the last hop | hop-by-hop with RPL's option | source route | the inner packet
//! ```
//!
//! `receive` decides whose encapsulated packets a node opens, `send` and `machine` which packets are encapsulated.

use alloc::vec::Vec;

use lowmesh_machine::DropReason;
use lowmesh_wire::icmpv6::Unreachable;
use lowmesh_wire::ipv6::{Address, HOP_LIMIT_OFFSET, Header, next_header};
use lowmesh_wire::rpl::HopByHopOption;

use crate::event::Problem;
use crate::packet;
use crate::source_route;

/// The two bits of Explicit Congestion Notification in the second octet of a packet: RFC 3168 s5.
const ECN: u8 = 0b0011_0000;
/// Both bits: a router was congested.
const CONGESTED: u8 = ECN;

/// Where a tunnel begins and ends, with what its packets carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tunnel {
    pub source: Address,
    pub destination: Address,
    /// Of the outer packet.
    pub hop_limit: u8,
    pub option: HopByHopOption,
}

impl Tunnel {
    /// Encapsulates `packet`.
    pub fn wrap(&self, packet: &[u8]) -> Vec<u8> {
        let &Self { source, destination, hop_limit, option } = self;
        let mut outer =
            packet::plain(source, destination, next_header::IPV6, hop_limit, packet, |out| {
                option.emit(out);
            });
        // RFC 2473 s6.4 lets the outer packet have the traffic class of the inner one; RFC 6040 s4.1: its congestion
        // bits as well.
        if let [first, second, ..] = packet {
            outer[0] = *first;
            outer[1] = second & 0xf0 | outer[1] & 0x0f;
        }
        outer
    }

    /// Encapsulates `packet`, whose hop limit is decremented already, with a source route over `hops`. `None` if the route
    /// does not fit.
    pub fn wrap_routed(&self, packet: &[u8], hops: &[Address]) -> Option<Vec<u8>> {
        // RFC 6554 s4.1: the route has fewer segments than the packet has hops left. A packet whose hops end before the
        // destination goes as far as they reach, and that node reports it.
        let limit = *packet.get(HOP_LIMIT_OFFSET)?;
        let reached = hops.len().min(usize::from(limit));
        let (last, before) = hops.get(..reached)?.split_last()?;
        let mut outer = Self { destination: *last, ..*self }.wrap(packet);
        // RFC 6554 s4.1: the hop limit falls by the segments left, so that the tunnel counts as its hops.
        let inner = outer.len() - packet.len();
        outer[inner + HOP_LIMIT_OFFSET] = limit - before.len() as u8;
        (before.is_empty() || source_route::insert(&mut outer, before)).then_some(outer)
    }
}

/// Decapsulates the packet that begins at octet `inner`.
pub(crate) fn open(mut outer: Vec<u8>, inner: usize) -> Result<Vec<u8>, DropReason> {
    let marked = outer.get(1).ok_or(DropReason::Malformed)? & ECN == CONGESTED;
    outer.drain(..inner.min(outer.len()));
    Header::parse_packet(&outer).map_err(|_| DropReason::Malformed)?;
    if marked {
        // RFC 6040 s4.2: a packet whose ends do not know of the mark is lost, as congestion loses it.
        if outer[1] & ECN == 0 {
            return Err(DropReason::QueueFull);
        }
        outer[1] |= CONGESTED;
    }
    Ok(outer)
}

/// The error that the source of an inner packet gets for an error about the outer one: RFC 2473 s8.2 and s8.3.
pub(crate) const fn relayed(problem: Problem) -> Option<Problem> {
    match problem {
        Problem::Unreachable(_) | Problem::HopLimit => {
            Some(Problem::Unreachable(Unreachable::Address))
        }
        Problem::TooBig
        | Problem::Reassembly
        | Problem::Parameter { .. }
        | Problem::Unknown { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Flow, udp};
    use crate::params::PREFIX;
    use crate::{Addresses, Headers};
    use lowmesh_units::NodeId;
    use lowmesh_wire::ipv6::UpperLayer;
    use lowmesh_wire::lowpan::{Contexts, Extent, compress};

    const OPTION: HopByHopOption = HopByHopOption {
        skippable: true,
        down: true,
        rank_error: false,
        forwarding_error: false,
        instance: 0,
        sender_rank: 1,
    };

    fn global(node: u16) -> Address {
        Address::global(PREFIX, NodeId(node).eui64())
    }
    fn tunnel() -> Tunnel {
        Tunnel { source: global(0), destination: global(9), hop_limit: 64, option: OPTION }
    }
    fn packet(hop_limit: u8) -> Vec<u8> {
        let (source, destination) = (Address([0x20; 16]), global(3));
        udp(
            &Flow { source, destination, source_port: 1, destination_port: 2 },
            hop_limit,
            b"x",
            |_| (),
        )
    }
    fn inner(outer: &[u8]) -> Vec<u8> {
        let UpperLayer { next_header, offset } =
            Headers::of_packet(outer).expect("own packet").upper_layer().expect("whole");
        assert_eq!(next_header, next_header::IPV6);
        open(outer.to_vec(), offset).expect("own packet")
    }

    #[test]
    fn a_packet_comes_out_as_it_went_in() {
        let packet = packet(9);
        let outer = tunnel().wrap(&packet);
        let headers = Headers::of_packet(&outer).expect("own packet");
        assert_eq!((headers.ip.source, headers.ip.destination), (global(0), global(9)));
        assert_eq!((headers.ip.hop_limit, headers.rpl_option()), (64, Some(42..48)));
        assert_eq!(outer[42], 0x23);
        assert_eq!(inner(&outer), packet);
    }

    #[test]
    fn a_route_of_n_hops_takes_n_less_one_from_the_hop_limit() {
        let hops = [global(1), global(2), global(3)];
        let outer = tunnel().wrap_routed(&packet(9), &hops).expect("it fits");
        let mut bytes = outer;
        for hop in [1, 2] {
            let headers = Headers::of_packet(&bytes).expect("own packet");
            assert_eq!(headers.ip.destination, global(hop));
            let addresses = Addresses::new(NodeId(hop).eui64(), PREFIX);
            source_route::step(&mut bytes, &headers, &addresses).expect("a good route");
        }
        assert_eq!(Headers::of_packet(&bytes).expect("own packet").ip.destination, global(3));
        assert_eq!(inner(&bytes)[HOP_LIMIT_OFFSET], 7);
        let alone = tunnel().wrap_routed(&packet(9), &hops[2..]).expect("it fits");
        assert_eq!(Headers::of_packet(&alone).expect("own packet").routing(), None);
        assert_eq!(inner(&alone)[HOP_LIMIT_OFFSET], 9);
    }

    #[test]
    fn a_packet_with_few_hops_left_goes_no_further_than_they_reach() {
        let hops = [global(1), global(2), global(3)];
        for (limit, last) in [(1, 1), (2, 2), (3, 3)] {
            let outer = tunnel().wrap_routed(&packet(limit), &hops).expect("it fits");
            let headers = Headers::of_packet(&outer).expect("own packet");
            let segments = headers.routing().map_or(0, |routing| outer[routing.start + 3]);
            assert_eq!((headers.ip.destination, segments), (global(1), last - 1));
            assert_eq!(inner(&outer)[HOP_LIMIT_OFFSET], 1, "{limit} hops");
        }
        assert_eq!(tunnel().wrap_routed(&packet(0), &hops), None);
    }

    #[test]
    fn the_congestion_mark_of_the_outer_packet_comes_to_the_inner_one() {
        let mark = |octets: &mut [u8], ecn: u8| octets[1] = octets[1] & !ECN | ecn << 4;
        for (before, outer, after) in
            [(0, 0, Ok(0)), (2, 2, Ok(2)), (2, 3, Ok(3)), (1, 3, Ok(3)), (0, 3, Err(()))]
        {
            let mut packet = packet(9);
            mark(&mut packet, before);
            let mut wrapped = tunnel().wrap(&packet);
            assert_eq!(
                wrapped[1] >> 4 & 3,
                before,
                "the outer packet begins with the bits of the inner"
            );
            mark(&mut wrapped, outer);
            let opened = open(wrapped, 48).map(|inner| inner[1] >> 4 & 3).map_err(|_| ());
            assert_eq!(opened, after, "{before} {outer}");
        }
    }

    /// Octets of a packet on the link between two nodes.
    fn on_link(packet: &[u8], from: &Address, to: &Address) -> usize {
        let contexts = Contexts::new().with(0, PREFIX);
        let (mut out, to) = (Vec::new(), Some(to.eui64()));
        let covered = compress(packet, from.eui64(), to, &contexts, Extent::Chain, None, &mut out);
        out.len() + packet.len() - covered.expect("own packet")
    }

    #[test]
    fn compression_leaves_eleven_octets_of_a_tunnel_and_eight_of_each_hop_of_a_route() {
        // Identifiers that share no octet.
        let node = |id: u8| {
            let mut address = global(0);
            address.0[8..].fill(id);
            address
        };
        for hops in 1..=8 {
            let route: Vec<Address> = (1..=hops).map(node).collect();
            let flow = Flow {
                source: node(99),
                destination: node(hops),
                source_port: 1,
                destination_port: 2,
            };
            let inner = udp(&flow, 60, b"x", |_| ());
            let tunnel = Tunnel { source: node(0), ..tunnel() };
            let mut outer = tunnel.wrap_routed(&inner, &route).expect("it fits");
            let cost = |outer: &[u8], from, to| {
                on_link(outer, &node(from), &node(to)) - on_link(&inner, &node(from), &node(to))
            };
            let routed = if hops == 1 { 0 } else { 8 * usize::from(hops) };
            assert_eq!(cost(&outer, 0, 1), 11 + routed, "{hops} hops, first link");
            if hops > 1 {
                let headers = Headers::of_packet(&outer).expect("own packet");
                let mut here = Addresses::on_link(node(1).eui64());
                let global = crate::Global::new(node(1), 64).expect("a global address");
                here.add(global).expect("room");
                source_route::step(&mut outer, &headers, &here).expect("a good route");
                // From here on the identifier of the root is not that of the link.
                assert_eq!(cost(&outer, 1, 2), 19 + routed, "{hops} hops, second link");
            }
        }
    }

    #[test]
    fn what_is_no_packet_does_not_come_out() {
        let outer = tunnel().wrap(&packet(9));
        for end in 48..outer.len() {
            assert!(open(outer[..end].to_vec(), 48).is_err(), "{end}");
        }
    }
}
