//! The window of New Reno as Linux keeps it (RFC 5681, RFC 6582; tcp_cong.c).
//!
//! ```text
//!   slow start            W < ssthresh:  W += acknowledged, up to ssthresh
//!   congestion avoidance  W >= ssthresh: W += 1 message once W units are acknowledged
//!   episode               ssthresh = max(W / 2, 2 messages)
//! ```
//!
//! It differs from [`super::Reno`] in three points: the reduction takes the window and not the flight, the initial window is
//! the caller's (RFC 6928 for TCP), and only a window that was used up grows.

use alloc::boxed::Box;

use lowmesh_registry::Row;
use lowmesh_units::Instant;

use super::loss_based::{Avoidance, Growth, LossBased};
use super::{Limits, Window};
use crate::params::RENO_THRESHOLD_MESSAGES_MIN;

/// The row of [`NewReno`].
pub static ROW: Row<dyn Window> =
    Row::<dyn Window>::plain("newreno", "TCP New Reno as in Linux (RFC 6582)", |limits| {
        Box::new(NewReno::new(limits))
    });

/// The window of New Reno.
pub type NewReno = LossBased<Additive>;

/// One message a window.
#[derive(Clone, Copy, Debug)]
pub struct Additive;

impl NewReno {
    /// A window that starts at `limits.initial`.
    pub fn new(limits: Limits) -> Self {
        Self::with_growth(limits, Additive)
    }
}

impl Growth for Additive {
    const NAME: &'static str = "newreno";

    fn threshold(&mut self, window: u32, message: u32) -> u32 {
        (window / 2).max(RENO_THRESHOLD_MESSAGES_MIN.saturating_mul(message))
    }
    fn credit_per_message(&mut self, state: Avoidance, _now: Instant) -> u32 {
        state.window
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ack_all, at, fill, window_of};
    use super::super::{Ack, Message, Phase, PhaseChange};
    use super::*;

    fn newreno() -> NewReno {
        NewReno::new(Limits::messages(10, 1000))
    }

    fn ack(delivered: u32, phase: Phase) -> Ack<'static> {
        Ack { advances: true, delivered, is_window_limited: true, phase, ..Ack::default() }
    }

    fn change(phase: Phase, is_new_episode: bool) -> PhaseChange<'static> {
        PhaseChange { phase, is_new_episode, lost: &[] }
    }

    #[test]
    fn slow_start_grows_by_what_is_acknowledged_if_the_window_is_used_up() {
        let mut window = newreno();
        window.on_ack(&ack(3, Phase::Open), at(1));
        assert_eq!(window_of(&window), 13);
        window.on_ack(&Ack { is_window_limited: false, ..ack(3, Phase::Open) }, at(2));
        window.on_ack(&Ack { advances: false, ..ack(3, Phase::Open) }, at(2));
        assert_eq!(window_of(&window), 13);
    }

    #[test]
    fn recovery_leaves_the_window_to_the_sender_and_ends_at_the_threshold() {
        let mut window = newreno();
        window.on_phase(&change(Phase::Recovery, true), at(1));
        assert_eq!((window_of(&window), window.snapshot().threshold), (10, Some(5)));
        window.on_ack(&ack(4, Phase::Recovery), at(2));
        assert_eq!(window_of(&window), 10);
        window.resize(5);
        for _ in 0..5 {
            assert_eq!(window_of(&window), 5);
            window.on_ack(&ack(1, Phase::Open), at(3));
        }
        assert_eq!(window_of(&window), 6, "congestion avoidance: one message for five");
    }

    #[test]
    fn slow_start_after_a_timeout_ends_at_the_threshold_and_counts_the_rest_for_avoidance() {
        let mut window = newreno();
        window.on_phase(&change(Phase::Loss, true), at(1));
        window.resize(1);
        window.on_ack(&ack(6, Phase::Loss), at(2));
        assert_eq!(window_of(&window), 5);
        window.on_ack(&ack(3, Phase::Loss), at(3));
        assert_eq!(window_of(&window), 6, "two of the six and three more make five");
    }

    #[test]
    fn an_undo_gives_window_and_threshold_back_once() {
        let mut window = newreno();
        window.on_phase(&change(Phase::Loss, true), at(1));
        window.resize(1);
        window.on_undo(at(2));
        assert_eq!((window_of(&window), window.snapshot().threshold), (10, None));
        window.resize(3);
        window.on_undo(at(2));
        assert_eq!(window_of(&window), 3);
    }

    #[test]
    fn a_timeout_in_the_same_episode_holds_the_threshold() {
        let mut window = newreno();
        window.on_phase(&change(Phase::Recovery, true), at(1));
        window.resize(7);
        window.on_phase(&change(Phase::Loss, false), at(2));
        assert_eq!(window.snapshot().threshold, Some(5));
    }

    #[test]
    fn a_caller_without_phases_gets_the_threshold_at_once() {
        let mut window = newreno();
        ack_all(&mut window, at(0), at(100));
        assert_eq!(window_of(&window), 20);
        let sent = fill(&mut window, at(200));
        window.on_lost(&sent[..1], at(300));
        window.on_lost(&sent[1..2], at(301));
        assert_eq!(window_of(&window), 10);
        window.on_timeout(&[Message { size: 1, sent: at(200) }], at(400));
        assert_eq!((window_of(&window), window.snapshot().threshold), (1, Some(5)));
    }
}
