//! How much may be on its way to one destination.
//!
//! The unit is the caller's: messages, fragments or octets. Everything sent has exactly one of
//! four ends: acknowledged, lost, timed out or discarded; a retransmission counts as sent again. So a window
//! can count for itself what is in flight.

pub mod appendix_c;
pub mod bbr;
pub mod conformance;
pub mod cubic;
pub mod fixed;
pub mod flight;
mod hystart;
pub mod lln;
pub mod loss_based;
pub mod newreno;
pub mod quic;
pub mod reno;
mod sender;
mod spec;

pub use appendix_c::AppendixC;
pub use bbr::Bbr;
pub use cubic::Cubic;
pub use fixed::Fixed;
pub use flight::Flight;
pub use lln::Lln;
pub use newreno::NewReno;
pub use quic::Quic;
pub use reno::Reno;
pub use sender::{Ack, Phase, PhaseChange, RateSample};
pub use spec::WindowSpec;

use alloc::boxed::Box;
use core::fmt::Debug;

use lowmesh_registry::{Algorithm, Breach, Row};
use lowmesh_units::{Duration, Instant};

/// How much may be in flight to one destination: a [`Flight`], and what signals do to its bound. A window declares what
/// differs; by default it never changes and never paces.
///
/// A known loss ([`Window::on_lost`]) and a timeout ([`Window::on_timeout`]) are different signals.
/// When one packet brings several of them, acknowledgements come first.
pub trait Window: Debug + Send {
    /// The name in its row.
    fn name(&self) -> &'static str;
    /// What is in flight.
    fn flight(&self) -> &Flight;
    /// The same, to count with.
    fn flight_mut(&mut self) -> &mut Flight;
    /// How much may be in flight.
    fn window(&self) -> u32;
    /// Where slow start ends, if the window has one and has met its end.
    fn threshold(&self) -> Option<u32> {
        None
    }
    /// How long to wait after a message of `size` left before the next may leave; `None` when the window does
    /// not pace. [`Window::permits`] counts with it.
    fn pacing_gap(&self, _size: u32) -> Option<Duration> {
        None
    }
    /// Whether a message of `size` may leave. One always may, sooner or later, when nothing is in flight.
    fn permits(&self, size: u32, now: Instant) -> Permit {
        self.flight().permits(size, self.window(), self.pacing_gap(size), now)
    }
    /// A message of `size` left at `now`.
    fn on_sent(&mut self, size: u32, now: Instant) {
        let window = self.window();
        self.flight_mut().on_sent(size, window, now);
    }
    /// A message of `size` is no longer of interest, without a verdict on the path.
    fn on_discarded(&mut self, size: u32, _now: Instant) {
        self.flight_mut().remove(size);
    }
    /// `message` was acknowledged, `rtt` after it left if that is known: no sample comes of a message
    /// that was sent more than once, or whose acknowledgement had to wait for another.
    fn on_acked(&mut self, message: Message, _rtt: Option<Duration>, _now: Instant) {
        self.flight_mut().remove(message.size);
    }
    /// `messages` are known to be lost, while others came through.
    fn on_lost(&mut self, messages: &[Message], _now: Instant) {
        self.flight_mut().remove_all(messages);
    }
    /// Nothing came back for a whole timeout; `messages` are given up or will be retransmitted.
    fn on_timeout(&mut self, messages: &[Message], _now: Instant) {
        self.flight_mut().remove_all(messages);
    }
    /// The path marked a message that left at `sent` instead of dropping it.
    fn on_ecn(&mut self, _sent: Instant, _now: Instant) {}
    /// An acknowledgement came to a sender that finds losses itself (TCP), which calls this in place of
    /// [`Window::on_acked`] and [`Window::on_lost`]. Windows without a rule of their own get those signals.
    fn on_ack(&mut self, ack: &Ack<'_>, now: Instant) {
        let (last, rest) = ack.acked.split_last().map_or((None, ack.acked), |(a, b)| (Some(a), b));
        for message in rest {
            self.on_acked(*message, None, now);
        }
        if let Some(message) = last {
            self.on_acked(*message, ack.rtt, now);
        }
        if !ack.lost.is_empty() {
            self.on_lost(ack.lost, now);
        }
    }
    /// The sender enters a phase of loss recovery, before the acknowledgement that led to it is passed. By default a
    /// loss phase is a [`Window::on_timeout`], and the others mean nothing.
    fn on_phase(&mut self, change: &PhaseChange<'_>, now: Instant) {
        if change.phase == Phase::Loss {
            self.on_timeout(change.lost, now);
        }
    }
    /// The losses of the latest reduction were none: segments were late and not lost.
    fn on_undo(&mut self, _now: Instant) {}
    /// The sender sends again after a time without anything to send.
    fn on_restart(&mut self, _now: Instant) {}
    /// The sender's recovery sets the window; a window that knows no such sender keeps its own.
    fn resize(&mut self, _window: u32) {}
    /// True when the window's own answer stands in recovery; false when the sender leads it to the threshold
    /// (RFC 6937).
    fn recovers_itself(&self) -> bool {
        true
    }
    /// The rate of departures in octets per second, if the window paces and knows the length of a segment.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
    /// True while the window keeps the rate low on purpose, so that samples say nothing about the path.
    fn limits_rate(&self) -> bool {
        false
    }
    /// The state of the window, for plots.
    fn snapshot(&self) -> WindowSnapshot {
        WindowSnapshot {
            window: self.window(),
            outstanding: self.flight().outstanding(),
            threshold: self.threshold(),
        }
    }
}

