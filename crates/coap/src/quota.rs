//! A bounded map in which every source has a share, so that one machine cannot take the places of all others.
//!
//! ```text
//!   total        octets of all values; past it the least recently used value leaves,
//!                those of unproven addresses before those of proven ones
//!   share        octets of one source's values; past it one of that source leaves, likewise
//!   newcomer     refused only if it is longer than the share, or if it comes from an unproven address
//!                and all that could leave is of proven ones, used within EXCHANGE_LIFETIME
//! ```

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::PeerAddress;
use lowmesh_units::{Duration, Instant};

use crate::params::{EXCHANGE_LIFETIME, QUOTA_ENTRY_OCTETS};

/// A place in the order of use: values of unproven addresses first, then by use.
type Use = (bool, u64);

#[derive(Debug)]
struct Entry<V> {
    value: V,
    octets: usize,
    used: Use,
    /// When it was used last.
    at: Instant,
}

/// What one source keeps here.
#[derive(Debug)]
struct Share {
    octets: usize,
    // The keys are in `QuotaMap::by_use` only. Most sources have one value, and a node of a tree allocates eleven slots.
    by_use: BTreeSet<Use>,
}

/// Values by peer and key, bounded in octets over all peers and for each source.
#[derive(Debug)]
pub(crate) struct QuotaMap<P, K, V> {
    entries: BTreeMap<(P, K), Entry<V>>,
    by_use: BTreeMap<Use, (P, K)>,
    shares: BTreeMap<P, Share>,
    octets: usize,
    octets_max: usize,
    share_max: usize,
    serial: u64,
    /// A value that was used less than this ago is in use.
    lifetime: Duration,
}

