//! Upwards: frames become packets, packets are delivered or turn round and go on.

use alloc::vec::Vec;

use lowmesh_ipv6::cache::Status;
use lowmesh_ipv6::reassemble::Outcome;
use lowmesh_ipv6::{Decision, NeighbourCache, RouteTable, neighbour, packet, udp};
use lowmesh_lowpan::Route;
use lowmesh_machine::{DropReason, Dropped, Handle, Layer, Machine as _, expect_accepted};
use lowmesh_rpl::{Passage, Verdict};
use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::icmpv6::{self, Icmpv6};
use lowmesh_wire::ipv6::{self, Address, Header};
use lowmesh_wire::neighbour::Registration;
use lowmesh_wire::router::RouterSolicitation;
use lowmesh_wire::rpl::HopByHopOption;

use crate::errors::{ERRORS_END, UNUSED};
use crate::event::{Class, Output, Packet, Peer, Problem};
use crate::node::{Node, Routing};
use crate::params::{COAP_PORT, DATAGRAM_PORT, ECHO_PORT};

impl Node {
    pub(crate) fn on_frame(
        &mut self,
        now: Instant,
        source: Eui64,
        broadcast: bool,
        payload: &[u8],
        handle: Handle,
    ) {
        // A broadcast has one copy, the sender's; here it is heard, not taken over.
        let handle = match handle {
            _ if broadcast => Handle::NONE,
            // A driver that traces nothing knows no names, but what goes on from here needs one.
            Handle::NONE => self.next_handle(Class::Request),
            known => known,
        };
        self.note_rssi(now, source);
        let destination = (!broadcast).then(|| self.ipv6.addresses.node());
        let input = lowmesh_lowpan::Input::Frame { payload, source, destination, handle };
        expect_accepted(self.lowpan.handle(now, input));
    }

    /// RPL wants an estimate of a link before the first frame goes over it.
    fn note_rssi(&mut self, now: Instant, source: Eui64) {
        if let Some(link) = self.link.links().get(source)
            && link.samples == 0
        {
            let neighbour = Address::link_local(source).0;
            let etx = lowmesh_rpl::Etx(link.etx);
            self.tell_rpl(now, lowmesh_rpl::Input::LinkEtx { neighbour, etx, fresh: false });
        }
    }

    /// A frame of this node is over; `dropped` tells why it did not arrive.
    pub(crate) fn on_frame_done(&mut self, now: Instant, handle: Handle, dropped: Option<Dropped>) {
        if self.link.take_done(now, handle, dropped.is_none()) {
            return;
        }
        if let Some(dropped) = dropped {
            self.failure = Some(dropped);
        }
        let delivered = dropped.is_none();
        let input = lowmesh_lowpan::Input::FrameDone { handle, delivered };
        expect_accepted(self.lowpan.handle(now, input));
    }

    /// What 6LoWPAN has to say.
    pub(crate) fn on_lowpan(&mut self, now: Instant, output: lowmesh_lowpan::Output) {
        match output {
            lowmesh_lowpan::Output::Frame { payload, destination, handle, .. } => {
                self.send_frame(now, &payload, destination, handle);
            }
            lowmesh_lowpan::Output::Accepted { handle } => {
                if handle != Handle::NONE {
                    self.note_packet(Packet::Accepted(handle));
                }
            }
            lowmesh_lowpan::Output::Packet { bytes, source, handle, .. } => {
                self.on_packet(now, source, bytes, handle);
            }
            lowmesh_lowpan::Output::RouteRequest { beginning, source, handle } => {
                self.on_route_request(now, source, beginning, handle);
            }
            lowmesh_lowpan::Output::PacketDone { handle: Handle::NONE, .. } => {}
            lowmesh_lowpan::Output::PacketDone { handle, delivered: true } => {
                self.note_packet(Packet::PassedOn(handle));
            }
            lowmesh_lowpan::Output::PacketDone { handle, delivered: false } => {
                // The MAC said why in the same breath.
                let cause = self.failure.take().filter(|dropped| dropped.handle == handle);
                let reason = cause.map_or(DropReason::NoAck, |dropped| dropped.reason);
                self.dropped(handle, Layer::Mac, reason);
            }
            lowmesh_lowpan::Output::Step(step) => self.outbox.push(Output::Fragments(step)),
            lowmesh_lowpan::Output::Dropped(dropped) => {
                if dropped.handle != Handle::NONE {
                    self.note_packet(Packet::Dropped(dropped));
                }
            }
        }
    }

