//! The addresses of a node (RFC 4291 s2.8) and, as all of them are made from EUI-64s, its neighbours'.

use alloc::vec::Vec;

use lowmesh_machine::Rejected;
use lowmesh_units::Eui64;
use lowmesh_wire::ipv6::{Address, Prefix};

use crate::params::{GLOBAL_ADDRESSES, GROUPS, PREFIX_BITS};

/// A global address, and the prefix of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global {
    /// The whole address.
    pub address: Address,
    /// Its first bits, which addresses of the same link have too.
    pub prefix: Prefix,
}

impl Global {
    /// An address whose link has a prefix of `bits` bits; `None` for more than 128 bits, a group, a link-local address
    /// or none.
    pub fn new(address: Address, bits: u8) -> Option<Self> {
        let is_global =
            !address.is_multicast() && !address.is_link_local() && !address.is_unspecified();
        let prefix = Prefix::new(address, bits)?;
        is_global.then_some(Self { address, prefix })
    }
    /// RFC 6724 s2.2 CommonPrefixLen: the bits that `destination` shares with the address, at most those of the prefix.
    fn common_bits(&self, destination: &Address) -> u32 {
        let differing = u128::from_be_bytes(self.address.0) ^ u128::from_be_bytes(destination.0);
        differing.leading_zeros().min(u32::from(self.prefix.bits()))
    }
}

/// What a node answers to: its link-local and global addresses and the groups that it joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    node: Eui64,
    link_local: Address,
    /// The first global address; the link-local one where there is none.
    global: Address,
    /// Bits of its prefix.
    bits: u8,
    /// The global addresses behind the first.
    others: Vec<Global>,
    /// In order, without duplicates.
    groups: Vec<Address>,
}

impl Addresses {
    /// The addresses of `node` in the mesh `prefix`.
    pub fn new(node: Eui64, prefix: [u8; 8]) -> Self {
        Self {
            node,
            link_local: Address::link_local(node),
            global: Address::global(prefix, node),
            bits: PREFIX_BITS,
            others: Vec::new(),
            groups: Vec::new(),
        }
    }
    /// The addresses of `node` without a global one.
    pub fn on_link(node: Eui64) -> Self {
        Self::new(node, Address::LINK_LOCAL_PREFIX)
    }
    /// Adds a global address.
    pub fn add(&mut self, global: Global) -> Result<(), Rejected> {
        const WHAT: &str = "global address";
        if self.global.is_link_local() {
            (self.global, self.bits) = (global.address, global.prefix.bits());
            return Ok(());
        }
        if self.globals().any(|known| known.address == global.address) {
            return Err(Rejected::Taken { what: WHAT, why: "the node has it already" });
        }
        if self.others.len() + 1 >= GLOBAL_ADDRESSES {
            return Err(Rejected::Full { what: WHAT, why: "the node has as many as it can have" });
        }
        self.others.push(global);
        Ok(())
    }

