//! The neighbour cache of a router: addresses that hosts have registered (RFC 6775 s6.5, RFC 8505 s5.7), bounded in number, in
//! number for each node, and in time.
//!
//! ```text
//!   address, owner, lifetime --not known, room--> kept          status 0
//!                              known, same owner--> kept longer, or removed with lifetime 0   status 0
//!                              known, same owner, older number--> refused    status 3, moved
//!                              known, another owner--> refused    status 1, duplicate address
//!                              no room--> refused                status 2, neighbour cache full
//! ```
//!
//! In a full cache, the node that holds most gives up the address that it renewed longest ago, as long as it still holds
//! more than the newcomer then does. So a node that registers address after address keeps nobody else out.
//!
//! Nothing here proves that an address is its sender's: link-layer addresses can be forged, and RFC 8928 is left out.

use alloc::vec::Vec;

use lowmesh_units::{Duration, Eui64, Instant, Order, Sequence};
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::neighbour::Registration;

use crate::params::{REGISTRATIONS, REGISTRATIONS_PER_NODE};

/// Status of an address registration: RFC 6775 s4.1, table 1, and RFC 8505 s4.1, table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// 0.
    Success,
    /// 1: another node has the address.
    Duplicate,
    /// 2: no room.
    Full,
    /// 3: the same owner has registered the address with a later number since.
    Moved,
    /// 6: another node has registered the address that the solicitation came from.
    DuplicateSource,
    /// 7: the solicitation came from no link-local address.
    InvalidSource,
    /// 8: the address is not usable on this link.
    Elsewhere,
}

impl Status {
    /// The number on the air.
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Duplicate => 1,
            Self::Full => 2,
            Self::Moved => 3,
            Self::DuplicateSource => 6,
            Self::InvalidSource => 7,
            Self::Elsewhere => 8,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    address: Address,
    /// The identifier that the address was registered with (EUI-64 or ROVR).
    owner: Eui64,
    /// Where frames for the address go.
    link: Eui64,
    /// The number of the last registration that had one (RFC 8505 s5.2).
    number: Option<Sequence>,
    until: Instant,
    /// The routing protocol announces it (RFC 9010).
    is_routed: bool,
}

/// The registered addresses, the one that was renewed longest ago first.
#[derive(Clone, Debug, Default)]
pub struct NeighbourCache(Vec<Entry>);

impl NeighbourCache {
    /// Nobody has registered.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Forgets what is over, and tells `gone` of each.
    pub fn expire(&mut self, now: Instant, mut gone: impl FnMut(Address)) {
        self.0.retain(|entry| {
            let is_over = entry.until <= now;
            if is_over {
                gone(entry.address);
            }
            !is_over
        });
    }

    /// Registers `address` as asked, for a node that is reached at `link`; a lifetime of 0 removes it. Tells `gone` of each
    /// address that is forgotten.
    pub fn register(
        &mut self,
        now: Instant,
        address: Address,
        asked: &Registration,
        link: Eui64,
        mut gone: impl FnMut(Address),
    ) -> Status {
        self.expire(now, &mut gone);
        let number = asked.number();
        let known = self.0.iter().position(|entry| entry.address == address);
        let old = known.map(|at| self.0[at]);
        if let Some(old) = old {
            if old.owner != asked.node {
                return Status::Duplicate;
            }
            // RFC 8505 s5.2: what was overtaken changes nothing.
            let is_late = number.zip(old.number).is_some_and(|(a, b)| a.order(b) == Order::Older);
            if is_late {
                return Status::Moved;
            }
        }
        if asked.lifetime_minutes == 0 {
            if let Some(at) = known {
                gone(self.0.remove(at).address);
            }
            return Status::Success;
        }
        if old.is_none_or(|old| old.link != link) && !self.make_room(link, &mut gone) {
            return Status::Full;
        }
        self.0.retain(|entry| entry.address != address);
        let number = number.or(old.and_then(|old| old.number));
        let until = now + Duration::from_secs(60 * u64::from(asked.lifetime_minutes));
        let is_routed = old.is_some_and(|old| old.is_routed);
        self.0.push(Entry { address, owner: asked.node, link, number, until, is_routed });
        Status::Success
    }

    /// True if there is a place for one more address of `link`.
    fn make_room(&mut self, link: Eui64, gone: &mut impl FnMut(Address)) -> bool {
        let held_by = |link: Eui64| self.0.iter().filter(|entry| entry.link == link).count();
        let held = held_by(link);
        if held >= REGISTRATIONS_PER_NODE {
            return false;
        }
        if self.0.len() < REGISTRATIONS {
            return true;
        }
        let most = self.0.iter().map(|entry| (held_by(entry.link), entry.link)).max();
        let Some((_, link)) = most.filter(|(most, _)| *most > held + 1) else { return false };
        // RFC 8505 s7: what was used longest ago goes, but at least one link-local address stays.
        let of_link = |entry: &Entry| entry.link == link;
        let at = self
            .0
            .iter()
            .position(|entry| of_link(entry) && !entry.address.is_link_local())
            .or_else(|| self.0.iter().position(of_link));
        if let Some(at) = at {
            gone(self.0.remove(at).address);
        }
        true
    }

