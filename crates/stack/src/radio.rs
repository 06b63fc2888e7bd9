//! The face towards the radio driver, and what a driver may ask of a node.

use alloc::vec::Vec;

use lowmesh_lowpan::Adaptation;
use lowmesh_mac::account::RadioTime;
use lowmesh_mac::csma;
use lowmesh_mac::tsch::cell::CellKind;
use lowmesh_mac::tsch::hopping::HoppingSequence;
use lowmesh_mac::tsch::schedule::Schedule;
use lowmesh_mac::tsch::{Reception, Transmission};
use lowmesh_machine::{Handle, Machine as _, debug_assert_accepted};
use lowmesh_units::{Channel, Eui64, Instant, Rank};
use lowmesh_wire::ipv6::Address;

use crate::application::Snapshot;
use crate::link::{Link, Slotted};
use crate::node::{Counters, Node};

impl Node {
    fn slotted(&self) -> Option<&Slotted> {
        match &self.link {
            Link::Slotted(slotted) => Some(slotted),
            Link::Contended(_) => None,
        }
    }
    fn slotted_mut(&mut self) -> Option<&mut Slotted> {
        match &mut self.link {
            Link::Slotted(slotted) => Some(slotted),
            Link::Contended(_) => None,
        }
    }

    /// Sets the hopping sequence of TSCH at `now`, at this node alone.
    pub fn set_hopping(&mut self, now: Instant, hopping: HoppingSequence) {
        if let Link::Slotted(slotted) = &mut self.link {
            slotted.set_hopping(now, hopping);
            self.settle_link(now);
        }
    }
    /// The time of the next transmission in a timeslot.
    pub fn next_transmission(&self) -> Option<Instant> {
        self.slotted()?.mac.next_transmission()
    }
    /// Takes the frame for the slot that starts now; [`Node::finish`] must follow.
    pub fn transmit(&mut self, now: Instant) -> Option<Transmission> {
        let frame = self.slotted_mut()?.mac.transmit(now);
        self.counters.frames_sent += u64::from(frame.is_some());
        frame
    }
    /// On which channel the radio listens in the slot that starts now.
    pub fn listens(&self, now: Instant) -> Option<Channel> {
        self.slotted()?.mac.listens(now)
    }
    /// A frame was received in the slot that started at `now`; returns the acknowledgement to send.
    pub fn receive(&mut self, now: Instant, heard: Reception<'_>) -> Option<Vec<u8>> {
        let ack = self.slotted_mut()?.mac.receive(now, heard);
        self.settle_link(now);
        ack
    }
    /// A frame of `octets` that the radio had found in this slot was lost; at a sender it was the acknowledgement.
    pub fn lose(&mut self, octets: usize) {
        if let Some(slotted) = self.slotted_mut() {
            slotted.mac.lose(octets);
        }
    }
    /// The slot of [`Node::transmit`] is over; `ack` is what came back.
    pub fn finish(&mut self, now: Instant, ack: Option<Reception<'_>>) {
        if let Some(slotted) = self.slotted_mut() {
            slotted.mac.finish(now, ack);
            self.settle_link(now);
        }
    }

    /// The radio under a MAC with carrier sense answers a [`RadioOrder`](crate::event::RadioOrder), or hears
    /// something.
    pub fn radio(&mut self, now: Instant, input: csma::Input<'_>) {
        if let Link::Contended(csma) = &mut self.link {
            debug_assert_accepted(csma.handle(now, input));
            self.settle_link(now);
        }
    }
    /// True while the radio is occupied with a frame of this node, from its first backoff on; under TSCH never.
    pub fn is_sending(&self) -> bool {
        self.link.is_sending()
    }
    /// True when a radio under a MAC with carrier sense can find a frame that begins now.
    pub fn is_listening(&self) -> bool {
        match &self.link {
            Link::Slotted(_) => false,
            Link::Contended(csma) => csma.listens(),
        }
    }

    /// True when its link layer is up: the clock in step with a network, or the radio on.
    pub fn is_synchronised(&self) -> bool {
        self.link.is_up()
    }
    /// True when its link layer is up and it is in a DODAG, or has static routes.
    pub fn is_joined(&self) -> bool {
        self.link.is_up() && self.routing.is_joined()
    }
    /// The node's global address.
    pub const fn global_address(&self) -> Address {
        self.ipv6.addresses().global()
    }
    /// The state that its applications show, in the order of their installation.
    pub fn snapshots(&self) -> impl Iterator<Item = Snapshot> {
        self.hosting.snapshots()
    }
    /// The preferred parent.
    pub fn parent(&self) -> Option<Eui64> {
        self.routing.parent()
    }
    /// The downward route to the node with the global address `target`: the next hop, or at a root in non-storing mode all
    /// hops. Empty without a route.
    pub fn hops_down(&self, target: &Address) -> Vec<Eui64> {
        let routes = self.ipv6.routes();
        if let Some(next) = routes.host_route(target).or_else(|| routes.given_route(target)) {
            return Vec::from([next.eui64()]);
        }
        let hops = lowmesh_ipv6::Routing::source_route(&self.routing, target);
        hops.unwrap_or_default().iter().map(Address::eui64).collect()
    }
    /// At a root: the router of the leaf with the global address `leaf`, which runs no RPL.
    pub fn router_of(&self, leaf: &Address) -> Option<Eui64> {
        lowmesh_ipv6::Routing::router_of(&self.routing, leaf).map(|router| router.eui64())
    }
    /// The rank of the node in its DODAG.
    pub fn rank(&self) -> Option<Rank> {
        self.routing.rank()
    }
    /// The counters of the layers of the node.
    pub const fn counters(&self) -> Counters {
        let errors = self.ipv6.errors();
        Counters {
            errors_sent: errors.sent,
            errors_withheld: errors.withheld,
            errors_received: errors.received,
            ..self.counters
        }
    }
    /// The counters of its MAC with carrier sense.
    pub fn contention(&self) -> Option<csma::Counters> {
        match &self.link {
            Link::Slotted(_) => None,
            Link::Contended(csma) => Some(csma.counters()),
        }
    }
    /// Radio time up to `now`.
    pub fn radio_time(&self, now: Instant) -> RadioTime {
        match &self.link {
            Link::Slotted(slotted) => slotted.mac.radio_time(now),
            Link::Contended(csma) => csma.radio_time(now),
        }
    }
    /// The cells of the node, under TSCH.
    pub fn schedule(&self) -> Option<&Schedule> {
        Some(self.slotted()?.mac.schedule())
    }
    /// Cells agreed on with neighbours.
    pub fn negotiated_cells(&self) -> u32 {
        let negotiated = |kind| kind == CellKind::Negotiated;
        let cells = self.schedule().into_iter().flat_map(Schedule::cells);
        cells.filter(|cell| negotiated(cell.kind)).count() as u32
    }
    /// Octets of packet data that wait in its packet buffer: in 6LoWPAN, in the MAC's queue, and in IPv6
    /// fragments that wait for others.
    pub fn packet_buffer_octets(&self) -> usize {
        self.rest.packet_buffer_octets
    }
    /// Its adaptation layer: windows and counters of the fragment modes.
    pub const fn lowpan(&self) -> &Adaptation {
        &self.lowpan
    }
    /// Every packet that this node holds, once for each copy of its own; frames in the MAC's queue are of those.
    pub fn held(&self) -> Vec<Handle> {
        self.lowpan
            .handles()
            .chain(self.ipv6.handles())
            .chain(self.multicast.handles())
            .filter(|handle| *handle != Handle::NONE)
            .collect()
    }
}
