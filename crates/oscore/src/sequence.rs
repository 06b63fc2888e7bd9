//! The Sender Sequence Number, and how it survives a crash (RFC 8613 s7.2 and appendix B.1.1).
//!
//! ```text
//!          used      reserved, of which none is used after a crash
//!   |--------------|---------------------------|
//!   0            next                      reserved ──► written before the first of them is sent
//! ```

use crate::PartialIv;
use crate::params::SEQUENCE_MAX;

/// Counts what is sent.
#[derive(Debug)]
pub(crate) struct Sequence {
    next: u64,
    /// Numbers below may be used: this is what is stored.
    reserved: u64,
    step: u64,
    /// `reserved` has grown since it was taken for storing.
    unsaved: bool,
}

impl Sequence {
    /// Starts at `reserved`, as it was stored last; 0 if nothing ever was.
    pub(crate) const fn resume(reserved: u64, step: u32) -> Self {
        // RFC 8613 appendix B.1.1: after a restart no number is used again that may have been used.
        Self { next: reserved, reserved, step: step as u64, unsaved: false }
    }
    /// The next number; `None` when all are used.
    pub(crate) fn take(&mut self) -> Option<PartialIv> {
        // RFC 8613 s7.2.1: past the maximum MUST NOT process any more messages.
        let piv = PartialIv::new(self.next)?;
        if self.next >= self.reserved {
            self.reserved = (self.next + self.step).min(SEQUENCE_MAX + 1);
            self.unsaved = true;
        }
        self.next += 1;
        Some(piv)
    }
    /// What has to be stored before the last message taken leaves, if it is not stored yet.
    pub(crate) fn take_reservation(&mut self) -> Option<u64> {
        core::mem::take(&mut self.unsaved).then_some(self.reserved)
    }
    /// The next number, for an orderly end.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_reserved_before_it_is_used_and_one_write_serves_several() {
        let mut sequence = Sequence::resume(0, 3);
        let mut stored = 0;
        let mut writes = 0;
        for number in 0..9 {
            assert_eq!(sequence.take(), PartialIv::new(number));
            if let Some(reserved) = sequence.take_reservation() {
                stored = reserved;
                writes += 1;
            }
            assert!(stored > number);
        }
        assert_eq!(writes, 3);
    }

    #[test]
    fn after_a_crash_no_number_comes_again() {
        let mut first = Sequence::resume(0, 16);
        let (last, stored) = (first.take(), first.take_reservation());
        let mut second = Sequence::resume(stored.expect("reserved"), 16);
        assert!(second.take() > last);
        assert_eq!(second.take_reservation(), Some(32));
    }

    #[test]
    fn past_two_to_the_40_there_is_no_number() {
        let mut sequence = Sequence::resume(SEQUENCE_MAX, 100);
        assert_eq!(sequence.take(), PartialIv::new(SEQUENCE_MAX));
        assert_eq!(sequence.take_reservation(), Some(SEQUENCE_MAX + 1));
        assert_eq!(sequence.take(), None);
        assert_eq!(Sequence::resume(SEQUENCE_MAX + 1, 1).take(), None);
    }
}
