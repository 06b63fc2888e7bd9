//! A transport whose requests and responses are protected with OSCORE (RFC 8613 s8) or Group OSCORE (RFC 10021 s7 and s8), for
//! a host to stand on.
//!
//! Each message of the host is protected by itself, so blocks and their numbers are inside (s4.1.3.4.1), and a
//! challenge with Echo (appendix B.1.2) is the host's to answer. What does not verify never gets up to the host.
//!
//! Requests to groups leave in group mode. Those to one peer leave in pairwise mode, for the member that is named or that has
//! answered from there, so the Echo of a member that was challenged and the rest of its blocks do (RFC 10021 s9). Without a
//! member they do not leave, unless [`ToOne::GroupMode`] says so.
//!
//! Blocks that a proxy makes of a protected message are put together before it is opened (`outer`, s4.1.3.4.2).

mod client;
mod forgeries;
mod members;
mod outer;
mod server;
mod volatile;

use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt;

use lowmesh_coap::blockwise::Exponent;
use lowmesh_coap::exchange::{Association, ExchangeId, GroupInput, Input, Name, Output};
use lowmesh_coap::params::{INCOMING_MAX, MESSAGE_OVERHEAD};
use lowmesh_coap::{
    Config, ConfigError, CongestionControl, ConnectionLimits, Connections, Endpoint, Host,
    HostLimits, Lifetimes, PeerAddress, Transport, host,
};
use lowmesh_machine::{Machine, Outbox, Rejected, earliest};
use lowmesh_units::{Duration, Instant, Rng};
use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::{Message, OptionNumber, Options, Token};

use crate::params::{OBSERVED_SLACK, OSCORE_OVERHEAD, PLAINTEXT_MAX};
use crate::{
    Header, Identity, Opened, Pending, ProtectError, Received, Refusal, ResponseError, group,
};
use client::{Asked, Response};
use forgeries::Forgeries;
use outer::OuterBlocks;
use server::{Answering, Secured};
pub use volatile::VolatileContexts;

/// Security contexts, found by number, that one or more transports share. The implementation decides where they are stored.
pub trait SecurityContexts: fmt::Debug {
    /// Protects a request.
    fn protect_request(
        &self,
        context: usize,
        request: &StreamMessage,
    ) -> Result<(StreamMessage, Pending), Failure>;
    /// Protects a request with the first context of RFC 8613 appendix B.2, for a server that does not know the one there
    /// is. Where contexts are derived once, that is the one there is.
    fn protect_first_request(
        &self,
        context: usize,
        request: &StreamMessage,
    ) -> Result<(StreamMessage, Pending), Failure> {
        self.protect_request(context, request)
    }
    /// Whether a context can be replaced by a new one (RFC 8613 appendix B.2).
    fn derives_many_times(&self, _context: usize) -> bool {
        false
    }
    /// Opens a response to one of some requests, the newest first.
    fn unprotect_response(
        &self,
        context: usize,
        requests: &mut [Pending],
        outer: &StreamMessage,
    ) -> Result<Result<Answer, ResponseError>, Failure>;
    /// Opens a request with the context that it names.
    fn unprotect_request(&self, outer: &StreamMessage) -> Result<Result<Opened, Refusal>, Failure>;
    /// Protects a response.
    fn protect_response(
        &self,
        context: usize,
        received: &mut Received,
        response: &StreamMessage,
    ) -> Result<StreamMessage, Failure>;
    /// The number of the group that a request is for; `None` if it is for a context of two, or unknown.
    fn group_of(&self, _outer: &StreamMessage) -> Option<usize> {
        None
    }
    /// Protects a request to all members of a group, or to one.
    fn protect_group_request(
        &self,
        _group: usize,
        _to: Option<Identity>,
        _request: &StreamMessage,
    ) -> Result<(StreamMessage, group::Pending), Failure> {
        Err(Failure::Closed)
    }
    /// Opens a response of a member of a group. `may_check` is asked before its signature is checked.
    fn unprotect_group_response(
        &self,
        _group: usize,
        _pending: &mut group::Pending,
        _outer: &StreamMessage,
        _may_check: group::MayCheck<'_>,
    ) -> Result<Result<group::Answer, ResponseError>, Failure> {
        Err(Failure::Closed)
    }
    /// Opens a request of a member of a group. `may_check` is asked before its signature is checked.
    fn unprotect_group_request(
        &self,
        _group: usize,
        _outer: &StreamMessage,
        _may_check: group::MayCheck<'_>,
    ) -> Result<Result<(StreamMessage, group::Received), Refusal>, Failure> {
        Err(Failure::Closed)
    }
    /// Protects a response to a member of a group.
    fn protect_group_response(
        &self,
        _group: usize,
        _received: &mut group::Received,
        _response: &StreamMessage,
    ) -> Result<StreamMessage, Failure> {
        Err(Failure::Closed)
    }
    /// Octets that protection adds to a message at most.
    fn overhead(&self) -> usize {
        OSCORE_OVERHEAD
    }
}

