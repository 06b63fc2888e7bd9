//! Which datagrams lose their places to a new one: those of the source that holds most, and those that receive no more
//! fragments.
//!
//! ```text
//!   a place is free                                   : the newcomer takes it
//!   the newcomer is proven, a source is not           : its datagram that waits longest is evicted
//!   a source holds more than the newcomer's would     : its datagram that waits longest is evicted
//!   a datagram received no new fragment for a while   : it is evicted, of the source that holds most first
//!   else                                              : the newcomer is refused
//! ```
//! A newcomer that is not proven evicts nothing of a source that is; such a datagram has its timeout. Where nobody is
//! proven, all are equal.
//!
//! Without the last rule, a node with many senders at once would start every datagram and finish none. A buffer
//! reservation attack (Hummen et al., WiSec 2013) from one address holds only places that no other sender needs; from
//! many addresses it has to send a first fragment for each place again and again.
//!
//! A source's datagram that waits longest is always its next victim, so a heap of sources finds all victims in
//! O(n log n).

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Reverse;

use lowmesh_units::{Duration, Instant};

/// An incomplete datagram, or one that needs a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held<S> {
    /// The node that its fragments come from.
    pub source: S,
    pub octets: usize,
    /// When its latest new fragment came.
    pub news: Instant,
    /// Its source is known to hear this node.
    pub is_proven: bool,
}

/// What there is room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub places: usize,
    /// Octets of all datagrams.
    pub octets: usize,
    /// Octets that the memory around the table has left beside them.
    pub room: usize,
    /// The last free place is not for a source that holds one already.
    pub keeps_last: bool,
    /// A datagram without a new fragment for so long may lose its place.
    pub stale_after: Duration,
}

/// How many datagrams, and their octets.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: usize,
    octets: usize,
}

impl Sum {
    const fn with(self, octets: usize) -> Self {
        Self { count: self.count + 1, octets: self.octets + octets }
    }
    const fn without(self, octets: usize) -> Self {
        Self { count: self.count - 1, octets: self.octets - octets }
    }
}

impl Bounds {
    fn fit(&self, all: Sum, own: Sum, newcomer: usize, freed: usize) -> bool {
        let free = self.places.saturating_sub(all.count);
        let keeps_last = self.keeps_last && own.count > 0;
        (free > 1 || free == 1 && !keeps_last)
            && all.octets + newcomer <= self.octets
            && newcomer <= self.room.saturating_add(freed)
    }
    /// The part that a source holds: of places or of octets, whichever is larger.
    fn load(&self, sum: Sum) -> usize {
        sum.count.saturating_mul(self.octets).max(sum.octets.saturating_mul(self.places))
    }
}

/// What one source holds.
#[derive(Debug, Default)]
struct Share {
    sum: Sum,
    is_proven: bool,
    /// Places of its datagrams, the one that waits longest last.
    places: Vec<usize>,
}

/// How much a source holds. What is not proven counts for more than anything that is.
type Load = (bool, usize);

/// The next victim of a source: how much the source holds, how long the datagram waits, and its place.
type Candidate<S> = (Load, Duration, Reverse<usize>, S);

/// What each source holds that may have to give way to `newcomer`, and whether the newcomer's source is proven.
fn shares<S: Copy + Ord>(held: &[Held<S>], newcomer: &Held<S>) -> (BTreeMap<S, Share>, bool) {
    let mut shares: BTreeMap<S, Share> = BTreeMap::new();
    for (at, one) in held.iter().enumerate() {
        let share = shares.entry(one.source).or_default();
        share.sum = share.sum.with(one.octets);
        share.is_proven |= one.is_proven;
        share.places.push(at);
    }
    if let Some(share) = shares.get_mut(&newcomer.source) {
        share.is_proven |= newcomer.is_proven;
    }
    let own = shares.get(&newcomer.source);
    let is_proven = newcomer.is_proven || own.is_some_and(|share| share.is_proven);
    if !is_proven {
        shares.retain(|_, share| !share.is_proven);
    }
    let wait = |at: usize| newcomer.news.since(held[at].news);
    for share in shares.values_mut() {
        share.places.sort_unstable_by_key(|at| (wait(*at), Reverse(*at)));
    }
    (shares, is_proven)
}

/// The places in `held` that have to be given up before `newcomer` has one; `None` if it is refused.
pub(crate) fn victims<S: Copy + Ord>(
    held: impl Iterator<Item = Held<S>> + Clone,
    newcomer: &Held<S>,
    bounds: &Bounds,
) -> Option<Vec<usize>> {
    let (mut all, mut own) = (Sum::default(), Sum::default());
    for one in held.clone() {
        all = all.with(one.octets);
        if one.source == newcomer.source {
            own = own.with(one.octets);
        }
    }
    if bounds.fit(all, own, newcomer.octets, 0) {
        return Some(Vec::new());
    }
    let held: Vec<Held<S>> = held.collect();
    let wait = |at: usize| newcomer.news.since(held[at].news);
    let (mut shares, newcomer_is_proven) = shares(&held, newcomer);
    let candidate = |source: S, share: &Share| -> Option<Candidate<S>> {
        let at = *share.places.last()?;
        Some(((!share.is_proven, bounds.load(share.sum)), wait(at), Reverse(at), source))
    };
    let is_stale = |one: &Candidate<S>| one.1 >= bounds.stale_after;
    let mut loaded: BinaryHeap<_> =
        shares.iter().filter_map(|(source, share)| candidate(*source, share)).collect();
    let mut stale: BinaryHeap<_> = loaded.iter().copied().filter(is_stale).collect();
    let (mut victims, mut freed) = (Vec::new(), 0);
    while !bounds.fit(all, own, newcomer.octets, freed) {
        // A candidate that an eviction has outdated is not its source's any more.
        let is_current =
            |one: &Candidate<S>| shares.get(&one.3).and_then(|s| candidate(one.3, s)) == Some(*one);
        while loaded.peek().is_some_and(|one| !is_current(one)) {
            loaded.pop();
        }
        while stale.peek().is_some_and(|one| !is_current(one)) {
            stale.pop();
        }
        let newcomers = (!newcomer_is_proven, bounds.load(own.with(newcomer.octets)));
        let (.., Reverse(at), source) =
            *loaded.peek().filter(|one| one.0 > newcomers).or_else(|| stale.peek())?;
        let octets = held[at].octets;
        all = all.without(octets);
        if source == newcomer.source {
            own = own.without(octets);
        }
        freed += octets;
        victims.push(at);
        if let Some(share) = shares.get_mut(&source) {
            share.places.pop();
            share.sum = share.sum.without(octets);
            if let Some(next) = candidate(source, share) {
                loaded.push(next);
                stale.extend(Some(next).filter(is_stale));
            }
        }
    }
    Some(victims)
}

#[cfg(test)]
mod tests;
