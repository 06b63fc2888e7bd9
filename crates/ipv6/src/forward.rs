//! What becomes of a packet: delivered here, forwarded, or dropped (RFC 8200 s3, RFC 4291 s2.5.6 and s2.7).
//!
//! Whether an ICMPv6 error tells of a drop is left to `error`.

use alloc::collections::BTreeMap;

use lowmesh_machine::DropReason;
use lowmesh_units::Eui64;
use lowmesh_wire::ipv6::{Address, HOP_LIMIT_OFFSET, Header};

use crate::source_route::{self, Step};
use crate::{Addresses, Headers, RouteTable};

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is for this node.
    Deliver,
    /// It goes on to a neighbour; the hop limit is already one less.
    Forward {
        /// The neighbour, by its link-local address.
        next_hop: Address,
    },
    /// It ends here.
    Drop(DropReason),
}

/// The forwarding part of a node.
#[derive(Clone, Debug)]
pub struct Forwarder {
    /// Which addresses are here.
    pub addresses: Addresses,
    /// Where the others are.
    pub routes: RouteTable,
    /// The leaves of this router, which run no RPL (RFC 9010), with the neighbours that their addresses are at. The neighbour
    /// cache bounds them.
    pub(crate) leaves: BTreeMap<Address, Eui64>,
}

impl Forwarder {
    /// A node with these addresses and routes.
    pub const fn new(addresses: Addresses, routes: RouteTable) -> Self {
        Self { addresses, routes, leaves: BTreeMap::new() }
    }

    /// The neighbour of a leaf of this router.
    pub fn leaf(&self, address: &Address) -> Option<Eui64> {
        self.leaves.get(address).copied()
    }
    /// True for a neighbour that is a leaf of this router.
    pub fn is_leaf(&self, neighbour: Eui64) -> bool {
        self.leaves.values().any(|leaf| *leaf == neighbour)
    }

    /// Decides about a packet that came from a neighbour, or about its beginning with these headers, and edits it for the
    /// next hop if it goes on.
    pub fn decide(&self, packet: &mut [u8], headers: &mut Headers) -> Decision {
        let header = headers.ip;
        if !may_be_on_link(&header) {
            return Decision::Drop(DropReason::Malformed);
        }
        if headers.unknown_hop_by_hop().is_some() {
            return Decision::Drop(DropReason::UnknownOption);
        }
        let here = self.addresses.contains(&header.destination);
        if header.destination.is_multicast() {
            // RFC 4291 s2.7: link-local groups are never forwarded; wider ones do not come here.
            return if here { Decision::Deliver } else { Decision::Drop(DropReason::NotForUs) };
        }
        if here {
            return match source_route::step(packet, headers, &self.addresses) {
                Ok(Step::Arrived) => Decision::Deliver,
                Ok(Step::Next(next)) => {
                    headers.ip.destination = next;
                    // RFC 6554 s4.2: the route is strict, so the next segment is a neighbour.
                    hop(packet, headers, Some(neighbour(&next)))
                }
                Err(reason) => Decision::Drop(reason),
            };
        }
        // RFC 4291 s2.5.6 and s2.5.2: a router forwards no packet with a link-local or unspecified source,
        // nor one to a link-local destination.
        if header.destination.is_link_local()
            || header.source.is_link_local()
            || header.source.is_unspecified()
            || header.destination.is_unspecified()
        {
            return Decision::Drop(DropReason::NotForUs);
        }
        hop(packet, headers, self.routes.lookup(&header.destination))
    }
}

/// False for addresses that no packet on a link has.
pub(crate) fn may_be_on_link(header: &Header) -> bool {
    // RFC 4291 s2.7: no packet comes from a group, and an answer to one would go to all of it.
    // RFC 4291 s2.5.3: the loopback address is on no link.
    let Header { source, destination, .. } = header;
    !source.is_multicast() && !source.is_loopback() && !destination.is_loopback()
}

/// The link-local address of a node whose global address is known.
pub fn neighbour(address: &Address) -> Address {
    Address::link_local(address.eui64())
}

