//! Octets have come on a connection: whole messages, and what they are; and how a connection begins and ends (RFC 8323 s3 to
//! s5).

use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_machine::DropReason;
use lowmesh_units::Instant;
use lowmesh_wire::coap::signaling::{Signal, SignalError};
use lowmesh_wire::coap::stream::{Framing, StreamView};
use lowmesh_wire::coap::{Class, Code, Token};

use super::Connections;
use super::connection::State;
use crate::PeerAddress;
use crate::event::{Discard, Fault};
use crate::exchange::Output;

impl<P: PeerAddress> Connections<P> {
    /// A driver has connected, or a peer has.
    pub(super) fn on_connected(&mut self, peer: P, framing: Framing, now: Instant) {
        self.end(peer, DropReason::NoRoute);
        if self.layer.takes(peer) {
            return self.layer.add(peer, framing, now);
        }
        self.layer.outputs.discard(peer, Discard::Overloaded);
        self.layer.outputs.push(Output::Close { peer });
    }
    /// The connection ends at once: whatever is open on it has failed.
    pub(super) fn end(&mut self, peer: P, reason: DropReason) {
        self.end_by(peer, reason, None);
    }
    /// The same, for what the peer has done.
    fn end_by(&mut self, peer: P, reason: DropReason, fault: Option<&Fault>) {
        if self.layer.remove(peer) {
            self.requests.end(peer);
            self.own.end(&mut self.layer, peer, reason, fault);
        }
    }
    /// Ends a connection whose peer broke the rules (RFC 8323 s5.6).
    fn abort(&mut self, peer: P, bad_csm_option: Option<u16>, diagnostic: &str) {
        let diagnostic = diagnostic.into();
        self.layer.signal(peer, Signal::Abort { bad_csm_option, diagnostic }, Token::EMPTY);
        self.end(peer, DropReason::Malformed);
        self.layer.outputs.push(Output::Close { peer });
    }
    /// The application wants a connection to end in order (RFC 8323 s5.5).
    pub(super) fn release(&mut self, peer: P) {
        let Some(connection) = self.layer.open.get_mut(&peer) else { return };
        if connection.state == State::Releasing {
            return;
        }
        connection.state = State::Releasing;
        let release =
            Signal::Release { alternatives: Vec::new(), hold_off: None, diagnostic: String::new() };
        self.layer.signal(peer, release, Token::EMPTY);
        self.close_if_done(peer);
    }
    /// Closes a connection that is being released once nothing is open on it.
    pub(super) fn close_if_done(&mut self, peer: P) {
        let releasing = self.layer.state(peer) == Some(State::Releasing);
        if releasing && !self.requests.are_open(peer) && !self.own.keep_open(peer) {
            self.end(peer, DropReason::NoRoute);
            self.layer.outputs.push(Output::Close { peer });
        }
    }
    pub(super) fn on_deadline(&mut self, now: Instant) {
        while let Some(peer) = self.layer.next_overdue(now) {
            // RFC 8323 s5.3: a missing CSM is a connection error.
            self.abort(peer, None, "no CSM came in time");
        }
        while let Some(peer) = self.own.next_expired(&mut self.layer, now) {
            self.close_if_done(peer);
        }
    }

    pub(super) fn on_octets(&mut self, from: P, octets: &[u8], now: Instant) {
        let message_max = self.layer.limits.message_max;
        let Some(connection) = self.layer.open.get_mut(&from) else {
            return self.layer.outputs.discard(from, Discard::Unmatched);
        };
        let framing = connection.framing();
        let (frames, verdict) = connection.frames(octets, message_max);
        for frame in frames {
            // A message before may have ended the connection.
            if !self.layer.open.contains_key(&from) {
                return;
            }
            match StreamView::parse(&frame, framing) {
                Ok(_) if frame.len() > message_max => {
                    return self.abort(from, None, "message longer than Max-Message-Size");
                }
                Ok(view) => self.on_message(from, &view, now),
                Err(error) => {
                    self.layer.outputs.discard(from, Discard::Malformed(error));
                    // RFC 8323 s5.6: a message format error aborts the connection.
                    return self.abort(from, None, error.field);
                }
            }
        }
        if let Err(error) = verdict {
            self.layer.outputs.discard(from, Discard::Malformed(error));
            self.abort(from, None, error.field);
        }
    }

    fn on_message(&mut self, from: P, view: &StreamView<'_>, now: Instant) {
        let Self { layer, own, requests } = self;
        match view.code().class() {
            // RFC 8323 s3.4: an Empty message can always be sent and MUST be ignored.
            Class::Empty => {}
            // RFC 8323 s5.3: a missing CSM is a connection error.
            _ if layer.state(from) == Some(State::Opening) && view.code() != Code::CSM => {
                self.abort(from, None, "the first message is not a CSM");
            }
            Class::Signaling => self.on_signal(from, view, now),
            Class::Request => requests.on_request(layer, from, view),
            Class::Success | Class::ClientError | Class::ServerError => {
                own.on_response(layer, from, view, now);
                self.close_if_done(from);
            }
            Class::Reserved => layer.outputs.discard(from, Discard::Misplaced),
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
            Err(SignalError::Code(_)) => {
                return self.layer.outputs.discard(from, Discard::Misplaced);
            }
        };
        match signal {
            Signal::Csm(capabilities) => self.layer.on_csm(from, capabilities),
            Signal::Ping { custody } => {
                // RFC 8323 s5.4.1: with Custody only when all before it is processed.
                let custody = custody && !self.requests.are_open(from);
                self.layer.signal(from, Signal::Pong { custody }, view.token());
            }
            Signal::Pong { .. } => {
                self.own.on_pong(&mut self.layer, from, &view.token(), now);
                self.close_if_done(from);
            }
            Signal::Release { .. } => {
                if let Some(connection) = self.layer.open.get_mut(&from) {
                    connection.state = State::Releasing;
                }
                self.close_if_done(from);
            }
            Signal::Abort { diagnostic, .. } => {
                // RFC 8323 s5.6: the diagnostic payload is for people.
                self.end_by(from, DropReason::Reset, Some(&Fault::Aborted(diagnostic)));
                self.layer.outputs.push(Output::Close { peer: from });
            }
        }
    }
}
