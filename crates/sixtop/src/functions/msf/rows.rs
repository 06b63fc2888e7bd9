//! The rows of MSF, its variant with rules about waiting frames, and B-MSF: the same function with other numbers.

use alloc::boxed::Box;

use lowmesh_registry::{Choice, Parameter, Row};
use lowmesh_units::Duration;

use super::super::{SECTION, SchedulingFunction, slots};
use super::Msf;
use crate::params::MsfParams;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
/// The least pause after a busy answer.
const WAIT_MIN: Duration = Duration::from_millis(10);

const RFC: &str = "RFC 9033 s14";
const TABLE_1: &str = "Righetti et al. 2023, table 1";

/// B-MSF.
pub static B_MSF: Row<dyn SchedulingFunction> = Row {
    name: MsfParams::BMSF.name,
    summary: "MSF in both directions (Righetti et al. 2023)",
    section: SECTION,
    parameters: &const {
        let set = &MsfParams::BMSF;
        let [
            cells_per_peer_max,
            max_num_tx,
            housekeeping,
            relocate_pdr,
            wait_min,
            wait_max,
            quarantine,
        ] = common(set);
        let [minimal_length, autonomous_length, negotiated_length] = lengths(set);
        [
            minimal_length.source("Righetti et al. 2023, table 1: L0"),
            autonomous_length.source("Righetti et al. 2023, table 1: L1"),
            negotiated_length
                .source("Righetti et al. 2023, table 1: L2; 47 and 101 were studied too"),
            watched("max_nec", set).source("Righetti et al. 2023, table 1: MAX_NEC"),
            lim_high(set, "A cell to a parent or child is added if more than this share of `max_nec` is used")
                .source(TABLE_1),
            lim_low(set, "A cell to a parent or child is deleted if less than this share of `max_nec` is used")
                .source(TABLE_1),
            cells_per_peer_max,
            max_num_tx,
            housekeeping,
            relocate_pdr,
            wait_min,
            wait_max,
            quarantine,
        ]
    },
    make: |choice, children| Box::new(Msf::new(b_msf(choice), children)),
};

/// MSF.
pub static MSF: Row<dyn SchedulingFunction> = Row {
    name: MsfParams::MSF.name,
    summary: "The minimal scheduling function (RFC 9033)",
    section: SECTION,
    parameters: &const {
        let set = &MsfParams::MSF;
        let [
            cells_per_peer_max,
            max_num_tx,
            housekeeping,
            relocate_pdr,
            wait_min,
            wait_max,
            quarantine,
        ] = common(set);
        let [minimal_length, autonomous_length, negotiated_length] = rfc_lengths(set);
        let [max_num_cells, lim_high, lim_low, receive_cells] = rfc_limits(set);
        [
            minimal_length,
            autonomous_length,
            negotiated_length,
            max_num_cells,
            lim_high,
            lim_low,
            receive_cells,
            cells_per_peer_max,
            max_num_tx,
            housekeeping,
            relocate_pdr,
            wait_min,
            wait_max,
            quarantine,
        ]
    },
    make: |choice, children| Box::new(Msf::new(msf(choice), children)),
};

/// MSF that also counts how long frames wait.
pub static BACKLOG: Row<dyn SchedulingFunction> = Row {
    name: MsfParams::BACKLOG.name,
    summary: "MSF that also adds cells while frames wait, and keeps them for a time",
    section: SECTION,
    parameters: &const {
        let set = &MsfParams::BACKLOG;
        let [
            cells_per_peer_max,
            max_num_tx,
            housekeeping,
            relocate_pdr,
            wait_min,
            wait_max,
            quarantine,
        ] = common(set);
        let [minimal_length, autonomous_length, negotiated_length] = rfc_lengths(set);
        let [max_num_cells, lim_high, lim_low, receive_cells] = rfc_limits(set);
        let [lim_auto_rx, backlog_slotframes, hold, hold_max] = backlog_rules(set);
        [
            minimal_length,
            autonomous_length,
            negotiated_length,
            max_num_cells,
            lim_high,
            lim_low,
            lim_auto_rx,
            backlog_slotframes,
            hold,
            hold_max,
            receive_cells,
            cells_per_peer_max,
            max_num_tx,
            housekeeping,
            relocate_pdr,
            wait_min,
            wait_max,
            quarantine,
        ]
    },
    make: |choice, children| Box::new(Msf::new(backlog(choice), children)),
};

impl MsfParams {
    /// The parameters of a chosen MSF, `msf/backlog` or B-MSF; `None` for another function.
    pub fn of(choice: &Choice<dyn SchedulingFunction>) -> Option<Self> {
        match choice.row() {
            row if *row == MSF => Some(msf(choice)),
            row if *row == BACKLOG => Some(backlog(choice)),
            row if *row == B_MSF => Some(b_msf(choice)),
            _ => None,
        }
    }
}

