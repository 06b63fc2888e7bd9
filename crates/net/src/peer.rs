//! The peer at the other end of a datagram socket, and the address of ours that it talks to.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// The address of a peer, and the local address that it uses.
///
/// A machine with several addresses answers from the one that was asked, or the answer is not
/// recognised (RFC 7252 s4.1 and s5.3.2). So one machine is two peers if it talks to two of our addresses.
/// [`crate::udp::Udp::peer`] makes the peer for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Theirs. IPv4 is never written as IPv6.
    pub address: SocketAddr,
    /// Ours; `None` for a group, and for a member of one that asks the whole group.
    pub local: Option<IpAddr>,
}

impl Peer {
    /// A peer, and the local address that it uses.
    pub fn new(address: SocketAddr, local: Option<IpAddr>) -> Self {
        Self { address: canonical(address), local }
    }
    /// True for a group of peers.
    pub const fn is_group(&self) -> bool {
        match self.address {
            SocketAddr::V4(address) => address.ip().is_multicast(),
            SocketAddr::V6(address) => address.ip().is_multicast(),
        }
    }
}

/// The order of the fields, and of IPv4 before IPv6, in whole words: tables are searched by it several times for each
/// datagram.
impl Ord for Peer {
    fn cmp(&self, other: &Self) -> Ordering {
        let addresses = match (&self.address, &other.address) {
            (SocketAddr::V4(one), SocketAddr::V4(two)) => {
                let key =
                    |it: &SocketAddrV4| u64::from(u32::from(*it.ip())) << 16 | u64::from(it.port());
                key(one).cmp(&key(two))
            }
            (SocketAddr::V6(one), SocketAddr::V6(two)) => {
                let key = |it: &SocketAddrV6| {
                    (u128::from(*it.ip()), it.port(), it.flowinfo(), it.scope_id())
                };
                key(one).cmp(&key(two))
            }
            (SocketAddr::V4(_), SocketAddr::V6(_)) => Ordering::Less,
            (SocketAddr::V6(_), SocketAddr::V4(_)) => Ordering::Greater,
        };
        addresses.then_with(|| self.local.cmp(&other.local))
    }
}

/// In whole words too.
impl Hash for Peer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.address {
            SocketAddr::V4(one) => {
                state.write_u64(u64::from(u32::from(*one.ip())) << 16 | u64::from(one.port()));
            }
            SocketAddr::V6(one) => {
                state.write_u128((*one.ip()).into());
                state.write_u64(u64::from(one.scope_id()) << 16 | u64::from(one.port()));
            }
        }
        match self.local {
            Some(IpAddr::V4(local)) => state.write_u32(local.into()),
            Some(IpAddr::V6(local)) => state.write_u128(local.into()),
            None => {}
        }
    }
}

impl PartialOrd for Peer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// One form for each address: no IPv4 inside of IPv6, no flow label, and no zone but where the address depends on it, for
/// answers come without (RFC 4007 s6).
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match (address, address.ip().to_canonical()) {
        (SocketAddr::V6(mut address), IpAddr::V6(_)) => {
            address.set_flowinfo(0);
            if !address.ip().is_unicast_link_local() && !address.ip().is_multicast() {
                address.set_scope_id(0);
            }
            SocketAddr::V6(address)
        }
        (_, ip) => SocketAddr::new(ip, address.port()),
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher as _, RandomState};

    use super::*;

    #[test]
    fn an_ipv4_address_inside_of_ipv6_is_the_ipv4_address() {
        let mapped: SocketAddr = "[::ffff:192.0.2.1]:5683".parse().expect("an address");
        assert_eq!(Peer::new(mapped, None).to_string(), "192.0.2.1:5683");
    }

    #[test]
    fn peers_are_ordered_by_address_then_port_then_our_own_address() {
        let local = |text: &str| Some(text.parse().expect("an address"));
        let peer = |text: &str, local| Peer::new(text.parse().expect("an address"), local);
        let ascending = [
            peer("10.0.0.255:9", None),
            peer("10.0.1.0:1", None),
            peer("10.0.1.0:2", None),
            peer("10.0.1.0:2", local("10.0.0.1")),
            peer("10.0.1.0:2", local("::1")),
            peer("[::2]:1", None),
            peer("[2001:db8::1]:1", None),
            peer("[fe80::1%1]:1", None),
            peer("[fe80::1%2]:1", None),
            peer("[fe80::1%1]:2", None),
        ];
        let keys = RandomState::new();
        for (place, one) in ascending.iter().enumerate() {
            for (other_place, other) in ascending.iter().enumerate() {
                assert_eq!(one.cmp(other), place.cmp(&other_place), "{one:?} {other:?}");
                assert_eq!(keys.hash_one(one) == keys.hash_one(other), place == other_place);
            }
        }
    }

    #[test]
    fn a_zone_belongs_to_addresses_of_one_link_only() {
        for (text, zone) in [("fe80::1", 7), ("ff02::fd", 7), ("2001:db8::1", 0), ("::1", 0)] {
            let ip = text.parse().expect("an address");
            let address = canonical(std::net::SocketAddrV6::new(ip, 1, 0, 7).into());
            assert!(matches!(address, SocketAddr::V6(one) if one.scope_id() == zone), "{text}");
        }
    }

    #[test]
    fn groups_are_known_by_their_addresses() {
        for (text, group) in
            [("[ff02::fd]:5683", true), ("224.0.1.187:1", true), ("[::1]:1", false)]
        {
            let address: SocketAddr = text.parse().expect("an address");
            assert_eq!(Peer::new(address, None).is_group(), group, "{text}");
        }
    }
}
