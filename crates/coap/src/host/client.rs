//! A host's own requests: each is one transfer, whatever number of messages it takes.

mod parts;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Rejected};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Message, OptionNumber, Token};

use super::event::Output;
use super::exchange_layer::ExchangeLayer;
use super::{HostLimits, Transport};
use crate::PeerAddress;
use crate::blockwise::{Limits, Progress, Transfer, TransferError};
use crate::cache::{Cache, Lookup, is_understood, validating};
use crate::event::{Discard, Fault, RequestTemplate};
use crate::exchange::{GroupInput, Input, Name, Repetition};
use crate::observe::DEREGISTER;
use crate::rejection::{TOKEN_IN_USE, check_method, check_token};

/// What a transfer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The application's request.
    Request,
    /// A request to a group, whose first blocks come from its members during this time.
    Group(Duration),
    /// The end of an observation, whose answer is not read on.
    Deregistration,
    /// The rest of a notification.
    Notification,
    /// The whole state, after the rest of a notification has not come.
    Afresh,
    /// The rest of a group member's answer.
    Member,
    /// No transfer: a ping.
    Plain,
}

#[derive(Debug)]
struct Ask<P> {
    peer: P,
    /// The application's name.
    name: Handle,
    role: Role,
    transfer: Option<Transfer>,
    /// When its first message was sent; `None` while it waits for the window.
    started: Option<Instant>,
    retransmissions: u8,
    /// The token of the observation that the server keeps for it.
    observation: Option<Token>,
    /// The request without the tag that the cache has added.
    plain: Option<RequestTemplate>,
}

impl<P> Ask<P> {
    const fn new(peer: P, name: Handle, role: Role) -> Self {
        let (transfer, started, retransmissions) = (None, None, 0);
        let (observation, plain) = (None, None);
        Self { peer, name, role, transfer, started, retransmissions, observation, plain }
    }
}

/// All requests of a host that are not over.
#[derive(Debug)]
pub(super) struct Client<P> {
    asks: BTreeMap<Name, Ask<P>>,
    /// Requests that may be longer than what every peer takes, and wait until theirs says what it takes: before its CSM it is
    /// not known to take blocks (RFC 8323 s5.3.2), and one that takes the whole may know no outer blocks of OSCORE. The
    /// transport bounds their number, and the connection their time.
    waiting: Vec<(Name, RequestTemplate)>,
    /// Requests to groups whose wait has passed while answers of members still come in.
    over: Vec<Handle>,
    cache: Cache<P>,
}

impl<P: PeerAddress> Client<P> {
    /// A client that keeps so many octets of responses for requests to come.
    pub(super) fn new(cache_max: usize) -> Self {
        let (waiting, over) = (Vec::new(), Vec::new());
        Self { asks: BTreeMap::new(), waiting, over, cache: Cache::new(cache_max) }
    }
    fn open<T: Transport<P>>(&mut self, layer: &mut ExchangeLayer<P, T>, ask: Ask<P>) -> Name {
        let inner = layer.next_name();
        self.asks.insert(inner, ask);
        inner
    }
    /// The application's name for what the transport knows as `inner`.
    pub(super) fn name(&self, inner: Name) -> Handle {
        match self.asks.get(&inner) {
            Some(ask) => ask.name,
            None => match inner {
                Name::Application(handle) => handle,
                Name::Host(_) | Name::Layer(_) => Handle::NONE,
            },
        }
    }
    /// A message has left; returns the application's name for its request.
    pub(super) fn start(&mut self, inner: Name, at: Instant) -> Handle {
        if let Some(ask) = self.asks.get_mut(&inner) {
            ask.started.get_or_insert(at);
        }
        self.name(inner)
    }
    /// Forgets a request; returns the application's name.
    pub(super) fn close(&mut self, inner: Name) -> Handle {
        let name = self.name(inner);
        self.asks.remove(&inner);
        name
    }

