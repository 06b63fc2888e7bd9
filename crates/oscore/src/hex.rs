//! Octets in hexadecimal digits, as in the files of libcoap.

use alloc::vec::Vec;

/// The octets of pairs of digits.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let pair = |pair: &[u8]| {
        let digit = |one: u8| char::from(one).to_digit(16);
        Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8)
    };
    digits.len().is_multiple_of(2).then(|| digits.chunks_exact(2).map(pair).collect())?
}
