//! A client's two halves in a group: protecting a request, and opening what answers it (RFC 10021 s7.1, s7.4, s8.3 and s8.6).

use alloc::collections::BTreeMap;

use lowmesh_wire::coap::OptionNumber;
use lowmesh_wire::coap::stream::StreamMessage;

use super::authenticated::{Mode, RequestName};
use super::context::{Envelope, Group, MayCheck, value};
use crate::class::{self, Direction};
use crate::client::{REGISTER, renumbered};
use crate::{Header, Identity, PartialIv, ProtectError, ResponseError};

/// What ties responses to a request that was protected: to be kept as long as responses may come.
#[derive(Debug)]
pub struct Pending {
    request: RequestName,
    /// The member that the request is for, in pairwise mode.
    to: Option<Identity>,
    observes: bool,
    /// What has come of each member that has answered.
    servers: BTreeMap<Identity, Server>,
}

/// The responses of one member (RFC 10021 s5.3.1).
///
/// ```text
///   nothing ── a response ──► latest ── a newer one ──► latest ── the last one ──► over
/// ```
#[derive(Clone, Copy, Debug, Default)]
struct Server {
    /// The Response Number: the greatest Partial IV that has come.
    latest: Option<PartialIv>,
    /// How many notifications have come.
    notifications: u32,
    /// Nothing more is accepted.
    over: bool,
}

/// A response, and the member that has made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The member.
    pub from: Identity,
    /// The response as the member made it.
    pub response: StreamMessage,
}

impl Group {
    /// Protects a request, for one member in pairwise mode or for all in group mode; its token is taken over.
    ///
    /// Before it, [`Group::reservation_needed`] says what is to be stored and confirmed. Repetitions send the same bytes again
    /// (RFC 10021 s7).
    pub fn protect_request(
        &mut self,
        to: Option<Identity>,
        request: &StreamMessage,
    ) -> Result<(StreamMessage, Pending), ProtectError> {
        let parts = class::split(request, Direction::Request)?;
        if to.is_some_and(|to| !self.recipients.contains_key(&to)) {
            return Err(ProtectError::UnknownMember);
        }
        let partial_iv = self.sender.sequence.take()?;
        let mode = if to.is_some() { Mode::Pairwise } else { Mode::Group };
        let kid = self.sender.id;
        // RFC 10021 s3.2: the kid context is always present in requests.
        let option = value(&Header {
            partial_iv: Some(partial_iv),
            kid_context: Some(&self.common.group_id),
            kid: Some(kid.as_bytes()),
            group: mode == Mode::Group,
        });
        let name = RequestName { kid, partial_iv };
        let nonce = (kid, partial_iv);
        let envelope = Envelope { option: &option, mode, request: name, nonce, is_request: true };
        let recipient = to.and_then(|to| self.recipients.get(&to));
        let outer = self.seal(request, parts, recipient, &envelope)?;
        let observes = request.options.iter().any(|option| {
            option.number == OptionNumber::OBSERVE && option.as_uint() == Some(REGISTER)
        });
        let servers = BTreeMap::new();
        Ok((outer, Pending { request: name, to, observes, servers }))
    }

    /// Opens a response to a request that was protected. After an error the request is still open.
    ///
    /// The Observe option of a notification counts those of its member that were accepted, as in
    /// [`SecurityContext::unprotect_response`](crate::SecurityContext::unprotect_response).
    pub fn unprotect_response(
        &self,
        pending: &mut Pending,
        outer: &StreamMessage,
    ) -> Result<Answer, ResponseError> {
        self.unprotect_response_if(pending, outer, &mut |_| true)
    }

    /// Opens a response, if its signature may be checked. One that may not is [`ResponseError::BadSignature`].
    pub fn unprotect_response_if(
        &self,
        pending: &mut Pending,
        outer: &StreamMessage,
        may_check: MayCheck<'_>,
    ) -> Result<Answer, ResponseError> {
        let option = outer.options.get(OptionNumber::OSCORE).ok_or(ResponseError::Unprotected)?;
        let header = Header::parse(option)?;
        // The Gid does not change here; one that is said must be the right one.
        if header.kid_context.is_some_and(|said| *said != *self.common.group_id) {
            return Err(ResponseError::Forged);
        }
        // RFC 10021 s3.2 and s7.4: without a kid it is of the member that the request was for.
        let from = match header.kid {
            Some(kid) => Identity::new(kid),
            None => pending.to,
        };
        let from = from.ok_or(ResponseError::Forged)?;
        // RFC 10021 s7.4: a response of another member is discarded.
        if pending.to.is_some_and(|to| to != from) {
            return Err(ResponseError::Forged);
        }
        let recipient = self.recipients.get(&from).ok_or(ResponseError::Forged)?;
        let server = pending.servers.get(&from).copied().unwrap_or_default();
        server.admits(header.partial_iv, pending.servers.contains_key(&from))?;
        let name = pending.request;
        let envelope = Envelope {
            option,
            mode: if header.group { Mode::Group } else { Mode::Pairwise },
            request: name,
            // RFC 8613 s8.4 step 4: without a Partial IV the nonce of the request is used.
            nonce: header.partial_iv.map_or((name.kid, name.partial_iv), |piv| (from, piv)),
            is_request: false,
        };
        let opened = self.open(recipient, outer, &envelope, may_check)?;
        if !opened.code.is_response() {
            return Err(ResponseError::NoResponse);
        }
        let response = pending.accept(from, opened, header.partial_iv)?;
        Ok(Answer { from, response })
    }
}

impl Server {
    /// Whether a response may come, by what its header says.
    fn admits(self, piv: Option<PartialIv>, answered: bool) -> Result<(), ResponseError> {
        let stale = match piv {
            Some(piv) => self.latest.is_some_and(|latest| piv <= latest),
            // RFC 10021 s5.3.1: at most one response without Partial IV, and that is the oldest.
            None => answered,
        };
        if stale || self.over { Err(ResponseError::Replay) } else { Ok(()) }
    }
}

impl Pending {
    /// True when a response has come from any member.
    pub fn is_answered(&self) -> bool {
        !self.servers.is_empty()
    }
    /// The sequence number of the request.
    pub const fn partial_iv(&self) -> PartialIv {
        self.request.partial_iv
    }
    /// The member that the request is for, in pairwise mode.
    pub const fn to(&self) -> Option<Identity> {
        self.to
    }
    /// A response verifies: what it is, and what comes after it.
    fn accept(
        &mut self,
        from: Identity,
        mut response: StreamMessage,
        piv: Option<PartialIv>,
    ) -> Result<StreamMessage, ResponseError> {
        let notifies = response.options.get(OptionNumber::OBSERVE).is_some();
        // RFC 8613 s4.1.3.5.2: a notification that nobody asked for stops the processing.
        if notifies && !self.observes {
            return Err(ResponseError::NoResponse);
        }
        let server = self.servers.entry(from).or_default();
        server.latest = piv.or(server.latest);
        if notifies {
            server.notifications += 1;
            // Three octets, as Observe has them (RFC 7641 s2).
            response.options = renumbered(&response, server.notifications & 0x00ff_ffff);
        } else if self.to.is_some() || self.observes {
            // To one member there is one response, and what is no notification ends an observation.
            server.over = true;
        }
        Ok(response)
    }
}