/// The result of unprotecting a response.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// The response as its server made it.
    Response(StreamMessage),
    /// The server has lost its context. A new one exists; send the request again.
    Again,
}

/// Why a message cannot be protected or unprotected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The message cannot be protected.
    Protect(ProtectError),
    /// There is no context of this number, or no longer.
    Closed,
    /// The state of the context cannot be stored.
    Storage,
}

/// What is protected, and with what.
#[derive(Clone, Debug)]
pub struct Protection<P, C> {
    /// The contexts.
    pub contexts: C,
    /// The contexts that protect own requests.
    pub own_requests: OwnRequests<P>,
    /// What becomes of requests of peers that are not protected.
    pub plain_requests: Plain,
}

/// The contexts that protect own requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnRequests<P> {
    /// Requests are not protected.
    Plain,
    /// The context of this number.
    Context(usize),
    /// Requests to each listed peer use its context; those to other peers are not protected.
    ByPeer(BTreeMap<P, usize>),
    /// The group of this number.
    Group(usize, ToOne),
}

/// How a request to one member of a group is protected.
///
/// In group mode each member takes it: who sends its octets to another member makes that member do what the request says,
/// so RFC 10021 s14.9 does not recommend this mode for a request to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToOne {
    /// In pairwise mode, for the member that has answered from the address. Without one it is [`NO_MEMBER`].
    #[default]
    Answered,
    /// In pairwise mode, for this member, whatever the address.
    Member(Identity),
    /// In group mode, until a member has answered from the address.
    GroupMode,
}

/// A request to one member of a group that nobody has named.
pub const NO_MEMBER: Rejected = Rejected::Invalid {
    what: "request",
    why: "it is for one member of a group, and which one is not known",
};

impl<P: PeerAddress> OwnRequests<P> {
    /// The context number for requests to a peer.
    fn context(&self, peer: P) -> Option<usize> {
        match self {
            Self::Plain | Self::Group(..) => None,
            Self::Context(context) => Some(*context),
            Self::ByPeer(contexts) => contexts.get(&peer).copied(),
        }
    }
    /// Whether requests to a peer are protected.
    fn protects(&self, peer: P) -> bool {
        matches!(self, Self::Group(..)) || self.context(peer).is_some()
    }
}

/// What becomes of requests that are not protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// The application gets them as any other.
    Served,
    /// They are answered with 4.01 (RFC 8613 s8.2).
    Refused,
}

/// A transport, and what is protected on it; without [`Protection`] it is the transport as it was.
#[derive(Debug)]
pub struct Protected<P, T, C> {
    transport: T,
    protection: Option<Protection<P, C>>,
    rng: Rng,
    /// Own requests that are protected and may still get responses.
    asked: BTreeMap<Name, Asked<P>>,
    /// Protected requests of peers that the application has not answered.
    answering: BTreeMap<ExchangeId, Answering<P>>,
    answering_max: usize,
    /// Observations that the application keeps, plain ones (`None`) too: whose is not known here is never told.
    observed: BTreeMap<(P, Token), Option<Secured>>,
    observed_max: usize,
    /// When observations are to be registered again.
    due: BTreeSet<(Instant, Name)>,
    /// The members of a group that have answered, by their latest addresses. The next one beyond [`GROUP_MEMBERS_MAX`] is
    /// asked in group mode.
    members: BTreeMap<P, Identity>,
    forgeries: Forgeries<P>,
    outer: OuterBlocks<P>,
    outbox: Outbox<Output<P>>,
}

