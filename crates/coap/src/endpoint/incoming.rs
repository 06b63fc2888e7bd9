//! Requests of peers: from the datagram to the application's answer (RFC 7252 s4.5, s5.2, s5.4, s8.2).

use alloc::vec::Vec;

use hashbrown::HashMap;
use lowmesh_machine::Rejected;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Kind, Message, MessageId, MessageView, Recognition, Token};

use super::exchange::{Answer, Expects, Incoming, Role};
use super::message_layer::{Departure, MessageLayer};
use super::outgoing::{NO_MESSAGE_ID, NO_ROOM, OwnExchanges, TOO_LONG, Wanted};
use crate::PeerAddress;
use crate::event::{Discard, Purpose, ResponseTemplate};
use crate::exchange::{ExchangeId, Name, Output};
use crate::no_response::Suppression;
use crate::params::{INCOMING_MULTICAST_DIVISOR, INCOMING_UNPROVEN_DIVISOR};
use crate::rejection::{ANSWERED, check_response};

/// How a request is refused.
enum Refusal {
    /// With a response.
    Answered(ResponseTemplate),
    /// Without a word.
    Silent,
}

/// Requests of peers that are not answered. Nothing goes through them in order.
#[derive(Debug)]
pub(super) struct Requests<P>(HashMap<ExchangeId, Incoming<P>>);

