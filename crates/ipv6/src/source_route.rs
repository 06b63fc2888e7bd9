//! RPL's source routing header (RFC 6554): one step of it at a node on the path, and how the root makes it.
//!
//! ```text
//! |  Next Header  |  Hdr Ext Len  | Routing Type  | Segments Left |
//! | CmprI | CmprE |  Pad  |               Reserved                |
//! |  Addresses[1..n-1], 16 - CmprI octets each; Addresses[n], 16 - CmprE octets; Pad octets
//! ```

use alloc::vec::Vec;
use core::ops::Range;

use lowmesh_machine::DropReason;
use lowmesh_wire::ipv6::{
    Address, DESTINATION_OFFSET, ExtensionKind, Extensions, HEADER_OCTETS, NEXT_HEADER_OFFSET,
    PAYLOAD_LENGTH_OFFSET,
};

use crate::params::SOURCE_ROUTE_TYPE;
use crate::{Addresses, Headers};

const FIXED_OCTETS: usize = 8;
const SEGMENTS_LEFT: usize = 3;
const ADDRESS_OCTETS: usize = 16;

/// What one step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// No source routing header with segments left: the packet is at its destination.
    Arrived,
    /// The destination is now the next segment, a neighbour.
    Next(Address),
}

/// The addresses of a source routing header.
struct Segments {
    /// Where Addresses[1] stands in the packet.
    at: usize,
    /// How many there are, n.
    count: usize,
    /// Octets left away in Addresses[1..n-1] and in Addresses[n].
    elided: usize,
    elided_last: usize,
}

impl Segments {
    /// The addresses in the routing header that begins at `at`.
    fn of(at: usize, bytes: &[u8]) -> Option<Self> {
        let (elided, elided_last) = (usize::from(bytes[4] >> 4), usize::from(bytes[4] & 0x0f));
        let padding = usize::from(bytes[5] >> 4);
        let first = ADDRESS_OCTETS - elided;
        // RFC 6554 s3: n = (Hdr Ext Len * 8 - Pad - (16 - CmprE)) / (16 - CmprI) + 1.
        let before_last =
            (bytes.len() - FIXED_OCTETS).checked_sub(padding + ADDRESS_OCTETS - elided_last)?;
        (before_last % first == 0).then_some(Self {
            at: at + FIXED_OCTETS,
            count: before_last / first + 1,
            elided,
            elided_last,
        })
    }
    fn elided_of(&self, index: usize) -> usize {
        if index == self.count { self.elided_last } else { self.elided }
    }
    /// Where Addresses[index] stands in the packet, from 1 to n.
    fn range(&self, index: usize) -> Range<usize> {
        let start = self.at + (index - 1) * (ADDRESS_OCTETS - self.elided);
        start..start + ADDRESS_OCTETS - self.elided_of(index)
    }
    /// Addresses[index], which has its first octets from the destination.
    fn address(&self, packet: &[u8], index: usize) -> Address {
        let mut address = destination_of(packet);
        address.0[self.elided_of(index)..].copy_from_slice(&packet[self.range(index)]);
        address
    }
}

fn destination_of(packet: &[u8]) -> Address {
    let mut octets = [0; ADDRESS_OCTETS];
    octets.copy_from_slice(&packet[DESTINATION_OFFSET..HEADER_OCTETS]);
    Address(octets)
}

/// Processes the source routing header of a packet that is for this node (RFC 6554 s4.2), in place.
///
/// The hop limit, and the destination in `headers`, are left to the forwarder.
pub fn step(
    packet: &mut [u8],
    headers: &Headers,
    addresses: &Addresses,
) -> Result<Step, DropReason> {
    let Some(routing) = find(packet, headers)? else { return Ok(Step::Arrived) };
    let segments_left_at = routing.start + SEGMENTS_LEFT;
    let segments_left = usize::from(packet[segments_left_at]);
    if segments_left == 0 {
        return Ok(Step::Arrived);
    }
    let segments = Segments::of(routing.start, &packet[routing]).ok_or(DropReason::Malformed)?;
    // RFC 6554 s4.2: more segments left than addresses is an error of the sender.
    if segments_left > segments.count {
        return Err(DropReason::Malformed);
    }
    let index = segments.count - segments_left + 1;
    let here = destination_of(packet);
    let next = segments.address(packet, index);
    if next.is_multicast() || here.is_multicast() {
        return Err(DropReason::Malformed);
    }
    if visits_twice(packet, &segments, addresses) {
        return Err(DropReason::RankLoop);
    }
    let (range, elided) = (segments.range(index), segments.elided_of(index));
    packet[segments_left_at] = (segments_left - 1) as u8;
    packet[range].copy_from_slice(&here.0[elided..]);
    packet[DESTINATION_OFFSET..HEADER_OCTETS].copy_from_slice(&next.0);
    Ok(Step::Next(next))
}