/// A host over datagrams whose messages are protected.
pub type DatagramHost<P, C> = Host<P, Protected<P, Endpoint<P>, C>>;
/// A host over connections whose messages are protected.
pub type ConnectionHost<P, C> = Host<P, Protected<P, Connections<P>, C>>;

/// A host over datagrams that protects with OSCORE what `protection` says.
pub fn over_datagrams<P: PeerAddress, C: SecurityContexts>(
    config: Config,
    limits: HostLimits,
    protection: Option<Protection<P, C>>,
    rng: Rng,
) -> Result<DatagramHost<P, C>, ConfigError> {
    let (mut config, mut rng) = (config, rng);
    config.amplification_max = limits.amplification_max;
    config.extensions.extend(extensions(protection.is_some()));
    let endpoint = Endpoint::new(config, rng.fork())?;
    let protected = Protected::new(endpoint, protection, &limits, rng.fork());
    Ok(Host::new(protected, limits, rng))
}

/// A host over connections that protects with OSCORE what `protection` says.
pub fn over_connections<P: PeerAddress, C: SecurityContexts>(
    connections: ConnectionLimits,
    limits: HostLimits,
    protection: Option<Protection<P, C>>,
    rng: Rng,
) -> ConnectionHost<P, C> {
    let (mut connections, mut rng) = (connections, rng);
    connections.extensions.extend(extensions(protection.is_some()));
    let connections = Connections::new(connections, rng.fork());
    let protected = Protected::new(connections, protection, &limits, rng.fork());
    Host::new(protected, limits, rng)
}

/// The critical options that the transport has to let through. Without contexts OSCORE is unknown, and a request
/// with it is answered with 4.02.
pub fn extensions(protects: bool) -> impl Iterator<Item = OptionNumber> {
    host::EXTENSIONS.into_iter().chain(protects.then_some(OptionNumber::OSCORE))
}

