//! The one door to the simulator: a scenario and a seed go in, an outcome comes out.

use std::io::Write;

use lowmesh_sim::record::Outcome;
use lowmesh_units::{Instant, Seed};

use crate::scenario::Scenario;

/// Where a run writes what it does while it runs.
#[derive(Default)]
pub struct Sinks {
    /// Every frame on the air, as a capture that Wireshark reads.
    pub pcap: Option<Box<dyn Write + Send>>,
    /// Every event, one JSON object a line.
    pub trace: Option<Box<dyn Write + Send>>,
}

/// Why a run gave no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The scenario cannot be built: a file is wrong, or no topology was found.
    #[error("{0}")]
    Scenario(String),
    /// This build was made without a simulator.
    #[error("this build has no simulator")]
    NoSimulator,
    /// A sink could not be written.
    #[error("cannot write {0}")]
    Sink(String),
    /// An invariant of the simulator broke; not the scenario's fault, to be reported with the command that
    /// shows it.
    #[error("a defect of the simulator: {0}")]
    Defect(String),
}

/// What runs one seed; tests put made-up outcomes in its place. The last argument is told how far the run is.
pub type Simulate<'f> =
    dyn Fn(&Scenario, Seed, Sinks, &dyn Fn(Instant)) -> Result<Outcome, RunError> + Sync + 'f;

/// Runs `scenario` once with `seed`; `progress` is told now and then how far the run is.
//
// INTEGRATION: the one place where the scenario meets the simulator.
pub fn simulate(
    _scenario: &Scenario,
    _seed: Seed,
    _sinks: Sinks,
    _progress: &dyn Fn(Instant),
) -> Result<Outcome, RunError> {
    Err(RunError::NoSimulator)
}
