//! A group is asked by multicast first; members that stay silent are asked again, together or one by one.

use alloc::boxed::Box;

use lowmesh_registry::{Parameter, Row};
use lowmesh_units::{Duration, Instant};

use super::aimd::{Aimd, PARAMETERS};
use super::{Gate, Path, Permit, Repair, Sample, Snapshot};

/// The row of [`Hybrid`].
pub static ROW: Row<dyn Gate> = Row {
    name: "hybrid",
    summary: "Multicast first, then unicast to the silent members, paced as with gate-aimd",
    section: "hybrid",
    parameters: &[
        PARAMETERS[0],
        PARAMETERS[1],
        PARAMETERS[2],
        PARAMETERS[3],
        Parameter::number(
            "repeat-above",
            0.3,
            0.0,
            1.0,
            "Share of silent members above which the multicast request is repeated once",
        )
        .source("ours"),
    ],
    make: |choice| {
        let repeat_above = choice.number("repeat-above");
        Box::new(Hybrid { unicast: Aimd::of(choice), repeat_above })
    },
};

/// Multicast first, then unicast repair paced by [`Aimd`].
#[derive(Clone, Debug)]
pub struct Hybrid {
    unicast: Aimd,
    repeat_above: f64,
}

impl Gate for Hybrid {
    fn permits(&self, path: &Path, now: Instant) -> Permit {
        self.unicast.permits(path, now)
    }
    fn on_sent(&mut self, path: &Path, now: Instant) {
        self.unicast.on_sent(path, now);
    }
    fn on_answer(&mut self, path: &Path, sample: Sample, now: Instant) {
        self.unicast.on_answer(path, sample, now);
    }
    fn on_lost(&mut self, path: &Path, now: Instant) {
        self.unicast.on_lost(path, now);
    }
    fn on_discarded(&mut self, path: &Path, now: Instant) {
        self.unicast.on_discarded(path, now);
    }
    fn on_late(&mut self, path: &Path, sample: Sample, now: Instant) {
        self.unicast.on_late(path, sample, now);
    }
    fn again(&self, path: &Path, times: u8) -> Option<Duration> {
        self.unicast.again(path, times)
    }
    fn on_again(&mut self, path: &Path, now: Instant) {
        self.unicast.on_again(path, now);
    }
    fn patience(&self) -> Option<Duration> {
        self.unicast.patience()
    }
    fn repair(&self, silent: usize, asked: usize, rounds: u8) -> Repair {
        let share = silent as f64 / asked.max(1) as f64;
        if silent == 0 {
            Repair::None
        } else if rounds <= 1 && share > self.repeat_above {
            Repair::Group
        } else {
            Repair::Unicast
        }
    }
    fn snapshot(&self) -> Snapshot {
        self.unicast.snapshot()
    }
    fn name(&self) -> &'static str {
        ROW.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_registry::Registry;

    #[test]
    fn few_silent_members_are_asked_alone_and_many_together_once() {
        let choice = Registry::<dyn Gate>::builtin().choose("hybrid").expect("a row");
        let gate = super::super::make(&choice);
        assert_eq!(gate.repair(0, 30, 1), Repair::None);
        assert_eq!(gate.repair(2, 30, 1), Repair::Unicast);
        assert_eq!(gate.repair(10, 30, 1), Repair::Group);
        assert_eq!(gate.repair(10, 30, 2), Repair::Unicast);
    }
}
