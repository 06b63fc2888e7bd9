//! Requests of one's own, and what answers them (RFC 8613 s8.1 and s8.4).

use alloc::vec;
use alloc::vec::Vec;

use lowmesh_coap::exchange::{Input, Name, Output};
use lowmesh_coap::params::{MAX_AGE_DEFAULT, REGISTER_AGAIN_MAX, REGISTER_AGAIN_MIN};
use lowmesh_coap::{PeerAddress, RequestTemplate, Transport};
use lowmesh_machine::{DropReason, Rejected, debug_assert_accepted};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::{Class, Code, Message, OptionNumber, Token};

use super::{Answer, Failure, Protected, Protection, SecurityContexts, inside};
use crate::params::RENEWALS_MAX;
use crate::{Pending, ProtectError, ResponseError};

/// A request that may still get responses.
#[derive(Debug)]
pub(super) struct Asked<P> {
    peer: P,
    context: usize,
    /// The request as the host made it. Each registration protects it again.
    request: RequestTemplate,
    /// What responses belong to, the newest first: of an observation, its latest two registrations.
    pending: Vec<Pending>,
    /// The token that it has, once a notification has shown it.
    token: Option<Token>,
    /// When to register again.
    due: Option<Instant>,
    /// How often it was made again with a new context.
    renewals: u8,
}

/// An [`Output::Response`].
pub(super) struct Response<P> {
    pub(super) handle: Name,
    pub(super) from: P,
    pub(super) message: Message,
    pub(super) rtt: Duration,
    pub(super) retransmissions: u8,
}

/// Registrations of an observation whose notifications are still understood; ours: while one is being renewed, its
/// predecessor's may be under way.
const REGISTRATIONS_MAX: usize = 2;

