//! What a run is made of.

use lowmesh_stack::Config as NodeConfig;
use lowmesh_units::{Dbm, Duration};

use crate::air::{Interferer, MediumSpec};
use crate::energy::Currents;
use crate::topology::TopologySpec;
use crate::traffic;

/// Everything about a run but its seed.
#[derive(Clone, Debug)]
pub struct Config {
    /// Simulated time.
    pub duration: Duration,
    /// Where nodes stand.
    pub topology: TopologySpec,
    /// Who hears whom.
    pub medium: MediumSpec,
    /// What else is on the air.
    pub interferers: Vec<Interferer>,
    /// Power that every node sends with.
    pub tx_power: Dbm,
    /// Largest drift of a clock, parts per million.
    pub drift_max_ppm: f64,
    /// Nodes boot at random within this time; the root boots first, at once.
    pub boot_spread: Duration,
    /// Every node's settings.
    pub node: NodeConfig,
    /// The application.
    pub traffic: traffic::Config,
    /// The radio's currents.
    pub currents: Currents,
}
