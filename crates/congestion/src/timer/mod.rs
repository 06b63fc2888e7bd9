//! The retransmission timer of one destination.

pub mod cocoa;
pub mod conformance;
pub mod fasor;
pub mod fixed;
pub mod rfc6298;
pub mod rfc7252;

pub use cocoa::Cocoa;
pub use fasor::Fasor;
pub use fixed::Fixed;
pub use rfc6298::Rfc6298;
pub use rfc7252::Rfc7252;

use alloc::boxed::Box;
use core::fmt::Debug;

use lowmesh_registry::{Algorithm, Breach, Choice, Row};
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
    /// The name in its row.
    fn name(&self) -> &'static str;
}

/// Makes a timer that waits the given ACK_TIMEOUT (RFC 7252 s4.8: 2 s) for the first acknowledgement while it knows
/// nothing better.
pub type MakeTimer = fn(&Choice<dyn Timer>, Duration) -> Box<dyn Timer>;

impl Algorithm for dyn Timer {
    const NOUN: &'static str = "congestion control";
    const KEY: &'static str = "coap.congestion";
    const BUILTIN: &'static [&'static Row<Self>] = &[
        &rfc7252::ROW,
        &cocoa::rows::COCOA,
        &cocoa::rows::COCOA_TABLE_2,
        &cocoa::rows::COCOA_PAPER_TEXT,
        &cocoa::rows::COCOA_DRAFT_03,
        &cocoa::rows::COCOA_ECOAP,
        &cocoa::rows::SIX_COCOA_ROW,
        &fasor::ROW,
        &rfc6298::ROW,
        &fixed::ROW,
    ];
    type Make = MakeTimer;
    fn conformance(row: &'static Row<Self>) -> Result<(), Breach> {
        conformance::check(row)
    }
}

/// A new timer of the kind that `choice` names, with its numbers.
pub fn make(choice: &Choice<dyn Timer>, ack_timeout: Duration) -> Box<dyn Timer> {
    (choice.row().make)(choice, ack_timeout)
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
