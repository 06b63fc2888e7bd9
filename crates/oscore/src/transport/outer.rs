//! Blocks that a proxy makes of protected messages (RFC 8613 s4.1.3.4.2): put together before a message is opened, and cut
//! behind its protection where a proxy asks for blocks.
//!
//! ```text
//!   client                      proxy                       server
//!     │ ── protected request ───► │ ── block 0, 1, ... ──────► │  Assemblies
//!     │                           │ ◄── 2.31 ... ───────────── │
//!     │ ◄── block 0 ───────────── │ ◄── protected response ─── │
//!     │ ── asks for block 1 ────► │                            │  Representations, if the proxy asks for blocks
//!     │  Gatherings               │
//! ```
//! These blocks are in the open, so a proxy may send blocks for ever: all that is kept here has bounds. The blocks inside
//! are the host's.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_coap::blockwise::{
    Arrival, Assembled, Assemblies, Block, BodyKey, Limits, Progress, Representations, RequestKey,
    Transfer,
};
use lowmesh_coap::echo::Challenges;
use lowmesh_coap::exchange::{Association, ExchangeId, Input, Name, Output};
use lowmesh_coap::params::BLOCK_OPTIONS_OVERHEAD;
use lowmesh_coap::{Lifetimes, PeerAddress, RequestTemplate, ResponseTemplate, Transport};
use lowmesh_machine::{DropReason, debug_assert_accepted};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Code, Message, OptionNumber};

use super::client::{Asked, Response};
use super::{Protected, SecurityContexts, is_protected};
use crate::params::{MAX_UNFRAGMENTED_SIZE, OUTER_BLOCKS_MAX, OUTER_BLOCKS_PER_SOURCE_MAX};

/// What is kept of messages whose blocks are on their way.
#[derive(Debug)]
pub(super) struct OuterBlocks<P> {
    assemblies: Assemblies<P>,
    representations: Representations<P>,
    /// Of the senders of blocks. Those of the host are inside of what is protected, and for its clients.
    challenges: Challenges,
    /// Responses that come in blocks, by the name of the request for the next block.
    gatherings: BTreeMap<Name, Gathering<P>>,
    serial: u64,
    /// How long a response may take from its first block to its last: EXCHANGE_LIFETIME.
    lifetime: Duration,
}

/// A response of which blocks are missing.
#[derive(Debug)]
struct Gathering<P> {
    /// The request that it answers.
    handle: Name,
    peer: P,
    transfer: Transfer,
    rtt: Duration,
    retransmissions: u8,
    began: Instant,
}

/// The block options outside of a request, which its response follows.
#[derive(Clone, Debug, Default)]
pub(super) struct Outside {
    arrived: Option<Block>,
    wanted: Option<Block>,
    key: Option<BodyKey>,
}

