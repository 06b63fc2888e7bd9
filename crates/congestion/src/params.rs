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

/// C of CUBIC: RFC 9438 s4.2, 0.4 messages per cubic second.
pub const CUBIC_C: f64 = 0.4;
/// beta_cubic: RFC 9438 s4.6, 0.7.
pub const CUBIC_BETA: f64 = 0.7;
/// Most that CUBIC grows in a round trip, in windows: RFC 9438 s4.2, 1.5.
pub const CUBIC_GROWTH_MAX: f64 = 1.5;
/// What must be acknowledged for one message where CUBIC's target is not above the window, in windows: Linux, 100.
pub const CUBIC_CREDIT_WINDOWS_MAX: f64 = 100.0;
/// The same where CUBIC knows no plateau, before the first loss and after a timeout, in messages: Linux, 20.
pub const CUBIC_CREDIT_BLIND: f64 = 20.0;
/// Window below which HyStart ends no slow start, in messages: Linux (hystart_low_window), 16.
pub const HYSTART_WINDOW_MESSAGES_MIN: u32 = 16;
/// Samples of a round before HyStart judges its delay: Linux (HYSTART_MIN_SAMPLES), 8.
pub const HYSTART_SAMPLES: u32 = 8;
/// Least and largest growth of the round-trip time that counts, an eighth of the least one between: Linux, 4 ms and 16 ms.
pub const HYSTART_DELAY: (Duration, Duration) =
    (Duration::from_millis(4), Duration::from_millis(16));
/// Largest gap between acknowledgements of one train: Linux (hystart_ack_delta_us), 2 ms.
pub const HYSTART_TRAIN_GAP: Duration = Duration::from_millis(2);
/// Time after the start of congestion avoidance whose samples do not count: Linux, 1 s.
pub const HYSTART_PAUSE: Duration = Duration::from_secs(1);

/// high_gain of BBR in 1/256: 2/ln 2 (draft-cardwell-iccrg-bbr-congestion-control-00 s4.1.2), in Linux 739.
pub const BBR_GAIN_HIGH: u64 = 739;
/// Gain of Drain in 1/256: the inverse of the high gain, in Linux 88.
pub const BBR_GAIN_DRAIN: u64 = 88;
/// cwnd_gain in 1/256: 2 (the same draft, s4.2.3).
pub const BBR_GAIN_WINDOW: u64 = 512;
/// Gains of the phases of ProbeBw in 1/256: 5/4, 3/4 and six times 1 (the same draft, s4.3.4).
pub const BBR_GAIN_CYCLE: [u64; 8] = [320, 192, 256, 256, 256, 256, 256, 256];
/// Rounds in which a bandwidth counts: the same draft, s4.1.1, 10.
pub const BBR_BANDWIDTH_ROUNDS: u64 = 10;
/// Age at which the least round-trip time is probed: the same draft, s4.1.2, 10 s.
pub const BBR_RTT_MIN_AGE: Duration = Duration::from_secs(10);
/// Time in ProbeRtt with the least window: the same draft, s4.3.5, 200 ms.
pub const BBR_PROBE_RTT: Duration = Duration::from_millis(200);
/// Least window of BBR: the same draft, s4.2.3, 4 messages.
pub const BBR_WINDOW_MESSAGES_MIN: u32 = 4;
/// Growth of the bandwidth by which the pipe is not full yet: the same draft, s4.3.2, 1.25 as a fraction.
pub const BBR_FULL_GROWTH: (u64, u64) = (5, 4);
/// Rounds without that growth at which it is full: the same draft, s4.3.2, 3.
pub const BBR_FULL_ROUNDS: u32 = 3;
/// What pacing stays below the rate: Linux, 1 percent.
pub const BBR_PACING_MARGIN_PERCENT: u64 = 1;
/// Window before there is a round-trip time: Linux (TCP_INIT_CWND), 10 messages.
pub const BBR_INITIAL_WINDOW_MESSAGES: u32 = 10;
/// Round-trip time of the first pacing rate without a sample: Linux, 1 ms.
pub const BBR_FIRST_RTT: Duration = Duration::from_millis(1);
/// Rate below which a burst is one message: Linux, 1.2 Mbit/s in octets per second.
pub const BBR_SMALL_BURST_RATE: u64 = 150_000;
/// Rounds of an interval of ACK aggregation: Linux 5.1, 5.
pub const BBR_AGGREGATION_ROUNDS: u32 = 5;
/// Most of ACK aggregation that the window gets: Linux 5.1, 100 ms of bandwidth.
pub const BBR_AGGREGATION_SPAN_MAX: Duration = Duration::from_millis(100);
/// Acknowledged units after which an epoch of ACK aggregation ends: Linux 5.1, 2^20.
pub const BBR_AGGREGATION_ACKED_MAX: u64 = 1 << 20;
/// Rounds of an interval in which a policer is searched, least and most: Linux, 4 and 16.
pub const BBR_POLICER_INTERVAL_ROUNDS: (u32, u32) = (4, 16);
/// Losses by deliveries from which an interval may be policed: Linux, 50/256.
pub const BBR_POLICER_LOSS_SHARE: (u64, u64) = (50, 256);
/// Difference by which two intervals have the same rate: Linux, 1/8 of the rate.
pub const BBR_POLICER_RATIO: (u64, u64) = (1, 8);
/// The same as an absolute rate: Linux, 4 kbit/s in octets per second.
pub const BBR_POLICER_DIFFERENCE: u64 = 500;
/// Rounds for which a policed rate is kept: Linux, 48.
pub const BBR_POLICER_ROUNDS: u32 = 48;

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
