//! Octets have come on a connection: whole messages, and what they are (RFC 8323 s3 to s5).

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::Instant;
use lowmesh_wire::coap::signaling::{Signal, SignalError};
use lowmesh_wire::coap::stream::{StreamMessage, StreamView};
use lowmesh_wire::coap::{
    Class, Code, Kind, Message, MessageId, OptionNumber, TOKEN_LEN_MAX, Token,
};

use super::Connections;
use super::connection::State;
use super::exchange::{Asked, Waiting};
use crate::PeerAddress;
use crate::Transport;
use crate::event::{Discard, Output, Purpose, ResponseTemplate};
use crate::no_response::Unwanted;
use crate::refusal::{is_for_proxy, refusal};

impl<P: PeerAddress> Connections<P> {
    pub(super) fn on_octets(&mut self, from: P, octets: &[u8], now: Instant) {
        let message_max = self.limits.message_max;
        let Some(connection) = self.open.get_mut(&from) else {
            return self.discard(from, Discard::Unmatched);
        };
        let framing = connection.framing();
        let (frames, verdict) = connection.frames(octets, message_max);
        for frame in frames {
            // A message before may have ended the connection.
            if !self.open.contains_key(&from) {
                return;
            }
            match StreamView::parse(&frame, framing) {
                Ok(_) if frame.len() > message_max => {
                    return self.abort(from, None, "message longer than Max-Message-Size");
                }
                Ok(view) => self.on_message(from, &view, now),
                Err(error) => {
                    self.discard(from, Discard::Malformed(error));
                    // RFC 8323 s5.6: a message format error aborts the connection.
                    return self.abort(from, None, error.field);
                }
            }
        }
        if let Err(error) = verdict {
            self.discard(from, Discard::Malformed(error));
            self.abort(from, None, error.field);
        }
    }

    fn on_message(&mut self, from: P, view: &StreamView<'_>, now: Instant) {
        let state = self.open.get(&from).map(|one| one.state);
        match view.code().class() {
            // RFC 8323 s3.4: an Empty message can always be sent and MUST be ignored.
            Class::Empty => {}
            // RFC 8323 s5.3: a missing CSM is a connection error.
            _ if state == Some(State::Opening) && view.code() != Code::CSM => {
                self.abort(from, None, "the first message is no CSM");
            }
            Class::Signaling => self.on_signal(from, view, now),
            Class::Request => self.on_request(from, view),
            Class::Success | Class::ClientError | Class::ServerError => {
                self.on_response(from, view, now);
            }
            Class::Reserved => self.discard(from, Discard::Misplaced),
        }
    }

    fn on_signal(&mut self, from: P, view: &StreamView<'_>, now: Instant) {
        let signal = match Signal::parse(view) {
            Ok(signal) => signal,
            // RFC 8323 s5.2 and s5.3: an unknown critical option aborts; in a CSM it is named.
            Err(SignalError::CriticalOption { code, number }) => {
                let bad = (code == Code::CSM).then_some(number);
                return self.abort(from, bad, "unknown critical option");
            }
            // RFC 8323 s5.1: unknown signaling messages are ignored: they cannot matter to us.
            Err(SignalError::Code(_)) => return self.discard(from, Discard::Misplaced),
        };
        match signal {
            Signal::Csm(capabilities) => {
                if let Some(connection) = self.open.get_mut(&from) {
                    connection.peer.apply(capabilities);
                    self.greetings.remove(&(connection.greeted_by, from));
                    if connection.state == State::Opening {
                        connection.state = State::Open;
                    }
                }
            }
            Signal::Ping { custody } => {
                // RFC 8323 s5.4.1: with Custody only when all before it is processed.
                let custody = custody && !self.asked.values().any(|asked| asked.peer == from);
                self.signal(from, Signal::Pong { custody }, view.token());
            }
            Signal::Pong { .. } => self.on_pong(from, &view.token(), now),
            Signal::Release { .. } => {
                if let Some(connection) = self.open.get_mut(&from) {
                    connection.state = State::Releasing;
                }
                self.close_if_done(from);
            }
            Signal::Abort { .. } => {
                self.end(from, DropReason::Reset);
                self.outbox.push(Output::Close { peer: from });
            }
        }
    }

    fn on_pong(&mut self, from: P, token: &Token, now: Instant) {
        let is_ping = |one: &Waiting<P>| one.peer == from && one.purpose == Purpose::Empty;
        let ping = if token.is_empty() {
            // RFC 8323 s5.4 wants the token back; libcoap 4.3 sends none, and answers in order.
            self.waiting.iter().find(|(_, one)| is_ping(one)).map(|(id, _)| *id)
        } else {
            self.by_token(from, token).filter(|id| self.waiting.get(id).is_some_and(is_ping))
        };
        let Some(Waiting { handle, started, .. }) = ping.and_then(|id| self.forget(id)) else {
            return self.discard(from, Discard::Unmatched);
        };
        self.outbox.push(Output::Pong { handle, rtt: now.since(started), retransmissions: 0 });
        self.close_if_done(from);
    }

