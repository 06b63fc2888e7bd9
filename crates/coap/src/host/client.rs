//! A host's own requests: each is one transfer, whatever number of messages it takes.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Rejected};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Message, OptionNumber, Token};

use super::{Host, Transport};
use crate::PeerAddress;
use crate::blockwise::{Limits, Progress, Transfer, TransferError};
use crate::cache::Lookup;
use crate::event::{Input, Output, RequestTemplate};
use crate::observe::DEREGISTER;

/// Handles from here on are the host's own; an application's are below.
const OWN: u64 = 1 << 63;

/// What a transfer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The application's request.
    Request,
    /// A request to a group, whose first blocks come from its members.
    Group,
    /// The end of an observation, whose answer is not read on.
    Deregistration,
    /// The rest of a notification.
    Notification,
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
}

impl<P> Ask<P> {
    const fn new(peer: P, name: Handle, role: Role) -> Self {
        let (transfer, started, retransmissions, observation) = (None, None, 0, None);
        Self { peer, name, role, transfer, started, retransmissions, observation }
    }
}

/// All requests of a host that are not over.
#[derive(Debug)]
pub(super) struct Client<P> {
    asks: BTreeMap<Handle, Ask<P>>,
    /// Requests to groups whose wait has passed while answers of members still come in.
    over: Vec<Handle>,
    serial: u64,
}

impl<P: Copy> Client<P> {
    pub(super) const fn new() -> Self {
        Self { asks: BTreeMap::new(), over: Vec::new(), serial: 0 }
    }
    /// A handle that no application and no other request has.
    pub(super) const fn next(&mut self) -> Handle {
        self.serial += 1;
        Handle(OWN | self.serial)
    }
    fn open(&mut self, ask: Ask<P>) -> Handle {
        let inner = self.next();
        self.asks.insert(inner, ask);
        inner
    }
    /// Something without a transfer, under the application's name.
    pub(super) fn open_plain(&mut self, peer: P, name: Handle) -> Handle {
        self.open(Ask::new(peer, name, Role::Plain))
    }
    /// The application's name for what the transport knows as `inner`.
    pub(super) fn name(&self, inner: Handle) -> Handle {
        match self.asks.get(&inner) {
            Some(ask) => ask.name,
            None if inner.0 & OWN == 0 => inner,
            None => Handle::NONE,
        }
    }
    /// A message has left; returns the application's name for its request.
    pub(super) fn start(&mut self, inner: Handle, at: Instant) -> Handle {
        if let Some(ask) = self.asks.get_mut(&inner) {
            ask.started.get_or_insert(at);
        }
        self.name(inner)
    }
    /// Forgets a request; returns the application's name.
    pub(super) fn close(&mut self, inner: Handle) -> Handle {
        let name = self.name(inner);
        self.asks.remove(&inner);
        name
    }
}

impl<P: PeerAddress, T: Transport<P>> Host<P, T> {
    fn transfer_limits(&self, peer: P) -> Limits {
        let (most, payload_max) = self.transport.block_limits(peer);
        let exponent = self.limits.exponent.min(most);
        Limits { exponent, payload_max, body_max: self.limits.body_max }
    }

    /// The application asks.
    pub(super) fn ask(
        &mut self,
        peer: P,
        message: RequestTemplate,
        name: Handle,
        now: Instant,
    ) -> Result<(), Rejected> {
        if message.payload.len() > self.limits.body_max {
            return Err(Rejected::TooLong {
                what: "request",
                why: "its body is longer than body_max",
            });
        }
        let mut message = message;
        match self.cache.lookup(&peer, &message, now) {
            Lookup::Fresh(message) => {
                let (handle, rtt, retransmissions) = (name, Duration::ZERO, 0);
                let from = peer;
                self.outbox.push(Output::Response { handle, from, message, rtt, retransmissions });
                return Ok(());
            }
            Lookup::Stale(tag) => message.options.insert(OptionNumber::ETAG, &tag),
            Lookup::Missing => {}
        }
        // RFC 9175 s3.4: bodies that are under way at the same time have different tags.
        let tag = (self.client.serial as u32).to_be_bytes();
        let transfer = Transfer::new(message, self.transfer_limits(peer), &tag);
        let ask = Ask::new(peer, name, Role::Request);
        let inner = self.client.open(Ask { transfer: Some(transfer), ..ask });
        let sent = self.send_next(inner, now);
        self.keep_if_accepted(inner, sent)
    }

