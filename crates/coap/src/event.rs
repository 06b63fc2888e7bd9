//! What goes into an endpoint and what comes out.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::DecodeError;
use lowmesh_wire::coap::stream::Framing;
use lowmesh_wire::coap::{
    Code, ContentFormat, HEADER_LEN, Kind, Message, MessageId, OptionNumber, Options, Token,
};

use crate::params::{BLOCK_MIN, BLOCK_OPTIONS_OVERHEAD};

/// Names one exchange within its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId(pub(crate) u64);

impl ExchangeId {
    /// Exchanges from here on ask for the state of an observed resource; a transport's are below.
    pub(crate) const REFRESH: u64 = 1 << 63;

    /// True if no peer asks, but a host that needs the next state of an observed resource.
    pub const fn is_refresh(self) -> bool {
        self.0 & Self::REFRESH != 0
    }
}

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
}

impl RequestTemplate {
    /// A confirmable request of `method` for `path`, without payload.
    pub fn new(method: Code, path: &str) -> Self {
        let mut options = Options::new();
        options.insert_path(path);
        Self { code: method, confirmable: true, options, payload: Vec::new(), token: None }
    }
    /// A confirmable GET for `path`.
    pub fn get(path: &str) -> Self {
        Self::new(Code::GET, path)
    }
    /// The same request, unconfirmed.
    pub fn non_confirmable(self) -> Self {
        Self { confirmable: false, ..self }
    }
    /// The same request with a payload.
    pub fn with_payload(self, payload: Vec<u8>) -> Self {
        Self { payload, ..self }
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

/// What can happen to an endpoint.
#[derive(Debug)]
pub enum Input<'a, P> {
    /// The application asks `peer`. Ends in exactly one of [`Output::Response`], [`Output::Failed`]
    /// and [`Output::Over`], or never without [`Input::Cancel`] if it observes (RFC 7641).
    ///
    /// A GET or FETCH with Observe 0 brings [`Output::Notification`]s for as long as the server
    /// keeps the observation. A request with No-Response (RFC 7967) ends in [`Output::Over`] when
    /// no response came.
    Request {
        /// Whom.
        peer: P,
        /// What.
        message: RequestTemplate,
        /// The application's name for it.
        handle: Handle,
    },
    /// As [`Input::Request`], for a layer that verifies responses before they count, as OSCORE does
    /// (RFC 8613 s8.4): each is an [`Output::Response`], notifications too, and the request stays
    /// open and its timeouts go on until one is [accepted](Input::Accept), or until
    /// [`Output::Failed`], [`Output::Over`] or [`Input::Cancel`]. A host does not take it.
    RequestVerified {
        /// Whom.
        peer: P,
        /// What.
        message: RequestTemplate,
        /// The application's name for it.
        handle: Handle,
    },
    /// The latest response to an [`Input::RequestVerified`] is good.
    Accept {
        /// Which request.
        handle: Handle,
        /// It is a notification, and more may follow: the request stays open. Else it is over.
        observes: bool,
    },
    /// The application asks all members of a group: an unconfirmed request by multicast (RFC 7252
    /// s8). Each answer is an [`Output::GroupResponse`]; after `wait` comes [`Output::Over`].
    RequestGroup {
        /// The group's address.
        group: P,
        /// What; always sent as NON.
        message: RequestTemplate,
        /// How long answers are taken.
        wait: Duration,
        /// The application's name for it.
        handle: Handle,
    },
    /// The application wants to know whether `peer` is there: an Empty CON (RFC 7252 s4.3). Ends in
    /// [`Output::Pong`] or [`Output::Failed`].
    Ping {
        /// Whom.
        peer: P,
        /// The application's name for it.
        handle: Handle,
    },
    /// The application is no longer interested in what came under this name; nothing more will.
    Cancel {
        /// Which request, observation, notification or ping.
        handle: Handle,
    },
    /// The application is no longer interested in an observation, and tells the server at once (RFC
    /// 7641 s3.6). Ends in [`Output::Response`] or [`Output::Failed`], or in [`Output::Over`] if there
    /// was nothing to tell. A host does it; below one it is a request with Observe 1 and the
    /// observation's token.
    Deregister {
        /// Which observation.
        handle: Handle,
    },
    /// The application tells an observer about a change (RFC 7641 s4.2). A CON ends in
    /// [`Output::Acknowledged`] or [`Output::Failed`]; a NON may still be answered with RST, which
    /// is [`Output::Failed`] too.
    Notify {
        /// The observer.
        peer: P,
        /// Of the request that registered it.
        token: Token,
        /// The notification, Observe option included.
        response: ResponseTemplate,
        /// CON or NON.
        confirmable: bool,
        /// The application's name for it.
        handle: Handle,
    },
    /// The application leaves a request of a peer without response: a CON is acknowledged, a NON
    /// passes in silence.
    Decline {
        /// Which request.
        exchange: ExchangeId,
    },
    /// The application answers a request of a peer.
    Respond {
        /// Which request: as [`Output::Request`] said.
        exchange: ExchangeId,
        /// The answer.
        response: ResponseTemplate,
        /// The application's name for the datagram that carries it.
        handle: Handle,
    },
    /// A connection to `peer` is there; either end may have made it (RFC 8323). Its octets come as
    /// [`Input::Datagram`]s, cut anywhere, or for WebSockets message by message; its end is
    /// [`Input::Unreachable`].
    Connected {
        /// The connection's name.
        peer: P,
        /// How messages lie on it.
        framing: Framing,
    },
    /// The application wants a connection to end in order: what is open on it is finished first
    /// (RFC 8323 s5.5).
    Release {
        /// Which.
        peer: P,
    },
    /// A datagram came.
    Datagram {
        /// From whom.
        from: P,
        /// Its payload.
        bytes: &'a [u8],
    },
    /// A datagram came that was sent to a group which this endpoint belongs to (RFC 7252 s8).
    GroupDatagram {
        /// From whom.
        from: P,
        /// Its payload.
        bytes: &'a [u8],
    },
    /// The network says that `peer` cannot be reached.
    Unreachable {
        /// Who.
        peer: P,
    },
    /// The time of [`lowmesh_machine::Machine::next_deadline`] has come.
    Deadline,
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

/// What an endpoint wants done, or has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// Send this datagram.
    Send {
        /// To whom.
        to: P,
        /// Its payload.
        bytes: Vec<u8>,
        /// The application's name for it; [`Handle::NONE`] for what the endpoint sends by itself.
        handle: Handle,
        /// 0 for the first copy, n for the n-th after it.
        copy: u8,
        /// What it carries.
        purpose: Purpose,
    },
    /// The first copy of a request or separate response leaves now, after its wait for the window.
    Started {
        /// Which.
        handle: Handle,
        /// The first timeout; for a NON request how long its response is waited for.
        rto: Duration,
        /// The time of the snapshot.
        at: Instant,
    },
    /// A peer asks; to be answered with [`Input::Respond`].
    Request {
        /// Names it in the answer.
        exchange: ExchangeId,
        /// Who asks.
        from: P,
        /// What.
        message: Message,
        /// It came by multicast: an answer is optional, and errors are not sent (RFC 7252 s8.2).
        multicast: bool,
    },
    /// The response to a request: the request is over, unless it is an [`Input::RequestVerified`].
    Response {
        /// Which request.
        handle: Handle,
        /// Who answers.
        from: P,
        /// The response.
        message: Message,
        /// From the first copy of the request to now.
        rtt: Duration,
        /// Copies of the request after the first.
        retransmissions: u8,
    },
    /// A response to a request that observes, which stays open (RFC 7641): the first one, or a newer
    /// state than the one before.
    Notification {
        /// Which request.
        handle: Handle,
        /// Who answers.
        from: P,
        /// The state.
        message: Message,
    },
    /// The answer of one member of a group; others may follow.
    GroupResponse {
        /// Which request.
        handle: Handle,
        /// Which member.
        from: P,
        /// Its answer.
        message: Message,
        /// From the request to now.
        rtt: Duration,
    },
    /// The peer of a ping is there.
    Pong {
        /// Which ping.
        handle: Handle,
        /// From its first copy to now.
        rtt: Duration,
        /// Copies after the first.
        retransmissions: u8,
    },
    /// A request is over as it was meant to be, and no response is outstanding: the wait for a
    /// group has passed, No-Response was obeyed, or an observation ended that had not begun.
    Over {
        /// Which request.
        handle: Handle,
    },
    /// An empty ACK came: for a request the response follows; a separate response is over.
    Acknowledged {
        /// Which message.
        handle: Handle,
        /// From its first copy to now.
        rtt: Duration,
        /// Copies after the first.
        retransmissions: u8,
    },
    /// A request or separate response is over without success.
    Failed {
        /// Which.
        handle: Handle,
        /// [`DropReason::GaveUp`], [`DropReason::Reset`], [`DropReason::QueueFull`],
        /// [`DropReason::NoRoute`] (the peer is unreachable) or [`DropReason::Malformed`] (the
        /// response has a critical option that nobody here knows); for a notification
        /// [`DropReason::Reset`] says that the observer has gone.
        reason: DropReason,
    },
    /// A connection is over: close it once everything is sent (RFC 8323 s5.5, s5.6).
    Close {
        /// Which.
        peer: P,
    },
    /// A datagram came to nothing.
    Discarded {
        /// From whom.
        from: P,
        /// Why.
        cause: Discard,
    },
}

/// Why a datagram came to nothing.
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

/// How often datagrams came to nothing, by cause, and records lost before their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// [`Discard::Malformed`].
    pub malformed: u64,
    /// [`Discard::Misplaced`].
    pub misplaced: u64,
    /// [`Discard::Duplicate`].
    pub duplicates: u64,
    /// [`Discard::Unmatched`].
    pub unmatched: u64,
    /// [`Discard::CriticalOption`].
    pub critical_options: u64,
    /// [`Discard::Overloaded`].
    pub overloaded: u64,
    /// [`Discard::Ping`].
    pub pings: u64,
    /// [`Discard::Stale`].
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
