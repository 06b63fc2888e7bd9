//! Where traffic comes from, as shares of a bound count it.

use std::net::{IpAddr, SocketAddr};

use crate::peer::canonical;

/// An IPv4 address, or the /64 of an IPv6 address: a subscriber commonly has a whole /64 (RFC 6177 s2), so its addresses
/// share what one IPv4 address has alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The whole address.
    V4([u8; 4]),
    /// The upper half of the address.
    V6([u8; 8]),
}

impl Source {
    /// The source of what comes from an address.
    pub fn of(address: SocketAddr) -> Self {
        match canonical(address).ip() {
            IpAddr::V4(ip) => Self::V4(ip.octets()),
            IpAddr::V6(ip) => {
                let [upper @ .., _, _, _, _, _, _, _, _] = ip.octets();
                Self::V6(upper)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::of(text.parse().expect("an address"))
    }

    #[test]
    fn an_ipv4_address_is_a_source_and_a_prefix_of_ipv6_is_one() {
        assert_eq!(source("192.0.2.1:1"), source("192.0.2.1:2"));
        assert_eq!(source("192.0.2.1:1"), source("[::ffff:192.0.2.1]:3"));
        assert_ne!(source("192.0.2.1:1"), source("192.0.2.2:1"));
        assert_eq!(source("[2001:db8:0:1::1]:1"), source("[2001:db8:0:1:9::2]:1"));
        assert_ne!(source("[2001:db8:0:1::1]:1"), source("[2001:db8:0:2::1]:1"));
    }
}
