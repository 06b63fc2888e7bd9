//! A datagram read in place (RFC 7252 s3).
//!
//! ```text
//!    0                   1                   2                   3
//!    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//!   +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!   |Ver| T |  TKL  |      Code     |          Message ID           |
//!   +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!   |   token (TKL octets), options, 0xff and payload if there is one
//! ```

use super::{
    Code, HEADER, HEADER_LEN, Kind, MessageId, OptionNumber, OptionsIter, Token, VERSION, body,
    token,
};
use crate::{DecodeError, Problem};

/// The fixed header alone: enough to reject a message whose rest is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The message type.
    pub kind: Kind,
    /// What is asked or answered.
    pub code: Code,
    /// Ties answers and duplicates to this message.
    pub message_id: MessageId,
}

impl Head {
    /// Reads the first four octets; `None` if there are fewer or the version is not ours.
    ///
    /// RFC 7252 s3: messages with unknown version numbers MUST be silently ignored.
    pub const fn read(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [first, code, high, low, ..] if *first >> 6 == VERSION => Some(Self {
                kind: Kind::from_bits(*first >> 4),
                code: Code(*code),
                message_id: MessageId(u16::from_be_bytes([*high, *low])),
            }),
            _ => None,
        }
    }
}

/// A whole message, checked, borrowed from a datagram.
#[derive(Clone, Copy, Debug)]
pub struct MessageView<'a> {
    head: Head,
    token: &'a [u8],
    options: &'a [u8],
    /// The number of the last option, 0 if there is none.
    last: u16,
    payload: &'a [u8],
}

impl<'a> MessageView<'a> {
    /// Reads a datagram. An error is a message format error (RFC 7252 s3), or an unknown version.
    ///
    /// ```
    /// use lowmesh_wire::coap::{Code, Kind, MessageView, OptionNumber};
    /// let datagram = [0x41, 0x01, 0x12, 0x34, 0x07, 0xb4, b't', b'e', b'm', b'p'];
    /// let view = MessageView::parse(&datagram)?;
    /// assert_eq!((view.kind(), view.code()), (Kind::Confirmable, Code::GET));
    /// assert_eq!(view.options().values(OptionNumber::URI_PATH).next(), Some(&b"temp"[..]));
    /// # Ok::<(), lowmesh_wire::DecodeError>(())
    /// ```
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let Some(head) = Head::read(bytes) else {
            return Err(match bytes.first() {
                Some(first) if first >> 6 != VERSION => error("version", 0, Problem::Unsupported),
                _ => error("header", bytes.len(), Problem::Truncated),
            });
        };
        // RFC 7252 s4.1: an Empty message has TKL 0 and nothing after the message ID, else a format
        // error.
        if head.code == Code::EMPTY && bytes.len() > HEADER_LEN {
            return Err(error("empty message", HEADER_LEN, Problem::Length));
        }
        let (token_len, extension) = token::read_length(bytes[0] & 0x0f, &bytes[HEADER_LEN..])
            .map_err(|problem| error("token length", 0, problem))?;
        let from = HEADER_LEN + extension;
        let start = from + token_len;
        let Some(token) = bytes.get(from..start) else {
            return Err(error("token", from, Problem::Truncated));
        };
        let body::Body { options, last, payload } = body::split(&bytes[start..], start)?;
        Ok(Self { head, token, options, last, payload })
    }
    /// The message type.
    pub const fn kind(&self) -> Kind {
        self.head.kind
    }
    /// What is asked or answered.
    pub const fn code(&self) -> Code {
        self.head.code
    }
    /// The message ID.
    pub const fn message_id(&self) -> MessageId {
        self.head.message_id
    }
    /// The token.
    #[inline]
    pub fn token(&self) -> Token {
        Token::new(self.token).expect("parse has checked the length")
    }
    /// How many octets the token has.
    pub const fn token_len(&self) -> usize {
        self.token.len()
    }
    /// Walks over the options in order.
    pub const fn options(&self) -> OptionsIter<'a> {
        OptionsIter::new(self.options, self.last)
    }
    /// The first value of an option.
    pub fn option(&self, number: OptionNumber) -> Option<&'a [u8]> {
        self.options().values(number).next()
    }
    /// The payload, empty if there is none.
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

