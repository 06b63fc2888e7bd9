//! What goes into the IPv6 layer and what comes out.

use alloc::vec::Vec;
use core::ops::Range;

use lowmesh_machine::{Dropped, Handle};
use lowmesh_units::{Eui64, Sequence};
use lowmesh_wire::icmpv6::{Echo, Icmpv6, Unreachable};
use lowmesh_wire::ipv6::{Address, Header};
use lowmesh_wire::rpl;

use crate::packet::Flow;
use crate::routing::Routing;

/// What an IPv6 packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A CoAP request, another message of its client, a segment of the end that opened a connection, a ping, or a datagram
    /// of the application.
    Request,
    /// A CoAP response, a message of its server, a segment of the end that was connected to, or the answer to a ping.
    Response,
    /// Routing, and every other ICMPv6 message.
    Control,
    /// A packet to a group that reaches further than the link, of which many nodes have copies.
    Group,
}

impl Class {
    /// Every class, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Request, Self::Response, Self::Control, Self::Group];
}

/// Something happened, and this is the routing protocol to ask.
#[derive(Debug)]
pub struct Input<'a> {
    /// Decides where packets go.
    pub routing: &'a mut dyn Routing,
    /// What happened.
    pub event: Event<'a>,
}

/// What can happen to the IPv6 layer.
#[derive(Debug)]
pub enum Event<'a> {
    /// A packet came from a neighbour.
    Packet {
        /// The whole packet.
        bytes: Vec<u8>,
        /// The neighbour.
        from: Eui64,
        /// Its name; [`Handle::NONE`] for a broadcast, of which the sender alone keeps account.
        handle: Handle,
    },
    /// The beginning of a packet came; [`Output::Route`] answers at once.
    Beginning {
        /// All its headers, and perhaps more.
        bytes: Vec<u8>,
        /// The neighbour.
        from: Eui64,
        /// Its name.
        handle: Handle,
    },
    /// A packet came from another network. It goes on into the mesh, or is for this node.
    Uplink {
        /// The whole packet.
        packet: Vec<u8>,
        /// Its name if it has one in this run, else [`Handle::NONE`]: then it is new.
        handle: Handle,
    },
    /// A multicast engine delivers a packet to this node.
    Delivery {
        /// The whole packet.
        packet: Vec<u8>,
        /// Its name.
        handle: Handle,
    },
    /// A multicast engine sends a unicast packet, which routing forwards.
    Route {
        /// The whole packet.
        packet: Vec<u8>,
        /// Its name.
        handle: Handle,
    },
    /// Send a UDP datagram.
    Datagram {
        /// From this port,
        source_port: u16,
        /// to this endpoint,
        to: (Address, u16),
        /// with this in it.
        payload: &'a [u8],
        /// What it is for.
        class: Class,
    },
    /// Send a TCP segment.
    Segment {
        /// The address that it leaves from, which its checksum covers.
        source: Address,
        /// The node that it goes to.
        to: Address,
        /// The whole segment.
        segment: &'a [u8],
        /// What it is for.
        class: Class,
    },
    /// Send an ICMPv6 message.
    Message {
        /// To whom.
        to: Address,
        /// The message.
        message: Icmpv6,
    },
    /// The routing protocol gives up a leaf of this router: its registration ends, and the leaf is told this status.
    Refuse {
        /// The address of the leaf.
        address: Address,
        /// Why (RFC 8505 s4.1); 0 for a route that cannot be.
        status: u8,
    },
    /// The time of [`next_deadline`](lowmesh_machine::Machine::next_deadline) has come.
    Deadline,
}

/// What the IPv6 layer wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a packet, or a fragment of one, to a neighbour or to all of them.
    Send {
        /// The packet from its IPv6 header on.
        bytes: Vec<u8>,
        /// The neighbour; `None` for all.
        next_hop: Option<Eui64>,
        /// Names the packet.
        handle: Handle,
    },
    /// The answer to [`Event::Beginning`].
    Route {
        /// The beginning as it goes on: one hop less, options renewed; its length is the same.
        beginning: Vec<u8>,
        /// Where the packet goes.
        route: Route,
    },
    /// A packet leaves the mesh for another network. This node's copy of it goes along.
    Uplink {
        /// The whole packet.
        packet: Vec<u8>,
        /// Its name.
        handle: Handle,
    },
    /// A packet to a group that reaches further than the link: a multicast engine decides about it.
    Group {
        /// The whole packet, or a fragment of it, as it came.
        packet: Vec<u8>,
        /// The neighbour that sent it; `None` if it starts here.
        from: Option<Eui64>,
        /// Its name.
        handle: Handle,
    },
    /// A message of multicast engines came.
    GroupControl {
        /// Its IPv6 header.
        header: Header,
        /// The message.
        message: Icmpv6,
        /// The packet to a group that it carries, if it carries one.
        handle: Handle,
    },
    /// A UDP datagram came for a port that is open.
    Datagram(Datagram),
    /// A TCP segment came, at a node that listens to TCP.
    Segment(Segment),
    /// A RPL message came.
    Rpl {
        /// Who sent it.
        from: Address,
        /// It came to a group.
        multicast: bool,
        /// The message.
        message: rpl::Message,
    },
    /// An address of a leaf of this router, which runs no RPL, was registered, or registered again (RFC 9010 s9.2.2).
    LeafFound {
        /// The address.
        address: Address,
        /// The neighbour that it is at.
        node: Eui64,
        /// The number of the registration (TID).
        number: Sequence,
        /// Minutes for which it is registered.
        lifetime_minutes: u16,
    },
    /// The registration of a leaf is over.
    LeafLost {
        /// Its address.
        address: Address,
        /// The neighbour that it was at.
        node: Eui64,
    },
    /// At a host: a neighbour advertises itself as a router, or answers a registration.
    Discovery {
        /// The neighbour.
        from: Eui64,
        /// The advertisement.
        message: Icmpv6,
    },
    /// The answer to a ping.
    Pong {
        /// Who answers.
        from: Address,
        /// What was asked.
        echo: Echo,
    },
    /// A packet of this node came to nothing, as an ICMPv6 error says (RFC 4443 s3).
    Trouble {
        /// Who says so.
        from: Address,
        /// Where the packet went.
        to: Address,
        /// What is wrong.
        problem: Problem,
        /// The source and destination port of the UDP datagram in it, if it was one.
        ports: Option<(u16, u16)>,
    },
    /// Something about a packet.
    Packet(Packet),
}

