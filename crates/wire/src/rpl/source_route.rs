//! The source routing header of non-storing mode (RFC 6554), with its prefix elision.
//!
//! The elided octets are those of the packet's destination, so both faces ask for it. Which node may
//! write the header, and where packets leave the RPL network, is left to the IPv6 layer.

use alloc::vec::Vec;

use super::Address;
use crate::{DecodeError, Problem, Reader};

/// Routing type: RFC 6554 s3.
const ROUTING_TYPE: u8 = 3;
/// Octets before the addresses: RFC 6554 s3.
const FIXED_LENGTH: usize = 8;
const HEADER: &str = "source routing header";

/// The hops that a packet still has, or had, to make.
///
/// ```text
///   | next header   | length (8 B)  | type 3        | segments left |
///   | CmprI | CmprE | Pad   | reserved (20 bits)                    |
///   | addresses 1..n-1 without CmprI octets, address n without CmprE octets, padding
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRoute {
    /// How many of the last addresses are still to be visited.
    pub segments_left: u8,
    /// The addresses, whole.
    pub addresses: Vec<Address>,
}

/// What [`SourceRoute::advance`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// No segment left: the packet is at its end, go on with the next header.
    Arrived,
    /// The destination is now the next segment.
    Onward,
    /// The header is wrong; RFC 6554 s4.2 wants it dropped (with a Parameter Problem if segments left is).
    Invalid,
}

impl SourceRoute {
    /// The route over `hops` (first hop first, the target last) and the destination the packet starts
    /// with. `None` when there is no hop, or more than the header can count.
    pub fn over(hops: &[Address]) -> Option<(Address, Self)> {
        let (first, rest) = hops.split_first()?;
        let segments_left = u8::try_from(rest.len()).ok()?;
        Some((*first, Self { segments_left, addresses: rest.to_vec() }))
    }

    /// Reads the header of a packet to `destination`; gives the next header and the header's octets too.
    pub fn parse(bytes: &[u8], destination: &Address) -> Result<(Self, u8, usize), DecodeError> {
        let mut reader = Reader::new(HEADER, bytes);
        let next_header = reader.u8("next header")?;
        let body_length = usize::from(reader.u8("header length")?) * 8;
        if reader.u8("routing type")? != ROUTING_TYPE {
            return Err(reader.error("routing type", Problem::Unsupported));
        }
        let segments_left = reader.u8("segments left")?;
        let compression = reader.u8("CmprI, CmprE")?;
        let (inner, last) = (usize::from(compression >> 4), usize::from(compression & 0x0f));
        let padding = usize::from(reader.u8("Pad")? >> 4);
        reader.u16_be("reserved")?;
        let mut body = Reader::new(HEADER, reader.take(body_length, "addresses")?);
        let wrong_length = body.error("header length", Problem::Length);
        // RFC 6554 s3: n = ((length * 8) - Pad - (16 - CmprE)) / (16 - CmprI) + 1.
        let content = body_length.checked_sub(padding).ok_or(wrong_length)?;
        let mut addresses = Vec::new();
        if content > 0 {
            let inner_octets = content.checked_sub(16 - last).ok_or(wrong_length)?;
            if inner_octets % (16 - inner) != 0 {
                return Err(wrong_length);
            }
            let inner_count = inner_octets / (16 - inner);
            addresses.reserve_exact(inner_count + 1);
            for index in 0..=inner_count {
                let elided = if index < inner_count { inner } else { last };
                let mut address = *destination;
                address[elided..].copy_from_slice(body.take(16 - elided, "address")?);
                addresses.push(address);
            }
        }
        if usize::from(segments_left) > addresses.len() {
            return Err(reader.error("segments left", Problem::Value));
        }
        Ok((Self { segments_left, addresses }, next_header, FIXED_LENGTH + body_length))
    }

    /// Appends the header of a packet to `destination`, as short as elision makes it.
    ///
    /// An octet is elided when all addresses and the destination share it: at every hop the destination
    /// is another one of them, and each receiver fills in from what it sees.
    pub fn emit(&self, next_header: u8, destination: &Address, out: &mut Vec<u8>) {
        let shared = |address: &Address| {
            address.iter().zip(destination).take_while(|(a, b)| a == b).count().min(15)
        };
        let elided = self.addresses.iter().map(shared).min().unwrap_or(0);
        let content = self.addresses.len() * (16 - elided);
        let body_length = content.next_multiple_of(8);
        let padding = body_length - content;
        debug_assert!(body_length / 8 <= 255, "a path is shorter than the header can say");
        out.extend_from_slice(&[next_header, (body_length / 8) as u8, ROUTING_TYPE]);
        out.extend_from_slice(&[self.segments_left, (elided << 4 | elided) as u8]);
        out.extend_from_slice(&[(padding << 4) as u8, 0, 0]);
        for address in &self.addresses {
            out.extend_from_slice(&address[elided..]);
        }
        out.resize(out.len() + padding, 0);
    }