const fn error(field: &'static str, offset: usize, problem: Problem) -> DecodeError {
    DecodeError { header: HEADER, field, offset, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(bytes: &[u8]) -> (&'static str, Problem) {
        let error = MessageView::parse(bytes).expect_err("a format error");
        (error.field, error.problem)
    }

    #[test]
    fn the_reserved_token_length_is_a_format_error() {
        let bytes = [[0x4f, 1, 0, 1].as_slice(), &[0; 15]].concat();
        assert_eq!(fault(&bytes), ("token length", Problem::Value));
    }

    #[test]
    fn an_extended_token_is_read_and_every_cut_in_it_is_a_format_error() {
        // RFC 8974 s2.1: TKL 13, one octet of length (13 + 0), thirteen octets, Uri-Path "t".
        let bytes = [&[0x4d, 1, 0, 1, 0][..], b"thirteen-oct.", b"\xb1t"].concat();
        let view = MessageView::parse(&bytes).expect("valid");
        assert_eq!(view.token().as_bytes(), b"thirteen-oct.");
        assert_eq!(view.option(OptionNumber::URI_PATH), Some(&b"t"[..]));
        for len in 4..bytes.len() - 2 {
            assert!(fault(&bytes[..len]).0.starts_with("token"), "{len} octets");
        }
    }

    #[test]
    fn an_unknown_version_is_told_apart_from_a_format_error() {
        assert_eq!(fault(&[0x80, 1, 0, 1]), ("version", Problem::Unsupported));
        assert_eq!(Head::read(&[0x80, 1, 0, 1]), None);
    }

    #[test]
    fn an_empty_message_with_anything_after_the_message_id_is_a_format_error() {
        assert!(MessageView::parse(&[0x40, 0, 0, 1]).is_ok());
        assert_eq!(fault(&[0x41, 0, 0, 1, 9]), ("empty message", Problem::Length));
        assert_eq!(fault(&[0x40, 0, 0, 1, 0xff, 1]), ("empty message", Problem::Length));
        assert_eq!(fault(&[0x41, 0, 0, 1]), ("token", Problem::Truncated));
    }

    #[test]
    fn a_payload_marker_without_payload_is_a_format_error() {
        assert_eq!(fault(&[0x40, 1, 0, 1, 0xff]), ("payload", Problem::Length));
    }

    #[test]
    fn a_nibble_of_fifteen_is_only_allowed_as_the_payload_marker() {
        assert_eq!(fault(&[0x40, 1, 0, 1, 0xf0, 0, 0]), ("option delta", Problem::Value));
        assert_eq!(fault(&[0x40, 1, 0, 1, 0x0f, 0, 0]), ("option length", Problem::Value));
    }

    #[test]
    fn an_option_number_past_65535_is_a_format_error() {
        // 14 + 0xffff spells 65,804 at once; 65,535 then 1 gets there in two steps.
        assert_eq!(fault(&[0x40, 1, 0, 1, 0xe0, 0xff, 0xff]), ("option delta", Problem::Value));
        let steps = [0x40, 1, 0, 1, 0xe0, 0xfe, 0xf2, 0x10];
        assert_eq!(fault(&steps), ("option number", Problem::Value));
    }

    #[test]
    fn an_option_that_runs_past_the_end_is_a_format_error_at_its_octet() {
        let error = MessageView::parse(&[0x40, 1, 0, 1, 0xb4, b't', b'e']).expect_err("cut");
        assert_eq!((error.field, error.offset), ("option value", 5));
    }

    #[test]
    fn the_head_is_readable_when_the_rest_is_not() {
        let head = Head::read(&[0x4f, 1, 0xab, 0xcd]).expect("four octets of version 1");
        assert_eq!((head.kind, head.message_id), (Kind::Confirmable, MessageId(0xabcd)));
        assert_eq!(Head::read(&[0x40, 1, 0]), None);
    }
}
