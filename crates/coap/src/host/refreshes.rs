//! Observed resources whose new state the application is asked for: a few at a time, the others in the
//! order in which they changed.
//!
//! ```text
//!   total     a number at a time, and no more octets of expected states than there is room for
//!   share     one of each observation
//!   newcomer  waits in order; of what is asked for and never answered, the oldest gives way after a while
//! ```

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use lowmesh_units::Instant;

use super::event::StateId;
use crate::observe::ObservationId;
use crate::params::{REFRESH_MAX, REFRESHES_MAX};

/// A state that is asked for.
#[derive(Clone, Copy, Debug)]
struct Refresh {
    id: ObservationId,
    at: Instant,
    /// Octets that its state is expected to have.
    octets: usize,
}

/// The observations that are asked for, and those that wait. Each is in one of both at most once.
#[derive(Debug)]
pub(super) struct Refreshes {
    asked: BTreeMap<StateId, Refresh>,
    /// Octets of the states that are asked for, as far as is known.
    octets: usize,
    /// Observations that are asked for, and whether they have changed since.
    in_progress: BTreeMap<ObservationId, bool>,
    queue: VecDeque<ObservationId>,
    queued: BTreeSet<ObservationId>,
    serial: u64,
}

/// Room for states.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Octets of states that are kept.
    pub(super) kept: usize,
    /// Octets of states that may be kept.
    pub(super) max: usize,
}

impl Room {
    /// Whether there is room for a state of so many octets beside those that are asked for. One state alone
    /// may be of any length.
    const fn takes(self, asked: usize, octets: usize) -> bool {
        let others = self.kept + asked;
        others == 0 || others + octets <= self.max
    }
}

impl Refreshes {
    pub(super) const fn new() -> Self {
        Self {
            asked: BTreeMap::new(),
            octets: 0,
            in_progress: BTreeMap::new(),
            queue: VecDeque::new(),
            queued: BTreeSet::new(),
            serial: 0,
        }
    }
    /// The state of an observation has changed.
    pub(super) fn changed(&mut self, id: ObservationId) {
        if let Some(again) = self.in_progress.get_mut(&id) {
            *again = true;
        } else if self.queued.insert(id) {
            self.queue.push_back(id);
        }
    }
    /// The next observation to ask for, if one more may be asked for now and there is room for its state. `len`
    /// says how long that is expected to be.
    pub(super) fn next(
        &mut self,
        now: Instant,
        room: Room,
        len: impl Fn(ObservationId) -> usize,
    ) -> Option<(StateId, ObservationId)> {
        let octets = len(*self.queue.front()?);
        while self.asked.len() >= REFRESHES_MAX || !room.takes(self.octets, octets) {
            // An application that leaves questions unanswered must not block the others for ever.
            let (oldest, at) = self.asked.first_key_value().map(|(id, one)| (*id, one.at))?;
            if now.since(at) < REFRESH_MAX {
                return None;
            }
            self.end(oldest);
        }
        let id = self.queue.pop_front()?;
        self.queued.remove(&id);
        self.serial += 1;
        let question = StateId(self.serial);
        self.asked.insert(question, Refresh { id, at: now, octets });
        self.octets += octets;
        self.in_progress.insert(id, false);
        Some((question, id))
    }
    /// The application has answered, or will not; returns what it was asked for.
    pub(super) fn end(&mut self, question: StateId) -> Option<ObservationId> {
        let Refresh { id, octets, .. } = self.asked.remove(&question)?;
        self.octets -= octets;
        if self.in_progress.remove(&id) == Some(true) {
            self.changed(id);
        }
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Instant = Instant::ZERO;

    /// The next one, where states are short.
    fn next(refreshes: &mut Refreshes, now: Instant) -> Option<(StateId, ObservationId)> {
        refreshes.next(now, Room { kept: 0, max: 0 }, |_| 0)
    }

    #[test]
    fn however_many_resources_change_each_gets_its_turn() {
        let mut refreshes = Refreshes::new();
        let count = 3 * REFRESHES_MAX as u64;
        for number in 0..count {
            refreshes.changed(ObservationId::for_test(number));
        }
        let mut asked = 0;
        while let Some((exchange, id)) = next(&mut refreshes, T0) {
            assert_eq!((refreshes.end(exchange), id), (Some(id), ObservationId::for_test(asked)));
            asked += 1;
        }
        assert_eq!(asked, count);
    }

    #[test]
    fn a_change_while_the_application_answers_is_asked_for_once_more() {
        let mut refreshes = Refreshes::new();
        let id = ObservationId::for_test(1);
        refreshes.changed(id);
        let (first, _) = next(&mut refreshes, T0).expect("changed");
        refreshes.changed(id);
        refreshes.changed(id);
        assert_eq!(next(&mut refreshes, T0), None, "it is asked for already");
        refreshes.end(first);
        let (second, _) = next(&mut refreshes, T0).expect("changed meanwhile");
        refreshes.end(second);
        assert_eq!(next(&mut refreshes, T0), None);
    }

    #[test]
    fn requests_that_nobody_answers_make_room_after_a_while() {
        let mut refreshes = Refreshes::new();
        for number in 0..=REFRESHES_MAX as u64 {
            refreshes.changed(ObservationId::for_test(number));
        }
        for _ in 0..REFRESHES_MAX {
            assert!(next(&mut refreshes, T0).is_some());
        }
        assert_eq!(next(&mut refreshes, T0), None);
        assert!(next(&mut refreshes, T0 + REFRESH_MAX).is_some());
        assert!(refreshes.asked.len() <= REFRESHES_MAX);
    }
}
