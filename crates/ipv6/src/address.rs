//! The addresses of a node (RFC 4291 s2.8) and, as all of them are made from EUI-64s, its neighbours'.

use alloc::vec::Vec;

use lowmesh_machine::Rejected;
use lowmesh_units::Eui64;
use lowmesh_wire::ipv6::Address;

use crate::params::GROUPS;

/// What a node answers to: its link-local and global address and the groups that it joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    node: Eui64,
    link_local: Address,
    global: Address,
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
            groups: Vec::new(),
        }
    }
    /// The same with another global address, such as one that was given by hand.
    pub const fn with_global(mut self, global: Address) -> Self {
        self.global = global;
        self
    }

    /// The node's EUI-64.
    pub const fn node(&self) -> Eui64 {
        self.node
    }
    /// Its address on the link.
    pub const fn link_local(&self) -> Address {
        self.link_local
    }
    /// Its address in the mesh.
    pub const fn global(&self) -> Address {
        self.global
    }

    /// True for an address that packets for this node have, groups included.
    pub fn contains(&self, address: &Address) -> bool {
        if address.is_multicast() {
            // RFC 4291 s2.8: every node is in all-nodes; RFC 6550 s20.19: every RPL node in all-RPL-nodes.
            *address == Address::ALL_RPL_NODES
                || *address == Address::ALL_NODES
                // RFC 4861 s7.2.1: the groups in which others ask for the node's addresses.
                || *address == self.link_local.solicited_node()
                || *address == self.global.solicited_node()
                || self.groups.binary_search(address).is_ok()
        } else {
            *address == self.global || *address == self.link_local
        }
    }

    /// Joins a group.
    pub fn join(&mut self, group: Address) -> Result<(), Rejected> {
        const WHAT: &str = "group to join";
        if !group.is_multicast() {
            return Err(Rejected { what: WHAT, why: "it is not a multicast address" });
        }
        if let Err(at) = self.groups.binary_search(&group) {
            if self.groups.len() == GROUPS {
                return Err(Rejected { what: WHAT, why: "the node is in as many as it can be" });
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

    /// The source address for a packet to `destination`: the one of the same scope (RFC 6724 s5 rule 2).
    pub fn source_for(&self, destination: &Address) -> Address {
        let on_link = match destination.multicast_scope() {
            Some(scope) => scope <= lowmesh_wire::ipv6::Scope::LINK_LOCAL,
            None => destination.is_link_local(),
        };
        if on_link { self.link_local } else { self.global }
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
        for own in [global, link_local, Address::ALL_NODES, Address::ALL_RPL_NODES] {
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

    #[test]
    fn a_next_hop_names_its_neighbour_and_a_group_names_none() {
        let peer = NodeId(2).eui64();
        assert_eq!(link_destination(&Address::link_local(peer)), Some(peer));
        assert_eq!(link_destination(&Address::ALL_NODES), None);
    }
}
