//! The short strings of octets that OSCORE is made of: Sender and Recipient IDs, and Partial IVs
//! (RFC 8613 s3.1 and s5).

use core::fmt;

use crate::params::{IDENTITY_LEN_MAX, PARTIAL_IV_LEN_MAX, SEQUENCE_MAX};

/// A Sender or Recipient ID: 0 to 7 octets; `00` and the empty one differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Identity {
    len: u8,
    bytes: [u8; IDENTITY_LEN_MAX],
}

impl Identity {
    /// An identity of these octets, if they are not more than seven.
    pub fn new(octets: &[u8]) -> Option<Self> {
        let mut bytes = [0; IDENTITY_LEN_MAX];
        bytes.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(Self { len: octets.len() as u8, bytes })
    }
    /// Its octets.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(")?;
        self.as_bytes().iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        f.write_str(")")
    }
}

/// A Partial IV: a sequence number in one to five octets, the fewest that hold it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartialIv {
    number: u64,
}

impl PartialIv {
    /// The Partial IV of a sequence number, if it is below 2^40.
    pub const fn new(number: u64) -> Option<Self> {
        if number <= SEQUENCE_MAX { Some(Self { number }) } else { None }
    }
    /// Reads the octets of a header; `None` if they are not one to five, or begin with a zero that
    /// is not the number.
    pub fn read(octets: &[u8]) -> Option<Self> {
        // RFC 8613 s5: leading zeros SHALL be removed, except that 0 is the octet 00.
        let minimal = match octets {
            [] => false,
            [0] => true,
            [first, ..] => *first != 0 && octets.len() <= PARTIAL_IV_LEN_MAX,
        };
        let number = || octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet));
        minimal.then(|| Self { number: number() })
    }
    /// The sequence number.
    pub const fn number(self) -> u64 {
        self.number
    }
    /// All five octets, of which the last [`PartialIv::len`] are sent.
    pub fn padded(self) -> [u8; PARTIAL_IV_LEN_MAX] {
        let mut padded = [0; PARTIAL_IV_LEN_MAX];
        padded.copy_from_slice(&self.number.to_be_bytes()[8 - PARTIAL_IV_LEN_MAX..]);
        padded
    }
    /// How many octets are sent, one to five.
    #[expect(clippy::len_without_is_empty, reason = "a Partial IV is never empty")]
    pub const fn len(self) -> usize {
        let bits = 64 - self.number.leading_zeros() as usize;
        if bits == 0 { 1 } else { bits.div_ceil(8) }
    }
}

impl fmt::Debug for PartialIv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartialIv({})", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_iv_takes_the_fewest_octets_and_reads_back() {
        for (number, octets) in [
            (0, &[0][..]),
            (1, &[1]),
            (0xff, &[0xff]),
            (0x100, &[1, 0]),
            (SEQUENCE_MAX, &[0xff, 0xff, 0xff, 0xff, 0xff]),
        ] {
            let piv = PartialIv::new(number).expect("below 2^40");
            assert_eq!(&piv.padded()[PARTIAL_IV_LEN_MAX - piv.len()..], octets);
            assert_eq!(PartialIv::read(octets), Some(piv));
        }
        assert_eq!(PartialIv::new(SEQUENCE_MAX + 1), None);
    }

    #[test]
    fn a_partial_iv_with_leading_zeros_or_of_the_wrong_length_is_none() {
        for octets in [&[][..], &[0, 0], &[0, 1], &[1, 2, 3, 4, 5, 6]] {
            assert_eq!(PartialIv::read(octets), None);
        }
    }

    #[test]
    fn an_identity_has_at_most_seven_octets_and_its_length_counts() {
        assert_eq!(Identity::new(&[0; 8]), None);
        assert_ne!(Identity::new(&[]), Identity::new(&[0]));
        assert_eq!(Identity::new(b"seven77").map(|id| id.as_bytes().len()), Some(7));
    }
}
