//! How many DTLS sessions there are, and which one ends when one more comes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Key;
use crate::params::{
    HANDSHAKES_MAX, HANDSHAKES_PER_SOURCE_MAX, SESSIONS_MAX, SESSIONS_PER_SOURCE_MAX,
};
use crate::source::Source;

/// Bounds of [`Sessions`](super::Sessions). A source is an IPv4 address or an IPv6 /64. One more handshake takes the place
/// of the oldest one, one more open session that of the one used longest ago: of its own source if that holds its share,
/// else of the source that holds most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Open sessions at once.
    pub open_max: usize,
    /// The same of one source.
    pub open_per_source: usize,
    /// Handshakes in progress at once. They take no place from open sessions.
    pub handshakes_max: usize,
    /// The same of one source.
    pub handshakes_per_source: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            open_max: SESSIONS_MAX,
            open_per_source: SESSIONS_PER_SOURCE_MAX,
            handshakes_max: HANDSHAKES_MAX,
            handshakes_per_source: HANDSHAKES_PER_SOURCE_MAX,
        }
    }
}

/// A session that may have to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) key: Key,
    pub(super) open: bool,
    /// When it was used last, in uses of all.
    pub(super) used: u64,
}

impl SessionLimits {
    /// Of sessions that we open ourselves, many of them to one source perhaps.
    pub(super) const OURS: Self = Self {
        open_max: SESSIONS_MAX,
        open_per_source: SESSIONS_MAX,
        handshakes_max: SESSIONS_MAX,
        handshakes_per_source: SESSIONS_MAX,
    };
    /// The handshake that ends so that another one can begin at `key`.
    pub(super) fn handshake_victim(
        self,
        all: impl Iterator<Item = Candidate>,
        key: Key,
    ) -> Option<Key> {
        let handshakes = all.filter(|one| !one.open).collect();
        victim(
            handshakes,
            Source::of(key.0.address),
            self.handshakes_per_source,
            self.handshakes_max,
        )
    }
    /// The open session that ends, now that the one at `key` is open too.
    pub(super) fn open_victim(self, all: impl Iterator<Item = Candidate>, key: Key) -> Option<Key> {
        let others = all.filter(|one| one.open && one.key != key).collect();
        victim(others, Source::of(key.0.address), self.open_per_source, self.open_max)
    }
}

/// The session that leaves so that one more of a source fits; `None` while there is room.
fn victim(all: Vec<Candidate>, source: Source, per_source: usize, max: usize) -> Option<Key> {
    let source_of = |one: &Candidate| Source::of(one.key.0.address);
    let mut held: BTreeMap<Source, usize> = BTreeMap::new();
    for one in &all {
        *held.entry(source_of(one)).or_default() += 1;
    }
    let at_share = held.get(&source).is_some_and(|held| *held >= per_source);
    if !at_share && all.len() < max {
        return None;
    }
    all.into_iter()
        .filter(|one| !at_share || source_of(one) == source)
        .max_by_key(|one| (held.get(&source_of(one)).copied(), Reverse(one.used)))
        .map(|one| one.key)
}
