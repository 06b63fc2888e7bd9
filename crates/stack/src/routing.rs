//! Where a node's routes come from, what that says to the other layers, and the decisions that IPv6 borrows.

use alloc::boxed::Box;
use alloc::vec::Vec;

use lowmesh_ipv6::{Addresses, ForwardContext, Role, Verdict};
use lowmesh_lowpan::Network;
use lowmesh_machine::{DropReason, Machine as _, debug_assert_accepted};
use lowmesh_rpl::{Advertised, Destination, Etx, Input, Rpl};
use lowmesh_sixtop::Event;
use lowmesh_units::{Duration, Eui64, Instant, Rank, Sequence};
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::lowpan::RoutingContext;
use lowmesh_wire::rpl::Message;

use crate::leaf::Leaf;
use crate::params::JOIN_METRIC_INFINITE;
use crate::tree::Place;

/// Where a node's routes come from.
#[derive(Debug)]
pub(crate) enum Routing {
    /// RPL finds them.
    Rpl(Box<Rpl>),
    /// The node is a leaf without RPL: a router that it registers with has them.
    Leaf(Box<Leaf>),
    /// They are given.
    Static(Place),
}

/// What routing says to the link layer and to IPv6.
#[derive(Debug)]
pub(crate) enum Output {
    /// The preferred parent is another one, or none.
    Parent {
        /// The parent before.
        old: Option<Eui64>,
        /// The parent now.
        new: Option<Eui64>,
        /// The parent now is the root itself.
        is_root: bool,
    },
    /// Beacons carry this join metric from now on, or there are none.
    Beacons(Option<u8>),
    /// The link layer resets the ETX of bad links.
    BadLinksReset,
    /// Something that a scheduling function learns.
    Scheduling(Event),
    /// `target` is behind the neighbour `via`.
    RouteAdded { target: Address, via: Address },
    /// The route to `target` is over.
    RouteRemoved { target: Address },
    /// A message leaves for a node or a group.
    Send { to: Address, message: Message },
    /// A message of neighbour discovery leaves for a router or for all of them.
    Discover { to: Address, message: Icmpv6 },
    /// A leaf of this router has no route, or another router by now.
    LeafRefused { leaf: Address, status: u8 },
}

impl Routing {
    /// The link layer is up: a node with static routes has joined at once, and says so.
    pub(crate) fn start(&mut self, now: Instant) -> Vec<Output> {
        match self {
            Self::Rpl(_) => {
                self.tell(now, Input::Start);
                Vec::new()
            }
            Self::Leaf(leaf) => {
                leaf.start(now);
                Vec::new()
            }
            Self::Static(place) => outputs_of(place),
        }
    }
    /// The link layer is down.
    pub(crate) fn stop(&mut self, now: Instant) {
        if let Self::Leaf(leaf) = self {
            leaf.stop();
        }
        self.tell(now, Input::Stop);
    }
    /// At a leaf: a neighbour advertises itself as a router, over a link of this ETX and level, or answers a registration.
    pub(crate) fn on_discovery(
        &mut self,
        now: Instant,
        from: Eui64,
        link: (u16, f64),
        message: &Icmpv6,
    ) {
        match (self, message) {
            (Self::Leaf(leaf), Icmpv6::RouterAdvertisement(said)) => {
                leaf.on_router(from, link, said);
            }
            (Self::Leaf(leaf), Icmpv6::NeighbourAdvertisement(said)) => {
                leaf.on_answer(now, from, said);
            }
            _ => {}
        }
    }
    /// Whether the node knows which neighbours route through it.
    pub(crate) fn knows_children(&self) -> bool {
        match self {
            Self::Rpl(rpl) => rpl.is_storing(),
            Self::Leaf(_) => false,
            Self::Static(_) => true,
        }
    }
    /// A leaf registered with this router, or did so again.
    pub(crate) fn on_leaf(
        &mut self,
        now: Instant,
        leaf: Address,
        sequence: Sequence,
        lifetime: Duration,
    ) {
        self.tell(now, Input::Attach { leaf: leaf.0, sequence, lifetime });
    }
    /// The registration of a leaf is over.
    pub(crate) fn on_leaf_lost(&mut self, now: Instant, leaf: Address) {
        self.tell(now, Input::Detach { leaf: leaf.0 });
    }
    /// A message of RPL came from the node with the address `from`, or to a group.
    pub(crate) fn on_message(
        &mut self,
        now: Instant,
        from: Address,
        multicast: bool,
        message: &Message,
    ) {
        self.tell(now, Input::Message { from: from.0, multicast, message });
    }
    /// The link layer has an estimate of the link to a neighbour.
    pub(crate) fn on_etx(&mut self, now: Instant, neighbour: Eui64, etx: u16, fresh: bool) {
        let neighbour = Address::link_local(neighbour).0;
        self.tell(now, Input::LinkEtx { neighbour, etx: Etx(etx), fresh });
    }
    /// The link layer gave a neighbour up.
    pub(crate) fn on_gone(&mut self, now: Instant, neighbour: Eui64) {
        if let Self::Leaf(leaf) = self {
            leaf.on_gone(now, neighbour);
        }
        let neighbour = Address::link_local(neighbour).0;
        self.tell(now, Input::NeighbourUnreachable { neighbour });
    }
    /// The link layer has heard nothing from a neighbour for long.
    pub(crate) fn on_silent(&mut self, now: Instant, neighbour: Eui64) {
        let neighbour = Address::link_local(neighbour).0;
        self.tell(now, Input::NeighbourSilent { neighbour });
    }
    /// The link layer heard a neighbour that was gone or silent.
    pub(crate) fn on_back(&mut self, now: Instant, neighbour: Eui64) {
        let neighbour = Address::link_local(neighbour).0;
        self.tell(now, Input::NeighbourReachable { neighbour });
    }
    /// The node is in a group from now on.
    pub(crate) fn join(&mut self, now: Instant, group: Address) {
        self.tell(now, Input::Join { group: group.0 });
    }
    /// The node is in a group no longer.
    pub(crate) fn leave(&mut self, now: Instant, group: Address) {
        self.tell(now, Input::Leave { group: group.0 });
    }
    fn tell(&mut self, now: Instant, input: Input<'_>) {
        if let Self::Rpl(rpl) = self {
            debug_assert_accepted(rpl.handle(now, input));
        }
    }