    /// Makes the next segment the destination, as RFC 6554 s4.2 and RFC 8200 s4.4 say: they change places.
    pub fn advance(&mut self, destination: &mut Address) -> Advance {
        if self.segments_left == 0 {
            return Advance::Arrived;
        }
        let Some(index) = self.addresses.len().checked_sub(usize::from(self.segments_left)) else {
            return Advance::Invalid;
        };
        // RFC 6554 s4.2: no multicast address, neither as segment nor as destination.
        if self.addresses[index][0] == 0xff || destination[0] == 0xff {
            return Advance::Invalid;
        }
        // RFC 6554 s4.2: a node that appears twice, with another between, is a loop.
        if self.addresses[index + 1..].contains(destination) {
            return Advance::Invalid;
        }
        core::mem::swap(&mut self.addresses[index], destination);
        self.segments_left -= 1;
        Advance::Onward
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(prefix: u8, id: u8) -> Address {
        let mut address = [0; 16];
        address[0] = 0xfd;
        address[7] = prefix;
        address[15] = id;
        address
    }

    #[test]
    fn shared_prefixes_are_elided_and_come_back() {
        let hops = [host(0, 1), host(0, 2), host(0, 3), host(0, 4)];
        let (destination, route) = SourceRoute::over(&hops).expect("four hops");
        let mut bytes = Vec::new();
        route.emit(17, &destination, &mut bytes);
        // Three addresses of one octet each, padded to eight.
        assert_eq!(bytes, [17, 1, 3, 3, 0xff, 0x50, 0, 0, 2, 3, 4, 0, 0, 0, 0, 0]);
        assert_eq!(SourceRoute::parse(&bytes, &destination), Ok((route, 17, 16)));
    }

    #[test]
    fn every_hop_decodes_what_the_one_before_encoded() {
        let hops = [host(0, 1), host(1, 2), host(0, 3), host(2, 4), host(0, 5)];
        let (mut destination, mut route) = SourceRoute::over(&hops).expect("five hops");
        for expected in &hops[1..] {
            let mut bytes = Vec::new();
            route.emit(58, &destination, &mut bytes);
            (route, _, _) = SourceRoute::parse(&bytes, &destination).expect("own bytes");
            assert_eq!(route.advance(&mut destination), Advance::Onward);
            assert_eq!(destination, *expected);
        }
        assert_eq!(route.advance(&mut destination), Advance::Arrived);
        assert_eq!(route.addresses, hops[..4]);
    }

    #[test]
    fn a_different_elision_of_the_last_address_is_read() {
        // CmprI 15, CmprE 0: one octet of address 1, then a whole address 2.
        let mut bytes = vec![17, 3, 3, 2, 0xf0, 0x70, 0, 0, 9];
        bytes.extend_from_slice(&[0x20; 16]);
        bytes.extend_from_slice(&[0; 7]);
        let (route, _, length) = SourceRoute::parse(&bytes, &host(0, 1)).expect("a valid header");
        assert_eq!(route.addresses, [host(0, 9), [0x20; 16]]);
        assert_eq!(length, bytes.len());
    }

    #[test]
    fn no_prefix_of_a_header_passes() {
        let hops = [host(0, 1), host(3, 2), host(0, 3)];
        let (destination, route) = SourceRoute::over(&hops).expect("three hops");
        let mut bytes = Vec::new();
        route.emit(17, &destination, &mut bytes);
        for end in 0..bytes.len() {
            assert!(SourceRoute::parse(&bytes[..end], &destination).is_err(), "at {end}");
        }
    }

    #[test]
    fn more_segments_than_addresses_are_refused() {
        let bytes = [17, 1, 3, 9, 0xff, 0x50, 0, 0, 2, 3, 4, 0, 0, 0, 0, 0];
        let error = SourceRoute::parse(&bytes, &host(0, 1)).expect_err("9 segments of 3");
        assert_eq!((error.field, error.problem), ("segments left", Problem::Value));
    }

    #[test]
    fn a_route_that_comes_back_to_a_node_is_invalid() {
        let hops = [host(0, 1), host(0, 2), host(0, 1)];
        let (mut destination, mut route) = SourceRoute::over(&hops).expect("three hops");
        assert_eq!(route.advance(&mut destination), Advance::Invalid);
    }

    #[test]
    fn random_bytes_never_panic() {
        proptest::proptest!(|(bytes: Vec<u8>)| {
            if let Ok((mut route, _, length)) = SourceRoute::parse(&bytes, &[7; 16]) {
                proptest::prop_assert!(length <= bytes.len());
                let mut destination = [7; 16];
                route.advance(&mut destination);
            }
        });
    }
}