impl<P: PeerAddress> OuterBlocks<P> {
    pub(super) fn new(lifetimes: Lifetimes) -> Self {
        let (total, share) = (OUTER_BLOCKS_MAX, OUTER_BLOCKS_PER_SOURCE_MAX);
        let mut blocks = Self {
            assemblies: Assemblies::new(MAX_UNFRAGMENTED_SIZE, total, share),
            representations: Representations::new(total, share),
            challenges: Challenges::new(),
            gatherings: BTreeMap::new(),
            serial: 0,
            lifetime: lifetimes.exchange,
        };
        blocks.widen(lifetimes);
        blocks
    }
    /// Messages are kept for at least so long.
    pub(super) fn widen(&mut self, lifetimes: Lifetimes) {
        self.lifetime = self.lifetime.max(lifetimes.exchange);
        self.assemblies.widen(self.lifetime);
        self.representations.widen(self.lifetime);
    }
    /// Octets that are kept for peers that have asked, with what each message costs beside them.
    #[cfg(test)]
    pub(super) const fn octets(&self) -> usize {
        self.assemblies.octets() + self.representations.octets()
    }
    /// Whether a response may grow by `octets`.
    fn has_room(&self, peer: P, octets: usize) -> bool {
        let sum = |of: &dyn Fn(&Gathering<P>) -> bool| {
            let all = self.gatherings.values().filter(|one| of(one));
            all.map(|one| one.transfer.received()).sum::<usize>() + octets
        };
        sum(&|_| true) <= OUTER_BLOCKS_MAX
            && sum(&|one| one.peer.source() == peer.source()) <= OUTER_BLOCKS_PER_SOURCE_MAX
    }
    /// Nobody waits for the rest of a response to `handle` any more. Returns the request for its next block.
    pub(super) fn stop_gathering(&mut self, handle: Name) -> Option<Name> {
        let name = self.gatherings.iter().find(|(_, one)| one.handle == handle);
        let name = name.map(|(name, _)| *name)?;
        self.gatherings.remove(&name);
        Some(name)
    }
    /// A response as the peer is to get it.
    pub(super) fn follow(
        &mut self,
        outside: &Outside,
        peer: P,
        response: ResponseTemplate,
        transport: &impl Transport<P>,
        now: Instant,
    ) -> ResponseTemplate {
        let mut response = response;
        let (most, room) = transport.block_limits(peer);
        if let (Some(wanted), Some(key)) = (outside.wanted, &outside.key) {
            let (place, proven) = ((peer, key.clone()), transport.is_proven(peer));
            let tables = &mut self.representations;
            response = tables.answer(place, response, Some(wanted), (most, room), proven, now);
        }
        if let Some(block) = outside.arrived {
            // RFC 7959 s2.3: the final response confirms the last block.
            let exponent = block.exponent.min(most);
            Block { exponent, ..block }.write(&mut response.options, OptionNumber::BLOCK1);
        }
        response
    }
}

/// A block option that has a meaning on this transport.
fn read<P, T: Transport<P>>(
    transport: &T,
    from: P,
    message: &Message,
    option: OptionNumber,
) -> Result<Option<Block>, NoBlock> {
    let block = Block::read(message.options.iter(), option).map_err(|_| NoBlock)?;
    let bert = block.is_some_and(|block| block.exponent.is_bert());
    if bert && !transport.takes_bert(from) { Err(NoBlock) } else { Ok(block) }
}

/// A block option without a meaning.
struct NoBlock;

