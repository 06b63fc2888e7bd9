//! Requests and answers, whatever carries them: what an honest client asks, and what an attacker sends.

use lowmesh_wire::coap::{Code, Kind, Message, MessageId, OptionNumber, Options, Token};

/// SZX of blocks of 1,024 octets (RFC 7959 s2.2).
pub const BLOCK_OF_1024: u32 = 6;
/// SZX of blocks of 512 octets (RFC 7959 s2.2).
pub const BLOCK_OF_512: u32 = 5;
/// Observe in a registration (RFC 7641 s2).
const REGISTER: u32 = 0;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    pub code: Code,
    pub options: Options,
    pub payload: Vec<u8>,
}

/// What is answered, an error of the server included.
#[derive(Clone, Debug)]
pub struct Answer {
    pub code: Code,
    pub options: Options,
    pub payload: Vec<u8>,
}

impl Request {
    /// A request to a path.
    pub fn new(code: Code, path: &str) -> Self {
        let mut options = Options::new();
        options.insert_path(path);
        Self { code, options, payload: Vec::new() }
    }
    /// A GET of a path.
    pub fn get(path: &str) -> Self {
        Self::new(Code::GET, path)
    }
    /// The same with a body.
    pub fn with_payload(self, payload: &[u8]) -> Self {
        Self { payload: payload.to_vec(), ..self }
    }
    /// The same with one more option.
    pub fn with(mut self, number: OptionNumber, value: &[u8]) -> Self {
        self.options.insert(number, value);
        self
    }
    /// The same with one more option that is a number.
    pub fn with_uint(mut self, number: OptionNumber, value: u32) -> Self {
        self.options.insert_uint(number, value);
        self
    }
    /// The same as a registration of an observer.
    pub fn observing(self) -> Self {
        self.with_uint(OptionNumber::OBSERVE, REGISTER)
    }
    /// The same for one block of a body: `option` is Block1 or Block2 (RFC 7959 s2.2).
    pub fn with_block(self, option: OptionNumber, number: u32, more: bool, szx: u32) -> Self {
        self.with_uint(option, number << 4 | u32::from(more) << 3 | szx)
    }
    /// As a datagram.
    pub fn datagram(&self, kind: Kind, id: u16, token: &[u8]) -> Vec<u8> {
        let mut message = Message::new(kind, self.code, MessageId(id));
        message.token = Token::new(token).expect("no test needs long tokens");
        message.options = self.options.clone();
        message.payload.clone_from(&self.payload);
        message.to_vec()
    }
    /// As a confirmable datagram.
    pub fn confirmable(&self, id: u16, token: &[u8]) -> Vec<u8> {
        self.datagram(Kind::Confirmable, id, token)
    }
    /// As a datagram that is not acknowledged.
    pub fn unconfirmable(&self, id: u16, token: &[u8]) -> Vec<u8> {
        self.datagram(Kind::NonConfirmable, id, token)
    }
}

impl Answer {
    /// The part of an answer that does not depend on its carrier.
    pub fn of(message: Message) -> Self {
        Self { code: message.code, options: message.options, payload: message.payload }
    }
    /// Whether more blocks of the body follow, and the number and the SZX of this one (RFC 7959 s2.2).
    pub fn block2(&self) -> Option<(u32, bool, u32)> {
        let value = self.options.get_uint(OptionNumber::BLOCK2)?;
        Some((value >> 4, value & 8 != 0, value & 7))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_block_has_its_octets() {
        let request = Request::new(Code::PUT, "/u").with_block(OptionNumber::BLOCK1, 0, true, 6);
        let datagram = request.with_payload(b"x").confirmable(0x1234, &[7]);
        assert_eq!(datagram, b"\x41\x03\x12\x34\x07\xb1u\xd1\x03\x0e\xffx");
    }

    #[test]
    fn a_registration_has_an_observe_of_no_octets() {
        let datagram = Request::get("/t").observing().unconfirmable(1, &[]);
        assert_eq!(datagram, b"\x50\x01\x00\x01\x60\x51t");
    }
}
