//! A message that owns its parts: what is built, kept and sent.

use alloc::vec::Vec;

use super::{
    Code, HEADER_LEN, Kind, MessageId, MessageView, OptionNumber, Options, PAYLOAD_MARKER, Token,
    VERSION,
};
use crate::DecodeError;

/// A CoAP message (RFC 7252 s3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The message type.
    pub kind: Kind,
    /// What is asked or answered.
    pub code: Code,
    /// Ties answers and duplicates to this message.
    pub message_id: MessageId,
    /// Ties the response to the request.
    pub token: Token,
    /// Options, ordered.
    pub options: Options,
    /// The payload; empty is the same as none.
    pub payload: Vec<u8>,
}

impl Message {
    /// A message without token, options and payload.
    ///
    /// ```
    /// use lowmesh_wire::coap::{Code, Kind, Message, MessageId};
    /// let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(0x1234));
    /// get.options.insert_path("/temp");
    /// let mut bytes = Vec::new();
    /// get.emit(&mut bytes);
    /// assert_eq!(bytes, b"\x40\x01\x12\x34\xb4temp");
    /// assert_eq!(Message::parse(&bytes), Ok(get));
    /// ```
    pub const fn new(kind: Kind, code: Code, message_id: MessageId) -> Self {
        Self {
            kind,
            code,
            message_id,
            token: Token::EMPTY,
            options: Options::new(),
            payload: Vec::new(),
        }
    }
    /// The four octets of an Empty message: a bare ACK, a RST, or a ping (RFC 7252 s4.1).
    pub const fn empty(kind: Kind, message_id: MessageId) -> [u8; HEADER_LEN] {
        let [high, low] = message_id.0.to_be_bytes();
        [VERSION << 6 | (kind as u8) << 4, Code::EMPTY.0, high, low]
    }
    /// Reads a datagram; see [`MessageView::parse`].
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        MessageView::parse(bytes).map(|view| Self::from(&view))
    }
    /// How many octets [`Message::emit`] appends.
    pub fn encoded_len(&self) -> usize {
        let marker = usize::from(!self.payload.is_empty());
        HEADER_LEN
            + self.token.encoded_len()
            + self.options.as_bytes().len()
            + marker
            + self.payload.len()
    }
    /// Appends the bytes of the message. A message of code 0.00 is its header alone (RFC 7252
    /// s4.1).
    pub fn emit(&self, out: &mut Vec<u8>) {
        if self.code == Code::EMPTY {
            out.extend_from_slice(&Self::empty(self.kind, self.message_id));
            return;
        }
        out.reserve(self.encoded_len());
        let [high, low] = self.message_id.0.to_be_bytes();
        let first = VERSION << 6 | (self.kind as u8) << 4 | self.token.nibble();
        out.extend_from_slice(&[first, self.code.0, high, low]);
        self.token.emit(out);
        out.extend_from_slice(self.options.as_bytes());
        if !self.payload.is_empty() {
            out.push(PAYLOAD_MARKER);
            out.extend_from_slice(&self.payload);
        }
    }
    /// The bytes of the message.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.encoded_len());
        self.emit(&mut bytes);
        bytes
    }
    /// The first value of an option.
    pub fn option(&self, number: OptionNumber) -> Option<&[u8]> {
        self.options.get(number)
    }
}

