//! The headers that RPL adds to a packet, as values: its option, a source route, and the outer header.

use alloc::vec::Vec;

use lowmesh_units::Eui64;

use crate::ipv6::{
    Address, DESTINATION_OFFSET, Extension, ExtensionKind, HEADER_OCTETS, Header,
    NEXT_HEADER_OFFSET, PAYLOAD_LENGTH_OFFSET, next_header,
};
use crate::lowpan::RoutingContext;
use crate::lowpan::encode::Whole;
use crate::rpl::{HopByHopOption, SourceRoute};

/// Octets of a hop-by-hop header that has the RPL option alone.
const OPTION_HEADER_OCTETS: usize = 8;
/// Octets of a source routing header before its addresses, and of an address.
const ROUTE_FIXED_OCTETS: usize = 8;
const ADDRESS_OCTETS: usize = 16;

/// The outer header of an encapsulated packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tunnel {
    /// The encapsulator.
    pub source: Address,
    pub hop_limit: u8,
}

impl Tunnel {
    /// The addresses that the inner LOWPAN_IPHC takes as those of the link: the ends of the tunnel.
    pub fn link(
        &self,
        path: &[Address],
        context: Option<&RoutingContext>,
    ) -> (Eui64, Option<Eui64>) {
        let end = path.last().or(context.map(|context| &context.root));
        (self.source.eui64(), end.map(Address::eui64))
    }
}

/// What 6LoRH says about a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outline {
    pub option: Option<HopByHopOption>,
    /// The hops still to be made, the destination on this link first. Without a tunnel the last hop of a route is the
    /// destination in LOWPAN_IPHC, and not among these; a tunnel without a path ends at the root.
    pub path: Vec<Address>,
    pub tunnel: Option<Tunnel>,
}

/// What is behind the headers of an outline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind {
    /// Where it begins.
    pub at: usize,
    pub next_header: u8,
    /// Where the source route ends, or the packet without one.
    pub destination: Address,
}

impl Outline {
    /// The headers at the beginning of a packet, and what is behind them; `None` if there is none of these, or one has what
    /// 6LoRH cannot say.
    pub fn of_packet(
        whole: &Whole<'_>,
        context: Option<&RoutingContext>,
    ) -> Option<(Self, Behind)> {
        let &Whole { packet, ref header, is_inner, .. } = whole;
        if is_inner || header.destination.is_multicast() {
            return None;
        }
        let (mut at, mut next) = (HEADER_OCTETS, header.next_header);
        let mut option = None;
        if next == next_header::HOP_BY_HOP {
            let extension = Extension::parse(ExtensionKind::HopByHop, packet, at).ok()?;
            option = Some(HopByHopOption::parse(&extension.bytes[2..]).ok()?);
            at += extension.bytes.len();
            next = extension.next_header;
        }
        let mut route = None;
        if next == next_header::ROUTING {
            let bytes = packet.get(at..)?;
            let (read, behind, octets) = SourceRoute::parse(bytes, &header.destination.0).ok()?;
            // Entries that are consumed are not carried: see `without_visited`.
            if read.addresses.is_empty() || usize::from(read.segments_left) != read.addresses.len()
            {
                return None;
            }
            at += octets;
            next = behind;
            route = Some(read);
        }
        let tunnel = (next == next_header::IPV6)
            .then_some(Tunnel { source: header.source, hop_limit: header.hop_limit });
        if option.is_none() && route.is_none() && tunnel.is_none() {
            return None;
        }
        let to_root = context.is_some_and(|context| context.root == header.destination);
        let mut path = Vec::new();
        if route.is_some() || (tunnel.is_some() && !to_root) {
            path.push(header.destination);
        }
        path.extend(route.iter().flat_map(|route| &route.addresses).copied().map(Address));
        let last = if tunnel.is_none() { path.pop() } else { None };
        let behind =
            Behind { at, next_header: next, destination: last.unwrap_or(header.destination) };
        Some((Self { option, path, tunnel }, behind))
    }

