//! `[mac]`: how nodes share the channel.

use lowmesh_mac::params;
use lowmesh_sim::air::params::CCA_ENERGY_DBM;
use lowmesh_stack::params::ORPHAN_MAX;
use lowmesh_units::{Channel, Duration};

use super::section::{section, variants};
use super::value::{Any, Hopping, Within, choice};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

variants! {
    /// Medium access.
    Mac by "kind" {
        /// Timeslots and channel hopping (IEEE 802.15.4-2015 s6.2.6).
        "tsch" => Tsch,
        /// Carrier sense, unslotted (IEEE 802.15.4-2015 s6.2.5.1).
        "csma" => Csma,
        /// Unslotted carrier sense under a driver that waits for a radio with one buffer (Lenders et al. 2021).
        "thin" => Thin,
        /// Carrier sense of Contiki in 2014 over NullRDC, with a queue for each neighbour (Ishaq et al. 2016).
        "contiki2014" => Contiki2014,
    }
}

section! {
    /// Timeslots and channel hopping.
    Tsch {
        /// Maximum number of data frames that wait in one node (Righetti et al. 2023, table 1: 16).
        queue_frames: u16 = 16, Within(1, 1024);
        /// Maximum number of these frames for one neighbour, and for broadcast; for the time source it is three quarters of `queue_frames`.
        queue_per_neighbour: u16 = params::QUEUE_PER_NEIGHBOUR as u16, Within(1, 1024);
        /// Whether a node with a full queue refuses data by a negative acknowledgement (IEEE 802.15.4-2015 s7.4.2.7), so that
        /// the sender tries again; if not, the frame is acknowledged and dropped.
        nack_full: bool = params::NACK_FULL, Any;
        /// Retries of a unicast frame after the first attempt.
        retries: u8 = 7, Within(0, 15);
        /// Maximum number of frames to one neighbour in consecutive slots, starting in one cell (IEEE 802.15.4-2015
        /// s7.2.1.3, Frame Pending; Contiki-NG: 32); 0 or 1 means one frame in each cell.
        burst_frames: u8 = 0, Within(0, 32);
        /// Smallest back-off exponent in shared cells.
        be_min: u8 = 1, Within(0, 8);
        /// Largest back-off exponent in shared cells (IEEE 802.15.4-2015 s8.4.2.1: 7; Contiki-NG: 5).
        be_max: u8 = 5, Within(1, 8);
        /// Channels in hopping order; `4_4` is Contiki-NG's default.
        hopping: Hopping = Hopping::Sixteen, Any;
        /// Time between two enhanced beacons of a node.
        eb_period: Duration = Duration::from_secs(16), Within(MS * 100, HOUR);
        /// Factor f: a node sends beacons and broadcasts in at most one of f (neighbours + 1) minimal cells (RFC 9033 s2); 0 means no bound.
        broadcast_spacing: u8 = params::BROADCAST_SPACING, Within(0, 16);
        /// Silence of the time source after which a node sends a frame to resynchronise.
        keepalive: Duration = Duration::from_secs(12), Within(SECOND, HOUR);
        /// Silence of the time source after which a node loses synchronisation.
        desync: Duration = Duration::from_secs(120), Within(SECOND, HOUR);
        /// Time outside of any DODAG after which a node leaves the network and scans again.
        orphan: Duration = ORPHAN_MAX, Within(SECOND, HOUR);
        /// Time for which a root that restarts listens for its former network before it begins a new one; 0 to begin one at once.
        resume: Duration = params::RESUME_WAIT, Within(Duration::ZERO, HOUR);
        /// Time that a scanning node stays on a channel.
        scan_period: Duration = SECOND, Within(MS * 100, HOUR);
        /// Number of neighbours whose beacons a joining node waits for, up to 3 minutes, to choose its time source (RFC 9033 s4.3: 2).
        join_neighbours: u8 = 1, Within(1, 16);
        /// Guard time before and after the expected start of a frame, in microseconds.
        guard_us: u32 = 1100, Within(100, 2000);
        /// Length of a timeslot, in milliseconds.
        slot_ms: u16 = 10, Within(5, 100);
    }
}

