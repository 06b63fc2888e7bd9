//! The neighbour cache of a router: addresses that hosts have registered (RFC 6775 s6.5, RFC 8505 s5), bounded in number, in
//! number for each node, and in time.
//!
//! ```text
//!   address, node, lifetime --not known, room--> kept          status 0
//!                             known, same node--> kept longer, or removed with lifetime 0   status 0
//!                             known, another node--> refused    status 1, duplicate address
//!                             no room--> refused                status 2, neighbour cache full
//! ```
//!
//! Nothing here proves that an address is its sender's: link-layer addresses can be forged, and RFC 8928 is left out.

use alloc::vec::Vec;

use lowmesh_units::{Duration, Eui64, Instant};
use lowmesh_wire::ipv6::Address;

use crate::params::{REGISTRATIONS, REGISTRATIONS_PER_NODE};

/// Status of an address registration: RFC 6775 s4.1, table 2, and RFC 8505 s4.1, table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// 0.
    Success,
    /// 1: another node has the address.
    Duplicate,
    /// 2: no room.
    Full,
    /// 8: the address does not belong on this link (RFC 8505 s4.1).
    Elsewhere,
}

impl Status {
    /// The number on the air.
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Duplicate => 1,
            Self::Full => 2,
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
    until: Instant,
}

/// The registered addresses.
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

    /// Registers `address` for `owner`, who is reached at `link`, for so many minutes; 0 removes it.
    pub fn register(
        &mut self,
        now: Instant,
        address: Address,
        owner: Eui64,
        link: Eui64,
        lifetime_minutes: u16,
    ) -> Status {
        self.expire(now, |_| ());
        let until = now + Duration::from_secs(60 * u64::from(lifetime_minutes));
        if let Some(at) = self.0.iter().position(|entry| entry.address == address) {
            if self.0[at].owner != owner {
                return Status::Duplicate;
            }
            if lifetime_minutes == 0 {
                self.0.remove(at);
            } else {
                (self.0[at].until, self.0[at].link) = (until, link);
            }
            return Status::Success;
        }
        if lifetime_minutes == 0 {
            return Status::Success;
        }
        let of_link = self.0.iter().filter(|entry| entry.link == link).count();
        if self.0.len() >= REGISTRATIONS || of_link >= REGISTRATIONS_PER_NODE {
            return Status::Full;
        }
        self.0.push(Entry { address, owner, link, until });
        Status::Success
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
    fn register(
        cache: &mut NeighbourCache,
        at: u64,
        which: u16,
        node: u16,
        minutes: u16,
    ) -> Status {
        let node = NodeId(node).eui64();
        cache.register(Instant::from_secs(at), address(which), node, node, minutes)
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
        assert_eq!(register(&mut cache, 0, 2000, 700, 5), Status::Full);
        assert_eq!(register(&mut cache, 0, 0, 1, 5), Status::Success, "what is known stays so");
    }
}
