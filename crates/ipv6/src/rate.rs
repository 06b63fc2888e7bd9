//! How many ICMPv6 errors may leave (RFC 4443 s2.4 (f)); which ones do is left to `error`.

use alloc::vec::Vec;

use lowmesh_units::{Duration, Instant};
use lowmesh_wire::ipv6::Address;

use crate::params::ERROR_SOURCES;

/// A token bucket (RFC 4443 s2.4 (f)): as many at once as in a period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    per_period: u32,
    period: Duration,
    tokens: u32,
    /// Up to when tokens were filled in; `None` before the first was taken.
    filled: Option<Instant>,
}

impl Bucket {
    pub const fn new(per_period: u32, period: Duration) -> Self {
        Self { per_period, period, tokens: per_period, filled: None }
    }
    fn fill(&mut self, now: Instant) {
        let each = self.period / u64::from(self.per_period.max(1));
        let since = self.filled.map_or(self.period, |filled| now.since(filled));
        if since >= self.period {
            (self.tokens, self.filled) = (self.per_period, Some(now));
        } else {
            let news = since.as_nanos() / each.as_nanos().max(1);
            self.tokens = self.per_period.min(self.tokens.saturating_add(news as u32));
            self.filled = self.filled.map(|filled| filled + each * news);
        }
    }
    /// True when another one may leave.
    pub fn take(&mut self, now: Instant) -> bool {
        self.fill(now);
        let left = self.tokens.checked_sub(1);
        self.tokens = left.unwrap_or(0);
        left.is_some()
    }
}

/// The rate of errors: so many a second, of which one source gets three quarters, and of which the next one gets the rest.
///
/// The sources that had an error last are known. One that changes its address with each packet takes all: then the total
/// alone holds.
#[derive(Clone, Debug)]
pub(crate) struct ErrorRate {
    total: Bucket,
    /// The source that had an error last is the last.
    shares: Vec<(Address, Bucket)>,
}

const SECOND: Duration = Duration::from_secs(1);

impl ErrorRate {
    /// So many errors a second; 0 lets none leave.
    pub const fn new(per_second: u32) -> Self {
        Self { total: Bucket::new(per_second, SECOND), shares: Vec::new() }
    }
    /// True when another error may leave to the source of a bad packet.
    pub fn take(&mut self, now: Instant, source: Address) -> bool {
        let per_second = self.total.per_period;
        if per_second == 0 {
            return false;
        }
        let known = self.shares.iter().position(|(known, _)| *known == source);
        let share = Bucket::new(per_second - per_second / 4, SECOND);
        let mut share = known.map_or((source, share), |at| self.shares.remove(at));
        if self.shares.len() == ERROR_SOURCES {
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
    use lowmesh_units::NodeId;

    fn source(node: u16) -> Address {
        Address::link_local(NodeId(node).eui64())
    }

    #[test]
    fn errors_are_as_many_at_once_as_in_a_second_and_no_more_after() {
        let mut bucket = Bucket::new(10, SECOND);
        let taken = |bucket: &mut Bucket, ms: u64| {
            (0..100).filter(|_| bucket.take(Instant::from_millis(ms))).count()
        };
        assert_eq!(taken(&mut bucket, 50), 10, "a new node has all of them");
        assert_eq!(taken(&mut bucket, 5000), 10);
        assert_eq!(taken(&mut bucket, 5050), 0);
        assert_eq!(taken(&mut bucket, 5100), 1);
        assert_eq!(taken(&mut bucket, 5450), 3);
        assert_eq!(taken(&mut bucket, 60_000), 10);
        assert!(!ErrorRate::new(0).take(Instant::from_secs(5), source(1)));
    }

    #[test]
    fn a_source_of_bad_packets_leaves_errors_to_others() {
        let mut rate = ErrorRate::new(10);
        let now = Instant::from_secs(5);
        let taken = |rate: &mut ErrorRate, who: u16| {
            (0..100).filter(|_| rate.take(now, source(who))).count()
        };
        assert_eq!(taken(&mut rate, 1), 8);
        assert_eq!(taken(&mut rate, 2), 2);
        assert_eq!(taken(&mut rate, 3), 0, "the total holds");
        for who in 0..100 {
            rate.take(now, source(who));
        }
        assert_eq!(rate.shares.len(), ERROR_SOURCES);
        assert!(ErrorRate::new(1).take(now, source(1)), "one a second is a source's own");
    }
}
