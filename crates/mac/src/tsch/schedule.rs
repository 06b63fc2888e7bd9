//! The schedule of one node: when it may send or must listen, and to whom.
//!
//! A plain table. Who fills it is the scheduling function's business (crate `sixtop`), who acts on it is
//! the MAC's. Nothing in here happens "every slot": a question about any slot, past or future, is answered
//! by arithmetic, so an idle cell costs a simulation nothing.

use alloc::vec::Vec;

use lowmesh_machine::Rejected;
use lowmesh_units::{Asn, Eui64};

use super::cell::{Cell, CellId, CellOptions, CellSpec, CellUse, Placement, Slotframe};
use super::slotframe::Frame;
use crate::params::CELLS_MAX;

/// The slotframes of a node and the cells in them.
///
/// ```
/// use lowmesh_mac::tsch::cell::{CellKind, CellOptions, CellSpec, Placement};
/// use lowmesh_mac::tsch::schedule::Schedule;
/// use lowmesh_units::Asn;
///
/// let mut schedule = Schedule::new();
/// schedule.add_slotframe(0, 101)?;
/// let spec = CellSpec {
///     slotframe: 0,
///     placement: Placement::Fixed { slot: 3, channel_offset: 0 },
///     options: CellOptions::RX,
///     kind: CellKind::Minimal,
///     peer: None,
/// };
/// let id = schedule.add(Asn(0), spec)?;
/// let cell = schedule.get(id).expect("just added");
/// assert_eq!(schedule.next_occurrence(cell, Asn(4)), Asn(104));
/// assert_eq!(schedule.occurrences(cell, Asn(0), Asn(206)), 3);
/// # Ok::<(), lowmesh_machine::Rejected>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// In order of handle, which is the order of priority.
    frames: Vec<Frame>,
    next_id: u32,
    generation: u64,
    /// Slots listened in up to `settled`; later ones are counted when asked for.
    listened: u64,
    settled: Asn,
    now: Asn,
}

impl Schedule {
    /// A schedule without slotframes: the radio is always off.
    pub const fn new() -> Self {
        Self {
            frames: Vec::new(),
            next_id: 0,
            generation: 0,
            listened: 0,
            settled: Asn(0),
            now: Asn(0),
        }
    }

    /// Counts changes; equal numbers mean an equal set of cells.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Adds an empty slotframe of `length` slots. Its handle is its priority: 0 comes first.
    pub fn add_slotframe(&mut self, handle: u8, length: u16) -> Result<(), Rejected> {
        const WHAT: &str = "add slotframe";
        if length == 0 {
            return Err(Rejected::Invalid { what: WHAT, why: "a slotframe has at least one slot" });
        }
        match self.frames.binary_search_by_key(&handle, |f| f.slotframe.handle) {
            Ok(_) => Err(Rejected::Taken { what: WHAT, why: "this handle is taken" }),
            Err(place) => {
                self.frames.insert(place, Frame::new(Slotframe { handle, length }));
                self.generation += 1;
                Ok(())
            }
        }
    }

    /// Tells the time to a schedule that is about to change, so that it can count what was until now.
    pub fn set_now(&mut self, now: Asn) {
        self.now = self.now.max(now);
    }

    /// How many slots before `until` had a cell to listen in, each slot counted once.
    pub fn listening_slots(&self, until: Asn) -> u64 {
        self.listened + self.listening_between(self.settled, until)
    }

    /// Counts the slots up to now before the set of cells changes.
    fn settle(&mut self) {
        self.listened += self.listening_between(self.settled, self.now);
        self.settled = self.now;
    }

