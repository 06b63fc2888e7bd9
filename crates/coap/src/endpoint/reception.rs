//! A datagram has come: what it is, and whose it is (RFC 7252 s4.2, s4.3, s5.3.2).

use lowmesh_machine::DropReason;
use lowmesh_units::Instant;
use lowmesh_wire::DecodeError;
use lowmesh_wire::coap::{Class, Head, Kind, Message, MessageId, MessageView, OptionNumber};

use super::Endpoint;
use super::exchange::{Expects, Role};
use crate::PeerAddress;
use crate::event::{Discard, Fault, Purpose};
use crate::exchange::{ExchangeId, Output};

impl<P: PeerAddress> Endpoint<P> {
    pub(super) fn on_datagram(&mut self, from: P, bytes: &[u8], now: Instant) {
        self.layer.hear(from);
        let view = match MessageView::parse(bytes) {
            Ok(view) => view,
            Err(error) => return self.on_malformed(from, bytes, error, now),
        };
        if view.code().class() != Class::Request {
            self.layer.earn(from, bytes.len(), now);
        }
        match (view.kind(), view.code().class()) {
            (Kind::Confirmable, Class::Empty) => {
                // RFC 7252 s4.3: an Empty CON elicits a RST ("CoAP ping").
                self.layer.outputs.discard(from, Discard::Ping);
                self.layer.send_empty(from, Kind::Reset, view.message_id(), now);
            }
            (Kind::Acknowledgement, Class::Empty) => {
                self.on_empty_ack(from, view.message_id(), now);
            }
            (Kind::Reset, Class::Empty) => self.on_reset(from, view.message_id(), now),
            (Kind::Confirmable | Kind::NonConfirmable, Class::Request) => {
                if self.layer.admit_with(from, self.layer.worth(from, bytes.len()), now) {
                    self.requests.on_request(
                        &mut self.own,
                        &mut self.layer,
                        from,
                        &view,
                        false,
                        now,
                    );
                } else {
                    self.layer.outputs.discard(from, Discard::Overloaded);
                    self.layer.refuse_stranger(from, &view, bytes.len(), now);
                }
            }
            (Kind::Acknowledgement, _) if view.code().is_response() => {
                self.on_piggybacked(from, &view, now);
            }
            (Kind::Confirmable | Kind::NonConfirmable, _) if view.code().is_response() => {
                self.on_separate(from, &view, now);
            }
            // RFC 7252 s4.2: an ACK with a request or a RST that is not Empty MUST be ignored, a
            // CON with a reserved code MUST be rejected; s4.3: such a NON is ignored.
            _ => {
                self.layer.outputs.discard(from, Discard::Misplaced);
                self.layer.reject(from, view.kind(), view.message_id(), now);
            }
        }
    }

    /// RFC 7252 s4.2: a CON with a message format error is rejected with RST; s3: an unknown
    /// version is ignored.
    fn on_malformed(&mut self, from: P, bytes: &[u8], error: DecodeError, now: Instant) {
        self.layer.outputs.discard(from, Discard::Malformed(error));
        if let Some(head) = Head::read(bytes) {
            self.layer.reject(from, head.kind, head.message_id, now);
        }
    }

    /// A datagram came to a group's address. Nothing but a NON request may do so, and nothing that
    /// is wrong with it is answered: RFC 7252 s8.1 forbids RST.
    pub(super) fn on_group_datagram(&mut self, from: P, bytes: &[u8], now: Instant) {
        let view = match MessageView::parse(bytes) {
            Ok(view) => view,
            Err(error) => return self.layer.outputs.discard(from, Discard::Malformed(error)),
        };
        match (view.kind(), view.code().class()) {
            (Kind::NonConfirmable, Class::Request)
                if self.layer.admit_with(from, self.layer.worth(from, bytes.len()), now) =>
            {
                self.requests.on_request(&mut self.own, &mut self.layer, from, &view, true, now);
            }
            (Kind::NonConfirmable, Class::Request) => {
                self.layer.outputs.discard(from, Discard::Overloaded);
            }
            _ => self.layer.outputs.discard(from, Discard::Misplaced),
        }
    }

