//! How full a packet buffer is over time: its mean and its most, in octets.

use lowmesh_units::Instant;

/// The octets in one buffer, from the start of the run on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Occupancy {
    octets: usize,
    since: Instant,
    most: usize,
    /// Octets times seconds up to `since`.
    area: f64,
}

impl Occupancy {
    /// From `now` on there are `octets` in it.
    pub fn set(&mut self, now: Instant, octets: usize) {
        if octets != self.octets {
            self.area += self.octets as f64 * now.since(self.since).as_secs_f64();
            (self.since, self.octets) = (now, octets);
            self.most = self.most.max(octets);
        }
    }

    /// The mean over the time up to `end`; zero for no time.
    pub fn mean(&self, end: Instant) -> f64 {
        let rest = self.octets as f64 * end.since(self.since).as_secs_f64();
        let span = end.since(Instant::ZERO).as_secs_f64();
        if span > 0.0 { (self.area + rest) / span } else { 0.0 }
    }

    /// The most that was in it at once.
    pub const fn most(&self) -> usize {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_weighs_each_amount_by_how_long_it_stayed() {
        let mut buffer = Occupancy::default();
        buffer.set(Instant::from_secs(2), 100);
        buffer.set(Instant::from_secs(5), 100);
        buffer.set(Instant::from_secs(6), 300);
        buffer.set(Instant::from_secs(7), 0);
        // 4 s of 100 octets, 1 s of 300, the rest of ten empty.
        assert!((buffer.mean(Instant::from_secs(10)) - 70.0).abs() < 1e-9);
        assert_eq!(buffer.most(), 300);
    }

    #[test]
    fn no_time_has_an_empty_buffer() {
        assert!(Occupancy::default().mean(Instant::ZERO).abs() < f64::EPSILON);
    }
}
