//! Every number of the protocol, with its source, unit and bounds.
//!
//! "Classic" and "Lite" are the two RPL implementations of Contiki-NG 5.0; their values are the defaults
//! where the RFC leaves the choice, so that results compare.

use lowmesh_units::Duration;

/// RPLInstanceID: RFC 6550 s17 RPL_DEFAULT_INSTANCE, 0. Global instances are 0 to 127.
pub const INSTANCE: u8 = 0;
/// Whether the root wants RPL options of type 0x23 in packets: RFC 9008 s4.1.3 lets it say so where all nodes know them, and
/// every node here does. Contiki-NG writes 0x63.
pub const RPI_0X23: bool = true;
/// Whether the root turns 6LoRH on: RFC 9035 s3, off unless an operator knows that all nodes understand it.
pub const SIXLORH: bool = false;
/// Whether a DCO ends the former path of a node that moves (RFC 9009). Contiki-NG's RPL does not know the DCO.
pub const DCO: bool = true;
/// DIOIntervalMin: Classic and Lite, 2^12 ms = 4.096 s (RFC 6550 s17: 2^3 ms, far too fast for TSCH).
pub const DIO_INTERVAL_MIN: u8 = 12;
/// The largest DIOIntervalMin believed from the air: 2^24 ms is 4.7 hours.
pub const DIO_INTERVAL_MIN_MAX: u8 = 24;
/// DIOIntervalDoublings: Classic and Lite, 8, which makes Imax 1048 s (RFC 6550 s17: 20).
pub const DIO_INTERVAL_DOUBLINGS: u8 = 8;
/// The most doublings believed from the air: RFC 6550 s17's own default.
pub const DIO_INTERVAL_DOUBLINGS_MAX: u8 = 20;
/// DIORedundancyConstant: RFC 6550 s17 and Classic, 10; 0 turns suppression off (Lite).
pub const DIO_REDUNDANCY: u8 = 10;
/// MinHopRankIncrease with MRHOF: Classic and Lite, 128, so that rank counts ETX * 128 (RFC 6719 s5).
pub const MIN_HOP_RANK_INCREASE_MRHOF: u16 = 128;
/// MinHopRankIncrease with OF0: RFC 6550 s17 DEFAULT_MIN_HOP_RANK_INCREASE, 256.
pub const MIN_HOP_RANK_INCREASE_OF0: u16 = 256;
/// DAGMaxRankIncrease in units of MinHopRankIncrease: Classic and Lite, 8.
pub const MAX_RANK_INCREASE_HOPS: u16 = 8;
/// A fall in rank that starts Trickle over, in units of MinHopRankIncrease: Lite, 4.
pub const SIGNIFICANT_FALL_HOPS: u16 = 4;
/// A rise in rank that starts Trickle over, in units of MinHopRankIncrease. Ours, half the fall that does:
/// a node that sank unheard is what loops are made of.
pub const SIGNIFICANT_RISE_HOPS: u16 = 2;
/// Default path lifetime in lifetime units: Classic and Lite, 30.
pub const PATH_LIFETIME: u8 = 30;
/// Lifetime unit in seconds: Classic and Lite, 60. With 30 units: half an hour.
pub const LIFETIME_UNIT: u16 = 60;
/// Path lifetime of a No-Path: RFC 6550 s6.7.8.
pub const NO_PATH: u8 = 0;
/// How long a route serves on that a No-Path took back, in storing mode: Classic, 60 s (RPL_NOPATH_REMOVAL_DELAY).
pub const NO_PATH_REMOVAL: Duration = Duration::from_secs(60);
/// Path lifetime that never ends: RFC 6550 s6.7.8.
pub const PATH_FOR_EVER: u8 = 0xff;
/// DelayDAO: Classic and Lite, 4 s; a node waits half to one and a half times as long.
pub const DAO_DELAY: Duration = Duration::from_secs(4);
/// How long a router gathers targets from below before it passes them on: RFC 6550 s9.5 asks for a short
/// wait to aggregate; 1 s keeps formation at seconds a hop.
pub const DAO_FORWARD_DELAY: Duration = Duration::from_secs(1);
/// First wait for a DAO-ACK before sending again, doubled with each copy and drawn up to one and a half times
/// as long. Lite has 5 s, which one round trip over a slotframe of a second with a retry each way exceeds.
pub const DAO_ACK_TIMEOUT: Duration = Duration::from_secs(10);
/// Retransmissions of a DAO: Lite has 5 at equal distances; with doubled waits 3 take as long.
pub const DAO_RETRIES: u8 = 3;
/// Rest after a DAO that no retransmission brought through. Ours: one route costs one attempt a minute.
pub const DAO_REST: Duration = Duration::from_secs(60);
/// Targets in one DAO. Ours: three targets with their transits are 78 octets, one 802.15.4 frame.
pub const DAO_TARGETS: usize = 3;
/// Latest first DIS after the start: Classic, 5 s.
pub const DIS_START: Duration = Duration::from_secs(5);
/// Time between DIS while nothing is heard: Lite, 30 s (Classic: 60 s).
pub const DIS_PERIOD: Duration = Duration::from_secs(30);
/// The shortest period or delay that a user may set. Ours: one timeslot, below which nothing can be sent.
pub const PERIOD_MIN: Duration = Duration::from_millis(10);
/// Mean time between probes of a link without fresh ETX: Lite, 90 s, drawn from half to one and a half.
pub const PROBE_PERIOD: Duration = Duration::from_secs(90);
/// How long a node that lost its parents poisons before it may join below its old rank. Ours, in Imin: two
/// short Trickle intervals carry two poisoned DIOs.
pub const POISON_INTERVALS: u64 = 3;
/// How long after a rise of its rank a node takes no parent whose rank is above its rank of before. Ours:
/// its children hear of the rise within two short Trickle intervals, theirs within two more.
pub const RANK_SETTLES: Duration = Duration::from_secs(60);
/// How long a node in no DODAG remembers L of RFC 6550 s8.2.2.4, which should hold for the whole version: Lite leaves
/// the DODAG, and with it L, after 5 min (RPL_DELAY_BEFORE_LEAVING). Without an end, a node that has to take a rank above
/// the limit could not join before a global repair. A part that is cut off has to leave the DODAG within this time, or its
/// ranks rise further.
pub const LIMIT_HOLD: Duration = Duration::from_secs(300);
/// MAX_LINK_METRIC: RFC 6719 s5 and Lite, 512 = ETX 4.
pub const MRHOF_MAX_LINK_METRIC: u16 = 512;
/// MAX_LINK_METRIC: Classic, 1024 = ETX 8.
pub const CLASSIC_MAX_LINK_METRIC: u16 = 1024;
/// The worst link that OF0 takes: ours, ETX 8. A step of rank is at its maximum from ETX 3.7 on (RFC 6552 has no limit).
pub const OF0_MAX_LINK_METRIC: u16 = 1024;
/// The worst link over which a parent is kept while no other will do, and over which one that is left gets a No-Path:
/// ours, ETX 8, where Classic leaves too. RFC 6719 s5 says that a link beyond MAX_LINK_METRIC SHOULD be excluded; a node
/// that has no other link would leave the DODAG, lose its cells and packets, and join again over the same link.
pub const LAST_RESORT_LINK_METRIC: u16 = 1024;
/// MAX_PATH_COST: RFC 6719 s5, 32768 = 256 expected transmissions.
pub const MAX_PATH_COST: u32 = 32768;
/// PARENT_SWITCH_THRESHOLD: RFC 6719 s5, 192 = 1.5 ETX (Classic: 96).
pub const MRHOF_SWITCH_THRESHOLD: u32 = 192;
/// A smaller gain is taken after it lasted this long: Lite, 10 min.
pub const MRHOF_SWITCH_AFTER: Duration = Duration::from_secs(600);
/// PARENT_SWITCH_THRESHOLD: Classic, 96 = .75 ETX.
pub const CLASSIC_SWITCH_THRESHOLD: u32 = 96;
/// How long a link estimate is fresh after the last frame: Classic and Lite, 10 min.
pub const FRESH_FOR: Duration = Duration::from_secs(600);
/// Latest probe of a neighbour that would be chosen if its link were measured. Ours, Imin: a few of them give
/// an estimate within half a minute.
pub const URGENT_PROBE: Duration = Duration::from_secs(4);
/// Parent switch threshold with OF0: 640 = 2.5 hops, what 6TiSCH simulations use (RFC 6552 has none).
pub const OF0_SWITCH_THRESHOLD: u32 = 640;
/// MINIMUM_STEP_OF_RANK and MAXIMUM_STEP_OF_RANK: RFC 6552 s6.3.
pub const OF0_STEP_OF_RANK: (u32, u32) = (1, 9);
/// ETX of a link before its first frame: Classic and Lite, 2 (in 1/128).
pub const ETX_DEFAULT: u16 = 256;
/// ETX of a link that was given up and is heard again. Ours, ETX 4, the worst that MRHOF takes: a link may carry broadcasts one way
/// only, and the default would let the node flap between hope and loss.
pub const ETX_AFTER_LOSS: u16 = 512;
/// Neighbours kept: enough for a dense cell; Contiki-NG motes keep 16, its Cooja builds 300.
pub const NEIGHBOURS_MAX: usize = 32;
/// Routes kept: Contiki-NG's Cooja builds, 300.
pub const ROUTES_MAX: usize = 300;
/// Registrations of children for groups: ours, 128; Contiki-NG keeps one by default, which serves no mesh.
pub const GROUP_ROUTES_MAX: usize = 128;
/// Of these, the most of one child: ours, 32.
pub const GROUP_ROUTES_PER_CHILD: usize = 32;
/// Hops of a source route: RFC 6554 counts up to 255 segments; 32 is deeper than networks here.
pub const SOURCE_ROUTE_HOPS_MAX: usize = 32;
/// How long a parent that refused a DAO comes last in the choice. Ours.
pub const REFUSAL: Duration = Duration::from_secs(600);
/// Least time between two DTSNs by which a node asks those below it for DAOs. Ours: one wave of DAOs is over before the
/// next begins, as the last of a node's children hears of it within some Imin.
pub const RENEWAL_INTERVAL: Duration = Duration::from_secs(20);
/// How long an incremented DTSN is repeated where no DAO answers it. Ours: all routes should be back within five minutes of a
/// restart of the root.
pub const WISH_HOLD: Duration = Duration::from_secs(300);
/// Least time between two unicast DIOs to a neighbour whose packets show an outdated rank of this node.
/// Ours, Imin of RPL Lite: RFC 6550 s11.2.2.2 gives no bound.
pub const CORRECTION_INTERVAL: Duration = Duration::from_secs(4);
