//! The IPv6 layer of one node as a machine: the parts, and which input leads to which act.
//!
//! ```text
//!       Datagram, Segment, Message         Datagram, Segment, Rpl, Pong, Trouble
//!                  v                                        ^
//!        Sender: a packet, its first hop                  Receiver
//!                  │                                        │
//!                  v                     Forward            │
//!                 Send  <───────────────  Forwarder  ─── Deliver
//!                                             ^
//!                                     Packet, Beginning, Uplink
//! ```
//!
//! What becomes of each packet is an [`Output::Packet`] as well.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Layer, Machine, Outbox, Rejected};
use lowmesh_units::{Eui64, Instant, NodeId, Rng};
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::{Address, HOP_LIMIT_OFFSET, Header};
use lowmesh_wire::lowpan::Contexts;
use lowmesh_wire::rpl::HopByHopOption;

use crate::error::{Errors, Message};
use crate::event::{Class, ErrorCounters, Event, Input, Output, Packet, Route};
use crate::forward::{Decision, Forwarder, may_be_on_link};
use crate::fragment::Cutter;
use crate::icmpv6::Responder;
use crate::name::Names;
use crate::params::{ECHO_PORT, MTU};
use crate::reassemble::{self, Reassembly};
use crate::receive::{self, Inner, Receiver, Rest};
use crate::routing::{ForwardContext, Routing, Verdict};
use crate::send::{EventContext, Sender};
use crate::udp::Ports;
use crate::uplink::{self, Uplink};
use crate::{Addresses, Headers, RouteTable, packet};

/// The settings of the IPv6 layer.
#[derive(Clone, Debug)]
pub struct Config {
    /// The node, for the names of its packets.
    pub node: NodeId,
    /// How often the node has lost its memory, for the same names.
    pub losses: u16,
    /// Hop limit of packets that are made here.
    pub hop_limit: u8,
    /// Mode E2E: octets that a frame has for 6LoWPAN, to which packets are cut; `None` where the layer below takes them as
    /// they are.
    pub frame_payload: Option<usize>,
    /// What is set aside for packets that came in fragments.
    pub reassembly: reassemble::Config,
    /// ICMPv6 errors a second; 0 lets none leave.
    pub errors: u32,
    /// Whether packets for other prefixes leave the mesh here.
    pub uplink: bool,
    /// The contexts of header compression, which a Router Advertisement tells.
    pub contexts: Contexts,
}

/// The next step of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It is for this node.
    Here,
    /// To this neighbour.
    Via(Eui64),
    /// Encapsulated by this node, which has the route. Nothing in it is edited yet.
    Enclosed,
    /// To a leaf of this router, which is this neighbour.
    Leaf(Eui64),
}

/// The IPv6 layer of one node.
#[derive(Debug)]
pub struct Ipv6 {
    forwarder: Forwarder,
    sender: Sender,
    receiver: Receiver,
    outbox: Outbox<Output>,
}

impl Ipv6 {
    /// A node with these addresses and routes, on which the echo service alone listens; `rng` is a stream of purpose
    /// `Ipv6`.
    pub fn new(config: Config, addresses: Addresses, routes: RouteTable, rng: &mut Rng) -> Self {
        let mut ports = Ports::default();
        ports.open(ECHO_PORT);
        let cutter = Cutter::new(config.frame_payload, rng.next_u32());
        Self {
            forwarder: Forwarder::new(addresses, routes),
            sender: Sender {
                names: Names::new(config.node, config.losses),
                uplink: Uplink::new(config.uplink),
                cutter,
                hop_limit: config.hop_limit,
            },
            receiver: Receiver {
                reassembly: Reassembly::new(config.reassembly),
                ports,
                takes_segments: false,
                responder: Responder::new(config.contexts, rng.fork()),
                errors: Errors::new(config.errors),
            },
            outbox: Outbox::new(),
        }
    }