    fn listening_between(&self, from: Asn, until: Asn) -> u64 {
        let listens = |cell: &Cell| cell.options.has(CellOptions::RX);
        let mut frames = self.frames.iter().filter(|f| f.cells.iter().any(listens));
        let Some(first) = frames.next() else { return 0 };
        if frames.all(|f| f.slotframe.length == first.slotframe.length && f.hashed == 0)
            && first.hashed == 0
        {
            // One length: the slots of one repetition stand for all.
            let mut slots: Vec<&Cell> = Vec::new();
            for cell in self.cells().filter(|c| listens(c)) {
                if slots.iter().all(|other| !same_slot(other, cell)) {
                    slots.push(cell);
                }
            }
            return slots.iter().map(|c| self.occurrences_ever(c, from, until)).sum();
        }
        self.cells().filter(|c| listens(c)).map(|c| self.first_listening(c, from, until)).sum()
    }

    /// Slots in which `cell` is the first of all listening cells; walks over its occurrences.
    fn first_listening(&self, cell: &Cell, from: Asn, until: Asn) -> u64 {
        let mut count = 0;
        let mut asn = self.next_occurrence(cell, from);
        while asn < until {
            let first = self.find_at(asn, CellOptions::RX, |first, _| Some(first.id));
            count += u64::from(first == Some(cell.id));
            asn = self.next_occurrence(cell, asn + 1);
        }
        count
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.settle();
        self.frames.clear();
        self.generation += 1;
    }

    /// Removes everything, because the node joins or starts a network in its slot `now`: numbers of slots of another network
    /// mean nothing in it.
    pub fn begin(&mut self, now: Asn) {
        self.clear();
        (self.settled, self.now) = (now, now);
    }

    /// Removes the slotframes without cells.
    pub fn remove_empty_slotframes(&mut self) {
        let before = self.frames.len();
        self.frames.retain(|frame| !frame.cells.is_empty());
        self.generation += u64::from(self.frames.len() < before);
    }

