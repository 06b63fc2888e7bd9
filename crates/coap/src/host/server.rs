//! A host's answers to the requests of peers.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Outbox, Rejected};
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Class, Code, Message, OptionNumber, Options};

use super::{Host, HostLimits, Transport};
use crate::blockwise::{
    Arrival, Assembled, Assemblies, Block, Exponent, Representations, RequestKey,
};
use crate::echo::Challenges;
use crate::event::{ExchangeId, Input, Output, ResponseTemplate};
use crate::observe::{
    DEREGISTER, End, Notification, NotificationId, ObservationId, REGISTER, Registry,
};
use crate::params::{DATAGRAM_OVERHEAD, INCOMING_MAX, MESSAGE_OVERHEAD};
use crate::resource::Wishes;

/// What is kept of a request while the application answers.
#[derive(Debug)]
struct Asked<P> {
    peer: P,
    wishes: Wishes,
    /// Method and options say which blocks belong together.
    code: Code,
    options: Options,
    /// The last block of its own body, which the response confirms.
    arrived: Option<Block>,
    /// The block of the response that is wanted.
    wanted: Option<Block>,
    /// The request, if it asks to be registered.
    observes: Option<Message>,
    /// Octets of the datagram.
    len: usize,
}

impl<P> Asked<P> {
    fn key(&self) -> RequestKey {
        RequestKey::from_parts(self.code, &self.options)
    }
}

/// Tables of a server.
#[derive(Debug)]
pub(super) struct Server<P> {
    asked: BTreeMap<ExchangeId, Asked<P>>,
    refreshes: BTreeMap<ExchangeId, ObservationId>,
    assemblies: Assemblies<P>,
    representations: Representations<P>,
    registry: Registry<P>,
    notifications: BTreeMap<Handle, NotificationId>,
    challenges: Challenges<P>,
    serial: u64,
}

impl<P: Ord + Copy> Server<P> {
    pub(super) const fn new(limits: &HostLimits) -> Self {
        Self {
            asked: BTreeMap::new(),
            refreshes: BTreeMap::new(),
            assemblies: Assemblies::new(limits.body_max, limits.assemblies_max),
            representations: Representations::new(limits.representations_max),
            registry: Registry::new(limits.observers_max, limits.observers_per_peer),
            notifications: BTreeMap::new(),
            challenges: Challenges::new(limits.echo_peers_max),
            serial: 0,
        }
    }
    pub(super) fn observers(&self) -> usize {
        self.registry.observers()
    }
    #[cfg(test)]
    pub(super) fn asked_len(&self) -> usize {
        self.asked.len()
    }
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.registry.next_deadline()
    }
    pub(super) fn on_unreachable(&mut self, peer: P) {
        self.registry.remove_peer(peer);
    }
    /// The application does not answer; true if the transport need not know.
    pub(super) fn forget(&mut self, exchange: ExchangeId) -> bool {
        self.asked.remove(&exchange);
        self.refreshes.remove(&exchange).is_some() || exchange.is_refresh()
    }
    fn say_body_max(&self, response: &mut ResponseTemplate) {
        // RFC 7959 s4: how long a body may be.
        response.options.set_uint(OptionNumber::SIZE1, self.assemblies.body_max() as u32);
    }
    /// A body in one message that is too long all the same.
    fn too_large(&self) -> ResponseTemplate {
        let mut response = ResponseTemplate::new(Code::REQUEST_ENTITY_TOO_LARGE);
        self.say_body_max(&mut response);
        response
    }
    /// Asks the application for the state of every observation of a path.
    pub(super) fn changed(&mut self, path: &str, outbox: &mut Outbox<Output<P>>) {
        let mut options = Options::new();
        options.insert_path(path);
        let path: Vec<&[u8]> = options.iter().values(OptionNumber::URI_PATH).collect();
        let observations = self.registry.on_path(&path);
        self.ask_for(observations, outbox);
    }
    /// The same for the observation that began with a request like this one.
    pub(super) fn request_changed(&mut self, request: &Message, outbox: &mut Outbox<Output<P>>) {
        let observation = self.registry.like(request);
        self.ask_for(observation, outbox);
    }
    /// The same for every observation.
    pub(super) fn all_changed(&mut self, outbox: &mut Outbox<Output<P>>) {
        let observations = self.registry.all();
        self.ask_for(observations, outbox);
    }
    fn ask_for(
        &mut self,
        observations: impl IntoIterator<Item = (ObservationId, P, Message)>,
        outbox: &mut Outbox<Output<P>>,
    ) {
        for (observation, from, message) in observations {
            // An application that leaves requests unanswered must not fill the memory.
            if self.refreshes.len() >= INCOMING_MAX {
                self.refreshes.pop_first();
            }
            self.serial += 1;
            let exchange = ExchangeId(ExchangeId::REFRESH | self.serial);
            self.refreshes.insert(exchange, observation);
            outbox.push(Output::Request { exchange, from, message, multicast: false });
        }
    }
}

