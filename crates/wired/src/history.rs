//! The length of the queue over time: every change up to a bound, and exact totals without one.

use alloc::vec::Vec;

use lowmesh_units::{Duration, Instant};

/// The length of the queue from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSample {
    /// When the queue came to this length.
    pub at: Instant,
    /// Octets that wait.
    pub octets: u64,
}

/// What the queue of a link was like since the start.
#[derive(Clone, Debug, Default)]
pub struct History {
    samples: Vec<QueueSample>,
    samples_max: usize,
    unrecorded: u64,
    octets: u64,
    largest: u64,
    changed: Instant,
    octet_nanoseconds: u128,
}

impl History {
    pub(crate) fn new(samples_max: usize) -> Self {
        Self { samples_max, ..Self::default() }
    }
    pub(crate) fn record(&mut self, at: Instant, octets: u64) {
        let span = u128::from(at.since(self.changed).as_nanos());
        self.octet_nanoseconds += span * u128::from(self.octets);
        self.changed = at;
        self.octets = octets;
        self.largest = self.largest.max(octets);
        if self.samples.len() < self.samples_max {
            self.samples.push(QueueSample { at, octets });
        } else {
            self.unrecorded += 1;
        }
    }
    /// The changes that were kept, oldest first.
    pub fn samples(&self) -> &[QueueSample] {
        &self.samples
    }
    /// Changes after the bound on samples was reached.
    pub const fn unrecorded(&self) -> u64 {
        self.unrecorded
    }
    /// The most octets that ever waited.
    pub const fn largest(&self) -> u64 {
        self.largest
    }
    /// The mean length in octets from the start to `now`, weighted by time.
    pub fn mean(&self, now: Instant) -> f64 {
        let last = u128::from(now.since(self.changed).as_nanos()) * u128::from(self.octets);
        let span = now.since(Instant::ZERO);
        if span == Duration::ZERO {
            return self.octets as f64;
        }
        (self.octet_nanoseconds + last) as f64 / span.as_nanos() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_counts_each_length_as_long_as_it_lasts() {
        let mut history = History::new(2);
        history.record(Instant::from_secs(1), 100);
        history.record(Instant::from_secs(3), 400);
        history.record(Instant::from_secs(4), 0);
        assert!((history.mean(Instant::from_secs(10)) - 60.0).abs() < 1e-9);
        assert_eq!((history.largest(), history.samples().len(), history.unrecorded()), (400, 2, 1));
    }
}