    /// Which addresses are here.
    pub const fn addresses(&self) -> &Addresses {
        &self.forwarder.addresses
    }
    /// The neighbour of a leaf of this router, which runs no RPL.
    pub fn leaf(&self, address: &Address) -> Option<Eui64> {
        self.forwarder.leaf(address)
    }
    /// True for a neighbour that is a leaf of this router.
    pub fn is_leaf(&self, neighbour: Eui64) -> bool {
        self.forwarder.is_leaf(neighbour)
    }
    /// Where the others are.
    pub const fn routes(&self) -> &RouteTable {
        &self.forwarder.routes
    }
    /// The same, for the routing protocol to change.
    pub const fn routes_mut(&mut self) -> &mut RouteTable {
        &mut self.forwarder.routes
    }
    /// Datagrams to `port` come out as [`Output::Datagram`] from now on.
    pub fn open(&mut self, port: u16) {
        self.receiver.ports.open(port);
    }
    /// TCP segments come out as [`Output::Segment`] from now on.
    pub const fn take_segments(&mut self) {
        self.receiver.takes_segments = true;
    }
    /// A name for a packet that came without one.
    pub fn next_handle(&mut self, class: Class) -> Handle {
        self.sender.names.next(class)
    }
    /// The name of the packet that was made here last.
    pub const fn newest_name(&self) -> Handle {
        self.sender.names.newest()
    }
    /// Joins a group: packets to it are for this node from now on.
    pub fn join(&mut self, group: Address) -> Result<(), Rejected> {
        self.forwarder.addresses.join(group)
    }
    /// Leaves a group; nothing happens if the node is not in it.
    pub fn leave(&mut self, group: &Address) {
        self.forwarder.addresses.leave(group);
    }
    /// True for the name of a packet to a group that reaches further than the link, wherever it was made.
    pub const fn is_group(handle: Handle) -> bool {
        Names::is_group(handle)
    }
    /// True for routing messages that were made here.
    pub fn is_own_control(&self, handle: Handle) -> bool {
        self.sender.names.is_own_control(handle)
    }
    /// The ICMPv6 errors that were counted.
    pub const fn errors(&self) -> ErrorCounters {
        self.receiver.errors.counters
    }
    /// The packets in reassembly, oldest first.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.receiver.reassembly.handles()
    }
    /// Octets of fragments that wait for others.
    pub fn reassembly_octets(&self) -> usize {
        self.receiver.reassembly.octets()
    }

    fn sending<'a>(
        &'a mut self,
        now: Instant,
        routing: &'a mut dyn Routing,
    ) -> (&'a mut Sender, EventContext<'a>) {
        let (forwarder, outbox) = (&self.forwarder, &mut self.outbox);
        (&mut self.sender, EventContext { now, forwarder, routing, outbox })
    }

    fn receiving<'a>(
        &'a mut self,
        now: Instant,
        routing: &'a mut dyn Routing,
    ) -> (&'a mut Receiver, Rest<'a>) {
        let Self { forwarder, sender, receiver, outbox } = self;
        (receiver, Rest { now, forwarder, sender, routing, outbox })
    }

    fn on_packet(
        &mut self,
        now: Instant,
        routing: &mut dyn Routing,
        mut bytes: Vec<u8>,
        from: Eui64,
        handle: Handle,
    ) {
        let headers = Headers::of_packet(&bytes);
        if let Ok(Headers { ip, .. }) = &headers
            && ip.destination.is_routed_group()
        {
            return self.on_group_packet(ip, bytes, from, handle);
        }
        // A unicast packet in a broadcast frame is not forwarded: every neighbour would forward a copy.
        let strays = |headers: &Headers| {
            let to = headers.ip.destination;
            handle == Handle::NONE && !to.is_multicast() && !self.addresses().contains(&to)
        };
        if headers.as_ref().is_ok_and(strays) {
            return;
        }
        let way = headers.and_then(|headers| self.route(now, routing, from, &mut bytes, headers));
        match way {
            Ok((Way::Here, headers)) => {
                self.deliver(now, routing, bytes, &headers, handle, Some(from));
            }
            Ok((Way::Via(next_hop), _)) => {
                self.outbox.push(Output::Send { bytes, next_hop: Some(next_hop), handle });
            }
            Ok((Way::Enclosed, _)) => {
                uplink::spend_hop(&mut bytes);
                self.enclose(now, routing, bytes, handle);
            }
            Ok((Way::Leaf(leaf), headers)) => {
                self.hand_to_leaf(now, routing, (bytes, &headers), leaf, handle);
            }
            Err(DropReason::NoRoute) if handle != Handle::NONE && self.leaves(&bytes) => {
                self.leave_mesh(now, routing, &bytes, handle);
            }
            Err(reason) => self.end(now, routing, &bytes, handle, reason),
        }
    }

    /// A packet to a group came: its options are for the multicast engine, which forwards and delivers it.
    fn on_group_packet(&mut self, header: &Header, packet: Vec<u8>, from: Eui64, handle: Handle) {
        if may_be_on_link(header) {
            self.outbox.push(Output::Group { packet, from: Some(from), handle });
        } else {
            receive::refuse(&mut self.outbox, handle, (Layer::Ipv6, DropReason::Malformed));
        }
    }

    /// A multicast engine delivers a packet.
    fn on_delivery(
        &mut self,
        now: Instant,
        routing: &mut dyn Routing,
        packet: Vec<u8>,
        handle: Handle,
    ) {
        match Headers::of_packet(&packet) {
            Ok(headers) => self.deliver(now, routing, packet, &headers, handle, None),
            Err(reason) => receive::refuse(&mut self.outbox, handle, (Layer::Ipv6, reason)),
        }
    }

    /// A multicast engine sends a packet to one node.
    fn on_route(
        &mut self,
        now: Instant,
        routing: &mut dyn Routing,
        mut packet: Vec<u8>,
        handle: Handle,
    ) {
        let (sender, mut context) = self.sending(now, routing);
        match context.enter(&mut packet) {
            Ok(next_hop) => sender.cut_and_send(&mut context, packet, Some(next_hop), handle),
            Err(reason) => context.drop(handle, Layer::Ipv6, reason),
        }
    }

    /// RFC 8930: the first fragment tells where its packet goes.
    fn on_beginning(
        &mut self,
        now: Instant,
        routing: &mut dyn Routing,
        mut beginning: Vec<u8>,
        from: Eui64,
        handle: Handle,
    ) {
        let headers = Headers::of_beginning(&beginning);
        let way =
            headers.and_then(|headers| self.route(now, routing, from, &mut beginning, headers));
        let route = match way {
            Ok((Way::Via(next_hop), _)) => Route::Via(next_hop),
            // RFC 2473 s7: an outer packet is around a whole packet.
            Ok((Way::Here | Way::Enclosed | Way::Leaf(_), _)) => Route::Here,
            // It is put together here, and leaves as a whole.
            Err(DropReason::NoRoute) if self.leaves(&beginning) => Route::Here,
            Err(reason) => {
                self.end(now, routing, &beginning, handle, reason);
                Route::None
            }
        };
        self.outbox.push(Output::Route { beginning, route });
    }

    /// Takes a packet that came over the uplink: it is for this node, or goes on into the mesh.
    fn on_uplink(
        &mut self,
        now: Instant,
        routing: &mut dyn Routing,
        mut bytes: Vec<u8>,
        handle: Handle,
    ) {
        let group = Header::parse(&bytes).ok().map(|header| header.destination);
        let (sender, mut context) = self.sending(now, routing);
        if let Some(group) = group.filter(Address::is_routed_group) {
            sender.enter_group(&mut context, group, bytes);
            if handle != Handle::NONE {
                context.note(Packet::PassedOn(handle));
            }
            return;
        }
        let handle = match handle {
            Handle::NONE => sender.name(&mut context, Class::Request),
            known => known,
        };
        let entered = Headers::of_packet(&bytes).and_then(|mut headers| {
            uplink::check(&bytes, &headers)?;
            let here = self.arrives(&mut bytes, &mut headers)?;
            Ok(here.then_some(headers))
        });
        match entered {
            Ok(Some(headers)) => self.deliver(now, routing, bytes, &headers, handle, None),
            Ok(None) => self.enclose(now, routing, bytes, handle),
            Err(reason) => self.end(now, routing, &bytes, handle, reason),
        }
    }

    /// True for a packet to this node; of any other one the hop limit is decremented.
    fn arrives(&self, bytes: &mut [u8], headers: &mut Headers) -> Result<bool, DropReason> {
        match self.forwarder.decide(bytes, headers) {
            Decision::Deliver => return Ok(true),
            Decision::Forward { .. } => {}
            // RPL knows more routes than the table has. The hop limit is not decremented yet.
            Decision::Drop(DropReason::NoRoute) => uplink::spend_hop(bytes),
            Decision::Drop(reason) => return Err(reason),
        }
        Ok(false)
    }

    /// Sends a packet of another node, whose hop limit is decremented already, into the mesh: encapsulated where it needs
    /// RPL's option or a route.
    fn enclose(&mut self, now: Instant, routing: &mut dyn Routing, bytes: Vec<u8>, handle: Handle) {
        if bytes.len() > MTU as usize {
            return self.end(now, routing, &bytes, handle, DropReason::TooLarge);
        }
        let (sender, mut context) = self.sending(now, routing);
        match context.enclose(&bytes, sender.hop_limit) {
            Ok((Some(outer), next_hop)) => {
                sender.cut_and_send_outer(&mut context, outer, next_hop, handle);
            }
            Ok((None, next_hop)) => {
                let mut bytes = bytes;
                if self.forwarder.is_leaf(next_hop) {
                    packet::remove_any_rpl_option(&mut bytes);
                }
                self.outbox.push(Output::Send { bytes, next_hop: Some(next_hop), handle });
            }
            Err(reason) => self.end(now, routing, &bytes, handle, reason),
        }
    }

    /// Gives a packet to a leaf of this router, whose hop limit is decremented already. RFC 9010 s4.1: nothing of RPL goes
    /// there. The source may have given it an option, as it cannot know that its destination is a leaf.
    fn hand_to_leaf(
        &mut self,
        now: Instant,
        routing: &mut dyn Routing,
        (mut bytes, headers): (Vec<u8>, &Headers),
        leaf: Eui64,
        handle: Handle,
    ) {
        if let Err(reason) = uplink::check(&bytes, headers) {
            return self.end(now, routing, &bytes, handle, reason);
        }
        packet::remove_any_rpl_option(&mut bytes);
        self.outbox.push(Output::Send { bytes, next_hop: Some(leaf), handle });
    }

    /// A packet of another node leaves the mesh.
    fn leave_mesh(
        &mut self,
        now: Instant,
        routing: &mut dyn Routing,
        bytes: &[u8],
        handle: Handle,
    ) {
        match uplink::leave(bytes, handle) {
            Ok(output) => self.outbox.push(output),
            Err(reason) => self.end(now, routing, bytes, handle, reason),
        }
    }

    /// Handles a packet that was encapsulated in one to this node.
    fn on_inner(&mut self, now: Instant, routing: &mut dyn Routing, inner: Inner) {
        let Inner { mut packet, handle } = inner;
        let is_root = self.sending(now, routing).1.is_root();
        let arrived = Headers::of_packet(&packet).and_then(|mut headers| {
            if headers.ip.destination.is_multicast() {
                return Err(DropReason::NotForUs);
            }
            uplink::check(&packet, &headers)?;
            Ok((self.arrives(&mut packet, &mut headers)?, headers))
        });
        let leaf = |headers: &Headers| self.forwarder.leaf(&headers.ip.destination);
        let arrived = match arrived {
            Ok((false, headers)) if let Some(leaf) = leaf(&headers) => {
                return self.hand_to_leaf(now, routing, (packet, &headers), leaf, handle);
            }
            arrived => arrived.map(|(is_here, headers)| is_here.then_some(headers)),
        };
        match arrived {
            // A further encapsulated packet is not opened: its encapsulator is not known.
            Ok(Some(headers)) => self.deliver(now, routing, packet, &headers, handle, None),
            Ok(None) if is_root && self.leaves(&packet) => {
                self.outbox.push(Output::Uplink { packet, handle });
            }
            Ok(None) if is_root => self.enclose(now, routing, packet, handle),
            // RFC 6550 s11.2.2.3: a packet that travelled down is not sent up again.
            Ok(None) => self.end(now, routing, &packet, handle, DropReason::NoRoute),
            Err(reason) => self.end(now, routing, &packet, handle, reason),
        }
    }

    /// The next step of a packet; `bytes` may be only its beginning.
    fn route(
        &mut self,
        now: Instant,
        routing: &mut dyn Routing,
        from: Eui64,
        bytes: &mut [u8],
        mut headers: Headers,
    ) -> Result<(Way, Headers), DropReason> {
        if headers.ip.destination.is_routed_group() {
            // A multicast engine takes whole packets only.
            return Ok((Way::Here, headers));
        }
        let hop_limit = headers.ip.hop_limit;
        let route = match self.forwarder.decide(bytes, &mut headers) {
            Decision::Deliver => return Ok((Way::Here, headers)),
            Decision::Forward { next_hop } => Some(next_hop),
            // The routing protocol knows more about routes than the table does.
            Decision::Drop(DropReason::NoRoute) => None,
            Decision::Drop(reason) => return Err(reason),
        };
        let (destination, place) = (headers.ip.destination, headers.rpl_option());
        if let Some(way) = self.way_of_leaf(&*routing, from, &headers) {
            if way == Way::Enclosed {
                bytes[HOP_LIMIT_OFFSET] = hop_limit;
                if hop_limit <= 1 {
                    return Err(DropReason::HopLimit);
                }
            }
            // A packet of a leaf of the root for another network leaves as it is.
            let leaves = way == Way::Enclosed && self.leaves(bytes);
            return if leaves { Err(DropReason::NoRoute) } else { Ok((way, headers)) };
        }
        let to_neighbour = Some(Address::link_local(destination.eui64()));
        let context = ForwardContext {
            from: Some(from),
            destination,
            // The step of a source route made the destination a neighbour: the next hop is its own.
            source_routed: route == to_neighbour && headers.routing().is_some(),
            option: place.clone().and_then(|place| HopByHopOption::parse(&bytes[place]).ok()),
            route,
        };
        // RFC 6550 s11.2: a forwarded packet is checked against the rank of the node that sent it.
        match routing.forward(now, &context) {
            // RFC 6550 s9.7, RFC 6554 s4.1: the root encapsulates a packet that needs a route.
            Verdict::Forward { .. }
                if !context.source_routed && needs_route(routing, &destination) =>
            {
                bytes[HOP_LIMIT_OFFSET] = hop_limit;
                Ok((Way::Enclosed, headers))
            }
            Verdict::Forward { next_hop, option } => {
                if let (Some(place), Some(option)) = (place, option) {
                    renew(&mut bytes[place], option);
                }
                if route.is_none() {
                    // The table named no next hop, so the forwarder took no hop off.
                    uplink::spend_hop(bytes);
                }
                Ok((Way::Via(next_hop), headers))
            }
            Verdict::Drop(reason) => Err(reason),
        }
    }

    /// The way of a packet from or to a leaf, if RPL does not know of it: RFC 9010 s9.2.2, RFC 9008 s7 and s8.
    fn way_of_leaf(&self, routing: &dyn Routing, from: Eui64, headers: &Headers) -> Option<Way> {
        let destination = &headers.ip.destination;
        if let Some(leaf) = self.forwarder.leaf(destination) {
            return Some(Way::Leaf(leaf));
        }
        let is_of_leaf = self.forwarder.is_leaf(from) && headers.rpl_option().is_none();
        (is_of_leaf || routing.router_of(destination).is_some()).then_some(Way::Enclosed)
    }

    /// True when a packet that has no route here leaves the mesh; `bytes` may be its beginning.
    fn leaves(&self, bytes: &[u8]) -> bool {
        let addresses = self.addresses();
        let leads =
            |headers: Headers| self.sender.uplink.leads_to(addresses, &headers.ip.destination);
        Headers::of_beginning(bytes).is_ok_and(leads)
    }

    fn deliver(
        &mut self,
        now: Instant,
        routing: &mut dyn Routing,
        packet: Vec<u8>,
        headers: &Headers,
        handle: Handle,
        from: Option<Eui64>,
    ) {
        let (receiver, mut rest) = self.receiving(now, routing);
        if let Some(inner) = receiver.deliver(&mut rest, packet, headers, handle, from) {
            self.on_inner(now, routing, inner);
        }
    }

    fn end(
        &mut self,
        now: Instant,
        routing: &mut dyn Routing,
        packet: &[u8],
        handle: Handle,
        reason: DropReason,
    ) {
        let (receiver, mut rest) = self.receiving(now, routing);
        receiver.end(&mut rest, packet, handle, (Layer::Ipv6, reason));
    }

    fn send_message(
        &mut self,
        now: Instant,
        routing: &mut dyn Routing,
        destination: Address,
        body: Icmpv6,
    ) {
        let source = self.addresses().source_for(&destination);
        let (sender, mut context) = self.sending(now, routing);
        sender.message(&mut context, &Message { source, destination, body });
    }
}

