//! Requests of peers: from the datagram to the application's answer (RFC 7252 s4.5, s5.2, s5.4).

use lowmesh_machine::{Handle, Rejected};
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Code, Kind, Message, MessageId, MessageView, Recognition, Token};

use super::Endpoint;
use super::outgoing::{NO_MESSAGE_ID, NO_ROOM, TOO_LONG, Wanted};
use super::proof::Departure;
use crate::PeerAddress;
use crate::event::ExchangeId;
use crate::event::{Discard, Output, Purpose, ResponseTemplate};
use crate::exchange::{Answer, Expects, Incoming, Role};
use crate::no_response::Unwanted;
use crate::params::{INCOMING_MULTICAST_DIVISOR, INCOMING_UNPROVEN_DIVISOR, SHARES_KEPT};
use crate::refusal::{is_for_proxy, refusal};

/// How a request is refused.
enum Refusal {
    /// With a response.
    Answered(Code),
    /// Without a word.
    Silent,
}

const ANSWERED: Rejected =
    Rejected::Gone { what: "response", why: "its request is answered or has expired" };

impl<P: PeerAddress> Endpoint<P> {
    /// Sends a bare ACK or RST.
    pub(super) fn send_empty(
        &mut self,
        to: P,
        kind: Kind,
        message_id: MessageId,
        copy: u8,
        now: Instant,
    ) {
        let bytes = Message::empty(kind, message_id).to_vec();
        let (handle, purpose) = (Handle::NONE, Purpose::Empty);
        self.depart(Departure { to, bytes, handle, copy, purpose }, now);
    }

    /// A new request has come from an admitted peer.
    pub(super) fn on_request(
        &mut self,
        from: P,
        view: &MessageView<'_>,
        multicast: bool,
        now: Instant,
    ) {
        if self.is_duplicate_request(from, view, now) {
            return;
        }
        if !self.find_place(from, multicast, now) {
            self.discard(from, Discard::Overloaded);
            if !multicast {
                self.refuse_busy(from, view, now);
            }
            return;
        }
        // RFC 7252 s5.4.2: a proxy forwards what it does not know, if that is safe.
        let relayed = self.config.proxy && is_for_proxy(view.options());
        let recognition = view
            .options()
            .recognise(|number| self.knows(number) || (relayed && !number.is_unsafe()));
        if let Some(refused) = self.refused(from, view, recognition) {
            // RFC 7252 s8.2: a multicast request that nothing useful can be said to is ignored.
            match refused {
                Refusal::Answered(code) if !multicast => self.refuse(from, view, code, now),
                Refusal::Answered(_) | Refusal::Silent => {}
            }
            return;
        }
        let non_lifetime = self.lifetimes(from).non_confirmable;
        let (answer, due) = match view.kind() {
            Kind::Confirmable => (Answer::Piggybacked, now + self.config.ack_delay),
            _ if multicast => (Answer::Multicast, now + non_lifetime),
            _ => (Answer::NonConfirmable, now + non_lifetime),
        };
        // RFC 7252 s8.2: errors are not sent to a group's client, unless it says that it wants them
        // (RFC 7967 s2.1).
        let otherwise = if multicast { Unwanted::ERRORS } else { Unwanted::NOTHING };
        let unwanted = Unwanted::from_options(view.options()).unwrap_or(otherwise);
        let exchange = self.next_id();
        let (message_id, token) = (view.message_id(), view.token());
        let incoming = Incoming { peer: from, message_id, token, answer, unwanted, due };
        self.incoming.insert(exchange, incoming);
        self.deadlines.insert((due, exchange), ());
        self.take_place(from);
        let mut message = Message::from(view);
        if recognition.faulty_elective {
            message.options.drop_faulty_electives();
        }
        self.outbox.push(Output::Request { exchange, from, message, multicast });
    }

