//! The messages that are remembered so that a duplicate is not executed again (RFC 7252 s4.5): at most so many of each
//! peer, and so many in all.
//!
//! ```text
//!   total     past it what has expired leaves, else the oldest messages of a peer with most, of a source
//!             with most: one of 16 that it has
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
use crate::params::{COUNT_BITS, FORGET_DIVISOR, SWEEP_PAUSE, SWEEP_SAMPLE};
use crate::seen::{DuplicateCheck, Reply};

/// How many messages are remembered: in all, of each source and of each peer.
#[derive(Debug)]
pub(super) struct Remembered<P> {
    /// Messages over all peers.
    total: usize,
    /// Messages that a source may have before it is listed in [`Self::large`].
    equal_part: usize,
    by_source: BTreeMap<P, OfSource<P>>,
    /// Sources with more than their equal part, by their leading bits.
    large: BTreeSet<(usize, P)>,
    sweep: Sweep<P>,
}

/// The messages of one source.
#[derive(Debug)]
struct OfSource<P> {
    total: usize,
    /// Its peers, by the leading bits of their counts.
    peers: BTreeSet<(usize, P)>,
}

/// The search for expired messages, peer by peer.
#[derive(Debug)]
struct Sweep<P> {
    last: Option<P>,
    /// Peers in a row that had none.
    clean: usize,
    /// No search before this time, since a whole round has found nothing.
    not_before: Instant,
}

/// The leading bits of a count, so that one more message seldom changes a peer's place.
const fn leading(count: usize) -> usize {
    let below = (usize::BITS - count.leading_zeros()).saturating_sub(COUNT_BITS);
    count >> below << below
}

impl<P: PeerAddress> Remembered<P> {
    /// No messages yet. `equal_part` is the total bound divided by the peers that there may be.
    pub(super) const fn new(equal_part: usize) -> Self {
        let sweep = Sweep { last: None, clean: 0, not_before: Instant::ZERO };
        Self { total: 0, equal_part, by_source: BTreeMap::new(), large: BTreeSet::new(), sweep }
    }

    /// A peer has `after` messages now and had `before`.
    pub(super) fn change(&mut self, peer: P, before: usize, after: usize) {
        if before == after {
            return;
        }
        self.total = self.total - before + after;
        let source = peer.source();
        let empty = || OfSource { total: 0, peers: BTreeSet::new() };
        let entry = self.by_source.entry(source).or_insert_with(empty);
        if leading(before) != leading(after) {
            entry.peers.remove(&(leading(before), peer));
            if after > 0 {
                entry.peers.insert((leading(after), peer));
            }
        }
        let had = entry.total;
        let has = had - before + after;
        entry.total = has;
        if has == 0 {
            self.by_source.remove(&source);
        }
        let place = |total| (total > self.equal_part).then(|| (leading(total), source));
        let (old, new) = (place(had), place(has));
        if old != new {
            if let Some(old) = old {
                self.large.remove(&old);
            }
            self.large.extend(new);
        }
    }