    /// The packet without these headers, which LOWPAN_IPHC compresses.
    pub fn rest(&self, packet: &[u8], behind: &Behind) -> Vec<u8> {
        let &Behind { at, next_header, destination } = behind;
        if self.tunnel.is_some() {
            return packet[at..].to_vec();
        }
        let mut rest = packet[..HEADER_OCTETS].to_vec();
        rest[NEXT_HEADER_OFFSET] = next_header;
        rest[DESTINATION_OFFSET..].copy_from_slice(&destination.0);
        rest.extend_from_slice(&packet[at..]);
        let length = payload_length(packet).wrapping_sub(at - HEADER_OCTETS);
        set_payload_length(&mut rest, length);
        rest
    }

    /// Appends the packet whose LOWPAN_IPHC decompresses to `rest`, or its beginning; `None` if it is too long.
    pub fn emit(
        &self,
        rest: &[u8],
        context: Option<&RoutingContext>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let header = Header::parse(rest).ok()?;
        let (destination, route) = self.route(&header.destination, context)?;
        let behind = if self.tunnel.is_some() { next_header::IPV6 } else { header.next_header };
        let mut added = Vec::new();
        let after_option = if route.is_some() { next_header::ROUTING } else { behind };
        if let Some(option) = &self.option {
            added.extend_from_slice(&[after_option, 0]);
            option.emit(&mut added);
        }
        if let Some(route) = &route {
            route.emit(behind, &destination.0, &mut added);
        }
        let first = if self.option.is_some() { next_header::HOP_BY_HOP } else { after_option };
        let outer = match self.tunnel {
            None => Header { next_header: first, destination, ..header },
            // RFC 8138 s7 carries neither traffic class nor flow label: the class is that of the inner packet.
            Some(Tunnel { source, hop_limit }) => {
                let flow_label = 0;
                Header { next_header: first, hop_limit, source, destination, flow_label, ..header }
            }
        };
        let inner = if self.tunnel.is_some() { HEADER_OCTETS } else { 0 };
        let length = usize::from(header.payload_length) + added.len() + inner;
        let payload_length = u16::try_from(length).ok()?;
        Header { payload_length, ..outer }.emit(out);
        out.extend_from_slice(&added);
        out.extend_from_slice(&rest[HEADER_OCTETS - inner..]);
        Some(())
    }

    /// Octets that [`emit`](Self::emit) adds to a packet to `last`.
    pub fn added_octets(&self, last: &Address, context: Option<&RoutingContext>) -> usize {
        let option = if self.option.is_some() { OPTION_HEADER_OCTETS } else { 0 };
        let outer = if self.tunnel.is_some() { HEADER_OCTETS } else { 0 };
        let route = match self.route(last, context) {
            Some((destination, Some(route))) => {
                let mut header =
                    Vec::with_capacity(ROUTE_FIXED_OCTETS + ADDRESS_OCTETS * route.addresses.len());
                route.emit(next_header::NONE, &destination.0, &mut header);
                header.len()
            }
            _ => 0,
        };
        option + outer + route
    }

    /// The destination on this link and the hops behind it, of a packet whose LOWPAN_IPHC names `last`; `None` if a
    /// source routing header cannot hold them, or nobody knows where a tunnel ends.
    fn route(
        &self,
        last: &Address,
        context: Option<&RoutingContext>,
    ) -> Option<(Address, Option<SourceRoute>)> {
        let Some((first, hops)) = self.path.split_first() else {
            return match self.tunnel {
                None => Some((*last, None)),
                Some(_) => context.map(|context| (context.root, None)),
            };
        };
        let mut addresses: Vec<_> = hops.iter().map(|hop| hop.0).collect();
        if self.tunnel.is_none() {
            addresses.push(last.0);
        }
        if addresses.is_empty() {
            return Some((*first, None));
        }
        // The header counts units of eight octets with one octet.
        if ADDRESS_OCTETS * addresses.len() > 8 * usize::from(u8::MAX) {
            return None;
        }
        let segments_left = u8::try_from(addresses.len()).ok()?;
        Some((*first, Some(SourceRoute { segments_left, addresses })))
    }
}

pub(super) fn payload_length(packet: &[u8]) -> usize {
    let [high, low] = [packet[PAYLOAD_LENGTH_OFFSET], packet[PAYLOAD_LENGTH_OFFSET + 1]];
    usize::from(u16::from_be_bytes([high, low]))
}

pub(super) fn set_payload_length(packet: &mut [u8], length: usize) {
    packet[PAYLOAD_LENGTH_OFFSET..NEXT_HEADER_OFFSET]
        .copy_from_slice(&(length as u16).to_be_bytes());
}