impl<P: PeerAddress, T: Transport<P>, C: SecurityContexts> Protected<P, T, C> {
    /// Whether a message in the open has block options that its transport can carry (RFC 7959 s2.2).
    pub(super) fn has_proper_blocks(&self, from: P, message: &Message) -> bool {
        let options = [OptionNumber::BLOCK1, OptionNumber::BLOCK2];
        options.iter().all(|option| read(&self.transport, from, message, *option).is_ok())
    }
    /// The whole of a protected request, and what its response has to follow. `None` if the request is answered here:
    /// blocks are missing, or it asks for a later block of a response.
    pub(super) fn whole_request(
        &mut self,
        exchange: ExchangeId,
        from: P,
        message: Message,
        multicast: bool,
        now: Instant,
    ) -> Option<(Message, Outside)> {
        let mut message = message;
        let blocks = [OptionNumber::BLOCK1, OptionNumber::BLOCK2];
        if !blocks.iter().any(|option| message.options.get(*option).is_some()) {
            return Some((message, Outside::default()));
        }
        let read = |option| read(&self.transport, from, &message, option);
        let (Ok(arrived), Ok(wanted)) = (read(blocks[0]), read(blocks[1])) else {
            // RFC 7959 s2.2: 7 is reserved over UDP and is answered with 4.00.
            let response = ResponseTemplate::new(Code::BAD_REQUEST);
            self.answer_outside(exchange, response, multicast, now);
            return None;
        };
        // These blocks are in the open; the OSCORE option is part of the request's key, and differs for each message.
        let key = BodyKey::new(&Association::Open, &RequestKey::of(&message));
        if multicast && arrived.is_some() {
            // RFC 10020 s3.8: a body in blocks has no meaning for a group.
            self.answer_outside(exchange, ResponseTemplate::new(Code::BAD_REQUEST), true, now);
            return None;
        }
        if let Some(block) = arrived {
            self.take_echo(from, &message, now);
            let announced = message.options.get_uint(OptionNumber::SIZE1);
            let arrival = Arrival { block, payload: &message.payload, announced };
            let proven = self.transport.is_proven(from);
            // RFC 8613 s4.1.3.4.2: SHALL be processed first, until all blocks have come or are too many together.
            let place = (from, key.clone());
            match self.outer.assemblies.take(place.clone(), arrival, proven, now) {
                Assembled::Whole(payload) => {
                    // A challenge is inside of the answer, and the repetition another message.
                    self.outer.assemblies.end(&place);
                    message.payload = payload;
                }
                other => {
                    let response = self.block_answer(from, block, &other, now);
                    self.answer_outside(exchange, response, false, now);
                    return None;
                }
            }
        } else if let Some(block) = wanted.filter(|block| block.number > 0) {
            // It was opened with its first block; to open it again would be a replay.
            let (place, most) = ((from, key), self.transport.block_limits(from));
            let later = self.outer.representations.later(&place, block, most, now);
            let gone = || ResponseTemplate::new(Code::REQUEST_ENTITY_INCOMPLETE);
            self.answer_outside(exchange, later.unwrap_or_else(gone), multicast, now);
            return None;
        }
        Some((message, Outside { arrived, wanted, key: Some(key) }))
    }
    /// Answers in the host's place, in the open; a group's client hears of no errors (RFC 7252 s8.2).
    pub(super) fn answer_outside(
        &mut self,
        exchange: ExchangeId,
        response: ResponseTemplate,
        multicast: bool,
        now: Instant,
    ) {
        let handle = Name::NONE;
        // A request that has expired meanwhile needs no answer.
        let _expired = if multicast {
            self.transport.handle(now, Input::Decline { exchange })
        } else {
            self.transport.handle(now, Input::Respond { exchange, response, handle })
        };
    }
    /// A proxy that returns the value from the answer to an earlier block receives at its address.
    fn take_echo(&mut self, from: P, message: &Message, now: Instant) {
        let echo = message.options.get(OptionNumber::ECHO);
        if echo.is_some_and(|value| self.outer.challenges.meet(from, value, now)) {
            self.transport.prove(from, now);
        }
    }
    /// The answer to a block that is not the last, or does not fit.
    fn block_answer(
        &mut self,
        from: P,
        block: Block,
        assembled: &Assembled,
        now: Instant,
    ) -> ResponseTemplate {
        let (code, more) = match assembled {
            Assembled::Busy | Assembled::Whole(_) => return ResponseTemplate::busy(),
            Assembled::Continue => (Code::CONTINUE, true),
            Assembled::Refused(code) => (*code, false),
        };
        let mut response = ResponseTemplate::new(code);
        let exponent = block.exponent.min(self.transport.block_limits(from).0);
        Block { more, exponent, ..block }.write(&mut response.options, OptionNumber::BLOCK1);
        if code == Code::REQUEST_ENTITY_TOO_LARGE {
            // RFC 7959 s4: how long it may be.
            let octets = self.outer.assemblies.body_max() as u32;
            response.options.set_uint(OptionNumber::SIZE1, octets);
        }
        if more && !self.transport.is_proven(from) {
            // RFC 9175 s2.3: outside, an Echo value asks only whether the sender receives at its address. The value in the
            // response to the whole is inside, so that the client would send all blocks a second time.
            let value = self.outer.challenges.challenge(from, now, &mut self.rng);
            response.options.set(OptionNumber::ECHO, &value);
        }
        response
    }

