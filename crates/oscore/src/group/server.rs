//! A server's two halves in a group: opening a request, and protecting what answers it (RFC 10021 s7.2, s7.3, s8.4 and s8.5).

use alloc::boxed::Box;

use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::{Code, OptionNumber};

use super::authenticated::{Mode, RequestName};
use super::context::{Envelope, Group, MayCheck, value};
use crate::class::{self, Direction};
use crate::server::RequestNonce;
use crate::{Challenge, Header, Identity, ProtectError, Refusal};

/// What ties responses to a request that was opened: to be kept until it is answered, and for an observation as long as that
/// lasts.
#[derive(Debug)]
pub struct Received {
    request: RequestName,
    mode: Mode,
    nonce: RequestNonce,
}

impl Received {
    /// The member that asks.
    pub const fn from(&self) -> Identity {
        self.request.kid
    }
    /// The mode of the request.
    pub const fn mode(&self) -> Mode {
        self.mode
    }
}

impl Group {
    /// Opens a request of another member.
    pub fn unprotect_request(
        &mut self,
        outer: &StreamMessage,
    ) -> Result<(StreamMessage, Received), Refusal> {
        self.unprotect_request_if(outer, &mut |_| true)
    }

    /// Opens a request of another member, if its signature may be checked. One that may not is
    /// [`Refusal::BadSignature`].
    ///
    /// ```text
    ///   the option names a member ──► its number is new ──► the tag is right ──► may it be checked? ──► the signature is right ──► taken
    ///            a table                a bit                 AES-CCM              group mode only
    /// ```
    pub fn unprotect_request_if(
        &mut self,
        outer: &StreamMessage,
        may_check: MayCheck<'_>,
    ) -> Result<(StreamMessage, Received), Refusal> {
        let option = outer.options.get(OptionNumber::OSCORE).ok_or(Refusal::Unprotected)?;
        let header = Header::parse(option)?;
        let (Some(partial_iv), Some(kid), Some(said)) =
            (header.partial_iv, header.kid, header.kid_context)
        else {
            return Err(Refusal::Incomplete);
        };
        // RFC 10021 s7.2: SHOULD NOT process a request with the kid of the server itself; it is no recipient.
        let kid = Identity::new(kid).filter(|_| *said == *self.common.group_id);
        let kid = kid.ok_or(Refusal::UnknownContext)?;
        let recipient = self.recipients.get(&kid).ok_or(Refusal::UnknownContext)?;
        if !recipient.replay.admits(partial_iv) {
            return Err(Refusal::Replay);
        }
        let mode = if header.group { Mode::Group } else { Mode::Pairwise };
        let name = RequestName { kid, partial_iv };
        let nonce = (kid, partial_iv);
        let envelope = Envelope { option, mode, request: name, nonce, is_request: true };
        let request = self.open(recipient, outer, &envelope, may_check)?;
        let mut received = Received { request: name, mode, nonce: RequestNonce::Unused };
        // RFC 10021 s9: the request with the Echo MUST be in pairwise mode; one in group mode could be meant for another server
        // (s14.9).
        let echo = request.options.get(OptionNumber::ECHO).filter(|_| mode == Mode::Pairwise);
        let recipient = self.recipients.get_mut(&kid).ok_or(Refusal::UnknownContext)?;
        if let Err(challenge) = recipient.replay.take(partial_iv, echo) {
            return Err(self.challenge(&mut received, challenge, outer));
        }
        let known = recipient.replay.is_known();
        if !request.code.is_request() {
            return Err(Refusal::NoRequest);
        }
        // RFC 8613 s4.1.3.5 and s7.2: as for requests to one.
        if request.options.get(OptionNumber::OBSERVE).is_some() || !known {
            received.nonce = RequestNonce::Spent;
        }
        Ok((request, received))
    }

    /// Protects a response, or one notification of several; its token is taken over.
    ///
    /// One that needs a number of its own and has none is [`ProtectError::Unreserved`]: [`Group::reservation_needed`] says what
    /// is to be stored and confirmed, and it can be protected then.
    pub fn protect_response(
        &mut self,
        received: &mut Received,
        response: &StreamMessage,
    ) -> Result<StreamMessage, ProtectError> {
        let parts = class::split(response, Direction::Response)?;
        // RFC 8613 s7.2.1: past the maximum MUST NOT process any more messages.
        if self.sender.sequence.is_exhausted() {
            return Err(ProtectError::Exhausted);
        }
        let name = received.request;
        if !self.recipients.contains_key(&name.kid) {
            return Err(ProtectError::UnknownMember);
        }
        // RFC 10021 s7.3: a response that is not the first MUST have a Partial IV of its own.
        let own = match received.nonce {
            RequestNonce::Unused => None,
            RequestNonce::Spent => Some(self.sender.sequence.take()?),
        };
        received.nonce = RequestNonce::Spent;
        let mode = match received.mode {
            Mode::Group => self.common.responses,
            Mode::Pairwise => Mode::Pairwise,
        };
        let id = self.sender.id;
        // RFC 10021 s3.2: the kid MUST be present in the response to a request in group mode.
        let kid = (received.mode == Mode::Group).then(|| id.as_bytes());
        let group = mode == Mode::Group;
        let option = value(&Header { partial_iv: own, kid_context: None, kid, group });
        let envelope = Envelope {
            option: &option,
            mode,
            request: name,
            nonce: own.map_or((name.kid, name.partial_iv), |piv| (id, piv)),
            is_request: false,
        };
        self.seal(response, parts, self.recipients.get(&name.kid), &envelope)
    }

    /// RFC 10021 s9: 4.01 with an Echo option alone, and with a Partial IV of our own.
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
                if let Some(recipient) = self.recipients.get_mut(&received.request.kid) {
                    recipient.replay.on_challenged(received.request.partial_iv);
                }
                Refusal::Challenged(Box::new(response))
            }
            Err(ProtectError::Unreserved) => Refusal::Unreserved,
            Err(_) => Refusal::Exhausted,
        }
    }
}
