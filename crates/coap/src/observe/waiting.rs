//! The observers that are behind, in the order in which they are notified.
//!
//! All wait in one queue, so each gets its turn before any gets a second one. Observers with unproven addresses share a
//! part of the room for notifications. An observer that finds this part full keeps its turn, and takes it as soon as
//! there is room.

use alloc::collections::BTreeMap;

use lowmesh_units::Instant;

/// Observers that wait, each known by the number of its turn.
#[derive(Debug)]
pub(super) struct Waiting<O> {
    /// By the time from which they may be notified, then by their turns.
    due: BTreeMap<(Instant, u64), O>,
    /// The times of those that are due.
    times: BTreeMap<u64, Instant>,
    /// Observers that wait for room among the unproven, by their turns.
    crowded: BTreeMap<u64, O>,
    /// The latest time at which there is room for the first of these.
    room_at: Instant,
    turns: u64,
}

impl<O> Waiting<O> {
    pub const fn new() -> Self {
        Self {
            due: BTreeMap::new(),
            times: BTreeMap::new(),
            crowded: BTreeMap::new(),
            room_at: Instant::ZERO,
            turns: 0,
        }
    }
    /// Puts an observer behind all others that may be notified from `at` on; returns its turn.
    pub fn push(&mut self, observer: O, at: Instant) -> u64 {
        self.turns += 1;
        self.push_due(observer, self.turns, at);
        self.turns
    }
    /// An observer finds no room among the unproven before `room_at`, and keeps its turn.
    pub fn push_crowded(&mut self, observer: O, turn: u64, room_at: Instant) {
        self.crowded.insert(turn, observer);
        self.room_at = room_at;
    }
    fn push_due(&mut self, observer: O, turn: u64, at: Instant) {
        self.due.insert((at, turn), observer);
        self.times.insert(turn, at);
    }
    pub fn remove(&mut self, turn: u64) {
        self.crowded.remove(&turn);
        if let Some(at) = self.times.remove(&turn) {
            self.due.remove(&(at, turn));
        }
    }
    /// How many wait.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        assert_eq!(self.due.len(), self.times.len());
        self.due.len() + self.crowded.len()
    }
    /// The first of those that wait for room.
    pub fn first_crowded(&self) -> Option<&O> {
        self.crowded.first_key_value().map(|(_, observer)| observer)
    }
    /// The observer whose turn it is, and its turn. `room_at` says when there is room for a crowded one; `None`
    /// means now.
    pub fn pop(
        &mut self,
        now: Instant,
        room_at: impl FnOnce(&O) -> Option<Instant>,
    ) -> Option<(O, u64)> {
        if self.room_at <= now {
            // Some may have proven their addresses meanwhile, and need no room here.
            for (turn, observer) in core::mem::take(&mut self.crowded) {
                self.push_due(observer, turn, now);
            }
        }
        let due = self.due.first_key_value().map(|(key, _)| *key).filter(|(at, _)| *at <= now);
        if let Some(first) = self.crowded.first_entry() {
            match room_at(first.get()) {
                Some(later) => self.room_at = later,
                None if due.is_none_or(|(_, turn)| *first.key() < turn) => {
                    let turn = *first.key();
                    return Some((first.remove(), turn));
                }
                None => {}
            }
        }
        let key = due?;
        self.times.remove(&key.1);
        self.due.remove(&key).map(|observer| (observer, key.1))
    }
    /// When [`Waiting::pop`] has one, unless room comes earlier.
    pub fn next_deadline(&self) -> Option<Instant> {
        let due = self.due.first_key_value().map(|((at, _), _)| *at);
        let crowded = (!self.crowded.is_empty()).then_some(self.room_at);
        due.into_iter().chain(crowded).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Instant = Instant::ZERO;

    #[test]
    fn observers_come_in_the_order_of_their_times_and_then_of_their_turns() {
        let mut waiting = Waiting::new();
        waiting.push('c', Instant::from_secs(2));
        waiting.push('a', T0);
        let gone = waiting.push('x', T0);
        waiting.push('b', T0);
        waiting.remove(gone);
        let mut pop = |now| waiting.pop(now, |_| None).map(|(observer, _)| observer);
        assert_eq!([pop(T0), pop(T0), pop(T0)], [Some('a'), Some('b'), None]);
        assert_eq!(pop(Instant::from_secs(2)), Some('c'));
    }

    #[test]
    fn an_observer_that_found_no_room_keeps_its_turn() {
        let mut waiting = Waiting::new();
        waiting.push('a', T0);
        waiting.push('b', T0);
        let (first, turn) = waiting.pop(T0, |_| None).expect("a waits");
        let room = Instant::from_secs(1);
        waiting.push_crowded(first, turn, room);
        // Others pass while there is none.
        assert_eq!(waiting.pop(T0, |_| Some(room)).map(|(one, _)| one), Some('b'));
        assert_eq!(waiting.next_deadline(), Some(room));
        waiting.push('b', T0);
        assert_eq!(waiting.pop(T0, |_| None).map(|(one, _)| one), Some('a'), "room has come");
        waiting.push_crowded('a', turn, room);
        // At the time that was said it is due, whatever the room of the first one is.
        let other = |_: &char| -> Option<Instant> { unreachable!("nobody is crowded") };
        assert_eq!(
            waiting.pop(room, other).map(|(one, _)| one),
            Some('b'),
            "it has been due for longer"
        );
        assert_eq!(waiting.pop(room, other), Some(('a', turn)));
        assert_eq!((waiting.len(), waiting.next_deadline()), (0, None));
    }
}
