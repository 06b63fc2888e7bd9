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

/// The next hop where routes are given and nobody looks for loops.
fn forward_as_given(packet: &ForwardContext) -> Verdict {
    // RFC 6554 s4.2: a source route is for the routers of a network that makes them. Here a stranger could lead packets
    // where no route goes.
    if packet.source_routed {
        return Verdict::Drop(DropReason::NotForUs);
    }
    // The packet would loop between this node and the neighbour that sent it until its hop limit is zero.
    let onward = packet.route.map(|next| next.eui64()).filter(|next| packet.from != Some(*next));
    onward.map_or(Verdict::Drop(DropReason::NoRoute), |next_hop| Verdict::Forward {
        next_hop,
        option: None,
    })
}

impl lowmesh_ipv6::Routing for Routing {
    fn forward(&mut self, now: Instant, packet: &ForwardContext) -> Verdict {
        let &ForwardContext { from, destination, source_routed, option, .. } = packet;
        let Self::Rpl(rpl) = self else { return forward_as_given(packet) };
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

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::{Eui64, NodeId};

    const PEER: Eui64 = NodeId(3).eui64();

    fn packet(from: Option<u16>) -> ForwardContext {
        let route = Some(Address::link_local(PEER));
        let (destination, option) = (Address::link_local(NodeId(9).eui64()), None);
        let from = from.map(|node| NodeId(node).eui64());
        ForwardContext { from, destination, source_routed: false, option, route }
    }

    #[test]
    fn a_given_route_does_not_lead_back_to_where_a_packet_came_from() {
        let onward = Verdict::Forward { next_hop: PEER, option: None };
        assert_eq!(forward_as_given(&packet(Some(4))), onward);
        assert_eq!(forward_as_given(&packet(None)), onward);
        assert_eq!(forward_as_given(&packet(Some(3))), Verdict::Drop(DropReason::NoRoute));
    }

    #[test]
    fn a_source_route_is_not_obeyed_where_routes_are_given() {
        let packet = ForwardContext { source_routed: true, ..packet(Some(4)) };
        assert_eq!(forward_as_given(&packet), Verdict::Drop(DropReason::NotForUs));
    }
}
