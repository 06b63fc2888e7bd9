//! Mode E2E, the source's side: a packet cut into packets that each find their way (RFC 8200 s4.5).
//!
//! ```text
//!   IPv6 header, hop-by-hop, routing | fragment header | part of the rest
//!   in every fragment                                    a multiple of eight octets, but in the last
//! ```
//!
//! Only the source cuts; a forwarder drops what is too large for it.

use alloc::vec::Vec;

use lowmesh_machine::DropReason;
use lowmesh_wire::DecodeError;
use lowmesh_wire::ipv6::{
    ExtensionKind, Extensions, FRAGMENT_HEADER_OCTETS, FRAGMENT_OFFSET_UNIT, FragmentHeader,
    HEADER_OCTETS, Header, NEXT_HEADER_OFFSET, PAYLOAD_LENGTH_OFFSET, next_header,
};

use crate::params::{COMPRESSION_GAIN, COMPRESSION_GAIN_FRAGMENT, MTU};

/// The packets that carry a packet's parts, in order.
#[derive(Clone, Debug)]
pub struct Fragments<'a> {
    packet: &'a [u8],
    /// Octets that every fragment has from the packet.
    unfragmentable: usize,
    /// Where in them the type of what follows stands.
    pointer: usize,
    first_header: u8,
    /// Octets of the rest that a fragment takes.
    part: usize,
    at: usize,
    identification: u32,
}

/// Cuts `packet` into packets of at most `octets_max` octets. Of two packets that may be on their way between
/// the same nodes at once, each needs an `identification` of its own.
///
/// Too small an `octets_max` is [`DropReason::TooLarge`], of the packet.
///
/// ```
/// use lowmesh_ipv6::fragment::fragments;
/// use lowmesh_ipv6::packet::{Flow, udp};
/// use lowmesh_wire::ipv6::Address;
///
/// let (source, destination) = (Address([0xfd; 16]), Address([0xfe; 16]));
/// let flow = Flow { source, destination, source_port: 5683, destination_port: 5683 };
/// let packet = udp(&flow, 64, &[7; 200], |_| ());
/// // Of the 208 octets of UDP, 72 fit behind 40 of IPv6 and 8 of fragment header.
/// let sizes: Vec<usize> = fragments(&packet, 122, 1).unwrap().map(|part| part.len()).collect();
/// assert_eq!(sizes, [120, 120, 112]);
/// ```
pub fn fragments(
    packet: &[u8],
    octets_max: usize,
    identification: u32,
) -> Result<Fragments<'_>, DropReason> {
    Header::parse_packet(packet).map_err(|_| DropReason::Malformed)?;
    let layout = layout(packet).map_err(|_| DropReason::Malformed)?;
    let Layout { unfragmentable, pointer, upper_layer } = layout;
    let room = octets_max.saturating_sub(unfragmentable + FRAGMENT_HEADER_OCTETS);
    let part = room / FRAGMENT_OFFSET_UNIT * FRAGMENT_OFFSET_UNIT;
    // RFC 7112 s5: the first fragment has all headers, the upper layer's included.
    let upper_header = UPPER_HEADER_OCTETS.min(packet.len() - upper_layer);
    if part == 0 || upper_layer + upper_header > unfragmentable + part {
        return Err(DropReason::TooLarge);
    }
    let first_header = packet[pointer];
    Ok(Fragments {
        packet,
        unfragmentable,
        pointer,
        first_header,
        part,
        at: unfragmentable,
        identification,
    })
}

/// Cuts the packets of one node down to what fits into a frame.
#[derive(Clone, Debug)]
pub(crate) struct Cutter {
    /// Octets that fit into one frame when compressed; none where the layer below takes packets as they are.
    limit: Option<Limit>,
    /// Of the next packet that is cut.
    identification: u32,
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    packet: usize,
    fragment: usize,
}

impl Cutter {
    /// For frames with `frame_payload` octets for 6LoWPAN; `identification` is that of the first packet.
    pub fn new(frame_payload: Option<usize>, identification: u32) -> Self {
        let limit = frame_payload.map(|frame| Limit {
            packet: frame + COMPRESSION_GAIN,
            fragment: frame + COMPRESSION_GAIN_FRAGMENT,
        });
        Self { limit, identification }
    }
    /// The fragments of a packet that was made here; `None` when it fits as it is, or when the layer below cuts it.
    pub fn cut<'a>(&mut self, packet: &'a [u8]) -> Option<Result<Fragments<'a>, DropReason>> {
        self.cut_to(self.limit?, packet)
    }
    /// The fragments of an outer packet. RFC 2473 s7.1: if the inner packet is not larger than the least MTU, the encapsulator
    /// fragments the outer one.
    pub fn cut_outer<'a>(&mut self, packet: &'a [u8]) -> Option<Result<Fragments<'a>, DropReason>> {
        let whole = Limit { packet: MTU as usize, fragment: MTU as usize };
        self.cut_to(self.limit.unwrap_or(whole), packet)
    }
    fn cut_to<'a>(
        &mut self,
        limit: Limit,
        packet: &'a [u8],
    ) -> Option<Result<Fragments<'a>, DropReason>> {
        if packet.len() <= limit.packet {
            return None;
        }
        // RFC 8200 s4.5: an identification other than that of any packet sent recently between the two.
        let identification = self.identification;
        self.identification = identification.wrapping_add(1);
        Some(fragments(packet, limit.fragment, identification))
    }
}