impl<P: PeerAddress> Requests<P> {
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }
    /// Whether a request can still be answered.
    pub(super) fn contains(&self, exchange: ExchangeId) -> bool {
        self.0.contains_key(&exchange)
    }

    /// A new request has come from an admitted peer.
    pub(super) fn on_request(
        &mut self,
        own: &mut OwnExchanges<P>,
        layer: &mut MessageLayer<P>,
        from: P,
        view: &MessageView<'_>,
        multicast: bool,
        now: Instant,
    ) {
        if layer.is_duplicate_request(from, view, now) {
            return;
        }
        if !self.find_place(own, layer, from, multicast, now) {
            layer.outputs.discard(from, Discard::Overloaded);
            if !multicast {
                // RFC 7252 s5.9.3.4: 5.03, with Max-Age for when to try again.
                refuse(layer, from, view, ResponseTemplate::busy(), now);
            }
            return;
        }
        let recognition = layer.understanding().of_request(view.options());
        if let Some(refused) = refused(layer, from, view, recognition) {
            // RFC 7252 s8.2: a multicast request that nothing useful can be said to is ignored.
            match refused {
                Refusal::Answered(response) if !multicast => {
                    refuse(layer, from, view, response, now);
                }
                Refusal::Answered(_) | Refusal::Silent => {}
            }
            return;
        }
        let (answer, wait) = if view.kind() == Kind::Confirmable {
            (Answer::Piggybacked, layer.config.ack_delay)
        } else if multicast {
            (Answer::Multicast { came: now }, layer.lifetimes(from).non_confirmable)
        } else {
            (Answer::NonConfirmable, layer.lifetimes(from).non_confirmable)
        };
        let due = now + wait;
        let unwanted = Suppression::of(view.options(), multicast);
        let exchange = layer.ids.next();
        let (message_id, token) = (view.message_id(), view.token());
        let incoming = Incoming { peer: from, message_id, token, answer, unwanted, due };
        self.0.insert(exchange, incoming);
        layer.deadlines.insert((due, exchange), ());
        layer.take_place(from);
        let mut message = Message::from(view);
        if recognition.faulty_elective {
            message.options.drop_faulty_electives();
        }
        layer.outputs.push(Output::Request { exchange, from, message, multicast });
    }

    /// Finds a place for one more request; false if its source has its share, or all places are taken. Unproven
    /// addresses may be forged, so they leave a part of the share to proven ones. Requests by multicast, which wait
    /// for their leisure, have a part of all places, and take none from an answer.
    fn find_place(
        &self,
        own: &mut OwnExchanges<P>,
        layer: &mut MessageLayer<P>,
        from: P,
        multicast: bool,
        now: Instant,
    ) -> bool {
        let taken = layer.shares.of(from);
        let share = layer.config.incoming_per_source;
        let unproven_max = (share / INCOMING_UNPROVEN_DIVISOR).max(1);
        let of_unproven = taken.unproven >= unproven_max && !layer.is_proven(from);
        if (taken.all >= share || of_unproven)
            && (multicast || !own.make_room_for_request(layer, from, true, now))
        {
            return false;
        }
        let (taken, max) = (self.0.len() + own.separate(), layer.config.incoming_max);
        if multicast {
            let share = (max / INCOMING_MULTICAST_DIVISOR).max(1);
            return taken < share;
        }
        taken < max || own.make_room_for_request(layer, from, false, now)
    }

    /// The application answers.
    pub(super) fn respond(
        &mut self,
        own: &mut OwnExchanges<P>,
        layer: &mut MessageLayer<P>,
        exchange: ExchangeId,
        response: ResponseTemplate,
        handle: Name,
        now: Instant,
    ) -> Result<(), Rejected> {
        check_response("response", response.code)?;
        let Some(asked) = self.0.get(&exchange) else { return Err(ANSWERED) };
        if asked.unwanted.applies_to(&response) {
            return self.decline(layer, exchange, now);
        }
        let (peer, message_id, token) = (asked.peer, asked.message_id, asked.token.clone());
        if response.encoded_len(token.encoded_len()) > layer.config.message_len_max {
            return Err(TOO_LONG);
        }
        let sent = match asked.answer {
            Answer::Piggybacked => {
                piggyback(layer, peer, message_id, token, response, handle, now);
                Ok(())
            }
            Answer::NonConfirmable => send_non(layer, peer, token, response, handle, now),
            // RFC 7252 s5.2.2: a separate response is confirmable where it must not get lost. Nothing waits for an
            // acknowledgement where none of the places for that is free.
            Answer::Separate if !own.make_room_for_response(layer, peer, now) => {
                send_non(layer, peer, token, response, handle, now)
            }
            Answer::Separate => {
                let message = response.into_message(Kind::Confirmable, MessageId(0), token);
                let (role, expects) = (Role::Separate, Expects::One);
                let (holds_token, verified, registered) = (false, false, false);
                let wanted = Wanted {
                    peer,
                    message,
                    role,
                    expects,
                    verified,
                    registered,
                    handle,
                    holds_token,
                };
                own.enqueue(layer, wanted, now)
            }
            Answer::Multicast { came } => {
                self.hold(layer, exchange, response, handle, came, now);
                return Ok(());
            }
            Answer::Leisure(..) => return Err(ANSWERED),
        };
        // A request that cannot be answered for want of a message ID must not keep its place: one peer can use up its IDs.
        self.forget(layer, exchange);
        sent
    }

    /// The application leaves a request without response.
    pub(super) fn decline(
        &mut self,
        layer: &mut MessageLayer<P>,
        exchange: ExchangeId,
        now: Instant,
    ) -> Result<(), Rejected> {
        let Some(asked) = self.0.get(&exchange) else { return Err(ANSWERED) };
        match asked.answer {
            // RFC 7967 s2: the server still acknowledges a CON request.
            Answer::Piggybacked => {
                let (peer, message_id) = (asked.peer, asked.message_id);
                layer.acknowledge(peer, message_id, now);
            }
            Answer::Leisure(..) => return Err(ANSWERED),
            Answer::Separate | Answer::NonConfirmable | Answer::Multicast { .. } => {}
        }
        self.forget(layer, exchange);
        Ok(())
    }

    /// RFC 7252 s9.1.2: a response belongs to the session of its request, so those of an ended session get none.
    pub(super) fn forget_peer(&mut self, layer: &mut MessageLayer<P>, peer: P) {
        let of_peer = self.0.iter().filter(|(_, one)| one.peer == peer).map(|(id, _)| *id);
        for exchange in of_peer.collect::<Vec<_>>() {
            self.forget(layer, exchange);
        }
    }

    fn forget(&mut self, layer: &mut MessageLayer<P>, exchange: ExchangeId) -> Option<Incoming<P>> {
        let incoming = self.0.remove(&exchange)?;
        layer.deadlines.remove(&(incoming.due, exchange));
        layer.leave_place(incoming.peer);
        Some(incoming)
    }

    /// The time of a peer's request has come: it is acknowledged, answered after its leisure, or
    /// forgotten.
    pub(super) fn on_due(&mut self, layer: &mut MessageLayer<P>, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.0.get_mut(&id) else { return };
        if exchange.answer != Answer::Piggybacked {
            if let Some(Incoming {
                peer, token, answer: Answer::Leisure(response, handle), ..
            }) = self.forget(layer, id)
            {
                // Without a free message ID the client does without this member's answer.
                let _unsent = send_non(layer, peer, token, response, handle, now);
            }
            return;
        }
        // RFC 7252 s5.2.2: no response yet, so the server sends an Empty ACK before the client
        // retransmits.
        let lifetime = layer.lifetimes(exchange.peer);
        exchange.answer = Answer::Separate;
        exchange.due = now + lifetime.exchange;
        layer.deadlines.insert((exchange.due, id), ());
        let (to, message_id) = (exchange.peer, exchange.message_id);
        layer.acknowledge(to, message_id, now);
    }

    /// The application has answered a multicast request, which `came` before: the answer leaves after a random part of the
    /// leisure.
    fn hold(
        &mut self,
        layer: &mut MessageLayer<P>,
        id: ExchangeId,
        response: ResponseTemplate,
        handle: Name,
        came: Instant,
        now: Instant,
    ) {
        // RFC 7252 s8.2: the server picks a random point of time within the leisure period. The period begins when the
        // request comes, so the time that the application takes passes within it.
        let Some(exchange) = self.0.get_mut(&id) else { return };
        let octets = response.encoded_len(exchange.token.encoded_len());
        let leisure = layer.config.leisure.of(octets);
        let due = now.max(came + layer.rng.duration(Duration::ZERO, leisure));
        exchange.answer = Answer::Leisure(response, handle);
        let before = core::mem::replace(&mut exchange.due, due);
        layer.deadlines.remove(&(before, id));
        layer.deadlines.insert((due, id), ());
    }
}