/// A window has no parameters of its own: its caller gives the limits.
impl Algorithm for dyn Window {
    const NOUN: &'static str = "congestion window";
    const KEY: &'static str = "fragments.window";
    const BUILTIN: &'static [&'static Row<Self>] = &[
        &fixed::ROW,
        &appendix_c::ROW,
        &reno::ROW,
        &reno::ABE_ROW,
        &quic::ROW,
        &lln::ROW,
        &newreno::ROW,
        &cubic::ROW,
        &bbr::ROW,
    ];
    type Make = fn(Limits) -> Box<dyn Window>;
    fn conformance(row: &'static Row<Self>) -> Result<(), Breach> {
        conformance::check(row)
    }
}

/// One message that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its size in the caller's unit.
    pub size: u32,
    /// When its latest copy left.
    pub sent: Instant,
}

/// The answer of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Send.
    Now,
    /// Ask again at that time: pacing.
    At(Instant),
    /// Ask again when something has been acknowledged, lost, timed out or discarded.
    Blocked,
}

/// The state of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSnapshot {
    /// How much may be on its way.
    pub window: u32,
    /// How much is.
    pub outstanding: u32,
    /// Where slow start ends, if the window has one and has met its end.
    pub threshold: Option<u32>,
}

/// The numbers that a caller gives a window, all in its own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Where the window starts (OptWindowSize of RFC 8931 s7.1). [`Reno`] starts by a rule of its own and
    /// [`Lln`] at `min`.
    pub initial: u32,
    /// The window never falls below this (MinWindowSize); 0 is taken as 1.
    pub min: u32,
    /// The window never grows beyond this (MaxWindowSize, a receiver's window).
    pub max: u32,
    /// The largest message (SMSS of RFC 5681, max_datagram_size of RFC 9002); 0 is taken as 1.
    pub message: u32,
}

impl Limits {
    /// Windows of whole messages, from 1 up to `max`, that start at `initial`.
    pub const fn messages(initial: u32, max: u32) -> Self {
        Self { initial, min: 1, max, message: 1 }
    }
    /// The same with contradictions resolved: a floor above zero, and the ceiling above it.
    fn checked(self) -> Self {
        let min = self.min.max(1);
        let max = self.max.max(min);
        Self { initial: self.initial.clamp(min, max), min, max, message: self.message.max(1) }
    }
    fn clamp(&self, window: u32) -> u32 {
        window.clamp(self.min, self.max)
    }
}

/// When the latest of `messages` left.
fn latest(messages: &[Message]) -> Option<Instant> {
    messages.iter().map(|message| message.sent).max()
}

#[cfg(test)]
mod tests;
