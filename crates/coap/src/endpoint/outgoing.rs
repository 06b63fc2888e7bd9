//! Own exchanges: requests and separate responses, from the queue to their end (RFC 7252 s4.2,
//! s4.7, s5.2).

use lowmesh_congestion::{Attempt, Permit};
use lowmesh_machine::{DropReason, Handle, Rejected};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{
    Code, HEADER_LEN, Kind, Message, MessageId, OptionNumber, Options, Token,
};

use super::Endpoint;
use super::proof::Departure;
use crate::PeerAddress;
use crate::chosen_token::{TOKEN_IN_USE, check_len};
use crate::event::ExchangeId;
use crate::event::{Output, RequestTemplate};
use crate::exchange::{Expects, Outgoing, Phase, Role, Transmission};
use crate::no_response::Unwanted;
use crate::observe;
use crate::params::PROBING_RATE_OCTETS_PER_SECOND;
use crate::peer::Peer;

/// What the caller of [`Endpoint::enqueue`] wants to get through.
pub(super) struct Wanted<P> {
    pub(super) peer: P,
    pub(super) message: Message,
    pub(super) role: Role,
    pub(super) expects: Expects,
    /// What comes counts when the layer above has accepted it.
    pub(super) verified: bool,
    pub(super) handle: Handle,
    /// A request that leaves with the token that it has.
    pub(super) holds_token: bool,
}

/// The message IDs of a peer are all in use.
pub(super) const NO_MESSAGE_ID: Rejected = Rejected::Full {
    what: "message",
    why: "all 65536 message IDs to this peer are in use for EXCHANGE_LIFETIME (RFC 7252 s4.4; 247 s by default): send more slowly",
};
/// The table of peers is full of busy ones.
pub(super) const NO_ROOM: Rejected = Rejected::Full {
    what: "response",
    why: "no room for its peer: raise peers_max or peers_per_source",
};
/// A request that asks for nothing.
pub(super) const NOT_A_METHOD: Rejected =
    Rejected::Invalid { what: "request", why: "its code is not a method (0.01 to 0.31)" };
/// A message that could not pass every path.
pub(super) const TOO_LONG: Rejected = Rejected::TooLong {
    what: "message",
    why: "longer than message_len_max (RFC 7252 s4.6): send its body block-wise",
};

impl<P: PeerAddress> Endpoint<P> {
    /// The application asks; if `verified`, it says which response counts.
    pub(super) fn request(
        &mut self,
        peer: P,
        template: RequestTemplate,
        verified: bool,
        handle: Handle,
        now: Instant,
    ) -> Result<(), Rejected> {
        let RequestTemplate { code, confirmable, options, payload, token } = template;
        if !code.is_request() {
            return Err(NOT_A_METHOD);
        }
        let expects = expectation(code, &options);
        let kind = if confirmable { Kind::Confirmable } else { Kind::NonConfirmable };
        let holds_token = token.is_some();
        let token = match token {
            Some(token) => self.take_over(peer, token, now)?,
            // The octets are drawn when the request leaves; here only their number matters.
            None => Token::from_number(0, self.config.token_len),
        };
        let message = Message { kind, code, message_id: MessageId(0), token, options, payload };
        let role = Role::Request;
        let wanted = Wanted { peer, message, role, expects, verified, handle, holds_token };
        self.enqueue(wanted, now)
    }

    /// Takes a token for a new request. An observation that has it ends without a word: the new
    /// request speaks for it (RFC 7641 s3.6).
    fn take_over(&mut self, peer: P, token: Token, now: Instant) -> Result<Token, Rejected> {
        check_len(&token)?;
        if self.group_by_token(&token).is_some() {
            return Err(TOKEN_IN_USE);
        }
        if let Some(id) = self.peers.get(&peer).and_then(|peer| peer.by_token(&token)) {
            let observes = |one: &Outgoing<P>| matches!(one.expects, Expects::Notifications(_));
            if !self.outgoing.get(&id).is_some_and(observes) {
                return Err(TOKEN_IN_USE);
            }
            self.close(id, now);
        }
        Ok(token)
    }

    /// The application wants to know whether a peer is there.
    pub(super) fn ping(&mut self, peer: P, handle: Handle, now: Instant) -> Result<(), Rejected> {
        let message = Message::new(Kind::Confirmable, Code::EMPTY, MessageId(0));
        let (role, expects) = (Role::Ping, Expects::One);
        let (verified, holds_token) = (false, false);
        let wanted = Wanted { peer, message, role, expects, verified, handle, holds_token };
        self.enqueue(wanted, now)
    }

