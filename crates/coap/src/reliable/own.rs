//! Own exchanges over connections: requests and pings, until they are over (RFC 8323 s3, s5.4, s7).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Rejected};
use lowmesh_units::Instant;
use lowmesh_wire::coap::signaling::Signal;
use lowmesh_wire::coap::stream::{StreamMessage, StreamView};
use lowmesh_wire::coap::{Class, OptionNumber, Token};

use super::connection::State;
use super::connection_layer::ConnectionLayer;
use super::message::{TOO_LONG, message};
use crate::PeerAddress;
use crate::event::{Discard, Fault, Purpose, RequestTemplate};
use crate::exchange::{ExchangeId, Name, Output};
use crate::no_response::Unwanted;
use crate::observe::{DEREGISTER, registers};
use crate::rejection::{TOKEN_IN_USE, check_method, check_token};

/// An own request or ping that waits for an answer.
#[derive(Debug)]
struct Waiting<P> {
    peer: P,
    handle: Name,
    token: Token,
    purpose: Purpose,
    started: Instant,
    /// When it has waited long enough; an observation waits for ever.
    due: Option<Instant>,
    /// What comes counts when the layer above has accepted it.
    verified: bool,
    /// What to send with Observe 1 when the application loses interest in an observation.
    observes: Option<StreamMessage>,
}

/// What the caller of [`OwnExchanges::begin`] waits for an answer to.
struct Wanted {
    token: Token,
    purpose: Purpose,
    verified: bool,
    observes: Option<StreamMessage>,
}

/// The exchanges of this end that are not over. What ends one returns its peer, whose connection may wait for that.
#[derive(Debug)]
pub(super) struct OwnExchanges<P> {
    waiting: BTreeMap<ExchangeId, Waiting<P>>,
    by_token: BTreeMap<(P, Token), ExchangeId>,
    deadlines: BTreeSet<(Instant, ExchangeId)>,
}