    /// Why this endpoint cannot let the application decide about a request, if so.
    fn refused(
        &mut self,
        from: P,
        view: &MessageView<'_>,
        recognition: Recognition,
    ) -> Option<Refusal> {
        if let Some(number) = recognition.critical {
            self.discard(from, Discard::CriticalOption(number));
            // RFC 7252 s5.4.1: in a CON it MUST cause a 4.02 response; in a NON it MUST be
            // rejected, here in silence.
            let confirmable = view.kind() == Kind::Confirmable;
            return Some(if confirmable {
                Refusal::Answered(Code::BAD_OPTION)
            } else {
                Refusal::Silent
            });
        }
        refusal(view.options(), view.token_len(), self.config.peer_token_len_max, self.config.proxy)
            .map(Refusal::Answered)
    }

    fn refuse(&mut self, from: P, view: &MessageView<'_>, code: Code, now: Instant) {
        self.refuse_with(from, view, ResponseTemplate::new(code), now);
    }

    /// Finds a place for one more request; false if its source has its share, or all places are taken. Unproven
    /// addresses may be forged, so they leave a part of the share to proven ones. Requests by multicast, which wait
    /// for their leisure, have a part of all places, and take none from an answer.
    fn find_place(&mut self, from: P, multicast: bool, now: Instant) -> bool {
        let own = self.shares.get(&from.source()).copied().unwrap_or_default();
        let share = self.config.incoming_per_source;
        let unproven_max = (share / INCOMING_UNPROVEN_DIVISOR).max(1);
        if own.all >= share || (own.unproven >= unproven_max && !self.is_proven(from)) {
            return false;
        }
        let (taken, max) = (self.incoming.len() + self.separate, self.config.incoming_max);
        if multicast {
            let share = (max / INCOMING_MULTICAST_DIVISOR).max(1);
            return taken < share;
        }
        taken < max || self.make_room_for_request(from, now)
    }

    /// RFC 7252 s5.9.3.4: 5.03, with Max-Age for when to try again.
    fn refuse_busy(&mut self, from: P, view: &MessageView<'_>, now: Instant) {
        self.refuse_with(from, view, ResponseTemplate::busy(), now);
    }

