//! Response bodies that go block by block (RFC 7959 s2.4): the first block leaves with the
//! response, the others are asked for.
//!
//! Each block answers a request of its own. What is kept of the response for later blocks is therefore the representation:
//! its code, its body, and the options that describe them. An option that answers one request stays with its block:
//! Observe (RFC 7641 s2), Echo (RFC 9175 s2.2) and Block1 (RFC 7959 s2.3).

use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Class, Code, OptionNumber};

use super::block::{Block, Exponent};
use super::key::BodyKey;
use crate::PeerAddress;
use crate::event::ResponseTemplate;
use crate::observe::REGISTER;
use crate::params::{MAX_AGE_DEFAULT, REPETITION_MAX};
use crate::quota::QuotaMap;
use crate::resource::EntityTag;

/// The options that answer one request, and describe no representation.
const OF_ONE_ANSWER: [OptionNumber; 3] =
    [OptionNumber::OBSERVE, OptionNumber::ECHO, OptionNumber::BLOCK1];

#[derive(Debug)]
struct Stored {
    response: ResponseTemplate,
    /// When the application made it: its Max-Age counts from then.
    made: Instant,
    expires: Instant,
    repetition: Option<Repetition>,
}

/// The request whose repetition a response answers.
#[derive(Debug)]
struct Repetition {
    of: Repeatable,
    until: Instant,
    /// The application agrees to keep the observation that the repetition may ask for.
    agreed: bool,
}

/// What a repetition has in common with its request, beside the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeatable {
    /// The tag of the request's body.
    pub body: EntityTag,
    /// How many requests and changes that may change a resource there have been. After one more, the response is old.
    pub changes: u64,
}

/// The bodies whose later blocks may be asked for, with a bound over all peers and a share for each source.
#[derive(Debug)]
pub struct Representations<P> {
    stored: QuotaMap<P, BodyKey, Stored>,
}

