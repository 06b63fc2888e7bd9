//! Request bodies that come block by block (RFC 7959 s2.3, s2.5, s2.9): put together whole before
//! the application sees any of it.

use alloc::vec::Vec;

use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::Code;

use super::block::Block;
use super::key::BodyKey;
use crate::PeerAddress;
use crate::params::BODY_OVERHEAD;
use crate::quota::QuotaMap;

/// One block of a request body.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Its Block1 option.
    pub block: Block,
    /// The octets of the block.
    pub payload: &'a [u8],
    /// What Size1 says about the whole body.
    pub announced: Option<u32>,
}

/// The result of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assembled {
    /// More has to come: 2.31.
    Continue,
    /// This was the last: the body.
    Whole(Vec<u8>),
    /// It does not fit: the code to answer with. With 4.13 Size1 may say what would fit.
    Refused(Code),
    /// There is no room now: 5.03.
    Busy,
}

#[derive(Debug)]
struct Assembly {
    body: Vec<u8>,
    expires: Instant,
}

/// The unfinished request bodies of all peers.
#[derive(Debug)]
pub struct Assemblies<P> {
    bodies: QuotaMap<P, BodyKey, Assembly>,
    body_max: usize,
}

impl<P: PeerAddress> Assemblies<P> {
    /// Bodies of at most `body_max` octets; `octets_max` over all peers and `per_source_max` of each source, with
    /// what each body costs beside its octets. One body of the longest kind always fits.
    pub fn new(body_max: usize, octets_max: usize, per_source_max: usize) -> Self {
        let one = body_max + BODY_OVERHEAD;
        let (octets_max, per_source_max) = (octets_max.max(one), per_source_max.max(one));
        Self { bodies: QuotaMap::new(octets_max, per_source_max), body_max }
    }
    /// A body is kept for at least `lifetime` after its last block: EXCHANGE_LIFETIME, so that the copies of the
    /// request for the next block find it.
    pub fn widen(&mut self, lifetime: Duration) {
        self.bodies.widen(lifetime);
    }
    /// The longest body that it takes, octets.
    pub const fn body_max(&self) -> usize {
        self.body_max
    }
    /// Octets that are kept, with what each body costs beside them.
    pub const fn octets(&self) -> usize {
        self.bodies.octets()
    }
    /// Forgets all bodies.
    pub fn clear(&mut self) {
        self.bodies.clear();
    }
    /// Forgets the bodies of a peer.
    pub fn forget_peer(&mut self, peer: P) {
        self.bodies.remove_peer(peer);
    }
    /// A block has come for the body at `place`, from a peer whose address is proven or not.
    ///
    /// The application may challenge an unproven peer, which then repeats its last block (RFC 9175 s2.3). So the body
    /// before that block stays until [`Assemblies::end`].
    pub fn take(
        &mut self,
        place: (P, BodyKey),
        arrival: Arrival<'_>,
        proven: bool,
        now: Instant,
    ) -> Assembled {
        let Arrival { block, payload, announced } = arrival;
        let before = self.bodies.remove(&place).filter(|body| body.expires > now);
        if !block.admits(payload.len()) {
            // RFC 7959 s2.2: a block that is not the last has the full size.
            return Assembled::Refused(Code::BAD_REQUEST);
        }
        let mut body = match before {
            // RFC 7959 s2.3: block 0 begins a new body, whatever was there.
            _ if block.number == 0 => Vec::new(),
            Some(assembly) if assembly.body.len() == block.offset() => assembly.body,
            // RFC 7959 s2.9.2: blocks are missing.
            _ => return Assembled::Refused(Code::REQUEST_ENTITY_INCOMPLETE),
        };
        let announced = announced.map_or(0, |size| usize::try_from(size).unwrap_or(usize::MAX));
        if (body.len() + payload.len()).max(announced) > self.body_max {
            // RFC 7959 s2.9.3.
            return Assembled::Refused(Code::REQUEST_ENTITY_TOO_LARGE);
        }
        if !block.more {
            if !proven && !body.is_empty() {
                // Without room for it the challenged peer begins again.
                let _has_room = self.keep(place, body.clone(), proven, now);
            }
            body.extend_from_slice(payload);
            return Assembled::Whole(body);
        }
        body.extend_from_slice(payload);
        if self.keep(place, body, proven, now) { Assembled::Continue } else { Assembled::Busy }
    }
    /// The request with the body at `place` has its response, which is no challenge.
    pub fn end(&mut self, place: &(P, BodyKey)) {
        self.bodies.remove(place);
    }

