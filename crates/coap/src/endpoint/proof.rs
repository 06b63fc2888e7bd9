//! What leaves to addresses that nothing has proven yet: within their credit (RFC 9000 s8.1, RFC 9175
//! s2.4).

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Kind, MessageView};

use super::Endpoint;
use crate::PeerAddress;
use crate::event::{Discard, ExchangeId, Output, Purpose, ResponseTemplate};
use crate::exchange::Role;
use crate::message_ids::MessageIds;
use crate::params::{
    DATAGRAM_OVERHEAD, MESSAGE_IDS_SKIPPED, OPEN_UNPROVEN_DIVISOR, STRAYS_MAX, UNPROVEN_GRACE,
};

/// A datagram on its way out.
pub(super) struct Departure<P> {
    pub(super) to: P,
    pub(super) bytes: alloc::vec::Vec<u8>,
    pub(super) handle: Handle,
    pub(super) copy: u8,
    pub(super) purpose: Purpose,
}

impl<P: PeerAddress> Endpoint<P> {
    /// Whether a peer has shown that it receives at its address.
    pub fn is_proven(&self, peer: P) -> bool {
        self.all_are_proven() || self.peers.get(&peer).is_some_and(|known| known.proven)
    }
    /// Whether every address counts as proven: the path has proven it, or nothing is bounded.
    pub(super) const fn all_are_proven(&self) -> bool {
        self.config.proven || self.config.amplification_max.is_none()
    }
    /// Octets of a message that may leave to a peer now: no bound for proven addresses.
    pub fn credit(&self, peer: P, now: Instant) -> usize {
        if self.all_are_proven() {
            return usize::MAX;
        }
        self.peers.get(&peer).map_or(0, |known| known.room(now))
    }
    /// A peer has shown that it receives at its address, as with an Echo value.
    pub fn prove(&mut self, peer: P, now: Instant) {
        if self.config.amplification_max.is_none() || !self.admit(peer, now) {
            return;
        }
        if let Some(known) = self.peers.get_mut(&peer)
            && !known.proven
        {
            known.proven = true;
            self.strangers.remove(&peer);
            if let Some(share) = self.shares.get_mut(&peer.source())
                && !self.config.proven
            {
                share.unproven -= known.incoming;
            }
            for id in known.exchanges() {
                self.unproven.remove(&id);
                self.unproven_answers.remove(&id);
            }
        }
    }
    /// A peer has acknowledged a CON. It has read the message ID, or has guessed it: so after many wrong ones an ACK
    /// proves nothing. Then the next message has an ID that does not follow from the one that may be known now, and its
    /// ACK proves the address.
    ///
    /// ```text
    ///   wrong ACK while a CON waits   one more
    ///   right ACK, at most 8 wrong    the address is proven
    ///   right ACK, more than 8 wrong  none, and a random part of the message IDs is skipped
    /// ```
    pub(super) fn prove_by_message_id(&mut self, peer: P, now: Instant) {
        let all_are_proven = self.all_are_proven();
        let Some(known) = self.peers.get_mut(&peer) else { return };
        if known.strays <= STRAYS_MAX || known.proven || all_are_proven {
            return self.prove(peer, now);
        }
        let skipped = 1 + self.rng.next_u32() % MESSAGE_IDS_SKIPPED;
        if known.ids.skip(skipped, now) {
            known.strays = 0;
        }
    }
    /// An ACK that nothing here waits for. Only while something else waits for one may it be a guess.
    pub(super) fn discard_stray(&mut self, from: P) {
        if let Some(known) = self.peers.get_mut(&from).filter(|known| known.awaits_ack()) {
            known.strays = known.strays.saturating_add(1);
        }
        self.discard(from, Discard::Unmatched);
    }
    /// Gives an unproven peer octets of credit that it has earned before.
    pub fn grant(&mut self, peer: P, octets: usize, now: Instant) {
        self.admit_with(peer, octets, now);
    }
    /// A datagram of `len` octets came from a peer. An unknown peer stays unknown.
    pub(super) fn earn(&mut self, from: P, len: usize, now: Instant) {
        let worth = self.worth(len);
        if let Some(known) = self.peers.get_mut(&from).filter(|known| !known.proven) {
            known.credit.earn(worth, now);
        }
    }
    /// Takes what is left of an unproven peer's credit, octets with headers, to be granted later.
    pub fn set_aside(&mut self, peer: P, now: Instant) -> usize {
        let Some(known) = self.peers.get_mut(&peer).filter(|known| !known.proven) else { return 0 };
        let left = known.credit.balance(now);
        known.credit.spend(left, now);
        left
    }
    /// What a datagram of `len` octets earns its sender.
    pub(super) const fn worth(&self, len: usize) -> usize {
        match self.config.amplification_max {
            Some(factor) => factor * (len + DATAGRAM_OVERHEAD),
            None => 0,
        }
    }
    /// Sends a datagram. Without credit for its unproven address it is withheld, which looks like a loss in
    /// the network.
    pub(super) fn depart(&mut self, departure: Departure<P>, now: Instant) {
        let Departure { to, bytes, handle, copy, purpose } = departure;
        let bounded = !self.all_are_proven();
        // This end chooses whom it asks; an empty message is never longer than what it answers.
        if bounded && purpose != Purpose::Request {
            let known = self.peers.get_mut(&to);
            let room = known.as_ref().map_or(0, |known| known.room(now));
            if purpose == Purpose::Response && bytes.len() > room {
                self.counters.withheld += 1;
                return;
            }
            if let Some(known) = known.filter(|known| !known.proven) {
                known.credit.spend(bytes.len() + DATAGRAM_OVERHEAD, now);
            }
        }
        self.outbox.push(Output::Send { to, bytes, handle, copy, purpose });
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
        if bounded && bytes.len() + DATAGRAM_OVERHEAD > self.worth(len) {
            self.counters.withheld += 1;
            return;
        }
        let (handle, copy, purpose) = (Handle::NONE, 0, Purpose::Response);
        self.outbox.push(Output::Send { to, bytes, handle, copy, purpose });
    }
    /// Whether there is room for one more notification to a proven address.
    pub fn has_room(&self) -> bool {
        self.open() < self.config.open_max || !self.unproven.is_empty()
    }
    /// When there is room for one more notification to a peer: `None` means now.
    pub fn room_at(&self, peer: P, now: Instant) -> Option<Instant> {
        if self.is_proven(peer) || !self.is_full_for_unproven() {
            return None;
        }
        let (_, since) = self.unproven.first_key_value()?;
        Some(*since + UNPROVEN_GRACE).filter(|then| *then > now)
    }
    fn is_full_for_unproven(&self) -> bool {
        let share = (self.config.open_max / OPEN_UNPROVEN_DIVISOR).max(1);
        self.open() >= self.config.open_max || self.unproven.len() >= share
    }
    /// Makes room for a notification. The oldest one to an unproven address gives way when unproven addresses have
    /// their share, or when everything is full. False if there is no room.
    pub(super) fn make_room(&mut self, to: P, now: Instant) -> bool {
        let full = if self.is_proven(to) {
            self.open() >= self.config.open_max
        } else if self.room_at(to, now).is_some() {
            return false;
        } else {
            self.is_full_for_unproven()
        };
        if full {
            let Some((oldest, _)) = self.unproven.first_key_value() else { return false };
            let oldest = *oldest;
            self.abandon(oldest, DropReason::GaveUp, now);
        }
        true
    }
    /// An exchange to an unproven address is among the first to give way.
    pub(super) fn note_unproven(&mut self, id: ExchangeId, to: P, role: Role, now: Instant) {
        if self.is_proven(to) {
            return;
        }
        if role == Role::Separate {
            self.unproven_answers.insert(id, now);
        } else {
            self.unproven.insert(id, now);
        }
    }
    /// Makes room for one more request where all places are taken: the oldest separate response to an
    /// unproven address gives way, to an unproven peer once its acknowledgement has had time to come. False
    /// if none does.
    pub(super) fn make_room_for_request(&mut self, from: P, now: Instant) -> bool {
        let oldest = self.unproven_answers.first_key_value().map(|(id, since)| (*id, *since));
        let Some((oldest, since)) = oldest else { return false };
        if now.since(since) < UNPROVEN_GRACE && !self.is_proven(from) {
            return false;
        }
        self.abandon(oldest, DropReason::GaveUp, now);
        true
    }
}
