//! Which frame goes out in which cell.
//!
//! | cell's peer | may carry, first match wins                                                        |
//! |-------------|------------------------------------------------------------------------------------|
//! | a neighbour | frames to it                                                                       |
//! | anyone      | a beacon that is due; broadcast; frames to a neighbour that has no cell of its own |
//!
//! In shared cells the backoff of the destination applies. When the schedule has cells to everyone that
//! are not shared (Orchestra's and ALICE's beacon cells), beacons keep to those and nothing else enters them.

use lowmesh_units::{Asn, Eui64};

use super::cell::{Cell, CellId, CellOptions};
use super::schedule::Schedule;
use crate::queue::Queues;

/// What a cell is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// A beacon.
    Beacon,
    /// The first frame to everyone.
    Broadcast,
    /// The first frame to this neighbour.
    Unicast(Eui64),
}

/// A decision for one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// In this cell,
    pub cell: CellId,
    /// on this channel offset,
    pub channel_offset: u16,
    /// this goes out.
    pub traffic: Traffic,
    /// Others may send here too.
    pub shared: bool,
}

/// All that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The cells.
    pub schedule: &'a Schedule,
    /// The frames.
    pub queues: &'a Queues,
    /// From when on a beacon is due, if this node sends beacons.
    pub beacon_due: Option<Asn>,
}

impl Situation<'_> {
    /// What to send in slot `asn`, if anything.
    pub fn choose(&self, asn: Asn) -> Option<Choice> {
        let exclusive = self.has_beacon_cells();
        self.schedule.at(asn).filter(|(cell, _)| cell.options.has(CellOptions::TX)).find_map(
            |(cell, channel_offset)| {
                let (_, traffic) =
                    self.candidates(cell, exclusive).find(|(ready, _)| *ready <= asn)?;
                let shared = cell.options.has(CellOptions::SHARED);
                Some(Choice { cell: cell.id, channel_offset, traffic, shared })
            },
        )
    }

    /// The first slot at or after `from` in which there is something to send.
    pub fn next(&self, from: Asn) -> Option<Asn> {
        if self.queues.held() == 0 && self.beacon_due.is_none() {
            return None;
        }
        let exclusive = self.has_beacon_cells();
        let sending = self.schedule.cells().filter(|c| c.options.has(CellOptions::TX));
        sending
            .filter_map(|cell| {
                let ready = self.candidates(cell, exclusive).map(|(ready, _)| ready).min()?;
                Some(self.schedule.next_occurrence(cell, from.max(ready)))
            })
            .min()
    }

    /// What `cell` could carry, by precedence, and from when on.
    fn candidates(
        &self,
        cell: &Cell,
        exclusive: bool,
    ) -> impl Iterator<Item = (Asn, Traffic)> + '_ {
        let shared = cell.options.has(CellOptions::SHARED);
        let ready = move |until: Asn| if shared { until } else { Asn(0) };
        let to_all = cell.peer.is_none();
        let beacon = self.beacon_due.filter(|_| to_all && exclusive != shared);
        let own = cell.peer.and_then(|peer| {
            let queue = self.queues.get(Some(peer)).filter(|q| !q.is_empty())?;
            Some((ready(queue.backoff.until), Traffic::Unicast(peer)))
        });
        let broadcast = self.queues.get(None).filter(|q| to_all && shared && !q.is_empty());
        let others = self
            .queues
            .busy()
            .filter(move |(peer, _)| to_all && shared && !self.schedule.has_tx_to(*peer));
        beacon
            .map(|due| (due, Traffic::Beacon))
            .into_iter()
            .chain(own)
            .chain(broadcast.map(move |q| (ready(q.backoff.until), Traffic::Broadcast)))
            .chain(others.map(move |(p, q)| (ready(q.backoff.until), Traffic::Unicast(p))))
    }

    /// True when some cells are there for beacons alone.
    fn has_beacon_cells(&self) -> bool {
        self.schedule.cells().any(|c| {
            c.peer.is_none()
                && c.options.has(CellOptions::TX)
                && !c.options.has(CellOptions::SHARED)
        })
    }
}
