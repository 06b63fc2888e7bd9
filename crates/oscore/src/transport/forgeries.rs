//! Forged signatures: how many of them a source can make this endpoint check (RFC 10021 s7.2 and s7.4).
//!
//! A message in group mode can have a tag that verifies and a signature that does not. Two attackers can make such messages:
//!
//! - A stranger without keys repeats a message that it has heard, with other signatures: the tag does not cover them. It
//!   makes no other tag, so the first check of a message counts, and the next ones do not. After [`FORGED_COPIES`] of them one
//!   copy a second is checked, since the genuine one may still come; the others are dropped unchecked.
//! - A holder of the secrets makes any number of messages, under the name of any member.
//!
//! A check costs some fifty times as much as the tag, so checks that fail are counted:
//!
//! ```text
//!   source   8 at once, then one a second      │ beyond, a message in group mode is dropped unchecked;
//!   all     64 at once, then eight a second    │ pairwise mode has no signatures, and goes on
//!   again    one a second of one message,      │ for copies beyond the fourth of a message whose signature was
//!            eight a second of all             │ wrong; beyond, they are dropped unchecked
//! ```
//! The shares are looked at last, behind replay window and tag: what a stranger makes up costs nobody a share.
//! A source that has shown a valid signature has its own share also while that of all is used up. Valid signatures are not
//! counted: they show which member makes the work.

use alloc::collections::{BTreeMap, VecDeque};

use lowmesh_coap::PeerAddress;
use lowmesh_units::{Duration, Instant};

use crate::group::Signed;
use crate::params::{
    FORGED_AGAIN_ALL_BURST, FORGED_AGAIN_ALL_INTERVAL, FORGED_AGAIN_INTERVAL, FORGED_ALL_BURST,
    FORGED_ALL_INTERVAL, FORGED_BURST, FORGED_COPIES, FORGED_INTERVAL, FORGED_REMEMBERED,
    SIGNATURE_SOURCES_MAX,
};

/// What may still be checked. It holds the time at which all that was used has come back.
#[derive(Clone, Copy, Debug)]
struct Share(Instant);

impl Share {
    const UNUSED: Self = Self(Instant::ZERO);

    fn has_room(self, now: Instant, burst: u64, interval: Duration) -> bool {
        self.0.since(now) + interval <= interval * burst
    }
    fn take(&mut self, now: Instant, interval: Duration) {
        self.0 = self.0.max(now) + interval;
    }
}

/// A source of messages in group mode.
#[derive(Clone, Copy, Debug)]
struct Source {
    share: Share,
    /// A valid signature came from it.
    signs: bool,
}

/// A message whose signature was wrong.
#[derive(Clone, Copy, Debug)]
struct Failed {
    /// How often, up to [`FORGED_COPIES`].
    times: u8,
    /// When it is checked again after that.
    next: Instant,
}

/// The forged signatures of each source.
#[derive(Debug)]
pub(super) struct Forgeries<P> {
    sources: BTreeMap<P, Source>,
    all: Share,
    /// Further checks of messages whose signature was wrong.
    again: Share,
    /// Messages whose signature was wrong, and the same in the order of their first check.
    failed: BTreeMap<Signed, Failed>,
    order: VecDeque<Signed>,
}

/// The check of one message, if there is one.
pub(super) struct Check<'a, P> {
    forgeries: &'a Forgeries<P>,
    from: P,
    now: Instant,
    checked: Option<Signed>,
}

impl<P: PeerAddress> Check<'_, P> {
    /// Whether the signature of the message may be checked.
    pub(super) fn may(&mut self, signed: Signed) -> bool {
        let may = self.forgeries.may_check(self.from, &signed, self.now);
        self.checked = may.then_some(signed);
        may
    }
    /// The message whose signature was checked.
    pub(super) fn end(self) -> Option<Signed> {
        self.checked
    }
}

impl<P> Default for Forgeries<P> {
    fn default() -> Self {
        let (failed, order) = (BTreeMap::new(), VecDeque::new());
        let (all, again) = (Share::UNUSED, Share::UNUSED);
        Self { sources: BTreeMap::new(), all, again, failed, order }
    }
}

