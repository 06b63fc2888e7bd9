//! The boundary of the network layer: what IPv6, and routing, TCP and CoAP above it, have to say.

use alloc::vec::Vec;

use lowmesh_ipv6 as ipv6;
use lowmesh_machine::{Handle, Machine as _, debug_assert_accepted};
use lowmesh_multicast as multicast;
use lowmesh_sixtop::Event;
use lowmesh_units::{Duration, Eui64, Instant};
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::rpl::Message;

use crate::coap_host::Order;
use crate::event::{Class, Network, Output, Packet, Problem};
use crate::multicast::Act;
use crate::node::Node;
use crate::params::COAP_PORT;
use crate::streams::{StreamCounters, Streams};
use crate::{hosting, lowpan, routing, streams};

impl Node {
    /// Tells IPv6 of an event, and does what it wants at once: its outputs stand in the order of its acts.
    pub(crate) fn tell_ipv6(&mut self, now: Instant, event: ipv6::Event<'_>) {
        self.input_ipv6(now, event);
        self.settle_network(now);
    }
    fn input_ipv6(&mut self, now: Instant, event: ipv6::Event<'_>) {
        let routing = &mut self.routing;
        debug_assert_accepted(self.ipv6.handle(now, ipv6::Input { routing, event }));
    }

    /// Does what IPv6 and the multicast engine want, which hand packets to each other.
    fn settle_network(&mut self, now: Instant) {
        loop {
            if let Some(output) = self.ipv6.poll_output() {
                self.on_ipv6(now, output);
            } else if let Some(act) = self.multicast.poll() {
                self.on_multicast(now, act);
            } else {
                break;
            }
        }
    }

    /// Handles an output of IPv6.
    fn on_ipv6(&mut self, now: Instant, output: ipv6::Output) {
        match output {
            ipv6::Output::Send { bytes, next_hop, handle } => {
                self.send_packet(now, bytes, next_hop, handle);
            }
            ipv6::Output::Route { beginning, route } => {
                lowpan::reply_route(&mut self.lowpan, now, beginning, route);
            }
            ipv6::Output::Group { packet, from, handle } => {
                // A driver that traces nothing knows no names, but what goes on from here needs one.
                let handle = match handle {
                    Handle::NONE => self.ipv6.next_handle(Class::Group),
                    known => known,
                };
                let packet = &packet[..];
                self.group_event(
                    now,
                    match from {
                        Some(from) => multicast::Event::Received { packet, from, handle },
                        None => multicast::Event::Originate { packet, handle },
                    },
                );
            }
            ipv6::Output::GroupControl { header, message, handle } => {
                let (header, message) = (&header, &message);
                self.group_event(now, multicast::Event::Control { header, message, handle });
            }
            ipv6::Output::Uplink { packet, handle } => {
                self.outbox.push(Output::Uplink { packet, handle });
            }
            ipv6::Output::Datagram(datagram) => {
                let unclaimed = self.hosting.on_datagram(now, &datagram);
                self.outbox.extend(unclaimed);
            }
            ipv6::Output::Segment(segment) => {
                if let Some(streams) = &mut self.streams {
                    streams.on_segment(now, &segment);
                    self.settle_streams(now);
                }
            }
            ipv6::Output::Rpl { from, multicast, message } => {
                self.routing.on_message(now, from, multicast, &message);
            }
            ipv6::Output::LeafFound { address, node, number, lifetime_minutes } => {
                let lifetime = Duration::from_secs(60 * u64::from(lifetime_minutes));
                self.routing.on_leaf(now, address, number, lifetime);
                self.tell_of_leaf(now, Event::ChildAdded(node));
            }
            ipv6::Output::LeafLost { address, node } => {
                self.routing.on_leaf_lost(now, address);
                self.on_leaf_gone(now, node);
            }
            ipv6::Output::Discovery { from, message } => {
                let link = self.link.links().get(from);
                let link = link.map_or((u16::MAX, f64::MIN), |link| (link.etx, link.rssi.0));
                self.routing.on_discovery(now, from, link, &message);
            }
            ipv6::Output::Pong { from, echo } => {
                self.outbox.push(Output::Pong { from, echo });
            }
            ipv6::Output::Trouble { from, to, problem, ports } => {
                self.outbox.push(Output::Trouble { from, to, problem });
                if let (Problem::Unreachable(_), Some((COAP_PORT, port))) = (problem, ports) {
                    self.hosting.on_unreachable(now, (to, port));
                }
            }
            ipv6::Output::Packet(packet) => self.outbox.push(Output::Packet(packet)),
        }
    }

    /// Tells the multicast engine that its time has come, and does what it wants at once.
    pub(crate) fn on_multicast_deadline(&mut self, now: Instant) {
        self.group_event(now, multicast::Event::Deadline);
        self.settle_network(now);
    }

    /// Does what the multicast engine wants.
    fn on_multicast(&mut self, now: Instant, act: Act) {
        let event = match act {
            Act::Note(packet) => return self.outbox.push(Output::Packet(packet)),
            Act::Send { packet, to, handle } => return self.send_on_link(now, packet, to, handle),
            Act::Route { packet, handle } => ipv6::Event::Route { packet, handle },
            Act::Deliver { packet, handle } => ipv6::Event::Delivery { packet, handle },
        };
        self.input_ipv6(now, event);
    }

    /// Sends a packet of the multicast engine to one neighbour or to all.
    fn send_on_link(&mut self, now: Instant, packet: Vec<u8>, to: Option<Eui64>, handle: Handle) {
        let handle = match handle {
            Handle::NONE => {
                let handle = self.ipv6.next_handle(Class::Control);
                self.outbox.push(Output::Packet(Packet::Born(handle, Class::Control)));
                handle
            }
            known => known,
        };
        self.send_packet(now, packet, to, handle);
    }

