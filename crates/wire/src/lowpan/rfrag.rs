//! Recoverable fragments and their acknowledgements (RFC 8931 s5).
//!
//! ```text
//! RFRAG      |1 1 1 0 1 0 0|E|  Datagram_Tag |X| Sequence|   Fragment_Size   |  Fragment_Offset  |
//! RFRAG-ACK  |1 1 1 0 1 0 1|E|  Datagram_Tag |   RFRAG Acknowledgment Bitmap (32 bits)           |
//! ```
//!
//! Sizes and offsets count the compressed datagram, dispatch included, in octets. When to send, to ask and to
//! give up is left to the crate `lowpan`.

use alloc::vec::Vec;

use crate::{DecodeError, Problem, Reader};

/// Octets of the header of a recoverable fragment.
pub const RFRAG_OCTETS: usize = 6;
/// Octets of an acknowledgement.
pub const RFRAG_ACK_OCTETS: usize = 6;
/// The largest Fragment_Size, ten bits.
pub const FRAGMENT_SIZE_MAX: usize = 0x03ff;
/// The largest Sequence, five bits.
pub const SEQUENCE_MAX: u8 = 31;
/// Fragments of a datagram at most: one for each bit of the bitmap.
pub const FRAGMENTS_MAX: usize = 32;

const RFRAG: u8 = 0b1110_1000;
const RFRAG_ACK: u8 = 0b1110_1010;
const DISPATCH_MASK: u8 = 0b1111_1110;
const CONGESTION: u8 = 0b0000_0001;
const ACK_REQUEST: u16 = 0x8000;
const SEQUENCE_SHIFT: u32 = 10;

/// Which part of a datagram a recoverable fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Sequence 0: the beginning, which tells how large the whole is.
    First {
        /// Octets of the compressed datagram, at least 1.
        datagram_size: u16,
    },
    /// A later fragment.
    Next {
        /// Its number, 1 to [`SEQUENCE_MAX`].
        sequence: u8,
        /// Where in the compressed datagram it begins, at least 1.
        offset: u16,
    },
    /// No part: the receiver forgets the datagram (RFC 8931 s6.3).
    Abort,
}

impl Part {
    /// The Sequence field: the number of the fragment, 0 for the first.
    pub const fn sequence(self) -> u8 {
        match self {
            Self::First { .. } | Self::Abort => 0,
            Self::Next { sequence, .. } => sequence,
        }
    }
    /// Where in the compressed datagram the fragment begins.
    pub const fn offset(self) -> u16 {
        match self {
            Self::First { .. } | Self::Abort => 0,
            Self::Next { offset, .. } => offset,
        }
    }
}

/// The header of a recoverable fragment (RFC 8931 s5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rfrag {
    /// E: a node on the path was congested.
    pub congestion: bool,
    /// Names the datagram on its link, together with the sender of the frame.
    pub datagram_tag: u8,
    /// X: the sender asks for an acknowledgement.
    pub ack_request: bool,
    /// Octets of this fragment without this header, at most [`FRAGMENT_SIZE_MAX`].
    pub fragment_size: u16,
    /// Which part of the datagram it is.
    pub part: Part,
}

impl Rfrag {
    /// Reads a frame's header; returns it and the fragment behind it.
    pub fn parse(frame: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut reader = Reader::new("RFRAG", frame);
        let congestion = read_dispatch(&mut reader, RFRAG)?;
        let datagram_tag = reader.u8("Datagram_Tag")?;
        let word = reader.u16_be("Sequence")?;
        let sequence = (word >> SEQUENCE_SHIFT) as u8 & SEQUENCE_MAX;
        let fragment_size = word & FRAGMENT_SIZE_MAX as u16;
        let before_offset = reader;
        let part = match (sequence, reader.u16_be("Fragment_Offset")?) {
            // RFC 8931 s5.1: an offset of 0 in the first fragment is a request to abort.
            (0, 0) => Part::Abort,
            (0, datagram_size) => Part::First { datagram_size },
            (_, 0) => return Err(before_offset.error("Fragment_Offset", Problem::Value)),
            (sequence, offset) => Part::Next { sequence, offset },
        };
        let before_data = reader;
        let data = reader.take(usize::from(fragment_size), "Fragment_Size")?;
        let wrong_size = match part {
            Part::First { datagram_size } => fragment_size == 0 || fragment_size > datagram_size,
            Part::Next { .. } => fragment_size == 0,
            Part::Abort => fragment_size != 0,
        };
        if wrong_size || !reader.is_empty() {
            return Err(before_data.error("Fragment_Size", Problem::Length));
        }
        let ack_request = word & ACK_REQUEST != 0;
        Ok((Self { congestion, datagram_tag, ack_request, fragment_size, part }, data))
    }