impl<P: PeerAddress> Forgeries<P> {
    /// The check of a message from an address.
    pub(super) fn check(&self, from: P, now: Instant) -> Check<'_, P> {
        Check { forgeries: self, from, now, checked: None }
    }
    /// Whether the signature of a message may be checked.
    fn may_check(&self, from: P, signed: &Signed, now: Instant) -> bool {
        if let Some(failed) = self.failed.get(signed) {
            let (burst, interval) = (FORGED_AGAIN_ALL_BURST, FORGED_AGAIN_ALL_INTERVAL);
            let again = failed.next <= now && self.again.has_room(now, burst, interval);
            return failed.times < FORGED_COPIES || again;
        }
        let all = self.all.has_room(now, FORGED_ALL_BURST, FORGED_ALL_INTERVAL);
        match self.sources.get(&from.source()) {
            Some(Source { share, signs }) => {
                (*signs || all) && share.has_room(now, FORGED_BURST, FORGED_INTERVAL)
            }
            None => all,
        }
    }
    /// The check of a message has ended; `None` if nothing was checked.
    pub(super) fn on_checked(
        &mut self,
        from: P,
        checked: Option<Signed>,
        is_valid: bool,
        now: Instant,
    ) {
        let Some(signed) = checked else { return };
        if !is_valid {
            let next = now + FORGED_AGAIN_INTERVAL;
            if let Some(failed) = self.failed.get_mut(&signed) {
                if failed.times == FORGED_COPIES {
                    self.again.take(now, FORGED_AGAIN_ALL_INTERVAL);
                }
                *failed = Failed { times: FORGED_COPIES.min(failed.times + 1), next };
                return;
            }
            if self.order.len() == FORGED_REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.failed.remove(&oldest);
            }
            self.failed.insert(signed, Failed { times: 1, next });
            self.order.push_back(signed);
        }
        let source = self.source(from.source(), now);
        match source {
            Some(source) if is_valid => source.signs = true,
            Some(source) => {
                source.share.take(now, FORGED_INTERVAL);
                if !source.signs {
                    self.all.take(now, FORGED_ALL_INTERVAL);
                }
            }
            None if is_valid => {}
            None => self.all.take(now, FORGED_ALL_INTERVAL),
        }
    }
    /// The entry of a source. A full table drops sources whose share has come back and that have no valid signature; if
    /// there are none, the source has no entry, and uses the share of all.
    fn source(&mut self, source: P, now: Instant) -> Option<&mut Source> {
        if self.sources.len() >= SIGNATURE_SOURCES_MAX && !self.sources.contains_key(&source) {
            self.sources.retain(|_, one| one.signs || one.share.0 > now);
            if self.sources.len() >= SIGNATURE_SOURCES_MAX {
                return None;
            }
        }
        Some(self.sources.entry(source).or_insert(Source { share: Share::UNUSED, signs: false }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Identity, PartialIv};

    /// A message that nobody has sent before.
    fn message(number: u64) -> Signed {
        let piv = PartialIv::new(number).expect("below 2^40");
        Signed::new(Identity::default(), (Identity::default(), piv), [0; 8])
    }

    /// How many forgeries of a source are checked in so many seconds, if it sends one each millisecond.
    fn checked(forgeries: &mut Forgeries<u32>, sources: &[u32], start: u64, seconds: u64) -> usize {
        let times = (start * 1000..(start + seconds) * 1000).map(Duration::from_millis);
        let mut checked = 0;
        let mut number = start << 32;
        for now in times.map(|time| Instant::ZERO + time) {
            for source in sources {
                number += 1;
                let mut check = forgeries.check(*source, now);
                if check.may(message(number)) {
                    let signed = check.end();
                    forgeries.on_checked(*source, signed, false, now);
                    checked += 1;
                }
            }
        }
        checked
    }

    #[test]
    fn a_source_has_its_burst_and_then_its_rate() {
        let mut forgeries = Forgeries::default();
        assert_eq!(checked(&mut forgeries, &[1], 1, 100), 8 + 99);
        // Another source has its own.
        assert_eq!(checked(&mut forgeries, &[2], 101, 1), 8);
        // What was used comes back.
        assert_eq!(checked(&mut forgeries, &[2], 120, 1), 8);
    }

    #[test]
    fn all_sources_together_have_a_bound_that_spares_those_with_valid_signatures() {
        let mut forgeries = Forgeries::default();
        let now = Instant::ZERO + Duration::from_secs(1);
        forgeries.on_checked(0, Some(message(0)), true, now);
        let strangers: alloc::vec::Vec<u32> = (1..1200).collect();
        assert_eq!(checked(&mut forgeries, &strangers, 1, 10), 64 + 8 * 10 - 1);
        let now = Instant::ZERO + Duration::from_secs(11) - Duration::from_millis(1);
        assert!(!forgeries.may_check(9000, &message(0), now), "a new source has to wait");
        assert!(forgeries.may_check(0, &message(0), now), "one with a valid signature has not");
        assert_eq!(checked(&mut forgeries, &[0], 11, 1), 8, "and still its share alone");
        assert!(forgeries.sources.len() <= SIGNATURE_SOURCES_MAX);
    }

    #[test]
    fn one_message_costs_one_check_of_the_shares_whatever_its_signatures() {
        let mut forgeries = Forgeries::default();
        let now = Instant::from_secs(1);
        let mut checks = 0;
        for source in (0..1000).map(|one| one % 90) {
            let mut check = forgeries.check(source, now);
            if check.may(message(7)) {
                checks += 1;
                let signed = check.end();
                forgeries.on_checked(source, signed, false, now);
            }
        }
        assert_eq!(checks, u32::from(FORGED_COPIES));
        // One of 64 is used.
        let others: alloc::vec::Vec<u32> = (1000..1100).collect();
        assert_eq!(checked(&mut forgeries, &others, 1, 1), 63 + 7);
    }

    /// How many copies of so many messages are checked in so many seconds, one of each in a millisecond.
    fn copies_checked(forgeries: &mut Forgeries<u32>, messages: u64, seconds: u64) -> usize {
        let times = (1000..1000 * (1 + seconds)).map(Duration::from_millis);
        let mut checked = 0;
        for now in times.map(|time| Instant::ZERO + time) {
            for one in 0..messages {
                let mut check = forgeries.check(3, now);
                if check.may(message(one)) {
                    let signed = check.end();
                    forgeries.on_checked(3, signed, false, now);
                    checked += 1;
                }
            }
        }
        checked
    }

    #[test]
    fn one_copy_a_second_of_a_message_is_checked_beyond_the_fourth() {
        let mut forgeries = Forgeries::default();
        assert_eq!(copies_checked(&mut forgeries, 1, 10), usize::from(FORGED_COPIES) + 9);
    }

    #[test]
    fn further_checks_of_all_messages_have_a_bound() {
        let mut forgeries = Forgeries::default();
        // Each first check uses the share of its source: 8 at once, then one a second.
        let (seconds, first) = (10, 8 + 9);
        let checked = copies_checked(&mut forgeries, 100, seconds);
        let most = first * usize::from(FORGED_COPIES) + 8 + 8 * seconds as usize;
        let least = first * usize::from(FORGED_COPIES) + 8 * (seconds as usize - 2);
        assert!((least..=most).contains(&checked), "{checked}, not {least} to {most}");
    }

    #[test]
    fn the_latest_messages_are_remembered() {
        let mut forgeries = Forgeries::default();
        for number in 0..=FORGED_REMEMBERED as u64 {
            let now = Instant::from_secs(number);
            forgeries.on_checked(0_u32, Some(message(number)), false, now);
        }
        assert_eq!(forgeries.failed.len(), FORGED_REMEMBERED);
        assert!(!forgeries.failed.contains_key(&message(0)));
    }

    #[test]
    fn a_full_table_of_signers_leaves_the_share_of_all_to_the_next() {
        let mut forgeries = Forgeries::default();
        let now = Instant::ZERO + Duration::from_secs(1);
        for source in 0..2000 {
            forgeries.on_checked(source, Some(message(0)), true, now);
        }
        assert_eq!(forgeries.sources.len(), SIGNATURE_SOURCES_MAX);
        assert_eq!(checked(&mut forgeries, &[5000], 1, 1), 64 + 7);
    }
}
