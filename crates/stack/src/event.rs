//! What goes into a node and what comes out: requests of its application, and facts for the record.

use alloc::vec::Vec;

use lowmesh_coap::{IncomingId, RequestTemplate, ResponseTemplate};
use lowmesh_lowpan::recover::Step;
use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{Duration, Eui64, Instant};
use lowmesh_wire::coap::{Code, Message};
use lowmesh_wire::icmpv6::Echo;
use lowmesh_wire::ipv6::Address;

use crate::application::{Report, RequestId};

pub use crate::peer::Peer;
pub use lowmesh_ipv6::event::{Class, ErrorCounts, Packet, Problem};

/// An event that a node handles, other than frames.
#[derive(Clone, Debug)]
pub enum Input {
    /// Power on.
    Boot,
    /// The power is back, and the memory as it was: the driver has not called the node since it was lost.
    Resume,
    /// The application issues a request.
    Request {
        /// The server that is asked.
        peer: Peer,
        /// The request.
        request: RequestTemplate,
        /// The transaction's name.
        handle: Handle,
    },
    /// The application answers a request.
    Respond {
        /// The request that is answered.
        exchange: IncomingId,
        /// The response to the request.
        response: ResponseTemplate,
    },
    /// The application sends a UDP datagram.
    Datagram {
        /// The port that the datagram leaves from.
        source_port: u16,
        /// The endpoint that it goes to.
        peer: Peer,
        /// The payload of the datagram.
        payload: Vec<u8>,
    },
    /// The application asks whether somebody is there (RFC 4443 s4.1).
    Ping {
        /// The node that is asked.
        to: Address,
        /// The data that its reply repeats.
        echo: Echo,
    },
    /// Join a group.
    Join {
        /// The address of the group.
        group: Address,
    },
    /// Leave a group; nothing happens if the node is not in it.
    Leave {
        /// The address of the group.
        group: Address,
    },
    /// A packet came from another network. It goes on into the mesh, or is for this node.
    Uplink {
        /// The whole packet.
        packet: Vec<u8>,
        /// Its name if it has one in this run, else [`Handle::NONE`]: then it is new.
        handle: Handle,
    },
    /// Readings of a node, or of all nodes if it is unset, have another period from now on; the applications take it.
    Paced {
        /// The address of the node.
        node: Option<Address>,
        /// The new mean time between two readings.
        period: Duration,
    },
    /// A deadline came.
    Deadline,
}

/// An output of a node.
#[derive(Clone, Debug)]
pub enum Output {
    /// Something about an IPv6 packet.
    Packet(Packet),
    /// Something about a CoAP transaction of the driver.
    Transaction(Transaction),
    /// What an application of this node does.
    Application(ApplicationEvent),
    /// A request for a path that no application of this node claims.
    Request {
        /// To be named in the answer.
        exchange: IncomingId,
        /// The peer that asks.
        from: Peer,
        /// The request of the peer.
        message: Message,
        /// It came to a group: an answer is optional, and errors are not sent (RFC 7252 s8.2).
        multicast: bool,
    },
    /// Something about a datagram of this node in recoverable fragments; told when the configuration asks for it.
    Fragments(Step),
    /// A change of the node's parent or membership.
    Network(Network),
    /// A UDP datagram for the application, on [`DATAGRAM_PORT`](crate::DATAGRAM_PORT).
    Datagram {
        /// The peer that sent it.
        from: Peer,
        /// What is in it.
        payload: Vec<u8>,
    },
    /// The answer to a ping.
    Pong {
        /// The node that answers.
        from: Address,
        /// The data of the request.
        echo: Echo,
    },
    /// A packet of this node came to nothing, as an ICMPv6 error says (RFC 4443 s3).
    Trouble {
        /// The node that reports the error.
        from: Address,
        /// Where the packet went.
        to: Address,
        /// The problem that the error reports.
        problem: Problem,
    },
    /// A packet leaves the mesh for another network. This node's copy of it goes along.
    Uplink {
        /// The whole packet.
        packet: Vec<u8>,
        /// The name of the packet.
        handle: Handle,
    },
    /// Move the local clock: positive makes it later.
    AdjustClock {
        /// By so much.
        micros: i32,
    },
    /// The radio under a MAC with carrier sense is to do this; [`Node::radio`](crate::Node::radio) takes the
    /// answer.
    Radio(RadioOrder),
}

impl Output {
    /// The answer of a driver without resources of its own to a request that no application claims: 4.04, and none to a
    /// group (RFC 7252 s8.2).
    pub fn not_found(&self) -> Option<Input> {
        match self {
            Self::Request { exchange, multicast: false, .. } => {
                let response = ResponseTemplate::new(Code::NOT_FOUND);
                Some(Input::Respond { exchange: *exchange, response })
            }
            _ => None,
        }
    }
}

/// An order to the radio; [`lowmesh_mac::csma::event`] says when it occurs and what to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RadioOrder {
    /// Sense the channel.
    Sense {
        /// From here on.
        at: Instant,
    },
    /// Send a frame.
    Transmit {
        /// Its first symbol leaves here.
        at: Instant,
        /// The frame without FCS.
        octets: Vec<u8>,
        /// For whom; `None` is everyone in range.
        destination: Option<Eui64>,
        /// The datagram in it.
        handle: Handle,
    },
    /// Send an acknowledgement.
    Acknowledge {
        /// Its first symbol leaves here.
        at: Instant,
        /// The frame without FCS.
        octets: Vec<u8>,
        /// The node that the frame goes to.
        destination: Eui64,
    },
}

/// A moment in the life of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// Its first copy left the endpoint.
    Sent(Handle, Duration),
    /// Its n-th copy after the first left the endpoint.
    Resent(Handle, u8),
    /// It was acknowledged: round-trip time from the first copy, and copies after the first.
    Acknowledged(Handle, Duration, u8),
    /// It failed.
    Failed(Handle, DropReason),
}

impl Transaction {
    /// The same moment of a transaction with another name.
    pub const fn renamed(self, name: Handle) -> Self {
        match self {
            Self::Sent(_, rto) => Self::Sent(name, rto),
            Self::Resent(_, copy) => Self::Resent(name, copy),
            Self::Acknowledged(_, rtt, copies) => Self::Acknowledged(name, rtt, copies),
            Self::Failed(_, reason) => Self::Failed(name, reason),
        }
    }
}

/// What an application does, for the record of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationEvent {
    /// It made a request.
    Issued(RequestId),
    /// It made a request to a group, which is no transaction.
    Asked(RequestId),
    /// Something about a request that it made; the handle is the number of the request.
    Transaction(RequestId, Transaction),
    /// It reports something.
    Report(Report),
}

/// A moment in a node's life in the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// The clock is in step.
    Synchronised,
    /// It no longer is.
    Desynchronised,
    /// Another preferred parent.
    Parent(Option<Eui64>),
    /// The set of negotiated cells changed.
    Cells {
        /// The neighbour at the other end.
        peer: Eui64,
        /// What the scheduling function reports, in words.
        what: &'static str,
        /// Which cells: (slot, channel offset).
        cells: Vec<(u16, u16)>,
    },
}
