//! What a node knows of each link: ETX, signal, last sequence number.

use alloc::vec::Vec;

use lowmesh_units::{Dbm, Duration, Eui64, Instant};

use crate::params::{
    ETX_ALPHA_FIRST_PERCENT, ETX_ALPHA_PERCENT, ETX_FRESH, ETX_GUESS, ETX_GUESS_RSSI, ETX_NOACK,
    ETX_SAMPLES_MAX, ETX_UNIT, GONE_AFTER, GONE_SILENCE, NEIGHBOURS_MAX, SILENCE, SILENT_AFTER,
};

/// One neighbour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Who.
    pub peer: Eui64,
    /// Expected transmissions until an acknowledgement, in 1/128.
    pub etx: u16,
    /// Transmissions that the average stands on, up to [`ETX_SAMPLES_MAX`]; from [`ETX_FRESH`] on it is fresh.
    pub samples: u8,
    /// Smoothed level of what was heard from it.
    pub rssi: Dbm,
    /// When something was last heard from it.
    pub heard: Instant,
    /// Whether a frame to it was ever acknowledged.
    has_acknowledged: bool,
    /// Frames since then that were not, and when the last of them ended.
    failures: u8,
    failed: Instant,
    /// Copies of frames to it since something was last heard from it.
    unanswered: u8,
    /// Whether it was given up and nothing was heard from it since then.
    is_gone: bool,
    /// Whether it was reported as silent, and nothing was heard from it since then.
    is_silent: bool,
    sequence: Option<(u8, Instant)>,
}

impl Link {
    /// Whether frames to it are acknowledged: one was, and [`SILENT_AFTER`] in a row since then did not fail.
    pub const fn acknowledges(&self) -> bool {
        self.has_acknowledged && self.failures < SILENT_AFTER
    }
    /// Whether no frame to it has ended yet.
    pub const fn is_untried(&self) -> bool {
        !self.has_acknowledged && self.failures == 0
    }
    /// Whether [`SILENT_AFTER`] frames in a row failed, the last of them lately.
    pub fn is_silent(&self, now: Instant) -> bool {
        self.failures >= SILENT_AFTER && now.since(self.failed) < SILENCE
    }
}

/// All neighbours, in order of address; bounded. A new one displaces the neighbour heard longest ago of those that have
/// acknowledged no frame, or else of all, so that forged addresses displace no neighbour in use.
#[derive(Clone, Debug, Default)]
pub struct LinkTable(Vec<Link>);

