//! The token, which ties a response to its request (RFC 7252 s5.3.1).

use core::fmt;

use super::TOKEN_LEN_MAX;

/// 0 to 8 octets, chosen by the client and echoed by the server.
///
/// Two tokens are equal when length and octets are: `00` and `0000` differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Token {
    len: u8,
    bytes: [u8; TOKEN_LEN_MAX],
}

impl Token {
    /// The token of length zero.
    pub const EMPTY: Self = Self { len: 0, bytes: [0; TOKEN_LEN_MAX] };

    /// A token of these octets, if they are not more than eight.
    pub fn new(octets: &[u8]) -> Option<Self> {
        let mut token = Self::EMPTY;
        token.bytes.get_mut(..octets.len())?.copy_from_slice(octets);
        token.len = octets.len() as u8;
        Some(token)
    }
    /// The `len` low octets of a number, most significant first; more than eight count as eight.
    pub fn from_number(number: u64, len: usize) -> Self {
        let len = len.min(TOKEN_LEN_MAX);
        let mut token = Self { len: len as u8, ..Self::EMPTY };
        token.bytes[..len].copy_from_slice(&number.to_be_bytes()[TOKEN_LEN_MAX - len..]);
        token
    }
    /// Its octets.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
    /// How many octets it has.
    pub const fn len(&self) -> usize {
        self.len as usize
    }
    /// True for the token of length zero.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
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
    fn a_token_holds_zero_to_eight_octets() {
        for len in 0..=8 {
            let octets = vec![0xa5; len];
            let token = Token::new(&octets).expect("at most eight");
            assert_eq!((token.as_bytes(), token.len()), (&octets[..], len));
        }
        assert_eq!(Token::new(&[0; 9]), None);
    }

    #[test]
    fn length_is_part_of_the_token() {
        assert_ne!(Token::new(&[0]), Token::new(&[0, 0]));
        assert_eq!(Token::from_number(0x0102, 1), Token::new(&[2]).expect("one octet"));
        assert_eq!(Token::from_number(7, 99).len(), 8);
    }
}
