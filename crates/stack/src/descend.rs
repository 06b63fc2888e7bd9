//! Downwards: datagrams and RPL messages become IPv6 packets, packets become frames.

use alloc::vec::Vec;

use lowmesh_ipv6::fragment::fragments;
use lowmesh_ipv6::neighbour::Answer;
use lowmesh_ipv6::packet::{self, Flow};
use lowmesh_ipv6::params::HOP_LIMIT_ON_LINK;
use lowmesh_ipv6::source_route;
use lowmesh_mac::queue::Priority;
use lowmesh_machine::{DropReason, Dropped, Handle, Layer, Machine as _};
use lowmesh_rpl::{Destination, Passage, Verdict};
use lowmesh_units::{Eui64, Instant};
use lowmesh_wire::icmpv6::{self, Icmpv6};
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::rpl::HopByHopOption;

use crate::event::{Class, Output, Packet, Peer};
use crate::node::{Node, Routing};

impl Node {
    /// What RPL has to say.
    pub(crate) fn on_rpl(&mut self, now: Instant, output: lowmesh_rpl::Output) {
        match output {
            lowmesh_rpl::Output::Send { to, message } => {
                let destination = match to {
                    Destination::AllRplNodes => Address::ALL_RPL_NODES,
                    Destination::Unicast(address) => Address(address),
                };
                let source = self.ipv6.addresses.source_for(&destination);
                let mut payload = Vec::with_capacity(80);
                Icmpv6::Rpl(message).emit(&source.0, &destination.0, &mut payload);
                self.send_control(now, source, destination, &payload);
            }
            other => self.tell_routes(now, &other),
        }
    }

    pub(crate) fn send_datagram(
        &mut self,
        now: Instant,
        source_port: u16,
        to: Peer,
        bytes: &[u8],
        class: Class,
    ) {
        let handle = self.born(class);
        let (destination, destination_port) = to;
        let source = self.ipv6.addresses.source_for(&destination);
        let flow = Flow { source, destination, source_port, destination_port };
        match self.way_to(now, destination) {
            Ok((next_hop, option)) => {
                let hop_limit = self.hop_limit;
                let mut packet = packet::udp(&flow, hop_limit, bytes, |out| emit(option, out));
                if self.add_source_route(&mut packet, destination) {
                    self.send_own(now, packet, Some(next_hop), handle);
                } else {
                    self.dropped(handle, Layer::Ipv6, DropReason::NoRoute);
                }
            }
            Err(DropReason::NoRoute) if self.is_beyond(&destination) => {
                let packet = packet::udp(&flow, self.hop_limit, bytes, |_| ());
                self.outbox.push(Output::Uplink { packet, handle });
            }
            Err(reason) => self.dropped(handle, Layer::Ipv6, reason),
        }
    }

    pub(crate) fn send_control(
        &mut self,
        now: Instant,
        source: Address,
        destination: Address,
        payload: &[u8],
    ) {
        let handle = self.born(Class::Control);
        let on_link = destination.is_multicast() || destination.is_link_local();
        let way = if on_link {
            let neighbour = (!destination.is_multicast()).then(|| destination.eui64());
            Ok((neighbour, None))
        } else {
            self.way_to(now, destination).map(|(next_hop, option)| (Some(next_hop), option))
        };
        match way {
            Ok((next_hop, option)) => {
                let hop_limit = if on_link { HOP_LIMIT_ON_LINK } else { self.hop_limit };
                let mut packet = packet::plain(
                    source,
                    destination,
                    icmpv6::NEXT_HEADER,
                    hop_limit,
                    payload,
                    |out| emit(option, out),
                );
                if on_link || self.add_source_route(&mut packet, destination) {
                    self.send_own(now, packet, next_hop, handle);
                } else {
                    self.dropped(handle, Layer::Ipv6, DropReason::NoRoute);
                }
            }
            Err(DropReason::NoRoute) if self.is_beyond(&destination) => {
                let (upper, limit) = (icmpv6::NEXT_HEADER, self.hop_limit);
                let packet = packet::plain(source, destination, upper, limit, payload, |_| ());
                self.outbox.push(Output::Uplink { packet, handle });
            }
            Err(reason) => self.dropped(handle, Layer::Ipv6, reason),
        }
    }

    /// Answers a neighbour: `node` is the one that asked, if it is known.
    pub(crate) fn send_answer(&mut self, now: Instant, answer: Answer, node: Option<Eui64>) {
        let Answer { source, destination, message } = answer;
        let mut payload = Vec::new();
        Icmpv6::NeighbourAdvertisement(message).emit(&source.0, &destination.0, &mut payload);
        self.send_on_link(now, (source, destination), &payload, node);
    }