    fn on_request(&mut self, from: P, view: &StreamView<'_>) {
        // RFC 7252 s5.4.2: a proxy forwards what it does not know, if that is safe.
        let relayed = self.limits.proxy && is_for_proxy(view.options());
        let recognition = view
            .options()
            .recognise(|number| self.knows(number) || (relayed && !number.is_unsafe()));
        let token = view.token();
        let refused = match recognition.critical {
            Some(number) => {
                self.discard(from, Discard::CriticalOption(number));
                // RFC 7252 s5.4.1: as in a CON request.
                Some(Code::BAD_OPTION)
            }
            None => refusal(view.options(), token.len(), TOKEN_LEN_MAX, self.limits.proxy),
        };
        let refused = refused.map(ResponseTemplate::new).or_else(|| {
            let busy = self.is_busy(from).then(ResponseTemplate::busy)?;
            self.discard(from, Discard::Overloaded);
            Some(busy)
        });
        // Over a reliable transport the client would wait in vain for a request that is dropped.
        if let Some(ResponseTemplate { code, options, payload, .. }) = refused {
            let answer = StreamMessage { code, token, options, payload };
            return self.send(from, &answer, Handle::NONE, Purpose::Response);
        }
        if let Some(connection) = self.open.get_mut(&from) {
            connection.incoming += 1;
        }
        let exchange = self.next_id();
        let unwanted = Unwanted::from_options(view.options()).unwrap_or(Unwanted::NOTHING);
        self.asked.insert(exchange, Asked { peer: from, token, unwanted });
        let message = message(view, recognition.faulty_elective);
        self.outbox.push(Output::Request { exchange, from, message, multicast: false });
    }

    /// True if all places for unanswered requests are taken, or the connections of this source have their share
    /// of them. A connection that is alone may have all.
    fn is_busy(&self, from: P) -> bool {
        let (taken, share) = (self.asked.len(), self.limits.incoming_per_source);
        if taken >= self.limits.incoming_max {
            return true;
        }
        let own = || {
            let of_source = self.open.iter().filter(|(peer, _)| peer.source() == from.source());
            of_source.map(|(_, one)| one.incoming).sum::<usize>()
        };
        !self.is_alone() && taken >= share && own() >= share
    }

    fn on_response(&mut self, from: P, view: &StreamView<'_>, now: Instant) {
        let found = self
            .by_token(from, &view.token())
            .filter(|id| self.waiting.get(id).is_some_and(|one| one.purpose == Purpose::Request));
        let Some((id, waiting)) = found.and_then(|id| Some((id, self.waiting.get(&id)?))) else {
            return self.discard(from, Discard::Unmatched);
        };
        let (handle, started, verified) = (waiting.handle, waiting.started, waiting.verified);
        let recognition = view.options().recognise(|number| self.knows(number));
        let message = message(view, recognition.faulty_elective);
        if let Some(number) = recognition.critical {
            self.discard(from, Discard::CriticalOption(number));
            // What nobody has verified speaks for nobody.
            if !verified {
                self.forget(id);
                let reason = DropReason::Malformed;
                self.outbox.push(Output::Failed { handle, reason });
            }
            return self.close_if_done(from);
        }
        let (rtt, retransmissions) = (now.since(started), 0);
        if verified {
            self.outbox.push(Output::Response { handle, from, message, rtt, retransmissions });
            return;
        }
        // RFC 8323 s7.1: notifications arrive in order, and the value of Observe says nothing.
        let observed = message.options.get(OptionNumber::OBSERVE).is_some();
        if let Some(waiting) = self.waiting.get_mut(&id)
            && waiting.observes.is_some()
            && observed
            && message.code.class() == Class::Success
        {
            if let Some(due) = waiting.due.take() {
                self.deadlines.remove(&(due, id));
            }
            self.outbox.push(Output::Notification { handle, from, message });
            return self.close_if_done(from);
        }
        self.forget(id);
        self.outbox.push(Output::Response { handle, from, message, rtt, retransmissions });
        self.close_if_done(from);
    }
}

/// A message for the application. Kind and message ID, which connections do not have, are those
/// that say least.
fn message(view: &StreamView<'_>, faulty_elective: bool) -> Message {
    let StreamMessage { code, token, options, payload } = StreamMessage::from(view);
    let mut message = Message {
        kind: Kind::Confirmable,
        code,
        message_id: MessageId(0),
        token,
        options,
        payload,
    };
    if faulty_elective {
        message.options.drop_faulty_electives();
    }
    message
}
