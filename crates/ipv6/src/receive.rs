//! The receiving half: packets to this node become datagrams, ICMPv6 messages and replies; lost packets are reported.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Dropped, Handle, Layer, Outbox, earliest};
use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::{Address, UpperLayer, next_header};
use lowmesh_wire::udp::HEADER_OCTETS as UDP_OCTETS;

use crate::Headers;
use crate::error::Errors;
use crate::event::{Class, Datagram, Output, Packet, Segment};
use crate::forward::Forwarder;
use crate::icmpv6::{Reply, Responder, Standing};
use crate::name::Names;
use crate::packet::Flow;
use crate::params::{ECHO_PORT, EXPERIMENTS};
use crate::reassemble::{Outcome, Reassembly};
use crate::routing::Routing;
use crate::send::{EventContext, Sender};
use crate::tunnel;
use crate::udp::{self, Ports};

/// Where and why a packet ends.
pub(crate) type End = (Layer, DropReason);

/// What receiving takes from the rest of the layer.
pub(crate) struct Rest<'a> {
    pub now: Instant,
    pub forwarder: &'a mut Forwarder,
    pub sender: &'a mut Sender,
    pub routing: &'a mut dyn Routing,
    pub outbox: &'a mut Outbox<Output>,
}

impl Rest<'_> {
    fn sending(&mut self) -> (&mut Sender, EventContext<'_>) {
        let Self { now, forwarder, sender, routing, outbox } = self;
        (sender, EventContext { now: *now, forwarder, routing: *routing, outbox })
    }

    fn refuse(&mut self, handle: Handle, end: End) {
        refuse(self.outbox, handle, end);
    }
    fn note(&mut self, handle: Handle, packet: Packet) {
        note(self.outbox, handle, packet);
    }
}

/// A packet ends here, and nobody hears of it.
pub(crate) fn refuse(outbox: &mut Outbox<Output>, handle: Handle, (layer, reason): End) {
    note(outbox, handle, Packet::Dropped(Dropped { handle, layer, reason }));
}

/// A broadcast has no account that a moment of its life could stand in.
fn note(outbox: &mut Outbox<Output>, handle: Handle, packet: Packet) {
    if handle != Handle::NONE {
        outbox.push(Output::Packet(packet));
    }
}

/// A packet that was encapsulated, with its name.
#[derive(Debug)]
pub(crate) struct Inner {
    pub packet: Vec<u8>,
    pub handle: Handle,
}

/// Takes the packets that are for this node.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub reassembly: Reassembly,
    pub ports: Ports,
    /// Whether TCP segments come out.
    pub takes_segments: bool,
    pub responder: Responder,
    pub errors: Errors,
}

impl Receiver {
    /// Takes a packet that is for this node, or a fragment of one; `from` is the neighbour that sent it, if one did.
    /// Returns the inner packet if this node decapsulates it.
    pub fn deliver(
        &mut self,
        rest: &mut Rest<'_>,
        packet: Vec<u8>,
        headers: &Headers,
        handle: Handle,
        from: Option<Eui64>,
    ) -> Option<Inner> {
        match self.reassembly.accept(rest.now, packet, handle) {
            Outcome::Whole(packet) => {
                return self.open_or_deliver(rest, packet, headers, handle, from);
            }
            Outcome::Begun { displaced } => {
                if let Some(displaced) = displaced {
                    rest.refuse(displaced, (Layer::Ipv6, DropReason::BufferFull));
                }
            }
            Outcome::Merged => rest.note(handle, Packet::PassedOn(handle)),
            Outcome::Complete { packet, kept } => {
                if kept.is_some() {
                    rest.note(handle, Packet::PassedOn(handle));
                }
                let handle = kept.unwrap_or(handle);
                match Headers::of_packet(&packet) {
                    Ok(headers) => {
                        return self.open_or_deliver(rest, packet, &headers, handle, from);
                    }
                    Err(reason) => rest.refuse(handle, (Layer::Ipv6, reason)),
                }
            }
            Outcome::Dropped { reason, kept } => {
                rest.refuse(handle, (Layer::Ipv6, reason));
                if let Some(kept) = kept {
                    rest.refuse(kept, (Layer::Ipv6, reason));
                }
            }
        }
        None
    }

    fn open_or_deliver(
        &mut self,
        rest: &mut Rest<'_>,
        packet: Vec<u8>,
        headers: &Headers,
        handle: Handle,
        from: Option<Eui64>,
    ) -> Option<Inner> {
        let inner = headers.upper_layer().ok();
        let inner = inner.filter(|upper| upper.next_header == next_header::IPV6);
        let Some(inner) = inner.filter(|_| opens(rest, headers, handle, from)) else {
            self.deliver_whole(rest, packet, headers, handle, from);
            return None;
        };
        match tunnel::open(packet, inner.offset) {
            Ok(packet) => Some(Inner { packet, handle }),
            Err(reason) => {
                rest.refuse(handle, (Layer::Ipv6, reason));
                None
            }
        }
    }