    /// The application asks a group.
    pub(super) fn ask_group(
        &mut self,
        group: P,
        message: RequestTemplate,
        wait: Duration,
        name: Handle,
        now: Instant,
    ) -> Result<(), Rejected> {
        let transfer = Some(Transfer::new(message.clone(), self.transfer_limits(group), &[]));
        let inner = self.client.open(Ask { transfer, ..Ask::new(group, name, Role::Group) });
        let input = Input::RequestGroup { group, message, wait, handle: inner };
        let asked = self.transport.handle(now, input);
        self.keep_if_accepted(inner, asked)
    }

    /// The application is no longer interested.
    pub(super) fn cancel(&mut self, name: Handle, now: Instant) -> Result<(), Rejected> {
        let named = self.client.asks.iter().filter(|(_, ask)| ask.name == name);
        let inner: Vec<Handle> = named.map(|(inner, _)| *inner).collect();
        self.client.over.retain(|one| *one != name);
        for handle in inner {
            self.client.asks.remove(&handle);
            self.transport.handle(now, Input::Cancel { handle })?;
        }
        Ok(())
    }

    /// The application is no longer interested in an observation, and tells the server.
    pub(super) fn deregister(&mut self, name: Handle, now: Instant) -> Result<(), Rejected> {
        let observes = |ask: &Ask<P>| ask.name == name && ask.observation.is_some();
        let found = self.client.asks.iter().find(|(_, ask)| observes(ask)).map(|(inner, _)| *inner);
        let ask = found.and_then(|inner| self.client.asks.remove(&inner));
        let Some(Ask { peer, transfer: Some(transfer), observation, .. }) = ask else {
            self.cancel(name, now)?;
            self.outbox.push(Output::Over { handle: name });
            return Ok(());
        };
        // The rest of a notification may still be on its way.
        self.cancel(name, now)?;
        // RFC 7641 s3.6: the same request, ETag aside, with the observation's token and Observe 1.
        let mut message = transfer.whole_request().clone();
        message.options.set_uint(OptionNumber::OBSERVE, DEREGISTER);
        message.token = observation;
        let inner = self.client.open(Ask::new(peer, name, Role::Deregistration));
        let asked = self.transport.handle(now, Input::Request { peer, message, handle: inner });
        self.keep_if_accepted(inner, asked)
    }

    /// Sends the next request of a transfer.
    fn send_next(&mut self, inner: Handle, now: Instant) -> Result<(), Rejected> {
        let Some(ask) = self.client.asks.get_mut(&inner) else { return Ok(()) };
        let Some(transfer) = &mut ask.transfer else { return Ok(()) };
        let peer = ask.peer;
        let message = transfer.request().map_err(|_| Rejected::TooLong {
            what: "request",
            why: "its body has more blocks than there are numbers for (RFC 7959 s2.2)",
        })?;
        self.transport.handle(now, Input::Request { peer, message, handle: inner })
    }

    /// A response has come, of the whole or of a part.
    pub(super) fn on_response(
        &mut self,
        inner: Handle,
        from: P,
        message: Message,
        (rtt, retransmissions): (Duration, u8),
        now: Instant,
    ) {
        let Some(ask) = self.client.asks.get_mut(&inner) else { return };
        ask.retransmissions = ask.retransmissions.saturating_add(retransmissions);
        let Some(transfer) = &mut ask.transfer else {
            return self.deliver(inner, from, message, rtt, now);
        };
        let progress = transfer.on_response(message);
        self.on_progress(inner, from, progress, rtt, now);
    }

    fn on_progress(
        &mut self,
        inner: Handle,
        from: P,
        progress: Progress,
        rtt: Duration,
        now: Instant,
    ) {
        match progress {
            Progress::Ask => {
                if self.send_next(inner, now).is_err() {
                    self.end(inner, DropReason::QueueFull);
                }
            }
            Progress::Done(message) => self.deliver(inner, from, message, rtt, now),
            Progress::Failed(error) => self.end(inner, reason(error)),
        }
    }

