//! The face towards the radio driver, and what a driver may ask of a node.

use alloc::vec::Vec;

use lowmesh_mac::tsch::account::RadioTime;
use lowmesh_mac::tsch::cell::CellKind;
use lowmesh_mac::tsch::schedule::Schedule;
use lowmesh_mac::tsch::{Reception, Transmission};
use lowmesh_machine::Handle;
use lowmesh_units::{Channel, Eui64, Instant, Rank};
use lowmesh_wire::ipv6::Address;

use crate::node::{Counters, Node};

impl Node {
    /// When the next frame goes out.
    pub fn next_transmission(&self) -> Option<Instant> {
        self.mac.next_transmission()
    }
    /// Takes the frame for the slot that starts now; [`Node::finish`] must follow.
    pub fn transmit(&mut self, now: Instant) -> Option<Transmission> {
        let frame = self.mac.transmit(now);
        self.counters.frames_sent += u64::from(frame.is_some());
        frame
    }
    /// On which channel the radio listens in the slot that starts now.
    pub fn listens(&self, now: Instant) -> Option<Channel> {
        self.mac.listens(now)
    }
    /// A frame was received in the slot that started at `now`; returns the acknowledgement to send.
    pub fn receive(&mut self, now: Instant, heard: Reception<'_>) -> Option<Vec<u8>> {
        let ack = self.mac.receive(now, heard);
        self.settle(now);
        ack
    }
    /// The slot of [`Node::transmit`] is over; `ack` is what came back.
    pub fn finish(&mut self, now: Instant, ack: Option<Reception<'_>>) {
        self.mac.finish(now, ack);
        self.settle(now);
    }

    /// True when its clock is in step with a network.
    pub const fn is_synchronised(&self) -> bool {
        self.mac.is_synchronised()
    }
    /// True when it is in step and has a place in a DODAG.
    pub fn is_joined(&self) -> bool {
        self.mac.is_synchronised() && self.rpl.is_joined()
    }
    /// Its global address.
    pub const fn global_address(&self) -> Address {
        self.ipv6.addresses.global()
    }
    /// Its preferred parent.
    pub fn parent(&self) -> Option<Eui64> {
        self.rpl.preferred_parent().map(|address| Address(address).eui64())
    }
    /// Its rank.
    pub fn rank(&self) -> Rank {
        self.rpl.rank()
    }
    /// What it counted.
    pub const fn counters(&self) -> Counters {
        self.counters
    }
    /// Radio time up to `now`.
    pub fn radio_time(&self, now: Instant) -> RadioTime {
        self.mac.radio_time(now)
    }
    /// Its cells.
    pub const fn schedule(&self) -> &Schedule {
        self.mac.schedule()
    }
    /// Cells agreed on with neighbours.
    pub fn negotiated_cells(&self) -> u32 {
        let negotiated = |kind| kind == CellKind::Negotiated;
        self.mac.schedule().cells().filter(|cell| negotiated(cell.kind)).count() as u32
    }
    /// Every packet that this node holds, once for each copy of its own; frames in the MAC's queue are of those.
    pub fn held(&self) -> Vec<Handle> {
        self.lowpan.handles().filter(|handle| *handle != Handle::NONE).collect()
    }
}