fn msf(choice: &Choice<dyn SchedulingFunction>) -> MsfParams {
    let watched = choice.whole("max_num_cells");
    MsfParams {
        // RFC 9033 s5.1 has one limit for all cells.
        shared_used_high: share(watched, choice, "lim_high"),
        receive_cells: choice.flag("receive_cells"),
        ..replaced(&MsfParams::MSF, choice, watched)
    }
}

fn backlog(choice: &Choice<dyn SchedulingFunction>) -> MsfParams {
    let watched = choice.whole("max_num_cells");
    MsfParams {
        shared_used_high: share(watched, choice, "lim_auto_rx"),
        backlog_slotframes: choice.whole("backlog_slotframes"),
        hold: (choice.time("hold"), choice.time("hold_max")),
        receive_cells: choice.flag("receive_cells"),
        ..replaced(&MsfParams::BACKLOG, choice, watched)
    }
}

fn b_msf(choice: &Choice<dyn SchedulingFunction>) -> MsfParams {
    replaced(&MsfParams::BMSF, choice, choice.whole("max_nec"))
}

/// `set` with the values that both functions take from `choice`.
fn replaced(set: &MsfParams, choice: &Choice<dyn SchedulingFunction>, watched: u64) -> MsfParams {
    MsfParams {
        minimal_length: choice.whole("minimal_length"),
        autonomous_length: choice.whole("autonomous_length"),
        negotiated_length: choice.whole("negotiated_length"),
        cells_elapsed_max: watched,
        cells_used_high: share(watched, choice, "lim_high"),
        cells_used_low: share(watched, choice, "lim_low"),
        cells_per_peer_max: choice.whole("cells_per_peer_max"),
        sent_max: choice.whole("max_num_tx"),
        relocate_percent: choice.whole("relocate_pdr"),
        housekeeping: choice.time("housekeeping"),
        quarantine: choice.time("quarantine"),
        wait_retry: (choice.time("wait_min"), choice.time("wait_max")),
        ..*set
    }
}

/// A threshold: so many percent of the cells watched.
fn share(watched: u64, choice: &Choice<dyn SchedulingFunction>, key: &str) -> u64 {
    watched * choice.whole::<u64>(key) / 100
}

/// The parameters of the three slotframes with the RFC's values.
const fn rfc_lengths(set: &MsfParams) -> [Parameter; 3] {
    let [minimal_length, autonomous_length, negotiated_length] = lengths(set);
    [
        minimal_length.source("RFC 9033 s14: SLOTFRAME_LENGTH"),
        autonomous_length.source(RFC),
        negotiated_length.source(RFC),
    ]
}

/// The parameters of RFC 9033 s5.1.
const fn rfc_limits(set: &MsfParams) -> [Parameter; 4] {
    [
        watched("max_num_cells", set).source("RFC 9033 s14: MAX_NUM_CELLS"),
        lim_high(set, "A cell is added if more than this share of `max_num_cells` is used")
            .source("RFC 9033 s14: LIM_NUMCELLSUSED_HIGH"),
        lim_low(set, "A cell is deleted if less than this share of `max_num_cells` is used")
            .source("RFC 9033 s14: LIM_NUMCELLSUSED_LOW"),
        Parameter::flag(
            "receive_cells",
            set.receive_cells,
            "Whether a node requests Rx cells from its parent; if not, downward frames use shared cells, as Righetti et al. 2023 s II-B describe MSF",
        )
        .source("RFC 9033 s5.1"),
    ]
}

/// The parameters of the rules about frames that wait.
const fn backlog_rules(set: &MsfParams) -> [Parameter; 4] {
    let (hold, hold_max) = set.hold;
    [
        percent(
            "lim_auto_rx",
            set.shared_used_high * 100 / set.cells_elapsed_max,
            (1, 100),
            "An Rx cell is added if the AutoRxCell is used in more than this share of `max_num_cells`",
        )
        .source("ours: RFC 9033 s5.1 uses `lim_high` here too"),
        Parameter::whole(
            "backlog_slotframes",
            set.backlog_slotframes as u64,
            0,
            10_000,
            "Number of consecutive slotframes with frames waiting for the parent or a child after which the node requests one more cell to it; 0 for never",
        )
        .unit("slotframes")
        .source("ours: RFC 9033 s5.1 counts used cells only"),
        Parameter::time(
            "hold",
            hold,
            Duration::ZERO,
            DAY,
            "Time for which a cell that these rules added is not deleted; it doubles whenever a deleted cell was missed",
        )
        .source("ours")
        .not_above("hold_max"),
        Parameter::time("hold_max", hold_max, Duration::ZERO, DAY, "Longest such time")
            .source("ours"),
    ]
}