    fn on_packet(&mut self, now: Instant, from: Eui64, mut bytes: Vec<u8>, handle: Handle) {
        let decision = self.ipv6.input(&mut bytes);
        match self.route(now, from, decision, &mut bytes) {
            Ok(None) => self.deliver(now, bytes, handle),
            Ok(Some(next_hop)) => self.send_packet(now, bytes, Some(next_hop), handle),
            Err(DropReason::NoRoute) if handle != Handle::NONE && self.leaves(&bytes) => {
                self.send_beyond(bytes, handle);
            }
            Err(reason) => {
                self.tell_source(now, &bytes, handle, (Layer::Ipv6, reason));
                self.refuse(handle, Layer::Ipv6, reason);
            }
        }
    }

    /// RFC 8930: the first fragment tells where its packet goes.
    fn on_route_request(
        &mut self,
        now: Instant,
        from: Eui64,
        mut beginning: Vec<u8>,
        handle: Handle,
    ) {
        let decision = self.ipv6.input_beginning(&mut beginning);
        let route = match self.route(now, from, decision, &mut beginning) {
            Ok(None) => Route::Here,
            Ok(Some(next_hop)) => Route::Via(next_hop),
            // It is put together here, and leaves as a whole.
            Err(DropReason::NoRoute) if self.leaves(&beginning) => Route::Here,
            Err(reason) => {
                self.tell_source(now, &beginning, handle, (Layer::Ipv6, reason));
                self.refuse(handle, Layer::Ipv6, reason);
                Route::None
            }
        };
        let input = lowmesh_lowpan::Input::RouteReply { beginning, route };
        expect_accepted(self.lowpan.handle(now, input));
    }

    /// The neighbour that a packet goes to, or none if it is for this node; `bytes` may be its beginning.
    fn route(
        &mut self,
        now: Instant,
        from: Eui64,
        decision: Decision,
        bytes: &mut [u8],
    ) -> Result<Option<Eui64>, DropReason> {
        let by_rpl = matches!(self.routing, Routing::Rpl(_));
        match decision {
            Decision::Deliver => Ok(None),
            Decision::Forward { next_hop } if by_rpl => {
                self.forward(now, from, next_hop, bytes).map(Some)
            }
            Decision::Forward { next_hop } => Ok(Some(next_hop.eui64())),
            // The RPL layer below knows more about routes than the table does.
            Decision::Drop(DropReason::NoRoute) if by_rpl => {
                self.forward(now, from, Address::UNSPECIFIED, bytes).map(Some)
            }
            Decision::Drop(reason) => Err(reason),
        }
    }

    /// RFC 6550 s11.2: a forwarded packet is checked against the rank of the node that sent it.
    fn forward(
        &mut self,
        now: Instant,
        from: Eui64,
        next_hop: Address,
        bytes: &mut [u8],
    ) -> Result<Eui64, DropReason> {
        let header = Header::parse(bytes).map_err(|_| DropReason::Malformed)?;
        let place = packet::find_rpl_option(bytes);
        let option = place.clone().and_then(|place| HopByHopOption::parse(&bytes[place]).ok());
        let passage = Passage {
            from: Some(Address::link_local(from).0),
            target: header.destination.0,
            // The step of a source route made the destination a neighbour: the next hop is its own.
            source_routed: next_hop == Address::link_local(header.destination.eui64())
                && lowmesh_ipv6::source_route::is_present(bytes),
            option,
        };
        let Routing::Rpl(rpl) = &mut self.routing else { return Err(DropReason::NoRoute) };
        let (next, option) = match rpl.check_forward(now, &passage) {
            Verdict::Forward { next, option } => (next.address, option),
            Verdict::ForwardingError { to, option } => (to, option),
            Verdict::Drop(reason) => return Err(reason),
        };
        if let Some(place) = place {
            let mut renewed = Vec::with_capacity(place.len());
            option.emit(&mut renewed);
            if renewed.len() == place.len() {
                bytes[place].copy_from_slice(&renewed);
            }
        }
        Ok(Address(next).eui64())
    }