impl<P: PeerAddress, T: Transport<P>, C: SecurityContexts> Protected<P, T, C> {
    /// A transport that understands [`extensions`], with the protection of its messages.
    pub fn new(
        transport: T,
        protection: Option<Protection<P, C>>,
        limits: &HostLimits,
        rng: Rng,
    ) -> Self {
        Self {
            outer: OuterBlocks::new(transport.lifetimes()),
            transport,
            protection,
            rng,
            asked: BTreeMap::new(),
            answering: BTreeMap::new(),
            answering_max: limits.requests_max.max(INCOMING_MAX),
            observed: BTreeMap::new(),
            observed_max: limits.observers_max + OBSERVED_SLACK,
            due: BTreeSet::new(),
            members: BTreeMap::new(),
            forgeries: Forgeries::default(),
            outbox: Outbox::new(),
        }
    }
    /// The transport, to look at.
    pub const fn transport(&self) -> &T {
        &self.transport
    }
    /// Observations that are kept, plain and protected.
    pub fn observations(&self) -> usize {
        self.observed.len()
    }
    /// Opens and seals what the transport gives out, until that is nothing.
    fn drain(&mut self, now: Instant) {
        while let Some(output) = self.transport.poll_output() {
            self.on_output(output, now);
        }
    }
    fn on_output(&mut self, output: Output<P>, now: Instant) {
        if outer::is_of_block(&output) {
            let seen = self.on_block_output(output, now);
            return seen.into_iter().for_each(|output| self.outbox.push(output));
        }
        match output {
            Output::Response { handle, from, message, rtt, retransmissions } => {
                let response = Response { handle, from, message, rtt, retransmissions };
                if let Some(whole) = self.whole_response(response, now) {
                    self.on_response(whole, now);
                }
            }
            Output::Request { exchange, from, message, multicast } => {
                self.on_request(exchange, from, message, multicast, now);
            }
            Output::GroupResponse { handle, from, message, rtt } => {
                self.on_group_response(handle, from, message, rtt, now);
            }
            // An observer stays until the host says that it has left.
            Output::Failed { handle, .. } | Output::Over { handle } => {
                self.forget_asked(handle, now);
                self.outbox.push(output);
            }
            Output::Close { peer } => {
                self.forget_peer(peer);
                self.outbox.push(output);
            }
            Output::SessionOver { peer } => {
                self.forget_peer(peer);
                self.enter_next_session(peer, now);
                self.outbox.push(output);
            }
            other => self.outbox.push(other),
        }
    }
    /// A peer has gone. Its requests leave if their answers can no longer be sent.
    fn forget_peer(&mut self, peer: P) {
        self.observed.retain(|(observer, _), _| *observer != peer);
        let transport = &self.transport;
        self.answering.retain(|id, one| one.peer() != peer || transport.awaits_response(*id));
    }
    fn input(&mut self, now: Instant, input: Input<'_, P>) -> Result<(), Rejected> {
        match input {
            Input::Request { peer, message, handle } => self.request(peer, message, handle, now),
            Input::Group(GroupInput::Request { group, message, wait, handle }) => {
                self.request_group(group, message, wait, handle, now)
            }
            Input::Respond { exchange, response, handle } => {
                self.respond(exchange, response, handle, now)
            }
            Input::Notify { peer, token, response, confirmable, handle } => {
                let notification = server::Telling { peer, token, confirmable, handle };
                self.notify(notification, response, now)
            }
            Input::Decline { exchange } => {
                self.answering.remove(&exchange);
                self.transport.handle(now, Input::Decline { exchange })
            }
            Input::Cancel { handle } => {
                self.forget_asked(handle, now);
                self.transport.handle(now, Input::Cancel { handle })
            }
            Input::Unreachable { peer } => {
                let result = self.transport.handle(now, Input::Unreachable { peer });
                self.forget_peer(peer);
                result
            }
            Input::SessionEnded { peer, reopens } => {
                let result = self.transport.handle(now, Input::SessionEnded { peer, reopens });
                self.forget_peer(peer);
                if reopens {
                    self.enter_next_session(peer, now);
                }
                result
            }
            Input::Deadline => {
                self.register_again(now);
                self.transport.handle(now, Input::Deadline)
            }
            other => self.transport.handle(now, other),
        }
    }
}

impl<P: PeerAddress, T: Transport<P>, C: SecurityContexts> Machine for Protected<P, T, C> {
    type Input<'a> = Input<'a, P>;
    type Output = Output<P>;

    fn handle(&mut self, now: Instant, input: Input<'_, P>) -> Result<(), Rejected> {
        if self.protection.is_none() {
            return self.transport.handle(now, input);
        }
        let result = self.input(now, input);
        self.drain(now);
        result
    }
    fn poll_output(&mut self) -> Option<Output<P>> {
        // What is not protected needs no queue of its own.
        if self.protection.is_none() { self.transport.poll_output() } else { self.outbox.pop() }
    }
    fn next_deadline(&self) -> Option<Instant> {
        let again = self.due.first().map(|(due, _)| *due);
        earliest(self.transport.next_deadline(), again)
    }
}

