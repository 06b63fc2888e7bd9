//! The message by which an ESMRF node asks the root to send a datagram to a group.
//!
//! ```text
//!   | type 201      | code 0        | checksum                      |
//!   | destination port              | group (16 octets) ...
//!   | UDP payload ...
//! ```
//!
//! Contiki-NG's form has no room for the source port; the root takes the destination port in its place, as for an
//! application that sends from the port where it listens. Contiki-NG's root sends a UDP checksum of 0, which IPv6 does not
//! allow here (RFC 8200 s8.1); ours computes it.

use alloc::vec::Vec;

use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::{Address, Header, next_header};
use lowmesh_wire::udp::{self, CHECKSUM_OFFSET};

use crate::packet::icmpv6_packet;
use crate::params::{ESMRF_HOP_LIMIT, ESMRF_TYPE};

/// Octets of port and group.
const FIXED_OCTETS: usize = 18;
/// Octets of the header of UDP (RFC 768).
const UDP_OCTETS: usize = 8;

/// The request for `packet`, if that is UDP without extension headers.
pub(super) fn ask(packet: &[u8], source: Address, root: Address) -> Option<Vec<u8>> {
    let header = Header::parse_packet(packet).ok()?;
    let datagram = packet.get(lowmesh_wire::ipv6::HEADER_OCTETS..)?;
    if header.next_header != next_header::UDP || datagram.len() < UDP_OCTETS {
        return None;
    }
    let mut body = datagram[2..4].to_vec();
    body.extend_from_slice(&header.destination.0);
    body.extend_from_slice(&datagram[UDP_OCTETS..]);
    let message = Icmpv6::Other { kind: ESMRF_TYPE, code: 0, body };
    Some(icmpv6_packet(source, root, &message))
}

/// The group and the packet that the body of a request stands for, with the address of the node that asked.
pub(super) fn packet_of(body: &[u8], source: Address) -> Option<(Address, Vec<u8>)> {
    let (fixed, payload) = body.split_at_checked(FIXED_OCTETS)?;
    let mut group = [0; 16];
    group.copy_from_slice(&fixed[2..]);
    let group = Address(group);
    if !group.is_routed_group() || source.is_multicast() {
        return None;
    }
    let length = u16::try_from(UDP_OCTETS + payload.len()).ok()?;
    let mut datagram = Vec::with_capacity(usize::from(length));
    datagram.extend_from_slice(&fixed[..2]);
    datagram.extend_from_slice(&fixed[..2]);
    datagram.extend_from_slice(&length.to_be_bytes());
    datagram.extend_from_slice(&[0, 0]);
    datagram.extend_from_slice(payload);
    let sum = udp::checksum(&source, &group, &datagram);
    datagram[CHECKSUM_OFFSET..CHECKSUM_OFFSET + 2].copy_from_slice(&sum.to_be_bytes());
    let header = Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: length,
        next_header: next_header::UDP,
        hop_limit: ESMRF_HOP_LIMIT,
        source,
        destination: group,
    };
    let mut packet = header.to_bytes().to_vec();
    packet.extend_from_slice(&datagram);
    Some((group, packet))
}
