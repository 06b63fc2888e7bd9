//! The value of the OSCORE option: the compressed header of a COSE object (RFC 8613 s6.1, RFC 10021 s4.1).
//!
//! ```text
//!    0 1 2 3 4 5 6 7   n octets   1 octet         s octets      the rest
//!   +-+-+-+-+-+-+-+-+------------+---------------+-------------+-----+
//!   |0 0|g|h|k|  n  | Partial IV | s, if h is set | kid context | kid |
//!   +-+-+-+-+-+-+-+-+------------+---------------+-------------+-----+
//! ```

use alloc::vec::Vec;

use lowmesh_wire::{DecodeError, Problem, Reader};
use minicbor::{Decoder, Encoder};

use crate::PartialIv;
use crate::params::{PARTIAL_IV_LEN_MAX, RENEWAL_WRAPPER_LEN};

const KID_CONTEXT_FLAG: u8 = 0x10;
const KID_FLAG: u8 = 0x08;
const LEN_BITS: u8 = 0x07;
/// RFC 10021 s4.1: the Group Flag.
const GROUP_FLAG: u8 = 0x20;
const RESERVED_BITS: u8 = 0xc0;

/// What an OSCORE option says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Header<'a> {
    /// The sequence number of the message; always there in requests.
    pub partial_iv: Option<PartialIv>,
    /// The ID Context, in requests that say it; at most 255 octets.
    pub kid_context: Option<&'a [u8]>,
    /// The Sender ID; always there in requests.
    pub kid: Option<&'a [u8]>,
    /// The message is protected in group mode.
    pub group: bool,
}

impl<'a> Header<'a> {
    /// Reads an option's value.
    pub fn parse(value: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("OSCORE option", value);
        // RFC 8613 s6.1: without flags the value is empty.
        if reader.is_empty() {
            return Ok(Self::default());
        }
        let flags = reader.u8("flags")?;
        // RFC 8613 s6.1: with a reserved bit set the message is malformed.
        if flags & RESERVED_BITS != 0 || flags == 0 {
            return Err(reader.error("flags", Problem::Value));
        }
        let partial_iv = match usize::from(flags & LEN_BITS) {
            0 => None,
            len if len > PARTIAL_IV_LEN_MAX => return Err(reader.error("flags", Problem::Value)),
            len => {
                let octets = reader.take(len, "Partial IV")?;
                let piv = PartialIv::read(octets);
                Some(piv.ok_or_else(|| reader.error("Partial IV", Problem::Value))?)
            }
        };
        let kid_context = if flags & KID_CONTEXT_FLAG == 0 {
            None
        } else {
            let len = reader.u8("kid context length")?;
            Some(reader.take(usize::from(len), "kid context")?)
        };
        let kid = (flags & KID_FLAG != 0).then(|| reader.rest());
        if !reader.is_empty() {
            return Err(reader.error("end of option", Problem::Length));
        }
        Ok(Self { partial_iv, kid_context, kid, group: flags & GROUP_FLAG != 0 })
    }
    /// Appends the option's value. Of a kid context 255 octets are written.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let len = self.partial_iv.map_or(0, PartialIv::len);
        let context = if self.kid_context.is_some() { KID_CONTEXT_FLAG } else { 0 };
        let kid = if self.kid.is_some() { KID_FLAG } else { 0 };
        let group = if self.group { GROUP_FLAG } else { 0 };
        let flags = group | context | kid | len as u8;
        if flags == 0 {
            return;
        }
        out.push(flags);
        if let Some(piv) = self.partial_iv {
            out.extend_from_slice(&piv.padded()[PARTIAL_IV_LEN_MAX - len..]);
        }
        if let Some(context) = self.kid_context {
            let context = &context[..context.len().min(usize::from(u8::MAX))];
            out.push(context.len() as u8);
            out.extend_from_slice(context);
        }
        out.extend_from_slice(self.kid.unwrap_or_default());
    }
}

/// Octets as a CBOR byte string, as B.2 has kid contexts.
pub(crate) fn wrapped(octets: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(octets.len() + RENEWAL_WRAPPER_LEN);
    Encoder::new(&mut out).bytes(octets).expect("a Vec takes everything");
    out
}

/// What is inside of a kid context that is one CBOR byte string.
pub(crate) fn unwrapped(kid_context: &[u8]) -> Option<&[u8]> {
    let mut decoder = Decoder::new(kid_context);
    let inside = decoder.bytes().ok()?;
    (decoder.position() == kid_context.len()).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8613 s6.3, the five examples.
    fn examples() -> [(Header<'static>, &'static [u8]); 5] {
        let header =
            |piv, kid| Header { partial_iv: PartialIv::new(piv), kid, ..Header::default() };
        [
            (header(5, Some(b"\x25")), b"\x09\x05\x25"),
            (header(0, Some(b"")), b"\x09\x00"),
            (Header { kid_context: Some(b"Dalek"), ..header(5, Some(b"")) }, b"\x19\x05\x05Dalek"),
            (Header::default(), b""),
            (header(7, None), b"\x01\x07"),
        ]
    }

    /// RFC 10021 s4.3, the examples that RFC 8613 has not.
    fn group_examples() -> [(Header<'static>, &'static [u8]); 3] {
        let request = Header {
            partial_iv: PartialIv::new(5),
            kid_context: Some(b"Dal"),
            kid: Some(b"\x25"),
            group: true,
        };
        [
            (request, b"\x39\x05\x03Dal\x25"),
            (Header { kid: Some(b"\x52"), group: true, ..Header::default() }, b"\x28\x52"),
            (Header { group: false, ..request }, b"\x19\x05\x03Dal\x25"),
        ]
    }

    #[test]
    fn the_examples_of_the_standards_are_read_and_written() {
        for (header, value) in examples().into_iter().chain(group_examples()) {
            assert_eq!(Header::parse(value), Ok(header));
            let mut out = Vec::new();
            header.emit(&mut out);
            assert_eq!(out, value);
        }
    }

    #[test]
    fn reserved_bits_and_lengths_and_a_flag_octet_of_zero_are_malformed() {
        for value in
            [&b"\x40"[..], b"\x80", b"\xa9\x05\x25", b"\x0e123456", b"\x0f1234567", b"\x00"]
        {
            assert_eq!(Header::parse(value).expect_err("reserved").field, "flags");
        }
    }

    #[test]
    fn what_no_field_claims_is_malformed() {
        assert_eq!(Header::parse(b"\x01\x07\x08").expect_err("left over").field, "end of option");
        assert_eq!(Header::parse(b"\x02\x00\x08").expect_err("zero").field, "Partial IV");
    }

    #[test]
    fn a_prefix_is_an_error_or_has_a_shorter_kid() {
        let value = b"\x19\x05\x05Dalekkid";
        for end in 1..value.len() {
            match Header::parse(&value[..end]) {
                Ok(header) => assert!(end >= 8 && header.kid.is_some_and(|kid| kid.len() < 3)),
                Err(error) => assert!(end < 8 && error.offset <= end),
            }
        }
    }
}
