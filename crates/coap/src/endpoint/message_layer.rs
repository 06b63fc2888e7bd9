//! The message layer (RFC 7252 s4): the peers, what has come from each, and the datagrams that leave.
//!
//! ```text
//!   Endpoint       a datagram has come: what it is, and whose it is
//!   Requests       requests of peers, until they are answered
//!   OwnExchanges   requests, separate responses and notifications of this end, until they are over
//!   MessageLayer   peers, duplicates, credit of unproven addresses, outputs, deadlines
//! ```
//! Each calls those below it, which are lent to it for the call.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use lowmesh_units::{Instant, Rng};
use lowmesh_wire::coap::{Kind, Message, MessageId, MessageView};

use super::admission::Admission;
use super::duplicates::{DuplicateState, Remembered, RememberedLimits};
use super::peers::Peers;
use super::shares::Shares;
use crate::event::{Discard, Purpose, ResponseTemplate};
use crate::exchange::{ExchangeId, ExchangeIds, Name, Output};
use crate::message_ids::MessageIds;
use crate::ordered::Ordered;
use crate::outputs::Outputs;
use crate::params::MESSAGE_IDS_SKIPPED;
use crate::peer::Peer;
use crate::refusal::Understanding;
use crate::seen::Reply;
use crate::{Config, ConfigError, CongestionControl, Lifetimes, PeerAddress};

/// What all exchanges of an endpoint stand on.
#[derive(Debug)]
pub(super) struct MessageLayer<P> {
    pub(super) config: Config,
    pub(super) rng: Rng,
    pub(super) peers: Peers<P>,
    pub(super) ids: ExchangeIds,
    pub(super) outputs: Outputs<P>,
    /// When an exchange wants to be looked at: one entry for each that waits for time.
    pub(super) deadlines: Ordered<(Instant, ExchangeId), ()>,
    /// When the window of a peer, which paces, is to be asked again: one entry for each that something
    /// waits for.
    pub(super) paced: BTreeSet<(Instant, P)>,
    /// What the peers of a source have of the places for requests.
    pub(super) shares: Shares<P>,
    pub(super) admission: Admission<P>,
    /// Messages remembered against duplicates.
    pub(super) remembered: Remembered<P>,
    /// Destinations with a congestion control of their own.
    chosen: BTreeMap<P, CongestionControl>,
    /// The widest of all destinations so far.
    lifetimes: Lifetimes,
    /// Message IDs of unconfirmed answers to peers without a place in the table, once there was one.
    stranger_ids: Option<MessageIds>,
}

/// A datagram on its way out.
pub(super) struct Departure<P> {
    pub(super) to: P,
    pub(super) bytes: Vec<u8>,
    pub(super) handle: Name,
    pub(super) copy: u8,
    pub(super) purpose: Purpose,
}