    /// Removes `address`, and returns what would repeat its registration with a lifetime of zero, and its neighbour.
    pub(crate) fn remove(&mut self, address: &Address) -> Option<(Registration, Eui64)> {
        let at = self.0.iter().position(|entry| entry.address == *address)?;
        let Entry { owner, link, number, .. } = self.0.remove(at);
        let flags = if number.is_some() { Registration::COUNTS } else { 0 };
        let transaction_id = number.map_or(0, |number| number.0);
        let (status, opaque, lifetime_minutes) = (0, 0, 0);
        let node = owner;
        let over = Registration { status, opaque, flags, transaction_id, lifetime_minutes, node };
        Some((over, link))
    }
    /// Whether the routing protocol announces `address` from now on.
    pub(crate) fn set_routed(&mut self, address: &Address, is_routed: bool) {
        if let Some(entry) = self.0.iter_mut().find(|entry| entry.address == *address) {
            entry.is_routed = is_routed;
        }
    }
    /// When the first of the addresses that the routing protocol announces is over.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.0.iter().filter(|entry| entry.is_routed).map(|entry| entry.until).min()
    }
    /// The neighbour that has registered `address`.
    pub fn find(&self, now: Instant, address: &Address) -> Option<Eui64> {
        let entry = self.0.iter().find(|entry| entry.address == *address && entry.until > now)?;
        Some(entry.link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::NodeId;

    const NOW: Instant = Instant::ZERO;

    fn address(last: u16) -> Address {
        Address::global([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0], NodeId(last).eui64())
    }
    fn asked(node: u16, minutes: u16) -> Registration {
        Registration {
            status: 0,
            opaque: 0,
            flags: 0,
            transaction_id: 0,
            lifetime_minutes: minutes,
            node: NodeId(node).eui64(),
        }
    }
    fn register(
        cache: &mut NeighbourCache,
        at: u64,
        which: u16,
        node: u16,
        minutes: u16,
    ) -> Status {
        let (asked, link) = (asked(node, minutes), NodeId(node).eui64());
        cache.register(Instant::from_secs(at), address(which), &asked, link, |_| ())
    }

    #[test]
    fn an_address_belongs_to_who_registered_it_until_its_time_is_over() {
        let mut cache = NeighbourCache::new();
        assert_eq!(register(&mut cache, 0, 1, 1, 5), Status::Success);
        assert_eq!(register(&mut cache, 1, 1, 2, 5), Status::Duplicate);
        assert_eq!(cache.find(NOW, &address(1)), Some(NodeId(1).eui64()));
        assert_eq!(cache.find(Instant::from_secs(300), &address(1)), None);
        assert_eq!(register(&mut cache, 300, 1, 2, 5), Status::Success);
        assert_eq!(register(&mut cache, 301, 1, 2, 0), Status::Success);
        assert_eq!(cache.find(NOW, &address(1)), None);
    }

    #[test]
    fn the_cache_has_bounds_in_all_and_for_each_node() {
        let mut cache = NeighbourCache::new();
        for which in 0..REGISTRATIONS_PER_NODE as u16 {
            assert_eq!(register(&mut cache, 0, which, 1, 5), Status::Success);
        }
        assert_eq!(register(&mut cache, 0, 999, 1, 5), Status::Full);
        for node in 2..600 {
            register(&mut cache, 0, 1000 + node, node, 5);
        }
        assert_eq!(cache.0.len(), REGISTRATIONS);
        let one = cache.0[0].address;
        assert_eq!(register(&mut cache, 0, 2000, 700, 5), Status::Full, "each has one alone");
        assert!(cache.find(NOW, &one).is_some());
        assert_eq!(
            register(&mut cache, 0, 1100, 100, 5),
            Status::Success,
            "what is known stays so"
        );
    }

    #[test]
    fn nodes_that_fill_the_cache_keep_nobody_out() {
        let mut cache = NeighbourCache::new();
        let link_local = Address::link_local(NodeId(1).eui64());
        let link = NodeId(1).eui64();
        cache.register(NOW, link_local, &asked(1, u16::MAX), link, |_| ());
        let attackers = (REGISTRATIONS / REGISTRATIONS_PER_NODE) as u16;
        for which in 0..REGISTRATIONS as u16 {
            register(&mut cache, 0, which, 1 + which % attackers, u16::MAX);
        }
        assert_eq!(cache.0.len(), REGISTRATIONS);
        let mut forgotten = Vec::new();
        for newcomer in 700..700 + attackers {
            let (asked, link) = (asked(newcomer, 5), NodeId(newcomer).eui64());
            let status = cache.register(NOW, address(newcomer), &asked, link, |one| {
                forgotten.push(one);
            });
            assert_eq!(status, Status::Success, "{newcomer}");
        }
        assert_eq!(forgotten.len(), usize::from(attackers));
        assert!(forgotten.iter().all(|one| cache.find(NOW, one).is_none()));
        assert!(cache.find(NOW, &link_local).is_some());
    }

    #[test]
    fn a_registration_that_was_overtaken_changes_nothing() {
        let mut cache = NeighbourCache::new();
        let mut say = |number, minutes| {
            let link = NodeId(1).eui64();
            let asked = Registration { flags: 1, transaction_id: number, ..asked(1, minutes) };
            cache.register(NOW, address(1), &asked, link, |_| ())
        };
        assert_eq!(say(250, 5), Status::Success);
        assert_eq!(say(5, 5), Status::Success, "250 is less than 5 (RFC 8505 s5.2.1)");
        assert_eq!(say(250, 0), Status::Moved);
        assert_eq!(say(5, 5), Status::Success, "the same once more");
        assert_eq!(say(240, 5), Status::Success, "it started again: 240 is greater than 5");
        assert_eq!(say(241, 0), Status::Success);
        assert_eq!(cache.find(NOW, &address(1)), None);
    }
}
