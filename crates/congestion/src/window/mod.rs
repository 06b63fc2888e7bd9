//! How much may be on its way to one destination.
//!
//! The unit is the caller's: messages, fragments or octets. The caller counts what is on its way
//! and says so in [`Flight`]; the window keeps only what it has learnt.

mod fixed;

pub use fixed::Fixed;

use core::fmt::Debug;

use lowmesh_units::{Duration, Instant};

/// Whether to send now, later or not at all.
///
/// A known loss ([`Window::on_lost`]) and a timeout ([`Window::on_timeout`]) are different signals.
pub trait Window: Debug + Send {
    /// Whether `flight.size` more may leave.
    fn permits(&self, flight: &Flight) -> Permit;
    /// `size` left at `now`.
    fn on_sent(&mut self, size: u32, now: Instant);
    /// `size` that was sent is no longer of interest, without a verdict on the path.
    fn on_discarded(&mut self, size: u32, now: Instant);
    /// `size` was acknowledged, `rtt` after it left if that is known.
    fn on_acked(&mut self, size: u32, rtt: Option<Duration>, now: Instant);
    /// `size` is known to be lost, while others came through.
    fn on_lost(&mut self, size: u32, now: Instant);
    /// Nothing came back for a whole timeout.
    fn on_timeout(&mut self, now: Instant);
    /// The path marked a packet instead of dropping it.
    fn on_ecn(&mut self, now: Instant);
    /// How long to wait after `size` left before the next may leave.
    fn pacing_gap(&self, size: u32) -> Duration;
    /// What it believes, for plots.
    fn snapshot(&self) -> WindowSnapshot;
    /// The name that scenario files use.
    fn name(&self) -> &'static str;
}

/// What is on its way, and what wants to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// When the question is asked.
    pub now: Instant,
    /// Sent and neither acknowledged, lost nor discarded.
    pub outstanding: u32,
    /// What wants to leave.
    pub size: u32,
}

/// The answer of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Send.
    Now,
    /// Ask again at that time: pacing.
    At(Instant),
    /// Ask again when something has been acknowledged, lost or discarded.
    Blocked,
}

/// The state of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSnapshot {
    /// How much may be on its way.
    pub window: u32,
    /// Where slow start ends, if the window has one.
    pub threshold: Option<u32>,
}