    /// Takes a packet that is for this node, or a fragment of one.
    pub(crate) fn deliver(&mut self, now: Instant, packet: Vec<u8>, handle: Handle) {
        match self.end_to_end.reassembly.accept(now, packet, handle) {
            Outcome::Whole(packet) => self.deliver_whole(now, &packet, handle),
            Outcome::Begun { displaced } => {
                if let Some(displaced) = displaced {
                    self.refuse(displaced, Layer::Ipv6, DropReason::BufferFull);
                }
            }
            Outcome::Merged => self.merged(handle),
            Outcome::Complete { packet, kept } => {
                if kept.is_some() {
                    self.merged(handle);
                }
                self.deliver_whole(now, &packet, kept.unwrap_or(handle));
            }
            Outcome::Dropped { reason, kept } => {
                self.refuse(handle, Layer::Ipv6, reason);
                if let Some(kept) = kept {
                    self.refuse(kept, Layer::Ipv6, reason);
                }
            }
        }
    }

    /// The copy of a fragment is part of another one now.
    fn merged(&mut self, handle: Handle) {
        if handle != Handle::NONE {
            self.note_packet(Packet::PassedOn(handle));
        }
    }

    /// Ends the packets whose fragments did not all come.
    pub(crate) fn expire_reassembly(&mut self, now: Instant) {
        while let Some(handle) = self.end_to_end.reassembly.expire(now) {
            self.refuse(handle, Layer::Ipv6, DropReason::ReassemblyTimeout);
        }
    }

    fn deliver_whole(&mut self, now: Instant, bytes: &[u8], handle: Handle) {
        let Ok(upper) = ipv6::upper_layer(bytes) else {
            return self.refuse(handle, Layer::Ipv6, DropReason::Malformed);
        };
        let result = match upper.next_header {
            ipv6::next_header::UDP => self.deliver_udp(now, bytes),
            ipv6::next_header::ICMPV6 => self.deliver_icmpv6(now, bytes, upper.offset),
            _ => Err((Layer::Ipv6, DropReason::NoListener)),
        };
        match result {
            Ok(()) if handle == Handle::NONE => {}
            Ok(()) => self.note_packet(Packet::Delivered(handle)),
            Err((layer, reason)) => {
                self.tell_source(now, bytes, handle, (layer, reason));
                self.refuse(handle, layer, reason);
            }
        }
    }

    fn deliver_udp(&mut self, now: Instant, bytes: &[u8]) -> Result<(), (Layer, DropReason)> {
        let received = udp::demultiplex(bytes).map_err(|reason| (Layer::Udp, reason))?;
        let from: Peer = (received.flow.source, received.flow.source_port);
        let (bytes, to_group) = (received.payload, received.flow.destination.is_multicast());
        match received.flow.destination_port {
            COAP_PORT => {
                let input = if to_group {
                    lowmesh_coap::Input::GroupDatagram { from, bytes }
                } else {
                    lowmesh_coap::Input::Datagram { from, bytes }
                };
                expect_accepted(self.coap.handle(now, input));
            }
            // Two echo services would keep each other busy for ever, and a group would answer all at once.
            ECHO_PORT if from.1 != ECHO_PORT && !to_group => {
                self.send_datagram(now, ECHO_PORT, from, bytes, Class::Response);
            }
            // The port is open, so there is nothing to tell.
            ECHO_PORT => return Err((Layer::Udp, DropReason::NotForUs)),
            port if self.applications.on_datagram(port, from, bytes) => {}
            DATAGRAM_PORT => self.outbox.push(Output::Datagram { from, payload: bytes.to_vec() }),
            _ => return Err((Layer::Udp, DropReason::NoListener)),
        }
        Ok(())
    }

