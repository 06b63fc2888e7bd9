//! Own exchanges: requests, pings, separate responses and notifications, from the queue to their deadlines (RFC 7252
//! s4.2). Their first copies are in `window`, their ends in `ending`; what an application may ask for is in `request`,
//! `group` and `notification`.

use alloc::collections::BTreeMap;

use lowmesh_congestion::{Attempt, Permit};
use lowmesh_machine::{DropReason, Rejected};
use lowmesh_shares::{Bound, Newcomer, Table};
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Kind, Message};

use super::exchange::{Expects, Outgoing, Phase, Role, Transmission};
use super::group_members::GroupMembers;
use super::group_tokens::GroupTokens;
use super::message_layer::{Departure, MessageLayer};
use super::unproven::{Load, Room, Unproven};
use crate::exchange::{ExchangeId, Name};
use crate::params::{
    INCOMING_SEPARATE_DIVISOR, REGISTER_AGAIN_MAX, SEPARATE_GRACE, UNPROVEN_GRACE,
};
use crate::{Config, PeerAddress};

/// What the caller of [`OwnExchanges::enqueue`] wants to get through.
pub(super) struct Wanted<P> {
    pub(super) peer: P,
    pub(super) message: Message,
    pub(super) role: Role,
    pub(super) expects: Expects,
    /// What comes counts when the layer above has accepted it.
    pub(super) verified: bool,
    /// It registers an observation again that has had a notification.
    pub(super) registered: bool,
    pub(super) handle: Name,
    /// A request that leaves with the token that it has.
    pub(super) holds_token: bool,
}

/// The message IDs of a peer are all in use.
pub(super) const NO_MESSAGE_ID: Rejected = Rejected::Full {
    what: "message",
    why: "all 65536 message IDs to this peer are in use for EXCHANGE_LIFETIME (RFC 7252 s4.4; 247 s by default): send more slowly",
};
/// The table of peers is full of busy ones.
pub(super) const NO_ROOM: Rejected = Rejected::Full {
    what: "response",
    why: "no room for its peer: raise peers_max or peers_per_source",
};
/// A message that could not pass every path.
pub(super) const TOO_LONG: Rejected = Rejected::TooLong {
    what: "message",
    why: "longer than message_len_max (RFC 7252 s4.6): send its body block-wise",
};

/// A peer, as shares count it.
fn newcomer<P: PeerAddress>(layer: &MessageLayer<P>, peer: P) -> Newcomer {
    Newcomer { source: peer.network(), proven: layer.is_proven(peer) }
}

/// Separate responses have some of the places of requests, so that others are left for requests.
fn separate_responses(config: &Config) -> Bound {
    let total = (config.incoming_max / INCOMING_SEPARATE_DIVISOR).max(1);
    Bound { total, share: config.incoming_per_source.min(total), grace: Some(UNPROVEN_GRACE) }
}

/// The exchanges of this end that are not over.
#[derive(Debug)]
pub(super) struct OwnExchanges<P> {
    pub(super) all: BTreeMap<ExchangeId, Outgoing<P>>,
    /// Requests to groups, by token: their answers come from other addresses than they went to.
    pub(super) groups: GroupTokens,
    /// The members that have answered them.
    pub(super) members: GroupMembers<P>,
    /// Exchanges that wait for the window.
    pub(super) queued: usize,
    /// Separate responses that are not over: they count as the requests that they answer.
    pub(super) separate: Table<ExchangeId>,
    pub(super) unproven: Unproven,
}