    /// The slotframes in order of priority.
    pub fn slotframes(&self) -> impl Iterator<Item = Slotframe> + '_ {
        self.frames.iter().map(|f| f.slotframe)
    }

    /// The slotframe named `handle`.
    pub fn slotframe(&self, handle: u8) -> Option<Slotframe> {
        self.frame(handle).map(|f| f.slotframe)
    }

    /// Adds a cell that exists from slot `now` on.
    pub fn add(&mut self, now: Asn, spec: CellSpec) -> Result<CellId, Rejected> {
        const WHAT: &str = "add cell";
        if self.cells().count() >= CELLS_MAX {
            return Err(Rejected::Full { what: WHAT, why: "the schedule is full" });
        }
        let id = CellId(self.next_id);
        if spec.options.has(CellOptions::RX) {
            self.now = self.now.max(now);
            self.settle();
        }
        let Some(frame) = self.frame_mut(spec.slotframe) else {
            return Err(Rejected::Gone {
                what: WHAT,
                why: "there is no slotframe with this handle",
            });
        };
        if let Placement::Fixed { slot, .. } = spec.placement
            && slot >= frame.slotframe.length
        {
            return Err(Rejected::Invalid {
                what: WHAT,
                why: "the slot lies beyond the slotframe's end",
            });
        }
        frame.add(Cell {
            id,
            slotframe: spec.slotframe,
            placement: spec.placement,
            options: spec.options,
            kind: spec.kind,
            peer: spec.peer,
            since: now,
            used: CellUse::default(),
        });
        self.next_id += 1;
        self.generation += 1;
        Ok(id)
    }

    /// Removes a cell and returns it, with its use so far.
    pub fn remove(&mut self, id: CellId) -> Option<Cell> {
        if self.get(id)?.options.has(CellOptions::RX) {
            self.settle();
        }
        let cell = self.frames.iter_mut().find_map(|frame| frame.remove(id))?;
        self.generation += 1;
        Some(cell)
    }

    /// The cell named `id`.
    pub fn get(&self, id: CellId) -> Option<&Cell> {
        self.cells().find(|c| c.id == id)
    }

    /// Writes down what happened in a cell; nothing if it is gone.
    pub fn note_use(&mut self, id: CellId, change: impl FnOnce(&mut CellUse)) {
        let cell = self.frames.iter_mut().flat_map(|f| &mut f.cells).find(|c| c.id == id);
        if let Some(cell) = cell {
            change(&mut cell.used);
        }
    }

    /// All cells, by priority of their slotframe, then in order of their making.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> + '_ {
        self.frames.iter().flat_map(|f| &f.cells)
    }

    /// All cells of one slotframe, in order of their making.
    pub fn cells_in(&self, handle: u8) -> impl Iterator<Item = &Cell> + '_ {
        self.frame(handle).into_iter().flat_map(|f| &f.cells)
    }

    /// True when no fixed cell of any slotframe of the same length lies in `slot` of slotframe `handle`.
    ///
    /// Slotframes of one length keep their cells apart forever; those of other lengths meet now and then
    /// whatever one does.
    pub fn is_free(&self, handle: u8, slot: u16) -> bool {
        let Some(length) = self.slotframe(handle).map(|s| s.length) else { return false };
        slot < length
            && self.frames.iter().all(|f| f.slotframe.length != length || !f.is_occupied(slot))
    }

    /// The cells that lie in slot `asn`, with their channel offsets, by priority.
    pub fn at(&self, asn: Asn) -> impl Iterator<Item = (&Cell, u16)> + '_ {
        self.frames.iter().flat_map(move |frame| {
            let (cycle, slot) = frame.slotframe.split(asn);
            let length = frame.slotframe.length;
            let any = frame.hashed > 0 || frame.is_occupied(slot);
            let cells: &[Cell] = if any { &frame.cells } else { &[] };
            cells.iter().filter_map(move |cell| {
                let (at, channel_offset) = cell.placement.at(cycle, length);
                (at == slot).then_some((cell, channel_offset))
            })
        })
    }

    /// The first answer of `ask` about the cells of [`Schedule::at`] that have all of `options`. A MAC asks this about
    /// each slot in which a neighbour sends.
    pub fn find_at<T>(
        &self,
        asn: Asn,
        options: CellOptions,
        mut ask: impl FnMut(&Cell, u16) -> Option<T>,
    ) -> Option<T> {
        self.frames.iter().find_map(|frame| frame.find_at(asn, options, &mut ask))
    }

    /// The first slot at or after `from` in which `cell` lies.
    pub fn next_occurrence(&self, cell: &Cell, from: Asn) -> Asn {
        let Some(frame) = self.frame(cell.slotframe) else { return Asn(u64::MAX) };
        frame.next_occurrence(cell, frame.slotframe.split(from))
    }

    /// The first slot at or after `from` in which a cell with all of `options` lies. A cell counts from the slot on that
    /// `ready` answers, and not at all if that is `None`.
    pub fn first_occurrence(
        &self,
        from: Asn,
        options: CellOptions,
        mut ready: impl FnMut(&Cell) -> Option<Asn>,
    ) -> Option<Asn> {
        let frames = self.frames.iter();
        frames.filter_map(|frame| frame.first_occurrence(from, options, &mut ready)).min()
    }

    /// How often `cell` lies in the slots from `from` up to, not including, `until`, counted from its making.
    pub fn occurrences(&self, cell: &Cell, from: Asn, until: Asn) -> u64 {
        self.occurrences_ever(cell, from.max(cell.since), until)
    }

    fn occurrences_ever(&self, cell: &Cell, from: Asn, until: Asn) -> u64 {
        let Some(frame) = self.frame(cell.slotframe) else { return 0 };
        if until <= from {
            return 0;
        }
        let before = |asn: Asn| {
            let (cycle, slot) = frame.slotframe.split(asn);
            let (at, _) = cell.placement.at(cycle, frame.slotframe.length);
            cycle + u64::from(at < slot)
        };
        before(until) - before(from)
    }

    /// The first slot by whose end the cells that `wanted` picks have occurred `count` times since `from`;
    /// `None` when it picks none.
    pub fn when_elapsed(
        &self,
        wanted: impl Fn(&Cell) -> bool,
        from: Asn,
        count: u64,
    ) -> Option<Asn> {
        let picked: Vec<&Cell> = self.cells().filter(|c| wanted(c)).collect();
        if picked.is_empty() {
            return None;
        }
        let elapsed =
            |until: Asn| -> u64 { picked.iter().map(|c| self.occurrences(c, from, until)).sum() };
        // Bisect on the slot: `elapsed` never falls.
        let (mut low, mut high) = (from.0, from.0 + 1);
        while elapsed(Asn(high)) < count {
            low = high;
            high = from.0 + (high - from.0) * 2;
        }
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if elapsed(Asn(middle)) >= count { high = middle } else { low = middle }
        }
        Some(Asn(high))
    }

    /// True when there is a cell of its own for frames to `peer`.
    pub fn has_dedicated_tx(&self, peer: Eui64) -> bool {
        self.cells().any(|c| c.is_dedicated_tx(peer))
    }

    /// True when frames to `peer` have a cell made for them, dedicated or shared.
    pub fn has_tx_to(&self, peer: Eui64) -> bool {
        self.frames.iter().any(|frame| frame.destinations.binary_search(&peer).is_ok())
    }

    /// True when some cells are there for beacons alone.
    pub fn has_beacon_cells(&self) -> bool {
        self.frames.iter().any(|frame| frame.beacon_cells)
    }

    fn frame(&self, handle: u8) -> Option<&Frame> {
        self.frames.iter().find(|f| f.slotframe.handle == handle)
    }
    fn frame_mut(&mut self, handle: u8) -> Option<&mut Frame> {
        self.frames.iter_mut().find(|f| f.slotframe.handle == handle)
    }
}

