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

/// RTTVAR of the first sample R: RFC 6298 s2.2, R/2.
pub const RFC6298_FIRST_DEVIATION: f64 = 0.5;

/// RTTVAR of the first sample R: draft-ietf-core-fasor-02 s4.1, R/2K with the K of RFC 6298, which makes the first
/// RTO 1.5 R. The draft's pseudocode has R/2 and a K of 1 for this sample instead: the same RTO, and a longer
/// one after the second sample. The text is followed.
pub const FASOR_FIRST_DEVIATION: f64 = 0.5 / RFC6298_K;
/// SRTT that dithers the initial RTO: draft-ietf-core-fasor-02 s4.1, a third of it.
pub const FASOR_INITIAL_SHARE: f64 = 1.0 / 3.0;
/// Least part of SRTT that is added to FastRTO: draft-ietf-core-fasor-02 s4.1, 1/4; at most it is the whole.
pub const FASOR_DITHER_MIN: f64 = 0.25;
/// SlowRTO in times that an acknowledgement took: draft-ietf-core-fasor-02 s4.2, 1.5.
pub const FASOR_SLOW_FACTOR: f64 = 1.5;

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

/// Thresholds of SMSS at which the initial window falls to three and to two messages: RFC 5681 s3.1, octets.
pub const RENO_INITIAL_WINDOW_SMSS: [u32; 2] = [1095, 2190];
/// Loss window, LW: RFC 5681 s2, 1 message.
pub const RENO_LOSS_WINDOW_MESSAGES: u32 = 1;
/// Least ssthresh: RFC 5681 s3.1, equation 4, 2 messages.
pub const RENO_THRESHOLD_MESSAGES_MIN: u32 = 2;
/// beta_ecn: RFC 8511 s3, 0.8 as a fraction; between beta_loss of 1/2 and 1.
pub const ABE_BETA_ECN: (u32, u32) = (4, 5);

/// kInitialRtt: RFC 9002 s6.2.2, 333 ms.
pub const QUIC_INITIAL_RTT: Duration = Duration::from_millis(333);
/// kGranularity: RFC 9002 s6.1.2, 1 ms (RECOMMENDED).
pub const QUIC_GRANULARITY: Duration = Duration::from_millis(1);
/// kPersistentCongestionThreshold: RFC 9002 s7.6.1, 3 (RECOMMENDED). The implementation that Lenders et al. 2021
/// measured has 3000 here, so that it never finds persistent congestion.
pub const QUIC_PERSISTENT_CONGESTION_THRESHOLD: u64 = 3;
/// N of the pacing rate: RFC 9002 s7.7, 1.25 as a fraction; 1 would leave the window unused.
pub const QUIC_PACING: (u64, u64) = (5, 4);

/// Largest window of `lln`: ours, 5 messages. The largest static window that Lenders et al. 2021 (s IV) ran with
/// success; above 6 their delivery ratio fell drastically.
pub const LLN_WINDOW_MESSAGES_MAX: u32 = 5;
/// Clean windows before the first step of `lln`: ours, 2; from 1 (one a window is what Reno does).
pub const LLN_PATIENCE: u32 = 2;
/// Clean windows before a step of `lln` after many setbacks: ours, 8.
pub const LLN_PATIENCE_MAX: u32 = 8;
/// The unit of the stretch of `lln`: sixteenths.
pub const LLN_STRETCH_ONE: u64 = 16;
/// Largest stretch of `lln`: ours, 4 round trips between two messages.
pub const LLN_STRETCH_MAX: u64 = 4 * LLN_STRETCH_ONE;
/// What a loss at the least window does to the stretch: ours, 5/4.
pub const LLN_STRETCH_LOSS: (u64, u64) = (5, 4);
/// What a mark does to the stretch: ours, 3/2.
pub const LLN_STRETCH_MARK: (u64, u64) = (3, 2);
/// What a timeout does to the stretch: ours, 2, as the binary back-off of timers.
pub const LLN_STRETCH_TIMEOUT: (u64, u64) = (2, 1);

/// Messages of the initial window for messages of `smss` octets: RFC 5681 s3.1, 2 to 4.
pub const fn reno_initial_messages(smss: u32) -> u32 {
    if smss > RENO_INITIAL_WINDOW_SMSS[1] {
        2
    } else if smss > RENO_INITIAL_WINDOW_SMSS[0] {
        3
    } else {
        4
    }
}
