//! Datagrams that ended: their late fragments neither open a new buffer nor count as a second loss.

use alloc::collections::VecDeque;

use lowmesh_units::Instant;

/// The latest datagrams that ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended<N> {
    /// With the time at which each is forgotten; in that order.
    names: VecDeque<(N, Instant)>,
    max: usize,
}

impl<N: Copy + Eq> Ended<N> {
    /// None yet, and never more than `max`.
    pub const fn new(max: usize) -> Self {
        Self { names: VecDeque::new(), max }
    }

    /// Remembers a datagram; the oldest is forgotten if there is no room.
    pub fn insert(&mut self, name: N, until: Instant) {
        if self.max == 0 {
            return;
        }
        if self.names.len() == self.max {
            self.names.pop_front();
        }
        self.names.push_back((name, until));
    }

    /// True while the datagram is remembered.
    pub fn contains(&mut self, name: &N, now: Instant) -> bool {
        while self.names.front().is_some_and(|(_, until)| *until <= now) {
            self.names.pop_front();
        }
        self.names.iter().any(|(ended, _)| ended == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_until_its_time_or_until_too_many_came_after_it() {
        let at = Instant::from_secs;
        let mut ended = Ended::new(2);
        for name in 1..=3 {
            ended.insert(name, at(10 + name));
        }
        assert!(!ended.contains(&1, at(0)));
        assert!(ended.contains(&2, at(11)) && !ended.contains(&2, at(12)));
        assert!(ended.contains(&3, at(12)));
    }

    #[test]
    fn without_room_nothing_is_remembered() {
        let mut ended = Ended::new(0);
        ended.insert(1, Instant::FAR_FUTURE);
        assert!(!ended.contains(&1, Instant::ZERO));
    }
}
