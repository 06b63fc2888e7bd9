//! Where traffic comes from, as shares of a bound count it.

use std::net::{IpAddr, SocketAddr};

use lowmesh_coap::PeerAddress;
use lowmesh_coap::params::{DATAGRAM_OVERHEAD, DATAGRAM_OVERHEAD_V4};
pub use lowmesh_shares::Source;

use crate::peer::Peer;

// One source, one share of each bound: however many ports an address has, and however many addresses a /64.
impl PeerAddress for Peer {
    fn overhead(self) -> usize {
        match self.address {
            SocketAddr::V4(_) => DATAGRAM_OVERHEAD_V4,
            SocketAddr::V6(_) => DATAGRAM_OVERHEAD,
        }
    }
    fn source(self) -> Self {
        Self { address: first_address(Source::of(self.address.ip())), local: None }
    }
    fn network(self) -> Source {
        Source::of(self.address.ip())
    }
}

/// The first address of a source, with port 0, which no peer has.
fn first_address(source: Source) -> SocketAddr {
    let ip = match source {
        Source::V4(octets) => IpAddr::from(octets),
        Source::V6(upper) => {
            let mut octets = [0; 16];
            octets[..upper.len()].copy_from_slice(&upper);
            IpAddr::from(octets)
        }
    };
    SocketAddr::new(ip, 0)
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
}
