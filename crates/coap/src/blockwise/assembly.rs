//! Request bodies that come block by block (RFC 7959 s2.3, s2.5, s2.9): put together whole before
//! the application sees any of it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lowmesh_units::Instant;
use lowmesh_wire::coap::Code;

use super::block::Block;
use super::key::RequestKey;
use crate::params::EXCHANGE_LIFETIME;

/// One block of a request body.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Its Block1 option.
    pub block: Block,
    /// Its octets.
    pub payload: &'a [u8],
    /// What Size1 says about the whole body.
    pub announced: Option<u32>,
}

/// What a block leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assembled {
    /// More has to come: 2.31.
    Continue,
    /// This was the last: the body.
    Whole(Vec<u8>),
    /// It does not fit: the code to answer with. With 4.13 Size1 may say what would fit.
    Refused(Code),
}

#[derive(Debug)]
struct Assembly {
    body: Vec<u8>,
    expires: Instant,
}

/// The bodies of all peers that are on their way.
#[derive(Debug)]
pub struct Assemblies<P> {
    bodies: BTreeMap<(P, RequestKey), Assembly>,
    /// Octets in all bodies.
    octets: usize,
    body_max: usize,
    octets_max: usize,
}

impl<P: Ord + Copy> Assemblies<P> {
    /// Bodies of at most `body_max` octets, `octets_max` over all.
    pub const fn new(body_max: usize, octets_max: usize) -> Self {
        Self { bodies: BTreeMap::new(), octets: 0, body_max, octets_max }
    }
    /// The longest body that it takes, octets.
    pub const fn body_max(&self) -> usize {
        self.body_max
    }
    /// Octets that are kept.
    pub const fn octets(&self) -> usize {
        self.octets
    }
    /// A block has come.
    pub fn take(
        &mut self,
        peer: P,
        key: RequestKey,
        arrival: Arrival<'_>,
        now: Instant,
    ) -> Assembled {
        let Arrival { block, payload, announced } = arrival;
        let place = (peer, key);
        if !block.admits(payload.len()) {
            // RFC 7959 s2.2: a block that is not the last has the full size.
            self.forget(&place);
            return Assembled::Refused(Code::BAD_REQUEST);
        }
        let announced = announced.map_or(0, |size| usize::try_from(size).unwrap_or(usize::MAX));
        if block.number == 0 {
            // RFC 7959 s2.3: block 0 begins a new body, whatever was there.
            self.forget(&place);
        } else if !self.bodies.get(&place).is_some_and(|body| continues(body, block, now)) {
            // RFC 7959 s2.9.2: blocks are missing.
            self.forget(&place);
            return Assembled::Refused(Code::REQUEST_ENTITY_INCOMPLETE);
        }
        let before = self.bodies.get(&place).map_or(0, |body| body.body.len());
        let len = before + payload.len();
        if len.max(announced) > self.body_max {
            // RFC 7959 s2.9.3.
            self.forget(&place);
            return Assembled::Refused(Code::REQUEST_ENTITY_TOO_LARGE);
        }
        if !block.more && before == 0 {
            return Assembled::Whole(payload.to_vec());
        }
        if !self.has_room(payload.len(), now) {
            self.forget(&place);
            return Assembled::Refused(Code::REQUEST_ENTITY_TOO_LARGE);
        }
        let expires = now + EXCHANGE_LIFETIME;
        let fresh = || Assembly { body: Vec::new(), expires };
        let assembly = self.bodies.entry(place.clone()).or_insert_with(fresh);
        assembly.body.extend_from_slice(payload);
        assembly.expires = expires;
        self.octets += payload.len();
        if block.more {
            return Assembled::Continue;
        }
        Assembled::Whole(self.forget(&place).unwrap_or_default())
    }

    /// Whether `more` octets may be kept, if need be after what has expired is forgotten.
    fn has_room(&mut self, more: usize, now: Instant) -> bool {
        if self.octets + more > self.octets_max {
            self.bodies.retain(|_, body| body.expires > now);
            self.octets = self.bodies.values().map(|body| body.body.len()).sum();
        }
        self.octets + more <= self.octets_max
    }

    fn forget(&mut self, place: &(P, RequestKey)) -> Option<Vec<u8>> {
        let Assembly { body, .. } = self.bodies.remove(place)?;
        self.octets -= body.len();
        Some(body)
    }
}