impl<P: PeerAddress, T: Transport<P>, C: SecurityContexts> Protected<P, T, C> {
    /// The host asks.
    pub(super) fn request(
        &mut self,
        peer: P,
        message: RequestTemplate,
        handle: Name,
        now: Instant,
    ) -> Result<(), Rejected> {
        let protection = self.protection.as_ref();
        let Some((protection, context)) =
            protection.and_then(|one| Some((one, one.own_requests.context(peer)?)))
        else {
            return self.transport.handle(now, Input::Request { peer, message, handle });
        };
        let (outer, pending) = seal(protection, context, &message)?;
        let token = message.token.clone();
        self.transport.handle(now, Input::RequestVerified { peer, message: outer, handle })?;
        // A request with the token of an observation takes its place (RFC 7641 s3.6).
        if let Some(token) = &token {
            let taken = |one: &Asked<P>| one.peer == peer && one.token.as_ref() == Some(token);
            let before = self.asked.iter().find(|(_, one)| taken(one)).map(|(handle, _)| *handle);
            if let Some(handle) = before {
                self.forget_asked(handle);
            }
        }
        let pending = vec![pending];
        let asked =
            Asked { peer, context, request: message, pending, token, due: None, renewals: 0 };
        self.asked.insert(handle, asked);
        Ok(())
    }
    /// A response has come, or a notification.
    pub(super) fn on_response(&mut self, response: Response<P>, now: Instant) {
        let Response { handle, from, message: outer, rtt, retransmissions } = response;
        let Some(opened) = self.open(handle, &outer) else {
            // Where all requests are protected, it is one more behind a response that was accepted.
            if self.protection.as_ref().is_none_or(|one| one.own_requests.context(from).is_none()) {
                let message = outer;
                self.outbox.push(Output::Response { handle, from, message, rtt, retransmissions });
            }
            return;
        };
        let message = match opened {
            Ok(Answer::Response(inner)) => inside(&outer, inner),
            // RFC 8613 appendix B.2 step 3: the client makes the request with the third context.
            Ok(Answer::Again) => return self.ask_again(handle, Under::Context, now),
            // RFC 8613 appendix B.2 step 1: a client without a valid context. Nobody vouches for the error, so the context
            // stays until a server shows that it has the keys.
            Err(ResponseError::Unprotected)
                if matches!(outer.code, Code::UNAUTHORIZED | Code::BAD_REQUEST)
                    && self.may_renew(handle) =>
            {
                return self.ask_again(handle, Under::First, now);
            }
            // RFC 8613 s8.2: an error of the peer's OSCORE, or of a proxy, is in the open. Nobody vouches for it, but what
            // else it could be would not come.
            Err(ResponseError::Unprotected) if outer.code.class() != Class::Success => {
                self.accept(handle, false, now);
                self.outbox.push(Output::Failed { handle, reason: DropReason::Malformed });
                return;
            }
            // RFC 8613 s8.4 step 8, s8.4.2: it is discarded, and the request or the observation goes on.
            Err(_) => return,
        };
        // RFC 8613 s4.1.3.5.2: what has no Observe outside, or none inside, is a last response.
        let observe = OptionNumber::OBSERVE;
        let observes = outer.options.get(observe).is_some()
            && message.options.get(observe).is_some()
            && message.code.class() == Class::Success;
        if !observes {
            self.accept(handle, false, now);
            self.outbox.push(Output::Response { handle, from, message, rtt, retransmissions });
            return;
        }
        self.accept(handle, true, now);
        // RFC 7641 s3.3.1: to register again, the client SHOULD wait 5 to 15 s after Max-Age; which is inside.
        let max_age = message.options.get_uint(OptionNumber::MAX_AGE);
        let fresh = max_age.map_or(MAX_AGE_DEFAULT, |seconds| Duration::from_secs(seconds.into()));
        let jitter = self.rng.duration(REGISTER_AGAIN_MIN, REGISTER_AGAIN_MAX);
        self.wake_at(handle, now + fresh + jitter);
        if let Some(asked) = self.asked.get_mut(&handle) {
            asked.token = Some(outer.token);
        }
        self.outbox.push(Output::Notification { handle, from, message });
    }
    /// Tells the transport that a response counts.
    fn accept(&mut self, handle: Name, observes: bool, now: Instant) {
        if !observes {
            self.forget_asked(handle);
        }
        debug_assert_accepted(self.transport.handle(now, Input::Accept { handle, observes }));
    }
    /// The request of a handle is over.
    pub(super) fn forget_asked(&mut self, handle: Name) {
        if let Some(Asked { due: Some(due), .. }) = self.asked.remove(&handle) {
            self.due.remove(&(due, handle));
        }
    }
    /// Registers observations that are no longer fresh again, each under its token. The transport cannot do it: the octets
    /// of the earlier registration would be a replay.
    pub(super) fn register_again(&mut self, now: Instant) {
        while let Some((due, handle)) = self.due.first().copied()
            && due <= now
        {
            self.due.pop_first();
            let (Some(asked), Some(protection)) = (self.asked.get_mut(&handle), &self.protection)
            else {
                continue;
            };
            asked.due = None;
            let (peer, token) = (asked.peer, asked.token.clone());
            let sealed = seal(protection, asked.context, &asked.request);
            let sent = sealed.and_then(|(message, pending)| {
                let message = RequestTemplate { token, ..message };
                self.transport.handle(now, Input::RequestVerified { peer, message, handle })?;
                Ok(pending)
            });
            match sent {
                Ok(pending) => {
                    asked.pending.insert(0, pending);
                    asked.pending.truncate(REGISTRATIONS_MAX);
                }
                Err(_) => self.wake_at(handle, now + REGISTER_AGAIN_MAX),
            }
        }
    }

