//! Numbers of TCP, each with its source. Where Linux and an RFC differ, the profile says which one counts
//! ([`crate::Profile`]).

use lowmesh_units::Duration;

/// RTO before the first sample: RFC 6298 s2.1, 1 s.
pub const RTO_INITIAL: Duration = Duration::from_secs(1);
/// Least spread that is added to SRTT: Linux (TCP_RTO_MIN), 200 ms; RFC 6298 s2.4 has an RTO of 1 s at least.
pub const RTO_SPREAD_MIN: Duration = Duration::from_millis(200);
/// Largest RTO: Linux (TCP_RTO_MAX), 120 s; RFC 6298 s2.5 allows 60 s or more.
pub const RTO_MAX: Duration = Duration::from_secs(120);
/// The tick to which Linux rounds timers up with 250 ticks a second: 4 ms.
pub const TICK: Duration = Duration::from_millis(4);
/// RTO when data begins and the handshake gave no sample: RFC 6298 s5.7, 3 s.
pub const RTO_FALLBACK: Duration = Duration::from_secs(3);
/// Retransmission timeouts of one segment before the connection is given up (R2): Linux (tcp_retries2), 15; RFC 9293
/// s3.8.3 wants 100 s at least (SHLD-11).
pub const RETRIES: u8 = 15;
/// Retransmissions of a SYN that back off: 7, so that an attempt ends after 251 s, and a listener waits 247 s. RFC 9293
/// s3.8.3 wants 3 minutes at least (MUST-23); Linux (tcp_syn_retries) has 6, and ends after 131 s.
pub const SYN_RETRIES: u8 = 7;
/// Retransmissions of a SYN before these, which do not back off: Linux 6.5 (tcp_syn_linear_timeouts), 4.
pub const SYN_LINEAR_TIMEOUTS: u32 = 4;
/// Octets that a listener sends to an address that is not proven, for each octet from there: ours, 3 like
/// RFC 9000 s8.1 for QUIC; no RFC bounds this for TCP. Beyond it no SYN with ACK leaves until the peer repeats its SYN.
pub const UNPROVEN_ANSWER_FACTOR: usize = 3;
/// Initial window: RFC 6928 s2, 10 segments.
pub const INITIAL_WINDOW_SEGMENTS: u32 = 10;
/// Segments that leave before pacing begins: Linux, 10.
pub const UNPACED_SEGMENTS: u64 = 10;
/// Largest congestion window: ours, 4,096 segments; it bounds the queue of what is not acknowledged.
pub const WINDOW_SEGMENTS_MAX: u32 = 4_096;
/// DupThresh: RFC 5681 s3.2, 3 duplicate acknowledgements.
pub const REORDERING: u32 = 3;
/// Most that reordering is believed: Linux (tcp_max_reordering), 300 segments.
pub const REORDERING_MAX: u32 = 300;
/// MSS of a peer that announces none, over IPv6: RFC 9293 s3.7.1 (MUST-15) and Linux, 1,220 octets.
pub const MSS_DEFAULT_V6: u16 = 1_220;
/// The same over IPv4: 536 octets.
pub const MSS_DEFAULT_V4: u16 = 536;
/// Least MSS that a peer may announce: Linux (TCP_MIN_SND_MSS), 48 octets.
pub const MSS_MIN: u16 = 48;
/// Largest shift of the window: RFC 7323 s2.3, 14.
pub const WINDOW_SCALE_MAX: u8 = 14;
/// Age at which a timestamp of the peer no longer protects: RFC 7323 s5.5, 24 days.
pub const PAWS_AGE: Duration = Duration::from_secs(24 * 24 * 3_600);
/// Tick of the clock in initial sequence numbers: RFC 6528 s3, 4 us.
pub const ISN_TICK: Duration = Duration::from_micros(4);
/// Silence after which keep-alive asks: RFC 9293 s3.8.4 and Linux (tcp_keepalive_time), 2 h.
pub const KEEP_ALIVE_IDLE: Duration = Duration::from_secs(2 * 3_600);
/// Time between two of its probes: Linux (tcp_keepalive_intvl), 75 s.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(75);
/// Probes without an answer before it gives up: Linux (tcp_keepalive_probes), 9.
pub const KEEP_ALIVE_PROBES: u32 = 9;

/// First acknowledgements that are not delayed: Linux (TCP_MAX_QUICKACKS), 16.
pub const QUICK_ACKS_MAX: u32 = 16;
/// Least delay of an acknowledgement: Linux (TCP_ATO_MIN), 40 ms; RFC 9293 s3.8.6.3 allows up to 500 ms.
pub const ACK_DELAY_MIN: Duration = Duration::from_millis(40);
/// Largest delay of an acknowledgement: Linux (TCP_DELACK_MAX), 200 ms.
pub const ACK_DELAY_MAX: Duration = Duration::from_millis(200);
/// Time between two challenge ACKs of one connection: Linux (tcp_invalid_ratelimit), 500 ms; RFC 5961 s7 wants a limit.
pub const CHALLENGE_ACK_GAP: Duration = Duration::from_millis(500);
/// TIME-WAIT: Linux (TCP_TIMEWAIT_LEN), 60 s; RFC 9293 s3.4.2 has 2 MSL, which would be 4 min.
pub const TIME_WAIT: Duration = Duration::from_secs(60);
/// Segments out of order that are kept: ours, 256 ranges a connection; the farthest goes when one more comes.
pub const OUT_OF_ORDER_MAX: usize = 256;

/// Room for the timer in the loss probe of more than one segment: Linux 6.7 (TCP_TIMEOUT_MIN_US), 2 ms.
pub const PROBE_MARGIN: Duration = Duration::from_millis(2);
/// The same of a lone segment, whose acknowledgement may be delayed: RFC 8985 s7.2 (WCDelAckT), 200 ms.
pub const PROBE_MARGIN_LONE: Duration = Duration::from_millis(200);
/// Rounding of the reordering timer: Linux (TCP_TIMEOUT_MIN_US), 2 ms.
pub const REORDER_MARGIN: Duration = Duration::from_millis(2);
/// Largest width of the reordering window, in quarters of the least round-trip time: Linux, 255.
pub const REORDER_STEPS_MAX: u64 = 255;
/// Recoveries for which a widened reordering window lasts: RFC 8985 s6.2 (RACK.reo_wnd_persist), 16.
pub const REORDER_RECOVERIES: u32 = 16;
/// Age of the least round-trip time: Linux (tcp_min_rtt_wlen), 300 s.
pub const RTT_MIN_AGE: Duration = Duration::from_secs(300);

/// Buffers of a connection on a host: ours, 128 KiB for each direction.
pub const BUFFER_OCTETS: u32 = 128 * 1024;
/// Buffers of a connection in a low-power network: ours, 4 segments of 5 frames (462 octets) as the measurements of Kumar
/// et al. (NSDI 2020) recommend, 1,848 octets.
pub const LLN_BUFFER_OCTETS: u32 = 1_848;
/// MSS in a low-power network: 5 frames of IEEE 802.15.4, 462 octets (the same source).
pub const LLN_MSS: u16 = 462;
