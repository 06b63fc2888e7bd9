//! The IPv6 header (RFC 8200 s3), the addresses in it and the extension headers behind it.
//!
//! ```text
//! |Version| Traffic Class |           Flow Label                  |
//! |         Payload Length        |  Next Header  |   Hop Limit   |
//! |                Source Address (128 bits)                      |
//! |              Destination Address (128 bits)                   |
//! ```
//!
//! Extension headers are views over the packet's bytes ([`Extensions`], [`Options`]); what they mean is
//! left to the crates `ipv6` and `rpl`.

mod address;
mod extension;
mod fragment;
mod hop_by_hop;
mod prefix;

pub use address::{Address, Scope};
pub use extension::{
    Extension, ExtensionKind, Extensions, HeaderOption, OPTION_PAD_N, OPTION_PAD1, Options,
    UpperLayer, pad_to_eight, upper_layer,
};
pub use fragment::{FRAGMENT_HEADER_OCTETS, FRAGMENT_OFFSET_UNIT, FragmentHeader};
pub use hop_by_hop::{hop_by_hop_option, with_hop_by_hop_option, without_hop_by_hop_option};
pub use prefix::{ParsePrefixError, Prefix};

use alloc::vec::Vec;

use crate::{DecodeError, Problem, Reader};

/// Octets of the fixed header (RFC 8200 s3).
pub const HEADER_OCTETS: usize = 40;
/// Where the payload length stands in the fixed header.
pub const PAYLOAD_LENGTH_OFFSET: usize = 4;
/// Where the next header stands in the fixed header.
pub const NEXT_HEADER_OFFSET: usize = 6;
/// Where the hop limit stands in the fixed header.
pub const HOP_LIMIT_OFFSET: usize = 7;
/// Where the source address stands in the fixed header.
pub const SOURCE_OFFSET: usize = 8;
/// Where the destination address stands in the fixed header.
pub const DESTINATION_OFFSET: usize = 24;

/// Values of a Next Header field (IANA "Assigned Internet Protocol Numbers").
pub mod next_header {
    /// Hop-by-Hop Options header (RFC 8200 s4.3).
    pub const HOP_BY_HOP: u8 = 0;
    /// TCP (RFC 9293).
    pub const TCP: u8 = 6;
    /// UDP (RFC 768).
    pub const UDP: u8 = 17;
    /// An IPv6 packet in the packet (RFC 2473).
    pub const IPV6: u8 = 41;
    /// Routing header (RFC 8200 s4.4).
    pub const ROUTING: u8 = 43;
    /// Fragment header (RFC 8200 s4.5).
    pub const FRAGMENT: u8 = 44;
    /// ICMPv6 (RFC 4443).
    pub const ICMPV6: u8 = 58;
    /// Nothing follows (RFC 8200 s4.7).
    pub const NONE: u8 = 59;
    /// Destination Options header (RFC 8200 s4.6).
    pub const DESTINATION_OPTIONS: u8 = 60;
}

/// The fixed header as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// DSCP in the upper six bits, ECN in the lower two (RFC 2474, RFC 3168).
    pub traffic_class: u8,
    /// Flow label, 20 bits (RFC 6437).
    pub flow_label: u32,
    /// Octets after this header, extension headers included.
    pub payload_length: u16,
    /// What follows, one of [`next_header`].
    pub next_header: u8,
    /// Hops that the packet may still make.
    pub hop_limit: u8,
    /// The address of the node that made the packet.
    pub source: Address,
    /// The receiver; with a routing header, the next address on the path.
    pub destination: Address,
}