    fn keep(&mut self, place: (P, BodyKey), body: Vec<u8>, proven: bool, now: Instant) -> bool {
        let octets = body.len() + 3 * place.1.len();
        let assembly = Assembly { body, expires: now + self.bodies.lifetime() };
        self.bodies.insert(place, assembly, octets, proven, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blockwise::{Exponent, RequestKey};
    use crate::exchange::Association;
    use crate::params::EXCHANGE_LIFETIME;
    use lowmesh_wire::coap::Options;

    const T0: Instant = Instant::ZERO;

    fn key() -> BodyKey {
        BodyKey::new(&Association::Open, &RequestKey::from_parts(Code::PUT, &Options::new()))
    }

    fn arrival(number: u32, more: bool, payload: &[u8]) -> Arrival<'_> {
        let block = Block { number, more, exponent: Exponent::MIN };
        Arrival { block, payload, announced: None }
    }

    fn bodies(body_max: usize) -> Assemblies<u8> {
        Assemblies::new(body_max, 1 << 20, 1 << 16)
    }

    fn take(bodies: &mut Assemblies<u8>, peer: u8, number: u32, more: bool) -> Assembled {
        bodies.take((peer, key()), arrival(number, more, &[number as u8; 16]), false, T0)
    }

    #[test]
    fn blocks_in_order_become_one_body() {
        let mut bodies = bodies(1000);
        assert_eq!(take(&mut bodies, 1, 0, true), Assembled::Continue);
        assert_eq!(take(&mut bodies, 2, 0, true), Assembled::Continue);
        let of_one = bodies.octets() / 2;
        assert_eq!(take(&mut bodies, 1, 1, true), Assembled::Continue);
        let last = bodies.take((1, key()), arrival(2, false, &[2; 3]), false, T0);
        let body = [&[0; 16][..], &[1; 16], &[2; 3]].concat();
        assert_eq!(last, Assembled::Whole(body));
        bodies.end(&(1, key()));
        assert_eq!(bodies.octets(), of_one, "the other peer's");
    }

    #[test]
    fn an_unproven_peer_may_repeat_its_last_block_until_the_request_has_ended() {
        let mut bodies = bodies(1000);
        take(&mut bodies, 1, 0, true);
        let whole = take(&mut bodies, 1, 1, false);
        assert!(matches!(whole, Assembled::Whole(_)));
        assert_eq!(take(&mut bodies, 1, 1, false), whole);
        bodies.end(&(1, key()));
        let incomplete = Assembled::Refused(Code::REQUEST_ENTITY_INCOMPLETE);
        assert_eq!((take(&mut bodies, 1, 1, false), bodies.octets()), (incomplete, 0));
    }

    #[test]
    fn a_missing_or_doubled_block_is_answered_with_4_08_and_the_body_is_gone() {
        let incomplete = Assembled::Refused(Code::REQUEST_ENTITY_INCOMPLETE);
        for wrong in [1, 3] {
            let mut bodies = bodies(1000);
            take(&mut bodies, 1, 0, true);
            take(&mut bodies, 1, 1, true);
            assert_eq!(take(&mut bodies, 1, wrong, true), incomplete);
            assert_eq!((take(&mut bodies, 1, 2, false), bodies.octets()), (incomplete.clone(), 0));
        }
    }

    #[test]
    fn block_zero_begins_again() {
        let mut bodies = bodies(1000);
        take(&mut bodies, 1, 0, true);
        let of_one_block = bodies.octets();
        take(&mut bodies, 1, 1, true);
        assert_eq!(take(&mut bodies, 1, 0, true), Assembled::Continue);
        assert_eq!(bodies.octets(), of_one_block);
    }

    #[test]
    fn a_short_block_in_the_middle_is_answered_with_4_00() {
        let refused = bodies(1000).take((1, key()), arrival(0, true, &[0; 15]), false, T0);
        assert_eq!(refused, Assembled::Refused(Code::BAD_REQUEST));
    }

    #[test]
    fn a_body_that_is_or_says_it_is_too_long_is_answered_with_4_13() {
        let too_large = Assembled::Refused(Code::REQUEST_ENTITY_TOO_LARGE);
        let mut bodies = bodies(40);
        take(&mut bodies, 1, 0, true);
        take(&mut bodies, 1, 1, true);
        assert_eq!((take(&mut bodies, 1, 2, true), bodies.octets()), (too_large.clone(), 0));
        let announced = Arrival { announced: Some(41), ..arrival(0, true, &[0; 16]) };
        assert_eq!(bodies.take((1, key()), announced, false, T0), too_large);
    }

    #[test]
    fn an_unfinished_body_expires() {
        let mut bodies = bodies(1000);
        take(&mut bodies, 1, 0, true);
        let late = bodies.take((1, key()), arrival(1, false, &[1]), false, T0 + EXCHANGE_LIFETIME);
        assert_eq!(late, Assembled::Refused(Code::REQUEST_ENTITY_INCOMPLETE));
    }

    fn path(number: u32) -> BodyKey {
        let mut options = Options::new();
        options.insert_path(&alloc::format!("/{number}"));
        BodyKey::new(&Association::Open, &RequestKey::from_parts(Code::PUT, &options))
    }

    #[test]
    fn first_blocks_of_one_peer_leave_the_uploads_of_others_alone() {
        let mut bodies = Assemblies::new(1 << 16, 8 << 16, 2 << 16);
        assert_eq!(take(&mut bodies, 1, 0, true), Assembled::Continue);
        for number in 0..4096 {
            let block = arrival(0, true, &[0; 16]);
            assert_eq!(bodies.take((9, path(number)), block, false, T0), Assembled::Continue);
        }
        assert!(bodies.octets() <= 8 << 16);
        assert_eq!(take(&mut bodies, 1, 1, true), Assembled::Continue);
    }

    #[test]
    fn an_upload_that_goes_on_outlives_first_blocks_of_forged_addresses() {
        let mut bodies = Assemblies::<u32>::new(1 << 16, 2 << 16, 1 << 16);
        let honest = (0, key());
        for number in 0..500 {
            let block = arrival(number, true, &[0; 16]);
            assert_eq!(bodies.take(honest.clone(), block, false, T0), Assembled::Continue);
            for forged in 0..50 {
                let place = (1 + number * 50 + forged, key());
                bodies.take(place, arrival(0, true, &[0; 16]), false, T0);
            }
        }
    }

    #[test]
    fn unproven_addresses_find_no_room_while_proven_ones_have_all() {
        let mut bodies = Assemblies::<u8>::new(16, 0, 0);
        for number in 0..20 {
            let block = arrival(0, true, &[0; 16]);
            assert_eq!(bodies.take((1_u8, path(number)), block, true, T0), Assembled::Continue);
        }
        let block = arrival(0, true, &[0; 16]);
        assert_eq!(bodies.take((2, key()), block, false, T0), Assembled::Busy);
        assert_eq!(bodies.take((3, key()), block, true, T0), Assembled::Continue);
    }
}