    fn deliver_icmpv6(
        &mut self,
        now: Instant,
        bytes: &[u8],
        offset: usize,
    ) -> Result<(), (Layer, DropReason)> {
        const MALFORMED: (Layer, DropReason) = (Layer::Ipv6, DropReason::Malformed);
        let header = Header::parse(bytes).map_err(|_| MALFORMED)?;
        let (source, destination) = (header.source.0, header.destination.0);
        match Icmpv6::parse(&bytes[offset..], &source, &destination).map_err(|_| MALFORMED)? {
            Icmpv6::Rpl(message) => {
                let multicast = header.destination.is_multicast();
                let input =
                    lowmesh_rpl::Input::Message { from: source, multicast, message: &message };
                self.tell_rpl(now, input);
                Ok(())
            }
            Icmpv6::EchoRequest(echo) => {
                // RFC 4443 s4.2: what was asked at one address is answered from it.
                let here = if header.destination.is_multicast() {
                    self.ipv6.addresses.source_for(&header.source)
                } else {
                    header.destination
                };
                let mut reply = Vec::with_capacity(echo.data.len() + icmpv6::HEADER_LENGTH);
                Icmpv6::EchoReply(echo).emit(&here.0, &source, &mut reply);
                self.send_control(now, here, header.source, &reply);
                Ok(())
            }
            Icmpv6::NeighbourSolicitation(message) => {
                let (cache, routes) = (&mut self.neighbours, &mut self.ipv6.routes);
                let link = message.source_node;
                let register = |subject, asked: &Registration| {
                    let registrant = (header.source, link.unwrap_or(asked.node));
                    register(now, cache, routes, subject, asked, registrant)
                };
                let answer = neighbour::answer(&self.ipv6.addresses, &header, &message, register)
                    .map_err(|reason| (Layer::Ipv6, reason))?;
                self.send_answer(now, answer, link.filter(|_| answer.destination == header.source));
                Ok(())
            }
            Icmpv6::RouterSolicitation(message) => {
                self.advertise(now, &header, &message).map_err(|reason| (Layer::Ipv6, reason))
            }
            Icmpv6::EchoReply(echo) => {
                self.outbox.push(Output::Pong { from: header.source, echo });
                Ok(())
            }
            error => {
                if let Some((problem, invoking)) = problem_of(error) {
                    self.on_error(now, header.source, problem, &invoking);
                }
                Ok(())
            }
        }
    }

    /// Answers a host that asks for routers.
    fn advertise(
        &mut self,
        now: Instant,
        header: &Header,
        message: &RouterSolicitation,
    ) -> Result<(), DropReason> {
        let addresses = &self.ipv6.addresses;
        let (to, said) = neighbour::advertise(addresses, &self.contexts, header, message)?;
        // RFC 4861 s6.2.6: what goes to all of them goes once in three seconds at most.
        if to.is_multicast() && !self.advertisements.take(now) {
            return Ok(());
        }
        let here = addresses.link_local();
        let mut payload = Vec::new();
        Icmpv6::RouterAdvertisement(said).emit(&here.0, &to.0, &mut payload);
        self.send_on_link(now, (here, to), &payload, message.source_node);
        Ok(())
    }

    /// A packet that came ends here; a broadcast has no book to be written in.
    fn refuse(&mut self, handle: Handle, layer: Layer, reason: DropReason) {
        if handle != Handle::NONE {
            self.dropped(handle, layer, reason);
        }
    }
}

/// Takes a registration into the cache, and a route to a global address with it. The registrant is the source of the
/// solicitation and where its frames go.
fn register(
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

/// What an ICMPv6 error says, with the start of the packet that it is about; `None` for any other message.
fn problem_of(message: Icmpv6) -> Option<(Problem, Vec<u8>)> {
    Some(match message {
        Icmpv6::DestinationUnreachable { reason, invoking } => {
            (Problem::Unreachable(reason), invoking)
        }
        Icmpv6::TimeExceeded { code: 0, invoking } => (Problem::HopLimit, invoking),
        Icmpv6::TimeExceeded { invoking, .. } => (Problem::Reassembly, invoking),
        Icmpv6::PacketTooBig { invoking, .. } => (Problem::TooBig, invoking),
        Icmpv6::ParameterProblem { code, pointer, invoking } => {
            (Problem::Parameter { code, pointer }, invoking)
        }
        // RFC 4443 s2.4 (a): an error of unknown type is passed on; (b): any other message is not.
        Icmpv6::Other { kind, code, body } if kind < ERRORS_END => {
            (Problem::Unknown { kind, code }, body.get(UNUSED..).unwrap_or(&[]).to_vec())
        }
        _ => return None,
    })
}