    /// Handles a deadline if one has come.
    pub(crate) fn deadline(&mut self, now: Instant) {
        if self.next_deadline().is_none_or(|due| due > now) {
            return;
        }
        match self {
            Self::Leaf(leaf) => leaf.on_deadline(now),
            Self::Rpl(_) | Self::Static(_) => self.tell(now, Input::Deadline),
        }
    }
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Rpl(rpl) => rpl.next_deadline(),
            Self::Leaf(leaf) => leaf.next_deadline(),
            Self::Static(_) => None,
        }
    }
    /// Takes the next output.
    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        let rpl = match self {
            Self::Rpl(rpl) => rpl,
            Self::Leaf(leaf) => return leaf.poll_output(),
            Self::Static(_) => return None,
        };
        loop {
            let output = rpl.poll_output()?;
            if let Some(output) = output_of(rpl, output) {
                return Some(output);
            }
        }
    }

    /// True for a node in a DODAG, for a leaf that is registered with a router, or with static routes.
    pub(crate) fn is_joined(&self) -> bool {
        match self {
            Self::Rpl(rpl) => rpl.is_joined(),
            Self::Leaf(leaf) => leaf.registered().is_some(),
            Self::Static(_) => true,
        }
    }
    /// The preferred parent; of a leaf, its router.
    pub(crate) fn parent(&self) -> Option<Eui64> {
        match self {
            Self::Rpl(rpl) => rpl.preferred_parent().map(|address| Address(address).eui64()),
            Self::Leaf(leaf) => leaf.router(),
            Self::Static(place) => place.parent,
        }
    }
    /// What a root has to keep over a restart.
    pub(crate) fn advertised(&self) -> Option<Advertised> {
        match self {
            Self::Rpl(rpl) => rpl.advertised(),
            Self::Leaf(_) | Self::Static(_) => None,
        }
    }

    /// What the root of the RPL network decides about compression.
    pub(crate) fn network(&self) -> Network {
        let Self::Rpl(rpl) = self else { return Network::default() };
        let skippable = rpl.has_rpi_0x23();
        let routing = rpl.dodag_id().map(|root| RoutingContext { root: Address(root), skippable });
        Network { routing, is_routed: rpl.has_sixlorh() }
    }
    /// The address of the root: the DODAGID, or where routes are given the address of a root itself.
    pub(crate) fn root(&self, addresses: &Addresses) -> Option<Address> {
        match self {
            Self::Rpl(rpl) => rpl.dodag_id().map(Address),
            Self::Leaf(_) => None,
            Self::Static(place) => {
                let here = addresses.global();
                Some(place.root.map_or(here, |root| Address::global(here.prefix(), root)))
            }
        }
    }
    /// The children that registered for a group; where routes are given, nobody registers, and all get its packets.
    pub(crate) fn subscribed(&self, group: &Address) -> Vec<Eui64> {
        match self {
            Self::Rpl(rpl) => {
                rpl.subscribed(&group.0).map(|child| Address(*child).eui64()).collect()
            }
            Self::Leaf(_) => Vec::new(),
            Self::Static(place) => place.children.clone(),
        }
    }
    /// The rank in a DODAG.
    pub(crate) fn rank(&self) -> Option<Rank> {
        match self {
            Self::Rpl(rpl) => Some(rpl.rank()),
            Self::Leaf(_) | Self::Static(_) => None,
        }
    }
}