    fn refuse_with(
        &mut self,
        from: P,
        view: &MessageView<'_>,
        response: ResponseTemplate,
        now: Instant,
    ) {
        let (message_id, token) = (view.message_id(), view.token());
        if view.kind() == Kind::Confirmable {
            self.piggyback(from, message_id, token, response, Handle::NONE, now);
        } else {
            // Without a free message ID the refusal is not sent; the client times out instead.
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
        if !response.code.is_response() {
            return Err(Rejected::Invalid {
                what: "response",
                why: "its code is not 2.xx, 4.xx or 5.xx",
            });
        }
        let Some(asked) = self.incoming.get(&exchange) else { return Err(ANSWERED) };
        if asked.unwanted.contains(response.code) {
            return self.decline(exchange, now);
        }
        let (peer, message_id, token) = (asked.peer, asked.message_id, asked.token.clone());
        if response.encoded_len(token.encoded_len()) > self.config.message_len_max {
            return Err(TOO_LONG);
        }
        match asked.answer {
            Answer::Piggybacked => self.piggyback(peer, message_id, token, response, handle, now),
            Answer::NonConfirmable => self.send_non(peer, token, response, handle, now)?,
            Answer::Separate => {
                let message = response.into_message(Kind::Confirmable, MessageId(0), token);
                let (role, expects) = (Role::Separate, Expects::One);
                let (holds_token, verified) = (false, false);
                let wanted = Wanted { peer, message, role, expects, verified, handle, holds_token };
                self.enqueue(wanted, now)?;
            }
            Answer::Multicast => {
                self.hold(exchange, response, handle, now);
                return Ok(());
            }
            Answer::Leisure(..) => return Err(ANSWERED),
        }
        self.forget_incoming(exchange);
        Ok(())
    }

    /// The application leaves a request without response.
    pub(super) fn decline(&mut self, exchange: ExchangeId, now: Instant) -> Result<(), Rejected> {
        let Some(asked) = self.incoming.get(&exchange) else { return Err(ANSWERED) };
        match asked.answer {
            // RFC 7967 s2: the server still acknowledges a CON request.
            Answer::Piggybacked => {
                let (peer, message_id) = (asked.peer, asked.message_id);
                self.acknowledge_empty(peer, message_id, now);
            }
            Answer::Leisure(..) => return Err(ANSWERED),
            Answer::Separate | Answer::NonConfirmable | Answer::Multicast => {}
        }
        self.forget_incoming(exchange);
        Ok(())
    }

    fn forget_incoming(&mut self, exchange: ExchangeId) -> Option<Incoming<P>> {
        let incoming = self.incoming.remove(&exchange)?;
        self.deadlines.remove(&(incoming.due, exchange));
        self.leave_place(incoming.peer);
        Some(incoming)
    }

    /// A request of an admitted peer, or the separate response to it, takes a place.
    pub(super) fn take_place(&mut self, peer: P) {
        let all_are_proven = self.all_are_proven();
        let Some(known) = self.peers.get_mut(&peer) else { return };
        let unproven = !(all_are_proven || known.proven);
        known.incoming += 1;
        let share = self.shares.entry(peer.source()).or_default();
        share.all += 1;
        share.unproven += usize::from(unproven);
    }

    /// The place is free again.
    pub(super) fn leave_place(&mut self, peer: P) {
        let all_are_proven = self.all_are_proven();
        let Some(known) = self.peers.get_mut(&peer) else { return };
        let unproven = !(all_are_proven || known.proven);
        known.incoming -= 1;
        let source = peer.source();
        let Some(share) = self.shares.get_mut(&source) else { return };
        share.all -= 1;
        share.unproven -= usize::from(unproven);
        if share.all == 0 && self.shares.len() > SHARES_KEPT {
            self.shares.remove(&source);
        }
    }

    /// RFC 7252 s5.2.1: the response in the ACK, kept for duplicates of the request.
    fn piggyback(
        &mut self,
        to: P,
        message_id: MessageId,
        token: Token,
        response: ResponseTemplate,
        handle: Handle,
        now: Instant,
    ) {
        let bytes = response.into_message(Kind::Acknowledgement, message_id, token).to_vec();
        if let Some(peer) = self.peers.get_mut(&to) {
            peer.seen.keep_reply(message_id, bytes.clone(), handle);
        }
        self.depart(Departure { to, bytes, handle, copy: 0, purpose: Purpose::Response }, now);
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
            return Err(NO_ROOM);
        }
        let peer = self.peers.get_mut(&to).expect("just admitted");
        if !peer.ids.reserve(now) {
            return Err(NO_MESSAGE_ID);
        }
        let message_id = peer.ids.issue(now);
        let bytes = response.into_message(Kind::NonConfirmable, message_id, token).to_vec();
        self.depart(Departure { to, bytes, handle, copy: 0, purpose: Purpose::Response }, now);
        Ok(())
    }

    /// The time of a peer's request has come: it is acknowledged, answered after its leisure, or
    /// forgotten.
    pub(super) fn on_incoming_due(&mut self, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.incoming.get_mut(&id) else { return };
        if exchange.answer != Answer::Piggybacked {
            if let Some(Incoming {
                peer, token, answer: Answer::Leisure(response, handle), ..
            }) = self.forget_incoming(id)
            {
                // Without a free message ID the client does without this member's answer.
                let _unsent = self.send_non(peer, token, response, handle, now);
            }
            return;
        }
        // RFC 7252 s5.2.2: no response yet, so the server sends an Empty ACK before the client
        // retransmits.
        let lifetime = self.peers.get(&exchange.peer).map_or(self.lifetimes, |one| one.lifetimes);
        exchange.answer = Answer::Separate;
        exchange.due = now + lifetime.exchange;
        self.deadlines.insert((exchange.due, id), ());
        let (to, message_id) = (exchange.peer, exchange.message_id);
        self.acknowledge_empty(to, message_id, now);
    }

    /// Sends an empty ACK and keeps it for duplicates.
    pub(super) fn acknowledge_empty(&mut self, to: P, message_id: MessageId, now: Instant) {
        if let Some(peer) = self.peers.get_mut(&to) {
            let bytes = Message::empty(Kind::Acknowledgement, message_id).to_vec();
            peer.seen.keep_reply(message_id, bytes, Handle::NONE);
        }
        self.send_empty(to, Kind::Acknowledgement, message_id, 0, now);
    }
}
