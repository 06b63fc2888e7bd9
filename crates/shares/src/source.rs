//! Where traffic comes from, as shares count it.

use core::net::IpAddr;

/// How many prefixes a source is in, its own one included.
pub const LEVELS: usize = 5;

/// The bits of the prefix at each level: ours, but for the /64 (RFC 4291 s2.5.1).
const V6_BITS: [u32; LEVELS] = [64, 56, 48, 40, 32];
const V4_BITS: [u32; LEVELS] = [32, 32, 24, 20, 16];

/// An IPv4 address, or the /64 of an IPv6 address: every host of a /64 chooses its addresses there itself. While places
/// are short its wider prefixes count too, because one subscriber commonly gets many /64s (RFC 6177 s2).
///
/// ```text
///   level   IPv6    IPv4
///   0       /64     /32     the source
///   1       /56     /32     a subscriber
///   2       /48     /24     a site, or what one network rents out together
///   3       /40     /20     many sites
///   4       /32     /16     a provider
/// ```
///
/// There is no wider one, such as an IPv4 /8: all clients of a laboratory or of a large provider are often in one.
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
        match self {
            Self::V4(ip) => {
                let mask = u32::MAX << (u32::BITS - V4_BITS[level]);
                Self::V4((u32::from_be_bytes(ip) & mask).to_be_bytes())
            }
            Self::V6(ip) => {
                let mask = u64::MAX << (u64::BITS - V6_BITS[level]);
                Self::V6((u64::from_be_bytes(ip) & mask).to_be_bytes())
            }
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
        assert_eq!(meets("2001:db8::", "2001:db8:1::"), 3);
        assert_eq!(meets("2001:db8::", "2001:db8:100::"), 4);
        assert_eq!(meets("2001:db8::", "2001:db9::"), LEVELS);
        assert_eq!(meets("192.0.2.1", "192.0.2.1"), 0);
        assert_eq!(meets("192.0.2.1", "192.0.2.2"), 2);
        assert_eq!(meets("192.0.2.1", "192.0.3.1"), 3);
        assert_eq!(meets("192.0.2.1", "192.0.16.1"), 4);
        assert_eq!(meets("192.0.2.1", "192.1.2.1"), LEVELS);
        assert_eq!(meets("0.0.0.0", "::"), LEVELS);
    }
}