/// Octets of an upper layer's header: UDP's, and what ICMPv6 begins with.
const UPPER_HEADER_OCTETS: usize = 8;

/// How a packet's headers lie.
struct Layout {
    unfragmentable: usize,
    pointer: usize,
    upper_layer: usize,
}

fn layout(packet: &[u8]) -> Result<Layout, DecodeError> {
    let (mut unfragmentable, mut pointer) = (HEADER_OCTETS, NEXT_HEADER_OFFSET);
    let mut chain = Extensions::new(packet)?;
    for extension in chain.by_ref() {
        let extension = extension?;
        // RFC 8200 s4.5: all headers up to the routing header are for nodes on the path, without one the
        // hop-by-hop options.
        if matches!(extension.kind, ExtensionKind::HopByHop | ExtensionKind::Routing) {
            unfragmentable = extension.offset + extension.bytes.len();
            pointer = extension.offset;
        }
    }
    Ok(Layout { unfragmentable, pointer, upper_layer: chain.upper_layer().offset })
}

impl Iterator for Fragments<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let left = self.packet.len().checked_sub(self.at).filter(|left| *left > 0)?;
        let part = left.min(self.part);
        let header = FragmentHeader {
            next_header: self.first_header,
            // At most 65,535, for the packet's payload length is that of the bytes.
            offset: (self.at - self.unfragmentable) as u16,
            more: left > part,
            identification: self.identification,
        };
        let octets = self.unfragmentable + FRAGMENT_HEADER_OCTETS + part;
        let mut fragment = Vec::with_capacity(octets);
        fragment.extend_from_slice(&self.packet[..self.unfragmentable]);
        fragment[self.pointer] = next_header::FRAGMENT;
        let length = (octets - HEADER_OCTETS) as u16;
        fragment[PAYLOAD_LENGTH_OFFSET..NEXT_HEADER_OFFSET].copy_from_slice(&length.to_be_bytes());
        header.emit(&mut fragment);
        fragment.extend_from_slice(&self.packet[self.at..self.at + part]);
        self.at += part;
        Some(fragment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Flow, udp};
    use crate::source_route;
    use lowmesh_wire::ipv6::Address;

    const FROM: Address = Address([0xfd; 16]);
    const TO: Address = Address([0xfc; 16]);
    const FLOW: Flow =
        Flow { source: FROM, destination: TO, source_port: 5683, destination_port: 5683 };

    #[test]
    fn every_fragment_is_a_packet_that_fits() {
        let packet = udp(&FLOW, 64, &[9; 1000], |_| ());
        let parts: Vec<_> = fragments(&packet, 130, 7).expect("a whole packet").collect();
        let mut offset = 0;
        for (index, part) in parts.iter().enumerate() {
            assert!(part.len() <= 130);
            let header = Header::parse_packet(part).expect("a whole packet");
            assert_eq!((header.next_header, header.source), (next_header::FRAGMENT, FROM));
            let fragment = FragmentHeader::parse(&part[40..]).expect("a fragment header");
            assert_eq!(usize::from(fragment.offset), offset);
            assert_eq!(fragment.more, index + 1 < parts.len());
            assert_eq!((fragment.next_header, fragment.identification), (next_header::UDP, 7));
            offset += part.len() - 48;
        }
        assert_eq!(offset, 1008);
    }

    #[test]
    fn headers_for_nodes_on_the_way_are_in_every_fragment() {
        let mut packet = udp(&FLOW, 64, &[9; 300], |options| {
            options.extend_from_slice(&[0x63, 4, 0, 0, 0, 1]);
        });
        assert!(source_route::insert(&mut packet, &[FROM]));
        let headers = 40 + 8 + 24;
        for part in fragments(&packet, 160, 7).expect("a whole packet") {
            assert_eq!(part[6], next_header::HOP_BY_HOP);
            assert_eq!(part[40], next_header::ROUTING);
            assert_eq!(part[48], next_header::FRAGMENT);
            assert_eq!(part[49..headers], packet[49..headers]);
            assert_eq!(part[headers], next_header::UDP);
        }
    }

    #[test]
    fn a_limit_that_leaves_no_room_for_the_headers_is_refused() {
        let packet = udp(&FLOW, 64, &[9; 300], |_| ());
        assert!(fragments(&packet, 56, 7).is_ok());
        for octets_max in [0, 47, 55] {
            assert_eq!(fragments(&packet, octets_max, 7).err(), Some(DropReason::TooLarge));
        }
        assert_eq!(fragments(&packet[..80], 120, 7).err(), Some(DropReason::Malformed));
    }

    #[test]
    fn destination_options_behind_the_fragment_header_stay_in_the_first_fragment() {
        let mut packet = udp(&FLOW, 64, &[9; 300], |_| ());
        let options = [next_header::UDP, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        packet.splice(40..40, options);
        packet[6] = next_header::DESTINATION_OPTIONS;
        let length = (packet.len() - 40) as u16;
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        // RFC 7112: sixteen octets of options and eight of UDP have to be in the first.
        assert_eq!(fragments(&packet, 48 + 16, 7).err(), Some(DropReason::TooLarge));
        assert!(fragments(&packet, 48 + 24, 7).is_ok());
    }
}
