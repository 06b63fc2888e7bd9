//! UDP over IPv6 (RFC 768, RFC 8200 s8.1).
//!
//! ```text
//! |     Source port     |  Destination port  |
//! |       Length        |      Checksum      |
//! ```
//!
//! Who listens on which port is left to the crate `ipv6`.

use alloc::vec::Vec;

use crate::checksum::pseudo_header_checksum;
use crate::ipv6::{Address, next_header};
use crate::{DecodeError, Problem, Reader};

/// Octets of the header (RFC 768).
pub const HEADER_OCTETS: usize = 8;
/// Where the checksum stands in the header.
pub const CHECKSUM_OFFSET: usize = 6;

/// A datagram whose payload borrows from the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// The data.
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Reads a whole datagram and verifies its checksum.
    pub fn parse(
        source: &Address,
        destination: &Address,
        bytes: &'a [u8],
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("UDP", bytes);
        let source_port = reader.u16_be("source port")?;
        let destination_port = reader.u16_be("destination port")?;
        let length = usize::from(reader.u16_be("length")?);
        if length != bytes.len() {
            return Err(reader.error("length", Problem::Length));
        }
        let checksum = reader.u16_be("checksum")?;
        // RFC 8200 s8.1: a receiver discards UDP packets with a checksum of zero.
        let sum = pseudo_header_checksum(&source.0, &destination.0, next_header::UDP, bytes);
        if checksum == 0 || sum != 0 {
            return Err(reader.error("checksum", Problem::Checksum));
        }
        Ok(Self { source_port, destination_port, payload: reader.rest() })
    }

    /// Writes the datagram with its length and checksum; the payload fits into 65,527 octets.
    pub fn emit(&self, source: &Address, destination: &Address, out: &mut Vec<u8>) {
        let start = out.len();
        let length = (HEADER_OCTETS + self.payload.len()) as u16;
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(self.payload);
        let sum = checksum(source, destination, &out[start..]);
        out[start + CHECKSUM_OFFSET..start + HEADER_OCTETS].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The checksum of a datagram whose checksum field is zero.
pub fn checksum(source: &Address, destination: &Address, datagram: &[u8]) -> u16 {
    match pseudo_header_checksum(&source.0, &destination.0, next_header::UDP, datagram) {
        // RFC 8200 s8.1: a sum of zero goes out as all ones, for zero would mean "none".
        0 => 0xffff,
        sum => sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Address = Address([0x20; 16]);
    const DESTINATION: Address = Address([0xfd; 16]);

    fn bytes(payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let datagram = Datagram { source_port: 5683, destination_port: 61616, payload };
        datagram.emit(&SOURCE, &DESTINATION, &mut out);
        out
    }

    #[test]
    fn a_datagram_comes_back_as_it_went_out() {
        let out = bytes(b"temperature");
        let datagram = Datagram::parse(&SOURCE, &DESTINATION, &out).expect("own bytes");
        assert_eq!(
            (datagram.source_port, datagram.destination_port, datagram.payload),
            (5683, 61616, b"temperature".as_slice())
        );
    }

    #[test]
    fn every_prefix_and_every_flipped_octet_is_an_error() {
        let out = bytes(b"abc");
        for end in 0..out.len() {
            assert!(Datagram::parse(&SOURCE, &DESTINATION, &out[..end]).is_err());
            let mut bent = out.clone();
            bent[end] ^= 0x10;
            assert!(Datagram::parse(&SOURCE, &DESTINATION, &bent).is_err());
        }
    }

    #[test]
    fn no_payload_is_ever_sent_with_a_checksum_of_zero() {
        // The payload is the sum that the rest leaves, so that the whole would come to zero.
        let rest = checksum(&SOURCE, &DESTINATION, &{
            let mut out = bytes(&[0, 0]);
            out[CHECKSUM_OFFSET..HEADER_OCTETS].fill(0);
            out
        });
        let out = bytes(&rest.to_be_bytes());
        assert_eq!(out[CHECKSUM_OFFSET..HEADER_OCTETS], [0xff, 0xff]);
        assert!(Datagram::parse(&SOURCE, &DESTINATION, &out).is_ok());
    }
}
