//! Messages on reliable transports: CoAP over TCP and TLS (RFC 8323 s3.2) and over WebSockets (s4.2).
//!
//! ```text
//!    0 1 2 3 4 5 6 7
//!   +-------+-------+---------------------------+------+-------------------+
//!   |  Len  |  TKL  | extended length, 0-4 oct. | Code | token, options... |
//!   +-------+-------+---------------------------+------+-------------------+
//!    Len 13: one octet more, 14: two, 15: four. It counts options, marker and payload. TKL 13 and
//!    14 put the rest of the token's length before the token (RFC 8974 s2.1).
//!    In a WebSocket message Len is 0 and the WebSocket frame says the length.
//! ```
//!
//! A byte stream is cut with [`frame_len`], which needs the first octets only and refuses a length
//! before anybody buffers it. The buffer, and what is done with a message, are the connection's. A
//! stream knows no CON, no message ID and no Reset: TCP does that work.

use alloc::vec::Vec;

use super::{
    Class, Code, Message, OptionNumber, Options, OptionsIter, PAYLOAD_MARKER, Token, body, token,
};
use crate::{DecodeError, Problem};

/// First length that needs one octet more, two and four (RFC 8323 s3.2).
const LEN_STEPS: [usize; 3] = [13, 269, 65_805];

/// Where a message stands, which decides how its header is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Framing {
    /// TCP and TLS: the header says the length (s3.2).
    Stream,
    /// WebSockets: the frame around it does (s4.2).
    WebSocket,
}

impl Framing {
    const fn header(self) -> &'static str {
        match self {
            Self::Stream => "CoAP over TCP",
            Self::WebSocket => "CoAP over WebSockets",
        }
    }
    const fn error(self, field: &'static str, offset: usize, problem: Problem) -> DecodeError {
        DecodeError { header: self.header(), field, offset, problem }
    }
}

/// How many octets the message at the start of `bytes` has, header included; `None` if there are
/// too few octets to tell.
///
/// A message of more than `message_max` octets is an error at once, so that a peer that announces
/// four gigabytes costs no memory.
///
/// ```
/// use lowmesh_wire::coap::stream::frame_len;
/// let ping = [0x01, 0xe2, 0x42];
/// assert_eq!(frame_len(&ping[..1], 1152), Ok(Some(3)));
/// assert_eq!(frame_len(&[0xf0, 0xff, 0xff, 0xff], 1152), Ok(None));
/// assert!(frame_len(&[0xf0, 0xff, 0xff, 0xff, 0xff], 1152).is_err());
/// ```
pub fn frame_len(bytes: &[u8], message_max: usize) -> Result<Option<usize>, DecodeError> {
    let Some(lengths) = Lengths::read(bytes)? else { return Ok(None) };
    // RFC 8323 s5.3.1: Max-Message-Size is what the receiver takes, the header included.
    match lengths.total() {
        Some(total) if total <= message_max => Ok(Some(total)),
        _ => Err(Framing::Stream.error("length", 0, Problem::Length)),
    }
}

/// What the first octets of a message on a byte stream say.
#[derive(Clone, Copy)]
struct Lengths {
    /// Octets up to the code.
    head: usize,
    /// Octets of the token, and of what says its length.
    token: (usize, usize),
    body: usize,
}

impl Lengths {
    /// `None` if the lengths are not all there yet.
    fn read(bytes: &[u8]) -> Result<Option<Self>, DecodeError> {
        let Some(first) = bytes.first() else { return Ok(None) };
        let (octets, step) = match first >> 4 {
            13 => (1, LEN_STEPS[0]),
            14 => (2, LEN_STEPS[1]),
            15 => (4, LEN_STEPS[2]),
            len => (0, usize::from(len)),
        };
        let Some(extended) = bytes.get(1..=octets) else { return Ok(None) };
        let extended = extended.iter().fold(0_u64, |sum, octet| sum << 8 | u64::from(*octet));
        let body = usize::try_from(extended).ok().and_then(|extended| extended.checked_add(step));
        let Some(body) = body else {
            return Err(Framing::Stream.error("length", 1, Problem::Length));
        };
        let head = 1 + octets;
        match token::read_length(first & 0x0f, bytes.get(head + 1..).unwrap_or_default()) {
            Ok(token) => Ok(Some(Self { head, token, body })),
            Err(Problem::Truncated) => Ok(None),
            Err(problem) => Err(Framing::Stream.error("token length", 0, problem)),
        }
    }
    fn total(self) -> Option<usize> {
        let (token, extension) = self.token;
        self.body.checked_add(self.head + 1 + extension + token)
    }
}