    /// Takes a response that comes in blocks; gives back what is whole.
    pub(super) fn whole_response(
        &mut self,
        response: Response<P>,
        now: Instant,
    ) -> Option<Response<P>> {
        if let Some(gathering) = self.outer.gatherings.remove(&response.handle) {
            let mut gathering = gathering;
            let progress = gathering.transfer.on_response(response.message);
            return self.on_progress(gathering, progress, now);
        }
        // A request for a block whose response nobody waits for any more.
        if matches!(response.handle, Name::Layer(_)) {
            return None;
        }
        let Response { handle, from, message, rtt, retransmissions } = response;
        let block = Block::read(message.options.iter(), OptionNumber::BLOCK2).ok().flatten();
        let in_blocks = is_protected(&message.options) && block.is_some_and(|block| block.more);
        let asked = self.asked.get(&handle).filter(|_| in_blocks);
        let Some(asked) = asked else {
            return Some(Response { handle, from, message, rtt, retransmissions });
        };
        let outer = asked.outer();
        let request = RequestTemplate { body_max: None, payload: Vec::new(), ..outer.clone() };
        let (exponent, payload_max) = self.transport.block_limits(from);
        let limits =
            Limits { exponent, payload_max, body_max: MAX_UNFRAGMENTED_SIZE, negotiates: false };
        // A newer state of what is observed takes the place of an older one.
        if let Some(handle) = self.outer.stop_gathering(handle) {
            debug_assert_accepted(self.transport.handle(now, Input::Cancel { handle }));
        }
        let (transfer, progress) = Transfer::resume_once(request, limits, message);
        let (peer, began) = (from, now);
        let gathering = Gathering { handle, peer, transfer, rtt, retransmissions, began };
        self.on_progress(gathering, progress, now)
    }
    fn on_progress(
        &mut self,
        gathering: Gathering<P>,
        progress: Progress,
        now: Instant,
    ) -> Option<Response<P>> {
        let Gathering { handle, peer: from, rtt, retransmissions, .. } = gathering;
        match progress {
            // An error in the open, in the place of a block: nobody vouches for it, and the rest does not come.
            Progress::Done(message) if !is_protected(&message.options) => {
                self.fail_gathering(handle, DropReason::Malformed, now);
            }
            Progress::Done(message) => {
                return Some(Response { handle, from, message, rtt, retransmissions });
            }
            Progress::Ask => self.ask_for_block(gathering, now),
            Progress::Failed(_) => self.fail_gathering(handle, DropReason::Malformed, now),
        }
        None
    }
    fn ask_for_block(&mut self, gathering: Gathering<P>, now: Instant) {
        let mut gathering = gathering;
        let (handle, peer) = (gathering.handle, gathering.peer);
        let next = gathering.transfer.received() + self.transport.block_limits(peer).1;
        let late = now.since(gathering.began) > self.outer.lifetime;
        if late || !self.outer.has_room(peer, next + BLOCK_OPTIONS_OVERHEAD) {
            return self.fail_gathering(handle, DropReason::QueueFull, now);
        }
        let Ok(message) = gathering.transfer.request() else {
            return self.fail_gathering(handle, DropReason::Malformed, now);
        };
        self.outer.serial += 1;
        let name = Name::Layer(self.outer.serial);
        if self.transport.handle(now, Input::Request { peer, message, handle: name }).is_err() {
            return self.fail_gathering(handle, DropReason::QueueFull, now);
        }
        self.outer.gatherings.insert(name, gathering);
    }
    /// The rest of a response does not come: its request is over, but not an observation, whose next state may come whole.
    fn fail_gathering(&mut self, handle: Name, reason: DropReason, now: Instant) {
        if self.asked.get(&handle).is_none_or(Asked::is_observed) {
            return;
        }
        self.forget_asked(handle, now);
        debug_assert_accepted(self.transport.handle(now, Input::Cancel { handle }));
        self.outbox.push(Output::Failed { handle, reason });
    }
    /// What the transport says of a request for a block, as the host may hear it: only that a datagram leaves.
    pub(super) fn on_block_output(&mut self, output: Output<P>, now: Instant) -> Option<Output<P>> {
        match output {
            Output::Send { to, bytes, handle, copy, purpose } => {
                let asked = self.outer.gatherings.get(&handle).map(|one| one.handle);
                // The request has been given out already when its gathering is put down.
                let handle = asked.unwrap_or(Name::NONE);
                Some(Output::Send { to, bytes, handle, copy, purpose })
            }
            Output::Failed { handle, reason } => {
                if let Some(gathering) = self.outer.gatherings.remove(&handle) {
                    self.fail_gathering(gathering.handle, reason, now);
                }
                None
            }
            _ => None,
        }
    }
}

/// Whether an output is about a request for a block.
pub(super) fn is_of_block<P>(output: &Output<P>) -> bool {
    let (Output::Send { handle, .. }
    | Output::Failed { handle, .. }
    | Output::Started { handle, .. }
    | Output::Acknowledged { handle, .. }
    | Output::Over { handle }) = output
    else {
        return false;
    };
    matches!(handle, Name::Layer(_))
}