impl From<&MessageView<'_>> for Message {
    fn from(view: &MessageView<'_>) -> Self {
        Self {
            kind: view.kind(),
            code: view.code(),
            message_id: view.message_id(),
            token: view.token(),
            options: Options::from_checked(&view.options()),
            payload: view.payload().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coap::ContentFormat;

    /// xorshift64: enough to wander through the codec; the crate has no other need of randomness.
    struct Draws(u64);
    impl Draws {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % bound
        }
        fn bytes(&mut self, len_max: u64) -> Vec<u8> {
            (0..self.below(len_max)).map(|_| self.below(256) as u8).collect()
        }
    }

    fn any_message(draws: &mut Draws) -> Message {
        let kind = Kind::from_bits(draws.below(4) as u8);
        let code = Code(1 + draws.below(255) as u8);
        let mut message = Message::new(kind, code, MessageId(draws.below(65_536) as u16));
        let token_len_max = [9, 30, 300][draws.below(3) as usize];
        message.token = Token::new(&draws.bytes(token_len_max)).expect("short");
        for _ in 0..draws.below(6) {
            let number_max = [16, 400, 65_536][draws.below(3) as usize];
            let number = OptionNumber(draws.below(number_max) as u16);
            let value = draws.bytes(300);
            message.options.insert(number, &value);
        }
        message.payload = draws.bytes(40);
        message
    }

    #[test]
    fn what_is_emitted_parses_back_to_the_same_message() {
        let mut draws = Draws(42);
        for _ in 0..3000 {
            let message = any_message(&mut draws);
            let mut bytes = Vec::new();
            message.emit(&mut bytes);
            assert_eq!(bytes.len(), message.encoded_len());
            assert_eq!(Message::parse(&bytes), Ok(message));
        }
    }

    #[test]
    fn a_prefix_of_a_message_fails_or_is_itself_a_message_but_never_panics() {
        let mut draws = Draws(7);
        for _ in 0..300 {
            let message = any_message(&mut draws);
            let mut bytes = Vec::new();
            message.emit(&mut bytes);
            for len in 0..bytes.len() {
                match Message::parse(&bytes[..len]) {
                    Err(error) => assert!(error.offset <= len, "{error}"),
                    // Only a cut between options or within the payload leaves a valid message.
                    Ok(shorter) => {
                        assert!(len >= HEADER_LEN + message.token.encoded_len());
                        assert_eq!(shorter.encoded_len(), len);
                    }
                }
            }
        }
    }

    #[test]
    fn every_prefix_that_cuts_header_token_option_or_payload_off_is_an_error() {
        let mut message = Message::new(Kind::Confirmable, Code::PUT, MessageId(1));
        message.token = Token::from_number(0xbeef, 2);
        message.options.insert_path("/sensors-in-a-long-segment");
        message.payload = b"1".to_vec();
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        let whole_without_options = HEADER_LEN + 2;
        let whole_without_payload = bytes.len() - 2;
        for len in 0..bytes.len() {
            let whole = len == whole_without_options || len == whole_without_payload;
            assert_eq!(Message::parse(&bytes[..len]).is_ok(), whole, "{len} octets");
        }
    }

    #[test]
    fn random_bytes_never_panic_and_what_parses_is_canonical() {
        let mut draws = Draws(99);
        let mut valid = 0;
        for _ in 0..200_000 {
            let mut bytes = draws.bytes(24);
            if let Some(first) = bytes.first_mut() {
                *first = 0x40 | *first & 0x33;
            }
            if let Ok(message) = Message::parse(&bytes) {
                let mut again = Vec::new();
                message.emit(&mut again);
                assert_eq!(again, bytes);
                valid += 1;
            }
        }
        assert!(valid > 1000, "the generator must reach valid messages, got {valid}");
    }

    #[test]
    fn the_exchange_of_rfc_7252_figure_16_has_its_bytes() {
        // RFC 7252 appendix A, figure 16: CON GET /temperature MID 0x7d34, then ACK 2.05 "22.3 C".
        let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(0x7d34));
        get.options.insert_path("/temperature");
        let mut bytes = Vec::new();
        get.emit(&mut bytes);
        assert_eq!(bytes, b"\x40\x01\x7d\x34\xbbtemperature");

        let mut content = Message::new(Kind::Acknowledgement, Code::CONTENT, MessageId(0x7d34));
        content.payload = b"22.3 C".to_vec();
        bytes.clear();
        content.emit(&mut bytes);
        assert_eq!(bytes, b"\x60\x45\x7d\x34\xff22.3 C");
    }

    #[test]
    fn an_empty_message_is_four_octets_whatever_else_is_set() {
        let mut reset = Message::new(Kind::Reset, Code::EMPTY, MessageId(0xabcd));
        reset.payload = b"never sent".to_vec();
        let mut bytes = Vec::new();
        reset.emit(&mut bytes);
        assert_eq!(bytes, [0x70, 0, 0xab, 0xcd]);
    }

    #[test]
    fn numbers_in_options_read_back() {
        let mut message = Message::new(Kind::NonConfirmable, Code::CONTENT, MessageId(9));
        let json = ContentFormat::JSON;
        message.options.insert_uint(OptionNumber::CONTENT_FORMAT, u32::from(json.0));
        let format = message.options.iter().next().and_then(|option| option.as_uint());
        assert_eq!(format, Some(50));
    }
}