/// A whole message, checked, borrowed from the connection's buffer.
#[derive(Clone, Copy, Debug)]
pub struct StreamView<'a> {
    code: Code,
    token: &'a [u8],
    options: &'a [u8],
    /// The number of the last option, 0 if there is none.
    last: u16,
    payload: &'a [u8],
}

impl<'a> StreamView<'a> {
    /// Reads one message: for [`Framing::Stream`] as many octets as [`frame_len`] said, for
    /// [`Framing::WebSocket`] the data of a binary message.
    ///
    /// An error is a message format error, which ends the connection (RFC 8323 s5.6).
    pub fn parse(bytes: &'a [u8], framing: Framing) -> Result<Self, DecodeError> {
        let error = |field, offset, problem| framing.error(field, offset, problem);
        let Some(first) = bytes.first() else {
            return Err(error("header", 0, Problem::Truncated));
        };
        let (head, (token_len, extension)) = match framing {
            Framing::Stream => {
                let Some(lengths) = Lengths::read(bytes)? else {
                    return Err(error("length", bytes.len(), Problem::Truncated));
                };
                match lengths.total() {
                    Some(total) if total > bytes.len() => {
                        return Err(error("length", bytes.len(), Problem::Truncated));
                    }
                    Some(total) if total == bytes.len() => (lengths.head, lengths.token),
                    _ => return Err(error("length", 0, Problem::Length)),
                }
            }
            // RFC 8323 s4.2: Len MUST be set to zero.
            Framing::WebSocket if first >> 4 != 0 => {
                return Err(error("length", 0, Problem::Value));
            }
            Framing::WebSocket => {
                let rest = bytes.get(2..).unwrap_or_default();
                let lengths = token::read_length(*first, rest);
                (1, lengths.map_err(|problem| error("token length", 0, problem))?)
            }
        };
        let from = head + 1 + extension;
        let start = from + token_len;
        let (Some(code), Some(token)) = (bytes.get(head), bytes.get(from..start)) else {
            return Err(error("token", bytes.len(), Problem::Truncated));
        };
        let body::Body { options, last, payload } = body::split(&bytes[start..], start)?;
        Ok(Self { code: Code(*code), token, options, last, payload })
    }
    /// What is asked, answered or signalled.
    pub const fn code(&self) -> Code {
        self.code
    }
    /// The token.
    pub fn token(&self) -> Token {
        Token::new(self.token).expect("parse has checked the length")
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
    /// True for an Empty message: to be ignored whatever is in it (RFC 8323 s5.4).
    pub const fn is_empty(&self) -> bool {
        matches!(self.code.class(), Class::Empty)
    }
}

/// A message that owns its parts: what is built and sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamMessage {
    /// What is asked, answered or signalled.
    pub code: Code,
    /// Ties the response to the request.
    pub token: Token,
    /// Options, ordered.
    pub options: Options,
    /// The payload; empty is the same as none.
    pub payload: Vec<u8>,
}

