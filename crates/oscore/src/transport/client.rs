//! Requests of one's own, and what answers them (RFC 8613 s8.1 and s8.4).

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use lowmesh_coap::exchange::{Input, Name, Output};
use lowmesh_coap::params::{MAX_AGE_DEFAULT, REGISTER_AGAIN_MAX, REGISTER_AGAIN_MIN};
use lowmesh_coap::{PeerAddress, RequestTemplate, Transport};
use lowmesh_machine::{DropReason, Rejected, debug_assert_accepted};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::{Class, Code, Message, OptionNumber, Token};

use super::{
    Answer, Failure, NO_MEMBER, OwnRequests, Protected, Protection, SecurityContexts, ToOne, inside,
};
use crate::params::{GROUP_MEMBERS_MAX, RENEWALS_MAX};
use crate::{Identity, Pending, ProtectError, ResponseError, group};

/// A request that may still get responses.
#[derive(Debug)]
pub(super) struct Asked<P> {
    peer: P,
    /// The request as the host made it. Each registration protects it again.
    request: RequestTemplate,
    /// The request as it has left last.
    outer: RequestTemplate,
    ties: Ties,
    /// The token that it has, once a notification has shown it.
    token: Option<Token>,
    /// When to register again.
    due: Option<Instant>,
    /// How often it was made again with a new context.
    renewals: u8,
    /// The challenge of a proxy to the request that has left last has been answered.
    echoed: bool,
    /// A notification has come.
    observed: bool,
    /// Which member has answered it from each address; `None` if more than one has.
    seen: BTreeMap<P, Option<Identity>>,
}

/// What responses belong to, the newest first: of an observation, its latest two registrations.
#[derive(Debug)]
pub(super) enum Ties {
    Context { context: usize, pending: Vec<Pending> },
    Group { group: usize, to: Option<Identity>, pending: Vec<group::Pending> },
}

