//! The RPL option in the hop-by-hop header of data packets (RFC 6553): direction, error bits and the rank
//! of the last forwarder, by which loops are found (RFC 6550 s11.2).

use alloc::vec::Vec;

use crate::{DecodeError, Problem, Reader};

/// The RPL option.
///
/// ```text
///   | 0x63 or 0x23  | length 4      |O|R|F| 0 0 0 0 0 | RPLInstanceID |
///   | SenderRank                    | sub-TLVs (none defined) ...
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopByHopOption {
    /// Its type is 0x23, which nodes that do not know it skip, in place of 0x63 (RFC 9008 s4.2).
    pub skippable: bool,
    /// O: the packet goes down, away from the root.
    pub down: bool,
    /// R: its rank went the wrong way once already.
    pub rank_error: bool,
    /// F: it comes back because the child it was sent to has no route.
    pub forwarding_error: bool,
    /// RPLInstanceID.
    pub instance: u8,
    /// DAGRank of the last forwarder, in hops (the whole part of rank over MinHopRankIncrease).
    pub sender_rank: u16,
}

impl HopByHopOption {
    /// Option type: RFC 6553 s6. The two high bits say "drop the packet if you do not know this".
    pub const TYPE: u8 = 0x63;
    /// Option type of RFC 9008 s4.1, which nodes that do not know it skip.
    pub const TYPE_SKIPPABLE: u8 = 0x23;
    /// Octets of the whole option; with the two octets of the hop-by-hop header they make eight.
    pub const LENGTH: usize = 6;

    const DATA_LENGTH: u8 = 4;

    /// Reads the whole option, from its type on. Sub-TLVs are skipped (RFC 6553 s3).
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("RPL option", bytes);
        let skippable = match reader.u8("option type")? {
            Self::TYPE => false,
            Self::TYPE_SKIPPABLE => true,
            _ => return Err(reader.error("option type", Problem::Unsupported)),
        };
        let length = reader.u8("option length")?;
        if length < Self::DATA_LENGTH || reader.remaining() < usize::from(length) {
            return Err(reader.error("option length", Problem::Length));
        }
        let flags = reader.u8("O, R, F")?;
        Ok(Self {
            skippable,
            down: flags & 0x80 != 0,
            rank_error: flags & 0x40 != 0,
            forwarding_error: flags & 0x20 != 0,
            instance: reader.u8("RPLInstanceID")?,
            sender_rank: reader.u16_be("SenderRank")?,
        })
    }

    /// Appends the whole option.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.down) << 7
            | u8::from(self.rank_error) << 6
            | u8::from(self.forwarding_error) << 5;
        let kind = if self.skippable { Self::TYPE_SKIPPABLE } else { Self::TYPE };
        out.extend_from_slice(&[kind, Self::DATA_LENGTH, flags, self.instance]);
        out.extend_from_slice(&self.sender_rank.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_flags_comes_back_as_it_was() {
        for (flags, kind) in (0..8u8).flat_map(|flags| [(flags, 0x63), (flags, 0x23)]) {
            let option = HopByHopOption {
                skippable: kind == 0x23,
                down: flags & 4 != 0,
                rank_error: flags & 2 != 0,
                forwarding_error: flags & 1 != 0,
                instance: 0x1e,
                sender_rank: 0x0203,
            };
            let mut bytes = Vec::new();
            option.emit(&mut bytes);
            assert_eq!(bytes, [kind, 4, flags << 5, 0x1e, 2, 3]);
            assert_eq!(HopByHopOption::parse(&bytes), Ok(option));
            for end in 0..bytes.len() {
                assert!(HopByHopOption::parse(&bytes[..end]).is_err());
            }
        }
    }

    #[test]
    fn sub_tlvs_are_skipped_and_other_options_refused() {
        let with_tlv = [0x23, 7, 0x80, 1, 0, 5, 9, 1, 0];
        assert_eq!(HopByHopOption::parse(&with_tlv).map(|option| option.sender_rank), Ok(5));
        assert!(HopByHopOption::parse(&[0x6d, 4, 0, 0, 0, 0]).is_err());
        assert!(HopByHopOption::parse(&[0x63, 3, 0, 0, 0, 0]).is_err());
    }
}
