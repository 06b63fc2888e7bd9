//! A timeout that never changes: the ARQ timer of RFC 8931 s6.3, and a baseline for tests.

use alloc::boxed::Box;

use lowmesh_registry::Row;
use lowmesh_units::{Duration, Instant, Rng};

use super::{Attempt, Timer, TimerSnapshot};
use crate::params::{ACK_TIMEOUT, RTO_MIN, WAIT_MAX};

/// The row of [`Fixed`].
pub static ROW: Row<dyn Timer> =
    Row::<dyn Timer>::plain("fixed", "Always the same timeout", |_, ack_timeout| {
        Box::new(Fixed::new(ack_timeout))
    });

/// Waits the same time for every copy.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    rto: Duration,
}

impl Fixed {
    /// A timer of `rto`, brought within the bounds of every timer.
    pub fn new(rto: Duration) -> Self {
        Self { rto: rto.clamp(RTO_MIN, WAIT_MAX) }
    }
}

/// ACK_TIMEOUT without its random factor.
impl Default for Fixed {
    fn default() -> Self {
        Self::new(ACK_TIMEOUT)
    }
}

impl Timer for Fixed {
    fn initial(&mut self, _now: Instant, _rng: &mut Rng) -> Duration {
        self.rto
    }
    fn backoff(&mut self, _attempt: Attempt, _rng: &mut Rng) -> Duration {
        self.rto
    }
    fn on_sample(&mut self, _rtt: Duration, _retransmissions: u8, _now: Instant) {}
    fn on_give_up(&mut self, _now: Instant) {}
    fn snapshot(&self) -> TimerSnapshot {
        TimerSnapshot { rto: self.rto, srtt: None, rttvar: None, strong: None, weak: None }
    }
    fn name(&self) -> &'static str {
        ROW.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_timeout_stays_within_the_bounds_of_every_timer() {
        assert_eq!(Fixed::new(Duration::ZERO).snapshot().rto, RTO_MIN);
        assert_eq!(Fixed::new(Duration::MAX).snapshot().rto, WAIT_MAX);
        assert_eq!(Fixed::new(Duration::from_millis(300)).snapshot().rto.as_millis(), 300);
    }
}
