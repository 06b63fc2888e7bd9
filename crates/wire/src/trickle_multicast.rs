//! Trickle multicast as in the early drafts of MPL (draft-ietf-roll-trickle-mcast-01), which Contiki calls ROLL TM: an
//! option in the hop-by-hop header of data, and an ICMPv6 message with the sequence numbers that a node holds.
//!
//! The draft has no assigned numbers. The option type and the ICMPv6 type are those of Contiki and Contiki-NG; the
//! ICMPv6 type is one of those for private experimentation (RFC 4443 s2.1). RFC 7731 replaced both formats ([`crate::mpl`]).

use alloc::vec::Vec;

use crate::{DecodeError, Problem, Reader};

/// M, in the option: the second set of Trickle parameters.
const OPTION_SECOND: u16 = 0x8000;
/// S, in a list: the seed identifier has 16 bits.
const LIST_SHORT: u8 = 0x80;
/// M, in a list: the second set of Trickle parameters.
const LIST_SECOND: u8 = 0x40;

/// The name of the node that a packet started at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Seed {
    /// 16 bits, carried in the option.
    Short(u16),
    /// An IPv6 address, which is the source of the packet.
    Address([u8; 16]),
}

/// Which of the two sets of Trickle parameters a packet uses: the bit M.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parameters {
    /// M = 0.
    First,
    /// M = 1.
    Second,
}

/// The option of a data packet.
///
/// ```text
///   | type 0x0c     | length 2      |M| sequence (15 bits)            |   the seed is the source address
///   | type 0x0c     | length 4      | seed-id (16 bits) |M| sequence  |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataOption {
    /// The seed identifier, if it is carried.
    pub seed: Option<u16>,
    /// The set of Trickle parameters.
    pub parameters: Parameters,
    /// Orders the packets of one seed, in serial number arithmetic with 15 bits.
    pub sequence: u16,
}

impl DataOption {
    /// Option type in Contiki.
    pub const TYPE: u8 = 0x0c;

    /// Reads the whole option, from its type on.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("trickle multicast option", bytes);
        let start = reader;
        if reader.u8("option type")? != Self::TYPE {
            return Err(start.error("option type", Problem::Unsupported));
        }
        let seed = match reader.u8("option length")? {
            2 => None,
            4 => Some(reader.u16_be("seed-id")?),
            _ => return Err(reader.error("option length", Problem::Length)),
        };
        let word = reader.u16_be("M, sequence")?;
        let parameters =
            if word & OPTION_SECOND == 0 { Parameters::First } else { Parameters::Second };
        Ok(Self { seed, parameters, sequence: word & !OPTION_SECOND })
    }

    /// Appends the whole option.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[Self::TYPE, if self.seed.is_some() { 4 } else { 2 }]);
        out.extend(self.seed.into_iter().flat_map(u16::to_be_bytes));
        let second = if self.parameters == Parameters::Second { OPTION_SECOND } else { 0 };
        out.extend_from_slice(&(self.sequence & !OPTION_SECOND | second).to_be_bytes());
    }
}

/// What a node holds of one seed.
///
/// ```text
///   |S|M| reserved  | count         | seed-id (16 octets, or 2 if S) | sequence (16 bits each) ...
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceList {
    /// The seed.
    pub seed: Seed,
    /// The set of Trickle parameters.
    pub parameters: Parameters,
    /// The sequence numbers of the packets that the node holds; at most 255.
    pub sequences: Vec<u16>,
}

/// ICMPv6 type of a message of [`SequenceList`]s in Contiki.
pub const CONTROL_TYPE: u8 = 200;

