//! Numbers of the congestion-control specifications. The numbers in which the CoCoA variants differ
//! are in [`crate::timer::cocoa::parameters`].

use lowmesh_units::Duration;

/// ACK_TIMEOUT: RFC 7252 s4.8, 2 s; below 1 s breaks s4.8.1.
pub const ACK_TIMEOUT: Duration = Duration::from_secs(2);
/// ACK_RANDOM_FACTOR: RFC 7252 s4.8, 1.5, no unit; MUST NOT be below 1.0.
pub const ACK_RANDOM_FACTOR: f64 = 1.5;
/// The binary exponential back-off of RFC 7252 s4.2 and RFC 6298 s5.5, no unit.
pub const BINARY_BACKOFF: f64 = 2.0;
/// NSTART: RFC 7252 s4.7, 1 outstanding interaction per destination.
pub const NSTART: u32 = 1;

/// First RTO without a sample: RFC 6298 s2.1, 1 s.
pub const RFC6298_INITIAL_RTO: Duration = Duration::from_secs(1);
/// Smallest RTO of RFC 6298 s2.4 (SHOULD), 1 s.
pub const RFC6298_MIN_RTO: Duration = Duration::from_secs(1);
/// Gain of SRTT: RFC 6298 s2.3, 1/8.
pub const RFC6298_ALPHA: f64 = 0.125;
/// Gain of RTTVAR: RFC 6298 s2.3, 1/4.
pub const RFC6298_BETA: f64 = 0.25;
/// K: RFC 6298 s2.2, weight of the variance in the RTO.
pub const RFC6298_K: f64 = 4.0;

/// Largest RTO before dithering: RFC 6298 s2.5 allows a cap of no less than 60 s, and
/// draft-ietf-core-cocoa-03 builds on that algorithm.
pub const RTO_MAX: Duration = Duration::from_secs(60);
/// Smallest RTO: ours, 1 ms. No source has one; it keeps an RTT of zero from making a sender spin.
pub const RTO_MIN: Duration = Duration::from_millis(1);
/// Longest wait for any copy, dithered and backed off: [`RTO_MAX`] times [`ACK_RANDOM_FACTOR`], 90
/// s; just below MAX_TRANSMIT_WAIT of RFC 7252 s4.8.2 (93 s).
pub const WAIT_MAX: Duration = Duration::from_secs(90);

/// Largest weight of RTTVAR in a CoCoA estimator that a user can ask for: ours, 16; four times the
/// K of RFC 6298 s2.2 and of every published set.
pub const COCOA_K_MAX: f64 = 16.0;
/// Largest back-off factor that a user can ask for: ours, 10; the published ones go to 3, and from
/// 1 s two steps of 10 are past [`WAIT_MAX`].
pub const COCOA_FACTOR_MAX: f64 = 10.0;
/// Largest threshold of the back-off factor: [`WAIT_MAX`]; no first timeout is longer.
pub const COCOA_THRESHOLD_MAX: Duration = WAIT_MAX;
