//! What exchange engines and the host above them have in common: templates of messages, outputs, and counters.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_machine::DropReason;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::DecodeError;
use lowmesh_wire::coap::{
    Code, ContentFormat, HEADER_LEN, Kind, Message, MessageId, OptionNumber, Options, Token,
};

use crate::params::{BLOCK_MIN, BLOCK_OPTIONS_OVERHEAD};

/// A request before it has a message ID and a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTemplate {
    /// The method.
    pub code: Code,
    /// CON (acknowledged, retransmitted) or NON.
    pub confirmable: bool,
    /// Uri-Path and all others.
    pub options: Options,
    /// The payload, if any.
    pub payload: Vec<u8>,
    /// The token to send it with; without one a free one is drawn. It takes the place of an
    /// observation with this token (RFC 7641 s3.3.1, s3.6), and is refused while another request
    /// has it.
    pub token: Option<Token>,
    /// Octets that the body of the response may have, if fewer than the host takes: a longer one fails with
    /// [`DropReason::TooLarge`], and no more blocks are requested.
    pub body_max: Option<usize>,
}

impl RequestTemplate {
    /// A confirmable request of `method` for `path`, without payload.
    pub fn new(method: Code, path: &str) -> Self {
        let mut options = Options::new();
        options.insert_path(path);
        let (payload, token, body_max) = (Vec::new(), None, None);
        Self { code: method, confirmable: true, options, payload, token, body_max }
    }
    /// A confirmable GET for `path`.
    pub fn get(path: &str) -> Self {
        Self::new(Code::GET, path)
    }
    /// The same request as a non-confirmable one.
    pub fn non_confirmable(self) -> Self {
        Self { confirmable: false, ..self }
    }
    /// The same request with a payload.
    pub fn with_payload(self, payload: Vec<u8>) -> Self {
        Self { payload, ..self }
    }
    /// The same request, whose response has a body of so many octets at most.
    pub fn with_body_max(self, octets: usize) -> Self {
        Self { body_max: Some(octets), ..self }
    }
    /// The same request with a token of the application's choice.
    pub fn with_token(self, token: Token) -> Self {
        Self { token: Some(token), ..self }
    }
}

/// The application's answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseTemplate {
    /// 2.xx, 4.xx or 5.xx.
    pub code: Code,
    /// Content-Format and others.
    pub options: Options,
    /// The payload, if any.
    pub payload: Vec<u8>,
    /// How its client is notified of changes, if the response registers it as an observer.
    pub notifications: Notifications,
}

/// How an observer is notified of changes (RFC 7641 s4.5). Over connections there is no difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notifications {
    /// CON if its request was, else NON.
    #[default]
    AsRequested,
    /// NON, whatever its request was. A CON is among them at least every 24 hours, and sooner as
    /// long as nothing has shown that the client is at its address.
    NonConfirmable,
}

impl ResponseTemplate {
    /// A response without options and payload.
    pub const fn new(code: Code) -> Self {
        let notifications = Notifications::AsRequested;
        Self { code, options: Options::new(), payload: Vec::new(), notifications }
    }
    /// RFC 7252 s5.9.3.4: 5.03 for want of room, with Max-Age for when to try again.
    pub fn busy() -> Self {
        let mut busy = Self::new(Code::SERVICE_UNAVAILABLE);
        busy.options.set_uint(OptionNumber::MAX_AGE, crate::params::BUSY_MAX_AGE_S);
        busy
    }
    /// RFC 9175 s2.3: 4.01 with an Echo option, whose value the host fills in. A client that returns
    /// the value has proven its address.
    pub fn challenge() -> Self {
        Self::new(Code::UNAUTHORIZED).with_option(OptionNumber::ECHO, &[])
    }
    /// The same response with a payload.
    pub fn with_payload(self, payload: Vec<u8>) -> Self {
        Self { payload, ..self }
    }
    /// The same response with one more option.
    pub fn with_option(mut self, number: OptionNumber, value: &[u8]) -> Self {
        self.options.insert(number, value);
        self
    }
    /// The same response with the format of its payload.
    pub fn with_format(mut self, format: ContentFormat) -> Self {
        self.options.insert_uint(OptionNumber::CONTENT_FORMAT, format.0.into());
        self
    }
    /// Octets of the datagram that carries it behind a token of `token_len` octets.
    pub(crate) fn encoded_len(&self, token_len: usize) -> usize {
        let marker = usize::from(!self.payload.is_empty());
        HEADER_LEN + token_len + self.options.as_bytes().len() + marker + self.payload.len()
    }
    /// Octets of the shortest datagram that carries it, or its first block, behind a token of `token_len`
    /// octets.
    pub(crate) fn shortest_len(&self, token_len: usize) -> usize {
        let whole = self.encoded_len(token_len);
        let first_block = whole - self.payload.len() + BLOCK_OPTIONS_OVERHEAD + BLOCK_MIN;
        whole.min(first_block)
    }
    pub(crate) fn into_message(self, kind: Kind, message_id: MessageId, token: Token) -> Message {
        let Self { code, options, payload, .. } = self;
        Message { kind, code, message_id, token, options, payload }
    }
}

