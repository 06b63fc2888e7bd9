//! The routing table: host routes in order, routes to prefixes, bounded together, and a default route.
//!
//! RPL puts routes in and takes them out; lifetimes are its business.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_machine::Rejected;
use lowmesh_wire::ipv6::{Address, Prefix};

/// Next hops by target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteTable {
    routes: BTreeMap<Address, Address>,
    /// The longest first.
    prefixes: Vec<(Prefix, Address)>,
    default: Option<Address>,
    routes_max: usize,
}

impl RouteTable {
    /// An empty table for at most `routes_max` targets besides the default route.
    pub const fn new(routes_max: usize) -> Self {
        Self { routes: BTreeMap::new(), prefixes: Vec::new(), default: None, routes_max }
    }

    /// Packets to `target` go to the neighbour `next_hop` from now on; returns the neighbour before.
    pub fn insert(
        &mut self,
        target: Address,
        next_hop: Address,
    ) -> Result<Option<Address>, Rejected> {
        if self.is_full() && !self.routes.contains_key(&target) {
            return Err(FULL);
        }
        Ok(self.routes.insert(target, next_hop))
    }
    /// Packets to all of `prefix` go to the neighbour `next_hop` from now on, but for longer prefixes and
    /// targets of their own.
    pub fn insert_prefix(&mut self, prefix: Prefix, next_hop: Address) -> Result<(), Rejected> {
        if let Some((_, hop)) = self.prefixes.iter_mut().find(|(known, _)| *known == prefix) {
            *hop = next_hop;
            return Ok(());
        }
        if self.is_full() {
            return Err(FULL);
        }
        let place = self.prefixes.partition_point(|(known, _)| known.bits() >= prefix.bits());
        self.prefixes.insert(place, (prefix, next_hop));
        Ok(())
    }
    fn is_full(&self) -> bool {
        self.routes.len() + self.prefixes.len() >= self.routes_max
    }
    /// Forgets the route to `target` and returns its next hop.
    pub fn remove(&mut self, target: &Address) -> Option<Address> {
        self.routes.remove(target)
    }
    /// Forgets every route over the neighbour `next_hop`, the default route included.
    pub fn remove_next_hop(&mut self, next_hop: &Address) {
        self.routes.retain(|_, hop| hop != next_hop);
        self.prefixes.retain(|(_, hop)| hop != next_hop);
        if self.default.as_ref() == Some(next_hop) {
            self.default = None;
        }
    }
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.routes.clear();
        self.prefixes.clear();
        self.default = None;
    }

    /// Where packets without a route of their own go.
    pub const fn default_route(&self) -> Option<Address> {
        self.default
    }
    /// Sets the default route, for a RPL node its preferred parent.
    pub fn set_default(&mut self, next_hop: Option<Address>) {
        self.default = next_hop;
    }

    /// The next hop to `target`: its own route, or else that of the longest prefix, or else the default route.
    pub fn lookup(&self, target: &Address) -> Option<Address> {
        let prefix = || self.prefixes.iter().find(|(prefix, _)| prefix.contains(target));
        self.host_route(target).or_else(|| prefix().map(|(_, hop)| *hop)).or(self.default)
    }
    /// The next hop of the route to `target` itself; by it RPL tells down from up.
    pub fn host_route(&self, target: &Address) -> Option<Address> {
        self.routes.get(target).copied()
    }
    /// The next hop of the route to `target` alone that was given as a prefix of 128 bits.
    pub fn given_route(&self, target: &Address) -> Option<Address> {
        let mut alone = self.prefixes.iter().take_while(|(prefix, _)| prefix.bits() == 128);
        alone.find(|(prefix, _)| prefix.contains(target)).map(|(_, hop)| *hop)
    }
    /// Targets and next hops in the order of targets.
    pub fn iter(&self) -> impl Iterator<Item = (&Address, &Address)> {
        self.routes.iter()
    }
    /// How many targets have a route.
    pub fn len(&self) -> usize {
        self.routes.len()
    }
    /// True without a host route.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }
}

const FULL: Rejected = Rejected::Full { what: "route", why: "the routing table is full" };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::PREFIX;
    use lowmesh_units::NodeId;

    fn target(node: u16) -> Address {
        Address::global(PREFIX, NodeId(node).eui64())
    }
    fn hop(node: u16) -> Address {
        Address::link_local(NodeId(node).eui64())
    }

    #[test]
    fn a_host_route_wins_over_the_default_route() {
        let mut table = RouteTable::new(4);
        assert_eq!(table.lookup(&target(5)), None);
        table.set_default(Some(hop(1)));
        table.insert(target(5), hop(2)).expect("room");
        assert_eq!(table.lookup(&target(5)), Some(hop(2)));
        assert_eq!(table.lookup(&target(6)), Some(hop(1)));
        assert_eq!(table.host_route(&target(6)), None);
    }

    #[test]
    fn a_full_table_takes_changes_but_no_new_target() {
        let mut table = RouteTable::new(1);
        table.insert(target(5), hop(2)).expect("room");
        assert_eq!(table.insert(target(5), hop(3)), Ok(Some(hop(2))));
        assert!(table.insert(target(6), hop(2)).is_err());
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn the_longest_prefix_wins_and_a_host_route_over_it() {
        let mut table = RouteTable::new(3);
        let prefix = |bits| Prefix::new(target(5), bits).expect("at most 128");
        table.insert_prefix(prefix(16), hop(1)).expect("room");
        table.insert_prefix(prefix(64), hop(2)).expect("room");
        assert_eq!(table.lookup(&target(5)), Some(hop(2)));
        assert_eq!(table.lookup(&Address::global([0xfd; 8], NodeId(5).eui64())), None);
        table.insert(target(5), hop(3)).expect("room");
        assert_eq!(table.lookup(&target(5)), Some(hop(3)));
        assert_eq!(table.lookup(&target(6)), Some(hop(2)));
        assert!(
            table.insert_prefix(prefix(8), hop(4)).is_err(),
            "host routes and prefixes share the room"
        );
        table.insert_prefix(prefix(64), hop(4)).expect("known");
        assert_eq!(table.lookup(&target(6)), Some(hop(4)));
    }

    #[test]
    fn a_lost_neighbour_takes_its_routes_along() {
        let mut table = RouteTable::new(4);
        table.set_default(Some(hop(2)));
        table.insert(target(5), hop(2)).expect("room");
        table.insert(target(6), hop(3)).expect("room");
        let prefix = Prefix::new(target(7), 64).expect("64 bits");
        table.insert_prefix(prefix, hop(2)).expect("room");
        table.remove_next_hop(&hop(2));
        assert_eq!(table.lookup(&target(7)), None);
        assert_eq!(table.iter().collect::<Vec<_>>(), [(&target(6), &hop(3))]);
        assert_eq!(table.default_route(), None);
    }
}