impl<P: PeerAddress> Representations<P> {
    /// At most `octets_max` octets over all peers and `per_source_max` of each source, with what each body costs
    /// beside its octets; a body longer than that is made again for each block.
    pub const fn new(octets_max: usize, per_source_max: usize) -> Self {
        Self { stored: QuotaMap::new(octets_max, per_source_max) }
    }
    /// A body is kept for at least `lifetime` after its last block: EXCHANGE_LIFETIME, so that the copies of the
    /// request for the next block find it.
    pub fn widen(&mut self, lifetime: Duration) {
        self.stored.widen(lifetime);
    }
    /// Octets that are kept, with what each body costs beside them.
    pub const fn octets(&self) -> usize {
        self.stored.octets()
    }
    /// Forgets all bodies.
    pub fn clear(&mut self) {
        self.stored.clear();
    }
    /// Forgets the bodies of a peer.
    pub fn forget_peer(&mut self, peer: P) {
        self.stored.remove_peer(peer);
    }
    /// The block of a whole `response` that `asked` is about, or its first if nothing was asked.
    /// If blocks are left, the response is kept for them.
    ///
    /// `most` is the largest block that may leave, and `room` how many octets of payload leave
    /// without being cut into blocks; with BERT, how many a message holds. `proven` says whether the
    /// peer's address is. What is no representation, an error or a response without a body, stays as it is.
    pub fn answer(
        &mut self,
        place: (P, BodyKey),
        response: ResponseTemplate,
        asked: Option<Block>,
        (most, room): (Exponent, usize),
        proven: bool,
        now: Instant,
    ) -> ResponseTemplate {
        let mut response = response;
        let is_first = asked.is_none_or(|block| block.number == 0);
        let no_representation = response.payload.is_empty() && is_first;
        if response.code.class() != Class::Success || no_representation {
            return response;
        }
        if asked.is_none() && response.payload.len() <= room {
            return response;
        }
        if response.options.get(OptionNumber::ETAG).is_none() {
            // RFC 7959 s2.4: the tag tells blocks of different representations apart.
            let tag = EntityTag::of(&response.payload);
            response.options.insert(OptionNumber::ETAG, tag.as_bytes());
        }
        let block = slice(&response, asked, most, room);
        self.stored.remove(&place);
        if block.options.get_uint(OptionNumber::BLOCK2).is_some_and(|value| value & 8 != 0) {
            let octets =
                response.payload.len() + response.options.as_bytes().len() + 3 * place.1.len();
            for own in OF_ONE_ANSWER {
                response.options.remove(own);
            }
            let expires = now + self.stored.lifetime();
            let stored = Stored { response, made: now, expires, repetition: None };
            // A body that is not kept is made again for each block.
            let _kept = self.stored.insert(place, stored, octets, proven, now);
        }
        block
    }
    /// Keeps a response for the repetition of its request: its client has got less of it than there is, and an Echo value.
    /// If the body is kept for later blocks already, it serves for both.
    pub fn keep_for_repetition(
        &mut self,
        place: (P, BodyKey),
        response: ResponseTemplate,
        of: Repeatable,
        now: Instant,
    ) {
        // RFC 7252 s5.10.5: past its Max-Age the response is no longer what the application says.
        let until = now + max_age(&response).min(REPETITION_MAX);
        let mut response = response;
        // No later block has the option.
        let agreed = response.options.remove(OptionNumber::OBSERVE);
        let repetition = Some(Repetition { of, until, agreed });
        let same =
            |one: &ResponseTemplate| one.code == response.code && one.payload == response.payload;
        if let Some(stored) = self.stored.get(&place, now).filter(|one| same(&one.response)) {
            stored.repetition = repetition;
            return;
        }
        let octets = response.payload.len() + response.options.as_bytes().len() + 3 * place.1.len();
        let expires = now + self.stored.lifetime();
        // What is not kept is made again.
        let proven = false;
        let stored = Stored { response, made: now, expires, repetition };
        let _kept = self.stored.insert(place, stored, octets, proven, now);
    }
    /// The response to the repetition of a request, once; with Observe if the application agrees to an observation.
    pub fn take_repetition(
        &mut self,
        place: &(P, BodyKey),
        of: Repeatable,
        now: Instant,
    ) -> Option<ResponseTemplate> {
        let stored = self.stored.get(place, now)?;
        let Repetition { of: kept, until, agreed } = stored.repetition.take()?;
        (kept == of && now < until).then(|| {
            let left = max_age(&stored.response).saturating_sub(now.since(stored.made));
            let mut response = aged(&stored.response, left);
            if agreed {
                response.options.set_uint(OptionNumber::OBSERVE, REGISTER);
            }
            response
        })
    }
    /// A later block of what is kept; `None` if nothing is.
    pub fn later(
        &mut self,
        place: &(P, BodyKey),
        asked: Block,
        (most, room): (Exponent, usize),
        now: Instant,
    ) -> Option<ResponseTemplate> {
        let lifetime = self.stored.lifetime();
        let is_kept = |stored: &&mut Stored| {
            stored.expires > now && stored.response.code.class() == Class::Success
        };
        let stored = self.stored.get(place, now).filter(is_kept)?;
        stored.expires = now + lifetime;
        // The client goes on from its first block.
        stored.repetition = None;
        // Without the option later blocks stay as short as they are: the default counts from the first block.
        let said = stored.response.options.get(OptionNumber::MAX_AGE).is_some();
        let waited = if said { now.since(stored.made) } else { Duration::ZERO };
        let whole = aged(&stored.response, max_age(&stored.response).saturating_sub(waited));
        Some(slice(&whole, Some(asked), most, room))
    }
}

/// How long a response was fresh when it was made (RFC 7252 s5.10.5).
fn max_age(response: &ResponseTemplate) -> Duration {
    let said = response.options.get_uint(OptionNumber::MAX_AGE);
    said.map_or(MAX_AGE_DEFAULT, |seconds| Duration::from_secs(seconds.into()))
}

/// A response of which this much of its Max-Age is left. A second that has begun counts as passed.
fn aged(response: &ResponseTemplate, left: Duration) -> ResponseTemplate {
    let mut response = response.clone();
    if left < max_age(&response) {
        response.options.set_uint(OptionNumber::MAX_AGE, left.as_secs() as u32);
    }
    response
}

