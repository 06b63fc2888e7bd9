//! Whether the one cell of the minimal schedule carried more than it can: the results are then those of collisions.

use lowmesh_sixtop::functions::minimal;
use lowmesh_units::Duration;

use super::Report;
use crate::scenario::Scenario;

/// Frames for each cell, above which a cell that all nodes share is full: ours, 1. Slotted ALOHA carries most at this load,
/// in about a third of the cells; nodes that do not hear each other can send more.
const FRAMES_MAX: f64 = 1.0;
/// Share of acknowledged frames, below which the frames of a full cell are lost: ours, a half.
const SUCCESS_MIN: f64 = 0.5;

impl Report {
    /// What to do if the shared cell of the minimal schedule was full.
    pub fn crowded_cell(&self, scenario: &Scenario) -> Option<String> {
        if scenario.schedule.name() != minimal::ROW.name {
            return None;
        }
        let slot = Duration::from_millis(scenario.mac.tsch()?.slot_ms.into());
        let length: u16 = scenario.schedule.whole("slotframe_length");
        let cells = scenario.head.duration.as_secs_f64() / (slot * u64::from(length)).as_secs_f64();
        let frames = self.estimate("frames")?.mean / cells;
        let success = self.estimate("link_success")?.mean;
        (frames > FRAMES_MAX && success < SUCCESS_MIN).then(|| {
            format!(
                "the shared cell is full: nodes sent {frames:.1} frames for each cell, and {:.0} % of those to one neighbour \
                 were acknowledged; a schedule.slotframe_length below {length} makes more cells, and msf, b-msf, alice and \
                 orchestra have further ones",
                100.0 * success
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_units::Seed;

    use super::*;
    use crate::metrics::Metrics;
    use crate::runner::{Campaign, Run};

    /// The hint after a run of 1010 s, which is 1000 cells of a slotframe of 101 slots.
    fn hint(function: &str, frames: u64, success: f64) -> Option<String> {
        let text = format!(
            "name = \"x\"\nduration = \"1010s\"\nwarmup = \"0s\"\n[traffic]\nstart = \"1s\"\n[schedule]\nfunction = \"{function}\"\n"
        );
        let length = ["schedule.slotframe_length=101".to_owned()];
        let flags = if function == "minimal" { &length[..] } else { &[] };
        let scenario = Scenario::parse("x", &text, flags).expect("a scenario");
        let metrics = Metrics { frames, link_success: Some(success), ..Metrics::default() };
        let (seed, simulated) = (Seed(1), scenario.head.duration);
        let detail = crate::detail::Detail::default();
        let run = Run { seed, trace_hash: 0, simulated, wall_s: 0.0, metrics, detail };
        let campaign = Campaign { runs: vec![run], failures: Vec::new() };
        Report::new(&scenario, campaign).crowded_cell(&scenario)
    }

    #[test]
    fn a_full_cell_is_told_with_its_load_and_the_remedies() {
        let hint = hint("minimal", 2500, 0.14).expect("full");
        for part in ["2.5 frames for each cell", "14 %", "slotframe_length below 101", "orchestra"]
        {
            assert!(hint.contains(part), "{hint}");
        }
    }

    #[test]
    fn a_cell_with_room_and_other_functions_get_no_hint() {
        assert_eq!(hint("minimal", 900, 0.4), None);
        assert_eq!(hint("minimal", 2500, 0.6), None, "nodes far apart share the cell");
        assert_eq!(hint("msf", 2500, 0.14), None);
    }
}
