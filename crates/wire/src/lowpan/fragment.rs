//! Fragment headers (RFC 4944 s5.3).
//!
//! ```text
//! FRAG1  |1 1 0 0 0|    datagram_size    |         datagram_tag          |
//! FRAGN  |1 1 1 0 0|    datagram_size    |         datagram_tag          | datagram_offset |
//! ```

use alloc::vec::Vec;

use crate::{DecodeError, Problem, Reader};

/// Octets of the header of a first fragment.
pub const FIRST_OCTETS: usize = 4;
/// Octets of the header of a later fragment.
pub const NEXT_OCTETS: usize = 5;
/// The largest datagram_size, eleven bits.
pub const DATAGRAM_SIZE_MAX: usize = 0x07ff;
/// The unit of datagram_offset, in octets.
pub const OFFSET_UNIT: usize = 8;

const FIRST: u8 = 0b1100_0000;
const NEXT: u8 = 0b1110_0000;
const DISPATCH_MASK: u8 = 0b1111_1000;

/// A FRAG1 or FRAGN header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentHeader {
    /// Octets of the whole IPv6 packet before compression, at most [`DATAGRAM_SIZE_MAX`].
    pub datagram_size: u16,
    /// The same in all fragments of a datagram.
    pub datagram_tag: u16,
    /// Where in the packet the fragment begins, in octets; a multiple of eight, 0 for the first.
    pub offset: u16,
}

impl FragmentHeader {
    /// Reads the header; the fragment's data follows at [`FragmentHeader::octets`].
    pub fn parse(frame: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("fragment header", frame);
        let start = reader;
        let word = reader.u16_be("datagram_size")?;
        let datagram_tag = reader.u16_be("datagram_tag")?;
        let offset = match (word >> 8) as u8 & DISPATCH_MASK {
            FIRST => 0,
            NEXT => u16::from(reader.u8("datagram_offset")?) * OFFSET_UNIT as u16,
            _ => return Err(start.error("dispatch", Problem::Unsupported)),
        };
        let datagram_size = word & DATAGRAM_SIZE_MAX as u16;
        if offset >= datagram_size {
            return Err(reader.error("datagram_offset", Problem::Length));
        }
        Ok(Self { datagram_size, datagram_tag, offset })
    }

    /// Writes the header: FRAG1 for offset 0, FRAGN otherwise.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let dispatch = if self.offset == 0 { FIRST } else { NEXT };
        let word = u16::from(dispatch) << 8 | (self.datagram_size & DATAGRAM_SIZE_MAX as u16);
        out.extend_from_slice(&word.to_be_bytes());
        out.extend_from_slice(&self.datagram_tag.to_be_bytes());
        if self.offset != 0 {
            out.push((self.offset / OFFSET_UNIT as u16) as u8);
        }
    }

    /// Octets of the header itself.
    pub const fn octets(&self) -> usize {
        if self.offset == 0 { FIRST_OCTETS } else { NEXT_OCTETS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(header: FragmentHeader) -> Vec<u8> {
        let mut out = Vec::new();
        header.emit(&mut out);
        out
    }

    #[test]
    fn both_headers_come_back_as_they_went_out() {
        for offset in [0, 8, 96, 2040] {
            let header = FragmentHeader { datagram_size: 2047, datagram_tag: 0xbeef, offset };
            let out = bytes(header);
            assert_eq!(out.len(), header.octets());
            assert_eq!(FragmentHeader::parse(&out), Ok(header));
            for end in 0..out.len() {
                assert!(FragmentHeader::parse(&out[..end]).is_err());
            }
        }
    }

    #[test]
    fn a_fragment_that_begins_behind_its_datagram_is_an_error() {
        let out = bytes(FragmentHeader { datagram_size: 96, datagram_tag: 1, offset: 96 });
        let error = FragmentHeader::parse(&out).expect_err("nothing left at octet 96");
        assert_eq!(error.field, "datagram_offset");
    }

    #[test]
    fn another_dispatch_is_not_a_fragment() {
        let error = FragmentHeader::parse(&[0x7a, 0x33, 0, 0]).expect_err("IPHC");
        assert_eq!(error.problem, Problem::Unsupported);
    }
}
