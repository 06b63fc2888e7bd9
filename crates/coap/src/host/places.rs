//! Places for requests that take the application time, and their octets.
//!
//! ```text
//!   total     a number of requests, and of octets of their options and bodies
//!   share     a quarter of both for one source, or all for a peer that is alone; half of the total and of
//!             each share for unproven addresses, so that forged ones leave a source the other half
//!   newcomer  5.03; 4.01 with Echo if a proof of its address helps
//! ```
//! A request alone may be of any length.

use alloc::collections::BTreeMap;
use core::ops::{AddAssign, SubAssign};

use crate::PeerAddress;
use crate::params::{REQUESTS_SOURCE_DIVISOR, REQUESTS_UNPROVEN_DIVISOR};

/// A request that has a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<P> {
    source: P,
    proven: bool,
    octets: usize,
}

/// Why a request gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// The source has its share, or all places are taken: there may be a place later.
    Busy,
    /// Unproven addresses have their part: a peer that proves its address gets a place.
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

/// What is taken of a bound, and how much of that by unproven addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taken {
    all: Load,
    unproven: Load,
}

impl Taken {
    /// Whether one more request stays within a bound, of which unproven addresses have a part.
    fn admits(self, octets: usize, proven: bool, max: Load) -> Result<(), NoPlace> {
        if !self.all.admits(octets, max) {
            return Err(NoPlace::Busy);
        }
        if !proven && !self.unproven.admits(octets, max.part(REQUESTS_UNPROVEN_DIVISOR)) {
            return Err(NoPlace::Unproven);
        }
        Ok(())
    }
    fn add(&mut self, octets: usize, proven: bool) {
        self.all += octets;
        if !proven {
            self.unproven += octets;
        }
    }
    fn subtract(&mut self, octets: usize, proven: bool) {
        self.all -= octets;
        if !proven {
            self.unproven -= octets;
        }
    }
}

/// The places of a server.
#[derive(Debug)]
pub(super) struct Places<P> {
    taken: Taken,
    by_source: BTreeMap<P, Taken>,
    max: Load,
}

impl<P: PeerAddress> Places<P> {
    pub(super) fn new(max: Load) -> Self {
        Self { taken: Taken::default(), by_source: BTreeMap::new(), max: max.part(1) }
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
        let source = peer.source();
        let share = if alone { self.max } else { self.max.part(REQUESTS_SOURCE_DIVISOR) };
        let own = self.by_source.get(&source).copied().unwrap_or_default();
        let of_all = self.taken.admits(octets, proven, self.max);
        let of_own = own.admits(octets, proven, share);
        // A proof helps only if it helps with both.
        if [of_all, of_own].contains(&Err(NoPlace::Busy)) {
            return Err(NoPlace::Busy);
        }
        of_all.and(of_own)?;
        self.taken.add(octets, proven);
        self.by_source.entry(source).or_default().add(octets, proven);
        Ok(Place { source, proven, octets })
    }
    /// The request is answered.
    pub(super) fn leave(&mut self, place: Place<P>) {
        let Place { source, proven, octets } = place;
        self.taken.subtract(octets, proven);
        if let Some(own) = self.by_source.get_mut(&source) {
            own.subtract(octets, proven);
            if own.all.requests == 0 {
                self.by_source.remove(&source);
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
    fn all_ports_of_an_address_are_one_source() {
        let mut places = Places::<(u8, u16)>::new(Load { requests: 16, octets: 1600 });
        let taken: Vec<_> = (1..=3).map(|port| places.take((1, port), 0, false, false)).collect();
        assert_eq!(taken[2], Err(NoPlace::Unproven), "half of its share needs no proof");
        let proven: Vec<_> = (1..=3).map(|port| places.take((1, port), 0, true, false)).collect();
        assert_eq!(proven[2], Err(NoPlace::Busy));
        assert_eq!(places.take((1, 9), 0, false, false), Err(NoPlace::Busy), "a proof is no help");
        assert!(places.take((2, 1), 0, false, false).is_ok());
        places.leave(proven[0].expect("taken"));
        assert!(places.take((1, 9), 0, true, false).is_ok());
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
        assert_eq!((places.taken, places.by_source.len()), (Taken::default(), 0));
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
        let left = Taken { all: Load { requests: 1, octets: 1 }, unproven: Load::default() };
        assert_eq!(places.taken, left);
    }
}
