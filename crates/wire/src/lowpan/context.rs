//! Contexts: what both ends know. Prefixes that both ends of a link know by a number of four bits (RFC 6282 s3.1.2).

use crate::ipv6::Address;

/// What a node of a RPL network knows without reading it from a packet (RFC 8138 s4.3.2, RFC 9008 s4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingContext {
    /// The root's address, against which the ends of tunnels are compressed.
    pub root: Address,
    /// The RPL option has the type 0x23.
    pub skippable: bool,
}

/// Up to sixteen prefixes of 64 bits, and what 6LoRH takes as known.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Contexts {
    prefixes: [Option<[u8; 8]>; Contexts::COUNT],
    routing: Option<RoutingContext>,
}

impl Contexts {
    /// How many a link can have.
    pub const COUNT: usize = 16;

    /// No context: every address is compressed by the link-local prefix or not at all.
    pub const fn new() -> Self {
        Self { prefixes: [None; Self::COUNT], routing: None }
    }
    /// The same contexts with `prefix` as number `index`, of which the low four bits count.
    #[must_use]
    pub const fn with(mut self, index: u8, prefix: [u8; 8]) -> Self {
        self.prefixes[(index & 0x0f) as usize] = Some(prefix);
        self
    }
    /// The same contexts in the RPL network `routing`, or in none.
    #[must_use]
    pub const fn with_routing(mut self, routing: Option<RoutingContext>) -> Self {
        self.routing = routing;
        self
    }
    /// The RPL network of the links.
    pub const fn routing(&self) -> Option<&RoutingContext> {
        self.routing.as_ref()
    }
    /// The prefix of number `index`.
    pub const fn prefix(&self, index: u8) -> Option<[u8; 8]> {
        self.prefixes[(index & 0x0f) as usize]
    }
    /// The lowest number whose prefix is `prefix`.
    pub fn find(&self, prefix: &[u8]) -> Option<u8> {
        self.prefixes
            .iter()
            .position(|known| known.as_ref().is_some_and(|known| known.as_slice() == prefix))
            .map(|index| index as u8)
    }
    /// The lowest number whose prefix `address` has.
    pub fn covering(&self, address: &Address) -> Option<u8> {
        self.find(&address.0[..8])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_found_by_its_lowest_number() {
        let prefix = [0xfd, 0, 0, 0, 0, 0, 0, 0];
        let contexts = Contexts::new().with(9, prefix).with(3, prefix);
        assert_eq!(contexts.find(&prefix), Some(3));
        assert_eq!(contexts.covering(&Address::from_parts(prefix, [7; 8])), Some(3));
        assert_eq!(contexts.covering(&Address::ALL_NODES), None);
        assert_eq!(contexts.prefix(4), None);
    }
}