/// True when two fixed cells of equally long slotframes lie in the same slot.
fn same_slot(a: &Cell, b: &Cell) -> bool {
    matches!((a.placement, b.placement),
        (Placement::Fixed { slot: a, .. }, Placement::Fixed { slot: b, .. }) if a == b)
}

#[cfg(test)]
mod tests {
    use super::super::cell::CellKind;
    use super::*;

    fn spec(slotframe: u8, slot: u16, options: CellOptions) -> CellSpec {
        let placement = Placement::Fixed { slot, channel_offset: 1 };
        CellSpec { slotframe, placement, options, kind: CellKind::Negotiated, peer: None }
    }
    fn hashed(slotframe: u8) -> CellSpec {
        let placement = Placement::Hashed { key: 77, channel_offsets: 15 };
        CellSpec { placement, ..spec(slotframe, 0, CellOptions::TX) }
    }

    #[test]
    fn arithmetic_agrees_with_walking_every_slot() {
        let mut schedule = Schedule::new();
        schedule.add_slotframe(0, 11).expect("new handle");
        schedule.add_slotframe(1, 7).expect("new handle");
        for s in [spec(0, 3, CellOptions::RX), spec(1, 6, CellOptions::TX), hashed(1)] {
            schedule.add(Asn(5), s).expect("fits");
        }
        for cell in schedule.cells() {
            let lies_in = |asn| schedule.at(Asn(asn)).any(|(c, _)| c.id == cell.id);
            for from in 5..60 {
                let walked = (from..500).find(|asn| lies_in(*asn)).map(Asn);
                assert_eq!(Some(schedule.next_occurrence(cell, Asn(from))), walked);
                let counted = (from..300).filter(|asn| lies_in(*asn)).count() as u64;
                assert_eq!(schedule.occurrences(cell, Asn(from), Asn(300)), counted);
            }
        }
    }

    #[test]
    fn the_first_cell_of_a_slot_is_the_one_that_a_walk_over_its_cells_meets_first() {
        let mut schedule = Schedule::new();
        schedule.add_slotframe(0, 5).expect("new handle");
        schedule.add_slotframe(1, 3).expect("new handle");
        let fixed = [(0, 3, CellOptions::TX), (0, 1, CellOptions::RX), (0, 3, CellOptions::RX)];
        for (slotframe, slot, options) in fixed.into_iter().chain([(1, 1, CellOptions::RX)]) {
            schedule.add(Asn(0), spec(slotframe, slot, options)).expect("fits");
        }
        schedule.add(Asn(0), hashed(1)).expect("fits");
        for asn in (0..90).map(Asn) {
            for options in [CellOptions::TX, CellOptions::RX] {
                let mut walk = schedule.at(asn).filter(|(cell, _)| cell.options.has(options));
                let first = walk.next().map(|(cell, offset)| (cell.id, offset));
                let found = schedule.find_at(asn, options, |cell, at| Some((cell.id, at)));
                assert_eq!(found, first);
            }
        }
    }