/// RFC 8200 s3: the hop limit goes down by one at each node that forwards; at zero the packet is discarded.
fn hop(packet: &mut [u8], headers: &mut Headers, next_hop: Option<Address>) -> Decision {
    if headers.ip.hop_limit <= 1 {
        return Decision::Drop(DropReason::HopLimit);
    }
    let Some(next_hop) = next_hop else { return Decision::Drop(DropReason::NoRoute) };
    headers.ip.hop_limit -= 1;
    packet[HOP_LIMIT_OFFSET] = headers.ip.hop_limit;
    Decision::Forward { next_hop }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{self, Flow};
    use crate::params::PREFIX;
    use lowmesh_units::NodeId;

    fn global(node: u16) -> Address {
        Address::global(PREFIX, NodeId(node).eui64())
    }
    fn link_local(node: u16) -> Address {
        Address::link_local(NodeId(node).eui64())
    }
    fn node(index: u16) -> Forwarder {
        let mut routes = RouteTable::new(4);
        routes.set_default(Some(link_local(0)));
        Forwarder::new(Addresses::new(NodeId(index).eui64(), PREFIX), routes)
    }
    /// What becomes of a packet at a node.
    fn decide(node: &Forwarder, packet: &mut [u8]) -> Decision {
        match Headers::of_packet(packet) {
            Ok(mut headers) => {
                let decision = node.decide(packet, &mut headers);
                assert_eq!(Headers::of_packet(packet).as_ref(), Ok(&headers), "both are edited");
                decision
            }
            Err(reason) => Decision::Drop(reason),
        }
    }
    fn packet(source: Address, destination: Address, hop_limit: u8) -> Vec<u8> {
        let flow = Flow { source, destination, source_port: 1, destination_port: 2 };
        packet::udp(&flow, hop_limit, b"x", |_| ())
    }

    #[test]
    fn own_packets_are_delivered_untouched() {
        for destination in [global(1), link_local(1), Address::ALL_NODES] {
            let mut bytes = packet(global(2), destination, 1);
            let before = bytes.clone();
            assert_eq!(decide(&node(1), &mut bytes), Decision::Deliver);
            assert_eq!(bytes, before);
        }
    }

    #[test]
    fn nothing_comes_from_a_group() {
        for destination in [global(1), link_local(1), Address::ALL_NODES, global(3)] {
            let mut bytes = packet(Address::ALL_NODES, destination, 9);
            assert_eq!(decide(&node(1), &mut bytes), Decision::Drop(DropReason::Malformed));
        }
    }

    #[test]
    fn other_packets_go_on_with_one_hop_less() {
        let mut bytes = packet(global(2), global(3), 9);
        let mut forwarder = node(1);
        assert_eq!(decide(&forwarder, &mut bytes), Decision::Forward { next_hop: link_local(0) });
        assert_eq!(bytes[HOP_LIMIT_OFFSET], 8);
        forwarder.routes.insert(global(3), link_local(4)).expect("room");
        assert_eq!(decide(&forwarder, &mut bytes), Decision::Forward { next_hop: link_local(4) });
    }

    #[test]
    fn the_beginning_of_a_packet_goes_where_the_whole_does() {
        for (destination, decision) in [
            (global(1), Decision::Deliver),
            (global(3), Decision::Forward { next_hop: link_local(0) }),
            (link_local(3), Decision::Drop(DropReason::NotForUs)),
        ] {
            let mut whole = packet(global(2), destination, 9);
            let mut beginning = whole[..48].to_vec();
            assert_eq!(decide(&node(1), &mut whole), decision);
            let mut headers = Headers::of_beginning(&beginning).expect("all headers");
            assert_eq!(node(1).decide(&mut beginning, &mut headers), decision);
            assert_eq!(beginning, whole[..48]);
        }
    }

    #[test]
    fn the_last_hop_is_the_last() {
        for limit in [0, 1] {
            let mut bytes = packet(global(2), global(3), limit);
            assert_eq!(decide(&node(1), &mut bytes), Decision::Drop(DropReason::HopLimit));
        }
    }

    #[test]
    fn what_has_link_scope_is_never_forwarded() {
        let (link, group) =
            (link_local(3), Address([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]));
        for (source, destination) in [
            (global(2), link),
            (link_local(2), global(3)),
            (Address::UNSPECIFIED, global(3)),
            (global(2), group),
        ] {
            let mut bytes = packet(source, destination, 9);
            assert_eq!(decide(&node(1), &mut bytes), Decision::Drop(DropReason::NotForUs));
        }
    }

    #[test]
    fn without_a_route_a_packet_ends() {
        let mut forwarder = node(1);
        forwarder.routes.clear();
        let mut bytes = packet(global(2), global(3), 9);
        assert_eq!(decide(&forwarder, &mut bytes), Decision::Drop(DropReason::NoRoute));
    }

    #[test]
    fn a_source_route_is_followed_hop_by_hop_to_its_end() {
        let mut bytes = packet(global(0), global(3), 9);
        let plain = bytes.clone();
        assert!(crate::source_route::insert(&mut bytes, &[global(1), global(2)]));
        assert_eq!(decide(&node(1), &mut bytes), Decision::Forward { next_hop: link_local(2) });
        assert_eq!(decide(&node(2), &mut bytes), Decision::Forward { next_hop: link_local(3) });
        assert_eq!(bytes[HOP_LIMIT_OFFSET], 7);
        assert_eq!(decide(&node(3), &mut bytes), Decision::Deliver);
        assert!(crate::udp::demultiplex(&bytes).is_ok());
        assert!(bytes.len() > plain.len());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_forwarder_panic(
            mut bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..120),
        ) {
            // A whole fixed header for this node, so that the extension headers are reached.
            if bytes.len() >= 40 {
                bytes[0] = 0x60;
                let payload = (bytes.len() as u16 - 40).to_be_bytes();
                bytes[4..6].copy_from_slice(&payload);
                bytes[6] = 43;
                bytes[24..40].copy_from_slice(&global(1).0);
                if bytes.len() >= 48 {
                    bytes[41] %= 10;
                    bytes[42] = 3;
                }
            }
            let length = bytes.len();
            decide(&node(1), &mut bytes);
            let _ = crate::udp::demultiplex(&bytes);
            assert_eq!(bytes.len(), length);
        }
    }
}
