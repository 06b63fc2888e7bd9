//! IPv6 addresses (RFC 4291): those that a mesh uses, and the questions that its layers ask of one.

use core::fmt;
use core::net::Ipv6Addr;

use lowmesh_units::Eui64;

/// An IPv6 address, most significant octet first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Address(pub [u8; 16]);

/// How far a multicast address reaches: the low four bits of its second octet (RFC 4291 s2.7, RFC 7346).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(pub u8);

impl Scope {
    /// Never leaves the interface.
    pub const INTERFACE_LOCAL: Self = Self(1);
    /// The neighbours on the link; never forwarded.
    pub const LINK_LOCAL: Self = Self(2);
    /// The whole mesh (RFC 7346 s2).
    pub const REALM_LOCAL: Self = Self(3);
    /// The site.
    pub const SITE_LOCAL: Self = Self(5);
}

impl Address {
    /// `::`, no address (RFC 4291 s2.5.2).
    pub const UNSPECIFIED: Self = Self([0; 16]);
    /// `::1`: RFC 4291 s2.5.3.
    pub const LOOPBACK: Self = Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    /// `ff02::1`, every node on the link (RFC 4291 s2.7.1).
    pub const ALL_NODES: Self = Self::link_local_group(0x01);
    /// `ff02::2`, every router on the link (RFC 4291 s2.7.1).
    pub const ALL_ROUTERS: Self = Self::link_local_group(0x02);
    /// `ff02::fd`, every CoAP node on the link (RFC 7252 s12.8).
    pub const ALL_COAP_NODES: Self = Self::link_local_group(0xfd);
    /// `ff02::1a`, every RPL node on the link (RFC 6550 s20.19).
    pub const ALL_RPL_NODES: Self = Self::link_local_group(0x1a);
    /// `ff03::fc`, every MPL forwarder in the mesh (RFC 7731 s5.1, s11.3).
    pub const ALL_MPL_FORWARDERS: Self = Self::ALL_LINK_MPL_FORWARDERS.in_scope(Scope::REALM_LOCAL);
    /// `ff02::fc`, every MPL forwarder on the link, which control messages go to (RFC 7731 s5.1).
    pub const ALL_LINK_MPL_FORWARDERS: Self = Self::link_local_group(0xfc);
    /// `fe80::/64`, the prefix of link-local addresses (RFC 4291 s2.5.6).
    pub const LINK_LOCAL_PREFIX: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];

    const fn link_local_group(group: u8) -> Self {
        Self([0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, group])
    }

    /// The same group address with another scope.
    pub const fn in_scope(mut self, scope: Scope) -> Self {
        self.0[1] = self.0[1] & 0xf0 | scope.0 & 0x0f;
        self
    }
    /// The address of an interface identifier under a prefix of 64 bits.
    pub const fn from_parts(prefix: [u8; 8], iid: [u8; 8]) -> Self {
        let mut octets = [0; 16];
        let mut i = 0;
        while i < 8 {
            octets[i] = prefix[i];
            octets[i + 8] = iid[i];
            i += 1;
        }
        Self(octets)
    }
    /// The link-local address of a node (RFC 4862 s5.3 with the interface identifier of RFC 4944 s6).
    pub const fn link_local(node: Eui64) -> Self {
        Self::from_parts(Self::LINK_LOCAL_PREFIX, node.interface_identifier())
    }
    /// The address of a node under `prefix` (RFC 4862 s5.5.3).
    pub const fn global(prefix: [u8; 8], node: Eui64) -> Self {
        Self::from_parts(prefix, node.interface_identifier())
    }

    /// The first 64 bits.
    pub fn prefix(&self) -> [u8; 8] {
        let mut prefix = [0; 8];
        prefix.copy_from_slice(&self.0[..8]);
        prefix
    }
    /// The last 64 bits.
    pub fn interface_identifier(&self) -> [u8; 8] {
        let mut iid = [0; 8];
        iid.copy_from_slice(&self.0[8..]);
        iid
    }
    /// The node whose EUI-64 made the interface identifier; means something only where all are made so.
    pub fn eui64(&self) -> Eui64 {
        Eui64::from_interface_identifier(self.interface_identifier())
    }

    /// The group of those who might have this address: `ff02::1:ff00:0/104` and its last 24 bits (RFC 4291 s2.7.1).
    pub const fn solicited_node(&self) -> Self {
        let mut group = Self::link_local_group(0);
        group.0[11] = 1;
        group.0[12] = 0xff;
        group.0[13] = self.0[13];
        group.0[14] = self.0[14];
        group.0[15] = self.0[15];
        group
    }

    /// True for `::`.
    pub fn is_unspecified(&self) -> bool {
        *self == Self::UNSPECIFIED
    }
    /// True for `::1`.
    pub fn is_loopback(&self) -> bool {
        *self == Self::LOOPBACK
    }
    /// True in `ff00::/8`.
    pub const fn is_multicast(&self) -> bool {
        self.0[0] == 0xff
    }
    /// True in `fe80::/10`.
    pub const fn is_link_local(&self) -> bool {
        self.0[0] == 0xfe && self.0[1] & 0xc0 == 0x80
    }
    /// How far a multicast address reaches; `None` for unicast.
    pub const fn multicast_scope(&self) -> Option<Scope> {
        if self.is_multicast() { Some(Scope(self.0[1] & 0x0f)) } else { None }
    }
    /// True for a group that reaches further than the link, whose packets routers forward (RFC 4291 s2.7).
    pub const fn is_routed_group(&self) -> bool {
        self.is_multicast() && self.0[1] & 0x0f > Scope::LINK_LOCAL.0
    }
}

