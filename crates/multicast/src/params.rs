//! Numbers of the engines, each with its source, unit and bounds.

use lowmesh_units::Duration;

/// Hop limit of control messages: RFC 7731 s6.2, and the same in Contiki; a forwarder would lower it.
pub const CONTROL_HOP_LIMIT: u8 = 255;
/// Hop limit of the outer header of an encapsulated message: RFC 2473 s6.3 leaves it to configuration; the usual 64.
pub const TUNNEL_HOP_LIMIT: u8 = 64;

/// Fmin of SMRF: Contiki `SMRF_MIN_FWD_DELAY`, 4 ticks of 1/128 s.
pub const SMRF_MIN_DELAY: Duration = Duration::from_micros(31_250);
/// The time over which SMRF spreads its delays: Contiki, a quarter of a second.
pub const SMRF_SPREAD_TIME: Duration = Duration::from_millis(250);
/// The most steps of the spread: Contiki `SMRF_MAX_SPREAD`, 4.
pub const SMRF_MAX_SPREAD: u64 = 4;
/// The most that a node waits between two checks of the channel: Contiki's slowest duty cycle, 2 Hz.
pub const CHECK_INTERVAL_MAX: Duration = Duration::from_millis(500);
/// Children up to which `copy = "auto"` sends one copy to each: BMRF (Lorente et al. 2017) with CSMA, 3.
pub const COPY_THRESHOLD: u64 = 3;

/// ICMPv6 type of ESMRF in Contiki-NG: one for private experimentation (RFC 4443 s2.1).
pub const ESMRF_TYPE: u8 = 201;
/// Hop limit of the packets that an ESMRF root makes from a request: ours, the usual 64.
pub const ESMRF_HOP_LIMIT: u8 = 64;

/// Longest random wait of `flood`: ours; four frames of 4 ms times some neighbours.
pub const FLOOD_JITTER: Duration = Duration::from_millis(50);
/// Cells for broadcasts among which a forwarder of `flood` draws: ours, as many as SMRF has steps.
pub const FLOOD_CELLS: u64 = SMRF_MAX_SPREAD;
/// How long `flood` remembers a packet: ours, longer than a copy lives with 255 hops of [`FLOOD_JITTER`] each on average.
pub const FLOOD_MEMORY: Duration = Duration::from_secs(10);

/// The first set of Trickle parameters (M = 0) in Contiki's ROLL TM: Imin 32 ticks of 1/128 s.
pub const FIRST_IMIN: Duration = Duration::from_millis(250);
/// Doublings of the first set: Contiki, 1.
pub const FIRST_DOUBLINGS: u8 = 1;
/// Tactive of the first set: Contiki, 3 times Imax.
pub const FIRST_ACTIVE: u64 = 3;
/// Tdwell of the first set: Contiki, 11 times Imax.
pub const FIRST_DWELL: u64 = 11;
/// Imin of the second set (M = 1): Contiki, 64 ticks of 1/128 s.
pub const SECOND_IMIN: Duration = Duration::from_millis(500);
/// Doublings of the second set: Contiki, 9.
pub const SECOND_DOUBLINGS: u64 = 9;
/// Redundancy constant of the second set: Contiki, 1.
pub const SECOND_REDUNDANCY: u64 = 1;
/// Tactive of the second set: Contiki, 3 times Imax.
pub const SECOND_ACTIVE: u64 = 3;
/// Tdwell of the second set: Contiki, 12 times Imax.
pub const SECOND_DWELL: u64 = 12;

/// How many times the latency of a link the shortest interval of a timer is: RFC 7731 s5.4, 10.
pub const LATENCIES_OF_IMIN: u64 = 10;

/// DATA_MESSAGE_IMIN: RFC 7731 s5.4, ten times the expected latency of the link; 10 ms with CSMA.
pub const DATA_IMIN: Duration = Duration::from_millis(100);
/// DATA_MESSAGE_K: RFC 7731 s5.4, 1.
pub const DATA_REDUNDANCY: u64 = 1;
/// DATA_MESSAGE_TIMER_EXPIRATIONS: RFC 7731 s5.4, 3.
pub const DATA_EXPIRATIONS: u64 = 3;
/// CONTROL_MESSAGE_IMIN: RFC 7731 s5.4, ten times the worst latency of the link; 50 ms with CSMA.
pub const CONTROL_IMIN: Duration = Duration::from_millis(500);
/// CONTROL_MESSAGE_IMAX: RFC 7731 s5.4, 5 min.
pub const CONTROL_IMAX: Duration = Duration::from_secs(300);
/// CONTROL_MESSAGE_K: RFC 7731 s5.4, 1.
pub const CONTROL_REDUNDANCY: u64 = 1;
/// CONTROL_MESSAGE_TIMER_EXPIRATIONS: RFC 7731 s5.4, 10.
pub const CONTROL_EXPIRATIONS: u64 = 10;
/// SEED_SET_ENTRY_LIFETIME: RFC 7731 s5.4, 30 min.
pub const SEED_LIFETIME: Duration = Duration::from_secs(1800);
/// The longest time that a parameter can be set to: a bound of ours.
pub const TIME_MAX: Duration = Duration::from_secs(86_400);
