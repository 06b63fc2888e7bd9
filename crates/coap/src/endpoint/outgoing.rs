//! Own exchanges: requests and separate responses, from the queue to their end (RFC 7252 s4.2,
//! s4.7, s5.2).

use alloc::vec::Vec;

use lowmesh_congestion::Attempt;
use lowmesh_machine::{DropReason, Handle, Rejected};
use lowmesh_units::{Duration, Instant, Rng};
use lowmesh_wire::coap::{HEADER_LEN, Kind, Message, MessageId, Token};

use super::Endpoint;
use crate::event::ExchangeId;
use crate::event::{Output, Purpose, RequestTemplate};
use crate::exchange::{Outgoing, Phase, Transmission};
use crate::params::{PROBING_RATE_OCTETS_PER_SECOND, TRANSMIT_SPAN_LIMIT};
use crate::peer::Peer;

/// What the caller of [`Endpoint::enqueue`] wants to get through.
pub(super) struct Wanted<P> {
    pub(super) peer: P,
    pub(super) message: Message,
    pub(super) purpose: Purpose,
    pub(super) handle: Handle,
}

/// The message IDs of a peer are all in use.
pub(super) const NO_MESSAGE_ID: Rejected = Rejected {
    what: "message",
    why: "all 65536 message IDs to this peer are in use for 247 s (RFC 7252 s4.4): send more slowly",
};

impl<P: Ord + Copy> Endpoint<P> {
    /// The application asks.
    pub(super) fn request(
        &mut self,
        peer: P,
        template: RequestTemplate,
        handle: Handle,
        now: Instant,
    ) -> Result<(), Rejected> {
        let RequestTemplate { code, confirmable, options, payload } = template;
        if !code.is_request() {
            return Err(Rejected {
                what: "request",
                why: "its code is not a method (0.01 to 0.31)",
            });
        }
        let kind = if confirmable { Kind::Confirmable } else { Kind::NonConfirmable };
        // The token's octets are drawn when the request leaves; here only their number matters.
        let token = Token::from_number(0, self.config.token_len);
        let message = Message { kind, code, message_id: MessageId(0), token, options, payload };
        self.enqueue(Wanted { peer, message, purpose: Purpose::Request, handle }, now)
    }

    /// Takes a message in: it starts now, waits for the window, or fails for want of room.
    pub(super) fn enqueue(&mut self, wanted: Wanted<P>, now: Instant) -> Result<(), Rejected> {
        let Wanted { peer: to, message, purpose, handle } = wanted;
        if self.open() >= self.config.open_max || !self.admit(to, now) {
            self.fail(handle, DropReason::QueueFull);
            return Ok(());
        }
        let peer = self.peers.get_mut(&to).expect("just admitted");
        let starts = peer.queue.is_empty() && peer.permits(now);
        if !starts && self.queued >= self.config.queue_max {
            self.fail(handle, DropReason::QueueFull);
            return Ok(());
        }
        if !peer.ids.reserve(now) {
            return Err(NO_MESSAGE_ID);
        }
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        let id = self.next_id();
        let (token, kind) = (message.token, message.kind);
        let phase = Phase::Queued;
        self.outgoing.insert(id, Outgoing { peer: to, handle, token, kind, purpose, bytes, phase });
        self.peers.get_mut(&to).expect("just admitted").queue.push_back(id);
        self.queued += 1;
        self.start_waiting(to, now);
        Ok(())
    }

    /// Sends from the queue of a peer what its window permits.
    pub(super) fn start_waiting(&mut self, to: P, now: Instant) {
        while let Some(peer) = self.peers.get_mut(&to) {
            if !peer.permits(now) {
                return;
            }
            let Some(id) = peer.queue.pop_front() else { return };
            self.queued -= 1;
            self.start(id, now);
        }
    }

    /// Sends the first copy.
    fn start(&mut self, id: ExchangeId, now: Instant) {
        let exchange = self.outgoing.get_mut(&id).expect("the queue holds open exchanges");
        let peer = self.peers.get_mut(&exchange.peer).expect("a peer with exchanges is kept");
        let message_id = peer.ids.issue(now);
        exchange.bytes[2..HEADER_LEN].copy_from_slice(&message_id.0.to_be_bytes());
        let token = (exchange.purpose == Purpose::Request).then(|| {
            let token = free_token(peer, exchange.token.len(), &mut self.rng);
            exchange.bytes[HEADER_LEN..HEADER_LEN + token.len()].copy_from_slice(token.as_bytes());
            exchange.token = token;
            token
        });
        let initial = match exchange.kind {
            Kind::Confirmable => peer.timer.initial(now, &mut self.rng),
            _ => unconfirmed_wait(self.config.response_timeout, exchange.bytes.len()),
        };
        peer.sent(message_id, token, id, now);
        let due = now + initial;
        let transmission =
            Transmission { started: now, initial, rto: initial, retransmissions: 0, due };
        exchange.phase = Phase::Sent(transmission);
        self.deadlines.insert((due, id));
        let (to, handle, purpose) = (exchange.peer, exchange.handle, exchange.purpose);
        let bytes = exchange.bytes.clone();
        self.outbox.push(Output::Started { handle, rto: initial, at: now });
        self.outbox.push(Output::Send { to, bytes, handle, copy: 0, purpose });
    }

