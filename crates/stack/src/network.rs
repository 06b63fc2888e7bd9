//! The boundary of the network layer: what IPv6 and routing have to say.

use lowmesh_ipv6 as ipv6;
use lowmesh_machine::{Machine as _, debug_assert_accepted};
use lowmesh_rpl::Destination;
use lowmesh_sixtop::Event;
use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::rpl::Message;

use crate::event::{Network, Output, Problem};
use crate::node::Node;
use crate::params::COAP_PORT;
use crate::routing::Routing;

impl Node {
    /// Tells IPv6 of an event, and does what it wants at once: its outputs stand in the order of its acts.
    pub(crate) fn tell_ipv6(&mut self, now: Instant, event: ipv6::Event<'_>) {
        let routing = &mut self.routing;
        debug_assert_accepted(self.ipv6.handle(now, ipv6::Input { routing, event }));
        while let Some(output) = self.ipv6.poll_output() {
            self.on_ipv6(now, output);
        }
    }

    /// Handles an output of IPv6.
    fn on_ipv6(&mut self, now: Instant, output: ipv6::Output) {
        match output {
            ipv6::Output::Send { bytes, next_hop, handle } => {
                self.send_packet(now, bytes, next_hop, handle);
            }
            ipv6::Output::Route { beginning, route } => {
                self.reply_route(now, beginning, route);
            }
            ipv6::Output::Uplink { packet, handle } => {
                self.outbox.push(Output::Uplink { packet, handle });
            }
            ipv6::Output::Datagram(datagram) => self.on_datagram(now, &datagram),
            ipv6::Output::Rpl { from, multicast, message } => {
                let message = &message;
                let input = lowmesh_rpl::Input::Message { from: from.0, multicast, message };
                self.tell_rpl(now, input);
            }
            ipv6::Output::Pong { from, echo } => {
                self.outbox.push(Output::Pong { from, echo });
            }
            ipv6::Output::Trouble { from, to, problem, ports } => {
                self.outbox.push(Output::Trouble { from, to, problem });
                if let (Problem::Unreachable(_), Some((COAP_PORT, port))) = (problem, ports) {
                    self.on_unreachable(now, (to, port));
                }
            }
            ipv6::Output::Packet(packet) => self.note_packet(packet),
        }
    }

    pub(crate) fn poll_rpl(&mut self) -> Option<lowmesh_rpl::Output> {
        match &mut self.routing {
            Routing::Rpl(rpl) => rpl.poll_output(),
            Routing::Static(_) => None,
        }
    }
    pub(crate) fn tell_rpl(&mut self, now: Instant, input: lowmesh_rpl::Input<'_>) {
        if let Routing::Rpl(rpl) = &mut self.routing {
            debug_assert_accepted(rpl.handle(now, input));
        }
    }

    /// Handles an output of RPL.
    pub(crate) fn on_rpl(&mut self, now: Instant, output: lowmesh_rpl::Output) {
        match output {
            lowmesh_rpl::Output::ParentChanged { old, new } => self.on_parent(now, old, new),
            lowmesh_rpl::Output::Joined { .. } | lowmesh_rpl::Output::RankChanged { .. } => {
                let metric = self.join_metric();
                self.link.set_beacons(now, metric);
            }
            lowmesh_rpl::Output::KnownToParent { parent } => {
                self.link.tell_sixtop(now, Event::KnownToParent(Address(parent).eui64()));
            }
            lowmesh_rpl::Output::Detached => self.link.set_beacons(now, None),
            lowmesh_rpl::Output::RouteAdded { target, via, .. } => {
                // In non-storing mode `via` is no neighbour: source routes come from RPL itself.
                if Address(via).is_link_local() {
                    // A full table sends the packet up instead of down: RPL's bound is the same.
                    let _full = self.ipv6.routes_mut().insert(Address(target), Address(via));
                }
            }
            lowmesh_rpl::Output::RouteRemoved { target } => {
                self.ipv6.routes_mut().remove(&Address(target));
            }
            lowmesh_rpl::Output::ChildAdded { child } => {
                self.link.tell_sixtop(now, Event::ChildAdded(Address(child).eui64()));
            }
            lowmesh_rpl::Output::ChildRemoved { child } => {
                self.link.tell_sixtop(now, Event::ChildRemoved(Address(child).eui64()));
            }
            lowmesh_rpl::Output::Send { to, message } => {
                let to = match to {
                    Destination::AllRplNodes => Address::ALL_RPL_NODES,
                    Destination::Unicast(address) => Address(address),
                };
                let is_advertisement = to.is_multicast() && matches!(message, Message::Dio(_));
                let message = Icmpv6::Rpl(message);
                self.tell_ipv6(now, ipv6::Event::Message { to, message });
                if is_advertisement {
                    self.advertisement = Some(self.ipv6.newest_name());
                }
            }
        }
    }

    fn on_parent(&mut self, now: Instant, old: Option<[u8; 16]>, new: Option<[u8; 16]>) {
        let eui = |address: Option<[u8; 16]>| address.map(|a| Address(a).eui64());
        let (old, new): (Option<Eui64>, Option<Eui64>) = (eui(old), eui(new));
        self.ipv6.routes_mut().set_default(new.map(Address::link_local));
        let root = match &self.routing {
            Routing::Rpl(rpl) => rpl.dodag_id().map(|id| Address(id).eui64()),
            Routing::Static(_) => None,
        };
        if let Some(root) = root.filter(|root| new == Some(*root)) {
            self.link.tell_sixtop(now, Event::RootKnown(root));
        }
        self.link.on_parent(now, old, new);
        self.outbox.push(Output::Network(Network::Parent(new)));
    }

    /// RFC 8180 s6.1 (join priority): DAGRank of the rank, less that of the root.
    fn join_metric(&self) -> Option<u8> {
        let Routing::Rpl(rpl) = &self.routing else { return None };
        if !rpl.is_joined() {
            return None;
        }
        let hops = rpl.dag_rank().saturating_sub(1);
        Some(u8::try_from(hops).unwrap_or(u8::MAX))
    }

    /// A node with static routes has its place in the network as soon as it has neighbours.
    pub(crate) fn take_place(&mut self, now: Instant) {
        let Routing::Static(place) = &self.routing else { return };
        let (parent, metric) = (place.parent, u8::try_from(place.hops).unwrap_or(u8::MAX));
        for &child in &place.children {
            self.link.tell_sixtop(now, Event::ChildAdded(child));
        }
        let is_below_root = place.hops == 1;
        self.link.set_beacons(now, Some(metric));
        if let Some(root) = parent.filter(|_| is_below_root) {
            self.link.tell_sixtop(now, Event::RootKnown(root));
        }
        self.link.on_parent(now, None, parent);
        if let Some(parent) = parent {
            self.link.tell_sixtop(now, Event::KnownToParent(parent));
        }
        self.outbox.push(Output::Network(Network::Parent(parent)));
    }
}
