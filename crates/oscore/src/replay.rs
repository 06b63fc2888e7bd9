//! Replay protection of requests (RFC 8613 s7.4), and what stands in for it when the window is lost
//! (appendix B.1.2).
//!
//! ```text
//!    Lost ── a request with our Echo: its number is the lower limit ──► Known
//!    Lost ── any other request ── once each: a challenge, which costs a number of ours ──► Lost
//!    Trusted: a loss without a challenge; what it admits may have been answered before
//! ```
//! While the window is not `Known`, a request may be one that was answered before, so no response
//! uses its nonce (s7.2: an AEAD nonce MUST NOT be used more than once per AEAD key).
//!
//! A client numbers its requests in ascending order and uses no number twice. So a request that was challenged already,
//! or is older than the window of challenged requests, is a replay and costs no number of ours.

use crate::PartialIv;
use crate::params::CHALLENGE_LEN;

/// Octets of randomness for an Echo option, new at each start of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge(pub [u8; CHALLENGE_LEN]);

/// Which numbers have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The number above all that have come.
    pub(crate) end: u64,
    /// Bit n: the number `end - 1 - n` has come.
    pub(crate) seen: u64,
    size: u8,
}

impl Window {
    /// A window in which nothing has come.
    pub(crate) const fn new(size: u8) -> Self {
        Self { end: 0, seen: 0, size }
    }
    /// A window as it was stored.
    pub(crate) const fn resume(end: u64, seen: u64, size: u8) -> Self {
        Self { end, seen, size }
    }
    /// The same past, looked back on so far.
    const fn with_size(self, size: u8) -> Self {
        Self { size, ..self }
    }
    /// True for a number that has not come, and is not older than the window.
    pub(crate) fn admits(&self, piv: PartialIv) -> bool {
        let Some(back) = self.end.checked_sub(piv.number() + 1) else { return true };
        back < u64::from(self.size) && self.seen & (1 << back) == 0
    }
    /// The number has come, with a valid tag.
    pub(crate) fn take(&mut self, piv: PartialIv) {
        let number = piv.number();
        let shift = |distance: u64| u32::try_from(distance).unwrap_or(u32::MAX);
        if let Some(back) = self.end.checked_sub(number + 1) {
            self.seen |= 1_u64.checked_shl(shift(back)).unwrap_or(0);
        } else {
            let step = shift(number + 1 - self.end);
            self.seen = self.seen.checked_shl(step).unwrap_or(0) | 1;
            self.end = number + 1;
        }
    }
    /// Nothing up to this number is admitted any more.
    const fn from_limit(piv: PartialIv, size: u8) -> Self {
        Self { end: piv.number() + 1, seen: u64::MAX, size }
    }
}

/// What a recipient context knows of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replay {
    /// All of it.
    Known(Window),
    /// What came since a loss, before which anything may have come.
    Trusted(Window),
    /// Nothing: the window was lost in a crash. `challenged` has the requests that were challenged since.
    Lost { challenge: Challenge, challenged: Window },
}

impl Replay {
    /// The same with a window of this size.
    pub(crate) const fn with_size(self, size: u8) -> Self {
        match self {
            Self::Known(window) => Self::Known(window.with_size(size)),
            Self::Trusted(window) => Self::Trusted(window.with_size(size)),
            Self::Lost { challenge, challenged } => {
                Self::Lost { challenge, challenged: challenged.with_size(size) }
            }
        }
    }
    /// Whether a request that is admitted has never been answered.
    pub(crate) const fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }
    /// Whether a request may be opened: after a loss each one that was not challenged before.
    pub(crate) fn admits(&self, piv: PartialIv) -> bool {
        match self {
            Self::Known(window) | Self::Trusted(window) => window.admits(piv),
            Self::Lost { challenged, .. } => challenged.admits(piv),
        }
    }
    /// A request has been answered with the challenge.
    pub(crate) fn on_challenged(&mut self, piv: PartialIv) {
        if let Self::Lost { challenged, .. } = self {
            challenged.take(piv);
        }
    }
    /// A request with a valid tag came, with this Echo. An error is the challenge to answer with.
    pub(crate) fn take(&mut self, piv: PartialIv, echo: Option<&[u8]>) -> Result<(), Challenge> {
        match self {
            Self::Known(window) | Self::Trusted(window) => window.take(piv),
            Self::Lost { challenge, challenged } => {
                if echo != Some(&challenge.0[..]) {
                    return Err(*challenge);
                }
                // RFC 8613 appendix B.1.2: the Partial IV of the fresh request is the lower limit.
                *self = Self::Known(Window::from_limit(piv, challenged.size));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn piv(number: u64) -> PartialIv {
        PartialIv::new(number).expect("below 2^40")
    }

    #[test]
    fn a_number_that_fell_out_of_the_window_is_refused() {
        let mut window = Window::new(32);
        window.take(piv(40));
        assert!(!window.admits(piv(40)));
        assert!(window.admits(piv(9)));
        assert!(!window.admits(piv(8)));
        assert!(window.admits(piv(41)));
    }

    #[test]
    fn a_far_jump_leaves_nothing_of_the_past_open() {
        let mut window = Window::new(63);
        window.take(piv(3));
        window.take(piv((1 << 40) - 1));
        assert!(window.admits(piv((1 << 40) - 2)));
        assert!(!window.admits(piv(4)));
    }

    #[test]
    fn a_lost_window_opens_with_its_own_echo_only_and_admits_nothing_older() {
        let challenge = Challenge([7; 8]);
        let mut replay = Replay::Lost { challenge, challenged: Window::new(32) };
        assert_eq!(replay.take(piv(5), None), Err(challenge));
        assert_eq!(replay.take(piv(6), Some(&[8; 8])), Err(challenge));
        assert_eq!(replay.take(piv(7), Some(&[7; 8])), Ok(()));
        for old in 0..=7 {
            assert!(!replay.admits(piv(old)), "{old}");
        }
        assert!(replay.admits(piv(8)));
    }

    proptest! {
        #[test]
        fn no_number_is_admitted_twice_and_a_newer_one_always(
            numbers in prop::collection::vec(0_u64..200, 1..300),
            size in 1_u8..64,
        ) {
            let mut window = Window::new(size);
            let mut taken = BTreeSet::new();
            for number in numbers {
                let newest = taken.last().is_none_or(|last| number > *last);
                let open = taken.last().is_none_or(|last| number + u64::from(size) > *last);
                let admitted = window.admits(piv(number));
                prop_assert_eq!(admitted, newest || (open && !taken.contains(&number)));
                if admitted {
                    window.take(piv(number));
                    taken.insert(number);
                }
            }
        }
    }
}
