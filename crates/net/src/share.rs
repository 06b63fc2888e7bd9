//! Bounds that sources share: a total over all sources, and a share of it for each.
//!
//! ```text
//!   share reached   the newcomer's own source makes room
//!   total reached   the source that holds most makes room
//!   who leaves      of what is idle there, what was used longest ago
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::source::Source;

/// The most that all sources hold together, and the most of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) total: usize,
    pub(crate) share: usize,
}

/// How much each source holds.
#[derive(Debug, Default)]
pub(crate) struct Held {
    total: usize,
    by_source: BTreeMap<Source, usize>,
}

/// The sources that have to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crowd {
    /// This source has reached its share.
    Source(Source),
    /// All sources together have reached the total.
    All,
}

impl FromIterator<(Source, usize)> for Held {
    fn from_iter<I: IntoIterator<Item = (Source, usize)>>(all: I) -> Self {
        let mut held = Self::default();
        for (source, amount) in all {
            held.total += amount;
            *held.by_source.entry(source).or_default() += amount;
        }
        held
    }
}

impl Held {
    fn of(&self, source: Source) -> usize {
        self.by_source.get(&source).copied().unwrap_or_default()
    }
    /// Which sources have to make room before a source holds `more`; `None` if there is room.
    pub(crate) fn crowd(&self, bound: Bound, source: Source, more: usize) -> Option<Crowd> {
        if self.of(source) + more > bound.share {
            Some(Crowd::Source(source))
        } else if self.total + more > bound.total {
            Some(Crowd::All)
        } else {
            None
        }
    }
    /// How much more a source may hold.
    pub(crate) fn room(&self, bound: Bound, source: Source) -> usize {
        let own = bound.share.saturating_sub(self.of(source));
        own.min(bound.total.saturating_sub(self.total))
    }
    /// Of what is idle in a crowd, what was used longest ago of the source that holds most. Each idle thing comes with
    /// its source and its last use.
    pub(crate) fn longest_idle<T>(
        &self,
        crowd: Crowd,
        idle: impl IntoIterator<Item = (Source, u64, T)>,
    ) -> Option<T> {
        let in_crowd = |(source, ..): &(Source, u64, T)| match crowd {
            Crowd::Source(crowded) => *source == crowded,
            Crowd::All => true,
        };
        let longest = idle.into_iter().filter(in_crowd);
        longest.max_by_key(|(source, used, _)| (self.of(*source), Reverse(*used))).map(|one| one.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Bound = Bound { total: 6, share: 4 };
    const ONE: Source = Source::V4([192, 0, 2, 1]);
    const OTHER: Source = Source::V4([192, 0, 2, 2]);

    fn held(one: usize, other: usize) -> Held {
        [(ONE, one), (OTHER, other)].into_iter().collect()
    }

    #[test]
    fn a_source_fills_its_share_and_all_fill_the_total() {
        assert_eq!(held(3, 0).crowd(BOUND, ONE, 1), None);
        assert_eq!(held(4, 0).crowd(BOUND, ONE, 1), Some(Crowd::Source(ONE)));
        assert_eq!(held(4, 0).crowd(BOUND, OTHER, 2), None);
        assert_eq!(held(4, 2).crowd(BOUND, OTHER, 1), Some(Crowd::All));
        let room =
            [(3, 0), (4, 0), (0, 3), (2, 4)].map(|(one, other)| held(one, other).room(BOUND, ONE));
        assert_eq!(room, [1, 0, 3, 0]);
    }

    #[test]
    fn the_source_that_holds_most_makes_room_with_what_was_used_longest_ago() {
        let idle = [(ONE, 1, 'a'), (OTHER, 3, 'b'), (OTHER, 2, 'c')];
        assert_eq!(held(1, 2).longest_idle(Crowd::All, idle), Some('c'));
        assert_eq!(held(1, 2).longest_idle(Crowd::Source(ONE), idle), Some('a'));
        assert_eq!(held(1, 0).longest_idle(Crowd::Source(OTHER), [(ONE, 1, 'a')]), None);
    }
}
