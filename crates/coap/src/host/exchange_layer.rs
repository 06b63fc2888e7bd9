//! What the client and the server of a host stand on: the transport below, and the outputs for the application.

use alloc::vec::Vec;

use lowmesh_machine::Outbox;
use lowmesh_units::{Instant, Rng};
use lowmesh_wire::coap::{Message, OptionNumber};

use super::event::Output;
use super::{HostLimits, Transport};
use crate::PeerAddress;
use crate::blockwise::{Block, Exponent};
use crate::event::{RequestTemplate, ResponseTemplate};
use crate::exchange::{ExchangeId, Input, Name};
use crate::params::BLOCK_OPTIONS_OVERHEAD;
use crate::resource::DISCOVERY;

/// The transport of a host.
#[derive(Debug)]
pub(super) struct ExchangeLayer<P, T> {
    pub(super) transport: T,
    pub(super) limits: HostLimits,
    pub(super) rng: Rng,
    pub(super) outbox: Outbox<Output<P>>,
    /// Messages that the host has named.
    pub(super) serial: u64,
    /// The latest Request-Tag; `None` before the first body that may need blocks.
    tag: Option<u32>,
}

impl<P: PeerAddress, T: Transport<P>> ExchangeLayer<P, T> {
    pub(super) const fn new(transport: T, limits: HostLimits, rng: Rng) -> Self {
        Self { transport, limits, rng, outbox: Outbox::new(), serial: 0, tag: None }
    }
    /// A name that no other message of the host has.
    pub(super) const fn next_name(&mut self) -> Name {
        self.serial += 1;
        Name::Host(self.serial)
    }
    /// A Request-Tag for the body of a request, which no other body has. Without a body that may need blocks it is empty.
    ///
    /// RFC 9175 s3.4, s3.5.1: MUST NOT recycle a tag while a block of an earlier body could still be taken. The bodies of
    /// this host are counted. Those of its earlier life are not known, so the count starts at a random number.
    pub(super) fn request_tag(&mut self, request: &RequestTemplate) -> Vec<u8> {
        if request.payload.len() <= Exponent::MIN.size() {
            return Vec::new();
        }
        let before = self.tag.unwrap_or_else(|| self.rng.next_u32());
        let tag = before.wrapping_add(1);
        self.tag = Some(tag);
        tag.to_be_bytes().to_vec()
    }
    /// The largest blocks for a peer, proven or not.
    pub(super) fn preferred(&self, peer: P) -> Exponent {
        self.limits.exponent.min(self.transport.block_limits(peer).0)
    }
    /// The largest blocks that a credit covers, and the room for payload in a message with `overhead`
    /// octets beside it. What is no block itself may have `surplus` octets more, see [`protected_surplus`](crate::blockwise::protected_surplus).
    pub(super) fn affordable(
        &self,
        peer: P,
        credit: usize,
        overhead: usize,
        surplus: usize,
    ) -> (Exponent, usize) {
        let (most, room) = self.transport.block_limits(peer);
        let preferred = self.limits.exponent.min(most);
        let room = if preferred.is_bert() { room } else { preferred.size() + surplus };
        let bound = credit.saturating_sub(overhead);
        if bound >= room.saturating_add(BLOCK_OPTIONS_OVERHEAD) {
            return (preferred, room);
        }
        let block = Exponent::fitting(bound.saturating_sub(BLOCK_OPTIONS_OVERHEAD));
        (preferred.min(block), room.min(bound))
    }
    /// The block options of a request; `None` if one has no meaning on this transport.
    pub(super) fn blocks(
        &self,
        from: P,
        message: &Message,
    ) -> Option<(Option<Block>, Option<Block>)> {
        let read = |option| {
            let block = Block::read(message.options.iter(), option).ok()?;
            let bert = block.is_some_and(|block| block.exponent.is_bert());
            (!bert || self.transport.takes_bert(from)).then_some(block)
        };
        Some((read(OptionNumber::BLOCK1)?, read(OptionNumber::BLOCK2)?))
    }
    /// Whether a request that came to a group is answered with nothing but a challenge.
    pub(super) fn challenges_group(&self, from: P, message: &Message) -> bool {
        // RFC 10020 s6.1: discovery alone is open to everyone.
        let path = message.options.iter().values(OptionNumber::URI_PATH);
        let discovers = path.eq(DISCOVERY);
        self.limits.challenge_groups && !discovers && !self.transport.is_proven(from)
    }
    /// Leaves a request of a peer without response.
    pub(super) fn decline(&mut self, exchange: ExchangeId, now: Instant) {
        // A request that has expired meanwhile needs no end.
        let _expired = self.transport.handle(now, Input::Decline { exchange });
    }
    /// Answers a request of a peer in the place of the application.
    pub(super) fn answer(
        &mut self,
        exchange: ExchangeId,
        response: ResponseTemplate,
        now: Instant,
    ) {
        let handle = Name::NONE;
        // A request that has expired meanwhile needs no answer.
        let _expired = self.transport.handle(now, Input::Respond { exchange, response, handle });
    }
}
