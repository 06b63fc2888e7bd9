//! Groups of CoAP nodes: joining them, and sending to them (RFC 7252 s8).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{if_nameindex, if_nametoindex};
use nix::sys::socket::SockaddrIn;
use socket2::InterfaceIndexOrAddress;

use crate::params::{ALL_COAP_NODES_LINK, ALL_COAP_NODES_SITE, ALL_COAP_NODES_V4};
use crate::udp::Udp;

/// A network interface, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interface(pub u32);

/// A group that cannot be joined.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// There is no such interface.
    #[error("there is no network interface {name:?}; there are {known}")]
    NoInterface {
        /// What it was called.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// Not a multicast address.
    #[error("{0} is not a multicast address")]
    NoGroup(IpAddr),
    /// The system says no.
    #[error("cannot join {group} at interface {interface}: {error}")]
    Refused {
        /// The group.
        group: IpAddr,
        /// The number of the interface.
        interface: u32,
        /// The error of the system.
        error: io::Error,
    },
}

impl Interface {
    /// The interface of a name, or of a number as IPv6 zones may be written.
    pub fn named(name: &str) -> Result<Self, GroupError> {
        let index = if_nametoindex(name).ok().or_else(|| name.parse().ok());
        index.map(Self).ok_or_else(|| {
            let known: Vec<String> = all().map(|(name, _)| name).collect();
            GroupError::NoInterface { name: name.to_owned(), known: known.join(", ") }
        })
    }
    /// Its first IPv4 address, if it has one.
    fn ipv4(self) -> Option<Ipv4Addr> {
        let named = |(name, one): (String, Self)| (one == self).then_some(name);
        let name = all().find_map(named)?;
        let mut addresses = getifaddrs().ok()?.filter(|one| one.interface_name == name);
        addresses.find_map(|one| one.address?.as_sockaddr_in().map(SockaddrIn::ip))
    }
    /// All interfaces, in the system's order.
    pub fn all() -> Vec<Self> {
        all().map(|(_, interface)| interface).collect()
    }
}

fn all() -> impl Iterator<Item = (String, Interface)> {
    let list = if_nameindex();
    let named = |one: &nix::net::if_::Interface| {
        (one.name().to_string_lossy().into_owned(), Interface(one.index()))
    };
    let all: Vec<_> = list.iter().flat_map(|list| list.iter().map(named)).collect();
    all.into_iter()
}

impl Udp {
    /// Joins a group at an interface.
    pub fn join(&self, group: IpAddr, interface: Interface) -> Result<(), GroupError> {
        if !group.is_multicast() {
            return Err(GroupError::NoGroup(group));
        }
        let Interface(index) = interface;
        let joined = match group {
            IpAddr::V6(group) => self.socket().join_multicast_v6(&group, index),
            IpAddr::V4(group) => {
                let interface = InterfaceIndexOrAddress::Index(index);
                self.socket().join_multicast_v4_n(&group, &interface)
            }
        };
        match joined {
            // To join twice is to have joined.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(()),
            other => other.map_err(|error| GroupError::Refused { group, interface: index, error }),
        }
    }
    /// Joins All CoAP Nodes at every interface that can; how many memberships that makes.
    pub fn join_all_coap_nodes(&self) -> usize {
        let mut groups: Vec<IpAddr> = Vec::new();
        if self.local_addr().is_ipv6() {
            groups.extend([ALL_COAP_NODES_LINK, ALL_COAP_NODES_SITE].map(IpAddr::V6));
        }
        if self.takes_ipv4() {
            groups.push(ALL_COAP_NODES_V4.into());
        }
        let interfaces = Interface::all();
        let pairs = groups.iter().flat_map(|group| interfaces.iter().map(move |one| (group, one)));
        pairs.filter(|(group, interface)| self.join(**group, **interface).is_ok()).count()
    }
    /// Where multicast requests leave that name no interface, and how many hops they go (1 stays on
    /// the link).
    pub fn send_groups_by(&self, interface: Interface, hops: u8) -> io::Result<()> {
        let socket = self.socket();
        if self.local_addr().is_ipv6() {
            socket.set_multicast_if_v6(interface.0)?;
            socket.set_multicast_hops_v6(u32::from(hops))?;
        }
        if self.takes_ipv4() {
            socket.set_multicast_ttl_v4(u32::from(hops))?;
            // Here IPv4 knows an interface by its address.
            if let Some(address) = interface.ipv4() {
                socket.set_multicast_if_v4(&address)?;
            }
        }
        Ok(())
    }
    fn takes_ipv4(&self) -> bool {
        match self.local_addr().ip() {
            IpAddr::V4(_) => true,
            IpAddr::V6(ip) => ip == Ipv6Addr::UNSPECIFIED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_a_name_and_a_number() {
        for (name, interface) in all() {
            assert_eq!(Interface::named(&name).ok(), Some(interface));
            assert_eq!(Interface::named(&interface.0.to_string()).ok(), Some(interface));
        }
    }

    #[test]
    fn an_unknown_interface_is_answered_with_the_list() {
        let error = Interface::named("no-such-one").expect_err("unknown").to_string();
        assert!(error.contains("no-such-one") && error.contains("there are"), "{error}");
    }

    #[tokio::test]
    async fn an_address_that_is_no_group_is_not_joined() {
        let socket = Udp::ephemeral().expect("a free port");
        let refused = socket.join(IpAddr::V6(Ipv6Addr::LOCALHOST), Interface(1));
        assert!(matches!(refused, Err(GroupError::NoGroup(_))));
    }
}
