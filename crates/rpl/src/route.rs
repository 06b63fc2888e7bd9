//! Downward routes (RFC 6550 s9.8), bounded: in storing mode target to next hop, at the root in
//! non-storing mode target to parent.
//!
//! In a full table of storing mode, the next hop with most routes gives one up, as long as it still has more than the
//! newcomer then has. One child that advertises many targets cannot exclude the others. In non-storing mode the sender
//! of a DAO chooses the parent that it names, so shares would protect nobody there.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_units::{Duration, Instant};
use lowmesh_wire::rpl::Address;

use crate::Sequence;

/// A route to one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Link-local address of the next hop, or global address of the target's parent (non-storing).
    pub via: Address,
    /// When it ends without news.
    pub expires: Instant,
    pub(crate) path_sequence: Sequence,
    /// As on the air, to be passed on.
    pub(crate) path_lifetime: u8,
    /// Flag I: a DCO ends the former path of the target (RFC 9009 s4.2).
    pub(crate) invalidates: bool,
    /// Taken back by a No-Path: it serves until it expires or news of another way comes.
    pub(crate) leaving: bool,
}

/// What an insertion did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    New,
    /// Another next hop than before, which is given.
    Moved(Address),
    Renewed,
    /// There is no room for it.
    Full,
}

#[derive(Clone, Debug)]
pub(crate) struct Routes {
    table: BTreeMap<Address, Route>,
    /// How many routes lead over each neighbour, without those that are leaving.
    children: BTreeMap<Address, usize>,
    max: usize,
    /// No route ends before; may be too early, never too late.
    earliest_expiry: Instant,
}

impl Routes {
    pub(crate) const fn new(max: usize) -> Self {
        Self {
            table: BTreeMap::new(),
            children: BTreeMap::new(),
            max,
            earliest_expiry: Instant::FAR_FUTURE,
        }
    }
    pub(crate) fn get(&self, target: &Address) -> Option<&Route> {
        self.table.get(target)
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Address, &Route)> {
        self.table.iter()
    }
    pub(crate) fn is_child(&self, neighbour: &Address) -> bool {
        self.children.contains_key(neighbour)
    }
    pub(crate) fn children(&self) -> impl Iterator<Item = &Address> {
        self.children.keys()
    }
    pub(crate) const fn earliest_expiry(&self) -> Instant {
        self.earliest_expiry
    }

    pub(crate) fn insert(&mut self, target: Address, route: Route) -> Inserted {
        let known = self.table.get(&target);
        if known.is_none() && self.table.len() >= self.max {
            return Inserted::Full;
        }
        let old = known.filter(|old| !old.leaving).map(|old| old.via);
        self.table.insert(target, route);
        self.earliest_expiry = self.earliest_expiry.min(route.expires);
        if old == Some(route.via) {
            return Inserted::Renewed;
        }
        *self.children.entry(route.via).or_insert(0) += 1;
        match old {
            None => Inserted::New,
            Some(via) => {
                self.uncount(via);
                Inserted::Moved(via)
            }
        }
    }

    /// In a full table, the target whose route gives way to a new one over `via`: of the next hop with most routes, the one
    /// that ends first. `None` unless that next hop still has more routes than `via` then has.
    pub(crate) fn surplus(&self, via: &Address) -> Option<Address> {
        let held = self.children.get(via).copied().unwrap_or(0);
        let (most_via, _) = self
            .children
            .iter()
            .filter(|(_, most)| **most > held + 1)
            .max_by_key(|(_, most)| **most)?;
        let theirs =
            self.table.iter().filter(|(_, route)| !route.leaving && route.via == *most_via);
        theirs.min_by_key(|(_, route)| route.expires).map(|(target, _)| *target)
    }

    pub(crate) fn remove(&mut self, target: &Address) -> Option<Route> {
        let route = self.table.remove(target)?;
        if !route.leaving {
            self.uncount(route.via);
        }
        Some(route)
    }

    /// The route to `target` was taken back, by news of this age: it serves no longer than to `until`. Gives its
    /// next hop; `None` when there is no route, or it was taken back before.
    pub(crate) fn take_back(
        &mut self,
        target: &Address,
        path_sequence: Sequence,
        until: Instant,
    ) -> Option<Address> {
        let route = self.table.get_mut(target).filter(|route| !route.leaving)?;
        (route.leaving, route.path_sequence) = (true, path_sequence);
        route.expires = route.expires.min(until);
        let (via, expires) = (route.via, route.expires);
        self.earliest_expiry = self.earliest_expiry.min(expires);
        self.uncount(via);
        Some(via)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.max);
    }

    /// The targets of all routes over `via`, those that are leaving too.
    pub(crate) fn targets_via(&self, via: &Address) -> Vec<Address> {
        self.table.iter().filter(|(_, route)| route.via == *via).map(|(t, _)| *t).collect()
    }

    /// The targets of all routes that ended by `now`.
    pub(crate) fn expired(&mut self, now: Instant) -> Vec<Address> {
        let over = self.table.iter().filter(|(_, route)| route.expires <= now);
        let expired: Vec<Address> = over.map(|(target, _)| *target).collect();
        let left = self.table.values().map(|route| route.expires).filter(|at| *at > now);
        self.earliest_expiry = left.min().unwrap_or(Instant::FAR_FUTURE);
        expired
    }

    /// From `root` to `target`: first hop first, the target last. `None` when a parent is unknown, or
    /// after `hops_max` hops, which also ends a circle of parents.
    pub(crate) fn source_route(
        &self,
        root: &Address,
        target: &Address,
        hops_max: usize,
    ) -> Option<Vec<Address>> {
        let mut hops = Vec::new();
        let mut here = *target;
        while here != *root {
            if hops.len() >= hops_max {
                return None;
            }
            hops.push(here);
            here = self.table.get(&here)?.via;
        }
        hops.reverse();
        (!hops.is_empty()).then_some(hops)
    }

    fn uncount(&mut self, via: Address) {
        if let Some(count) = self.children.get_mut(&via) {
            *count -= 1;
            if *count == 0 {
                self.children.remove(&via);
            }
        }
    }
}

