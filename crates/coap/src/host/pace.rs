//! Notifications leave in bursts that the buffers of sockets and links can hold. The acknowledgements of a burst come
//! before the next burst leaves, so they are not lost while this end is busy sending.

use lowmesh_units::Instant;

use crate::params::{NOTIFICATIONS_AT_ONCE, NOTIFICATIONS_PAUSE};

/// How many notifications of the current burst have left.
#[derive(Debug)]
pub(super) struct Pace {
    began: Instant,
    sent: u32,
}

impl Pace {
    pub const fn new() -> Self {
        Self { began: Instant::ZERO, sent: 0 }
    }
    /// The time before which no notification leaves.
    pub fn not_before(&self) -> Instant {
        if self.sent < NOTIFICATIONS_AT_ONCE { Instant::ZERO } else { self.ends() }
    }
    /// A notification leaves.
    pub fn take(&mut self, now: Instant) {
        if now >= self.ends() {
            (self.began, self.sent) = (now, 0);
        }
        self.sent += 1;
    }
    fn ends(&self) -> Instant {
        self.began + NOTIFICATIONS_PAUSE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_followed_by_a_pause() {
        let mut pace = Pace::new();
        let now = Instant::from_secs(1);
        for _ in 0..NOTIFICATIONS_AT_ONCE {
            assert!(pace.not_before() <= now);
            pace.take(now);
        }
        assert_eq!(pace.not_before(), now + NOTIFICATIONS_PAUSE);
        pace.take(now + NOTIFICATIONS_PAUSE);
        assert!(pace.not_before() <= now, "the next burst has begun");
    }
}
