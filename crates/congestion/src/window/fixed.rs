//! A window that never changes: NSTART of RFC 7252 s4.7, or the static window of RFC 8931.

use alloc::boxed::Box;

use lowmesh_registry::Row;

use super::Window;
use super::flight::Flight;
use crate::params::NSTART;

/// The row of [`Fixed`].
pub static ROW: Row<dyn Window> =
    Row::<dyn Window>::plain("fixed", "A constant window (NSTART of RFC 7252 s4.7)", |limits| {
        Box::new(Fixed::new(limits.initial))
    });

/// At most this much on its way.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    window: u32,
    flight: Flight,
}

impl Fixed {
    /// A window of `window` units; at least one, since a closed window would never open.
    pub fn new(window: u32) -> Self {
        Self { window: window.max(1), flight: Flight::default() }
    }
}

impl Default for Fixed {
    fn default() -> Self {
        Self::new(NSTART)
    }
}

impl Window for Fixed {
    fn name(&self) -> &'static str {
        ROW.name
    }
    fn flight(&self) -> &Flight {
        &self.flight
    }
    fn flight_mut(&mut self) -> &mut Flight {
        &mut self.flight
    }
    /// RFC 7252 s4.7: a client MUST strictly limit its simultaneous outstanding interactions to NSTART.
    fn window(&self) -> u32 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_units::Instant;

    use super::super::Permit;
    use super::*;

    fn permit_after(mut window: Fixed, sent: u32) -> Permit {
        for _ in 0..sent {
            window.on_sent(1, Instant::ZERO);
        }
        window.permits(1, Instant::ZERO)
    }

    #[test]
    fn one_interaction_at_a_time_is_the_default() {
        assert_eq!(permit_after(Fixed::default(), 0), Permit::Now);
        assert_eq!(permit_after(Fixed::default(), 1), Permit::Blocked);
    }

    #[test]
    fn a_window_is_full_at_its_size_and_never_closed() {
        assert_eq!(permit_after(Fixed::new(4), 3), Permit::Now);
        assert_eq!(permit_after(Fixed::new(4), 4), Permit::Blocked);
        assert_eq!(permit_after(Fixed::new(0), 0), Permit::Now);
    }
}
