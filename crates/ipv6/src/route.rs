//! The routing table: host routes in order, bounded, and a default route.
//!
//! RPL puts routes in and takes them out; lifetimes are its business.

use alloc::collections::BTreeMap;

use lowmesh_machine::Rejected;
use lowmesh_wire::ipv6::Address;

/// Next hops by target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteTable {
    routes: BTreeMap<Address, Address>,
    default: Option<Address>,
    routes_max: usize,
}

impl RouteTable {
    /// An empty table for at most `routes_max` targets besides the default route.
    pub const fn new(routes_max: usize) -> Self {
        Self { routes: BTreeMap::new(), default: None, routes_max }
    }

    /// Packets to `target` go to the neighbour `next_hop` from now on; returns the neighbour before.
    pub fn insert(
        &mut self,
        target: Address,
        next_hop: Address,
    ) -> Result<Option<Address>, Rejected> {
        if self.routes.len() >= self.routes_max && !self.routes.contains_key(&target) {
            return Err(Rejected { what: "route", why: "the routing table is full" });
        }
        Ok(self.routes.insert(target, next_hop))
    }
    /// Forgets the route to `target` and returns its next hop.
    pub fn remove(&mut self, target: &Address) -> Option<Address> {
        self.routes.remove(target)
    }
    /// Forgets every route over the neighbour `next_hop`, the default route included.
    pub fn remove_next_hop(&mut self, next_hop: &Address) {
        self.routes.retain(|_, hop| hop != next_hop);
        if self.default.as_ref() == Some(next_hop) {
            self.default = None;
        }
    }
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.routes.clear();
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

    /// The next hop to `target`: its own route, or else the default route.
    pub fn lookup(&self, target: &Address) -> Option<Address> {
        self.host_route(target).or(self.default)
    }
    /// The next hop of the route to `target` itself; by it RPL tells down from up.
    pub fn host_route(&self, target: &Address) -> Option<Address> {
        self.routes.get(target).copied()
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
    fn a_lost_neighbour_takes_its_routes_along() {
        let mut table = RouteTable::new(4);
        table.set_default(Some(hop(2)));
        table.insert(target(5), hop(2)).expect("room");
        table.insert(target(6), hop(3)).expect("room");
        table.remove_next_hop(&hop(2));
        assert_eq!(table.iter().collect::<Vec<_>>(), [(&target(6), &hop(3))]);
        assert_eq!(table.default_route(), None);
    }
}
