//! The peers of an endpoint, by address.
//!
//! A datagram and its answer ask for the same peer some ten times, so a peer is found by a hash of its address. The hash
//! has a random key, and nothing goes through the peers in its order.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::RangeBounds;

use hashbrown::HashMap;

use crate::PeerAddress;
use crate::peer::Peer;

/// A table of peers, in the order of their addresses.
#[derive(Debug)]
pub(super) struct Peers<P> {
    places: HashMap<P, usize>,
    /// The same, in the order of the addresses.
    ordered: BTreeMap<P, usize>,
    /// What is kept of each, at its place.
    states: Vec<Option<Peer>>,
    free: Vec<usize>,
}

impl<P: PeerAddress> Peers<P> {
    pub(super) fn new() -> Self {
        let (places, ordered) = (HashMap::new(), BTreeMap::new());
        Self { places, ordered, states: Vec::new(), free: Vec::new() }
    }
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
    fn state(&self, place: usize) -> Option<&Peer> {
        self.states.get(place)?.as_ref()
    }
    pub(super) fn get(&self, address: &P) -> Option<&Peer> {
        self.state(*self.places.get(address)?)
    }
    pub(super) fn get_mut(&mut self, address: &P) -> Option<&mut Peer> {
        self.states.get_mut(*self.places.get(address)?)?.as_mut()
    }
    /// Adds a peer that is not in the table.
    pub(super) fn insert(&mut self, address: P, peer: Peer) {
        debug_assert!(!self.places.contains_key(&address), "a peer has one state");
        let place = self.free.pop().unwrap_or(self.states.len());
        if place == self.states.len() {
            self.states.push(Some(peer));
        } else {
            self.states[place] = Some(peer);
        }
        self.places.insert(address, place);
        self.ordered.insert(address, place);
    }
    pub(super) fn remove(&mut self, address: &P) -> Option<Peer> {
        let place = self.places.remove(address)?;
        self.ordered.remove(address);
        self.free.push(place);
        self.states.get_mut(place)?.take()
    }
    /// The peers whose addresses lie in a range, in their order.
    pub(super) fn range(&self, range: impl RangeBounds<P>) -> impl Iterator<Item = (&P, &Peer)> {
        let within = self.ordered.range(range);
        within.filter_map(|(address, place)| Some((address, self.state(*place)?)))
    }
    /// All peers, in the order of their addresses.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&P, &Peer)> {
        self.range(..)
    }
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
    }
}
