//! A client's two halves: protecting a request, and opening what answers it (RFC 8613 s8.1 and
//! s8.4).

use alloc::boxed::Box;
use alloc::vec::Vec;

use lowmesh_wire::coap::stream::{Framing, StreamMessage};
use lowmesh_wire::coap::{Code, OptionNumber, Options};

use crate::class::{self, Direction};
use crate::context::{KidContext, SecurityContext};
use crate::nonce::{Cipher, additional_data};
use crate::params::{NONCE_LEN, TAG_LEN};
use crate::{Header, PartialIv, ProtectError, Refusal, ResponseError};

/// What ties responses to a request that was protected: to be kept as long as responses may come,
/// and for an observation as long as that lasts (RFC 8613 s8).
#[derive(Debug)]
pub struct Pending {
    partial_iv: PartialIv,
    /// That of the context, which may be replaced before the answer comes.
    id_context: Option<Box<[u8]>>,
    expects: Expects,
}

/// What may come yet.
///
/// ```text
///   Response ── one response ──► Nothing
///   Notifications ── each newer than the last ──► Notifications ── a last response ──► Nothing
/// ```
#[derive(Debug)]
enum Expects {
    Response,
    /// How many have come, and the highest of their Partial IVs.
    Notifications {
        count: u32,
        latest: Option<PartialIv>,
    },
    Nothing,
}

/// RFC 7641 s2: the value of Observe that registers.
pub(crate) const REGISTER: u32 = 0;

impl SecurityContext {
    /// Protects a request; its token is taken over.
    ///
    /// Before it, [`SecurityContext::reservation_needed`] says what is to be stored and confirmed.
    /// Repetitions of the message layer send the same bytes again.
    pub fn protect_request(
        &mut self,
        request: &StreamMessage,
    ) -> Result<(StreamMessage, Pending), ProtectError> {
        let parts = class::split(request, Direction::Request)?;
        let partial_iv = self.sequence.take()?;
        let kid_context = self.said_kid_context();
        let header = Header {
            partial_iv: Some(partial_iv),
            kid_context: kid_context.as_deref(),
            kid: Some(self.sender_id.as_bytes()),
            group: false,
        };
        let nonce = self.common_iv.nonce(self.sender_id, partial_iv);
        let aad = additional_data(self.sender_id, partial_iv);
        let outer = seal(&self.sender, &nonce, &aad, request, parts, &header)?;
        let registers = request.options.iter().any(|option| {
            option.number == OptionNumber::OBSERVE && option.as_uint() == Some(REGISTER)
        });
        let expects = if registers {
            Expects::Notifications { count: 0, latest: None }
        } else {
            Expects::Response
        };
        Ok((outer, Pending { partial_iv, id_context: self.id_context.clone(), expects }))
    }

    /// Opens a response to a request that was protected. After an error the request is still open.
    ///
    /// The Observe option of a notification counts those that were accepted: RFC 8613 s4.1.3.5.2
    /// takes the order from Partial IVs, so a layer above that orders by Observe finds each newer than the last.
    pub fn unprotect_response(
        &mut self,
        pending: &mut Pending,
        outer: &StreamMessage,
    ) -> Result<StreamMessage, ResponseError> {
        let value = outer.options.get(OptionNumber::OSCORE).ok_or(ResponseError::Unprotected)?;
        if matches!(pending.expects, Expects::Nothing) {
            return Err(ResponseError::Replay);
        }
        let header = Header::parse(value)?;
        // RFC 10021 s6: a message of a group is of no other context.
        if !pending.is_of(self) || header.group {
            return Err(ResponseError::Forged);
        }
        // Neither field is authenticated by itself; one that is said must be the right one.
        let kid = header.kid.unwrap_or(self.recipient_id.as_bytes());
        if !self.answers_to(kid, header.kid_context) {
            return Err(ResponseError::Forged);
        }
        // RFC 8613 s8.4 step 4: without a Partial IV the nonce of the request is used.
        let nonce = match header.partial_iv {
            Some(piv) => self.common_iv.nonce(self.recipient_id, piv),
            None => self.common_iv.nonce(self.sender_id, pending.partial_iv),
        };
        let aad = additional_data(self.sender_id, pending.partial_iv);
        let opened = open(&self.recipient, &nonce, &aad, outer)?;
        if !opened.code.is_response() {
            return Err(ResponseError::NoResponse);
        }
        // RFC 8613 appendix B.2 step 5: the other end has the context.
        if self.kid_context == KidContext::Wrapped {
            self.kid_context = KidContext::Plain;
        }
        pending.accept(opened, header.partial_iv)
    }
}

impl Pending {
    /// The sequence number of the request.
    pub const fn partial_iv(&self) -> PartialIv {
        self.partial_iv
    }
    /// The ID Context of the request's security context.
    pub fn id_context(&self) -> Option<&[u8]> {
        self.id_context.as_deref()
    }
    /// True if the request was protected with this context, and not with one of another ID Context.
    pub fn is_of(&self, context: &SecurityContext) -> bool {
        self.id_context == context.id_context
    }
    /// True when a response has come.
    pub const fn is_answered(&self) -> bool {
        match self.expects {
            Expects::Response => false,
            Expects::Notifications { count, .. } => count > 0,
            Expects::Nothing => true,
        }
    }
    /// True when no response is taken any more.
    pub const fn is_over(&self) -> bool {
        matches!(self.expects, Expects::Nothing)
    }
    /// A response verifies: whether it may come, and what comes after it.
    fn accept(
        &mut self,
        mut response: StreamMessage,
        piv: Option<PartialIv>,
    ) -> Result<StreamMessage, ResponseError> {
        let notifies = response.options.get(OptionNumber::OBSERVE).is_some();
        match &mut self.expects {
            Expects::Notifications { count, latest } if notifies => {
                // RFC 8613 s7.4.1: none that has come before, at most one without a Partial IV, and
                // that is the oldest. Of two that overtook each other the older is of no use.
                let stale = match piv {
                    Some(piv) => latest.is_some_and(|latest| piv <= latest),
                    None => *count > 0,
                };
                if stale {
                    return Err(ResponseError::Replay);
                }
                *latest = piv.or(*latest);
                *count += 1;
                // Three octets, as Observe has them (RFC 7641 s2).
                let number = *count & 0x00ff_ffff;
                response.options = renumbered(&response, number);
            }
            // RFC 8613 s4.1.3.5.2: a notification that nobody asked for stops the processing.
            Expects::Response | Expects::Nothing if notifies => {
                return Err(ResponseError::NoResponse);
            }
            _ => self.expects = Expects::Nothing,
        }
        Ok(response)
    }
}

