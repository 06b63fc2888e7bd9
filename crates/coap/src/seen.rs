//! What a peer has sent lately, so that a duplicate is answered again and not executed again (RFC
//! 7252 s4.5).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Kind, MessageId, MessageView};

use crate::Lifetimes;
use crate::exchange::Name;

/// Message IDs that are compared without a branch in between.
const COMPARED_AT_ONCE: usize = 64;

/// The messages of one peer, oldest first, at most as many as the caller lets in.
///
/// Message IDs lie apart from what belongs to them: nearly every message is new, and to find that
/// out two octets a message are read instead of a whole record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    ids: VecDeque<MessageId>,
    records: VecDeque<Record>,
    lifetimes: Lifetimes,
}

/// One message that came; its ID has the same place.
#[derive(Clone, Debug)]
struct Record {
    kind: Kind,
    expires: Instant,
    reply: Option<Reply>,
}

/// The ACK that answered a message, kept for its duplicates.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) bytes: Vec<u8>,
    pub(crate) handle: Name,
    /// How often it has been sent again.
    pub(crate) copies: u8,
}

/// What is known about a message that has just come.
#[derive(Debug)]
pub(crate) enum DuplicateCheck<'a> {
    /// Never seen.
    New,
    /// Seen; the answer is not made yet, or there is none.
    Duplicate,
    /// Seen and answered like this; `copies` counts this time too.
    Answered(&'a Reply),
}

const fn lifetime(lifetimes: &Lifetimes, kind: Kind) -> Duration {
    match kind {
        Kind::Confirmable => lifetimes.exchange,
        _ => lifetimes.non_confirmable,
    }
}

/// Whether an ID is among these. A whole stretch has no branch, so a processor compares many at once: the count has the
/// width of an ID.
fn contains(ids: &[MessageId], id: MessageId) -> bool {
    let same = |stretch: &[MessageId]| stretch.iter().map(|one| u16::from(*one == id)).sum::<u16>();
    ids.chunks(COMPARED_AT_ONCE).any(|stretch| same(stretch) > 0)
}

impl Seen {
    /// Nothing has come yet from a peer with these lifetimes.
    pub(crate) const fn new(lifetimes: Lifetimes) -> Self {
        Self { ids: VecDeque::new(), records: VecDeque::new(), lifetimes }
    }
    /// What comes from now on is remembered for at least so long.
    pub(crate) fn widen(&mut self, lifetimes: Lifetimes) {
        self.lifetimes = self.lifetimes.widest(lifetimes);
    }
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }
    /// Looks a message up. A duplicate is remembered for a whole lifetime more: with a slow timer
    /// the copies of one message can span longer than one EXCHANGE_LIFETIME.
    pub(crate) fn sight(&mut self, id: MessageId, now: Instant) -> DuplicateCheck<'_> {
        let (older, newer) = self.ids.as_slices();
        if !contains(newer, id) && !contains(older, id) {
            return DuplicateCheck::New;
        }
        let mut same = self.records.iter_mut().zip(&self.ids).filter(|(_, one)| **one == id);
        let Some((record, _)) = same.find(|(record, _)| now < record.expires) else {
            return DuplicateCheck::New;
        };
        record.expires = now + lifetime(&self.lifetimes, record.kind);
        match &mut record.reply {
            None => DuplicateCheck::Duplicate,
            Some(reply) => {
                reply.copies = reply.copies.saturating_add(1);
                DuplicateCheck::Answered(reply)
            }
        }
    }
    /// Forgets what has expired at the old end; returns how many.
    pub(crate) fn forget_expired(&mut self, now: Instant) -> usize {
        let before = self.len();
        while self.records.front().is_some_and(|record| record.expires <= now) {
            self.forget_oldest();
        }
        before - self.len()
    }
    /// Forgets all.
    pub(crate) fn forget_all(&mut self) {
        self.ids.clear();
        self.records.clear();
    }
    /// Forgets the oldest before its time; false when there is none.
    pub(crate) fn forget_oldest(&mut self) -> bool {
        self.ids.pop_front();
        self.records.pop_front().is_some()
    }
    /// Remembers a new message. Past `share` messages the oldest is forgotten before its time; returns how many are.
    pub(crate) fn remember_within(
        &mut self,
        share: usize,
        view: &MessageView<'_>,
        now: Instant,
    ) -> usize {
        let forgotten = self.len() >= share && self.forget_oldest();
        self.remember(view.message_id(), view.kind(), now);
        usize::from(forgotten)
    }
    /// Remembers a new message.
    fn remember(&mut self, message_id: MessageId, kind: Kind, now: Instant) {
        let expires = now + lifetime(&self.lifetimes, kind);
        if self.records.capacity() == 0 {
            // Most peers of a server send one message in a lifetime: a queue that grows by itself begins with four.
            self.ids.reserve_exact(1);
            self.records.reserve_exact(1);
        }
        self.ids.push_back(message_id);
        self.records.push_back(Record { kind, expires, reply: None });
    }
    /// Keeps the answer of a message for its duplicates, in place of an earlier one.
    pub(crate) fn keep_reply(&mut self, id: MessageId, bytes: Vec<u8>, handle: Name) {
        // The newest are the likeliest.
        if let Some(place) = self.ids.iter().rposition(|one| *one == id) {
            let record = &mut self.records[place];
            record.reply = Some(Reply { bytes, handle, copies: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::params::NON_LIFETIME;

    const ID: MessageId = MessageId(5);

    #[test]
    fn a_message_is_new_once_and_then_a_duplicate_until_it_expires() {
        let mut seen = Seen::default();
        assert!(matches!(seen.sight(ID, Instant::ZERO), DuplicateCheck::New));
        seen.remember(ID, Kind::NonConfirmable, Instant::ZERO);
        let late = Instant::from_secs(144);
        assert!(matches!(seen.sight(ID, late), DuplicateCheck::Duplicate));
        assert!(matches!(seen.sight(ID, late + NON_LIFETIME), DuplicateCheck::New));
    }

    #[test]
    fn a_duplicate_finds_the_answer_and_counts_its_copies() {
        let mut seen = Seen::default();
        seen.remember(ID, Kind::Confirmable, Instant::ZERO);
        seen.keep_reply(ID, b"ack".to_vec(), Name::Host(3));
        for copy in 1..4 {
            let DuplicateCheck::Answered(reply) = seen.sight(ID, Instant::ZERO) else {
                panic!("answered")
            };
            assert_eq!((reply.copies, &reply.bytes[..]), (copy, &b"ack"[..]));
        }
    }

    #[test]
    fn expired_messages_leave_from_the_old_end() {
        let mut seen = Seen::default();
        seen.remember(MessageId(1), Kind::Confirmable, Instant::ZERO);
        seen.remember(MessageId(2), Kind::Confirmable, Instant::from_secs(10));
        assert_eq!(seen.forget_expired(Instant::from_secs(246)), 0);
        assert_eq!(seen.forget_expired(Instant::from_secs(247)), 1);
        assert_eq!(seen.len(), 1);
        assert!(seen.forget_oldest() && !seen.forget_oldest());
    }
}