impl<P: Ord + Copy, T: Transport<P>> Host<P, T> {
    /// A peer asks.
    pub(super) fn on_request(
        &mut self,
        exchange: ExchangeId,
        from: P,
        message: Message,
        multicast: bool,
        now: Instant,
    ) {
        let mut message = message;
        let len = message.encoded_len();
        if let Some(value) = message.options.get(OptionNumber::ECHO) {
            self.server.challenges.meet(from, value, now);
        }
        let observe = message.options.get_uint(OptionNumber::OBSERVE);
        let reads = matches!(message.code, Code::GET | Code::FETCH);
        if observe == Some(DEREGISTER) && reads {
            self.server.registry.remove(from, &message.token);
        }
        if message.payload.len() > self.server.assemblies.body_max() {
            return self.answer(exchange, self.server.too_large(), now);
        }
        let Some((arrived, wanted)) = self.blocks(from, &message) else {
            // RFC 7959 s2.2: 7 is reserved over UDP and is answered with 4.00.
            return self.answer(exchange, ResponseTemplate::new(Code::BAD_REQUEST), now);
        };
        let mut asked = Asked {
            peer: from,
            wishes: Wishes::of(&message),
            code: message.code,
            options: message.options.clone(),
            arrived,
            wanted,
            observes: None,
            len,
        };
        if let Some(block) = arrived {
            match self.assemble(&asked, block, &message, now) {
                Ok(body) => message.payload = body,
                Err(response) => return self.answer(exchange, response, now),
            }
            for own in [OptionNumber::BLOCK1, OptionNumber::SIZE1] {
                message.options.remove(own);
            }
        } else if let Some(block) = wanted.filter(|block| block.number > 0) {
            match self.later(&asked, block, now) {
                Some(response) => return self.answer(exchange, response, now),
                // RFC 7959 s2.4: a GET can be performed again for its later blocks, others not.
                None if !reads => {
                    let response = ResponseTemplate::new(Code::REQUEST_ENTITY_INCOMPLETE);
                    return self.answer(exchange, response, now);
                }
                None => {}
            }
        }
        if observe == Some(REGISTER) && reads {
            asked.observes = Some(message.clone());
        }
        // The transport forgets requests that stay without an answer; here the oldest go.
        if self.server.asked.len() >= self.limits.requests_max.max(1) {
            self.server.asked.pop_first();
        }
        self.server.asked.insert(exchange, asked);
        message.options.remove(OptionNumber::BLOCK2);
        self.outbox.push(Output::Request { exchange, from, message, multicast });
    }

    /// The block options of a request; `None` if one has no meaning on this transport.
    fn blocks(&self, from: P, message: &Message) -> Option<(Option<Block>, Option<Block>)> {
        let most = self.transport.block_limits(from).0;
        let read = |option| {
            let block = Block::read(message.options.iter(), option).ok()?;
            let bert = block.is_some_and(|block| block.exponent.is_bert());
            (!bert || most.is_bert()).then_some(block)
        };
        Some((read(OptionNumber::BLOCK1)?, read(OptionNumber::BLOCK2)?))
    }

