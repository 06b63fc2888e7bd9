//! When an application acts: the arrival process of its requests, datagrams or values.

use lowmesh_units::{Duration, Instant, Rng};

/// An arrival process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// One event a period.
    Periodic {
        /// The mean gap between two events.
        period: Duration,
        /// The share of the period by which each gap varies: uniform in [1 - jitter, 1 + jitter].
        jitter: f64,
    },
    /// A Poisson process: exponential gaps.
    Poisson {
        /// The mean gap between two events.
        period: Duration,
    },
    /// Several events at once, one burst a period.
    Bursts {
        /// The mean gap between two bursts.
        period: Duration,
        /// As in [`Arrivals::Periodic`].
        jitter: f64,
        /// Events of a burst, from 1.
        size: u32,
    },
}

impl Arrivals {
    /// The mean gap between two events or bursts.
    pub const fn period(&self) -> Duration {
        let (Self::Periodic { period, .. }
        | Self::Poisson { period }
        | Self::Bursts { period, .. }) = self;
        *period
    }
    /// Sets the mean gap.
    const fn set_period(&mut self, gap: Duration) {
        let (Self::Periodic { period, .. }
        | Self::Poisson { period }
        | Self::Bursts { period, .. }) = self;
        *period = gap;
    }
    fn first(&self, rng: &mut Rng) -> Duration {
        match self {
            Self::Poisson { period } => period.mul_f64(rng.exponential()),
            Self::Periodic { period, .. } | Self::Bursts { period, .. } => {
                period.mul_f64(rng.unit())
            }
        }
    }
    /// The gap behind the event with this number, from 1.
    fn gap(&self, number: u64, rng: &mut Rng) -> Duration {
        match self {
            Self::Poisson { period } => period.mul_f64(rng.exponential()),
            Self::Bursts { size, .. } if !number.is_multiple_of(u64::from(*size).max(1)) => {
                Duration::ZERO
            }
            Self::Periodic { period, jitter } | Self::Bursts { period, jitter, .. } => {
                period.mul_f64(rng.between(1.0 - jitter, 1.0 + jitter))
            }
        }
    }
}

/// The events of an arrival process in time. The phase is random, so that nodes do not act in step.
#[derive(Debug)]
pub struct Schedule {
    arrivals: Arrivals,
    /// No event comes before this.
    start: Duration,
    events_max: Option<u64>,
    rng: Rng,
    next: Option<Instant>,
    events: u64,
    begun: bool,
}

impl Schedule {
    /// Events from `start` on, at most `events_max`; none if the period is zero. Nothing comes before
    /// [`Schedule::begin`].
    pub const fn new(
        arrivals: Arrivals,
        start: Duration,
        events_max: Option<u64>,
        rng: Rng,
    ) -> Self {
        Self { arrivals, start, events_max, rng, next: None, events: 0, begun: false }
    }
    /// Starts the process; later calls have no effect.
    pub fn begin(&mut self, now: Instant) {
        if !self.begun && !self.arrivals.period().is_zero() {
            self.begun = true;
            let phase = self.arrivals.first(&mut self.rng);
            self.next = Some(now.max(Instant::ZERO + self.start) + phase);
        }
    }
    /// Another mean gap from now on. The next event comes at a random time within one gap, so that nodes which are told at
    /// one moment do not act in step.
    pub fn pace(&mut self, now: Instant, period: Duration) {
        self.arrivals.set_period(period);
        if self.next.is_some() {
            let phase = self.arrivals.first(&mut self.rng);
            self.next = Some(now.max(Instant::ZERO + self.start) + phase);
        }
    }
    /// The time of the next event.
    pub const fn next(&self) -> Option<Instant> {
        self.next
    }
    /// Takes the event that is due: its number, from 1.
    pub fn take(&mut self, now: Instant) -> Option<u64> {
        let due = self.next.filter(|due| *due <= now)?;
        self.events += 1;
        let gap = self.arrivals.gap(self.events, &mut self.rng);
        let more = self.events_max.is_none_or(|max| self.events < max);
        // After a loss of power the events that were due meanwhile are left out.
        let next = due + gap;
        self.next = more.then(|| if next < now { now + gap } else { next });
        Some(self.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use lowmesh_units::{NodeId, Purpose, Seed};

    fn times(arrivals: Arrivals, events_max: Option<u64>) -> Vec<Instant> {
        let rng = Rng::stream(Seed(1), NodeId(3), Purpose::Traffic);
        let mut schedule = Schedule::new(arrivals, Duration::from_secs(60), events_max, rng);
        assert_eq!(schedule.next(), None);
        schedule.begin(Instant::from_secs(1));
        let mut times = Vec::new();
        while let Some(due) = schedule.next().filter(|due| *due < Instant::from_secs(10_060)) {
            assert!(schedule.take(due).is_some());
            times.push(due);
        }
        times
    }

    const PERIOD: Duration = Duration::from_secs(10);

    #[test]
    fn periodic_events_come_once_a_period_from_the_start_on() {
        let times = times(Arrivals::Periodic { period: PERIOD, jitter: 0.1 }, None);
        assert!(times[0] >= Instant::from_secs(60));
        assert!((980..=1020).contains(&times.len()), "{}", times.len());
        assert!(times.windows(2).all(|two| two[1].since(two[0]) >= Duration::from_secs(9)));
    }

    #[test]
    fn gaps_of_a_poisson_process_vary_as_much_as_their_mean() {
        let times = times(Arrivals::Poisson { period: PERIOD }, None);
        let gaps: Vec<f64> =
            times.windows(2).map(|two| two[1].since(two[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>();
        let deviation = (variance / gaps.len() as f64).sqrt();
        assert!((9.0..11.0).contains(&mean) && (8.5..11.5).contains(&deviation), "{deviation}");
    }

    #[test]
    fn events_of_a_burst_come_at_once() {
        let arrivals = Arrivals::Bursts { period: PERIOD, jitter: 0.0, size: 4 };
        let times = times(arrivals, None);
        assert!(times.chunks_exact(4).all(|burst| burst[0] == burst[3]));
        assert_eq!(times[4].since(times[0]), PERIOD);
    }

    #[test]
    fn a_bounded_process_ends_after_its_last_event() {
        let arrivals = Arrivals::Periodic { period: PERIOD, jitter: 0.1 };
        assert_eq!(times(arrivals, Some(3)).len(), 3);
    }

    #[test]
    fn without_a_period_there_are_no_events() {
        let arrivals = Arrivals::Periodic { period: Duration::ZERO, jitter: 0.1 };
        assert!(times(arrivals, None).is_empty());
    }
}
