//! The MPL option of a data message (RFC 7731 s6.1).

use alloc::vec::Vec;

use super::SeedId;
use crate::{DecodeError, Problem, Reader};

const HEADER: &str = "MPL option";
const LARGEST: u8 = 0b0010_0000;
const VERSION: u8 = 0b0001_0000;

/// The option that names a data message by its seed and sequence number.
///
/// ```text
///   | type 0x6d     | length        |
///   | S |M|V|  rsv  | sequence      | seed-id (0, 2, 8 or 16 octets) ...
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataOption {
    /// The seed of the message.
    pub seed: SeedId,
    /// M: the sender knows no larger sequence number of this seed.
    pub is_largest: bool,
    /// Orders the messages of one seed, in the serial number arithmetic of RFC 1982 with 8 bits.
    pub sequence: u8,
}

impl DataOption {
    /// Option type: RFC 7731 s11.1. Nodes that do not know it discard the packet, and forwarders change M.
    pub const TYPE: u8 = 0x6d;
    /// Octets of S, M, V and the sequence number.
    const FIXED_OCTETS: usize = 2;

    /// Reads the whole option, from its type on. Octets after the seed identifier are skipped (s6.1: fields of later
    /// versions).
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(HEADER, bytes);
        let start = reader;
        if reader.u8("option type")? != Self::TYPE {
            return Err(start.error("option type", Problem::Unsupported));
        }
        let length = usize::from(reader.u8("option length")?);
        if reader.remaining() < length {
            return Err(reader.error("option length", Problem::Length));
        }
        let at_flags = reader;
        let flags = reader.u8("S, M, V")?;
        // RFC 7731 s6.1: a message in which V is 1 MUST be dropped.
        if flags & VERSION != 0 {
            return Err(at_flags.error("V", Problem::Unsupported));
        }
        let sequence = reader.u8("sequence")?;
        let seed = SeedId::parse(&mut reader, flags >> 6)?;
        if length < Self::FIXED_OCTETS + seed.octets() {
            return Err(at_flags.error("option length", Problem::Length));
        }
        Ok(Self { seed, is_largest: flags & LARGEST != 0, sequence })
    }

    /// Appends the whole option.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let largest = if self.is_largest { LARGEST } else { 0 };
        let length = Self::FIXED_OCTETS + self.seed.octets();
        let flags = self.seed.size_bits() << 6 | largest;
        out.extend_from_slice(&[Self::TYPE, length as u8, flags, self.sequence]);
        self.seed.emit(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv6::{Extension, ExtensionKind, HEADER_OCTETS};

    const SEEDS: [SeedId; 4] = [
        SeedId::Source,
        SeedId::Short(0x0018),
        SeedId::Extended([1, 2, 3, 4, 5, 6, 7, 8]),
        SeedId::Long([9; 16]),
    ];

    #[test]
    fn every_length_of_a_seed_comes_back_as_it_was() {
        for (seed, is_largest) in SEEDS.into_iter().flat_map(|seed| [(seed, true), (seed, false)]) {
            let option = DataOption { seed, is_largest, sequence: 0xfe };
            let mut bytes = Vec::new();
            option.emit(&mut bytes);
            assert_eq!(bytes.len(), 4 + seed.octets());
            assert_eq!(DataOption::parse(&bytes), Ok(option));
            for end in 0..bytes.len() {
                assert!(DataOption::parse(&bytes[..end]).is_err(), "{option:?} at {end}");
            }
        }
    }

    /// The beginning of an echo request with an MPL option, out of the tests that OpenThread has for its own parser of
    /// captures (tests/scripts/thread-cert/test_ipv6.py).
    #[test]
    fn the_option_in_a_packet_of_openthread_is_read_and_written_as_it_came() {
        let mut packet = [0u8; HEADER_OCTETS + 8];
        packet[HEADER_OCTETS..].copy_from_slice(&[0x3a, 0, 0x6d, 4, 0x40, 2, 0, 0x18]);
        let extension = Extension::parse(ExtensionKind::HopByHop, &packet, HEADER_OCTETS)
            .expect("a whole header");
        let expected = DataOption { seed: SeedId::Short(0x0018), is_largest: false, sequence: 2 };
        assert_eq!(DataOption::parse(&extension.bytes[2..]), Ok(expected));
        let mut bytes = Vec::new();
        expected.emit(&mut bytes);
        assert_eq!(bytes, &extension.bytes[2..]);
    }

    #[test]
    fn another_version_is_not_supported_and_reserved_bits_are_ignored() {
        let error = DataOption::parse(&[0x6d, 2, 0x10, 1]).expect_err("V is set");
        assert_eq!((error.field, error.offset, error.problem), ("V", 2, Problem::Unsupported));
        assert_eq!(
            DataOption::parse(&[0x6d, 2, 0x2f, 1]).map(|option| option.is_largest),
            Ok(true)
        );
    }

    #[test]
    fn a_length_that_is_too_short_for_the_seed_is_an_error_and_a_longer_one_is_not() {
        assert!(DataOption::parse(&[0x6d, 3, 0x40, 1, 0, 5]).is_err());
        let longer = [0x6d, 5, 0x40, 1, 0, 5, 0xff];
        assert_eq!(DataOption::parse(&longer).map(|option| option.seed), Ok(SeedId::Short(5)));
        assert!(DataOption::parse(&[0x63, 2, 0, 1]).is_err());
    }
}
