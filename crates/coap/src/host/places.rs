//! Places for requests that take the application time: so many over all peers, a share for each peer, and
//! a share for all unproven addresses together.

use alloc::collections::BTreeMap;

use crate::params::{REQUESTS_PEER_DIVISOR, REQUESTS_UNPROVEN_DIVISOR};

/// A request that has a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<P> {
    peer: P,
    proven: bool,
}

/// Why a request gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// The peer has its share, or all places are taken: later there may be one.
    Busy,
    /// Unproven addresses have their share: there is a place once the peer proves its address.
    Unproven,
}

/// The places of a server.
#[derive(Debug)]
pub(super) struct Places<P> {
    taken: usize,
    unproven: usize,
    by_peer: BTreeMap<P, usize>,
    max: usize,
}

impl<P: Ord + Copy> Places<P> {
    pub(super) const fn new(max: usize) -> Self {
        let max = if max == 0 { 1 } else { max };
        Self { taken: 0, unproven: 0, by_peer: BTreeMap::new(), max }
    }
    /// A place for a request of `peer`. `alone` says that this peer is the only one there can be, as on
    /// a connection.
    pub(super) fn take(&mut self, peer: P, proven: bool, alone: bool) -> Result<Place<P>, NoPlace> {
        let share = if alone { self.max } else { (self.max / REQUESTS_PEER_DIVISOR).max(1) };
        let unproven_max = (self.max / REQUESTS_UNPROVEN_DIVISOR).max(1);
        let own = self.by_peer.get(&peer).copied().unwrap_or(0);
        if self.taken >= self.max || own >= share {
            return Err(NoPlace::Busy);
        }
        if !proven && self.unproven >= unproven_max {
            return Err(NoPlace::Unproven);
        }
        self.taken += 1;
        self.unproven += usize::from(!proven);
        self.by_peer.insert(peer, own + 1);
        Ok(Place { peer, proven })
    }
    /// The request is answered.
    pub(super) fn leave(&mut self, place: Place<P>) {
        let Place { peer, proven } = place;
        self.taken -= 1;
        self.unproven -= usize::from(!proven);
        if let Some(own) = self.by_peer.get_mut(&peer) {
            *own -= 1;
            if *own == 0 {
                self.by_peer.remove(&peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn one_peer_takes_a_quarter_and_the_next_gets_a_place() {
        let mut places = Places::new(16);
        let taken: Vec<_> = (0..5).map(|_| places.take(1, true, false)).collect();
        assert!(taken[..4].iter().all(Result::is_ok));
        assert_eq!(taken[4], Err(NoPlace::Busy));
        assert!(places.take(2, true, false).is_ok());
        places.leave(taken[0].expect("taken"));
        assert!(places.take(1, true, false).is_ok());
    }

    #[test]
    fn unproven_addresses_take_half_and_the_proven_get_the_rest() {
        let mut places = Places::new(16);
        assert!((0..8).all(|peer| places.take(peer, false, false).is_ok()));
        assert_eq!(places.take(8, false, false), Err(NoPlace::Unproven));
        assert!((20..28).all(|peer| places.take(peer, true, false).is_ok()));
        assert_eq!(places.take(28, true, false), Err(NoPlace::Busy));
        assert_eq!(places.take(8, false, false), Err(NoPlace::Busy), "a proof would not help");
    }

    #[test]
    fn a_peer_alone_may_have_all_places() {
        let mut places = Places::new(4);
        let taken: Vec<_> = (0..4).map(|_| places.take(1, true, true).expect("free")).collect();
        assert_eq!(places.take(1, true, true), Err(NoPlace::Busy));
        for place in taken {
            places.leave(place);
        }
        assert_eq!((places.taken, places.by_peer.len()), (0, 0));
    }
}
