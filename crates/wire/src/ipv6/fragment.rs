//! The fragment header as a value (RFC 8200 s4.5).
//!
//! ```text
//! |  Next Header  |   Reserved    |      Fragment Offset    |Res|M|
//! |                         Identification                        |
//! ```

use alloc::vec::Vec;

use crate::{DecodeError, Reader};

/// Octets of a fragment header.
pub const FRAGMENT_HEADER_OCTETS: usize = 8;
/// The unit of the fragment offset, in octets.
pub const FRAGMENT_OFFSET_UNIT: usize = 8;

const MORE: u16 = 0b1;
const OFFSET_MASK: u16 = 0xfff8;

/// A fragment header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentHeader {
    /// What the first fragment begins with.
    pub next_header: u8,
    /// Octets of the fragmentable part before this fragment, a multiple of eight.
    pub offset: u16,
    /// Fragments follow this one.
    pub more: bool,
    /// The same in all fragments of a packet.
    pub identification: u32,
}

impl FragmentHeader {
    /// Reads the header at the start of `bytes`; reserved bits are ignored.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("IPv6 fragment header", bytes);
        let next_header = reader.u8("next header")?;
        reader.u8("reserved")?;
        let word = reader.u16_be("fragment offset")?;
        let identification = reader.u32_be("identification")?;
        let (offset, more) = (word & OFFSET_MASK, word & MORE != 0);
        Ok(Self { next_header, offset, more, identification })
    }

    /// Writes the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let word = self.offset & OFFSET_MASK | if self.more { MORE } else { 0 };
        out.extend_from_slice(&[self.next_header, 0]);
        out.extend_from_slice(&word.to_be_bytes());
        out.extend_from_slice(&self.identification.to_be_bytes());
    }

    /// True for a packet that has this header and is whole (RFC 6946).
    pub const fn is_atomic(&self) -> bool {
        self.offset == 0 && !self.more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_as_it_went_out() {
        for (offset, more) in [(0, true), (8, true), (65_528, false), (0, false)] {
            let header =
                FragmentHeader { next_header: 17, offset, more, identification: 0xdead_beef };
            let mut bytes = Vec::new();
            header.emit(&mut bytes);
            assert_eq!(bytes.len(), FRAGMENT_HEADER_OCTETS);
            assert_eq!(FragmentHeader::parse(&bytes), Ok(header));
            assert_eq!(header.is_atomic(), !more && offset == 0);
            for end in 0..bytes.len() {
                assert!(FragmentHeader::parse(&bytes[..end]).is_err());
            }
        }
    }

    #[test]
    fn the_offset_counts_octets_and_shares_its_word() {
        let bytes = [58, 0xff, 0x00, 0x4f, 0, 0, 0, 7];
        let header = FragmentHeader::parse(&bytes).expect("a whole header");
        assert_eq!((header.offset, header.more, header.identification), (72, true, 7));
    }
}