    fn by_message_id(&self, from: P, message_id: MessageId) -> Option<ExchangeId> {
        self.layer.peers.get(&from)?.by_message_id(message_id)
    }

    /// An empty ACK: a request waits on for its response, a separate response is over.
    fn on_empty_ack(&mut self, from: P, message_id: MessageId, now: Instant) {
        let confirmed = self
            .by_message_id(from, message_id)
            .filter(|id| self.own.all.get(id).is_some_and(|one| one.kind == Kind::Confirmable));
        let Some(id) = confirmed else { return self.layer.discard_stray(from) };
        // Anybody can provoke many separate responses, and guess at the message ID of each. Of notifications there are as
        // many as the resource has states, to an address that has registered.
        let notified = self.own.all.get(&id).is_some_and(|one| one.role == Role::Notification);
        if notified && self.layer.trusts_ack(from, now) {
            self.own.prove(&mut self.layer, from, now);
        }
        let Some((handle, rtt, retransmissions)) = self.own.acknowledge(&mut self.layer, id, now)
        else {
            return;
        };
        self.layer.outputs.push(Output::Acknowledged { handle, rtt, retransmissions });
        match self.own.all.get(&id) {
            Some(one) if one.role.purpose() == Purpose::Response => {
                self.own.close(&mut self.layer, id, now);
            }
            // A ping that is acknowledged instead of reset is answered too, if wrongly.
            Some(one) if one.role == Role::Ping => {
                self.own.close(&mut self.layer, id, now);
                self.layer.outputs.push(Output::Pong { handle, rtt, retransmissions });
            }
            Some(one) if one.expects == Expects::Nothing => {
                self.own.finish(&mut self.layer, id, now);
            }
            _ => {}
        }
        self.own.start_waiting(&mut self.layer, from, now);
    }

    /// RFC 7252 s4.2: the peer lacks context for the message; it is not sent again.
    fn on_reset(&mut self, from: P, message_id: MessageId, now: Instant) {
        if let Some(id) = self.by_message_id(from, message_id) {
            // No proof: a victim whose address was forged answers with RST too.
            return match self.own.all.get(&id).map(|one| one.role) {
                // RFC 7252 s4.3: the RST is what a ping wants.
                Some(Role::Ping) => self.on_pong(id, now),
                _ => self.own.abandon(&mut self.layer, id, DropReason::Reset, now),
            };
        }
        let notification =
            self.layer.peers.get_mut(&from).and_then(|one| one.take_unconfirmed(message_id));
        match notification {
            Some(handle) => self.layer.outputs.fail(handle, DropReason::Reset),
            None => self.layer.outputs.discard(from, Discard::Unmatched),
        }
    }

    fn on_pong(&mut self, id: ExchangeId, now: Instant) {
        let Some((handle, rtt, retransmissions)) = self.own.acknowledge(&mut self.layer, id, now)
        else {
            return;
        };
        let Some(ping) = self.own.close(&mut self.layer, id, now) else { return };
        self.layer.outputs.push(Output::Pong { handle, rtt, retransmissions });
        self.own.start_waiting(&mut self.layer, ping.peer, now);
    }

