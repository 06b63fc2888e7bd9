//! Requests of peers, and what answers them (RFC 8613 s8.2 and s8.3).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;

use lowmesh_coap::exchange::{Association, ExchangeId, Input, Name, Output};
use lowmesh_coap::observe::{DEREGISTER, REGISTER};
use lowmesh_coap::{PeerAddress, ResponseTemplate, Transport};
use lowmesh_machine::Rejected;
use lowmesh_units::Instant;
use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::{Class, Code, Message, OptionNumber, Token};

use super::client::unprotected;
use super::forgeries::Forgeries;
use super::outer::Outside;
use super::{
    Failure, Plain, Protected, Protection, SecurityContexts, inside, is_of_group, is_protected,
};
use crate::{Header, Opened, ProtectError, Received, Refusal, group};

/// A request that the application has not answered, and that wants a protected answer or may observe.
#[derive(Debug)]
pub(super) struct Answering<P> {
    peer: P,
    token: Token,
    /// `None` for a plain request.
    secured: Option<Secured>,
    registers: bool,
    outside: Outside,
    /// The kid of the request, which names the key.
    kid: Option<Vec<u8>>,
}

impl<P: PeerAddress> Answering<P> {
    pub(super) fn peer(&self) -> P {
        self.peer
    }
    pub(super) fn association(&self) -> Association {
        association(self.secured.as_ref())
    }
    pub(super) fn kid(&self) -> Option<&[u8]> {
        self.kid.as_deref()
    }
}

/// What a protected answer needs, or each notification of an observation.
#[derive(Debug)]
pub(super) enum Secured {
    Context { context: usize, received: Received },
    Group { group: usize, received: group::Received },
}

/// A notification on its way down.
pub(super) struct Telling<P> {
    pub(super) peer: P,
    pub(super) token: Token,
    pub(super) confirmable: bool,
    pub(super) handle: Name,
}

