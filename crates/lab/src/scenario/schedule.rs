//! `[schedule]`: which scheduling function fills the TSCH schedule, and with what numbers.

use lowmesh_units::Duration;

use super::section::{section, variants};
use super::value::{Within, choice};

/// Longest slotframe, in slots: its length is two octets on the air (IEEE 802.15.4-2015 s7.4.4.3).
const SLOTS_MAX: u16 = u16::MAX;
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

variants! {
    /// The scheduling function.
    Schedule by "function" {
        /// MSF in both directions (Righetti et al. 2023).
        "b-msf" => BMsf,
        /// The minimal scheduling function (RFC 9033).
        "msf" => Msf,
        /// One shared cell (RFC 8180).
        "minimal" => Minimal,
        /// Autonomous link-based cells.
        "alice" => Alice,
        /// Autonomous node-based cells.
        "orchestra" => Orchestra,
    }
}

section! {
    /// One shared cell (RFC 8180 s4.1).
    Minimal {
        /// Slots in the slotframe (6TiSCH custom: 101).
        slotframe_length: u16 = 101, Within(1, SLOTS_MAX);
    }
}

section! {
    /// MSF (RFC 9033).
    Msf {
        /// Slots of slotframe 0, of the shared cell (RFC 9033 s14: SLOTFRAME_LENGTH 101).
        minimal_length: u16 = 101, Within(1, SLOTS_MAX);
        /// Slots of slotframe 1, of autonomous cells (RFC 9033 s14: 101).
        autonomous_length: u16 = 101, Within(2, SLOTS_MAX);
        /// Slots of slotframe 2, of negotiated cells (RFC 9033 s14: 101).
        negotiated_length: u16 = 101, Within(2, SLOTS_MAX);
        /// Cells watched before the use of them is judged (RFC 9033 s14: MAX_NUM_CELLS 100).
        max_num_cells: u16 = 100, Within(4, 10_000);
        /// Use above which a cell is added, in percent (RFC 9033 s14: LIM_NUMCELLSUSED_HIGH 75).
        lim_high: u8 = 75, Within(1, 100);
        /// Use below which a cell is deleted, in percent (RFC 9033 s14: LIM_NUMCELLSUSED_LOW 25).
        lim_low: u8 = 25, Within(0, 99);
        /// Use of the AutoRxCell above which a cell to receive in is added, in percent of max_num_cells (ours, 25: RFC 9033
        /// s5.1 has lim_high for it too).
        lim_auto_rx: u8 = 25, Within(1, 100);
        /// Slotframes for which frames wait for the parent or a child without a break before the node requests one more cell
        /// to it; 0 for never (ours, 4: RFC 9033 s5.1 counts used cells only).
        backlog_slotframes: u16 = 4, Within(0, 10_000);
        /// Whether a node asks its parent for cells to receive in (RFC 9033 s5.1); without, all that comes down takes
        /// shared cells, as Righetti et al. 2023 s II-B describe MSF.
        receive_cells: bool = true, super::value::Any;
        /// Most cells to one neighbour in one direction: a bound of ours, below the slotframe's length.
        cells_per_peer_max: u16 = 40, Within(1, 100);
        /// Transmissions at which the counters of a cell are halved (RFC 9033 s14: MAX_NUMTX 256).
        max_num_tx: u16 = 256, Within(2, 32_768);
        /// Time between two searches for colliding cells (RFC 9033 s14: 1 min).
        housekeeping: Duration = Duration::from_secs(60), Within(SECOND, DAY);
        /// Distance in delivery ratio from the best cell at which a cell is moved, in percent (RFC 9033 s14: 50).
        relocate_pdr: u8 = 50, Within(1, 100);
        /// Shortest wait after a busy answer (RFC 9033 s14: WAIT_DURATION_MIN 30 s).
        wait_min: Duration = Duration::from_secs(30), Within(Duration::from_millis(10), HOUR);
        /// Longest wait after a busy answer (RFC 9033 s14: WAIT_DURATION_MAX 60 s).
        wait_max: Duration = Duration::from_secs(60), Within(Duration::from_millis(10), HOUR);
        /// Time that a peer with a broken schedule is left alone (RFC 9033 s14: QUARANTINE_DURATION 5 min).
        quarantine: Duration = Duration::from_secs(300), Within(SECOND, DAY);
    }
}