    /// A response in an ACK: message ID and token both have to match (RFC 7252 s5.3.2).
    fn on_piggybacked(&mut self, from: P, view: &MessageView<'_>, now: Instant) {
        let matched = self.by_message_id(from, view.message_id()).filter(|id| {
            self.own.all.get(id).is_some_and(|one| {
                one.role == Role::Request
                    && one.kind == Kind::Confirmable
                    && one.token == view.token()
            })
        });
        // One that the layer above did not accept was an ACK all the same, but not the response; and a notification that came
        // before the answer to a new registration was perhaps a delayed one.
        let matched = matched.or_else(|| {
            let id = self.layer.peers.get(&from)?.by_token(&view.token())?;
            let exchange = self.own.all.get(&id)?;
            let observes = matches!(exchange.expects, Expects::Notifications(_));
            let is_own = exchange.message_id() == view.message_id();
            ((exchange.verified || observes) && is_own).then_some(id)
        });
        match matched {
            Some(id) => {
                self.own.prove(&mut self.layer, from, now);
                self.own.acknowledge(&mut self.layer, id, now);
                self.settle(from, id, view, now);
            }
            None => self.layer.outputs.discard(from, Discard::Unmatched),
        }
    }

    /// A response in a message of its own: the token has to match (RFC 7252 s5.3.2).
    ///
    /// It may come before the ACK of the request, or instead of it; then it says nothing about the
    /// round-trip time, since the server's own delay is in it.
    fn on_separate(&mut self, from: P, view: &MessageView<'_>, now: Instant) {
        // A copy of a response that has ended its request is acknowledged again.
        if self.layer.is_duplicate(from, view, now) {
            return;
        }
        let token = view.token();
        let matched = self.layer.peers.get_mut(&from).and_then(|peer| peer.answered(&token));
        let Some(id) = matched.or_else(|| self.own.groups.by_token(&token)) else {
            self.layer.outputs.discard(from, Discard::Unmatched);
            // RFC 7641 s3.6: RST to a notification that nobody wants any more ends its observation,
            // NON ones included.
            let notifies = view.option(OptionNumber::OBSERVE).is_some();
            let kind = if notifies { Kind::Confirmable } else { view.kind() };
            return self.layer.reject(from, kind, view.message_id(), now);
        };
        // A member of a group may not be known yet.
        if matched.is_none() && !self.layer.admit(from, now) {
            return self.layer.outputs.discard(from, Discard::Overloaded);
        }
        self.layer.remember(from, view, now);
        // RFC 7252 s5.4.1: a response with an unrecognised critical option MUST be rejected (s4.2).
        let recognition = self.layer.understanding().of_response(view.options());
        if recognition.critical.is_some() {
            self.layer.reject(from, view.kind(), view.message_id(), now);
        } else if view.kind() == Kind::Confirmable {
            self.layer.acknowledge(from, view.message_id(), now);
        }
        self.settle(from, id, view, now);
    }

    /// Ends a request with the response in `view`, unless more are to come, or it has a critical
    /// option that nobody knows: then the request is over without a response.
    fn settle(&mut self, from: P, id: ExchangeId, view: &MessageView<'_>, now: Instant) {
        let recognition = self.layer.understanding().of_response(view.options());
        let Some(exchange) = self.own.all.get(&id) else { return };
        let (expects, verified) = (exchange.expects, exchange.verified);
        if let Some(number) = recognition.critical {
            self.layer.outputs.discard(from, Discard::CriticalOption(number));
            // One member of a group does not speak for the others, and what nobody has verified
            // speaks for nobody.
            if !matches!(expects, Expects::Group { .. }) && !verified {
                let (handle, fault) = (exchange.handle, Fault::of_option(number));
                self.layer.outputs.push(Output::Fault { handle, fault });
                self.own.abandon(&mut self.layer, id, DropReason::Malformed, now);
            }
            return;
        }
        let mut message = Message::from(view);
        if recognition.faulty_elective {
            message.options.drop_faulty_electives();
        }
        match expects {
            _ if verified => self.own.submit(&mut self.layer, from, id, message, now),
            Expects::Group { .. } => {
                self.own.on_group_response(&mut self.layer, from, id, message, now);
            }
            Expects::Notifications(_) => {
                if let Some(last) =
                    self.own.on_notification(&mut self.layer, from, id, message, now)
                {
                    self.own.complete(&mut self.layer, from, id, last, now);
                }
            }
            _ => self.own.complete(&mut self.layer, from, id, message, now),
        }
    }
}
