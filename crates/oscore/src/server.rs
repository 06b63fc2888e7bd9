//! A server's two halves: opening a request, and protecting what answers it (RFC 8613 s8.2 and
//! s8.3).

use alloc::boxed::Box;

use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::{Code, OptionNumber};

use crate::class::{self, Direction};
use crate::client::{open, seal};
use crate::context::SecurityContext;
use crate::nonce::additional_data;
use crate::{Challenge, Header, PartialIv, ProtectError, Refusal};

/// What ties responses to a request that was opened: to be kept until it is answered, and for an
/// observation as long as that lasts (RFC 8613 s8).
#[derive(Debug)]
pub struct Received {
    partial_iv: PartialIv,
    /// That of the context, which may be replaced before it is answered.
    id_context: Option<Box<[u8]>>,
    nonce: RequestNonce,
}

/// The nonce of a request may protect one response, and never two (RFC 8613 s7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestNonce {
    Unused,
    /// Used, or not to be used: each response has a Partial IV of its own.
    Spent,
}

impl SecurityContext {
    /// Opens a request. [`Refusal::response`] says what to answer to one that is refused.
    pub fn unprotect_request(
        &mut self,
        outer: &StreamMessage,
    ) -> Result<(StreamMessage, Received), Refusal> {
        let value = outer.options.get(OptionNumber::OSCORE).ok_or(Refusal::Unprotected)?;
        let header = Header::parse(value)?;
        let (Some(partial_iv), Some(kid)) = (header.partial_iv, header.kid) else {
            return Err(Refusal::Incomplete);
        };
        // RFC 10021 s6: a message of a group is of no other context.
        if header.group || !self.answers_to(kid, header.kid_context) {
            return Err(Refusal::UnknownContext);
        }
        // RFC 8613 s8.2 steps 3 to 6: the window is asked first, and told once the tag is right.
        if !self.replay.admits(partial_iv) {
            return Err(Refusal::Replay);
        }
        let nonce = self.common_iv.nonce(self.recipient_id, partial_iv);
        let aad = additional_data(self.recipient_id, partial_iv);
        let request = open(&self.recipient, &nonce, &aad, outer)?;
        let id_context = self.id_context.clone();
        let mut received = Received { partial_iv, id_context, nonce: RequestNonce::Unused };
        if let Err(challenge) =
            self.replay.take(partial_iv, request.options.get(OptionNumber::ECHO))
        {
            return Err(self.challenge(&mut received, challenge, outer));
        }
        if !request.code.is_request() {
            return Err(Refusal::NoRequest);
        }
        // RFC 8613 s4.1.3.5: all responses to a registration but the first need a Partial IV; here
        // the first has one too, so that the client can order them all.
        //
        // RFC 8613 s7.2: a request that may have been answered before the window was lost has a
        // nonce that may be used.
        if request.options.get(OptionNumber::OBSERVE).is_some() || !self.replay.is_known() {
            received.nonce = RequestNonce::Spent;
        }
        Ok((request, received))
    }

    /// Protects a response, or one notification of several; its token is taken over.
    ///
    /// One that needs a number of its own and has none is [`ProtectError::Unreserved`]:
    /// [`SecurityContext::reservation_needed`] says what is to be stored and confirmed, and it can
    /// be protected then. Repetitions of the message layer send the same bytes again.
    pub fn protect_response(
        &mut self,
        received: &mut Received,
        response: &StreamMessage,
    ) -> Result<StreamMessage, ProtectError> {
        let parts = class::split(response, Direction::Response)?;
        // Another context that used the nonce of this request might use it twice.
        if received.id_context != self.id_context {
            return Err(ProtectError::Replaced);
        }
        // RFC 8613 s7.2.1: past the maximum MUST NOT process any more messages.
        if self.sequence.is_exhausted() {
            return Err(ProtectError::Exhausted);
        }
        let own = match received.nonce {
            RequestNonce::Unused => None,
            RequestNonce::Spent => Some(self.sequence.take()?),
        };
        received.nonce = RequestNonce::Spent;
        let nonce = match own {
            Some(piv) => self.common_iv.nonce(self.sender_id, piv),
            None => self.common_iv.nonce(self.recipient_id, received.partial_iv),
        };
        let aad = additional_data(self.recipient_id, received.partial_iv);
        // RFC 8613 s8.3 step 4: a Partial IV of its own MUST be in the message, the request's not.
        let header = Header { partial_iv: own, ..Header::default() };
        seal(&self.sender, &nonce, &aad, response, parts, &header)
    }

    /// RFC 8613 appendix B.1.2: 4.01 with an Echo option alone, and with a Partial IV of our own
    /// since the request's may have been used before the crash.
    fn challenge(
        &mut self,
        received: &mut Received,
        challenge: Challenge,
        outer: &StreamMessage,
    ) -> Refusal {
        received.nonce = RequestNonce::Spent;
        let mut response = StreamMessage::new(Code::UNAUTHORIZED);
        response.token = outer.token.clone();
        response.options.insert(OptionNumber::ECHO, &challenge.0);
        match self.protect_response(received, &response) {
            Ok(response) => {
                self.replay.on_challenged(received.partial_iv);
                Refusal::Challenged(Box::new(response))
            }
            Err(ProtectError::Unreserved) => Refusal::Unreserved,
            Err(_) => Refusal::Exhausted,
        }
    }
}

impl Received {
    /// The sequence number of the request.
    pub const fn partial_iv(&self) -> PartialIv {
        self.partial_iv
    }
}
