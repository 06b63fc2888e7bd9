//! Exchanges, own and of peers: what state each is in and what that state holds.

use alloc::vec::Vec;

use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Code, HEADER_LEN, Kind, MessageId, Options, Token};

use crate::event::{Purpose, ResponseTemplate};
use crate::exchange::Name;
use crate::no_response::{Suppression, Unwanted};
use crate::observe::{Place, registers};

/// A message that this endpoint wants to get through: a request, or a separate response.
#[derive(Debug)]
pub(crate) struct Outgoing<P> {
    pub(crate) peer: P,
    pub(crate) handle: Name,
    pub(crate) token: Token,
    pub(crate) kind: Kind,
    pub(crate) role: Role,
    pub(crate) expects: Expects,
    /// What comes counts when the layer above has accepted it.
    pub(crate) verified: bool,
    /// A notification has come for it, in this session if there is one.
    pub(crate) registered: bool,
    /// The datagram; its message ID is written when it first leaves.
    pub(crate) bytes: Vec<u8>,
    pub(crate) phase: Phase,
}

impl<P> Outgoing<P> {
    /// The message ID under which it has left.
    pub(crate) fn message_id(&self) -> MessageId {
        MessageId(u16::from_be_bytes([self.bytes[2], self.bytes[3]]))
    }
    /// Writes another message ID for the next copy.
    pub(crate) fn renumber(&mut self, message_id: MessageId) {
        self.bytes[2..HEADER_LEN].copy_from_slice(&message_id.0.to_be_bytes());
    }
}

/// What a message of one's own is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A request.
    Request,
    /// An Empty CON, which wants a RST (RFC 7252 s4.3).
    Ping,
    /// The response to a request that has been acknowledged (RFC 7252 s5.2.2).
    Separate,
    /// A notification (RFC 7641 s4.2).
    Notification,
}

impl Role {
    /// What its datagram carries.
    pub(crate) const fn purpose(self) -> Purpose {
        match self {
            Self::Request => Purpose::Request,
            Self::Ping => Purpose::Empty,
            Self::Separate | Self::Notification => Purpose::Response,
        }
    }
}

/// How many responses a message of one's own is to bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expects {
    /// One; or, to a separate response or a ping, what ends it.
    One,
    /// One unless No-Response keeps it away (RFC 7967).
    Perhaps,
    /// None: No-Response keeps all away.
    Nothing,
    /// One after the other, while the server keeps the observation (RFC 7641): the place of the
    /// newest in their order, once there is one.
    Notifications(Option<Place>),
    /// One or more from each member of a group (RFC 7252 s8.2).
    Group {
        /// How long they are taken.
        wait: Duration,
        /// The members are observed (RFC 10020 s3.7): answers are taken for as long as the application wants.
        observes: bool,
    },
}

impl Expects {
    /// What a request's own options say about its responses.
    pub(crate) fn of(code: Code, options: &Options) -> Self {
        match Unwanted::from_options(options.iter()) {
            _ if registers(code, options) => Self::Notifications(None),
            Some(Unwanted::EVERYTHING) => Self::Nothing,
            Some(unwanted) if unwanted != Unwanted::NOTHING => Self::Perhaps,
            _ => Self::One,
        }
    }
}

/// ```text
///            window opens              ACK or RST; response; last timeout
///   Queued ---------------> Sent ------------------------------------------> over
///                            |  empty ACK of a request                        ^
///                            +--------------> Acknowledged -------------------+
///                                                          response; timeout
/// ```
/// (RFC 7252 s4.2 and s5.2.2). A request that observes goes from Sent or Acknowledged to Observing
/// with its first response, and from there to Queued when it has to be registered again (RFC 7641
/// s3.3.1).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    /// Waits for the window.
    Queued,
    /// On its way.
    Sent(Transmission),
    /// A request whose ACK was empty; its response comes by itself.
    Acknowledged(Transmission),
    /// A request with an observation.
    Observing {
        /// When to register again; `None` leaves that to the layer that protects the request.
        due: Option<Instant>,
    },
}

impl Phase {
    /// When the request left whose answer is awaited.
    pub(crate) const fn asked(&self) -> Option<Instant> {
        match self {
            Self::Sent(transmission) | Self::Acknowledged(transmission) => {
                Some(transmission.started)
            }
            Self::Queued | Self::Observing { .. } => None,
        }
    }
    /// The time since the first copy, and the copies after it. What comes to an observation answers
    /// no request of its own.
    pub(crate) fn effort(&self, now: Instant) -> (Duration, u8) {
        match self {
            Self::Sent(transmission) | Self::Acknowledged(transmission) => {
                (now.since(transmission.started), transmission.retransmissions)
            }
            Self::Queued | Self::Observing { .. } => (Duration::ZERO, 0),
        }
    }
}

/// The copies of one message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    /// When the first copy left.
    pub(crate) started: Instant,
    /// The first timeout.
    pub(crate) initial: Duration,
    /// The timeout that runs.
    pub(crate) rto: Duration,
    /// Copies after the first.
    pub(crate) retransmissions: u8,
    /// When something has to happen.
    pub(crate) due: Instant,
}

impl Transmission {
    /// When the latest copy left, while its timeout runs.
    pub(crate) fn copy_left_at(&self) -> Instant {
        self.due - self.rto
    }
}

/// A peer's request that the application has not answered yet.
#[derive(Debug)]
pub(crate) struct Incoming<P> {
    pub(crate) peer: P,
    pub(crate) message_id: MessageId,
    pub(crate) token: Token,
    pub(crate) answer: Answer,
    /// Classes of response that do not leave.
    pub(crate) unwanted: Suppression,
    /// When something has to happen.
    pub(crate) due: Instant,
}

/// How the response has to travel (RFC 7252 s5.2 and s8.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// In the ACK, if it is made before the ACK is due.
    Piggybacked,
    /// In a CON of its own: the ACK has left.
    Separate,
    /// In a NON: so was the request.
    NonConfirmable,
    /// In a NON after a random part of the leisure: the request came by multicast.
    Multicast {
        /// When it came.
        came: Instant,
    },
    /// The response to a multicast request, which waits for its time.
    Leisure(ResponseTemplate, Name),
}
