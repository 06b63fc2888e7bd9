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

/// So many symbols: 62.5 ksymbol/s (s12.2.1), four bits each.
const fn symbols(count: u64) -> Duration {
    Duration::from_micros(16 * count)
}

/// macUnitBackoffPeriod (2011: aUnitBackoffPeriod): s8.4.2, 20 symbols; delays before sensing are whole numbers of it.
pub const BACKOFF_PERIOD: Duration = symbols(20);
/// phyCcaDuration: s11.3, 8 symbols.
pub const CCA: Duration = symbols(8);
/// aTurnaroundTime: s11.2, 12 symbols between receiving and sending.
pub const TURNAROUND: Duration = symbols(12);
/// macAckWaitDuration of this PHY: 2011 edition s6.4.3, 54 symbols from a frame's end, in which a whole
/// acknowledgement fits after a turnaround.
pub const IMM_ACK_WAIT: Duration = symbols(54);
/// macSifsPeriod: s8.4.2, 12 symbols after a short frame (and its acknowledgement) before the same node sends again.
pub const SIFS: Duration = symbols(12);
/// macLifsPeriod: s8.4.2, 40 symbols after a long one.
pub const LIFS: Duration = symbols(40);
/// aMaxSifsFrameSize: s8.4.1, octets with FCS of the longest frame that counts as short.
pub const SIFS_FRAME_OCTETS_MAX: usize = 18;

/// macMinBe without TSCH: s8.4.2, default 3, from 0 to macMaxBe.
pub const CSMA_BE_MIN: u8 = 3;
/// macMaxBe without TSCH: s8.4.2, default 5.
pub const CSMA_BE_MAX: u8 = 5;
/// Largest macMaxBe: s8.4.2.
pub const BE_LIMIT: u8 = 8;
/// macMaxCsmaBackoffs: s8.4.2, default 4, from 0 to 5; we allow any.
pub const CSMA_BACKOFFS_MAX: u8 = 4;
/// macMaxFrameRetries: s8.4.2, default 3.
pub const CSMA_RETRIES_MAX: u8 = 3;
/// Largest macMaxFrameRetries: s8.4.2 allows 7, the AT86RF231 15.
pub const RETRIES_LIMIT: u8 = 15;
/// Frames that a node with the open radio holds for the air: Contiki's QUEUEBUF_NUM, 8.
pub const CSMA_QUEUE_FRAMES_MAX: usize = 8;
/// A repetition comes within this time: one frame's retries at macMaxBe with every CCA busy take 170 ms, and
/// a sender with many neighbours may use the same number again after 256 frames of 4 ms.
pub const CSMA_DUPLICATE_WINDOW: Duration = Duration::from_millis(500);

/// Ticks of 1/128 s in which Contiki of 2014 draws the part of a back-off that is random: 16 to its unit of 125 ms.
pub const CONTIKI_BACKOFF_TICKS: u32 = 16;
/// Doublings of that part at most: `CSMA_MAX_BACKOFF_EXPONENT` of Contiki of 2014, 3.
pub const CONTIKI_DOUBLINGS_MAX: u32 = 3;
/// Unit of its back-off under NullRDC: 125 ms (`default_timebase` in `core/net/mac/csma.c`).
pub const CONTIKI_BACKOFF_UNIT: Duration = Duration::from_millis(125);
/// Neighbours that have a queue at a time: `CSMA_CONF_MAX_NEIGHBOR_QUEUES` of Contiki of 2014, 2.
pub const CONTIKI_NEIGHBOUR_QUEUES: usize = 2;
/// Copies after the first: `CSMA_CONF_MAX_MAC_TRANSMISSIONS` of Contiki of 2014 is 3 copies in all.
pub const CONTIKI_RETRIES_MAX: u8 = 2;

/// Frames to neighbours that acknowledge before one to a neighbour that does not, where both wait: a choice of ours. With
/// five copies that each wait 20 ms (ZEP) it leaves half of the time to those that acknowledge.
pub const TURNS_BEFORE_SILENT: u8 = 8;
/// Copies of frames to neighbours that do not acknowledge, a second and at once: a choice of ours. Each waits 20 ms for its
/// acknowledgement over ZEP, so they take a fifth of the time; five copies of one frame for a new neighbour are among them.
pub const SILENT_COPIES: u32 = 10;
/// Frames in a row without an acknowledgement after which a neighbour counts as silent: a choice of ours, at least 1. One
/// frame may get lost with all its copies, as in a moment of noise.
pub const SILENT_AFTER: u8 = 3;
/// How long a neighbour that was silent gets no advice: a choice of ours. Then it may be back.
pub const SILENCE: Duration = Duration::from_secs(10);