impl<P: PeerAddress, T: Transport<P>, C: SecurityContexts> Protected<P, T, C> {
    /// A peer asks.
    pub(super) fn on_request(
        &mut self,
        exchange: ExchangeId,
        from: P,
        message: Message,
        multicast: bool,
        now: Instant,
    ) {
        let (mut message, mut outside) = (message, Outside::default());
        if is_protected(&message.options) {
            let whole = self.whole_request(exchange, from, message, multicast, now);
            let Some(whole) = whole else { return };
            (message, outside) = whole;
        }
        let Some(protection) = &self.protection else { return };
        let kid = kid_of(&message);
        let (message, secured) = if is_protected(&message.options) {
            // RFC 10021 s7: RECOMMENDED to send no error to what is, or may be, a request to a group.
            let silent = multicast || is_of_group(&message);
            match self.forgeries.open(from, &protection.contexts, &message, now) {
                Ok(Ok((request, secured))) => (inside(&message, request), Some(secured)),
                // RFC 10021 s9: the challenge of a member.
                Ok(Err((refusal, of_group))) => {
                    let challenged = of_group && matches!(refusal, Refusal::Challenged(_));
                    let (response, why) = (refused(&refusal), told(&refusal, kid.as_deref()));
                    let code = response.code;
                    self.answer_outside(exchange, response, silent && !challenged, now);
                    return self.outbox.push(Output::Refused { from, message, code, why });
                }
                // What cannot be stored must not be used.
                Err(_) => {
                    let code = Code::INTERNAL_SERVER_ERROR;
                    self.answer_outside(exchange, ResponseTemplate::new(code), silent, now);
                    let why = String::from("the state of the security context cannot be stored");
                    return self.outbox.push(Output::Refused { from, message, code, why });
                }
            }
        } else if protection.plain_requests == Plain::Refused {
            let code = Code::UNAUTHORIZED;
            self.answer_outside(exchange, ResponseTemplate::new(code), multicast, now);
            let why = Refusal::Unprotected.to_string();
            return self.outbox.push(Output::Refused { from, message, code, why });
        } else if !self.has_proper_blocks(from, &message) {
            // RFC 7959 s2.2: 7 is reserved over UDP and is answered with 4.00.
            let response = ResponseTemplate::new(Code::BAD_REQUEST);
            return self.answer_outside(exchange, response, multicast, now);
        } else {
            (message, None)
        };
        let reads = matches!(message.code, Code::GET | Code::FETCH);
        let observe = message.options.get_uint(OptionNumber::OBSERVE).filter(|_| reads);
        if observe == Some(DEREGISTER) {
            self.deregister(&(from, message.token.clone()), &association(secured.as_ref()));
        }
        let registers = observe == Some(REGISTER);
        if secured.is_some() || registers {
            // The transport forgets requests that stay without an answer; here the oldest go. One that is forgotten
            // here is not answered below either, where its answer would leave in the open.
            if self.answering.len() >= self.answering_max
                && let Some((exchange, _)) = self.answering.pop_first()
            {
                let _expired = self.transport.handle(now, Input::Decline { exchange });
            }
            let token = message.token.clone();
            let peer = from;
            let answering = Answering { peer, token, secured, registers, outside, kid };
            self.answering.insert(exchange, answering);
        }
        self.outbox.push(Output::Request { exchange, from, message, multicast });
    }
    /// A client no longer observes.
    fn deregister(&mut self, observer: &(P, Token), under: &Association) {
        let observed = self.observed.get(observer).map(|one| association(one.as_ref()));
        // RFC 8613 s4.1.3.5: SHOULD NOT remove an active observation because of a request with its token.
        if observed.is_some_and(|one| one == *under) {
            self.observed.remove(observer);
        }
    }
    /// The host answers.
    pub(super) fn respond(
        &mut self,
        exchange: ExchangeId,
        response: ResponseTemplate,
        handle: Name,
        now: Instant,
    ) -> Result<(), Rejected> {
        let (Some(protection), Some(answering)) =
            (&self.protection, self.answering.get_mut(&exchange))
        else {
            return self.transport.handle(now, Input::Respond { exchange, response, handle });
        };
        let mut response = response;
        let full = self.observed.len() >= self.observed_max;
        let place = (answering.peer, answering.token.clone());
        let success = response.code.class() == Class::Success;
        let mut registers =
            answering.registers && success && response.options.get(OptionNumber::OBSERVE).is_some();
        if registers && full && !self.observed.contains_key(&place) {
            // RFC 7641 s4.1: a server that cannot keep one more leaves the option out.
            response.options.remove(OptionNumber::OBSERVE);
            registers = false;
        }
        if let Some(secured) = &mut answering.secured {
            match secured.seal(protection, response) {
                Ok(sealed) => {
                    let (outside, peer) = (&answering.outside, answering.peer);
                    response = self.outer.follow(outside, peer, sealed, &self.transport, now);
                }
                // Its client has a new context, and waits for no answer under the one before.
                Err(Failure::Protect(ProtectError::Replaced)) => {
                    self.answering.remove(&exchange);
                    return self.transport.handle(now, Input::Decline { exchange });
                }
                Err(error) => return Err(unprotected("response", error)),
            }
        }
        let sent = self.transport.handle(now, Input::Respond { exchange, response, handle });
        // A response that could not leave is answered again, and that answer must be protected too.
        if !matches!(sent, Ok(()) | Err(Rejected::Gone { .. })) {
            return sent;
        }
        if let Some(Answering { secured, .. }) = self.answering.remove(&exchange)
            && registers
            && sent.is_ok()
        {
            self.observed.insert(place, secured);
        }
        sent
    }
    /// The host tells an observer.
    pub(super) fn notify(
        &mut self,
        telling: Telling<P>,
        response: ResponseTemplate,
        now: Instant,
    ) -> Result<(), Rejected> {
        let Telling { peer, token, confirmable, handle } = telling;
        let mut response = response;
        let (Some(protection), Some(observed)) =
            (&self.protection, self.observed.get_mut(&(peer, token.clone())))
        else {
            return Err(Rejected::Gone {
                what: "notification",
                why: "its observation is not known here",
            });
        };
        if let Some(secured) = observed {
            match secured.seal(protection, response) {
                Ok(sealed) => response = sealed,
                // The observation has ended with its context.
                Err(Failure::Protect(ProtectError::Replaced)) => {
                    self.observed.remove(&(peer, token));
                    return Err(Rejected::Gone {
                        what: "notification",
                        why: "its context is replaced",
                    });
                }
                Err(error) => return Err(unprotected("notification", error)),
            }
        }
        self.transport.handle(now, Input::Notify { peer, token, response, confirmable, handle })
    }
}

