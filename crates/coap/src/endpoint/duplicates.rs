//! The messages that are remembered so that a duplicate is not executed again (RFC 7252 s4.5): at most so many of each
//! peer, and so many in all.
//!
//! ```text
//!   total     past it what has expired leaves, else the oldest message of the peer with most, of the source
//!             with most
//!   share     past it the peer's own oldest message leaves
//!   newcomer  is always remembered
//! ```

use alloc::collections::{BTreeMap, BTreeSet};
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

/// How many messages are remembered: of each peer, of each source, and in all.
#[derive(Debug)]
pub(super) struct Remembered<P> {
    total: usize,
    by_source: BTreeMap<P, OfSource<P>>,
    /// Sources with more than an equal part of all, and how many.
    large: BTreeSet<(usize, P)>,
    equal_part: usize,
}

/// How many messages are remembered of the peers of one source.
#[derive(Debug)]
struct OfSource<P> {
    total: usize,
    /// How many of each.
    peers: BTreeSet<(usize, P)>,
}

impl<P: PeerAddress> Remembered<P> {
    /// Nothing yet; a source with more than `equal_part` messages counts as large.
    pub(super) const fn new(equal_part: usize) -> Self {
        Self { total: 0, by_source: BTreeMap::new(), large: BTreeSet::new(), equal_part }
    }
    /// The number of messages of a peer goes from `before` to `after`.
    pub(super) fn change(&mut self, peer: P, before: usize, after: usize) {
        if before == after {
            return;
        }
        self.total = self.total - before + after;
        let source = peer.source();
        let empty = || OfSource { total: 0, peers: BTreeSet::new() };
        let own = self.by_source.entry(source).or_insert_with(empty);
        own.peers.remove(&(before, peer));
        if after > 0 {
            own.peers.insert((after, peer));
        }
        let total_before = own.total;
        own.total = total_before - before + after;
        let total = own.total;
        if total == 0 {
            self.by_source.remove(&source);
        }
        if total_before > self.equal_part {
            self.large.remove(&(total_before, source));
        }
        if total > self.equal_part {
            self.large.insert((total, source));
        }
    }
    /// The peer with most messages, of the source with most. A newcomer whose only message has just come does not
    /// count.
    fn largest(&self, newcomer: P) -> Option<P> {
        let counts = |count: usize, one: P, new: P| count > 1 || one != new;
        let mut sources = self.large.iter().rev();
        let (_, source) = sources.find(|(count, one)| counts(*count, *one, newcomer.source()))?;
        let mut peers = self.by_source.get(source)?.peers.iter().rev();
        peers.find(|(count, one)| counts(*count, *one, newcomer)).map(|(_, peer)| *peer)
    }
    #[cfg(test)]
    pub(super) const fn total(&self) -> usize {
        self.total
    }
    /// Sources with more than an equal part of all, and how many.
    #[cfg(test)]
    pub(super) fn large(&self) -> alloc::vec::Vec<(usize, P)> {
        self.large.iter().copied().collect()
    }
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

    /// Remembers a message. A peer past its share forgets its own oldest message. Past the total the source with most
    /// messages forgets one, so a source with few keeps them.
    pub(super) fn remember(&mut self, from: P, view: &MessageView<'_>, now: Instant) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let before = peer.seen.len();
        peer.seen.remember(view.message_id(), view.kind(), now);
        self.remembered.change(from, before, before + 1);
        if before >= self.config.dedup_per_peer {
            self.forget_oldest(from);
        }
        if self.remembered.total <= self.config.dedup_total {
            return;
        }
        self.sweep(now);
        // There are at most `peers_max` sources, so past the total one has more than an equal part.
        while self.remembered.total > self.config.dedup_total
            && let Some(most) = self.remembered.largest(from)
        {
            if self.forget_expired(most, now) == 0 {
                self.forget_oldest(most);
            }
        }
    }

    /// Forgets what has expired of a peer; returns how many messages that were.
    pub(super) fn forget_expired(&mut self, peer: P, now: Instant) -> usize {
        let Some(known) = self.peers.get_mut(&peer) else { return 0 };
        let before = known.seen.len();
        let expired = known.seen.forget_expired(now);
        self.remembered.change(peer, before, before - expired);
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
            self.counters.forgotten_early += 1;
            self.remembered.change(peer, before, before - 1);
        }
    }
}