impl From<[u8; 16]> for Address {
    fn from(octets: [u8; 16]) -> Self {
        Self(octets)
    }
}
impl From<Address> for [u8; 16] {
    fn from(address: Address) -> Self {
        address.0
    }
}
impl From<Ipv6Addr> for Address {
    fn from(address: Ipv6Addr) -> Self {
        Self(address.octets())
    }
}
impl From<Address> for Ipv6Addr {
    fn from(address: Address) -> Self {
        Self::from(address.0)
    }
}
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0).fmt(f)
    }
}
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::*;

    const NODE: Eui64 = Eui64([0x02, b'L', b'M', 0, 0, 0, 0, 9]);

    #[test]
    fn a_link_local_address_names_its_node() {
        let address = Address::link_local(NODE);
        assert_eq!(format!("{address}"), "fe80::4c:4d00:0:9");
        assert!(address.is_link_local() && !address.is_multicast());
        assert_eq!(address.eui64(), NODE);
    }

    #[test]
    fn groups_have_a_scope_and_unicast_has_none() {
        assert_eq!(format!("{}", Address::ALL_RPL_NODES), "ff02::1a");
        assert_eq!(Address::ALL_NODES.multicast_scope(), Some(Scope::LINK_LOCAL));
        assert_eq!(Address::link_local(NODE).multicast_scope(), None);
        assert_eq!(format!("{}", Address::ALL_MPL_FORWARDERS), "ff03::fc");
    }

    #[test]
    fn the_group_of_a_neighbour_solicitation_has_the_last_24_bits() {
        // The example of RFC 4291 s2.7.1.
        let address = Address::from(Ipv6Addr::new(0x4037, 0, 0, 0, 1, 0x800, 0x200e, 0x8c6c));
        assert_eq!(format!("{}", address.solicited_node()), "ff02::1:ff0e:8c6c");
    }

    #[test]
    fn the_two_halves_make_the_address_again() {
        let address = Address::global([0xfd, 0, 0, 0, 0, 0, 0, 1], NODE);
        assert_eq!(Address::from_parts(address.prefix(), address.interface_identifier()), address);
        assert_eq!(Address::from(<[u8; 16]>::from(address)), address);
    }
}