choice! {
    /// What acknowledges unicast frames.
    Ack {
        /// The radio, one turnaround after the frame.
        Hardware = "hardware",
        /// The processor, `ack_delay` after the frame.
        Software = "software",
        /// Nothing: a frame counts as delivered when it is sent.
        None = "none",
    }
}

choice! {
    /// What makes the channel busy (IEEE 802.15.4-2015 s10.2.7).
    Cca {
        /// Mode 1: energy.
        Energy = "energy",
        /// Mode 2: a frame that can be received.
        Carrier = "carrier",
        /// Mode 3: energy or a frame.
        Either = "either",
    }
}

section! {
    /// Carrier sense.
    Csma {
        /// Maximum number of data frames that wait in one node (Contiki: 8).
        queue_frames: u16 = params::CSMA_QUEUE_FRAMES_MAX as u16, Within(1, 1024);
        /// Retries of a unicast frame after the first attempt (macMaxFrameRetries: 3).
        retries: u8 = params::CSMA_RETRIES_MAX, Within(0, 15);
        /// First back-off exponent (macMinBe: 3).
        be_min: u8 = params::CSMA_BE_MIN, Within(0, 8);
        /// Largest back-off exponent (macMaxBe: 5).
        be_max: u8 = params::CSMA_BE_MAX, Within(1, 8);
        /// Growth of the first back-off exponent with each copy of a frame (the standard: 0; Contiki before NG: 1).
        be_growth: u8 = 0, Within(0, 4);
        /// Further back-offs before the MAC gives up on a busy channel (macMaxCsmaBackoffs: 4).
        backoffs: u8 = params::CSMA_BACKOFFS_MAX, Within(0, 15);
        /// What acknowledges frames.
        ack: Ack = Ack::Hardware, Any;
        /// Time from a frame to its acknowledgement by software (Contiki on a CC2538: about 0.5 ms).
        ack_delay: Duration = Duration::from_micros(500), Within(params::TURNAROUND, MS * 100);
        /// The channel.
        channel: u8 = 26, Within(11, 26);
        /// What makes the channel busy: CCA mode 1, 2 or 3 with OR.
        cca: Cca = Cca::Either, Any;
        /// Energy at which the channel counts as busy.
        cca_dbm: f64 = CCA_ENERGY_DBM, Within(-150.0, 0.0);
    }
}

choice! {
    /// Handling of a frame that arrives again because its acknowledgement was lost.
    Duplicates {
        /// The node acknowledges it again and drops it (IEEE 802.15.4-2015 s6.7.2).
        Reject = "reject",
        /// The MAC delivers it again, like GNRC without `gnrc_netif_dedup`.
        Pass = "pass",
    }
}

section! {
    /// The thin MAC: RIOT's GNRC over an AT86RF231.
    Thin {
        /// Maximum number of data frames that wait in one node (artefact of Lenders et al. 2021: 64, and 8 in its second study).
        queue_frames: u16 = params::THIN_QUEUE_FRAMES_MAX as u16, Within(1, 1024);
        /// Retries of a unicast frame after the first attempt (macMaxFrameRetries: 3).
        retries: u8 = params::CSMA_RETRIES_MAX, Within(0, 15);
        /// First back-off exponent (macMinBe: 3).
        be_min: u8 = params::CSMA_BE_MIN, Within(0, 8);
        /// Largest back-off exponent (macMaxBe: 5).
        be_max: u8 = params::CSMA_BE_MAX, Within(1, 8);
        /// Further back-offs before the MAC gives up on a busy channel (macMaxCsmaBackoffs: 4).
        backoffs: u8 = params::CSMA_BACKOFFS_MAX, Within(0, 15);
        /// Maximum time for which a received frame occupies the buffer of the radio; the time is random.
        busy_max: Duration = params::THIN_BUSY_MAX, Within(Duration::ZERO, SECOND);
        /// Maximum time until a frame that found the radio busy is tried again.
        requeue: Duration = params::THIN_REQUEUE, Within(MS, SECOND);
        /// Handling of a frame that arrives again because its acknowledgement was lost.
        duplicates: Duplicates = Duplicates::Reject, Any;
        /// The channel (Lenders et al. 2021: 16).
        channel: u8 = 16, Within(11, 26);
        /// What makes the channel busy: CCA mode 1 (the reset value of an AT86RF231, which RIOT leaves), 2 or 3 with OR.
        cca: Cca = Cca::Energy, Any;
        /// Energy at which the channel counts as busy.
        cca_dbm: f64 = CCA_ENERGY_DBM, Within(-150.0, 0.0);
    }
}