/// One block of a whole response, no larger than was asked for and than may leave.
fn slice(
    response: &ResponseTemplate,
    asked: Option<Block>,
    most: Exponent,
    room: usize,
) -> ResponseTemplate {
    let wanted = asked.unwrap_or(Block { number: 0, more: false, exponent: most });
    let exponent = wanted.exponent.min(most);
    let offset = wanted.offset();
    let whole = &response.payload;
    if offset >= whole.len() && offset > 0 {
        return ResponseTemplate::new(Code::BAD_REQUEST);
    }
    let size = exponent.size();
    let len = if exponent.is_bert() { (room / size).max(1) * size } else { size };
    let end = whole.len().min(offset + len);
    let more = end < whole.len();
    // RFC 7959 s2.4: a server may use smaller blocks than asked for, with the number that follows.
    let Some(block) = Block::at(offset, more, exponent) else {
        return ResponseTemplate::new(Code::BAD_REQUEST);
    };
    let mut part = ResponseTemplate {
        options: response.options.clone(),
        payload: whole[offset..end].to_vec(),
        ..ResponseTemplate::new(response.code)
    };
    block.write(&mut part.options, OptionNumber::BLOCK2);
    if offset == 0 && more {
        // RFC 7959 s4: how long the whole is.
        part.options.set_uint(OptionNumber::SIZE2, whole.len() as u32);
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blockwise::RequestKey;
    use crate::exchange::Association;
    use crate::params::EXCHANGE_LIFETIME;
    use lowmesh_wire::coap::Options;

    const T0: Instant = Instant::ZERO;
    const UDP: (Exponent, usize) = (Exponent::MAX, 1024);

    fn place(peer: u8) -> (u8, BodyKey) {
        let request = RequestKey::from_parts(Code::GET, &Options::new());
        (peer, BodyKey::new(&Association::Open, &request))
    }

    fn content(len: usize) -> ResponseTemplate {
        let payload = (0..len).map(|at| at as u8).collect();
        ResponseTemplate::new(Code::CONTENT).with_payload(payload)
    }

    fn block(response: &ResponseTemplate) -> Block {
        let block = Block::read(response.options.iter(), OptionNumber::BLOCK2);
        block.expect("three octets").expect("present")
    }

    fn asked(number: u32, szx: u8) -> Block {
        let exponent = Exponent::new(szx).expect("at most 7");
        Block { number, more: false, exponent }
    }

    fn more(block: Block) -> Block {
        Block { more: true, ..block }
    }

    #[test]
    fn a_body_that_fits_into_one_message_leaves_as_it_is() {
        let mut kept = Representations::new(20_000, 20_000);
        assert_eq!(kept.answer(place(1), content(1024), None, UDP, true, T0), content(1024));
        assert_eq!(kept.octets(), 0);
    }

    #[test]
    fn a_long_body_leaves_in_blocks_with_one_tag_and_its_size() {
        let mut kept = Representations::new(20_000, 20_000);
        let first = kept.answer(place(1), content(2500), None, UDP, true, T0);
        assert_eq!((block(&first), first.payload.len()), (more(asked(0, 6)), 1024));
        assert_eq!(first.options.get_uint(OptionNumber::SIZE2), Some(2500));
        let last = kept.later(&place(1), asked(2, 6), UDP, T0).expect("kept");
        assert_eq!((block(&last), last.payload.len()), (asked(2, 6), 452));
        let tag = |response: &ResponseTemplate| {
            response.options.get(OptionNumber::ETAG).map(<[u8]>::to_vec)
        };
        assert_eq!(tag(&first), tag(&last));
        assert!(tag(&first).is_some());
    }

    #[test]
    fn the_client_may_ask_for_smaller_blocks_and_the_server_may_send_them() {
        let mut kept = Representations::new(20_000, 20_000);
        let small = kept.answer(place(1), content(200), Some(asked(0, 2)), UDP, true, T0);
        assert_eq!((block(&small), small.payload.len()), (more(asked(0, 2)), 64));
        // Block 1 of 128 is block 4 of 32.
        let most = (Exponent::new(1).expect("small"), 32);
        let smaller = kept.later(&place(1), asked(1, 3), most, T0).expect("kept");
        assert_eq!((block(&smaller), smaller.payload[0]), (more(asked(4, 1)), 128));
    }

    #[test]
    fn a_block_past_the_end_is_answered_with_4_00() {
        let mut kept = Representations::new(20_000, 20_000);
        kept.answer(place(1), content(2048), None, UDP, true, T0);
        let past = kept.later(&place(1), asked(2, 6), UDP, T0).expect("kept");
        assert_eq!(past.code, Code::BAD_REQUEST);
    }

    #[test]
    fn bert_sends_as_many_blocks_as_a_message_holds() {
        let mut kept = Representations::new(100_000, 100_000);
        let bert = (Exponent::BERT, 5000);
        let first = kept.answer(place(1), content(10_000), None, bert, true, T0);
        assert_eq!((block(&first), first.payload.len()), (more(asked(0, 7)), 4096));
        let last = kept.later(&place(1), asked(8, 7), bert, T0).expect("kept");
        assert_eq!((block(&last).more, last.payload.len()), (false, 10_000 - 8192));
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_oldest_goes_first() {
        let mut kept = Representations::new(6000, 6000);
        for (peer, second) in [(1, 0), (2, 1), (3, 2)] {
            kept.answer(place(peer), content(2000), None, UDP, true, Instant::from_secs(second));
        }
        let of_two = kept.octets();
        assert!((4000..6000).contains(&of_two), "{of_two}");
        assert!(kept.later(&place(1), asked(1, 6), UDP, T0).is_none());
        assert!(kept.later(&place(3), asked(1, 6), UDP, T0).is_some());
        kept.answer(place(4), content(6000), None, UDP, true, T0);
        assert_eq!(kept.octets(), of_two, "too long to be kept at all");
    }

    fn fresh_for(seconds: u32) -> ResponseTemplate {
        let mut response = content(2500);
        response.options.set_uint(OptionNumber::MAX_AGE, seconds);
        response
    }

    fn said(response: &ResponseTemplate) -> Option<u32> {
        response.options.get_uint(OptionNumber::MAX_AGE)
    }

    #[test]
    fn later_blocks_say_what_is_left_of_the_max_age_of_their_body() {
        let mut kept = Representations::new(20_000, 20_000);
        let first = kept.answer(place(1), fresh_for(30), None, UDP, true, T0);
        assert_eq!(said(&first), Some(30));
        for (second, left) in [(0, 30), (7, 23), (20, 10), (30, 0), (100, 0)] {
            let later = kept.later(&place(1), asked(1, 6), UDP, T0 + Duration::from_secs(second));
            assert_eq!(later.as_ref().and_then(said), Some(left), "after {second} s");
        }
        kept.answer(place(2), content(2500), None, UDP, true, T0);
        let later = kept.later(&place(2), asked(1, 6), UDP, T0 + Duration::from_secs(7));
        assert_eq!(later.as_ref().and_then(said), None, "the default counts from the first block");
    }

    #[test]
    fn a_repetition_gets_what_is_left_of_the_max_age_and_nothing_stale() {
        let of = Repeatable { body: EntityTag::of(b""), changes: 0 };
        let repeat = |response: ResponseTemplate, after| {
            let mut kept = Representations::new(20_000, 20_000);
            kept.keep_for_repetition(place(1), response, of, T0);
            kept.take_repetition(&place(1), of, T0 + after)
        };
        let seconds = Duration::from_secs;
        for (max_age, after, left) in [(30, 0, 30), (30, 4, 26), (5, 4, 1)] {
            let again = repeat(fresh_for(max_age), seconds(after)).expect("still fresh");
            assert_eq!(said(&again), Some(left), "{after} of {max_age} s");
        }
        let again = repeat(content(100), seconds(4)).expect("still fresh");
        assert_eq!(said(&again), Some(56), "of the default");
        for (max_age, after) in [(0, 0), (2, 2), (5, 9), (30, 10)] {
            let again = repeat(fresh_for(max_age), seconds(after));
            assert!(again.is_none(), "{after} of {max_age} s: the application is asked again");
        }
    }

    #[test]
    fn what_is_kept_expires() {
        let mut kept = Representations::new(6000, 6000);
        kept.answer(place(1), content(2000), None, UDP, true, T0);
        assert!(kept.later(&place(1), asked(1, 6), UDP, T0 + EXCHANGE_LIFETIME).is_none());
    }
}