/// Where a packet goes whose beginning has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// It is for this node, or leaves the mesh here as a whole.
    Here,
    /// To this neighbour.
    Via(Eui64),
    /// Nowhere: an [`Output::Packet`] says why.
    None,
}

/// A UDP datagram in the packet that it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Who sent it to whom.
    pub flow: Flow,
    pub(crate) packet: Vec<u8>,
    pub(crate) payload: Range<usize>,
}

impl Datagram {
    /// What is in it.
    pub fn payload(&self) -> &[u8] {
        &self.packet[self.payload.clone()]
    }
    /// The endpoint that sent it.
    pub const fn from(&self) -> (Address, u16) {
        (self.flow.source, self.flow.source_port)
    }
}

/// A TCP segment in the packet that it came in. Its checksum is not verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The node that sent it.
    pub source: Address,
    /// The address of this node that it came to.
    pub destination: Address,
    pub(crate) packet: Vec<u8>,
    pub(crate) octets: Range<usize>,
}

impl Segment {
    /// The whole segment.
    pub fn octets(&self) -> &[u8] {
        &self.packet[self.octets.clone()]
    }
}

/// What an ICMPv6 error is about: RFC 4443 s3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The destination cannot be reached.
    Unreachable(Unreachable),
    /// The packet is larger than a link on its way takes.
    TooBig,
    /// It passed too many routers.
    HopLimit,
    /// Its some fragments did not arrive in time.
    Reassembly,
    /// The node does not recognise the field at this octet.
    Parameter {
        /// 0 a field, 1 a next header, 2 an option.
        code: u8,
        /// Which octet.
        pointer: u32,
    },
    /// An error of a type without a name here.
    Unknown {
        /// Its type, below 128.
        kind: u8,
        /// Its code.
        code: u8,
    },
}

/// How many ICMPv6 errors there were of each type (RFC 4443 s2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ErrorCounts {
    /// Destination unreachable.
    pub unreachable: u64,
    /// Packet too big.
    pub too_big: u64,
    /// Time exceeded: the hop limit, or reassembly.
    pub time_exceeded: u64,
    /// Parameter problem.
    pub parameter: u64,
    /// Types without a name here.
    pub unknown: u64,
}

impl ErrorCounts {
    pub(crate) const fn note(&mut self, problem: Problem) {
        let count = match problem {
            Problem::Unreachable(_) => &mut self.unreachable,
            Problem::TooBig => &mut self.too_big,
            Problem::HopLimit | Problem::Reassembly => &mut self.time_exceeded,
            Problem::Parameter { .. } => &mut self.parameter,
            Problem::Unknown { .. } => &mut self.unknown,
        };
        *count += 1;
    }
}

/// The ICMPv6 errors of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ErrorCounters {
    /// Errors that this node sent.
    pub sent: ErrorCounts,
    /// Those that it did not send, since the rate was used up.
    pub withheld: u64,
    /// Errors that came about packets of this node.
    pub received: ErrorCounts,
}

/// A moment in the life of an IPv6 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// This node made it.
    Born(Handle, Class),
    /// The packet that this node has just made is for the members of a group.
    Addressed(Handle, Address),
    /// This node took it from a neighbour (or the first fragment of it), or has one more part of it to send.
    Accepted(Handle),
    /// A neighbour has it, or another copy here took it in; this copy is gone.
    PassedOn(Handle),
    /// It is for this node, and here.
    Delivered(Handle),
    /// It ends here.
    Dropped(Dropped),
}

impl Packet {
    /// The name of the packet.
    pub const fn handle(&self) -> Handle {
        match *self {
            Self::Born(handle, _)
            | Self::Addressed(handle, _)
            | Self::Accepted(handle)
            | Self::PassedOn(handle)
            | Self::Delivered(handle) => handle,
            Self::Dropped(dropped) => dropped.handle,
        }
    }
}