section! {
    /// Carrier sense of Contiki in 2014 over NullRDC.
    Contiki2014 {
        /// Maximum number of frames in a node, for all neighbours together (Contiki: 8, its border router 4).
        queue_frames: u16 = params::CSMA_QUEUE_FRAMES_MAX as u16, Within(1, 1024);
        /// Maximum number of neighbours with a queue; frames to further neighbours are dropped.
        neighbour_queues: u16 = params::CONTIKI_NEIGHBOUR_QUEUES as u16, Within(1, 1024);
        /// Retries of a unicast frame after the first attempt; a busy channel does not count.
        retries: u8 = params::CONTIKI_RETRIES_MAX, Within(0, 15);
        /// Shortest delay between two attempts.
        backoff_unit: Duration = params::CONTIKI_BACKOFF_UNIT, Within(MS, SECOND);
        /// The channel.
        channel: u8 = 26, Within(11, 26);
        /// What makes the channel busy: CCA mode 1, 2 or 3 with OR.
        cca: Cca = Cca::Either, Any;
        /// Energy at which the channel counts as busy (Contiki on a CC2520: -80).
        cca_dbm: f64 = -80.0, Within(-150.0, 0.0);
    }
}

impl Mac {
    /// The settings of TSCH, if that is the MAC.
    pub fn tsch(&self) -> Option<&Tsch> {
        match self {
            Self::Tsch(tsch) => Some(tsch),
            Self::Csma(_) | Self::Thin(_) | Self::Contiki2014(_) => None,
        }
    }

    /// Every channel that frames go out on.
    pub fn channels(&self) -> Vec<Channel> {
        match self {
            Self::Tsch(tsch) => tsch.hopping.channels(),
            Self::Csma(csma) => Channel::new(csma.channel).into_iter().collect(),
            Self::Thin(thin) => Channel::new(thin.channel).into_iter().collect(),
            Self::Contiki2014(contiki) => Channel::new(contiki.channel).into_iter().collect(),
        }
    }

    /// First and largest back-off exponent.
    pub fn exponents(&self) -> (u8, u8) {
        match self {
            Self::Tsch(tsch) => (tsch.be_min, tsch.be_max),
            Self::Csma(csma) => (csma.be_min, csma.be_max),
            Self::Thin(thin) => (thin.be_min, thin.be_max),
            Self::Contiki2014(_) => (0, 0),
        }
    }

    /// Maximum number of data frames that wait in one node.
    pub fn queue_frames(&self) -> u16 {
        match self {
            Self::Tsch(tsch) => tsch.queue_frames,
            Self::Csma(csma) => csma.queue_frames,
            Self::Thin(thin) => thin.queue_frames,
            Self::Contiki2014(contiki) => contiki.queue_frames,
        }
    }

    /// Retries of a unicast frame.
    pub fn retries(&self) -> u8 {
        match self {
            Self::Tsch(tsch) => tsch.retries,
            Self::Csma(csma) => csma.retries,
            Self::Thin(thin) => thin.retries,
            Self::Contiki2014(contiki) => contiki.retries,
        }
    }
}
