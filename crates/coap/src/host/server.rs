//! A host's answers to the requests of peers.

use alloc::boxed::Box;
use alloc::vec::Vec;

use lowmesh_machine::Rejected;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Class, Code, Message, OptionNumber, Options, Token};

use super::event::{IncomingId, Output, StateId};
use super::exchange_layer::ExchangeLayer;
use super::notifier::{Notifier, is_challenge};
use super::places::{Load, NoPlace, Place, Places};
use super::{HostLimits, Transport};
use crate::blockwise::{
    Arrival, Assembled, Assemblies, Block, BodyKey, Repeatable, Representations, RequestKey,
    protected_surplus,
};
use crate::echo::Challenges;
use crate::event::ResponseTemplate;
use crate::exchange::{Association, ExchangeId, Input, Name};
use crate::observe::{DEREGISTER, REGISTER};
use crate::ordered::Ordered;
use crate::params::{
    ACK_DELAY, BLOCK_OPTIONS_OVERHEAD, LATER_BLOCK_OVERHEAD, NOTIFICATION_SLACK,
    OBSERVED_REQUEST_MAX, REQUESTS_OCTETS_MAX,
};
use crate::resource::{EntityTag, Wishes};
use crate::{Lifetimes, PeerAddress};

/// What is kept of a request while the application answers.
#[derive(Debug)]
pub(super) struct Asked<P> {
    peer: P,
    /// What protects it, and with the peer says who asks.
    association: Association,
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
    /// The tag of its body.
    body: EntityTag,
    /// The application agrees to keep the observation.
    agreed: bool,
    /// Octets of its options and its body.
    octets: usize,
    /// Octets of its token in a message.
    token_len: usize,
    /// The time at which it came.
    at: Instant,
    /// It came to a group.
    multicast: bool,
    /// Its place, if it takes the application time.
    place: Option<Place<P>>,
}

impl<P> Asked<P> {
    /// A request with its block options, Block1 and Block2.
    fn new(
        (peer, association): (P, Association),
        message: &Message,
        (arrived, wanted): (Option<Block>, Option<Block>),
        multicast: bool,
        at: Instant,
    ) -> Self {
        Self {
            peer,
            association,
            wishes: Wishes::of(message),
            code: message.code,
            options: message.options.clone(),
            arrived,
            wanted,
            observes: None,
            body: EntityTag::of(if reads(message.code) { &message.payload } else { &[] }),
            agreed: false,
            octets: 0,
            token_len: message.token.encoded_len(),
            at,
            multicast,
            place: None,
        }
    }
    fn key(&self) -> BodyKey {
        BodyKey::new(&self.association, &RequestKey::from_parts(self.code, &self.options))
    }
}

/// Whether a method reads, and changes nothing.
const fn reads(method: Code) -> bool {
    matches!(method, Code::GET | Code::FETCH)
}

/// Tables of a server.
#[derive(Debug)]
pub(super) struct Server<P> {
    /// The Block2 option of the application's latest response.
    latest_block: Option<Block>,
    /// EXCHANGE_LIFETIME, the widest of all peers.
    lifetime: Duration,
    /// Requests and changes that may have changed a resource.
    changes: u64,
    /// Boxed, since the table moves its entries.
    asked: Ordered<ExchangeId, Box<Asked<P>>>,
    places: Places<P>,
    assemblies: Assemblies<P>,
    challenges: Challenges,
    representations: Representations<P>,
    pub(super) notifier: Notifier<P>,
}

