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

use lowmesh_units::Instant;
use lowmesh_wire::coap::{MessageId, MessageView};

use super::peers::Peers;
use crate::PeerAddress;
use crate::params::{COUNT_BITS, FORGET_DIVISOR, SWEEP_PAUSE, SWEEP_SAMPLE};
use crate::seen::{DuplicateCheck, Reply};

/// How many messages are remembered: in all, of each source and of each peer.
#[derive(Debug)]
pub(super) struct Remembered<P> {
    limits: RememberedLimits,
    /// Messages over all peers.
    total: usize,
    /// Messages that a source may have before it is listed in [`Self::large`].
    equal_part: usize,
    by_source: BTreeMap<P, OfSource<P>>,
    /// Sources with more than their equal part, by their leading bits.
    large: BTreeSet<(usize, P)>,
    sweep: Sweep<P>,
    /// Messages that were forgotten before their lifetime was over.
    forgotten_early: u64,
}

/// How many messages may be remembered.
#[derive(Clone, Copy, Debug)]
pub(super) struct RememberedLimits {
    /// Of all peers.
    pub(super) total: usize,
    /// Of one peer.
    pub(super) per_peer: usize,
    /// Peers that there may be.
    pub(super) peers: usize,
}

/// What is known of a message that has just come.
#[derive(Debug)]
pub(super) enum DuplicateState {
    /// It has not come before.
    New,
    /// It has come before, and this answered it.
    Again(Option<Reply>),
}

impl From<DuplicateCheck<'_>> for DuplicateState {
    fn from(check: DuplicateCheck<'_>) -> Self {
        match check {
            DuplicateCheck::New => Self::New,
            DuplicateCheck::Answered(reply) => Self::Again(Some(reply.clone())),
            DuplicateCheck::Duplicate => Self::Again(None),
        }
    }
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
    /// No messages yet.
    pub(super) const fn new(limits: RememberedLimits) -> Self {
        Self {
            limits,
            total: 0,
            equal_part: limits.total / limits.peers,
            by_source: BTreeMap::new(),
            large: BTreeSet::new(),
            sweep: Sweep { last: None, clean: 0, not_before: Instant::ZERO },
            forgotten_early: 0,
        }
    }
    /// Messages that were forgotten before their lifetime was over: a late duplicate of them would be executed again.
    pub(super) const fn forgotten_early(&self) -> u64 {
        self.forgotten_early
    }

    /// Looks a message up.
    pub(super) fn sight(
        &mut self,
        peers: &mut Peers<P>,
        from: P,
        message_id: MessageId,
        now: Instant,
    ) -> DuplicateState {
        self.forget_expired(peers, from, now);
        let Some(peer) = peers.get_mut(&from) else { return DuplicateState::New };
        peer.seen.sight(message_id, now).into()
    }

    /// The same for a request of a known peer; one that is new is remembered. One search of the table for both.
    pub(super) fn sight_request(
        &mut self,
        peers: &mut Peers<P>,
        from: P,
        view: &MessageView<'_>,
        now: Instant,
    ) -> DuplicateState {
        let Some(peer) = peers.get_mut(&from) else { return DuplicateState::New };
        let before = peer.seen.len();
        peer.seen.forget_expired(now);
        let state = DuplicateState::from(peer.seen.sight(view.message_id(), now));
        let is_new = matches!(state, DuplicateState::New);
        if is_new {
            let forgotten = peer.seen.remember_within(self.limits.per_peer, view, now);
            self.forgotten_early += forgotten as u64;
        }
        let after = peer.seen.len();
        self.change(from, before, after);
        if is_new {
            self.keep_total(peers, from, now);
        }
        state
    }

    /// Remembers a message of a known peer.
    pub(super) fn remember(
        &mut self,
        peers: &mut Peers<P>,
        from: P,
        view: &MessageView<'_>,
        now: Instant,
    ) {
        let Some(peer) = peers.get_mut(&from) else { return };
        let before = peer.seen.len();
        let forgotten = peer.seen.remember_within(self.limits.per_peer, view, now);
        self.forgotten_early += forgotten as u64;
        let after = peer.seen.len();
        self.change(from, before, after);
        self.keep_total(peers, from, now);
    }

    /// A peer with so many messages has left.
    pub(super) fn forget_peer(&mut self, peer: P, count: usize) {
        self.change(peer, count, 0);
        self.forgotten_early += count as u64;
    }

    /// The session of a peer has ended: no late duplicate of its messages can come.
    pub(super) fn forget_session(&mut self, peers: &mut Peers<P>, peer: P) {
        let Some(known) = peers.get_mut(&peer) else { return };
        let before = known.seen.len();
        known.seen.forget_all();
        self.change(peer, before, 0);
    }

    /// Forgets what has expired of a peer; returns how many messages that were.
    pub(super) fn forget_expired(&mut self, peers: &mut Peers<P>, peer: P, now: Instant) -> usize {
        let Some(known) = peers.get_mut(&peer) else { return 0 };
        let before = known.seen.len();
        let expired = known.seen.forget_expired(now);
        self.change(peer, before, before - expired);
        expired
    }

    /// Past the total a peer with most forgets, so that one with few keeps its messages.
    fn keep_total(&mut self, peers: &mut Peers<P>, newcomer: P, now: Instant) {
        if self.total <= self.limits.total {
            return;
        }
        self.sweep(peers, now);
        // More than the total over at most `limits.peers` sources: one has more than its equal part.
        while self.total > self.limits.total
            && let Some(most) = self.largest(newcomer)
        {
            self.forget_oldest(peers, most, now);
        }
    }

    /// Forgets what has expired of a peer, or else its oldest messages before their time: several at once, since the
    /// next messages need room too.
    fn forget_oldest(&mut self, peers: &mut Peers<P>, peer: P, now: Instant) {
        let Some(known) = peers.get_mut(&peer) else { return };
        let before = known.seen.len();
        if known.seen.forget_expired(now) == 0 {
            let at_once = (before / FORGET_DIVISOR).max(1);
            let forgotten = (0..at_once).take_while(|_| known.seen.forget_oldest()).count();
            self.forgotten_early += forgotten as u64;
        }
        let after = known.seen.len();
        self.change(peer, before, after);
    }

    /// Forgets what has expired of the next few peers in turn. After a round without any it pauses.
    fn sweep(&mut self, peers: &mut Peers<P>, now: Instant) {
        if now < self.sweep.not_before {
            return;
        }
        for _ in 0..SWEEP_SAMPLE {
            let after = self.sweep.last.map_or(Bound::Unbounded, Bound::Excluded);
            let next = peers.range((after, Bound::Unbounded)).next().map(|(peer, _)| *peer);
            self.sweep.last = next;
            let Some(peer) = next else { break };
            let expired = self.forget_expired(peers, peer, now);
            self.sweep.clean = if expired == 0 { self.sweep.clean + 1 } else { 0 };
        }
        if self.sweep.clean >= peers.len() {
            self.sweep.clean = 0;
            self.sweep.not_before = now + SWEEP_PAUSE;
        }
    }

    /// A peer has `after` messages now and had `before`.
    fn change(&mut self, peer: P, before: usize, after: usize) {
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
