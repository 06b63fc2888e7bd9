//! Timers and windows by the words that scenario files and flags use.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;

use lowmesh_units::Duration;

use crate::timer::cocoa::parameters::{
    DRAFT_03, ECOAP, PAPER_TEXT, Parameters, SIX_COCOA, TABLE_2,
};
use crate::timer::{Cocoa, Fasor, Fixed, Rfc6298, Rfc7252};
use crate::window::{AppendixC, Limits, Lln, Quic, Reno};
use crate::{Timer, Window, window};

/// Every name that [`timer_by_name`] knows, for lists and for "did you mean". `cocoa` and
/// `cocoa/table-2` are the same.
pub const TIMER_NAMES: [&str; 10] = [
    "default",
    "cocoa",
    "cocoa/table-2",
    "cocoa/paper-text",
    "cocoa/draft-03",
    "cocoa/ecoap",
    "6cocoa",
    "fasor",
    "rfc6298",
    "fixed",
];

/// A new timer of the kind called `name`, which waits `ack_timeout` (RFC 7252 s4.8: 2 s) for the first
/// acknowledgement while it knows nothing better.
pub fn timer_by_name(name: &str, ack_timeout: Duration) -> Result<Box<dyn Timer>, UnknownTimer> {
    if let Some(set) = cocoa_set(name) {
        return Ok(Box::new(Cocoa::starting_at(set, ack_timeout)));
    }
    Ok(match name {
        "default" => Box::new(Rfc7252::new(ack_timeout)),
        "fasor" => Box::new(Fasor::starting_at(ack_timeout)),
        "rfc6298" => Box::new(Rfc6298::starting_at(ack_timeout)),
        "fixed" => Box::new(Fixed::new(ack_timeout)),
        _ => return Err(UnknownTimer { name: name.to_string() }),
    })
}

/// The published parameter set of a CoCoA timer; none for other timers.
pub fn cocoa_set(name: &str) -> Option<&'static Parameters> {
    Some(match name {
        "cocoa" | "cocoa/table-2" => &TABLE_2,
        "cocoa/paper-text" => &PAPER_TEXT,
        "cocoa/draft-03" => &DRAFT_03,
        "cocoa/ecoap" => &ECOAP,
        "6cocoa" => &SIX_COCOA,
        _ => return None,
    })
}

/// Every name that [`window_by_name`] knows.
pub const WINDOW_NAMES: [&str; 6] = ["fixed", "appendix-c", "reno", "abe", "quic", "lln"];

/// A new window of the kind called `name`.
pub fn window_by_name(name: &str, limits: Limits) -> Result<Box<dyn Window>, UnknownWindow> {
    Ok(match name {
        "fixed" => Box::new(window::Fixed::new(limits.initial)),
        "appendix-c" => Box::new(AppendixC::new(limits)),
        "reno" => Box::new(Reno::new(limits)),
        "abe" => Box::new(Reno::abe(limits)),
        "quic" => Box::new(Quic::new(limits)),
        "lln" => Box::new(Lln::new(limits)),
        _ => return Err(UnknownWindow { name: name.to_string() }),
    })
}

/// A name that no timer has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTimer {
    /// What was asked for.
    pub name: String,
}

impl fmt::Display for UnknownTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name } = self;
        write!(f, "no congestion control is called `{name}`; there are {}", TIMER_NAMES.join(", "))
    }
}
impl core::error::Error for UnknownTimer {}

/// A name that no window has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWindow {
    /// What was asked for.
    pub name: String,
}

impl fmt::Display for UnknownWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name } = self;
        write!(f, "no congestion window is called `{name}`; there are {}", WINDOW_NAMES.join(", "))
    }
}
impl core::error::Error for UnknownWindow {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ACK_TIMEOUT;

    #[test]
    fn every_listed_name_makes_a_timer_that_bears_a_listed_name() {
        for name in TIMER_NAMES {
            let timer = timer_by_name(name, ACK_TIMEOUT).expect("a listed name");
            assert!(TIMER_NAMES.contains(&timer.name()));
            assert!(timer.name() == name || name == "cocoa/table-2");
        }
    }

    #[test]
    fn every_listed_name_makes_a_window_of_that_name() {
        for name in WINDOW_NAMES {
            let window = window_by_name(name, Limits::messages(2, 32)).expect("a listed name");
            assert_eq!(window.name(), name);
        }
        let error = window_by_name("vegas", Limits::messages(2, 32)).expect_err("not built");
        let text = error.to_string();
        assert!(text.contains("`vegas`") && text.contains("appendix-c"), "{text}");
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_names_there_are() {
        let error = timer_by_name("cocao", ACK_TIMEOUT).expect_err("a slip of the pen");
        let text = error.to_string();
        assert!(text.contains("`cocao`") && text.contains("cocoa/draft-03"), "{text}");
    }
}
