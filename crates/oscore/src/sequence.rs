//! The Sender Sequence Number, and how it survives a crash (RFC 8613 s7.2 and appendix B.1.1).
//!
//! ```text
//!          used       reserved: stored as used, and used one by one
//!   |---------------|----------------------|............  not stored: no message has them
//!   0              next                   end
//!
//!   needed ──► the caller stores `end` ──► confirm ──► take, take, ... ──► needed
//! ```

use crate::params::SEQUENCE_MAX;
use crate::{PartialIv, ProtectError};

/// Sequence numbers that a context asks for: they are stored as used first, and then
/// [confirmed](crate::SecurityContext::confirm).
#[derive(Debug, PartialEq, Eq)]
pub struct Reservation {
    first: u64,
    end: u64,
}

impl Reservation {
    /// The number after the last of them: the `sequence` of the [`State`](crate::State) to store.
    pub const fn end(&self) -> u64 {
        self.end
    }
    /// True if none of them is below a number.
    pub(crate) const fn starts_at_or_after(&self, number: u64) -> bool {
        self.first >= number
    }
    /// As many numbers, but none below `first`: contexts with one Sender Key share its numbers.
    #[must_use]
    pub fn not_before(self, first: u64) -> Self {
        let count = self.end - self.first;
        let first = first.max(self.first).min(SEQUENCE_MAX + 1);
        Self { first, end: (first + count).min(SEQUENCE_MAX + 1) }
    }
}

/// Counts what is sent. It gives out no number that is not confirmed as stored.
#[derive(Debug)]
pub(crate) struct Sequence {
    next: u64,
    /// Numbers below are stored as used.
    end: u64,
    step: u64,
}

impl Sequence {
    /// Goes on with a stored state, below whose number all may have been used; 0 if nothing was
    /// ever stored.
    pub(crate) const fn resume(stored: u64, step: u32) -> Self {
        // RFC 8613 s7.5: MUST NOT reuse a previous Sender Sequence Number.
        Self { next: stored, end: stored, step: step as u64 }
    }
    /// All numbers, for a context that is never resumed.
    pub(crate) const fn unbounded() -> Self {
        Self { next: 0, end: SEQUENCE_MAX + 1, step: 1 }
    }
    /// The same numbers, with another count between two writes.
    pub(crate) const fn with_step(self, step: u32) -> Self {
        Self { step: step as u64, ..self }
    }
    /// What is to be stored before the next number can be taken; `None` while there is one, and
    /// when all are used.
    pub(crate) fn needed(&self) -> Option<Reservation> {
        let end = (self.next + self.step).min(SEQUENCE_MAX + 1);
        (self.next == self.end && !self.is_exhausted())
            .then_some(Reservation { first: self.next, end })
    }
    /// The numbers are stored as used. A reservation from before numbers were taken is void.
    #[expect(clippy::needless_pass_by_value, reason = "what is confirmed is so once")]
    pub(crate) const fn confirm(&mut self, reservation: Reservation) {
        let Reservation { first, end } = reservation;
        if first >= self.next {
            self.next = first;
            self.end = end;
        }
    }
    /// The next number.
    pub(crate) fn take(&mut self) -> Result<PartialIv, ProtectError> {
        // RFC 8613 s7.2.1: past the maximum MUST NOT process any more messages.
        let piv = PartialIv::new(self.next).ok_or(ProtectError::Exhausted)?;
        // RFC 8613 appendix B.1.1: a number is stored before it is used.
        if self.next == self.end {
            return Err(ProtectError::Unreserved);
        }
        self.next += 1;
        Ok(piv)
    }
    /// True when all numbers are used.
    pub(crate) const fn is_exhausted(&self) -> bool {
        self.next > SEQUENCE_MAX
    }
    /// The next number, for an orderly end.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }
    /// The end of what is confirmed as stored.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(sequence: &mut Sequence) -> u64 {
        sequence.take().expect("reserved").number()
    }

    #[test]
    fn a_number_is_stored_before_it_is_used_and_one_write_serves_several() {
        let mut sequence = Sequence::resume(0, 3);
        let mut stored = 0;
        let mut writes = 0;
        for expected in 0..9 {
            if let Some(reservation) = sequence.needed() {
                assert_eq!(sequence.take(), Err(ProtectError::Unreserved));
                stored = reservation.end();
                sequence.confirm(reservation);
                writes += 1;
            }
            assert_eq!(number(&mut sequence), expected);
            assert!(stored > expected);
        }
        assert_eq!(writes, 3);
    }

    #[test]
    fn without_a_confirmation_no_number_leaves_and_the_need_stays() {
        let mut sequence = Sequence::resume(7, 3);
        for _ in 0..3 {
            assert_eq!(sequence.needed(), Some(Reservation { first: 7, end: 10 }));
            assert_eq!(sequence.take(), Err(ProtectError::Unreserved));
        }
        let late = sequence.needed().expect("still none");
        sequence.confirm(Reservation { first: 7, end: 10 });
        assert_eq!(number(&mut sequence), 7);
        sequence.confirm(late);
        assert_eq!(number(&mut sequence), 8);
    }

    #[test]
    fn after_a_crash_no_number_comes_again() {
        let mut first = Sequence::resume(0, 16);
        let stored = first.needed().expect("nothing is stored");
        let end = stored.end();
        first.confirm(stored);
        let last = number(&mut first);
        let mut second = Sequence::resume(end, 16);
        let next = second.needed().expect("nothing new is stored");
        assert_eq!(next.end(), 32);
        second.confirm(next);
        assert!(number(&mut second) > last);
    }

    #[test]
    fn past_two_to_the_40_there_is_no_number() {
        let mut sequence = Sequence::resume(SEQUENCE_MAX, 100);
        let last = sequence.needed().expect("one is left");
        assert_eq!(last.end(), SEQUENCE_MAX + 1);
        sequence.confirm(last);
        assert_eq!(number(&mut sequence), SEQUENCE_MAX);
        assert_eq!((sequence.take(), sequence.needed()), (Err(ProtectError::Exhausted), None));
        let mut shared = Sequence::resume(0, 100);
        let beyond = shared.needed().expect("none").not_before(SEQUENCE_MAX + 1);
        shared.confirm(beyond);
        assert_eq!(shared.take(), Err(ProtectError::Exhausted));
    }
}