/// The options of a notification, with another number for its order.
pub(crate) fn renumbered(response: &StreamMessage, number: u32) -> Options {
    let mut options = Options::new();
    for option in &response.options {
        if option.number == OptionNumber::OBSERVE {
            options.insert_uint(OptionNumber::OBSERVE, number);
        } else {
            options.insert(option.number, option.value);
        }
    }
    options
}

/// Octets before the code in the form of a message over WebSockets with an empty token, which is
/// otherwise the plaintext of RFC 8613 s5.3: code, options, marker, payload.
const PLAINTEXT_START: usize = 1;

/// Puts a message together whose inside is encrypted.
pub(crate) fn seal(
    cipher: &Cipher,
    nonce: &[u8; NONCE_LEN],
    aad: &[u8],
    message: &StreamMessage,
    parts: class::Parts,
    header: &Header<'_>,
) -> Result<StreamMessage, ProtectError> {
    let class::Parts { inner, outer, outer_code } = parts;
    let payload = encrypt(cipher, nonce, aad, message, inner)?;
    let mut value = Vec::new();
    header.emit(&mut value);
    Ok(assembled(message, outer, outer_code, &value, payload))
}

/// The ciphertext of a message, and its tag.
pub(crate) fn encrypt(
    cipher: &Cipher,
    nonce: &[u8; NONCE_LEN],
    aad: &[u8],
    message: &StreamMessage,
    inner: Options,
) -> Result<Vec<u8>, ProtectError> {
    let mut inside = StreamMessage::new(message.code);
    inside.options = inner;
    inside.payload.clone_from(&message.payload);
    let mut buffer = Vec::with_capacity(inside.encoded_len(Framing::WebSocket) + TAG_LEN);
    inside.emit(Framing::WebSocket, &mut buffer);
    cipher.seal(nonce, aad, &mut buffer, PLAINTEXT_START).map_err(|_| ProtectError::TooLong)?;
    buffer.drain(..PLAINTEXT_START);
    Ok(buffer)
}

/// The message that leaves: its outer options, the OSCORE option among them, and what is encrypted.
pub(crate) fn assembled(
    message: &StreamMessage,
    outer: Options,
    code: Code,
    value: &[u8],
    payload: Vec<u8>,
) -> StreamMessage {
    let mut options = outer;
    options.insert(OptionNumber::OSCORE, value);
    StreamMessage { code, token: message.token.clone(), options, payload }
}

/// Why a message stays closed.
pub(crate) enum Unopened {
    Forged,
    /// Of a group: its tag is right.
    BadSignature,
    Malformed(lowmesh_wire::DecodeError),
    Nested,
}

impl From<Unopened> for Refusal {
    fn from(failure: Unopened) -> Self {
        match failure {
            Unopened::Forged => Self::Forged,
            Unopened::BadSignature => Self::BadSignature,
            Unopened::Malformed(error) => Self::Malformed(error),
            Unopened::Nested => Self::NoRequest,
        }
    }
}

impl From<Unopened> for ResponseError {
    fn from(failure: Unopened) -> Self {
        match failure {
            Unopened::Forged => Self::Forged,
            Unopened::BadSignature => Self::BadSignature,
            Unopened::Malformed(error) => Self::Malformed(error),
            Unopened::Nested => Self::NoResponse,
        }
    }
}

/// Opens a message: what was inside, with the options of Class U and the token of the outside.
pub(crate) fn open(
    cipher: &Cipher,
    nonce: &[u8; NONCE_LEN],
    aad: &[u8],
    outer: &StreamMessage,
) -> Result<StreamMessage, Unopened> {
    decrypt(cipher, nonce, aad, outer, &outer.payload)
}

/// The same with a ciphertext that is a part of the payload.
pub(crate) fn decrypt(
    cipher: &Cipher,
    nonce: &[u8; NONCE_LEN],
    aad: &[u8],
    outer: &StreamMessage,
    ciphertext: &[u8],
) -> Result<StreamMessage, Unopened> {
    let mut buffer = Vec::with_capacity(PLAINTEXT_START + ciphertext.len());
    buffer.push(0);
    buffer.extend_from_slice(ciphertext);
    let opened = cipher.open(nonce, aad, &mut buffer, PLAINTEXT_START);
    opened.map_err(|_| Unopened::Forged)?;
    let inside = StreamMessage::parse(&buffer, Framing::WebSocket).map_err(Unopened::Malformed)?;
    if inside.options.get(OptionNumber::OSCORE).is_some() {
        return Err(Unopened::Nested);
    }
    let options = class::join(&outer.options, &inside.options);
    Ok(StreamMessage { options, token: outer.token.clone(), ..inside })
}
