//! What happens to a datagram at its fragmenting end (RFC 8931 s6), step by step, for plots.
//!
//! The events are those of its window, with the window's state after each. [`Config::tell_steps`](crate::Config) turns
//! them on; collecting them is left to the driver.

use lowmesh_machine::Handle;
use lowmesh_units::Duration;

use super::send::{Ending, Sending};

/// One step of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Names the packet.
    pub handle: Handle,
    /// What happened.
    pub event: Event,
    /// The window after it, in fragments.
    pub window: u32,
    /// The gap behind a fragment after it.
    pub gap: Duration,
}

/// What happened to fragments of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// One left for the first time.
    Sent,
    /// One left again.
    Resent,
    /// An acknowledgement told that so many more have arrived.
    Acked(u8),
    /// An acknowledgement told that so many did not.
    Lost(u8),
    /// Nothing came for a whole timeout.
    TimedOut,
    /// An acknowledgement told that the path is congested (E).
    Marked,
    /// All of it begins from scratch.
    Restarted,
    /// It is over.
    Ended(Ending),
}

impl Step {
    /// What `event` has made of `sending`.
    pub(super) fn of(sending: &Sending, event: Event) -> Self {
        let window = sending.window().snapshot().window;
        Self { handle: sending.handle(), event, window, gap: sending.gap() }
    }
}
