//! The holders of one limit, and who of them gives way.
//!
//! ```text
//!   a place is free                 nobody gives way
//!   its source has its share        one of the same source
//!   unproven ones have their half   an unproven one
//!   all places are taken            one of all
//!
//!   of those, in this order:  unproven before proven
//!                             a greedy source, with over half of one of its shares, before a modest one
//!                             who is idle or past its grace, before who is not
//!                             the source that is nearest to one of its shares
//!                             idle longest, or by lot
//! ```
//! A greedy source takes nothing from a modest one: an idle holder gives way only if the newcomer's source then holds no
//! larger part of its shares, any other only if it holds a smaller one. What two sources are both in, such as one /16,
//! does not count between them.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_units::{Duration, Instant, Rng};

use crate::bound::Bound;
use crate::source::{LEVELS, Source};

/// What one full share counts.
const WHOLE: u64 = 1 << 20;

/// Who asks for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newcomer {
    /// Where it comes from.
    pub source: Source,
    /// It has shown that it receives at its address.
    pub proven: bool,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The source of the newcomer holds all that it may.
    Source,
    /// Nobody gives way to this newcomer.
    All,
    /// Nobody gives way to an unproven newcomer; a proof of its address may help.
    Unproven,
}

#[derive(Debug)]
struct Holder {
    source: Source,
    proven: bool,
    /// The serial number of its last use.
    used: u64,
    /// From then on it gives way to a source that holds no more.
    yields_at: Instant,
    /// While nothing would be lost with it: since when, and what is left of its grace.
    rest: Option<(Instant, Duration)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    all: usize,
    unproven: usize,
}

/// How near a source is to its shares: the fullest of all levels, then of all but the widest, and so on to the narrowest.
type Fullness = [u64; LEVELS];

/// Who may give way to a newcomer.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    /// Holders of this source only.
    source: Option<Source>,
    /// Unproven ones only.
    unproven: bool,
    /// Those past their grace only, and those that give way to any proven newcomer.
    past_grace: bool,
}

/// The holders of a limit, by a key that the owner chooses.
#[derive(Debug)]
pub struct Table<K> {
    bound: Bound,
    holders: BTreeMap<K, Holder>,
    /// Holders of each prefix, by level.
    counts: [BTreeMap<Source, Count>; LEVELS],
    unproven: usize,
    serial: u64,
    lots: Option<Rng>,
}

