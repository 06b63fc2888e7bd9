//! What a node has yet to tell its parent (RFC 6550 s9.5).
//!
//! Targets that a DAO has to report wait in one ordered map; a DAO carries a few of them, and only one DAO is on its way
//! at a time, so a large sub-DODAG moves to a new parent at the pace of its acknowledgements.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_wire::rpl::Address;

use crate::Sequence;
use crate::params;

/// What a DAO will say about a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Advert {
    pub(crate) path_sequence: Sequence,
    /// 0 is a No-Path.
    pub(crate) path_lifetime: u8,
}

/// A DAO that waits for its DAO-ACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InFlight {
    pub(crate) sequence: Sequence,
    pub(crate) to: Address,
    pub(crate) adverts: Vec<(Address, Advert)>,
    pub(crate) retries: u8,
}

/// The sending side.
#[derive(Clone, Debug)]
pub(crate) struct Advertiser {
    pub(crate) pending: BTreeMap<Address, Advert>,
    pub(crate) in_flight: Option<InFlight>,
    /// DAOSequence of the next DAO.
    pub(crate) sequence: Sequence,
    /// Path Sequence of the own address.
    pub(crate) path_sequence: Sequence,
}

impl Advertiser {
    pub(crate) const fn new() -> Self {
        let (sequence, path_sequence) = (Sequence::START, Sequence::START);
        Self { pending: BTreeMap::new(), in_flight: None, sequence, path_sequence }
    }
    /// Forgets what was to be told, but goes on counting: old and new must stay apart.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
        self.in_flight = None;
    }
    /// Puts news of a target in the queue. A farewell gives way to other news when there are `max` of them;
    /// what finds no room comes again with the next refresh.
    pub(crate) fn queue(&mut self, target: Address, advert: Advert, max: usize) {
        if self.pending.len() >= max && !self.pending.contains_key(&target) {
            let is_farewell =
                |(_, told): &(&Address, &Advert)| told.path_lifetime == params::NO_PATH;
            let farewell = self.pending.iter().find(is_farewell).map(|(target, _)| *target);
            let Some(farewell) = farewell else { return };
            self.pending.remove(&farewell);
        }
        self.pending.insert(target, advert);
    }
    /// Drops what a DAO would say about a target.
    pub(crate) fn forget(&mut self, target: &Address) {
        self.pending.remove(target);
    }
    /// How many targets wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.pending.len()
    }
    /// Puts the targets of the DAO on its way back, unless there is newer news of them.
    pub(crate) fn requeue(&mut self) {
        for (target, advert) in self.in_flight.take().into_iter().flat_map(|dao| dao.adverts) {
            self.pending.entry(target).or_insert(advert);
        }
    }
}
