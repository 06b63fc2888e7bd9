//! What the row of a medium says: what it needs of the topology, and how it is built; and the parameters that media share.

use lowmesh_registry::{Algorithm as _, Choice, Parameter};
use lowmesh_units::Seed;

use super::Medium;
use super::error::{BuildError, ConfigError};
use super::params::NOISE_DBM;
use super::position::Position;
use super::site::Topology;

/// The scenario section with the parameters of all media.
pub const SECTION: &str = "radio";

/// Builds a medium among the nodes of a topology. All its randomness is of the seed.
pub type BuildMedium =
    fn(&Choice<dyn Medium>, &Topology, Seed) -> Result<Box<dyn Medium>, BuildError>;

/// What a medium needs from the topology, and how to build it.
#[derive(Clone, Copy, Debug)]
pub struct MakeMedium {
    /// What it needs.
    pub needs: Needs,
    /// Its constructor.
    pub build: BuildMedium,
}

/// What a medium needs from the topology.
#[derive(Clone, Copy, Debug)]
pub enum Needs {
    /// The places of the nodes.
    Places,
    /// The number of nodes only, since the medium itself says who hears whom. The function tells that number where the
    /// values of the medium do.
    Table(fn(&Choice<dyn Medium>) -> Option<usize>),
    /// The tree of a deployment.
    Tree,
}

/// Builds a medium, given as a row or a choice, among the nodes of `topology`.
///
/// ```
/// use lowmesh_sim::air::{build, unit_disk};
/// use lowmesh_sim::topology::TopologySpec;
/// use lowmesh_units::Seed;
///
/// let line = TopologySpec::Line { nodes: 3, spacing_m: 40.0 }.place(Seed(1))?;
/// assert_eq!(build(&unit_disk::ROW, &line, Seed(1))?.name(), "unit-disk");
/// # Ok::<(), lowmesh_sim::air::error::BuildError>(())
/// ```
pub fn build(
    medium: impl Into<Choice<dyn Medium>>,
    topology: &Topology,
    seed: Seed,
) -> Result<Box<dyn Medium>, BuildError> {
    let choice = medium.into();
    choice.check()?;
    let medium = (choice.row().make.build)(&choice, topology, seed)?;
    let (nodes, expected) = (medium.links().nodes(), topology.nodes());
    if nodes == expected {
        return Ok(medium);
    }
    let allowed = format!("{nodes} nodes, and the topology has {expected}; write the same number");
    let error = match choice.get("file") {
        Some(file) => ConfigError::new(format!("{SECTION}.file"), &file, allowed),
        None => ConfigError::new(<dyn Medium>::KEY, &choice.name(), allowed),
    };
    Err(error.into())
}

/// The number of nodes of a medium with a table of its own; `None` for other media, and if the table cannot be read.
pub fn nodes_of(medium: &Choice<dyn Medium>) -> Option<usize> {
    let make = medium.row().make;
    let Needs::Table(nodes) = make.needs else { return None };
    let built = || (make.build)(medium, &Topology::unplaced(0), Seed(0)).ok();
    nodes(medium).or_else(|| built().map(|medium| medium.links().nodes()))
}

/// The places of the nodes, for a medium that [needs](Needs::Places) them.
pub fn places(topology: &Topology) -> Result<&[Position], ConfigError> {
    topology.positions().ok_or_else(|| {
        let allowed = "this medium needs nodes with positions: grid, line, star, explicit, file, random-square";
        ConfigError::new("topology", &"unplaced", allowed)
    })
}

impl Needs {
    /// Whether it needs the positions of the nodes, so that nodes can move.
    pub const fn is_places(self) -> bool {
        matches!(self, Self::Places)
    }
}

/// The contents of a file.
pub(super) fn read(file: &str) -> Result<Vec<u8>, BuildError> {
    std::fs::read(file).map_err(|error| unreadable(file, &error))
}

/// The error of a file that cannot be read.
pub(super) fn unreadable(file: &str, error: &dyn ToString) -> BuildError {
    BuildError::File { file: file.to_owned(), reason: error.to_string() }
}

/// Power of all transmitters.
pub const TX_POWER: Parameter =
    Parameter::number("tx_power_dbm", 0.0, -60.0, 40.0, "Sending power").unit("dBm").source("ours");

/// Noise at all receivers.
pub const NOISE: Parameter =
    Parameter::number("noise_dbm", NOISE_DBM, -150.0, 0.0, "Noise over one channel")
        .unit("dBm")
        .source("thermal noise and a noise figure of 13 dB");

/// The path loss exponent.
pub(super) const fn exponent(default: f64, summary: &'static str) -> Parameter {
    Parameter::number("exponent", default, 1.0, 8.0, summary)
        .source("Cooja LogisticLoss; ITU: 2.5 to 3.5 indoors")
}

/// The standard deviation of shadowing.
pub(super) const fn shadowing(default: f64, summary: &'static str) -> Parameter {
    Parameter::number("shadowing_db", default, 0.0, 20.0, summary)
        .unit("dB")
        .source("Cooja LogisticLoss")
}