impl<P: PeerAddress, K: Ord + Clone, V> QuotaMap<P, K, V> {
    /// At most `octets_max` octets over all peers, and `share_max` of each source.
    pub(crate) const fn new(octets_max: usize, share_max: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            by_use: BTreeMap::new(),
            shares: BTreeMap::new(),
            octets: 0,
            octets_max,
            share_max,
            serial: 0,
            lifetime: EXCHANGE_LIFETIME,
        }
    }
    /// Values are in use for `lifetime` at least.
    pub(crate) fn widen(&mut self, lifetime: Duration) {
        self.lifetime = self.lifetime.max(lifetime);
    }
    /// How long a value is in use.
    pub(crate) const fn lifetime(&self) -> Duration {
        self.lifetime
    }
    /// Octets of all values, with what each costs beside them.
    pub(crate) const fn octets(&self) -> usize {
        self.octets
    }
    /// Forgets all values.
    pub(crate) fn clear(&mut self) {
        let lifetime = self.lifetime;
        *self = Self { lifetime, ..Self::new(self.octets_max, self.share_max) };
    }
    /// A value, which counts as used now.
    pub(crate) fn get(&mut self, place: &(P, K), now: Instant) -> Option<&mut V> {
        let entry = self.entries.get_mut(place)?;
        self.serial += 1;
        let used = (entry.used.0, self.serial);
        let before = core::mem::replace(&mut entry.used, used);
        entry.at = now;
        if let Some(place) = self.by_use.remove(&before) {
            self.by_use.insert(used, place);
        }
        if let Some(share) = self.shares.get_mut(&place.0.source())
            && share.by_use.remove(&before)
        {
            share.by_use.insert(used);
        }
        Some(&mut entry.value)
    }
    /// Keeps a value of `octets` octets in place of an earlier one; false if there is no place for it.
    ///
    /// `proven` says that the peer has shown that it receives at its address.
    pub(crate) fn insert(
        &mut self,
        place: (P, K),
        value: V,
        octets: usize,
        proven: bool,
        now: Instant,
    ) -> bool {
        let (octets, source) = (octets + QUOTA_ENTRY_OCTETS, place.0.source());
        self.remove(&place);
        if octets > self.share_max.min(self.octets_max) {
            return false;
        }
        while self.of(source) + octets > self.share_max {
            let first = self.shares.get(&source).and_then(|share| share.by_use.first());
            let first = first.and_then(|used| self.by_use.get(used)).cloned();
            if !self.displace(first, proven, now) {
                return false;
            }
        }
        while self.octets + octets > self.octets_max {
            let first = self.by_use.values().next().cloned();
            if !self.displace(first, proven, now) {
                return false;
            }
        }
        self.serial += 1;
        let used = (proven, self.serial);
        let empty = || Share { octets: 0, by_use: BTreeSet::new() };
        let share = self.shares.entry(source).or_insert_with(empty);
        share.octets += octets;
        share.by_use.insert(used);
        self.octets += octets;
        self.by_use.insert(used, place.clone());
        self.entries.insert(place, Entry { value, octets, used, at: now });
        true
    }
    /// Forgets a value in favour of a peer that is proven or not; false if it has to stay.
    fn displace(&mut self, place: Option<(P, K)>, proven: bool, now: Instant) -> bool {
        let Some((place, entry)) = place.and_then(|place| {
            let entry = self.entries.get(&place)?;
            Some((place, entry))
        }) else {
            return false;
        };
        let is_in_use = now.since(entry.at) < self.lifetime;
        if entry.used.0 && is_in_use && !proven {
            return false;
        }
        self.remove(&place).is_some()
    }
    /// Takes a value out.
    pub(crate) fn remove(&mut self, place: &(P, K)) -> Option<V> {
        let Entry { value, octets, used, .. } = self.entries.remove(place)?;
        self.octets -= octets;
        self.by_use.remove(&used);
        let source = place.0.source();
        if let Some(share) = self.shares.get_mut(&source) {
            share.octets -= octets;
            share.by_use.remove(&used);
            if share.by_use.is_empty() {
                self.shares.remove(&source);
            }
        }
        Some(value)
    }
    /// Forgets all values of a peer.
    pub(crate) fn remove_peer(&mut self, peer: P) {
        let Some(share) = self.shares.get(&peer.source()) else { return };
        let places = share.by_use.iter().filter_map(|used| self.by_use.get(used));
        let own = places.filter(|(one, _)| *one == peer);
        for place in own.cloned().collect::<Vec<_>>() {
            self.remove(&place);
        }
    }
    /// Octets of one source's values.
    fn of(&self, source: P) -> usize {
        self.shares.get(&source).map_or(0, |share| share.octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: usize = QUOTA_ENTRY_OCTETS;
    const T0: Instant = Instant::ZERO;

    /// Room for four empty values, two of each peer.
    fn map() -> QuotaMap<u8, u8, u8> {
        QuotaMap::new(4 * COST, 2 * COST)
    }

    #[test]
    fn a_peer_past_its_share_loses_its_own_least_recently_used_value() {
        let mut map = map();
        assert!(map.insert((9, 0), 0, 0, false, T0));
        for key in 0..2 {
            assert!(map.insert((1, key), key, 0, false, T0));
        }
        assert_eq!(map.get(&(1, 0), T0), Some(&mut 0));
        assert!(map.insert((1, 2), 2, 0, false, T0));
        let left: Vec<bool> = (0..3).map(|key| map.get(&(1, key), T0).is_some()).collect();
        assert_eq!(left, [true, false, true]);
        assert!(map.get(&(9, 0), T0).is_some(), "another peer's");
    }

    #[test]
    fn all_ports_of_an_address_have_one_share_and_forged_ones_displace_no_proven_one() {
        let mut map = QuotaMap::<(u8, u16), u8, u8>::new(6 * COST, 2 * COST);
        assert!(map.insert(((9, 1), 0), 0, 0, false, T0));
        assert!((1..=5).all(|port| map.insert(((1, port), 0), 0, 0, false, T0)));
        let left: Vec<u16> =
            (1..=5).filter(|port| map.get(&((1, *port), 0), T0).is_some()).collect();
        assert_eq!(left, [4, 5]);
        assert!((6..=7).all(|port| map.insert(((1, port), 0), 0, 0, true, T0)));
        assert!(!map.insert(((1, 8), 0), 0, 0, false, T0), "its share is of proven ports");
        assert!(map.insert(((1, 8), 0), 0, 0, true, T0));
        assert!(map.get(&((9, 1), 0), T0).is_some(), "another address");
        let later = T0 + EXCHANGE_LIFETIME;
        assert!(map.insert(((1, 9), 0), 0, 0, false, later), "nobody comes back for the old ones");
    }

    #[test]
    fn a_peer_that_goes_takes_its_values_along_and_no_others() {
        let mut map = QuotaMap::<(u8, u16), u8, u8>::new(9 * COST, 9 * COST);
        for (port, key) in [(1, 0), (1, 1), (2, 0)] {
            assert!(map.insert(((1, port), key), 0, 0, false, T0));
        }
        map.remove_peer((1, 1));
        map.remove_peer((2, 1));
        assert_eq!(map.octets(), COST);
        assert!(map.get(&((1, 2), 0), T0).is_some(), "another port of its address");
    }

    #[test]
    fn past_the_total_unproven_addresses_lose_first() {
        let mut map = map();
        assert!(map.insert((1, 0), 0, 0, true, T0));
        for peer in 2..5 {
            assert!(map.insert((peer, 0), 0, 0, false, T0));
        }
        assert!(map.insert((5, 0), 0, 0, true, T0));
        assert!(map.get(&(1, 0), T0).is_some() && map.get(&(2, 0), T0).is_none());
        assert_eq!(map.octets(), 4 * COST);
    }

    #[test]
    fn an_unproven_newcomer_displaces_no_proven_peer() {
        let mut map = map();
        assert!((1..5).all(|peer| map.insert((peer, 0), 0, 0, true, T0)));
        assert!(!map.insert((5, 0), 0, 0, false, T0));
        assert!(map.insert((6, 0), 0, 0, true, T0), "a proven one takes the oldest place");
        assert!(map.get(&(1, 0), T0).is_none());
    }

    #[test]
    fn a_value_longer_than_a_share_is_refused_and_leaves_the_others_alone() {
        let mut map = map();
        assert!(map.insert((1, 0), 0, 0, false, T0));
        assert!(!map.insert((1, 1), 1, COST + 1, false, T0));
        assert!(map.get(&(1, 0), T0).is_some());
        assert_eq!((map.remove(&(1, 0)), map.octets(), map.shares.len()), (Some(0), 0, 0));
    }
}