    /// The application is no longer interested. What the peer still sends about it is answered as
    /// something unknown, which ends an observation (RFC 7641 s3.6).
    pub(super) fn cancel(&mut self, handle: Handle, now: Instant) {
        if handle == Handle::NONE {
            return;
        }
        let named = |(_, one): &(&ExchangeId, &Outgoing<P>)| one.handle == handle;
        let Some(id) = self.outgoing.iter().find(named).map(|(id, _)| *id) else { return };
        if let Some(exchange) = self.close(id, now) {
            self.start_waiting(exchange.peer, now);
        }
    }

    /// Takes a message in: it starts now, waits for the window, or fails for want of room.
    pub(super) fn enqueue(&mut self, wanted: Wanted<P>, now: Instant) -> Result<(), Rejected> {
        let Wanted { peer: to, message, role, expects, verified, handle, holds_token } = wanted;
        if message.encoded_len() > self.config.message_len_max {
            return Err(TOO_LONG);
        }
        if !self.takes(to, role, now) {
            self.fail(handle, DropReason::QueueFull);
            return Ok(());
        }
        let peer = self.peers.get_mut(&to).expect("just admitted");
        if !peer.ids.reserve(now) {
            return Err(NO_MESSAGE_ID);
        }
        let bytes = message.to_vec();
        let id = self.next_id();
        let (token, kind) = (message.token, message.kind);
        let held = holds_token.then(|| token.clone());
        let phase = Phase::Queued;
        let outgoing =
            Outgoing { peer: to, handle, token, kind, role, expects, verified, bytes, phase };
        self.outgoing.insert(id, outgoing);
        let peer = self.peers.get_mut(&to).expect("just admitted");
        peer.queue.push_back(id);
        if let Some(token) = held {
            peer.hold_token(token, id);
        }
        self.queued += 1;
        match role {
            Role::Separate => {
                self.take_place(to);
                self.separate += 1;
                self.note_unproven(id, to, role, now);
            }
            Role::Notification => self.note_unproven(id, to, role, now),
            Role::Request | Role::Ping => {}
        }
        self.start_waiting(to, now);
        Ok(())
    }

    /// Whether there is room for a message. A separate response has the place of its request, so an
    /// acknowledged request never loses its answer; notifications are as many as observers.
    fn takes(&mut self, to: P, role: Role, now: Instant) -> bool {
        let room = match role {
            Role::Separate => true,
            Role::Notification => self.make_room(to, now),
            Role::Request | Role::Ping => self.open() < self.config.open_max,
        };
        if !room || !self.admit(to, now) {
            return false;
        }
        let peer = self.peers.get(&to).expect("just admitted");
        let starts = peer.queue.is_empty() && peer.permits(now) == Permit::Now;
        let own = matches!(role, Role::Request | Role::Ping);
        starts || !own || peer.queue.len() < self.config.queue_max
    }

    /// Sends the first copy.
    pub(super) fn start(&mut self, id: ExchangeId, now: Instant) {
        let token = self.token_of(id);
        let exchange = self.outgoing.get_mut(&id).expect("the queue holds open exchanges");
        let peer = self.peers.get_mut(&exchange.peer).expect("a peer with exchanges is kept");
        let response_timeout = self.config.response_timeout.unwrap_or(peer.lifetimes.exchange);
        let message_id = peer.ids.issue(now);
        exchange.bytes[2..HEADER_LEN].copy_from_slice(&message_id.0.to_be_bytes());
        if let Some(token) = &token {
            exchange.bytes[HEADER_LEN..HEADER_LEN + token.len()].copy_from_slice(token.as_bytes());
            exchange.token = token.clone();
        }
        let initial = match (exchange.kind, exchange.expects) {
            (Kind::Confirmable, _) => peer.timer.initial(now, &mut self.rng),
            (_, Expects::Nothing) => unconfirmed_wait(Duration::ZERO, exchange.bytes.len()),
            _ => unconfirmed_wait(response_timeout, exchange.bytes.len()),
        };
        peer.sent(message_id, token, id, now);
        let due = now + initial;
        let transmission =
            Transmission { started: now, initial, rto: initial, retransmissions: 0, due };
        exchange.phase = Phase::Sent(transmission);
        self.deadlines.insert((due, id), ());
        let (to, handle, purpose) = (exchange.peer, exchange.handle, exchange.role.purpose());
        let bytes = exchange.bytes.clone();
        self.outbox.push(Output::Started { handle, rto: initial, at: now });
        self.depart(Departure { to, bytes, handle, copy: 0, purpose }, now);
    }

    /// The token that a request leaves with: a new one, or that which it has.
    fn token_of(&mut self, id: ExchangeId) -> Option<Token> {
        let exchange = self.outgoing.get(&id).expect("the queue holds open exchanges");
        if exchange.role != Role::Request {
            return None;
        }
        let (peer, len) = (exchange.peer, exchange.token.len());
        // RFC 7641 s3.3.1: the token of a request that registers again is the same.
        if self.peers.get(&peer).and_then(|peer| peer.by_token(&exchange.token)) == Some(id) {
            return Some(exchange.token.clone());
        }
        Some(self.free_token(peer, len))
    }