/// RFC 6554 s4.2: two addresses of this node with another one's between them are a loop.
fn visits_twice(packet: &[u8], segments: &Segments, addresses: &Addresses) -> bool {
    let mut last_own = None;
    for index in 1..=segments.count {
        if addresses.contains(&segments.address(packet, index)) {
            if last_own.is_some_and(|last| last + 1 < index) {
                return true;
            }
            last_own = Some(index);
        }
    }
    false
}

/// Where the source routing header of a packet stands; other routing types with segments left are an error.
fn find(packet: &[u8], headers: &Headers) -> Result<Option<Range<usize>>, DropReason> {
    let Some(routing) = headers.routing() else {
        // Behind a bad header there may be one.
        return headers.upper_layer().map(|_| None);
    };
    match (packet[routing.start + 2], packet[routing.start + SEGMENTS_LEFT]) {
        (SOURCE_ROUTE_TYPE, _) => Ok(Some(routing)),
        // RFC 8200 s4.4: an unknown type is passed over when no segments are left, else discarded.
        (_, 0) => Ok(None),
        _ => Err(DropReason::Malformed),
    }
}

/// Gives a packet the route `hops` (neighbours from the first on, without the destination): RFC 6554 s4.1.
///
/// Leaves the packet as it is, and returns `false`, when the route is empty or does not fit into the header.
pub fn insert(packet: &mut Vec<u8>, hops: &[Address]) -> bool {
    let Some((&first, rest)) = hops.split_first() else { return false };
    let Ok(before) = upper_edge(packet) else { return false };
    let last = destination_of(packet);
    // Octets that all addresses share with the first hop, from which receivers take them.
    let shared = |address: &Address| {
        address.0.iter().zip(&first.0).take(ADDRESS_OCTETS - 1).take_while(|(a, b)| a == b).count()
    };
    let elided = rest.iter().map(shared).min().unwrap_or(ADDRESS_OCTETS - 1).min(shared(&last));
    let octets = hops.len() * (ADDRESS_OCTETS - elided);
    let padding = octets.wrapping_neg() % 8;
    let length = (octets + padding) / 8;
    let total = packet.len() - HEADER_OCTETS + FIXED_OCTETS + octets + padding;
    let (Ok(length), Ok(total)) = (u8::try_from(length), u16::try_from(total)) else {
        return false;
    };
    let Ok(segments) = u8::try_from(hops.len()) else { return false };
    let (at, link) = before;
    let elided_nibbles = (elided << 4 | elided) as u8;
    let next_header = packet[link];
    let fixed = [
        next_header,
        length,
        SOURCE_ROUTE_TYPE,
        segments,
        elided_nibbles,
        (padding << 4) as u8,
        0,
        0,
    ];
    let addresses = rest.iter().chain(core::iter::once(&last));
    let tails = addresses.flat_map(|address| address.0.into_iter().skip(elided));
    let header = fixed.into_iter().chain(tails).chain(core::iter::repeat_n(0, padding));
    packet.splice(at..at, header);
    packet[link] = ExtensionKind::Routing.next_header();
    packet[DESTINATION_OFFSET..HEADER_OCTETS].copy_from_slice(&first.0);
    packet[PAYLOAD_LENGTH_OFFSET..NEXT_HEADER_OFFSET].copy_from_slice(&total.to_be_bytes());
    true
}

/// Where a routing header belongs: behind hop-by-hop options (RFC 8200 s4.1); second, the octet naming it.
fn upper_edge(packet: &[u8]) -> Result<(usize, usize), DropReason> {
    let mut extensions = Extensions::new(packet).map_err(|_| DropReason::Malformed)?;
    match extensions.next() {
        Some(Ok(first)) if first.kind == ExtensionKind::HopByHop => {
            Ok((first.offset + first.bytes.len(), first.offset))
        }
        Some(Err(_)) => Err(DropReason::Malformed),
        _ => Ok((HEADER_OCTETS, NEXT_HEADER_OFFSET)),
    }
}

#[cfg(test)]
mod tests;
