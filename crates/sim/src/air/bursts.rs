//! When an interferer is on the air: pure functions of (seed, time, channel).
//!
//! ```text
//! occupations   |#####|     |#####|#####|        each piece of 1.5 ms is taken with the chance `duty_cycle`
//! frames        | ###    |   ###  |###     |     each period has one burst, at a place that is drawn
//! chain         a     good ---> bad     b        share of bad = a / (a + b)
//!                          <---
//! ```
//! - The chain of Gilbert-Elliott has a state a step: either kept or, with chance a + b, drawn from its long-run
//!   shares. Looking back to the last such draw gives the state without playing the chain from its start.

use lowmesh_units::rng::draw_unit;
use lowmesh_units::{Channel, Duration, Instant, Purpose, Seed};

use super::params::WIFI_BURST;

/// The times of one interferer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bursts {
    /// Occupations of one length, each taken or not.
    Occupations {
        /// The chance that one is taken.
        duty_cycle: f64,
    },
    /// One burst in each period.
    Frames {
        /// From one period to the next, ns.
        period_ns: u64,
        /// Length of a burst, ns.
        burst_ns: u64,
    },
    /// Two states a channel.
    Chain {
        /// Length of a step, ns.
        step_ns: u64,
        /// The chance that a step draws its state, a + b.
        fresh: f64,
        /// Long-run share of the bad state.
        share_bad: f64,
    },
}

impl Bursts {
    /// Whether interferer `index` is sending.
    pub fn active(self, seed: Seed, index: u64, channel: Channel, now: Instant) -> bool {
        match self {
            // One station has one rhythm on all channels that it covers.
            Self::Occupations { duty_cycle } => {
                let occupation = now.as_nanos() / WIFI_BURST.as_nanos();
                draw_unit(seed, Purpose::Interference, index << 8, occupation) < duty_cycle
            }
            Self::Frames { period_ns, burst_ns } => {
                let start = self.burst_start(seed, index, now.as_nanos() / period_ns);
                (start..start + burst_ns).contains(&now.as_nanos())
            }
            Self::Chain { step_ns, fresh, share_bad } => {
                let key = index << 8 | u64::from(channel.number());
                let mut step = now.as_nanos() / step_ns;
                loop {
                    // A draw under `fresh` renews the state and, stretched, says which it is. At least
                    // one in 4 steps does so for the shorter state, so few draws are looked at.
                    let drawn = draw_unit(seed, Purpose::Interference, key, step);
                    if drawn < fresh {
                        return drawn < fresh * share_bad;
                    }
                    let Some(before) = step.checked_sub(1) else {
                        return (drawn - fresh) < (1.0 - fresh) * share_bad;
                    };
                    step = before;
                }
            }
        }
    }

    /// The next moment after `now` at which that can change.
    pub fn next_change(self, seed: Seed, index: u64, now: Instant) -> Instant {
        let now = now.as_nanos();
        let boundary = |length: u64| Instant::from_nanos((now / length + 1) * length);
        match self {
            Self::Occupations { .. } => boundary(WIFI_BURST.as_nanos()),
            Self::Chain { step_ns, .. } => boundary(step_ns),
            Self::Frames { period_ns, burst_ns } => {
                let start = self.burst_start(seed, index, now / period_ns);
                match now {
                    _ if now < start => Instant::from_nanos(start),
                    _ if now < start + burst_ns => Instant::from_nanos(start + burst_ns),
                    _ => boundary(period_ns),
                }
            }
        }
    }

    /// Two states that last `good` and `bad` in the mean, drawn each `step_ns`, which is not 0.
    pub fn chain(step_ns: u64, good: Duration, bad: Duration) -> Self {
        let a = step_ns as f64 / good.as_nanos() as f64;
        let b = step_ns as f64 / bad.as_nanos() as f64;
        Self::Chain { step_ns, fresh: a + b, share_bad: a / (a + b) }
    }

    /// Bursts of `burst`, for a share `duty_cycle` of the time.
    pub fn frames(duty_cycle: f64, burst: Duration) -> Self {
        let burst_ns = burst.as_nanos();
        Self::Frames { period_ns: ((burst_ns as f64 / duty_cycle) as u64).max(burst_ns), burst_ns }
    }

    /// When the burst of a period begins, ns.
    fn burst_start(self, seed: Seed, index: u64, period: u64) -> u64 {
        let Self::Frames { period_ns, burst_ns } = self else { return 0 };
        let drawn = draw_unit(seed, Purpose::Interference, index << 8, period);
        period * period_ns + ((period_ns - burst_ns) as f64 * drawn) as u64
    }
}