impl Route {
    /// How long the route holds from `now` on.
    pub fn lifetime(&self, now: Instant) -> Duration {
        if self.expires == Instant::FAR_FUTURE { Duration::MAX } else { self.expires.since(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(id: u8) -> Address {
        [id; 16]
    }

    fn route(via: u8, expires: u64) -> Route {
        Route {
            via: address(via),
            expires: Instant::from_secs(expires),
            path_sequence: Sequence::START,
            path_lifetime: 30,
            invalidates: false,
            leaving: false,
        }
    }

    #[test]
    fn a_neighbour_is_a_child_as_long_as_a_route_leads_over_it() {
        let mut routes = Routes::new(9);
        assert_eq!(routes.insert(address(1), route(1, 10)), Inserted::New);
        assert_eq!(routes.insert(address(2), route(1, 10)), Inserted::New);
        assert_eq!(routes.insert(address(2), route(1, 20)), Inserted::Renewed);
        assert_eq!(routes.insert(address(1), route(3, 10)), Inserted::Moved(address(1)));
        assert!(routes.is_child(&address(1)) && routes.is_child(&address(3)));
        assert_eq!(routes.targets_via(&address(1)), [address(2)]);
        routes.remove(&address(2));
        assert!(!routes.is_child(&address(1)));
    }

    #[test]
    fn a_route_that_was_taken_back_serves_on_and_makes_no_child() {
        let mut routes = Routes::new(9);
        routes.insert(address(1), route(1, 100));
        routes.take_back(&address(1), Sequence::START, Instant::from_secs(60));
        let left = routes.get(&address(1)).map(|route| (route.via, route.expires));
        assert_eq!(left, Some((address(1), Instant::from_secs(60))));
        assert!(!routes.is_child(&address(1)));
        assert_eq!(routes.earliest_expiry(), Instant::from_secs(60));
        // It comes back, or goes another way.
        assert_eq!(routes.insert(address(1), route(3, 100)), Inserted::New);
        assert!(routes.is_child(&address(3)) && !routes.is_child(&address(1)));
        routes.take_back(&address(1), Sequence::START, Instant::from_secs(60));
        assert!(routes.remove(&address(1)).is_some() && !routes.is_child(&address(3)));
    }

    #[test]
    fn a_full_table_takes_no_new_target_but_renews() {
        let mut routes = Routes::new(1);
        routes.insert(address(1), route(1, 10));
        assert_eq!(routes.insert(address(2), route(1, 10)), Inserted::Full);
        assert_eq!(routes.insert(address(1), route(1, 20)), Inserted::Renewed);
    }

    #[test]
    fn the_next_hop_with_most_routes_gives_up_the_one_that_ends_first() {
        let mut routes = Routes::new(3);
        for (target, expires) in [(1, 30), (2, 10), (3, 20)] {
            routes.insert(address(target), route(7, expires));
        }
        assert_eq!(routes.surplus(&address(8)), Some(address(2)));
        assert_eq!(routes.surplus(&address(7)), None, "not for itself");
        // A route that is leaving counts for no next hop, and still forwards.
        routes.take_back(&address(2), Sequence::START, Instant::from_secs(5));
        assert_eq!(routes.surplus(&address(8)), Some(address(3)));
        routes.remove(&address(3));
        assert_eq!(routes.surplus(&address(8)), None, "each has one");
    }

    #[test]
    fn routes_end_with_their_lifetime() {
        let mut routes = Routes::new(9);
        routes.insert(address(1), route(1, 10));
        routes.insert(address(2), route(1, 20));
        assert_eq!(routes.earliest_expiry(), Instant::from_secs(10));
        assert_eq!(routes.expired(Instant::from_secs(10)), [address(1)]);
        assert_eq!(routes.earliest_expiry(), Instant::from_secs(20));
    }

    #[test]
    fn a_source_route_lists_the_hops_and_a_circle_gives_none() {
        let mut routes = Routes::new(9);
        routes.insert(address(1), route(0, 10));
        routes.insert(address(2), route(1, 10));
        let hops = routes.source_route(&address(0), &address(2), 8);
        assert_eq!(hops, Some(Vec::from([address(1), address(2)])));
        assert_eq!(routes.source_route(&address(0), &address(2), 1), None);
        routes.insert(address(1), route(2, 10));
        assert_eq!(routes.source_route(&address(0), &address(2), 8), None);
    }
}