    /// The application asks.
    pub(super) fn ask<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        peer: P,
        message: RequestTemplate,
        name: Handle,
        now: Instant,
    ) -> Result<(), Rejected> {
        if message.payload.len() > layer.limits.body_max {
            return Err(Rejected::TooLong {
                what: "request",
                why: "its body is longer than body_max",
            });
        }
        let (mut message, mut plain) = (message, None);
        match self.cache.lookup(&peer, &message, now) {
            Lookup::Fresh(message) => {
                let (handle, rtt, retransmissions) = (name, Duration::ZERO, 0);
                let from = peer;
                layer.outbox.push(Output::Response { handle, from, message, rtt, retransmissions });
                return Ok(());
            }
            Lookup::Stale(tag) => plain = validating(&mut message, &tag),
            Lookup::Missing => {}
        }
        let ask = Ask { plain, ..Ask::new(peer, name, Role::Request) };
        let inner = self.open(layer, ask);
        let sent = self.ask_now_or_later(layer, inner, message, now);
        self.keep_if_accepted(inner, sent)
    }

    /// Sends a request, or the first block of it, unless it waits for what its peer takes.
    fn ask_now_or_later<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        inner: Name,
        message: RequestTemplate,
        now: Instant,
    ) -> Result<(), Rejected> {
        let Some(peer) = self.asks.get(&inner).map(|ask| ask.peer) else { return Ok(()) };
        if self.holds_token(peer, message.token.as_ref()) {
            return Err(TOKEN_IN_USE);
        }
        let waits = layer.transport.awaits_capabilities(peer);
        let held = waits.then(|| message.clone());
        let (limits, tag) = (transfer_limits(layer, peer), layer.request_tag(&message));
        let octets = message.options.as_bytes().len() + message.payload.len();
        let transfer = Transfer::new(message, limits, &tag);
        if let Some(message) = held.filter(|_| transfer.is_cut() || octets > limits.payload_max) {
            check_method(message.code)?;
            message.token.as_ref().map_or(Ok(()), check_token)?;
            if self.waiting.len() >= layer.transport.requests_max() {
                self.end(layer, inner, (DropReason::QueueFull, None), now);
            } else {
                self.waiting.push((inner, message));
            }
            return Ok(());
        }
        if let Some(ask) = self.asks.get_mut(&inner) {
            ask.transfer = Some(transfer);
        }
        self.send_next(layer, inner, now)
    }
    /// Whether a request that waits for its peer has this token.
    fn holds_token(&self, peer: P, token: Option<&Token>) -> bool {
        let Some(token) = token else { return false };
        self.waiting.iter().any(|(inner, message)| {
            message.token.as_ref() == Some(token)
                && self.asks.get(inner).is_some_and(|ask| ask.peer == peer)
        })
    }

    /// Sends what waited for peers that have said what they take, or are gone; true if there was something.
    pub(super) fn send_waiting<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        now: Instant,
    ) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let asks = &self.asks;
        let waits = |(inner, _): &(Name, RequestTemplate)| {
            asks.get(inner).is_some_and(|ask| layer.transport.awaits_capabilities(ask.peer))
        };
        let ready: Vec<_>;
        (self.waiting, ready) = self.waiting.drain(..).partition(waits);
        let sends = !ready.is_empty();
        for (inner, message) in ready {
            let sent = self.ask_now_or_later(layer, inner, message, now);
            self.end_if_refused(layer, inner, sent, now);
        }
        sends
    }
    /// The connection of a peer is over, or another begins: what waited for it fails.
    pub(super) fn end_waiting<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        peer: P,
        reason: DropReason,
        now: Instant,
    ) {
        let asks = &self.asks;
        let of_peer = |(inner, _): &(Name, RequestTemplate)| {
            asks.get(inner).is_some_and(|ask| ask.peer == peer)
        };
        let ended: Vec<_>;
        (ended, self.waiting) = self.waiting.drain(..).partition(of_peer);
        for (inner, _) in ended {
            self.end(layer, inner, (reason, None), now);
        }
    }

    /// The application wants to know whether a peer is there.
    pub(super) fn ping<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        peer: P,
        name: Handle,
        now: Instant,
    ) -> Result<(), Rejected> {
        let inner = self.open(layer, Ask::new(peer, name, Role::Plain));
        let asked = layer.transport.handle(now, Input::Ping { peer, handle: inner });
        self.keep_if_accepted(inner, asked)
    }

    /// The application asks a group.
    pub(super) fn ask_group<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        group: P,
        message: RequestTemplate,
        wait: Duration,
        name: Handle,
        now: Instant,
    ) -> Result<(), Rejected> {
        // Without blocks of its own: the answers may have some.
        let transfer = Some(Transfer::new(message.clone(), transfer_limits(layer, group), &[]));
        let inner = self.open(layer, Ask { transfer, ..Ask::new(group, name, Role::Group(wait)) });
        let input = GroupInput::Request { group, message, wait, handle: inner };
        let asked = layer.transport.handle(now, Input::Group(input));
        self.keep_if_accepted(inner, asked)
    }

    /// The application repeats a request to a group.
    pub(super) fn repeat_group<T: Transport<P>>(
        &self,
        layer: &mut ExchangeLayer<P, T>,
        name: Handle,
        repetition: Repetition,
        wait: Duration,
        now: Instant,
    ) -> Result<(), Rejected> {
        let asks = |ask: &Ask<P>| ask.name == name && matches!(ask.role, Role::Group(_));
        let found = self.asks.iter().find(|(_, ask)| asks(ask)).map(|(inner, _)| *inner);
        let handle = found.unwrap_or(Name::Application(name));
        let input = GroupInput::Repeat { handle, repetition, wait };
        layer.transport.handle(now, Input::Group(input))
    }

    /// A request whose transport did not take it leaves no trace.
    fn keep_if_accepted(
        &mut self,
        inner: Name,
        asked: Result<(), Rejected>,
    ) -> Result<(), Rejected> {
        if asked.is_err() {
            self.close(inner);
        }
        asked
    }

    /// The application is no longer interested.
    pub(super) fn cancel<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        name: Handle,
        now: Instant,
    ) -> Result<(), Rejected> {
        let named = self.asks.iter().filter(|(_, ask)| ask.name == name);
        let inner: Vec<Name> = named.map(|(inner, _)| *inner).collect();
        self.over.retain(|one| *one != name);
        for handle in inner {
            self.asks.remove(&handle);
            layer.transport.handle(now, Input::Cancel { handle })?;
        }
        Ok(())
    }

    /// The application is no longer interested in an observation, and tells the server.
    pub(super) fn deregister<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        name: Handle,
        now: Instant,
    ) -> Result<(), Rejected> {
        let observes = |ask: &Ask<P>| ask.name == name && ask.observation.is_some();
        let found = self.asks.iter().find(|(_, ask)| observes(ask)).map(|(inner, _)| *inner);
        let ask = found.and_then(|inner| self.asks.remove(&inner));
        let Some(Ask { peer, role, transfer: Some(transfer), observation, .. }) = ask else {
            self.cancel(layer, name, now)?;
            layer.outbox.push(Output::Over { handle: name });
            return Ok(());
        };
        // The rest of a notification may still be on its way.
        self.cancel(layer, name, now)?;
        // RFC 7641 s3.6: the same request, ETag aside, with the observation's token and Observe 1.
        let mut message = transfer.whole_request().clone();
        message.options.set_uint(OptionNumber::OBSERVE, DEREGISTER);
        message.token = observation;
        if let Role::Group(wait) = role {
            // RFC 10020 s3.7: all members at once, with a request to the group.
            return self.ask_group(layer, peer, message, wait, name, now);
        }
        let inner = self.open(layer, Ask::new(peer, name, Role::Deregistration));
        let asked = layer.transport.handle(now, Input::Request { peer, message, handle: inner });
        self.keep_if_accepted(inner, asked)
    }

    /// Sends the next request of a transfer.
    fn send_next<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        inner: Name,
        now: Instant,
    ) -> Result<(), Rejected> {
        let Some(ask) = self.asks.get_mut(&inner) else { return Ok(()) };
        let Some(transfer) = &mut ask.transfer else { return Ok(()) };
        let peer = ask.peer;
        let (most, payload_max) = layer.transport.block_limits(peer);
        transfer.limit(most, payload_max);
        let message = transfer.request().map_err(|_| Rejected::TooLong {
            what: "request",
            why: "its body has more blocks than there are numbers for (RFC 7959 s2.2)",
        })?;
        layer.transport.handle(now, Input::Request { peer, message, handle: inner })
    }

    /// A response has come, of the whole or of a part.
    pub(super) fn on_response<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        inner: Name,
        from: P,
        message: Message,
        (rtt, retransmissions): (Duration, u8),
        now: Instant,
    ) {
        let Some(ask) = self.asks.get_mut(&inner) else { return };
        ask.retransmissions = ask.retransmissions.saturating_add(retransmissions);
        let Some(transfer) = &mut ask.transfer else {
            return self.deliver(layer, inner, from, message, rtt, now);
        };
        let progress = transfer.on_response(message);
        self.on_progress(layer, inner, from, progress, rtt, now);
    }

    fn on_progress<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        inner: Name,
        from: P,
        progress: Progress,
        rtt: Duration,
        now: Instant,
    ) {
        match progress {
            Progress::Ask => {
                let sent = self.send_next(layer, inner, now);
                self.end_if_refused(layer, inner, sent, now);
            }
            Progress::Done(message) => self.deliver(layer, inner, from, message, rtt, now),
            Progress::Failed(error) => {
                let (reason, fault) = told(error);
                self.end(layer, inner, (reason, Some(fault)), now);
            }
        }
    }

    /// The next message of a transfer could not be sent.
    fn end_if_refused<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        inner: Name,
        sent: Result<(), Rejected>,
        now: Instant,
    ) {
        match sent {
            Ok(()) => {}
            Err(Rejected::TooLong { .. }) => {
                self.end(layer, inner, (DropReason::TooLarge, Some(Fault::Narrow)), now);
            }
            Err(_) => self.end(layer, inner, (DropReason::QueueFull, None), now),
        }
    }

    /// A whole response is there.
    fn deliver<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        inner: Name,
        from: P,
        message: Message,
        rtt: Duration,
        now: Instant,
    ) {
        let Some(ask) = self.asks.remove(&inner) else { return };
        let request = ask.plain.as_ref().or(ask.transfer.as_ref().map(Transfer::whole_request));
        let message = match request.filter(|_| ask.role == Role::Request) {
            Some(request) => self.cache.take(&ask.peer, request, message, now),
            None => message,
        };
        let useless = |plain: &RequestTemplate| !is_understood(plain, &message);
        if ask.plain.as_ref().is_some_and(useless) {
            return self.ask_plainly(layer, inner, ask, now);
        }
        let Ask { name: handle, role, retransmissions, started, .. } = ask;
        let rtt = rtt.max(now.since(started.unwrap_or(now)));
        layer.outbox.push(match role {
            Role::Notification | Role::Afresh => Output::Notification { handle, from, message },
            Role::Member | Role::Group(_) => Output::GroupResponse { handle, from, message, rtt },
            Role::Request | Role::Deregistration | Role::Plain => {
                Output::Response { handle, from, message, rtt, retransmissions }
            }
        });
        self.finish_group(layer, handle);
    }

    /// Asks again without the tag of the cache, since the answer is about a tag that nobody has asked about.
    fn ask_plainly<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        inner: Name,
        ask: Ask<P>,
        now: Instant,
    ) {
        let limits = transfer_limits(layer, ask.peer);
        let transfer = ask.plain.map(|plain| {
            let tag = layer.request_tag(&plain);
            Transfer::new(plain, limits, &tag)
        });
        self.asks.insert(inner, Ask { transfer, plain: None, ..ask });
        if self.send_next(layer, inner, now).is_err() {
            self.end(layer, inner, (DropReason::QueueFull, None), now);
        }
    }

    /// A transfer has failed.
    fn end<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        inner: Name,
        (reason, fault): (DropReason, Option<Fault>),
        now: Instant,
    ) {
        let Some(Ask { name: handle, role, peer: from, transfer, .. }) = self.asks.remove(&inner)
        else {
            return;
        };
        match role {
            // The observation goes on. The server takes its state as told, so no other message would bring it.
            Role::Notification | Role::Afresh => {
                layer.outbox.push(Output::Missed { handle, from, reason, fault });
                if let Some(transfer) = transfer.filter(|_| role == Role::Notification) {
                    self.ask_afresh(layer, (from, handle), &transfer, now);
                }
            }
            // Other members may still answer.
            Role::Member => {
                layer.outbox.push(Output::Discarded { from, cause: Discard::Overloaded });
                self.finish_group(layer, handle);
            }
            Role::Request | Role::Group(_) | Role::Deregistration | Role::Plain => {
                layer.outbox.extend(fault.map(|fault| Output::Fault { handle, fault }));
                layer.outbox.push(Output::Failed { handle, reason });
            }
        }
    }

    /// Asks for the whole state of an observed resource, once for a notification.
    fn ask_afresh<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        (peer, name): (P, Handle),
        observation: &Transfer,
        now: Instant,
    ) {
        let mut message = observation.whole_request().clone();
        message.options.remove(OptionNumber::OBSERVE);
        message.token = None;
        let tag = layer.request_tag(&message);
        let transfer = Some(Transfer::new(message, transfer_limits(layer, peer), &tag));
        let started = Some(now);
        let ask = Ask { transfer, started, ..Ask::new(peer, name, Role::Afresh) };
        let inner = self.open(layer, ask);
        if self.send_next(layer, inner, now).is_err() {
            // It was told already that the state is missing.
            self.close(inner);
        }
    }

    /// A request has ended as it was meant to.
    pub(super) fn on_over<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        inner: Name,
    ) {
        let handle = self.close(inner);
        self.over.push(handle);
        self.finish_group(layer, handle);
    }

    /// Says that a request is over once nothing of it is on its way.
    fn finish_group<T: Transport<P>>(&mut self, layer: &mut ExchangeLayer<P, T>, handle: Handle) {
        let Some(place) = self.over.iter().position(|one| *one == handle) else { return };
        if !self.asks.values().any(|ask| ask.name == handle) {
            self.over.remove(place);
            layer.outbox.push(Output::Over { handle });
        }
    }

    /// A message has failed for good: one of a transfer, a ping or a response.
    pub(super) fn on_failed<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        inner: Name,
        reason: DropReason,
        now: Instant,
    ) {
        if self.asks.contains_key(&inner) {
            self.end(layer, inner, (reason, None), now);
        } else if let Name::Application(handle) = inner {
            layer.outbox.push(Output::Failed { handle, reason });
        }
    }
}

/// How a transfer with a peer is cut into blocks.
fn transfer_limits<P: PeerAddress, T: Transport<P>>(
    layer: &ExchangeLayer<P, T>,
    peer: P,
) -> Limits {
    let (most, payload_max) = layer.transport.block_limits(peer);
    let exponent = layer.limits.exponent.min(most);
    let HostLimits { body_max, negotiates, .. } = layer.limits;
    Limits { exponent, payload_max, body_max, negotiates }
}

/// How a transfer's failure is told.
const fn told(error: TransferError) -> (DropReason, Fault) {
    match error {
        TransferError::WrongBlock => (DropReason::Malformed, Fault::WrongBlock),
        TransferError::TooLarge => (DropReason::TooLarge, Fault::TooLong),
        TransferError::TooManyBlocks => (DropReason::TooLarge, Fault::Narrow),
        TransferError::KeepsChanging => (DropReason::GaveUp, Fault::KeepsChanging),
        TransferError::PartlyTaken => (DropReason::Malformed, Fault::PartlyTaken),
    }
}