section! {
    /// B-MSF: negotiated cells to the parent and to the children (Righetti et al. 2023, table 1).
    BMsf {
        /// Slots of slotframe 0, of the shared cell (table 1: L0 101).
        minimal_length: u16 = 101, Within(1, SLOTS_MAX);
        /// Slots of slotframe 1, of autonomous cells (table 1: L1 31).
        autonomous_length: u16 = 31, Within(2, SLOTS_MAX);
        /// Slots of slotframe 2, of negotiated cells (table 1: L2 29; 47 and 101 were studied too).
        negotiated_length: u16 = 29, Within(2, SLOTS_MAX);
        /// Cells watched before the use of them is judged (table 1: MAX_NEC 48).
        max_nec: u16 = 48, Within(4, 10_000);
        /// Use above which a cell to a parent or child is added, in percent of max_nec (table 1: 75).
        lim_high: u8 = 75, Within(1, 100);
        /// Use below which a cell to a parent or child is deleted, in percent of max_nec (table 1: 25).
        lim_low: u8 = 25, Within(0, 99);
        /// Most cells to one neighbour in one direction: a bound of ours, below the slotframe's length.
        cells_per_peer_max: u16 = 12, Within(1, 100);
        /// Transmissions at which the counters of a cell are halved (RFC 9033 s14: MAX_NUMTX 256).
        max_num_tx: u16 = 256, Within(2, 32_768);
        /// Time between two searches for colliding cells (RFC 9033 s14: 1 min).
        housekeeping: Duration = Duration::from_secs(60), Within(SECOND, DAY);
        /// Distance in delivery ratio from the best cell at which a cell is moved, in percent (RFC 9033 s14: 50).
        relocate_pdr: u8 = 50, Within(1, 100);
        /// Shortest wait after a busy answer (RFC 9033 s14: WAIT_DURATION_MIN 30 s).
        wait_min: Duration = Duration::from_secs(30), Within(Duration::from_millis(10), HOUR);
        /// Longest wait after a busy answer (RFC 9033 s14: WAIT_DURATION_MAX 60 s).
        wait_max: Duration = Duration::from_secs(60), Within(Duration::from_millis(10), HOUR);
        /// Time that a peer with a broken schedule is left alone (RFC 9033 s14: QUARANTINE_DURATION 5 min).
        quarantine: Duration = Duration::from_secs(300), Within(SECOND, DAY);
    }
}

section! {
    /// ALICE (Kim et al. 2019).
    Alice {
        /// Slots of the beacons' slotframe (Contiki-NG Orchestra: 397).
        beacon_length: u16 = 397, Within(1, SLOTS_MAX);
        /// Slots of the slotframe for broadcast (Contiki-NG Orchestra: 31).
        broadcast_length: u16 = 31, Within(1, SLOTS_MAX);
        /// Slots of the slotframe for unicast (Righetti et al. 2023: 29).
        unicast_length: u16 = 29, Within(1, SLOTS_MAX);
        /// Whether senders back off in unicast cells, which two links may share (the authors' code: true).
        unicast_shared: bool = true, super::value::Any;
    }
}

section! {
    /// Orchestra (Duquennoy et al. 2015).
    Orchestra {
        /// Slots of the beacons' slotframe (Contiki-NG 5.0: 397).
        beacon_length: u16 = 397, Within(1, SLOTS_MAX);
        /// Slots of the slotframe for broadcast (Contiki-NG 5.0: 31).
        common_length: u16 = 31, Within(1, SLOTS_MAX);
        /// Slots of the slotframe for unicast (Contiki-NG 5.0: 17).
        unicast_length: u16 = 17, Within(1, SLOTS_MAX);
        /// Channel offset of beacon cells (Contiki-NG 5.0: 0).
        beacon_channel_offset: u8 = 0, Within(0, 255);
        /// Channel offset of the cell for broadcast (Contiki-NG 5.0: 1).
        common_channel_offset: u8 = 1, Within(0, 255);
        /// First channel offset of unicast cells; the receiver's address chooses one (Contiki-NG 5.0: 2).
        unicast_channel_offset_min: u8 = 2, Within(0, 255);
        /// Last channel offset of unicast cells (Contiki-NG 5.0: 255).
        unicast_channel_offset_max: u8 = 255, Within(0, 255);
        /// Slots of a slotframe for frames to the root alone, which then always listens; 0 for none (Contiki-NG 5.0:
        /// special_for_root, off by default).
        root_length: u16 = 0, Within(0, SLOTS_MAX);
        /// Whose address places a unicast cell (Contiki-NG 5.0: receiver).
        variant: OrchestraVariant = OrchestraVariant::Receiver, super::value::Any;
    }
}

choice! {
    /// Whose address places a unicast cell of Orchestra.
    OrchestraVariant {
        /// The sender's: no contention, more listening.
        Sender = "sender",
        /// The receiver's: one cell to listen in, contention among senders.
        Receiver = "receiver",
    }
}