    /// Writes the header; the fragment's octets go behind it.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let sequence = u16::from(self.part.sequence() & SEQUENCE_MAX) << SEQUENCE_SHIFT;
        let ack_request = if self.ack_request { ACK_REQUEST } else { 0 };
        let word = ack_request | sequence | (self.fragment_size & FRAGMENT_SIZE_MAX as u16);
        let offset = match self.part {
            Part::First { datagram_size } => datagram_size,
            Part::Next { offset, .. } => offset,
            Part::Abort => 0,
        };
        out.extend_from_slice(&[RFRAG | u8::from(self.congestion), self.datagram_tag]);
        out.extend_from_slice(&word.to_be_bytes());
        out.extend_from_slice(&offset.to_be_bytes());
    }
}

/// Which fragments came: one bit for each, that of Sequence 0 the leftmost (RFC 8931 s5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Bitmap(pub u32);

impl Bitmap {
    /// No fragment: in an acknowledgement, the other end gives the datagram up.
    pub const NULL: Self = Self(0);
    /// All fragments of the datagram, however many there are.
    pub const FULL: Self = Self(u32::MAX);

    /// True when the fragment `sequence` is marked.
    pub const fn contains(self, sequence: u8) -> bool {
        self.0 & Self::bit(sequence) != 0
    }
    /// Marks the fragment `sequence`.
    pub const fn insert(&mut self, sequence: u8) {
        self.0 |= Self::bit(sequence);
    }
    /// How many fragments are marked.
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }
    const fn bit(sequence: u8) -> u32 {
        1 << (SEQUENCE_MAX - (sequence & SEQUENCE_MAX))
    }
}

/// The acknowledgement of recoverable fragments (RFC 8931 s5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RfragAck {
    /// E: the reassembling end saw a fragment with E set.
    pub congestion: bool,
    /// Names the datagram on its link, together with the receiver of the frame.
    pub datagram_tag: u8,
    /// What came so far.
    pub bitmap: Bitmap,
}

impl RfragAck {
    /// Reads a frame that is an acknowledgement.
    pub fn parse(frame: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("RFRAG-ACK", frame);
        let congestion = read_dispatch(&mut reader, RFRAG_ACK)?;
        let datagram_tag = reader.u8("Datagram_Tag")?;
        let bitmap = Bitmap(reader.u32_be("RFRAG Acknowledgment Bitmap")?);
        if !reader.is_empty() {
            return Err(reader.error("RFRAG Acknowledgment Bitmap", Problem::Length));
        }
        Ok(Self { congestion, datagram_tag, bitmap })
    }

    /// Writes the acknowledgement.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[RFRAG_ACK | u8::from(self.congestion), self.datagram_tag]);
        out.extend_from_slice(&self.bitmap.0.to_be_bytes());
    }
}

