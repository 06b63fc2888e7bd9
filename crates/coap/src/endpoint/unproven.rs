//! Own exchanges with addresses that nothing has proven yet: the first to give way when there is no room.

use alloc::collections::BTreeMap;

use lowmesh_units::Instant;

use super::exchange::Role;
use crate::exchange::ExchangeId;
use crate::params::{OPEN_UNPROVEN_DIVISOR, UNPROVEN_GRACE};

/// Notifications and separate responses on their way to unproven addresses, each the oldest first, and since when.
#[derive(Debug)]
pub(super) struct Unproven {
    notifications: BTreeMap<ExchangeId, Instant>,
    answers: BTreeMap<ExchangeId, Instant>,
}

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
        Self { notifications: BTreeMap::new(), answers: BTreeMap::new() }
    }
    /// An exchange begins.
    pub(super) fn add(&mut self, id: ExchangeId, role: Role, now: Instant) {
        if role == Role::Separate {
            self.answers.insert(id, now);
        } else {
            self.notifications.insert(id, now);
        }
    }
    /// An exchange is over, or its address is proven.
    pub(super) fn remove(&mut self, id: ExchangeId) {
        self.notifications.remove(&id);
        self.answers.remove(&id);
    }
    /// Whether there is room for one more notification to a proven address.
    pub(super) fn has_room(&self, load: Load) -> bool {
        load.open < load.max || !self.notifications.is_empty()
    }
    /// When there is room for one more notification to an unproven address: `None` means now.
    pub(super) fn room_at(&self, load: Load, now: Instant) -> Option<Instant> {
        if !self.is_full(load) {
            return None;
        }
        let (_, since) = self.notifications.first_key_value()?;
        Some(*since + UNPROVEN_GRACE).filter(|then| *then > now)
    }
    fn is_full(&self, load: Load) -> bool {
        let share = (load.max / OPEN_UNPROVEN_DIVISOR).max(1);
        load.open >= load.max || self.notifications.len() >= share
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
        self.notifications.first_key_value().map_or(Room::Missing, |(oldest, _)| Room::Of(*oldest))
    }
    /// The separate response that gives way to a request where all places are taken: the oldest, to an unproven peer once
    /// its acknowledgement has had time to come.
    pub(super) fn displaced_answer(&self, proven: bool, now: Instant) -> Option<ExchangeId> {
        let (oldest, since) = self.answers.first_key_value()?;
        (proven || now.since(*since) >= UNPROVEN_GRACE).then_some(*oldest)
    }
}
