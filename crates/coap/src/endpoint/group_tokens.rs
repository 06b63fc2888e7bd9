//! The tokens of requests to groups, which no other request may have: their answers come from any address (RFC 7252 s8.2).

use alloc::vec::Vec;

use lowmesh_wire::coap::Token;

use super::message_layer::MessageLayer;
use crate::PeerAddress;
use crate::exchange::ExchangeId;

/// The tokens of requests to groups that are open.
#[derive(Debug)]
pub(super) struct GroupTokens(Vec<(Token, ExchangeId)>);

impl GroupTokens {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }
    /// How many requests are open.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }
    /// A request begins.
    pub(super) fn add(&mut self, token: Token, id: ExchangeId) {
        self.0.push((token, id));
    }
    /// A request is over.
    pub(super) fn remove(&mut self, id: ExchangeId) {
        self.0.retain(|(_, one)| *one != id);
    }
    /// The request to a group that a response of anyone may belong to.
    pub(super) fn by_token(&self, token: &Token) -> Option<ExchangeId> {
        self.0.iter().find(|(one, _)| one == token).map(|(_, id)| *id)
    }
    /// A token for a request to `peer` that no request to the same peer or to a group has.
    pub(super) fn free_token<P: PeerAddress>(
        &self,
        layer: &mut MessageLayer<P>,
        peer: P,
        len: usize,
    ) -> Token {
        let number = layer.rng.next_u64();
        let taken = |token: &Token| {
            layer.peers.get(&peer).is_some_and(|one| one.by_token(token).is_some())
                || self.by_token(token).is_some()
        };
        free_token(number, len, taken)
    }
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
