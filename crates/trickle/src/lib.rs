//! The Trickle timer (RFC 6206), by which RPL and MPL spread news fast and repeat old news seldom.
//!
//! The timer decides when to speak; what is consistent, and what is said, is left to its user. It holds
//! no clock: the user passes `now`, and calls [`Trickle::expire`] when [`Trickle::next_deadline`] is due.
//!
//! ```text
//!   interval I:  0 ........ I/2 ........ t ........ I    t is drawn from [I/2, I)
//!                          listen        speak if   I doubles, up to Imin * 2^doublings
//!                                        c < k
//! ```
//!
//! ```
//! use lowmesh_trickle::{Expiry, Settings, Trickle};
//! use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
//! let mut rng = Rng::stream(Seed(1), NodeId(0), Purpose::Rpl);
//! let settings = Settings { imin: Duration::from_secs(4), doublings: 8, redundancy: 10 };
//! let mut trickle = Trickle::new(settings);
//! trickle.start(Instant::ZERO, &mut rng);
//! let due = trickle.next_deadline().expect("a started timer has a deadline");
//! assert_eq!(trickle.expire(due, &mut rng), Some(Expiry::Transmit));
//! ```
#![cfg_attr(not(test), no_std)]

use lowmesh_units::{Duration, Instant, Rng};

/// The three numbers of RFC 6206 s4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Imin: the shortest interval.
    pub imin: Duration,
    /// Imax, as the number of doublings of Imin.
    pub doublings: u8,
    /// k: after hearing this many consistent messages a node stays silent. 0 for never silent (the reading
    /// of RFC 6550 s8.3.1 and RFC 6206 s6.5).
    pub redundancy: u8,
}

impl Settings {
    /// The longest interval.
    pub fn imax(&self) -> Duration {
        self.imin.saturating_mul(1 << self.doublings.min(63))
    }
}

/// What came of the moment `t` in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Speak: fewer than k consistent messages were heard.
    Transmit,
    /// Stay silent: enough neighbours said the same.
    Suppressed,
}

/// Where in its interval the timer is.
///
/// ```text
///   Stopped --start--> Listening --t--> Waiting --end of I--> Listening (I doubled) --> ...
///   any     --stop---> Stopped          any but Stopped --inconsistent--> Listening (I = Imin)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Stopped,
    /// Before `t`.
    Listening {
        t: Instant,
        end: Instant,
    },
    /// After `t`.
    Waiting {
        end: Instant,
    },
}

/// A Trickle timer.
#[derive(Clone, Debug)]
pub struct Trickle {
    settings: Settings,
    phase: Phase,
    interval: Duration,
    /// c: consistent messages heard in this interval.
    heard: u32,
}

impl Trickle {
    /// A stopped timer.
    pub const fn new(settings: Settings) -> Self {
        Self { settings, phase: Phase::Stopped, interval: settings.imin, heard: 0 }
    }

