//! Leisure: over how long the members of a group spread their answers (RFC 7252 s8.2).
//!
//! ```text
//!   lb_Leisure = S * G / R      S octets of a response, G members of the group, R octets a second
//! ```

use lowmesh_units::Duration;

use crate::params::{DEFAULT_LEISURE, GROUP_RATE_OCTETS_PER_SECOND};

/// How a server chooses the leisure of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leisure {
    /// The same for every answer.
    Fixed(Duration),
    /// The lower bound of RFC 7252 s8.2, with the size of the answer.
    Estimated {
        /// Members of the group.
        members: u32,
        /// The data rate that all answers together may have, octets a second.
        octets_per_second: u32,
    },
}

impl Leisure {
    /// The leisure for a group of this size, at the rate from which RFC 7252 derives its default.
    pub const fn of_members(members: u32) -> Self {
        Self::Estimated { members, octets_per_second: GROUP_RATE_OCTETS_PER_SECOND }
    }
    /// The time over which responses of this length are spread.
    ///
    /// ```
    /// use lowmesh_coap::Leisure;
    /// use lowmesh_units::Duration;
    /// // RFC 7252 s8.2: S = 100 octets, G = 50, R = 1000 octets a second give DEFAULT_LEISURE.
    /// assert_eq!(Leisure::of_members(50).of(100), Duration::from_secs(5));
    /// assert_eq!(Leisure::default().of(9), Duration::from_secs(5));
    /// ```
    pub fn of(self, octets: usize) -> Duration {
        match self {
            Self::Fixed(leisure) => leisure,
            Self::Estimated { members, octets_per_second } => {
                let total = octets as u128 * u128::from(members) * 1_000_000_000;
                let nanoseconds = total / u128::from(octets_per_second.max(1));
                Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
            }
        }
    }
}

impl Default for Leisure {
    fn default() -> Self {
        Self::Fixed(DEFAULT_LEISURE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leisure_grows_with_the_answer_and_the_group_and_falls_with_the_rate() {
        let of = |members, octets_per_second, octets| {
            Leisure::Estimated { members, octets_per_second }.of(octets)
        };
        assert_eq!(of(5, 1000, 80), Duration::from_millis(400));
        assert_eq!(of(10, 1000, 80), Duration::from_millis(800));
        assert_eq!(of(5, 2000, 80), Duration::from_millis(200));
        assert_eq!(of(0, 1000, 80), Duration::ZERO);
        assert_eq!(of(5, 0, 80), Duration::from_secs(400), "a rate of zero counts as one");
        assert!(of(u32::MAX, 1, usize::MAX) > Duration::from_secs(1000));
    }
}