/// Why this endpoint cannot let the application decide about a request, if so.
fn refused<P: PeerAddress>(
    layer: &mut MessageLayer<P>,
    from: P,
    view: &MessageView<'_>,
    recognition: Recognition,
) -> Option<Refusal> {
    if let Some(number) = recognition.critical {
        layer.outputs.discard(from, Discard::CriticalOption(number));
        // RFC 7252 s5.4.1: in a CON it MUST cause a 4.02 response; in a NON it MUST be
        // rejected, here in silence.
        if view.kind() != Kind::Confirmable {
            return Some(Refusal::Silent);
        }
    }
    let refusal = layer.understanding().refusal(view.options(), recognition, view.token_len());
    refusal.map(Refusal::Answered)
}

/// Answers a request that is not put before the application.
fn refuse<P: PeerAddress>(
    layer: &mut MessageLayer<P>,
    from: P,
    view: &MessageView<'_>,
    response: ResponseTemplate,
    now: Instant,
) {
    let (message_id, token) = (view.message_id(), view.token());
    if view.kind() == Kind::Confirmable {
        piggyback(layer, from, message_id, token, response, Name::NONE, now);
    } else {
        // Without a free message ID the refusal is not sent; the client times out instead.
        let _unsent = send_non(layer, from, token, response, Name::NONE, now);
    }
}

/// RFC 7252 s5.2.1: the response in the ACK, kept for duplicates of the request.
fn piggyback<P: PeerAddress>(
    layer: &mut MessageLayer<P>,
    to: P,
    message_id: MessageId,
    token: Token,
    response: ResponseTemplate,
    handle: Name,
    now: Instant,
) {
    let bytes = response.into_message(Kind::Acknowledgement, message_id, token).to_vec();
    if let Some(peer) = layer.peers.get_mut(&to) {
        peer.seen.keep_reply(message_id, bytes.clone(), handle);
    }
    layer.send(Departure { to, bytes, handle, copy: 0, purpose: Purpose::Response }, now);
}

/// RFC 7252 s5.2.3: a NON request SHOULD be answered with a NON.
fn send_non<P: PeerAddress>(
    layer: &mut MessageLayer<P>,
    to: P,
    token: Token,
    response: ResponseTemplate,
    handle: Name,
    now: Instant,
) -> Result<(), Rejected> {
    if !layer.admit(to, now) {
        return Err(NO_ROOM);
    }
    let peer = layer.peers.get_mut(&to).expect("just admitted");
    if !peer.ids.reserve(now) {
        return Err(NO_MESSAGE_ID);
    }
    let message_id = peer.ids.issue(now);
    let bytes = response.into_message(Kind::NonConfirmable, message_id, token).to_vec();
    layer.send(Departure { to, bytes, handle, copy: 0, purpose: Purpose::Response }, now);
    Ok(())
}
