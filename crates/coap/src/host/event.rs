//! What goes into a host and what comes out.

use lowmesh_machine::Handle;

use crate::event::{self, RequestTemplate, ResponseTemplate};
use crate::exchange::{ConnectionInput, ExchangeId, GroupInput};

/// Names a request that an application answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IncomingId {
    /// A peer asks.
    Peer(ExchangeId),
    /// The host asks for the state of an observed resource.
    State(StateId),
}

/// Names a question for the state of an observed resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub(super) u64);

impl IncomingId {
    /// True if no peer sent the request: the host needs the next state of an observed resource.
    pub const fn is_refresh(self) -> bool {
        matches!(self, Self::State(_))
    }
}

/// An action or a report of a host.
pub type Output<P> = event::Output<P, IncomingId, Handle>;

/// An event that a host handles.
#[derive(Debug)]
pub enum Input<'a, P> {
    /// The application asks `peer`. Ends in exactly one of [`Output::Response`](event::Output::Response),
    /// [`Output::Failed`](event::Output::Failed) and [`Output::Over`](event::Output::Over), or never without
    /// [`Input::Cancel`] or [`Input::Deregister`] if it observes (RFC 7641).
    ///
    /// A GET or FETCH with Observe 0 brings [`Output::Notification`](event::Output::Notification)s for as long as the
    /// server keeps the observation. A request with No-Response (RFC 7967) ends in `Over` when no response came.
    Request {
        /// The peer that is asked.
        peer: P,
        /// The request, with a body of any length.
        message: RequestTemplate,
        /// The application's name for it.
        handle: Handle,
    },
    /// The application wants to know whether `peer` is there: an Empty CON (RFC 7252 s4.3), or a Ping (RFC 8323 s5.4).
    /// Ends in `Output::Pong` or `Output::Failed`.
    Ping {
        /// The peer that is asked.
        peer: P,
        /// The application's name for it.
        handle: Handle,
    },
    /// The application is no longer interested in what came under this name; nothing more will.
    Cancel {
        /// The application's name of the request, observation or ping.
        handle: Handle,
    },
    /// The application is no longer interested in an observation, and tells the server at once (RFC
    /// 7641 s3.6). Ends in `Output::Response` or `Output::Failed`, or in `Output::Over` if there
    /// was nothing to tell.
    Deregister {
        /// The application's name of the observation.
        handle: Handle,
    },
    /// The application leaves a request without response: of a peer, a CON is acknowledged and a NON
    /// passes in silence.
    Decline {
        /// The name of the request.
        exchange: IncomingId,
    },
    /// The application answers a request.
    Respond {
        /// The name of the request, from `Output::Request`.
        exchange: IncomingId,
        /// The answer, with a body of any length.
        response: ResponseTemplate,
        /// The application's name for the datagram that carries it.
        handle: Handle,
    },
    /// A datagram came, or octets of a connection.
    Datagram {
        /// The peer that sent it.
        from: P,
        /// The octets that came.
        bytes: &'a [u8],
    },
    /// An input about groups, which only datagrams reach.
    Group(GroupInput<'a, P, Handle>),
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