impl<P> Asked<P> {
    /// A request to a group.
    pub(super) fn of_group(peer: P, request: RequestTemplate, ties: Ties) -> Self {
        // Its blocks come from other addresses than it went to.
        let outer = RequestTemplate::new(request.code, "");
        Self::new(peer, request, outer, ties)
    }
    fn new(peer: P, request: RequestTemplate, outer: RequestTemplate, ties: Ties) -> Self {
        let token = request.token.clone();
        let (due, renewals, echoed, observed) = (None, 0, false, false);
        let seen = BTreeMap::new();
        Self { peer, request, outer, ties, token, due, renewals, echoed, observed, seen }
    }
    /// The request as it has left last.
    pub(super) const fn outer(&self) -> &RequestTemplate {
        &self.outer
    }
    /// Whether a notification has come.
    pub(super) const fn is_observed(&self) -> bool {
        self.observed
    }
    /// A member has answered it from an address. Whether no other member has.
    fn sees(&mut self, address: P, member: Identity) -> bool
    where
        P: Ord,
    {
        if self.seen.len() >= GROUP_MEMBERS_MAX && !self.seen.contains_key(&address) {
            return false;
        }
        let seen = self.seen.entry(address).or_insert(Some(member));
        *seen = seen.filter(|one| *one == member);
        seen.is_some()
    }
    /// Whether it takes the token of an observation over.
    pub(super) fn has_token(&self, peer: &P, token: &Token) -> bool
    where
        P: PartialEq,
    {
        self.peer == *peer && self.token.as_ref() == Some(token)
    }
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
        let Some(protection) = protection.filter(|one| one.own_requests.protects(peer)) else {
            return self.transport.handle(now, Input::Request { peer, message, handle });
        };
        let (outer, ties) = match (&protection.own_requests, protection.own_requests.context(peer))
        {
            (OwnRequests::Group(group, to_one), _) => {
                let answered = self.members.get(&peer).copied();
                let to = match to_one {
                    ToOne::Member(named) => Some(*named),
                    // RFC 10021 s14.9: group mode is NOT RECOMMENDED for a request to one.
                    ToOne::Answered => Some(answered.ok_or(NO_MEMBER)?),
                    ToOne::GroupMode => answered,
                };
                let (outer, pending) = seal_for(protection, *group, to, &message)?;
                (outer, Ties::Group { group: *group, to, pending: vec![pending] })
            }
            (_, context) => {
                let context = context.unwrap_or_default();
                let (outer, pending) = seal(protection, context, &message)?;
                (outer, Ties::Context { context, pending: vec![pending] })
            }
        };
        let sent = outer.clone();
        self.transport.handle(now, Input::RequestVerified { peer, message: outer, handle })?;
        self.forget_token(peer, message.token.as_ref(), now);
        self.asked.insert(handle, Asked::new(peer, message, sent, ties));
        Ok(())
    }
    /// A request with the token of an observation takes its place (RFC 7641 s3.6).
    pub(super) fn forget_token(&mut self, peer: P, token: Option<&Token>, now: Instant) {
        let Some(token) = token else { return };
        let before = self.asked.iter().find(|(_, one)| one.has_token(&peer, token));
        if let Some(handle) = before.map(|(handle, _)| *handle) {
            self.forget_asked(handle, now);
        }
    }
    /// A response has come, or a notification.
    pub(super) fn on_response(&mut self, response: Response<P>, now: Instant) {
        let Response { handle, from, message: outer, rtt, retransmissions } = response;
        let Some(opened) = self.open(handle, from, &outer, now) else {
            // Where all requests are protected, it is one more behind a response that was accepted.
            if self.protection.as_ref().is_none_or(|one| !one.own_requests.protects(from)) {
                let message = outer;
                self.outbox.push(Output::Response { handle, from, message, rtt, retransmissions });
            }
            return;
        };
        let message = match opened {
            Ok(Answer::Response(inner)) => inside(&outer, inner),
            // RFC 8613 appendix B.2 step 3: the client makes the request with the third context.
            Ok(Answer::Again) => return self.ask_again(handle, Under::Context, now),
            // RFC 9175 s2.3: a proxy wants to know that the address is ours. It has not passed the request on, so the same
            // octets are no replay; if it has, the server says so.
            Err(ResponseError::Unprotected)
                if outer.code == Code::UNAUTHORIZED
                    && outer.options.get(OptionNumber::ECHO).is_some()
                    && self.asked.get(&handle).is_some_and(|asked| !asked.echoed) =>
            {
                return self.answer_challenge(handle, &outer, now);
            }
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
        // RFC 8613 s7.3: what answers an earlier registration may be older than the latest one, and does not answer it.
        let is_latest = self.asked.get_mut(&handle).is_none_or(|asked| asked.ties.settle());
        // RFC 8613 s4.1.3.5.2: what has no Observe outside, or none inside, is a last response.
        let observe = OptionNumber::OBSERVE;
        let observes = outer.options.get(observe).is_some()
            && message.options.get(observe).is_some()
            && message.code.class() == Class::Success;
        if !observes {
            if is_latest {
                self.accept(handle, false, now);
                self.outbox.push(Output::Response { handle, from, message, rtt, retransmissions });
            }
            return;
        }
        if is_latest {
            self.accept(handle, true, now);
            self.register_later(handle, &message, now);
        }
        if let Some(asked) = self.asked.get_mut(&handle) {
            asked.token = Some(outer.token);
            asked.observed = true;
        }
        self.outbox.push(Output::Notification { handle, from, message });
    }
    /// An observation is fresh as long as its latest notification says.
    fn register_later(&mut self, handle: Name, message: &Message, now: Instant) {
        // RFC 7641 s3.3.1: to register again, the client SHOULD wait 5 to 15 s after Max-Age; which is inside.
        let max_age = message.options.get_uint(OptionNumber::MAX_AGE);
        let fresh = max_age.map_or(MAX_AGE_DEFAULT, |seconds| Duration::from_secs(seconds.into()));
        let jitter = self.rng.duration(REGISTER_AGAIN_MIN, REGISTER_AGAIN_MAX);
        self.wake_at(handle, now + fresh + jitter);
    }
    /// Tells the transport that a response counts.
    fn accept(&mut self, handle: Name, observes: bool, now: Instant) {
        if !observes {
            self.forget_asked(handle, now);
        }
        debug_assert_accepted(self.transport.handle(now, Input::Accept { handle, observes }));
    }
    /// The request of a handle is over.
    pub(super) fn forget_asked(&mut self, handle: Name, now: Instant) {
        if let Some(handle) = self.outer.stop_gathering(handle) {
            debug_assert_accepted(self.transport.handle(now, Input::Cancel { handle }));
        }
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
            (asked.due, asked.echoed) = (None, false);
            let (peer, token) = (asked.peer, asked.token.clone());
            let sent = asked.ties.seal_again(protection, &asked.request).and_then(|message| {
                let message = RequestTemplate { token, ..message };
                asked.outer.clone_from(&message);
                self.transport.handle(now, Input::RequestVerified { peer, message, handle })
            });
            if sent.is_err() {
                self.wake_at(handle, now + REGISTER_AGAIN_MAX);
            }
        }
    }
    /// Another session with a peer follows the one that is over: the observations that the transport has kept are
    /// registered again in it.
    pub(super) fn enter_next_session(&mut self, peer: P, now: Instant) {
        let kept = self.asked.iter().filter(|(_, asked)| asked.peer == peer && asked.observed);
        // One that was being registered again has waited.
        let kept = kept.map(|(handle, asked)| (*handle, asked.due.is_some()));
        for (handle, is_fresh) in kept.collect::<Vec<_>>() {
            let jitter = self.rng.duration(REGISTER_AGAIN_MIN, REGISTER_AGAIN_MAX);
            self.wake_at(handle, if is_fresh { now + jitter } else { now });
        }
    }

    /// What is inside of a response to a protected request.
    pub(super) fn open(
        &mut self,
        handle: Name,
        from: P,
        outer: &Message,
        now: Instant,
    ) -> Option<Result<Answer, ResponseError>> {
        let (asked, protection) = (self.asked.get_mut(&handle)?, self.protection.as_ref()?);
        let (contexts, outer) = (&protection.contexts, StreamMessage::from(outer));
        let opened = match &mut asked.ties {
            Ties::Context { context, pending } => {
                contexts.unprotect_response(*context, pending, &outer)
            }
            // A forged response is discarded; one whose signature is not checked is, too.
            Ties::Group { group, pending, .. } => {
                let mut check = self.forgeries.check(from, now);
                let opened = first_of(pending, |one| {
                    contexts
                        .unprotect_group_response(*group, one, &outer, &mut |one| check.may(one))
                });
                let is_forged = matches!(opened, Ok(Err(ResponseError::BadSignature)));
                let checked = check.end();
                self.forgeries.on_checked(from, checked, !is_forged, now);
                if let Ok(Ok(answer)) = &opened {
                    let alone = asked.sees(from, answer.from);
                    self.remember(from, answer.from, alone);
                }
                opened.map(|result| result.map(|answer| Answer::Response(answer.response)))
            }
        };
        // A new context that cannot be stored is none: the request goes on, to be answered or to fail.
        Some(opened.unwrap_or(Err(ResponseError::Forged)))
    }
    /// Records the verified address of a member. Each member has one entry, its latest address, so that one member
    /// cannot fill the table.
    ///
    /// A signature authenticates the member, and nothing authenticates its address: an attacker on the path can send the
    /// response of one member from the address of another. So if two members respond to one request from one address,
    /// the table keeps neither; `alone` is true if no other member has.
    pub(super) fn remember(&mut self, address: P, member: Identity, alone: bool) {
        if !alone {
            self.members.remove(&address);
            return;
        }
        if self.members.get(&address) == Some(&member) {
            return;
        }
        self.members.retain(|_, one| *one != member);
        if self.members.len() < GROUP_MEMBERS_MAX || self.members.contains_key(&address) {
            self.members.insert(address, member);
        }
    }
    /// Whether the server of a request has not been asked for a new context too often.
    fn may_renew(&self, handle: Name) -> bool {
        let (Some(asked), Some(protection)) = (self.asked.get(&handle), &self.protection) else {
            return false;
        };
        let Ties::Context { context, .. } = asked.ties else { return false };
        asked.renewals == 0 && protection.contexts.derives_many_times(context)
    }
    /// Ends a request in the transport so that it can be made again.
    fn take_back(&mut self, handle: Name, now: Instant) -> Option<Asked<P>> {
        let asked = self.asked.remove(&handle);
        if let Some(due) = asked.as_ref().and_then(|asked| asked.due) {
            self.due.remove(&(due, handle));
        }
        debug_assert_accepted(
            self.transport.handle(now, Input::Accept { handle, observes: false }),
        );
        asked
    }
    /// Repeats a request with the Echo value of a proxy, outside of what is protected.
    fn answer_challenge(&mut self, handle: Name, challenge: &Message, now: Instant) {
        let Some(asked) = self.take_back(handle, now) else { return };
        let value = challenge.options.get(OptionNumber::ECHO).unwrap_or_default();
        let (peer, mut message) = (asked.peer, asked.outer.clone());
        message.options.set(OptionNumber::ECHO, value);
        let outer = message.clone();
        let asked = Asked { outer, echoed: true, due: None, ..asked };
        if self.transport.handle(now, Input::RequestVerified { peer, message, handle }).is_ok() {
            self.asked.insert(handle, asked);
        } else {
            self.outbox.push(Output::Failed { handle, reason: DropReason::QueueFull });
        }
    }
    /// Makes a request again in the place of one that its server has no context for.
    fn ask_again(&mut self, handle: Name, under: Under, now: Instant) {
        let asked = self.take_back(handle, now);
        let (Some(asked), Some(protection)) = (asked, &self.protection) else { return };
        let sealed = match asked.ties {
            Ties::Context { context, .. } if asked.renewals < RENEWALS_MAX => {
                let peer = asked.peer;
                seal_under(under, protection, context, &asked.request).and_then(
                    |(message, pending)| {
                        let outer = message.clone();
                        let input = Input::RequestVerified { peer, message, handle };
                        self.transport.handle(now, input)?;
                        Ok((Ties::Context { context, pending: vec![pending] }, outer))
                    },
                )
            }
            _ => Err(Rejected::Gone { what: "request", why: "its server accepts no new context" }),
        };
        match sealed {
            Ok((ties, outer)) => {
                let (renewals, token) = (asked.renewals + 1, asked.request.token.clone());
                let (due, echoed) = (None, false);
                let asked = Asked { outer, ties, token, due, renewals, echoed, ..asked };
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
    let plain = plain(message);
    let contexts = &protection.contexts;
    let sealed = match under {
        Under::Context => contexts.protect_request(context, &plain),
        Under::First => contexts.protect_first_request(context, &plain),
    };
    let (outer, pending) = sealed.map_err(|error| unprotected("request", error))?;
    Ok((leaving(message, outer), pending))
}

/// The request that leaves for a group, or for one member of it.
pub(super) fn seal_for<P, C: SecurityContexts>(
    protection: &Protection<P, C>,
    group: usize,
    to: Option<Identity>,
    message: &RequestTemplate,
) -> Result<(RequestTemplate, group::Pending), Rejected> {
    let sealed = protection.contexts.protect_group_request(group, to, &plain(message));
    let (outer, pending) = sealed.map_err(|error| unprotected("request", error))?;
    Ok((leaving(message, outer), pending))
}

impl Ties {
    /// Whether a response has come to the latest registration. Then what the earlier ones bring is older.
    fn settle(&mut self) -> bool {
        let is_answered = match self {
            Self::Context { pending, .. } => pending.first().is_none_or(Pending::is_answered),
            Self::Group { pending, .. } => pending.first().is_none_or(group::Pending::is_answered),
        };
        match self {
            Self::Context { pending, .. } if is_answered => pending.truncate(1),
            Self::Group { pending, .. } if is_answered => pending.truncate(1),
            _ => {}
        }
        is_answered
    }
    /// Protects a registration again, under numbers of its own.
    fn seal_again<P, C: SecurityContexts>(
        &mut self,
        protection: &Protection<P, C>,
        message: &RequestTemplate,
    ) -> Result<RequestTemplate, Rejected> {
        match self {
            Self::Context { context, pending } => {
                let (outer, new) = seal(protection, *context, message)?;
                pending.insert(0, new);
                pending.truncate(REGISTRATIONS_MAX);
                Ok(outer)
            }
            Self::Group { group, to, pending } => {
                let (outer, new) = seal_for(protection, *group, *to, message)?;
                pending.insert(0, new);
                pending.truncate(REGISTRATIONS_MAX);
                Ok(outer)
            }
        }
    }
}

/// What is protected of a request.
fn plain(message: &RequestTemplate) -> StreamMessage {
    let RequestTemplate { code, options, payload, .. } = message;
    let (options, payload) = (options.clone(), payload.clone());
    StreamMessage { code: *code, token: Token::EMPTY, options, payload }
}

/// A request whose protected part is `outer`.
fn leaving(message: &RequestTemplate, outer: StreamMessage) -> RequestTemplate {
    let StreamMessage { code, options, payload, .. } = outer;
    let RequestTemplate { confirmable, body_max, .. } = *message;
    let token = message.token.clone();
    RequestTemplate { code, confirmable, options, payload, token, body_max }
}

/// The first result that is not [`ResponseError::Forged`], of some requests.
fn first_of<E, A>(
    requests: &mut [group::Pending],
    mut unprotect: impl FnMut(&mut group::Pending) -> Result<Result<A, ResponseError>, E>,
) -> Result<Result<A, ResponseError>, E> {
    let mut result = Err(ResponseError::Forged);
    for pending in requests {
        result = unprotect(pending)?;
        if !matches!(result, Err(ResponseError::Forged)) {
            break;
        }
    }
    Ok(result)
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
                ProtectError::Nested
                | ProtectError::Code(_)
                | ProtectError::ProxyUri
                | ProtectError::UnknownMember => Rejected::Invalid { what, why },
            }
        }
        Failure::Closed => Rejected::Gone { what, why: "its security context has been closed" },
        Failure::Storage => {
            Rejected::Failed { what, why: "the state of its security context cannot be stored" }
        }
    }
}