/// Copies in a row without an acknowledgement after which a neighbour that is silent counts as gone: ours, those of one
/// frame under TSCH ([`RETRIES_MAX`]).
pub const GONE_AFTER: u8 = 8;
/// How long nothing was heard from a neighbour that counts as gone: ours, above twice [`KEEPALIVE`], after which a time
/// source that is there has been heard.
pub const GONE_SILENCE: Duration = Duration::from_secs(30);
/// Means of the time between two beacons or broadcasts of a neighbour after which it is silent: ours. Over a link that carries
/// two thirds of them one that is there is silent for so long once in 80 such times.
pub const SILENT_BEACONS: u64 = 4;
/// The same where another neighbour is gone: ours. What took that one may have taken others.
pub const SILENT_BEACONS_BESIDE_GONE: u64 = 2;

/// How long an AT86RF231 stays busy: Lenders et al. 2021 s IV-C, "up to 4 ms" by logic analyser.
pub const THIN_BUSY_MAX: Duration = Duration::from_millis(4);
/// A frame put back is tried again at the latest after this: Lenders et al. 2021 s III-A, 5 ms.
pub const THIN_REQUEUE: Duration = Duration::from_millis(5);
/// Octets that a frame carries under RIOT's GNRC, which reserves 23 for the largest header of its own making.
pub const THIN_PAYLOAD_OCTETS_MAX: usize = 102;
/// Frames of the interface queue: the artefact of Lenders et al. 2021 builds RIOT with 64.
pub const THIN_QUEUE_FRAMES_MAX: usize = 64;

/// macMinBe in TSCH mode: s8.4.2.1, default 1.
pub const BE_MIN: u8 = 1;
/// macMaxBe in TSCH mode: Contiki-NG, 5. The standard's default (s8.4.2.1) is 7, which in a cell that comes
/// once a second is a wait of two minutes, during which a node's whole queue fills up behind one bad link.
pub const BE_MAX: u8 = 5;
/// Frames in a row from one cell (s7.2.1.3, Frame Pending): none, as the simulations this is compared with have
/// it; Contiki-NG's default is 32.
pub const BURST_FRAMES_MAX: u8 = 0;
/// macMaxFrameRetries: s8.4.2.1 says 3; Contiki-NG has 7 in TSCH.
pub const RETRIES_MAX: u8 = 7;

/// Frames a node holds for the air, all neighbours together; Righetti 2023, Table 1 "network level buffer".
pub const QUEUE_FRAMES_MAX: usize = 16;
/// Of them for one neighbour, and for broadcast: a choice of ours. With it a link that has gone bad no longer
/// fills the queue that all others need.
pub const QUEUE_PER_NEIGHBOUR: usize = 4;
/// What the time source may have instead, in quarters of the whole: everything that a node sends upwards goes to it.
pub const QUEUE_TIME_SOURCE_QUARTERS: usize = 3;
/// Room beyond that for 6P and routing messages alone, so that a flood of data cannot stop the
/// negotiation that would carry it off: a choice of ours in the spirit of RFC 8180 s7.2 (queues and priorities).
pub const QUEUE_CONTROL_RESERVE: usize = 4;
/// Does a node refuse data by a negative acknowledgement (IEEE 802.15.4-2015 s7.4.2.7) while its queue is full? Ours:
/// no, because `grid-64` delivers less with it (.945 of its transactions instead of .995, means of 10 seeds); the page on
/// TSCH has the numbers.
pub const NACK_FULL: bool = false;

/// Mean time between beacons: Contiki-NG TSCH_EB_PERIOD, 16 s.
pub const EB_PERIOD: Duration = Duration::from_secs(16);
/// Each period is drawn from three quarters of it to the whole, so that beacons of neighbours drift apart.
pub const EB_JITTER: f64 = 0.25;