impl<K: Ord + Copy> Table<K> {
    /// Without holders. Of equal ones the longest idle gives way.
    pub const fn new(bound: Bound) -> Self {
        let counts = [const { BTreeMap::new() }; LEVELS];
        Self { bound, holders: BTreeMap::new(), counts, unproven: 0, serial: 0, lots: None }
    }
    /// Of equal holders one gives way by lot. Then a flood of newcomers does not outlive everybody who needs some time: the
    /// oldest would be the one farthest away.
    #[must_use]
    pub fn by_lot(self, lots: Rng) -> Self {
        Self { lots: Some(lots), ..self }
    }
    /// How many hold a place.
    pub fn len(&self) -> usize {
        self.holders.len()
    }
    /// True if all places are free.
    pub fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }
    /// How many places a source holds.
    pub fn of(&self, source: Source) -> usize {
        self.held(source, 0).all
    }
    /// Whether `key` holds a place.
    pub fn contains(&self, key: &K) -> bool {
        self.holders.contains_key(key)
    }
    /// The holders, by key.
    pub fn keys(&self) -> impl Iterator<Item = K> {
        self.holders.keys().copied()
    }
    /// Gives `key` a place, from which its grace begins, and returns the holder that has lost its place for it.
    pub fn enter(&mut self, key: K, newcomer: Newcomer, now: Instant) -> Result<Option<K>, Full> {
        self.leave(&key);
        let victim = self.room(newcomer, now)?;
        if let Some(victim) = victim {
            self.leave(&victim);
        }
        self.admit(key, newcomer, now);
        Ok(victim)
    }
    /// Gives `key` a place that its owner has for it however full the table is. Its grace begins.
    pub fn admit(&mut self, key: K, newcomer: Newcomer, now: Instant) {
        self.leave(&key);
        self.serial += 1;
        let Newcomer { source, proven } = newcomer;
        let yields_at = self.after_grace(now);
        self.holders
            .insert(key, Holder { source, proven, used: self.serial, yields_at, rest: None });
        self.count(source, |count| {
            count.all += 1;
            count.unproven += usize::from(!proven);
        });
        self.unproven += usize::from(!proven);
    }
    /// The holder that loses its place when a newcomer enters; `None` if a place is free. Nothing changes.
    pub fn room(&mut self, newcomer: Newcomer, now: Instant) -> Result<Option<K>, Full> {
        let Some(crowd) = self.crowd(newcomer) else { return Ok(None) };
        let victim = self.victim(crowd, newcomer, now);
        victim.map(Some).ok_or(match (newcomer.proven, crowd.source) {
            (false, _) => Full::Unproven,
            (true, Some(_)) => Full::Source,
            (true, None) => Full::All,
        })
    }
    /// The holder that gives way to a newcomer who needs a place beyond this table, one of its own source only if `own`.
    /// `None` if nobody does: what the newcomer's source has beyond the table does not count here, so that an unproven holder
    /// gives way to a proven newcomer, and any other after its grace alone. Nothing changes.
    pub fn in_the_way(&mut self, newcomer: Newcomer, own: bool, now: Instant) -> Option<K> {
        if own && self.of(newcomer.source) == 0 {
            return None;
        }
        let source = own.then_some(newcomer.source);
        let crowd = Crowd { source, unproven: !newcomer.proven, past_grace: true };
        self.victim(crowd, newcomer, now)
    }
    /// A place is free again. False if `key` held none.
    pub fn leave(&mut self, key: &K) -> bool {
        let Some(holder) = self.holders.remove(key) else { return false };
        self.count(holder.source, |count| {
            count.all -= 1;
            count.unproven -= usize::from(!holder.proven);
        });
        self.unproven -= usize::from(!holder.proven);
        for (level, counts) in self.counts.iter_mut().enumerate() {
            let prefix = holder.source.prefix(level);
            if counts.get(&prefix).is_some_and(|count| count.all == 0) {
                counts.remove(&prefix);
            }
        }
        true
    }
    /// The holder has used its place.
    pub fn touch(&mut self, key: &K) {
        self.serial += 1;
        if let Some(holder) = self.holders.get_mut(key) {
            holder.used = self.serial;
        }
    }
    /// Nothing is lost with the holder.
    pub fn rest(&mut self, key: &K, now: Instant) {
        let Some(holder) = self.holders.get_mut(key).filter(|one| one.rest.is_none()) else {
            return;
        };
        holder.rest = Some((now, holder.yields_at.since(now)));
        holder.yields_at = now;
    }
    /// Something would be lost with the holder: its grace goes on. Work uses it up, and rest gives as much of it back as it
    /// lasts: who rests for a moment only has no new grace.
    pub fn work(&mut self, key: &K, now: Instant) {
        let whole = self.after_grace(now);
        let Some(holder) = self.holders.get_mut(key) else { return };
        let Some((since, left)) = holder.rest.take() else { return };
        let then = if whole == Instant::FAR_FUTURE { whole } else { now + left + now.since(since) };
        holder.yields_at = then.min(whole);
    }
    /// The holder is known to make progress: it keeps its place until `then`.
    pub fn yield_at(&mut self, key: &K, then: Instant) {
        if let Some(holder) = self.holders.get_mut(key) {
            holder.yields_at = then;
            holder.rest = None;
        }
    }
    /// The holder has proven its address.
    pub fn prove(&mut self, key: &K) {
        let Some(holder) = self.holders.get_mut(key).filter(|holder| !holder.proven) else {
            return;
        };
        holder.proven = true;
        let source = holder.source;
        self.unproven -= 1;
        self.count(source, |count| count.unproven -= 1);
    }

    fn after_grace(&self, now: Instant) -> Instant {
        self.bound.grace.map_or(Instant::FAR_FUTURE, |grace| now + grace)
    }
    fn count(&mut self, source: Source, change: impl Fn(&mut Count)) {
        for (level, counts) in self.counts.iter_mut().enumerate() {
            change(counts.entry(source.prefix(level)).or_default());
        }
    }
    fn held(&self, source: Source, level: usize) -> Count {
        self.counts[level].get(&source.prefix(level)).copied().unwrap_or_default()
    }
    /// Who has to give way before a newcomer gets a place; `None` if one is free.
    fn crowd(&self, newcomer: Newcomer) -> Option<Crowd> {
        let (bound, of_source) = (&self.bound, self.held(newcomer.source, 0));
        let source = Some(newcomer.source);
        let unproven_only = !newcomer.proven;
        if of_source.all >= bound.share {
            return Some(Crowd { source, unproven: unproven_only, past_grace: false });
        }
        if unproven_only && of_source.unproven >= bound.unproven_share() {
            return Some(Crowd { source, unproven: true, past_grace: false });
        }
        let full = self.holders.len() >= bound.total;
        let crowded = unproven_only && self.unproven >= bound.unproven();
        (full || crowded).then_some(Crowd {
            source: None,
            unproven: unproven_only,
            past_grace: false,
        })
    }
    /// The holder of a crowd that gives way to a newcomer.
    fn victim(&mut self, crowd: Crowd, newcomer: Newcomer, now: Instant) -> Option<K> {
        let shares = self.bound.shares();
        let parts = |count: usize, level: usize| count as u64 * WHOLE / shares[level].max(1) as u64;
        let own: [u64; LEVELS] =
            core::array::from_fn(|level| parts(self.held(newcomer.source, level).all + 1, level));
        let mut fullness = Cached::default();
        let mut best: Option<(Rank, Vec<(u64, K)>)> = None;
        for (key, holder) in &self.holders {
            let in_crowd = crowd.source.is_none_or(|source| source == holder.source);
            if !in_crowd || (crowd.unproven && holder.proven) {
                continue;
            }
            let levels = fullness
                .of(holder.source, |level| parts(self.held(holder.source, level).all, level));
            let yields = holder.yields_at <= now;
            let differ = holder.source.common(newcomer.source);
            // To a proven one every unproven one gives way, but for those of its own source, which may be its own.
            let outranked = newcomer.proven && !holder.proven && differ > 0;
            let [after, has] = [own, levels].map(|all| all[..differ].iter().max().copied());
            let gives_way =
                outranked || if yields { after <= has } else { !crowd.past_grace && after < has };
            if !gives_way {
                continue;
            }
            let rank = Rank::new(holder, levels, yields);
            match &mut best {
                Some((first, equals)) if *first == rank => equals.push((holder.used, *key)),
                Some((first, _)) if *first > rank => {}
                _ => best = Some((rank, Vec::from([(holder.used, *key)]))),
            }
        }
        let (_, equals) = best?;
        let chosen = match &mut self.lots {
            Some(lots) => equals.get(lots.below(equals.len() as u32) as usize),
            None => equals.iter().min_by_key(|(used, _)| *used),
        };
        chosen.map(|(_, key)| *key)
    }
}

/// Who gives way first: the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    unproven: bool,
    greedy: bool,
    /// Of modest ones first who yields, of greedy ones first the source with most.
    modest_yields: bool,
    fullness: Fullness,
    yields: bool,
}

impl Rank {
    fn new(holder: &Holder, levels: [u64; LEVELS], yields: bool) -> Self {
        let fullness: Fullness = core::array::from_fn(|wider| {
            levels[..LEVELS - wider].iter().max().copied().unwrap_or_default()
        });
        let greedy = fullness[0] > WHOLE / 2;
        let modest_yields = !greedy && yields;
        Self { unproven: !holder.proven, greedy, modest_yields, fullness, yields }
    }
}

/// The fullness of the source before, because neighbours often have one.
#[derive(Debug, Default)]
struct Cached(Option<(Source, [u64; LEVELS])>);

impl Cached {
    fn of(&mut self, source: Source, level: impl Fn(usize) -> u64) -> [u64; LEVELS] {
        let before = self.0;
        let levels = core::array::from_fn(|one| match before {
            Some((last, levels)) if last.prefix(one) == source.prefix(one) => levels[one],
            _ => level(one),
        });
        self.0 = Some((source, levels));
        levels
    }
}

#[cfg(test)]
mod tests;
