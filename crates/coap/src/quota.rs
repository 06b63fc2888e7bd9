//! A bounded map in which every peer has a share, so that one peer cannot take the places of all others.
//!
//! ```text
//!   total        octets of all values; past it the least recently used value leaves,
//!                those of unproven addresses before those of proven ones
//!   share        octets of one peer's values; past it that peer's least recently used value leaves
//!   newcomer     refused only if it is longer than the share, or if it comes from an unproven address
//!                and all that could leave is of proven ones
//! ```

use alloc::collections::BTreeMap;

use crate::params::QUOTA_ENTRY_OCTETS;

/// A place in the order of use: values of unproven addresses first, then by use.
type Use = (bool, u64);

#[derive(Debug)]
struct Entry<V> {
    value: V,
    octets: usize,
    used: Use,
}

/// What one peer keeps here.
#[derive(Debug, Default)]
struct Share<K> {
    octets: usize,
    by_use: BTreeMap<u64, K>,
}

/// Values by peer and key, bounded in octets over all peers and for each.
#[derive(Debug)]
pub(crate) struct QuotaMap<P, K, V> {
    entries: BTreeMap<(P, K), Entry<V>>,
    by_use: BTreeMap<Use, (P, K)>,
    shares: BTreeMap<P, Share<K>>,
    octets: usize,
    octets_max: usize,
    share_max: usize,
    serial: u64,
}

impl<P: Ord + Copy, K: Ord + Clone, V> QuotaMap<P, K, V> {
    /// At most `octets_max` octets over all peers, and `share_max` of each.
    pub(crate) const fn new(octets_max: usize, share_max: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            by_use: BTreeMap::new(),
            shares: BTreeMap::new(),
            octets: 0,
            octets_max,
            share_max,
            serial: 0,
        }
    }
    /// Octets of all values, with what each costs beside them.
    pub(crate) const fn octets(&self) -> usize {
        self.octets
    }
    /// Forgets all values.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.octets_max, self.share_max);
    }
    /// A value, which counts as used now.
    pub(crate) fn get(&mut self, place: &(P, K)) -> Option<&mut V> {
        let entry = self.entries.get_mut(place)?;
        self.serial += 1;
        let used = (entry.used.0, self.serial);
        let before = core::mem::replace(&mut entry.used, used);
        if let Some(place) = self.by_use.remove(&before) {
            self.by_use.insert(used, place);
        }
        if let Some(share) = self.shares.get_mut(&place.0)
            && let Some(key) = share.by_use.remove(&before.1)
        {
            share.by_use.insert(used.1, key);
        }
        Some(&mut entry.value)
    }
    /// Keeps a value of `octets` octets in place of an earlier one; false if there is no place for it.
    ///
    /// `proven` says that the peer has shown that it receives at its address.
    pub(crate) fn insert(&mut self, place: (P, K), value: V, octets: usize, proven: bool) -> bool {
        let octets = octets + QUOTA_ENTRY_OCTETS;
        self.remove(&place);
        if octets > self.share_max.min(self.octets_max) {
            return false;
        }
        while self.of(place.0) + octets > self.share_max {
            let oldest = self.shares.get(&place.0).and_then(|share| share.by_use.first_key_value());
            let Some(key) = oldest.map(|(_, key)| key.clone()) else { break };
            self.remove(&(place.0, key));
        }
        while self.octets + octets > self.octets_max {
            let Some((used, oldest)) = self.by_use.first_key_value() else { break };
            if used.0 && !proven {
                return false;
            }
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
        self.serial += 1;
        let used = (proven, self.serial);
        let share = self
            .shares
            .entry(place.0)
            .or_insert_with(|| Share { octets: 0, by_use: BTreeMap::new() });
        share.octets += octets;
        share.by_use.insert(used.1, place.1.clone());
        self.octets += octets;
        self.by_use.insert(used, place.clone());
        self.entries.insert(place, Entry { value, octets, used });
        true
    }
    /// Takes a value out.
    pub(crate) fn remove(&mut self, place: &(P, K)) -> Option<V> {
        let Entry { value, octets, used } = self.entries.remove(place)?;
        self.octets -= octets;
        self.by_use.remove(&used);
        if let Some(share) = self.shares.get_mut(&place.0) {
            share.octets -= octets;
            share.by_use.remove(&used.1);
            if share.by_use.is_empty() {
                self.shares.remove(&place.0);
            }
        }
        Some(value)
    }
    /// Octets of one peer's values.
    fn of(&self, peer: P) -> usize {
        self.shares.get(&peer).map_or(0, |share| share.octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: usize = QUOTA_ENTRY_OCTETS;

    /// Room for four empty values, two of each peer.
    fn map() -> QuotaMap<u8, u8, u8> {
        QuotaMap::new(4 * COST, 2 * COST)
    }

    #[test]
    fn a_peer_past_its_share_loses_its_own_least_recently_used_value() {
        let mut map = map();
        assert!(map.insert((9, 0), 0, 0, false));
        for key in 0..2 {
            assert!(map.insert((1, key), key, 0, false));
        }
        assert_eq!(map.get(&(1, 0)), Some(&mut 0));
        assert!(map.insert((1, 2), 2, 0, false));
        let left: Vec<bool> = (0..3).map(|key| map.get(&(1, key)).is_some()).collect();
        assert_eq!(left, [true, false, true]);
        assert!(map.get(&(9, 0)).is_some(), "another peer's");
    }

    #[test]
    fn past_the_total_unproven_addresses_lose_first() {
        let mut map = map();
        assert!(map.insert((1, 0), 0, 0, true));
        for peer in 2..5 {
            assert!(map.insert((peer, 0), 0, 0, false));
        }
        assert!(map.insert((5, 0), 0, 0, true));
        assert!(map.get(&(1, 0)).is_some() && map.get(&(2, 0)).is_none());
        assert_eq!(map.octets(), 4 * COST);
    }

    #[test]
    fn an_unproven_newcomer_displaces_no_proven_peer() {
        let mut map = map();
        assert!((1..5).all(|peer| map.insert((peer, 0), 0, 0, true)));
        assert!(!map.insert((5, 0), 0, 0, false));
        assert!(map.insert((6, 0), 0, 0, true), "a proven one takes the oldest place");
        assert!(map.get(&(1, 0)).is_none());
    }

    #[test]
    fn a_value_longer_than_a_share_is_refused_and_leaves_the_others_alone() {
        let mut map = map();
        assert!(map.insert((1, 0), 0, 0, false));
        assert!(!map.insert((1, 1), 1, COST + 1, false));
        assert!(map.get(&(1, 0)).is_some());
        assert_eq!((map.remove(&(1, 0)), map.octets(), map.shares.len()), (Some(0), 0, 0));
    }
}
