//! Numbers of the MAC, each with its source.

use lowmesh_units::Duration;

/// Most cells in a schedule: a bound of ours, above RFC 9033's 100 negotiated cells a neighbour (MAX_NUM_CELLS).
pub const CELLS_MAX: usize = 512;

/// Most neighbours with link statistics: a bound of ours; Contiki-NG has 300 on its simulated node.
pub const NEIGHBOURS_MAX: usize = 300;

/// macTsTimeslotLength: IEEE 802.15.4-2015 s8.4.3.3.3, 10 ms.
pub const SLOT: Duration = Duration::from_millis(10);
/// macTsTxOffset: same table, from the slot's start to the first octet.
pub const TX_OFFSET: Duration = Duration::from_micros(2_120);
/// macTsRxWait: same table, how long a receiver waits for a frame to start; half of it is the guard time.
pub const RX_WAIT: Duration = Duration::from_micros(2_200);
/// macTsTxAckDelay: same table, from the frame's end to the acknowledgement's start.
pub const TX_ACK_DELAY: Duration = Duration::from_micros(1_000);
/// macTsAckWait: same table, how long a sender waits for an acknowledgement to start.
pub const ACK_WAIT: Duration = Duration::from_micros(400);

/// Time on the air of one octet: 250 kbit/s (IEEE 802.15.4-2015 s12).
pub const OCTET: Duration = Duration::from_micros(32);
/// Octets before the MAC frame: preamble 4, SFD 1, PHR 1 (s12.1).
pub const PHY_HEADER_OCTETS: u64 = 6;

/// macMinBe in TSCH mode: s8.4.2.1, default 1.
pub const BE_MIN: u8 = 1;
/// macMaxBe in TSCH mode: Contiki-NG, 5. The standard's default (s8.4.2.1) is 7, which in a cell that comes
/// once a second is a wait of two minutes, during which a node's whole queue fills up behind one bad link.
pub const BE_MAX: u8 = 5;
/// macMaxFrameRetries: s8.4.2.1 says 3; Contiki-NG has 7 in TSCH.
pub const RETRIES_MAX: u8 = 7;

/// Frames a node holds for the air, all neighbours together; Righetti 2023, Table 1 "network level buffer".
pub const QUEUE_FRAMES_MAX: usize = 16;
/// Room beyond that for 6P and routing messages alone, so that a flood of data cannot stop the
/// negotiation that would carry it off: a choice of ours in the spirit of RFC 8180 s7.2 (queues and priorities).
pub const QUEUE_CONTROL_RESERVE: usize = 4;

/// Mean time between beacons: Contiki-NG TSCH_EB_PERIOD, 16 s.
pub const EB_PERIOD: Duration = Duration::from_secs(16);
/// Each period is drawn from three quarters of it to the whole, so that beacons of neighbours drift apart.
pub const EB_JITTER: f64 = 0.25;

/// Shared cells of which one is drawn for the next beacon where beacons come about as often as these cells: no
/// standard, 8 keeps two neighbours' beacons apart most of the time; at least 1.
pub const BEACON_GAP_MAX: u32 = 8;
/// Longest time without a frame from the time source before a node asks for one: Contiki-NG, 12 s.
pub const KEEPALIVE: Duration = Duration::from_secs(12);
/// Time without a frame from the time source after which the clock cannot be trusted: Contiki-NG, 2 x 60 s.
pub const DESYNCHRONISE: Duration = Duration::from_secs(120);
/// How long a scanning node stays on a channel: Contiki-NG, 1 s.
pub const SCAN_PERIOD: Duration = Duration::from_secs(1);
/// Beacons with a higher join metric are ignored: Contiki-NG TSCH_MAX_JOIN_PRIORITY.
pub const JOIN_METRIC_MAX: u8 = 32;

/// ETX is kept in units of 1/128 hop (Contiki-NG LINK_STATS_ETX_DIVISOR; RFC 6551 s4.3.2 has the same unit).
pub const ETX_UNIT: u16 = 128;
/// Weight of a new sample in the ETX average, percent: Contiki-NG EWMA_ALPHA.
pub const ETX_ALPHA_PERCENT: u32 = 10;
/// The same while few samples are known: Contiki-NG EWMA_BOOTSTRAP_ALPHA.
pub const ETX_ALPHA_FIRST_PERCENT: u32 = 25;
/// Samples after which an average counts as known: Contiki-NG FRESHNESS_TARGET.
pub const ETX_FRESH: u8 = 4;
/// Transmissions that a frame given up counts for: Contiki-NG ETX_NOACK_PENALTY.
pub const ETX_NOACK: u16 = 12;
/// First guess of a link's ETX by the signal that was heard, in hops: 1 above -60 dBm, 3 below -90 dBm and a
/// straight line between (Contiki-NG's guess has the same ends).
pub const ETX_GUESS: (f64, f64) = (1.0, 3.0);
/// The ends of that line in dBm.
pub const ETX_GUESS_RSSI: (f64, f64) = (-60.0, -90.0);

/// A frame with the sequence number of the last one from the same node is a repetition if it comes within
/// this time: longer than all retries take in a 101-slot slotframe.
pub const DUPLICATE_WINDOW: Duration = Duration::from_secs(30);
