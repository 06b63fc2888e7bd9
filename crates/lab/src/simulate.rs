//! The one door to the simulator: a scenario and a seed go in, an outcome comes out.

use lowmesh_sim::Error;
use lowmesh_sim::record::Outcome;
use lowmesh_units::{Instant, Seed};

use crate::scenario::Scenario;
use crate::settings;

pub use lowmesh_sim::Sinks;

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The scenario cannot be built: a file is wrong, or no topology was found.
    #[error("{0}")]
    Scenario(String),
    /// A sink could not be written.
    #[error("cannot write {0}")]
    Sink(String),
    /// An invariant of the simulator broke; not the scenario's fault, to be reported with the command that
    /// shows it.
    #[error("a defect of the simulator: {0}")]
    Defect(String),
}

impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        match error {
            Error::Build(_) | Error::Config(_) | Error::Node(_) => {
                Self::Scenario(error.to_string())
            }
            Error::Capture(cause) => Self::Sink(format!("the capture: {cause}")),
            Error::Trace(cause) => Self::Sink(format!("the trace: {cause}")),
            Error::Books(_) => Self::Defect(error.to_string()),
        }
    }
}

/// What runs one seed; tests put made-up outcomes in its place. The last argument is told how far the run is.
pub type Simulate<'f> =
    dyn Fn(&Scenario, Seed, Sinks, &dyn Fn(Instant)) -> Result<Outcome, RunError> + Sync + 'f;

/// Runs `scenario` once with `seed`; `progress` is told now and then how far the run is.
pub fn simulate(
    scenario: &Scenario,
    seed: Seed,
    sinks: Sinks,
    progress: &dyn Fn(Instant),
) -> Result<Outcome, RunError> {
    let mut mesh = settings::mesh(scenario, seed, sinks)?;
    mesh.advance_watched(Instant::ZERO + scenario.head.duration, progress);
    Ok(mesh.finish()?)
}
