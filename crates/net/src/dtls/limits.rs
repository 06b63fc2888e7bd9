//! How many DTLS sessions there are, and which one ends when one more comes.

use lowmesh_shares::Bound;
use lowmesh_units::Duration;

use crate::params::{
    HANDSHAKES_MAX, HANDSHAKES_PER_SOURCE_MAX, SESSIONS_MAX, SESSIONS_PER_SOURCE_MAX,
};

/// Bounds of [`Sessions`](super::Sessions). A source is an IPv4 address or an IPv6 /64; while places are short its wider
/// prefixes count too. One more handshake takes the place of another one, by lot, and one more open session that of the one
/// used longest ago: of its own source if that holds its share, else of a source that is as near to its shares.
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

impl SessionLimits {
    /// Of sessions that we open ourselves, many of them to one source perhaps.
    pub(super) const OURS: Self = Self {
        open_max: SESSIONS_MAX,
        open_per_source: SESSIONS_MAX,
        handshakes_max: SESSIONS_MAX,
        handshakes_per_source: SESSIONS_MAX,
    };
    /// The places of handshakes. Any of them gives way at any time: its client begins another one.
    pub(super) const fn handshakes(self) -> Bound {
        let (total, share) = (self.handshakes_max, self.handshakes_per_source);
        Bound { total, share, grace: Some(Duration::ZERO) }
    }
    /// The places of open sessions. Any of them gives way at any time: its client gets to know that it has ended.
    pub(super) const fn open(self) -> Bound {
        let (total, share) = (self.open_max, self.open_per_source);
        Bound { total, share, grace: Some(Duration::ZERO) }
    }
}