/// Reads what follows the ICMPv6 header.
pub fn parse_lists(body: &[u8]) -> Result<Vec<SequenceList>, DecodeError> {
    let mut reader = Reader::new("trickle multicast message", body);
    let mut lists = Vec::new();
    while !reader.is_empty() {
        let start = reader;
        let flags = reader.u8("S, M")?;
        if flags & !(LIST_SHORT | LIST_SECOND) != 0 {
            return Err(start.error("reserved bits", Problem::Value));
        }
        let count = reader.u8("count")?;
        let seed = if flags & LIST_SHORT == 0 {
            Seed::Address(reader.array("seed-id")?)
        } else {
            Seed::Short(reader.u16_be("seed-id")?)
        };
        let parameters =
            if flags & LIST_SECOND == 0 { Parameters::First } else { Parameters::Second };
        let sequences =
            (0..count).map(|_| reader.u16_be("sequence")).collect::<Result<_, DecodeError>>()?;
        lists.push(SequenceList { seed, parameters, sequences });
    }
    Ok(lists)
}

/// Appends what follows the ICMPv6 header. Of a list with more than 255 sequence numbers the first 255 are written.
pub fn emit_lists(lists: &[SequenceList], out: &mut Vec<u8>) {
    for list in lists {
        let second = if list.parameters == Parameters::Second { LIST_SECOND } else { 0 };
        let short = if matches!(list.seed, Seed::Short(_)) { LIST_SHORT } else { 0 };
        let count = list.sequences.len().min(usize::from(u8::MAX));
        out.extend_from_slice(&[short | second, count as u8]);
        match list.seed {
            Seed::Short(short) => out.extend_from_slice(&short.to_be_bytes()),
            Seed::Address(octets) => out.extend_from_slice(&octets),
        }
        out.extend(list.sequences[..count].iter().flat_map(|sequence| sequence.to_be_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Contiki's `out()` writes behind the first two octets of the hop-by-hop header, read off its structures: the
    /// option with M set and sequence number 0x0102, then PadN without octets.
    const CONTIKI: [u8; 6] = [0x0c, 2, 0x81, 0x02, 1, 0];

    #[test]
    fn both_forms_of_the_option_come_back_as_they_were() {
        let long = DataOption { seed: None, parameters: Parameters::Second, sequence: 0x0102 };
        let short =
            DataOption { seed: Some(0xabcd), parameters: Parameters::First, sequence: 0x7fff };
        for option in [long, short] {
            let mut bytes = Vec::new();
            option.emit(&mut bytes);
            assert_eq!(DataOption::parse(&bytes), Ok(option));
            for end in 0..bytes.len() {
                assert!(DataOption::parse(&bytes[..end]).is_err(), "{option:?} at {end}");
            }
        }
        assert_eq!(DataOption::parse(&CONTIKI), Ok(long));
        assert!(DataOption::parse(&[0x0c, 3, 0, 0, 0]).is_err());
        assert!(DataOption::parse(&[0x6d, 2, 0, 0]).is_err());
    }

    fn lists() -> Vec<SequenceList> {
        vec![
            SequenceList {
                seed: Seed::Address([0xfd; 16]),
                parameters: Parameters::Second,
                sequences: vec![1, 0x7fff],
            },
            SequenceList { seed: Seed::Short(7), parameters: Parameters::First, sequences: vec![] },
        ]
    }

    #[test]
    fn lists_come_back_as_they_were() {
        let mut bytes = Vec::new();
        emit_lists(&lists(), &mut bytes);
        assert_eq!(bytes[..2], [0x40, 2]);
        assert_eq!(bytes[18..], [0, 1, 0x7f, 0xff, 0x80, 0, 0, 7]);
        assert_eq!(parse_lists(&bytes), Ok(lists()));
        for end in (1..bytes.len()).filter(|end| *end != 22) {
            assert!(parse_lists(&bytes[..end]).is_err(), "{end} octets");
        }
    }

    #[test]
    fn reserved_bits_of_a_list_are_an_error() {
        let error = parse_lists(&[0x81, 0, 0, 7]).expect_err("a reserved bit");
        assert_eq!((error.field, error.offset), ("reserved bits", 0));
    }
}