/// Reads the dispatch, which has to be `expected`, and returns E.
fn read_dispatch(reader: &mut Reader<'_>, expected: u8) -> Result<bool, DecodeError> {
    let start = *reader;
    let octet = reader.u8("dispatch")?;
    if octet & DISPATCH_MASK != expected {
        return Err(start.error("dispatch", Problem::Unsupported));
    }
    Ok(octet & CONGESTION != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(header: Rfrag, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        header.emit(&mut out);
        out.extend_from_slice(data);
        out
    }

    fn header(part: Part, octets: usize) -> Rfrag {
        Rfrag {
            congestion: false,
            datagram_tag: 0x55,
            ack_request: false,
            fragment_size: octets as u16,
            part,
        }
    }

    #[test]
    fn the_bits_lie_where_the_rfc_draws_them() {
        let first = Rfrag { congestion: true, ..header(Part::First { datagram_size: 0x1234 }, 2) };
        assert_eq!(frame(first, &[7, 8]), [0xe9, 0x55, 0x00, 0x02, 0x12, 0x34, 7, 8]);
        let part = Part::Next { sequence: 9, offset: 0x0102 };
        let last = Rfrag { ack_request: true, ..header(part, 1) };
        assert_eq!(frame(last, &[7]), [0xe8, 0x55, 0x80 | 9 << 2, 0x01, 0x01, 0x02, 7]);
        assert_eq!(frame(header(Part::Abort, 0), &[]), [0xe8, 0x55, 0, 0, 0, 0]);
    }

    #[test]
    fn an_acknowledgement_of_another_stack_is_read() {
        // What RIOT's GNRC answered to fragments 0 to 8 of which the third was lost, and to all of them.
        let ack = RfragAck::parse(&[0xea, 0x55, 0xdf, 0, 0, 0]).expect("a whole frame");
        assert_eq!((ack.datagram_tag, ack.congestion), (0x55, false));
        assert!((0..8).all(|sequence| ack.bitmap.contains(sequence) == (sequence != 2)));
        assert_eq!(ack.bitmap.count(), 7);
        let ack = RfragAck::parse(&[0xea, 0x55, 0xff, 0xff, 0xff, 0xff]).expect("a whole frame");
        assert_eq!(ack.bitmap, Bitmap::FULL);
    }

    #[test]
    fn the_leftmost_bit_is_the_first_fragment() {
        let mut bitmap = Bitmap::NULL;
        bitmap.insert(0);
        bitmap.insert(31);
        assert_eq!(bitmap, Bitmap(0x8000_0001));
        assert!(bitmap.contains(0) && bitmap.contains(31) && !bitmap.contains(1));
    }

    #[test]
    fn every_prefix_and_every_surplus_is_an_error() {
        let whole = frame(header(Part::Next { sequence: 1, offset: 90 }, 3), &[1, 2, 3]);
        for end in 0..whole.len() {
            assert!(Rfrag::parse(&whole[..end]).is_err(), "{end} octets");
        }
        let surplus = [&whole[..], &[4]].concat();
        assert_eq!(Rfrag::parse(&surplus).expect_err("four octets").problem, Problem::Length);
        let mut ack = Vec::new();
        RfragAck { congestion: true, datagram_tag: 1, bitmap: Bitmap::FULL }.emit(&mut ack);
        for end in 0..ack.len() {
            assert!(RfragAck::parse(&ack[..end]).is_err(), "{end} octets");
        }
        ack.push(0);
        assert!(RfragAck::parse(&ack).is_err());
    }

    #[test]
    fn sizes_that_cannot_be_are_errors() {
        for (part, data) in [
            (Part::First { datagram_size: 2 }, &[1, 2, 3][..]),
            (Part::First { datagram_size: 2 }, &[]),
            (Part::Next { sequence: 1, offset: 9 }, &[]),
            (Part::Abort, &[1]),
            (Part::Next { sequence: 1, offset: 0 }, &[1]),
        ] {
            let bytes = frame(header(part, data.len()), data);
            assert!(Rfrag::parse(&bytes).is_err(), "{part:?} with {data:?}");
        }
    }

    #[test]
    fn the_two_dispatches_are_not_taken_for_each_other() {
        let error = Rfrag::parse(&[0xea, 1, 0, 0, 0, 0]).expect_err("an acknowledgement");
        assert_eq!((error.field, error.problem), ("dispatch", Problem::Unsupported));
        assert!(RfragAck::parse(&[0xe8, 1, 0, 0, 0, 0]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_comes_back(
            congestion: bool,
            datagram_tag: u8,
            ack_request: bool,
            sequence in 0..=SEQUENCE_MAX,
            offset in 1u16..,
            octets in 1usize..=FRAGMENT_SIZE_MAX,
            bitmap: u32,
        ) {
            let part = match sequence {
                0 => Part::First { datagram_size: offset.max(octets as u16) },
                _ => Part::Next { sequence, offset },
            };
            let fragment_size = octets as u16;
            let header = Rfrag { congestion, datagram_tag, ack_request, fragment_size, part };
            let data = alloc::vec![datagram_tag; octets];
            let bytes = frame(header, &data);
            prop_assert_eq!(Rfrag::parse(&bytes), Ok((header, &data[..])));
            let ack = RfragAck { congestion, datagram_tag, bitmap: Bitmap(bitmap) };
            let mut bytes = Vec::new();
            ack.emit(&mut bytes);
            prop_assert_eq!(bytes.len(), RFRAG_ACK_OCTETS);
            prop_assert_eq!(RfragAck::parse(&bytes), Ok(ack));
        }

        #[test]
        fn no_bytes_make_the_codecs_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            if let Some(first) = bytes.first_mut() {
                *first = 0xe8 | *first & 0b11;
            }
            if let Ok((header, data)) = Rfrag::parse(&bytes) {
                prop_assert_eq!(frame(header, data), bytes.clone());
            }
            if let Ok(ack) = RfragAck::parse(&bytes) {
                let mut out = Vec::new();
                ack.emit(&mut out);
                prop_assert_eq!(out, bytes);
            }
        }
    }
}