/// The parameters of the three slotframes, without sources.
const fn lengths(set: &MsfParams) -> [Parameter; 3] {
    [
        slots("minimal_length", set.minimal_length, 1, "Length of slotframe 0, of the shared cell"),
        slots(
            "autonomous_length",
            set.autonomous_length,
            2,
            "Length of slotframe 1, of autonomous cells",
        ),
        slots(
            "negotiated_length",
            set.negotiated_length,
            2,
            "Length of slotframe 2, of negotiated cells",
        ),
    ]
}

const fn watched(key: &'static str, set: &MsfParams) -> Parameter {
    let summary = "Cells that pass before the function evaluates their use";
    Parameter::whole(key, set.cells_elapsed_max, 4, 10_000, summary).unit("cells")
}

const fn lim_high(set: &MsfParams, summary: &'static str) -> Parameter {
    percent("lim_high", set.cells_used_high * 100 / set.cells_elapsed_max, (1, 100), summary)
}

const fn lim_low(set: &MsfParams, summary: &'static str) -> Parameter {
    percent("lim_low", set.cells_used_low * 100 / set.cells_elapsed_max, (0, 99), summary)
        .below("lim_high")
}

const fn percent(
    key: &'static str,
    default: u64,
    (low, high): (u64, u64),
    summary: &'static str,
) -> Parameter {
    Parameter::whole(key, default, low, high, summary).unit("percent")
}

/// The parameters whose keys and sources both functions share.
const fn common(set: &MsfParams) -> [Parameter; 7] {
    let (wait_min, wait_max) = set.wait_retry;
    [
        Parameter::whole(
            "cells_per_peer_max",
            set.cells_per_peer_max as u64,
            1,
            100,
            "Maximum number of cells to one neighbour in one direction, below the slotframe's length",
        )
        .unit("cells")
        .source("ours"),
        Parameter::whole(
            "max_num_tx",
            set.sent_max as u64,
            2,
            32_768,
            "Transmissions at which the counters of a cell are halved",
        )
        .unit("frames")
        .source("RFC 9033 s14: MAX_NUMTX"),
        Parameter::time(
            "housekeeping",
            set.housekeeping,
            SECOND,
            DAY,
            "Time between two searches for colliding cells",
        )
        .source("RFC 9033 s14: HOUSEKEEPINGCOLLISION_PERIOD"),
        percent(
            "relocate_pdr",
            set.relocate_percent as u64,
            (1, 100),
            "A cell is moved if its delivery ratio is lower than that of the best cell by more than this",
        )
        .source("RFC 9033 s14: RELOCATE_PDRTHRES"),
        Parameter::time("wait_min", wait_min, WAIT_MIN, HOUR, "Shortest wait after a busy response")
            .source("RFC 9033 s14: WAIT_DURATION_MIN")
            .not_above("wait_max"),
        Parameter::time("wait_max", wait_max, WAIT_MIN, HOUR, "Longest wait after a busy response")
            .source("RFC 9033 s14: WAIT_DURATION_MAX"),
        Parameter::time(
            "quarantine",
            set.quarantine,
            SECOND,
            DAY,
            "Time for which a node sends no request to a peer with an inconsistent schedule",
        )
        .source("RFC 9033 s14: QUARANTINE_DURATION"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_replacements_the_rows_have_the_published_numbers() {
        let rows =
            [(&MSF, MsfParams::MSF), (&BACKLOG, MsfParams::BACKLOG), (&B_MSF, MsfParams::BMSF)];
        for (row, set) in rows {
            assert_eq!(MsfParams::of(&row.into()), Some(set));
        }
        assert_eq!(MsfParams::of(&(&crate::functions::minimal::ROW).into()), None);
    }

    #[test]
    fn all_thresholds_follow_the_number_of_cells_watched() {
        let with = |key: &str, value: u64| {
            let choice = Choice::from(&BACKLOG).with(key, value).expect("within bounds");
            MsfParams::of(&choice).expect("it is MSF")
        };
        let half = with("max_num_cells", 32);
        assert_eq!((half.cells_used_high, half.cells_used_low, half.shared_used_high), (24, 8, 8));
        assert_eq!(with("lim_auto_rx", 40).shared_used_high, 40);
    }

    #[test]
    fn limits_that_leave_no_room_between_them_are_refused() {
        for (key, value) in [("lim_low", 75_u64), ("lim_high", 25)] {
            let choice = Choice::from(&MSF).with(key, value).expect("within bounds");
            assert!(choice.check().is_err(), "{key}");
        }
    }
}
