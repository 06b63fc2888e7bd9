//! Applications: machines above the CoAP host of a node.
//!
//! ```text
//!   Application   Application   Application      each its own paths, ports and requests
//!        └─────────────┼─────────────┘
//!            HostHandle: actions down, inputs up
//!                  Host, UDP                     blocks, observers, OSCORE
//! ```
//! A node routes each input to the application that it belongs to: a request by its path, a datagram by its port, a
//! response by its request. What no application claims goes to the driver of the node. Two applications of a node
//! cannot claim the same path or port, and none can name the exchanges of another.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use lowmesh_coap::{IncomingId, RequestTemplate, ResponseTemplate};
use lowmesh_machine::{DropReason, Outbox, Rejected};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::Message;
use lowmesh_wire::ipv6::Address;

use crate::peer::Peer;

/// A program on a node: a machine that receives exchanges, datagrams and deadlines, and acts through a [`HostHandle`].
pub trait Application: fmt::Debug + Send {
    /// What the node hands to this application. It is read once, when the application is installed.
    fn claims(&self) -> Claims {
        Claims::default()
    }
    /// Something has happened.
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>);
    /// When it wants [`Input::Deadline`]; asked after every input.
    fn next_deadline(&self) -> Option<Instant>;
    /// What it counted, for records and viewers.
    fn snapshot(&self) -> Snapshot;
}

/// The requests that an application answers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Claims {
    /// Uri-Paths, with slashes between segments: requests for them go to the application. A path that ends in `/*` stands
    /// for the path before it and for all paths below that.
    pub paths: Vec<String>,
    /// UDP ports: datagrams to them go to the application. [`COAP_PORT`](crate::COAP_PORT) and
    /// [`ECHO_PORT`](crate::ECHO_PORT) are the node's own.
    pub ports: Vec<u16>,
}

/// The state that an application shows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// The kind of the application, one word.
    pub name: &'static str,
    /// What it counted, each with a name.
    pub counters: Vec<(&'static str, u64)>,
}

/// The identifier of an application among those of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplicationId(pub(crate) u16);

/// Names a request that an application made. Another application of the node cannot use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    pub(crate) application: ApplicationId,
    pub(crate) number: u64,
}

impl RequestId {
    /// The number of the request among those of its node, from 1.
    pub const fn number(self) -> u64 {
        self.number
    }
}

/// Names a request of a peer that an application answers once.
#[derive(Debug, PartialEq, Eq)]
pub struct Exchange(pub(crate) IncomingId);

/// An event that an application handles.
#[derive(Debug)]
pub enum Input {
    /// The node was switched on.
    Started,
    /// The node has joined the network for the first time since it was switched on.
    Joined,
    /// A peer asks for a path of this application, or the host asks for the state that its observers wait for.
    Request {
        /// To be answered with [`HostHandle::respond`] or [`HostHandle::decline`].
        exchange: Exchange,
        /// The peer that asks.
        from: Peer,
        /// The whole request, put together from its blocks.
        message: Message,
        /// It came to a group: an answer is optional, and errors are not sent (RFC 7252 s8.2).
        multicast: bool,
    },
    /// The whole response to a request. The request is over.
    Response {
        /// The request that this is about.
        request: RequestId,
        /// The peer that answers.
        from: Peer,
        /// The response, put together from its blocks.
        message: Message,
        /// From the first copy of the request to now.
        rtt: Duration,
        /// Copies of messages of the request after the first.
        retransmissions: u8,
    },
    /// The state of an observed resource, the first or a newer one (RFC 7641). The request goes on.
    Notification {
        /// The request that this is about.
        request: RequestId,
        /// The peer that answers.
        from: Peer,
        /// The state.
        message: Message,
    },
    /// The answer of one member of a group. The request goes on.
    GroupResponse {
        /// The request that this is about.
        request: RequestId,
        /// The member that answers.
        from: Peer,
        /// The answer of this member.
        message: Message,
    },
    /// A request is over as it was meant to be, without a response that is still to come.
    Over {
        /// The request that this is about.
        request: RequestId,
    },
    /// A request came to nothing.
    Failed {
        /// The request that this is about.
        request: RequestId,
        /// The reason for its end.
        reason: DropReason,
    },
    /// The host did not take a request: no part of it has left.
    Refused {
        /// The request that this is about.
        request: RequestId,
        /// The reason for the refusal.
        refusal: Rejected,
    },
    /// A UDP datagram came to a port of this application.
    Datagram {
        /// The port that the datagram came to.
        port: u16,
        /// The peer that sent it.
        from: Peer,
        /// What is in it.
        payload: Vec<u8>,
    },
    /// The node did not join a group.
    NotJoined {
        /// The address of the group.
        group: Address,
        /// The reason for the refusal.
        refusal: Rejected,
    },
    /// The load of the network changes: readings of a node have another period. An application whose events have a period
    /// takes it if they are readings of that node.
    Paced {
        /// The node whose readings they are; all nodes if unset.
        node: Option<Address>,
        /// The new mean time between two readings.
        period: Duration,
    },
    /// The time of [`Application::next_deadline`] has come.
    Deadline,
}

impl Input {
    /// The new period, if this input is about readings of the node with the address `of`.
    pub fn pace_of(&self, of: Address) -> Option<Duration> {
        match self {
            Self::Paced { node, period } if node.is_none_or(|node| node == of) => Some(*period),
            _ => None,
        }
    }
}

