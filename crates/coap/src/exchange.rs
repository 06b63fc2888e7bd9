//! What goes into an exchange engine and what comes out: [`Endpoint`](crate::Endpoint) over datagrams,
//! [`Connections`](crate::Connections) over byte streams, and what stands between them and a host.

use alloc::vec::Vec;

use lowmesh_machine::{Handle, Rejected};
use lowmesh_units::Duration;
use lowmesh_wire::coap::Token;
use lowmesh_wire::coap::stream::Framing;

use crate::event::{self, RequestTemplate, ResponseTemplate};

/// Names a request of a peer within its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId(pub(crate) u64);

/// The numbers of exchanges, each used once.
#[derive(Debug)]
pub(crate) struct ExchangeIds(u64);

impl ExchangeIds {
    pub(crate) const fn new() -> Self {
        Self(0)
    }
    /// The number of one more exchange.
    pub(crate) const fn next(&mut self) -> ExchangeId {
        self.0 += 1;
        ExchangeId(self.0)
    }
}

/// What protects a request of a peer, and so says who sends it: with its address, the peer as an endpoint (RFC 7252 s1.2).
///
/// One address may be that of a proxy, and stand for many senders. Tables of what belongs to one sender have the
/// association in their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Association {
    /// Nothing above the transport.
    #[default]
    Open,
    /// The security context of this number, which the peer and this end share.
    Context(usize),
    /// The group of this number.
    Member {
        /// The number of the group.
        group: usize,
        /// The member that sends.
        id: Vec<u8>,
    },
}

/// The name of a message of this end, as the layer above gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// The application's name.
    Application(Handle),
    /// The number of a message that a host sends for its application: one request may take many.
    Host(u64),
    /// The number of a message that a layer between the host and its engine sends by itself.
    Layer(u64),
}

impl Name {
    /// No name, for what the engine sends by itself.
    pub const NONE: Self = Self::Application(Handle::NONE);
}

impl From<Handle> for Name {
    fn from(handle: Handle) -> Self {
        Self::Application(handle)
    }
}

/// An action or a report of an exchange engine.
pub type Output<P> = event::Output<P, ExchangeId, Name>;

/// An event that an exchange engine handles.
#[derive(Debug)]
pub enum Input<'a, P> {
    /// The layer above asks `peer`. Ends in exactly one of [`Output::Response`](event::Output::Response),
    /// [`Output::Failed`](event::Output::Failed) and [`Output::Over`](event::Output::Over), or never without
    /// [`Input::Cancel`] if it observes (RFC 7641).
    ///
    /// A GET or FETCH with Observe 0 brings [`Output::Notification`](event::Output::Notification)s for as long as the
    /// server keeps the observation. A request with No-Response (RFC 7967) ends in `Over` when no response came.
    Request {
        /// The peer that is asked.
        peer: P,
        /// The request.
        message: RequestTemplate,
        /// The name of the request.
        handle: Name,
    },
    /// As [`Input::Request`], for a layer that verifies responses before they count, as OSCORE does
    /// (RFC 8613 s8.4): each is an `Output::Response`, notifications too, and the request stays
    /// open and its timeouts go on until one is [accepted](Input::Accept), or until
    /// `Output::Failed`, `Output::Over` or [`Input::Cancel`].
    RequestVerified {
        /// The peer that is asked.
        peer: P,
        /// The request.
        message: RequestTemplate,
        /// The name of the request.
        handle: Name,
    },
    /// The latest response to an [`Input::RequestVerified`] is good.
    Accept {
        /// The name of the request.
        handle: Name,
        /// It is a notification, and more may follow: the request stays open. Else it is over.
        observes: bool,
    },
    /// The layer above wants to know whether `peer` is there: an Empty CON (RFC 7252 s4.3), or a Ping (RFC 8323 s5.4). Ends
    /// in `Output::Pong` or `Output::Failed`.
    Ping {
        /// The peer that is asked.
        peer: P,
        /// The name of the ping.
        handle: Name,
    },
    /// The layer above is no longer interested in what came under this name; nothing more will.
    Cancel {
        /// The name of the request, observation, notification or ping.
        handle: Name,
    },
    /// The layer above tells an observer about a change (RFC 7641 s4.2). A CON ends in
    /// `Output::Acknowledged` or `Output::Failed`; a NON may still be answered with RST, which
    /// is `Output::Failed` too.
    Notify {
        /// The observer.
        peer: P,
        /// The token of the request that registered it.
        token: Token,
        /// The notification, Observe option included.
        response: ResponseTemplate,
        /// CON or NON.
        confirmable: bool,
        /// The name of the notification.
        handle: Name,
    },
    /// The layer above leaves a request of a peer without response: a CON is acknowledged, a NON
    /// passes in silence.
    Decline {
        /// The name of the request.
        exchange: ExchangeId,
    },
    /// The layer above answers a request of a peer.
    Respond {
        /// The name of the request, from `Output::Request`.
        exchange: ExchangeId,
        /// The answer.
        response: ResponseTemplate,
        /// The name of the datagram that carries it.
        handle: Name,
    },
    /// A datagram came, or octets of a connection.
    Datagram {
        /// The peer that sent it.
        from: P,
        /// The octets that came.
        bytes: &'a [u8],
    },
    /// An input about groups, which only datagrams reach.
    Group(GroupInput<'a, P, Name>),
    /// An input about connections.
    Connection(ConnectionInput<P>),
    /// The network says that `peer` cannot be reached, or its connection has ended.
    Unreachable {
        /// The peer.
        peer: P,
    },
    /// The secure session with `peer` has ended, or another one has its place. The endpoint drops the messages,
    /// requests and observations of the old session (RFC 7252 s9.1.1, s9.1.2).
    SessionEnded {
        /// The peer.
        peer: P,
        /// The next message opens another session: requests that have not left wait for it, and observations are
        /// registered again through it.
        reopens: bool,
    },
    /// The time of [`lowmesh_machine::Machine::next_deadline`] has come.
    Deadline,
}

