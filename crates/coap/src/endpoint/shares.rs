//! What the peers of each source have of the places for requests: requests that are not answered, and separate responses
//! that are not acknowledged.

use alloc::collections::BTreeMap;

use crate::PeerAddress;
use crate::params::SHARES_KEPT;

/// The part of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) all: usize,
    /// Those of unproven addresses.
    pub(super) unproven: usize,
}

/// The parts of all sources.
#[derive(Debug)]
pub(super) struct Shares<P>(BTreeMap<P, Share>);

impl<P: PeerAddress> Shares<P> {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }
    /// The part of the source of a peer.
    pub(super) fn of(&self, peer: P) -> Share {
        self.0.get(&peer.source()).copied().unwrap_or_default()
    }
    /// A peer takes a place.
    pub(super) fn take(&mut self, peer: P, unproven: bool) {
        let share = self.0.entry(peer.source()).or_default();
        share.all += 1;
        share.unproven += usize::from(unproven);
    }
    /// The place is free again. A few sources without places stay, for their next requests.
    pub(super) fn leave(&mut self, peer: P, unproven: bool) {
        let source = peer.source();
        let Some(share) = self.0.get_mut(&source) else { return };
        share.all -= 1;
        share.unproven -= usize::from(unproven);
        if share.all == 0 && self.0.len() > SHARES_KEPT {
            self.0.remove(&source);
        }
    }
    /// A peer with so many places has proven its address.
    pub(super) fn prove(&mut self, peer: P, places: usize) {
        if let Some(share) = self.0.get_mut(&peer.source()) {
            share.unproven -= places;
        }
    }
    /// All parts.
    #[cfg(test)]
    pub(super) const fn all(&self) -> &BTreeMap<P, Share> {
        &self.0
    }
}
