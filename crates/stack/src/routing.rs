//! Where a node's routes come from, and the decisions that IPv6 borrows from there.

use alloc::boxed::Box;
use alloc::vec::Vec;

use lowmesh_ipv6::{ForwardContext, Verdict};
use lowmesh_machine::DropReason;
use lowmesh_rpl::Rpl;
use lowmesh_units::Instant;
use lowmesh_wire::ipv6::Address;

use crate::tree::Place;

/// Where a node's routes come from.
#[derive(Debug)]
pub(crate) enum Routing {
    /// RPL finds them.
    Rpl(Box<Rpl>),
    /// They are given.
    Static(Place),
}

impl lowmesh_ipv6::Routing for Routing {
    fn forward(&mut self, now: Instant, packet: &ForwardContext) -> Verdict {
        let &ForwardContext { from, destination, source_routed, option, route } = packet;
        let Self::Rpl(rpl) = self else {
            let forward = |next: Address| Verdict::Forward { next_hop: next.eui64(), option: None };
            return route.map_or(Verdict::Drop(DropReason::NoRoute), forward);
        };
        let context = lowmesh_rpl::ForwardContext {
            from: from.map(|neighbour| Address::link_local(neighbour).0),
            target: destination.0,
            source_routed,
            option,
        };
        let (next, option) = match rpl.check_forward(now, &context) {
            lowmesh_rpl::Verdict::Forward { next, option } => (next.address, option),
            // A packet that starts here has nobody to go back to.
            lowmesh_rpl::Verdict::ForwardingError { .. } if from.is_none() => {
                return Verdict::Drop(DropReason::NoRoute);
            }
            lowmesh_rpl::Verdict::ForwardingError { to, option } => (to, option),
            lowmesh_rpl::Verdict::Drop(reason) => return Verdict::Drop(reason),
        };
        Verdict::Forward { next_hop: Address(next).eui64(), option: Some(option) }
    }

    fn source_route(&self, destination: &Address) -> Option<Vec<Address>> {
        let Self::Rpl(rpl) = self else { return None };
        let hops = rpl.source_route(&destination.0)?;
        Some(hops.into_iter().map(Address).collect())
    }
}