/// Shared cells of which one is drawn for the next beacon where beacons come about as often as these cells: no
/// standard, 8 keeps two neighbours' beacons apart most of the time; at least 1.
pub const BEACON_GAP_MAX: u32 = 8;
/// Minimal cells that go by between two beacons or broadcasts of a node, for itself and each neighbour: RFC 9033 s2
/// by OpenWSN's reading, 3. See [`spacing`](crate::tsch::spacing).
pub const BROADCAST_SPACING: u8 = 3;
/// A node heard within this time counts as a neighbour there: a choice of ours, the time that a clock bears ([`DESYNCHRONISE`]).
pub const NEIGHBOUR_AGE: Duration = DESYNCHRONISE;
/// Longest time without a frame from the time source before a node asks for one: Contiki-NG, 12 s.
pub const KEEPALIVE: Duration = Duration::from_secs(12);
/// Keepalive periods without a frame from the time source after which another neighbour may give the time: ours. The third
/// request is due then, and two crystals of 20 ppm are nearly 1 ms apart, with 1.1 ms of guard time.
pub const SILENT_KEEPALIVES: u64 = 2;
/// Time without a frame from the time source after which the clock cannot be trusted: Contiki-NG, 2 x 60 s.
pub const DESYNCHRONISE: Duration = Duration::from_secs(120);
/// How long a scanning node stays on a channel: Contiki-NG, 1 s.
pub const SCAN_PERIOD: Duration = Duration::from_secs(1);
/// NUM_NEIGHBOURS_TO_WAIT: RFC 8180 s6.2 and its figure 5, which RFC 9033 s4.3 follows, 2 neighbours. Contiki-NG joins upon
/// the first beacon.
pub const JOIN_NEIGHBOURS: u8 = 2;
/// MAX_EB_DELAY: RFC 8180 s6.2 and its figure 5, 180 s.
pub const JOIN_WAIT: Duration = Duration::from_secs(180);
/// How long a coordinator that lost its memory listens for its network before it begins a new one. Ours, 60 s: each of its
/// neighbours sends four beacons and more in this time ([`EB_PERIOD`]).
pub const RESUME_WAIT: Duration = Duration::from_secs(60);
/// How far the slots of that network may be from the coordinator's clock. Ours, 500 ms: two crystals of 20 ppm drift apart
/// by as much in three hours, and a network that began at another time is farther away.
pub const RESUME_CLOCK_ERROR: Duration = Duration::from_millis(500);
/// Beacons with a higher join metric are ignored: Contiki-NG TSCH_MAX_JOIN_PRIORITY.
pub const JOIN_METRIC_MAX: u8 = 32;

/// ETX is kept in units of 1/128 hop (Contiki-NG LINK_STATS_ETX_DIVISOR; RFC 6551 s4.3.2 has the same unit).
pub const ETX_UNIT: u16 = 128;
/// Weight of a new sample in the ETX average, percent: Contiki-NG EWMA_ALPHA.
pub const ETX_ALPHA_PERCENT: u32 = 10;
/// The same while few samples are known: Contiki-NG EWMA_BOOTSTRAP_ALPHA.
pub const ETX_ALPHA_FIRST_PERCENT: u32 = 25;
/// Transmissions after which an average counts as known: Contiki-NG FRESHNESS_TARGET.
pub const ETX_FRESH: u8 = 4;
/// No more transmissions are counted: Contiki-NG FRESHNESS_MAX.
pub const ETX_SAMPLES_MAX: u8 = 16;
/// Transmissions that a frame given up counts for beside its own: Contiki-NG ETX_NOACK_PENALTY.
pub const ETX_NOACK: u16 = 12;
/// First guess of a link's ETX by the signal that was heard, in hops: 1 above -60 dBm, 3 below -90 dBm and a
/// straight line between (Contiki-NG's guess has the same ends).
pub const ETX_GUESS: (f64, f64) = (1.0, 3.0);
/// The ends of that line in dBm.
pub const ETX_GUESS_RSSI: (f64, f64) = (-60.0, -90.0);

/// A frame with the sequence number of the last one from the same node is a repetition if it comes within
/// this time: longer than all retries take in a 101-slot slotframe.
pub const DUPLICATE_WINDOW: Duration = Duration::from_secs(30);
