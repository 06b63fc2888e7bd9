//! Where traffic comes from, as shares count it.

use core::net::IpAddr;

/// How many prefixes a source is in, its own one included.
pub const LEVELS: usize = 3;

/// An IPv4 address, or the /64 of an IPv6 address: every host of a /64 chooses its addresses there itself. While places
/// are short its wider prefixes count too, because one subscriber commonly gets many /64s (RFC 6177 s2).
///
/// ```text
///   level   IPv6    IPv4
///   0       /64     /32     the source
///   1       /56     /32     a subscriber
///   2       /48     /24     a site, or what one network rents out together
/// ```
///
/// ```
/// use lowmesh_shares::Source;
///
/// let of = |text: &str| Source::of(text.parse().expect("an address"));
/// assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:9::2"));
/// assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
/// assert_eq!(of("2001:db8:0:1::1").prefix(1), of("2001:db8:0:2::1").prefix(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The whole address.
    V4([u8; 4]),
    /// The upper half of the address.
    V6([u8; 8]),
}

impl Source {
    /// The source of what comes from an address.
    pub const fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(ip) => Self::V4(ip.octets()),
            IpAddr::V6(ip) => {
                Self::V6(((u128::from_be_bytes(ip.octets()) >> 64) as u64).to_be_bytes())
            }
        }
    }
    /// The first source of its prefix at a level below [`LEVELS`].
    #[must_use]
    pub const fn prefix(self, level: usize) -> Self {
        match (self, level) {
            (Self::V4(ip), 2) => Self::V4((u32::from_be_bytes(ip) & !0xff).to_be_bytes()),
            (Self::V6(ip), 1) => Self::V6((u64::from_be_bytes(ip) & !0xff).to_be_bytes()),
            (Self::V6(ip), 2) => Self::V6((u64::from_be_bytes(ip) & !0xffff).to_be_bytes()),
            _ => self,
        }
    }
    /// The first level at which two sources have one prefix; [`LEVELS`] if they have none.
    pub(crate) fn common(self, other: Self) -> usize {
        let same = |level: &usize| self.prefix(*level) == other.prefix(*level);
        (0..LEVELS).find(same).unwrap_or(LEVELS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::of(text.parse().expect("an address"))
    }

    #[test]
    fn sources_meet_at_the_prefix_that_they_share() {
        let meets = |one, other| source(one).common(source(other));
        assert_eq!(meets("2001:db8::1", "2001:db8::2"), 0);
        assert_eq!(meets("2001:db8:0:1::", "2001:db8:0:ff::"), 1);
        assert_eq!(meets("2001:db8:0:1::", "2001:db8:0:101::"), 2);
        assert_eq!(meets("2001:db8::", "2001:db8:1::"), LEVELS);
        assert_eq!(meets("192.0.2.1", "192.0.2.1"), 0);
        assert_eq!(meets("192.0.2.1", "192.0.2.2"), 2);
        assert_eq!(meets("192.0.2.1", "192.0.3.1"), LEVELS);
        assert_eq!(meets("0.0.0.0", "::"), LEVELS);
    }
}