    /// Takes a block of a request's body: the whole body, or what to answer meanwhile.
    fn assemble(
        &mut self,
        asked: &Asked<P>,
        block: Block,
        message: &Message,
        now: Instant,
    ) -> Result<Vec<u8>, ResponseTemplate> {
        let announced = message.options.get_uint(OptionNumber::SIZE1);
        let arrival = Arrival { block, payload: &message.payload, announced };
        let (code, more) = match self.server.assemblies.take(asked.peer, asked.key(), arrival, now)
        {
            Assembled::Whole(body) => return Ok(body),
            Assembled::Continue => (Code::CONTINUE, true),
            Assembled::Refused(code) => (code, false),
        };
        let mut response = ResponseTemplate::new(code);
        // RFC 7959 s2.3: the response repeats the number and says the size that is preferred.
        let exponent = block.exponent.min(self.preferred(asked.peer));
        Block { more, exponent, ..block }.write(&mut response.options, OptionNumber::BLOCK1);
        if code == Code::REQUEST_ENTITY_TOO_LARGE {
            self.server.say_body_max(&mut response);
        }
        Err(response)
    }

    /// A later block of a response that has begun.
    fn later(&mut self, asked: &Asked<P>, block: Block, now: Instant) -> Option<ResponseTemplate> {
        let place = (asked.peer, asked.key());
        let most = self.affordable(asked.peer, asked.len);
        self.server.representations.later(&place, block, most, now)
    }

    fn answer(&mut self, exchange: ExchangeId, response: ResponseTemplate, now: Instant) {
        let handle = Handle::NONE;
        // A request that has expired meanwhile needs no answer.
        let _expired = self.transport.handle(now, Input::Respond { exchange, response, handle });
    }

    /// The application answers.
    pub(super) fn respond(
        &mut self,
        exchange: ExchangeId,
        response: ResponseTemplate,
        handle: Handle,
        now: Instant,
    ) -> Result<(), Rejected> {
        if let Some(observation) = self.server.refreshes.remove(&exchange) {
            let told = self.server.registry.on_state(observation, response, now);
            self.notify(told, now);
            return Ok(());
        }
        let mut response = response;
        if let Some(asked) = self.server.asked.remove(&exchange) {
            asked.wishes.apply(&mut response);
            self.register(&asked, &mut response, now);
            response = self.fit(&asked, response, now);
        }
        self.transport.handle(now, Input::Respond { exchange, response, handle })
    }

    /// Registers an observer if the client asks for it and the application agrees.
    fn register(&mut self, asked: &Asked<P>, response: &mut ResponseTemplate, now: Instant) {
        if !response.options.remove(OptionNumber::OBSERVE) {
            return;
        }
        let Some(request) = &asked.observes else { return };
        // RFC 7641 s4.1: only a success registers.
        if response.code.class() != Class::Success {
            return;
        }
        let proven = self.trusts(asked.peer);
        let (peer, notifications) = (asked.peer, response.notifications);
        let place = self.server.registry.register(peer, request, notifications, proven, now);
        if let Some(sequence) = place {
            response.options.set_uint(OptionNumber::OBSERVE, sequence);
        }
    }

    /// Cuts a response to what may leave in answer to its request.
    fn fit(
        &mut self,
        asked: &Asked<P>,
        response: ResponseTemplate,
        now: Instant,
    ) -> ResponseTemplate {
        let (peer, arrived, wanted, len) = (asked.peer, asked.arrived, asked.wanted, asked.len);
        let most = self.affordable(peer, len);
        let full = self.preferred(peer);
        let mut response = if response.code.class() == Class::Success {
            if wanted.is_none() && response.payload.len() <= most.1 {
                response
            } else {
                let tables = &mut self.server.representations;
                tables.answer((peer, asked.key()), response, wanted, most, now)
            }
        } else {
            response
        };
        if most.0 < full && !self.trusts(peer) {
            let block = response.options.get_uint(OptionNumber::BLOCK2).is_some();
            let fits = self.bound(len).is_none_or(|bound| response.payload.len() <= bound);
            if !fits {
                // RFC 9175 s2.3: nothing but the challenge.
                response = ResponseTemplate::new(Code::UNAUTHORIZED);
            }
            if block || !fits {
                let value = self.server.challenges.challenge(peer, now, &mut self.rng);
                response.options.set(OptionNumber::ECHO, &value);
            }
        }
        if let Some(block) = arrived {
            // RFC 7959 s2.3: the final response confirms the last block.
            let exponent = block.exponent.min(full);
            Block { exponent, ..block }.write(&mut response.options, OptionNumber::BLOCK1);
        }
        response
    }

