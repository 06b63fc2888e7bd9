//! Staying in step: who gives the time, since when, and what to do when they are silent
//! (IEEE 802.15.4-2015 s6.5.4).

use lowmesh_units::{Duration, Eui64, Instant};

/// The relation to the time source.
///
/// ```text
///   last frame ──── keepalive ────> ask the time source for a frame
///        └───────── desynchronise ─────────────────────> scan again
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synchronisation {
    /// Whose frames correct our clock; `None` at the coordinator, which is the clock.
    pub time_source: Option<Eui64>,
    last: Instant,
    asked: Option<Instant>,
}

impl Synchronisation {
    /// In step with `time_source` since `now`.
    pub const fn new(time_source: Option<Eui64>, now: Instant) -> Self {
        Self { time_source, last: now, asked: None }
    }
    /// A frame of the time source came, or its acknowledgement.
    pub fn refresh(&mut self, now: Instant) {
        self.last = now;
        self.asked = None;
    }
    /// A keepalive went into the queue.
    pub fn asked(&mut self, now: Instant) {
        self.asked = Some(now);
    }
    /// When to send the next keepalive.
    pub fn keepalive_due(&self, period: Duration) -> Option<Instant> {
        self.time_source?;
        Some(self.asked.unwrap_or(self.last).max(self.last) + period)
    }
    /// When the clock can no longer be trusted.
    pub fn desynchronise_due(&self, limit: Duration) -> Option<Instant> {
        self.time_source?;
        Some(self.last + limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::NodeId;

    #[test]
    fn keepalives_repeat_until_an_answer_and_the_limit_does_not_move() {
        let mut sync = Synchronisation::new(Some(NodeId(0).eui64()), Instant::from_secs(10));
        let period = Duration::from_secs(12);
        assert_eq!(sync.keepalive_due(period), Some(Instant::from_secs(22)));
        sync.asked(Instant::from_secs(22));
        assert_eq!(sync.keepalive_due(period), Some(Instant::from_secs(34)));
        let limit = Duration::from_secs(120);
        assert_eq!(sync.desynchronise_due(limit), Some(Instant::from_secs(130)));
        sync.refresh(Instant::from_secs(30));
        assert_eq!(sync.keepalive_due(period), Some(Instant::from_secs(42)));
    }

    #[test]
    fn the_coordinator_depends_on_nobody() {
        let sync = Synchronisation::new(None, Instant::ZERO);
        assert_eq!(sync.keepalive_due(Duration::from_secs(1)), None);
        assert_eq!(sync.desynchronise_due(Duration::from_secs(1)), None);
    }
}
