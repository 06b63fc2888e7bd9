//! What is remembered of the messages of all peers, so that a duplicate is not executed again (RFC 7252
//! s4.5): so many of each peer, and so many over all.
//!
//! ```text
//!   total     past it what has expired leaves, else the oldest message of the peer with most, of the source
//!             with most
//!   share     past it the peer's own oldest message leaves
//!   newcomer  is always remembered
//! ```

use alloc::collections::BTreeSet;
use core::ops::Bound;

use lowmesh_machine::Handle;
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Kind, MessageView};

use super::Endpoint;
use super::proof::Departure;
use crate::PeerAddress;
use crate::event::{Discard, Purpose};
use crate::params::SWEEP_SAMPLE;
use crate::seen::Sighting;

/// What is remembered of the peers of one source.
#[derive(Debug)]
pub(super) struct Memory<P> {
    /// Messages of all of them.
    total: usize,
    /// How many of each.
    peers: BTreeSet<(usize, P)>,
}

impl<P: PeerAddress> Endpoint<P> {
    /// RFC 7252 s4.5: a duplicate CON SHOULD be acknowledged with the same message and processed
    /// only once; a duplicate NON is ignored. True if the message is one.
    pub(super) fn is_duplicate(&mut self, from: P, view: &MessageView<'_>, now: Instant) -> bool {
        self.forget_expired(from, now);
        let Some(peer) = self.peers.get_mut(&from) else { return false };
        match peer.seen.sight(view.message_id(), now) {
            Sighting::New => return false,
            Sighting::Answered(reply) if view.kind() == Kind::Confirmable => {
                let purpose =
                    if reply.handle == Handle::NONE { Purpose::Empty } else { Purpose::Response };
                let (bytes, handle, copy) = (reply.bytes.clone(), reply.handle, reply.copies);
                self.depart(Departure { to: from, bytes, handle, copy, purpose }, now);
            }
            Sighting::Answered(_) | Sighting::Duplicate => {}
        }
        self.discard(from, Discard::Duplicate);
        true
    }

    /// Remembers a message. A peer past its share forgets its own oldest; past the total it is the source with
    /// most that forgets, so that one with few keeps them.
    pub(super) fn remember(&mut self, from: P, view: &MessageView<'_>, now: Instant) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let before = peer.seen.len();
        peer.seen.remember(view.message_id(), view.kind(), now);
        self.remembered += 1;
        self.note_memory(from, before, before + 1);
        if before >= self.config.dedup_per_peer {
            self.forget_oldest(from);
        }
        if self.remembered <= self.config.dedup_total {
            return;
        }
        self.sweep(now);
        // More than the total over at most `peers_max` sources: one has more than its equal part.
        while self.remembered > self.config.dedup_total
            && let Some(most) = self.longest_memory(from)
        {
            if self.forget_expired(most, now) == 0 {
                self.forget_oldest(most);
            }
        }
    }

    /// The peer with most messages of the source with most, other than one whose only message has just come.
    fn longest_memory(&self, newcomer: P) -> Option<P> {
        let is_older = |count: usize, one: P, new: P| count > 1 || one != new;
        let mut sources = self.memories.iter().rev();
        let (_, source) = sources.find(|(count, one)| is_older(*count, *one, newcomer.source()))?;
        let mut peers = self.memory.get(source)?.peers.iter().rev();
        peers.find(|(count, one)| is_older(*count, *one, newcomer)).map(|(_, peer)| *peer)
    }

    /// A peer remembers `after` messages, and `before` until now.
    pub(super) fn note_memory(&mut self, peer: P, before: usize, after: usize) {
        let equal_part = self.config.dedup_total / self.config.peers_max;
        if before == after {
            return;
        }
        let source = peer.source();
        let empty = || Memory { total: 0, peers: BTreeSet::new() };
        let memory = self.memory.entry(source).or_insert_with(empty);
        memory.peers.remove(&(before, peer));
        if after > 0 {
            memory.peers.insert((after, peer));
        }
        let of_source = memory.total;
        memory.total = of_source - before + after;
        let total = memory.total;
        if total == 0 {
            self.memory.remove(&source);
        }
        if of_source > equal_part {
            self.memories.remove(&(of_source, source));
        }
        if total > equal_part {
            self.memories.insert((total, source));
        }
    }

    /// Forgets what has expired of a peer; returns how many messages that were.
    fn forget_expired(&mut self, peer: P, now: Instant) -> usize {
        let Some(known) = self.peers.get_mut(&peer) else { return 0 };
        let before = known.seen.len();
        let expired = known.seen.forget_expired(now);
        self.remembered -= expired;
        self.note_memory(peer, before, before - expired);
        expired
    }

    /// Forgets what has expired of the next few peers in turn.
    fn sweep(&mut self, now: Instant) {
        for _ in 0..SWEEP_SAMPLE {
            let after = self.swept.map_or(Bound::Unbounded, Bound::Excluded);
            let next = self.peers.range((after, Bound::Unbounded)).next().map(|(peer, _)| *peer);
            self.swept = next;
            if let Some(peer) = next {
                self.forget_expired(peer, now);
            }
        }
    }

    /// Forgets the oldest message of a peer before its time.
    fn forget_oldest(&mut self, peer: P) {
        let Some(known) = self.peers.get_mut(&peer) else { return };
        let before = known.seen.len();
        if known.seen.forget_oldest() {
            self.remembered -= 1;
            self.counters.forgotten_early += 1;
            self.note_memory(peer, before, before - 1);
        }
    }
}