impl<P: PeerAddress, T: Transport<P>, C: SecurityContexts> Transport<P> for Protected<P, T, C> {
    fn block_limits(&self, peer: P) -> (Exponent, usize) {
        let (exponent, room) = self.transport.block_limits(peer);
        if self.protection.is_none() {
            return (exponent, room);
        }
        // Options are inside too.
        (exponent, room.min(PLAINTEXT_MAX - MESSAGE_OVERHEAD))
    }
    fn choose_congestion_control(
        &mut self,
        peer: P,
        chosen: Option<CongestionControl>,
        now: Instant,
    ) -> Result<(), ConfigError> {
        self.transport.choose_congestion_control(peer, chosen, now)?;
        self.outer.widen(self.transport.lifetimes());
        if self.protection.is_some() {
            self.drain(now);
        }
        Ok(())
    }
    fn requests_max(&self) -> usize {
        self.transport.requests_max()
    }
    fn awaits_capabilities(&self, peer: P) -> bool {
        self.transport.awaits_capabilities(peer)
    }
    fn takes_bert(&self, peer: P) -> bool {
        // What is protected may come from a connection, through a proxy; what is not is looked at here.
        self.protection.is_some() || self.transport.takes_bert(peer)
    }
    fn lifetimes(&self) -> Lifetimes {
        self.transport.lifetimes()
    }
    fn leisure(&self, octets: usize) -> Duration {
        let overhead = self.protection.as_ref().map_or(0, |one| one.contexts.overhead());
        self.transport.leisure(octets + overhead)
    }
    fn is_proven(&self, peer: P) -> bool {
        self.transport.is_proven(peer)
    }
    fn prove(&mut self, peer: P, now: Instant) {
        self.transport.prove(peer, now);
    }
    fn identity(&self, exchange: ExchangeId) -> Option<&[u8]> {
        self.answering.get(&exchange)?.kid()
    }
    fn association(&self, exchange: ExchangeId) -> Association {
        self.answering.get(&exchange).map_or(Association::Open, Answering::association)
    }
    fn awaits_response(&self, exchange: ExchangeId) -> bool {
        self.transport.awaits_response(exchange)
    }
    fn grant(&mut self, peer: P, octets: usize, now: Instant) {
        self.transport.grant(peer, octets, now);
    }
    fn set_aside(&mut self, peer: P, now: Instant) -> usize {
        self.transport.set_aside(peer, now)
    }
    fn keeps_observer(&self, peer: P, token: &Token) -> bool {
        self.protection.is_none() || self.observed.contains_key(&(peer, token.clone()))
    }
    fn credit(&self, peer: P, now: Instant) -> usize {
        let credit = self.transport.credit(peer, now);
        let overhead = self.protection.as_ref().map_or(0, |one| one.contexts.overhead());
        if credit == usize::MAX { credit } else { credit.saturating_sub(overhead) }
    }
    fn has_room(&self) -> bool {
        self.transport.has_room()
    }
    fn set_room(&mut self, octets: usize) {
        self.transport.set_room(octets);
    }
    fn room_at(&self, peer: P, now: Instant) -> Option<Instant> {
        self.transport.room_at(peer, now)
    }
    fn is_alone(&self) -> bool {
        self.transport.is_alone()
    }
    fn on_observer_left(&mut self, peer: P, token: &Token) {
        self.observed.remove(&(peer, token.clone()));
    }
}

/// Opens a response with the first of some `requests` that it answers; a response that answers none is forged.
pub fn unprotect_with_any<E>(
    requests: &mut [Pending],
    mut unprotect: impl FnMut(&mut Pending) -> Result<Result<Answer, ResponseError>, E>,
) -> Result<Result<Answer, ResponseError>, E> {
    let mut result = Err(ResponseError::Forged);
    for pending in requests {
        result = unprotect(pending)?;
        if result != Err(ResponseError::Forged) {
            break;
        }
    }
    Ok(result)
}

/// What was inside, with the type and the message ID of the outside.
fn inside(outer: &Message, inner: StreamMessage) -> Message {
    let StreamMessage { code, token, options, payload } = inner;
    Message { kind: outer.kind, message_id: outer.message_id, code, token, options, payload }
}

/// Whether a message is protected in group mode.
fn is_of_group(message: &Message) -> bool {
    let value = message.options.get(OptionNumber::OSCORE);
    value.and_then(|value| Header::parse(value).ok()).is_some_and(|header| header.group)
}

fn is_protected(options: &Options) -> bool {
    options.get(OptionNumber::OSCORE).is_some()
}

#[cfg(test)]
mod tests;