impl<P: PeerAddress> OwnExchanges<P> {
    pub(super) const fn new() -> Self {
        Self { waiting: BTreeMap::new(), by_token: BTreeMap::new(), deadlines: BTreeSet::new() }
    }
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
    /// When the next one has waited long enough.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(due, _)| *due)
    }
    /// Whether the end of a connection has to wait for one of its requests. An observation would keep the connection for
    /// ever, and a Ping as long as its peer is silent.
    pub(super) fn keep_open(&self, peer: P) -> bool {
        let is_open = |one: &Waiting<P>| one.due.is_some() && one.purpose == Purpose::Request;
        self.waiting.values().any(|one| one.peer == peer && is_open(one))
    }

    /// The application asks; if `verified`, it says which response counts.
    pub(super) fn request(
        &mut self,
        layer: &mut ConnectionLayer<P>,
        peer: P,
        template: RequestTemplate,
        verified: bool,
        handle: Name,
        now: Instant,
    ) -> Result<(), Rejected> {
        let RequestTemplate { code, options, payload, token, .. } = template;
        check_method(code)?;
        let token = match token {
            Some(token) => self.take_over(peer, token)?,
            None => self.free_token(layer, peer),
        };
        let observes = registers(code, &options);
        let silent = Unwanted::from_options(options.iter()) == Some(Unwanted::EVERYTHING);
        let message = StreamMessage { code, token, options, payload };
        if !layer.fits(peer, &message) {
            return Err(TOO_LONG);
        }
        let observes = observes.then(|| message.clone());
        let token = message.token.clone();
        let wanted = Wanted { token, purpose: Purpose::Request, verified, observes };
        if self.begin(layer, peer, handle, wanted, now) {
            layer.send(peer, &message, handle, Purpose::Request);
            if silent {
                // RFC 7967: nothing will come.
                self.by_token(peer, &message.token).and_then(|id| self.forget(id));
                layer.outputs.push(Output::Over { handle });
            }
        }
        Ok(())
    }

    /// Takes a token for a new request. An observation that has it ends without a word: the new
    /// request speaks for it (RFC 7641 s3.6, RFC 8323 s7.4).
    fn take_over(&mut self, peer: P, token: Token) -> Result<Token, Rejected> {
        check_token(&token)?;
        if let Some(id) = self.by_token(peer, &token) {
            if self.waiting.get(&id).is_none_or(|one| one.observes.is_none()) {
                return Err(TOKEN_IN_USE);
            }
            self.forget(id);
        }
        Ok(token)
    }

    /// The application wants to know whether the peer is there (RFC 8323 s5.4).
    pub(super) fn ping(
        &mut self,
        layer: &mut ConnectionLayer<P>,
        peer: P,
        handle: Name,
        now: Instant,
    ) {
        let token = self.free_token(layer, peer);
        let purpose = Purpose::Empty;
        let wanted = Wanted { token: token.clone(), purpose, verified: false, observes: None };
        if self.begin(layer, peer, handle, wanted, now) {
            let ping = Signal::Ping { custody: false }.into_message(token);
            layer.send(peer, &ping, handle, purpose);
        }
    }

    /// Notes that an answer is waited for; false, and said to the application, if there is no
    /// connection or no room.
    fn begin(
        &mut self,
        layer: &mut ConnectionLayer<P>,
        peer: P,
        handle: Name,
        wanted: Wanted,
        now: Instant,
    ) -> bool {
        let Wanted { token, purpose, verified, observes } = wanted;
        let usable = layer.state(peer).is_some_and(|state| state != State::Releasing);
        let full = self.waiting.len() >= layer.limits.open_max;
        if !usable || full {
            let reason = if usable { DropReason::QueueFull } else { DropReason::NoRoute };
            layer.outputs.fail(handle, reason);
            return false;
        }
        let id = layer.ids.next();
        let rto = layer.limits.response_timeout;
        let due = now + rto;
        self.by_token.insert((peer, token.clone()), id);
        self.deadlines.insert((due, id));
        let due = Some(due);
        let started = now;
        let waiting = Waiting { peer, handle, token, purpose, started, due, verified, observes };
        self.waiting.insert(id, waiting);
        layer.outputs.push(Output::Started { handle, rto, at: now });
        true
    }

    /// The application is no longer interested.
    pub(super) fn cancel(&mut self, layer: &mut ConnectionLayer<P>, handle: Name) -> Option<P> {
        if handle == Name::NONE {
            return None;
        }
        let found = self.waiting.iter().find(|(_, one)| one.handle == handle).map(|(id, _)| *id);
        let waiting = found.and_then(|id| self.forget(id))?;
        if let Some(mut message) = waiting.observes {
            // RFC 8323 s7.4: there is no RST here, so a client deregisters by a request. Its
            // response finds nobody, and is ignored.
            message.options.set_uint(OptionNumber::OBSERVE, DEREGISTER);
            layer.send(waiting.peer, &message, Name::NONE, Purpose::Request);
        }
        Some(waiting.peer)
    }

    /// The layer above has verified a response.
    pub(super) fn accept(&mut self, handle: Name, observes: bool) -> Option<P> {
        let named =
            |(_, one): &(&ExchangeId, &mut Waiting<P>)| one.verified && one.handle == handle;
        let (id, waiting) = self.waiting.iter_mut().find(named)?;
        let (id, peer) = (*id, waiting.peer);
        if !observes {
            self.forget(id);
        } else if let Some(due) = waiting.due.take() {
            self.deadlines.remove(&(due, id));
        }
        Some(peer)
    }

    /// A Pong has come.
    pub(super) fn on_pong(
        &mut self,
        layer: &mut ConnectionLayer<P>,
        from: P,
        token: &Token,
        now: Instant,
    ) {
        let is_ping = |one: &Waiting<P>| one.peer == from && one.purpose == Purpose::Empty;
        let ping = if token.is_empty() {
            // RFC 8323 s5.4 wants the token back; libcoap 4.3 sends none, and answers in order.
            self.waiting.iter().find(|(_, one)| is_ping(one)).map(|(id, _)| *id)
        } else {
            self.by_token(from, token).filter(|id| self.waiting.get(id).is_some_and(is_ping))
        };
        let Some(Waiting { handle, started, .. }) = ping.and_then(|id| self.forget(id)) else {
            return layer.outputs.discard(from, Discard::Unmatched);
        };
        layer.outputs.push(Output::Pong { handle, rtt: now.since(started), retransmissions: 0 });
    }

    /// A response has come.
    pub(super) fn on_response(
        &mut self,
        layer: &mut ConnectionLayer<P>,
        from: P,
        view: &StreamView<'_>,
        now: Instant,
    ) {
        let found = self
            .by_token(from, &view.token())
            .filter(|id| self.waiting.get(id).is_some_and(|one| one.purpose == Purpose::Request));
        let Some((id, waiting)) = found.and_then(|id| Some((id, self.waiting.get_mut(&id)?)))
        else {
            return layer.outputs.discard(from, Discard::Unmatched);
        };
        let (handle, started, verified) = (waiting.handle, waiting.started, waiting.verified);
        let recognition = layer.understanding().of_response(view.options());
        let message = message(view, recognition);
        if let Some(number) = recognition.critical {
            layer.outputs.discard(from, Discard::CriticalOption(number));
            // What nobody has verified speaks for nobody.
            if !verified {
                self.forget(id);
                let fault = Fault::of_option(number);
                layer.outputs.fail_by(handle, DropReason::Malformed, fault);
            }
            return;
        }
        // RFC 8323 s7.1: notifications arrive in order, and the value of Observe says nothing.
        let notifies = waiting.observes.is_some()
            && message.options.get(OptionNumber::OBSERVE).is_some()
            && message.code.class() == Class::Success;
        if notifies && !verified {
            if let Some(due) = waiting.due.take() {
                self.deadlines.remove(&(due, id));
            }
            return layer.outputs.push(Output::Notification { handle, from, message });
        }
        if !verified {
            self.forget(id);
        }
        let (rtt, retransmissions) = (now.since(started), 0);
        layer.outputs.push(Output::Response { handle, from, message, rtt, retransmissions });
    }

    /// The time of the next exchange has come: the peer that it waited for in vain.
    pub(super) fn next_expired(
        &mut self,
        layer: &mut ConnectionLayer<P>,
        now: Instant,
    ) -> Option<P> {
        let (due, id) = self.deadlines.first().copied().filter(|(due, _)| *due <= now)?;
        self.deadlines.remove(&(due, id));
        let Waiting { peer, handle, .. } = self.forget(id)?;
        layer.outputs.fail(handle, DropReason::GaveUp);
        Some(peer)
    }

    /// A connection is over, and everything on it has failed.
    pub(super) fn end(
        &mut self,
        layer: &mut ConnectionLayer<P>,
        peer: P,
        reason: DropReason,
        fault: Option<&Fault>,
    ) {
        let open = self.waiting.iter().filter(|(_, waiting)| waiting.peer == peer);
        let open: Vec<ExchangeId> = open.map(|(id, _)| *id).collect();
        for id in open {
            let Some(Waiting { handle, .. }) = self.forget(id) else { continue };
            match fault {
                Some(fault) => layer.outputs.fail_by(handle, reason, fault.clone()),
                None => layer.outputs.fail(handle, reason),
            }
        }
    }

    fn by_token(&self, peer: P, token: &Token) -> Option<ExchangeId> {
        self.by_token.get(&(peer, token.clone())).copied()
    }

    /// A random token that no open request of this connection has.
    fn free_token(&self, layer: &mut ConnectionLayer<P>, peer: P) -> Token {
        let len = layer.limits.token_len.clamp(2, 8);
        loop {
            let token = Token::from_number(layer.rng.next_u64(), len);
            if self.by_token(peer, &token).is_none() {
                return token;
            }
        }
    }

    /// Takes an own request out of every table.
    fn forget(&mut self, id: ExchangeId) -> Option<Waiting<P>> {
        let waiting = self.waiting.remove(&id)?;
        self.by_token.remove(&(waiting.peer, waiting.token.clone()));
        if let Some(due) = waiting.due {
            self.deadlines.remove(&(due, id));
        }
        Some(waiting)
    }
}
