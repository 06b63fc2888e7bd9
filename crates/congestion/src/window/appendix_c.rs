//! The window that appendix C of RFC 8931 suggests: it only ever shrinks.
//!
//! Constants as in the implementation that Lenders et al. 2021 measured: half on a timeout, one message less
//! on a mark; a loss is a timeout there, so a known loss changes nothing.

use alloc::boxed::Box;

use lowmesh_registry::Row;
use lowmesh_units::Instant;

use super::flight::Flight;
use super::{Limits, Message, Window};

/// The row of [`AppendixC`].
pub static ROW: Row<dyn Window> = Row::<dyn Window>::plain(
    "appendix-c",
    "A window that never grows (RFC 8931, appendix C)",
    |limits| Box::new(AppendixC::new(limits)),
);

/// Starts at `initial`, never grows.
#[derive(Clone, Copy, Debug)]
pub struct AppendixC {
    limits: Limits,
    window: u32,
    flight: Flight,
}

impl AppendixC {
    /// A window that starts at `limits.initial`.
    pub fn new(limits: Limits) -> Self {
        let limits = limits.checked();
        Self { limits, window: limits.initial, flight: Flight::default() }
    }
}

impl Window for AppendixC {
    fn name(&self) -> &'static str {
        ROW.name
    }
    fn flight(&self) -> &Flight {
        &self.flight
    }
    fn flight_mut(&mut self) -> &mut Flight {
        &mut self.flight
    }
    fn window(&self) -> u32 {
        self.window
    }
    fn on_timeout(&mut self, messages: &[Message], _now: Instant) {
        self.flight.remove_all(messages);
        self.window = self.limits.clamp(self.window / 2);
    }
    fn on_ecn(&mut self, _sent: Instant, _now: Instant) {
        self.window = self.limits.clamp(self.window.saturating_sub(self.limits.message));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{acked, at, fill, window_of};
    use super::*;

    #[test]
    fn a_timeout_halves_it_down_to_the_least_window() {
        let mut window = AppendixC::new(Limits::messages(16, 32));
        let mut seen = Vec::new();
        for _ in 0..6 {
            window.on_timeout(&[], at(0));
            seen.push(window_of(&window));
        }
        assert_eq!(seen, [8, 4, 2, 1, 1, 1]);
    }

    #[test]
    fn a_mark_takes_one_message_away() {
        let mut window = AppendixC::new(Limits::messages(3, 32));
        let mut seen = Vec::new();
        for _ in 0..4 {
            window.on_ecn(at(0), at(0));
            seen.push(window_of(&window));
        }
        assert_eq!(seen, [2, 1, 1, 1]);
    }

    #[test]
    fn acknowledgements_and_known_losses_change_nothing() {
        let mut window = AppendixC::new(Limits::messages(2, 32));
        let sent = fill(&mut window, at(0));
        acked(&mut window, sent[0], at(40));
        window.on_lost(&sent[1..], at(40));
        assert_eq!((window_of(&window), window.snapshot().outstanding), (2, 0));
    }
}
