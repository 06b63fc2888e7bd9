//! Whose turn it is at what serves one at a time.
//!
//! ```text
//!   proven and unproven ones wait    they take turns, so unproven ones get half of them at most
//!   of several prefixes              the one whose turn is longest ago, from the widest to the narrowest
//!   of one source                    who has waited longest
//! ```

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::source::{LEVELS, Source};
use crate::table::Newcomer;

/// How many prefixes of a level are remembered that do not wait; past it those are forgotten whose turn is longest ago. Ours:
/// many times the turns that an origin gives while a request of a proxy waits.
const LAST_MAX: usize = 1024;

/// Those who wait for their turn, by a key that the owner chooses.
#[derive(Debug)]
pub struct Turns<K> {
    /// In the order in which they came.
    waiting: BTreeMap<u64, (K, Newcomer)>,
    /// By level.
    served: [Served; LEVELS],
    serial: u64,
    /// The last turn was that of a proven one.
    after_proven: bool,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Turns<K> {
    /// Nobody waits.
    pub const fn new() -> Self {
        let served = [const { Served::new() }; LEVELS];
        Self { waiting: BTreeMap::new(), served, serial: 0, after_proven: false }
    }
    /// True if nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
    /// How many unproven ones wait.
    pub fn unproven(&self) -> usize {
        self.waiting.values().filter(|(_, one)| !one.proven).count()
    }
    /// Somebody waits from now on.
    pub fn wait(&mut self, key: K, who: Newcomer) {
        self.serial += 1;
        self.waiting.insert(self.serial, (key, who));
    }
    /// Only these still wait.
    pub fn retain(&mut self, waits: impl Fn(&K) -> bool) {
        self.waiting.retain(|_, (key, _)| waits(key));
    }
    /// A turn that nobody had to wait for.
    pub fn taken_by(&mut self, who: Newcomer) {
        self.serial += 1;
        self.after_proven = who.proven;
        for (level, served) in self.served.iter_mut().enumerate() {
            served.last.insert(who.source.prefix(level), self.serial);
            if served.last.len() > served.enough {
                let waiting = self.waiting.values().map(|(_, one)| one.source.prefix(level));
                served.forget(&waiting.collect());
            }
        }
    }
    /// The one whose turn it is, who waits no more; an unproven one only if it may be the turn of one.
    pub fn pop(&mut self, unproven: bool) -> Option<K> {
        let waits = |proven| self.waiting.values().any(|(_, one)| one.proven == proven);
        let proven = !unproven || if self.after_proven { !waits(false) } else { waits(true) };
        let of_class = self.waiting.iter().filter(|(_, (_, one))| one.proven == proven);
        let first = of_class.min_by_key(|(arrival, (_, one))| {
            let last: [u64; LEVELS] = core::array::from_fn(|from_widest| {
                let level = LEVELS - 1 - from_widest;
                self.served[level].of(one.source.prefix(level))
            });
            (last, **arrival)
        });
        let arrival = *first?.0;
        let (key, who) = self.waiting.remove(&arrival)?;
        self.taken_by(who);
        Some(key)
    }
}

/// The last turns of the prefixes of one level.
#[derive(Debug)]
struct Served {
    /// The serial number of the last turn of each prefix.
    last: BTreeMap<Source, u64>,
    /// The last turn of any prefix that is forgotten, which counts as that of all of them: they never come before one that
    /// waits and whose turn is longer ago.
    forgotten: u64,
    /// With more prefixes than this some are forgotten.
    enough: usize,
}

impl Served {
    const fn new() -> Self {
        Self { last: BTreeMap::new(), forgotten: 0, enough: 2 }
    }
    fn of(&self, prefix: Source) -> u64 {
        self.last.get(&prefix).copied().unwrap_or(self.forgotten)
    }
    /// Forgets prefixes that do not wait: those whose last turn no waiting one remembers, and past [`LAST_MAX`] those whose
    /// turn is longest ago.
    fn forget(&mut self, waiting: &BTreeSet<Source>) {
        let newest = self.last.values().copied().max();
        let oldest = waiting.iter().filter_map(|prefix| self.last.get(prefix)).copied().min();
        let mut keep_from = oldest.or(newest).unwrap_or_default();
        let idle = self.last.iter().filter(|(prefix, _)| !waiting.contains(prefix));
        let mut idle: Vec<u64> = idle.map(|(_, serial)| *serial).collect();
        idle.sort_unstable();
        if idle.len() > LAST_MAX {
            keep_from = keep_from.max(idle[idle.len() - LAST_MAX / 2]);
        }
        let last_forgotten = idle.iter().rfind(|serial| **serial < keep_from);
        self.forgotten = self.forgotten.max(last_forgotten.copied().unwrap_or_default());
        self.last.retain(|prefix, serial| *serial >= keep_from || waiting.contains(prefix));
        // So that each turn costs a few steps only.
        self.enough = 2 * self.last.len() + 2;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn who(source: Source, proven: bool) -> Newcomer {
        Newcomer { source, proven }
    }

    #[test]
    fn sources_take_turns_however_many_requests_each_has() {
        let mut turns = Turns::new();
        for host in [1, 1, 1, 1, 2, 3, 3] {
            turns.wait(host, who(Source::V4([192, 0, 2, host]), true));
        }
        let order: Vec<u8> = core::iter::from_fn(|| turns.pop(true)).collect();
        assert_eq!(order, [1, 2, 3, 1, 3, 1, 1]);
    }

    #[test]
    fn unproven_ones_wait_on_if_it_may_not_be_their_turn() {
        let mut turns = Turns::new();
        turns.wait('u', who(Source::V4([10, 0, 0, 1]), false));
        assert_eq!((turns.pop(false), turns.unproven()), (None, 1));
        turns.wait('p', who(Source::V4([10, 1, 0, 1]), true));
        assert_eq!((turns.pop(false), turns.pop(true)), (Some('p'), Some('u')));
    }

    #[test]
    fn unproven_ones_get_half_of_the_turns_while_proven_ones_wait() {
        let mut turns = Turns::new();
        for host in 0..6 {
            turns.wait('u', who(Source::V4([10, 0, host, 1]), false));
        }
        for host in 0..3 {
            turns.wait('p', who(Source::V4([10, 1, host, 1]), true));
        }
        let order: Vec<char> = core::iter::from_fn(|| turns.pop(true)).collect();
        assert_eq!(order, ['p', 'u', 'p', 'u', 'p', 'u', 'u', 'u', 'u']);
    }

    #[test]
    fn a_few_that_come_in_rotation_do_not_keep_one_from_its_turn() {
        for others in 1..40_u8 {
            let mut turns = Turns::new();
            let modest = who(Source::V4([192, 0, 2, 1]), true);
            turns.wait(0, modest);
            assert_eq!(turns.pop(true), Some(0));
            turns.wait(0, modest);
            // Each of the others has one request at a time, and comes back when all others had theirs.
            let rotation = (1..=others).cycle().take(200).position(|other| {
                turns.wait(other, who(Source::V4([10, 0, other, 1]), true));
                turns.pop(true) == Some(0)
            });
            assert!(
                rotation.is_some_and(|turn| turn <= usize::from(others)),
                "{others}: {rotation:?}"
            );
        }
    }

    #[test]
    fn thousands_that_come_in_rotation_do_not_keep_one_from_its_turn_either() {
        let mut turns = Turns::new();
        // Each is in a /16 of its own.
        let other = |number: u32| {
            let [_, _, high, low] = number.to_be_bytes();
            who(Source::V4([high + 16, low, 0, 1]), true)
        };
        let modest = who(Source::V4([192, 0, 2, 1]), true);
        turns.wait(0, modest);
        assert_eq!(turns.pop(true), Some(0));
        turns.wait(0, modest);
        // Two of the others always wait, each with one request, and each comes back when all others had theirs.
        turns.wait(1, other(0));
        let rotation = (1..5000_u32).chain(0..5000).cycle().take(20_000).position(|number| {
            turns.wait(1, other(number));
            turns.pop(true) == Some(0)
        });
        assert!(rotation.is_some_and(|turn| turn <= 5000), "{rotation:?}");
        assert!(turns.served.iter().all(|level| level.last.len() <= 2 * LAST_MAX + 10));
    }

    proptest! {
        /// However many networks of one site or of one provider, and however many forged addresses, wait: a proven client
        /// waits for one turn of each at most.
        #[test]
        fn a_modest_client_waits_for_few_turns(
            site in proptest::collection::vec(any::<[u8; 2]>(), 0..60),
            of_provider in any::<bool>(),
            forged in proptest::collection::vec(any::<[u8; 4]>(), 0..60),
            turns_before in 0..40_usize,
        ) {
            let mut turns = Turns::new();
            for [high, low] in site {
                let [site, network] = if of_provider { [high, 0] } else { [0, high] };
                turns.wait(0, who(Source::V6([0x20, 1, 0xd, 0xb8, site, 0, network, low]), true));
            }
            for source in forged {
                turns.wait(1, who(Source::V4(source), false));
            }
            for _ in 0..turns_before {
                turns.pop(true);
            }
            let provider = if of_provider { 0xb9 } else { 0xb8 };
            turns.wait(2, who(Source::V6([0x20, 1, 0xd, provider, 0, 1, 0, 0]), true));
            let before = core::iter::from_fn(|| turns.pop(true)).position(|key| key == 2);
            prop_assert!(before.is_some_and(|before| before <= 2), "{before:?}");
        }
    }
}