impl<P: PeerAddress> Server<P> {
    pub(super) fn new(limits: &HostLimits, lifetimes: Lifetimes) -> Self {
        let bodies = (limits.assemblies_max, limits.assemblies_per_source);
        let representations = (limits.representations_max, limits.representations_per_source);
        let mut server = Self {
            latest_block: None,
            lifetime: lifetimes.exchange,
            changes: 0,
            asked: Ordered::new(),
            places: Places::new(Load {
                requests: limits.requests_max,
                octets: REQUESTS_OCTETS_MAX,
            }),
            assemblies: Assemblies::new(limits.body_max, bodies.0, bodies.1),
            challenges: Challenges::new(),
            representations: Representations::new(representations.0, representations.1),
            notifier: Notifier::new(limits),
        };
        server.widen(lifetimes);
        server
    }
    /// Requests, and bodies between their blocks, are kept for at least so long.
    pub(super) fn widen(&mut self, lifetimes: Lifetimes) {
        self.lifetime = self.lifetime.max(lifetimes.exchange);
        self.assemblies.widen(self.lifetime);
        self.representations.widen(self.lifetime);
    }
    /// Octets of bodies: of unfinished requests, of responses that are kept for their later blocks, and of states that
    /// wait to be sent.
    pub(super) const fn body_octets(&self) -> usize {
        self.assemblies.octets()
            + self.representations.octets()
            + self.notifier.registry.state_octets()
    }
    pub(super) fn forget_bodies(&mut self) {
        self.assemblies.clear();
        self.representations.clear();
        self.notifier.registry.forget_states();
    }
    #[cfg(test)]
    pub(super) fn asked_len(&self) -> usize {
        self.asked.len()
    }
    /// A resource has changed: no repetition of a request is answered with an earlier state.
    pub(super) const fn on_change(&mut self) {
        self.changes += 1;
    }
    /// A peer has gone. Its requests leave if their answers can no longer be sent.
    pub(super) fn on_gone<T: Transport<P>>(&mut self, layer: &ExchangeLayer<P, T>, peer: P) {
        self.notifier.registry.remove_peer(peer);
        let awaits_response = |id| layer.transport.awaits_response(id);
        let own = self.asked.iter().filter(|(id, one)| one.peer == peer && !awaits_response(*id));
        for id in own.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.forget(id);
        }
    }
    /// The session or connection of a peer has ended. The sender of the next one may be another.
    pub(super) fn on_session_end<T: Transport<P>>(&mut self, layer: &ExchangeLayer<P, T>, peer: P) {
        // RFC 7252 s1.2, s9.1: the security association is part of an endpoint, so no body goes on in the next one.
        self.assemblies.forget_peer(peer);
        self.representations.forget_peer(peer);
        self.on_gone(layer, peer);
    }
    /// A request is answered, or will not be.
    pub(super) fn forget(&mut self, exchange: ExchangeId) -> Option<Box<Asked<P>>> {
        let mut asked = self.asked.remove(&exchange)?;
        if let Some(place) = asked.place.take() {
            self.places.leave(place);
        }
        Some(asked)
    }
    /// Keeps a request until it is answered. Old ones that can no longer be answered leave.
    fn remember(
        &mut self,
        exchange: ExchangeId,
        asked: Box<Asked<P>>,
        awaits_response: impl Fn(ExchangeId) -> bool,
    ) {
        // Datagrams forget a request after this time, connections wait for its answer.
        let is_old = |one: &Asked<P>| asked.at.since(one.at) > self.lifetime + ACK_DELAY;
        let old = self.asked.iter().take_while(|(_, one)| is_old(one)).map(|(id, _)| *id);
        let gone = old.filter(|id| !awaits_response(*id));
        for id in gone.collect::<Vec<_>>() {
            self.forget(id);
        }
        self.asked.insert(exchange, asked);
    }
    fn say_body_max(&self, response: &mut ResponseTemplate) {
        // RFC 7959 s4: how long a body may be.
        response.options.set_uint(OptionNumber::SIZE1, self.assemblies.body_max() as u32);
    }
    /// The answer to a body in one message that is longer than bodies may be.
    fn too_large(&self) -> ResponseTemplate {
        let mut response = ResponseTemplate::new(Code::REQUEST_ENTITY_TOO_LARGE);
        self.say_body_max(&mut response);
        response
    }

    /// A peer asks.
    pub(super) fn on_request<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        exchange: ExchangeId,
        from: P,
        message: Message,
        multicast: bool,
        now: Instant,
    ) {
        let mut message = message;
        let echo = message.options.get(OptionNumber::ECHO);
        let proves = echo.is_some_and(|value| self.challenges.meet(from, value, now));
        if proves {
            layer.transport.prove(from, now);
        }
        let observe = message.options.get_uint(OptionNumber::OBSERVE);
        let (reads, association) = (reads(message.code), layer.transport.association(exchange));
        if observe == Some(DEREGISTER) && reads {
            self.notifier.registry.deregister(from, &association, &message.token);
        }
        if message.payload.len() > self.assemblies.body_max() {
            return layer.answer(exchange, self.too_large(), now);
        }
        let Some((arrived, wanted)) = layer.blocks(from, &message) else {
            // RFC 7959 s2.2: 7 is reserved over UDP and is answered with 4.00.
            return layer.answer(exchange, ResponseTemplate::new(Code::BAD_REQUEST), now);
        };
        // RFC 10020 s3.8: a body in blocks has no meaning for a group.
        if multicast && arrived.is_some() {
            return layer.decline(exchange, now);
        }
        if multicast && layer.challenges_group(from, &message) {
            let challenge = self.challenge(layer, from, now);
            return layer.answer(exchange, challenge, now);
        }
        let mut asked =
            Box::new(Asked::new((from, association), &message, (arrived, wanted), multicast, now));
        if let Err(response) = self.take_block(layer, &asked, &mut message, now) {
            return layer.answer(exchange, response, now);
        }
        asked.octets = message.options.as_bytes().len() + message.payload.len();
        // A longer request is answered once and not observed: it would be kept as long as its observer.
        // RFC 7959 s3.4: a notification is a first block, so a request for a later one observes nothing.
        let first = wanted.is_none_or(|block| block.number == 0);
        if observe == Some(REGISTER) && reads && first && asked.octets <= OBSERVED_REQUEST_MAX {
            asked.observes = Some(message.clone());
        }
        let kept = (proves && reads && first && arrived.is_none())
            .then(|| self.kept_for(&asked, now))
            .flatten();
        let transport = &layer.transport;
        self.remember(exchange, asked, |id| transport.awaits_response(id));
        if let Some(response) = kept {
            // Without a free message ID the response is not sent; the client asks again.
            let _unsent = self.respond(layer, exchange, response, Name::NONE, now);
            return;
        }
        if !reads {
            self.on_change();
        }
        message.options.remove(OptionNumber::BLOCK2);
        let exchange = IncomingId::Peer(exchange);
        layer.outbox.push(Output::Request { exchange, from, message, multicast });
    }

    /// Puts the whole body of a request whose last block has come into its message. The error is the response to give at once:
    /// the body goes on, or a response that has begun does.
    fn take_block<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        asked: &Asked<P>,
        message: &mut Message,
        now: Instant,
    ) -> Result<(), ResponseTemplate> {
        if let Some(block) = asked.arrived {
            message.payload = self.assemble(layer, asked, block, message, now)?;
            for own in [OptionNumber::BLOCK1, OptionNumber::SIZE1] {
                message.options.remove(own);
            }
        } else if let Some(block) = asked.wanted.filter(|block| block.number > 0) {
            match self.later(layer, asked, block, now) {
                Some(response) => return Err(response),
                // RFC 7959 s2.4: a GET can be performed again for its later blocks, others not.
                None if !reads(asked.code) => {
                    return Err(ResponseTemplate::new(Code::REQUEST_ENTITY_INCOMPLETE));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Keeps what the application has answered to a request that gets a challenge instead. A challenge after the work
    /// always needs this: the repetition must not do the work twice (RFC 9175 s2.3).
    fn keep_for_repetition(&mut self, asked: &Asked<P>, whole: ResponseTemplate, now: Instant) {
        let of = Repeatable { body: asked.body, changes: self.changes };
        self.representations.keep_for_repetition((asked.peer, asked.key()), whole, of, now);
    }
    /// The response to a request that is repeated with the Echo value it has brought: the application has made it already.
    fn kept_for(&mut self, asked: &Asked<P>, now: Instant) -> Option<ResponseTemplate> {
        let of = Repeatable { body: asked.body, changes: self.changes };
        self.representations.take_repetition(&(asked.peer, asked.key()), of, now)
    }

    /// Takes a block of a request's body: the whole body, or what to answer meanwhile.
    fn assemble<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        asked: &Asked<P>,
        block: Block,
        message: &Message,
        now: Instant,
    ) -> Result<Vec<u8>, ResponseTemplate> {
        let announced = message.options.get_uint(OptionNumber::SIZE1);
        let arrival = Arrival { block, payload: &message.payload, announced };
        let place = (asked.peer, asked.key());
        let proven = layer.transport.is_proven(asked.peer);
        let (code, more) = match self.assemblies.take(place, arrival, proven, now) {
            Assembled::Whole(body) => return Ok(body),
            Assembled::Busy => return Err(ResponseTemplate::busy()),
            Assembled::Continue => (Code::CONTINUE, true),
            Assembled::Refused(code) => (code, false),
        };
        let mut response = ResponseTemplate::new(code);
        // RFC 7959 s2.3: the response repeats the number and says the size that is preferred.
        let exponent = block.exponent.min(layer.preferred(asked.peer));
        Block { more, exponent, ..block }.write(&mut response.options, OptionNumber::BLOCK1);
        if code == Code::REQUEST_ENTITY_TOO_LARGE {
            self.say_body_max(&mut response);
        }
        if more && !proven {
            // RFC 9175 s2.3: the client returns the value with its next block. To ask for a proof once the body is whole would
            // cost the client all blocks a second time.
            let value = self.challenges.challenge(asked.peer, now, &mut layer.rng);
            response.options.set(OptionNumber::ECHO, &value);
        }
        Err(response)
    }

    /// A later block of a response that has begun.
    fn later<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        asked: &Asked<P>,
        block: Block,
        now: Instant,
    ) -> Option<ResponseTemplate> {
        let place = (asked.peer, asked.key());
        let credit = layer.transport.credit(asked.peer, now);
        let most = layer.affordable(asked.peer, credit, LATER_BLOCK_OVERHEAD, 0);
        let response = self.representations.later(&place, block, most, now)?;
        Some(self.within_credit(layer, asked, response, credit, now))
    }

    /// The application answers.
    pub(super) fn respond<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        exchange: ExchangeId,
        response: ResponseTemplate,
        handle: Name,
        now: Instant,
    ) -> Result<(), Rejected> {
        self.latest_block = None;
        let mut response = response;
        if let Some(mut asked) = self.forget(exchange) {
            if is_challenge(&response) {
                response = self.challenge(layer, asked.peer, now);
            } else if asked.arrived.is_some() {
                self.assemblies.end(&(asked.peer, asked.key()));
            }
            asked.wishes.apply(&mut response);
            asked.agreed = response.options.remove(OptionNumber::OBSERVE);
            let token =
                if asked.agreed { self.register(layer, &asked, &mut response, now) } else { None };
            response = self.fit(layer, &asked, response, token.is_some(), now);
            let block = Block::read(response.options.iter(), OptionNumber::BLOCK2);
            self.latest_block = block.ok().flatten();
            let registration = token.map(|token| {
                let observes = response.options.get(OptionNumber::OBSERVE).is_some();
                let octets = response.encoded_len(asked.token_len) + asked.peer.overhead();
                (token, observes, octets)
            });
            let sent = layer.transport.handle(now, Input::Respond { exchange, response, handle });
            if let Some((token, observes, octets)) = registration {
                if observes && sent.is_ok() {
                    let left = layer.transport.set_aside(asked.peer, now);
                    // The answer to a group is paid for when it leaves, after its leisure.
                    let held = if asked.multicast { octets.min(left) } else { 0 };
                    if held > 0 {
                        layer.transport.grant(asked.peer, held, now);
                    }
                    self.notifier.registry.reserve(asked.peer, &token, left - held);
                } else {
                    // RFC 7641 s4.1: only a response with Observe registers.
                    self.notifier.registry.remove(asked.peer, &token);
                }
            }
            return sent;
        }
        layer.transport.handle(now, Input::Respond { exchange, response, handle })
    }

    /// The application gives the state of an observed resource.
    pub(super) fn on_state<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        question: StateId,
        state: ResponseTemplate,
        now: Instant,
    ) {
        self.notifier.on_state(layer, &mut self.representations, question, state, now);
    }

    /// Registers an observer, to which the application agrees, if the client asks for it; returns its token.
    fn register<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        asked: &Asked<P>,
        response: &mut ResponseTemplate,
        now: Instant,
    ) -> Option<Token> {
        let request = asked.observes.as_ref()?;
        // RFC 7641 s4.1: only a success registers.
        let success = response.code.class() == Class::Success;
        if !success {
            return None;
        }
        let transport = &layer.transport;
        let is_proven = |peer| transport.is_proven(peer);
        let registry = &mut self.notifier.registry;
        let Some(sequence) =
            registry.register((asked.peer, &asked.association), request, response, is_proven, now)
        else {
            // An observer that proves its address takes the place of one that does not.
            if registry.is_full_for(asked.peer) && !is_proven(asked.peer) {
                let challenge = self.challenge(layer, asked.peer, now);
                let mut whole = core::mem::replace(response, challenge);
                whole.options.set_uint(OptionNumber::OBSERVE, REGISTER);
                self.keep_for_repetition(asked, whole, now);
            }
            return None;
        };
        response.options.set_uint(OptionNumber::OBSERVE, sequence);
        if asked.multicast {
            self.notifier.registry.spread(asked.peer, &request.token);
        }
        Some(request.token.clone())
    }

    /// Cuts a response, which may register an observer, to what may leave in answer to its request.
    fn fit<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        asked: &Asked<P>,
        response: ResponseTemplate,
        registers: bool,
        now: Instant,
    ) -> ResponseTemplate {
        let (peer, wanted) = (asked.peer, asked.wanted);
        let credit = layer.transport.credit(peer, now);
        let overhead = response.encoded_len(asked.token_len) - response.payload.len();
        // An observer is notified of the next state within the same credit.
        let next = if registers { response.shortest_len(asked.token_len) } else { 0 };
        let reserved =
            if registers { asked.peer.overhead() + next + NOTIFICATION_SLACK } else { 0 };
        // What fits into a block needs no surplus.
        let surplus = if response.payload.len() > layer.preferred(peer).size() {
            protected_surplus(&response.options, overhead + BLOCK_OPTIONS_OVERHEAD)
        } else {
            0
        };
        let mut most = layer.affordable(peer, credit.saturating_sub(reserved), overhead, surplus);
        if most.1 == 0 {
            most = layer.affordable(peer, credit, overhead, surplus);
        }
        if let Some(block) = layer.limits.group_block.filter(|_| asked.multicast) {
            // RFC 10020 s3.6: a short first block, and the rest by unicast.
            most = (most.0.min(block), most.1.min(block.size()));
        }
        let mut response = response;
        // RFC 9175 s2.3: the client repeats a request that it gets an Echo value for. That must not perform it twice.
        let too_long = response.encoded_len(asked.token_len) > credit;
        let is_kept =
            too_long && reads(asked.code) && response.options.get(OptionNumber::ECHO).is_none();
        let whole = is_kept.then(|| response.clone());
        let cut = wanted.is_some() || response.payload.len() > most.1;
        if cut {
            let proven = layer.transport.is_proven(peer);
            let tables = &mut self.representations;
            response = tables.answer((peer, asked.key()), response, wanted, most, proven, now);
            let smaller = most.0 < layer.preferred(peer) && !proven;
            if smaller && response.options.get(OptionNumber::BLOCK2).is_some() {
                let value = self.challenges.challenge(peer, now, &mut layer.rng);
                response.options.set(OptionNumber::ECHO, &value);
            }
        }
        if let Some(block) = asked.arrived {
            // RFC 7959 s2.3: the final response confirms the last block.
            let exponent = block.exponent.min(layer.preferred(peer));
            Block { exponent, ..block }.write(&mut response.options, OptionNumber::BLOCK1);
        }
        let response = self.within_credit(layer, asked, response, credit, now);
        if let Some(mut whole) = whole
            && response.options.get(OptionNumber::ECHO).is_some()
        {
            if asked.agreed {
                whole.options.set_uint(OptionNumber::OBSERVE, REGISTER);
            }
            self.keep_for_repetition(asked, whole, now);
        }
        response
    }

    /// The response, if the credit of its client covers it; else nothing but the challenge.
    fn within_credit<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        asked: &Asked<P>,
        response: ResponseTemplate,
        credit: usize,
        now: Instant,
    ) -> ResponseTemplate {
        if response.encoded_len(asked.token_len) <= credit {
            return response;
        }
        // A method that has been performed is not repeated with a challenge.
        if !reads(asked.code) {
            return ResponseTemplate::new(response.code);
        }
        // RFC 9175 s2.3: 4.01 with the Echo option.
        self.challenge(layer, asked.peer, now)
    }

    fn challenge<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        peer: P,
        now: Instant,
    ) -> ResponseTemplate {
        let value = self.challenges.challenge(peer, now, &mut layer.rng);
        ResponseTemplate::new(Code::UNAUTHORIZED).with_option(OptionNumber::ECHO, &value)
    }

    /// Notifies observers in turn, while there is room.
    pub(super) fn notify_waiting<T: Transport<P>>(
        &mut self,
        layer: &mut ExchangeLayer<P, T>,
        now: Instant,
    ) {
        self.notifier.notify_waiting(layer, &mut self.representations, now);
    }
    /// The last block of a request that came in blocks, until the application has answered it.
    pub(super) fn request_block(&self, exchange: ExchangeId) -> Option<Block> {
        self.asked.get(&exchange)?.arrived
    }
    /// The block of the body that left with the application's latest response; `None` if the body left whole.
    pub(super) const fn response_block(&self) -> Option<Block> {
        self.latest_block
    }
    /// The application needs time for a request, which takes a place until it is answered. Without a
    /// place the error is the response to give at once instead: 5.03, or 4.01 with Echo where a proof of
    /// the client's address helps.
    pub(super) fn defer<T: Transport<P>>(
        &mut self,
        layer: &ExchangeLayer<P, T>,
        exchange: ExchangeId,
    ) -> Result<(), ResponseTemplate> {
        let alone = layer.transport.is_alone();
        // A question for a state needs no place: `Refreshes` bounds them.
        let Some(asked) = self.asked.get_mut(&exchange) else { return Ok(()) };
        let (peer, octets) = (asked.peer, asked.octets);
        let proven = layer.transport.is_proven(peer);
        match self.places.take(peer, octets, proven, alone) {
            Ok(place) => {
                asked.place = Some(place);
                Ok(())
            }
            Err(NoPlace::Busy) => Err(ResponseTemplate::busy()),
            Err(NoPlace::Unproven) => Err(ResponseTemplate::challenge()),
        }
    }
}