/// An action that an application requests. A test of an application reads them from the outbox of its [`HostHandle`].
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a request.
    Request {
        /// Its name in the answer.
        request: RequestId,
        /// The server.
        peer: Peer,
        /// Method, options and whole payload.
        message: RequestTemplate,
    },
    /// Send an unconfirmed request to a group (RFC 7252 s8.1).
    GroupRequest {
        /// Its name in the answers.
        request: RequestId,
        /// The group.
        group: Peer,
        /// Method, options and payload.
        message: RequestTemplate,
        /// How long answers are taken.
        wait: Duration,
    },
    /// Forget a request; an observation ends with the next notification (RFC 7641 s3.6).
    Cancel(RequestId),
    /// End an observation and tell its server (RFC 7641 s3.6).
    Deregister(RequestId),
    /// Answer a request of a peer.
    Respond {
        /// The request that is answered.
        exchange: Exchange,
        /// The answer.
        response: ResponseTemplate,
    },
    /// Leave a request of a peer without an answer.
    Decline(Exchange),
    /// The state of the resource at a path has changed: its observers are notified.
    Changed(String),
    /// Send a UDP datagram.
    Datagram {
        /// From this port.
        source_port: u16,
        /// The destination.
        peer: Peer,
        /// What is in it.
        payload: Vec<u8>,
    },
    /// Join a group.
    Join(Address),
    /// Leave a group.
    Leave(Address),
    /// Note something in the record of the run.
    Report(Report),
}

/// A fact that an application reports for the record of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// It performed a request of a peer.
    Executed,
    /// It gave out a value that another node is to receive, such as the payload of a datagram.
    Published {
        /// The place of the value among those of this node.
        number: u32,
    },
    /// It received a value that another node published.
    Received {
        /// The node that published it.
        from: Address,
        /// The place of the value among those of that node.
        number: u32,
    },
    /// It queried an entity.
    Queried,
    /// The query that it made last is over.
    QueryEnded {
        /// Members whose answers are in the result.
        answered: u16,
        /// Members that failed, as the result says.
        failed: u16,
        /// Whether the result is a success, which may lack members.
        is_success: bool,
    },
    /// It asked members of an entity with one request.
    MembersAsked,
    /// A member of an entity answered it.
    MemberAnswered,
}

/// The operations of a host that an application may use. The actions are done in their order when the application
/// returns.
#[derive(Debug)]
pub struct HostHandle<'a> {
    application: ApplicationId,
    address: Address,
    requests: &'a mut u64,
    actions: &'a mut Outbox<Action>,
}

impl<'a> HostHandle<'a> {
    /// A handle for the application with an index among those of the node that has `address`. `requests` counts the
    /// requests of the node, and `actions` takes what the application wants.
    pub const fn new(
        application: u16,
        address: Address,
        requests: &'a mut u64,
        actions: &'a mut Outbox<Action>,
    ) -> Self {
        Self { application: ApplicationId(application), address, requests, actions }
    }
    /// The global address of the node.
    pub const fn address(&self) -> Address {
        self.address
    }
    /// Sends a request, block-wise if its payload requires it. With Observe 0 it observes the resource.
    pub fn request(&mut self, peer: Peer, message: RequestTemplate) -> RequestId {
        *self.requests += 1;
        let request = RequestId { application: self.application, number: *self.requests };
        self.actions.push(Action::Request { request, peer, message });
        request
    }
    /// Sends a non-confirmable request to all members of a group. For as long as `wait`, each answer is an
    /// [`Input::GroupResponse`]; then comes [`Input::Over`].
    pub fn request_group(
        &mut self,
        group: Peer,
        message: RequestTemplate,
        wait: Duration,
    ) -> RequestId {
        *self.requests += 1;
        let request = RequestId { application: self.application, number: *self.requests };
        self.actions.push(Action::GroupRequest { request, group, message, wait });
        request
    }
    /// Forgets a request; the application receives nothing more about it. The request of another application is left
    /// alone.
    pub fn cancel(&mut self, request: RequestId) {
        if request.application == self.application {
            self.actions.push(Action::Cancel(request));
        }
    }
    /// Ends an observation and notifies its server. The request of another application is left alone.
    pub fn deregister(&mut self, request: RequestId) {
        if request.application == self.application {
            self.actions.push(Action::Deregister(request));
        }
    }
    /// Answers a request of a peer. A 2.05 response with Observe keeps the observation that its request asks for.
    pub fn respond(&mut self, exchange: Exchange, response: ResponseTemplate) {
        self.actions.push(Action::Respond { exchange, response });
    }
    /// Leaves a request of a peer without an answer.
    pub fn decline(&mut self, exchange: Exchange) {
        self.actions.push(Action::Decline(exchange));
    }
    /// Reports that the state of the resource at a path has changed: each different request of its observers arrives
    /// again as [`Input::Request`].
    pub fn changed(&mut self, path: &str) {
        self.actions.push(Action::Changed(path.into()));
    }
    /// Sends a UDP datagram.
    pub fn send_datagram(&mut self, source_port: u16, peer: Peer, payload: Vec<u8>) {
        self.actions.push(Action::Datagram { source_port, peer, payload });
    }
    /// Joins a group; if that is not possible, [`Input::NotJoined`] follows.
    pub fn join(&mut self, group: Address) {
        self.actions.push(Action::Join(group));
    }
    /// Leaves a group; nothing happens if the node is not in it. Memberships belong to the node, not to an application.
    pub fn leave(&mut self, group: Address) {
        self.actions.push(Action::Leave(group));
    }
    /// Records something for the run.
    pub fn report(&mut self, report: Report) {
        self.actions.push(Action::Report(report));
    }
}
