//! Requests of peers: from the datagram to the application's answer (RFC 7252 s4.5, s5.2, s5.4).

use alloc::vec::Vec;

use lowmesh_machine::{Handle, Rejected};
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Code, Kind, Message, MessageId, MessageView, OptionNumber, Token};

use super::Endpoint;
use super::outgoing::{NO_MESSAGE_ID, Wanted};
use crate::event::ExchangeId;
use crate::event::{Discard, Output, Purpose, ResponseTemplate};
use crate::exchange::{Answer, Incoming};
use crate::params::{EXCHANGE_LIFETIME, NON_LIFETIME};
use crate::seen::Sighting;

impl<P: Ord + Copy> Endpoint<P> {
    /// Sends a bare ACK or RST.
    pub(super) fn send_empty(&mut self, to: P, kind: Kind, message_id: MessageId, copy: u8) {
        let bytes = Message::empty(kind, message_id).to_vec();
        let (handle, purpose) = (Handle::NONE, Purpose::Empty);
        self.outbox.push(Output::Send { to, bytes, handle, copy, purpose });
    }

    /// RFC 7252 s4.5: a duplicate CON SHOULD be acknowledged with the same message and processed
    /// only once; a duplicate NON is ignored. True if the message is one.
    pub(super) fn is_duplicate(&mut self, from: P, view: &MessageView<'_>, now: Instant) -> bool {
        let Some(peer) = self.peers.get_mut(&from) else { return false };
        self.remembered -= peer.seen.forget_expired(now);
        match peer.seen.sight(view.message_id(), now) {
            Sighting::New => return false,
            Sighting::Answered(reply) if view.kind() == Kind::Confirmable => {
                let purpose =
                    if reply.handle == Handle::NONE { Purpose::Empty } else { Purpose::Response };
                let (bytes, handle, copy) = (reply.bytes.clone(), reply.handle, reply.copies);
                self.outbox.push(Output::Send { to: from, bytes, handle, copy, purpose });
            }
            Sighting::Answered(_) | Sighting::Duplicate => {}
        }
        self.discard(from, Discard::Duplicate);
        true
    }

    /// Remembers a message; a full memory forgets the oldest of this peer, or else of any.
    pub(super) fn remember(&mut self, from: P, view: &MessageView<'_>, now: Instant) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let full = peer.seen.len() >= self.config.dedup_per_peer
            || self.remembered >= self.config.dedup_total;
        peer.seen.remember(view.message_id(), view.kind(), now);
        self.remembered += 1;
        if !full {
            return;
        }
        let forgotten = (peer.seen.len() > 1 && peer.seen.forget_oldest())
            || self.peers.iter_mut().any(|(key, one)| *key != from && one.seen.forget_oldest());
        if forgotten {
            self.remembered -= 1;
            self.counters.forgotten_early += 1;
        }
    }

    /// A new request has come from an admitted peer.
    pub(super) fn on_request(&mut self, from: P, view: &MessageView<'_>, now: Instant) {
        if self.is_duplicate(from, view, now) {
            return;
        }
        if self.incoming.len() >= self.config.incoming_max {
            // Not remembered, so that a later copy may find room.
            self.discard(from, Discard::Overloaded);
            return;
        }
        self.remember(from, view, now);
        if let Some(code) = self.refusal(from, view) {
            self.refuse(from, view, code, now);
            return;
        }
        let (answer, due) = match view.kind() {
            Kind::Confirmable => (Answer::Piggybacked, now + self.config.ack_delay),
            _ => (Answer::NonConfirmable, now + NON_LIFETIME),
        };
        let exchange = self.next_id();
        let (message_id, token) = (view.message_id(), view.token());
        self.incoming.insert(exchange, Incoming { peer: from, message_id, token, answer, due });
        self.deadlines.insert((due, exchange));
        self.outbox.push(Output::Request { exchange, from, message: Message::from(view) });
    }

    /// The code to refuse a request with, if this endpoint cannot let the application decide;
    /// `EMPTY` for silence.
    fn refusal(&mut self, from: P, view: &MessageView<'_>) -> Option<Code> {
        if let Some(number) = view.options().first_unrecognised_critical(|_| false) {
            self.discard(from, Discard::CriticalOption(number));
            // RFC 7252 s5.4.1: in a CON it MUST cause a 4.02 response; in a NON it MUST be
            // rejected, here in silence.
            let confirmable = view.kind() == Kind::Confirmable;
            return Some(if confirmable { Code::BAD_OPTION } else { Code::EMPTY });
        }
        // RFC 7252 s5.10.2: an endpoint that is no proxy MUST answer 5.05.
        let proxied = |option: OptionNumber| view.option(option).is_some();
        (proxied(OptionNumber::PROXY_URI) || proxied(OptionNumber::PROXY_SCHEME))
            .then_some(Code::PROXYING_NOT_SUPPORTED)
    }