    /// The time of an own exchange has come.
    pub(super) fn on_outgoing_due(&mut self, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.outgoing.get_mut(&id) else { return };
        let span_limit = self.peers.get(&exchange.peer).map(|peer| peer.lifetimes.span_limit);
        let span_limit = span_limit.unwrap_or(self.lifetimes.span_limit);
        let repeats = exchange.kind == Kind::Confirmable;
        match &mut exchange.phase {
            // RFC 7252 s4.2: while retransmissions < MAX_RETRANSMIT the message is sent again.
            Phase::Sent(transmission)
                if repeats
                    && transmission.retransmissions < self.config.max_retransmit
                    && now.since(transmission.started) <= span_limit =>
            {
                let peer = self.peers.get_mut(&exchange.peer).expect("kept while open");
                peer.resent(transmission.copy_left_at(), now);
                let number = transmission.retransmissions + 1;
                let Transmission { initial, rto: previous, .. } = *transmission;
                let attempt = Attempt { initial, previous, number };
                transmission.rto = peer.timer.backoff(attempt, &mut self.rng);
                transmission.retransmissions = number;
                transmission.due = now + transmission.rto;
                self.deadlines.insert((transmission.due, id), ());
                let copy = Departure {
                    to: exchange.peer,
                    bytes: exchange.bytes.clone(),
                    handle: exchange.handle,
                    copy: number,
                    purpose: exchange.role.purpose(),
                };
                self.depart(copy, now);
            }
            Phase::Observing { .. } => self.register_again(id, now),
            Phase::Sent(_) | Phase::Acknowledged(_) => {
                if let (Phase::Sent(transmission), true) = (exchange.phase, repeats) {
                    let peer = self.peers.get_mut(&exchange.peer).expect("kept while open");
                    peer.expired(id, transmission.copy_left_at(), now);
                    peer.timer.on_give_up(now);
                }
                self.expire(id, now);
            }
            Phase::Queued => {}
        }
    }

    /// Nothing came in time: a failure, unless nothing had to come.
    fn expire(&mut self, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.outgoing.get(&id) else { return };
        let acknowledged = matches!(exchange.phase, Phase::Acknowledged(_));
        let over = match exchange.expects {
            Expects::One | Expects::Notifications(_) => false,
            Expects::Perhaps | Expects::Nothing => {
                acknowledged || exchange.kind == Kind::NonConfirmable
            }
            Expects::Group => true,
        };
        if over {
            self.finish(id, now);
        } else {
            self.abandon(id, DropReason::GaveUp, now);
        }
    }

    /// Ends a request that no response is missing to.
    pub(super) fn finish(&mut self, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.close(id, now) else { return };
        self.outbox.push(Output::Over { handle: exchange.handle });
        self.start_waiting(exchange.peer, now);
    }

    /// An ACK came for an exchange: its copies stop, the timer learns, the window opens.
    ///
    /// Returns the handle, the time since the first copy and the number of retransmissions.
    pub(super) fn acknowledge(
        &mut self,
        id: ExchangeId,
        now: Instant,
    ) -> Option<(Handle, Duration, u8)> {
        let exchange = self.outgoing.get_mut(&id)?;
        let Phase::Sent(transmission) = exchange.phase else { return None };
        let peer = self.peers.get_mut(&exchange.peer)?;
        let rtt = now.since(transmission.started);
        if exchange.kind == Kind::Confirmable {
            peer.timer.on_sample(rtt, transmission.retransmissions, now);
            let sample = (transmission.retransmissions == 0).then_some(rtt);
            peer.acknowledged(id, transmission.copy_left_at(), sample, now);
        } else {
            peer.discarded(id, now);
        }
        self.deadlines.remove(&(transmission.due, id));
        let due = now + self.config.response_timeout.unwrap_or(peer.lifetimes.exchange);
        exchange.phase = Phase::Acknowledged(Transmission { due, ..transmission });
        self.deadlines.insert((due, id), ());
        Some((exchange.handle, rtt, transmission.retransmissions))
    }

    /// Ends a request with its response, and an observation with its last.
    pub(super) fn complete(&mut self, from: P, id: ExchangeId, message: Message, now: Instant) {
        let Some(exchange) = self.close(id, now) else { return };
        let (rtt, retransmissions) = exchange.phase.effort(now);
        let handle = exchange.handle;
        self.outbox.push(Output::Response { handle, from, message, rtt, retransmissions });
        self.start_waiting(exchange.peer, now);
    }

