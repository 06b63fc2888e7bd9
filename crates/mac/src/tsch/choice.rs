//! Which frame goes out in which cell.
//!
//! | cell's peer | may carry, first match wins                                                        |
//! |-------------|------------------------------------------------------------------------------------|
//! | a neighbour | frames to it                                                                       |
//! | anyone      | a beacon that is due; broadcast; frames to a neighbour that has no cell of its own |
//!
//! In shared cells the backoff of the destination applies, and in the minimal cell the node's [`Spacing`] of its beacons
//! and broadcasts, after which they take turns. When the schedule has cells to everyone that
//! are not shared (Orchestra's and ALICE's beacon cells), beacons keep to those and nothing else enters them.

use lowmesh_units::{Asn, Eui64};

use super::cell::{Cell, CellId, CellKind, CellOptions};
use super::schedule::Schedule;
use super::spacing::Spacing;
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
    /// When the minimal cell is free for them.
    pub spacing: Spacing,
}

impl Situation<'_> {
    /// What to send in slot `asn`, if anything.
    pub fn choose(&self, asn: Asn) -> Option<Choice> {
        let exclusive = self.schedule.has_beacon_cells();
        self.schedule.find_at(asn, CellOptions::TX, |cell, channel_offset| {
            let (_, traffic) = self.candidates(cell, exclusive).find(|(ready, _)| *ready <= asn)?;
            let shared = cell.options.has(CellOptions::SHARED);
            Some(Choice { cell: cell.id, channel_offset, traffic, shared })
        })
    }

    /// The first slot at or after `from` in which there is something to send.
    pub fn next(&self, from: Asn) -> Option<Asn> {
        if self.queues.held() == 0 && self.beacon_due.is_none() {
            return None;
        }
        let exclusive = self.schedule.has_beacon_cells();
        // Cells to one neighbour mostly follow each other, so the latest answer is kept.
        let mut latest: Option<(Eui64, Option<Asn>)> = None;
        let mut backoff = |peer: Eui64| match latest {
            Some((known, until)) if known == peer => until,
            _ => {
                let waiting = self.queues.get(Some(peer)).filter(|queue| !queue.is_empty());
                let until = waiting.map(|queue| queue.backoff.until);
                latest = Some((peer, until));
                until
            }
        };
        self.schedule.first_occurrence(from, CellOptions::TX, |cell| match cell.peer {
            // The rule of `candidates` for a cell with a peer.
            Some(peer) => {
                let until = backoff(peer)?;
                Some(if cell.options.has(CellOptions::SHARED) { until } else { Asn(0) })
            }
            None => self.candidates(cell, exclusive).map(|(ready, _)| ready).min(),
        })
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
        // Where beacons have cells of their own, no more than broadcasts share the minimal one.
        let spaced = cell.kind == CellKind::Minimal && shared && !exclusive;
        let spacing = if spaced { self.spacing } else { Spacing::default() };
        let free = move |ready: Asn| ready.max(spacing.from);
        let beacon = self.beacon_due.filter(|_| to_all && exclusive != shared);
        let beacon = beacon.map(|due| (free(due), Traffic::Beacon));
        let own = cell.peer.and_then(|peer| {
            let queue = self.queues.get(Some(peer)).filter(|q| !q.is_empty())?;
            Some((ready(queue.backoff.until), Traffic::Unicast(peer)))
        });
        let broadcast = self.queues.broadcast();
        let broadcast = Some(broadcast).filter(|q| to_all && shared && !q.is_empty());
        let broadcast = broadcast.map(|q| (free(ready(q.backoff.until)), Traffic::Broadcast));
        let (first, second) =
            if spacing.after_beacon { (broadcast, beacon) } else { (beacon, broadcast) };
        let others = self
            .queues
            .busy()
            .filter(move |(peer, _)| to_all && shared && !self.schedule.has_tx_to(*peer));
        // A cell with a peer of its own has neither of the two.
        first
            .into_iter()
            .chain(own)
            .chain(second)
            .chain(others.map(move |(p, q)| (ready(q.backoff.until), Traffic::Unicast(p))))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use lowmesh_machine::Handle;
    use lowmesh_units::{NodeId, Purpose, Rng, Seed};
    use proptest::prelude::*;

    use super::super::cell::{CellKind, CellSpec, Placement};
    use super::*;
    use crate::queue::{Priority, QueuedFrame};

    const A: Eui64 = NodeId(1).eui64();
    const B: Eui64 = NodeId(2).eui64();
    const TX: CellOptions = CellOptions::TX;
    const TX_SHARED: CellOptions = CellOptions::TX.with(CellOptions::SHARED);

    fn cell(schedule: &mut Schedule, slot: u16, options: CellOptions, peer: Option<Eui64>) {
        let placement = Placement::Fixed { slot, channel_offset: slot };
        let kind = CellKind::Negotiated;
        let spec = CellSpec { slotframe: 0, placement, options, kind, peer };
        schedule.add(Asn(0), spec).expect("the slotframe has this slot");
    }
    fn schedule(cells: &[(u16, CellOptions, Option<Eui64>)]) -> Schedule {
        let mut schedule = Schedule::new();
        schedule.add_slotframe(0, 10).expect("the first");
        for (slot, options, peer) in cells {
            cell(&mut schedule, *slot, *options, *peer);
        }
        schedule
    }
    fn queues(peers: &[Option<Eui64>]) -> Queues {
        let mut queues = Queues::new(16, 1);
        for peer in peers {
            let (octets, handle) = (Vec::from([0]), Handle(1));
            let (destination, priority) = (*peer, Priority::Data);
            let (is_advertisement, is_advice) = (false, false);
            let frame = QueuedFrame {
                octets,
                destination,
                handle,
                priority,
                is_advertisement,
                is_advice,
                transmissions: 0,
                refusals: 0,
            };
            queues.push(frame, 16).expect("there is room");
        }
        queues
    }
    fn chosen(
        schedule: &Schedule,
        queues: &Queues,
        beacon: Option<u64>,
        asn: u64,
    ) -> Option<Traffic> {
        let (beacon_due, spacing) = (beacon.map(Asn), Spacing::default());
        let situation = Situation { schedule, queues, beacon_due, spacing };
        situation.choose(Asn(asn)).map(|choice| choice.traffic)
    }

    #[test]
    fn a_beacon_goes_before_a_broadcast_and_that_before_a_neighbour_without_a_cell() {
        let (schedule, mut queues) = (schedule(&[(0, TX_SHARED, None)]), queues(&[None, Some(A)]));
        assert_eq!(chosen(&schedule, &queues, Some(0), 0), Some(Traffic::Beacon));
        assert_eq!(chosen(&schedule, &queues, Some(5), 0), Some(Traffic::Broadcast));
        queues.pop(None);
        assert_eq!(chosen(&schedule, &queues, None, 0), Some(Traffic::Unicast(A)));
        queues.pop(Some(A));
        assert_eq!(chosen(&schedule, &queues, None, 0), None);
    }

    #[test]
    fn a_neighbour_with_a_cell_of_its_own_stays_out_of_the_shared_one() {
        let schedule = schedule(&[(0, TX_SHARED, None), (3, TX, Some(A))]);
        let queues = queues(&[Some(A), Some(B)]);
        assert_eq!(chosen(&schedule, &queues, None, 0), Some(Traffic::Unicast(B)));
        assert_eq!(chosen(&schedule, &queues, None, 3), Some(Traffic::Unicast(A)));
    }

    #[test]
    fn a_cell_to_one_neighbour_carries_nothing_to_others() {
        let (schedule, queues) = (schedule(&[(3, TX, Some(A))]), queues(&[None, Some(B)]));
        assert_eq!(chosen(&schedule, &queues, Some(0), 3), None);
    }

    #[test]
    fn beacons_with_cells_of_their_own_leave_the_shared_one_to_others() {
        let schedule = schedule(&[(0, TX_SHARED, None), (5, TX, None)]);
        let queues = queues(&[None]);
        assert_eq!(chosen(&schedule, &queues, Some(0), 0), Some(Traffic::Broadcast));
        assert_eq!(chosen(&schedule, &queues, Some(0), 5), Some(Traffic::Beacon));
        assert_eq!(chosen(&schedule, &queues, None, 5), None);
    }

    #[test]
    fn backoff_holds_in_shared_cells_alone() {
        let cells = [(0, TX_SHARED, Some(A)), (4, TX, Some(A))];
        let (schedule, mut queues) = (schedule(&cells), queues(&[Some(A)]));
        queues.get_mut(Some(A)).expect("it holds a frame").backoff.until = Asn(20);
        assert_eq!(chosen(&schedule, &queues, None, 10), None);
        assert_eq!(chosen(&schedule, &queues, None, 14), Some(Traffic::Unicast(A)));
        assert_eq!(chosen(&schedule, &queues, None, 20), Some(Traffic::Unicast(A)));
    }

    #[test]
    fn beacons_and_broadcasts_keep_to_their_share_of_the_minimal_cell_and_take_turns() {
        let mut schedule = schedule(&[]);
        let placement = Placement::Fixed { slot: 0, channel_offset: 0 };
        let (kind, peer) = (CellKind::Minimal, None);
        let spec = CellSpec { slotframe: 0, placement, options: TX_SHARED, kind, peer };
        schedule.add(Asn(0), spec).expect("the slotframe has this slot");
        let queues = queues(&[None, Some(A)]);
        let traffic = |after_beacon, asn| {
            let spacing = Spacing { from: Asn(50), after_beacon };
            let beacon_due = Some(Asn(0));
            let situation = Situation { schedule: &schedule, queues: &queues, beacon_due, spacing };
            situation.choose(Asn(asn)).map(|choice| choice.traffic)
        };
        assert_eq!(traffic(true, 40), Some(Traffic::Unicast(A)), "what goes to one node may go");
        assert_eq!(traffic(true, 50), Some(Traffic::Broadcast));
        assert_eq!(traffic(false, 50), Some(Traffic::Beacon));
    }

    #[test]
    fn cells_to_listen_in_carry_nothing() {
        let (schedule, queues) = (schedule(&[(0, CellOptions::RX, None)]), queues(&[None]));
        assert_eq!(chosen(&schedule, &queues, Some(0), 0), None);
    }

    /// A schedule and queues that nothing but `number` decides about.
    fn any(number: u64) -> (Schedule, Queues, Option<Asn>, Spacing) {
        let mut rng = Rng::stream(Seed(number), NodeId(0), Purpose::Scheduling);
        let mut schedule = Schedule::new();
        for handle in 0..3 {
            schedule.add_slotframe(handle, 1 + rng.below(12) as u16).expect("another handle");
        }
        let peers = [None, Some(A), Some(B)];
        for _ in 0..rng.below(8) {
            let slotframe = rng.below(3) as u8;
            let length = schedule.slotframe(slotframe).expect("it was added").length;
            let placement = if rng.chance(0.3) {
                Placement::Hashed { key: rng.next_u64(), channel_offsets: 15 }
            } else {
                let slot = rng.below(u32::from(length)) as u16;
                Placement::Fixed { slot, channel_offset: 0 }
            };
            let kind = [CellKind::Autonomous, CellKind::Minimal][rng.below(2) as usize];
            let peer = peers[rng.below(3) as usize];
            let options = CellOptions(rng.below(8) as u8);
            let spec = CellSpec { slotframe, placement, options, kind, peer };
            schedule.add(Asn(0), spec).expect("there is room");
        }
        let busy: Vec<Option<Eui64>> = peers.into_iter().filter(|_| rng.chance(0.5)).collect();
        let mut queues = queues(&busy);
        for peer in busy {
            queues.get_mut(peer).expect("it is busy").backoff.until = Asn(rng.below(60).into());
        }
        let beacon_due = rng.chance(0.5).then(|| Asn(rng.below(60).into()));
        let spacing = Spacing { from: Asn(rng.below(60).into()), after_beacon: rng.chance(0.5) };
        (schedule, queues, beacon_due, spacing)
    }

    proptest! {
        /// The simulator and a sleeping device go by `next` alone, so it must neither miss a slot nor name
        /// one in vain.
        #[test]
        fn the_next_slot_is_the_first_in_which_something_is_chosen(number: u64, from in 0_u64..80) {
            let (schedule, queues, beacon_due, spacing) = any(number);
            let situation = Situation { schedule: &schedule, queues: &queues, beacon_due, spacing };
            let next = situation.next(Asn(from));
            let end = next.map_or(from + 300, |asn| asn.0);
            let sooner = (from..end).find(|asn| situation.choose(Asn(*asn)).is_some());
            prop_assert_eq!(sooner, None);
            if let Some(asn) = next {
                prop_assert!(situation.choose(asn).is_some(), "nothing to send in {:?}", asn);
            }
        }
    }
}