    /// The node's EUI-64.
    pub const fn node(&self) -> Eui64 {
        self.node
    }
    /// Its address on the link.
    pub const fn link_local(&self) -> Address {
        self.link_local
    }
    /// Its address in the mesh: the first of its global ones, or the link-local one if it has none.
    pub const fn global(&self) -> Address {
        self.global
    }
    /// Its global addresses.
    pub fn globals(&self) -> impl Iterator<Item = Global> + '_ {
        Global::new(self.global, self.bits).into_iter().chain(self.others.iter().copied())
    }
    /// True for an address under the prefix of one of its global addresses.
    pub fn has_prefix_of(&self, address: &Address) -> bool {
        self.globals().any(|global| global.prefix.contains(address))
    }

    /// True for an address that packets for this node have, groups included.
    pub fn contains(&self, address: &Address) -> bool {
        if address.is_multicast() {
            // RFC 4291 s2.8: every node is in all-nodes, every router in all-routers; each node of a mesh forwards, so it is
            // a router. RFC 6550 s20.19: every RPL node is in all-RPL-nodes.
            *address == Address::ALL_RPL_NODES
                || *address == Address::ALL_NODES
                || *address == Address::ALL_ROUTERS
                // RFC 4861 s7.2.1: the groups in which others ask for the node's addresses.
                || *address == self.link_local.solicited_node()
                || *address == self.global.solicited_node()
                || self.others.iter().any(|other| *address == other.address.solicited_node())
                || self.groups.binary_search(address).is_ok()
        } else {
            *address == self.global
                || *address == self.link_local
                || self.others.iter().any(|other| *address == other.address)
        }
    }

    /// Joins a group.
    pub fn join(&mut self, group: Address) -> Result<(), Rejected> {
        const WHAT: &str = "group to join";
        if !group.is_multicast() {
            return Err(Rejected::Invalid { what: WHAT, why: "it is not a multicast address" });
        }
        if let Err(at) = self.groups.binary_search(&group) {
            if self.groups.len() == GROUPS {
                return Err(Rejected::Full {
                    what: WHAT,
                    why: "the node is in as many as it can be",
                });
            }
            self.groups.insert(at, group);
        }
        Ok(())
    }
    /// Leaves a group; nothing happens if the node is not in it.
    pub fn leave(&mut self, group: &Address) {
        if let Ok(at) = self.groups.binary_search(group) {
            self.groups.remove(at);
        }
    }

    /// The source address for a packet to `destination`: one of the same scope (RFC 6724 s5 rule 2), and of several the
    /// first of those with the longest common prefix (rule 8).
    pub fn source_for(&self, destination: &Address) -> Address {
        let on_link = match destination.multicast_scope() {
            Some(scope) => scope <= lowmesh_wire::ipv6::Scope::LINK_LOCAL,
            None => destination.is_link_local(),
        };
        match (on_link, self.others.as_slice()) {
            (true, _) => self.link_local,
            (false, []) => self.global,
            (false, _) => self.longest_match(destination),
        }
    }

    fn longest_match(&self, destination: &Address) -> Address {
        // Of equal keys `min_by_key` takes the first, `max_by_key` the last.
        let nearest =
            self.globals().min_by_key(|global| core::cmp::Reverse(global.common_bits(destination)));
        nearest.map_or(self.global, |global| global.address)
    }
}

