//! Where traffic comes from, as shares of a bound count it.

use std::net::{IpAddr, SocketAddr};

use lowmesh_coap::PeerAddress;

use crate::peer::{Peer, canonical};

/// An IPv4 address, or the /64 of an IPv6 address: a subscriber commonly has a whole /64 (RFC 6177 s2), so its addresses
/// share what one IPv4 address has alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The whole address.
    V4([u8; 4]),
    /// The upper half of the address.
    V6([u8; 8]),
}

// One source, one share of each bound: however many ports an address has, and however many addresses a /64.
impl PeerAddress for Peer {
    fn source(self) -> Self {
        Self { address: Source::of(self.address).first_address(), local: None }
    }
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
    /// Its first address, with port 0, which no peer has.
    fn first_address(self) -> SocketAddr {
        let ip = match self {
            Self::V4(octets) => IpAddr::from(octets),
            Self::V6(upper) => {
                let mut octets = [0; 16];
                octets[..upper.len()].copy_from_slice(&upper);
                IpAddr::from(octets)
            }
        };
        SocketAddr::new(ip, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The source of a peer that talks to one of our addresses.
    fn of_peer(text: &str, ours: &str) -> Peer {
        let ours = ours.parse().expect("an address");
        Peer::new(text.parse().expect("an address"), Some(ours)).source()
    }

    #[test]
    fn peers_are_of_one_source_whatever_their_port_and_which_address_of_ours_they_talk_to() {
        let one = of_peer("192.0.2.1:1", "192.0.2.8");
        assert_eq!(one, of_peer("192.0.2.1:2", "192.0.2.9"));
        assert_ne!(one, of_peer("192.0.2.2:1", "192.0.2.8"));
        let one = of_peer("[2001:db8:0:1::1]:1", "2001:db8::1");
        assert_eq!(one, of_peer("[2001:db8:0:1:9::2]:2", "2001:db8::1"));
        assert_ne!(one, of_peer("[2001:db8:0:2::1]:1", "2001:db8::1"));
        assert_eq!(one.source(), one);
    }

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