    fn deliver_whole(
        &mut self,
        rest: &mut Rest<'_>,
        packet: Vec<u8>,
        headers: &Headers,
        handle: Handle,
        from: Option<Eui64>,
    ) {
        if headers.unknown_option().is_some() {
            return self.end(rest, &packet, handle, (Layer::Ipv6, DropReason::UnknownOption));
        }
        let upper = match headers.upper_layer() {
            Ok(upper) => upper,
            Err(reason) => return rest.refuse(handle, (Layer::Ipv6, reason)),
        };
        let result = match upper.next_header {
            next_header::UDP => match self.accept_datagram(rest, &packet, headers) {
                Ok(Some(flow)) => {
                    let payload = upper.offset + UDP_OCTETS..packet.len();
                    rest.outbox.push(Output::Datagram(Datagram { flow, packet, payload }));
                    return rest.note(handle, Packet::Delivered(handle));
                }
                Ok(None) => Ok(()),
                Err(reason) => Err((Layer::Udp, reason)),
            },
            next_header::ICMPV6 => {
                match self.accept_message(rest, &packet, headers, upper, (from, handle)) {
                    Ok(Accepted::Here) => Ok(()),
                    Ok(Accepted::ByEngine) => return,
                    Err(reason) => Err((Layer::Ipv6, reason)),
                }
            }
            next_header::TCP if self.takes_segments => {
                let (source, destination) = (headers.ip.source, headers.ip.destination);
                // RFC 9293 s3.9.2.3: no segment is for a group or comes from nobody.
                if source.is_unspecified() || destination.is_multicast() {
                    return rest.refuse(handle, (Layer::Ipv6, DropReason::Malformed));
                }
                let octets = upper.offset..packet.len();
                let segment = Segment { source, destination, packet, octets };
                rest.outbox.push(Output::Segment(segment));
                return rest.note(handle, Packet::Delivered(handle));
            }
            // RFC 8200 s4.7: nothing follows, so there is nothing to hear or to tell.
            next_header::NONE => Ok(()),
            _ => Err((Layer::Ipv6, DropReason::NoListener)),
        };
        match result {
            Ok(()) => rest.note(handle, Packet::Delivered(handle)),
            Err(end) => self.end(rest, &packet, handle, end),
        }
    }

    /// Takes a datagram: the flow of one that somebody else listens to, or none if it was for this layer.
    fn accept_datagram(
        &self,
        rest: &mut Rest<'_>,
        packet: &[u8],
        headers: &Headers,
    ) -> Result<Option<Flow>, DropReason> {
        let received = udp::receive(packet, headers)?;
        let flow = received.flow;
        // RFC 4291 s2.5.2: nobody has this address, so there is no way back.
        if flow.source.is_unspecified() {
            return Err(DropReason::Malformed);
        }
        match flow.destination_port {
            // Two echo services would keep each other busy for ever, and a group would answer all at once.
            ECHO_PORT if flow.source_port == ECHO_PORT || flow.destination.is_multicast() => {
                // The port is open, so there is nothing to tell.
                Err(DropReason::NotForUs)
            }
            ECHO_PORT => {
                let (sender, mut context) = rest.sending();
                let to = (flow.source, flow.source_port);
                sender.datagram_to(&mut context, ECHO_PORT, to, received.payload, Class::Response);
                Ok(None)
            }
            port if self.ports.is_open(port) => Ok(Some(flow)),
            _ => Err(DropReason::NoListener),
        }
    }