    /// The time of an own exchange has come.
    pub(super) fn on_outgoing_due(&mut self, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.outgoing.get_mut(&id) else { return };
        let repeats = exchange.kind == Kind::Confirmable;
        match &mut exchange.phase {
            // RFC 7252 s4.2: while retransmissions < MAX_RETRANSMIT the message is sent again.
            Phase::Sent(transmission)
                if repeats
                    && transmission.retransmissions < self.config.max_retransmit
                    && now.since(transmission.started) <= TRANSMIT_SPAN_LIMIT =>
            {
                let peer = self.peers.get_mut(&exchange.peer).expect("kept while open");
                peer.resent(transmission.copy_left_at(), now);
                let number = transmission.retransmissions + 1;
                let Transmission { initial, rto: previous, .. } = *transmission;
                let attempt = Attempt { initial, previous, number };
                transmission.rto = peer.timer.backoff(attempt, &mut self.rng);
                transmission.retransmissions = number;
                transmission.due = now + transmission.rto;
                self.deadlines.insert((transmission.due, id));
                self.outbox.push(Output::Send {
                    to: exchange.peer,
                    bytes: exchange.bytes.clone(),
                    handle: exchange.handle,
                    copy: number,
                    purpose: exchange.purpose,
                });
            }
            Phase::Sent(_) | Phase::Acknowledged(_) => {
                if let (Phase::Sent(transmission), true) = (exchange.phase, repeats) {
                    let peer = self.peers.get_mut(&exchange.peer).expect("kept while open");
                    peer.expired(id, transmission.copy_left_at(), now);
                    peer.timer.on_give_up(now);
                }
                self.abandon(id, DropReason::GaveUp, now);
            }
            Phase::Queued => {}
        }
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
        let due = now + self.config.response_timeout;
        exchange.phase = Phase::Acknowledged(Transmission { due, ..transmission });
        self.deadlines.insert((due, id));
        Some((exchange.handle, rtt, transmission.retransmissions))
    }

    /// Ends a request with its response.
    pub(super) fn complete(&mut self, id: ExchangeId, message: Message, now: Instant) {
        let Some(exchange) = self.close(id, now) else { return };
        let (Phase::Sent(transmission) | Phase::Acknowledged(transmission)) = exchange.phase else {
            return;
        };
        self.outbox.push(Output::Response {
            handle: exchange.handle,
            message,
            rtt: now.since(transmission.started),
            retransmissions: transmission.retransmissions,
        });
        self.start_waiting(exchange.peer, now);
    }

    /// Ends an exchange without success.
    pub(super) fn abandon(&mut self, id: ExchangeId, reason: DropReason, now: Instant) {
        let Some(exchange) = self.close(id, now) else { return };
        self.fail(exchange.handle, reason);
        self.start_waiting(exchange.peer, now);
    }

    /// Takes an exchange out of every table.
    pub(super) fn close(&mut self, id: ExchangeId, now: Instant) -> Option<Outgoing<P>> {
        let exchange = self.outgoing.remove(&id)?;
        let peer = self.peers.get_mut(&exchange.peer).expect("a peer with exchanges is kept");
        peer.last_used = now;
        match exchange.phase {
            Phase::Queued => {
                peer.ids.release();
                self.queued -= 1;
            }
            Phase::Sent(Transmission { due, .. })
            | Phase::Acknowledged(Transmission { due, .. }) => {
                self.deadlines.remove(&(due, id));
            }
        }
        peer.forget(id, now);
        Some(exchange)
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

/// RFC 7252 s5.3.1: tokens in use to one peer MUST differ, and SHOULD be random.
fn free_token(peer: &Peer, len: usize, rng: &mut Rng) -> Token {
    let mut number = rng.next_u64();
    loop {
        let token = Token::from_number(number, len);
        if peer.by_token(token).is_none() {
            return token;
        }
        // Fewer exchanges may be open than there are tokens of the shortest length, so this ends.
        number = number.wrapping_add(1);
    }
}

/// RFC 7252 s4.7: to a peer that does not answer, no more than PROBING_RATE on average.
fn unconfirmed_wait(response_timeout: Duration, octets: usize) -> Duration {
    response_timeout.max(Duration::from_secs(octets as u64 / PROBING_RATE_OCTETS_PER_SECOND))
}
