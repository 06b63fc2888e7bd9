//! Requests and responses on connections, from the application's side (RFC 8323 s3 and s7).

use lowmesh_machine::{DropReason, Handle, Rejected};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::signaling::Signal;
use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::{Code, OptionNumber, Token};

use super::Connections;
use super::connection::State;
use crate::PeerAddress;
use crate::chosen_token::{TOKEN_IN_USE, check_len};
use crate::event::{ExchangeId, Output, Purpose, RequestTemplate, ResponseTemplate};
use crate::no_response::Unwanted;
use crate::observe::{DEREGISTER, REGISTER};

/// An own request or ping that waits for an answer.
#[derive(Debug)]
pub(super) struct Waiting<P> {
    pub(super) peer: P,
    pub(super) handle: Handle,
    pub(super) token: Token,
    pub(super) purpose: Purpose,
    pub(super) started: Instant,
    /// When it has waited long enough; an observation waits for ever.
    pub(super) due: Option<Instant>,
    /// What comes counts when the layer above has accepted it.
    pub(super) verified: bool,
    /// What to send with Observe 1 when the application loses interest in an observation.
    pub(super) observes: Option<StreamMessage>,
}

/// What the caller of [`Connections::begin`] waits for an answer to.
struct Wanted {
    token: Token,
    purpose: Purpose,
    verified: bool,
    observes: Option<StreamMessage>,
}

/// A request of a peer that the application has not answered.
#[derive(Debug)]
pub(super) struct Asked<P> {
    pub(super) peer: P,
    pub(super) token: Token,
    pub(super) unwanted: Unwanted,
}

const ANSWERED: Rejected = Rejected::Gone {
    what: "response",
    why: "its request is answered, or its connection has ended",
};
const NO_RESPONSE_CODE: Rejected =
    Rejected::Invalid { what: "response", why: "its code is not 2.xx, 4.xx or 5.xx" };
const TOO_LONG: Rejected = Rejected::TooLong {
    what: "message",
    why: "longer than the peer's Max-Message-Size (RFC 8323 s5.3.1): send its body block-wise",
};

impl<P: PeerAddress> Connections<P> {
    /// The application asks; if `verified`, it says which response counts.
    pub(super) fn request(
        &mut self,
        peer: P,
        template: RequestTemplate,
        verified: bool,
        handle: Handle,
        now: Instant,
    ) -> Result<(), Rejected> {
        let RequestTemplate { code, options, payload, token, .. } = template;
        if !code.is_request() {
            return Err(Rejected::Invalid {
                what: "request",
                why: "its code is not a method (0.01 to 0.31)",
            });
        }
        let token = match token {
            Some(token) => self.take_over(peer, token)?,
            None => self.free_token(peer),
        };
        let reads = matches!(code, Code::GET | Code::FETCH);
        let observes = reads && options.get_uint(OptionNumber::OBSERVE) == Some(REGISTER);
        let silent = Unwanted::from_options(options.iter()) == Some(Unwanted::EVERYTHING);
        let message = StreamMessage { code, token, options, payload };
        if !self.fits(peer, &message) {
            return Err(TOO_LONG);
        }
        let observes = observes.then(|| message.clone());
        let token = message.token.clone();
        let wanted = Wanted { token, purpose: Purpose::Request, verified, observes };
        if self.begin(peer, handle, wanted, now) {
            self.send(peer, &message, handle, Purpose::Request);
            if silent {
                // RFC 7967: nothing will come.
                self.by_token(peer, &message.token).and_then(|id| self.forget(id));
                self.outbox.push(Output::Over { handle });
            }
        }
        Ok(())
    }

    /// Takes a token for a new request. An observation that has it ends without a word: the new
    /// request speaks for it (RFC 7641 s3.6, RFC 8323 s7.4).
    fn take_over(&mut self, peer: P, token: Token) -> Result<Token, Rejected> {
        check_len(&token)?;
        if let Some(id) = self.by_token(peer, &token) {
            if self.waiting.get(&id).is_none_or(|one| one.observes.is_none()) {
                return Err(TOKEN_IN_USE);
            }
            self.forget(id);
        }
        Ok(token)
    }

    /// The application wants to know whether the peer is there (RFC 8323 s5.4).
    pub(super) fn ping(&mut self, peer: P, handle: Handle, now: Instant) {
        let token = self.free_token(peer);
        let purpose = Purpose::Empty;
        let wanted = Wanted { token: token.clone(), purpose, verified: false, observes: None };
        if self.begin(peer, handle, wanted, now) {
            let ping = Signal::Ping { custody: false }.into_message(token);
            self.send(peer, &ping, handle, Purpose::Empty);
        }
    }

    /// Notes that an answer is waited for; false, and said to the application, if there is no
    /// connection or no room.
    fn begin(&mut self, peer: P, handle: Handle, wanted: Wanted, now: Instant) -> bool {
        let Wanted { token, purpose, verified, observes } = wanted;
        let usable = self.open.get(&peer).is_some_and(|one| one.state != State::Releasing);
        let full = self.waiting.len() >= self.limits.open_max;
        if !usable || full {
            let reason = if usable { DropReason::QueueFull } else { DropReason::NoRoute };
            self.outbox.push(Output::Failed { handle, reason });
            return false;
        }
        let id = self.next_id();
        let rto = self.limits.response_timeout;
        let due = now + rto;
        self.by_token.insert((peer, token.clone()), id);
        self.deadlines.insert((due, id));
        let due = Some(due);
        let started = now;
        let waiting = Waiting { peer, handle, token, purpose, started, due, verified, observes };
        self.waiting.insert(id, waiting);
        self.outbox.push(Output::Started { handle, rto, at: now });
        true
    }

