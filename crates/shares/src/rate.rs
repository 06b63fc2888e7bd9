//! How often something may happen: token buckets, for all sources and for each.

use alloc::vec::Vec;

use lowmesh_units::{Duration, Instant};

/// A token bucket (RFC 4443 s2.4 (f)): as many at once as in a period.
///
/// ```
/// use lowmesh_shares::Rate;
/// use lowmesh_units::{Duration, Instant};
///
/// let mut rate = Rate::new(2, Duration::from_secs(1));
/// let now = Instant::from_secs(5);
/// assert!(rate.take(now) && rate.take(now));
/// assert!(!rate.take(now));
/// assert_eq!(rate.next(now), Some(Instant::from_millis(5500)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    per_period: u32,
    period: Duration,
    tokens: u32,
    /// Up to when tokens were filled in; `None` before the first was taken.
    filled: Option<Instant>,
}

impl Rate {
    /// So many in each period; 0 lets nothing happen.
    pub const fn new(per_period: u32, period: Duration) -> Self {
        Self { per_period, period, tokens: per_period, filled: None }
    }
    /// How many there are in a period.
    pub const fn per_period(&self) -> u32 {
        self.per_period
    }
    fn each(&self) -> Duration {
        self.period / u64::from(self.per_period.max(1))
    }
    fn fill(&mut self, now: Instant) {
        let each = self.each();
        let since = self.filled.map_or(self.period, |filled| now.since(filled));
        if since >= self.period {
            (self.tokens, self.filled) = (self.per_period, Some(now));
        } else {
            let news = since.as_nanos() / each.as_nanos().max(1);
            self.tokens = self.per_period.min(self.tokens.saturating_add(news as u32));
            self.filled = self.filled.map(|filled| filled + each * news);
        }
    }
    /// Takes a token; false if there is none.
    pub fn take(&mut self, now: Instant) -> bool {
        self.fill(now);
        let left = self.tokens.checked_sub(1);
        self.tokens = left.unwrap_or(0);
        left.is_some()
    }
    /// When there is a token: `now`, or later; `None` if there is never one.
    pub fn next(&self, now: Instant) -> Option<Instant> {
        let mut then = *self;
        then.fill(now);
        match (then.per_period, then.tokens, then.filled) {
            (0, ..) => None,
            (_, 0, Some(filled)) => Some(filled + self.each()),
            _ => Some(now),
        }
    }
}

/// A rate that sources share: so many a second, of which one source gets three quarters, and of which the next one gets
/// the rest.
///
/// The sources that took last are known. One that changes its address each time takes all: then the total alone holds.
#[derive(Clone, Debug)]
pub struct SharedRate<S> {
    total: Rate,
    sources_max: usize,
    /// The source that took last is the last.
    shares: Vec<(S, Rate)>,
}

const SECOND: Duration = Duration::from_secs(1);

impl<S: Copy + PartialEq> SharedRate<S> {
    /// So many a second, 0 for none; `sources_max` sources are known.
    pub const fn new(per_second: u32, sources_max: usize) -> Self {
        Self { total: Rate::new(per_second, SECOND), sources_max, shares: Vec::new() }
    }
    /// True when it may happen once more because of `source`.
    pub fn take(&mut self, now: Instant, source: S) -> bool {
        let per_second = self.total.per_period;
        if per_second == 0 {
            return false;
        }
        let known = self.shares.iter().position(|(known, _)| *known == source);
        let share = Rate::new(per_second - per_second / 4, SECOND);
        let mut share = known.map_or((source, share), |at| self.shares.remove(at));
        if self.shares.len() >= self.sources_max.max(1) {
            self.shares.remove(0);
        }
        let may = share.1.take(now) && self.total.take(now);
        self.shares.push(share);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_happen_at_once_as_in_a_period_and_no_more_after() {
        let mut rate = Rate::new(10, SECOND);
        let taken = |rate: &mut Rate, ms: u64| {
            (0..100).filter(|_| rate.take(Instant::from_millis(ms))).count()
        };
        assert_eq!(taken(&mut rate, 50), 10, "a new bucket is full");
        assert_eq!(taken(&mut rate, 5000), 10);
        assert_eq!(taken(&mut rate, 5050), 0);
        assert_eq!(taken(&mut rate, 5100), 1);
        assert_eq!(taken(&mut rate, 5450), 3);
        assert_eq!(taken(&mut rate, 60_000), 10);
    }

    #[test]
    fn the_next_token_is_there_when_it_is_said_to_be_and_not_before() {
        let mut rate = Rate::new(3, SECOND);
        let mut now = Instant::from_secs(7);
        while rate.take(now) {}
        for _ in 0..10 {
            let next = rate.next(now).expect("some are in a period");
            assert!(next > now && !rate.take(Instant::from_nanos(next.as_nanos() - 1)));
            now = next;
            assert_eq!(rate.next(now), Some(now));
            assert!(rate.take(now) && !rate.take(now));
        }
        assert_eq!(Rate::new(0, SECOND).next(now), None);
    }

    #[test]
    fn a_source_that_takes_all_it_gets_leaves_a_quarter_to_others() {
        let mut rate = SharedRate::new(10, 8);
        let now = Instant::from_secs(5);
        let taken =
            |rate: &mut SharedRate<u32>, who: u32| (0..100).filter(|_| rate.take(now, who)).count();
        assert_eq!(taken(&mut rate, 1), 8);
        assert_eq!(taken(&mut rate, 2), 2);
        assert_eq!(taken(&mut rate, 3), 0, "the total holds");
        for who in 0..100 {
            rate.take(now, who);
        }
        assert_eq!(rate.shares.len(), 8);
        assert!(SharedRate::new(1, 8).take(now, 1), "one a second is a source's own");
        assert!(!SharedRate::new(0, 8).take(now, 1));
    }
}
