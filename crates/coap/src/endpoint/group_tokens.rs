//! The tokens of requests to groups, which no other request may have: their answers come from any address (RFC 7252 s8.2),
//! and may come long after the request is over (RFC 10020 s3.1.5).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_units::Instant;
use lowmesh_wire::coap::Token;

use super::message_layer::MessageLayer;
use crate::PeerAddress;
use crate::exchange::ExchangeId;
use crate::params::{GROUP_TOKENS_KEPT, MAX_SERVER_RESPONSE_DELAY};

/// The tokens of requests to groups: of open ones, and of those that are over and may still be answered.
#[derive(Debug)]
pub(super) struct GroupTokens {
    open: Vec<(Token, ExchangeId)>,
    /// Tokens that are not used before a time, the oldest first. One more displaces the oldest.
    retired: VecDeque<(Instant, Token)>,
}

impl GroupTokens {
    pub(super) const fn new() -> Self {
        Self { open: Vec::new(), retired: VecDeque::new() }
    }
    /// A request begins.
    pub(super) fn add(&mut self, token: Token, id: ExchangeId) {
        self.open.push((token, id));
    }
    /// A request is over, and its token is not used again before a time.
    pub(super) fn retire(&mut self, id: ExchangeId, until: Instant) {
        let Some(place) = self.open.iter().position(|(_, one)| *one == id) else { return };
        let (token, _) = self.open.remove(place);
        if self.retired.len() >= GROUP_TOKENS_KEPT {
            self.retired.pop_front();
        }
        self.retired.push_back((until, token));
    }
    /// A token that is taken over by a request that speaks for the one before.
    pub(super) fn reuse(&mut self, token: &Token) {
        self.retired.retain(|(_, one)| one != token);
    }
    /// The request to a group that a response of anyone may belong to.
    pub(super) fn by_token(&self, token: &Token) -> Option<ExchangeId> {
        self.open.iter().find(|(one, _)| one == token).map(|(_, id)| *id)
    }
    /// Whether answers to a request to a group may still come with this token.
    pub(super) fn is_taken(&self, token: &Token, now: Instant) -> bool {
        let waits = |(until, one): &(Instant, Token)| *until > now && one == token;
        self.by_token(token).is_some() || self.retired.iter().any(waits)
    }
    /// A token for a request to `peer` that no request to the same peer or to a group has.
    pub(super) fn free_token<P: PeerAddress>(
        &self,
        layer: &mut MessageLayer<P>,
        peer: P,
        len: usize,
        now: Instant,
    ) -> Token {
        let number = layer.rng.next_u64();
        let taken = |token: &Token| {
            layer.peers.get(&peer).is_some_and(|one| one.by_token(token).is_some())
                || self.is_taken(token, now)
        };
        free_token(number, len, taken)
    }
    /// A token for a request to a group that no other request to anyone has: its answers may come from any address.
    pub(super) fn free_group_token<P: PeerAddress>(
        &self,
        layer: &mut MessageLayer<P>,
        len: usize,
        now: Instant,
    ) -> Token {
        let number = layer.rng.next_u64();
        let taken = |token: &Token| layer.peers.have_token(token) || self.is_taken(token, now);
        free_token(number, len, taken)
    }
}

/// When the token of a request to a group that is over now may be used again.
pub(super) fn reusable_at<P: PeerAddress>(
    layer: &MessageLayer<P>,
    group: P,
    now: Instant,
) -> Instant {
    // RFC 10020 s3.1.5: MIN_TOKEN_REUSE_TIME = NON_LIFETIME + MAX_LATENCY + MAX_SERVER_RESPONSE_DELAY.
    let lifetime = layer.lifetimes(group).non_confirmable;
    now + lifetime + crate::params::MAX_LATENCY + MAX_SERVER_RESPONSE_DELAY
}

/// RFC 7252 s5.3.1: tokens in use to one peer MUST differ, and SHOULD be random: the first free one
/// from `number` on.
fn free_token(mut number: u64, len: usize, taken: impl Fn(&Token) -> bool) -> Token {
    loop {
        let token = Token::from_number(number, len);
        if !taken(&token) {
            return token;
        }
        // Fewer exchanges may be open than there are tokens of the shortest length, so this ends.
        number = number.wrapping_add(1);
    }
}
