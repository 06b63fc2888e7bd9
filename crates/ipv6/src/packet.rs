//! Making packets, and finding RPL's hop-by-hop option in one (RFC 8200 s4.3, RFC 6553).

use alloc::vec::Vec;
use core::ops::Range;

use lowmesh_wire::ipv6::{
    Address, ExtensionKind, Extensions, HEADER_OCTETS, Header, NEXT_HEADER_OFFSET,
    PAYLOAD_LENGTH_OFFSET, next_header, pad_to_eight,
};
use lowmesh_wire::udp::Datagram;

use crate::params::{RPL_OPTION, RPL_OPTION_RFC9008};

/// Who talks to whom over UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// Address of the sender.
    pub source: Address,
    /// Address of the receiver.
    pub destination: Address,
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
}

/// A packet with `payload` as its upper layer of type `next_header`.
///
/// `options` writes hop-by-hop options, type and length included; when it writes none there is no such header.
/// A payload is at most 65,000 octets.
pub fn plain(
    source: Address,
    destination: Address,
    next_header: u8,
    hop_limit: u8,
    payload: &[u8],
    options: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    build(source, destination, next_header, hop_limit, payload.len(), options, |packet| {
        packet.extend_from_slice(payload);
    })
}

/// A UDP packet; the rest as in [`plain`].
///
/// ```
/// use lowmesh_ipv6::packet::{Flow, udp};
/// use lowmesh_ipv6::udp::demultiplex;
/// use lowmesh_wire::ipv6::Address;
///
/// let (source, destination) = (Address([0xfd; 16]), Address([0xfe; 16]));
/// let flow = Flow { source, destination, source_port: 5683, destination_port: 5683 };
/// let packet = udp(&flow, 64, b"ping", |_| ());
/// assert_eq!(demultiplex(&packet).unwrap().flow, flow);
/// ```
pub fn udp(
    flow: &Flow,
    hop_limit: u8,
    payload: &[u8],
    options: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let &Flow { source, destination, source_port, destination_port } = flow;
    let octets = payload.len() + lowmesh_wire::udp::HEADER_OCTETS;
    build(source, destination, next_header::UDP, hop_limit, octets, options, |packet| {
        Datagram { source_port, destination_port, payload }.emit(&source, &destination, packet);
    })
}

fn build(
    source: Address,
    destination: Address,
    upper: u8,
    hop_limit: u8,
    upper_octets: usize,
    options: impl FnOnce(&mut Vec<u8>),
    payload: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    // Room for RPL's option as well.
    let mut packet = Vec::with_capacity(HEADER_OCTETS + 8 + upper_octets);
    let header = Header {
        traffic_class: 0,
        flow_label: 0,
        payload_length: 0,
        next_header: upper,
        hop_limit,
        source,
        destination,
    };
    header.emit(&mut packet);
    packet.extend_from_slice(&[upper, 0]);
    options(&mut packet);
    if packet.len() == HEADER_OCTETS + 2 {
        packet.truncate(HEADER_OCTETS);
    } else {
        pad_to_eight(&mut packet, HEADER_OCTETS);
        packet[HEADER_OCTETS + 1] = ((packet.len() - HEADER_OCTETS) / 8 - 1) as u8;
        packet[NEXT_HEADER_OFFSET] = next_header::HOP_BY_HOP;
    }
    payload(&mut packet);
    let length = (packet.len() - HEADER_OCTETS) as u16;
    packet[PAYLOAD_LENGTH_OFFSET..NEXT_HEADER_OFFSET].copy_from_slice(&length.to_be_bytes());
    packet
}

/// Where RPL's hop-by-hop option stands in a packet, type and length included; `None` without one.
///
/// The bytes in the range may be edited in place; their number is fixed.
pub fn find_rpl_option(packet: &[u8]) -> Option<Range<usize>> {
    let first = Extensions::new(packet).ok()?.next()?.ok()?;
    // RFC 8200 s4.3: hop-by-hop options stand directly behind the IPv6 header.
    if first.kind != ExtensionKind::HopByHop {
        return None;
    }
    let is_rpl = |kind| matches!(kind, RPL_OPTION | RPL_OPTION_RFC9008);
    let option = first.options().map_while(Result::ok).find(|option| is_rpl(option.kind))?;
    let start = first.offset + 2 + option.offset;
    Some(start..start + option.octets())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_wire::ipv6::upper_layer;

    const FROM: Address = Address([0xfd; 16]);
    const TO: Address = Address([0xfc; 16]);

    #[test]
    fn the_options_of_the_caller_stand_first_and_are_padded() {
        let option = [RPL_OPTION, 5, 0, 0, 1, 0, 9];
        let packet = plain(FROM, TO, next_header::ICMPV6, 64, &[155, 1], |options| {
            options.extend_from_slice(&option);
        });
        assert!(Header::parse_packet(&packet).is_ok());
        let upper = upper_layer(&packet).expect("own packet");
        assert_eq!((upper.next_header, upper.offset), (next_header::ICMPV6, 56));
        let range = find_rpl_option(&packet).expect("the option");
        assert_eq!(packet[range], option);
    }

    #[test]
    fn without_options_there_is_no_header_for_them() {
        let packet = plain(FROM, TO, next_header::ICMPV6, 64, &[155, 1], |_| ());
        assert_eq!(packet.len(), 42);
        assert_eq!(packet[NEXT_HEADER_OFFSET], next_header::ICMPV6);
        assert_eq!(find_rpl_option(&packet), None);
    }

    #[test]
    fn rpls_option_is_found_behind_padding_and_only_there() {
        let write = |bytes: &'static [u8]| {
            plain(FROM, TO, next_header::NONE, 1, &[], |options| options.extend_from_slice(bytes))
        };
        assert_eq!(find_rpl_option(&write(&[0, 1, 1, 0, RPL_OPTION_RFC9008, 1, 7])), Some(46..49));
        assert_eq!(find_rpl_option(&write(&[0x1e, 2, RPL_OPTION, 0])), None);
    }
}
