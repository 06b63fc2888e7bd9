//! Notifications to addresses that nothing has proven yet: the first to give way when there is no room.

use alloc::collections::BTreeMap;

use lowmesh_units::Instant;

use crate::exchange::ExchangeId;
use crate::params::{OPEN_UNPROVEN_DIVISOR, UNPROVEN_GRACE};

/// Notifications on their way to unproven addresses, the oldest first, and since when.
#[derive(Debug)]
pub(super) struct Unproven(BTreeMap<ExchangeId, Instant>);

/// Own exchanges that are open, and how many there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) open: usize,
    pub(super) max: usize,
}

/// Where there is room for one more notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// A place is free.
    Free,
    /// This exchange gives way.
    Of(ExchangeId),
    /// There is none.
    Missing,
}

impl Unproven {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }
    /// A notification begins.
    pub(super) fn add(&mut self, id: ExchangeId, now: Instant) {
        self.0.insert(id, now);
    }
    /// It is over, or its address is proven.
    pub(super) fn remove(&mut self, id: ExchangeId) {
        self.0.remove(&id);
    }
    /// Whether there is room for one more notification to a proven address.
    pub(super) fn has_room(&self, load: Load) -> bool {
        load.open < load.max || !self.0.is_empty()
    }
    /// When there is room for one more notification to an unproven address: `None` means now.
    pub(super) fn room_at(&self, load: Load, now: Instant) -> Option<Instant> {
        if !self.is_full(load) {
            return None;
        }
        let (_, since) = self.0.first_key_value()?;
        Some(*since + UNPROVEN_GRACE).filter(|then| *then > now)
    }
    fn is_full(&self, load: Load) -> bool {
        let share = (load.max / OPEN_UNPROVEN_DIVISOR).max(1);
        load.open >= load.max || self.0.len() >= share
    }
    /// Room for one more notification. The oldest one to an unproven address gives way when unproven addresses have
    /// their share, or when everything is full.
    pub(super) fn room(&self, load: Load, proven: bool, now: Instant) -> Room {
        let full = if proven {
            load.open >= load.max
        } else if self.room_at(load, now).is_some() {
            return Room::Missing;
        } else {
            self.is_full(load)
        };
        if !full {
            return Room::Free;
        }
        self.0.first_key_value().map_or(Room::Missing, |(oldest, _)| Room::Of(*oldest))
    }
}