    fn accept_message(
        &mut self,
        rest: &mut Rest<'_>,
        packet: &[u8],
        headers: &Headers,
        upper: UpperLayer,
        (from, handle): (Option<Eui64>, Handle),
    ) -> Result<Accepted, DropReason> {
        let (source, destination) = (headers.ip.source.0, headers.ip.destination.0);
        let message = Icmpv6::parse(&packet[upper.offset..], &source, &destination)
            .map_err(|_| DropReason::Malformed)?;
        if is_of_engines(&message) {
            // A message that carries a packet to a group has its name, and is not over before the packet is.
            let carries = Names::is_group(handle);
            let handle = if carries { handle } else { Handle::NONE };
            rest.outbox.push(Output::GroupControl { header: headers.ip, message, handle });
            return Ok(if carries { Accepted::ByEngine } else { Accepted::Here });
        }
        let node = (&mut *rest.forwarder, Standing::of(rest.routing));
        let reply = self.responder.take(rest.now, node, &headers.ip, message, from);
        rest.outbox.extend(self.responder.news.drain(..));
        match reply? {
            Reply::None => {}
            Reply::Tell(output) => {
                if let Output::Trouble { problem, .. } = &output {
                    self.errors.counters.received.note(*problem);
                }
                rest.outbox.push(output);
            }
            Reply::Relayed(problem, inner) => {
                // Only a node of the mesh knows what became of a packet of the root.
                let knows = rest.forwarder.addresses.has_prefix_of(&headers.ip.source);
                let is_from_mesh = from.is_some() && knows;
                let addresses = &rest.forwarder.addresses;
                self.errors.counters.received.note(problem);
                let told = tunnel::relayed(problem).filter(|_| is_from_mesh);
                let error =
                    told.and_then(|told| self.errors.tell(rest.now, addresses, &inner, told));
                if let Some(error) = error {
                    let (sender, mut context) = rest.sending();
                    sender.message(&mut context, &error);
                }
            }
            Reply::Routed(message) => {
                let (sender, mut context) = rest.sending();
                sender.message(&mut context, &message);
            }
            Reply::OnLink(message, node) => {
                let (sender, mut context) = rest.sending();
                sender.message_on_link(&mut context, &message, node);
            }
        }
        Ok(Accepted::Here)
    }

    /// A packet ends here, and its source may hear of it.
    pub fn end(&mut self, rest: &mut Rest<'_>, packet: &[u8], handle: Handle, end: End) {
        let addresses = &rest.forwarder.addresses;
        if let Some(error) = self.errors.about(rest.now, addresses, packet, handle, end) {
            let (sender, mut context) = rest.sending();
            sender.message(&mut context, &error);
        }
        rest.refuse(handle, end);
    }

    /// Ends the packets whose fragments did not all come, and sends the advertisements that waited.
    pub fn on_deadline(&mut self, rest: &mut Rest<'_>) {
        while let Some((message, node)) = self.responder.waiting.take(rest.now) {
            let (sender, mut context) = rest.sending();
            sender.message_on_link(&mut context, &message, node);
        }
        if self.responder.next_expiry().is_some_and(|due| due <= rest.now) {
            self.responder.expire(rest.now, rest.forwarder);
            rest.outbox.extend(self.responder.news.drain(..));
        }
        while let Some((handle, first)) = self.reassembly.expire(rest.now) {
            let end = (Layer::Ipv6, DropReason::ReassemblyTimeout);
            match first {
                // RFC 8200 s4.5: the source gets Time Exceeded if the first fragment came.
                Some(first) => self.end(rest, &first, handle, end),
                None => rest.refuse(handle, end),
            }
        }
    }

    /// The routing protocol gives up a leaf of this router.
    pub fn refuse(&mut self, rest: &mut Rest<'_>, address: Address, status: u8) {
        if let Some((message, node)) = self.responder.refuse(rest.forwarder, address, status) {
            let (sender, mut context) = rest.sending();
            sender.message_on_link(&mut context, &message, Some(node));
        }
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        let own = earliest(self.reassembly.next_deadline(), self.responder.waiting.next_deadline());
        earliest(own, self.responder.next_expiry())
    }
}

/// Whether this node decapsulates a packet to it; otherwise IPv6 is no next header that it knows.
///
/// A router decapsulates only packets of the root, and the root only those of nodes of its mesh. RFC 2473 s9: any other
/// encapsulator could make a router forward what its neighbours filter, or choose the source address. A packet over the
/// uplink, or one that was encapsulated itself, has no neighbour that sent it.
fn opens(rest: &Rest<'_>, headers: &Headers, handle: Handle, from: Option<Eui64>) -> bool {
    let Some(root) = rest.routing.root() else { return false };
    let (source, addresses) = (headers.ip.source, &rest.forwarder.addresses);
    let is_known =
        if addresses.contains(&root) { addresses.has_prefix_of(&source) } else { source == root };
    is_known
        && from.is_some()
        && handle != Handle::NONE
        && !headers.ip.destination.is_multicast()
        && headers.unknown_option().is_none()
}

/// Who has taken an ICMPv6 message.
enum Accepted {
    /// This layer.
    Here,
    /// A multicast engine, which has the copy of a packet now.
    ByEngine,
}

/// True for the messages of multicast engines: RFC 7731 s6.2, and those of Contiki.
fn is_of_engines(message: &Icmpv6) -> bool {
    match message {
        Icmpv6::Mpl(_) => true,
        Icmpv6::Other { kind, .. } => EXPERIMENTS.contains(kind),
        _ => false,
    }
}