    /// The application is no longer interested.
    pub(super) fn cancel(&mut self, handle: Handle) {
        if handle == Handle::NONE {
            return;
        }
        let found = self.waiting.iter().find(|(_, one)| one.handle == handle).map(|(id, _)| *id);
        let Some(waiting) = found.and_then(|id| self.forget(id)) else { return };
        if let Some(mut message) = waiting.observes {
            // RFC 8323 s7.4: there is no RST here, so a client deregisters by a request. Its
            // response finds nobody, and is ignored.
            message.options.set_uint(OptionNumber::OBSERVE, DEREGISTER);
            self.send(waiting.peer, &message, Handle::NONE, Purpose::Request);
        }
        self.close_if_done(waiting.peer);
    }

    /// The layer above has verified a response.
    pub(super) fn accept(&mut self, handle: Handle, observes: bool) {
        let named =
            |(_, one): &(&ExchangeId, &mut Waiting<P>)| one.verified && one.handle == handle;
        let Some((id, waiting)) = self.waiting.iter_mut().find(named) else { return };
        let (id, peer) = (*id, waiting.peer);
        if !observes {
            self.forget(id);
        } else if let Some(due) = waiting.due.take() {
            self.deadlines.remove(&(due, id));
        }
        self.close_if_done(peer);
    }

    /// The application answers.
    pub(super) fn respond(
        &mut self,
        exchange: ExchangeId,
        response: ResponseTemplate,
        handle: Handle,
    ) -> Result<(), Rejected> {
        if !response.code.is_response() {
            return Err(NO_RESPONSE_CODE);
        }
        let Some(asked) = self.asked.get(&exchange) else { return Err(ANSWERED) };
        let (peer, unwanted) = (asked.peer, asked.unwanted);
        let ResponseTemplate { code, options, payload, .. } = response;
        let message = StreamMessage { code, token: asked.token.clone(), options, payload };
        if !self.fits(peer, &message) {
            return Err(TOO_LONG);
        }
        self.forget_asked(exchange);
        if !unwanted.contains(code) {
            self.send(peer, &message, handle, Purpose::Response);
        }
        self.close_if_done(peer);
        Ok(())
    }

    /// The application leaves a request without response.
    pub(super) fn decline(&mut self, exchange: ExchangeId) -> Result<(), Rejected> {
        let Some(asked) = self.forget_asked(exchange) else { return Err(ANSWERED) };
        self.close_if_done(asked.peer);
        Ok(())
    }

    /// Takes a peer's request out of every table.
    fn forget_asked(&mut self, exchange: ExchangeId) -> Option<Asked<P>> {
        let asked = self.asked.remove(&exchange)?;
        if let Some(connection) = self.open.get_mut(&asked.peer) {
            connection.incoming -= 1;
        }
        Some(asked)
    }

    /// The application tells an observer. What a connection takes arrives, so a notification that
    /// would be a CON has as good as been acknowledged.
    pub(super) fn notify(
        &mut self,
        peer: P,
        token: Token,
        response: ResponseTemplate,
        confirmable: bool,
        handle: Handle,
    ) -> Result<(), Rejected> {
        let ResponseTemplate { code, options, payload, .. } = response;
        if !code.is_response() {
            return Err(NO_RESPONSE_CODE);
        }
        let message = StreamMessage { code, token, options, payload };
        if !self.open.contains_key(&peer) {
            self.outbox.push(Output::Failed { handle, reason: DropReason::NoRoute });
            return Ok(());
        }
        if !self.fits(peer, &message) {
            return Err(TOO_LONG);
        }
        self.send(peer, &message, handle, Purpose::Response);
        if confirmable {
            let rtt = Duration::ZERO;
            self.outbox.push(Output::Acknowledged { handle, rtt, retransmissions: 0 });
        }
        Ok(())
    }

    /// RFC 8323 s5.3.1: a message MUST NOT be longer than the peer takes.
    fn fits(&self, peer: P, message: &StreamMessage) -> bool {
        self.open.get(&peer).is_none_or(|one| {
            let most = usize::try_from(one.peer.max_message_size).unwrap_or(usize::MAX);
            message.encoded_len(one.framing()) <= most
        })
    }

    pub(super) fn by_token(&self, peer: P, token: &Token) -> Option<ExchangeId> {
        self.by_token.get(&(peer, token.clone())).copied()
    }

    /// A random token that no open request of this connection has.
    fn free_token(&mut self, peer: P) -> Token {
        loop {
            let token = Token::from_number(self.rng.next_u64(), self.limits.token_len.clamp(2, 8));
            if self.by_token(peer, &token).is_none() {
                return token;
            }
        }
    }

    /// Takes an own request out of every table.
    pub(super) fn forget(&mut self, id: ExchangeId) -> Option<Waiting<P>> {
        let waiting = self.waiting.remove(&id)?;
        self.by_token.remove(&(waiting.peer, waiting.token.clone()));
        if let Some(due) = waiting.due {
            self.deadlines.remove(&(due, id));
        }
        Some(waiting)
    }
}