impl LinkTable {
    /// The link to `peer`.
    pub fn get(&self, peer: Eui64) -> Option<&Link> {
        self.0.binary_search_by_key(&peer, |l| l.peer).ok().map(|i| &self.0[i])
    }
    /// All links, in order of address.
    pub fn iter(&self) -> impl Iterator<Item = &Link> + '_ {
        self.0.iter()
    }

    /// Forgets all neighbours: what was measured before a node lost its network says nothing about the links that it has
    /// when it is back.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Something was heard from `peer`; true when it was gone or silent.
    pub fn note_heard(&mut self, now: Instant, peer: Eui64, rssi: Dbm) -> bool {
        let link = self.entry(now, peer, rssi);
        link.heard = now;
        link.unanswered = 0;
        link.rssi = Dbm(link.rssi.0 + (rssi.0 - link.rssi.0) / 8.0);
        let is_back = link.is_gone || link.is_silent;
        (link.is_gone, link.is_silent) = (false, false);
        is_back
    }

    /// A copy of a frame to `peer` was not acknowledged; true when the neighbour is gone by that: [`GONE_AFTER`] copies in a
    /// row failed, and it has been silent for [`GONE_SILENCE`].
    pub fn note_unanswered(&mut self, now: Instant, peer: Eui64) -> bool {
        let Ok(place) = self.0.binary_search_by_key(&peer, |l| l.peer) else { return false };
        let link = &mut self.0[place];
        link.unanswered = link.unanswered.saturating_add(1);
        let is_silent = link.unanswered >= GONE_AFTER && now.since(link.heard) >= GONE_SILENCE;
        is_silent && !core::mem::replace(&mut link.is_gone, true)
    }

    /// What [`Self::is_duplicate`] would say, without remembering the number.
    pub fn has_sequence(&self, now: Instant, peer: Eui64, sequence: u8, window: Duration) -> bool {
        let last = self.get(peer).and_then(|link| link.sequence);
        last.is_some_and(|(s, when)| s == sequence && now.since(when) < window)
    }

    /// True when the last frame from `peer` had this sequence number too, less than `window` ago: a retry
    /// whose acknowledgement was lost (IEEE 802.15.4-2015 s6.7.2). Remembers the number.
    pub fn is_duplicate(
        &mut self,
        now: Instant,
        peer: Eui64,
        sequence: u8,
        rssi: Dbm,
        window: Duration,
    ) -> bool {
        let link = self.entry(now, peer, rssi);
        let last = link.sequence.replace((sequence, now));
        last.is_some_and(|(s, when)| s == sequence && now.since(when) < window)
    }

    /// A unicast frame to `peer` ended after `transmissions` copies. Returns the new ETX.
    pub fn note_sent(
        &mut self,
        now: Instant,
        peer: Eui64,
        transmissions: u8,
        acked: bool,
    ) -> Option<u16> {
        let place = self.0.binary_search_by_key(&peer, |l| l.peer).ok()?;
        let link = &mut self.0[place];
        link.has_acknowledged |= acked;
        link.failures = if acked { 0 } else { link.failures.saturating_add(1) };
        link.failed = if acked { link.failed } else { now };
        let penalty = if acked { 0 } else { ETX_NOACK };
        let sample = u32::from(transmissions) + u32::from(penalty);
        // As in Contiki-NG's link-stats.c, this frame's transmissions count before the weight is chosen.
        link.samples = link.samples.saturating_add(transmissions).min(ETX_SAMPLES_MAX);
        let alpha =
            if link.samples < ETX_FRESH { ETX_ALPHA_FIRST_PERCENT } else { ETX_ALPHA_PERCENT };
        let old = u32::from(link.etx);
        let new = (old * (100 - alpha) + sample * u32::from(ETX_UNIT) * alpha) / 100;
        link.etx = new.min(u32::from(u16::MAX)) as u16;
        Some(link.etx)
    }

    /// Sets each ETX that is worse than the first estimate of a weak link to that estimate, because the node looks for a
    /// parent. The old ETX measures a link as it was before.
    pub fn reset_bad(&mut self) {
        for link in self.0.iter_mut().filter(|link| link.etx > WORST_GUESS) {
            (link.etx, link.samples) = (WORST_GUESS, 0);
        }
    }

    /// The neighbours from which nothing has been heard for `span`, each once until it is heard again.
    pub fn take_silent(&mut self, now: Instant, span: Duration) -> impl Iterator<Item = Eui64> {
        let silent = move |link: &&mut Link| !link.is_silent && now.since(link.heard) >= span;
        self.0.iter_mut().filter(silent).map(|link| {
            link.is_silent = true;
            link.peer
        })
    }

    fn entry(&mut self, now: Instant, peer: Eui64, rssi: Dbm) -> &mut Link {
        let mut place = self.0.binary_search_by_key(&peer, |l| l.peer);
        if place.is_err() {
            self.make_room();
            let free = self.0.partition_point(|l| l.peer < peer);
            let etx = first_guess(rssi);
            let (samples, has_acknowledged, failures, sequence) = (0, false, 0, None);
            self.0.insert(
                free,
                Link {
                    peer,
                    etx,
                    samples,
                    rssi,
                    heard: now,
                    has_acknowledged,
                    failures,
                    failed: now,
                    unanswered: 0,
                    is_gone: false,
                    is_silent: false,
                    sequence,
                },
            );
            place = Ok(free);
        }
        let (Ok(place) | Err(place)) = place;
        &mut self.0[place]
    }

    fn make_room(&mut self) {
        if self.0.len() < NEIGHBOURS_MAX {
            return;
        }
        let by_use = |(_, link): &(usize, &Link)| (link.has_acknowledged, link.heard);
        let oldest = self.0.iter().enumerate().min_by_key(by_use).map(|(place, _)| place);
        if let Some(oldest) = oldest {
            self.0.remove(oldest);
        }
    }
}

/// The estimate of a link whose signal is weak.
const WORST_GUESS: u16 = (ETX_GUESS.1 * ETX_UNIT as f64) as u16;

