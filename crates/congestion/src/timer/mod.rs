//! The retransmission timer of one destination.

pub mod cocoa;
mod fasor;
mod fixed;
mod rfc6298;
mod rfc7252;

pub use cocoa::Cocoa;
pub use fasor::Fasor;
pub use fixed::Fixed;
pub use rfc6298::Rfc6298;
pub use rfc7252::Rfc7252;

use core::fmt::Debug;

use lowmesh_units::{Duration, Instant, Rng};

/// When to send a message again that has not been acknowledged.
///
/// One value serves one destination. For each message the caller asks [`Timer::initial`] once, then
/// [`Timer::backoff`] before each retransmission, and reports the end: [`Timer::on_sample`] or
/// [`Timer::on_give_up`].
///
/// Every wait lies between [`crate::params::RTO_MIN`] and [`crate::params::WAIT_MAX`].
pub trait Timer: Debug + Send {
    /// How long to wait for the acknowledgement of the first copy, sent at `now`.
    fn initial(&mut self, now: Instant, rng: &mut Rng) -> Duration;
    /// How long to wait after the retransmission that is about to leave.
    fn backoff(&mut self, attempt: Attempt, rng: &mut Rng) -> Duration;
    /// An acknowledgement came `rtt` after the *first* copy left, when `retransmissions` more had
    /// been sent.
    fn on_sample(&mut self, rtt: Duration, retransmissions: u8, now: Instant);
    /// The last retransmission stayed without acknowledgement.
    fn on_give_up(&mut self, now: Instant);
    /// What it believes, for plots.
    fn snapshot(&self) -> TimerSnapshot;
    /// The name that [`crate::timer_by_name`] knows it by.
    fn name(&self) -> &'static str;
}

/// How far one message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What [`Timer::initial`] said for this message.
    pub initial: Duration,
    /// The wait that has just run out.
    pub previous: Duration,
    /// Which retransmission comes now, from 1.
    pub number: u8,
}

/// The state of a timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimerSnapshot {
    /// The timeout before dithering and back-off.
    pub rto: Duration,
    /// The smoothed round-trip time that led to it, once there is a sample.
    pub srtt: Option<Duration>,
    /// Its mean deviation.
    pub rttvar: Option<Duration>,
    /// What exchanges without retransmission say (CoCoA, FASOR), once there was one.
    pub strong: Option<EstimatorSnapshot>,
    /// What exchanges with retransmissions say (CoCoA; FASOR: its SlowRTO), while that counts.
    pub weak: Option<EstimatorSnapshot>,
}

/// The state of one RTT estimator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimatorSnapshot {
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Its mean deviation.
    pub rttvar: Duration,
    /// The timeout that follows from them.
    pub rto: Duration,
}
