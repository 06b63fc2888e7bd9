//! The ends of secure sessions below the endpoint (RFC 7252 s9.1).
//!
//! What an endpoint keeps about a peer must not outlive the peer. A peer that has restarted has lost its end of the
//! session and discards its records without a word (RFC 6347 s4.1.2.7); to begin a new handshake is up to the end that
//! opened the session (s4.2.8). So silence ends a session that this end has opened:
//!
//! ```text
//!                                      in that session nothing came since its first copy
//!   a request or ping gives up ──────────────────────────────────────────────────────────► the session is over
//!   a request is to leave, and an answer has been due for MAX_TRANSMIT_WAIT ─────────────► the session is over
//! ```
//! The second rule is for requests that are cancelled before they give up. Afterwards:
//!
//! | what | becomes of it |
//! |---|---|
//! | requests that have not left | leave in the next session |
//! | requests that have left | fail; the peer may have executed them, so they are not repeated |
//! | observations with a notification in this session | are registered again in the next one, soon |
//! | observations without one | fail, so that a server that never answers ends them |
//! | requests of the peer, answers, notifications, message IDs | are dropped (RFC 7252 s9.1.1, s9.1.2) |
//! | timer and window | stay: they describe the path |

use lowmesh_machine::DropReason;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::Kind;

use super::Endpoint;
use super::exchange::{Expects, Outgoing, Phase, Role};
use super::message_layer::MessageLayer;
use super::outgoing::OwnExchanges;
use crate::PeerAddress;
use crate::exchange::{ExchangeId, Output};
use crate::params::{REGISTER_AGAIN_MAX, REGISTER_AGAIN_MIN};
use crate::peer::Peer;

impl<P: PeerAddress> Endpoint<P> {
    /// The session with a peer is over. With `reopens` the next message opens another one.
    pub(super) fn end_session(&mut self, peer: P, reason: DropReason, reopens: bool, now: Instant) {
        let Self { layer, own, requests } = self;
        if reopens {
            own.leave_session(layer, peer, reason, now);
        } else {
            own.on_unreachable(layer, peer, now);
        }
        requests.forget_peer(layer, peer);
        layer.forget_session(peer);
        if reopens {
            own.start_waiting(layer, peer, now);
        }
    }
    /// Nothing comes from a peer any more: its session is over.
    pub(super) fn end_silent_session(&mut self, peer: P, now: Instant) {
        self.layer.outputs.push(Output::SessionOver { peer });
        self.end_session(peer, DropReason::GaveUp, true, now);
    }
    /// The application wants to send: not in a session in which an answer has been due for too long.
    pub(super) fn leave_silent_session(&mut self, peer: P, now: Instant) {
        let Some(known) = self.layer.peers.get(&peer) else { return };
        let wait = known.lifetimes.transmit_wait;
        if self.layer.config.opens_sessions
            && known.silent_since().is_some_and(|since| now.since(since) > wait)
        {
            self.end_silent_session(peer, now);
        }
    }
}

impl<P: PeerAddress> OwnExchanges<P> {
    /// Whether an exchange that gives up shows that the session with its peer is over.
    pub(super) fn shows_silence(&self, layer: &MessageLayer<P>, id: ExchangeId) -> bool {
        let Some(exchange) = self.all.get(&id) else { return false };
        let Phase::Sent(transmission) = exchange.phase else { return false };
        let since = layer.peers.get(&exchange.peer).and_then(Peer::silent_since);
        layer.config.opens_sessions && since.is_some_and(|since| since <= transmission.started)
    }

    /// The session is over and another one follows: see the table above.
    fn leave_session(
        &mut self,
        layer: &mut MessageLayer<P>,
        peer: P,
        reason: DropReason,
        now: Instant,
    ) {
        let Some(exchanges) = layer.peers.get(&peer).map(Peer::exchanges) else { return };
        for id in exchanges {
            if self.outlives_session(id) {
                self.enter_next_session(layer, id, now);
            } else if let Some(exchange) = self.close(layer, id, now) {
                layer.outputs.fail(exchange.handle, reason);
            }
        }
    }

    fn outlives_session(&self, id: ExchangeId) -> bool {
        self.all.get(&id).is_some_and(|exchange| match (exchange.role, exchange.phase) {
            (Role::Request | Role::Ping, Phase::Queued) => true,
            (Role::Request, _) => exchange.registered,
            // RFC 7252 s9.1.2: a response has to be sent in the session of its request.
            _ => false,
        })
    }

    fn enter_next_session(&mut self, layer: &mut MessageLayer<P>, id: ExchangeId, now: Instant) {
        if let Some(exchange) = self.all.get_mut(&id) {
            exchange.registered = false;
            if let Expects::Notifications(newest) = &mut exchange.expects {
                // RFC 7641 s3.4 orders the notifications of one registration. A server that has restarted counts from the start.
                *newest = None;
            }
        }
        if self.all.get(&id).is_none_or(|exchange| matches!(exchange.phase, Phase::Queued)) {
            return;
        }
        self.release(layer, id, now);
        let Some(exchange) = self.all.get_mut(&id) else { return };
        // One whose state is fresh waits as in RFC 7641 s3.3.1; one that was being registered again has waited.
        let wait = match exchange.phase {
            Phase::Observing { .. } => layer.rng.duration(REGISTER_AGAIN_MIN, REGISTER_AGAIN_MAX),
            _ => Duration::ZERO,
        };
        // The layer that verifies registers again by itself.
        let due = (!exchange.verified).then(|| now + wait);
        exchange.phase = Phase::Observing { due };
        if let Some(due) = due {
            layer.deadlines.insert((due, id), ());
        }
    }
}

/// Whether the peer has to answer a message at once, or in time.
pub(super) fn demands_answer<P>(exchange: &Outgoing<P>) -> bool {
    let awaits = matches!(exchange.expects, Expects::One | Expects::Notifications(_));
    exchange.kind == Kind::Confirmable || (exchange.role == Role::Request && awaits)
}