/// What a datagram carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// A request.
    Request,
    /// A response, piggybacked or not.
    Response,
    /// A bare ACK or RST.
    Empty,
}

/// An action or a report of an exchange engine. `X` names requests of peers, and `H` messages of this end; see
/// [`exchange::Output`](crate::exchange::Output) and [`host::Output`](crate::host::Output).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P, X, H> {
    /// A datagram leaves, or a message on a connection.
    Send {
        /// The peer that gets it.
        to: P,
        /// The octets that leave.
        bytes: Vec<u8>,
        /// The name of the message; [`Handle::NONE`](lowmesh_machine::Handle::NONE) for what the machine sends by itself.
        handle: H,
        /// 0 for the first copy, n for the n-th after it.
        copy: u8,
        /// The kind of message.
        purpose: Purpose,
    },
    /// The first copy of a request or separate response leaves now, after its wait for the window.
    Started {
        /// The name of the message.
        handle: H,
        /// The first timeout; for a NON request the wait for its response.
        rto: Duration,
        /// The time at which it leaves.
        at: Instant,
    },
    /// A peer asks; to be answered with `Input::Respond`.
    Request {
        /// The name of the request, for the answer.
        exchange: X,
        /// The peer that asks.
        from: P,
        /// The request.
        message: Message,
        /// It came by multicast: an answer is optional, and errors are not sent (RFC 7252 s8.2).
        multicast: bool,
    },
    /// The response to a request: the request is over, unless the layer above verifies its responses.
    Response {
        /// The name of the request.
        handle: H,
        /// The peer that answers.
        from: P,
        /// The response.
        message: Message,
        /// The time from the first copy of the request to now.
        rtt: Duration,
        /// Copies of the request after the first.
        retransmissions: u8,
    },
    /// A response to a request that observes, which stays open (RFC 7641): the first one, or a newer
    /// state than the one before.
    Notification {
        /// The name of the request.
        handle: H,
        /// The peer that answers.
        from: P,
        /// The state.
        message: Message,
    },
    /// The answer of one member of a group; others may follow.
    GroupResponse {
        /// The name of the request.
        handle: H,
        /// The member that answers.
        from: P,
        /// The answer of this member.
        message: Message,
        /// The time from the request to now.
        rtt: Duration,
    },
    /// The peer of a ping is there.
    Pong {
        /// The name of the ping.
        handle: H,
        /// The time from its first copy to now.
        rtt: Duration,
        /// Copies after the first.
        retransmissions: u8,
    },
    /// The rest of a notification has not come. The observation goes on, and the host asks for the state afresh.
    Missed {
        /// The name of the observation.
        handle: H,
        /// The peer that is observed.
        from: P,
        /// Why the request for a later block has failed.
        reason: DropReason,
        /// What was wrong with the answer to it.
        fault: Option<Fault>,
    },
    /// A request is over as it was meant to be, and no response is outstanding: the wait for a
    /// group has passed, No-Response was obeyed, or an observation ended that had not begun.
    Over {
        /// The name of the request.
        handle: H,
    },
    /// An empty ACK came: for a request the response follows; a separate response is over.
    Acknowledged {
        /// The name of the message.
        handle: H,
        /// The time from its first copy to now.
        rtt: Duration,
        /// Copies after the first.
        retransmissions: u8,
    },
    /// The layer that protects messages has refused a request of a peer, and has answered it.
    Refused {
        /// The peer that asks.
        from: P,
        /// The request as it came.
        message: Message,
        /// The code of the answer.
        code: Code,
        /// Why, for people.
        why: String,
    },
    /// What was wrong with the answer to a request. Its [`Output::Failed`] follows.
    Fault {
        /// The name of the request.
        handle: H,
        /// What was wrong.
        fault: Fault,
    },
    /// A request or separate response is over without success.
    Failed {
        /// The name of the message.
        handle: H,
        /// [`DropReason::GaveUp`], [`DropReason::Reset`], [`DropReason::QueueFull`],
        /// [`DropReason::NoRoute`] (the peer is unreachable) or [`DropReason::Malformed`] (the
        /// response has a critical option that nobody here knows); for a notification
        /// [`DropReason::Reset`] says that the observer has gone.
        reason: DropReason,
    },
    /// A connection is over: close it once everything is sent (RFC 8323 s5.5, s5.6).
    Close {
        /// The connection.
        peer: P,
    },
    /// The secure session with a peer is over, because nothing comes from the peer any more: see
    /// [`Config::opens_sessions`](crate::Config). What is sent from here on opens the next session.
    SessionOver {
        /// The peer.
        peer: P,
    },
    /// A datagram came to nothing.
    Discarded {
        /// The peer that sent it.
        from: P,
        /// The cause.
        cause: Discard,
    },
}

