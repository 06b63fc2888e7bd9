//! The sending half: datagrams and messages become packets on their way to a first hop.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Dropped, Handle, Layer, Outbox};
use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::icmpv6::{self, Icmpv6};
use lowmesh_wire::ipv6::{Address, Header, next_header};
use lowmesh_wire::rpl::HopByHopOption;

use crate::error::Message;
use crate::event::{Class, Output, Packet};
use crate::forward::Forwarder;
use crate::fragment::{Cutter, Fragments};
use crate::name::Names;
use crate::packet::{self, Flow};
use crate::params::HOP_LIMIT_ON_LINK;
use crate::routing::{ForwardContext, Routing, Verdict};
use crate::source_route;
use crate::tunnel::Tunnel;
use crate::uplink::Uplink;

/// What sending takes from the rest of the layer.
pub(crate) struct EventContext<'a> {
    pub now: Instant,
    pub forwarder: &'a Forwarder,
    pub routing: &'a mut dyn Routing,
    pub outbox: &'a mut Outbox<Output>,
}

impl EventContext<'_> {
    /// The neighbour towards `destination`, and the RPL option that packets from here carry.
    fn next_hop_to(
        &mut self,
        destination: Address,
    ) -> Result<(Eui64, Option<HopByHopOption>), DropReason> {
        if destination.is_link_local() {
            return Ok((destination.eui64(), None));
        }
        if let Some(leaf) = self.forwarder.leaf(&destination) {
            // RFC 9010 s4.1: nothing of RPL goes to a leaf.
            return Ok((leaf, None));
        }
        let route = self.forwarder.routes.lookup(&destination);
        let (from, source_routed, option) = (None, false, None);
        let context = ForwardContext { from, destination, source_routed, option, route };
        match self.routing.forward(self.now, &context) {
            Verdict::Forward { next_hop, option } => Ok((next_hop, option)),
            Verdict::Drop(reason) => Err(reason),
        }
    }

    /// At the root of a non-storing DODAG packets carry their route (RFC 6554). False when it does not fit.
    fn add_source_route(&self, packet: &mut Vec<u8>, destination: &Address) -> bool {
        let Some(hops) = self.routing.source_route(destination) else { return true };
        // The last hop is the destination itself, which needs no header when it is the first as well.
        match hops.split_last() {
            Some((_, [])) | None => true,
            Some((_, before)) => source_route::insert(packet, before),
        }
    }

    /// The first hop of a packet into the mesh, which gets what packets made here have.
    pub fn enter(&mut self, packet: &mut Vec<u8>) -> Result<Eui64, DropReason> {
        let destination = Header::parse(packet).map_err(|_| DropReason::Malformed)?.destination;
        let (next_hop, option) = self.next_hop_to(destination)?;
        packet::insert_options(packet, |out| emit(option, out));
        if self.add_source_route(packet, &destination) {
            Ok(next_hop)
        } else {
            Err(DropReason::NoRoute)
        }
    }

    /// True at the root of the network that packets of RPL belong to.
    pub fn is_root(&self) -> bool {
        self.routing.root().is_some_and(|root| self.forwarder.addresses.contains(&root))
    }

    /// Where the tunnel of a packet to `destination` begins and ends: from the root to its last router (RFC 9008 s4.1.1: of a
    /// leaf, its router), or from the router of a leaf to the root (RFC 9010 s9.2.2).
    fn tunnel_ends(&self, destination: Address) -> Option<(Address, Address)> {
        let root = self.routing.root()?;
        if self.is_root() {
            return Some((root, self.routing.router_of(&destination).unwrap_or(destination)));
        }
        Some((self.forwarder.addresses.source_for(&root), root))
    }

    /// The first hop into the mesh of a packet that another node made, and the packet, encapsulated if it needs RPL's option:
    /// RFC 9008 s7.2.2 and s8.2.2 (from elsewhere), s8.3.1 (between two nodes), s7 and s8 (from and to leaves). Its hop limit
    /// is decremented already.
    pub fn enclose(
        &mut self,
        packet: &[u8],
        hop_limit: u8,
    ) -> Result<(Option<Vec<u8>>, Eui64), DropReason> {
        let destination = Header::parse(packet).map_err(|_| DropReason::Malformed)?.destination;
        let ends = self.tunnel_ends(destination);
        let end = ends.filter(|_| self.forwarder.leaf(&destination).is_none());
        let (next_hop, option) = self.next_hop_to(end.map_or(destination, |(_, end)| end))?;
        let (Some((source, destination)), Some(option)) = (end, option) else {
            return Ok((None, next_hop));
        };
        let tunnel = Tunnel { source, destination, hop_limit, option };
        let outer = match self.routing.source_route(&destination) {
            Some(hops) => tunnel.wrap_routed(packet, &hops).ok_or(DropReason::NoRoute)?,
            None => tunnel.wrap(packet),
        };
        Ok((Some(outer), next_hop))
    }

    /// The root, for a packet that would leave the mesh with an option that others may not skip: the packet goes encapsulated
    /// to the root, which removes the option with the outer header. RFC 6553 s5, RFC 9008 s4.2.
    fn root_that_removes(
        &self,
        destination: &Address,
        option: Option<HopByHopOption>,
    ) -> Option<(Address, HopByHopOption)> {
        let option = option.filter(|option| !option.skippable)?;
        let addresses = &self.forwarder.addresses;
        let is_outside = !addresses.has_prefix_of(destination) && !self.is_root();
        self.routing.root().filter(|_| is_outside).map(|root| (root, option))
    }

    pub fn drop(&mut self, handle: Handle, layer: Layer, reason: DropReason) {
        self.note(Packet::Dropped(Dropped { handle, layer, reason }));
    }
    pub fn note(&mut self, packet: Packet) {
        self.outbox.push(Output::Packet(packet));
    }
}

