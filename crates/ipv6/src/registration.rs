//! Registrations of addresses (RFC 6775 s6.5, RFC 8505 s5.6): what the neighbour cache and the route table take.

use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::neighbour::Registration;

use crate::cache::Status;
use crate::{NeighbourCache, RouteTable};

/// Takes a registration into the cache, and a route to a global address with it. The registrant is the source of the
/// solicitation and where its frames go.
pub(crate) fn register(
    now: Instant,
    cache: &mut NeighbourCache,
    routes: &mut RouteTable,
    subject: Address,
    asked: &Registration,
    (source, link): (Address, Eui64),
) -> Status {
    cache.expire(now, |address| _ = routes.remove(&address));
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
    let forget = |address: Address| _ = routes.remove(&address);
    let status = cache.register(now, subject, asked, link, forget);
    let is_routed =
        status == Status::Success && !subject.is_link_local() && asked.lifetime_minutes > 0;
    if is_routed && routes.insert(subject, via).is_err() {
        let over = Registration { lifetime_minutes: 0, ..*asked };
        cache.register(now, subject, &over, link, |_| ());
        return Status::Full;
    }
    status
}