    #[test]
    fn elapsed_cells_are_found_at_the_very_slot() {
        let mut schedule = Schedule::new();
        schedule.add_slotframe(2, 101).expect("new handle");
        for slot in [4, 50] {
            schedule.add(Asn(0), spec(2, slot, CellOptions::TX)).expect("fits");
        }
        let when = schedule.when_elapsed(|c| c.options.has(CellOptions::TX), Asn(0), 100);
        // The hundredth is the second cell's fiftieth: slot 49 * 101 + 50, over at its end.
        assert_eq!(when, Some(Asn(49 * 101 + 50 + 1)));
        assert_eq!(schedule.when_elapsed(|_| false, Asn(0), 1), None);
    }

    #[test]
    fn listening_slots_are_counted_once_whatever_changes() {
        for lengths in [[11, 11, 11], [11, 7, 5]] {
            let mut schedule = Schedule::new();
            for (handle, length) in (0..).zip(lengths) {
                schedule.add_slotframe(handle, length).expect("new handle");
            }
            let mut walked = 0;
            let mut count = |schedule: &Schedule, slots: core::ops::Range<u64>| {
                let listens =
                    |asn: &u64| schedule.at(Asn(*asn)).any(|(c, _)| c.options.has(CellOptions::RX));
                walked += slots.filter(listens).count() as u64;
                walked
            };
            for s in [spec(0, 3, CellOptions::RX), spec(1, 3, CellOptions::RX)] {
                schedule.add(Asn(0), s).expect("fits");
            }
            let third = schedule.add(Asn(0), spec(2, 4, CellOptions::RX)).expect("fits");
            let before = count(&schedule, 0..500);
            assert_eq!(schedule.listening_slots(Asn(500)), before);
            schedule.set_now(Asn(500));
            schedule.remove(third).expect("there");
            let after = count(&schedule, 500..777);
            assert_eq!(schedule.listening_slots(Asn(777)), after);
        }
    }

    #[test]
    fn a_cell_counts_from_its_making() {
        let mut schedule = Schedule::new();
        schedule.add_slotframe(0, 10).expect("new handle");
        let id = schedule.add(Asn(95), spec(0, 0, CellOptions::RX)).expect("fits");
        let cell = *schedule.get(id).expect("there");
        assert_eq!(schedule.occurrences(&cell, Asn(0), Asn(121)), 3);
    }

    #[test]
    fn what_cannot_be_added_is_rejected_and_changes_nothing() {
        let mut schedule = Schedule::new();
        schedule.add_slotframe(0, 10).expect("new handle");
        let before = schedule.generation();
        assert!(schedule.add_slotframe(0, 7).is_err());
        assert!(schedule.add_slotframe(1, 0).is_err());
        assert!(schedule.add(Asn(0), spec(0, 10, CellOptions::RX)).is_err());
        assert!(schedule.add(Asn(0), spec(9, 1, CellOptions::RX)).is_err());
        assert_eq!(schedule.generation(), before);
    }

    #[test]
    fn a_slot_is_free_only_if_no_equally_long_slotframe_uses_it() {
        let mut schedule = Schedule::new();
        for (handle, length) in [(0, 10), (1, 10), (2, 7)] {
            schedule.add_slotframe(handle, length).expect("new handle");
        }
        schedule.add(Asn(0), spec(0, 4, CellOptions::RX)).expect("fits");
        assert!(!schedule.is_free(1, 4));
        assert!(schedule.is_free(2, 4));
        assert!(!schedule.is_free(1, 10));
        let id = schedule.cells().next().expect("there").id;
        schedule.remove(id).expect("there");
        assert!(schedule.is_free(1, 4));
    }
}
