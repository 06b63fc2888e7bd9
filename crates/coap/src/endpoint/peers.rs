//! The peers of an endpoint, by address.
//!
//! A datagram and its answer ask for the same peer some ten times. So the peer that was found last is tried first, and
//! else a peer is found by a hash of its address. The hash has a random key, and nothing goes through the peers in its
//! order.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::ops::RangeBounds;
use core::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::hash_map::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use lowmesh_wire::coap::Token;

use crate::PeerAddress;
use crate::peer::Peer;

/// A table of peers, in the order of their addresses.
#[derive(Debug)]
pub(super) struct Peers<P> {
    hasher: DefaultHashBuilder,
    /// The places of the peers, by the hash of their addresses.
    places: HashTable<usize>,
    /// The same, in the order of the addresses.
    ordered: BTreeMap<P, usize>,
    /// What is kept of each, at its place.
    states: Vec<Option<(P, Peer)>>,
    free: Vec<usize>,
    /// How many peers each source has.
    by_source: HashMap<P, usize>,
    /// The place that was found last; another peer may have it by now. Atomic for the sake of readers alone.
    latest: AtomicUsize,
}

impl<P: PeerAddress> Peers<P> {
    pub(super) fn new() -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            places: HashTable::new(),
            ordered: BTreeMap::new(),
            states: Vec::new(),
            free: Vec::new(),
            by_source: HashMap::new(),
            latest: AtomicUsize::new(0),
        }
    }
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
    fn state(&self, place: usize) -> Option<&Peer> {
        self.states.get(place)?.as_ref().map(|(_, peer)| peer)
    }
    /// Where a peer is.
    #[inline]
    fn place(&self, address: &P) -> Option<usize> {
        let latest = self.latest.load(Ordering::Relaxed);
        if has(&self.states, latest, address) {
            return Some(latest);
        }
        let hash = self.hasher.hash_one(address);
        let place = *self.places.find(hash, |place| has(&self.states, *place, address))?;
        self.latest.store(place, Ordering::Relaxed);
        Some(place)
    }
    #[inline]
    pub(super) fn get(&self, address: &P) -> Option<&Peer> {
        self.state(self.place(address)?)
    }
    #[inline]
    pub(super) fn get_mut(&mut self, address: &P) -> Option<&mut Peer> {
        let place = self.place(address)?;
        self.states.get_mut(place)?.as_mut().map(|(_, peer)| peer)
    }
    /// Adds a peer that is not in the table.
    pub(super) fn insert(&mut self, address: P, peer: Peer) {
        debug_assert!(self.place(&address).is_none(), "a peer has one state");
        let place = self.free.pop().unwrap_or(self.states.len());
        let state = Some((address, peer));
        if place == self.states.len() {
            self.states.push(state);
        } else {
            self.states[place] = state;
        }
        let Self { hasher, places, states, .. } = self;
        let hash_at = |place: &usize| {
            let state = states.get(*place).and_then(Option::as_ref);
            state.map_or(0, |(address, _)| hasher.hash_one(address))
        };
        places.insert_unique(hasher.hash_one(address), place, hash_at);
        self.ordered.insert(address, place);
        *self.by_source.entry(address.source()).or_default() += 1;
    }
    pub(super) fn remove(&mut self, address: &P) -> Option<Peer> {
        let hash = self.hasher.hash_one(address);
        let entry = self.places.find_entry(hash, |place| has(&self.states, *place, address));
        let (place, _) = entry.ok()?.remove();
        self.ordered.remove(address);
        if let Entry::Occupied(mut of_source) = self.by_source.entry(address.source()) {
            *of_source.get_mut() -= 1;
            if *of_source.get() == 0 {
                of_source.remove();
            }
        }
        self.free.push(place);
        self.states.get_mut(place)?.take().map(|(_, peer)| peer)
    }
    /// How many peers a source has.
    pub(super) fn of_source(&self, source: P) -> usize {
        self.by_source.get(&source).copied().unwrap_or_default()
    }
    /// The peers whose addresses lie in a range, in their order.
    pub(super) fn range(&self, range: impl RangeBounds<P>) -> impl Iterator<Item = (&P, &Peer)> {
        let within = self.ordered.range(range);
        within.filter_map(|(address, place)| Some((address, self.state(*place)?)))
    }
    /// True if a request to any of them has the token.
    pub(super) fn have_token(&self, token: &Token) -> bool {
        self.iter().any(|(_, one)| one.by_token(token).is_some())
    }
    /// All peers, in the order of their addresses.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&P, &Peer)> {
        self.range(..)
    }
}

/// Whether the peer at a place has this address.
fn has<P: PartialEq>(states: &[Option<(P, Peer)>], place: usize, address: &P) -> bool {
    matches!(states.get(place), Some(Some((one, _))) if one == address)
}

#[cfg(test)]
mod tests {
    use lowmesh_units::{Instant, NodeId, Purpose as Stream, Rng, Seed};

    use super::*;
    use crate::CongestionControl;

    fn peer() -> Peer {
        let mut rng = Rng::stream(Seed(1), NodeId(1), Stream::Coap);
        Peer::new(
            &CongestionControl::default(),
            crate::Lifetimes::default(),
            Instant::ZERO,
            &mut rng,
        )
    }

    /// The addresses in their order, with what was written to each.
    fn listed(peers: &Peers<u16>) -> Vec<(u16, u8)> {
        peers.iter().map(|(address, one)| (*address, one.strays)).collect()
    }

    #[test]
    fn each_address_has_its_own_state_and_a_range_is_in_order() {
        let mut peers = Peers::new();
        for address in [7, 3, 5] {
            peers.insert(address, peer());
        }
        for (address, strays) in [(3, 1), (7, 2), (7, 3), (5, 4), (3, 5)] {
            peers.get_mut(&address).expect("it is there").strays = strays;
            assert_eq!(peers.get(&address).map(|one| one.strays), Some(strays));
        }
        assert_eq!(listed(&peers), [(3, 5), (5, 4), (7, 3)]);
        assert_eq!(peers.range(4..).map(|(address, _)| *address).collect::<Vec<_>>(), [5, 7]);
    }

    #[test]
    fn a_removed_peer_is_found_no_more_and_its_place_is_taken_by_the_next() {
        let mut peers = Peers::new();
        for address in [1, 2] {
            peers.insert(address, peer());
        }
        peers.get_mut(&1).expect("it is there").strays = 9;
        assert_eq!(peers.remove(&1).map(|one| one.strays), Some(9));
        assert!(peers.get(&1).is_none() && peers.get_mut(&1).is_none());
        assert!(peers.remove(&1).is_none());
        peers.insert(3, peer());
        assert_eq!((peers.len(), peers.states.len()), (2, 2));
        assert_eq!(listed(&peers), [(2, 0), (3, 0)]);
        assert!(peers.get(&1).is_none() && peers.get(&3).is_some());
        assert_eq!([1, 2, 3].map(|source| peers.of_source(source)), [0, 1, 1]);
    }
}
