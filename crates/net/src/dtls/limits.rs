//! How many DTLS sessions there are, and which one ends when one more comes.

use super::Key;
use crate::params::{
    HANDSHAKES_MAX, HANDSHAKES_PER_SOURCE_MAX, SESSIONS_MAX, SESSIONS_PER_SOURCE_MAX,
};
use crate::share::{Bound, Held};
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
        let bound = Bound { total: self.handshakes_max, share: self.handshakes_per_source };
        victim(all.filter(|one| !one.open).collect(), bound, key)
    }
    /// The open session that ends, now that the one at `key` is open too.
    pub(super) fn open_victim(self, all: impl Iterator<Item = Candidate>, key: Key) -> Option<Key> {
        let bound = Bound { total: self.open_max, share: self.open_per_source };
        victim(all.filter(|one| one.open && one.key != key).collect(), bound, key)
    }
}

/// The session that leaves so that the one at `key` fits; `None` while there is room.
fn victim(all: Vec<Candidate>, bound: Bound, key: Key) -> Option<Key> {
    let source_of = |key: Key| Source::of(key.0.address);
    let held: Held = all.iter().map(|one| (source_of(one.key), 1)).collect();
    let crowd = held.crowd(bound, source_of(key), 1)?;
    held.longest_idle(crowd, all.into_iter().map(|one| (source_of(one.key), one.used, one.key)))
}
