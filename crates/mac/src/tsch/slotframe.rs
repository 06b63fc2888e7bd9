//! One slotframe of a schedule: its cells, and an index that answers questions about a slot.
//!
//! The index is made again after each change: changes are rare, questions are not.

use alloc::vec;
use alloc::vec::Vec;

use lowmesh_units::{Asn, Eui64};

use super::cell::{Cell, CellId, CellOptions, Placement, Slotframe};
use crate::params::CELLS_MAX;

/// A slotframe, its cells and their index.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub slotframe: Slotframe,
    /// In order of their names.
    pub cells: Vec<Cell>,
    /// The fixed cells in order of their slots.
    fixed: Vec<FixedCell>,
    /// For each slot the place of its first cell in `fixed`, or [`EMPTY`].
    first: Vec<u16>,
    /// How many of the cells are hashed: those may lie in any slot.
    pub hashed: usize,
    /// Some cells are for beacons alone.
    pub beacon_cells: bool,
    /// The neighbours that some cells are for frames to, in order.
    pub destinations: Vec<Eui64>,
}

/// An entry of the index of fixed cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FixedCell {
    slot: u16,
    /// The place among the cells.
    place: u16,
    options: CellOptions,
}

/// A slot without a fixed cell.
const EMPTY: u16 = u16::MAX;
const _: () = assert!(CELLS_MAX < EMPTY as usize, "no cell has this place");

impl Frame {
    pub fn new(slotframe: Slotframe) -> Self {
        let first = vec![EMPTY; usize::from(slotframe.length)];
        Self {
            slotframe,
            cells: Vec::new(),
            fixed: Vec::new(),
            first,
            hashed: 0,
            beacon_cells: false,
            destinations: Vec::new(),
        }
    }
    pub fn is_occupied(&self, slot: u16) -> bool {
        self.first[usize::from(slot)] != EMPTY
    }
    pub fn add(&mut self, cell: Cell) {
        self.cells.push(cell);
        self.reindex();
    }
    pub fn remove(&mut self, id: CellId) -> Option<Cell> {
        let place = self.cells.iter().position(|cell| cell.id == id)?;
        let cell = self.cells.remove(place);
        self.reindex();
        Some(cell)
    }
    fn reindex(&mut self) {
        self.first.fill(EMPTY);
        self.fixed.clear();
        self.hashed = 0;
        self.beacon_cells = self.cells.iter().any(Cell::is_for_beacons);
        let sending = self.cells.iter().filter(|cell| cell.options.has(CellOptions::TX));
        self.destinations.clear();
        self.destinations.extend(sending.filter_map(|cell| cell.peer));
        self.destinations.sort_unstable();
        self.destinations.dedup();
        for (place, cell) in (0..).zip(&self.cells) {
            let options = cell.options;
            match cell.placement {
                Placement::Fixed { slot, .. } => {
                    self.fixed.push(FixedCell { slot, place, options });
                }
                Placement::Hashed { .. } => self.hashed += 1,
            }
        }
        self.fixed.sort_unstable();
        for (place, cell) in (0..).zip(&self.fixed) {
            let first = &mut self.first[usize::from(cell.slot)];
            *first = place.min(*first);
        }
    }
    /// The first slot at or after slot `slot` of repetition `cycle` in which `cell` lies.
    pub fn next_occurrence(&self, cell: &Cell, (mut cycle, slot): (u64, u16)) -> Asn {
        let length = self.slotframe.length;
        let (mut at, _) = cell.placement.at(cycle, length);
        if at < slot {
            cycle += 1;
            (at, _) = cell.placement.at(cycle, length);
        }
        Asn(cycle * u64::from(length) + u64::from(at))
    }
    /// The first slot at or after `from` in which a cell with all of `options` lies. A cell counts from the slot on that
    /// `ready` answers, and not at all if that is `None`.
    pub fn first_occurrence(
        &self,
        from: Asn,
        options: CellOptions,
        ready: &mut impl FnMut(&Cell) -> Option<Asn>,
    ) -> Option<Asn> {
        let split = |asn| self.slotframe.split(asn);
        let (cycle, slot) = split(from);
        if self.hashed > 0 {
            let cells = self.cells.iter().filter(|cell| cell.options.has(options));
            let occurrence = |cell| Some(self.next_occurrence(cell, split(ready(cell)?.max(from))));
            return cells.filter_map(occurrence).min();
        }
        // One repetition from `from` on: the first cell that is ready in its slot comes before all that are ready later.
        let (next, this) = self.fixed.split_at(self.fixed.partition_point(|cell| cell.slot < slot));
        let this = this.iter().map(|indexed| (cycle, indexed));
        let next = next.iter().map(|indexed| (cycle + 1, indexed));
        let mut later: Option<Asn> = None;
        for (cycle, indexed) in this.chain(next).filter(|(_, cell)| cell.options.has(options)) {
            let cell = &self.cells[usize::from(indexed.place)];
            let Some(ready) = ready(cell) else { continue };
            let at = Asn(cycle * u64::from(self.slotframe.length) + u64::from(indexed.slot));
            if ready <= at {
                return Some(at);
            }
            let at = self.next_occurrence(cell, split(ready));
            later = Some(later.map_or(at, |known| known.min(at)));
        }
        later
    }
    /// The first answer of `ask` about the cells with all of `options` in slot `asn`, in order of their names.
    pub fn find_at<T>(
        &self,
        asn: Asn,
        options: CellOptions,
        ask: &mut impl FnMut(&Cell, u16) -> Option<T>,
    ) -> Option<T> {
        let (cycle, slot) = self.slotframe.split(asn);
        let length = self.slotframe.length;
        if self.hashed > 0 {
            for cell in self.cells.iter().filter(|cell| cell.options.has(options)) {
                let (at, channel_offset) = cell.placement.at(cycle, length);
                if at == slot
                    && let Some(answer) = ask(cell, channel_offset)
                {
                    return Some(answer);
                }
            }
            return None;
        }
        if !self.is_occupied(slot) {
            return None;
        }
        let first = usize::from(self.first[usize::from(slot)]);
        let here = self.fixed[first..].iter().take_while(|indexed| indexed.slot == slot);
        for indexed in here.filter(|indexed| indexed.options.has(options)) {
            let cell = &self.cells[usize::from(indexed.place)];
            let (_, channel_offset) = cell.placement.at(cycle, length);
            if let Some(answer) = ask(cell, channel_offset) {
                return Some(answer);
            }
        }
        None
    }
}
