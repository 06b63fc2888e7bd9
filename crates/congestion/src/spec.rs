//! Which timer and which window a user wants: a name, for CoCoA perhaps numbers of one's own, for a window its
//! limits.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;

use lowmesh_units::Duration;

use crate::names::{
    UnknownTimer, UnknownWindow, WINDOW_NAMES, cocoa_set, timer_by_name, window_by_name,
};
use crate::timer::Cocoa;
use crate::timer::cocoa::{OutOfBounds, Overrides};
use crate::window::Limits;
use crate::{Timer, Window};

/// A timer by its name in [`crate::TIMER_NAMES`], with numbers laid over its parameter set.
///
/// ```
/// use lowmesh_congestion::TimerSpec;
/// use lowmesh_congestion::timer::cocoa::Overrides;
/// use lowmesh_units::Duration;
/// let overrides = Overrides { lambda_weak: Some(0.4), ..Overrides::default() };
/// let spec = TimerSpec { name: "6cocoa".into(), cocoa: overrides };
/// assert_eq!(spec.timer(Duration::from_secs(2))?.name(), "6cocoa");
/// # Ok::<(), lowmesh_congestion::TimerError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TimerSpec {
    /// The timer's name.
    pub name: String,
    /// Numbers over the set of a CoCoA timer; other timers have none.
    pub cocoa: Overrides,
}

impl From<&str> for TimerSpec {
    fn from(name: &str) -> Self {
        Self { name: name.to_string(), cocoa: Overrides::default() }
    }
}

impl TimerSpec {
    /// A new timer that waits `ack_timeout` while it knows nothing better.
    pub fn timer(&self, ack_timeout: Duration) -> Result<Box<dyn Timer>, TimerError> {
        if let Some(set) = cocoa_set(&self.name) {
            let laid = self.cocoa.over(set).map_err(TimerError::Number)?;
            return Ok(Box::new(Cocoa::starting_at(&laid, ack_timeout)));
        }
        let timer = timer_by_name(&self.name, ack_timeout).map_err(TimerError::Unknown)?;
        if self.cocoa.is_empty() {
            Ok(timer)
        } else {
            Err(TimerError::NotCocoa { name: self.name.clone() })
        }
    }
}

/// A window by its name in [`crate::WINDOW_NAMES`], with the caller's limits.
///
/// ```
/// use lowmesh_congestion::{Permit, WindowSpec, window::Limits};
/// use lowmesh_units::Instant;
/// let mut window = WindowSpec::new("lln", Limits::messages(2, 32))?.window();
/// assert_eq!(window.permits(1, Instant::ZERO), Permit::Now);
/// window.on_sent(1, Instant::ZERO);
/// assert_eq!(window.permits(1, Instant::ZERO), Permit::Blocked);
/// # Ok::<(), lowmesh_congestion::UnknownWindow>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSpec {
    name: &'static str,
    limits: Limits,
}

impl WindowSpec {
    /// The window called `name`.
    pub fn new(name: &str, limits: Limits) -> Result<Self, UnknownWindow> {
        match WINDOW_NAMES.into_iter().find(|known| *known == name) {
            Some(name) => Ok(Self { name, limits }),
            None => Err(UnknownWindow { name: name.to_string() }),
        }
    }
    /// A window of `window` that never changes.
    pub const fn fixed(window: u32) -> Self {
        Self { name: "fixed", limits: Limits::messages(window, window) }
    }
    /// A new window.
    pub fn window(&self) -> Box<dyn Window> {
        window_by_name(self.name, self.limits).expect("WindowSpec::new has looked it up")
    }
    /// The window's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
    /// The caller's limits.
    pub const fn limits(&self) -> Limits {
        self.limits
    }
}

/// Why a timer cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimerError {
    /// No timer has this name.
    Unknown(UnknownTimer),
    /// A number is out of its bounds.
    Number(OutOfBounds),
    /// Numbers of CoCoA for a timer that is no CoCoA.
    NotCocoa {
        /// The timer that was asked for.
        name: String,
    },
}

impl fmt::Display for TimerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(error) => error.fmt(f),
            Self::Number(error) => error.fmt(f),
            Self::NotCocoa { name } => write!(f, "`{name}` has none of CoCoA's parameters"),
        }
    }
}
impl core::error::Error for TimerError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TIMER_NAMES;
    use crate::params::ACK_TIMEOUT;
    use lowmesh_units::Instant;

    fn overall_after_one_second(spec: &TimerSpec) -> f64 {
        let mut timer = spec.timer(ACK_TIMEOUT).expect("a possible timer");
        timer.on_sample(Duration::from_secs(1), 0, Instant::ZERO);
        timer.snapshot().rto.as_secs_f64()
    }

    #[test]
    fn every_name_alone_is_a_spec() {
        for name in TIMER_NAMES {
            let timer = TimerSpec::from(name).timer(ACK_TIMEOUT).expect("a listed name");
            let named = timer_by_name(name, ACK_TIMEOUT).expect("a listed name");
            assert_eq!((timer.name(), timer.snapshot()), (named.name(), named.snapshot()));
        }
    }

    #[test]
    fn a_number_over_the_set_changes_what_the_timer_does() {
        // 1 s gives the strong estimator 1 + 4 * 0.5 = 3 s; 0.5 or 1.0 of it move the 2 s.
        let plain = overall_after_one_second(&TimerSpec::from("cocoa"));
        assert!((plain - 2.5).abs() < 1e-9, "{plain}");
        let cocoa = Overrides { lambda_strong: Some(1.0), ..Overrides::default() };
        let own = overall_after_one_second(&TimerSpec { cocoa, ..TimerSpec::from("cocoa") });
        assert!((own - 3.0).abs() < 1e-9, "{own}");
    }

    #[test]
    fn cocoas_numbers_for_another_timer_are_refused() {
        let cocoa = Overrides { alpha: Some(0.5), ..Overrides::default() };
        for name in ["default", "rfc6298", "fixed"] {
            let spec = TimerSpec { cocoa, ..TimerSpec::from(name) };
            let error = spec.timer(ACK_TIMEOUT).expect_err("no CoCoA");
            assert_eq!(error, TimerError::NotCocoa { name: name.to_string() });
        }
    }

    #[test]
    fn a_window_of_a_name_that_none_has_is_refused_before_it_is_made() {
        assert!(WindowSpec::new("renoo", Limits::messages(2, 32)).is_err());
        let fixed = WindowSpec::fixed(5).window();
        assert_eq!((fixed.name(), fixed.snapshot().window), ("fixed", 5));
    }

    #[test]
    fn a_number_out_of_bounds_and_an_unknown_name_are_told() {
        let cocoa = Overrides { alpha: Some(2.0), ..Overrides::default() };
        let error = TimerSpec { cocoa, ..TimerSpec::from("cocoa") }.timer(ACK_TIMEOUT);
        let text = error.expect_err("too large").to_string();
        assert_eq!(text, "alpha is out of its bounds: 0 to 1");
        let text = TimerSpec::from("coca").timer(ACK_TIMEOUT).expect_err("unknown").to_string();
        assert!(text.contains("`coca`"), "{text}");
    }
}
