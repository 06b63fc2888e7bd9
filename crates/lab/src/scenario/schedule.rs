//! `[schedule]`: which scheduling function fills the TSCH schedule, and with what numbers.

use lowmesh_units::Duration;

use super::section::{section, variants};
use super::value::{Within, choice};

/// Longest slotframe, in slots: its length is two octets on the air (IEEE 802.15.4-2015 s7.4.4.3).
const SLOTS_MAX: u16 = u16::MAX;

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
        /// Slots in the slotframe (RFC 8180 s4.1: 101 recommended).
        slotframe: u16 = 101, Within(1, SLOTS_MAX);
    }
}

section! {
    /// MSF (RFC 9033).
    Msf {
        /// Slots in each slotframe (RFC 9033 s14: SLOTFRAME_LENGTH 101).
        slotframe: u16 = 101, Within(3, SLOTS_MAX);
        /// Cells watched before the use of them is judged (RFC 9033 s14: MAX_NUM_CELLS 100).
        max_num_cells: u16 = 100, Within(1, 10_000);
        /// Use above which a cell is added, in percent (RFC 9033 s14: LIM_NUMCELLSUSED_HIGH 75).
        lim_high: u8 = 75, Within(1, 100);
        /// Use below which a cell is deleted, in percent (RFC 9033 s14: LIM_NUMCELLSUSED_LOW 25).
        lim_low: u8 = 25, Within(0, 99);
        /// Transmissions at which the counters of a cell are halved (RFC 9033 s14: MAX_NUMTX 256).
        max_num_tx: u16 = 256, Within(2, 32_768);
        /// Time between two searches for colliding cells (RFC 9033 s14: 1 min).
        housekeeping: Duration = Duration::from_secs(60), Within(Duration::from_secs(1), Duration::from_secs(86_400));
        /// Distance in delivery ratio from the best cell at which a cell is moved, in percent (RFC 9033 s14: 50).
        relocate_pdr: u8 = 50, Within(1, 100);
        /// Shortest wait after a busy answer (RFC 9033 s14: WAIT_DURATION_MIN 30 s).
        wait_min: Duration = Duration::from_secs(30), Within(Duration::from_millis(10), Duration::from_secs(3600));
        /// Longest wait after a busy answer (RFC 9033 s14: WAIT_DURATION_MAX 60 s).
        wait_max: Duration = Duration::from_secs(60), Within(Duration::from_millis(10), Duration::from_secs(3600));
        /// Time that a peer with a broken schedule is left alone (RFC 9033 s14: QUARANTINE_DURATION 5 min).
        quarantine: Duration = Duration::from_secs(300), Within(Duration::from_secs(1), Duration::from_secs(86_400));
    }
}

section! {
    /// B-MSF: negotiated cells to the parent and to the children (Righetti et al. 2023, table 1).
    BMsf {
        /// Slots of L0, the slotframe of the shared cell (slotframe 0 of RFC 9033 s2).
        slotframe_l0: u16 = 101, Within(3, SLOTS_MAX);
        /// Slots of L1, the slotframe of autonomous cells (slotframe 1).
        slotframe_l1: u16 = 31, Within(3, SLOTS_MAX);
        /// Slots of L2, the slotframe of negotiated cells (slotframe 2; 29, 47 and 101 were studied).
        slotframe_l2: u16 = 29, Within(3, SLOTS_MAX);
        /// Cells watched before the use of them is judged (MAX_NEC 48).
        max_nec: u16 = 48, Within(1, 10_000);
        /// Use above which a cell to a parent or child is added, in percent of max_nec.
        lim_high: u8 = 75, Within(1, 100);
        /// Use below which a cell to a parent or child is deleted, in percent of max_nec.
        lim_low: u8 = 25, Within(0, 99);
        /// Transmissions at which the counters of a cell are halved (RFC 9033 s14: MAX_NUMTX 256).
        max_num_tx: u16 = 256, Within(2, 32_768);
        /// Time between two searches for colliding cells (RFC 9033 s14: 1 min).
        housekeeping: Duration = Duration::from_secs(60), Within(Duration::from_secs(1), Duration::from_secs(86_400));
        /// Distance in delivery ratio from the best cell at which a cell is moved, in percent (RFC 9033 s14: 50).
        relocate_pdr: u8 = 50, Within(1, 100);
        /// Shortest wait after a busy answer (RFC 9033 s14: WAIT_DURATION_MIN 30 s).
        wait_min: Duration = Duration::from_secs(30), Within(Duration::from_millis(10), Duration::from_secs(3600));
        /// Longest wait after a busy answer (RFC 9033 s14: WAIT_DURATION_MAX 60 s).
        wait_max: Duration = Duration::from_secs(60), Within(Duration::from_millis(10), Duration::from_secs(3600));
        /// Time that a peer with a broken schedule is left alone (RFC 9033 s14: QUARANTINE_DURATION 5 min).
        quarantine: Duration = Duration::from_secs(300), Within(Duration::from_secs(1), Duration::from_secs(86_400));
    }
}

section! {
    /// ALICE (Kim et al. 2019).
    Alice {
        /// Slots of the beacons' slotframe (Contiki-NG port: 397).
        slotframe_eb: u16 = 397, Within(1, SLOTS_MAX);
        /// Slots of the slotframe for broadcast (Contiki-NG port: 31).
        slotframe_common: u16 = 31, Within(1, SLOTS_MAX);
        /// Slots of the slotframe for unicast (Contiki-NG port: 17).
        slotframe_unicast: u16 = 17, Within(1, SLOTS_MAX);
    }
}

section! {
    /// Orchestra (Duquennoy et al. 2015).
    Orchestra {
        /// Slots of the beacons' slotframe (Contiki-NG 5.0: 397).
        slotframe_eb: u16 = 397, Within(1, SLOTS_MAX);
        /// Slots of the slotframe for broadcast (Contiki-NG 5.0: 31).
        slotframe_common: u16 = 31, Within(1, SLOTS_MAX);
        /// Slots of the slotframe for unicast (Contiki-NG 5.0: 17).
        slotframe_unicast: u16 = 17, Within(1, SLOTS_MAX);
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