impl Header {
    /// Reads the header at the start of `packet`; whether the payload is there is for the caller.
    pub fn parse(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("IPv6", packet);
        let word = reader.u32_be("version")?;
        if word >> 28 != 6 {
            return Err(Reader::new("IPv6", packet).error("version", Problem::Unsupported));
        }
        Ok(Self {
            traffic_class: (word >> 20) as u8,
            flow_label: word & 0x000f_ffff,
            payload_length: reader.u16_be("payload length")?,
            next_header: reader.u8("next header")?,
            hop_limit: reader.u8("hop limit")?,
            source: Address(reader.array("source address")?),
            destination: Address(reader.array("destination address")?),
        })
    }

    /// Reads the header of a whole packet, whose payload length has to agree with the bytes there are.
    pub fn parse_packet(packet: &[u8]) -> Result<Self, DecodeError> {
        Self::parse_beginning(packet, packet.len())
    }

    /// Reads the header of a packet of `size` octets of which `packet` is the beginning.
    pub fn parse_beginning(packet: &[u8], size: usize) -> Result<Self, DecodeError> {
        let header = Self::parse(packet)?;
        let whole = usize::from(header.payload_length) + HEADER_OCTETS;
        if whole != size || packet.len() > size {
            return Err(DecodeError {
                header: "IPv6",
                field: "payload length",
                offset: PAYLOAD_LENGTH_OFFSET,
                problem: Problem::Length,
            });
        }
        Ok(header)
    }

    /// Writes the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }

    /// The header's octets.
    pub fn to_bytes(&self) -> [u8; HEADER_OCTETS] {
        let word = 6 << 28 | u32::from(self.traffic_class) << 20 | (self.flow_label & 0x000f_ffff);
        let mut bytes = [0; HEADER_OCTETS];
        bytes[..4].copy_from_slice(&word.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.payload_length.to_be_bytes());
        bytes[NEXT_HEADER_OFFSET] = self.next_header;
        bytes[HOP_LIMIT_OFFSET] = self.hop_limit;
        bytes[SOURCE_OFFSET..DESTINATION_OFFSET].copy_from_slice(&self.source.0);
        bytes[DESTINATION_OFFSET..].copy_from_slice(&self.destination.0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            traffic_class: 0xb9,
            flow_label: 0xabcde,
            payload_length: 0,
            next_header: next_header::NONE,
            hop_limit: 64,
            source: Address::ALL_NODES,
            destination: Address::ALL_RPL_NODES,
        }
    }

    #[test]
    fn a_header_comes_back_as_it_went_out() {
        let mut bytes = Vec::new();
        header().emit(&mut bytes);
        assert_eq!(bytes[..4], [0x6b, 0x9a, 0xbc, 0xde]);
        assert_eq!(Header::parse(&bytes), Ok(header()));
    }

    #[test]
    fn every_prefix_of_a_header_is_an_error() {
        let bytes = header().to_bytes();
        for end in 0..bytes.len() {
            assert!(Header::parse(&bytes[..end]).is_err());
        }
    }

    #[test]
    fn a_payload_length_that_disagrees_is_an_error() {
        let mut bytes = header().to_bytes().to_vec();
        assert!(Header::parse_packet(&bytes).is_ok());
        bytes.push(0);
        let error = Header::parse_packet(&bytes).expect_err("one octet too many");
        assert_eq!(error.problem, Problem::Length);
    }

    #[test]
    fn the_beginning_of_a_packet_is_measured_by_the_size_of_the_whole() {
        let mut whole = Header { payload_length: 9, ..header() }.to_bytes().to_vec();
        whole.extend_from_slice(&[7; 9]);
        for end in HEADER_OCTETS..=whole.len() {
            assert!(Header::parse_beginning(&whole[..end], whole.len()).is_ok());
        }
        assert!(Header::parse_beginning(&whole[..45], 48).is_err());
        assert!(Header::parse_beginning(&whole, 45).is_err());
    }

    #[test]
    fn another_version_is_not_supported() {
        let mut bytes = header().to_bytes();
        bytes[0] = 0x45;
        let error = Header::parse(&bytes).expect_err("version 4");
        assert_eq!((error.field, error.problem), ("version", Problem::Unsupported));
    }
}