/// Which members answer a request to a group that is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// With the same message ID: those that the request has not reached yet.
    SameMessage,
    /// With a new message ID: all, since some answers may be lost.
    NewMessage,
}

/// An event about groups (RFC 7252 s8, RFC 10020).
#[derive(Debug)]
pub enum GroupInput<'a, P, H> {
    /// All members of a group are asked: an unconfirmed request by multicast, which leaves when no earlier request to the
    /// group is without any answer (NSTART). Each answer is an `Output::GroupResponse`; `wait` after it has left comes
    /// `Output::Over`. One with Observe 0 goes on with the notifications of all members, until [`Input::Cancel`]
    /// (RFC 10020 s3.7). A member has at most 8 responses, and a request has at most 1024 members, 256 of them of one
    /// source; what is more is dropped as `Discard::Overloaded`.
    Request {
        /// The group's address.
        group: P,
        /// The request, which always leaves as NON.
        message: RequestTemplate,
        /// How long answers are taken.
        wait: Duration,
        /// The name of the request.
        handle: H,
    },
    /// An open request to a group is sent once more, and its answers are taken for `wait` from now on, if that is longer
    /// (RFC 10020 s3.1.3).
    Repeat {
        /// The name of the request.
        handle: H,
        /// Who is to answer.
        repetition: Repetition,
        /// How long answers are taken.
        wait: Duration,
    },
    /// A datagram came that was sent to a group which this endpoint belongs to.
    Datagram {
        /// The peer that sent it.
        from: P,
        /// The octets that came.
        bytes: &'a [u8],
    },
}

/// An event about connections (RFC 8323).
#[derive(Debug)]
pub enum ConnectionInput<P> {
    /// A connection to `peer` is there; either end may have made it. Its octets come as
    /// `Input::Datagram`s, cut anywhere, or for WebSockets message by message; its end is
    /// `Input::Unreachable`.
    Connected {
        /// The connection's name.
        peer: P,
        /// How messages lie on it.
        framing: Framing,
    },
    /// The application wants a connection to end in order: what is open on it is finished first
    /// (RFC 8323 s5.5).
    Release {
        /// The connection's name.
        peer: P,
    },
}

/// What an engine over datagrams says to a [`ConnectionInput`].
pub(crate) const NO_CONNECTIONS: Rejected =
    Rejected::Unsupported { what: "connection", why: "an endpoint over datagrams has none" };

/// What an engine over connections says to a [`GroupInput`].
pub(crate) const NO_GROUPS: Rejected = Rejected::Unsupported {
    what: "multicast",
    why: "a connection has one peer: use an endpoint over datagrams",
};
