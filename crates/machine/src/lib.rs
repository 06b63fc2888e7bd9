//! The one shape of every protocol part.
//!
//! A machine holds state and nothing else: no clock, socket, thread or randomness of its own making.
//! Its driver tells it what happened ([`Machine::handle`]), drains what it wants ([`Machine::poll_output`]
//! until `None`), and comes back when it asked to be woken ([`Machine::next_deadline`]).
//!
//! ```text
//!   driver ── handle(now, input) ──> machine      one mutation
//!          <── poll_output() ─────── machine      until None
//!          <── next_deadline() ───── machine      then comes back as an input
//! ```
//!
//! Every queue in a machine is bounded. What does not fit, or cannot go on, leaves as [`Dropped`] with a
//! [`DropReason`] out of one closed list, so that a run can account for every packet.
#![no_std]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod dropped;
mod outbox;
mod rejected;

pub use dropped::{DropReason, Dropped, Handle, Layer};
pub use outbox::Outbox;
pub use rejected::Rejected;

use lowmesh_units::Instant;

/// A protocol part without clock, socket or thread.
pub trait Machine {
    /// What can happen to it; may borrow from the driver for the length of the call.
    type Input<'a>;
    /// What it can ask of its driver.
    type Output;

    /// Tells the machine that `input` happened at `now`. `now` never goes back.
    ///
    /// Bytes from a peer never make this panic or fail: a bad packet is an output and a counter.
    /// `Err` means that the caller asked for something that is not possible in this state; nothing changed.
    fn handle(&mut self, now: Instant, input: Self::Input<'_>) -> Result<(), Rejected>;

    /// Takes the next thing the machine wants done; to be called until `None` after each input.
    fn poll_output(&mut self) -> Option<Self::Output>;

    /// When the machine next wants to be called with its deadline input, if ever.
    fn next_deadline(&self) -> Option<Instant>;
}

/// The earlier of two deadlines, where `None` is never.
#[inline]
pub fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

/// For the answer of a machine that its driver never asks what it must refuse: a refusal is the driver's mistake,
/// found by every build with assertions and without effect in the others.
#[inline]
pub fn debug_assert_accepted(answer: Result<(), Rejected>) {
    debug_assert!(answer.is_ok(), "{answer:?}");
}
