//! The entries of a source route that the packet has passed: 6LoRH does not carry them (RFC 8138 s5.3).

use alloc::vec::Vec;

use super::outline::{payload_length, set_payload_length};
use crate::ipv6::{
    Extension, ExtensionKind, HEADER_OCTETS, Header, NEXT_HEADER_OFFSET, next_header,
};
use crate::rpl::SourceRoute;

/// The packet, or its beginning, without the entries of its source routing header that are consumed, and without the
/// header when all are; `None` if there are none.
///
/// The packet becomes shorter by a multiple of eight octets.
pub fn without_visited(packet: &[u8]) -> Option<Vec<u8>> {
    let header = Header::parse(packet).ok()?;
    let (mut at, mut link) = (HEADER_OCTETS, NEXT_HEADER_OFFSET);
    if header.next_header == next_header::HOP_BY_HOP {
        let extension = Extension::parse(ExtensionKind::HopByHop, packet, at).ok()?;
        link = at;
        at += extension.bytes.len();
    }
    if packet[link] != next_header::ROUTING {
        return None;
    }
    let destination = &header.destination.0;
    let (mut route, behind, octets) = SourceRoute::parse(packet.get(at..)?, destination).ok()?;
    let visited = route.addresses.len() - usize::from(route.segments_left);
    if visited == 0 {
        return None;
    }
    route.addresses.drain(..visited);
    let mut out = packet[..at].to_vec();
    if route.addresses.is_empty() {
        out[link] = behind;
    } else {
        route.emit(behind, destination, &mut out);
    }
    // A header whose last address was shorter than the others may have become longer.
    let removed = (at + octets).checked_sub(out.len())?;
    out.extend_from_slice(&packet[at + octets..]);
    let length = payload_length(packet).checked_sub(removed)?;
    set_payload_length(&mut out, length);
    Some(out)
}
