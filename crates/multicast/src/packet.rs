//! What engines do with the octets of a packet: read its addresses, lower its hop limit, wrap it in another packet.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Dropped, Handle, Layer, Rejected};
use lowmesh_wire::DecodeError;
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::{
    Address, HEADER_OCTETS, HOP_LIMIT_OFFSET, Header, next_header, with_hop_by_hop_option,
};

use crate::engine::{Output, Receiver};
use crate::params::{CONTROL_HOP_LIMIT, TUNNEL_HOP_LIMIT};

/// The header of a packet that an engine can forward: a whole packet to a group of scope 3 or more.
pub(crate) fn routable(packet: &[u8]) -> Option<Header> {
    let header = Header::parse_packet(packet).ok()?;
    header.destination.is_routed_group().then_some(header)
}

/// The same for a packet of this node, which the caller must not send otherwise.
pub(crate) fn originated(packet: &[u8]) -> Result<Header, Rejected> {
    routable(packet).ok_or(Rejected::Invalid {
        what: "a packet to a group",
        why: "an engine takes whole IPv6 packets to groups of scope 3 or more; send others on the link",
    })
}

/// Lowers the hop limit of a packet that is going on; false if it may not make another hop.
pub(crate) fn lower_hop_limit(packet: &mut [u8]) -> bool {
    match packet.get_mut(HOP_LIMIT_OFFSET) {
        Some(limit) if *limit > 1 => {
            *limit -= 1;
            true
        }
        _ => false,
    }
}

/// The packet in a packet of `source` to `destination` (RFC 2473), with `option` in the hop-by-hop header of the outer one.
pub(crate) fn encapsulate(
    packet: &[u8],
    source: Address,
    destination: Address,
    option: &[u8],
) -> Result<Vec<u8>, DecodeError> {
    let header = Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: packet.len().try_into().unwrap_or(u16::MAX),
        next_header: next_header::IPV6,
        hop_limit: TUNNEL_HOP_LIMIT,
        source,
        destination,
    };
    let mut outer = header.to_bytes().to_vec();
    outer.extend_from_slice(packet);
    with_hop_by_hop_option(&outer, option)
}

/// The packet in a packet without extension headers, if it carries one to a group.
pub(crate) fn decapsulate(outer: &[u8]) -> Option<(Header, &[u8])> {
    let header = Header::parse_packet(outer).ok()?;
    let inner = outer.get(HEADER_OCTETS..).filter(|_| header.next_header == next_header::IPV6)?;
    routable(inner).map(|header| (header, inner))
}

/// An ICMPv6 message in an IPv6 packet.
pub(crate) fn icmpv6_packet(source: Address, destination: Address, message: &Icmpv6) -> Vec<u8> {
    let mut body = Vec::new();
    message.emit(&source.0, &destination.0, &mut body);
    let header = Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: body.len().try_into().unwrap_or(u16::MAX),
        next_header: next_header::ICMPV6,
        hop_limit: CONTROL_HOP_LIMIT,
        source,
        destination,
    };
    let mut packet = header.to_bytes().to_vec();
    packet.extend_from_slice(&body);
    packet
}

/// A control message to the neighbours.
pub(crate) fn control(source: Address, destination: Address, message: &Icmpv6) -> Output {
    let packet = icmpv6_packet(source, destination, message);
    Output::Send { packet, to: Receiver::Broadcast, handle: Handle::NONE }
}

/// The end of a copy.
pub(crate) const fn dropped(handle: Handle, reason: DropReason) -> Output {
    Output::Dropped(Dropped { handle, layer: Layer::Ipv6, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::PACKET;
    use lowmesh_wire::ipv6::without_hop_by_hop_option;

    #[test]
    fn an_encapsulated_packet_comes_out_as_it_went_in() {
        let option = [0x6d, 2, 0, 1];
        let source = Address([0xfd; 16]);
        let outer = encapsulate(&PACKET, source, Address::ALL_MPL_FORWARDERS, &option)
            .expect("a whole packet");
        let outer = without_hop_by_hop_option(&outer, 0x6d).expect("a whole packet");
        let (header, inner) = decapsulate(&outer).expect("a packet in a packet");
        assert_eq!(inner, PACKET);
        assert_eq!(header.hop_limit, 8);
        assert_eq!(decapsulate(&PACKET), None);
    }

    #[test]
    fn a_hop_limit_never_becomes_zero() {
        let mut packet = PACKET;
        for limit in (1..8).rev() {
            assert!(lower_hop_limit(&mut packet));
            assert_eq!(packet[HOP_LIMIT_OFFSET], limit);
        }
        assert!(!lower_hop_limit(&mut packet));
        assert_eq!(packet[HOP_LIMIT_OFFSET], 1);
    }

    #[test]
    fn a_packet_to_a_group_on_the_link_is_rejected() {
        let mut packet = PACKET;
        packet[25] = 2;
        assert!(originated(&packet).is_err_and(|error| error.why().contains("scope 3")));
        assert!(originated(&PACKET[..39]).is_err());
        assert!(originated(&PACKET).is_ok());
    }
}