    /// A whole response is there.
    fn deliver(&mut self, inner: Handle, from: P, message: Message, rtt: Duration, now: Instant) {
        let Some(ask) = self.client.asks.remove(&inner) else { return };
        let Ask { name: handle, role, retransmissions, started, peer, transfer, .. } = ask;
        let rtt = rtt.max(now.since(started.unwrap_or(now)));
        let request = transfer.as_ref().map(Transfer::whole_request);
        let message = match request.filter(|_| role == Role::Request) {
            Some(request) => self.cache.take(&peer, request, message, now),
            None => message,
        };
        self.outbox.push(match role {
            Role::Notification => Output::Notification { handle, from, message },
            Role::Member | Role::Group => Output::GroupResponse { handle, from, message, rtt },
            Role::Request | Role::Deregistration | Role::Plain => {
                Output::Response { handle, from, message, rtt, retransmissions }
            }
        });
        self.finish_group(handle);
    }

    /// A transfer has failed.
    fn end(&mut self, inner: Handle, reason: DropReason) {
        let Some(Ask { name: handle, role, .. }) = self.client.asks.remove(&inner) else { return };
        match role {
            // The observation goes on, and other members may still answer.
            Role::Notification => {}
            Role::Member => self.finish_group(handle),
            Role::Request | Role::Group | Role::Deregistration | Role::Plain => {
                self.outbox.push(Output::Failed { handle, reason });
            }
        }
    }

    /// The state of an observed resource, or its first block.
    pub(super) fn on_notification(&mut self, inner: Handle, from: P, first: Message, now: Instant) {
        if let Some(ask) = self.client.asks.get_mut(&inner) {
            ask.observation = Some(first.token.clone());
        }
        // A newer state replaces what is still coming in of an older one.
        let name = self.client.name(inner);
        let older = self
            .client
            .asks
            .iter()
            .find(|(_, ask)| ask.name == name && ask.role == Role::Notification);
        if let Some(handle) = older.map(|(inner, _)| *inner) {
            self.client.asks.remove(&handle);
            // A request that is cancelled is not answered, so it cannot be refused.
            let _always_accepted = self.transport.handle(now, Input::Cancel { handle });
        }
        self.resume(inner, from, first, Role::Notification, Duration::ZERO, now);
    }

    /// The answer of a group's member, or its first block: the rest is asked for by unicast.
    pub(super) fn on_group_response(
        &mut self,
        inner: Handle,
        from: P,
        first: Message,
        rtt: Duration,
        now: Instant,
    ) {
        self.resume(inner, from, first, Role::Member, rtt, now);
    }

    /// Goes on from the first block of what belongs to an open request.
    fn resume(
        &mut self,
        inner: Handle,
        from: P,
        first: Message,
        role: Role,
        rtt: Duration,
        now: Instant,
    ) {
        let limits = self.transfer_limits(from);
        let Some(ask) = self.client.asks.get(&inner) else { return };
        let Some(request) = ask.transfer.as_ref().map(Transfer::whole_request) else { return };
        let (request, name) = (request.clone(), ask.name);
        let (transfer, progress) = Transfer::resume(request, limits, first);
        let started = Some(now);
        let part = Ask { transfer: Some(transfer), started, ..Ask::new(from, name, role) };
        let part = self.client.open(part);
        self.on_progress(part, from, progress, rtt, now);
    }

    /// A request has ended as it was meant to.
    pub(super) fn on_over(&mut self, inner: Handle) {
        let handle = self.client.close(inner);
        self.client.over.push(handle);
        self.finish_group(handle);
    }

    /// Says that a request is over once nothing of it is on its way.
    fn finish_group(&mut self, handle: Handle) {
        let Some(place) = self.client.over.iter().position(|one| *one == handle) else { return };
        if !self.client.asks.values().any(|ask| ask.name == handle) {
            self.client.over.remove(place);
            self.outbox.push(Output::Over { handle });
        }
    }

    /// A message has failed for good: one of a transfer, a ping, a response or a notification.
    pub(super) fn on_failed(&mut self, inner: Handle, reason: DropReason, now: Instant) {
        if self.on_notification_failed(inner, reason, now) {
            return;
        }
        if self.client.asks.contains_key(&inner) {
            self.end(inner, reason);
        } else if inner.0 & OWN == 0 {
            self.outbox.push(Output::Failed { handle: inner, reason });
        }
    }
}

/// How a transfer's failure is told.
const fn reason(error: TransferError) -> DropReason {
    match error {
        TransferError::WrongBlock => DropReason::Malformed,
        TransferError::TooLarge | TransferError::TooManyBlocks => DropReason::TooLarge,
        TransferError::KeepsChanging => DropReason::GaveUp,
    }
}
