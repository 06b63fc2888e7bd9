//! Places for requests that take the application time, and their octets.
//!
//! ```text
//!   total     so many requests, and so many octets of their options and bodies; one of any length fits
//!   share     a quarter of both for one peer, half for all unproven addresses together; one of any length
//!             fits, and a peer that is alone may have all
//!   newcomer  5.03; 4.01 with Echo where a proof of its address helps
//! ```

use alloc::collections::BTreeMap;
use core::ops::{AddAssign, SubAssign};

use crate::params::{REQUESTS_PEER_DIVISOR, REQUESTS_UNPROVEN_DIVISOR};

/// A request that has a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<P> {
    peer: P,
    proven: bool,
    octets: usize,
}

/// Why a request gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// The peer has its share, or all places are taken: later there may be one.
    Busy,
    /// Unproven addresses have their share: there is a place once the peer proves its address.
    Unproven,
}

/// Requests, and their octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) requests: usize,
    pub(super) octets: usize,
}

impl Load {
    /// Whether one more request of so many octets stays within a bound. One alone may be of any length.
    const fn admits(self, octets: usize, max: Self) -> bool {
        let fits = self.requests == 0 || self.octets + octets <= max.octets;
        self.requests < max.requests && fits
    }
    /// A part of it, at least one request.
    const fn part(self, divisor: usize) -> Self {
        let requests = self.requests / divisor;
        let requests = if requests == 0 { 1 } else { requests };
        Self { requests, octets: self.octets / divisor }
    }
}

impl AddAssign<usize> for Load {
    fn add_assign(&mut self, octets: usize) {
        self.requests += 1;
        self.octets += octets;
    }
}

impl SubAssign<usize> for Load {
    fn sub_assign(&mut self, octets: usize) {
        self.requests -= 1;
        self.octets -= octets;
    }
}

/// The places of a server.
#[derive(Debug)]
pub(super) struct Places<P> {
    taken: Load,
    unproven: Load,
    by_peer: BTreeMap<P, Load>,
    max: Load,
}

impl<P: Ord + Copy> Places<P> {
    pub(super) fn new(max: Load) -> Self {
        let (taken, unproven, by_peer) = (Load::default(), Load::default(), BTreeMap::new());
        Self { taken, unproven, by_peer, max: max.part(1) }
    }
    /// A place for a request of `peer`. `alone` says that this peer is the only one there can be, as on
    /// a connection.
    pub(super) fn take(
        &mut self,
        peer: P,
        octets: usize,
        proven: bool,
        alone: bool,
    ) -> Result<Place<P>, NoPlace> {
        let share = if alone { self.max } else { self.max.part(REQUESTS_PEER_DIVISOR) };
        let own = self.by_peer.get(&peer).copied().unwrap_or_default();
        if !self.taken.admits(octets, self.max) || !own.admits(octets, share) {
            return Err(NoPlace::Busy);
        }
        if !proven {
            if !self.unproven.admits(octets, self.max.part(REQUESTS_UNPROVEN_DIVISOR)) {
                return Err(NoPlace::Unproven);
            }
            self.unproven += octets;
        }
        self.taken += octets;
        *self.by_peer.entry(peer).or_default() += octets;
        Ok(Place { peer, proven, octets })
    }
    /// The request is answered.
    pub(super) fn leave(&mut self, place: Place<P>) {
        let Place { peer, proven, octets } = place;
        self.taken -= octets;
        if !proven {
            self.unproven -= octets;
        }
        if let Some(own) = self.by_peer.get_mut(&peer) {
            *own -= octets;
            if own.requests == 0 {
                self.by_peer.remove(&peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// So many places, and 1600 octets.
    fn places(requests: usize) -> Places<u8> {
        Places::new(Load { requests, octets: 1600 })
    }

    #[test]
    fn one_peer_takes_a_quarter_and_the_next_gets_a_place() {
        let mut places = places(16);
        let taken: Vec<_> = (0..5).map(|_| places.take(1, 0, true, false)).collect();
        assert!(taken[..4].iter().all(Result::is_ok));
        assert_eq!(taken[4], Err(NoPlace::Busy));
        assert!(places.take(2, 0, true, false).is_ok());
        places.leave(taken[0].expect("taken"));
        assert!(places.take(1, 0, true, false).is_ok());
    }

    #[test]
    fn unproven_addresses_take_half_and_the_proven_get_the_rest() {
        let mut places = places(16);
        assert!((0..8).all(|peer| places.take(peer, 0, false, false).is_ok()));
        assert_eq!(places.take(8, 0, false, false), Err(NoPlace::Unproven));
        assert!((20..28).all(|peer| places.take(peer, 0, true, false).is_ok()));
        assert_eq!(places.take(28, 0, true, false), Err(NoPlace::Busy));
        assert_eq!(places.take(8, 0, false, false), Err(NoPlace::Busy), "a proof would not help");
    }

    #[test]
    fn a_peer_alone_may_have_all_places() {
        let mut places = places(4);
        let taken: Vec<_> = (0..4).map(|_| places.take(1, 0, true, true).expect("free")).collect();
        assert_eq!(places.take(1, 0, true, true), Err(NoPlace::Busy));
        for place in taken {
            places.leave(place);
        }
        assert_eq!((places.taken, places.by_peer.len()), (Load::default(), 0));
    }

    #[test]
    fn long_requests_have_a_total_and_a_share_of_octets() {
        let mut places = places(16);
        let first = places.take(1, 400, true, false).expect("a quarter");
        assert_eq!(places.take(1, 1, true, false), Err(NoPlace::Busy), "past the share of a peer");
        for peer in 2..4 {
            assert!(places.take(peer, 400, false, false).is_ok());
        }
        assert_eq!(places.take(4, 1, false, false), Err(NoPlace::Unproven), "past half of all");
        assert!(places.take(4, 400, true, false).is_ok());
        assert_eq!(places.take(5, 1, true, false), Err(NoPlace::Busy), "past the total");
        places.leave(first);
        assert!(places.take(5, 400, true, false).is_ok());
    }

    #[test]
    fn one_request_of_any_length_finds_a_place_where_nothing_else_is() {
        let mut places = places(16);
        let long = places.take(1, 5000, false, false).expect("alone");
        assert_eq!(places.take(2, 1, true, false), Err(NoPlace::Busy));
        places.leave(long);
        assert!(places.take(2, 1, true, false).is_ok());
        assert_eq!((places.taken, places.unproven.requests), (Load { requests: 1, octets: 1 }, 0));
    }
}