/// Why a datagram was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// It does not decode.
    Malformed(DecodeError),
    /// It does not fit its type: an ACK with a request, a RST that is not empty, a reserved code.
    Misplaced,
    /// It came before; a CON got its answer again.
    Duplicate,
    /// A response, ACK or RST to nothing that is open here.
    Unmatched,
    /// It has a critical option that nobody here knows.
    CriticalOption(OptionNumber),
    /// No room for one more peer or request.
    Overloaded,
    /// A CoAP ping, answered with RST (RFC 7252 s4.3).
    Ping,
    /// A notification older than the one that is here already (RFC 7641 s3.4).
    Stale,
}

/// What a peer did that failed a request of ours, though it is there and answers. Its text follows the name of the peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The response has a critical option that is not known here (RFC 7252 s5.4.1).
    #[error("sent a response with the critical option {}, which is not known here", .0.0)]
    CriticalOption(OptionNumber),
    /// The location in the response has a segment `.` or `..` (RFC 7252 s5.10.7).
    #[error("sent a response with a segment . or .. in Location-Path")]
    DotSegment,
    /// A block option is not what was asked for, or the block has a wrong size.
    #[error("sent another block than the requested one, or one of a wrong length")]
    WrongBlock,
    /// The body of the response is longer than is taken here.
    #[error("sent a body that is longer than the limit here")]
    TooLong,
    /// The resource changed again and again while its body was read.
    #[error("changes the resource faster than its body can be read")]
    KeepsChanging,
    /// The server took the first block of the request for the whole.
    #[error(
        "took the first block for the whole body and reported success: it does not know Block1"
    )]
    PartlyTaken,
    /// The next message of the request is longer than the peer takes.
    #[error("takes no message of this length")]
    Narrow,
    /// The peer ended the connection with Abort (RFC 8323 s5.6), with this diagnostic payload.
    #[error("ended the connection with Abort{}", diagnostic(.0))]
    Aborted(String),
}

impl Fault {
    /// The fault of a response that is refused for this option.
    pub(crate) fn of_option(number: OptionNumber) -> Self {
        match number {
            OptionNumber::LOCATION_PATH => Self::DotSegment,
            _ => Self::CriticalOption(number),
        }
    }
}

/// A diagnostic payload behind a sentence. Control characters of a peer do not reach a terminal.
fn diagnostic(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!(": {}", text.replace(char::is_control, " "))
}

/// The number of discarded datagrams by cause, and of records that were lost too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Messages that did not decode: [`Discard::Malformed`].
    pub malformed: u64,
    /// Messages that did not fit their type: [`Discard::Misplaced`].
    pub misplaced: u64,
    /// Messages that came again: [`Discard::Duplicate`].
    pub duplicates: u64,
    /// Messages that answered nothing here: [`Discard::Unmatched`].
    pub unmatched: u64,
    /// Messages with an unknown critical option: [`Discard::CriticalOption`].
    pub critical_options: u64,
    /// Messages that found no room: [`Discard::Overloaded`].
    pub overloaded: u64,
    /// CoAP pings that were answered: [`Discard::Ping`].
    pub pings: u64,
    /// Notifications that came too late: [`Discard::Stale`].
    pub stale: u64,
    /// Messages forgotten before their lifetime was over: a late duplicate of them would be
    /// executed again.
    pub forgotten_early: u64,
    /// Messages that did not leave because their unproven address had no credit.
    pub withheld: u64,
}

impl core::ops::Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            malformed: self.malformed + other.malformed,
            misplaced: self.misplaced + other.misplaced,
            duplicates: self.duplicates + other.duplicates,
            unmatched: self.unmatched + other.unmatched,
            critical_options: self.critical_options + other.critical_options,
            overloaded: self.overloaded + other.overloaded,
            pings: self.pings + other.pings,
            stale: self.stale + other.stale,
            forgotten_early: self.forgotten_early + other.forgotten_early,
            withheld: self.withheld + other.withheld,
        }
    }
}

impl Counters {
    /// Nothing has happened.
    pub(crate) const fn new() -> Self {
        Self {
            malformed: 0,
            misplaced: 0,
            duplicates: 0,
            unmatched: 0,
            critical_options: 0,
            overloaded: 0,
            pings: 0,
            stale: 0,
            forgotten_early: 0,
            withheld: 0,
        }
    }
    pub(crate) fn count(&mut self, cause: Discard) {
        let counter = match cause {
            Discard::Malformed(_) => &mut self.malformed,
            Discard::Misplaced => &mut self.misplaced,
            Discard::Duplicate => &mut self.duplicates,
            Discard::Unmatched => &mut self.unmatched,
            Discard::CriticalOption(_) => &mut self.critical_options,
            Discard::Overloaded => &mut self.overloaded,
            Discard::Ping => &mut self.pings,
            Discard::Stale => &mut self.stale,
        };
        *counter += 1;
    }
}