impl<P: PeerAddress> MessageLayer<P> {
    /// A layer that knows nobody yet.
    pub(super) fn new(config: Config, rng: Rng) -> Self {
        let (total, per_peer) = (config.dedup_total, config.dedup_per_peer);
        let limits = RememberedLimits { total, per_peer, peers: config.peers_max };
        let lifetimes = config.lifetimes(&config.congestion);
        Self {
            config,
            rng,
            peers: Peers::new(),
            ids: ExchangeIds::new(),
            outputs: Outputs::new(),
            deadlines: Ordered::new(),
            paced: BTreeSet::new(),
            shares: Shares::new(),
            admission: Admission::new(),
            remembered: Remembered::new(limits),
            chosen: BTreeMap::new(),
            lifetimes,
            stranger_ids: None,
        }
    }
    /// What it understands of the messages of peers.
    pub(super) fn understanding(&self) -> Understanding<'_> {
        let Config { extensions, proxy, reverse_proxy, peer_token_len_max, .. } = &self.config;
        let (proxy, reverse_proxy, token_len_max) = (*proxy, *reverse_proxy, *peer_token_len_max);
        Understanding { extensions, proxy, reverse_proxy, token_len_max }
    }

    /// Makes a peer known. A full table forgets an idle peer for a newcomer, and a source with its share one of its own;
    /// false if no peer is idle. The address may be forged, so the table never grows past its bound.
    pub(super) fn admit(&mut self, peer: P, now: Instant) -> bool {
        if let Some(known) = self.peers.get_mut(&peer) {
            known.last_used = now;
            known.returned = true;
            return true;
        }
        self.admit_newcomer(peer, 0, now)
    }
    /// The same for a peer that comes back, or is new, and has earned so many octets.
    pub(super) fn admit_with(&mut self, from: P, earned: usize, now: Instant) -> bool {
        if let Some(known) = self.peers.get_mut(&from) {
            if known.age(now) {
                self.admission.strangers.insert(from);
            }
            known.last_used = now;
            known.returned = true;
            known.credit.earn(earned, now);
            return true;
        }
        self.admit_newcomer(from, earned, now)
    }
    fn admit_newcomer(&mut self, peer: P, earned: usize, now: Instant) -> bool {
        let own_share = self.peers.of_source(peer.source()) >= self.config.peers_per_source;
        if own_share || self.peers.len() >= self.config.peers_max {
            let crowd = own_share.then(|| peer.source());
            let Some(oldest) = self.admission.idle_peer(&self.peers, crowd) else { return false };
            self.forget(oldest, now);
        }
        let chosen = self.chosen.get(&peer).unwrap_or(&self.config.congestion);
        let lifetimes = self.config.lifetimes(chosen);
        let mut newcomer = Peer::new(chosen, lifetimes, now, &mut self.rng);
        newcomer.credit.earn(earned, now);
        self.peers.insert(peer, newcomer);
        self.admission.strangers.insert(peer);
        true
    }
    /// Forgets an idle peer.
    fn forget(&mut self, peer: P, now: Instant) {
        self.remembered.forget_expired(&mut self.peers, peer, now);
        if let Some(gone) = self.peers.remove(&peer) {
            if let Some(then) = gone.paced {
                self.paced.remove(&(then, peer));
            }
            self.remembered.forget_peer(peer, gone.seen.len());
        }
        self.admission.forgotten(peer);
    }

    /// RFC 7252 s9.1.1: message IDs of an ended session do not apply to the next session.
    pub(super) fn forget_session(&mut self, peer: P) {
        self.remembered.forget_session(&mut self.peers, peer);
        if let Some(known) = self.peers.get_mut(&peer) {
            known.hear();
        }
    }
    /// Something came from a peer in its session, so that lives.
    pub(super) fn hear(&mut self, from: P) {
        if self.config.opens_sessions
            && let Some(known) = self.peers.get_mut(&from)
        {
            known.hear();
        }
    }

    /// Gives a destination a congestion control of its own, or with `None` that of the endpoint again.
    pub(super) fn choose_congestion_control(
        &mut self,
        peer: P,
        chosen: Option<CongestionControl>,
        now: Instant,
    ) -> Result<(), ConfigError> {
        match chosen {
            Some(chosen) => {
                chosen.check()?;
                let known = self.chosen.contains_key(&peer);
                if !known && self.chosen.len() >= self.config.peers_max {
                    return Err(ConfigError::Choices(self.chosen.len()));
                }
                self.chosen.insert(peer, chosen);
            }
            None => drop(self.chosen.remove(&peer)),
        }
        let chosen = self.chosen.get(&peer).unwrap_or(&self.config.congestion);
        let lifetimes = self.config.lifetimes(chosen);
        if let Some(known) = self.peers.get_mut(&peer) {
            known.replace_sender(chosen, lifetimes, now);
        }
        self.lifetimes = self.lifetimes.widest(lifetimes);
        if let Some(ids) = &mut self.stranger_ids {
            ids.widen(self.lifetimes.exchange);
        }
        Ok(())
    }
    /// The window of a peer is to be asked again then, if something waits for it.
    pub(super) fn pace(&mut self, to: P, then: Instant) {
        let Some(peer) = self.peers.get_mut(&to) else { return };
        if peer.queue.is_empty() {
            return;
        }
        if let Some(before) = peer.paced.replace(then) {
            self.paced.remove(&(before, to));
        }
        self.paced.insert((then, to));
    }
    /// The lifetimes of messages to and from a destination (RFC 7252 s4.8.2).
    pub(super) fn lifetimes(&self, peer: P) -> Lifetimes {
        self.peers.get(&peer).map_or(self.lifetimes, |known| known.lifetimes)
    }
    /// The widest lifetimes of all destinations so far.
    pub(super) const fn widest_lifetimes(&self) -> Lifetimes {
        self.lifetimes
    }

    /// Whether a peer has shown that it receives at its address.
    pub(super) fn is_proven(&self, peer: P) -> bool {
        self.all_are_proven() || self.peers.get(&peer).is_some_and(|known| known.proven)
    }
    /// Whether every address counts as proven: the path has proven it, or nothing is bounded.
    pub(super) const fn all_are_proven(&self) -> bool {
        self.config.proven || self.config.amplification_max.is_none()
    }
    /// A peer has shown that it receives at its address, as with an Echo value. Returns the exchanges with it if that is
    /// new.
    pub(super) fn prove(&mut self, peer: P, now: Instant) -> Vec<ExchangeId> {
        if self.config.amplification_max.is_none() || !self.admit(peer, now) {
            return Vec::new();
        }
        match self.peers.get_mut(&peer) {
            Some(known) if known.proven => {
                known.proven_at = now;
                Vec::new()
            }
            Some(known) => {
                (known.proven, known.proven_at) = (true, now);
                self.admission.strangers.remove(&peer);
                if !self.config.proven {
                    self.shares.prove(peer, known.incoming);
                }
                known.exchanges()
            }
            None => Vec::new(),
        }
    }
    /// Whether the ACK of a CON proves the address of a peer. It has read the message ID, or has guessed it: so after a
    /// wrong one an ACK proves nothing. Then the next message has an ID that does not follow from the one that may be
    /// known now, and its ACK proves the address.
    ///
    /// ```text
    ///   wrong ACK while a CON waits   one more
    ///   right ACK, none wrong before  the address is proven
    ///   right ACK after a wrong one   no proof, and a random part of the message IDs is skipped
    /// ```
    pub(super) fn trusts_ack(&mut self, peer: P, now: Instant) -> bool {
        let all_are_proven = self.all_are_proven();
        let Some(known) = self.peers.get_mut(&peer) else { return false };
        if known.strays == 0 || all_are_proven {
            return true;
        }
        let skipped = 1 + self.rng.next_u32() % MESSAGE_IDS_SKIPPED;
        if known.ids.skip(skipped, now) {
            known.strays = 0;
        }
        false
    }
    /// An ACK that nothing here waits for. Only while something else waits for one may it be a guess.
    pub(super) fn discard_stray(&mut self, from: P) {
        if let Some(known) = self.peers.get_mut(&from).filter(|known| known.awaits_ack()) {
            known.strays = known.strays.saturating_add(1);
        }
        self.outputs.discard(from, Discard::Unmatched);
    }

    /// Octets of a message that may leave to a peer now: no bound for proven addresses.
    pub(super) fn credit(&self, peer: P, now: Instant) -> usize {
        if self.all_are_proven() {
            return usize::MAX;
        }
        self.peers.get(&peer).map_or(0, |known| known.room(peer.overhead(), now))
    }
    /// A datagram of `len` octets came from a peer, and is no request. An unknown peer stays unknown.
    pub(super) fn earn(&mut self, from: P, len: usize, now: Instant) {
        let worth = self.worth(from, len);
        let Some(known) = self.peers.get_mut(&from) else { return };
        if known.age(now) {
            self.admission.strangers.insert(from);
        }
        if !known.proven {
            known.credit.earn(worth, now);
        }
    }
    /// Takes what is left of an unproven peer's credit, octets with headers, to be granted later.
    pub(super) fn set_aside(&mut self, peer: P, now: Instant) -> usize {
        let Some(known) = self.peers.get_mut(&peer).filter(|known| !known.proven) else { return 0 };
        let left = known.credit.balance(now);
        known.credit.spend(left, now);
        left
    }
    /// What a datagram of `len` octets earns its sender.
    pub(super) fn worth(&self, from: P, len: usize) -> usize {
        match self.config.amplification_max {
            Some(factor) => factor * (len + from.overhead()),
            None => 0,
        }
    }
    /// A request of an admitted peer, or the separate response to it, takes a place.
    pub(super) fn take_place(&mut self, peer: P) {
        let all_are_proven = self.all_are_proven();
        let Some(known) = self.peers.get_mut(&peer) else { return };
        known.incoming += 1;
        self.shares.take(peer, !(all_are_proven || known.proven));
    }
    /// The place is free again.
    pub(super) fn leave_place(&mut self, peer: P) {
        let all_are_proven = self.all_are_proven();
        let Some(known) = self.peers.get_mut(&peer) else { return };
        known.incoming -= 1;
        self.shares.leave(peer, !(all_are_proven || known.proven));
    }

    /// RFC 7252 s4.5: a duplicate CON SHOULD be acknowledged with the same message and processed
    /// only once; a duplicate NON is ignored. True if the message is one.
    pub(super) fn is_duplicate(&mut self, from: P, view: &MessageView<'_>, now: Instant) -> bool {
        let state = self.remembered.sight(&mut self.peers, from, view.message_id(), now);
        self.answer_if_duplicate(from, view, state, now)
    }
    /// The same for a request of an admitted peer; one that is new is remembered.
    pub(super) fn is_duplicate_request(
        &mut self,
        from: P,
        view: &MessageView<'_>,
        now: Instant,
    ) -> bool {
        let state = self.remembered.sight_request(&mut self.peers, from, view, now);
        self.answer_if_duplicate(from, view, state, now)
    }
    fn answer_if_duplicate(
        &mut self,
        to: P,
        view: &MessageView<'_>,
        state: DuplicateState,
        now: Instant,
    ) -> bool {
        let DuplicateState::Again(reply) = state else { return false };
        if let Some(Reply { bytes, handle, copies: copy }) = reply
            && view.kind() == Kind::Confirmable
        {
            let purpose = if handle == Name::NONE { Purpose::Empty } else { Purpose::Response };
            self.send(Departure { to, bytes, handle, copy, purpose }, now);
        }
        self.outputs.discard(to, Discard::Duplicate);
        true
    }
    /// Remembers a message of a known peer.
    pub(super) fn remember(&mut self, from: P, view: &MessageView<'_>, now: Instant) {
        self.remembered.remember(&mut self.peers, from, view, now);
    }

    /// Sends a datagram. Without credit for its unproven address (RFC 9000 s8.1, RFC 9175 s2.4) it is withheld, which
    /// looks like a loss in the network.
    pub(super) fn send(&mut self, departure: Departure<P>, now: Instant) {
        let Departure { to, bytes, handle, copy, purpose } = departure;
        let bounded = !self.all_are_proven();
        // This end chooses whom it asks; an empty message is never longer than what it answers.
        if bounded && purpose != Purpose::Request {
            let known = self.peers.get_mut(&to);
            let room = known.as_ref().map_or(0, |known| known.room(to.overhead(), now));
            if purpose == Purpose::Response && bytes.len() > room {
                self.outputs.counters.withheld += 1;
                return;
            }
            if let Some(known) = known.filter(|known| !known.proven) {
                known.credit.spend(bytes.len() + to.overhead(), now);
            }
        }
        self.outputs.push(Output::Send { to, bytes, handle, copy, purpose });
    }
    /// Sends a bare ACK or RST.
    pub(super) fn send_empty(&mut self, to: P, kind: Kind, message_id: MessageId, now: Instant) {
        let bytes = Message::empty(kind, message_id).to_vec();
        let (handle, purpose) = (Name::NONE, Purpose::Empty);
        self.send(Departure { to, bytes, handle, copy: 0, purpose }, now);
    }
    /// Sends an empty ACK and keeps it for duplicates.
    pub(super) fn acknowledge(&mut self, to: P, message_id: MessageId, now: Instant) {
        if let Some(peer) = self.peers.get_mut(&to) {
            let bytes = Message::empty(Kind::Acknowledgement, message_id).to_vec();
            peer.seen.keep_reply(message_id, bytes, Name::NONE);
        }
        self.send_empty(to, Kind::Acknowledgement, message_id, now);
    }
    /// RFC 7252 s4.2: RST for a CON, silence for anything else.
    pub(super) fn reject(&mut self, from: P, kind: Kind, message_id: MessageId, now: Instant) {
        if kind == Kind::Confirmable {
            self.send_empty(from, Kind::Reset, message_id, now);
        }
    }
    /// RFC 7252 s5.9.3.4: 5.03 to a peer that finds no place in the table, after a request of `len` octets.
    /// No more leaves than that request alone has earned.
    pub(super) fn refuse_stranger(
        &mut self,
        to: P,
        view: &MessageView<'_>,
        len: usize,
        now: Instant,
    ) {
        let (kind, message_id) = if view.kind() == Kind::Confirmable {
            (Kind::Acknowledgement, view.message_id())
        } else {
            let (rng, lifetime) = (&mut self.rng, self.lifetimes.exchange);
            let first = || MessageIds::new(rng.next_u32() as u16, lifetime);
            let ids = self.stranger_ids.get_or_insert_with(first);
            // RFC 7252 s4.4: an ID MUST NOT come again within EXCHANGE_LIFETIME; these are shared by all
            // peers without a place.
            if !ids.reserve(now) {
                return;
            }
            (Kind::NonConfirmable, ids.issue(now))
        };
        let bytes = ResponseTemplate::busy().into_message(kind, message_id, view.token()).to_vec();
        let bounded = !self.all_are_proven();
        if bounded && bytes.len() + to.overhead() > self.worth(to, len) {
            self.outputs.counters.withheld += 1;
            return;
        }
        let (handle, copy, purpose) = (Name::NONE, 0, Purpose::Response);
        self.outputs.push(Output::Send { to, bytes, handle, copy, purpose });
    }
}