/// What a given place means to the other layers.
fn outputs_of(place: &Place) -> Vec<Output> {
    let children = place.children.iter().map(|child| Output::Scheduling(Event::ChildAdded(*child)));
    let mut outputs: Vec<Output> = children.collect();
    let metric = u8::try_from(place.hops).unwrap_or(u8::MAX);
    outputs.push(Output::Beacons(Some(metric)));
    outputs.push(Output::Parent { old: None, new: place.parent, is_root: place.hops == 1 });
    outputs.extend(place.parent.map(|parent| Output::Scheduling(Event::KnownToParent(parent))));
    outputs
}

/// What an output of RPL means to the other layers.
fn output_of(rpl: &Rpl, output: lowmesh_rpl::Output) -> Option<Output> {
    let eui64 = |address| Address(address).eui64();
    Some(match output {
        lowmesh_rpl::Output::ParentChanged { old, new } => {
            let is_root = new.is_some_and(|new| rpl.dodag_id().map(eui64) == Some(eui64(new)));
            Output::Parent { old: old.map(eui64), new: new.map(eui64), is_root }
        }
        lowmesh_rpl::Output::Joined { .. } | lowmesh_rpl::Output::RankChanged { .. } => {
            Output::Beacons(join_metric(rpl))
        }
        // Joining nodes ignore its beacons, but a root that restarts finds its network by them.
        lowmesh_rpl::Output::Detached => Output::Beacons(Some(JOIN_METRIC_INFINITE)),
        lowmesh_rpl::Output::BadLinksReset => Output::BadLinksReset,
        lowmesh_rpl::Output::KnownToParent { parent } => {
            Output::Scheduling(Event::KnownToParent(eui64(parent)))
        }
        lowmesh_rpl::Output::ChildAdded { child } => {
            Output::Scheduling(Event::ChildAdded(eui64(child)))
        }
        lowmesh_rpl::Output::ChildRemoved { child } => {
            Output::Scheduling(Event::ChildRemoved(eui64(child)))
        }
        lowmesh_rpl::Output::RouteAdded { target, via, .. } => {
            // In non-storing mode `via` is no neighbour: source routes come from RPL itself.
            return Address(via)
                .is_link_local()
                .then_some(Output::RouteAdded { target: Address(target), via: Address(via) });
        }
        lowmesh_rpl::Output::RouteRemoved { target } => {
            Output::RouteRemoved { target: Address(target) }
        }
        lowmesh_rpl::Output::LeafRefused { leaf, status } => {
            Output::LeafRefused { leaf: Address(leaf), status }
        }
        lowmesh_rpl::Output::Send { to, message } => {
            let to = match to {
                Destination::AllRplNodes => Address::ALL_RPL_NODES,
                Destination::Unicast(address) => Address(address),
            };
            Output::Send { to, message }
        }
    })
}

/// RFC 8180 s6.1 (join priority): DAGRank of the rank, less that of the root.
fn join_metric(rpl: &Rpl) -> Option<u8> {
    let hops = rpl.dag_rank().saturating_sub(1);
    rpl.is_joined().then(|| u8::try_from(hops).unwrap_or(u8::MAX))
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

/// The next hop of a packet at a leaf: its router, for its own packets alone.
fn forward_at_leaf(leaf: &Leaf, packet: &ForwardContext) -> Verdict {
    if packet.from.is_some() {
        return Verdict::Drop(DropReason::NotForUs);
    }
    let onward = |next_hop| Verdict::Forward { next_hop, option: None };
    leaf.registered().map_or(Verdict::Drop(DropReason::NotJoined), onward)
}

impl lowmesh_ipv6::Routing for Routing {
    fn forward(&mut self, now: Instant, packet: &ForwardContext) -> Verdict {
        let &ForwardContext { from, destination, source_routed, option, .. } = packet;
        let rpl = match self {
            Self::Rpl(rpl) => rpl,
            Self::Leaf(leaf) => return forward_at_leaf(leaf, packet),
            Self::Static(_) => return forward_as_given(packet),
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

    fn root(&self) -> Option<Address> {
        match self {
            Self::Rpl(rpl) => rpl.dodag_id().map(Address),
            Self::Leaf(_) | Self::Static(_) => None,
        }
    }

    fn router_of(&self, leaf: &Address) -> Option<Address> {
        let Self::Rpl(rpl) = self else { return None };
        rpl.router_of(&leaf.0).map(Address)
    }

    fn role(&self) -> Role {
        match self {
            Self::Rpl(rpl) if !rpl.is_joined() => Role::Adrift,
            Self::Rpl(_) | Self::Static(_) => Role::Router,
            Self::Leaf(_) => Role::Host,
        }
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