    /// Gives a packet to 6LoWPAN, for one neighbour or for all.
    fn send_packet(&mut self, now: Instant, bytes: Vec<u8>, to: Option<Eui64>, handle: Handle) {
        lowpan::follow(&mut self.lowpan, now, self.routing.network());
        let refused = lowpan::send(&mut self.lowpan, now, bytes, to, handle);
        self.outbox.extend(refused.map(Output::Packet));
    }

    /// Handles an output of routing.
    pub(crate) fn on_routing(&mut self, now: Instant, output: routing::Output) {
        match output {
            routing::Output::Parent { old, new, is_root } => {
                self.on_parent(now, old, new, is_root);
            }
            routing::Output::Beacons(metric) => self.link.set_beacons(now, metric),
            routing::Output::BadLinksReset => self.link.reset_bad_links(),
            routing::Output::Scheduling(event) => self.link.tell_sixtop(now, event),
            routing::Output::RouteAdded { target, via } => {
                // A full table sends the packet up instead of down: RPL's bound is the same.
                let _full = self.ipv6.routes_mut().insert(target, via);
            }
            routing::Output::RouteRemoved { target } => {
                self.ipv6.routes_mut().remove(&target);
            }
            routing::Output::Discover { to, message } => {
                self.tell_ipv6(now, ipv6::Event::Message { to, message });
            }
            routing::Output::LeafRefused { leaf: address, status } => {
                let neighbour = self.ipv6.leaf(&address);
                self.tell_ipv6(now, ipv6::Event::Refuse { address, status });
                if let Some(node) = neighbour {
                    self.on_leaf_gone(now, node);
                }
            }
            routing::Output::Send { to, message } => {
                let is_advertisement = match message {
                    Message::Dio(_) => to.is_multicast(),
                    Message::Dao(_) => true,
                    _ => false,
                };
                let message = Icmpv6::Rpl(message);
                self.tell_ipv6(now, ipv6::Event::Message { to, message });
                if is_advertisement {
                    self.advertisement = Some(self.ipv6.newest_name());
                }
            }
        }
    }

    /// A scheduling function learns of leaves where it learns of children.
    fn tell_of_leaf(&mut self, now: Instant, event: Event) {
        if self.routing.knows_children() {
            self.link.tell_sixtop(now, event);
        }
    }

    fn on_leaf_gone(&mut self, now: Instant, node: Eui64) {
        // Another address of it may be registered.
        if !self.ipv6.is_leaf(node) {
            self.tell_of_leaf(now, Event::ChildRemoved(node));
        }
    }

    fn on_parent(&mut self, now: Instant, old: Option<Eui64>, new: Option<Eui64>, is_root: bool) {
        // A node without a parent from the beginning may have a default route that was given.
        if old != new {
            self.ipv6.routes_mut().set_default(new.map(Address::link_local));
        }
        if let Some(root) = new.filter(|_| is_root) {
            self.link.tell_sixtop(now, Event::RootKnown(root));
        }
        self.link.on_parent(now, old, new);
        self.outbox.push(Output::Network(Network::Parent(new)));
    }

    /// Handles an output of the CoAP host or of an application.
    pub(crate) fn on_hosting(&mut self, now: Instant, output: hosting::Output) {
        match output {
            hosting::Output::Datagram { source_port, to, payload, class } => {
                let payload = &payload;
                self.tell_ipv6(now, ipv6::Event::Datagram { source_port, to, payload, class });
            }
            hosting::Output::Connection(order) => self.on_order(now, order),
            hosting::Output::Join { application, group } => {
                if let Err(refusal) = self.join_group(now, group) {
                    self.hosting.on_not_joined(application, group, refusal);
                }
            }
            hosting::Output::Leave { group } => self.leave_group(now, group),
            hosting::Output::Driver(output) => self.outbox.push(output),
        }
    }

    /// The TCP counters of this node; `None` without TCP.
    pub fn stream_counters(&self) -> Option<StreamCounters> {
        self.streams.as_ref().map(Streams::counters)
    }
    /// The deadline of a connection may have come.
    pub(crate) fn on_streams_deadline(&mut self, now: Instant) {
        if let Some(streams) = &mut self.streams {
            streams.deadline(now);
            self.settle_streams(now);
        }
    }
    /// Does what connections want, which hand octets to CoAP and segments to IPv6.
    pub(crate) fn settle_streams(&mut self, now: Instant) {
        while let Some(output) = self.streams.as_mut().and_then(Streams::poll_output) {
            self.on_stream(now, output);
        }
    }
    fn on_stream(&mut self, now: Instant, output: streams::Output) {
        match output {
            streams::Output::Segment { source, to, octets, class } => {
                let segment = &octets[..];
                self.tell_ipv6(now, ipv6::Event::Segment { source, to, segment, class });
            }
            streams::Output::Connected { peer } => self.hosting.on_connected(now, peer),
            streams::Output::Octets { peer, octets } => self.hosting.on_octets(now, peer, &octets),
            streams::Output::Gone { peer, reason } => self.hosting.on_gone(now, peer, reason),
        }
    }
    /// Does with a connection what CoAP wants.
    pub(crate) fn on_order(&mut self, now: Instant, order: Order) {
        let Some(streams) = &mut self.streams else { return };
        match order {
            Order::Connect(peer) => {
                let own_address = self.ipv6.addresses().source_for(&peer.0);
                streams.open(now, own_address, peer);
            }
            Order::Disconnect(peer) => streams.close(now, peer),
            Order::Octets(peer, octets) => streams.write(now, peer, &octets),
        }
        self.settle_streams(now);
    }
}