    /// What is inside of a response to a protected request.
    fn open(&mut self, handle: Name, outer: &Message) -> Option<Result<Answer, ResponseError>> {
        let (asked, protection) = (self.asked.get_mut(&handle)?, self.protection.as_ref()?);
        let contexts = &protection.contexts;
        let opened = contexts.unprotect_response(
            asked.context,
            &mut asked.pending,
            &StreamMessage::from(outer),
        );
        // A new context that cannot be stored is none: the request goes on, to be answered or to fail.
        Some(opened.unwrap_or(Err(ResponseError::Forged)))
    }
    /// Whether the server of a request has not been asked for a new context too often.
    fn may_renew(&self, handle: Name) -> bool {
        let (Some(asked), Some(protection)) = (self.asked.get(&handle), &self.protection) else {
            return false;
        };
        asked.renewals == 0 && protection.contexts.derives_many_times(asked.context)
    }
    /// Makes a request again in the place of one that its server has no context for.
    fn ask_again(&mut self, handle: Name, under: Under, now: Instant) {
        let asked = self.asked.remove(&handle);
        if let Some(due) = asked.as_ref().and_then(|asked| asked.due) {
            self.due.remove(&(due, handle));
        }
        debug_assert_accepted(
            self.transport.handle(now, Input::Accept { handle, observes: false }),
        );
        let (Some(asked), Some(protection)) = (asked, &self.protection) else { return };
        let sealed = if asked.renewals == RENEWALS_MAX {
            Err(Rejected::Gone { what: "request", why: "its server takes no new context" })
        } else {
            let (peer, context) = (asked.peer, asked.context);
            seal_under(under, protection, context, &asked.request).and_then(|(message, pending)| {
                self.transport.handle(now, Input::RequestVerified { peer, message, handle })?;
                Ok(pending)
            })
        };
        match sealed {
            Ok(pending) => {
                let (pending, renewals) = (vec![pending], asked.renewals + 1);
                let token = asked.request.token.clone();
                let asked = Asked { pending, token, due: None, renewals, ..asked };
                self.asked.insert(handle, asked);
            }
            Err(_) => {
                self.outbox.push(Output::Failed { handle, reason: DropReason::GaveUp });
            }
        }
    }
    fn wake_at(&mut self, handle: Name, due: Instant) {
        let Some(asked) = self.asked.get_mut(&handle) else { return };
        if let Some(before) = asked.due.replace(due) {
            self.due.remove(&(before, handle));
        }
        self.due.insert((due, handle));
    }
}

/// What a request is protected with.
#[derive(Clone, Copy)]
enum Under {
    /// The context there is.
    Context,
    /// The first context of RFC 8613 appendix B.2.
    First,
}

/// The request that leaves.
fn seal<P, C: SecurityContexts>(
    protection: &Protection<P, C>,
    context: usize,
    message: &RequestTemplate,
) -> Result<(RequestTemplate, Pending), Rejected> {
    seal_under(Under::Context, protection, context, message)
}

fn seal_under<P, C: SecurityContexts>(
    under: Under,
    protection: &Protection<P, C>,
    context: usize,
    message: &RequestTemplate,
) -> Result<(RequestTemplate, Pending), Rejected> {
    let RequestTemplate { code, confirmable, options, payload, token } = message;
    let plain = StreamMessage {
        code: *code,
        token: Token::EMPTY,
        options: options.clone(),
        payload: payload.clone(),
    };
    let contexts = &protection.contexts;
    let sealed = match under {
        Under::Context => contexts.protect_request(context, &plain),
        Under::First => contexts.protect_first_request(context, &plain),
    };
    let (outer, pending) = sealed.map_err(|error| unprotected("request", error))?;
    let StreamMessage { code, options, payload, .. } = outer;
    let (confirmable, token) = (*confirmable, token.clone());
    Ok((RequestTemplate { code, confirmable, options, payload, token }, pending))
}

/// The refusal of a message that cannot be protected.
pub(super) const fn unprotected(what: &'static str, error: Failure) -> Rejected {
    match error {
        Failure::Protect(error) => {
            let why = "OSCORE cannot protect it: it is protected already, or the context is used up or replaced";
            match error {
                ProtectError::Replaced | ProtectError::Exhausted => Rejected::Gone { what, why },
                ProtectError::TooLong => Rejected::TooLong { what, why },
                ProtectError::Unreserved => Rejected::Failed { what, why },
                ProtectError::Nested | ProtectError::Code(_) | ProtectError::ProxyUri => {
                    Rejected::Invalid { what, why }
                }
            }
        }
        Failure::Closed => Rejected::Gone { what, why: "its security context has been closed" },
        Failure::Storage => {
            Rejected::Failed { what, why: "the state of its security context cannot be stored" }
        }
    }
}
