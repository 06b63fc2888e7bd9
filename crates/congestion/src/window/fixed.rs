//! A window that never changes: NSTART of RFC 7252 s4.7, or the static window of RFC 8931.

use lowmesh_units::{Duration, Instant};

use super::{Flight, Permit, Window, WindowSnapshot};
use crate::params::NSTART;

/// At most this much on its way.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    window: u32,
}

impl Fixed {
    /// A window of `window` units; at least one, since a closed window would never open.
    pub fn new(window: u32) -> Self {
        Self { window: window.max(1) }
    }
}

impl Default for Fixed {
    fn default() -> Self {
        Self::new(NSTART)
    }
}

impl Window for Fixed {
    fn permits(&self, flight: &Flight) -> Permit {
        // RFC 7252 s4.7: a client MUST strictly limit its simultaneous outstanding interactions to
        // NSTART.
        let fits = flight.outstanding.saturating_add(flight.size) <= self.window;
        if fits { Permit::Now } else { Permit::Blocked }
    }
    fn on_sent(&mut self, _size: u32, _now: Instant) {}
    fn on_discarded(&mut self, _size: u32, _now: Instant) {}
    fn on_acked(&mut self, _size: u32, _rtt: Option<Duration>, _now: Instant) {}
    fn on_lost(&mut self, _size: u32, _now: Instant) {}
    fn on_timeout(&mut self, _now: Instant) {}
    fn on_ecn(&mut self, _now: Instant) {}
    fn pacing_gap(&self, _size: u32) -> Duration {
        Duration::ZERO
    }
    fn snapshot(&self) -> WindowSnapshot {
        WindowSnapshot { window: self.window, threshold: None }
    }
    fn name(&self) -> &'static str {
        "fixed"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permit(window: Fixed, outstanding: u32) -> Permit {
        window.permits(&Flight { now: Instant::ZERO, outstanding, size: 1 })
    }

    #[test]
    fn one_interaction_at_a_time_is_the_default() {
        assert_eq!(permit(Fixed::default(), 0), Permit::Now);
        assert_eq!(permit(Fixed::default(), 1), Permit::Blocked);
    }

    #[test]
    fn a_window_is_full_at_its_size_and_never_closed() {
        assert_eq!(permit(Fixed::new(4), 3), Permit::Now);
        assert_eq!(permit(Fixed::new(4), 4), Permit::Blocked);
        assert_eq!(permit(Fixed::new(4), u32::MAX), Permit::Blocked);
        assert_eq!(permit(Fixed::new(0), 0), Permit::Now);
    }
}