fn continues(assembly: &Assembly, block: Block, now: Instant) -> bool {
    assembly.expires > now && assembly.body.len() == block.offset()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blockwise::Exponent;
    use lowmesh_wire::coap::Options;

    const T0: Instant = Instant::ZERO;

    fn key() -> RequestKey {
        RequestKey::from_parts(Code::PUT, &Options::new())
    }

    fn arrival(number: u32, more: bool, payload: &[u8]) -> Arrival<'_> {
        let block = Block { number, more, exponent: Exponent::MIN };
        Arrival { block, payload, announced: None }
    }

    fn take(bodies: &mut Assemblies<u8>, peer: u8, number: u32, more: bool) -> Assembled {
        bodies.take(peer, key(), arrival(number, more, &[number as u8; 16]), T0)
    }

    #[test]
    fn blocks_in_order_become_one_body() {
        let mut bodies = Assemblies::new(1000, 1000);
        assert_eq!(take(&mut bodies, 1, 0, true), Assembled::Continue);
        assert_eq!(take(&mut bodies, 2, 0, true), Assembled::Continue);
        assert_eq!(take(&mut bodies, 1, 1, true), Assembled::Continue);
        let last = bodies.take(1, key(), arrival(2, false, &[2; 3]), T0);
        let body = [&[0; 16][..], &[1; 16], &[2; 3]].concat();
        assert_eq!(last, Assembled::Whole(body));
        assert_eq!(bodies.octets(), 16, "the other peer's");
    }

    #[test]
    fn a_missing_or_doubled_block_is_answered_with_4_08_and_the_body_is_gone() {
        let incomplete = Assembled::Refused(Code::REQUEST_ENTITY_INCOMPLETE);
        for wrong in [0, 2] {
            let mut bodies = Assemblies::new(1000, 1000);
            take(&mut bodies, 1, 0, true);
            take(&mut bodies, 1, 1, true);
            if wrong == 0 {
                assert_eq!(take(&mut bodies, 1, 1, true), incomplete);
            } else {
                assert_eq!(take(&mut bodies, 1, 3, true), incomplete);
            }
            assert_eq!((take(&mut bodies, 1, 2, false), bodies.octets()), (incomplete.clone(), 0));
        }
    }

    #[test]
    fn block_zero_begins_again() {
        let mut bodies = Assemblies::new(1000, 1000);
        take(&mut bodies, 1, 0, true);
        take(&mut bodies, 1, 1, true);
        assert_eq!(take(&mut bodies, 1, 0, true), Assembled::Continue);
        assert_eq!(bodies.octets(), 16);
    }

    #[test]
    fn a_short_block_in_the_middle_is_answered_with_4_00() {
        let mut bodies = Assemblies::<u8>::new(1000, 1000);
        let refused = bodies.take(1, key(), arrival(0, true, &[0; 15]), T0);
        assert_eq!(refused, Assembled::Refused(Code::BAD_REQUEST));
    }

    #[test]
    fn a_body_that_is_or_says_it_is_too_long_is_answered_with_4_13() {
        let too_large = Assembled::Refused(Code::REQUEST_ENTITY_TOO_LARGE);
        let mut bodies = Assemblies::new(40, 1000);
        take(&mut bodies, 1, 0, true);
        take(&mut bodies, 1, 1, true);
        assert_eq!((take(&mut bodies, 1, 2, true), bodies.octets()), (too_large.clone(), 0));
        let announced = Arrival { announced: Some(41), ..arrival(0, true, &[0; 16]) };
        assert_eq!(bodies.take(1, key(), announced, T0), too_large);
    }

    #[test]
    fn all_bodies_together_are_bounded_and_expired_ones_make_room() {
        let mut bodies = Assemblies::new(1000, 40);
        assert_eq!(take(&mut bodies, 1, 0, true), Assembled::Continue);
        assert_eq!(take(&mut bodies, 2, 0, true), Assembled::Continue);
        let too_large = Assembled::Refused(Code::REQUEST_ENTITY_TOO_LARGE);
        assert_eq!(take(&mut bodies, 3, 0, true), too_large);
        let late = T0 + EXCHANGE_LIFETIME;
        let room = bodies.take(3, key(), arrival(0, true, &[0; 16]), late);
        assert_eq!((room, bodies.octets()), (Assembled::Continue, 16));
    }
}
