//! The token, which ties a response to its request (RFC 7252 s5.3.1), and how its length is written
//! (RFC 8974 s2.1).
//!
//! ```text
//!   TKL   0..=8    as many octets
//!         13       8 bits of length less 13 follow the header
//!         14       16 bits of length less 269 follow the header
//!         15       reserved: a message format error
//! ```
//! Lengths 9 to 12 are written with TKL too: RFC 8974 makes them valid.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::TOKEN_LEN_MAX;
use crate::Problem;

/// The longest token of RFC 8974 s2.1, octets.
pub const TOKEN_LEN_EXTENDED_MAX: usize = 65_804;
/// First length that needs one octet more.
const ONE_OCTET_FROM: usize = 13;
/// First length that needs two octets more.
const TWO_OCTETS_FROM: usize = 269;

/// Octets chosen by the client and echoed by the server: 0 to 8, or more where both ends know RFC
/// 8974.
///
/// Two tokens are equal when length and octets are: `00` and `0000` differ. The usual eight octets
/// lie in the value itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(Octets);

/// Always [`Octets::Short`] when it fits, so that equality can be derived.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Octets {
    Short { len: u8, bytes: [u8; TOKEN_LEN_MAX] },
    Long(Box<[u8]>),
}

impl Token {
    /// The token of length zero.
    pub const EMPTY: Self = Self(Octets::Short { len: 0, bytes: [0; TOKEN_LEN_MAX] });

    /// A token of these octets, if they are not more than [`TOKEN_LEN_EXTENDED_MAX`].
    #[inline]
    pub fn new(octets: &[u8]) -> Option<Self> {
        let len = octets.len();
        if len <= TOKEN_LEN_MAX {
            let mut bytes = [0; TOKEN_LEN_MAX];
            bytes[..len].copy_from_slice(octets);
            return Some(Self(Octets::Short { len: len as u8, bytes }));
        }
        (len <= TOKEN_LEN_EXTENDED_MAX).then(|| Self(Octets::Long(octets.into())))
    }
    /// The `len` low octets of a number, most significant first; more than eight count as eight.
    pub fn from_number(number: u64, len: usize) -> Self {
        let len = len.min(TOKEN_LEN_MAX);
        let mut bytes = [0; TOKEN_LEN_MAX];
        bytes[..len].copy_from_slice(&number.to_be_bytes()[TOKEN_LEN_MAX - len..]);
        Self(Octets::Short { len: len as u8, bytes })
    }
    /// Its octets.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Octets::Short { len, bytes } => &bytes[..usize::from(*len)],
            Octets::Long(octets) => octets,
        }
    }
    /// How many octets it has.
    pub const fn len(&self) -> usize {
        match &self.0 {
            Octets::Short { len, .. } => *len as usize,
            Octets::Long(octets) => octets.len(),
        }
    }
    /// True for the token of length zero.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The four bits of the header that stand for its length.
    pub const fn nibble(&self) -> u8 {
        match self.len() {
            len @ 0..ONE_OCTET_FROM => len as u8,
            ONE_OCTET_FROM..TWO_OCTETS_FROM => 13,
            _ => 14,
        }
    }
    /// How many octets [`Token::emit`] appends.
    pub const fn encoded_len(&self) -> usize {
        let extension = match self.nibble() {
            13 => 1,
            14 => 2,
            _ => 0,
        };
        extension + self.len()
    }
    /// Appends what follows the header: the rest of the length, then the octets.
    #[inline]
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self.nibble() {
            13 => out.push((self.len() - ONE_OCTET_FROM) as u8),
            14 => {
                let extension = (self.len() - TWO_OCTETS_FROM) as u16;
                out.extend_from_slice(&extension.to_be_bytes());
            }
            _ => {}
        }
        out.extend_from_slice(self.as_bytes());
    }
}

/// The length of a token whose header says `nibble`, and how many octets of `rest`, which follows
/// the header, spell it.
#[inline]
pub(super) fn read_length(nibble: u8, rest: &[u8]) -> Result<(usize, usize), Problem> {
    match (nibble, rest) {
        (0..=12, _) => Ok((usize::from(nibble), 0)),
        (13, [extension, ..]) => Ok((usize::from(*extension) + ONE_OCTET_FROM, 1)),
        (14, [high, low, ..]) => {
            Ok((usize::from(u16::from_be_bytes([*high, *low])) + TWO_OCTETS_FROM, 2))
        }
        (13 | 14, _) => Err(Problem::Truncated),
        // RFC 8974 s2.1: 15 is reserved and MUST be processed as a message format error.
        _ => Err(Problem::Value),
    }
}

impl Default for Token {
    fn default() -> Self {
        Self::EMPTY
    }
}
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_holds_zero_to_65804_octets() {
        for len in [0, 1, 8, 9, 12, 13, 268, 269, TOKEN_LEN_EXTENDED_MAX] {
            let octets = vec![0xa5; len];
            let token = Token::new(&octets).expect("not too long");
            assert_eq!((token.as_bytes(), token.len()), (&octets[..], len));
        }
        assert_eq!(Token::new(&vec![0; TOKEN_LEN_EXTENDED_MAX + 1]), None);
    }

    #[test]
    fn length_is_part_of_the_token() {
        assert_ne!(Token::new(&[0]), Token::new(&[0, 0]));
        assert_ne!(Token::new(&[0; 8]), Token::new(&[0; 9]));
        assert_eq!(Token::from_number(0x0102, 1), Token::new(&[2]).expect("one octet"));
        assert_eq!(Token::from_number(7, 99).len(), 8);
    }

    #[test]
    fn lengths_at_the_borders_of_their_encodings_read_back() {
        for len in [0, 8, 9, 12, 13, 268, 269, TOKEN_LEN_EXTENDED_MAX] {
            let token = Token::new(&vec![7; len]).expect("not too long");
            let mut bytes = Vec::new();
            token.emit(&mut bytes);
            assert_eq!(bytes.len(), token.encoded_len());
            let extension = bytes.len() - len;
            assert_eq!(read_length(token.nibble(), &bytes), Ok((len, extension)));
            for cut in 0..extension {
                let cut = read_length(token.nibble(), &bytes[..cut]);
                assert_eq!(cut, Err(Problem::Truncated));
            }
        }
        assert_eq!(read_length(15, &[0; 4]), Err(Problem::Value));
    }
}