    /// A peer with most messages of a source with most, other than one whose only message has just come.
    fn largest(&self, newcomer: P) -> Option<P> {
        let is_older = |count: usize, one: P, new: P| count > 1 || one != new;
        let mut sources = self.large.iter().rev();
        let (_, source) = sources.find(|(count, one)| is_older(*count, *one, newcomer.source()))?;
        let mut peers = self.by_source.get(source)?.peers.iter().rev();
        peers.find(|(count, one)| is_older(*count, *one, newcomer)).map(|(_, peer)| *peer)
    }
    #[cfg(test)]
    pub(super) const fn total(&self) -> usize {
        self.total
    }
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
        let reply = match peer.seen.sight(view.message_id(), now) {
            DuplicateCheck::New => return false,
            DuplicateCheck::Answered(reply) => Some(reply.clone()),
            DuplicateCheck::Duplicate => None,
        };
        self.answer_duplicate(from, view, reply, now);
        true
    }

    /// The same for a request; one that is new is remembered. One search of the table for both.
    pub(super) fn is_duplicate_request(
        &mut self,
        from: P,
        view: &MessageView<'_>,
        now: Instant,
    ) -> bool {
        let Some(peer) = self.peers.get_mut(&from) else { return false };
        let before = peer.seen.len();
        peer.seen.forget_expired(now);
        let reply = match peer.seen.sight(view.message_id(), now) {
            DuplicateCheck::New => {
                let forgotten = peer.seen.remember_within(self.config.dedup_per_peer, view, now);
                self.counters.forgotten_early += forgotten as u64;
                self.remembered.change(from, before, peer.seen.len());
                self.keep_total(from, now);
                return false;
            }
            DuplicateCheck::Answered(reply) => Some(reply.clone()),
            DuplicateCheck::Duplicate => None,
        };
        self.remembered.change(from, before, peer.seen.len());
        self.answer_duplicate(from, view, reply, now);
        true
    }

    fn answer_duplicate(
        &mut self,
        to: P,
        view: &MessageView<'_>,
        reply: Option<Reply>,
        now: Instant,
    ) {
        if let Some(Reply { bytes, handle, copies: copy }) = reply
            && view.kind() == Kind::Confirmable
        {
            let purpose = if handle == Handle::NONE { Purpose::Empty } else { Purpose::Response };
            self.depart(Departure { to, bytes, handle, copy, purpose }, now);
        }
        self.discard(to, Discard::Duplicate);
    }

    /// Remembers a message.
    pub(super) fn remember(&mut self, from: P, view: &MessageView<'_>, now: Instant) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let before = peer.seen.len();
        let forgotten = peer.seen.remember_within(self.config.dedup_per_peer, view, now);
        self.counters.forgotten_early += forgotten as u64;
        self.remembered.change(from, before, peer.seen.len());
        self.keep_total(from, now);
    }

    /// Past the total a peer with most forgets, so that one with few keeps its messages.
    fn keep_total(&mut self, newcomer: P, now: Instant) {
        if self.remembered.total <= self.config.dedup_total {
            return;
        }
        self.sweep(now);
        // More than the total over at most `peers_max` sources: one has more than its equal part.
        while self.remembered.total > self.config.dedup_total
            && let Some(most) = self.remembered.largest(newcomer)
        {
            self.forget_oldest(most, now);
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

    /// Forgets what has expired of a peer, or else its oldest messages before their time: several at once, since the
    /// next messages need room too.
    fn forget_oldest(&mut self, peer: P, now: Instant) {
        let Some(known) = self.peers.get_mut(&peer) else { return };
        let before = known.seen.len();
        if known.seen.forget_expired(now) == 0 {
            let at_once = (before / FORGET_DIVISOR).max(1);
            let forgotten = (0..at_once).take_while(|_| known.seen.forget_oldest()).count();
            self.counters.forgotten_early += forgotten as u64;
        }
        self.remembered.change(peer, before, known.seen.len());
    }

    /// Forgets what has expired of the next few peers in turn. After a round without any it pauses.
    fn sweep(&mut self, now: Instant) {
        if now < self.remembered.sweep.not_before {
            return;
        }
        for _ in 0..SWEEP_SAMPLE {
            let after = self.remembered.sweep.last.map_or(Bound::Unbounded, Bound::Excluded);
            let next = self.peers.range((after, Bound::Unbounded)).next().map(|(peer, _)| *peer);
            self.remembered.sweep.last = next;
            let Some(peer) = next else { break };
            let expired = self.forget_expired(peer, now);
            let sweep = &mut self.remembered.sweep;
            sweep.clean = if expired == 0 { sweep.clean + 1 } else { 0 };
        }
        let sweep = &mut self.remembered.sweep;
        if sweep.clean >= self.peers.len() {
            sweep.clean = 0;
            sweep.not_before = now + SWEEP_PAUSE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_counts_are_exact_and_large_ones_keep_their_leading_bits() {
        assert!((0..8).all(|count| leading(count) == count));
        assert_eq!([8, 9, 10, 255, 256, 319, 320].map(leading), [8, 8, 10, 224, 256, 256, 320]);
        assert_eq!(leading(usize::MAX).count_ones(), COUNT_BITS);
    }
}
