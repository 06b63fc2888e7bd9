//! How many ICMPv6 errors may leave (RFC 4443 s2.4 (f)); which ones do is left to `errors`.

use lowmesh_units::{Duration, Instant};

/// A token bucket (RFC 4443 s2.4 (f)): as many errors at once as in a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    per_second: u32,
    tokens: u32,
    /// Up to when tokens were filled in.
    filled: Instant,
}

impl Bucket {
    pub const fn new(per_second: u32) -> Self {
        Self { per_second, tokens: per_second, filled: Instant::ZERO }
    }
    /// True when another error may leave.
    pub fn take(&mut self, now: Instant) -> bool {
        if self.per_second == 0 {
            return false;
        }
        let each = Duration::from_secs(1) / u64::from(self.per_second);
        let since = now.since(self.filled);
        if since >= Duration::from_secs(1) {
            (self.tokens, self.filled) = (self.per_second, now);
        } else {
            let news = since.as_nanos() / each.as_nanos().max(1);
            self.tokens = self.per_second.min(self.tokens.saturating_add(news as u32));
            self.filled += each * news;
        }
        let left = self.tokens.checked_sub(1);
        self.tokens = left.unwrap_or(0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_as_many_at_once_as_in_a_second_and_no_more_after() {
        let mut bucket = Bucket::new(10);
        let taken = |bucket: &mut Bucket, ms: u64| {
            (0..100).filter(|_| bucket.take(Instant::from_millis(ms))).count()
        };
        assert_eq!(taken(&mut bucket, 5000), 10);
        assert_eq!(taken(&mut bucket, 5050), 0);
        assert_eq!(taken(&mut bucket, 5100), 1);
        assert_eq!(taken(&mut bucket, 5450), 3);
        assert_eq!(taken(&mut bucket, 60_000), 10);
        assert_eq!(taken(&mut Bucket::new(0), 5000), 0);
    }
}
