//! The caller's choice of congestion control for a destination, and what it has come to (RFC 7252
//! s4.7 and s4.8).
//!
//! A sender is a timer and a window: the one says when a message is sent again, the other how many
//! may be on their way at once. Both are kept for each destination by itself; which ones they are
//! is chosen for the endpoint, and for a single destination with
//! [`Endpoint::choose_congestion_control`](crate::Endpoint::choose_congestion_control). The
//! algorithms are those of `lowmesh-congestion`.

use alloc::boxed::Box;

use lowmesh_congestion::window::{Limits, fixed};
use lowmesh_congestion::{Timer, TimerSnapshot, Window, WindowSnapshot, WindowSpec, timer};
use lowmesh_registry::{Choice, Registry};
use lowmesh_units::Duration;

use crate::ConfigError;
use crate::params::{ACK_TIMEOUT, NSTART, WINDOW_MAX};

/// Timer and window of one destination. The default is that of RFC 7252.
///
/// ```
/// use lowmesh_coap::CongestionControl;
/// let tuned = CongestionControl::new("6cocoa")?.with_window("lln", 2)?;
/// assert_eq!(tuned.check(), Ok(()));
/// assert!(CongestionControl::new("cocao").is_err());
/// # Ok::<(), lowmesh_coap::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CongestionControl {
    /// The retransmission timer with the numbers of the user.
    pub timer: Choice<dyn Timer>,
    /// ACK_TIMEOUT, where the timer starts; above zero.
    pub ack_timeout: Duration,
    /// Outstanding interactions, from 1. A window that never changes is NSTART.
    pub window: WindowSpec,
}

impl Default for CongestionControl {
    fn default() -> Self {
        Self::with_timer(Choice::default())
    }
}

impl CongestionControl {
    /// The built-in timer called `name`, with the other values of RFC 7252.
    pub fn new(name: &str) -> Result<Self, ConfigError> {
        Registry::builtin().choose(name).map(Self::with_timer).map_err(ConfigError::Unknown)
    }
    /// Any timer: a built-in one with numbers of its user, or the row of the user's own algorithm.
    pub fn with_timer(timer: impl Into<Choice<dyn Timer>>) -> Self {
        let window = WindowSpec::fixed(NSTART);
        Self { timer: timer.into(), ack_timeout: ACK_TIMEOUT, window }
    }
    /// The same with a window that never changes.
    pub fn with_nstart(self, nstart: u32) -> Self {
        Self { window: WindowSpec::fixed(nstart), ..self }
    }
    /// The same with the built-in window called `name`, which starts at `nstart` and grows to [`WINDOW_MAX`] at most;
    /// `fixed` stays at `nstart`.
    pub fn with_window(self, name: &str, nstart: u32) -> Result<Self, ConfigError> {
        let row = Registry::builtin().row(name).map_err(ConfigError::Unknown)?;
        if *row == fixed::ROW {
            return Ok(self.with_nstart(nstart));
        }
        Ok(Self { window: WindowSpec::new(row, Limits::messages(nstart, WINDOW_MAX)), ..self })
    }
    /// The same with another ACK_TIMEOUT.
    pub fn with_ack_timeout(self, ack_timeout: Duration) -> Self {
        Self { ack_timeout, ..self }
    }
    /// Checks every setting against its bounds.
    pub fn check(&self) -> Result<(), ConfigError> {
        let nstart = self.window.limits().initial;
        if nstart == 0 {
            let (key, allowed) = ("nstart", "1 or more");
            return Err(ConfigError::OutOfBounds { key, value: 0, allowed });
        }
        if self.ack_timeout == Duration::ZERO {
            let (key, allowed) = ("ack_timeout", "above 0 s");
            return Err(ConfigError::OutOfBounds { key, value: 0, allowed });
        }
        self.timer.check().map_err(ConfigError::Timer)
    }
    /// A new sender.
    pub(crate) fn sender(&self) -> (Box<dyn Timer>, Box<dyn Window>) {
        (timer::make(&self.timer, self.ack_timeout), self.window.window())
    }
}

/// The current state of the congestion control of one destination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CongestionSnapshot {
    /// The timer's name.
    pub timer: &'static str,
    /// What the timer has estimated so far.
    pub estimate: TimerSnapshot,
    /// The window's name.
    pub window: &'static str,
    /// Its size, and how much of it is taken.
    pub occupancy: WindowSnapshot,
    /// Messages that wait for the window.
    pub queued: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn an_unknown_window_is_answered_with_the_list() {
        let error = CongestionControl::default().with_window("vegas", 1).expect_err("not built");
        let text = error.to_string();
        assert!(text.contains("`vegas`") && text.contains("lln"), "{text}");
    }

    #[test]
    fn a_window_of_nothing_and_a_timeout_of_nothing_are_refused() {
        let closed = CongestionControl::default().with_nstart(0).check().expect_err("closed");
        assert!(closed.to_string().contains("nstart = 0"));
        let hasty = CongestionControl::default().with_ack_timeout(Duration::ZERO);
        assert!(hasty.check().expect_err("no time").to_string().contains("ack_timeout"));
    }

    #[test]
    fn a_fixed_window_stays_at_nstart_and_another_may_grow() {
        let most = |name| {
            let chosen = CongestionControl::default().with_window(name, 2).expect("a listed name");
            chosen.window.limits().max
        };
        assert_eq!((most("fixed"), most("lln")), (2, WINDOW_MAX));
    }
}