/// RFC 8613 s8.2: a request that is refused may be answered in the open; with Max-Age 0.
fn refused(refusal: &Refusal) -> ResponseTemplate {
    match refusal.response() {
        Some(StreamMessage { code, options, payload, .. }) => {
            ResponseTemplate { options, payload, ..ResponseTemplate::new(code) }
        }
        None => ResponseTemplate::new(Code::INTERNAL_SERVER_ERROR),
    }
}

/// The kid of a request, which names its key. Nothing vouches for it before the request verifies.
fn kid_of(message: &Message) -> Option<Vec<u8>> {
    let header = Header::parse(message.options.get(OptionNumber::OSCORE)?).ok()?;
    header.kid.map(<[u8]>::to_vec)
}

/// Why a request is refused, with the key that it names.
fn told(refusal: &Refusal, kid: Option<&[u8]>) -> String {
    match kid {
        Some(kid) => {
            let number = kid.iter().fold(String::from("0x"), |mut text, octet| {
                write!(text, "{octet:02x}").expect("a String takes everything");
                text
            });
            format!("{refusal} (kid {number})")
        }
        None => refusal.to_string(),
    }
}

/// A refusal, and whether it is of a group.
type OfGroup = (Refusal, bool);

impl<P: PeerAddress> Forgeries<P> {
    /// Opens a request; one whose signature may not be checked is refused as if it were forged.
    fn open<C: SecurityContexts>(
        &mut self,
        from: P,
        contexts: &C,
        message: &Message,
        now: Instant,
    ) -> Result<Result<(StreamMessage, Secured), OfGroup>, Failure> {
        let mut check = self.check(from, now);
        let opened = open(contexts, &StreamMessage::from(message), &mut |one| check.may(one));
        let is_forged = matches!(opened, Ok(Err((Refusal::BadSignature, _))));
        let checked = check.end();
        self.on_checked(from, checked, !is_forged, now);
        opened
    }
}

/// Opens a request with the group that it names, or else with a context of two. With a refusal comes whether it is of a group.
fn open<C: SecurityContexts>(
    contexts: &C,
    outer: &StreamMessage,
    may_check: group::MayCheck<'_>,
) -> Result<Result<(StreamMessage, Secured), OfGroup>, Failure> {
    if let Some(group) = contexts.group_of(outer) {
        let opened = contexts.unprotect_group_request(group, outer, may_check)?;
        let opened =
            opened.map(|(request, received)| (request, Secured::Group { group, received }));
        return Ok(opened.map_err(|refusal| (refusal, true)));
    }
    let opened = contexts.unprotect_request(outer)?.map_err(|refusal| (refusal, false));
    Ok(opened.map(|Opened { request, received, context }| {
        (request, Secured::Context { context, received })
    }))
}

/// What protects a request.
fn association(secured: Option<&Secured>) -> Association {
    match secured {
        None => Association::Open,
        Some(Secured::Context { context, .. }) => Association::Context(*context),
        Some(Secured::Group { group, received }) => {
            let id = received.from().as_bytes().to_vec();
            Association::Member { group: *group, id }
        }
    }
}

impl Secured {
    fn seal<P, C: SecurityContexts>(
        &mut self,
        protection: &Protection<P, C>,
        response: ResponseTemplate,
    ) -> Result<ResponseTemplate, Failure> {
        let ResponseTemplate { code, options, payload, .. } = response;
        let plain = StreamMessage { code, token: Token::EMPTY, options, payload };
        let contexts = &protection.contexts;
        let sealed = match self {
            Self::Context { context, received } => {
                contexts.protect_response(*context, received, &plain)
            }
            Self::Group { group, received } => {
                contexts.protect_group_response(*group, received, &plain)
            }
        };
        let StreamMessage { code, options, payload, .. } = sealed?;
        Ok(ResponseTemplate { options, payload, ..ResponseTemplate::new(code) })
    }
}
