//! The first copies of own exchanges: what the window of a peer permits leaves its queue.

use lowmesh_congestion::Permit;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{HEADER_LEN, Kind, Token};

use super::exchange::{Expects, Phase, Role, Transmission};
use super::message_layer::{Departure, MessageLayer};
use super::outgoing::OwnExchanges;
use super::session::demands_answer;
use crate::PeerAddress;
use crate::exchange::{ExchangeId, Output};
use crate::params::{ACK_RANDOM_FACTOR, PROBING_RATE_OCTETS_PER_SECOND};

impl<P: PeerAddress> OwnExchanges<P> {
    /// Sends from the queue of a peer what its window permits.
    pub(super) fn start_waiting(&mut self, layer: &mut MessageLayer<P>, to: P, now: Instant) {
        while let Some(peer) = layer.peers.get_mut(&to) {
            match peer.permits(now) {
                Permit::Now => {}
                Permit::At(then) => return layer.pace(to, then),
                Permit::Blocked => return,
            }
            let Some(id) = peer.queue.pop_front() else { return };
            self.queued -= 1;
            self.start(layer, id, now);
        }
    }

    /// Windows that pace are asked again.
    pub(super) fn on_paced(&mut self, layer: &mut MessageLayer<P>, now: Instant) {
        while let Some((due, to)) = layer.paced.first().copied()
            && due <= now
        {
            layer.paced.pop_first();
            if let Some(peer) = layer.peers.get_mut(&to) {
                peer.paced = None;
            }
            self.start_waiting(layer, to, now);
        }
    }

    /// Sends the first copy.
    pub(super) fn start(&mut self, layer: &mut MessageLayer<P>, id: ExchangeId, now: Instant) {
        let token = self.token_of(layer, id, now);
        let exchange = self.all.get_mut(&id).expect("the queue holds open exchanges");
        let peer = layer.peers.get_mut(&exchange.peer).expect("a peer with exchanges is kept");
        let message_id = peer.ids.issue(now);
        exchange.renumber(message_id);
        if let Some(token) = &token {
            exchange.bytes[HEADER_LEN..HEADER_LEN + token.len()].copy_from_slice(token.as_bytes());
            exchange.token = token.clone();
        }
        let initial = match (exchange.kind, exchange.expects) {
            (_, Expects::Group { wait, .. }) => wait,
            (Kind::Confirmable, _) => peer.timer.initial(now, &mut layer.rng),
            (_, Expects::Nothing) => probing_wait(exchange.bytes.len()),
            _ => {
                let wait = layer.config.non_timeout;
                let wait = wait.mul_f64(layer.rng.between(1.0, ACK_RANDOM_FACTOR));
                if peer.is_silent() { wait.max(probing_wait(exchange.bytes.len())) } else { wait }
            }
        };
        peer.sent(message_id, token, id, now);
        if demands_answer(exchange) {
            peer.demand_answer(now);
        }
        let due = now + initial;
        let transmission =
            Transmission { started: now, initial, rto: initial, retransmissions: 0, due };
        exchange.phase = Phase::Sent(transmission);
        layer.deadlines.insert((due, id), ());
        let (to, handle, purpose) = (exchange.peer, exchange.handle, exchange.role.purpose());
        let bytes = exchange.bytes.clone();
        layer.outputs.push(Output::Started { handle, rto: initial, at: now });
        layer.send(Departure { to, bytes, handle, copy: 0, purpose }, now);
    }

    /// The token that a request leaves with: a new one, or that which it has.
    fn token_of(
        &mut self,
        layer: &mut MessageLayer<P>,
        id: ExchangeId,
        now: Instant,
    ) -> Option<Token> {
        let exchange = self.all.get(&id).expect("the queue holds open exchanges");
        if exchange.role != Role::Request {
            return None;
        }
        let (peer, len) = (exchange.peer, exchange.token.len());
        // RFC 7641 s3.3.1: the token of a request that registers again is the same.
        if layer.peers.get(&peer).and_then(|peer| peer.by_token(&exchange.token)) == Some(id) {
            return Some(exchange.token.clone());
        }
        if let Expects::Group { .. } = exchange.expects {
            let token = self.groups.free_group_token(layer, len, now);
            self.groups.add(token.clone(), id);
            return Some(token);
        }
        Some(self.groups.free_token(layer, peer, len, now))
    }
}

/// RFC 7252 s4.7: to a peer that does not answer, no more than PROBING_RATE on average.
fn probing_wait(octets: usize) -> Duration {
    Duration::from_secs(octets as u64 / PROBING_RATE_OCTETS_PER_SECOND)
}