/// True at the root of a non-storing network for a packet to a node that is no child of the root.
fn needs_route(routing: &dyn Routing, destination: &Address) -> bool {
    routing.source_route(destination).is_some_and(|hops| hops.len() > 1)
}

/// Writes RPL's option in the place of the one that was there, if it has the same length.
fn renew(place: &mut [u8], option: HopByHopOption) {
    let mut renewed = Vec::with_capacity(place.len());
    option.emit(&mut renewed);
    if renewed.len() == place.len() {
        place.copy_from_slice(&renewed);
    }
}

impl Machine for Ipv6 {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input<'_>) -> Result<(), Rejected> {
        let Input { routing, event } = input;
        match event {
            Event::Packet { bytes, from, handle } => {
                self.on_packet(now, routing, bytes, from, handle);
            }
            Event::Beginning { bytes, from, handle } => {
                self.on_beginning(now, routing, bytes, from, handle);
            }
            Event::Uplink { packet, handle } => self.on_uplink(now, routing, packet, handle),
            Event::Delivery { packet, handle } => self.on_delivery(now, routing, packet, handle),
            Event::Route { packet, handle } => self.on_route(now, routing, packet, handle),
            Event::Datagram { source_port, to, payload, class } => {
                let (sender, mut context) = self.sending(now, routing);
                sender.datagram_to(&mut context, source_port, to, payload, class);
            }
            Event::Segment { source, to, segment, class } => {
                let (sender, mut context) = self.sending(now, routing);
                sender.segment(&mut context, (source, to), segment, class);
            }
            Event::Message { to, message } => self.send_message(now, routing, to, message),
            Event::Refuse { address, status } => {
                let (receiver, mut rest) = self.receiving(now, routing);
                receiver.refuse(&mut rest, address, status);
            }
            Event::Deadline => {
                let (receiver, mut rest) = self.receiving(now, routing);
                receiver.on_deadline(&mut rest);
            }
        }
        Ok(())
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.receiver.next_deadline()
    }
}

#[cfg(test)]
mod tests;
