//! One limit: how many places there are, and how they are shared.

use lowmesh_units::Duration;

use crate::source::LEVELS;

/// A limit, and how sources share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The places of all sources together.
    pub total: usize,
    /// The places of one source: an IPv4 address or an IPv6 /64. One more takes a place of the same source.
    pub share: usize,
    /// How long a holder keeps its place while others wait for one. `None` lasts until the holder is idle.
    pub grace: Option<Duration>,
}

impl Bound {
    /// A limit without a share: for holders that do not compete, such as our own.
    pub const fn of(total: usize) -> Self {
        Self { total, share: total, grace: None }
    }
    /// The places of one prefix at each level, while places are short. One subscriber gets an IPv6 /56 (RFC 6177 s2), so
    /// it counts as one address does; a wider prefix may be many subscribers, and gets half of all places.
    pub(crate) const fn shares(&self) -> [usize; LEVELS] {
        let half = self.total / 2;
        let wide = if half > self.share { half } else { self.share };
        let mut shares = [wide; LEVELS];
        (shares[0], shares[1]) = (self.share, self.share);
        shares
    }
    /// The places of all unproven addresses together.
    pub(crate) const fn unproven(&self) -> usize {
        self.total.div_ceil(2)
    }
    /// The places of the unproven addresses of one source.
    pub(crate) const fn unproven_share(&self) -> usize {
        self.share.div_ceil(2)
    }
}