/// The neighbour that a next hop is; `None` for a group, which goes out as a broadcast.
///
/// Interface identifiers are made from EUI-64s (RFC 4944 s6), so no neighbour discovery is needed.
pub fn link_destination(next_hop: &Address) -> Option<Eui64> {
    if next_hop.is_multicast() { None } else { Some(next_hop.eui64()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::PREFIX;
    use lowmesh_units::NodeId;

    #[test]
    fn a_node_answers_to_its_addresses_and_groups_only() {
        let group = Address::global([0xff, 0x03, 0, 0, 0, 0, 0, 0], NodeId(0).eui64());
        let mut addresses = Addresses::new(NodeId(1).eui64(), PREFIX);
        let (global, link_local) = (addresses.global(), addresses.link_local());
        let groups = [Address::ALL_NODES, Address::ALL_ROUTERS, Address::ALL_RPL_NODES];
        for own in [global, link_local].into_iter().chain(groups) {
            assert!(addresses.contains(&own), "{own}");
        }
        assert!(!addresses.contains(&Address::global(PREFIX, NodeId(2).eui64())));
        assert!(!addresses.contains(&group));
        addresses.join(group).expect("room");
        assert!(addresses.contains(&group));
        addresses.leave(&group);
        assert!(!addresses.contains(&group));
    }

    #[test]
    fn groups_are_bounded_and_joining_twice_takes_one_place() {
        let mut addresses = Addresses::new(NodeId(1).eui64(), PREFIX);
        let group = |last| {
            let mut group = Address::ALL_NODES;
            group.0[15] = last;
            group
        };
        for i in 0..GROUPS {
            addresses.join(group(0x40 + i as u8)).expect("room");
            addresses.join(group(0x40 + i as u8)).expect("already in");
        }
        assert!(addresses.join(group(0x30)).is_err());
        assert!(addresses.join(Address::UNSPECIFIED).is_err());
    }

    #[test]
    fn the_source_has_the_scope_of_the_destination() {
        let addresses = Addresses::new(NodeId(1).eui64(), PREFIX);
        let peer = NodeId(2).eui64();
        assert_eq!(addresses.source_for(&Address::ALL_RPL_NODES), addresses.link_local());
        assert_eq!(addresses.source_for(&Address::link_local(peer)), addresses.link_local());
        assert_eq!(addresses.source_for(&Address::global(PREFIX, peer)), addresses.global());
    }

    fn given(text: &str) -> Global {
        let prefix: Prefix = text.parse().expect("a prefix");
        let (address, _) = text.split_once('/').expect("with bits");
        let address: core::net::Ipv6Addr = address.parse().expect("an address");
        Global::new(address.into(), prefix.bits()).expect("a global one")
    }

    #[test]
    fn of_several_global_addresses_the_one_nearest_to_the_destination_is_the_source() {
        let mut addresses = Addresses::on_link(NodeId(1).eui64());
        assert_eq!(addresses.globals().count(), 0);
        assert_eq!(addresses.global(), addresses.link_local());
        let (first, second, third) =
            (given("2001:db8:1::7/64"), given("2001:db8:2::7/64"), given("fd00:5::7/48"));
        for global in [first, second, third] {
            addresses.add(global).expect("room");
        }
        assert_eq!(
            addresses.add(second).map_err(|refusal| refusal.why()),
            Err("the node has it already")
        );
        for (destination, source) in [
            ("2001:db8:1::1/64", first),
            ("2001:db8:2::1/64", second),
            ("fd00:5:0:9::1/64", third),
            ("fd99::1/64", third),
            // Neither prefix is nearer: the first stands.
            ("2600::1/64", first),
        ] {
            let to = given(destination).address;
            assert_eq!(addresses.source_for(&to), source.address, "{destination}");
        }
        assert!(addresses.contains(&third.address));
        assert!(addresses.contains(&third.address.solicited_node()));
        assert!(addresses.has_prefix_of(&given("fd00:5:0:9::1/64").address), "48 bits");
        assert!(!addresses.has_prefix_of(&given("2001:db8:3::1/64").address));
    }

    #[test]
    fn bits_behind_the_prefix_do_not_make_an_address_nearer() {
        let mut addresses = Addresses::on_link(NodeId(1).eui64());
        let (first, second) = (given("2001:db8::a:0/64"), given("2001:db8::b:0/64"));
        addresses.add(first).expect("room");
        addresses.add(second).expect("room");
        assert_eq!(addresses.source_for(&given("2001:db8::b:1/64").address), first.address);
    }

    #[test]
    fn global_addresses_are_bounded_and_neither_groups_nor_link_local() {
        let mut addresses = Addresses::new(NodeId(1).eui64(), PREFIX);
        let room = (0_u16..)
            .take_while(|n| addresses.add(given(&alloc::format!("2001:db8::{n:x}/64"))).is_ok());
        assert_eq!(room.count(), GLOBAL_ADDRESSES - 1);
        for address in [Address::ALL_NODES, addresses.link_local(), Address::UNSPECIFIED] {
            assert_eq!(Global::new(address, 64), None);
        }
        assert_eq!(Global::new(addresses.global(), 129), None);
    }

    #[test]
    fn a_next_hop_names_its_neighbour_and_a_group_names_none() {
        let peer = NodeId(2).eui64();
        assert_eq!(link_destination(&Address::link_local(peer)), Some(peer));
        assert_eq!(link_destination(&Address::ALL_NODES), None);
    }
}
