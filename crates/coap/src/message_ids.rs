//! Message IDs towards one peer (RFC 7252 s4.4).
//!
//! IDs are handed out in sequence from a random start. How many were handed out within the last
//! EXCHANGE_LIFETIME is counted in steps of a few seconds, so that an ID never comes again too
//! early: who wants to send more than 65,536 messages to one peer within that time is told so.

use alloc::collections::VecDeque;

use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::MessageId;

use crate::params::{MESSAGE_ID_STEP, MESSAGE_IDS};

/// The counter of one peer. A place is reserved first, when a message is accepted, and the ID
/// issued when it leaves.
#[derive(Clone, Debug)]
pub(crate) struct MessageIds {
    next: u16,
    reserved: u32,
    /// IDs that may not be used again yet.
    in_use: u32,
    /// (start of a step, IDs issued in it), oldest first.
    steps: VecDeque<(Instant, u32)>,
    /// EXCHANGE_LIFETIME (RFC 7252 s4.8.2) of the peer.
    lifetime: Duration,
}

impl MessageIds {
    /// RFC 7252 s4.4: it is strongly recommended that the initial value be randomised.
    pub(crate) const fn new(first: u16, lifetime: Duration) -> Self {
        Self { next: first, reserved: 0, in_use: 0, steps: VecDeque::new(), lifetime }
    }
    /// From now on IDs are in use for `lifetime` at least, those issued before too.
    pub(crate) fn widen(&mut self, lifetime: Duration) {
        self.lifetime = self.lifetime.max(lifetime);
    }
    /// The IDs of a step that began at `start` may be used again.
    fn is_over(&self, start: Instant, now: Instant) -> bool {
        now.since(start) >= self.lifetime + MESSAGE_ID_STEP
    }
    /// Sets an ID aside for a message; false when all are in use.
    pub(crate) fn reserve(&mut self, now: Instant) -> bool {
        self.forget_before(now);
        let free = self.in_use + self.reserved < MESSAGE_IDS;
        self.reserved += u32::from(free);
        free
    }
    /// IDs that are free.
    pub(crate) fn left(&self, now: Instant) -> u32 {
        let expired = self.steps.iter().take_while(|(start, _)| self.is_over(*start, now));
        let in_use = self.in_use - expired.map(|(_, count)| count).sum::<u32>();
        MESSAGE_IDS.saturating_sub(in_use + self.reserved)
    }
    /// Gives a reserved place back.
    pub(crate) fn release(&mut self) {
        self.reserved = self.reserved.saturating_sub(1);
    }
    /// The next ID, for a message with a reserved place that leaves now.
    pub(crate) fn issue(&mut self, now: Instant) -> MessageId {
        self.release();
        let id = MessageId(self.next);
        self.use_up(1, now);
        id
    }
    /// Goes on with an ID that does not follow from the latest: the `count` IDs in between are in use as if they had been
    /// issued. False if fewer than half of all would be free.
    pub(crate) fn skip(&mut self, count: u32, now: Instant) -> bool {
        self.forget_before(now);
        if self.in_use + self.reserved + count > MESSAGE_IDS / 2 {
            return false;
        }
        self.use_up(count, now);
        true
    }
    /// The next `count` IDs are in use from now on.
    fn use_up(&mut self, count: u32, now: Instant) {
        self.in_use += count;
        match self.steps.back_mut() {
            Some((start, issued)) if now.since(*start) < MESSAGE_ID_STEP => *issued += count,
            _ => self.steps.push_back((now, count)),
        }
        self.next = self.next.wrapping_add(count as u16);
    }
    fn forget_before(&mut self, now: Instant) {
        // RFC 7252 s4.4: the same ID MUST NOT be reused within EXCHANGE_LIFETIME.
        while let Some((start, count)) = self.steps.front() {
            if !self.is_over(*start, now) {
                break;
            }
            self.in_use -= count;
            self.steps.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::EXCHANGE_LIFETIME;

    #[test]
    fn ids_run_on_from_the_start_and_wrap() {
        let mut ids = MessageIds::new(0xffff, EXCHANGE_LIFETIME);
        assert!(ids.reserve(Instant::ZERO) && ids.reserve(Instant::ZERO));
        assert_eq!(ids.issue(Instant::ZERO), MessageId(0xffff));
        assert_eq!(ids.issue(Instant::ZERO), MessageId(0));
    }

    #[test]
    fn the_65537th_message_within_the_lifetime_has_no_id() {
        let mut ids = MessageIds::new(7, EXCHANGE_LIFETIME);
        let mut now = Instant::ZERO;
        for _ in 0..MESSAGE_IDS {
            assert!(ids.reserve(now));
            ids.issue(now);
            now += Duration::from_millis(3);
        }
        assert!(!ids.reserve(now) && ids.left(now) == 0);
        assert!(!ids.reserve(Instant::ZERO + EXCHANGE_LIFETIME));
        let over = Instant::ZERO + EXCHANGE_LIFETIME + MESSAGE_ID_STEP;
        assert!((1..MESSAGE_IDS).contains(&ids.left(over)), "{}", ids.left(over));
        assert!(ids.reserve(Instant::ZERO + EXCHANGE_LIFETIME + MESSAGE_ID_STEP));
        assert!(ids.steps.len() <= 32, "{} steps", ids.steps.len());
    }

    #[test]
    fn with_a_longer_lifetime_an_id_stays_in_use_for_longer() {
        let mut ids = MessageIds::new(7, EXCHANGE_LIFETIME);
        assert!(ids.reserve(Instant::ZERO));
        ids.issue(Instant::ZERO);
        ids.widen(EXCHANGE_LIFETIME * 2);
        ids.widen(EXCHANGE_LIFETIME);
        let left = |after| ids.left(Instant::ZERO + after + MESSAGE_ID_STEP);
        assert_eq!(left(EXCHANGE_LIFETIME), MESSAGE_IDS - 1);
        assert_eq!(left(EXCHANGE_LIFETIME * 2), MESSAGE_IDS);
    }

    #[test]
    fn a_reserved_place_counts_until_it_is_released() {
        let mut ids = MessageIds::new(0, EXCHANGE_LIFETIME);
        for _ in 0..MESSAGE_IDS {
            assert!(ids.reserve(Instant::ZERO));
        }
        assert!(!ids.reserve(Instant::ZERO));
        ids.release();
        assert!(ids.reserve(Instant::ZERO));
    }
}