    /// Lets the layer above verify a response, which changes nothing until that accepts it.
    pub(super) fn submit(&mut self, from: P, id: ExchangeId, message: Message, now: Instant) {
        let Some(exchange) = self.outgoing.get(&id) else { return };
        let (rtt, retransmissions) = exchange.phase.effort(now);
        let handle = exchange.handle;
        self.outbox.push(Output::Response { handle, from, message, rtt, retransmissions });
        // An ACK may have made room for others.
        self.start_waiting(from, now);
    }

    /// The layer above has verified a response.
    pub(super) fn accept(&mut self, handle: Handle, observes: bool, now: Instant) {
        let named = |(_, one): &(&ExchangeId, &Outgoing<P>)| one.verified && one.handle == handle;
        let Some((id, peer)) = self.outgoing.iter().find(named).map(|(id, one)| (*id, one.peer))
        else {
            return;
        };
        if observes {
            self.release(id, now);
            let exchange = self.outgoing.get_mut(&id).expect("just found");
            exchange.phase = Phase::Observing { due: None };
        } else {
            self.close(id, now);
        }
        self.start_waiting(peer, now);
    }

    /// Ends an exchange without success.
    pub(super) fn abandon(&mut self, id: ExchangeId, reason: DropReason, now: Instant) {
        let Some(exchange) = self.close(id, now) else { return };
        self.fail(exchange.handle, reason);
        self.start_waiting(exchange.peer, now);
    }

    /// Takes an exchange out of every table.
    pub(super) fn close(&mut self, id: ExchangeId, now: Instant) -> Option<Outgoing<P>> {
        self.release(id, now);
        let exchange = self.outgoing.remove(&id)?;
        self.unproven.remove(&id);
        self.unproven_answers.remove(&id);
        let peer = self.peers.get_mut(&exchange.peer).expect("a peer with exchanges is kept");
        peer.forget(id);
        if exchange.role == Role::Separate {
            self.leave_place(exchange.peer);
            self.separate -= 1;
        }
        if exchange.expects == Expects::Group {
            self.groups.retain(|(_, one)| *one != id);
        }
        Some(exchange)
    }

    /// Gives back what the phase of an exchange holds: a message ID that is set aside, its place in
    /// the window, its deadline.
    pub(super) fn release(&mut self, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.outgoing.get(&id) else { return };
        let peer = self.peers.get_mut(&exchange.peer).expect("a peer with exchanges is kept");
        peer.last_used = now;
        match exchange.phase {
            Phase::Queued => {
                peer.ids.release();
                self.queued -= 1;
            }
            Phase::Sent(Transmission { due, .. })
            | Phase::Acknowledged(Transmission { due, .. })
            | Phase::Observing { due: Some(due) } => {
                self.deadlines.remove(&(due, id));
            }
            Phase::Observing { due: None } => {}
        }
        peer.settle(id, now);
    }

    /// RFC 7252 s4.2: a sender MAY give up when the network says that the peer is unreachable.
    pub(super) fn on_unreachable(&mut self, peer: P, now: Instant) {
        let Some(exchanges) = self.peers.get(&peer).map(Peer::exchanges) else { return };
        // Waiting ones must not start in between, so all are closed before the window is looked at.
        for id in exchanges {
            if let Some(exchange) = self.close(id, now) {
                self.fail(exchange.handle, DropReason::NoRoute);
            }
        }
    }
}

/// RFC 7252 s5.3.1: tokens in use to one peer MUST differ, and SHOULD be random: the first free one
/// from `number` on.
pub(super) fn free_token(mut number: u64, len: usize, taken: impl Fn(&Token) -> bool) -> Token {
    loop {
        let token = Token::from_number(number, len);
        if !taken(&token) {
            return token;
        }
        // Fewer exchanges may be open than there are tokens of the shortest length, so this ends.
        number = number.wrapping_add(1);
    }
}

/// What a request's own options say about its responses.
fn expectation(code: Code, options: &Options) -> Expects {
    let observes = matches!(code, Code::GET | Code::FETCH)
        && options.get_uint(OptionNumber::OBSERVE) == Some(observe::REGISTER);
    match Unwanted::from_options(options.iter()) {
        _ if observes => Expects::Notifications(None),
        Some(Unwanted::EVERYTHING) => Expects::Nothing,
        Some(unwanted) if unwanted != Unwanted::NOTHING => Expects::Perhaps,
        _ => Expects::One,
    }
}

/// RFC 7252 s4.7: to a peer that does not answer, no more than PROBING_RATE on average.
fn unconfirmed_wait(response_timeout: Duration, octets: usize) -> Duration {
    response_timeout.max(Duration::from_secs(octets as u64 / PROBING_RATE_OCTETS_PER_SECOND))
}
