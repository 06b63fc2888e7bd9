//! What goes into the adaptation layer and what comes out.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Dropped, Handle};
use lowmesh_units::Eui64;
use lowmesh_wire::lowpan::RoutingContext;

use crate::recover::Step;

/// What can happen to the adaptation layer.
#[derive(Debug)]
pub enum Input<'a> {
    /// An IPv6 packet is to go to a neighbour, or to all of them.
    Packet {
        /// The packet from its IPv6 header on.
        bytes: Vec<u8>,
        /// The next hop; `None` for a broadcast.
        destination: Option<Eui64>,
        /// Names the packet. One that is forwarded has the name of the newest [`Output::Packet`], and its form.
        handle: Handle,
    },
    /// The MAC received a data frame.
    Frame {
        /// What is behind the MAC header.
        payload: &'a [u8],
        /// Who sent the frame.
        source: Eui64,
        /// Whom it is for; `None` for a broadcast.
        destination: Option<Eui64>,
        /// Names the packet that the frame is, or is a part of.
        handle: Handle,
        /// The sender acknowledges frames of this node, so its address is no forged one. Datagrams of others give way to
        /// its own; false of all where that makes no difference.
        is_proven: bool,
    },
    /// The MAC is done with a frame out of [`Output::Frame`]; due once for each.
    FrameDone {
        /// The frame's handle.
        handle: Handle,
        /// Acknowledged, or for a broadcast sent; else why not.
        result: Result<(), DropReason>,
    },
    /// The answer to the oldest [`Output::RouteRequest`]; due before the next frame.
    RouteReply {
        /// The beginning of the packet as it goes on: one hop less, options renewed; its length is the same.
        beginning: Vec<u8>,
        /// Where it goes.
        route: Route,
    },
    /// The root of the RPL network decides, from now on.
    Network(Network),
    /// The time of [`next_deadline`](lowmesh_machine::Machine::next_deadline) has come.
    Deadline,
}

/// What the root of the RPL network decides about compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Network {
    /// What packets with 6LoRH take as known; `None` outside of a network.
    pub routing: Option<RoutingContext>,
    /// Packets that start here have 6LoRH (RFC 8138): the flag T of the DODAG Configuration (RFC 9035 s4). A node
    /// understands packets with and without it, and forwards them as they came.
    pub is_routed: bool,
}

/// Where a packet goes whose beginning has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// It is for this node, or for one that needs it whole.
    Here,
    /// To this neighbour.
    Via(Eui64),
    /// Nowhere: the driver has counted it as dropped.
    None,
}

/// What the adaptation layer wants done.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a frame. Fragments of one packet come one after the other as the MAC confirms them.
    Frame {
        /// What goes behind the MAC header.
        payload: Vec<u8>,
        /// The next hop; `None` for a broadcast.
        destination: Option<Eui64>,
        /// Names the packet; the same for all its fragments.
        handle: Handle,
        /// No more frames of this packet will follow.
        last: bool,
        /// Nothing depends on its arrival: the MAC need not repeat it.
        is_advice: bool,
    },
    /// All frames of a packet are confirmed, or it was given up after one of them.
    PacketDone {
        /// Names the packet.
        handle: Handle,
        /// Every frame was delivered; else why the first that was not.
        result: Result<(), DropReason>,
    },
    /// A neighbour's packet, or the first of its fragments, was taken over; `Packet` or `Dropped` follows,
    /// at once or later.
    Accepted {
        /// Names the packet.
        handle: Handle,
    },
    /// Mode FF or SFR has the first fragment of a packet and wants to know where it goes, by [`Input::RouteReply`].
    RouteRequest {
        /// The packet from its IPv6 header on, as far as it has come: all its headers.
        beginning: Vec<u8>,
        /// The neighbour that sent it.
        source: Eui64,
        /// Names the packet.
        handle: Handle,
    },
    /// A neighbour sent an IPv6 packet.
    Packet {
        /// The packet from its IPv6 header on.
        bytes: Vec<u8>,
        /// The neighbour.
        source: Eui64,
        /// It came in broadcast frames.
        broadcast: bool,
        /// Names the packet.
        handle: Handle,
    },
    /// A packet ended here.
    Dropped(Dropped),
    /// Something happened to a datagram in recoverable fragments from here; told when the configuration asks for it.
    Step(Step),
}

/// What the layer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Fragments of packets that were sent from here.
    pub fragments_sent: u64,
    /// Fragments that came, recoverable ones and their acknowledgements too.
    pub fragments_received: u64,
    /// Fragments that passed through.
    pub fragments_forwarded: u64,
    /// Fragments that would have passed, but that the datagram had, or that contradict it.
    pub fragments_refused: u64,
    /// First fragments that were cut in two on their way, for their headers had grown.
    pub refragmented: u64,
    /// Mode FF: datagrams reassembled because a later fragment came first.
    pub fallbacks_order: u64,
    /// Mode FF: datagrams reassembled because every entry of the virtual reassembly buffer was in use.
    pub fallbacks_full: u64,
}
