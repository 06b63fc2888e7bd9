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
    time_source: Option<Eui64>,
    /// Who gives the time until the time source is heard again.
    substitute: Option<Eui64>,
    last: Instant,
    asked: Option<Instant>,
}

impl Synchronisation {
    /// In step with `time_source` since `now`.
    pub const fn new(time_source: Option<Eui64>, now: Instant) -> Self {
        Self { time_source, substitute: None, last: now, asked: None }
    }
    /// Who gives the time now; `None` at the coordinator.
    pub fn time_source(&self) -> Option<Eui64> {
        self.substitute.or(self.time_source)
    }
    /// The time source that the upper layer chose.
    pub const fn chosen(&self) -> Option<Eui64> {
        self.time_source
    }
    /// The time source is `peer` from now on.
    pub const fn set_time_source(&mut self, peer: Eui64) {
        self.time_source = Some(peer);
        self.substitute = None;
    }
    /// Whether a frame of `peer` corrects the clock. One of the time source ends the time of its substitute.
    pub fn takes_time_from(&mut self, peer: Eui64) -> bool {
        if self.time_source == Some(peer) {
            self.substitute = None;
        }
        self.time_source() == Some(peer)
    }
    /// `peer` gives the time until the time source is heard again; or does no more, if it is the substitute and not
    /// nearer to the coordinator.
    pub fn substitute(&mut self, peer: Eui64, is_nearer: bool) {
        if is_nearer {
            self.substitute = Some(peer);
        } else if self.substitute == Some(peer) {
            self.substitute = None;
        }
    }
    /// A frame of the time source came, or its acknowledgement.
    pub fn refresh(&mut self, now: Instant) {
        self.last = now;
        self.asked = None;
    }
    /// Whether a node that depends on a time source has heard nothing of it for so long.
    pub fn is_silent(&self, now: Instant, limit: Duration) -> bool {
        self.time_source.is_some() && now.since(self.last) >= limit
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
