//! Crystals that are not exact: how far each node's clock is from the network's time.
//!
//! The time of the mesh is that of its border routers. Every other clock gains or loses a fixed number of parts per million,
//! drawn once, and jumps when its node corrects it. What matters on the air is the difference between the
//! two ends of a frame: beyond the guard time nothing is heard.

use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};

/// One node's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Parts per million by which it runs fast.
    drift_ppm: f64,
    /// Microseconds by which it was ahead at `since`.
    lead_micros: f64,
    since: Instant,
}

impl Clock {
    /// A clock without drift: that of a border router, by definition.
    pub const fn exact() -> Self {
        Self { drift_ppm: 0.0, lead_micros: 0.0, since: Instant::ZERO }
    }
    /// A clock that is right at the start, with a drift that is uniform in [-`drift_max_ppm`, `drift_max_ppm`].
    pub fn new(seed: Seed, node: NodeId, drift_max_ppm: f64) -> Self {
        let mut rng = Rng::stream(seed, node, Purpose::Clock);
        let drift_ppm = rng.between(-drift_max_ppm, drift_max_ppm);
        Self { drift_ppm, lead_micros: 0.0, since: Instant::ZERO }
    }
    /// Microseconds by which it is ahead of the network's time at `now`.
    pub fn lead_micros(&self, now: Instant) -> f64 {
        // 1 ppm is one microsecond a second.
        self.lead_micros + self.drift_ppm * now.since(self.since).as_secs_f64()
    }
    /// Sets it to a lead, as joining does.
    pub fn set_lead(&mut self, now: Instant, lead_micros: f64) {
        self.lead_micros = lead_micros;
        self.since = now;
    }
    /// Makes it later by `micros`.
    pub fn adjust(&mut self, now: Instant, micros: i32) {
        self.set_lead(now, self.lead_micros(now) + f64::from(micros));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_grows_with_time_and_a_correction_removes_it() {
        let mut clock = Clock { drift_ppm: 20.0, lead_micros: 0.0, since: Instant::ZERO };
        let later = Instant::from_secs(30);
        assert!((clock.lead_micros(later) - 600.0).abs() < 1e-9);
        clock.adjust(later, -600);
        assert!(clock.lead_micros(later).abs() < 1e-9);
    }

    #[test]
    fn drifts_are_within_their_bound_and_an_exact_clock_has_none() {
        for node in 0..100 {
            let clock = Clock::new(Seed(1), NodeId(node), 10.0);
            assert!(clock.drift_ppm.abs() <= 10.0 && clock.drift_ppm != 0.0);
        }
        assert!(Clock::exact().lead_micros(Instant::from_secs(3600)).abs() < f64::EPSILON);
    }
}