    fn refuse(&mut self, from: P, view: &MessageView<'_>, code: Code, now: Instant) {
        if code == Code::EMPTY {
            return;
        }
        let response = ResponseTemplate::new(code);
        let (message_id, token) = (view.message_id(), view.token());
        if view.kind() == Kind::Confirmable {
            self.piggyback(from, message_id, token, response, Handle::NONE);
        } else {
            // Without a free message ID the refusal is not sent; the client's own timeout tells it.
            let _unsent = self.send_non(from, token, response, Handle::NONE, now);
        }
    }

    /// The application answers.
    pub(super) fn respond(
        &mut self,
        exchange: ExchangeId,
        response: ResponseTemplate,
        handle: Handle,
        now: Instant,
    ) -> Result<(), Rejected> {
        const WHAT: &str = "response";
        if !response.code.is_response() {
            return Err(Rejected { what: WHAT, why: "its code is not 2.xx, 4.xx or 5.xx" });
        }
        let Some(Incoming { peer, message_id, token, answer, due }) = self.incoming.get(&exchange)
        else {
            return Err(Rejected { what: WHAT, why: "its request is answered or has expired" });
        };
        let (peer, message_id, token, due) = (*peer, *message_id, *token, *due);
        match answer {
            Answer::Piggybacked => self.piggyback(peer, message_id, token, response, handle),
            Answer::NonConfirmable => self.send_non(peer, token, response, handle, now)?,
            Answer::Separate => {
                let message = response.into_message(Kind::Confirmable, MessageId(0), token);
                self.enqueue(Wanted { peer, message, purpose: Purpose::Response, handle }, now)?;
            }
        }
        self.incoming.remove(&exchange);
        self.deadlines.remove(&(due, exchange));
        Ok(())
    }

    /// RFC 7252 s5.2.1: the response in the ACK, kept for duplicates of the request.
    fn piggyback(
        &mut self,
        to: P,
        message_id: MessageId,
        token: Token,
        response: ResponseTemplate,
        handle: Handle,
    ) {
        let mut bytes = Vec::new();
        response.into_message(Kind::Acknowledgement, message_id, token).emit(&mut bytes);
        if let Some(peer) = self.peers.get_mut(&to) {
            peer.seen.keep_reply(message_id, bytes.clone(), handle);
        }
        self.outbox.push(Output::Send { to, bytes, handle, copy: 0, purpose: Purpose::Response });
    }

    /// RFC 7252 s5.2.3: a NON request SHOULD be answered with a NON.
    fn send_non(
        &mut self,
        to: P,
        token: Token,
        response: ResponseTemplate,
        handle: Handle,
        now: Instant,
    ) -> Result<(), Rejected> {
        if !self.admit(to, now) {
            return Err(Rejected {
                what: "response",
                why: "no room for its peer: raise peers_max",
            });
        }
        let peer = self.peers.get_mut(&to).expect("just admitted");
        if !peer.ids.reserve(now) {
            return Err(NO_MESSAGE_ID);
        }
        let message_id = peer.ids.issue(now);
        let mut bytes = Vec::new();
        response.into_message(Kind::NonConfirmable, message_id, token).emit(&mut bytes);
        self.outbox.push(Output::Send { to, bytes, handle, copy: 0, purpose: Purpose::Response });
        Ok(())
    }

    /// The time of a peer's request has come: it is acknowledged, or forgotten.
    pub(super) fn on_incoming_due(&mut self, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.incoming.get_mut(&id) else { return };
        if exchange.answer != Answer::Piggybacked {
            self.incoming.remove(&id);
            return;
        }
        // RFC 7252 s5.2.2: no response yet, so the server sends an Empty ACK before the client
        // retransmits.
        exchange.answer = Answer::Separate;
        exchange.due = now + EXCHANGE_LIFETIME;
        self.deadlines.insert((exchange.due, id));
        let (to, message_id) = (exchange.peer, exchange.message_id);
        self.acknowledge_empty(to, message_id);
    }

    /// Sends an empty ACK and keeps it for duplicates.
    pub(super) fn acknowledge_empty(&mut self, to: P, message_id: MessageId) {
        if let Some(peer) = self.peers.get_mut(&to) {
            let bytes = Message::empty(Kind::Acknowledgement, message_id).to_vec();
            peer.seen.keep_reply(message_id, bytes, Handle::NONE);
        }
        self.send_empty(to, Kind::Acknowledgement, message_id, 0);
    }
}