impl<P: PeerAddress> OwnExchanges<P> {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            all: BTreeMap::new(),
            groups: GroupTokens::new(),
            members: GroupMembers::new(),
            queued: 0,
            separate: Table::new(separate_responses(config)),
            unproven: Unproven::new(),
        }
    }
    /// Exchanges that are not over: waiting, on their way, or acknowledged. Separate responses are not counted.
    pub(super) fn open(&self) -> usize {
        self.all.len() - self.separate.len()
    }
    /// Exchanges that wait for the window.
    pub(super) const fn queued(&self) -> usize {
        self.queued
    }
    /// Separate responses that are not over.
    pub(super) fn separate(&self) -> usize {
        self.separate.len()
    }
    /// Whether there is room for one more notification to a proven address.
    pub(super) fn has_room(&self, layer: &MessageLayer<P>) -> bool {
        self.unproven.has_room(self.load(layer))
    }
    /// When there is room for one more notification to a peer: `None` means now.
    pub(super) fn room_at(
        &self,
        layer: &MessageLayer<P>,
        peer: P,
        now: Instant,
    ) -> Option<Instant> {
        if layer.is_proven(peer) {
            return None;
        }
        self.unproven.room_at(self.load(layer), now)
    }

    fn load(&self, layer: &MessageLayer<P>) -> Load {
        Load { open: self.open(), max: layer.config.open_max }
    }

    /// A peer has shown that it receives at its address.
    pub(super) fn prove(&mut self, layer: &mut MessageLayer<P>, peer: P, now: Instant) {
        for id in layer.prove(peer, now) {
            self.unproven.remove(id);
            self.separate.prove(&id);
            self.separate.yield_at(&id, now + SEPARATE_GRACE);
        }
    }

    /// Takes a message in: it starts now, waits for the window, or fails for want of room.
    pub(super) fn enqueue(
        &mut self,
        layer: &mut MessageLayer<P>,
        wanted: Wanted<P>,
        now: Instant,
    ) -> Result<(), Rejected> {
        let Wanted { peer: to, message, role, expects, verified, registered, handle, holds_token } =
            wanted;
        if message.encoded_len() > layer.config.message_len_max {
            return Err(TOO_LONG);
        }
        if !self.takes(layer, to, role, now) {
            layer.outputs.fail(handle, DropReason::QueueFull);
            return Ok(());
        }
        let peer = layer.peers.get_mut(&to).expect("just admitted");
        if !peer.ids.reserve(now) {
            return Err(NO_MESSAGE_ID);
        }
        let bytes = message.to_vec();
        let id = layer.ids.next();
        let (token, kind) = (message.token, message.kind);
        let held = holds_token.then(|| token.clone());
        if let (Some(token), Expects::Group { .. }) = (&held, expects) {
            self.groups.add(token.clone(), id);
        }
        let phase = Phase::Queued;
        let peer = to;
        let outgoing = Outgoing {
            peer,
            handle,
            token,
            kind,
            role,
            expects,
            verified,
            registered,
            bytes,
            phase,
        };
        self.all.insert(id, outgoing);
        let peer = layer.peers.get_mut(&to).expect("just admitted");
        peer.queue.push_back(id);
        if let Some(token) = held {
            peer.hold_token(token, id);
        }
        self.queued += 1;
        match role {
            Role::Separate => self.take_place(layer, id, to, now),
            Role::Notification if !layer.is_proven(to) => self.unproven.add(id, now),
            Role::Notification | Role::Request | Role::Ping => {}
        }
        self.start_waiting(layer, to, now);
        Ok(())
    }

    /// Whether there is room for a message. A separate response has the place of its request, so an
    /// acknowledged request never loses its answer; notifications are as many as observers.
    fn takes(&mut self, layer: &mut MessageLayer<P>, to: P, role: Role, now: Instant) -> bool {
        let room = match role {
            Role::Separate => true,
            Role::Notification => self.make_room(layer, to, now),
            Role::Request | Role::Ping => self.open() < layer.config.open_max,
        };
        if !room || !layer.admit(to, now) {
            return false;
        }
        let peer = layer.peers.get(&to).expect("just admitted");
        let starts = peer.queue.is_empty() && peer.permits(now) == Permit::Now;
        let own = matches!(role, Role::Request | Role::Ping);
        starts || !own || peer.queue.len() < layer.config.queue_max
    }

    /// Makes room for a notification; false if there is none.
    fn make_room(&mut self, layer: &mut MessageLayer<P>, to: P, now: Instant) -> bool {
        match self.unproven.room(self.load(layer), layer.is_proven(to), now) {
            Room::Free => true,
            Room::Of(oldest) => {
                self.abandon(layer, oldest, DropReason::GaveUp, now);
                true
            }
            Room::Missing => false,
        }
    }

    /// A separate response has the place of its request.
    fn take_place(&mut self, layer: &mut MessageLayer<P>, id: ExchangeId, to: P, now: Instant) {
        layer.take_place(to);
        let newcomer = newcomer(layer, to);
        self.separate.admit(id, newcomer, now);
        if newcomer.proven {
            self.separate.yield_at(&id, now + SEPARATE_GRACE);
        }
    }
    /// Makes room for one more separate response; false if there is none. Of one peer the oldest gives way first, so that the
    /// next one leaves.
    pub(super) fn make_room_for_response(
        &mut self,
        layer: &mut MessageLayer<P>,
        to: P,
        now: Instant,
    ) -> bool {
        match self.separate.room(newcomer(layer, to), now) {
            Ok(None) => true,
            Ok(Some(displaced)) => {
                self.abandon(layer, displaced, DropReason::GaveUp, now);
                true
            }
            Err(_) => false,
        }
    }
    /// Makes room for one more request of a peer where all places are taken, or those of its source if `own`: a separate
    /// response gives way whose acknowledgement has had time to come. False if none does.
    pub(super) fn make_room_for_request(
        &mut self,
        layer: &mut MessageLayer<P>,
        from: P,
        own: bool,
        now: Instant,
    ) -> bool {
        let displaced = self.separate.in_the_way(newcomer(layer, from), own, now);
        let Some(displaced) = displaced else { return false };
        self.abandon(layer, displaced, DropReason::GaveUp, now);
        true
    }

    /// The time of an own exchange has come. Returns its peer if the session with that is over.
    pub(super) fn on_due(
        &mut self,
        layer: &mut MessageLayer<P>,
        id: ExchangeId,
        now: Instant,
    ) -> Option<P> {
        let exchange = self.all.get_mut(&id)?;
        let span_limit = layer.peers.get(&exchange.peer).map(|peer| peer.lifetimes.span_limit);
        let span_limit = span_limit.unwrap_or(layer.widest_lifetimes().span_limit);
        let repeats = exchange.kind == Kind::Confirmable;
        match &mut exchange.phase {
            // RFC 7252 s4.2: while retransmissions < MAX_RETRANSMIT the message is sent again.
            Phase::Sent(transmission)
                if repeats
                    && transmission.retransmissions < layer.config.max_retransmit
                    && now.since(transmission.started) <= span_limit =>
            {
                let peer = layer.peers.get_mut(&exchange.peer).expect("kept while open");
                peer.resent(transmission.copy_left_at(), now);
                let number = transmission.retransmissions + 1;
                let Transmission { initial, rto: previous, .. } = *transmission;
                let attempt = Attempt { initial, previous, number };
                transmission.rto = peer.timer.backoff(attempt, &mut layer.rng);
                transmission.retransmissions = number;
                transmission.due = now + transmission.rto;
                layer.deadlines.insert((transmission.due, id), ());
                let copy = Departure {
                    to: exchange.peer,
                    bytes: exchange.bytes.clone(),
                    handle: exchange.handle,
                    copy: number,
                    purpose: exchange.role.purpose(),
                };
                layer.send(copy, now);
            }
            Phase::Observing { .. } => self.register_again(layer, id, now),
            Phase::Sent(_) | Phase::Acknowledged(_) => {
                if let (Phase::Sent(transmission), true) = (exchange.phase, repeats) {
                    let peer = layer.peers.get_mut(&exchange.peer).expect("kept while open");
                    peer.expired(id, transmission.copy_left_at(), now);
                    peer.timer.on_give_up(now);
                }
                return self.expire(layer, id, now);
            }
            Phase::Queued => {}
        }
        None
    }

    /// Nothing came in time: a failure, unless nothing had to come. Returns the peer if the session with that is over,
    /// which ends the exchange too.
    fn expire(&mut self, layer: &mut MessageLayer<P>, id: ExchangeId, now: Instant) -> Option<P> {
        let exchange = self.all.get(&id)?;
        let acknowledged = matches!(exchange.phase, Phase::Acknowledged(_));
        let over = match exchange.expects {
            Expects::One | Expects::Notifications(_) | Expects::Group { .. } => false,
            Expects::Perhaps | Expects::Nothing => {
                acknowledged || exchange.kind == Kind::NonConfirmable
            }
        };
        if exchange.kind == Kind::NonConfirmable && !over {
            layer.peers.get_mut(&exchange.peer).expect("kept while open").miss();
        }
        if over {
            self.finish(layer, id, now);
        } else if self.shows_silence(layer, id) {
            return Some(exchange.peer);
        } else {
            self.abandon(layer, id, DropReason::GaveUp, now);
        }
        None
    }

    /// The newest notification is no longer fresh: the request is sent once more, with its token.
    fn register_again(&mut self, layer: &mut MessageLayer<P>, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.all.get_mut(&id) else { return };
        let peer = layer.peers.get_mut(&exchange.peer).expect("a peer with exchanges is kept");
        let (to, due) = (exchange.peer, now + REGISTER_AGAIN_MAX);
        if !peer.ids.reserve(now) {
            // All message IDs are in use; some will be free later.
            exchange.phase = Phase::Observing { due: Some(due) };
            layer.deadlines.insert((due, id), ());
            return;
        }
        exchange.phase = Phase::Queued;
        peer.queue.push_back(id);
        self.queued += 1;
        self.start_waiting(layer, to, now);
    }
}