    /// The numbers in force.
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// Takes new numbers; they count from the next interval on.
    pub fn configure(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Starts with an interval of Imin, the value in RFC 6206 s4.2 step 1 that spreads news soonest.
    pub fn start(&mut self, now: Instant, rng: &mut Rng) {
        self.interval = self.settings.imin;
        self.begin(now, rng);
    }

    /// Stops; nothing happens until the next start.
    pub fn stop(&mut self) {
        self.phase = Phase::Stopped;
    }

    /// True between start and stop.
    pub fn is_running(&self) -> bool {
        self.phase != Phase::Stopped
    }

    /// A neighbour said what this node would say. RFC 6206 s4.2 step 3.
    pub fn hear_consistent(&mut self) {
        self.heard = self.heard.saturating_add(1);
    }

    /// There is news. RFC 6206 s4.2 step 6: starts over at Imin, unless it is there already.
    pub fn hear_inconsistent(&mut self, now: Instant, rng: &mut Rng) {
        if self.is_running() && self.interval > self.settings.imin {
            self.start(now, rng);
        }
    }

    /// Does what is due at `now`: `Some` when the moment `t` came, `None` when it was not yet, or when only
    /// an interval ended.
    pub fn expire(&mut self, now: Instant, rng: &mut Rng) -> Option<Expiry> {
        let mut outcome = None;
        if let Phase::Listening { t, end } = self.phase
            && t <= now
        {
            // RFC 6206 s4.2 step 4.
            let k = u32::from(self.settings.redundancy);
            let speak = k == 0 || self.heard < k;
            outcome = Some(if speak { Expiry::Transmit } else { Expiry::Suppressed });
            self.phase = Phase::Waiting { end };
        }
        if let Phase::Waiting { end } = self.phase
            && end <= now
        {
            // RFC 6206 s4.2 step 5.
            self.interval = (self.interval * 2).min(self.settings.imax()).max(self.settings.imin);
            // A driver that comes late starts the next interval late, instead of running after it.
            self.begin(now, rng);
        }
        outcome
    }

    /// When [`Trickle::expire`] is next due.
    pub const fn next_deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Stopped => None,
            Phase::Listening { t, .. } => Some(t),
            Phase::Waiting { end } => Some(end),
        }
    }

    /// RFC 6206 s4.2 step 2.
    fn begin(&mut self, now: Instant, rng: &mut Rng) {
        self.heard = 0;
        let t = now + rng.duration(self.interval / 2, self.interval);
        self.phase = Phase::Listening { t, end: now + self.interval };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::{NodeId, Purpose, Seed};

    const SETTINGS: Settings =
        Settings { imin: Duration::from_secs(4), doublings: 3, redundancy: 2 };

    fn started() -> (Trickle, Rng) {
        let mut rng = Rng::stream(Seed(5), NodeId(1), Purpose::Rpl);
        let mut trickle = Trickle::new(SETTINGS);
        trickle.start(Instant::ZERO, &mut rng);
        (trickle, rng)
    }

    /// Runs to the next moment `t`.
    fn next_moment(trickle: &mut Trickle, rng: &mut Rng) -> (Instant, Expiry) {
        loop {
            let due = trickle.next_deadline().expect("the timer runs");
            if let Some(expiry) = trickle.expire(due, rng) {
                return (due, expiry);
            }
        }
    }

    #[test]
    fn a_stopped_timer_has_no_deadline_and_ignores_news() {
        let (mut trickle, mut rng) = started();
        trickle.stop();
        trickle.hear_inconsistent(Instant::from_secs(1), &mut rng);
        assert_eq!(trickle.next_deadline(), None);
        assert_eq!(trickle.expire(Instant::from_secs(100), &mut rng), None);
    }

    #[test]
    fn the_moment_lies_in_the_second_half_and_intervals_double_up_to_imax() {
        let (mut trickle, mut rng) = started();
        let mut start = 0;
        for interval in [4, 8, 16, 32, 32, 32] {
            let (t, expiry) = next_moment(&mut trickle, &mut rng);
            assert_eq!(expiry, Expiry::Transmit);
            assert!(t >= Instant::from_secs(start) + Duration::from_secs(interval) / 2);
            start += interval;
            assert!(t < Instant::from_secs(start));
            assert_eq!(trickle.next_deadline(), Some(Instant::from_secs(start)));
        }
    }

    #[test]
    fn k_consistent_messages_suppress_until_the_interval_ends() {
        let (mut trickle, mut rng) = started();
        trickle.hear_consistent();
        assert_eq!(next_moment(&mut trickle, &mut rng).1, Expiry::Transmit);
        // Heard after t, so it belongs to the interval that is ending, not to the next one.
        trickle.hear_consistent();
        trickle.expire(Instant::from_secs(4), &mut rng);
        trickle.hear_consistent();
        trickle.hear_consistent();
        assert_eq!(next_moment(&mut trickle, &mut rng).1, Expiry::Suppressed);
        assert_eq!(next_moment(&mut trickle, &mut rng).1, Expiry::Transmit);
    }

    #[test]
    fn redundancy_zero_never_suppresses() {
        let (mut trickle, mut rng) = started();
        trickle.configure(Settings { redundancy: 0, ..SETTINGS });
        for _ in 0..100 {
            trickle.hear_consistent();
        }
        assert_eq!(next_moment(&mut trickle, &mut rng).1, Expiry::Transmit);
    }

    #[test]
    fn news_starts_over_at_imin_but_not_twice() {
        let (mut trickle, mut rng) = started();
        next_moment(&mut trickle, &mut rng);
        trickle.expire(Instant::from_secs(4), &mut rng);
        let news = Instant::from_secs(5);
        trickle.hear_inconsistent(news, &mut rng);
        let t = trickle.next_deadline().expect("running");
        assert!(t >= news + Duration::from_secs(2) && t < news + Duration::from_secs(4));
        trickle.hear_inconsistent(news + Duration::from_secs(1), &mut rng);
        assert_eq!(trickle.next_deadline(), Some(t));
    }

    #[test]
    fn a_late_driver_gets_one_moment_and_a_fresh_interval() {
        let (mut trickle, mut rng) = started();
        let late = Instant::from_secs(1000);
        assert_eq!(trickle.expire(late, &mut rng), Some(Expiry::Transmit));
        assert!(trickle.next_deadline().is_some_and(|t| t >= late + Duration::from_secs(4)));
    }

    #[test]
    fn absurd_doublings_saturate() {
        let settings = Settings { imin: Duration::from_secs(4), doublings: 255, redundancy: 0 };
        assert_eq!(settings.imax(), Duration::MAX);
    }
}
