//! The ends of own exchanges: an acknowledgement, a response, a failure, or a cancellation. Each gives back what the
//! exchange held.

use lowmesh_machine::DropReason;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Kind, Message};

use super::exchange::{Expects, Outgoing, Phase, Role, Transmission};
use super::group_tokens::reusable_at;
use super::message_layer::MessageLayer;
use super::outgoing::OwnExchanges;
use crate::PeerAddress;
use crate::exchange::{ExchangeId, Name, Output};
use crate::peer::Peer;

impl<P: PeerAddress> OwnExchanges<P> {
    /// An ACK came for an exchange: its copies stop, the timer learns, the window opens.
    ///
    /// Returns the handle, the time since the first copy and the number of retransmissions.
    pub(super) fn acknowledge(
        &mut self,
        layer: &mut MessageLayer<P>,
        id: ExchangeId,
        now: Instant,
    ) -> Option<(Name, Duration, u8)> {
        let exchange = self.all.get_mut(&id)?;
        let Phase::Sent(transmission) = exchange.phase else { return None };
        let peer = layer.peers.get_mut(&exchange.peer)?;
        let rtt = now.since(transmission.started);
        peer.answer();
        if exchange.kind == Kind::Confirmable {
            peer.timer.on_sample(rtt, transmission.retransmissions, now);
            let sample = (transmission.retransmissions == 0).then_some(rtt);
            peer.acknowledged(id, transmission.copy_left_at(), sample, now);
        } else {
            peer.discarded(id, now);
        }
        layer.deadlines.remove(&(transmission.due, id));
        let due = now + layer.config.response_timeout.unwrap_or(peer.lifetimes.exchange);
        exchange.phase = Phase::Acknowledged(Transmission { due, ..transmission });
        layer.deadlines.insert((due, id), ());
        Some((exchange.handle, rtt, transmission.retransmissions))
    }

    /// Ends a request with its response, and an observation with its last.
    pub(super) fn complete(
        &mut self,
        layer: &mut MessageLayer<P>,
        from: P,
        id: ExchangeId,
        message: Message,
        now: Instant,
    ) {
        let Some(exchange) = self.close(layer, id, now) else { return };
        let (rtt, retransmissions) = exchange.phase.effort(now);
        let handle = exchange.handle;
        layer.outputs.push(Output::Response { handle, from, message, rtt, retransmissions });
        self.start_waiting(layer, exchange.peer, now);
    }

    /// Lets the layer above verify a response, which changes nothing until that accepts it.
    pub(super) fn submit(
        &mut self,
        layer: &mut MessageLayer<P>,
        from: P,
        id: ExchangeId,
        message: Message,
        now: Instant,
    ) {
        let Some(exchange) = self.all.get(&id) else { return };
        let (rtt, retransmissions) = exchange.phase.effort(now);
        let handle = exchange.handle;
        layer.outputs.push(Output::Response { handle, from, message, rtt, retransmissions });
        // An ACK may have made room for others.
        self.start_waiting(layer, from, now);
    }

    /// The layer above has verified a response.
    pub(super) fn accept(
        &mut self,
        layer: &mut MessageLayer<P>,
        handle: Name,
        observes: bool,
        now: Instant,
    ) {
        let named = |(_, one): &(&ExchangeId, &Outgoing<P>)| one.verified && one.handle == handle;
        let Some((id, peer)) = self.all.iter().find(named).map(|(id, one)| (*id, one.peer)) else {
            return;
        };
        if observes {
            self.release(layer, id, now);
            let exchange = self.all.get_mut(&id).expect("just found");
            exchange.phase = Phase::Observing { due: None };
            exchange.registered = true;
        } else {
            self.close(layer, id, now);
        }
        self.start_waiting(layer, peer, now);
    }

    /// Ends a request that no response is missing to.
    pub(super) fn finish(&mut self, layer: &mut MessageLayer<P>, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.close(layer, id, now) else { return };
        layer.outputs.push(Output::Over { handle: exchange.handle });
        self.start_waiting(layer, exchange.peer, now);
    }

    /// Ends an exchange without success.
    pub(super) fn abandon(
        &mut self,
        layer: &mut MessageLayer<P>,
        id: ExchangeId,
        reason: DropReason,
        now: Instant,
    ) {
        let Some(exchange) = self.close(layer, id, now) else { return };
        layer.outputs.fail(exchange.handle, reason);
        self.start_waiting(layer, exchange.peer, now);
    }

    /// The application is no longer interested. What the peer still sends about it is answered as
    /// something unknown, which ends an observation (RFC 7641 s3.6).
    pub(super) fn cancel(&mut self, layer: &mut MessageLayer<P>, handle: Name, now: Instant) {
        if handle == Name::NONE {
            return;
        }
        let named = |(_, one): &(&ExchangeId, &Outgoing<P>)| one.handle == handle;
        let Some(id) = self.all.iter().find(named).map(|(id, _)| *id) else { return };
        if let Some(exchange) = self.close(layer, id, now) {
            self.start_waiting(layer, exchange.peer, now);
        }
    }

    /// RFC 7252 s4.2: a sender MAY give up when the network says that the peer is unreachable.
    pub(super) fn on_unreachable(&mut self, layer: &mut MessageLayer<P>, peer: P, now: Instant) {
        let Some(exchanges) = layer.peers.get(&peer).map(Peer::exchanges) else { return };
        // Waiting ones must not start in between, so all are closed before the window is looked at.
        for id in exchanges {
            if let Some(exchange) = self.close(layer, id, now) {
                layer.outputs.fail(exchange.handle, DropReason::NoRoute);
            }
        }
    }

    /// Takes an exchange out of every table.
    pub(super) fn close(
        &mut self,
        layer: &mut MessageLayer<P>,
        id: ExchangeId,
        now: Instant,
    ) -> Option<Outgoing<P>> {
        self.release(layer, id, now);
        let exchange = self.all.remove(&id)?;
        self.unproven.remove(id);
        let peer = layer.peers.get_mut(&exchange.peer).expect("a peer with exchanges is kept");
        peer.forget(id);
        if exchange.role == Role::Separate {
            layer.leave_place(exchange.peer);
            self.separate.leave(&id);
        }
        if let Expects::Group { .. } = exchange.expects {
            self.groups.retire(id, reusable_at(layer, exchange.peer, now));
            self.members.forget(id);
        }
        Some(exchange)
    }

    /// Gives back what the phase of an exchange holds: a message ID that is set aside, its place in
    /// the window, its deadline.
    pub(super) fn release(&mut self, layer: &mut MessageLayer<P>, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.all.get(&id) else { return };
        let peer = layer.peers.get_mut(&exchange.peer).expect("a peer with exchanges is kept");
        peer.last_used = now;
        match exchange.phase {
            Phase::Queued => {
                peer.ids.release();
                self.queued -= 1;
            }
            Phase::Sent(Transmission { due, .. })
            | Phase::Acknowledged(Transmission { due, .. })
            | Phase::Observing { due: Some(due) } => {
                layer.deadlines.remove(&(due, id));
            }
            Phase::Observing { due: None } => {}
        }
        peer.settle(id, now);
    }
}