/// Makes packets.
#[derive(Debug)]
pub(crate) struct Sender {
    pub names: Names,
    pub uplink: Uplink,
    pub cutter: Cutter,
    /// Of packets that routers forward.
    pub hop_limit: u8,
}

impl Sender {
    fn datagram(
        &mut self,
        context: &mut EventContext<'_>,
        flow: &Flow,
        payload: &[u8],
        class: Class,
    ) {
        let hop_limit = self.hop_limit;
        if flow.destination.is_multicast() {
            let packet = packet::udp(flow, hop_limit, payload, |_| ());
            return self.send_to_group(context, flow.destination, packet, class);
        }
        let handle = self.name(context, class);
        let make = |option| packet::udp(flow, hop_limit, payload, |out| emit(option, out));
        self.send(context, flow.destination, handle, make);
    }

    /// Sends a UDP datagram from the address that suits where it goes.
    pub fn datagram_to(
        &mut self,
        context: &mut EventContext<'_>,
        source_port: u16,
        (destination, destination_port): (Address, u16),
        payload: &[u8],
        class: Class,
    ) {
        let source = context.forwarder.addresses.source_for(&destination);
        let flow = Flow { source, destination, source_port, destination_port };
        self.datagram(context, &flow, payload, class);
    }

    /// Sends a TCP segment from the first address to the second.
    pub fn segment(
        &mut self,
        context: &mut EventContext<'_>,
        (source, destination): (Address, Address),
        segment: &[u8],
        class: Class,
    ) {
        let (handle, limit) = (self.name(context, class), self.hop_limit);
        let make = |option| {
            let upper = next_header::TCP;
            packet::plain(source, destination, upper, limit, segment, |out| emit(option, out))
        };
        self.send(context, destination, handle, make);
    }

    /// Sends an ICMPv6 message, with the hop limit of its scope.
    pub fn message(&mut self, context: &mut EventContext<'_>, message: &Message) {
        let &Message { source, destination, ref body } = message;
        let mut payload = Vec::with_capacity(80);
        body.emit(&source.0, &destination.0, &mut payload);
        // A ping is data: it has no claim to the places that the MAC keeps for routing.
        let class = match body {
            Icmpv6::EchoRequest(_) => Class::Request,
            Icmpv6::EchoReply(_) => Class::Response,
            _ => Class::Control,
        };
        let upper = icmpv6::NEXT_HEADER;
        if destination.is_multicast() {
            let routed = destination.is_routed_group();
            let limit = if routed { self.hop_limit } else { HOP_LIMIT_ON_LINK };
            let packet = packet::plain(source, destination, upper, limit, &payload, |_| ());
            return self.send_to_group(context, destination, packet, class);
        }
        let handle = self.name(context, class);
        if destination.is_link_local() {
            let limit = HOP_LIMIT_ON_LINK;
            let packet = packet::plain(source, destination, upper, limit, &payload, |_| ());
            return self.cut_and_send(context, packet, Some(destination.eui64()), handle);
        }
        let limit = self.hop_limit;
        let make = |option| {
            packet::plain(source, destination, upper, limit, &payload, |out| emit(option, out))
        };
        self.send(context, destination, handle, make);
    }

    /// Sends an ICMPv6 message that no router forwards: whatever its destination is, `node` is where it goes.
    pub fn message_on_link(
        &mut self,
        context: &mut EventContext<'_>,
        message: &Message,
        node: Option<Eui64>,
    ) {
        let &Message { source, destination, ref body } = message;
        let mut payload = Vec::new();
        body.emit(&source.0, &destination.0, &mut payload);
        let handle = self.name(context, Class::Control);
        let (upper, limit) = (icmpv6::NEXT_HEADER, HOP_LIMIT_ON_LINK);
        let bytes = packet::plain(source, destination, upper, limit, &payload, |_| ());
        let neighbour = node.unwrap_or_else(|| destination.eui64());
        let next_hop = (!destination.is_multicast()).then_some(neighbour);
        context.outbox.push(Output::Send { bytes, next_hop, handle });
    }