impl StreamMessage {
    /// A message without token, options and payload.
    pub const fn new(code: Code) -> Self {
        Self { code, token: Token::EMPTY, options: Options::new(), payload: Vec::new() }
    }
    /// Reads one message; see [`StreamView::parse`].
    pub fn parse(bytes: &[u8], framing: Framing) -> Result<Self, DecodeError> {
        StreamView::parse(bytes, framing).map(|view| Self::from(&view))
    }
    /// The same, borrowed: what [`super::signaling::Signal::parse`] reads.
    pub fn as_view(&self) -> StreamView<'_> {
        StreamView {
            code: self.code,
            token: self.token.as_bytes(),
            options: self.options.as_bytes(),
            last: self.options.last_number().0,
            payload: &self.payload,
        }
    }
    /// How many octets [`StreamMessage::emit`] appends.
    pub fn encoded_len(&self, framing: Framing) -> usize {
        let body = self.body_len();
        let extended = match framing {
            Framing::WebSocket => 0,
            Framing::Stream => length_nibble(body).1,
        };
        2 + extended + self.token.encoded_len() + body
    }
    /// Appends the bytes of the message. The body has fewer octets than 2^32.
    pub fn emit(&self, framing: Framing, out: &mut Vec<u8>) {
        out.reserve(self.encoded_len(framing));
        let token_len = self.token.nibble();
        match framing {
            Framing::WebSocket => out.push(token_len),
            Framing::Stream => {
                let body = self.body_len();
                let (nibble, octets, step) = length_nibble(body);
                out.push(nibble << 4 | token_len);
                let extended = (body - step) as u32;
                out.extend_from_slice(&extended.to_be_bytes()[4 - octets..]);
            }
        }
        out.push(self.code.0);
        self.token.emit(out);
        out.extend_from_slice(self.options.as_bytes());
        if !self.payload.is_empty() {
            out.push(PAYLOAD_MARKER);
            out.extend_from_slice(&self.payload);
        }
    }
    fn body_len(&self) -> usize {
        let marker = usize::from(!self.payload.is_empty());
        self.options.as_bytes().len() + marker + self.payload.len()
    }
}

/// The nibble for a body of this length, the octets after it, and what those do not count.
const fn length_nibble(body: usize) -> (u8, usize, usize) {
    if body < LEN_STEPS[0] {
        (body as u8, 0, body)
    } else if body < LEN_STEPS[1] {
        (13, 1, LEN_STEPS[0])
    } else if body < LEN_STEPS[2] {
        (14, 2, LEN_STEPS[1])
    } else {
        (15, 4, LEN_STEPS[2])
    }
}

/// The message without its type and message ID, which RFC 8323 and OSCORE leave out.
impl From<&Message> for StreamMessage {
    fn from(message: &Message) -> Self {
        let Message { code, token, options, payload, .. } = message;
        Self {
            code: *code,
            token: token.clone(),
            options: options.clone(),
            payload: payload.clone(),
        }
    }
}

