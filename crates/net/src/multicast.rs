//! Groups of CoAP nodes: joining them, and sending to them (RFC 7252 s8).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{if_nameindex, if_nametoindex};
use nix::sys::socket::SockaddrIn;
use socket2::{InterfaceIndexOrAddress, Socket};

use crate::params::{ALL_COAP_NODES_LINK, ALL_COAP_NODES_SITE, ALL_COAP_NODES_V4};
use crate::udp::Udp;

/// A network interface, by its number; 0 is the choice of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Interface(pub u32);

/// A group that cannot be joined.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// There is no such interface.
    #[error("there is no network interface {name:?}; the interfaces are {known}")]
    NoInterface {
        /// What it was called.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// Not a multicast address.
    #[error("{0} is not a multicast address")]
    NoGroup(IpAddr),
    /// The server has no socket that datagrams to the group come to.
    #[error(
        "no UDP socket receives datagrams to {0}: a server receives group requests at [::], or at 0.0.0.0 for IPv4"
    )]
    NoSocket(IpAddr),
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
    /// The interface with a name, or with a number as in an IPv6 zone.
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

/// Joins a group with a socket.
fn join(socket: &Socket, group: IpAddr, interface: Interface) -> Result<(), GroupError> {
    if !group.is_multicast() {
        return Err(GroupError::NoGroup(group));
    }
    let Interface(index) = interface;
    let joined = match group {
        IpAddr::V6(group) => socket.join_multicast_v6(&group, index),
        IpAddr::V4(group) => {
            socket.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(index))
        }
    };
    match joined {
        // To join twice is to have joined.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(()),
        other => other.map_err(|error| GroupError::Refused { group, interface: index, error }),
    }
}

/// Leaves a group with a socket; one that is not in it stays as it is.
fn leave(socket: &Socket, group: IpAddr, interface: Interface) {
    let Interface(index) = interface;
    let _not_in_it = match group {
        IpAddr::V6(group) => socket.leave_multicast_v6(&group, index),
        IpAddr::V4(group) => {
            socket.leave_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(index))
        }
    };
}

/// The plain UDP sockets of a server, by which it joins and leaves groups, also while it runs. They stay open as long as a
/// value of this type.
#[derive(Clone, Debug, Default)]
pub struct Groups(Arc<Mutex<Vec<(IpAddr, Socket)>>>);

impl Groups {
    /// One more socket of the server.
    pub(crate) fn add(&self, udp: &Udp) -> io::Result<()> {
        let socket = udp.socket().try_clone()?;
        self.sockets().push((udp.local_addr().ip(), socket));
        Ok(())
    }
    /// Joins a group at an interface, or at every interface that can.
    pub fn join(&self, group: IpAddr, interface: Option<Interface>) -> Result<(), GroupError> {
        let sockets = self.sockets();
        let mut result = Err(GroupError::NoSocket(group));
        if !group.is_multicast() {
            return Err(GroupError::NoGroup(group));
        }
        for (_, socket) in sockets.iter().filter(|(local, _)| hears(*local, group)) {
            for one in interface.map_or_else(Interface::all, |one| vec![one]) {
                match join(socket, group, one) {
                    Err(_) if result.is_ok() => {}
                    joined => result = joined,
                }
            }
        }
        result
    }
    /// Leaves a group at an interface, or at every interface.
    pub fn leave(&self, group: IpAddr, interface: Option<Interface>) {
        let interfaces = interface.map_or_else(Interface::all, |one| vec![one]);
        for (_, socket) in self.sockets().iter().filter(|(local, _)| hears(*local, group)) {
            for one in &interfaces {
                leave(socket, group, *one);
            }
        }
    }
    fn sockets(&self) -> MutexGuard<'_, Vec<(IpAddr, Socket)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether datagrams to a group come to a socket that is bound to an address.
fn hears(local: IpAddr, group: IpAddr) -> bool {
    match (local, group) {
        (IpAddr::V6(local), IpAddr::V4(_)) => local.is_unspecified(),
        (local, group) => {
            local == group || (local.is_unspecified() && local.is_ipv4() == group.is_ipv4())
        }
    }
}

impl Udp {
    /// Joins a group at an interface.
    pub fn join(&self, group: IpAddr, interface: Interface) -> Result<(), GroupError> {
        join(&self.socket(), group, interface)
    }
    /// Joins All CoAP Nodes at every interface with multicast; returns the number of memberships.
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
    /// Sets the interface for multicast requests that name none, and their hop limit (1 stays on the link). Interface 0
    /// leaves the choice to the system.
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
        assert!(error.contains("no-such-one") && error.contains("the interfaces are"), "{error}");
    }

    #[test]
    fn a_group_reaches_sockets_that_take_all_addresses_or_its_own() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        for (local, group, reaches) in [
            ("::", "ff02::fd", true),
            ("::", "224.0.1.187", true),
            ("0.0.0.0", "224.0.1.187", true),
            ("0.0.0.0", "ff02::fd", false),
            ("::1", "ff02::fd", false),
            ("ff02::fd", "ff02::fd", true),
        ] {
            assert_eq!(hears(ip(local), ip(group)), reaches, "{local} {group}");
        }
    }

    #[tokio::test]
    async fn a_group_without_a_socket_for_it_is_not_joined() {
        let groups = Groups::default();
        let group = IpAddr::V4(ALL_COAP_NODES_V4);
        assert!(matches!(groups.join(group, None), Err(GroupError::NoSocket(_))));
        let socket = Udp::bind((Ipv4Addr::UNSPECIFIED, 0).into()).expect("a free port");
        groups.add(&socket).expect("a socket more");
        let loopback = Interface::named("lo").expect("every machine has it");
        groups.join(group, Some(loopback)).expect("joined");
        groups.leave(group, Some(loopback));
        groups.leave(group, Some(loopback));
        let unknown = groups.join(group, Some(Interface(999_999)));
        assert!(matches!(unknown, Err(GroupError::Refused { .. })), "{unknown:?}");
    }

    #[tokio::test]
    async fn an_address_that_is_no_group_is_not_joined() {
        let socket = Udp::ephemeral().expect("a free port");
        let refused = socket.join(IpAddr::V6(Ipv6Addr::LOCALHOST), Interface(1));
        assert!(matches!(refused, Err(GroupError::NoGroup(_))));
    }
}