    /// Sends an ICMPv6 message that no router forwards: whatever its destination is, `node` is where it goes.
    pub(crate) fn send_on_link(
        &mut self,
        now: Instant,
        (source, destination): (Address, Address),
        payload: &[u8],
        node: Option<Eui64>,
    ) {
        let handle = self.born(Class::Control);
        let (next_header, limit) = (icmpv6::NEXT_HEADER, HOP_LIMIT_ON_LINK);
        let packet = packet::plain(source, destination, next_header, limit, payload, |_| ());
        let neighbour = node.unwrap_or_else(|| destination.eui64());
        let next_hop = (!destination.is_multicast()).then_some(neighbour);
        self.send_packet(now, packet, next_hop, handle);
    }

    /// The neighbour towards `destination`, and the RPL option that packets from here carry.
    pub(crate) fn way_to(
        &mut self,
        now: Instant,
        destination: Address,
    ) -> Result<(Eui64, Option<HopByHopOption>), DropReason> {
        if destination.is_link_local() {
            return Ok((destination.eui64(), None));
        }
        let Routing::Rpl(rpl) = &mut self.routing else {
            let next_hop = self.ipv6.routes.lookup(&destination).ok_or(DropReason::NoRoute)?;
            return Ok((next_hop.eui64(), None));
        };
        let passage =
            Passage { from: None, target: destination.0, source_routed: false, option: None };
        match rpl.check_forward(now, &passage) {
            Verdict::Forward { next, option } => Ok((Address(next.address).eui64(), Some(option))),
            Verdict::ForwardingError { .. } => Err(DropReason::NoRoute),
            Verdict::Drop(reason) => Err(reason),
        }
    }

    /// At the root of a non-storing DODAG packets carry their way (RFC 6554). False when there is none.
    pub(crate) fn add_source_route(&self, packet: &mut Vec<u8>, destination: Address) -> bool {
        let Routing::Rpl(rpl) = &self.routing else { return true };
        let Some(hops) = rpl.source_route(&destination.0) else { return true };
        // The last hop is the destination itself, which needs no header when it is the first as well.
        let hops: Vec<Address> = hops.into_iter().map(Address).collect();
        match hops.split_last() {
            Some((_, [])) | None => true,
            Some((_, before)) => source_route::insert(packet, before),
        }
    }

    /// Sends a packet that was made here, in way E2E cut to what fits into a frame.
    pub(crate) fn send_own(
        &mut self,
        now: Instant,
        packet: Vec<u8>,
        destination: Option<Eui64>,
        handle: Handle,
    ) {
        let Some((octets_max, identification)) = self.end_to_end.cut(&packet) else {
            return self.send_packet(now, packet, destination, handle);
        };
        match fragments(&packet, octets_max, identification) {
            Ok(fragments) => {
                for (index, fragment) in fragments.enumerate() {
                    if index > 0 {
                        self.note_packet(Packet::Accepted(handle));
                    }
                    self.send_packet(now, fragment, destination, handle);
                }
            }
            Err(reason) => self.dropped(handle, Layer::Ipv6, reason),
        }
    }

    /// Gives a packet to 6LoWPAN, for one neighbour or for all.
    pub(crate) fn send_packet(
        &mut self,
        now: Instant,
        bytes: Vec<u8>,
        destination: Option<Eui64>,
        handle: Handle,
    ) {
        let input = lowmesh_lowpan::Input::Packet { bytes, destination, handle };
        if self.lowpan.handle(now, input).is_err() {
            self.dropped(handle, Layer::Lowpan, DropReason::Malformed);
        }
    }

    /// Gives a frame to the MAC.
    pub(crate) fn send_frame(
        &mut self,
        now: Instant,
        payload: &[u8],
        destination: Option<Eui64>,
        handle: Handle,
    ) {
        let priority = if self.is_own_control(handle) { Priority::Control } else { Priority::Data };
        self.link.send(now, payload, destination, priority, handle);
    }

    pub(crate) fn born(&mut self, class: Class) -> Handle {
        let handle = self.next_handle(class);
        self.note_packet(Packet::Born(handle, class));
        handle
    }

    pub(crate) fn dropped(&mut self, handle: Handle, layer: Layer, reason: DropReason) {
        self.note_packet(Packet::Dropped(Dropped { handle, layer, reason }));
    }
}

pub(crate) fn emit(option: Option<HopByHopOption>, out: &mut Vec<u8>) {
    if let Some(option) = option {
        option.emit(out);
    }
}