impl From<&StreamView<'_>> for StreamMessage {
    fn from(view: &StreamView<'_>) -> Self {
        Self {
            code: view.code(),
            token: view.token(),
            options: Options::from_checked(&view.options()),
            payload: view.payload().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOTH: [Framing; 2] = [Framing::Stream, Framing::WebSocket];

    fn bytes(message: &StreamMessage, framing: Framing) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.emit(framing, &mut bytes);
        assert_eq!(bytes.len(), message.encoded_len(framing));
        bytes
    }

    fn put(payload_len: usize) -> StreamMessage {
        let mut message = StreamMessage::new(Code::PUT);
        message.token = Token::from_number(0xbeef, 2);
        message.options.insert_path("/large");
        message.payload = vec![7; payload_len];
        message
    }

    #[test]
    fn the_ping_and_pong_of_rfc_8323_have_their_bytes() {
        // RFC 8323 s5.7, figures 15 and 16.
        for (detail, expected) in [(2, [0x01, 0xe2, 0x42]), (3, [0x01, 0xe3, 0x42])] {
            let mut message = StreamMessage::new(Code::new(7, detail));
            message.token = Token::from_number(0x42, 1);
            assert_eq!(bytes(&message, Framing::Stream), expected);
            assert_eq!(bytes(&message, Framing::WebSocket), expected);
        }
    }

    #[test]
    fn every_step_of_the_length_reads_back_and_only_tcp_writes_it() {
        // The body is six octets of options, the marker and the payload.
        for (body, head) in [(12, 1), (13, 2), (268, 2), (269, 3), (65_804, 3), (65_805, 5)] {
            let message = put(body - 7);
            let stream = bytes(&message, Framing::Stream);
            assert_eq!(stream.len(), head + 1 + 2 + body);
            assert_eq!(frame_len(&stream, usize::MAX), Ok(Some(stream.len())));
            for framing in BOTH {
                let read = StreamMessage::parse(&bytes(&message, framing), framing);
                assert_eq!(read.as_ref(), Ok(&message));
            }
            assert_eq!(bytes(&message, Framing::WebSocket).len(), 1 + 1 + 2 + body);
        }
    }

    #[test]
    fn a_message_longer_than_the_limit_is_refused_from_its_first_octets() {
        let stream = bytes(&put(2000), Framing::Stream);
        assert_eq!(frame_len(&stream[..2], 1152), Ok(None));
        assert!(frame_len(&stream[..3], 1152).is_err());
        assert_eq!(frame_len(&stream[..3], stream.len()), Ok(Some(stream.len())));
        assert!(frame_len(&stream[..3], stream.len() - 1).is_err());
    }

    #[test]
    fn the_reserved_token_length_is_a_format_error() {
        assert!(frame_len(&[15], 1152).is_err());
        for framing in BOTH {
            let error = StreamMessage::parse(&[15, 1], framing).expect_err("reserved");
            assert_eq!((error.field, error.problem), ("token length", Problem::Value));
        }
    }

    #[test]
    fn long_tokens_read_back_and_count_for_the_length_of_the_message() {
        for len in [9, 13, 268, 269, 1000] {
            let mut message = put(20);
            message.token = Token::new(&vec![0xa5; len]).expect("short enough");
            for framing in BOTH {
                let read = StreamMessage::parse(&bytes(&message, framing), framing);
                assert_eq!(read.as_ref(), Ok(&message));
            }
            let stream = bytes(&message, Framing::Stream);
            assert_eq!(frame_len(&stream[..6], 1152), Ok(Some(stream.len())));
            for end in 0..stream.len() {
                assert!(StreamView::parse(&stream[..end], Framing::Stream).is_err());
            }
        }
    }

    #[test]
    fn a_length_in_a_websocket_message_is_a_format_error() {
        let error = StreamMessage::parse(&[0x10, 1, 0xb0], Framing::WebSocket).expect_err("Len");
        assert_eq!((error.field, error.problem), ("length", Problem::Value));
    }

    #[test]
    fn every_prefix_on_a_byte_stream_is_an_error() {
        let stream = bytes(&put(300), Framing::Stream);
        for end in 0..stream.len() {
            assert!(StreamView::parse(&stream[..end], Framing::Stream).is_err(), "{end} octets");
        }
        let longer = [&stream[..], &[0]].concat();
        assert!(StreamView::parse(&longer, Framing::Stream).is_err());
    }

    #[test]
    fn a_prefix_of_a_websocket_message_fails_or_is_shorter() {
        let whole = put(3);
        let octets = bytes(&whole, Framing::WebSocket);
        for end in 0..octets.len() {
            match StreamMessage::parse(&octets[..end], Framing::WebSocket) {
                Ok(shorter) => assert_ne!(shorter, whole),
                Err(error) => assert!(error.offset <= end),
            }
        }
    }

    proptest! {
        #[test]
        fn a_stream_is_cut_the_same_however_its_octets_arrive(
            lens in prop::collection::vec(0_usize..700, 1..6),
            chunk in 1_usize..400,
        ) {
            let messages: Vec<_> = lens.into_iter().map(put).collect();
            let whole: Vec<u8> =
                messages.iter().flat_map(|one| bytes(one, Framing::Stream)).collect();
            let (mut buffer, mut read) = (Vec::new(), Vec::new());
            for part in whole.chunks(chunk) {
                buffer.extend_from_slice(part);
                while let Some(len) = frame_len(&buffer, 1152).expect("all are short enough") {
                    if buffer.len() < len {
                        break;
                    }
                    let frame: Vec<u8> = buffer.drain(..len).collect();
                    read.push(StreamMessage::parse(&frame, Framing::Stream).expect("whole"));
                }
            }
            prop_assert_eq!(read, messages);
        }

        #[test]
        fn random_octets_never_panic_and_what_parses_reads_back(
            octets in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            for framing in BOTH {
                if let Ok(message) = StreamMessage::parse(&octets, framing) {
                    let again = StreamMessage::parse(&bytes(&message, framing), framing);
                    prop_assert_eq!(again, Ok(message));
                }
            }
        }
    }
}