    /// Names a packet that is made here, or that has no name yet.
    pub fn name(&mut self, context: &mut EventContext<'_>, class: Class) -> Handle {
        let handle = self.names.next(class);
        context.note(Packet::Born(handle, class));
        handle
    }

    /// Sends a packet to a group: on the link, or through the multicast engine.
    pub fn send_to_group(
        &mut self,
        context: &mut EventContext<'_>,
        group: Address,
        packet: Vec<u8>,
        class: Class,
    ) {
        if !group.is_routed_group() {
            let handle = self.name(context, class);
            return self.cut_and_send(context, packet, None, handle);
        }
        if self.uplink.leads_to_group(&group) {
            // On the uplink it is a packet like others; where it comes in, it becomes one to the group there.
            let handle = self.name(context, class);
            context.outbox.push(Output::Uplink { packet: packet.clone(), handle });
        }
        self.enter_group(context, group, packet);
    }

    /// Gives a packet for a group to the multicast engine: one that was made here, or came over the uplink.
    pub fn enter_group(&mut self, context: &mut EventContext<'_>, group: Address, packet: Vec<u8>) {
        let handle = self.name(context, Class::Group);
        context.note(Packet::Addressed(handle, group));
        self.cut(context, packet, handle, |packet| Output::Group { packet, from: None, handle });
    }

    /// Sends the packet that `make` builds with RPL's option, by the first hop or out of the mesh.
    fn send(
        &mut self,
        context: &mut EventContext<'_>,
        destination: Address,
        handle: Handle,
        make: impl FnOnce(Option<HopByHopOption>) -> Vec<u8>,
    ) {
        if context.routing.router_of(&destination).is_some() {
            return match context.enclose(&make(None), self.hop_limit) {
                Ok((Some(outer), next_hop)) => {
                    self.cut_and_send_outer(context, outer, next_hop, handle);
                }
                Ok((None, _)) => context.drop(handle, Layer::Ipv6, DropReason::NoRoute),
                Err(reason) => context.drop(handle, Layer::Ipv6, reason),
            };
        }
        match context.next_hop_to(destination) {
            Ok((next_hop, option)) => {
                if let Some((root, option)) = context.root_that_removes(&destination, option) {
                    let source = context.forwarder.addresses.source_for(&root);
                    let hop_limit = self.hop_limit;
                    let tunnel = Tunnel { source, destination: root, hop_limit, option };
                    let outer = tunnel.wrap(&make(None));
                    return self.cut_and_send_outer(context, outer, next_hop, handle);
                }
                let mut packet = make(option);
                if context.add_source_route(&mut packet, &destination) {
                    self.cut_and_send(context, packet, Some(next_hop), handle);
                } else {
                    context.drop(handle, Layer::Ipv6, DropReason::NoRoute);
                }
            }
            Err(DropReason::NoRoute)
                if self.uplink.leads_to(&context.forwarder.addresses, &destination) =>
            {
                context.outbox.push(Output::Uplink { packet: make(None), handle });
            }
            Err(reason) => context.drop(handle, Layer::Ipv6, reason),
        }
    }

    /// Sends a packet that was made here, in mode E2E cut to what fits into a frame.
    pub fn cut_and_send(
        &mut self,
        context: &mut EventContext<'_>,
        packet: Vec<u8>,
        next_hop: Option<Eui64>,
        handle: Handle,
    ) {
        self.cut(context, packet, handle, |bytes| Output::Send { bytes, next_hop, handle });
    }

    /// Sends an outer packet, fragmented if it has to be.
    pub fn cut_and_send_outer(
        &mut self,
        context: &mut EventContext<'_>,
        outer: Vec<u8>,
        next_hop: Eui64,
        handle: Handle,
    ) {
        let output = |bytes| Output::Send { bytes, next_hop: Some(next_hop), handle };
        match self.cutter.cut_outer(&outer) {
            None => context.outbox.push(output(outer)),
            Some(cut) => give(context, cut, handle, output),
        }
    }

    /// Makes an output of a packet, or of each of its fragments.
    fn cut(
        &mut self,
        context: &mut EventContext<'_>,
        packet: Vec<u8>,
        handle: Handle,
        output: impl Fn(Vec<u8>) -> Output,
    ) {
        match self.cutter.cut(&packet) {
            None => context.outbox.push(output(packet)),
            Some(cut) => give(context, cut, handle, output),
        }
    }
}

/// Makes an output of each fragment.
fn give(
    context: &mut EventContext<'_>,
    cut: Result<Fragments<'_>, DropReason>,
    handle: Handle,
    output: impl Fn(Vec<u8>) -> Output,
) {
    match cut {
        Ok(fragments) => {
            for (index, bytes) in fragments.enumerate() {
                if index > 0 {
                    context.note(Packet::Accepted(handle));
                }
                context.outbox.push(output(bytes));
            }
        }
        Err(reason) => context.drop(handle, Layer::Ipv6, reason),
    }
}
fn emit(option: Option<HopByHopOption>, out: &mut Vec<u8>) {
    if let Some(option) = option {
        option.emit(out);
    }
}
