//! How many octets may leave to an address that nothing has proven (RFC 9000 s8.1): at most a multiple
//! of what came from it lately, copies and notifications included.

use lowmesh_units::{Duration, Instant};

/// Octets that an address has earned and not spent. What was earned and not spent expires after one to two
/// periods, so that a flood of small messages does not save up for a large one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Credit {
    current: usize,
    previous: usize,
    /// When the current period ends.
    until: Instant,
}

impl Credit {
    /// Half of the time in which earned octets may be spent.
    const PERIOD: Duration = crate::params::CREDIT_PERIOD;

    /// A datagram came that is worth so many octets.
    pub(crate) fn earn(&mut self, octets: usize, now: Instant) {
        self.turn(now);
        self.current = self.current.saturating_add(octets);
    }
    /// A datagram of so many octets leaves; the oldest credit goes first.
    pub(crate) fn spend(&mut self, octets: usize, now: Instant) {
        self.turn(now);
        let rest = octets.saturating_sub(self.previous);
        self.previous = self.previous.saturating_sub(octets);
        self.current = self.current.saturating_sub(rest);
    }
    /// Octets that may leave now.
    pub(crate) fn balance(&self, now: Instant) -> usize {
        let mut turned = *self;
        turned.turn(now);
        turned.current.saturating_add(turned.previous)
    }
    fn turn(&mut self, now: Instant) {
        if now < self.until {
            return;
        }
        let one_period_over = now < self.until + Self::PERIOD;
        self.previous = if one_period_over { self.current } else { 0 };
        self.current = 0;
        self.until = now + Self::PERIOD;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_earned_can_be_spent_once() {
        let now = Instant::from_secs(5);
        let mut credit = Credit::default();
        assert_eq!(credit.balance(now), 0);
        credit.earn(180, now);
        credit.spend(100, now);
        assert_eq!(credit.balance(now), 80);
        credit.spend(100, now);
        assert_eq!(credit.balance(now), 0, "a balance is never below zero");
    }

    #[test]
    fn credit_that_is_not_spent_expires() {
        let mut credit = Credit::default();
        let start = Instant::from_secs(100);
        credit.earn(180, start);
        let later = start + Credit::PERIOD;
        assert_eq!(credit.balance(later), 180);
        credit.earn(60, later);
        assert_eq!(credit.balance(later + Credit::PERIOD), 60);
        assert_eq!(credit.balance(later + Credit::PERIOD + Credit::PERIOD), 0);
    }
}