    fn trusts(&self, peer: P) -> bool {
        self.limits.amplification_max.is_none()
            || self.transport.proves_addresses()
            || self.server.challenges.is_proven(peer)
    }

    /// Octets of payload that an address which is not proven may get for a request of `len` octets.
    fn bound(&self, len: usize) -> Option<usize> {
        let most = self.limits.amplification_max? * (len + DATAGRAM_OVERHEAD);
        Some(most.saturating_sub(DATAGRAM_OVERHEAD + MESSAGE_OVERHEAD / 4))
    }

    /// The largest blocks for a peer, trusted or not.
    fn preferred(&self, peer: P) -> Exponent {
        self.limits.exponent.min(self.transport.block_limits(peer).0)
    }

    /// The largest blocks that may answer a request of `len` octets, and the room for payload.
    fn affordable(&self, peer: P, len: usize) -> (Exponent, usize) {
        let (preferred, room) = self.unbounded(peer);
        match self.bound(len).filter(|_| !self.trusts(peer)) {
            Some(bound) => (preferred.min(Exponent::fitting(bound)), room.min(bound)),
            None => (preferred, room),
        }
    }

    /// The largest blocks for a peer that is trusted, and the room for payload.
    fn unbounded(&self, peer: P) -> (Exponent, usize) {
        let preferred = self.preferred(peer);
        let room = self.transport.block_limits(peer).1;
        (preferred, if preferred.is_bert() { room } else { preferred.size() })
    }

    /// Sends notifications.
    fn notify(&mut self, told: Vec<Notification<P>>, now: Instant) {
        for Notification { id, peer, token, confirmable, key, block, response } in told {
            let handle = self.client.next();
            // To an address that is not proven a notification is no larger than the shortest
            // request deserves; the rest is there to be asked for.
            let most = self.affordable(peer, 0);
            let wanted = block.map(Block::from_value);
            let tables = &mut self.server.representations;
            let response = tables.answer((peer, key), response, wanted, most, now);
            self.server.remember(handle, id);
            let input = Input::Notify { peer, token, response, confirmable, handle };
            if self.transport.handle(now, input).is_err() {
                self.on_notification_failed(handle, DropReason::QueueFull, now);
            }
        }
    }

    /// True if `handle` is a notification's.
    pub(super) fn on_notification_acknowledged(&mut self, handle: Handle, now: Instant) -> bool {
        self.end_notification(handle, End::Delivered, now)
    }

    /// True if `handle` is a notification's.
    pub(super) fn on_notification_failed(
        &mut self,
        handle: Handle,
        reason: DropReason,
        now: Instant,
    ) -> bool {
        let end = if reason == DropReason::QueueFull { End::Deferred } else { End::Gone };
        self.end_notification(handle, end, now)
    }

    fn end_notification(&mut self, handle: Handle, end: End, now: Instant) -> bool {
        let Some(id) = self.server.notifications.remove(&handle) else { return false };
        if let (End::Delivered, Some(peer)) = (end, self.server.registry.peer_of(id)) {
            // The message ID of a CON is known to nobody but who received it.
            self.server.challenges.prove(peer, now);
        }
        let next = self.server.registry.on_end(id, end, now);
        self.notify(next.into_iter().collect(), now);
        true
    }

    /// Time has passed for observers that had to wait.
    pub(super) fn tell_waiting_observers(&mut self, now: Instant) {
        let told = self.server.registry.on_deadline(now);
        self.notify(told, now);
    }
}

impl<P> Server<P> {
    /// Keeps the way from a message to its notification; nothing ends an unconfirmed one, so the
    /// oldest go.
    fn remember(&mut self, handle: Handle, id: NotificationId) {
        if self.notifications.len() >= 4 * INCOMING_MAX {
            self.notifications.pop_first();
        }
        self.notifications.insert(handle, id);
    }
}
