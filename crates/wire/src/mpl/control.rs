//! The MPL control message: what its sender has of each seed (RFC 7731 s6.2, s6.3).

use alloc::vec::Vec;

use super::SeedId;
use crate::{DecodeError, Reader};

const HEADER: &str = "MPL control message";

/// The most octets of a bitmap: `bm-len` has 6 bits (RFC 7731 s6.3).
pub const BITMAP_OCTETS_MAX: usize = 63;

/// A control message without its ICMPv6 header: one entry for each seed that its sender knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// The entries; there may be none.
    pub seeds: Vec<SeedInfo>,
}

/// What the sender of a control message has of one seed.
///
/// ```text
///   | min-seqno     | bm-len    | S | seed-id (0, 2, 8 or 16 octets) ...
///   | buffered-mpl-messages: bit i, from the left, for min-seqno + i ...
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedInfo {
    /// The seed.
    pub seed: SeedId,
    /// The smallest sequence number that the sender accepts.
    pub min_sequence: u8,
    bitmap: Vec<u8>,
}

impl SeedInfo {
    /// An entry without messages.
    pub const fn new(seed: SeedId, min_sequence: u8) -> Self {
        Self { seed, min_sequence, bitmap: Vec::new() }
    }
    /// Notes that the sender holds the message with this sequence number.
    pub fn insert(&mut self, sequence: u8) {
        let bit = usize::from(sequence.wrapping_sub(self.min_sequence));
        if self.bitmap.len() <= bit / 8 {
            self.bitmap.resize(bit / 8 + 1, 0);
        }
        self.bitmap[bit / 8] |= 0x80 >> (bit % 8);
    }
    /// True if the sender holds the message with this sequence number.
    pub fn contains(&self, sequence: u8) -> bool {
        let bit = usize::from(sequence.wrapping_sub(self.min_sequence));
        self.bitmap.get(bit / 8).is_some_and(|octet| octet & 0x80 >> (bit % 8) != 0)
    }
    /// The sequence numbers of the messages that the sender holds. Bits from 256 on stand for no sequence number.
    pub fn sequences(&self) -> impl Iterator<Item = u8> {
        let all = (0..=u8::MAX).map(|offset| self.min_sequence.wrapping_add(offset));
        all.filter(|sequence| self.contains(*sequence))
    }

    fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let min_sequence = reader.u8("min-seqno")?;
        let sizes = reader.u8("bm-len, S")?;
        let seed = SeedId::parse(reader, sizes)?;
        let bitmap = reader.take(usize::from(sizes >> 2), "buffered-mpl-messages")?.to_vec();
        Ok(Self { seed, min_sequence, bitmap })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[
            self.min_sequence,
            (self.bitmap.len() as u8) << 2 | self.seed.size_bits(),
        ]);
        self.seed.emit(out);
        out.extend_from_slice(&self.bitmap);
    }
}

impl Control {
    /// ICMPv6 type: RFC 7731 s11.2.
    pub const TYPE: u8 = 159;

    /// Reads what follows the ICMPv6 header.
    pub fn parse(body: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(HEADER, body);
        let mut seeds = Vec::new();
        while !reader.is_empty() {
            seeds.push(SeedInfo::parse(&mut reader)?);
        }
        Ok(Self { seeds })
    }

    /// Appends what follows the ICMPv6 header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        for seed in &self.seeds {
            seed.emit(out);
        }
    }

    /// What the sender has of `seed`, where `source` is the IPv6 source address of the message.
    pub fn of(&self, seed: SeedId, source: crate::ipv6::Address) -> Option<&SeedInfo> {
        self.seeds.iter().find(|info| info.seed.resolve(source) == seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Control {
        let mut short = SeedInfo::new(SeedId::Short(0xabcd), 250);
        for sequence in [250, 252, 3] {
            short.insert(sequence);
        }
        let mut long = SeedInfo::new(SeedId::Long([7; 16]), 0);
        long.insert(255);
        Control { seeds: vec![short, SeedInfo::new(SeedId::Source, 9), long] }
    }

    #[test]
    fn a_control_message_comes_back_as_it_was() {
        let mut bytes = Vec::new();
        example().emit(&mut bytes);
        // Bits 0, 2 and 9 of a bitmap of two octets, from the left.
        assert_eq!(bytes[..6], [250, 2 << 2 | 1, 0xab, 0xcd, 0b1010_0000, 0b0100_0000]);
        assert_eq!(bytes[6..8], [9, 0]);
        assert_eq!(bytes[8..10], [0, 32 << 2 | 3]);
        assert_eq!(Control::parse(&bytes), Ok(example()));
        assert_eq!(Control::parse(&[]), Ok(Control::default()));
    }

    #[test]
    fn a_prefix_is_an_error_unless_it_ends_between_two_entries() {
        let mut bytes = Vec::new();
        example().emit(&mut bytes);
        for end in (1..bytes.len()).filter(|end| ![6, 8].contains(end)) {
            assert!(Control::parse(&bytes[..end]).is_err(), "{end} octets");
        }
    }

    #[test]
    fn a_bitmap_counts_from_the_smallest_sequence_number_around_the_end() {
        let control = example();
        let held: Vec<u8> = control.seeds[0].sequences().collect();
        assert_eq!(held, [250, 252, 3]);
        assert!(!control.seeds[0].contains(251) && !control.seeds[0].contains(249));
        let source = crate::ipv6::Address([7; 16]);
        assert_eq!(
            control.of(SeedId::Long([7; 16]), source).map(|info| info.min_sequence),
            Some(9)
        );
    }
}