/// The ETX that a signal of this level suggests.
fn first_guess(rssi: Dbm) -> u16 {
    let (best, worst) = ETX_GUESS;
    let (strong, weak) = ETX_GUESS_RSSI;
    let share = ((strong - rssi.0) / (strong - weak)).clamp(0.0, 1.0);
    ((best + (worst - best) * share) * f64::from(ETX_UNIT)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::NodeId;

    const PEER: Eui64 = NodeId(1).eui64();

    #[test]
    fn forged_addresses_displace_no_neighbour_that_has_acknowledged() {
        let mut links = LinkTable::default();
        links.note_heard(Instant::ZERO, PEER, Dbm(-60.0));
        links.note_sent(Instant::ZERO, PEER, 1, true);
        for node in 2..1000 {
            links.note_heard(Instant::from_secs(node), NodeId(node as u16).eui64(), Dbm(-60.0));
        }
        assert!(links.get(PEER).is_some_and(Link::acknowledges));
        assert_eq!((links.iter().count(), links.get(NodeId(2).eui64())), (NEIGHBOURS_MAX, None));
    }

    #[test]
    fn a_stronger_signal_never_suggests_a_worse_link() {
        let guesses: Vec<u16> =
            (-100..-40).map(|level| first_guess(Dbm(f64::from(level)))).collect();
        assert!(guesses.windows(2).all(|w| w[1] <= w[0]));
        assert_eq!((guesses[0], guesses[59]), (3 * ETX_UNIT, ETX_UNIT));
    }

    #[test]
    fn etx_follows_what_happens_on_the_link() {
        let mut links = LinkTable::default();
        links.note_heard(Instant::ZERO, PEER, Dbm(-60.0));
        for _ in 0..50 {
            links.note_sent(Instant::ZERO, PEER, 2, true);
        }
        assert!(links.get(PEER).is_some_and(|l| l.etx.abs_diff(2 * ETX_UNIT) < 10));
        links.note_sent(Instant::ZERO, PEER, 8, false);
        assert!(links.get(PEER).is_some_and(|l| l.etx > 2 * ETX_UNIT + ETX_UNIT / 2));
    }

    #[test]
    fn a_frame_given_up_counts_its_transmissions_and_the_penalty() {
        let mut links = LinkTable::default();
        links.note_heard(Instant::ZERO, PEER, Dbm(-60.0));
        // Eight transmissions and twelve more; they are samples enough for the slow average.
        let first = ETX_UNIT * 9 / 10 + ETX_UNIT * 20 / 10;
        assert!(
            links
                .note_sent(Instant::ZERO, PEER, 8, false)
                .is_some_and(|etx| etx.abs_diff(first) <= 1)
        );
        // A frame in one transmission counts for one.
        let second = (u32::from(first) * 9 + u32::from(ETX_UNIT)) / 10;
        let etx = links.note_sent(Instant::ZERO, PEER, 1, true).map_or(0, u32::from);
        assert!(etx.abs_diff(second) <= 1);
    }

    #[test]
    fn an_average_is_fresh_after_as_many_transmissions_as_contiki_ng_asks() {
        let mut links = LinkTable::default();
        links.note_heard(Instant::ZERO, PEER, Dbm(-60.0));
        links.note_sent(Instant::ZERO, PEER, 3, true);
        assert!(links.get(PEER).is_some_and(|l| l.samples < ETX_FRESH));
        links.note_sent(Instant::ZERO, PEER, 1, true);
        assert!(links.get(PEER).is_some_and(|l| l.samples >= ETX_FRESH));
    }

    #[test]
    fn a_link_that_failed_has_the_estimate_of_a_weak_one_after_a_reset() {
        let mut links = LinkTable::default();
        links.note_heard(Instant::ZERO, PEER, Dbm(-60.0));
        for _ in 0..20 {
            links.note_sent(Instant::ZERO, PEER, 8, false);
        }
        let etx = |links: &LinkTable| links.get(PEER).map_or(0, |link| link.etx);
        assert!(etx(&links) > 8 * ETX_UNIT);
        links.reset_bad();
        assert_eq!(etx(&links), WORST_GUESS);
        links.note_sent(Instant::ZERO, PEER, 1, true);
        assert!(etx(&links) <= WORST_GUESS - ETX_UNIT / 2, "{}", etx(&links));
    }

    #[test]
    fn a_neighbour_is_silent_after_three_failures_in_a_row_and_until_it_acknowledges() {
        let mut links = LinkTable::default();
        let at = |s| Instant::from_secs(s);
        links.note_heard(at(0), PEER, Dbm(-60.0));
        let state = |links: &LinkTable, s| {
            links.get(PEER).map(|link| (link.acknowledges(), link.is_silent(at(s))))
        };
        assert_eq!(state(&links, 0), Some((false, false)), "nothing is known");
        links.note_sent(at(1), PEER, 1, true);
        for _ in 0..2 {
            links.note_sent(at(1), PEER, 1, false);
            assert_eq!(state(&links, 1), Some((true, false)), "frames get lost");
        }
        links.note_sent(at(2), PEER, 1, false);
        assert_eq!(state(&links, 11), Some((false, true)));
        assert_eq!(state(&links, 12), Some((false, false)), "it may be back");
        links.note_sent(at(13), PEER, 1, true);
        assert_eq!(state(&links, 13), Some((true, false)));
    }

    #[test]
    fn a_repeated_sequence_number_is_a_duplicate_only_for_a_while() {
        let mut links = LinkTable::default();
        let start = Instant::from_secs(1);
        let mut heard = |after: u64, sequence| {
            let now = start + Duration::from_secs(after);
            links.is_duplicate(now, PEER, sequence, Dbm(-70.0), Duration::from_secs(30))
        };
        assert!(!heard(0, 7));
        assert!(heard(1, 7));
        assert!(!heard(60, 7));
        assert!(!heard(61, 8));
    }

    #[test]
    fn the_table_stays_bounded() {
        let mut links = LinkTable::default();
        for n in 0..2 * NEIGHBOURS_MAX as u16 {
            links.note_heard(Instant::from_secs(u64::from(n)), NodeId(n).eui64(), Dbm(-70.0));
        }
        assert_eq!(links.iter().count(), NEIGHBOURS_MAX);
        assert!(links.get(NodeId(0).eui64()).is_none());
    }
}
