//! Registrations of addresses (RFC 6775 s6.5, RFC 8505 s5.6): what the neighbour cache and the route table take, and what the
//! routing protocol hears of hosts that run no RPL (RFC 9010 s9.2.2).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::neighbour::Registration;

use crate::cache::Status;
use crate::event::Output;
use crate::{NeighbourCache, RouteTable};

/// What a registration changes.
pub(crate) struct Registry<'a> {
    pub cache: &'a mut NeighbourCache,
    pub routes: &'a mut RouteTable,
    /// Addresses that the routing protocol announces, and their neighbours.
    pub leaves: &'a mut BTreeMap<Address, Eui64>,
    /// What the routing protocol hears.
    pub news: &'a mut Vec<Output>,
    /// Whether the routing protocol announces addresses now.
    pub announces: bool,
}

impl Registry<'_> {
    /// Forgets what is over.
    pub fn expire(&mut self, now: Instant) {
        let Self { cache, routes, leaves, news, .. } = self;
        cache.expire(now, |address| forget(address, routes, leaves, news));
    }

    /// Takes a registration into the cache, and a route to a global address with it. The registrant is the source of the
    /// solicitation and where its frames go.
    pub fn register(
        &mut self,
        now: Instant,
        subject: Address,
        asked: &Registration,
        (source, link): (Address, Eui64),
    ) -> Status {
        self.expire(now);
        let Self { cache, routes, leaves, news, .. } = self;
        // RFC 8505 s5.6: the source is registered already, or this registers it.
        let holder = cache.find(now, &source).filter(|_| asked.is_extended() && source != subject);
        if holder.is_some_and(|holder| holder != link) {
            return Status::DuplicateSource;
        }
        // A route that was given, or found by RPL, is nobody else's to take.
        let via = Address::link_local(link);
        let found = routes.host_route(&subject).filter(|_| cache.find(now, &subject).is_none());
        if routes.given_route(&subject).or(found).is_some_and(|known| known != via) {
            return Status::Duplicate;
        }
        let status = cache.register(now, subject, asked, link, |address| {
            forget(address, routes, leaves, news);
        });
        let is_routed =
            status == Status::Success && !subject.is_link_local() && asked.lifetime_minutes > 0;
        if is_routed && routes.insert(subject, via).is_err() {
            let over = Registration { lifetime_minutes: 0, ..*asked };
            cache.register(now, subject, &over, link, |address| {
                forget(address, routes, leaves, news);
            });
            return Status::Full;
        }
        if is_routed {
            self.announce(subject, asked, link);
        }
        status
    }

    /// Tells the routing protocol of an address that is registered, or that its host no longer wants to be announced.
    fn announce(&mut self, address: Address, asked: &Registration, node: Eui64) {
        let number = asked.number().filter(|_| asked.is_routed() && self.announces);
        self.cache.set_routed(&address, number.is_some());
        let Some(number) = number else {
            return withdraw(address, self.leaves, self.news);
        };
        self.leaves.insert(address, node);
        let lifetime_minutes = asked.lifetime_minutes;
        self.news.push(Output::LeafFound { address, node, number, lifetime_minutes });
    }

    /// Ends a registration that the routing protocol gave up, which so hears nothing of it. Returns what its neighbour is
    /// told.
    pub fn refuse(&mut self, address: &Address) -> Option<(Registration, Eui64)> {
        self.leaves.remove(address)?;
        self.routes.remove(address);
        self.cache.remove(address)
    }
}

/// A registration is over.
fn forget(
    address: Address,
    routes: &mut RouteTable,
    leaves: &mut BTreeMap<Address, Eui64>,
    news: &mut Vec<Output>,
) {
    routes.remove(&address);
    withdraw(address, leaves, news);
}

fn withdraw(address: Address, leaves: &mut BTreeMap<Address, Eui64>, news: &mut Vec<Output>) {
    news.extend(leaves.remove(&address).map(|node| Output::LeafLost { address, node }));
}
