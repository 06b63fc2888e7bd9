//! A constant gap between requests: that of S002, whose delay belongs to each profile, plus one of the whole domain.

use alloc::boxed::Box;

use lowmesh_registry::{Parameter, Row};
use lowmesh_units::{Duration, Instant};

use super::{Gate, Path, Permit, Sample, Snapshot};
use crate::params::DELAY_MAX;

/// The row of [`Fixed`].
pub static ROW: Row<dyn Gate> = Row {
    name: "fixed",
    summary: "A constant gap between requests (Ishaq et al. 2016)",
    section: "fixed",
    parameters: &[Parameter::time(
        "delay",
        Duration::ZERO,
        Duration::ZERO,
        DELAY_MAX,
        "Minimum time between two requests of all entities; a profile may require more",
    )
    .source("Ishaq et al. 2016 s2.3.1")],
    make: |choice| Box::new(Fixed::new(choice.time("delay"))),
};

/// Any number of outstanding requests, with a constant gap between two of them.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    gap: Duration,
    last: Option<Instant>,
    outstanding: u32,
}

impl Fixed {
    /// A gate with this gap.
    pub const fn new(gap: Duration) -> Self {
        Self { gap, last: None, outstanding: 0 }
    }
}

impl Gate for Fixed {
    fn permits(&self, _path: &Path, now: Instant) -> Permit {
        match self.last.map(|last| last + self.gap) {
            Some(next) if next > now => Permit::At(next),
            _ => Permit::Now,
        }
    }
    fn on_sent(&mut self, _path: &Path, now: Instant) {
        self.last = Some(now);
        self.outstanding += 1;
    }
    fn on_answer(&mut self, path: &Path, _sample: Sample, now: Instant) {
        self.on_discarded(path, now);
    }
    fn on_lost(&mut self, path: &Path, now: Instant) {
        self.on_discarded(path, now);
    }
    fn on_discarded(&mut self, _path: &Path, _now: Instant) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot { window: None, outstanding: self.outstanding, gap: self.gap }
    }
    fn name(&self) -> &'static str {
        ROW.name
    }
}
